// What hosts' threads do: preparing, scheduling, waiting, ending. What goes on by itself is in dispatch.cc.
#include "train/coordinator.h"

#include <algorithm>
#include <atomic>

#include "base/json.h"
#include "base/whereabouts.h"

namespace dtg {
namespace {

std::atomic<uint64_t> next_number{1};

}  // namespace

Coordinator::Coordinator(Ref<Session> session, Options options)
    : session_(std::move(session)),
      options_(std::move(options)),
      number_(next_number.fetch_add(1)),
      mailbox_(std::make_shared<Mailbox>()) {}

Coordinator::~Coordinator() = default;

Result<Ref<Coordinator>> Coordinator::create(Ref<Session> session, Options options) {
  if (options.capacity <= 0 || options.worker_timeout_ns <= 0 || options.server_timeout_ns <= 0 || options.closure_timeout_ns < 0 ||
      options.closure_losses <= 0) {
    return invalid_argument("create a coordinator: its capacity, timeouts and losses must be positive; 0 in the options is the default");
  }
  auto coordinator = Ref<Coordinator>::adopt(new Coordinator(std::move(session), std::move(options)));
  DTG_TRY(coordinator->find_tasks());
  coordinator->mailbox_->owner = coordinator;
  return coordinator;
}

Status Coordinator::find_tasks() {
  const Driver& driver = session_->driver();
  if (driver.is_local()) {
    return failed_precondition(
        "create a coordinator: the session is local; connect it to a cluster with tasks of the job \"%s\", which are plain servers",
        options_.job.c_str());
  }
  for (const std::string& task : driver.tasks()) {
    if (task == driver.home()) continue;
    DTG_ASSIGN(const DeviceName name, DeviceName::parse(task));
    DTG_ASSIGN(const Driver::Presence presence, driver.presence(task));
    Slot slot;
    slot.task = task;
    slot.life = presence.life;
    slot.number = name.task.value_or(0);
    if (name.job == options_.job) slots_.push_back(std::move(slot));
    else servers_.push_back(std::move(slot));
  }
  if (!slots_.empty()) return {};
  return failed_precondition("create a coordinator: the session sees no other task of the job \"%s\", and who would work?",
                             options_.job.c_str());
}

Result<Ref<RemoteClosure>> Coordinator::prepare(std::span<const Value> feeds, std::span<const Value> fetches,
                                                std::span<const NodeId> targets, Value worker) {
  const Graph& graph = session_->graph();
  for (Value feed : feeds) DTG_TRY(graph.check(feed).with_context("prepare a closure, feed"));
  for (Value fetch : fetches) DTG_TRY(graph.check(fetch).with_context("prepare a closure, fetch"));
  for (NodeId target : targets) DTG_TRY(graph.check_node(target).with_context("prepare a closure, target"));
  if (fetches.empty() && targets.empty())
    return invalid_argument("prepare a closure: nothing is asked for; name at least one fetch or target");
  auto closure = make_ref<RemoteClosure>();
  closure->coordinator = number_;
  closure->feeds.assign(feeds.begin(), feeds.end());
  closure->fetches.assign(fetches.begin(), fetches.end());
  closure->targets.assign(targets.begin(), targets.end());
  if (worker.valid()) {
    DTG_TRY(graph.check(worker).with_context("prepare a closure, worker"));
    const ValueInfo& info = graph.info(worker);
    if (info.dtype != DType::i64 || (info.shape.has_rank() && info.shape.rank() > 0))
      return invalid_argument("prepare a closure: `worker` must be an int64 scalar, and is %s%s", dtype_name(info.dtype),
                              info.shape.text().c_str());
    if (std::ranges::find(feeds, worker) != feeds.end())
      return invalid_argument("prepare a closure: `worker` is a feed too; it is fed by the coordinator, so leave it out of the feeds");
    closure->feeds.push_back(worker);
    closure->feeds_worker = true;
  }
  return closure;
}

Status Coordinator::check(const RemoteClosure& closure, std::span<const Tensor> inputs, const char* what) const {
  if (closure.coordinator != number_) return invalid_argument("%s: the closure was prepared by another coordinator", what);
  if (inputs.size() != closure.inputs())
    return invalid_argument("%s: the closure takes %zu tensors, and is given %zu", what, closure.inputs(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) return invalid_argument("%s: tensor %zu is missing", what, i);
    const DType wanted = session_->graph().info(closure.feeds[i]).dtype;
    if (inputs[i].dtype() != wanted)
      return invalid_argument("%s: tensor %zu is %s, and the closure takes %s", what, i, dtype_name(inputs[i].dtype()), dtype_name(wanted));
  }
  return {};
}

Status Coordinator::add_per_worker(Ref<RemoteClosure> closure, std::vector<Tensor> inputs) {
  DTG_TRY(check(*closure, inputs, "create per worker"));
  auto made = make_ref<RemoteValue>(std::move(closure), std::move(inputs), nullptr, 0);
  Status status;
  state_.change([&] {
    if (closed_) status = cancelled("create per worker: the coordinator is closed");
    else per_worker_.push_back(std::move(made));
  });
  if (status.ok()) wake();
  return status;
}

Status Coordinator::told(Status status) const { return told_by(std::move(status), session_->driver().task().name(), "schedule"); }

// Under the lock, when nothing goes on: the error goes to whoever asks first.
Status Coordinator::take_error() {
  draining_ = false;
  return std::exchange(error_, Status());
}

Result<Ref<RemoteValue>> Coordinator::schedule(Ref<RemoteClosure> closure, std::vector<Tensor> inputs, int64_t timeout_ns,
                                               Cancellation* cancellation, Ref<CompletionQueue> queue, uint64_t tag) {
  DTG_TRY(check(*closure, inputs, "schedule"));
  DTG_ASSIGN(const Deadline until, session_->time_limit(timeout_ns));
  if (cancellation) DTG_TRY(cancellation->status());
  Status status;
  Ref<RemoteValue> work;
  const bool over = wait_for(state_, session_->runtime().clock(), until, cancellation, [&] {
    if (closed_) {
      status = cancelled("schedule: the coordinator is closed");
      return true;
    }
    if (has_failed()) {
      if (!is_quiet()) return false;
      status = take_error();
      return true;
    }
    if (draining_ || static_cast<int64_t>(queue_.size()) >= options_.capacity) return false;
    work = make_ref<RemoteValue>(std::move(closure), std::move(inputs), std::move(queue), tag);
    queue_.push_back(work);
    return true;
  });
  if (!over) {
    if (cancellation && cancellation->is_cancelled()) return cancellation->status();
    std::string text;
    state_.change([&] { text = account(); });
    return told(deadline_exceeded("schedule a closure: there was no room for it until the deadline passed; %s", text.c_str()));
  }
  wake();
  if (!status.ok()) return told(std::move(status));
  return work;
}

Status Coordinator::join(int64_t timeout_ns, Cancellation* cancellation) {
  DTG_ASSIGN(const Deadline until, session_->time_limit(timeout_ns));
  if (cancellation) DTG_TRY(cancellation->status());
  Status status;
  const bool over = wait_for(state_, session_->runtime().clock(), until, cancellation, [&] {
    if (closed_) status = cancelled("join: the coordinator is closed");
    else if (!is_quiet()) return false;
    else if (has_failed()) status = take_error();
    else if (!queue_.empty()) return false;
    return true;
  });
  if (over) return told(std::move(status));
  if (cancellation && cancellation->is_cancelled()) return cancellation->status();
  std::string text;
  state_.change([&] { text = account(); });
  return told(deadline_exceeded("join: not all closures ended until the deadline passed; %s", text.c_str()));
}

Result<bool> Coordinator::done() {
  Status status;
  bool done = false;
  state_.change([&] {
    if (closed_) status = cancelled("done: the coordinator is closed");
    else if (!is_quiet()) return;
    else if (has_failed()) status = take_error();
    else done = queue_.empty();
  });
  if (!status.ok()) return told(std::move(status));
  return done;
}

void Coordinator::cancel() {
  state_.change([&] {
    if (closed_ || draining_ || (queue_.empty() && is_quiet())) return;
    draining_ = true;
    drain_why_ = cancelled("the closure was cancelled with all that its coordinator had scheduled");
  });
  wake();
}

void Coordinator::close() {
  Ref<Coordinator> kept;
  {
    const std::lock_guard lock(mailbox_->mutex);
    kept = std::move(mailbox_->owner);
    mailbox_->owner = nullptr;
  }
  if (!kept) return;
  std::vector<Ref<RemoteValue>> works;
  std::vector<Ref<AsyncRun>> runs;
  state_.change([&] {
    closed_ = true;
    works.assign(queue_.begin(), queue_.end());
    queue_.clear();
    for (Slot& slot : slots_) {
      if (slot.run) runs.push_back(std::move(slot.run));
      if (slot.work && !slot.resource) works.push_back(std::move(slot.work));
      slot.work = nullptr;
      slot.busy = false;
    }
    ended_.clear();
    found_.clear();
  });
  for (const Ref<AsyncRun>& run : runs) run->cancel();
  for (const Ref<RemoteValue>& work : works) work->end(cancelled("the coordinator was closed before the closure ended"), {});
}

bool Coordinator::is_busy() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.busy; });
}

