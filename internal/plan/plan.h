// Plan: a run of a graph, compiled. One per (fetches, targets, feeds with types and shapes); immutable in what it does, so that any number
// of runs may use it at the same time. The program is data; its frames, and the chunks prepared while runs are under way, are kept
// beside it (exec/frame_pool.h, exec/chunk_cache.h).
//
// Owner: the session's cache, prepared callables and the runs under way, by count. Any thread.
#pragma once

#include <memory>
#include <vector>

#include "base/ref.h"
#include "exec/body.h"
#include "exec/chunk_cache.h"
#include "exec/frame_pool.h"
#include "exec/resource.h"
#include "plan/passes.h"

namespace dtg {

class Emitter;
class MemoryPlan;

class Plan final : public Body, private ChunkSource {
 public:
  // Sees the plan grow: the Ir after each pass, and last the program beside the Ir it was made from. Null where nobody looks.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void passed(const Pass& pass, const Ir& ir) = 0;
    virtual void made(const Ir& ir, const Program& program) = 0;
  };
  static Result<Ref<Plan>> make(const PlanContext& context, Ref<Graph> graph, PlanRequest request, Observer* observer = nullptr);
  ~Plan() override;

  const PlanRequest& request() const { return request_; }
  const Graph& graph() const { return *graph_; }
  const Program& program() const override { return program_; }
  const std::vector<Feed>& feeds() const { return program_.feeds; }
  const std::vector<Fetch>& fetches() const { return program_.fetches; }

  // Handles are bound to objects; after a resource was destroyed the plan must be made again.
  // So it must where a group was joined since, whose calls would otherwise stay in this process.
  bool is_current() const {
    const CollectiveDuties& duties = program_.duties;
    return generation_ == context_.store->generation() && (!duties.where || duties.joins == duties.where->joins());
  }

  using FrameWaiter = FramePool::Waiter;
  // A frame for a run, or null: then `waiter` (if any) is queued and will be granted one.
  Result<Frame*> lease(FrameWaiter* waiter) { return frames_->lease(waiter); }
  // Takes a queued waiter back; false when it has been granted a frame.
  bool withdraw(FrameWaiter* waiter) { return frames_->withdraw(waiter); }
  void give_back(Frame& frame) override { frames_->give_back(frame); }
  Result<Frame*> lease_frame() override { return frames_->lease(nullptr); }
  Pool& pool() const { return *context_.pool; }

  // Is a run over in some ten microseconds? What is small (Program::small) is taken to be, until runs say otherwise: took() hears of those
  // for which that was the reason to be made by whoever asked. One that was slow may have lost its CPU; of some that were, the next many
  // are not made so, and then it is tried again.
  bool is_brief();
  // Program::light.
  bool is_light() const { return program_.light; }
  void took(int64_t ns);

  // Memory for a fetched value, recycled when its last holder lets go.
  Result<Tensor> fetch_tensor(size_t fetch) const;
  // What the plan itself takes, for whoever keeps many; values of runs are not part of it.
  int64_t bytes() const;

 private:
  friend class PlanMaker;
  Plan(const PlanContext& context, Ref<Graph> graph, PlanRequest request);
  Result<const LaterChunk*> next_chunk(Slots& slots, uint32_t segment, uint32_t position) override;
  Result<Ref<LaterChunk>> make_chunk(const Slots& slots, uint32_t segment, uint32_t position) const;
  template <class Fn>
  void for_each_item(const LaterChunk& later, const Emitter& emitter, Fn&& fn) const;
  void note_key(LaterChunk& later, const std::vector<uint32_t>& nodes, const Slots& slots) const;
  void keep_outside_values(const LaterChunk& later, const Emitter& emitter, MemoryPlan& memory) const;

  PlanContext context_;
  const Ref<Graph> graph_;
  PlanRequest request_;
  uint64_t generation_ = 0;
  const Ref<MemoryPool> memory_;
  Program program_;
  std::unique_ptr<const Ir> ir_;      // kept when shapes depend on data
  std::vector<uint32_t> read_until_;  // then, by slot: the last node of its segment that reads it; kNone: somebody elsewhere does
  ChunkCache later_;
  std::unique_ptr<FramePool> frames_;
  static constexpr int64_t kBriefNs = 30'000;
  static constexpr int kSlowStep = 4, kSlowMany = 12, kSlowFor = 76;
  std::atomic<int> slow_{0};  // a hint: what two threads write at once may be lost
};

}  // namespace dtg
