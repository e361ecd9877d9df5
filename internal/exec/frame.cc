// Running a program: the segment loop, the counting of what waits for what, and the caller's wait.
#include "exec/frame.h"

#include <exception>
#include <mutex>
#include <new>

#include "base/futex.h"
#include "exec/chunk_cache.h"
#include "exec/step_interrupt.h"

namespace dtg {
namespace {

constexpr int64_t kCallerSpinNs = 50'000;
constexpr int64_t kCallerSpinMoreNs = 10'000;

// Nothing may leave a pool's thread but through the step, so lack of memory is the step's failure.
Status no_memory() { return resource_exhausted("out of memory"); }

// False when the pool has no thread, and could not or must not make one.
bool handed_over(Pool& pool, Pool::Task* task) {
  if (!pool.has_threads()) return false;
  try {
    pool.submit(task);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

Frame::Frame(const Surroundings& around)
    : around_(around),
      own_step_(0, Deadline::never()),
      slots_(around.program.slot_count, around.program.pin_count, around.program.open, around.memory),
      caller_spin_ns_(kCallerSpinNs) {
  for (const auto& constant : program().constants) slots_.bind(constant.slot, constant.data);
  end_task_.frame = this;
  raised_.reset(new std::atomic<bool>[program().events + 1]);
  const size_t count = program().segments.size();
  pending_.reset(new std::atomic<uint32_t>[program().waits.size() + 1]);
  states_.reset(new SegmentState[count + 1]);
  for (size_t i = 0; i < count; ++i) {
    states_[i].frame = this;
    states_[i].index = static_cast<uint32_t>(i);
  }
  if (!program().parts.empty()) make_device_frame();
}

Status Frame::take_memory() {
  if (program().frame_bytes == 0) return {};
  DTG_ASSIGN(memory_, around_.memory.take(program().frame_bytes, "the values of a run"));
  if (memory_ == settled_) return {};
  for (const auto& place : program().places) slots_.bind(place.slot, memory_ + place.offset);
  settled_ = memory_;
  return {};
}

// In each run and round anew: what somebody kept is not the frame's any more.
Status Frame::take_lasting() {
  const std::vector<LastingValue>& values = program().lasting;
  for (size_t k = 0; k < values.size(); ++k) {
    ValueRoom::Piece piece = room_.take(values[k].bytes);
    if (!piece.block) {
      const int64_t next = room_.next_block(values[k].bytes);
      DTG_TRY(around_.memory.check_growth(next, "elements of lists"));
      DTG_ASSIGN(Ref<Buffer> block, around_.memory.take_buffer(next));
      piece = room_.take_from(block, values[k].bytes);
    }
    slots_.bind_lasting(k, values.size(), values[k].slot, std::move(piece));
  }
  return {};
}

Status Frame::begin(uint64_t sequence, Deadline deadline) {
  step_ = &own_step_;
  caller_ = nullptr;
  call_ = nullptr;
  own_step_.restart(sequence, deadline);
  if (!program().duties.groups.empty()) DTG_TRY(begin_duties());
  DTG_TRY(take_memory());
  DTG_TRY(take_lasting());
  if (device_) DTG_TRY(begin_on_devices());
  rewind();
  return {};
}

Status Frame::begin_in(Step& step, const Frame& caller, const Instruction& call) {
  step_ = &step;
  caller_ = &caller;
  call_ = &call;
  DTG_TRY(take_memory());
  DTG_TRY(take_lasting());
  if (device_) DTG_TRY(begin_on_devices());
  rewind();
  return {};
}

Status Frame::again() {
  slots_.release_for_another();
  DTG_TRY(take_lasting());
  // What runs straight counts nothing.
  if (!program().straight) rewind();
  return {};
}

// Everything counts from the beginning.
void Frame::rewind() {
  if (device_) rewind_devices();
  const std::vector<uint32_t>& waits = program().waits;
  for (size_t i = 0; i < waits.size(); ++i) pending_[i].store(waits[i], std::memory_order_relaxed);
  for (size_t i = 0; i < program().events; ++i) raised_[i].store(false, std::memory_order_relaxed);
  unfinished_.store(static_cast<uint32_t>(program().segments.size()), std::memory_order_relaxed);
  for (const Feed& feed : program().feeds) slots_.set_shape(feed.slot, feed.shape);
  for (const auto& typed : program().shapes) slots_.set_shape(typed.slot, typed.shape);
}

Status Frame::run(Poller* poller) {
  const size_t count = program().segments.size();
  if (count == 0) return {};
  if (program().straight && !is_traced()) return run_straight();
  watcher_ = nullptr;
  executor_ = nullptr;
  poller_ = poller || !debts_ ? poller : debts_->poller();
  caller_attached_ = true;
  if (count == 1 && !device_) {
    run_segment(first_state(0));
  } else {
    launch(Here::last);
  }
  while (unfinished_.load(std::memory_order_acquire) != 0) {
    if (SegmentState* state = take_ready()) run_segment(*state);
    else wait_for_work();
  }
  caller_attached_ = false;
  return step_->aborted() ? step_->cause() : Status();
}

void Frame::start(Watcher* watcher, Executor* executor) {
  watcher_ = watcher;
  executor_ = executor;
  caller_attached_ = false;
  if (program().segments.empty()) return watcher->finished(*this);
  launch(Here::nothing);
}

void Frame::run_here(Watcher* watcher, Executor* executor) {
  watcher_ = watcher;
  executor_ = executor;
  caller_attached_ = false;
  if (program().segments.empty()) return watcher->finished(*this);
  if (program().segments.size() == 1 && !device_) return run_segment(first_state(0));
  launch(Here::last);
}

void Frame::receive_here(Watcher* watcher, Executor* executor) {
  watcher_ = watcher;
  executor_ = executor;
  caller_attached_ = false;
  if (program().segments.empty()) return watcher->finished(*this);
  launch(Here::receiving);
}

void Frame::submit(Pool::Task* task) {
  if (executor_) executor_->submit(task);
  else pool().submit(task);
}

Status Frame::run_straight() {
  if (program().segments.empty() || step_->aborted()) return step_->cause();
  RunContext context(slots_, memory_, *step_, pool());
  // Whether the step is over is asked where something took time, not before each small kernel.
  for (const Instruction& instruction : program().segments[0].instructions) {
    context.set_instruction(&instruction);
    if (instruction.goes_on) [[likely]] {
      const Status status = instruction.sync(context);
      if (status.ok()) [[likely]]
        continue;
      fail(instruction, status);
    } else if (const Status status = call(instruction, context); !status.ok()) {
      fail(instruction, status);
    } else if (instruction.looks_at_clock && step_->deadline().passed(around_.clock)) {
      step_->abort(too_late());
    }
    if (step_->aborted()) break;
  }
  return step_->aborted() ? step_->cause() : Status();
}

// What was left half made nobody reads: the step is over, and each segment looks at that before it goes on.
Status Frame::call_cuttable(const Instruction& instruction, RunContext& context) {
  StepInterrupt interrupt(*step_, around_.clock);
  const Interrupt::Scope scope(&interrupt);
  try {
    return instruction.sync(context);
  } catch (const Interrupted&) {
    return step_->cause();
  }
}

// The segments that wait for nothing. The run may be over when the last of them was handed over.
void Frame::launch(Here here) {
  const std::vector<uint32_t>& waits = program().waits;
  SegmentState* mine = nullptr;
  for (uint32_t i = 0; i < program().segments.size(); ++i) {
    if (waits[i] != 0) continue;
    if (is_on_device(i)) {
      enqueue(first_state(i));
      continue;
    }
    if (here == Here::receiving && mine && program().receives_first[mine->index]) run_segment(*mine);
    else if (mine && !caller_attached_) submit(mine);
    else if (mine && !handed_over(pool(), mine)) make_ready(*mine);
    mine = &first_state(i);
  }
  if (!mine) return;
  if (here == Here::last || (here == Here::receiving && program().receives_first[mine->index])) run_segment(*mine);
  else submit(mine);
}

void Frame::run_segment(SegmentState& state) {
  try {
    for (;;) {
      if (!run_chunk(state)) return;  // suspended; its completion goes on
      if (step_->aborted() || state.chunk->last) break;
      if (Status status = enter_next_chunk(state); !status.ok()) {
        step_->fail(status);
        break;
      }
    }
  } catch (const std::bad_alloc&) {
    step_->fail(no_memory());
  }
  finish_segment(state);
}

// True when the chunk is through (or the step is aborted); false when the segment must wait, and somebody else will go on with it.
bool Frame::run_chunk(SegmentState& state) {
  const Chunk& chunk = *state.chunk;
  RunContext context(slots_, state.base, *step_, pool());
  const bool traced = is_traced();
  while (state.stop != chunk.stops_end) {
    if (!run_until(state, context, program().stops[state.stop].at, traced)) return false;
    if (step_->aborted()) return true;
    if (!pass_stop(state)) return false;
  }
  return run_until(state, context, static_cast<uint32_t>(chunk.instructions.size()), traced);
}

// The same for what comes before `end`.
bool Frame::run_until(SegmentState& state, RunContext& context, uint32_t end, bool traced) {
  const Instruction* const instructions = state.chunk->instructions.data();
  // The segment's own counter matters only where somebody else may go on with it.
  uint32_t pc = state.pc;
  while (pc < end) {
    if (step_->aborted()) return true;
    const Instruction& instruction = instructions[pc++];
    context.set_instruction(&instruction);
    if (instruction.goes_on && !traced) [[likely]] {
      if (Status status = instruction.sync(context); !status.ok()) fail(instruction, status);
      continue;
    }
    state.pc = pc;
    if (!run_other(state, instruction, context, traced)) return false;
  }
  state.pc = end;
  return true;
}

// An instruction that is more than a call, or that somebody wants to see. False as above.
bool Frame::run_other(SegmentState& state, const Instruction& instruction, RunContext& context, bool traced) {
  if (instruction.async) {
    // The other thread that completes it may go on with this segment before the call returns.
    if (!run_async(state, instruction, context)) return false;
  } else {
    Status status;
    if (instruction.sync) status = traced ? call_traced(instruction, context) : call(instruction, context);
    if (!status.ok()) fail(instruction, status);
    else if (instruction.event >= 0) hand_over(static_cast<uint32_t>(instruction.event));
  }
  if (instruction.looks_at_clock && step_->deadline().passed(around_.clock)) step_->abort(too_late());
  return true;
}

Status Frame::call_traced(const Instruction& instruction, RunContext& context) {
  Tracer& tracer = *around_.tracer;
  const int64_t began = tracer.now_ns();
  Status status = call(instruction, context);
  // The op's name lives as long as the runtime, and so as long as the tracer.
  if (status.ok() && instruction.node)
    tracer.add(TraceKind::span, "op", instruction.node->op->name().c_str(), began, tracer.now_ns() - began, 0);
  return status;
}

// False when something has not happened yet that the segment must wait for; whoever brings the last of it goes on behind the stop.
bool Frame::pass_stop(SegmentState& state) {
  std::atomic<uint32_t>& pending = pending_[program().segments.size() + state.stop++];
  // Nothing is missing but the segment itself.
  if (pending.load(std::memory_order_acquire) == 1) return true;
  return pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// Where it may be cut it looks as long as it is on this thread; what waits and goes on elsewhere comes to its end. It catches what it
// leaves by itself, since it has to give back what it holds.
bool Frame::start_async(const Instruction& instruction, RunContext& context, Completion done) {
  if (!instruction.may_be_cut) return instruction.async(context, std::move(done));
  StepInterrupt interrupt(*step_, around_.clock);
  const Interrupt::Scope scope(&interrupt);
  return instruction.async(context, std::move(done));
}

// False when the segment must stop here and be continued by the completion.
bool Frame::run_async(SegmentState& state, const Instruction& instruction, RunContext& context) {
  const bool in_place = instruction.event < 0;
  // A blocking instruction is part of the run until it has ended, whether or not anybody waits for it.
  if (!in_place) unfinished_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (!start_async(instruction, context, Completion(this, state.index, &instruction))) return !in_place;
  } catch (const std::bad_alloc&) {
    // The completion went with the stack, or is with the resource: either way it ends the instruction.
    step_->fail(no_memory());
    return !in_place;
  }
  Status status = context.take_status();
  if (in_place) {
    if (!status.ok()) fail(instruction, status);
    return true;
  }
  completed(state.index, instruction, std::move(status));
  return true;
}

Status Frame::enter_next_chunk(SegmentState& state) {
  DTG_ASSIGN(const LaterChunk* chunk, around_.chunks.next_chunk(slots_, state.chunk->planned, state.chunk->end));
  char* host = nullptr;
  if (chunk->bytes > 0) {
    auto leased = slots_.lease_block(chunk->bytes, "values whose shape depends on data");
    if (!leased.ok()) return no_room(*chunk, leased.status());
    host = leased.take();
  }
  char* base = host;
  if (is_on_device(state.index)) {
    DTG_ASSIGN(base, lease_on_device(state, *chunk));
  }
  state.chunk = &chunk->chunk;
  state.stop = chunk->chunk.stop;
  state.pc = 0;
  state.base = base;
  for (const auto& place : chunk->places) slots_.bind(place.slot, host + place.offset);
  for (const auto& place : chunk->device_places) slots_.bind(place.slot, base + place.offset);
  for (const auto& typed : chunk->gives) slots_.set_shape(typed.slot, typed.shape);
  return {};
}

void Frame::fail(const Instruction& instruction, const Status& status) {
  if (!instruction.node) return step_->fail(status.in_phase("run"));
  try {
    step_->fail(placed(*instruction.node, status));
  } catch (const std::bad_alloc&) {
    step_->fail(status);
  }
}

Status Frame::placed(const Node& node, const Status& status) const {
  std::string where = "run \"" + std::string(node.name) + "\"";
  if (!node.location.empty()) where += " (made at " + std::string(node.location) + ")";
  // From the inside out: whose body it stands in.
  for (const Frame* frame = this; frame->caller_; frame = frame->caller_) {
    where += " in function \"" + frame->program().name + "\", called by \"" + std::string(frame->call_->node->name) + "\"";
  }
  return status.with_context(where).at_node(node.name).in_phase("run");
}

Status Frame::no_room(const LaterChunk& chunk, const Status& status) const {
  for (const Instruction& instruction : chunk.chunk.instructions) {
    if (instruction.node) return placed(*instruction.node, status);
  }
  return status.in_phase("run");
}

void Frame::finish_segment(SegmentState& state) {
  // What an aborted segment did not come to must not keep others waiting; they see the abort themselves.
  if (step_->aborted()) {
    for (uint32_t event : program().raised[state.index]) signal(event);
  }
  for (uint32_t successor : program().after_segment[state.index]) release(successor);
  finish_one(is_on_device(state.index));
}

void Frame::finish_one(bool from_outside) {
  // As soon as the count is zero the frame may serve another run; waking a caller that does not sleep is
  // harmless, and the memory stays because whoever comes in from outside holds the owner.
  const bool attached = caller_attached_;
  Watcher* const watcher = watcher_;
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (attached) return wake_caller();
  if (!watcher) return;
  if (from_outside) submit(&end_task_);
  else watcher->finished(*this);
}

// A segment may begin, or go on behind a stop, when it is the last that this one waits for.
void Frame::release(uint32_t number) {
  if (pending_[number].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto segments = static_cast<uint32_t>(program().segments.size());
  make_ready(number < segments ? first_state(number) : states_[program().stops[number - segments].segment]);
}

// A segment at its beginning.
Frame::SegmentState& Frame::first_state(uint32_t segment) {
  SegmentState& state = states_[segment];
  state.chunk = &program().segments[segment];
  state.base = device_ ? base_of(segment) : memory_;
  state.pc = 0;
  state.stop = state.chunk->stop;
  return state;
}

void Frame::make_ready(SegmentState& state) {
  if (is_on_device(state.index)) return enqueue(state);
  if (!caller_attached_) return submit(&state);
  SegmentState* head = ready_.load(std::memory_order_relaxed);
  do {
    state.next_ready = head;
  } while (!ready_.compare_exchange_weak(head, &state, std::memory_order_acq_rel));
  wake_caller();
}

// Only the caller takes; the rest of the list goes to the pool, so that ready segments run side by side.
Frame::SegmentState* Frame::take_ready() {
  SegmentState* const all = ready_.exchange(nullptr, std::memory_order_acq_rel);
  if (!all) return nullptr;
  for (SegmentState* state = all->next_ready; state;) {
    SegmentState* const next = state->next_ready;
    if (!handed_over(pool(), state)) make_ready(*state);
    state = next;
  }
  return all;
}

void Frame::wait_for_work() {
  const auto something = [this] {
    return unfinished_.load(std::memory_order_acquire) == 0 || ready_.load(std::memory_order_acquire) != nullptr;
  };
  if (something() || (poller_ && poller_->poll_until(something))) return;
  const int64_t began = around_.clock.monotonic_ns();
  while (!something()) {
    for (int i = 0; i < 64 && !something(); ++i) spin_pause();
    if (something()) break;
    if (!step_->aborted() && step_->deadline().passed(around_.clock)) step_->abort(too_late());
    if (around_.clock.monotonic_ns() - began < caller_spin_ns_) continue;
    caller_word_.store(1);
    if (!something()) {
      // Waking at least every second bounds what a lost wake-up could cost.
      futex_wait(caller_word_, 1U, std::min<int64_t>(step_->deadline().left_ns(around_.clock), 999'000'000) + 1'000'000);
    }
    caller_word_.store(0);
  }
  // Polling pays where waits are short. Where they are long, what is waited for may need just this CPU.
  const bool brief = around_.clock.monotonic_ns() - began < kCallerSpinNs;
  caller_spin_ns_ = brief ? std::min(caller_spin_ns_ + kCallerSpinMoreNs, kCallerSpinNs) : caller_spin_ns_ / 2;
}

void Frame::wake_caller() {
  if (caller_word_.exchange(0) == 1) futex_wake_one(caller_word_);
}

void Frame::completed(uint32_t segment, const Instruction& instruction, Status status) {
  // What is released below may end the run on another thread before this call returns.
  const Ref<const RefCounted> owner = Ref<const RefCounted>::share(&around_.owner);
  const Visit visit(*this);
  if (!status.ok()) fail(instruction, status);
  if (instruction.event < 0) return make_ready(states_[segment]);
  signal(static_cast<uint32_t>(instruction.event));
  finish_one(true);
}

void Frame::signal(uint32_t event) {
  if (!raised_[event].exchange(true, std::memory_order_acq_rel)) tell(event);
}

// An event that nobody but the segment under way may signal.
void Frame::hand_over(uint32_t event) {
  raised_[event].store(true, std::memory_order_relaxed);
  tell(event);
}

void Frame::tell(uint32_t event) {
  for (uint32_t successor : program().after_event[event]) release(successor);
}

RunContext Frame::context(const Instruction& instruction) {
  RunContext context(slots_, nullptr, *step_, pool());
  context.set_instruction(&instruction);
  return context;
}

Status Frame::begin_duties() {
  debts_ = make_ref<CollectiveDebts>();
  DTG_TRY(debts_->take_on(program().duties));
  own_step_.set_debts(debts_.get());
  debts_->listen(own_step_);
  return {};
}

// The others of a group wait for calls that will not come.
void Frame::settle_duties() {
  const Ref<CollectiveDebts> debts = std::move(debts_);
  const Status cause = own_step_.cause();
  own_step_.set_debts(nullptr);
  debts->settle(own_step_, cause.ok() ? cancelled("it was not begun") : cause);
}

void Frame::end() {
  if (debts_) settle_duties();
  slots_.release();
  room_ = {};
  if (device_) end_on_devices();
  if (char* const memory = std::exchange(memory_, nullptr)) around_.memory.give_back(memory);
}

RunContext Completion::context() const { return frame_->context(*instruction_); }
Step& Completion::step() const { return frame_->step(); }

void Completion::done(Status status) {
  if (Frame* const frame = std::exchange(frame_, nullptr)) frame->completed(segment_, *instruction_, std::move(status));
}

void Completion::lost() {
  // The only exception inside is the lack of memory; it took the token with it.
  done(std::uncaught_exceptions() > 0 ? no_memory() : internal_error("an asynchronous operation was dropped without an answer"));
}

}  // namespace dtg
