/* Whether a sanitizer that follows memory or threads is at work: DTG_SANITIZED is 1 then. It takes times as long, and brings an allocator
 * of its own. C and C++. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DTG_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DTG_SANITIZED 1
#endif
#endif
#ifndef DTG_SANITIZED
#define DTG_SANITIZED 0
#endif
