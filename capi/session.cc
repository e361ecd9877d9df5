// dtg/session.h: sessions, callables, asynchronous runs and completion queues. Holds the handles for the length of a
// call, checks what the host gave, and calls session/. Any thread.
#include "dtg/session.h"

#include <memory>

#include "capi/cancellation.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "capi/security.h"
#include "session/async_run.h"

namespace dtg::capi {
namespace {

constexpr size_t kInline = 16;

// A list on the stack for the usual few entries, on the heap for more. Only as many as are asked for are made: every call
// makes a few of these, mostly for one or two entries.
template <class T>
class Few {
 public:
  explicit Few(size_t count) : count_(count), many_(count > kInline ? new T[count]() : nullptr), data_(many_ ? many_.get() : few_) {
    if (!many_) std::uninitialized_value_construct_n(few_, count_);
  }
  ~Few() {
    if (!many_) std::destroy_n(few_, count_);
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  std::span<T> span() { return {data_, count_}; }

 private:
  const size_t count_;
  const std::unique_ptr<T[]> many_;
  union {
    T few_[kInline];
  };
  T* const data_;
};

// The tensors behind an array of handles, each held for the length of the call.
class HeldTensors {
 public:
  explicit HeldTensors(size_t count) : cells_(count), tensors_(count) {}
  ~HeldTensors() {
    for (size_t i = 0; i < held_; ++i) {
      if (cells_[i]) drop(cells_[i], HandleType::tensor);
    }
  }
  Status take(const dtg_tensor* const* handles, size_t count, const char* what) {
    for (size_t i = 0; i < count; ++i) {
      Cell* const cell = reinterpret_cast<Cell*>(const_cast<dtg_tensor*>(handles[i]));
      if (!cell) return invalid_argument("%s[%zu] is NULL", what, i);
      if (!hold(cell, HandleType::tensor)) {
        return invalid_argument("%s[%zu] is not an open tensor: it was released, or is a handle of another type", what, i);
      }
      cells_[i] = cell;
      held_ = i + 1;
      tensors_[i] = &static_cast<TensorObject*>(cell->object)->tensor;
    }
    return {};
  }
  std::span<const Tensor* const> span() { return {tensors_.data(), held_}; }

 private:
  Few<Cell*> cells_;
  Few<const Tensor*> tensors_;
  size_t held_ = 0;
};

// The tensors to fetch into, each held for the length of the call, and the new handles for those that were not given.
class Fetched {
 public:
  explicit Fetched(size_t count) : count_(count), cells_(count), tensors_(count) {}
  ~Fetched() {
    for (size_t i = 0; i < count_; ++i) {
      if (cells_[i]) drop(cells_[i], HandleType::tensor);
    }
  }
  Status take(dtg_tensor** slots) {
    for (size_t i = 0; i < count_; ++i) {
      if (!slots || !slots[i]) continue;
      Cell* const cell = reinterpret_cast<Cell*>(slots[i]);
      if (!hold(cell, HandleType::tensor)) return invalid_argument("fetched[%zu] is neither NULL nor an open tensor", i);
      cells_[i] = cell;
      const auto& object = *static_cast<TensorObject*>(cell->object);
      if (object.read_only) return invalid_argument("fetched[%zu] is a tensor around read-only memory; give another one, or NULL", i);
      tensors_[i] = object.tensor.borrowed();
    }
    return {};
  }
  Status give_back(dtg_tensor** slots) {
    Few<dtg_tensor*> made(count_);
    for (size_t i = 0; i < count_; ++i) {
      if (slots[i]) continue;
      const Status status = give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensors_[i]))), &made[i]);
      if (!status.ok()) {
        for (size_t k = 0; k < i; ++k) release_handle(made[k], HandleType::tensor);
        return status;
      }
    }
    for (size_t i = 0; i < count_; ++i) {
      if (made[i]) slots[i] = made[i];
    }
    return {};
  }
  std::span<Tensor> span() { return tensors_.span(); }

 private:
  const size_t count_;
  Few<Cell*> cells_;
  Few<Tensor> tensors_;
};

constexpr size_t kListMax = size_t{1} << 20;

// What a run asks, read from the host's struct.
struct Request {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  std::vector<Value> more;  // when there are many
  Value few[3 * kInline];
  NodeId few_targets[kInline];
  std::vector<NodeId> more_targets;
  std::span<const Value> feeds, fetches;
  std::span<const NodeId> targets;

