// Emitting one node: infer what is open, prepare the kernel, say what memory its results need, and write the instruction with the small
// ones around it (unpin before a write, signal after a hand-over).
#include "plan/emit.h"

#include <algorithm>
#include <cstring>

#include "exec/completion.h"
#include "graph/function.h"

namespace dtg {
namespace {

constexpr size_t kAtFirst = 32;  // instructions that a chunk has room for
constexpr int64_t kConsultBytes = 4096;
constexpr int64_t kTouchedMost = int64_t{256} << 10;
constexpr int64_t kCutBytes = 16 << 10;  // a kernel that touches less is over soon, whatever it does

// Whether the op changes nothing that it takes, and takes something.
bool only_reads(const OpDef& op) {
  bool reads = false;
  for (const ArgDef& input : op.inputs()) {
    if (input.access == Access::undeclared) continue;
    if (input.access != Access::read && input.access != Access::peek) return false;
    reads = true;
  }
  return reads;
}

struct UnpinArgs {
  std::span<uint32_t> pins;
};
Status run_unpin(RunContext& c) {
  for (uint32_t pin : c.args<UnpinArgs>().pins) c.slots().unpin(pin);
  return {};
}

// One slot takes the address of another; its shape was set when the chunk was entered.
Status run_alias(RunContext& c) {
  c.slots().bind(c.instruction().out[0], const_cast<char*>(c.in<char>(0)));
  return {};
}

struct BindArgs {
  void* data = nullptr;
};
Status run_bind(RunContext& c) {
  c.slots().bind(c.instruction().out[0], c.args<BindArgs>().data);
  return {};
}

bool is_open(const ValueInfo& info) { return !is_holder(info.dtype) && !info.shape.complete(); }

}  // namespace

const char* Emitter::own_name(const Instruction& instruction) {
  if (!instruction.sync && !instruction.async) return "signal";
  if (instruction.sync == run_alias) return "alias";
  if (instruction.sync == run_bind) return "bind";
  return instruction.sync == run_unpin ? "unpin" : nullptr;
}

Tensor Emitter::constant(void* context, int input) {
  const auto* lookup = static_cast<const Lookup*>(context);
  const uint32_t v = lookup->node->inputs[static_cast<size_t>(input)];
  const IrValue& value = lookup->emitter->ir_.values[v];
  return value.is_known() ? lookup->emitter->ir_.constant(value) : lookup->emitter->runtime_value(v);
}

// The bytes of a small integer value that has been computed already, when there is a run to look into.
Tensor Emitter::runtime_value(uint32_t value) {
  const ValueInfo& of = info(value);
  if (!kIndex.has(of.dtype) || !of.shape.complete()) {
    wanted_unknown_ |= kIndex.has(of.dtype);
    return {};
  }
  if (!slots_ || (value < made_here_.size() && made_here_[value])) {
    wanted_unknown_ = true;
    return {};
  }
  auto shape = of.shape.to_shape();
  if (!shape.ok() || shape.value().count() > kConsultBytes / dtype_size(of.dtype)) return {};
  auto copy = Tensor::allocate(of.dtype, shape.value());
  if (!copy.ok()) return {};
  const void* const data = slots_->data(slot(value));
  if (copy.value().bytes() > 0) std::memcpy(copy.value().data(), data, static_cast<size_t>(copy.value().bytes()));
  const auto* bytes = static_cast<const char*>(copy.value().data());
  consulted_.emplace_back(slot(value), std::vector<char>(bytes, bytes + copy.value().bytes()));
  return copy.take();
}

const ValueInfo& Emitter::info(uint32_t value) {
  const ValueInfo& of = *ir_.values[value].info;
  if (!is_open(of)) return of;
  if (const auto known = infos_.find(value); known != infos_.end()) return known->second;
  if (!slots_ || (value < made_here_.size() && made_here_[value])) return of;
  return infos_.emplace(value, ValueInfo{of.dtype, of.held, PartialShape(slots_->shape(slot(value)))}).first->second;
}

// Shapes of the outputs for these inputs. cut_before: a value is needed that this chunk is yet to compute.
Result<Emitter::Verdict> Emitter::infer(const IrNode& node) {
  outputs_.clear();
  for (uint32_t output : node.outputs) outputs_.push_back(ir_.values[output].info);
  // Where operands were open, the shape function has not seen all that it checks, even if it knew the results.
  const auto open = [&](uint32_t v) { return ir_.values[v].dynamic(); };
  if (std::ranges::none_of(node.inputs, open) && std::ranges::none_of(node.outputs, open)) {
    if (node.made) DTG_TRY(check_made(node));
    return Verdict::done;
  }
  open_inputs_.clear();
  for (const ValueInfo* input : inputs_) open_inputs_.push_back(*input);
  inferred_.clear();
  for (const ValueInfo* output : outputs_) inferred_.push_back(*output);
  Lookup lookup{this, &node};
  wanted_unknown_ = false;
  DTG_TRY(infer_node(*node.node, open_inputs_, inferred_, constant, &lookup));
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (is_open(*outputs_[o])) outputs_[o] = &inferred_[o];
  }
  if (std::ranges::none_of(outputs_, [](const ValueInfo* output) { return is_open(*output); })) return Verdict::done;
  return wanted_unknown_ ? Verdict::cut_before : Verdict::cut_after;
}

