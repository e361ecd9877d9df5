// dtg/strategy.h: strategies, their runs, per-replica values and variables, over internal/strategy. One thread at a time uses a strategy: a
// call takes the turns of its model and graph, and lends them to the host's functions while those build.
#include "capi/strategy.h"

#include <algorithm>
#include <functional>

#include "capi/guard.h"
#include "capi/nn.h"

namespace dtg::capi {
namespace {

static_assert(static_cast<int>(Strategy::Kind::custom) == DTG_STRATEGY_CUSTOM && static_cast<int>(Reduce::mean) == DTG_REDUCE_MEAN &&
              static_cast<int>(Strategy::CrossDevice::hierarchical) == DTG_REDUCE_HIERARCHICAL && Strategy::kNoAxis == DTG_NO_AXIS &&
              static_cast<int>(Sync::on_read) == DTG_VARIABLE_ON_READ &&
              static_cast<int>(Aggregation::only_first) == DTG_AGGREGATION_ONLY_FIRST_REPLICA &&
              static_cast<int>(Strategy::Assign::sub) == DTG_ASSIGN_SUB);

constexpr size_t kDevicesMost = 4096;
constexpr size_t kValuesMost = 65535;
constexpr int32_t kStrategiesMost = 2000;  // of one group; instances are 31 bits

// fn(object) on an open strategy whose model and graph no other thread is inside of.
template <class Fn>
dtg_error* with_strategy(const dtg_strategy* handle, Fn&& fn) noexcept {
  return guard([&]() -> Status {
    const Held<StrategyObject> held(handle, HandleType::strategy);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->model->owner, Owner::Use::change);
    DTG_TRY(turn.status("model of the strategy"));
    const Owner::Turn building(held->model->graph->owner, Owner::Use::change);
    DTG_TRY(building.status("graph of the strategy"));
    return fn(*held);
  });
}

// The same for what gives one value, or leaves the model as it was.
template <class Fn>
dtg_error* value_of_strategy(dtg_strategy* handle, dtg_value* out, Fn&& fn) noexcept {
  return with_strategy(handle, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Value value, fn(*object.strategy));
    *out = to_c(value);
    return {};
  });
}
template <class Fn>
dtg_error* per_replica_of(dtg_strategy* handle, dtg_per_replica* out, Fn&& fn) noexcept {
  return with_strategy(handle, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(out->id, fn(*object.strategy));
    return {};
  });
}

Status check_list(const void* list, size_t count, const char* what) {
  DTG_TRY(require_array(list, count, what));
  return count <= kValuesMost ? Status() : invalid_argument("%s: %zu of them; at most %zu are possible", what, count, kValuesMost);
}

Result<std::vector<Value>> read_values(const dtg_value* values, size_t count, const char* what) {
  DTG_TRY(check_list(values, count, what));
  std::vector<Value> list;
  for (size_t i = 0; i < count; ++i) list.push_back(value_of(values[i]));
  return list;
}

Result<std::vector<Strategy::Id>> read_ids(const dtg_per_replica* values, size_t count, const char* what) {
  DTG_TRY(check_list(values, count, what));
  std::vector<Strategy::Id> list;
  for (size_t i = 0; i < count; ++i) list.push_back(values[i].id);
  return list;
}

void write_ids(std::span<const Strategy::Id> ids, dtg_per_replica* out) {
  for (size_t i = 0; i < ids.size(); ++i) out[i].id = ids[i];
}

Result<Reduce> read_reduce(dtg_reduction op) { return read_enum(op, Reduce::mean, "reduction"); }

Status read_devices(const dtg_strategy_options& c, Strategy::Options& options) {
  DTG_TRY(require_array(c.devices, c.num_devices, "devices"));
  if (c.num_devices > kDevicesMost) return invalid_argument("create a strategy: %zu devices", c.num_devices);
  for (size_t i = 0; i < c.num_devices; ++i) {
    DTG_TRY(require(c.devices[i], "an entry of devices"));
    options.devices.emplace_back(c.devices[i]);
    if (options.devices.back().empty()) return invalid_argument("create a strategy: device %zu is an empty name", i);
  }
  if (c.variable_device) options.variable_device = c.variable_device;
  return {};
}

