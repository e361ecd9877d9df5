// Simplify: equal pure nodes become one, and the ops' own rules apply (OpDef::simplify). One walk, operands before readers.
#include <algorithm>
#include <cstring>

#include "base/flat_map.h"
#include "plan/rewrite.h"

namespace dtg {
namespace {

class Simplifier {
 public:
  Simplifier(const PlanContext& context, Ir& ir) : context_(context), ir_(ir), rewriter_(context, ir) {}

  Status run() {
    for (uint32_t n = 0; n < ir_.nodes.size(); ++n) {
      if (context_.is_checkpoint(n)) DTG_TRY(context_.check_time());
      if (ir_.nodes[n].dead) continue;
      rewriter_.resolve_operands(n);
      if (!is_pure(ir_.nodes[n])) continue;
      const RewriteFn rule = ir_.nodes[n].op->simplify_fn();
      if (rule) rule(rewriter_, n);
      if (!ir_.nodes[n].dead) merge(n);
    }
    if (rewriter_.changed()) sweep(ir_);
    return {};
  }

 private:
  bool is_pure(const IrNode& node) const {
    return !node.barrier && !node.outputs.empty() && !node.op->is_stateful() && node.controls.empty() && !ir_.all_known(node);
  }

  uint64_t hash_of(const IrNode& node) const {
    uint64_t hash = node.op->number() + 1;
    for (uint32_t input : node.inputs) hash = (hash ^ key_of(input)) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 32);
  }

  // Known values that are equal count as one, unless they may be used at different times.
  bool is_free(const IrValue& v) const { return v.is_known() && (v.producer == kNone || !ir_.nodes[v.producer].gated); }
  uint64_t key_of(uint32_t value) const {
    const IrValue& v = ir_.values[value];
    if (!is_free(v)) return value;
    const Tensor& tensor = ir_.constant(v);
    uint64_t bits = 0;
    if (tensor.bytes() > 0) std::memcpy(&bits, tensor.data(), static_cast<size_t>(std::min<int64_t>(tensor.bytes(), 8)));
    return bits * 31 + static_cast<uint64_t>(tensor.count()) + (uint64_t{1} << 40);
  }

  bool same_value(uint32_t a, uint32_t b) const {
    const IrValue &x = ir_.values[a], &y = ir_.values[b];
    return a == b || (is_free(x) && is_free(y) && dtg::same_value(ir_.constant(x), ir_.constant(y)));
  }

  bool same(const IrNode& a, const IrNode& b) const {
    if (a.op != b.op || a.node->device != b.node->device || !a.node->colocate.empty() || !b.node->colocate.empty()) return false;
    return std::ranges::equal(a.inputs, b.inputs, [&](uint32_t x, uint32_t y) { return same_value(x, y); }) &&
           std::ranges::equal(a.node->attrs, b.node->attrs, [](const Attr& x, const Attr& y) { return dtg::same_value(x.value, y.value); });
  }

  // Who reads something that nobody else reads has no equal.
  bool is_unique(const IrNode& node) const {
    return std::ranges::any_of(node.inputs, [&](uint32_t v) { return rewriter_.is_read_once(v) && !is_free(ir_.values[v]); });
  }

  // An equal node that was met before gives its value. Ops without operands hold their value, or are few.
  void merge(uint32_t n) {
    const IrNode& node = ir_.nodes[n];
    if (node.outputs.size() != 1 || node.inputs.empty() || is_unique(node)) return;
    const auto [at, fresh] = seen_.emplace(hash_of(node), n);
    if (fresh || ir_.nodes[*at].dead || !same(ir_.nodes[*at], node)) return;
    rewriter_.forward(n, ir_.nodes[*at].outputs[0]);
  }

  const PlanContext& context_;
  Ir& ir_;
  IrRewriter rewriter_;
  FlatMap<uint32_t> seen_;  // one node for each hash; a collision only misses a chance
};

}  // namespace

Status simplify(const PlanContext& context, Ir& ir) {
  if (!context.fuse) return {};
  return Simplifier(context, ir).run();
}

}  // namespace dtg
