// Infer: shapes for these feeds, and what constants and shapes alone decide. What was complete when a node was built stays as it is,
// because a feed can only be more exact; unless a value is fed that was known then, for what rests on it may be otherwise now.
#include <algorithm>
#include <iterator>
#include <map>

#include "base/flat_map.h"
#include "graph/known.h"
#include "plan/evaluate.h"
#include "plan/passes.h"

namespace dtg {
namespace {

class IrValues final : public ValueContext {
 public:
  IrValues(const Ir& ir, const IrNode& node, std::span<const ValueInfo> outputs, std::span<Tensor> known)
      : ValueContext(*node.node, outputs, known), ir_(ir), node_(node) {}
  Tensor input(int i) const override {
    const IrValue& value = ir_.values[node_.inputs[static_cast<size_t>(i)]];
    return value.is_known() ? ir_.constant(value) : Tensor();
  }
  const ValueInfo& input_info(int i) const override { return *ir_.values[node_.inputs[static_cast<size_t>(i)]].info; }

 private:
  const Ir& ir_;
  const IrNode& node_;
};

// Sets of nodes that others wait for, each stored once. One that grows too large is kMany: then a node waits for its operands.
class GateSets {
 public:
  static constexpr uint32_t kMany = 1;
  GateSets() : sets_(2) {}
  std::span<const uint32_t> operator[](uint32_t set) const { return sets_[set]; }

  uint32_t of(std::span<const uint32_t> nodes) {
    std::vector<uint32_t> list(nodes.begin(), nodes.end());
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return number_of(std::move(list));
  }
  uint32_t unite(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    if (a == kMany || b == kMany) return kMany;
    const uint64_t key = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
    if (const uint32_t* known = unions_.find(key)) return *known;
    std::vector<uint32_t> both;
    std::ranges::set_union(sets_[a], sets_[b], std::back_inserter(both));
    const uint32_t set = number_of(std::move(both));
    unions_.emplace(key, set);
    return set;
  }

 private:
  static constexpr size_t kMost = 8;

  uint32_t number_of(std::vector<uint32_t> list) {
    if (list.size() > kMost) return kMany;
    const auto [at, fresh] = numbers_.try_emplace(list, static_cast<uint32_t>(sets_.size()));
    if (fresh) sets_.push_back(std::move(list));
    return at->second;
  }

  std::vector<std::vector<uint32_t>> sets_;  // sorted; 0 is the empty one
  std::map<std::vector<uint32_t>, uint32_t> numbers_;
  FlatMap<uint32_t> unions_;
};

class Inferrer {
 public:
  Inferrer(const PlanContext& context, Ir& ir) : context_(context), ir_(ir) {}

  Status run() {
    gate_of_.reserve(ir_.nodes.size());
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      IrNode& node = ir_.nodes[n];
      DTG_TRY(infer(node));
      DTG_TRY(check_sizes(node));
      find_values(node);
      find_gate(n);
      const auto dynamic = [&](uint32_t v) { return ir_.values[v].dynamic(); };
      node.dynamic = std::ranges::any_of(node.outputs, dynamic) || std::ranges::any_of(node.inputs, dynamic);
    }
    sweep(ir_);
    return {};
  }

 private:
  struct Known {
    const Ir* ir;
    const IrNode* node;
    static Tensor of(void* context, int i) {
      const auto* k = static_cast<const Known*>(context);
      const IrValue& value = k->ir->values[k->node->inputs[static_cast<size_t>(i)]];
      return value.is_known() ? k->ir->constant(value) : Tensor();
    }
  };

  Status infer(IrNode& node) {
    const bool unsure = std::ranges::any_of(node.inputs, [&](uint32_t v) { return ir_.values[v].unsure; });
    if (!unsure && !is_open(node)) return {};
    inputs_.clear();
    for (uint32_t input : node.inputs) inputs_.push_back(*ir_.values[input].info);
    outputs_.clear();
    for (uint32_t output : node.outputs) {
      const ValueInfo& built = *ir_.values[output].info;
      if (unsure) outputs_.push_back({built.dtype, built.held, PartialShape::unknown()});
      else outputs_.push_back(built);
    }
    const std::span<ValueInfo> outputs = ir_.arena.copy(std::span<const ValueInfo>(outputs_));
    Known known{&ir_, &node};
    DTG_TRY(infer_node(*node.node, inputs_, outputs, Known::of, &known));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      ir_.values[node.outputs[o]].info = &outputs[o];
      ir_.values[node.outputs[o]].unsure = unsure;
    }
    return {};
  }

