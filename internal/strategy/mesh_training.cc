// Training over a mesh: the means of what the ways back made, the update, and who makes it. See mesh.h for threads.
#include <algorithm>
#include <map>
#include <numeric>

#include "nn/scope.h"
#include "strategy/mesh.h"
#include "strategy/on_device.h"
#include "strategy/towers.h"

namespace dtg {
namespace {

// ConcatV2 wants two or more.
Value joined(Build& build, std::vector<Value> parts) {
  if (parts.size() == 1) return parts[0];
  parts.push_back(build.integer(0));
  return build.op("ConcatV2", parts);
}

}  // namespace

std::vector<Value> Mesh::losses() const {
  std::vector<Value> all;
  for (int64_t d = 0; d < options_.data; ++d) {
    for (int64_t k = 0; k < course_->micro; ++k) all.push_back(course_->made[place_of(options_.pipe - 1, d, k)].outputs[0]);
  }
  return all;
}

Result<Value> Mesh::result(size_t k) {
  if (!course_ || course_->open || course_->move < course_->moves.size()) {
    return failed_precondition("a result of a mesh: the build is not over; go on until there are no more steps");
  }
  std::vector<Value> all;
  for (int64_t d = 0; d < options_.data; ++d) {
    for (int64_t i = 0; i < course_->micro; ++i) {
      const Made& made = course_->made[place_of(options_.pipe - 1, d, i)];
      if (k >= made.outputs.size()) return out_of_range("result %zu of a mesh: its last stage gives %zu", k, made.outputs.size());
      all.push_back(made.outputs[k]);
    }
  }
  const ValueInfo& info = graph().info(all[0]);
  const NameScope scope(graph(), "result");
  const OnDevice here(graph(), device(0, 0, options_.pipe - 1));
  Build build(graph());
  if (!info.shape.has_rank() || (info.shape.rank() == 0 && !dtype_is_floating(info.dtype))) {
    return invalid_argument("result %zu of a mesh: it is %s%s; give a floating-point scalar, of which the mean is taken, or rows", k,
                            dtype_name(info.dtype), info.shape.text().c_str());
  }
  if (all.size() == 1) return all[0];
  Value made = info.shape.rank() == 0 ? build.op("AddN", all) : joined(build, all);
  if (info.shape.rank() == 0 && build.ok()) made = build.div(made, build.like(made, static_cast<double>(all.size())));
  DTG_TRY(build.status());
  return made;
}

// Over all micro-batches, added up rank after rank.
Result<Gradient> Mesh::mean_of(size_t variable, NodeId beside) {
  Gradient mean;
  if (variable >= course_->sums.size() || course_->sums[variable].empty()) return mean;
  const NamedVariable& v = model_->variables()[variable];
  const NameScope scope(graph(), "mean/" + v.name);
  Build build(graph());
  std::vector<Value> dense, values, indices;
  for (const Sum& sum : course_->sums[variable]) {
    if (sum.dense.valid()) dense.push_back(sum.dense);
    for (const Gradient& rows : sum.rows) {
      values.push_back(rows.values);
      indices.push_back(build.cast(rows.indices, DType::i64));
    }
  }
  if (dense.empty() && values.empty()) return mean;
  const ColocationScope there(graph(), beside);
  const auto share = [&](Value value) {
    return build.ok() ? build.div(value, build.like(value, static_cast<double>(options_.data * course_->micro))) : Value();
  };
  Gradient rows;
  if (!values.empty()) {
    rows.values = joined(build, values);
    rows.indices = joined(build, indices);
    rows.dense_shape = build.ints(v.shape.dims(), DType::i64);
  }
  if (dense.empty()) {
    mean = rows;
    mean.values = share(rows.values);
  } else {
    if (rows.any() && build.ok()) dense.push_back(densify(build, rows));
    mean.dense = share(dense.size() == 1 ? dense[0] : build.op("AddN", dense));
  }
  DTG_TRY(build.status().with_context("the mean of the gradients of \"" + v.name + "\""));
  return mean;
}

// The rank of the data axis that keeps the optimizer's states of each variable: the largest first, each to the device that has least.
Result<std::vector<size_t>> Mesh::owners() const {
  const auto variables = model_->variables();
  std::vector<size_t> owner(variables.size(), 0), order(variables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto bytes = [&](size_t v) { return variables[v].shape.count() * static_cast<int64_t>(dtype_size(variables[v].dtype)); };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return bytes(a) > bytes(b); });
  std::map<std::string_view, int64_t> loads;
  for (const size_t v : order) {
    const NamedVariable& variable = variables[v];
    if (!variable.trainable || variable.copies.empty()) continue;
    const auto load = [&](size_t d) { return loads[graph().node(variable.copies[d].handle.node()).device]; };
    for (size_t d = 1; d < variable.copies.size(); ++d) {
      if (load(d) < load(owner[v])) owner[v] = d;
    }
    loads[graph().node(variable.copies[owner[v]].handle.node()).device] += bytes(v);
  }
  return owner;
}

