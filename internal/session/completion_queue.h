// CompletionQueue: where asynchronous runs announce their end. Entries wait in order; the descriptor is
// readable while there are any, for a host with a loop of its own. Shared: any thread.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <span>

#include "base/clock.h"
#include "base/ref.h"
#include "base/status.h"

namespace dtg {

class CompletionQueue final : public RefCounted {
 public:
  struct Event {
    uint64_t tag = 0;
    Status status;
  };
  static Result<Ref<CompletionQueue>> create();
  ~CompletionQueue() override;

  // Makes room for one push, which then cannot fail.
  void expect();
  void push(uint64_t tag, Status status);
  // Fills up to events.size(); waits for the first until the deadline. 0 = the deadline passed.
  size_t next(std::span<Event> events, const Clock& clock, Deadline deadline);
  // Readable while events wait; poll only, never read or close it.
  int descriptor() const { return descriptor_; }

 private:
  explicit CompletionQueue(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::list<Event> events_;
  std::list<Event> room_;
};

}  // namespace dtg