  Status read(const dtg_run_args* given, const Graph& graph) {
    DTG_TRY(read_struct(given, sizeof(dtg_run_args), "dtg_run_args", &args));
    DTG_TRY(require_array(args.feeds, args.num_feeds, "feeds"));
    DTG_TRY(require_array(args.fetches, args.num_fetches, "fetches"));
    DTG_TRY(require_array(args.targets, args.num_targets, "targets"));
    if (args.num_feeds > kListMax || args.num_fetches > kListMax || args.num_targets > kListMax) {
      return invalid_argument("dtg_run_args: a count of more than %zu cannot be right", kListMax);
    }
    Value* values = few;
    if (args.num_feeds + args.num_fetches > 2 * kInline) {
      more.resize(args.num_feeds + args.num_fetches);
      values = more.data();
    }
    for (size_t i = 0; i < args.num_feeds; ++i) values[i] = value_of(args.feeds[i]);
    for (size_t i = 0; i < args.num_fetches; ++i) values[args.num_feeds + i] = value_of(args.fetches[i]);
    feeds = {values, args.num_feeds};
    fetches = {values + args.num_feeds, args.num_fetches};
    NodeId* nodes = few_targets;
    if (args.num_targets > kInline) {
      more_targets.resize(args.num_targets);
      nodes = more_targets.data();
    }
    for (size_t i = 0; i < args.num_targets; ++i) {
      const Value value = value_of(args.targets[i]);
      DTG_TRY(check_owner(graph, value));
      nodes[i] = value.node();
    }
    targets = {nodes, args.num_targets};
    return {};
  }
};

Status connect(dtg_runtime* runtime, std::string_view target, dtg_graph* graph, const dtg_session_options* given, dtg_session** out) {
  DTG_TRY(require(out, "out"));
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_session_options), "dtg_session_options", &options));
  const Held<GraphObject> held(graph, HandleType::graph);
  DTG_TRY(held.status());
  if (held->graph->outer_tag() != 0) {
    return invalid_argument("connect a session: the graph is the body of the function \"%s\"; connect to the graph that calls it",
                            held->graph->function_name().c_str());
  }
  Session::Options wanted;
  if (options.cpu_devices != 0) wanted.devices.cpu = options.cpu_devices;
  wanted.devices.emu = options.emu_devices;
  wanted.devices.emu_memory_bytes = options.emu_memory_bytes;
  wanted.soft_placement = options.soft_placement != 0;
  wanted.fusion = options.disable_fusion == 0;
  if (options.default_timeout_ns != 0) wanted.default_timeout_ns = options.default_timeout_ns;
  DTG_TRY(read_security(options.key_file, options.key_file_len, options.security, &wanted.security));
  if (options.connect_timeout_ns != 0) wanted.connect_timeout_ns = options.connect_timeout_ns;
  Ref<Runtime> home = held->runtime;
  if (runtime) {
    DTG_ASSIGN(home, runtime_of(runtime));
    if (home.get() != held->runtime.get()) {
      return invalid_argument("connect a session: the graph was made for another runtime; give that one, or NULL");
    }
  }
  DTG_ASSIGN(Ref<Session> session, Session::connect(std::move(home), target, held->graph, wanted));
  return give(HandleType::session, std::move(session), out);
}

// With `ran`: only where it is brief.
Status run(Session& session, const dtg_run_args* given, bool* ran) {
  Request request;
  DTG_TRY(request.read(given, session.graph()));
  const dtg_run_args& args = request.args;
  DTG_TRY(require_array(args.feed_tensors, args.num_feeds, "feed_tensors"));
  DTG_TRY(require_array(args.fetched, args.num_fetches, "fetched"));
  HeldTensors feeds(args.num_feeds);
  DTG_TRY(feeds.take(args.feed_tensors, args.num_feeds, "feed_tensors"));
  Fetched fetched(args.num_fetches);
  DTG_TRY(fetched.take(args.fetched));
  const HeldCancellation cancellation(args.cancellation);
  DTG_TRY(cancellation.status());
  const RunArgs asked{request.feeds, feeds.span(), request.fetches, request.targets, args.timeout_ns, cancellation.get(), {}, args.write};
  DTG_TRY(ran ? session.run_if_brief(asked, fetched.span(), ran) : session.run(asked, fetched.span()));
  return ran && !*ran ? Status() : fetched.give_back(args.fetched);
}