Status read_facts(const dtg_strategy_options& c, const Strategy::Options& options, StrategyObject& object) {
  const bool custom = c.kind == DTG_STRATEGY_CUSTOM;
  if (!custom && (c.hooks || c.replicas_in_sync || c.between_graph || c.not_init || c.not_checkpoint || c.not_summary)) {
    return invalid_argument("create a strategy: hooks and facts about other processes are for custom strategies; leave them out");
  }
  const bool chief = (!options.workers || options.workers->rank == 0) && (!c.replication || c.replication->worker == 0);
  const bool ps = c.kind == DTG_STRATEGY_PARAMETER_SERVER;
  object.facts.between_graph = ps || object.group.get() || c.between_graph != 0;
  object.facts.should_init = chief && !c.not_init;
  object.facts.should_checkpoint = chief && !c.not_checkpoint;
  object.facts.should_save_summary = chief && !c.not_summary;
  object.user = c.user;
  if (c.hooks) DTG_TRY(read_struct(c.hooks, sizeof(dtg_strategy_hooks), "dtg_strategy_hooks", &object.hooks));
  return {};
}

// The workers as this member of their group sees them.
Result<Workers> read_workers(const dtg_strategy_options& c, StrategyObject& object) {
  if (c.kind != DTG_STRATEGY_MULTI_WORKER_MIRRORED) {
    return invalid_argument("create a strategy: a group is for MultiWorkerMirrored; leave it out");
  }
  const Held<GroupObject> held(c.group, HandleType::group);
  DTG_TRY(held.status());
  const Group::View view = held->group->view();
  if (view.rank < 0 || view.members.empty()) {
    return failed_precondition("create a strategy: this task is in no epoch of the group \"%s\"; form it anew",
                               held->group->name().c_str());
  }
  if (!view.cause.ok()) {
    return failed_precondition("create a strategy: the epoch of the group \"%s\" has ended: %s; form it anew", held->group->name().c_str(),
                               view.cause.message().c_str());
  }
  if (c.pack_bytes < 0) return invalid_argument("create a strategy: packs of %lld bytes", static_cast<long long>(c.pack_bytes));
  if (c.timeout_ns < 0) return invalid_argument("create a strategy: the timeout is negative; 0 is the group's");
  static constexpr const char* kHints[] = {"auto", "direct", "shared", "ring"};
  DTG_ASSIGN(const Algorithm algorithm, read_enum(c.algorithm, Algorithm::ring, "algorithm"));
  const int32_t number = held->strategies.load();
  if (number >= kStrategiesMost) return resource_exhausted("create a strategy: the group has had %d already; join another one", number);
  object.group = Ref<GroupObject>::share(held.get());
  Workers workers;
  workers.rank = view.rank;
  workers.task = view.members[static_cast<size_t>(view.rank)];
  workers.how.group_key = held->group->key();
  workers.how.group_size = static_cast<int32_t>(view.members.size());
  workers.how.first_instance = 1 + number * kWorkersInstances;
  if (c.pack_bytes != 0) workers.how.pack_bytes = c.pack_bytes;
  workers.how.timeout_seconds = static_cast<double>(c.timeout_ns) * 1e-9;
  workers.how.hint = kHints[static_cast<size_t>(algorithm)];
  return workers;
}

// The sessions of a server know its devices, so those that are none need not wait for a run.
Status check_present(const GroupObject& group, const Strategy::Options& options) {
  const std::vector<Device>& devices = group.server->server->task().devices();
  for (const std::string& text : options.devices) {
    DTG_ASSIGN(const DeviceName wanted, DeviceName::parse_spec(text));
    const auto is_wanted = [&](const Device& device) { return DeviceName::intersect(device.name, wanted).ok(); };
    if (std::ranges::any_of(devices, is_wanted)) continue;
    // Of another worker: the strategy says so.
    if (!DeviceName::intersect(DeviceName::parse(options.workers->task).value(), wanted).ok()) continue;
    std::string known;
    for (const Device& device : devices) known += (known.empty() ? "" : ", ") + device.text;
    return invalid_argument("create a strategy: the server of %s has no device \"%s\"; it has %s", options.workers->task.c_str(),
                            text.c_str(), known.c_str());
  }
  return {};
}

