// Fuse: several nodes become one that makes fewer passes over memory. First the rules of the ops (OpDef::fuse): bias and activation
// while a product is in the cache, and the like. Then chains of element-wise ops, which run block by block in the first-level cache.
// A value that somebody else reads, that is fetched, fed or waited for by a control edge stays a value of its own.
#include <algorithm>

#include "device/cpu/chain.h"
#include "plan/rewrite.h"

namespace dtg {
namespace {

// A chain that would grow beyond these is cut: what it does not take in becomes an operand, and the end of the next chain. The kernel
// takes no more (device/cpu/chain.h).
constexpr size_t kStepsMax = cpu::kChainSteps;
constexpr size_t kInputsMax = cpu::kChainInputs;

class Fuser {
 public:
  Fuser(const PlanContext& context, Ir& ir)
      : context_(context), ir_(ir), rewriter_(context, ir), chain_op_(context.ops->with_role(Role::chain)) {}

  Status run() {
    const auto count = static_cast<uint32_t>(ir_.nodes.size());
    for (uint32_t n = 0; n < count; ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      const IrNode& node = ir_.nodes[n];
      if (!node.dead && !node.barrier && node.op->fuse_fn()) node.op->fuse_fn()(rewriter_, n);
    }
    // From the back, so that a chain is taken at its end and grows towards its operands.
    for (uint32_t n = count; chain_op_ && n-- > 0;) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      if (ir_.nodes[n].op->role() == Role::reduction) close_chain(n);
      else if (is_element(n)) fuse_chain(n, 2);
    }
    if (rewriter_.changed()) sweep(ir_);
    return {};
  }

 private:
  // Block functions know types and no other attribute: what has one that is not as usual (a cast that truncates) stays by itself.
  static bool has_default_attrs(const Node& node) {
    const auto defs = node.op->attrs();
    for (size_t i = 0; i < defs.size(); ++i) {
      if (defs[i].kind == AttrKind::type) continue;
      const AttrValue &given = node.attrs[i].value, *usual = defs[i].fallback ? &*defs[i].fallback : nullptr;
      const auto same = [&](const auto* value, const auto* wanted) { return value && wanted && *value == *wanted; };
      if (!usual || !(same(given.get<bool>(), usual->get<bool>()) || same(given.get<int64_t>(), usual->get<int64_t>()) ||
                      same(given.get<double>(), usual->get<double>()) || same(given.get<std::string>(), usual->get<std::string>()))) {
        return false;
      }
    }
    return true;
  }

  // A node that computes each element of its result from one element of each operand, all broadcast by NumPy's rules.
  bool is_element(uint32_t n) const {
    const IrNode& node = ir_.nodes[n];
    if (node.dead || node.barrier || node.outputs.size() != 1 || !context_.kernels->is_element(*node.op)) return false;
    if (node.op->is_stateful()) return false;
    const IrValue& out = ir_.values[node.outputs[0]];
    if (out.dynamic() || out.is_known() || node.inputs.empty() || node.inputs.size() > cpu::kElementOperands) return false;
    DType types[cpu::kElementOperands];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (ir_.values[node.inputs[i]].dynamic()) return false;
      types[i] = ir_.values[node.inputs[i]].info->dtype;
    }
    return context_.kernels->find_element(*node.op, {types, node.inputs.size()}, out.info->dtype) != nullptr &&
           has_default_attrs(*node.node);
  }

  // A chain in the making: steps in the order they run, operands as inputs (>= 0) or steps (-1 - step).
  struct Chain {
    std::vector<std::string> ops;
    std::vector<DType> types;
    std::vector<int64_t> operands;
    std::vector<uint32_t> inputs, absorbed;
    const PartialShape* shape = nullptr;
    size_t open = 0;  // operands that are or may yet become inputs

    void reserve() {
      constexpr size_t kMostly = 8;
      ops.reserve(kMostly);
      types.reserve(kMostly);
      operands.reserve(2 * kMostly);
      inputs.reserve(kMostly);
      absorbed.reserve(kMostly);
    }
  };

