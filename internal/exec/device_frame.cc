// The part of a frame that runs on streams: a segment of an accelerator is handed to its stream chunk by chunk, in the order in which
// segments become ready. The stream executes it later, and tells the end later still: only then do the segments that wait for it begin,
// and an error become the run's. What an instruction hands over to another stream or the host in the midst of a segment is told when it
// has been executed.
//
// Owner: the frame. execute() and completed() are called by the stream's thread, a segment by one at a time.
#include <new>

#include "exec/chunk_cache.h"
#include "exec/frame.h"
#include "exec/step_interrupt.h"

namespace dtg {

using Mutant = Accelerator::Mutant;

// A segment on its way through a stream.
struct Frame::DeviceWork final : StreamWork {
  Frame* frame = nullptr;
  SegmentState* state = nullptr;
  Accelerator* device = nullptr;
  const Instruction* failed = nullptr;  // whose error is told with the end
  Status late;

  bool execute() override {
    const Ref<const RefCounted> owner = Ref<const RefCounted>::share(&frame->around_.owner);
    const Visit visit(*frame);
    return frame->execute(*state);
  }
  void completed() override {
    const Ref<const RefCounted> owner = Ref<const RefCounted>::share(&frame->around_.owner);
    const Visit visit(*frame);
    frame->executed(*state);
  }
};

struct Frame::DeviceFrame {
  struct Block {
    char* memory = nullptr;
    char* settled = nullptr;  // the block that the slots point into
  };
  std::unique_ptr<Block[]> blocks;     // by part
  std::unique_ptr<DeviceWork[]> work;  // by segment; those of the host stay unused
  // For devices that check: the run in which a slot was made last.
  std::unique_ptr<std::atomic<uint32_t>[]> made;
  uint32_t run = 0;
};

Frame::~Frame() { end(); }

void Frame::make_device_frame() {
  device_ = {new DeviceFrame, [](DeviceFrame* device) { delete device; }};
  device_->blocks.reset(new DeviceFrame::Block[program().parts.size()]);
  device_->work.reset(new DeviceWork[program().segments.size()]);
  device_->made.reset(new std::atomic<uint32_t>[program().slot_count + 1]());
  for (uint32_t i = 0; i < program().segments.size(); ++i) {
    if (program().lanes[i] == 0) continue;
    DeviceWork& work = device_->work[i];
    work.frame = this;
    work.state = &states_[i];
    work.device = program().parts[program().lanes[i] - 1].device.get();
    if (work.device->mutant() != Mutant::swaps_streams) continue;
    work.device = program().parts[program().lanes[i] % program().parts.size()].device.get();
  }
}

Status Frame::begin_on_devices() {
  for (size_t k = 0; k < program().parts.size(); ++k) {
    const Program::Part& part = program().parts[k];
    if (part.bytes == 0) continue;
    DeviceFrame::Block& block = device_->blocks[k];
    auto taken = part.device->memory()->take(part.bytes, "the values of a run");
    if (!taken.ok()) {
      const std::string node = part.largest.substr(0, part.largest.rfind(':'));
      return taken.status().with_context("run; the largest value is \"" + part.largest + "\"").at_node(node).in_phase("run");
    }
    block.memory = taken.value();
    if (block.memory == block.settled) continue;
    for (const Place& place : part.places) slots_.bind(place.slot, block.memory + place.offset);
    block.settled = block.memory;
  }
  return {};
}

// Nothing is made yet.
void Frame::rewind_devices() { ++device_->run; }

void Frame::end_on_devices() {
  for (size_t k = 0; k < program().parts.size(); ++k) {
    if (char* const memory = std::exchange(device_->blocks[k].memory, nullptr)) program().parts[k].device->memory()->give_back(memory);
  }
}

char* Frame::base_of(uint32_t segment) const {
  return is_on_device(segment) ? device_->blocks[program().lanes[segment] - 1].memory : memory_;
}

Result<char*> Frame::lease_on_device(const SegmentState& state, const LaterChunk& chunk) {
  if (chunk.device_bytes == 0) return nullptr;
  const Program::Part& part = program().parts[program().lanes[state.index] - 1];
  auto leased = slots_.lease_block(chunk.device_bytes, "values whose shape depends on data", part.device->memory().get());
  return leased.ok() ? std::move(leased) : no_room(chunk, leased.status());
}

void Frame::enqueue(SegmentState& state) {
  DeviceWork& work = device_->work[state.index];
  if (work.device->mutant() == Mutant::skips_wait) {
    for (uint32_t event : program().raised[state.index]) signal(event);
  }
  work.device->enqueue(&work);
}

// True when the segment is through, so that its end will be told.
bool Frame::execute(SegmentState& state) {
  try {
    for (;;) {
      if (!run_chunk_on_device(state)) return false;
      if (step_->aborted() || device_->work[state.index].failed || state.chunk->last) return true;
      if (Status status = enter_next_chunk(state); !status.ok()) {
        step_->fail(status);
        return true;
      }
    }
  } catch (const std::bad_alloc&) {
    step_->fail(resource_exhausted("out of memory"));
  }
  return true;
}

void Frame::executed(SegmentState& state) {
  DeviceWork& work = device_->work[state.index];
  if (const Instruction* const failed = std::exchange(work.failed, nullptr)) fail(*failed, std::exchange(work.late, Status()));
  if (work.device->mutant() == Mutant::frees_early) end_on_devices();
  finish_segment(state);
}

bool Frame::run_chunk_on_device(SegmentState& state) {
  const std::span<const Instruction> instructions = state.chunk->instructions;
  RunContext context(slots_, state.base, *step_, pool());
  const Program::Part& part = program().parts[program().lanes[state.index] - 1];
  context.set_device(part.device->memory().get());
  DeviceWork& work = device_->work[state.index];
  const auto count = static_cast<uint32_t>(instructions.size());
  for (uint32_t pc = state.pc; pc < count;) {
    if (step_->aborted()) return true;
    const Instruction& instruction = instructions[pc];
    context.set_instruction(&instruction);
    state.pc = ++pc;
    if (part.device->is_checking()) work.late = check_operands(instruction, program().lanes[state.index]);
    if (!work.late.ok()) work.failed = &instruction;
    else if (!step_on_device(state, instruction, context)) return false;
    if (work.failed) return true;
    if (part.device->is_checking()) note_results(instruction);
    if (instruction.event >= 0) signal(static_cast<uint32_t>(instruction.event));
    if (instruction.looks_at_clock && step_->deadline().passed(around_.clock)) {
      step_->abort(too_late());
    }
  }
  return true;
}

// False when the instruction waits, and its completion brings the segment back to the stream.
bool Frame::step_on_device(SegmentState& state, const Instruction& instruction, RunContext& context) {
  DeviceWork& work = device_->work[state.index];
  Tracer* const tracer = around_.tracer;
  const int64_t began = tracer && tracer->on() ? tracer->now_ns() : -1;
  if (instruction.sync) {
    work.late = call(instruction, context);
  } else if (instruction.async) {
    if (!instruction.async(context, Completion(this, state.index, &instruction))) return false;
    work.late = context.take_status();
  }
  if (!work.late.ok()) work.failed = &instruction;
  if (began >= 0 && instruction.node)
    tracer->add(TraceKind::span, "op", instruction.node->op->name().c_str(), began, tracer->now_ns() - began, 0);
  return true;
}

// Is each operand made in this run, and in the memory that the plan says?
Status Frame::check_operands(const Instruction& instruction, uint32_t space) const {
  const Program::Part& part = program().parts[space - 1];
  for (uint32_t i = 0; i < instruction.inputs(); ++i) {
    const uint32_t slot = instruction.in[i];
    const Program::Home& home = program().homes[slot];
    if (home.exempt) continue;
    const void* const at = slots_.data(slot);
    if (home.space != 0 && home.space != space) {
      return internal_error("%s was given operand %u, which lies on %s", part.device->name().c_str(), i,
                            program().parts[home.space - 1].device->name().c_str());
    }
    if (part.device->memory()->holds(at) != (home.space != 0)) {
      return internal_error("%s was given operand %u in memory that is not %s", part.device->name().c_str(), i,
                            home.space == 0 ? "the host's" : "its own");
    }
    if (home.made && device_->made[slot].load(std::memory_order_relaxed) != device_->run) {
      return internal_error("%s was given operand %u before it was made: nobody waited for who makes it", part.device->name().c_str(), i);
    }
  }
  return {};
}

void Frame::note_results(const Instruction& instruction) {
  for (uint32_t o = 0; o < instruction.outputs(); ++o) device_->made[instruction.out[o]].store(device_->run, std::memory_order_relaxed);
}

}  // namespace dtg
