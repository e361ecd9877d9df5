// dtg/coordinator.h: coordinators, closures and remote values. Holds the handles for the length of a call, and calls train/. The handle
// of a coordinator closes it when it goes. Any thread.
#include "dtg/coordinator.h"

#include "base/whereabouts.h"
#include "capi/cancellation.h"
#include "capi/guard.h"
#include "capi/nn.h"
#include "capi/objects.h"
#include "capi/sharded.h"
#include "strategy/partitioner.h"
#include "train/coordinator.h"

namespace dtg::capi {
namespace {

constexpr size_t kMostOfAClosure = size_t{1} << 20;

class CoordinatorObject final : public RefCounted {
 public:
  explicit CoordinatorObject(Ref<Coordinator> c) : coordinator(std::move(c)) {}
  ~CoordinatorObject() override { coordinator->close(); }
  const Ref<Coordinator> coordinator;
};

// A remote value, and the clock and default time of its session.
class RemoteValueObject final : public RefCounted {
 public:
  RemoteValueObject(Ref<Session> s, Ref<RemoteValue> v) : session(std::move(s)), value(std::move(v)) {}
  const Ref<Session> session;
  const Ref<RemoteValue> value;
};

static_assert(static_cast<int>(Partitioner::Kind::max_size) == DTG_PARTITIONER_MAX_SIZE);

template <class Fn>
dtg_error* with_coordinator(dtg_coordinator* handle, Fn&& fn) noexcept {
  return with<CoordinatorObject>(handle, HandleType::coordinator,
                                 [&](CoordinatorObject& object) -> Status { return fn(*object.coordinator); });
}

Status create(Session& session, const dtg_coordinator_options* given, dtg_coordinator** out) {
  DTG_TRY(require(out, "out"));
  dtg_coordinator_options c = DTG_COORDINATOR_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_coordinator_options), "dtg_coordinator_options", &c));
  Coordinator::Options options;
  if (c.job) options.job = text(c.job, c.job_len);
  if (c.queue_capacity) options.capacity = c.queue_capacity;
  if (c.worker_timeout_ns) options.worker_timeout_ns = c.worker_timeout_ns;
  if (c.server_timeout_ns) options.server_timeout_ns = c.server_timeout_ns;
  if (c.closure_losses) options.closure_losses = c.closure_losses;
  options.closure_timeout_ns = c.closure_timeout_ns;
  DTG_ASSIGN(Ref<Coordinator> made, Coordinator::create(Ref<Session>::share(&session), std::move(options)));
  return give(HandleType::coordinator, make_ref<CoordinatorObject>(std::move(made)), out);
}

Result<std::vector<Value>> closure_values(const dtg_value* values, size_t count, const char* what) {
  DTG_TRY(require_array(values, count, what));
  if (count > kMostOfAClosure) return invalid_argument("%s: %zu of them cannot be right", what, count);
  std::vector<Value> list;
  for (size_t i = 0; i < count; ++i) list.push_back(value_of(values[i]));
  return list;
}

Result<std::vector<Tensor>> closure_tensors(const dtg_tensor* const* handles, size_t count) {
  DTG_TRY(require_array(handles, count, "feed_tensors"));
  if (count > kMostOfAClosure) return invalid_argument("feed_tensors: %zu of them cannot be right", count);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const Held<TensorObject> held(handles[i], HandleType::tensor);
    DTG_TRY(held.status().with_context(format("feed_tensors[%zu]", i)));
    tensors.push_back(held->tensor);
  }
  return tensors;
}

Status prepare(Coordinator& coordinator, const dtg_run_args* given, dtg_value worker, dtg_closure** out) {
  DTG_TRY(require(out, "out"));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_run_args), "dtg_run_args", &args));
  DTG_ASSIGN(const std::vector<Value> feeds, closure_values(args.feeds, args.num_feeds, "feeds"));
  DTG_ASSIGN(const std::vector<Value> fetches, closure_values(args.fetches, args.num_fetches, "fetches"));
  DTG_ASSIGN(const std::vector<Value> targets, closure_values(args.targets, args.num_targets, "targets"));
  std::vector<NodeId> nodes;
  for (Value target : targets) {
    DTG_TRY(check_owner(coordinator.session().graph(), target));
    nodes.push_back(target.node());
  }
  DTG_ASSIGN(Ref<RemoteClosure> closure, coordinator.prepare(feeds, fetches, nodes, value_of(worker)));
  return give(HandleType::closure, std::move(closure), out);
}

