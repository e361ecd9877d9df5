// Learning the cluster, and making plans for it.
#include "cluster/driver.h"

#include <algorithm>

#include "base/json.h"
#include "cluster/plan_making.h"

namespace dtg {
namespace {

// Of a client that is no task of the cluster: nothing can be placed there, feeds enter and fetches leave.
constexpr const char* kClient = "/job:session/replica:0/task:0";
// The task of a session that knows no other.
constexpr const char* kLocal = "/job:localhost/replica:0/task:0";

// How long a round of connecting waits for one task; at least so long that one who is there can answer.
constexpr int64_t kRoundNs = 1'000'000'000;
constexpr int64_t kRoundLeastNs = 100'000'000;
// The server of this process at that target, if there is one.
std::optional<Directory::Entry> find_here(const Host& host, const Address& target) {
  return host.directory ? host.directory->find(target.text()) : std::nullopt;
}

// One question to all workers. Those who do not answer in time have said that they did not.
template <class R>
class Asked final {
 public:
  explicit Asked(const std::vector<Ref<Worker>>& workers) : workers_(workers), shared_(std::make_shared<Shared>()) {
    shared_->answers.resize(workers.size());
  }
  std::function<void(R)> taker(size_t i) {
    return [shared = shared_, i](R answer) { shared->told.change([&] { shared->answers[i] = std::move(answer); }); };
  }
  // Until all have answered, or one so.
  template <class Fn>
  void wait_for_any(const Clock& clock, Deadline deadline, Fn&& is_it) {
    shared_->told.wait(clock, late(deadline), [&] {
      return all_answered() || std::ranges::any_of(shared_->answers, [&](const auto& answer) { return answer && is_it(*answer); });
    });
  }
  template <class Fn>
  bool has_any(Fn&& is_it) {
    bool has = false;
    shared_->told.change(
        [&] { has = std::ranges::any_of(shared_->answers, [&](const auto& answer) { return answer && is_it(*answer); }); });
    return has;
  }
  std::vector<R> wait(const Clock& clock, Deadline deadline) {
    shared_->told.wait(clock, late(deadline), [&] { return all_answered(); });
    std::vector<R> answers;
    shared_->told.change([&] {
      for (auto& answer : shared_->answers) answers.push_back(answer ? std::move(*answer) : R(silence_of(*workers_[answers.size()])));
    });
    return answers;
  }