Result<Strategy::Options> read_strategy(const dtg_strategy_options* given, StrategyObject& object) {
  dtg_strategy_options c = DTG_STRATEGY_OPTIONS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_strategy_options), "dtg_strategy_options", &c));
  Strategy::Options options;
  options.kind = static_cast<Strategy::Kind>(c.kind);
  options.cross = static_cast<Strategy::CrossDevice>(c.cross_device);
  options.in_sync = c.replicas_in_sync;
  if (c.replication) {
    if (c.kind != DTG_STRATEGY_PARAMETER_SERVER) {
      return invalid_argument("create a strategy: a replication is for parameter servers; leave it out");
    }
    DTG_ASSIGN(options.replication, read_replication(c.replication));
  }
  if (c.group) {
    DTG_ASSIGN(options.workers, read_workers(c, object));
  }
  DTG_TRY(read_devices(c, options));
  if (options.workers) DTG_TRY(check_present(*object.group, options));
  DTG_TRY(read_facts(c, options, object));
  options.hooks = hooks_of(object);
  return options;
}

// A function of the host as internal/strategy calls it.
Strategy::ReplicaFn replica_fn(StrategyObject& object, dtg_replica_fn fn, void* user) {
  return [&object, fn, user](size_t replica, std::span<const Value> inputs, std::span<Value> results) -> Status {
    const std::vector<dtg_value> given = to_c(inputs);
    std::vector<dtg_value> made(results.size());
    DTG_TRY(ask_host(*object.model, [&] {
      return fn(user, object.handle, static_cast<int32_t>(replica), given.data(), given.size(), made.data(), made.size());
    }));
    for (size_t i = 0; i < results.size(); ++i) results[i] = value_of(made[i]);
    return {};
  };
}

Strategy::MergeFn merge_fn(StrategyObject& object, dtg_merge_fn fn, void* user) {
  return [&object, fn, user](std::span<const Strategy::Id> values, std::span<Strategy::Id> results) -> Status {
    std::vector<dtg_per_replica> given(values.size()), made(results.size());
    write_ids(values, given.data());
    DTG_TRY(ask_host(*object.model, [&] { return fn(user, object.handle, given.data(), given.size(), made.data(), made.size()); }));
    for (size_t i = 0; i < results.size(); ++i) results[i] = made[i].id;
    return {};
  };
}

dtg_replicated answer_of(const Graph& graph, const Replicated& added, const dtg_replicated& room) {
  dtg_replicated answer = room;
  fill_replicated(graph, added, answer);
  return answer;
}

dtg_variable described(const Model& model, const NamedVariable& variable) {
  dtg_variable answer = DTG_VARIABLE_INIT;
  fill_variable(model, variable, answer);
  return answer;
}

}  // namespace

Result<Ref<Crew>> crew_of(const dtg_strategy* strategy, const ModelObject& model) {
  if (!strategy) return Ref<Crew>();
  const Held<StrategyObject> held(strategy, HandleType::strategy);
  DTG_TRY(held.status());
  if (held->model.get() != &model) return invalid_argument("make a trainer: the strategy is of another model");
  const std::optional<Workers>& workers = held->strategy->workers();
  return workers ? make_ref<Crew>(held->group->group, *workers, held->group) : Ref<Crew>();
}
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_strategy_create(dtg_model* model, const dtg_strategy_options* options, dtg_strategy** out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    auto made = make_ref<StrategyObject>(Ref<ModelObject>::share(&object));
    DTG_ASSIGN(Strategy::Options read, read_strategy(options, *made));
    DTG_ASSIGN(made->strategy, Strategy::create(object.model, std::move(read)));
    if (made->group) made->group->strategies.fetch_add(1);
    StrategyObject* const kept = made.get();
    DTG_TRY(give(HandleType::strategy, std::move(made), out));
    kept->handle = *out;
    return {};
  });
}

dtg_strategy* dtg_strategy_retain(dtg_strategy* strategy) noexcept { return retain_handle(strategy, HandleType::strategy); }
void dtg_strategy_release(dtg_strategy* strategy) noexcept { release_handle(strategy, HandleType::strategy); }

dtg_error* dtg_strategy_describe(const dtg_strategy* strategy, dtg_strategy_info* out) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    dtg_strategy_info room = DTG_STRATEGY_INFO_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_strategy_info), "dtg_strategy_info", &room));
    const Strategy& s = *object.strategy;
    dtg_strategy_info answer = object.facts;
    answer.struct_size = room.struct_size;
    // Another worker may be the first of a later epoch.
    if (const int rank = object.group ? object.group->group->view().rank : -1; rank >= 0)
      answer.should_init = answer.should_checkpoint = answer.should_save_summary = rank == 0;
    answer.num_replicas = static_cast<int32_t>(s.replicas());
    answer.num_replicas_in_sync = s.replicas_in_sync();
    answer.context = static_cast<int32_t>(s.context());
    answer.replica = s.context() == Strategy::Context::replica ? static_cast<int32_t>(s.replica()) : -1;
    write_struct(answer, out);
    return {};
  });
}