Status per_worker(Coordinator& coordinator, dtg_closure* closure, const dtg_tensor* const* feed_tensors, size_t num_feeds) {
  const Held<RemoteClosure> held(closure, HandleType::closure);
  DTG_TRY(held.status());
  DTG_ASSIGN(std::vector<Tensor> inputs, closure_tensors(feed_tensors, num_feeds));
  return coordinator.add_per_worker(Ref<RemoteClosure>::share(held.get()), std::move(inputs));
}

Status schedule(Coordinator& coordinator, dtg_closure* closure, const dtg_tensor* const* feed_tensors, size_t num_feeds,
                const dtg_schedule_options* given, dtg_remote_value** out) {
  const Held<RemoteClosure> held(closure, HandleType::closure);
  DTG_TRY(held.status());
  dtg_schedule_options options = DTG_SCHEDULE_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_schedule_options), "dtg_schedule_options", &options));
  DTG_ASSIGN(std::vector<Tensor> inputs, closure_tensors(feed_tensors, num_feeds));
  const HeldCancellation cancellation(options.cancellation);
  DTG_TRY(cancellation.status());
  Ref<CompletionQueue> queue;
  if (options.cq) {
    const Held<CompletionQueue> given_queue(options.cq, HandleType::cq);
    DTG_TRY(given_queue.status());
    queue = Ref<CompletionQueue>::share(given_queue.get());
  }
  DTG_ASSIGN(Ref<RemoteValue> value, coordinator.schedule(Ref<RemoteClosure>::share(held.get()), std::move(inputs), options.timeout_ns,
                                                          cancellation.get(), std::move(queue), options.tag));
  if (!out) return {};
  auto object = make_ref<RemoteValueObject>(Ref<Session>::share(&coordinator.session()), std::move(value));
  return give(HandleType::remote_value, std::move(object), out);
}

Status fetch(RemoteValueObject& object, dtg_tensor** fetched, size_t count, int64_t timeout_ns, dtg_cancellation* handle) {
  DTG_TRY(require_array(fetched, count, "fetched"));
  if (count != object.value->value_count())
    return invalid_argument("fetch a remote value: its closure has %zu fetches, and there is room for %zu", object.value->value_count(),
                            count);
  for (size_t i = 0; i < count; ++i) {
    if (fetched[i]) return invalid_argument("fetch a remote value: fetched[%zu] must be NULL on entry", i);
  }
  const HeldCancellation cancellation(handle);
  DTG_TRY(cancellation.status());
  DTG_ASSIGN(const Deadline until, object.session->time_limit(timeout_ns));
  const Status outcome = object.value->wait(object.session->runtime().clock(), until, cancellation.get());
  DTG_TRY(told_by(outcome, object.session->driver().task().name(), "schedule"));
  DTG_ASSIGN(std::vector<Tensor> values, object.value->values());
  for (size_t i = 0; i < count; ++i) {
    const Status status = give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(values[i]))), &fetched[i]);
    if (status.ok()) continue;
    for (size_t k = 0; k < i; ++k) release_handle(std::exchange(fetched[k], nullptr), HandleType::tensor);
    return status;
  }
  return {};
}

