// Frame: the memory and the moving parts of one run of a program: slots, a block of memory, pending counts, the step. A FramePool
// keeps a few frames and leases one to each run, so that two runs of one program are at the same time right. A warm run of a program
// without blocking instructions allocates nothing and takes no lock.
//
// Owner: the pool of the program. A frame belongs to one run at a time; its segments may run on several threads, each
// segment on one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/poller.h"
#include "exec/collective_debts.h"
#include "exec/completion.h"
#include "exec/memory_pool.h"
#include "exec/program.h"
#include "exec/step.h"
#include "monitor/trace.h"

namespace dtg {

class Frame final {
 public:
  // Told when an asynchronous run has ended; called once, from any thread.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void finished(Frame& frame) = 0;
  };

  // Where the segments of a run go that nobody waits for on a thread of his own.
  class Executor {
   public:
    virtual ~Executor() = default;
    // As Pool::submit().
    virtual void submit(Pool::Task* task) = 0;
  };

  // What a frame works with. `owner` keeps all of it and the frame alive; threads that come in from outside hold it while they are
  // inside.
  struct Surroundings {
    const Program& program;
    const RefCounted& owner;
    ChunkSource& chunks;
    MemoryPool& memory;
    Pool& pool;
    const Clock& clock;
    Tracer* tracer;  // may be null
  };
  explicit Frame(const Surroundings& around);
  ~Frame();

  // A run: begin (which takes the memory), bind feeds and fetches, then run() or start(), then read results, then end().
  Status begin(uint64_t sequence, Deadline deadline);
  void bind(uint32_t slot, void* data) { slots_.bind(slot, data); }
  // A call of a function, as a part of the step of the frame that calls: it fails, ends and is aborted with that.
  Status begin_in(Step& step, const Frame& caller, const Instruction& call);
  // The same once more, in the memory that it has: what it borrowed in the last round goes back.
  Status again();
  // On this thread until everything has finished, helped by the pool. `poller`: what this thread may do while it waits; null: nothing.
  Status run(Poller* poller = nullptr);
  // On the pool, or where `executor` says, which stays until the end; `watcher` hears of that.
  void start(Watcher* watcher, Executor* executor = nullptr);
  // As start(), but what can run at once does so on this thread; `watcher` may hear of the end before this returns.
  void run_here(Watcher* watcher, Executor* executor = nullptr);
  // As start(), but it has begun to receive when this returns, where nothing stands before that. Nothing may have come yet.
  void receive_here(Watcher* watcher, Executor* executor = nullptr);
  // All of it now, on this thread: of a program that is straight.
  Status run_straight();
  Status outcome() const { return step_->cause(); }
  void* data(uint32_t slot) const { return slots_.data(slot); }
  const Shape& shape(uint32_t slot) const { return slots_.shape(slot); }
  Slots& slots() { return slots_; }
  // Gives back what the run borrowed, its memory too.
  void end();

  // Is a thread of the pool, or one that brought an end from outside, still on its way out? Asked when the run is over.
  bool visited() const { return visitors_.load(std::memory_order_acquire) != 0; }

  Step& step() { return *step_; }
  MemoryPool& memory() const { return around_.memory; }
  const Clock& clock() const { return around_.clock; }
  Pool& pool() const { return around_.pool; }
  const Program& program() const { return around_.program; }

  // The end of an instruction, from its Completion.
  void completed(uint32_t segment, const Instruction& instruction, Status status);
  RunContext context(const Instruction& instruction);

 private:
  friend class FramePool;
  struct DeviceWork;

  // A thread may still be inside when the run that it ended is over.
  class Visit {
   public:
    explicit Visit(Frame& frame) : frame_(frame) { frame_.visitors_.fetch_add(1, std::memory_order_relaxed); }
    ~Visit() { frame_.visitors_.fetch_sub(1, std::memory_order_release); }