// What a rule put in the place of others has the shape that those have, or it would write elsewhere.
Status Emitter::check_made(const IrNode& node) {
  open_inputs_.clear();
  for (const ValueInfo* input : inputs_) open_inputs_.push_back(*input);
  inferred_.clear();
  for (const ValueInfo* output : outputs_) inferred_.push_back({output->dtype, output->held, PartialShape::unknown()});
  Lookup lookup{this, &node};
  DTG_TRY(infer_node(*node.node, open_inputs_, inferred_, constant, &lookup));
  for (size_t o = 0; o < inferred_.size(); ++o) {
    if (!inferred_[o].shape.complete() || inferred_[o].shape == outputs_[o]->shape) continue;
    return internal_error("the planner made %s of \"%s\": its output %zu would be %s instead of %s", node.op->name().c_str(),
                          std::string(node.node->name).c_str(), o, inferred_[o].shape.text().c_str(), outputs_[o]->shape.text().c_str());
  }
  return {};
}

Status Emitter::note_shapes(const IrNode& node) {
  made_here_.resize(ir_.values.size());
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const uint32_t value = node.outputs[o];
    made_here_[value] = true;
    if (!ir_.values[value].dynamic()) continue;
    infos_[value] = *outputs_[o];
    if (!outputs_[o]->shape.complete()) continue;
    DTG_ASSIGN(const Shape shape, outputs_[o]->shape.to_shape());
    shapes_.push_back({slot(value), shape});
  }
  return {};
}

Result<uint32_t> Emitter::emit(std::span<const uint32_t> nodes, uint32_t from, Instructions& chunk) {
  const auto count = static_cast<uint32_t>(nodes.size());
  chunk.reserve(std::min<size_t>(count - from, kAtFirst));
  for (uint32_t at = from; at < count; ++at) {
    if (context_.is_checkpoint(ir_.nodes[nodes[at]].position)) DTG_TRY(context_.check_time());
    DTG_ASSIGN(const Verdict verdict, emit_node(nodes[at], chunk));
    if (verdict != Verdict::done) return verdict == Verdict::cut_before ? at : at + 1;
  }
  return count;
}

// cut_before: the chunk ends and the node is not in it; cut_after: it is the last.
Result<Emitter::Verdict> Emitter::emit_node(uint32_t n, Instructions& chunk) {
  const IrNode& node = ir_.nodes[n];
  Verdict verdict = Verdict::done;
  if (!node.barrier) {
    inputs_.clear();
    for (uint32_t input : node.inputs) {
      inputs_.push_back(&info(input));
      if (is_open(*inputs_.back())) return Verdict::cut_before;
    }
    DTG_ASSIGN(verdict, infer(node));
    if (verdict == Verdict::cut_before) return verdict;
    if (node.dynamic) DTG_TRY(note_shapes(node));
    DTG_TRY(prepare(n, chunk));
  }
  append_signals(n, chunk);
  return node.blocking() ? Verdict::done : verdict;
}

