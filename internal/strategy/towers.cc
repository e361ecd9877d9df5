// Adds the nodes that average the gradients of several towers, and the step that applies the mean. Called by the thread
// that builds the model.
#include "strategy/towers.h"

#include <algorithm>

#include "nn/scope.h"

namespace dtg {
namespace {

// Merged rows by rising index, which is how an accumulator hands them out: a norm is a sum, and its bits depend on the
// order. There is no sort; marks over the table's first dimension do it.
void sort_rows(Build& build, const NamedVariable& variable, Gradient& gradient) {
  const Value rows = build.integer(variable.shape.dim(0)), zero = build.integer(0);
  const Value counts =
      build.op("UnsortedSegmentSum", {build.op("OnesLike", {build.cast(gradient.indices, DType::i32)}), gradient.indices, rows});
  const Value present = build.op("Minimum", {counts, build.integer(1)});
  const Value places = build.op("Cumsum", {present, zero}, {{"exclusive", true}});
  const Value place = build.op("GatherV2", {places, gradient.indices, zero});
  const Value indices = build.reshape(build.op("Where", {present}), build.ints({-1}));
  gradient.values = build.op("UnsortedSegmentSum", {gradient.values, place, build.op("Size", {indices})});
  gradient.indices = indices;
}

// What a worker would push and its accumulator give back.
Status as_contributed(Model& model, std::span<VariableGradient> gradients, bool sorted) {
  Build build(model.graph());
  for (VariableGradient& each : gradients) {
    if (!each.gradient.is_rows()) continue;
    if (sorted) sort_rows(build, each.variable, each.gradient);
    else merge_rows(build, each.gradient);
    if (build.ok()) each.gradient.indices = build.cast(each.gradient.indices, DType::i64);
  }
  return build.status();
}

Value dense_mean(Build& build, std::span<const Gradient> parts, std::span<const NodeId> controls) {
  std::vector<Value> values;
  for (const Gradient& part : parts) {
    if (part.any()) values.push_back(densify(build, part));
  }
  const Value sum = build.op("AddN", values, {}, "sum", controls);
  return build.ok() ? build.div(sum, build.like(sum, static_cast<double>(parts.size()))) : Value();
}

// ConcatV2 wants two or more.
Value joined(Build& build, std::span<const Value> parts, std::string_view name, std::span<const NodeId> controls) {
  if (parts.size() == 1) return build.op("Identity", parts, {}, name, controls);
  std::vector<Value> inputs(parts.begin(), parts.end());
  inputs.push_back(build.integer(0));
  return build.op("ConcatV2", inputs, {}, name, controls);
}

Gradient row_mean(Build& build, const NamedVariable& variable, std::span<const Gradient> parts, std::span<const NodeId> controls) {
  std::vector<Value> values, indices;
  for (const Gradient& part : parts) {
    if (!part.any()) continue;
    values.push_back(part.values);
    indices.push_back(build.cast(part.indices, DType::i64));
  }
  Gradient mean;
  const Value rows = joined(build, values, "rows", controls);
  mean.indices = joined(build, indices, "indices", controls);
  if (build.ok()) mean.values = build.div(rows, build.like(rows, static_cast<double>(parts.size())));
  mean.dense_shape = build.ints(variable.shape.dims(), DType::i64);
  return mean;
}

}  // namespace

Result<Gradient> mean_of(Model& model, const NamedVariable& variable, std::span<const Gradient> parts, std::span<const NodeId> controls) {
  const NameScope scope(model.graph(), "mean/" + variable.name);
  const ColocationScope beside(model.graph(), variable.handle.node());
  Build build(model.graph());
  const auto any = [](const Gradient& part) { return part.any(); };
  if (std::ranges::none_of(parts, any)) return Gradient();
  const bool rows = std::ranges::all_of(parts, [](const Gradient& part) { return !part.any() || part.is_rows(); });
  Gradient mean;
  if (rows) mean = row_mean(build, variable, parts, controls);
  else mean.dense = dense_mean(build, parts, controls);
  DTG_TRY(build.status().with_context("the mean of the gradients of \"" + variable.name + "\""));
  return mean;
}

Result<NodeId> apply_clipped(Model& model, const Optimizer& optimizer, std::vector<VariableGradient> gradients, Value* norm) {
  if (optimizer.clip_norm > 0) {
    DTG_ASSIGN(const Value measured, global_norm(model, gradients));
    if (norm) *norm = measured;
    DTG_TRY(clip_by_norm(model, gradients, measured, optimizer.clip_norm));
  }
  return apply_gradients(model, optimizer, gradients);
}

Result<Training> minimize_towers(Model& model, std::span<const Value> losses, const Optimizer& optimizer) {
  DTG_TRY(check_optimizer(model, optimizer));
  if (losses.empty()) return invalid_argument("minimize towers: no loss was given; give one per tower");
  const NameScope scope(model.graph(), "train");
  Build build(model.graph());
  Training training;
  Optimizer with_rate = optimizer;
  if (!with_rate.learning_rate.valid()) with_rate.learning_rate = build.scalar(DType::f32, optimizer.rate, "learning_rate");
  training.learning_rate = with_rate.learning_rate;
  DTG_TRY(build.status());
  std::vector<std::vector<VariableGradient>> towers;
  for (const Value loss : losses) {
    DTG_ASSIGN(std::vector<VariableGradient> gradients, compute_gradients(model, loss));
    const ColocationScope beside(model.graph(), loss.node());
    DTG_TRY(as_contributed(model, gradients, optimizer.clip_norm > 0));
    towers.push_back(std::move(gradients));
  }
  training.gradients = towers[0];
  for (size_t v = 0; v < training.gradients.size(); ++v) {
    std::vector<Gradient> parts;
    for (const auto& tower : towers) parts.push_back(tower[v].gradient);
    DTG_ASSIGN(training.gradients[v].gradient, mean_of(model, training.gradients[v].variable, parts, {}));
  }
  DTG_ASSIGN(training.train, apply_clipped(model, with_rate, training.gradients, &training.gradient_norm));
  if (!training.gradient_norm.valid()) {
    std::vector<VariableGradient> measured = training.gradients;
    DTG_ASSIGN(training.gradient_norm, global_norm(model, measured));
  }
  DTG_ASSIGN(const NamedVariable step, model.global_step());
  training.global_step = step.read;
  return training;
}

}  // namespace dtg
