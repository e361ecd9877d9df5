// The guard against flatbuffers' assert, included before everything else in the sources of this rung. Foreign
// bytes must never end the host's process, so an assertion that fails is counted, and a test demands that the
// count stays 0.
#pragma once

namespace dtg::wire {
void count_failed_assertion() noexcept;
long failed_assertions() noexcept;
}  // namespace dtg::wire

#define FLATBUFFERS_ASSERT(condition) (static_cast<bool>(condition) ? static_cast<void>(0) : ::dtg::wire::count_failed_assertion())
