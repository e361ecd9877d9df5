// Making strategies, their contexts and their runs. See strategy.h for threads.
#include "strategy/strategy.h"

#include <algorithm>
#include <atomic>

#include "base/or_undo.h"
#include "graph/device_name.h"
#include "nn/scope.h"
#include "strategy/on_device.h"

namespace dtg {
namespace {

constexpr size_t kReplicasMax = 256;
// Above what any graph's tag can be, so that a plain value is told from a per-replica one.
constexpr uint32_t kTagBase = 0x80000000u;
constinit std::atomic<uint32_t> tags_given{0};

Status check_devices(const Strategy::Options& options) {
  std::vector<std::string> known;
  for (const std::string& device : options.devices) {
    if (device.empty()) continue;
    DTG_ASSIGN(const DeviceName name, DeviceName::parse_given(device));
    known.push_back(name.text());
    if (std::ranges::count(known, known.back()) > 1) {
      return invalid_argument("create a strategy: the device \"%s\" is given twice; each replica has its own", device.c_str());
    }
  }
  if (options.variable_device.empty()) return {};
  return DeviceName::parse_given(options.variable_device).status();
}

Status check_kind(const Strategy::Options& o) {
  using Kind = Strategy::Kind;
  const size_t n = o.devices.size();
  if (o.kind < Kind::one_device || o.kind > Kind::multi_worker_mirrored) {
    return invalid_argument("create a strategy: kind %d is unknown", static_cast<int>(o.kind));
  }
  if (o.kind == Kind::multi_worker_mirrored && !o.workers) {
    return invalid_argument("create a strategy: MultiWorkerMirrored needs the group of its workers; join one and give it");
  }
  if (o.cross < Strategy::CrossDevice::reduce_to_one || o.cross > Strategy::CrossDevice::hierarchical) {
    return invalid_argument("create a strategy: cross-device reduction %d is unknown", static_cast<int>(o.cross));
  }
  if ((o.kind == Kind::one_device || o.kind == Kind::parameter_server) && n != 1) {
    return invalid_argument("create a strategy: %zu devices, and this kind has one replica in a process; give one device", n);
  }
  if (n == 0 || n > kReplicasMax) return invalid_argument("create a strategy: %zu devices; give 1 to %zu", n, kReplicasMax);
  const bool takes_place = o.kind == Kind::central_storage || o.kind == Kind::custom;
  if (!o.variable_device.empty() && !takes_place) {
    return invalid_argument("create a strategy: a device for variables is for central storage and custom strategies; leave it out");
  }
  if (o.in_sync < 0 || (o.in_sync != 0 && o.kind != Kind::custom)) {
    return invalid_argument("create a strategy: %d replicas in sync; a custom strategy may say how many there are in all processes",
                            o.in_sync);
  }
  return check_devices(o);
}

// The replicas of this process stand at its task; and what gives variables their first values levels them with those of the others.
Status settle_workers(Model& model, Strategy::Options& options) {
  const Workers& workers = *options.workers;
  DTG_TRY(check_all_reduce(workers.how));
  DTG_ASSIGN(const DeviceName task, DeviceName::parse(workers.task));
  for (std::string& device : options.devices) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse_given(device));
    auto there = DeviceName::intersect(task, name);
    if (!there.ok()) {
      return invalid_argument("create a strategy: the device \"%s\" is not one of this worker, %s; each worker names its own",
                              device.c_str(), workers.task.c_str());
    }
    device = there.value().text();
  }
  model.set_first_replica(static_cast<size_t>(workers.rank) * options.devices.size());
  model.set_after_init([workers](Model& m, std::span<const NodeId> after) { return level(m, workers, after); });
  return {};
}

}  // namespace

Strategy::Strategy(Ref<Model> model, Options options)
    : model_(std::move(model)), options_(std::move(options)), tag_(kTagBase | (1 + tags_given.fetch_add(1) % (kTagBase - 1))) {
  if (options_.workers) instance_ = options_.workers->how.first_instance;
}

Result<Ref<Strategy>> Strategy::create(Ref<Model> model, Options options) {
  if (options.kind == Kind::parameter_server && options.devices.empty()) options.devices.emplace_back();
  if (options.workers && options.devices.empty()) options.devices.push_back(options.workers->task);
  DTG_TRY(check_kind(options));
  if (options.workers) DTG_TRY(settle_workers(*model, options));
  if (options.kind == Kind::one_device) options.variable_device = options.devices[0];
  if (options.kind == Kind::central_storage && options.variable_device.empty()) {
    options.variable_device = options.devices.size() == 1 ? options.devices[0] : "/device:CPU:0";
  }
  return Ref<Strategy>::adopt(new Strategy(std::move(model), std::move(options)));
}

Strategy::~Strategy() {
  if (run_) abandon();
  if (model_->policy() == this) model_->set_policy(nullptr);
}