  // Was anything open when the node was built that the feeds may have closed?
  bool is_open(const IrNode& node) const {
    if (std::ranges::any_of(node.outputs, [&](uint32_t v) { return !ir_.values[v].info->shape.complete(); })) return true;
    for (Value input : node.node->inputs) {
      if (!ir_.graph->info(input).shape.complete()) return true;
    }
    // What has become known since may contradict what was guessed without it.
    return std::ranges::any_of(node.inputs, [&](uint32_t v) { return ir_.values[v].late; });
  }

  Status check_sizes(const IrNode& node) const {
    for (uint32_t v : node.outputs) {
      const ValueInfo& info = *ir_.values[v].info;
      if (cell_bytes(info.dtype) == 0 || !info.shape.complete()) continue;
      auto shape = info.shape.to_shape();
      if (!shape.ok()) return shape.status().at_node(node.node->name);
      DTG_TRY(value_bytes(context_, *node.node, info.dtype, shape.value()).status());
    }
    return {};
  }

  // What is known is used without being computed, and what it would have been computed from may go; but the control edges on the way
  // to it still say when it may be used. They are followed from node to node as sets, of which few are different.
  void find_gate(uint32_t n) {
    IrNode& node = ir_.nodes[n];
    uint32_t gate = 0;
    for (uint32_t v : node.inputs) {
      if (ir_.values[v].producer != kNone) gate = gates_.unite(gate, gate_of_[ir_.values[v].producer]);
    }
    node.gated = gate != 0 || !node.controls.empty();
    if (gate != 0 && gate != GateSets::kMany && ir_.all_known(node)) {
      // In place of the operands, whose values nobody needs.
      list_.assign(node.controls.begin(), node.controls.end());
      const std::span<const uint32_t> before = gates_[gate];
      list_.insert(list_.end(), before.begin(), before.end());
      std::ranges::sort(list_);
      list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
      node.controls = ir_.arena.copy(std::span<const uint32_t>(list_));
      node.inputs = {};
    }
    gate_of_.push_back(node.controls.empty() ? gate : gates_.unite(gate, gates_.of(node.controls)));
  }

  void find_values(const IrNode& node) {
    if (node.op->is_stateful() || node.outputs.empty()) return;
    // The common node has operands that nobody knows yet, and no value function.
    const ValueFn fn = node.op->value_fn();
    const bool computable = !node.inputs.empty() && std::ranges::all_of(node.inputs, [&](uint32_t v) { return ir_.values[v].is_known(); });
    if (!fn && !computable) return;
    known_.assign(node.outputs.size(), Tensor());
    outputs_.clear();
    for (uint32_t output : node.outputs) outputs_.push_back(*ir_.values[output].info);
    if (fn) {
      IrValues values(ir_, node, outputs_, known_);
      fn(values);
    }
    const bool found = std::ranges::all_of(known_, [](const Tensor& tensor) { return tensor.valid(); });
    // Later shapes may hang on what only a kernel can work out.
    if (!found && computable && is_small()) known_ = evaluate_node(context_, ir_, node);
    for (size_t o = 0; o < known_.size(); ++o) {
      if (!known_[o].valid()) continue;
      ir_.set_known(node.outputs[o], std::move(known_[o]));
      ir_.values[node.outputs[o]].late = node.node->known.empty() || !node.node->known[o].valid();
    }
  }

  bool is_small() const {
    return std::ranges::all_of(outputs_, [](const ValueInfo& info) {
      if (!info.shape.complete()) return false;
      const auto shape = info.shape.to_shape();
      return shape.ok() && shape.value().count() <= ValueContext::kElementsMax;
    });
  }

  const PlanContext& context_;
  Ir& ir_;
  GateSets gates_;
  std::vector<uint32_t> gate_of_;            // by node: what its control edges and those before it wait for
  std::vector<ValueInfo> inputs_, outputs_;  // of the node at hand
  std::vector<uint32_t> list_;
  std::vector<Tensor> known_;
};

}  // namespace

Status infer(const PlanContext& context, Ir& ir) { return Inferrer(context, ir).run(); }

}  // namespace dtg