Status partition(const dtg_partitioner* given, dtg_dtype dtype, const int64_t* dims, size_t rank, int64_t* shards) {
  DTG_TRY(require(shards, "shards"));
  DTG_ASSIGN(const Partitioner partitioner, read_partitioner(given));
  DTG_TRY(require_array(dims, rank, "dims"));
  if (!dtype_is_known(dtype)) return invalid_argument("partition a variable: %d is no element type", dtype);
  DTG_ASSIGN(*shards, partitioner.shards(static_cast<DType>(dtype), {dims, rank}));
  return {};
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_coordinator_create(dtg_session* session, const dtg_coordinator_options* options, dtg_coordinator** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return create(s, options, out); });
}
dtg_coordinator* dtg_coordinator_retain(dtg_coordinator* coordinator) noexcept {
  return retain_handle(coordinator, HandleType::coordinator);
}
void dtg_coordinator_release(dtg_coordinator* coordinator) noexcept { release_handle(coordinator, HandleType::coordinator); }

dtg_error* dtg_coordinator_prepare(dtg_coordinator* coordinator, const dtg_run_args* args, dtg_value worker, dtg_closure** out) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) { return prepare(c, args, worker, out); });
}
dtg_closure* dtg_closure_retain(dtg_closure* closure) noexcept { return retain_handle(closure, HandleType::closure); }
void dtg_closure_release(dtg_closure* closure) noexcept { release_handle(closure, HandleType::closure); }

dtg_error* dtg_coordinator_create_per_worker(dtg_coordinator* coordinator, dtg_closure* closure, const dtg_tensor* const* feed_tensors,
                                             size_t num_feeds) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) { return per_worker(c, closure, feed_tensors, num_feeds); });
}
dtg_error* dtg_coordinator_schedule(dtg_coordinator* coordinator, dtg_closure* closure, const dtg_tensor* const* feed_tensors,
                                    size_t num_feeds, const dtg_schedule_options* options, dtg_remote_value** out) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) { return schedule(c, closure, feed_tensors, num_feeds, options, out); });
}
dtg_error* dtg_coordinator_join(dtg_coordinator* coordinator, int64_t timeout_ns, dtg_cancellation* cancellation) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) -> Status {
    const HeldCancellation held(cancellation);
    DTG_TRY(held.status());
    return c.join(timeout_ns, held.get());
  });
}
dtg_error* dtg_coordinator_done(dtg_coordinator* coordinator, int32_t* done) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) -> Status {
    DTG_TRY(require(done, "done"));
    DTG_ASSIGN(const bool is_done, c.done());
    *done = is_done ? 1 : 0;
    return {};
  });
}
dtg_error* dtg_coordinator_cancel(dtg_coordinator* coordinator) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) -> Status {
    c.cancel();
    return {};
  });
}
dtg_error* dtg_coordinator_status(dtg_coordinator* coordinator, dtg_string** out) noexcept {
  return with_coordinator(coordinator, [&](Coordinator& c) -> Status {
    DTG_TRY(require(out, "out"));
    return give(HandleType::string, make_ref<StringObject>(c.describe()), out);
  });
}

dtg_error* dtg_remote_value_fetch(dtg_remote_value* value, dtg_tensor** fetched, size_t num_fetches, int64_t timeout_ns,
                                  dtg_cancellation* cancellation) noexcept {
  return with<RemoteValueObject>(value, HandleType::remote_value,
                                 [&](RemoteValueObject& v) { return fetch(v, fetched, num_fetches, timeout_ns, cancellation); });
}
dtg_remote_value* dtg_remote_value_retain(dtg_remote_value* value) noexcept { return retain_handle(value, HandleType::remote_value); }
void dtg_remote_value_release(dtg_remote_value* value) noexcept { release_handle(value, HandleType::remote_value); }

dtg_error* dtg_partitioner_shards(const dtg_partitioner* partitioner, dtg_dtype dtype, const int64_t* dims, size_t rank,
                                  int64_t* shards) noexcept {
  return guard([&] { return partition(partitioner, dtype, dims, rank, shards); });
}
dtg_error* dtg_shard_rows(int64_t rows, int64_t shards, int64_t shard, int64_t* first, int64_t* count) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(first, "first"));
    DTG_TRY(require(count, "count"));
    DTG_ASSIGN(const ShardRows found, shard_rows(rows, shards, shard));
    *first = found.first;
    *count = found.count;
    return {};
  });
}

}  // extern "C"