int32_t Strategy::replicas_in_sync() const {
  if (options_.in_sync != 0) return options_.in_sync;
  if (options_.workers) return options_.workers->how.group_size * static_cast<int32_t>(replicas());
  if (options_.kind != Kind::parameter_server || options_.replication.mode == SyncMode::async || options_.replication.mode == SyncMode::ssp)
    return static_cast<int32_t>(replicas());
  return options_.replication.to_aggregate != 0 ? options_.replication.to_aggregate : options_.replication.total;
}

Status Strategy::cross(const char* what) const {
  if (context_ != Context::replica) return {};
  return failed_precondition(
      "%s: called in the replica context of replica %zu; it belongs into the cross-replica context: call it when the "
      "run is over, or from the function of a merge call",
      what, replica_);
}

Status Strategy::in_replica(const char* what) const {
  if (context_ == Context::replica) return {};
  return failed_precondition("%s: called in the %s context; it belongs into a replica context: call it from the function of a run", what,
                             context_ == Context::none ? "default" : "cross-replica");
}

Status Strategy::enter() {
  DTG_TRY(cross("enter the scope of a strategy"));
  if (context_ != Context::none)
    return failed_precondition("enter the scope of a strategy: it is open already; leave it once for each time");
  if (model_->policy()) {
    return failed_precondition("enter the scope of a strategy: the scope of another one is open on the model; strategies cannot be mixed, "
                               "leave that scope first");
  }
  model_->set_policy(this);
  context_ = Context::cross_replica;
  return {};
}

Status Strategy::leave() {
  DTG_TRY(cross("leave the scope of a strategy"));
  if (context_ == Context::none || run_) return failed_precondition("leave the scope of a strategy: it is not open here");
  model_->set_policy(nullptr);
  context_ = Context::none;
  return {};
}

// --- runs ---

Status Strategy::not_inside(const char* what) const {
  if (inside_ == 0) return {};
  return failed_precondition("%s: a function of a merge call or a hook is being called, on which the run waits; let it return an error",
                             what);
}

Status Strategy::give_up() {
  DTG_TRY(not_inside("abandon a run"));
  abandon();
  return {};
}

Status Strategy::begin_replica(size_t replica) {
  DTG_TRY(not_inside("begin a replica"));
  if (replica == 0) DTG_TRY(cross("begin a run"));
  const size_t next = run_ ? run_->results.size() : 0;
  const bool is_next = replica == next && replica < replicas() && context_ != Context::replica && (run_ ? replica > 0 : replica == 0);
  if (!is_next) {
    return failed_precondition("begin replica %zu: the next one is %zu, after the end of the one before; there are %zu", replica, next,
                               replicas());
  }
  if (replica == 0) {
    Run run;
    run.before = model_->mark();
    run.outside = context_;
    run.merges.resize(replicas());
    if (context_ == Context::none) DTG_TRY(enter());
    run_ = std::move(run);
  }
  const Status status = or_undo(
      [&] {
        if (replica == 0) run_->first_tower = model_->begin_replicas();
        return open_replica(replica);
      },
      [&] { abandon(); });
  if (!status.ok()) abandon();
  return status;
}

Status Strategy::open_replica(size_t replica) {
  const std::string& device = options_.devices[replica];
  if (replica > 0) graph().push_name_scope("replica_" + std::to_string(replica));
  or_undo(
      [&] {
        if (!device.empty()) graph().push_device(device);
      },
      [&] {
        if (replica > 0) (void)graph().pop_name_scope();
      });
  context_ = Context::replica;
  replica_ = replica;
  run_->assigned = 0;
  const Inside inside(inside_);
  if (options_.hooks.begin_replica) DTG_TRY(options_.hooks.begin_replica(replica).with_context("begin_replica of the strategy"));
  model_->begin_replica(replica);
  return {};
}

void Strategy::leave_replica_scopes() {
  if (context_ != Context::replica) return;
  if (!options_.devices[replica_].empty()) (void)graph().pop_device();
  if (replica_ > 0) (void)graph().pop_name_scope();
  context_ = Context::cross_replica;
}

// Leaves the replica's scopes too.
Status Strategy::close_replica(std::span<const Value> results) {
  const Inside inside(inside_);
  DTG_TRY(model_->end_replica());
  if (options_.hooks.end_replica) DTG_TRY(options_.hooks.end_replica(replica_).with_context("end_replica of the strategy"));
  const bool goes_on = run_->merges[replica_].has_value();
  for (const Value result : goes_on ? std::span<const Value>() : results) {
    DTG_TRY(graph().check(result).with_context("a result of replica " + std::to_string(replica_)));
  }
  if (replica_ > 0 && results.size() != run_->results[0].size()) {
    return invalid_argument("end replica %zu: it has %zu results, and replica 0 has %zu", replica_, results.size(),
                            run_->results[0].size());
  }
  if (run_->assigned < run_->assigns.size()) {
    return failed_precondition("end replica %zu: it did not assign to \"%s\", as replica 0 did; what is aggregated needs all of them",
                               replica_, run_->assigns[run_->assigned].variable.name.c_str());
  }
  run_->results.emplace_back(results.begin(), results.end());
  leave_replica_scopes();
  return {};
}