Status run_if_brief(Session& session, const dtg_run_args* given, int32_t* ran) {
  DTG_TRY(require(ran, "ran"));
  *ran = 0;
  bool has_run = false;
  Status status = run(session, given, &has_run);
  *ran = has_run ? 1 : 0;
  return status;
}

Status run_async(Session& session, const dtg_run_args* given, dtg_cq* cq, uint64_t tag, dtg_run** out) {
  Request request;
  DTG_TRY(request.read(given, session.graph()));
  const dtg_run_args& args = request.args;
  if (args.fetched) return invalid_argument("fetched must be NULL for an asynchronous run; take the results from the run");
  if (args.cancellation) return invalid_argument("cancellation must be NULL for an asynchronous run; dtg_run_cancel cancels it");
  DTG_TRY(require_array(args.feed_tensors, args.num_feeds, "feed_tensors"));
  const Held<CompletionQueue> queue(cq, HandleType::cq);
  DTG_TRY(queue.status());
  HeldTensors feeds(args.num_feeds);
  DTG_TRY(feeds.take(args.feed_tensors, args.num_feeds, "feed_tensors"));
  DTG_ASSIGN(Ref<AsyncRun> started,
             session.run_async({request.feeds, feeds.span(), request.fetches, request.targets, args.timeout_ns, nullptr, {}, args.write},
                               Ref<CompletionQueue>::share(queue.get()), tag));
  return out ? give(HandleType::run, std::move(started), out) : Status();
}

Status call(Callable& callable, const dtg_tensor* const* feed_tensors, size_t num_feeds, dtg_tensor** slots, size_t num_fetches,
            int64_t timeout_ns, Cancellation* cancellation) {
  DTG_TRY(require_array(feed_tensors, num_feeds, "feed_tensors"));
  DTG_TRY(require_array(slots, num_fetches, "fetched"));
  if (num_feeds != callable.feeds().size() || num_fetches != callable.fetches().size()) {
    return invalid_argument("call: prepared with %zu feeds and %zu fetches, called with %zu and %zu", callable.feeds().size(),
                            callable.fetches().size(), num_feeds, num_fetches);
  }
  HeldTensors feeds(num_feeds);
  DTG_TRY(feeds.take(feed_tensors, num_feeds, "feed_tensors"));
  Fetched fetched(num_fetches);
  DTG_TRY(fetched.take(slots));
  DTG_TRY(callable.run(feeds.span(), fetched.span(), timeout_ns, cancellation));
  return fetched.give_back(slots);
}

Status read_feeds(const dtg_plan_args& args, std::vector<FeedSpec>* feeds) {
  DTG_TRY(require_array(args.feeds, args.num_feeds, "feeds"));
  DTG_TRY(require_array(args.feed_dtypes, args.num_feeds, "feed_dtypes"));
  DTG_TRY(require_array(args.feed_dims, args.num_feeds, "feed_dims"));
  DTG_TRY(require_array(args.feed_ranks, args.num_feeds, "feed_ranks"));
  for (size_t i = 0; i < args.num_feeds; ++i) {
    if (!dtype_is_known(args.feed_dtypes[i]))
      return invalid_argument("feed_dtypes[%zu] is %d, which is no element type", i, args.feed_dtypes[i]);
    if (args.feed_ranks[i] > static_cast<size_t>(kRankMax)) {
      return invalid_argument("feed_ranks[%zu] is %zu; at most %d dimensions are possible", i, args.feed_ranks[i], kRankMax);
    }
    DTG_TRY(require_array(args.feed_dims[i], args.feed_ranks[i], "an entry of feed_dims"));
    DTG_ASSIGN(const Shape shape, Shape::make({args.feed_dims[i], args.feed_ranks[i]}));
    feeds->push_back({value_of(args.feeds[i]), static_cast<DType>(args.feed_dtypes[i]), shape});
  }
  return {};
}