// Under the lock: what there is to do, who is at it, and who is missing.
std::string Coordinator::account() const {
  std::string busy, missing;
  for (const Slot& slot : slots_) {
    if (slot.busy) busy += (busy.empty() ? "" : ", ") + slot.task;
    else if (slot.looking || !slot.why.ok()) missing += (missing.empty() ? "" : "; ") + slot.task + " (" + slot.why.message() + ")";
  }
  for (const Other& server : servers_) {
    if (server.looking) missing += (missing.empty() ? "" : "; ") + server.task + " (" + server.why.message() + ")";
  }
  return format("%zu wait, under way on %s; missing: %s", queue_.size(), busy.empty() ? "no worker" : busy.c_str(),
                missing.empty() ? "nobody" : missing.c_str());
}

std::string Coordinator::describe() {
  Json::Array workers, servers;
  int64_t waiting = 0;
  state_.change([&] {
    waiting = static_cast<int64_t>(queue_.size());
    for (const Slot& slot : slots_) {
      workers.emplace_back(Json::Object{{"task", slot.task},
                                        {"state", slot.looking ? "lost"
                                                  : slot.busy  ? "busy"
                                                               : "idle"},
                                        {"closures", slot.closures},
                                        {"losses", slot.losses}});
    }
    for (const Other& server : servers_)
      servers.emplace_back(Json::Object{{"task", server.task}, {"state", server.looking ? "lost" : "there"}});
  });
  return Json(Json::Object{{"waiting", waiting}, {"workers", std::move(workers)}, {"servers", std::move(servers)}}).text();
}

}  // namespace dtg
