// What a coordinator does by itself, on the pool: who takes which closure, what a run's end means, and who is looked for.
#include <new>

#include "cluster/ledger.h"
#include "train/coordinator.h"

namespace dtg {
namespace {

// A closure that was cut short this often, while nobody was gone, has an error of its own.
constexpr int kStrays = 5;
// No closure begins while one that was begun so many earlier has not ended: tasks know that many writes, and several of each run.
constexpr uint64_t kWindow = Ledger::kRowsPerWriter / 4;
constexpr size_t kNamed = 8;

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

// Any thread. Whoever finds it awake leaves word.
void Coordinator::wake() {
  bool sleeping = false;
  state_.change([&] {
    sleeping = !std::exchange(awake_, true);
    again_ = true;
  });
  if (!sleeping) return;
  retain();  // until run() is over
  session_->runtime().pool().submit(this);
}

void Coordinator::run() {
  for (;;) {
    try {
      while (pump()) {
      }
    } catch (const std::bad_alloc&) {
      state_.change([&] {
        if (error_.ok()) error_ = resource_exhausted("give out closures: out of memory");
        draining_ = true;
        drain_why_ = error_;
      });
    }
    bool over = false;
    state_.change([&] {
      over = !again_;
      if (over) awake_ = false;
    });
    if (over) break;
  }
  release();
}

bool Coordinator::pump() {
  Doings doings;
  state_.change([&] {
    again_ = false;
    if (!closed_) decide(doings);
    telling_ = !doings.finished.empty();
  });
  if (doings.empty()) return false;
  act(doings);
  return true;
}

void Coordinator::decide(Doings& doings) {
  for (Ended& ended : std::exchange(ended_, {})) take_end(ended, doings);
  for (const Found& found : std::exchange(found_, {})) take_found(found, doings);
  if (draining_) drain(drain_why_, doings);
  if (!draining_) dispatch(doings);
}

// ---- ends --------------------------------------------------------------------------------------------------

void Coordinator::take_end(Ended& ended, Doings& doings) {
  Slot& slot = slots_[ended.slot];
  Ref<RemoteValue> work = std::move(slot.work);
  const bool resource = std::exchange(slot.resource, false);
  slot.run = nullptr;
  slot.busy = slot.stopped = false;
  Status status = ended.run ? ended.run->outcome() : ended.status;
  std::vector<Tensor> values;
  for (size_t i = 0; status.ok() && i < work->value_count(); ++i) {
    auto value = ended.run->take(i);
    if (value.ok()) values.push_back(value.take());
    else status = value.status();
  }
  if (!status.ok()) return take_failure(slot, resource ? Ref<RemoteValue>() : std::move(work), ended, status, doings);
  if (resource) {
    ++slot.made;
    return;
  }
  ++slot.closures;
  doings.finished.push_back({std::move(work), {}, std::move(values)});
}

// `work` is null where a worker's own resource was made.
void Coordinator::take_failure(Slot& slot, Ref<RemoteValue> work, const Ended& ended, const Status& status, Doings& doings) {
  const bool worker_is_there = met_again(slot);
  if (!worker_is_there) slot.why = status;
  Status lost;
  const bool servers_there = servers_are_there(doings, &lost);
  if (draining_) {
    if (work) doings.finished.push_back({std::move(work), drain_why_, {}});
    return;
  }
  const bool may_repeat = ended.run && ended.run->may_be_repeated();
  const bool may_pass = status.code() == Code::unavailable || status.code() == Code::aborted;
  if (!lost.ok()) {
    if (work) doings.finished.push_back({std::move(work), lost, {}});
    return fail(std::move(lost), doings);
  }
  // Somebody is gone: the closure waits for the next worker, or all wait for the server.
  const bool excused = !worker_is_there || !servers_there;
  if (work && !worker_is_there) work->lost_.push_back(slot.task);
  if (excused && !work) return;
  if (work && may_repeat && !is_deadly(*work) && (excused || (may_pass && ++work->strays_ <= kStrays))) {
    work->write_ = ended.run->write();
    queue_.push_front(std::move(work));
    return;
  }
  Status why = status;
  if (work && may_repeat && is_deadly(*work)) {
    why = status.with_context(format("closure %llu, at which %zu workers were lost, one after the other (%s), so that no other is given it",
                                     static_cast<unsigned long long>(work->started_), work->lost_.size(), joined(work->lost_).c_str()));
  } else if (work && excused && may_pass) {
    why = status.with_context(
        "closure, which changes more than variables, so that nobody knows what of it took place and no other worker may repeat it");
  }
  why = why.at_peer(slot.task).with_context((work ? "closure on " : "resource of ") + slot.task);
  if (work) doings.finished.push_back({std::move(work), why, {}});
  fail(std::move(why), doings);
}

// The worker is there, if perhaps in a new life; then its resources have to be made again.
bool Coordinator::met_again(Slot& slot) {
  const auto presence = session_->driver().presence(slot.task);
  const bool there = presence.ok() && presence.value().there;
  const bool same = there && presence.value().life == slot.life;
  if (!same && !slot.gone) ++slot.losses;
  slot.gone = !there;
  if (!there) return false;
  slot.life = presence.value().life;
  if (!same) slot.made = 0;
  return same;
}

// False: somebody is looked for. Where one is back without what it held, `lost` says so.
bool Coordinator::servers_are_there(Doings& doings, Status* lost) {
  bool all = true;
  for (size_t i = 0; i < servers_.size(); ++i) {
    Other& server = servers_[i];
    const auto presence = session_->driver().presence(server.task);
    const bool there = presence.ok() && presence.value().there;
    if (there && presence.value().life != server.life) {
      server.life = presence.value().life;
      *lost = unavailable("%s was started anew and what its variables held is gone: %s; initialise or restore them, then schedule again",
                          server.task.c_str(), lost_variables(server.task).c_str())
                  .at_peer(server.task)
                  .in_phase("schedule");
    }
    if (!there && !server.looking) seek(slots_.size() + i, doings);
    all = all && there;
  }
  return all;
}

std::string Coordinator::lost_variables(const std::string& task) const {
  const Graph& graph = session_->graph();
  const auto where = DeviceName::parse(task);
  std::string names;
  size_t count = 0;
  for (NodeId id = 0; where.ok() && id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (!node.inputs.empty() || node.outputs.empty() || node.outputs[0].dtype != DType::resource) continue;
    const auto device = DeviceName::parse(node.device);
    if (!device.ok() || device.value().job != where.value().job || device.value().task != where.value().task) continue;
    if (++count <= kNamed) names += (names.empty() ? "" : ", ") + std::string(node.name);
  }
  if (count > kNamed) names += format(" and %zu more", count - kNamed);
  return names.empty() ? "none of this graph" : names;
}

void Coordinator::seek(size_t i, Doings& doings) {
  Other& other = this->other(i);
  const auto presence = session_->driver().presence(other.task);
  other.looking = true;
  other.sought = presence.ok() ? presence.value().life : 0;
  doings.looks.push_back(i);
}

void Coordinator::take_found(const Found& found, Doings& doings) {
  Other& other = this->other(found.other);
  other.looking = false;
  other.why = found.status;
  const bool is_worker = found.other < slots_.size();
  const auto presence = session_->driver().presence(other.task);
  const bool there = presence.ok() && presence.value().there;
  // It was met and is gone once more, before anybody came to see it: it has its time anew.
  const bool was_met = found.status.ok() || (presence.ok() && presence.value().life != other.sought);
  if (!there && was_met) {
    other.why = unavailable("its connection was lost as soon as it was back");
    return seek(found.other, doings);
  }
  if (is_worker) {
    if (there) {
      (void)met_again(slots_[found.other]);
      other.why = {};
      return;
    }
    const bool some = std::ranges::any_of(slots_, [](const Slot& slot) { return slot.busy || (!slot.looking && slot.why.ok()); });
    if (!some && !draining_) fail(found.status.with_context("no worker is left"), doings);
    return;
  }
  if (there && presence.value().life == other.life) {
    other.why = {};
    return;
  }
  Status lost;
  if (there) (void)servers_are_there(doings, &lost);
  else
    lost = found.status.with_context(other.task + ", with " + lost_variables(other.task) + ", was lost and did not come back in time")
               .at_peer(other.task);
  other.why = {};
  if (!draining_) fail(std::move(lost), doings);
}

void Coordinator::fail(Status why, Doings& doings) {
  if (error_.ok()) error_ = why;
  draining_ = true;
  drain_why_ = cancelled("the closure was cancelled because another one failed: %s", why.message().c_str());
  drain(drain_why_, doings);
}

// What waits ends; what runs is told to, and ends by itself.
void Coordinator::drain(const Status& why, Doings& doings) {
  for (Ref<RemoteValue>& work : queue_) doings.finished.push_back({std::move(work), why, {}});
  queue_.clear();
  for (Slot& slot : slots_) {
    if (slot.busy && slot.run && !std::exchange(slot.stopped, true)) doings.stops.push_back(slot.run);
  }
  // An error is kept until somebody was told.
  if (is_quiet() && error_.ok()) draining_ = false;
}

// ---- beginnings --------------------------------------------------------------------------------------------

// Not while one of long ago goes on: tasks would forget it, and it could not be repeated.
bool Coordinator::may_start_fresh() {
  if (starts_ - oldest_ < kWindow) return true;
  oldest_ = starts_;
  for (const Slot& slot : slots_) {
    if (slot.work && slot.work->started_ != 0) oldest_ = std::min(oldest_, slot.work->started_);
  }
  for (const Ref<RemoteValue>& work : queue_) {
    if (work->started_ == 0) break;  // those that were given back stand in front
    oldest_ = std::min(oldest_, work->started_);
  }
  return starts_ - oldest_ < kWindow;
}

void Coordinator::dispatch(Doings& doings) {
  if (std::ranges::any_of(servers_, &Other::looking)) return;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const bool wanted = slot.made < per_worker_.size() || !queue_.empty();
    if (slot.busy || slot.looking || !wanted) continue;
    (void)met_again(slot);
    if (slot.gone) {
      if (slot.why.ok()) slot.why = unavailable("its connection was lost");
      seek(i, doings);
      continue;
    }
    slot.why = {};
    slot.resource = slot.made < per_worker_.size();
    if (slot.resource) {
      slot.work = per_worker_[slot.made];
    } else {
      if (queue_.empty() || (queue_.front()->started_ == 0 && !may_start_fresh())) continue;
      slot.work = std::move(queue_.front());
      queue_.pop_front();
      if (slot.work->started_ == 0) slot.work->started_ = ++starts_;
    }
    slot.busy = true;
    doings.starts.push_back({i, slot.work, slot.resource ? 0 : slot.work->write_});
  }
}

void Coordinator::act(Doings& doings) {
  if (!doings.finished.empty()) {
    for (Finished& each : doings.finished) each.work->end(told(std::move(each.status)), std::move(each.values));
    state_.change([&] { telling_ = false; });
  }
  for (const Ref<AsyncRun>& run : doings.stops) run->cancel();
  for (const size_t i : doings.looks) look(i);
  for (const Start& each : doings.starts) start(each);
}

void Coordinator::start(const Start& start) {
  const RemoteClosure& closure = *start.work->closure_;
  std::vector<Tensor> inputs;
  if (!start.work->read_inputs(&inputs)) return;  // it was closed meanwhile
  const Slot& slot = slots_[start.slot];          // its task and number never change
  Status status;
  Ref<AsyncRun> run;
  if (closure.feeds_worker) {
    auto number = Tensor::of<int64_t>(Shape(), std::span<const int64_t>(&slot.number, 1));
    if (number.ok()) inputs.push_back(number.take());
    else status = number.status();
  }
  if (status.ok()) {
    std::vector<const Tensor*> list;
    for (const Tensor& input : inputs) list.push_back(&input);
    RunArgs args{closure.feeds, list, closure.fetches, closure.targets, options_.closure_timeout_ns, nullptr, slot.task};
    auto begun = session_->run_at(args, start.write, [mailbox = mailbox_, i = start.slot](AsyncRun& ended) {
      const Ref<Coordinator> owner = mailbox->find();
      if (!owner) return;
      owner->state_.change([&] {
        if (!owner->closed_) owner->ended_.push_back({i, Ref<AsyncRun>::share(&ended), {}});
      });
      owner->wake();
    });
    if (begun.ok()) run = begun.take();
    else status = begun.status();
  }
  state_.change([&] {
    if (closed_) return;
    if (run) slots_[start.slot].run = run;
    else ended_.push_back({start.slot, nullptr, status});
    again_ = true;
  });
  // It was closed meanwhile, and nobody else knows of the run.
  bool closed = false;
  state_.change([&] { closed = closed_; });
  if (closed && run) run->cancel();
}

void Coordinator::look(size_t i) {
  const Clock& clock = session_->runtime().clock();
  const bool is_worker = i < slots_.size();
  const Deadline until = Deadline::after(clock, is_worker ? options_.worker_timeout_ns : options_.server_timeout_ns);
  session_->driver().look_for(other(i).task, until, [mailbox = mailbox_, i](Status status) {
    const Ref<Coordinator> owner = mailbox->find();
    if (!owner) return;
    owner->state_.change([&] {
      if (!owner->closed_) owner->found_.push_back({i, std::move(status)});
    });
    owner->wake();
  });
}

}  // namespace dtg