  // May `producer` be computed inside? It brings its operands in the place of one.
  bool fits(uint32_t producer, uint32_t value, const Chain& chain) const {
    return chain.absorbed.size() + 1 < kStepsMax && chain.open + ir_.nodes[producer].inputs.size() - 1 <= kInputsMax &&
           is_element(producer) && ir_.values[value].info->shape == *chain.shape;
  }

  // Adds `n` after what it absorbs; returns the step's number. As deep as a chain is long.
  int64_t grow(uint32_t n, Chain& chain) {
    int64_t operands[cpu::kElementOperands];
    size_t count = 0;
    for (uint32_t input : ir_.nodes[n].inputs) {
      const uint32_t producer = rewriter_.sole_producer(input, n);
      if (producer != kNone && fits(producer, input, chain)) {
        chain.open += ir_.nodes[producer].inputs.size() - 1;
        chain.absorbed.push_back(producer);
        operands[count++] = -1 - grow(producer, chain);
        continue;
      }
      auto at = std::ranges::find(chain.inputs, input);
      if (at == chain.inputs.end()) at = chain.inputs.insert(at, input);
      operands[count++] = at - chain.inputs.begin();
    }
    chain.ops.push_back(ir_.nodes[n].op->name());
    chain.types.push_back(ir_.values[ir_.nodes[n].outputs[0]].info->dtype);
    chain.operands.insert(chain.operands.end(), operands, operands + count);
    return static_cast<int64_t>(chain.ops.size()) - 1;
  }

  // Is there an operand that may be computed inside? Most nodes end here.
  bool has_element_operand(uint32_t n) const {
    return std::ranges::any_of(ir_.nodes[n].inputs, [&](uint32_t input) {
      const uint32_t producer = rewriter_.sole_producer(input, n);
      return producer != kNone && is_element(producer);
    });
  }

  void fuse_chain(uint32_t n, size_t least) {
    if (least > 1 && !has_element_operand(n)) return;
    Chain chain;
    const ValueInfo& out = *ir_.values[ir_.nodes[n].outputs[0]].info;
    chain.shape = &out.shape;
    chain.open = ir_.nodes[n].inputs.size();
    chain.reserve();
    grow(n, chain);
    if (chain.ops.size() < least) return;
    std::vector<DType> inputs;
    inputs.reserve(chain.inputs.size());
    for (uint32_t input : chain.inputs) inputs.push_back(ir_.values[input].info->dtype);
    std::vector<Attr> attrs = {{"ops", AttrValue(AttrValue::Variant(std::move(chain.ops)))},
                               {"types", AttrValue(std::move(chain.types))},
                               {"operands", AttrValue(std::move(chain.operands))},
                               {"reduce", AttrValue("")},
                               {"axes", AttrValue(std::vector<int64_t>())},
                               {"keep_dims", AttrValue(false)},
                               {"Tin", AttrValue(std::move(inputs))},
                               {"T", AttrValue(out.dtype)}};
    rewriter_.replace(n, *chain_op_, chain.inputs, std::move(attrs), chain.absorbed);
  }

  // A reduction takes the chain before it along, by its own rule; even one op is worth it, for then its result is never written.
  void close_chain(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    if (node.dead || node.barrier || !node.op->fuse_fn()) return;
    const uint32_t producer = rewriter_.sole_producer(node.inputs[0], n);
    if (producer == kNone || !is_element(producer)) return;
    fuse_chain(producer, 1);
    node.op->fuse_fn()(rewriter_, n);
  }

  const PlanContext& context_;
  Ir& ir_;
  IrRewriter rewriter_;
  const OpDef* const chain_op_;
};

}  // namespace

Status fuse(const PlanContext& context, Ir& ir) {
  if (!context.fuse) return {};
  return Fuser(context, ir).run();
}

}  // namespace dtg
