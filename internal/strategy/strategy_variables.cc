// Variables of a strategy: where they stand, how they are trained, and what a write means where there are several copies. See strategy.h
// for threads.
#include <algorithm>

#include "graph/device_name.h"
#include "nn/scope.h"
#include "strategy/on_device.h"
#include "strategy/strategy.h"

namespace dtg {
namespace {

// By Strategy::Assign.
constexpr const char* kWriteOps[] = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"};

}  // namespace

Result<std::vector<std::string>> Strategy::place(VariableSpec& spec) {
  if (spec.sync < Sync::on_write || spec.sync > Sync::on_read || spec.aggregation < Aggregation::none ||
      spec.aggregation > Aggregation::only_first) {
    return invalid_argument(
        "add the variable \"%s\": synchronization %d and aggregation %d; neither may be another number than the named ones",
        std::string(spec.name).c_str(), static_cast<int>(spec.sync), static_cast<int>(spec.aggregation));
  }
  std::vector<std::string> devices;
  const bool by_scope = options_.kind == Kind::parameter_server;
  if (options_.hooks.create_variable) {
    const Inside inside(inside_);
    DTG_TRY(options_.hooks.create_variable(spec, &devices).with_context("create_variable of the strategy"));
    if (!devices.empty() && devices.size() != 1 && devices.size() != replicas()) {
      return invalid_argument(
          "create_variable of the strategy: %zu devices for \"%s\"; give one for a variable that all replicas share, or one "
          "for each of the %zu replicas",
          devices.size(), std::string(spec.name).c_str(), replicas());
    }
    for (const std::string& device : devices) {
      DTG_TRY(DeviceName::parse_given(device).status().with_context("create_variable of the strategy, \"" + std::string(spec.name) + "\""));
    }
  }
  if (spec.sync == Sync::on_read && spec.trainable) {
    return invalid_argument("add the variable \"%s\": one that is synchronised on read differs from replica to replica, so it cannot be "
                            "trainable; say not_trainable",
                            std::string(spec.name).c_str());
  }
  if (!devices.empty() || by_scope) return devices;
  // Each replica writes its own, wherever the others stand.
  if (spec.sync == Sync::on_read || options_.variable_device.empty()) return options_.devices;
  devices.push_back(options_.variable_device);
  return devices;
}

Result<Value> Strategy::aggregated(const NamedVariable& variable, std::span<const Value> parts) {
  switch (variable.aggregation) {
    case Aggregation::none:
      return failed_precondition("\"%s\" has one value per replica and no aggregation that makes one of them; give it one: the sum, "
                                 "the mean or the first replica's",
                                 variable.name.c_str());
    case Aggregation::sum: return combine(Reduce::sum, parts);
    case Aggregation::mean: return combine(Reduce::mean, parts);
    case Aggregation::only_first: return options_.workers ? value_of_first(parts[0]) : parts[0];
  }
  return internal_error("aggregation %d", static_cast<int>(variable.aggregation));
}

Result<Value> Strategy::read_of(const NamedVariable& variable, std::span<const Value> reads) {
  if (options_.hooks.read_variable) return options_.hooks.read_variable(variable.name, reads);
  const NameScope scope(graph(), variable.name + "/Aggregate");
  const OnDevice first(graph(), options_.devices[0]);
  return aggregated(variable, reads);
}

Status Strategy::is_mine(const NamedVariable& variable, const char* what) const {
  if (variable.strategy == tag_) return {};
  if (variable.strategy != 0) {
    return failed_precondition("%s: the variable \"%s\" was made in the scope of another strategy; strategies cannot be mixed", what,
                               variable.name.c_str());
  }
  return failed_precondition(
      "%s: the variable \"%s\" was not created in the scope of this strategy; enter the scope before you add layers and "
      "variables",
      what, variable.name.c_str());
}

Result<NamedVariable> Strategy::variable_of(Value handle, const char* what) const {
  for (const NamedVariable& variable : model_->variables()) {
    const bool is_copy = std::ranges::any_of(variable.copies, [&](const VariableCopy& copy) { return copy.handle == handle; });
    if (!is_copy && variable.handle != handle) continue;
    DTG_TRY(is_mine(variable, what));
    return variable;
  }
  return invalid_argument("%s: the handle is no variable of the strategy's model", what);
}

// --- training ---

Result<std::vector<Value>> Strategy::reduce_gradients(Reduce reduce, std::span<const std::vector<Value>> parts,
                                                      std::span<const NodeId> besides) {
  std::vector<Value> made(parts.size());
  if (options_.hooks.batch_reduce_to) {
    DTG_TRY(options_.hooks.batch_reduce_to(reduce, parts, made).with_context("batch_reduce_to of the strategy"));
    for (const Value value : made) DTG_TRY(graph().check(value).with_context("batch_reduce_to of the strategy"));
    return made;
  }
  for (size_t v = 0; v < parts.size(); ++v) {
    const ColocationScope beside(graph(), options_.hooks.reduce_to ? kNoNode : besides[v]);
    DTG_ASSIGN(made[v], combine(reduce, parts[v]));
  }
  return made;
}

// Of losses that were made from the results of a run (scaled, say) and distributed: the newest run that followed what replica 0's is
// made from.
size_t Strategy::tower_of(const PerReplica& losses) const {
  if (losses.first_tower != SIZE_MAX) return losses.first_tower;
  for (size_t k = first_towers_.size(); k-- > 0;) {
    for (const Model::Following& each : model_->following()) {
      if (each.tower != first_towers_[k]) continue;
      if (std::ranges::any_of(each.targets, [&](Value target) { return depends_on(graph(), losses.values[0], target); })) {
        return first_towers_[k];
      }
    }
  }
  return 0;
}

Result<Strategy::Minimized> Strategy::minimize(Id losses, Reduce reduce, const Optimizer& optimizer) {
  DTG_TRY(cross("minimize"));
  DTG_ASSIGN(const PerReplica* const found, resolve(losses, "minimize"));
  const PerReplica given = *found;
  for (const NamedVariable& variable : model_->variables()) {
    const bool is_trained = optimizer.variables.empty()
                                ? variable.trainable
                                : std::ranges::any_of(optimizer.variables, [&](Value listed) { return variable.has_handle(listed); });
    if (is_trained) DTG_TRY(is_mine(variable, "minimize"));
  }
  Minimized made;
  if (options_.kind == Kind::parameter_server) {
    if (reduce != Reduce::mean) {
      return unimplemented("minimize by parameter servers: gradients are averaged; ask for the mean, and give losses that are means");
    }
    DTG_ASSIGN(made.replicated, minimize_replicated(*model_, given.values[0], optimizer, options_.replication));
    made.training = {
        made.replicated->train, made.replicated->global_step, made.replicated->learning_rate, made.replicated->gradient_norm, {}};
    return made;
  }
  TowerOptions towers;
  towers.reduce = reduce;
  towers.first = tower_of(given);
  towers.copies = true;
  const bool plain = options_.cross == CrossDevice::reduce_to_one && !options_.hooks.reduce_to && !options_.hooks.batch_reduce_to;
  if (options_.workers) {
    towers.number = static_cast<size_t>(options_.workers->rank) * replicas();
    towers.meet = [this, reduce](auto parts, auto* first, auto* out) { return meet_workers(reduce, parts, first, out); };
  } else if (!plain) {
    towers.reducer = [this](Reduce how, std::span<const std::vector<Value>> parts, std::span<const NodeId> besides) {
      return reduce_gradients(how, parts, besides);
    };
  }
  DTG_ASSIGN(made.training, minimize_towers(*model_, given.values, optimizer, towers));
  return made;
}

// --- writes ---

Result<NodeId> Strategy::write(const NamedVariable& variable, size_t copy, Assign how, Value value) {
  const NamedVariable there = variable.at_replica(copy);
  const auto& hooks = options_.hooks;
  if (hooks.begin_update) DTG_TRY(hooks.begin_update(variable.name, copy).with_context("begin_update of the strategy"));
  Build build(graph());
  const Value inputs[] = {there.handle, value};
  NodeId node = kNoNode;
  {
    const ColocationScope beside(graph(), there.handle.node());
    node = build.node(kWriteOps[static_cast<size_t>(how)], inputs, {});
  }
  if (hooks.end_update) DTG_TRY(hooks.end_update(variable.name, copy).with_context("end_update of the strategy"));
  DTG_TRY(build.status().with_context("assign to \"" + variable.name + "\""));
  return node;
}

// values: one for each copy.
Result<NodeId> Strategy::write_all(const NamedVariable& variable, Assign how, std::span<const Value> values) {
  std::vector<NodeId> written;
  for (size_t i = 0; i < values.size(); ++i) {
    DTG_ASSIGN(const NodeId node, write(variable, i, how, values[i]));
    written.push_back(node);
  }
  if (written.size() == 1) return written[0];
  Build build(graph());
  const NodeId all = build.node("NoOp", {}, {}, {}, written);
  DTG_TRY(build.status());
  return all;
}

Result<NodeId> Strategy::assign(Value handle, Assign how, Value value) {
  if (how < Assign::set || how > Assign::sub) return invalid_argument("assign: %d is none of its ways", static_cast<int>(how));
  DTG_ASSIGN(const NamedVariable variable, variable_of(handle, "assign"));
  DTG_TRY(graph().check(value).with_context("assign to \"" + variable.name + "\""));
  const bool on_read = variable.sync == Sync::on_read;
  if (context_ == Context::replica) {
    if (!on_read && (replicas() > 1 || options_.workers)) {
      DTG_TRY(assign_later(variable, how, value));
      return kNoNode;
    }
    DTG_ASSIGN(const NodeId node, write(variable, replica_, how, value));
    run_->effects.push_back(node);
    return node;
  }
  std::vector<Value> values(std::max<size_t>(1, variable.copies.size()), value);
  if (on_read && (values.size() > 1 || options_.workers) && variable.aggregation == Aggregation::sum) {
    if (how != Assign::set) {
      return failed_precondition(
          "assign to \"%s\": what is synchronised on read and added up cannot be added to in the cross-replica context, as "
          "it would be added once per replica; do it in a replica, or assign a value",
          variable.name.c_str());
    }
    Build build(graph());
    const Value zero = build.zeros_like(value);
    DTG_TRY(build.status());
    std::fill(values.begin() + (is_first_elsewhere() ? 0 : 1), values.end(), zero);
  }
  return write_all(variable, how, values);
}

Status Strategy::assign_later(const NamedVariable& variable, Assign how, Value value) {
  if (variable.aggregation == Aggregation::none) {
    return failed_precondition(
        "assign to \"%s\" in a replica context: you must specify an aggregation, as each replica has a value of its own; "
        "give the variable one (the sum, the mean, the first replica's) when you add it",
        variable.name.c_str());
  }
  const size_t number = run_->assigned++;
  if (replica_ == 0) {
    run_->assigns.push_back({variable, how, {value}});
    return {};
  }
  if (number >= run_->assigns.size() || run_->assigns[number].variable.handle != variable.handle || run_->assigns[number].how != how) {
    return failed_precondition(
        "assign to \"%s\": replica %zu does it where replica 0 did otherwise; what is aggregated needs all of them in the "
        "same order",
        variable.name.c_str(), replica_);
  }
  run_->assigns[number].parts.push_back(value);
  return {};
}

// Once all replicas have said what they assign.
Status Strategy::assign_pending() {
  const std::vector<PendingAssign> assigns = std::move(run_->assigns);
  run_->assigns.clear();
  const NameScope scope(graph(), "assign");
  for (const PendingAssign& each : assigns) {
    Value value;
    {
      const OnDevice first(graph(), options_.devices[0]);
      DTG_ASSIGN(value, aggregated(each.variable, each.parts));
    }
    const std::vector<Value> values(std::max<size_t>(1, each.variable.copies.size()), value);
    DTG_ASSIGN(const NodeId written, write_all(each.variable, each.how, values));
    run_->effects.push_back(written);
  }
  return {};
}

Result<NodeId> Strategy::updates() {
  DTG_TRY(cross("the updates of a run"));
  if (effects_.empty()) return failed_precondition("the updates of a run: the last run assigned to no variable");
  Build build(graph());
  const NodeId all = build.node("NoOp", {}, {}, {}, effects_);
  DTG_TRY(build.status());
  return all;
}

Result<NodeId> Strategy::update(Value handle, const UpdateFn& fn, std::span<const Id> values) {
  DTG_TRY(cross("update a variable"));
  DTG_ASSIGN(const NamedVariable variable, variable_of(handle, "update a variable"));
  const size_t copies = std::max<size_t>(1, variable.copies.size());
  std::vector<std::vector<Value>> given(copies);
  for (const Id id : values) {
    DTG_ASSIGN(const PerReplica* const value, resolve(id, "update a variable, a value"));
    for (size_t i = 0; i < copies; ++i) given[i].push_back(value->values[i]);
  }
  std::vector<NodeId> written;
  const auto& hooks = options_.hooks;
  for (size_t i = 0; i < copies; ++i) {
    const NamedVariable there = variable.at_replica(i);
    if (hooks.begin_update) DTG_TRY(hooks.begin_update(variable.name, i).with_context("begin_update of the strategy"));
    Result<Value> answered = Value();
    {
      const ColocationScope beside(graph(), there.handle.node());
      answered = fn(i, there, given[i]);
    }
    DTG_TRY(answered.status());
    DTG_TRY(graph().check_node(answered.value().node()).with_context("update \"" + variable.name + "\""));
    if (hooks.end_update) DTG_TRY(hooks.end_update(variable.name, i).with_context("end_update of the strategy"));
    written.push_back(answered.value().node());
  }
  Build build(graph());
  const NodeId all = build.node("NoOp", {}, {}, {}, written);
  DTG_TRY(build.status());
  return all;
}

}  // namespace dtg
