// Run: one run of a plan in this process. It leases a frame, begins a step, binds what is fed and fetched, runs, hands the values
// over and gives the frame back. That is the same for a caller who waits, for one who is told of the end, and for a peer whose
// part it is; they differ in what they add when it begins and when it has ended.
//
// Owner: whoever asks for it; it must stay until execute() has returned or ended() was called. Warm, it takes no memory and no
// mutex. stop() may come from any thread.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/spin_lock.h"
#include "cluster/step_edges.h"
#include "plan/plan.h"

namespace dtg {

class Run : private Plan::FrameWaiter, private Frame::Watcher, private Cancellation::Listener {
 public:
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // For a caller who waits: on this thread, until the end. For others: starts it on the pool, and ended() tells.
  Status execute();
  // Aborts what goes on; a run that still waits for a frame ends soon. Sticky; the first cause is kept.
  void stop(const Status& cause);
  uint64_t sequence() const { return sequence_; }
  // What the writes of the run are known by: the number of the first attempt at it.
  uint64_t write() const { return write_; }
  Deadline deadline() const { return deadline_; }
  // Between begun() and left().
  Frame& frame() const { return *frame_; }
  // The way to the parts on other tasks; null where there are none. They are ended with the run.
  const Ref<StepEdges>& edges() const { return edges_; }
  void set_edges(Ref<StepEdges> edges) { edges_ = std::move(edges); }

 protected:
  enum class Caller : uint8_t { waits, is_told };
  // `cancellation`, of a caller who waits, ends it too; null: none. It outlives the run.
  Run(Plan& plan, const Clock& clock, Caller caller, uint64_t sequence, Deadline deadline, Cancellation* cancellation = nullptr)
      : plan_(plan),
        clock_(clock),
        caller_(caller),
        sequence_(sequence),
        write_(sequence),
        deadline_(deadline),
        cancellation_(cancellation) {}
  ~Run() override = default;
  // Tensors are borrowed until the end. One that is valid in `fetched` is written into; the others are made.
  void give(std::span<const Tensor* const> feeds, std::span<Tensor> fetched) {
    feeds_ = feeds;
    fetched_ = fetched;
  }
  // For a caller who is told: how much of the run whoever executes it takes himself, and where it goes on (null: the pool).
  enum class Begins : uint8_t { elsewhere, receiving, here };
  void run_with(Frame::Executor* executor) { executor_ = executor; }
  void begin_here(Begins begins) { begins_ = begins; }
  // Once it has ended, it may be executed again.
  void renew(uint64_t sequence) {
    sequence_ = write_ = sequence;
    edges_ = nullptr;
  }
  // It is another attempt at what was begun under that number.
  void repeat(uint64_t write) { write_ = write; }
  Status stop_cause() final;

  // The step has begun and all is bound, nothing runs yet; an error ends the run.
  virtual Status begun() = 0;
  // Nothing of the run goes on; its frame, if it has one, is about to serve others. Also where begun() was not called.
  virtual void left() = 0;
  // Last of all, of a run whose caller is told: the run may go. From any thread.
  virtual void ended(Status status) = 0;
  // How errors name a fetch.
  virtual std::string fetch_name(size_t) const { return {}; }

 private:
  // What a kernel writes, or a copy of it, until it may go into the tensor that was given.
  struct Staged {
    size_t fetch;
    Tensor tensor;
  };

  // Ends a run that waited for a frame, on the pool, because whoever stops it may hold it.
  class StoppedTask final : public Pool::Task {
   public:
    explicit StoppedTask(Run& run) : run_(run) {}
    void run() override { run_.stopped_waiting(); }

   private:
    Run& run_;
  };

  bool granted(Frame& frame) override { return launch(frame, Begins::elsewhere); }
  void finished(Frame& frame) override;
  void cancelled() override { stop(cancellation_->status()); }
  Status wait();
  void start();
  bool launch(Frame& frame, Begins begins);
  Result<Frame*> wait_for_frame();
  Status begin(Frame& frame);
  Status publish(Frame& frame);
  Status bind();
  Status given_strings(size_t fetch) const;
  bool meets_a_feed(const Tensor& tensor) const;
  Status keep_apart();
  Staged* staged(size_t fetch);
  Status collect();
  Status collect_one(size_t i);
  void leave();
  void let_go();
  void stopped_waiting();

  Plan& plan_;
  const Clock& clock_;
  const Caller caller_;
  uint64_t sequence_;
  uint64_t write_;
  const Deadline deadline_;
  Cancellation* const cancellation_;
  Frame::Executor* executor_ = nullptr;
  Begins begins_ = Begins::elsewhere;
  std::span<const Tensor* const> feeds_;
  std::span<Tensor> fetched_;
  std::vector<Staged> staged_;
  Ref<StepEdges> edges_;
  SpinLock lock_;  // guards stop_cause_, and frame_ against stop(); a caller who waits needs it not before it is known to others
  Frame* frame_ = nullptr;
  Status stop_cause_;
  std::atomic<int> stopping_{0};  // calls of stop() that may still touch the frame
  StoppedTask stopped_task_{*this};
};

}  // namespace dtg
