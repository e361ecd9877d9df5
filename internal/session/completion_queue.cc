// The queue and its eventfd. The descriptor holds 1 exactly while the queue is not empty.
#include "session/completion_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace dtg {

Result<Ref<CompletionQueue>> CompletionQueue::create() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) return resource_exhausted("create a completion queue: no file descriptor is left");
  return Ref<CompletionQueue>::adopt(new CompletionQueue(descriptor));
}

CompletionQueue::~CompletionQueue() { ::close(descriptor_); }

void CompletionQueue::expect() {
  const std::lock_guard lock(mutex_);
  room_.emplace_back();
}

void CompletionQueue::push(uint64_t tag, Status status) {
  const std::lock_guard lock(mutex_);
  if (room_.empty()) room_.emplace_back();
  room_.front() = {tag, std::move(status)};
  if (events_.empty()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);  // cannot fill up: it is 0
  }
  events_.splice(events_.end(), room_, room_.begin());
  arrived_.notify_one();
}

size_t CompletionQueue::next(std::span<Event> events, const Clock& clock, Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (events_.empty()) {
    if (deadline.passed(clock)) return 0;
    clock.wait(arrived_, lock, deadline.at_ns);
  }
  const size_t count = std::min(events.size(), events_.size());
  for (size_t i = 0; i < count; ++i) {
    events[i] = std::move(events_.front());
    events_.pop_front();
  }
  if (events_.empty()) {
    uint64_t value = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor_, &value, sizeof value);
  }
  return count;
}

}  // namespace dtg
