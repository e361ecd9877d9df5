// Emitting one node: infer what is open, prepare the kernel, find memory for its results, and write the
// instruction with the small ones around it (unpin before a write, signal after a hand-over).
#include "plan/emit.h"

#include <algorithm>

#include "plan/pinned_read.h"

namespace dtg {
namespace {

constexpr int64_t kConsultBytes = 4096;

struct UnpinArgs {
  std::span<uint32_t> pins;
};
Status run_unpin(RunContext& c) {
  for (uint32_t pin : c.args<UnpinArgs>().pins) static_cast<Frame&>(c.dynamic()).unpin(pin);
  return {};
}

struct SignalArgs {
  uint32_t event = 0;
};
Status run_signal(RunContext& c) {
  static_cast<Frame&>(c.dynamic()).signal(c.args<SignalArgs>().event);
  return {};
}

// One slot takes the address of another; its shape was set when the chunk was entered.
Status run_alias(RunContext& c) {
  static_cast<Frame&>(c.dynamic()).bind(c.instruction().out[0], const_cast<char*>(c.in<char>(0)));
  return {};
}

struct BindArgs {
  void* data = nullptr;
};
Status run_bind(RunContext& c) {
  static_cast<Frame&>(c.dynamic()).bind(c.instruction().out[0], c.args<BindArgs>().data);
  return {};
}

}  // namespace

Tensor Emitter::constant(void* context, int input) {
  const auto* lookup = static_cast<const Lookup*>(context);
  const uint32_t value = lookup->node->inputs[static_cast<size_t>(input)];
  const DraftValue& known = lookup->emitter->draft_.values[value];
  return known.known.valid() ? known.known : lookup->emitter->runtime_value(value);
}

// The bytes of a small integer value that has been computed already, when there is a frame to look into.
Tensor Emitter::runtime_value(uint32_t value) {
  const ValueInfo of = info(value);
  if (!kIndex.has(of.dtype) || !of.shape.complete()) {
    wanted_unknown_ |= kIndex.has(of.dtype);
    return {};
  }
  if (!frame_ || (value < made_here_.size() && made_here_[value])) {
    wanted_unknown_ = true;
    return {};
  }
  auto shape = of.shape.to_shape();
  if (!shape.ok() || shape.value().count() * dtype_size(of.dtype) > kConsultBytes) return {};
  auto copy = Tensor::allocate(of.dtype, shape.value());
  if (!copy.ok()) return {};
  const void* const data = frame_->data(slot(value));
  if (copy.value().bytes() > 0) std::memcpy(copy.value().data(), data, static_cast<size_t>(copy.value().bytes()));
  const auto* bytes = static_cast<const char*>(copy.value().data());
  consulted_.emplace_back(slot(value), std::vector<char>(bytes, bytes + copy.value().bytes()));
  return copy.take();
}

ValueInfo Emitter::info(uint32_t value) {
  if (const auto known = infos_.find(value); known != infos_.end()) return known->second;
  ValueInfo of = draft_.values[value].info;
  const bool here = value < made_here_.size() && made_here_[value];
  if (frame_ && !here && of.dtype != DType::resource && !of.shape.complete()) of.shape = PartialShape(frame_->shape(slot(value)));
  return of;
}

Status Emitter::check_ranks(const DraftNode& node, const std::vector<ValueInfo>& inputs) const {
  size_t at = 0;
  for (const ArgDef& arg : node.node->op->inputs()) {
    if (!arg.number_attr.empty() || !arg.list_attr.empty()) return {};  // list arguments carry no rank contract
    const PartialShape& shape = inputs[at].shape;
    if (inputs[at].dtype != DType::resource && shape.has_rank() && (shape.rank() < arg.rank_min || shape.rank() > arg.rank_max)) {
      return invalid_argument("%s: input %s must have rank %d or so, but has shape %s", node.node->op->name().c_str(), arg.name.c_str(),
                              arg.rank_min, shape.text().c_str())
          .at_node(node.node->name)
          .in_phase("prepare");
    }
    ++at;
  }
  return {};
}

// Shapes of the outputs for these inputs. cut_before: a value is needed that this chunk is yet to compute.
Result<Emitter::Verdict> Emitter::infer(const DraftNode& node, const std::vector<ValueInfo>& inputs, std::vector<ValueInfo>& outputs) {
  bool open = false;
  for (uint32_t output : node.outputs) {
    outputs.push_back(draft_.values[output].info);
    open |= draft_.values[output].dynamic();
  }
  if (!open) return Verdict::done;
  Lookup lookup{this, &node};
  wanted_unknown_ = false;
  DTG_TRY(infer_node(*node.node, inputs, outputs, constant, &lookup));
  for (const ValueInfo& output : outputs) {
    if (output.dtype == DType::resource || output.shape.complete()) continue;
    return wanted_unknown_ ? Verdict::cut_before : Verdict::cut_after;
  }
  return Verdict::done;
}

Result<Emitter::Verdict> Emitter::emit(uint32_t n, uint32_t segment, Chunk& chunk, MemoryPlan& memory) {
  const DraftNode& node = draft_.nodes[n];
  std::vector<ValueInfo> inputs, outputs;
  for (uint32_t input : node.inputs) {
    inputs.push_back(info(input));
    if (inputs.back().dtype != DType::resource && !inputs.back().shape.complete()) return Verdict::cut_before;
  }
  DTG_TRY(check_ranks(node, inputs));
  DTG_ASSIGN(Verdict verdict, infer(node, inputs, outputs));
  if (verdict == Verdict::cut_before) return verdict;
  made_here_.resize(draft_.values.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint32_t value = node.outputs[o];
    made_here_[value] = true;
    if (!draft_.values[value].dynamic()) continue;
    infos_[value] = outputs[o];
    if (outputs[o].shape.complete()) {
      DTG_ASSIGN(Shape shape, outputs[o].shape.to_shape());
      chunk.shapes.push_back({slot(value), shape});
    }
  }
  const std::string& op = node.node->op->name();
  if (op != "NoOp" && op != "Placeholder") DTG_TRY(prepare(n, inputs, outputs, segment, chunk, memory));
  append_signals(n, chunk);
  const bool blocking = node.row && node.row->mode == KernelMode::blocking;
  return blocking ? Verdict::done : verdict;
}

Status Emitter::prepare(uint32_t n, const std::vector<ValueInfo>& inputs, const std::vector<ValueInfo>& outputs, uint32_t segment,
                        Chunk& chunk, MemoryPlan& memory) {
  const DraftNode& node = draft_.nodes[n];
  const Device& device = context_.placer->devices()[node.device];
  const KernelRow* row = node.row;
  if (!row) {
    DTG_ASSIGN(row, find_kernel(context_, *node.node, device));
  }
  NodePreparer kernel(*node.node, context_, device.text, *sink_.arena);
  for (const ValueInfo& input : inputs) DTG_TRY(kernel.add_input(input));
  for (const ValueInfo& output : outputs) DTG_TRY(kernel.add_output(output));
  Lookup lookup{this, &node};
  kernel.constants(constant, &lookup);
  const bool pinned = node.node->op->name() == "ReadVariableOp" && !node.snapshot;
  Instruction instruction;
  if (pinned) {
    DTG_TRY(prepare_pinned_read(kernel, node.pin, !outputs[0].shape.complete()));
    instruction.async = pinned_read;
  } else {
    DTG_TRY(kernel.prepare(*row));
    instruction.sync = kernel.sync_fn();
    instruction.async = kernel.async_fn();
  }
  bind_outputs(node, kernel, chunk);
  alias_outputs(node, kernel, outputs, chunk);
  if (!instruction.sync && !instruction.async) return {};
  append_unpins(node, chunk);
  const auto at = static_cast<uint32_t>(chunk.instructions.size());
  if (!pinned) place_operands(node, kernel, outputs, segment, at, memory);
  std::vector<uint32_t> slots;
  for (uint32_t input : node.inputs) slots.push_back(slot(input));
  instruction.in = sink_.arena->copy(std::span<const uint32_t>(slots)).data();
  slots.clear();
  for (uint32_t output : node.outputs) slots.push_back(slot(output));
  instruction.out = sink_.arena->copy(std::span<const uint32_t>(slots)).data();
  instruction.args = kernel.arguments();
  instruction.node = node.node;
  instruction.event = node.event;
  if (kernel.workspace_bytes() > 0) {
    memory.workspace(kernel.workspace_bytes(), at);
    instruction.workspace = 0;  // the offset is known when the chunk is laid out
  }
  chunk.instructions.push_back(instruction);
  return {};
}

// Memory of the results, and until when the operands are read.
void Emitter::place_operands(const DraftNode& node, const NodePreparer& kernel, const std::vector<ValueInfo>& outputs, uint32_t segment,
                             uint32_t at, MemoryPlan& memory) {
  const bool blocking = node.row && node.row->mode == KernelMode::blocking;
  for (uint32_t input : node.inputs) {
    const Home& home = homes_[slot(input)];
    // Somebody else's value is kept by the pass that knows all users; a blocked instruction reads late.
    if (home.segment != segment) continue;
    memory.used(home.item, at);
    if (blocking) memory.keep(home.item);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto number = static_cast<int>(o);
    if (!outputs[o].shape.complete() || outputs[o].dtype == DType::resource) continue;
    if (kernel.alias_of(number) >= 0 || kernel.bound_to(number)) continue;
    const auto shape = outputs[o].shape.to_shape();
    const uint32_t item = memory.value(shape.value().count() * dtype_size(outputs[o].dtype), at);
    homes_[slot(node.outputs[o])] = {segment, item};
    if (blocking) memory.keep(item);
  }
  kernel.for_overwrites([&](int in, int out) {
    const Home& from = homes_[slot(node.inputs[static_cast<size_t>(in)])];
    const Home& to = homes_[slot(node.outputs[static_cast<size_t>(out)])];
    if (from.segment == segment && to.segment == segment) memory.may_overwrite(from.item, to.item, at);
  });
}

void Emitter::bind_outputs(const DraftNode& node, const NodePreparer& kernel, Chunk& chunk) {
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    Ref<RefCounted> resource = kernel.bound_to(static_cast<int>(o));
    if (!resource) continue;
    const uint32_t target = slot(node.outputs[o]);
    if (sink_.constants) {
      sink_.constants->push_back({target, resource.get()});
    } else {
      auto* args = sink_.arena->make<BindArgs>();
      args->data = resource.get();
      append(chunk, run_bind, args, {}, {&target, 1}, node.node);
    }
    sink_.resources->push_back(std::move(resource));
  }
}