dtg_error* dtg_strategy_enter(dtg_strategy* strategy) noexcept {
  return with_strategy(strategy, [](StrategyObject& object) { return object.strategy->enter(); });
}
dtg_error* dtg_strategy_exit(dtg_strategy* strategy) noexcept {
  return with_strategy(strategy, [](StrategyObject& object) { return object.strategy->leave(); });
}

dtg_error* dtg_strategy_run(dtg_strategy* strategy, dtg_replica_fn fn, void* user, const dtg_per_replica* inputs, size_t num_inputs,
                            dtg_per_replica* results, size_t num_results) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(reinterpret_cast<const void*>(fn), "fn"));
    DTG_TRY(check_list(results, num_results, "results"));
    DTG_ASSIGN(const std::vector<Strategy::Id> given, read_ids(inputs, num_inputs, "inputs"));
    DTG_ASSIGN(const std::vector<Strategy::Id> made, object.strategy->run(replica_fn(object, fn, user), given, num_results));
    write_ids(made, results);
    return {};
  });
}

dtg_error* dtg_strategy_begin_replica(dtg_strategy* strategy, int32_t replica) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    if (replica < 0) return invalid_argument("begin replica %d: they are counted from 0", replica);
    return object.strategy->begin_replica(static_cast<size_t>(replica));
  });
}

dtg_error* dtg_strategy_end_replica(dtg_strategy* strategy, const dtg_value* results, size_t num_results, dtg_per_replica* out) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_TRY(check_list(out, num_results, "out"));
    DTG_ASSIGN(const std::vector<Value> given, read_values(results, num_results, "results"));
    DTG_ASSIGN(const std::vector<Strategy::Id> made, object.strategy->end_replica(given));
    write_ids(made, out);
    return {};
  });
}

dtg_error* dtg_strategy_abandon_run(dtg_strategy* strategy) noexcept {
  return with_strategy(strategy, [](StrategyObject& object) { return object.strategy->give_up(); });
}

dtg_error* dtg_strategy_merge_call(dtg_strategy* strategy, const dtg_value* values, size_t num_values, dtg_merge_fn merge, void* merge_user,
                                   size_t num_merged, dtg_replica_fn then, void* then_user) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(reinterpret_cast<const void*>(merge), "merge"));
    DTG_TRY(require(reinterpret_cast<const void*>(then), "then"));
    if (num_merged > kValuesMost) return invalid_argument("merge call: %zu results; at most %zu are possible", num_merged, kValuesMost);
    DTG_ASSIGN(const std::vector<Value> given, read_values(values, num_values, "values"));
    return object.strategy->merge_call(given, merge_fn(object, merge, merge_user), num_merged, replica_fn(object, then, then_user));
  });
}

dtg_error* dtg_strategy_reduce(dtg_strategy* strategy, dtg_reduction op, dtg_per_replica value, int32_t axis, dtg_value* out) noexcept {
  return value_of_strategy(strategy, out, [&](Strategy& s) -> Result<Value> {
    DTG_ASSIGN(const Reduce reduce, read_reduce(op));
    return s.reduce(reduce, value.id, axis);
  });
}
dtg_error* dtg_strategy_gather(dtg_strategy* strategy, dtg_per_replica value, int32_t axis, dtg_value* out) noexcept {
  return value_of_strategy(strategy, out, [&](Strategy& s) { return s.gather(value.id, axis); });
}

dtg_error* dtg_strategy_distribute(dtg_strategy* strategy, const dtg_value* values, size_t num_values, dtg_per_replica* out) noexcept {
  return per_replica_of(strategy, out, [&](Strategy& s) -> Result<Strategy::Id> {
    DTG_ASSIGN(const std::vector<Value> given, read_values(values, num_values, "values"));
    return s.distribute(given);
  });
}
dtg_error* dtg_strategy_broadcast(dtg_strategy* strategy, dtg_value value, dtg_per_replica* out) noexcept {
  return per_replica_of(strategy, out, [&](Strategy& s) { return s.broadcast(value_of(value)); });
}
dtg_error* dtg_strategy_split(dtg_strategy* strategy, dtg_value batch, dtg_per_replica* out) noexcept {
  return per_replica_of(strategy, out, [&](Strategy& s) { return s.split(value_of(batch)); });
}

