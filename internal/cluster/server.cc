// Starting and stopping.
#include "cluster/server.h"

#include <algorithm>

#include "base/condition.h"
#include "base/last_out.h"
#include "base/spelling.h"
#include "cluster/connection.h"
#include "cluster/directory.h"
#include "cluster/group.h"
#include "cluster/recovery.h"
#include "cluster/security.h"
#include "exec/variable.h"

namespace dtg {
namespace {

constexpr int64_t kStopNs = int64_t{5} * 1'000'000'000;
constexpr int64_t kAgainNs = int64_t{10} * 1'000'000;

// The task that the options mean, when they do not say all of it.
Result<ClusterSpec::Task> own_task(const Server::Options& options) {
  std::string job = options.job;
  const auto& tasks = options.cluster.tasks();
  if (job.empty() && !tasks.empty() && std::ranges::all_of(tasks, [&](const auto& task) { return task.job == tasks[0].job; }))
    job = tasks[0].job;
  const ClusterSpec::Task* const task = options.cluster.find(job, options.task);
  if (task) return *task;
  if (job.empty() || options.task < 0) {
    return invalid_argument("start a server: it is not said which task of the cluster it is; TF_CONFIG says so by \"task\": {\"type\", "
                            "\"index\"}, options by job and task; the cluster is \"%.1000s\"",
                            options.cluster.text().c_str());
  }
  std::vector<std::string_view> jobs;
  for (const auto& each : options.cluster.jobs()) jobs.push_back(each.name);
  if (std::ranges::find(jobs, job) == jobs.end()) {
    return invalid_argument("start a server as /job:%.200s/task:%d: the cluster has no such job; %s", job.c_str(), options.task,
                            names_text(job, jobs).c_str());
  }
  return invalid_argument("start a server as /job:%s/task:%d: the cluster \"%s\" has no such task", job.c_str(), options.task,
                          options.cluster.text().c_str());
}

Host host_of(Host host, const Server::Options& options) {
  host.shared_memory = options.shared_memory;
  return host;
}

}  // namespace

Server::Server(const Host& host, Options options, Ref<Task> task, std::string target)
    : host_(host_of(host, options)),
      options_(std::move(options)),
      task_(std::move(task)),
      target_(std::move(target)),
      departures_(host.loop(), options_.timing, Presence::of(task_->store())) {}

// A release cannot fail, and connections must not outlive their server: where there is no memory for the end, it is tried again.
Server::~Server() {
  for (;;) {
    try {
      (void)stop(kStopNs).ok();
      return;
    } catch (const std::bad_alloc&) {
      const Clock& clock = *host_.seams.clock;
      Condition().wait(clock, Deadline::after(clock, kAgainNs), [] { return false; });
    }
  }
}

Result<Ref<Server>> Server::start(const Host& host, Options options, Ref<RefCounted> owner) {
  DTG_ASSIGN(const ClusterSpec::Task self, own_task(options));
  DTG_TRY(options.devices.check("start a server"));
  if (options.devices.emu > 0 && !options.state_directory.empty()) {
    return unimplemented("start a server: emu_devices with a state_dir; what such a device holds is not kept");
  }
  DTG_ASSIGN(std::vector<Device> devices, make_devices(host, self.name(), options.devices));
  auto task = make_ref<Task>(host, self.name(), std::move(devices), owner);
  if (!options.state_directory.empty()) {
    auto recovered = recover(*task, {options.state_directory, options.set_bytes, options.waits_for_disk}, std::move(owner));
    if (!recovered.ok()) return recovered.status().with_context("start " + self.name()).at_task(self.name()).in_phase("recover");
    const Recovered& found = recovered.value();
    if (found.set > 0 || found.repeated > 0) {
      say(host, LogLevel::info,
          format("%s goes on with the state in %s: the set of commit %llu and %llu commits after it, in %.2f s", self.name().c_str(),
                 options.state_directory.c_str(), static_cast<unsigned long long>(found.set),
                 static_cast<unsigned long long>(found.repeated), found.seconds));
    }
  }
  auto server = Ref<Server>::adopt(new Server(host, std::move(options), std::move(task), self.address.text()));
  server->take_attendance();
  if (Status status = server->listen(self); !status.ok())
    return status.with_context("start " + self.name()).at_task(self.name()).in_phase("listen");
  const bool clear = server->options_.security.security == Security::clear_frames && !server->target_.starts_with("unix:");
  say(host, clear ? LogLevel::warn : LogLevel::info,
      self.name() + " serves at " + server->target_ + (clear ? "; what is sent there travels in the clear" : ""));
  if (host.directory)
    host.directory->add(server->target_, {server->task_, server->options_.cluster, server->options_.filters, server->options_.security,
                                          server->options_.shared_memory});
  return server;
}

// Where this is the task that does that for the job. It is closed before the server is gone.
void Server::take_attendance() {
  if (Attendance::home_of(options_.cluster) != task_->name()) return;
  const auto announce = [this](const wire::Roll& roll) { tell_workers(roll); };
  task_->keep_attendance(make_ref<Attendance>(host_, options_.timing, options_.cluster, task_->name(), announce));
}

void Server::tell_workers(const wire::Roll& roll) {
  const bool is_back = roll.presence == wire::Presence::there;
  say(host_, roll.presence == wire::Presence::lost ? LogLevel::warn : LogLevel::info,
      task_->name() + ": " + roll.task + (is_back ? " is back" : " is gone: " + roll.reason));
  std::vector<Ref<Connection>> all;
  for (Connection* connection : connections_) all.push_back(Ref<Connection>::share(connection));
  for (const Ref<Connection>& connection : all) connection->tell_roll(roll);
}

Status Server::listen(const ClusterSpec::Task& self) {
  DTG_ASSIGN(Credentials credentials, cluster_credentials(self.address, options_.security, self.name(), ""));
  for (const ClusterSpec::Task& task : options_.cluster.tasks()) credentials.tasks.push_back(task.name());
  const EndpointLimits limits{host_.limits, options_.timing.dead_ns, options_.accept};
  DTG_ASSIGN(auto listener,
             host_.network->listen(self.address, credentials, limits, [this](Ref<Channel> channel) { accepted(std::move(channel)); }));
  target_ = listener->address().text();
  host_.loop().call([&] {
    listener_ = std::move(listener);
    departures_.open();
  });
  return {};
}

void Server::accepted(Ref<Channel> channel) {
  // Beyond the limit a connection is closed without a word.
  if (connections_.size() >= kConnectionsMax) return;
  auto connection = make_ref<Connection>(*this, std::move(channel));
  connections_.push_back(connection.get());
  connection->open();
}

Connection* Server::session(uint64_t number) const {
  const auto at = sessions_.find(number);
  return at == sessions_.end() ? nullptr : at->second;
}

Ref<Group> Server::group(const std::string& name) const {
  const auto at = groups_.find(name);
  return at == groups_.end() || at->second->has_left() ? nullptr : at->second;
}

Result<Ref<Group>> Server::join_group(std::string name, std::vector<std::string> members, int32_t key, int64_t call_ns,
                                      Ref<RefCounted> owner) {
  const ClusterSpec& cluster = options_.cluster;
  const ClusterSpec::Task* const self = cluster.find(task_->name());
  const Ref<Collectives> ops = Collectives::of(task_->store());
  Group::Options wanted{std::move(name), key, ops, call_ns, {}, -1};
  const std::string what = "join the group \"" + wanted.name + "\"";
  if (members.empty() && self) {
    for (const ClusterSpec::Task& task : cluster.tasks()) {
      if (task.job == self->job) members.push_back(task.name());
    }
  }
  for (const std::string& member : members) {
    auto device = DeviceName::parse(member);
    const std::string full = device.ok() && device.value().job && device.value().task
                                 ? ClusterSpec::Task{*device.value().job, *device.value().task, {}}.name()
                                 : member;
    const ClusterSpec::Task* const task = cluster.find(full);
    if (!task) return invalid_argument("%s: its member \"%s\" is no task of the cluster", what.c_str(), member.c_str());
    if (std::ranges::find(wanted.members, full, &Group::Member::task) != wanted.members.end())
      return invalid_argument("%s: its member %s is named twice", what.c_str(), full.c_str());
    if (full == task_->name()) wanted.self = static_cast<int>(wanted.members.size());
    DTG_ASSIGN(Credentials credentials, cluster_credentials(task->address, options_.security, task_->name(), full));
    wanted.members.push_back({full, task->address, std::move(credentials)});
  }
  if (wanted.self < 0) return invalid_argument("%s: %s is not among its members", what.c_str(), task_->name().c_str());
  auto group = make_ref<Group>(host_, options_.timing, std::move(wanted), std::move(owner));
  Status status = unavailable("%s: the server is stopping", what.c_str()).at_task(task_->name()).in_phase("form");
  host_.loop().call([&] {
    if (!listener_) return;
    Ref<Group>& present = groups_[group->name()];
    if (present && !present->has_left()) {
      status = already_exists("%s: this task is in it already", what.c_str());
      return;
    }
    const Ref<Group> before = std::exchange(present, group);
    ops->join(key, group);
    group->open(before.get());
    status = Status();
  });
  DTG_TRY(status);
  return group;
}

void Server::end(bool by_chief) {
  if (by_chief) task_->job_ended();
  over_changed_.change([&] {
    by_chief_ = by_chief_ || (by_chief && !over_);
    over_ = true;
  });
}

Status Server::join(Deadline deadline) {
  if (over_changed_.wait(*host_.seams.clock, deadline, [this] { return over_; })) return {};
  return deadline_exceeded("join %s: it still runs", task_->name().c_str()).at_task(task_->name()).in_phase("end");
}

Json Server::state() const {
  Json::Array devices, sessions;
  for (const Device& device : task_->devices()) devices.emplace_back(device.text);
  for (const Connection* connection : connections_) sessions.push_back(connection->state());
  int64_t count = 0, bytes = 0;
  for (const Ref<Resource>& resource : task_->store().list()) {
    if (resource->kind() != Variable::kKind) continue;
    ++count;
    bytes += static_cast<const Variable&>(*resource).bytes();
  }
  const Ledger::Counts known = task_->ledger().counts();
  Json::Object commits{{"repetitions", static_cast<int64_t>(task_->ledger().repetitions())},
                       {"writers", static_cast<int64_t>(known.writers)},
                       {"rows", static_cast<int64_t>(known.rows)},
                       {"durability", !task_->log()                    ? "memory"
                                      : task_->log()->waits_for_disk() ? "wal"
                                                                       : "wal-async"}};
  if (const CommitLog* const log = task_->log()) {
    const CommitLog::Counts counts = log->counts();
    commits.emplace_back("number", static_cast<int64_t>(counts.commits));
    commits.emplace_back("on_disk", static_cast<int64_t>(counts.on_disk));
    commits.emplace_back("sets", static_cast<int64_t>(counts.sets));
    commits.emplace_back("bytes", counts.bytes);
    if (!counts.failure.ok()) commits.emplace_back("failure", counts.failure.message());
  }
  Json attendance;
  if (task_->attendance()) attendance = task_->attendance()->state();
  return Json::Object{{"task", task_->name()},
                      {"attendance", std::move(attendance)},
                      {"commits", std::move(commits)},
                      {"incarnation", std::to_string(task_->incarnation())},
                      {"address", target_},
                      {"devices", std::move(devices)},
                      {"sessions", std::move(sessions)},
                      {"variables", Json::Object{{"count", count}, {"bytes", bytes}}}};
}

Result<std::string> Server::inspect() {
  std::string text;
  if (!host_.loop().call([&] { text = state().text(); }))
    return unavailable("inspect %s: the network loop has stopped", task_->name().c_str()).at_task(task_->name()).in_phase("ask");
  return text;
}

// What other members wait for has been sent when this member's calls end, and is to arrive.
void Server::leave_groups(const Status& reason, Deadline deadline) {
  const LastOut out;
  host_.loop().call([&] {
    for (const auto& [name, group] : groups_) group->leave_now(reason, out.ticket());
  });
  out.wait(*host_.seams.clock, deadline);
}

Status Server::stop(int64_t timeout_ns) {
  if (host_.directory) host_.directory->remove(target_);
  task_->close_parts();
  end(false);
  // Who is told that the job has ended does not look for the task again.
  const Status reason = by_chief_ ? cancelled("the chief has ended the job, and %s has stopped", task_->name().c_str())
                                  : unavailable("the server %s was stopped", task_->name().c_str()).at_task(task_->name());
  task_->stopped(reason);
  if (!told_.exchange(true)) say(host_, LogLevel::info, task_->name() + " stops: " + reason.message());
  const Deadline deadline = Deadline::after(*host_.seams.clock, timeout_ns);
  leave_groups(reason, deadline);
  // Of the connections that still have runs; the last run of one lets go, also when nobody waits any more.
  const LastOut ending;
  host_.loop().call([&] {
    listener_ = nullptr;
    departures_.close();
    if (Attendance* const attendance = task_->attendance()) attendance->close(reason);
    // The end of one may be the end of others.
    std::vector<Ref<Connection>> all;
    for (Connection* connection : connections_) all.push_back(Ref<Connection>::share(connection));
    for (const Ref<Connection>& connection : all) {
      connection->close(reason);
      if (!connection->idle()) connection->when_idle([busy = ending.ticket()] {});
    }
  });
  const bool told = ending.wait(*host_.seams.clock, deadline);
  if (told && task_->wait_for_observers(deadline)) return {};
  return deadline_exceeded("stop %s: runs are still under way; they were cancelled", task_->name().c_str())
      .at_task(task_->name())
      .in_phase("end");
}

}  // namespace dtg
