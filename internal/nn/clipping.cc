// Adds the nodes of norms and limits, each beside its variable. Called by the thread that builds the model.
#include "nn/clipping.h"

#include "nn/scope.h"

namespace dtg {
namespace {

Value& values_of(Gradient& gradient) { return gradient.is_rows() ? gradient.values : gradient.dense; }

// The graph, and the node that a variable's part stands beside; in a body there is none.
struct Where {
  Graph& graph;
  bool inside;
  NodeId beside(const VariableGradient& each) const { return inside ? kNoNode : each.variable.handle.node(); }
};

// fn(values) for each gradient that is to be clipped, on its variable's device.
template <class Fn>
Status change_each(const Where& where, std::span<VariableGradient> gradients, const char* what, Fn&& fn) {
  const NameScope scope(where.graph, what);
  Build build(where.graph);
  for (VariableGradient& each : gradients) {
    if (!each.gradient.any() || each.share != 0) continue;
    const ColocationScope beside(where.graph, where.beside(each));
    if (each.gradient.is_rows()) merge_rows(build, each.gradient);
    if (!build.ok()) break;
    Value& values = values_of(each.gradient);
    values = fn(build, values);
  }
  return build.status().with_context(what);
}

Status clip_by_value(const Where& where, std::span<VariableGradient> gradients, double most) {
  return change_each(where, gradients, "clip_by_value", [most](Build& build, Value values) {
    return build.op("Minimum", {build.op("Maximum", {values, build.like(values, -most)}), build.like(values, most)});
  });
}

// values * most / max(norm, most). Infinity would scale everything to zero in silence; infinity - infinity is NaN.
Status clip_each_by_norm(const Where& where, std::span<VariableGradient> gradients, double most) {
  return change_each(where, gradients, "clip_each_by_norm", [most](Build& build, Value values) {
    const Value half = build.op("L2Loss", {values});
    if (!build.ok()) return Value();
    const Value norm = build.op("Sqrt", {build.mul(half, build.like(half, 2))}), limit = build.like(half, most);
    const Value scaled = build.div(build.mul(values, limit), build.op("Maximum", {norm, limit}));
    return build.add(scaled, build.sub(norm, norm));
  });
}

Status clip_by_global_norm(const Where& where, std::span<VariableGradient> gradients, Value norm, double most) {
  const NameScope scope(where.graph, "clip_by_norm");
  Build build(where.graph);
  const Value limit = build.scalar(DType::f32, most);
  const Value scale = build.div(limit, build.op("Maximum", {norm, limit}));
  const Value factor = build.add(scale, build.sub(norm, norm));  // as above
  for (VariableGradient& each : gradients) {
    if (!each.gradient.any() || each.share != 0) continue;
    const ColocationScope beside(where.graph, where.beside(each));
    Value& values = values_of(each.gradient);
    values = build.mul(values, build.cast(factor, build.info(values).dtype));
  }
  return build.status().with_context("clip by norm");
}

Result<Value> norm_over(const Where& where, std::span<VariableGradient> gradients) {
  const NameScope scope(where.graph, "global_norm");
  Build build(where.graph);
  std::vector<Value> halves;
  for (VariableGradient& each : gradients) {
    if (!each.gradient.any() || each.share != 0) continue;
    const ColocationScope beside(where.graph, where.beside(each));
    if (each.gradient.is_rows()) merge_rows(build, each.gradient);
    halves.push_back(build.cast(build.op("L2Loss", {values_of(each.gradient)}), DType::f32));
  }
  if (halves.empty()) return invalid_argument("global norm: no variable has a gradient");
  const Value sum = halves.size() == 1 ? halves[0] : build.op("AddN", halves);
  const Value norm = build.op("Sqrt", {build.mul(sum, build.scalar(DType::f32, 2))});
  DTG_TRY(build.status().with_context("global norm"));
  return norm;
}

}  // namespace

void merge_rows(Build& build, Gradient& gradient) {
  const Value unique = build.op("Unique", {gradient.indices});
  if (!build.ok()) return;
  const Value count = build.op("Size", {unique});
  gradient.values = build.op("UnsortedSegmentSum", {gradient.values, unique.sibling(1), count});
  gradient.indices = unique;
}

Result<Value> global_norm(Model& model, std::span<VariableGradient> gradients) { return norm_over({model.graph(), false}, gradients); }

bool clips_by_norm(const Optimizer& optimizer) { return optimizer.clip_norm > 0 || optimizer.clip_each_norm > 0; }
bool clips(const Optimizer& optimizer) { return clips_by_norm(optimizer) || optimizer.clip_value > 0; }

Status clip_gradients(Model& model, const Optimizer& optimizer, std::span<VariableGradient> gradients, Value* norm, Graph* body) {
  if (!body && optimizer.accumulation_steps > 1) return {};  // their mean will be
  const Where where{body ? *body : model.graph(), body != nullptr};
  if (optimizer.clip_value > 0) return clip_by_value(where, gradients, optimizer.clip_value);
  if (optimizer.clip_each_norm > 0) return clip_each_by_norm(where, gradients, optimizer.clip_each_norm);
  if (!(optimizer.clip_norm > 0)) return {};
  DTG_ASSIGN(const Value measured, norm_over(where, gradients));
  if (norm) *norm = measured;
  return clip_by_global_norm(where, gradients, measured, optimizer.clip_norm);
}

}  // namespace dtg
