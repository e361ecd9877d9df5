// The counter of assertions in FlatBuffers that failed; see flatbuffers_assert.h. Any thread.
#include "wire/flatbuffers_assert.h"

#include <atomic>

namespace dtg::wire {
namespace {
std::atomic<long> failures{0};
}  // namespace

void count_failed_assertion() noexcept { failures.fetch_add(1, std::memory_order_relaxed); }
long failed_assertions() noexcept { return failures.load(std::memory_order_relaxed); }

}  // namespace dtg::wire