Status plan_text(Session& session, const dtg_plan_args* given, dtg_string** out) {
  DTG_TRY(require(out, "out"));
  dtg_plan_args args = DTG_PLAN_ARGS_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_plan_args), "dtg_plan_args", &args));
  DTG_TRY(require_array(args.fetches, args.num_fetches, "fetches"));
  DTG_TRY(require_array(args.targets, args.num_targets, "targets"));
  if (args.num_feeds > kListMax || args.num_fetches > kListMax || args.num_targets > kListMax) {
    return invalid_argument("dtg_plan_args: a count of more than %zu cannot be right", kListMax);
  }
  PlanRequest request;
  DTG_TRY(read_feeds(args, &request.feeds));
  for (size_t i = 0; i < args.num_fetches; ++i) request.fetches.push_back(value_of(args.fetches[i]));
  for (size_t i = 0; i < args.num_targets; ++i) {
    DTG_TRY(check_owner(session.graph(), value_of(args.targets[i])));
    request.targets.push_back(value_of(args.targets[i]).node());
  }
  DTG_ASSIGN(const PlanPages pages, session.explain(std::move(request), args.timeout_ns));
  DTG_ASSIGN(std::string chosen, choose_pages(pages, text(args.pass, args.pass_len)));
  return give(HandleType::string, make_ref<StringObject>(std::move(chosen)), out);
}

Status next(CompletionQueue& queue, dtg_completion* events, size_t stride, size_t cap, int64_t timeout_ns, size_t* count) {
  DTG_TRY(require(count, "count"));
  DTG_TRY(require_array(events, cap, "events"));
  if (cap == 0) return invalid_argument("cap is 0: there is no room for a completion");
  if (stride == 0) stride = sizeof(dtg_completion);
  if (stride < sizeof(dtg_completion)) return invalid_argument("stride is %zu, less than a dtg_completion", stride);
  if (timeout_ns < 0 && timeout_ns != DTG_INFINITE)
    return invalid_argument("the timeout is %g s; it may not be negative, DTG_INFINITE waits for ever",
                            static_cast<double>(timeout_ns) * 1e-9);
  const Clock& clock = system_clock();
  const Deadline deadline = timeout_ns == DTG_INFINITE ? Deadline::never() : Deadline::after(clock, timeout_ns);
  CompletionQueue::Event taken[kInline];
  const size_t got = queue.next({taken, std::min(cap, kInline)}, clock, deadline);
  auto* at = reinterpret_cast<char*>(events);
  for (size_t i = 0; i < got; ++i, at += stride) {
    auto* event = reinterpret_cast<dtg_completion*>(at);
    event->tag = taken[i].tag;
    event->error = taken[i].status.ok() ? nullptr : to_error(taken[i].status);
  }
  *count = got;
  return {};
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_session_connect(dtg_runtime* runtime, const char* target, size_t target_len, dtg_graph* graph,
                               const dtg_session_options* options, dtg_session** out) noexcept {
  return guard([&] { return connect(runtime, target ? text(target, target_len) : "local", graph, options, out); });
}
dtg_error* dtg_session_run(dtg_session* session, const dtg_run_args* args) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return run(s, args, nullptr); });
}
dtg_error* dtg_session_run_if_brief(dtg_session* session, const dtg_run_args* args, int32_t* ran) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return run_if_brief(s, args, ran); });
}
dtg_error* dtg_session_run_async(dtg_session* session, const dtg_run_args* args, dtg_cq* cq, uint64_t tag, dtg_run** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return run_async(s, args, cq, tag, out); });
}
dtg_error* dtg_session_prepare(dtg_session* session, const dtg_run_args* args, dtg_callable** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) -> Status {
    DTG_TRY(require(out, "out"));
    Request request;
    DTG_TRY(request.read(args, s.graph()));
    DTG_ASSIGN(Ref<Callable> callable, s.prepare(request.feeds, request.fetches, request.targets));
    return give(HandleType::callable, std::move(callable), out);
  });
}
dtg_error* dtg_session_plan_text(dtg_session* session, const dtg_plan_args* args, dtg_string** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return plan_text(s, args, out); });
}
dtg_error* dtg_callable_run(dtg_callable* callable, const dtg_tensor* const* feed_tensors, size_t num_feeds, dtg_tensor** fetched,
                            size_t num_fetches, int64_t timeout_ns) noexcept {
  return with<Callable>(callable, HandleType::callable,
                        [&](Callable& c) { return call(c, feed_tensors, num_feeds, fetched, num_fetches, timeout_ns, nullptr); });
}
dtg_error* dtg_callable_run_cancellable(dtg_callable* callable, const dtg_tensor* const* feed_tensors, size_t num_feeds,
                                        dtg_tensor** fetched, size_t num_fetches, int64_t timeout_ns,
                                        dtg_cancellation* cancellation) noexcept {
  return with<Callable>(callable, HandleType::callable, [&](Callable& c) -> Status {
    const HeldCancellation held(cancellation);
    DTG_TRY(held.status());
    return call(c, feed_tensors, num_feeds, fetched, num_fetches, timeout_ns, held.get());
  });
}
dtg_callable* dtg_callable_retain(dtg_callable* callable) noexcept { return retain_handle(callable, HandleType::callable); }
void dtg_callable_release(dtg_callable* callable) noexcept { release_handle(callable, HandleType::callable); }

