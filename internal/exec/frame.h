// Frame: the memory and the moving parts of one run of a program: slot table, arena, pending counts, the
// step. A plan keeps a few frames and leases one to each run, so that two runs of one plan are at the same
// time right. A warm run of a program without blocking instructions allocates nothing and takes no lock.
//
// Owner: the plan. A frame belongs to one run at a time; its segments may run on several threads, each
// segment on one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "exec/completion.h"
#include "exec/program.h"
#include "exec/step.h"
#include "exec/variable.h"
#include "monitor/trace.h"

namespace dtg {

class Frame final : public DynamicSlots {
 public:
  // Told when an asynchronous run has ended; called once, from any thread.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void finished(Frame& frame) = 0;
  };

  // `owner` keeps program and frame alive; threads that come in from outside hold it while they are inside.
  static Result<std::unique_ptr<Frame>> create(const Program& program, const RefCounted& owner, Pool& pool, const Clock& clock,
                                               Tracer* tracer);
  ~Frame() override;

  // A run: begin, bind feeds and fetches, then run() or start(), then read results, then end().
  void begin(uint64_t sequence, Deadline deadline);
  void bind(uint32_t slot, void* data) { slots_[slot].data = data; }
  // On this thread until everything has finished, helped by the pool.
  Status run();
  // On the pool; `watcher` hears of the end.
  void start(Watcher* watcher);
  Status outcome() const { return step_.cause(); }
  void* data(uint32_t slot) const { return slots_[slot].data; }
  // Keeps an object alive until end().
  void keep(Ref<RefCounted> holder);
  // Drops pins, leases and holders of the run.
  void end();

  Step& step() { return step_; }
  Pool& pool() const { return pool_; }
  const Program& program() const { return program_; }

  // DynamicSlots.
  Result<void*> lease(uint32_t slot, DType dtype, const Shape& shape) override;
  const Shape& shape(uint32_t slot) const override;
  void hold(uint32_t slot, void* data, const Shape& shape, Ref<RefCounted> holder) override;

  // Pins of variables, by number; an instruction pins, a later one or end() unpins.
  void pin(uint32_t number, Variable* variable, Variable::Version* version) { pins_[number] = {variable, version}; }
  void unpin(uint32_t number);

  // The end of an instruction, from its Completion.
  void completed(uint32_t segment, const Instruction& instruction, Status status);
  RunContext context(const Instruction& instruction);
  // A hand-over between devices has happened.
  void signal(uint32_t event);

 private:
  struct SegmentState : Pool::Task {
    Frame* frame = nullptr;
    SegmentState* next_ready = nullptr;
    const Chunk* chunk = nullptr;
    char* base = nullptr;  // memory of the chunk
    uint32_t index = 0;
    uint32_t pc = 0;
    std::atomic<uint32_t> pending{0};
    void run() override {
      const Ref<const RefCounted> inside = Ref<const RefCounted>::share(&frame->owner_);
      frame->run_segment(*this);
    }
  };
  // Tells the watcher from the pool, for ends that come from inside somebody's locks.
  struct EndTask : Pool::Task {
    Frame* frame = nullptr;
    void run() override { frame->watcher_->finished(*frame); }
  };
  struct Pin {
    Variable* variable = nullptr;
    Variable::Version* version = nullptr;
  };
  struct Lease {
    void* block;
    int64_t bytes;
  };

  Frame(const Program& program, const RefCounted& owner, Pool& pool, const Clock& clock, Tracer* tracer);
  Status allocate();
  void launch();
  void run_segment(SegmentState& state);
  bool run_chunk(SegmentState& state);
  bool run_async(SegmentState& state, const Instruction& instruction, RunContext& context);
  Status enter_next_chunk(SegmentState& state);
  void fail(const Instruction& instruction, const Status& status);
  void remember(void* block, int64_t bytes);
  void finish_segment(SegmentState& state);
  void finish_one(bool from_completion);
  void release(uint32_t segment);
  void make_ready(SegmentState& state);
  SegmentState* take_ready();
  void wait_for_work();
  void wake_caller();

  const Program& program_;
  const RefCounted& owner_;
  Pool& pool_;
  const Clock& clock_;
  Tracer* const tracer_;  // may be null
  Step step_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Shape[]> shapes_;  // only for programs with dynamic shapes
  char* arena_ = nullptr;
  std::unique_ptr<SegmentState[]> states_;
  std::unique_ptr<Pin[]> pins_;
  std::unique_ptr<std::atomic<bool>[]> raised_;  // events that were signalled in this run
  // What a run has borrowed, under a spin word because segments may lease at the same time.
  std::atomic_flag leases_word_ = ATOMIC_FLAG_INIT;
  std::vector<Lease> leases_;
  std::vector<Ref<RefCounted>> holders_;
  // The run.
  Watcher* watcher_ = nullptr;
  std::atomic<uint32_t> unfinished_{0};  // segments, and blocking instructions that were started
  EndTask end_task_;
  bool caller_attached_ = false;
  std::atomic<SegmentState*> ready_{nullptr};
  std::atomic<uint32_t> caller_word_{0};  // futex: 1 while the caller sleeps
  // How long the caller polls before it sleeps; it learns from its waits, and is the caller's alone.
  int64_t caller_spin_ns_;
};

}  // namespace dtg
