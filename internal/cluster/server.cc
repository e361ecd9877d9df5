// Starting and stopping.
#include "cluster/server.h"

#include <algorithm>

#include "cluster/connection.h"
#include "cluster/directory.h"
#include "cluster/recovery.h"
#include "cluster/security.h"
#include "exec/variable.h"

namespace dtg {
namespace {

constexpr int64_t kStopNs = int64_t{5} * 1'000'000'000;

// The task that the options mean, when they do not say all of it.
Result<ClusterSpec::Task> own_task(const Server::Options& options) {
  std::string job = options.job;
  const auto& tasks = options.cluster.tasks();
  if (job.empty() && !tasks.empty() && std::ranges::all_of(tasks, [&](const auto& task) { return task.job == tasks[0].job; }))
    job = tasks[0].job;
  const ClusterSpec::Task* const task = options.cluster.find(job, options.task);
  if (task) return *task;
  return invalid_argument("start a server as /job:%s/task:%d: the cluster \"%s\" has no such task", job.c_str(), options.task,
                          options.cluster.text().c_str());
}

}  // namespace

Server::Server(const Host& host, Options options, Ref<Task> task, std::string target)
    : host_(host), options_(std::move(options)), task_(std::move(task)), target_(std::move(target)) {}

Server::~Server() { (void)stop(kStopNs).ok(); }

Result<Ref<Server>> Server::start(const Host& host, Options options, Ref<RefCounted> owner) {
  DTG_ASSIGN(const ClusterSpec::Task self, own_task(options));
  if (options.cpu_devices < 1 || options.cpu_devices > 256) {
    return invalid_argument("start a server: cpu_devices is %d; from 1 to 256 are possible", options.cpu_devices);
  }
  auto task = make_ref<Task>(host, self.name(), options.cpu_devices, owner);
  if (!options.state_directory.empty()) {
    auto recovered = recover(*task, {options.state_directory, options.set_bytes, options.waits_for_disk}, std::move(owner));
    if (!recovered.ok()) return recovered.status().with_context("start " + self.name()).in_phase("recover");
    const Recovered& found = recovered.value();
    if (found.set > 0 || found.repeated > 0) {
      say(host, LogLevel::info,
          format("%s goes on with the state in %s: the set of commit %llu and %llu commits after it, in %.2f s", self.name().c_str(),
                 options.state_directory.c_str(), static_cast<unsigned long long>(found.set),
                 static_cast<unsigned long long>(found.repeated), found.seconds));
    }
  }
  auto server = Ref<Server>::adopt(new Server(host, std::move(options), std::move(task), self.address.text()));
  if (Status status = server->listen(self); !status.ok()) return status.with_context("start " + self.name()).in_phase("listen");
  const bool clear = server->options_.security.security == Security::clear_frames && !server->target_.starts_with("unix:");
  say(host, clear ? LogLevel::warn : LogLevel::info,
      self.name() + " serves at " + server->target_ + (clear ? "; what is sent there travels in the clear" : ""));
  if (host.directory)
    host.directory->add(server->target_, {server->task_, server->options_.cluster, server->options_.filters, server->options_.security});
  return server;
}

Status Server::listen(const ClusterSpec::Task& self) {
  DTG_ASSIGN(Credentials credentials, cluster_credentials(self.address, options_.security, self.name(), ""));
  for (const ClusterSpec::Task& task : options_.cluster.tasks()) credentials.tasks.push_back(task.name());
  const EndpointLimits limits{host_.limits, options_.timing.dead_ns, options_.accept};
  DTG_ASSIGN(auto listener,
             host_.network->listen(self.address, credentials, limits, [this](Ref<Channel> channel) { accepted(std::move(channel)); }));
  target_ = listener->address().text();
  host_.loop().call([&] { listener_ = std::move(listener); });
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

void Server::end(bool by_chief) {
  over_changed_.change([&] {
    by_chief_ = by_chief_ || (by_chief && !over_);
    over_ = true;
  });
}

Status Server::join(Deadline deadline) {
  if (over_changed_.wait(*host_.seams.clock, deadline, [this] { return over_; })) return {};
  return deadline_exceeded("join %s: it still runs", task_->name().c_str());
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
  Json::Object commits{{"repetitions", static_cast<int64_t>(task_->ledger().repetitions())},
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
  return Json::Object{{"task", task_->name()},
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
    return unavailable("inspect %s: the network loop has stopped", task_->name().c_str());
  return text;
}

Status Server::stop(int64_t timeout_ns) {
  if (host_.directory) host_.directory->remove(target_);
  task_->close_parts();
  end(false);
  // Who is told that the job has ended does not look for the task again.
  const Status reason = by_chief_ ? cancelled("the chief has ended the job, and %s has stopped", task_->name().c_str())
                                  : unavailable("the server %s was stopped", task_->name().c_str());
  task_->stopped(reason);
  if (!told_.exchange(true)) say(host_, LogLevel::info, task_->name() + " stops: " + reason.message());
  const Deadline deadline = Deadline::after(*host_.seams.clock, timeout_ns);
  // Of the connections that still have runs; the last run of one tells it, also when nobody waits any more.
  struct Ending {
    Condition changed;
    size_t busy = 0;
  };
  const auto ending = std::make_shared<Ending>();
  host_.loop().call([&] {
    listener_ = nullptr;
    // The end of one may be the end of others.
    std::vector<Ref<Connection>> all;
    for (Connection* connection : connections_) all.push_back(Ref<Connection>::share(connection));
    for (const Ref<Connection>& connection : all) {
      connection->close(reason);
      if (connection->idle()) continue;
      ++ending->busy;
      connection->when_idle([ending] { ending->changed.change([&] { --ending->busy; }); });
    }
  });
  const bool told = ending->changed.wait(*host_.seams.clock, deadline, [&] { return ending->busy == 0; });
  if (told && task_->wait_for_observers(deadline)) return {};
  return deadline_exceeded("stop %s: runs are still under way; they were cancelled", task_->name().c_str());
}

}  // namespace dtg