size_t dtg_session_device_count(const dtg_session* session) noexcept {
  const Held<Session> held(session, HandleType::session);
  return held ? held->devices().size() : 0;
}
const char* dtg_session_device_name(const dtg_session* session, size_t i) noexcept {
  const Held<Session> held(session, HandleType::session);
  return held && i < held->devices().size() ? held->devices()[i].text.c_str() : nullptr;
}

dtg_error* dtg_session_reset(dtg_session* session, const char* const* containers, size_t num_containers) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) -> Status {
    DTG_TRY(require_array(containers, num_containers, "containers"));
    std::vector<std::string> names;
    for (size_t i = 0; i < num_containers; ++i) {
      DTG_TRY(require(containers[i], "an entry of containers"));
      names.emplace_back(containers[i]);
    }
    return s.reset(names);
  });
}
dtg_error* dtg_session_close(dtg_session* session, int64_t timeout_ns) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return s.close(timeout_ns); });
}
dtg_session* dtg_session_retain(dtg_session* session) noexcept { return retain_handle(session, HandleType::session); }
void dtg_session_release(dtg_session* session) noexcept { release_handle(session, HandleType::session); }

dtg_error* dtg_cancellation_create(dtg_cancellation** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    return give(HandleType::cancellation, make_ref<Cancellation>(), out);
  });
}
void dtg_cancellation_cancel(dtg_cancellation* cancellation) noexcept {
  // As below.
  dtg_error_release(with<Cancellation>(cancellation, HandleType::cancellation, [](Cancellation& held) -> Status {
    held.cancel();
    return {};
  }));
}
dtg_cancellation* dtg_cancellation_retain(dtg_cancellation* cancellation) noexcept {
  return retain_handle(cancellation, HandleType::cancellation);
}
void dtg_cancellation_release(dtg_cancellation* cancellation) noexcept { release_handle(cancellation, HandleType::cancellation); }

void dtg_run_cancel(dtg_run* run) noexcept {
  // A cancel cannot report anything, so running out of memory inside it is swallowed.
  dtg_error_release(with<AsyncRun>(run, HandleType::run, [](AsyncRun& held) -> Status {
    held.cancel();
    return {};
  }));
}
dtg_error* dtg_run_take_result(dtg_run* run, size_t i, dtg_tensor** out) noexcept {
  return with<AsyncRun>(run, HandleType::run, [&](AsyncRun& held) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Tensor tensor, held.take(i));
    return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
  });
}
dtg_run* dtg_run_retain(dtg_run* run) noexcept { return retain_handle(run, HandleType::run); }
void dtg_run_release(dtg_run* run) noexcept { release_handle(run, HandleType::run); }

dtg_error* dtg_cq_create(dtg_cq** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(Ref<CompletionQueue> queue, CompletionQueue::create());
    return give(HandleType::cq, std::move(queue), out);
  });
}
dtg_error* dtg_cq_next(dtg_cq* cq, dtg_completion* events, size_t stride, size_t cap, int64_t timeout_ns, size_t* count) noexcept {
  return with<CompletionQueue>(cq, HandleType::cq, [&](CompletionQueue& q) { return next(q, events, stride, cap, timeout_ns, count); });
}
int32_t dtg_cq_fd(const dtg_cq* cq) noexcept {
  const Held<CompletionQueue> held(cq, HandleType::cq);
  return held ? held->descriptor() : -1;
}
dtg_cq* dtg_cq_retain(dtg_cq* cq) noexcept { return retain_handle(cq, HandleType::cq); }
void dtg_cq_release(dtg_cq* cq) noexcept { release_handle(cq, HandleType::cq); }

}  // extern "C"