dtg_error* dtg_strategy_local(dtg_strategy* strategy, dtg_per_replica value, dtg_value* out) noexcept {
  return value_of_strategy(strategy, out, [&](Strategy& s) { return s.local(value.id); });
}

dtg_error* dtg_strategy_local_results(dtg_strategy* strategy, dtg_per_replica value, dtg_value* outs, size_t cap, size_t* count) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(count, "count"));
    DTG_TRY(require_array(outs, cap, "outs"));
    DTG_ASSIGN(const std::vector<Value> values, object.strategy->local_results(value.id));
    *count = values.size();
    for (size_t i = 0; i < std::min(cap, values.size()); ++i) outs[i] = to_c(values[i]);
    return {};
  });
}

dtg_error* dtg_strategy_minimize(dtg_strategy* strategy, dtg_per_replica losses, dtg_reduction op, const dtg_optimizer* optimizer,
                                 dtg_training* out) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_ASSIGN(const Reduce reduce, read_reduce(op));
    return answer_training(*object.model->model, optimizer, out, [&](Model&, const Optimizer& settings) -> Result<Training> {
      DTG_ASSIGN(Strategy::Minimized made, object.strategy->minimize(losses.id, reduce, settings));
      object.replicated = made.replicated;
      if (made.replicated) object.model->replicated = made.replicated;
      return std::move(made.training);
    });
  });
}

dtg_error* dtg_strategy_replicated(const dtg_strategy* strategy, dtg_replicated* out) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    dtg_replicated room = DTG_REPLICATED_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_replicated), "dtg_replicated", &room));
    if (!object.replicated) {
      return failed_precondition("the targets of a worker: a strategy of parameter servers has some, once a loss was minimized under it");
    }
    write_struct(answer_of(object.strategy->model().graph(), *object.replicated, room), out);
    return {};
  });
}

dtg_error* dtg_strategy_assign(dtg_strategy* strategy, dtg_value handle, dtg_assign_op op, dtg_value value, dtg_value* target) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_ASSIGN(const Strategy::Assign how, read_enum(op, Strategy::Assign::sub, "assign"));
    DTG_ASSIGN(const NodeId node, object.strategy->assign(value_of(handle), how, value_of(value)));
    if (target) *target = node == kNoNode ? dtg_value{} : to_c(object.strategy->model().graph().value(node));
    return {};
  });
}

dtg_error* dtg_strategy_updates(dtg_strategy* strategy, dtg_value* out) noexcept {
  return value_of_strategy(strategy, out, [&](Strategy& s) -> Result<Value> {
    DTG_ASSIGN(const NodeId node, s.updates());
    return s.model().graph().value(node);
  });
}

dtg_error* dtg_strategy_update(dtg_strategy* strategy, dtg_value handle, dtg_update_fn fn, void* user, const dtg_per_replica* values,
                               size_t num_values, dtg_value* out) noexcept {
  return with_strategy(strategy, [&](StrategyObject& object) -> Status {
    DTG_TRY(require(reinterpret_cast<const void*>(fn), "fn"));
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const std::vector<Strategy::Id> given, read_ids(values, num_values, "values"));
    const auto write = [&](size_t copy, const NamedVariable& variable, std::span<const Value> parts) -> Result<Value> {
      const dtg_variable told = described(*object.model->model, variable);
      const std::vector<dtg_value> list = to_c(parts);
      dtg_value node{};
      DTG_TRY(ask_host(*object.model,
                       [&] { return fn(user, object.handle, static_cast<int32_t>(copy), &told, list.data(), list.size(), &node); }));
      DTG_TRY(check_owner(object.strategy->model().graph(), value_of(node)));
      return value_of(node);
    };
    DTG_ASSIGN(const NodeId all, object.strategy->update(value_of(handle), write, given));
    *out = to_c(object.strategy->model().graph().value(all));
    return {};
  });
}

dtg_error* dtg_strategy_level(dtg_strategy* strategy, dtg_value* out) noexcept {
  return value_of_strategy(strategy, out, [&](Strategy& s) -> Result<Value> {
    DTG_ASSIGN(const NodeId node, s.level());
    return s.model().graph().value(node);
  });
}

}  // extern "C"