void Emitter::alias_outputs(const DraftNode& node, const NodePreparer& kernel, const std::vector<ValueInfo>& outputs, Chunk& chunk) {
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const int from = kernel.alias_of(static_cast<int>(o));
    if (from < 0) continue;
    const uint32_t source = slot(node.inputs[static_cast<size_t>(from)]);
    DraftValue& value = draft_.values[node.outputs[o]];
    // Shapes are kept per slot where they depend on data, so only a plan in the making may share a slot.
    if (!frame_ && outputs[o].shape.complete() && !value.dynamic()) {
      value.slot = source;
      continue;
    }
    homes_[value.slot] = homes_[source];
    append(chunk, run_alias, nullptr, {&source, 1}, {&value.slot, 1}, node.node);
  }
}

void Emitter::append(Chunk& chunk, SyncFn fn, const void* args, std::span<const uint32_t> in, std::span<const uint32_t> out,
                     const Node* node) {
  Instruction instruction;
  instruction.sync = fn;
  instruction.args = args;
  instruction.in = sink_.arena->copy(in).data();
  instruction.out = sink_.arena->copy(out).data();
  instruction.node = node;
  chunk.instructions.push_back(instruction);
}

void Emitter::append_unpins(const DraftNode& node, Chunk& chunk) {
  if (node.unpins.empty()) return;
  std::vector<uint32_t> pins;
  for (uint32_t read : node.unpins) pins.push_back(draft_.nodes[read].pin);
  auto* args = sink_.arena->make<UnpinArgs>();
  args->pins = sink_.arena->copy(std::span<const uint32_t>(pins));
  append(chunk, run_unpin, args, {}, {}, node.node);
}

void Emitter::append_signals(uint32_t n, Chunk& chunk) {
  const auto first = std::ranges::lower_bound(draft_.crossings, n, {}, &Crossing::node);
  for (auto crossing = first; crossing != draft_.crossings.end() && crossing->node == n; ++crossing) {
    auto* args = sink_.arena->make<SignalArgs>();
    args->event = crossing->event;
    append(chunk, run_signal, args, {}, {}, draft_.nodes[n].node);
  }
}

}  // namespace dtg