Status Emitter::prepare(uint32_t n, Instructions& chunk) {
  const IrNode& node = ir_.nodes[n];
  const Device& device = context_.placer->devices()[node.device];
  const KernelRow* row = node.row;
  if (!row) {
    DTG_ASSIGN(row, find_kernel(context_, *node.node, device));
  }
  DeviceMemory* const memory = node.space == 0 ? nullptr : ir_.spaces[node.space - 1]->memory().get();
  kernel_.reset(*node.node, device.text, memory, *output_.arena, node.pin);
  for (const ValueInfo* input : inputs_) DTG_TRY(kernel_.add_input(*input));
  for (const ValueInfo* output : outputs_) DTG_TRY(kernel_.add_output(*output));
  Lookup lookup{this, &node};
  kernel_.constants(constant, &lookup);
  if (context_.committing == Committing::logged && calls_functions(node)) {
    kernel_.hand_over(name_arguments(context_, ir_, node));
  }
  DTG_TRY(kernel_.prepare(*row));
  bind_outputs(node, chunk);
  alias_outputs(node, chunk);
  if (!kernel_.sync_fn() && !kernel_.async_fn()) return {};
  append_unpins(node, chunk);
  const auto at = static_cast<uint32_t>(chunk.size());
  DTG_TRY(place_operands(node, at));
  if (making_) note_kept(node);
  Instruction instruction;
  instruction.sync = kernel_.sync_fn();
  instruction.async = kernel_.async_fn();
  uint32_t* const in = make_room(instruction, node.inputs.size(), node.outputs.size());
  std::ranges::transform(node.inputs, in, [&](uint32_t v) { return slot(v); });
  std::ranges::transform(node.outputs, in + node.inputs.size(), [&](uint32_t v) { return slot(v); });
  instruction.args = kernel_.arguments();
  instruction.node = lasting(node.node);
  instruction.event = node.event;
  const Touched here = touched();
  instruction.looks_at_clock = is_worth_a_look(node.segment, here);
  instruction.may_be_cut = may_be_cut(node, here);
  instruction.goes_on = instruction.sync && !instruction.looks_at_clock && !instruction.may_be_cut && node.event < 0;
  instruction.gives_host = row->host_outputs != 0;
  if (kernel_.workspace_bytes() > 0) {
    memory_.workspace(kernel_.workspace_bytes(), node.segment, at, node.space);
    instruction.workspace = 0;  // the offset is known when memory is laid out
  }
  chunk.push_back(instruction);
  return {};
}

// How much memory the kernel goes through, as far as that is of interest.
Emitter::Touched Emitter::touched() const {
  Touched all;
  for (int i = 0; i < kernel_.num_inputs(); ++i) {
    all.texts |= kernel_.input(i).dtype == DType::string;
    if (all.bytes < kTouchedMost) all.bytes += std::min(kernel_.input(i).bytes(), kTouchedMost);
  }
  for (int o = 0; o < kernel_.num_outputs(); ++o) {
    all.open |= kernel_.output(o).dynamic;
    if (all.bytes < kTouchedMost && !kernel_.output(o).dynamic) all.bytes += std::min(kernel_.output(o).bytes(), kTouchedMost);
  }
  return all;
}

// The clock costs more than a small kernel, so it is asked where a quarter of a megabyte was touched, or many kernels ran. Strings may be
// of any length.
bool Emitter::is_worth_a_look(uint32_t segment, const Touched& here) {
  constexpr int64_t kEach = kTouchedMost / 64;
  if (touched_.size() <= segment) touched_.resize(segment + 1);
  int64_t& touched = touched_[segment];
  touched += kEach + here.bytes;
  if (touched < kTouchedMost && !here.texts) return false;
  touched = 0;
  return true;
}

