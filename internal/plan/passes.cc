// The order of the passes, and what they share.
#include "plan/passes.h"

#include "base/interrupt.h"
#include "base/size.h"
#include "graph/infer.h"

namespace dtg {
namespace {

constexpr Pass kFront[] = {{"prune", prune}, {"infer", infer}, {"fold", fold}, {"simplify", simplify}, {"place", place}};
constexpr Pass kBack[] = {{"fuse", fuse}, {"commit", commit}, {"split", split}, {"order", order}};

// The contract of the definition, for operands whose rank was not known when the node was built.
Status check_ranks(const Node& node, std::span<const ValueInfo> inputs) {
  size_t at = 0;
  for (const ArgDef& arg : node.op->inputs()) {
    if (!arg.number_attr.empty() || !arg.list_attr.empty()) return {};  // list arguments carry no rank contract
    const ValueInfo& input = inputs[at++];
    if (is_holder(input.dtype) || !input.shape.has_rank()) continue;
    if (input.shape.rank() >= arg.rank_min && input.shape.rank() <= arg.rank_max) continue;
    return invalid_argument("%s: input %s must have rank %d or so, but has shape %s", node.op->name().c_str(), arg.name.c_str(),
                            arg.rank_min, input.shape.text().c_str());
  }
  return {};
}

}  // namespace

std::span<const Pass> front_passes() { return kFront; }
std::span<const Pass> back_passes() { return kBack; }

Status PlanContext::check_time() const {
  if (clock && deadline.passed(*clock))
    return deadline_exceeded("plan: the run's deadline passed while it was planned; give it more time").in_phase("prepare");
  Interrupt* const interrupt = Interrupt::present();
  return interrupt && interrupt->is_due() ? cancelled("plan: the run was cancelled while it was planned") : Status();
}

Status run_passes(const PlanContext& context, std::span<const Pass> passes, Ir& ir, PassObserver observer, void* user) {
  for (const Pass& pass : passes) {
    DTG_TRY(context.check_time());
    DTG_TRY(pass.run(context, ir));
    if (observer) observer(user, pass, ir);
  }
  return {};
}

Status infer_node(const Node& node, std::span<const ValueInfo> inputs, std::span<ValueInfo> outputs, Tensor (*constant_fn)(void*, int),
                  void* constant_context) {
  InferContext context(node, inputs, outputs, constant_fn, constant_context);
  Status status = check_ranks(node, inputs);
  if (status.ok()) status = node.op->shape_fn()(context);
  if (status.ok()) return status;
  std::string where = "infer \"" + std::string(node.name) + "\"";
  if (!node.location.empty()) where += " (made at " + std::string(node.location) + ")";
  return status.with_context(where).at_node(node.name).in_phase("prepare");
}

Result<int64_t> value_bytes(const PlanContext& context, const Node& node, DType dtype, const Shape& shape) {
  const Bytes bytes = Bytes::of(shape.count(), cell_bytes(dtype));
  const int64_t limit = context.budget ? context.budget->limit() : INT64_MAX / 4;
  if (!bytes.is_overflow() && bytes.value() <= limit) return bytes.value();
  return resource_exhausted(
             "plan \"%.*s\" (%s): its value %s%s takes %s%lld bytes, more than the memory limit of %lld; use smaller shapes, or "
             "raise memory_limit_bytes of the runtime",
             static_cast<int>(node.name.size()), node.name.data(), node.op->name().c_str(), dtype_name(dtype), shape.text().c_str(),
             bytes.is_overflow() ? "more than " : "", static_cast<long long>(bytes.value()), static_cast<long long>(limit))
      .at_node(node.name)
      .in_phase("prepare");
}

}  // namespace dtg
