// Plan: a run of a graph, compiled. One per (fetches, targets, feeds with types and shapes); immutable in
// what it does, so that any number of runs may use it at the same time. It owns the argument blocks of its
// kernels, its constants and a few frames.
//
// Owner: the session's cache, prepared callables and the runs under way, by count. Any thread.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "exec/frame.h"
#include "plan/draft.h"
#include "plan/fetch_pool.h"

namespace dtg {

class Emitter;
class MemoryPlan;

// What goes along with every run of a plan that has parts on other tasks.
class Attendant : public RefCounted {
 public:
  // Everything is bound, nothing has run yet.
  virtual Status begin(Frame& frame) = 0;
  // The run has ended, or begin() failed; the frame is about to serve others. True: the others knew nothing of their parts
  // and nothing was done, so the run may be made anew and tried again.
  virtual bool end(Frame& frame) = 0;
  virtual bool is_current() const = 0;
};

class Plan final : public RefCounted, public Program {
 public:
  static Result<Ref<Plan>> make(const PlanContext& context, Ref<Graph> graph, PlanRequest request);
  ~Plan() override;

  const PlanRequest& request() const { return request_; }
  const Graph& graph() const { return *graph_; }

  // Makes this the home part of what was asked of another graph; before its first run.
  void attend(Ref<Attendant> attendant, Ref<Graph> asked_graph, PlanRequest asked);
  Attendant* attendant() const { return attendant_.get(); }
  // What was asked, in terms of the session's graph.
  const PlanRequest& asked() const { return attendant_ ? asked_ : request_; }
  const Graph& asked_graph() const { return attendant_ ? *asked_graph_ : *graph_; }
  // Handles are bound to objects; after a resource was destroyed the plan must be made again.
  bool is_current() const { return generation_ == context_.store->generation() && (!attendant_ || attendant_->is_current()); }

  // Who wants a frame while all are taken; called once, from the thread that gives one back.
  class FrameWaiter {
   public:
    virtual ~FrameWaiter() = default;
    virtual void granted(Frame& frame) = 0;
  };
  // A frame for a run, or null: then `waiter` (if any) is queued and will be granted one.
  Result<Frame*> lease(FrameWaiter* waiter);
  // Takes a queued waiter back; false when it has been granted a frame.
  bool withdraw(FrameWaiter* waiter);
  // True when the run failed because the plan is out of date, and nothing was done.
  bool give_back(Frame& frame);

  // Memory for a fetched value, recycled when its last holder lets go.
  Result<Tensor> fetch_tensor(size_t fetch) const;

  Result<const Chunk*> next_chunk(Frame& frame, uint32_t segment, uint32_t position) const override;

  // For `dtg graph`, tests and traces.
  size_t instruction_count() const;

 private:
  friend class PlanMaker;
  // A later chunk, and the shapes and values for which it holds.
  struct Variant : RefCounted {
    uint32_t segment = 0;
    uint32_t position = 0;
    std::vector<std::pair<uint32_t, Shape>> shapes;              // slot -> shape
    std::vector<std::pair<uint32_t, std::vector<char>>> values;  // slot -> bytes consulted
    Arena arena;
    std::vector<Tensor> tensors;  // constants it refers to
    std::vector<Ref<RefCounted>> resources;
    Chunk chunk;
  };
  static constexpr int kFrames = 4;        // frames that are taken and given back without a lock
  static constexpr size_t kVariants = 64;  // later chunks kept, least recently used goes first

  Plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request);
  void recycle(Frame& frame);
  bool matches(const Variant& variant, Frame& frame) const;
  void finish_memory(Chunk& chunk, MemoryPlan& memory, Emitter& emitter, uint32_t segment) const;

  const PlanContext context_;
  const Ref<Graph> graph_;
  const PlanRequest request_;
  Ref<Attendant> attendant_;
  Ref<Graph> asked_graph_;
  PlanRequest asked_;
  uint64_t generation_ = 0;
  Arena arena_;
  std::deque<Chunk> chunks_;
  std::vector<Tensor> tensors_;
  std::vector<Ref<RefCounted>> resources_;
  mutable std::unique_ptr<Draft> draft_;  // kept when shapes depend on data
  mutable std::vector<Ref<FetchPool>> fetch_pools_;

  std::atomic<Frame*> free_[kFrames] = {};
  std::atomic<int> waiting_{0};
  std::mutex frames_mutex_;  // making frames, and runs that find none free
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Frame*> spare_;  // free ones beyond kFrames
  std::deque<FrameWaiter*> waiters_;

  mutable std::mutex variants_mutex_;
  // A frame that runs a variant holds it. Most recently used first.
  mutable std::deque<Ref<Variant>> variants_;
};

}  // namespace dtg