// A kernel with an effect must come to its end, unless all of it is a draw; one that calls functions may hold such kernels, and those
// inside speak for themselves. What may have to wait leaves by itself where it only reads (exec/update.cc), and nowhere else.
bool Emitter::may_be_cut(const IrNode& node, const Touched& here) const {
  const OpDef& op = *node.op;
  // How long strings and draws take, their bytes do not tell.
  if (!here.texts && !here.open && !op.is_draw() && here.bytes < kCutBytes) return false;
  const bool reads = op.is_stateful() && only_reads(op);
  if ((op.is_stateful() && !op.is_draw() && !reads) || (!kernel_.sync_fn() && !reads)) return false;
  return !calls_functions(node);
}

// Memory of the results, and until when the operands are read. A read that pins hands out memory that is not of the run,
// and so does a kernel that brings it.
Status Emitter::place_operands(const IrNode& node, uint32_t at) {
  const bool blocking = node.blocking();
  for (uint32_t input : node.inputs) {
    const uint32_t item = item_of(input);
    if (item == kNone) continue;
    // An instruction that waits reads late, until its event.
    if (blocking) memory_.used_until(item, static_cast<uint32_t>(node.event));
    memory_.used(item, node.segment, at);
  }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const auto number = static_cast<int>(o);
    if (node.pin != kNone || cell_bytes(outputs_[o]->dtype) == 0 || !outputs_[o]->shape.complete()) continue;
    if (kernel_.alias_of(number) >= 0 || kernel_.bound_to(number) || kernel_.is_brought(number)) continue;
    const auto& output = kernel_.output(number);
    DTG_ASSIGN(const int64_t bytes, value_bytes(context_, *node.node, output.dtype, output.shape));
    const uint32_t space = ir_.values[node.outputs[o]].space;
    if (space != 0) DTG_TRY(check_device(node, number, bytes, *ir_.spaces[space - 1]));
    const uint32_t item = memory_.value(bytes, node.segment, at, space);
    items_[slot(node.outputs[o])] = item;
    homes_.push_back(slot(node.outputs[o]));
    if (blocking) memory_.used_until(item, static_cast<uint32_t>(node.event));
  }
  if (blocking) return {};
  if (!kernel_.has_overwrites()) return {};
  const std::vector<uint32_t>& repeated = repeated_items(node);
  kernel_.for_overwrites([&](int in, int out) {
    const uint32_t from = item_of(node.inputs[static_cast<size_t>(in)]), to = item_of(node.outputs[static_cast<size_t>(out)]);
    if (from == kNone || to == kNone) return;
    // Memory that is another operand as well, under whatever name, is read again after it was written.
    if (!std::ranges::binary_search(repeated, from)) memory_.may_overwrite(from, to, node.segment, at);
  });
  return {};
}

// Of the values of the host that have a place in the run's block, and not under another's name.
void Emitter::note_kept(const IrNode& node) {
  if (node.space != 0) return;
  for (int input : kernel_.kept()) {
    const uint32_t at = slot(node.inputs[static_cast<size_t>(input)]), item = items_[at];
    if (item != kNone && homes_[item] == at && memory_.space(item) == 0) kept_.push_back(at);
  }
}

// A value that the device could never hold.
Status Emitter::check_device(const IrNode& node, int output, int64_t bytes, const Accelerator& device) const {
  if (bytes <= device.memory()->limit()) return {};
  return resource_exhausted("plan \"%s\": its output %d takes %lld bytes, more than the %lld that %s has; use smaller shapes, or give the "
                            "device more memory",
                            std::string(node.node->name).c_str(), output, static_cast<long long>(bytes),
                            static_cast<long long>(device.memory()->limit()), device.name().c_str())
      .at_node(node.node->name)
      .in_phase("prepare");
}

// What lies in more than one operand, sorted.
const std::vector<uint32_t>& Emitter::repeated_items(const IrNode& node) {
  items_here_.clear();
  if (node.inputs.size() < 2) return items_here_;
  for (uint32_t v : node.inputs) items_here_.push_back(item_of(v));
  std::ranges::sort(items_here_);
  size_t kept = 0;
  for (size_t i = 1; i < items_here_.size(); ++i) {
    if (items_here_[i] == items_here_[i - 1]) items_here_[kept++] = items_here_[i];
  }
  items_here_.resize(kept);
  return items_here_;
}

