// Visitors: the threads that are inside something which may be let go as soon as they have done what somebody waits for. They have to
// leave it first: each holds a Visit while it is inside, and the end of the thing waits.
//
// Owner: that thing. Any thread.
#pragma once

#include <atomic>

namespace dtg {

class Visitors {
 public:
  class Visit {
   public:
    explicit Visit(Visitors& visitors) : inside_(visitors.inside_) { inside_.fetch_add(1, std::memory_order_relaxed); }
    // The count is the last that is touched: a notification uses its address alone.
    ~Visit() {
      if (inside_.fetch_sub(1) == 1) inside_.notify_one();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    std::atomic<int>& inside_;
  };

  void wait() const {
    for (int seen; (seen = inside_.load()) != 0;) inside_.wait(seen);
  }

 private:
  std::atomic<int> inside_{0};
};

}  // namespace dtg