   private:
    Frame& frame_;
  };
  struct SegmentState : Pool::Task {
    Frame* frame = nullptr;
    SegmentState* next_ready = nullptr;
    const Chunk* chunk = nullptr;
    char* base = nullptr;  // memory of the chunk
    uint32_t index = 0;
    uint32_t pc = 0;
    uint32_t stop = 0;  // the next one, in Program::stops
    void run() override {
      const Ref<const RefCounted> owner = Ref<const RefCounted>::share(&frame->around_.owner);
      const Visit visit(*frame);
      frame->run_segment(*this);
    }
  };
  // Tells the watcher from the pool, for ends that come from inside somebody's locks.
  struct EndTask : Pool::Task {
    Frame* frame = nullptr;
    void run() override { frame->watcher_->finished(*frame); }
  };
  // What runs on streams, where the program uses any (exec/device_frame.cc).
  struct DeviceFrame;
  bool is_on_device(uint32_t segment) const { return device_ && program().lanes[segment] != 0; }
  void make_device_frame();
  Status begin_on_devices();
  void rewind_devices();
  void end_on_devices();
  char* base_of(uint32_t segment) const;
  Result<char*> lease_on_device(const SegmentState& state, const LaterChunk& chunk);
  void enqueue(SegmentState& state);
  bool execute(SegmentState& state);
  bool run_chunk_on_device(SegmentState& state);
  bool step_on_device(SegmentState& state, const Instruction& instruction, RunContext& context);
  Status check_operands(const Instruction& instruction, uint32_t space) const;
  void note_results(const Instruction& instruction);
  void executed(SegmentState& state);

  Status take_memory();
  Status take_lasting();
  void rewind();
  void signal(uint32_t event);
  void hand_over(uint32_t event);
  void tell(uint32_t event);
  void submit(Pool::Task* task);
  // What the thread that launches takes itself.
  enum class Here : uint8_t { nothing, receiving, last };
  void launch(Here here);
  void run_segment(SegmentState& state);
  bool run_chunk(SegmentState& state);
  bool run_until(SegmentState& state, RunContext& context, uint32_t end, bool traced);
  bool run_other(SegmentState& state, const Instruction& instruction, RunContext& context, bool traced);
  Status call_traced(const Instruction& instruction, RunContext& context);
  bool pass_stop(SegmentState& state);
  Status call(const Instruction& instruction, RunContext& context) {
    return instruction.may_be_cut ? call_cuttable(instruction, context) : instruction.sync(context);
  }
  Status call_cuttable(const Instruction& instruction, RunContext& context);
  bool start_async(const Instruction& instruction, RunContext& context, Completion done);
  bool run_async(SegmentState& state, const Instruction& instruction, RunContext& context);
  Status enter_next_chunk(SegmentState& state);
  void fail(const Instruction& instruction, const Status& status);
  // A failure with its node, where that was made, and the functions and calls around it.
  Status placed(const Node& node, const Status& status) const;
  // No memory for what a chunk is about to do.
  Status no_room(const LaterChunk& chunk, const Status& status) const;
  Status begin_duties();
  void settle_duties();
  bool is_traced() const { return around_.tracer && around_.tracer->on(); }
  void finish_segment(SegmentState& state);
  void finish_one(bool from_outside);
  void release(uint32_t number);
  SegmentState& first_state(uint32_t segment);
  void make_ready(SegmentState& state);
  SegmentState* take_ready();
  void wait_for_work();
  void wake_caller();

  const Surroundings around_;
  Step own_step_;
  Ref<CollectiveDebts> debts_;     // of this run; null: it owes nothing
  Step* step_ = &own_step_;        // or that of the frame that calls
  const Frame* caller_ = nullptr;  // of a function's body: the frame with the instruction that calls it
  const Instruction* call_ = nullptr;
  Slots slots_;
  char* memory_ = nullptr;   // of this run
  ValueRoom room_;           // for its lasting values, in this run
  char* settled_ = nullptr;  // the block that the slots point into; the next run mostly gets the same one
  std::unique_ptr<SegmentState[]> states_;
  // By segment, then by stop. Apart from the states, because a segment that runs long before others counts down a great many of them.
  std::unique_ptr<std::atomic<uint32_t>[]> pending_;
  std::unique_ptr<std::atomic<bool>[]> raised_;  // events that were signalled in this run
  // The run.
  Watcher* watcher_ = nullptr;
  Executor* executor_ = nullptr;         // null: the pool
  std::atomic<uint32_t> unfinished_{0};  // segments, and blocking instructions that were started
  EndTask end_task_;
  std::atomic<int> visitors_{0};
  bool caller_attached_ = false;
  std::atomic<SegmentState*> ready_{nullptr};
  std::atomic<uint32_t> caller_word_{0};  // futex: 1 while the caller sleeps
  // How long the caller polls before it sleeps; it learns from its waits, and is the caller's alone.
  int64_t caller_spin_ns_;
  Poller* poller_ = nullptr;                                                       // in this run
  std::unique_ptr<DeviceFrame, void (*)(DeviceFrame*)> device_{nullptr, nullptr};  // null: all is the host's
  // The pool's: where it keeps this frame, and the next one of its list.
  size_t place_ = 0;
  Frame* next_spare_ = nullptr;
};

}  // namespace dtg