 private:
  struct Shared {
    Condition told;  // guards answers
    std::vector<std::optional<R>> answers;
  };
  static Status silence_of(const Worker& worker) {
    return deadline_exceeded("%s did not answer until the deadline passed", worker.name().c_str()).at_peer(worker.name());
  }
  // Whoever is asked answers by the deadline, and names itself; so it gets a moment more.
  static Deadline late(Deadline deadline) { return {deadline.at_ns > INT64_MAX - 50'000'000 ? INT64_MAX : deadline.at_ns + 50'000'000}; }
  bool all_answered() const {
    return std::ranges::all_of(shared_->answers, [](const auto& answer) { return answer.has_value(); });
  }
  const std::vector<Ref<Worker>>& workers_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace

Driver::Driver(const Host& host, const Planning& planning, Ref<RefCounted> owner)
    : owner_(std::move(owner)),
      host_(host),
      planning_(planning),
      session_(host.seams.random->u64() | 1),
      absentees_(make_ref<Absentees>(*host.seams.clock)) {}

Driver::~Driver() { close(); }

Ref<Driver> Driver::create(Host host, const Planning& planning, const std::optional<Directory::Entry>& here, Ref<RefCounted> owner) {
  if (here) {
    host.security = here->security;
    host.shared_memory = here->shared_memory;
  }
  return Ref<Driver>::adopt(new Driver(host, planning, std::move(owner)));
}

Deadline Driver::within(int64_t time_ns, Deadline deadline) const {
  return {std::min(Deadline::after(*host_.seams.clock, time_ns).at_ns, deadline.at_ns)};
}

Deadline Driver::looked_for(int64_t wanted_ns, int64_t time_ns, Deadline deadline) const {
  const int64_t until_ns = std::max(wanted_ns + time_ns, within(kRoundLeastNs, Deadline::never()).at_ns);
  return {std::min(until_ns, deadline.at_ns)};
}

void Driver::close() {
  for (const Ref<Worker>& worker : workers_) worker->close();
}

Result<Ref<Driver>> Driver::connect(const Host& host, const Planning& planning, const Timing& timing, const Address& target,
                                    Deadline deadline, Ref<RefCounted> owner) {
  const auto here = find_here(host, target);
  auto driver = create(host, planning, here, std::move(owner));
  DTG_TRY(here ? driver->learn_here(timing, *here, deadline) : driver->learn(timing, target, deadline));
  driver->placer_.emplace(driver->devices_, host.kernels, planning.soft_placement);
  return driver;
}

Result<Ref<Driver>> Driver::local(const Host& host, const Planning& planning, const DeviceWish& wish, Ref<RefCounted> owner) {
  auto driver = create(host, planning, std::nullopt, owner);
  driver->is_local_ = true;
  DTG_ASSIGN(std::vector<Device> devices, make_devices(host, kLocal, wish));
  driver->live_at(make_ref<Task>(host, kLocal, std::move(devices), std::move(owner)));
  DTG_TRY(driver->add_devices(0));
  return driver;
}

// This task is home. The last of the workers, as its number is known when the others are.
void Driver::live_at(Ref<Task> task) {
  home_ = make_ref<LocalWorker>(std::move(task), planning_);
  map_.home = static_cast<uint32_t>(workers_.size());
  workers_.push_back(Ref<Worker>::share(home_.get()));
  for (const Ref<Worker>& worker : workers_) map_.tasks.push_back(worker->name());
}

Status Driver::add_devices(uint32_t task) {
  Worker& worker = *workers_[task];
  const std::vector<std::string> names = worker.devices();
  DTG_ASSIGN(const std::vector<Device> devices, parse_devices(names));
  for (const Device& device : devices) {
    if (task_of_device(device.text) != worker.name()) {
      return data_loss("%s says that it has the device %s", worker.name().c_str(), device.text.c_str());
    }
    map_.task_of_device.push_back(task);
    devices_.push_back(device);
  }
  return {};
}

// All at once, so that a task that is missing takes no time from the others and the error names exactly those who are. Where one can
// never be reached, the others get no more than a round.
Status Driver::connect_all(Deadline deadline) {
  const Clock& clock = *host_.seams.clock;
  Asked<Status> asked(workers_);
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->connect(deadline, asked.taker(i));
  const auto is_hopeless = [](const Status& status) {
    return !status.ok() && status.code() != Code::unavailable && status.code() != Code::deadline_exceeded;
  };
  asked.wait_for_any(clock, deadline, is_hopeless);
  const bool hopeless = asked.has_any(is_hopeless);
  std::string missing;
  Status first;
  for (const Status& status : asked.wait(clock, hopeless ? within(kRoundNs, deadline) : deadline)) {
    if (status.ok()) continue;
    missing += (missing.empty() ? "" : "; ") + status.message();
    if (first.ok() || (!is_hopeless(first) && is_hopeless(status))) first = status;
  }
  return first.ok() ? first : Status(first.code(), "connect to the cluster: " + missing, first.origin());
}

Result<std::string> Driver::look(const Host& host, const Timing& timing, const Address& target, Deadline deadline, Ref<RefCounted> owner) {
  auto driver = create(host, {}, find_here(host, target), std::move(owner));
  DTG_TRY(driver->meet(timing, target, deadline));
  return driver->inspect(deadline);
}

// The task at the target, connected, and who else there is.
Status Driver::meet(const Timing& timing, const Address& target, Deadline deadline) {
  workers_.push_back(make_ref<RemoteWorker>(host_, timing, "", target, "", session_, false, absentees_));
  DTG_TRY(connect_all(deadline));
  DTG_ASSIGN(const ClusterSpec cluster, ClusterSpec::parse(workers_[0]->cluster()));
  return add_others(cluster, workers_[0]->name(), "", {}, timing);
}

Status Driver::learn(const Timing& timing, const Address& target, Deadline deadline) {
  DTG_TRY(meet(timing, target, deadline));
  DTG_TRY(connect_all(deadline));
  // Its own task has a device for the home parts, which nothing is placed on.
  DTG_ASSIGN(std::vector<Device> devices, make_devices(host_, kClient, {}));
  live_at(make_ref<Task>(host_, kClient, std::move(devices), owner_));
  for (uint32_t task = 0; task < map_.home; ++task) DTG_TRY(add_devices(task));
  return {};
}

Status Driver::learn_here(const Timing& timing, const Directory::Entry& here, Deadline deadline) {
  if (here.task->log()) {
    return unimplemented("connect a session to %s in its own process: it keeps its state in a log, which sees what other processes ask for",
                         here.task->name().c_str());
  }
  DTG_TRY(add_others(here.cluster, here.task->name(), here.task->name(), here.filters, timing));
  DTG_TRY(connect_all(deadline));
  live_at(here.task);
  DTG_TRY(add_devices(map_.home));
  for (uint32_t task = 0; task < map_.home; ++task) DTG_TRY(add_devices(task));
  return {};
}

// All but `known`. A task is seen if it matches one of the filters, or there are none. The session speaks for `self`.
Status Driver::add_others(const ClusterSpec& cluster, const std::string& known, const std::string& self,
                          const std::vector<std::string>& filters, const Timing& timing) {
  party_ = party_of(cluster, self);
  self_ = self;
  attendance_home_ = Attendance::home_of(cluster);
  std::vector<DeviceName> wanted;
  for (const std::string& filter : filters) {
    DTG_ASSIGN(DeviceName name, DeviceName::parse(filter));
    wanted.push_back(std::move(name));
  }
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (task.name() == known) continue;
    DTG_ASSIGN(const DeviceName name, DeviceName::parse(task.name()));
    const bool seen =
        wanted.empty() || std::ranges::any_of(wanted, [&](const DeviceName& filter) { return DeviceName::intersect(filter, name).ok(); });
    if (seen) workers_.push_back(make_ref<RemoteWorker>(host_, timing, task.name(), task.address, self, session_, false, absentees_));
  }
  return {};
}

// What one of these makes for the other goes through home from now on.
Status Driver::keep_apart(uint32_t from, const std::vector<std::string>& others) {
  for (const std::string& other : others) {
    const auto at = std::ranges::find(map_.tasks, other);
    const auto to = static_cast<uint32_t>(at - map_.tasks.begin());
    if (at == map_.tasks.end() || !map_.apart.insert({from, to}).second) {
      return data_loss("%s cannot reach %s, to which it has nothing to send", map_.tasks[from].c_str(), other.c_str());
    }
  }
  return {};
}

Result<Placer*> Driver::placer_for(const std::string& task) {
  if (task.empty()) return &*placer_;
  const auto known = placers_.find(task);
  if (known != placers_.end()) return &known->second;
  DTG_ASSIGN(const DeviceName name, DeviceName::parse(task));
  return &placers_.try_emplace(task, *placer_, name).first->second;
}

Result<Driver::Presence> Driver::presence(const std::string& task) const {
  for (const Ref<Worker>& worker : workers_) {
    if (worker->name() == task) return Presence{worker->is_there(), worker->life()};
  }
  return not_found("the session sees no task %s", task.c_str());
}

void Driver::look_for(const std::string& task, Deadline deadline, Done done) {
  for (const Ref<Worker>& worker : workers_) {
    if (worker->name() == task) return worker->connect(deadline, std::move(done));
  }
  done(not_found("the session sees no task %s", task.c_str()));
}

Result<Ref<PartitionedPlan>> Driver::make_plan(Ref<Graph> graph, PlanRequest request, Deadline deadline, int64_t wanted_ns,
                                               Cancellation* cancellation) {
  const auto making = make_ref<PlanMaking>(Ref<Driver>::share(this), std::move(graph), std::move(request), deadline, wanted_ns);
  struct GivesUp final : Cancellation::Listener {
    GivesUp(PlanMaking& m, Cancellation* c) : making(m), cancellation(c) {
      if (cancellation && !cancellation->add(*this)) cancelled();
    }
    ~GivesUp() {
      if (cancellation) cancellation->remove(*this);
    }
    void cancelled() override { making.give_up(cancellation->status()); }
    PlanMaking& making;
    Cancellation* const cancellation;
  } listening(*making, cancellation);
  while (!making->advance()) {
    Awaited<Status> answers;
    making->when_answered([told = answers.taker()] { told({}); });
    const Status status = answers.wait(*host_.seams.clock, deadline);
    if (!status.ok()) making->give_up(status.with_context("plan a run over the cluster"));
  }
  return making->take();
}

Result<PlanPages> Driver::explain(Ref<Graph> graph, PlanRequest request, Deadline deadline) const {
  if (workers_.size() == 1) return home_->explain(std::move(graph), std::move(request), deadline);
  Placer placer = *placer_;
  return explain_parts(home_->context(placer, deadline), *graph, request, map_);
}

Status Driver::end_job(Deadline deadline) {
  if (is_local_) return failed_precondition("end the job: this session is local, there are no other tasks");
  // A task that left already is not waited for.
  const Deadline there = within(kRoundLeastNs, deadline);
  Asked<Status> asked(workers_);
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->reach(there, [worker = workers_[i], deadline, done = asked.taker(i)](Status status) {
      if (status.ok()) worker->end_job(deadline, done);
      else done(std::move(status));
    });
  }
  for (const Status& status : asked.wait(*host_.seams.clock, deadline)) {
    const bool gone = status.code() == Code::unavailable || status.code() == Code::aborted;
    if (!status.ok() && !gone) return status;
  }
  return {};
}

Result<std::string> Driver::inspect(Deadline deadline) {
  if (is_local_) return failed_precondition("inspect the cluster: this session is local, there are no other tasks");
  const Deadline there = within(kRoundNs, deadline);
  Asked<Result<std::string>> asked(workers_);
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->reach(there, [worker = workers_[i], deadline, done = asked.taker(i)](const Status& status) {
      if (status.ok()) worker->inspect(0, deadline, done);
      else done(status);
    });
  }
  const auto texts = asked.wait(*host_.seams.clock, deadline);
  std::string list;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (home_ && workers_[i].get() == home_.get()) continue;  // it can ask itself
    list += list.empty() ? "" : ",";
    list +=
        texts[i].ok() ? texts[i].value() : Json(Json::Object{{"task", workers_[i]->name()}, {"error", texts[i].status().message()}}).text();
  }
  return "[" + list + "]";
}