void Emitter::bind_outputs(const IrNode& node, Instructions& chunk) {
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    Ref<RefCounted> resource = kernel_.bound_to(static_cast<int>(o));
    if (!resource) continue;
    const uint32_t target = slot(node.outputs[o]);
    if (output_.constants) {
      output_.constants->push_back({target, resource.get()});
    } else {
      auto* args = output_.arena->make<BindArgs>();
      args->data = resource.get();
      append(chunk, run_bind, args, {}, {&target, 1}, node.node);
    }
    output_.resources->push_back(std::move(resource));
  }
}

void Emitter::alias_outputs(const IrNode& node, Instructions& chunk) {
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const int from = kernel_.alias_of(static_cast<int>(o));
    if (from < 0) continue;
    const uint32_t source = slot(node.inputs[static_cast<size_t>(from)]);
    const IrValue& value = ir_.values[node.outputs[o]];
    // Shapes are kept per slot where they depend on data, so only a plan in the making may share a slot.
    if (making_ && outputs_[o]->shape.complete() && !value.dynamic()) {
      making_->values[node.outputs[o]].slot = source;
      continue;
    }
    items_[value.slot] = items_[source];
    if (items_[source] != kNone) memory_.used(items_[source], node.segment, static_cast<uint32_t>(chunk.size()));
    append(chunk, run_alias, nullptr, {&source, 1}, {&value.slot, 1}, node.node);
  }
}

// What an instruction tells of its node. Those that rules made go with the Ir, so the program keeps who they are.
const Node* Emitter::lasting(const Node* node) {
  if (!is_made(node)) return node;
  Node* const copy = output_.arena->make<Node>(*node);
  copy->name = output_.arena->copy(node->name);
  copy->location = output_.arena->copy(node->location);
  copy->attrs = {};
  copy->outputs = {};
  return copy;
}

// For the slots of its operands: inputs, then outputs.
uint32_t* Emitter::make_room(Instruction& instruction, size_t inputs, size_t outputs) {
  auto* const counts = static_cast<uint32_t*>(output_.arena->allocate((2 + inputs + outputs) * sizeof(uint32_t), alignof(uint32_t)));
  counts[0] = static_cast<uint32_t>(inputs);
  counts[1] = static_cast<uint32_t>(outputs);
  instruction.in = counts + 2;
  instruction.out = counts + 2 + inputs;
  return counts + 2;
}

void Emitter::append(Instructions& chunk, SyncFn fn, const void* args, std::span<const uint32_t> in, std::span<const uint32_t> out,
                     const Node* node) {
  Instruction instruction;
  instruction.sync = fn;
  instruction.args = args;
  uint32_t* const room = make_room(instruction, in.size(), out.size());
  std::ranges::copy(in, room);
  std::ranges::copy(out, room + in.size());
  instruction.node = lasting(node);
  chunk.push_back(instruction);
}

void Emitter::append_unpins(const IrNode& node, Instructions& chunk) {
  if (node.unpins == 0) return;
  std::vector<uint32_t> pins;
  for (uint32_t read : ir_.unpins_of(node)) pins.push_back(ir_.nodes[read].pin);
  auto* args = output_.arena->make<UnpinArgs>();
  args->pins = output_.arena->copy(std::span<const uint32_t>(pins));
  append(chunk, run_unpin, args, {}, {}, node.node);
}

void Emitter::append_signals(uint32_t n, Instructions& chunk) {
  const auto first = std::ranges::lower_bound(ir_.hand_overs, n, {}, &HandOver::node);
  for (auto over = first; over != ir_.hand_overs.end() && over->node == n; ++over) {
    // Whatever comes last in the chunk so far can tell of it, if it is through when it returns.
    const bool can_tell = !chunk.empty() && chunk.back().sync && chunk.back().event < 0;
    if (!can_tell) chunk.push_back({.node = lasting(ir_.nodes[n].node)});
    chunk.back().event = static_cast<int32_t>(over->event);
    chunk.back().goes_on = false;
  }
}

}  // namespace dtg
