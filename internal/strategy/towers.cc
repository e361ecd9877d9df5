// Adds the nodes that average the gradients of several towers, and the step that applies the mean. Called by the thread
// that builds the model.
#include "strategy/towers.h"

#include <algorithm>

#include "nn/clipping.h"
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

std::vector<Value> dense_parts(Build& build, std::span<const Gradient> parts) {
  std::vector<Value> values;
  for (const Gradient& part : parts) {
    if (part.any()) values.push_back(densify(build, part));
  }
  return values;
}

Value shared_out(Build& build, Reduce reduce, Value sum, size_t parts) {
  if (!build.ok() || reduce == Reduce::sum) return sum;
  return build.div(sum, build.like(sum, static_cast<double>(parts)));
}

Value dense_of(Build& build, Reduce reduce, std::span<const Gradient> parts, std::span<const NodeId> controls) {
  return shared_out(build, reduce, build.op("AddN", dense_parts(build, parts), {}, "sum", controls), parts.size());
}

// ConcatV2 wants two or more.
Value joined(Build& build, std::span<const Value> parts, std::string_view name, std::span<const NodeId> controls) {
  if (parts.size() == 1) return build.op("Identity", parts, {}, name, controls);
  std::vector<Value> inputs(parts.begin(), parts.end());
  inputs.push_back(build.integer(0));
  return build.op("ConcatV2", inputs, {}, name, controls);
}

Gradient rows_of(Build& build, Reduce reduce, const NamedVariable& variable, std::span<const Gradient> parts,
                 std::span<const NodeId> controls) {
  std::vector<Value> values, indices;
  for (const Gradient& part : parts) {
    if (!part.any()) continue;
    values.push_back(part.values);
    indices.push_back(build.cast(part.indices, DType::i64));
  }
  Gradient mean;
  const Value rows = joined(build, values, "rows", controls);
  mean.indices = joined(build, indices, "indices", controls);
  mean.values = shared_out(build, reduce, rows, parts.size());
  mean.dense_shape = build.ints(variable.shape.dims(), DType::i64);
  return mean;
}

bool any_part(std::span<const Gradient> parts) {
  return std::ranges::any_of(parts, [](const Gradient& part) { return part.any(); });
}
bool are_rows(std::span<const Gradient> parts) {
  return std::ranges::all_of(parts, [](const Gradient& part) { return !part.any() || part.is_rows(); });
}

Result<Gradient> reduced(Model& model, Reduce reduce, const NamedVariable& variable, std::span<const Gradient> parts,
                         std::span<const NodeId> controls) {
  const NameScope scope(model.graph(), (reduce == Reduce::mean ? "mean/" : "sum/") + variable.name);
  const ColocationScope beside(model.graph(), variable.handle.node());
  Build build(model.graph());
  if (!any_part(parts)) return Gradient();
  Gradient made;
  if (are_rows(parts)) made = rows_of(build, reduce, variable, parts, controls);
  else made.dense = dense_of(build, reduce, parts, controls);
  DTG_TRY(build.status().with_context("the mean of the gradients of \"" + variable.name + "\""));
  return made;
}

// Gradients of one variable, by tower.
using Parts = std::vector<Gradient>;

// The dense ones by the reducer of the strategy, all at once.
Status reduce_by(Model& model, const TowerOptions& options, std::span<const Parts> parts, std::span<VariableGradient> gradients) {
  std::vector<std::vector<Value>> dense;
  std::vector<NodeId> besides;
  std::vector<size_t> places;
  Build build(model.graph());
  for (size_t v = 0; v < parts.size(); ++v) {
    if ((gradients[v].share != 0 && !options.reduces_all) || !any_part(parts[v]) || are_rows(parts[v])) continue;
    const ColocationScope beside(model.graph(), gradients[v].variable.handle.node());
    std::vector<Value> values = dense_parts(build, parts[v]);
    // A tower that does not use the variable counts as zero.
    while (build.ok() && values.size() < parts[v].size()) values.push_back(build.zeros_like(values[0]));
    dense.push_back(std::move(values));
    besides.push_back(gradients[v].variable.handle.node());
    places.push_back(v);
  }
  DTG_TRY(build.status());
  if (dense.empty()) return {};
  DTG_ASSIGN(const std::vector<Value> made, options.reducer(options.reduce, dense, besides));
  for (size_t i = 0; i < places.size(); ++i)
    gradients[places[i]].gradient = {.dense = made[i], .values = {}, .indices = {}, .dense_shape = {}};
  return {};
}

}  // namespace

Status reduce_towers(Model& model, const TowerOptions& options, std::span<const std::vector<VariableGradient>> towers,
                     std::span<VariableGradient> gradients) {
  std::vector<Parts> parts(gradients.size());
  for (size_t v = 0; v < gradients.size(); ++v) {
    for (const auto& tower : towers) parts[v].push_back(tower[v].gradient);
    const bool follows = gradients[v].share != 0;
    const bool by_reducer = options.reducer && (!follows || options.reduces_all);
    if (by_reducer && any_part(parts[v]) && !are_rows(parts[v])) continue;
    // What follows the batches goes to their mean, however gradients are weighted.
    const Reduce reduce = follows ? options.follow : options.reduce;
    DTG_ASSIGN(gradients[v].gradient, reduced(model, reduce, gradients[v].variable, parts[v], {}));
  }
  return options.reducer ? reduce_by(model, options, parts, gradients) : Status();
}

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

Result<Gradient> mean_of(Model& model, const NamedVariable& variable, std::span<const Gradient> parts, std::span<const NodeId> controls,
                         Value count) {
  if (!count.valid()) return reduced(model, Reduce::mean, variable, parts, controls);
  DTG_ASSIGN(Gradient mean, reduced(model, Reduce::sum, variable, parts, controls));
  const ColocationScope beside(model.graph(), variable.handle.node());
  Build build(model.graph());
  Value& sum = mean.is_rows() ? mean.values : mean.dense;
  if (mean.any()) sum = build.div(sum, build.cast(count, variable.dtype));
  DTG_TRY(build.status());
  return mean;
}

Result<std::vector<VariableGradient>> contribution(Model& model, Value loss, const Optimizer& optimizer, size_t tower, size_t copy) {
  DTG_ASSIGN(std::vector<VariableGradient> gradients, compute_gradients(model, loss, tower, optimizer.variables, copy));
  const ColocationScope beside(model.graph(), loss.node());
  DTG_TRY(as_contributed(model, gradients, clips_by_norm(optimizer)));
  return gradients;
}

Result<NodeId> apply_clipped(Model& model, const Optimizer& optimizer, std::vector<VariableGradient> gradients, ApplyStages* stages) {
  DTG_TRY(clip_gradients(model, optimizer, gradients, nullptr));
  return apply_gradients(model, optimizer, gradients, stages);
}

Result<Training> minimize_towers(Model& model, std::span<const Value> losses, const Optimizer& optimizer, const TowerOptions& options) {
  if (losses.empty()) return invalid_argument("minimize towers: no loss was given; give one per tower");
  const auto reduce = [&](std::span<const std::vector<VariableGradient>> towers, std::vector<NodeId>* first,
                          std::vector<VariableGradient>* gradients) {
    return options.meet ? options.meet(towers, first, gradients) : reduce_towers(model, options, towers, *gradients);
  };
  const auto local = [&](size_t i) { return contribution(model, losses[i], optimizer, options.first + i, options.copies ? i : 0); };
  const auto number = static_cast<int64_t>(options.number);
  return make_training(model, optimizer,
                       {.losses = losses, .what = "minimize towers", .number = number, .local = local, .combine = reduce});
}

}  // namespace dtg