namespace {

// What a task says of a run; an error where it cannot say it, or not yet.
Result<Driver::Outcome> read_outcome(const std::string& name, const Result<std::string>& text) {
  DTG_TRY(text.status());
  DTG_ASSIGN(const Json json, parse_json(text.value(), "outcome", {}));
  const Json* const found = json.find("outcome");
  if (!found) return unimplemented("%s runs a release of dtg that does not tell what became of a run", name.c_str());
  const auto says = [&](const char* what) {
    const Json* const value = found->find(what);
    return value && value->boolean() && *value->boolean();
  };
  if (says("goes_on")) return unavailable("the run is still under way at %s", name.c_str());
  if (says("forgotten")) return Driver::Outcome::forgotten;
  const Json* const units = found->find("units");
  return units && units->integer() && *units->integer() > 0 ? Driver::Outcome::updated : Driver::Outcome::nothing;
}

}  // namespace

Result<Driver::Outcome> Driver::outcome(uint64_t write, Deadline deadline) {
  Asked<Result<std::string>> asked(workers_);
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (home_ && workers_[i].get() == home_.get()) {
      asked.taker(i)(std::string(R"({"outcome":{"units":0}})"));
      continue;
    }
    workers_[i]->reach(deadline, [worker = workers_[i], write, deadline, done = asked.taker(i)](const Status& status) {
      if (status.ok()) worker->inspect(write, deadline, done);
      else done(status);
    });
  }
  Outcome all = Outcome::nothing;
  const auto texts = asked.wait(*host_.seams.clock, deadline);
  for (size_t i = 0; i < workers_.size(); ++i) {
    const auto one = read_outcome(workers_[i]->name(), texts[i]);
    if (!one.ok()) return one.status().with_context("ask what became of a run").in_phase("run");
    if (all == Outcome::nothing || one.value() == Outcome::updated) all = one.value();
  }
  return all;
}

Status Driver::reset(const std::vector<std::string>& containers, Deadline deadline) {
  // All of it, or nothing.
  for (const Ref<Worker>& worker : workers_) {
    if (worker.get() == home_.get()) continue;
    DTG_TRY(Rights(party_, self_, worker->name()).check(Verb::reset, "reset containers"));
  }
  Asked<Status> asked(workers_);
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->connect(deadline, [worker = workers_[i], containers, deadline, done = asked.taker(i)](Status status) {
      if (status.ok()) worker->reset(containers, deadline, done);
      else done(std::move(status));
    });
  }
  for (const Status& status : asked.wait(*host_.seams.clock, deadline)) DTG_TRY(status);
  return {};
}

}  // namespace dtg
