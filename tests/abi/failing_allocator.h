/* An allocator that fails on purpose: the program's own malloc family stands in front of the C library's, so the shared library and what
 * it links use it too. For one program each, which includes it once; any thread. OWN_ALLOCATOR is 0 where a sanitizer brings its own. */
#pragma once

#include "../sanitized.h"

#define OWN_ALLOCATOR (!DTG_SANITIZED)

#if OWN_ALLOCATOR
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long left = -1;  /* -1: never fails */
static long calls = 0;  /* since the scenario began */
static int lasting = 0; /* once it has failed it goes on failing */

static pthread_t only; /* the thread whose calls count, where has_only says so; otherwise all do */
static int has_only = 0;

static int fails(void) {
  if (__atomic_load_n(&has_only, __ATOMIC_RELAXED) && !pthread_equal(pthread_self(), only)) return 0;
  const long count = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  const long at = __atomic_load_n(&left, __ATOMIC_RELAXED);
  if (at < 0 || count < at || (count > at && !lasting)) return 0;
  errno = ENOMEM;
  return 1;
}

/* The build hides symbols by default; the library must find these. */
#pragma GCC visibility push(default)
void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
void *memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
#pragma GCC visibility pop

/* The n-th call from now on fails, and those after it where it lasts; -1: none, the calls are only counted. */
static void fail_from(long n, int goes_on) {
  __atomic_store_n(&calls, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&lasting, goes_on, __ATOMIC_RELAXED);
  __atomic_store_n(&left, n, __ATOMIC_RELAXED);
}

static void fail_no_more(void) { __atomic_store_n(&left, -1, __ATOMIC_RELAXED); }
#endif