Result<std::vector<VariableGradient>> Mesh::gradients(const Optimizer& optimizer) {
  std::vector<VariableGradient> made;
  DTG_ASSIGN(const std::vector<size_t> owner, owners());
  const size_t count = model_->variables().size();
  for (size_t v = 0; v < count; ++v) {
    NamedVariable variable = model_->variables()[v];
    const auto is_it = [&](Value listed) { return variable.has_handle(listed); };
    const bool wanted = optimizer.variables.empty() ? variable.trainable : std::ranges::any_of(optimizer.variables, is_it);
    if (!wanted) continue;
    if (!variable.trainable) return invalid_argument("minimize: \"%s\" is listed but not trainable", variable.name.c_str());
    NodeId beside = variable.handle.node();
    if (options_.zero != Zero::none && !variable.copies.empty()) {
      variable = variable.at_replica(owner[v]);
      variable.copies.clear();
      if (options_.zero == Zero::gradients) beside = variable.handle.node();
    }
    DTG_ASSIGN(const Gradient mean, mean_of(v, beside));
    made.push_back({variable, mean, 0});
  }
  DTG_TRY(follow(&made));
  return made;
}

// What follows the batches goes to the mean over all micro-batches, as with towers.
Status Mesh::follow(std::vector<VariableGradient>* gradients) {
  const auto towers = static_cast<size_t>(options_.data * course_->micro);
  std::vector<std::vector<VariableGradient>> each(towers);
  for (size_t t = 0; t < towers; ++t) DTG_TRY(add_following(*model_, course_->first_tower + t, &each[t]));
  for (size_t i = 0; i < each[0].size(); ++i) {
    std::vector<Gradient> parts;
    for (const auto& tower : each) {
      if (i < tower.size()) parts.push_back(tower[i].gradient);
    }
    if (parts.size() != towers) return failed_precondition("minimize over a mesh: its micro-batches were built with other layers");
    DTG_ASSIGN(const Gradient mean, dtg::mean_of(*model_, each[0][i].variable, parts, {}));
    gradients->push_back({each[0][i].variable, mean, each[0][i].share});
  }
  return {};
}

// What the owners have made of their variables, to the other copies.
Result<NodeId> Mesh::spread(std::span<const VariableGradient> gradients, NodeId after) {
  Build build(graph());
  const NameScope scope(graph(), "spread");
  std::vector<NodeId> all = {after};
  for (const VariableGradient& each : gradients) {
    const NamedVariable* const variable = model_->find(each.variable.name);
    if (!variable || variable->copies.empty() || !each.variable.copies.empty() || !each.gradient.any()) continue;
    Value now;
    {
      const ColocationScope beside(graph(), each.variable.handle.node());
      const Value handle[] = {each.variable.handle};
      const Attr dtype{"dtype", variable->dtype};
      now = build.op("ReadVariableOp", handle, {&dtype, 1}, {}, {&after, 1});
    }
    for (const VariableCopy& copy : variable->copies) {
      if (copy.handle == each.variable.handle) continue;
      const ColocationScope beside(graph(), copy.handle.node());
      const Value inputs[] = {copy.handle, now};
      all.push_back(build.node("AssignVariableOp", inputs));
    }
  }
  const NodeId over = build.node("NoOp", {}, {}, "train", all);
  DTG_TRY(build.status());
  return over;
}

Result<Training> Mesh::minimize(const Optimizer& given) {
  if (!course_ || course_->open || course_->move < course_->moves.size()) {
    return failed_precondition("minimize over a mesh: the build is not over; go on until there are no more steps");
  }
  if (course_->forward_only) return failed_precondition("minimize over a mesh: the last build was of the ways forward only");
  Optimizer optimizer = given;
  if (options_.zero != Zero::none) {
    for (const NamedVariable& variable : model_->variables()) {
      const bool spared = std::ranges::any_of(given.undecayed, [&](Value handle) { return variable.has_handle(handle); });
      for (size_t i = 0; spared && i < variable.copies.size(); ++i) optimizer.undecayed.push_back(variable.copies[i].handle);
    }
  }
  std::vector<VariableGradient> applied;
  const std::vector<Value> all = losses();
  const auto local = [&](size_t i) -> Result<std::vector<VariableGradient>> {
    if (i > 0) return std::vector<VariableGradient>();
    DTG_ASSIGN(applied, gradients(optimizer));
    return applied;
  };
  DTG_ASSIGN(Training training,
             make_training(*model_, optimizer, {.losses = all, .what = "minimize over a mesh", .number = 0, .local = local}));
  if (options_.zero != Zero::none && options_.data > 1) {
    DTG_ASSIGN(training.train, spread(applied, training.train));
  }
  return training;
}

}  // namespace dtg