Result<std::vector<Strategy::Id>> Strategy::end_replica(std::span<const Value> results) {
  DTG_TRY(not_inside("end a replica"));
  DTG_TRY(in_replica("end a replica"));
  return or_undo(
      [&]() -> Result<std::vector<Id>> {
        const Status closed = close_replica(results);
        if (!closed.ok()) {
          abandon();
          return closed;
        }
        if (run_->results.size() < replicas()) return std::vector<Id>();
        auto ids = finish_run();
        if (!ids.ok()) abandon();
        return ids;
      },
      [&] { abandon(); });
}

Result<std::vector<Strategy::Id>> Strategy::finish_run() {
  const size_t count = run_->results[0].size();
  while (std::ranges::any_of(run_->merges, [](const auto& merge) { return merge.has_value(); })) DTG_TRY(merge_all(count));
  model_->end_replicas();
  DTG_TRY(assign_pending());
  effects_ = std::move(run_->effects);
  first_towers_.push_back(run_->first_tower);
  std::vector<Id> ids;
  for (size_t k = 0; k < count; ++k) {
    std::vector<Value> values;
    for (const auto& of_replica : run_->results) values.push_back(of_replica[k]);
    ids.push_back(add(std::move(values)));
  }
  const Context outside = run_->outside;
  run_.reset();
  if (outside == Context::none) DTG_TRY(leave());
  return ids;
}

// The merge that all replicas have come to, and what each of them does then.
Status Strategy::merge_all(size_t results) {
  const Inside inside(inside_);
  std::vector<Merge> merges;
  for (size_t r = 0; r < replicas(); ++r) {
    if (!run_->merges[r]) {
      return failed_precondition(
          "merge call: not all replicas made one (replica %zu did not); they wait for each other, so build the same in "
          "each",
          r);
    }
    merges.push_back(std::move(*run_->merges[r]));
    run_->merges[r].reset();
    if (merges[r].values.size() != merges[0].values.size() || merges[r].merged != merges[0].merged) {
      return invalid_argument("merge call: replica %zu gives %zu values for %zu results, replica 0 gives %zu for %zu", r,
                              merges[r].values.size(), merges[r].merged, merges[0].values.size(), merges[0].merged);
    }
  }
  std::vector<Id> given, made(merges[0].merged, 0);
  for (size_t k = 0; k < merges[0].values.size(); ++k) {
    std::vector<Value> values;
    for (const Merge& merge : merges) values.push_back(merge.values[k]);
    given.push_back(add(std::move(values)));
  }
  DTG_TRY(merges[0].merge(given, made));
  std::vector<std::vector<Value>> inputs(replicas());
  for (const Id id : made) {
    DTG_ASSIGN(const PerReplica* const value, resolve(id, "a result of the function of a merge call"));
    for (size_t r = 0; r < replicas(); ++r) inputs[r].push_back(value->values[r]);
  }
  DTG_TRY(assign_pending());
  run_->results.clear();
  model_->continue_replicas();
  for (size_t r = 0; r < replicas(); ++r) {
    std::vector<Value> outs(results);
    DTG_TRY(open_replica(r));
    DTG_TRY(merges[r].then(r, inputs[r], outs));
    DTG_TRY(close_replica(outs));
  }
  return {};
}

void Strategy::abandon() {
  if (!run_) return;
  leave_replica_scopes();
  model_->end_replicas();
  model_->go_back(run_->before);
  const Context outside = run_->outside;
  run_.reset();
  context_ = Context::cross_replica;
  if (outside == Context::none) (void)leave();
}

Result<std::vector<Strategy::Id>> Strategy::run(const ReplicaFn& fn, std::span<const Id> inputs, size_t results) {
  DTG_TRY(cross("run"));
  std::vector<std::vector<Value>> given(replicas());
  for (const Id id : inputs) {
    DTG_ASSIGN(const PerReplica* const value, resolve(id, "run, an input"));
    for (size_t r = 0; r < replicas(); ++r) given[r].push_back(value->values[r]);
  }
  for (size_t r = 0;; ++r) {
    DTG_TRY(begin_replica(r));
    std::vector<Value> outs;
    const Status built = or_undo(
        [&] {
          outs.resize(results);
          return fn(r, given[r], outs);
        },
        [&] { abandon(); });
    if (!built.ok()) {
      abandon();
      return built;
    }
    if (r + 1 == replicas()) return end_replica(outs);
    DTG_TRY(end_replica(outs).status());
  }
}

Status Strategy::merge_call(std::span<const Value> values, MergeFn merge, size_t merged, ReplicaFn then) {
  DTG_TRY(in_replica("merge call"));
  if (run_->merges[replica_]) {
    return failed_precondition("merge call: replica %zu made one already; what comes behind it belongs into the function that goes on",
                               replica_);
  }
  for (const Value value : values) DTG_TRY(graph().check(value).with_context("merge call, a value"));
  run_->merges[replica_] = Merge{{values.begin(), values.end()}, std::move(merge), merged, std::move(then)};
  return {};
}

}  // namespace dtg
