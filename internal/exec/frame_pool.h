// FramePool: the frames of one program. A run leases one and gives it back; a few are taken and given back without a lock. When all are
// taken, the next run waits for one, first come, first served. A program that may block has as many frames as runs, because the run
// that would free a frame may be the very one that waits for it; there the memory budget is the bound.
//
// Owner: the plan. Any thread.
#pragma once

#include <mutex>
#include <vector>

#include "exec/frame.h"

namespace dtg {

class FramePool {
 public:
  // Who wants a frame while all are taken; on one list at a time.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // Called once, from the thread that gives one back. False: it has no use for it, and the next one gets it.
    virtual bool granted(Frame& frame) = 0;
    // Not OK: it wants none any more. Asked as it is about to be queued; whoever stops it later finds it there.
    virtual Status stop_cause() { return {}; }

   private:
    friend class FramePool;
    Waiter* prev_ = nullptr;
    Waiter* next_ = nullptr;
    bool queued_ = false;
  };

  FramePool(const Frame::Surroundings& around, size_t limit) : around_(around), limit_(limit) {}

  // A frame for a run, or null: then `waiter` (if any) is queued and will be granted one.
  Result<Frame*> lease(Waiter* waiter);
  // Takes a queued waiter back; false when it has been granted a frame.
  bool withdraw(Waiter* waiter);
  void give_back(Frame& frame);

 private:
  Frame* take_unused();
  Waiter* park(Frame& frame, Frame** unused);
  void enqueue(Waiter* waiter);
  void dequeue(Waiter* waiter);

  static constexpr int kCells = 4;  // frames that are taken and given back without a lock

  const Frame::Surroundings around_;
  const size_t limit_;
  std::atomic<Frame*> free_[kCells] = {};
  std::atomic<int> waiting_{0};
  std::mutex mutex_;  // making frames, and runs that find none free
  std::vector<std::unique_ptr<Frame>> frames_;
  Frame* spare_ = nullptr;  // free ones beyond the cells, which somebody was about to leave
  Waiter* first_waiter_ = nullptr;
  Waiter* last_waiter_ = nullptr;
};

}  // namespace dtg
