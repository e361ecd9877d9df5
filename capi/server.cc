// dtg/server.h: keys, servers, and what a session can do with its cluster: status, the end of the job, repeated runs.
// Any thread.
#include "dtg/server.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/whereabouts.h"
#include "capi/cluster.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "capi/security.h"
#include "capi/server.h"
#include "cluster/driver.h"
#include "net/job_key.h"
#include "session/async_run.h"

namespace dtg::capi {
namespace {

constexpr int64_t kStopNs = int64_t{5} * 1'000'000'000;
constexpr size_t kBarrierNameMax = 200;
constexpr int64_t kLookNs = int64_t{30} * 1'000'000'000;

Status read_filters(const dtg_server_options& options, std::vector<std::string>* filters) {
  DTG_TRY(require_array(options.device_filters, options.num_device_filters, "device_filters"));
  for (size_t i = 0; i < options.num_device_filters; ++i) {
    DTG_TRY(require(options.device_filters[i], "an entry of device_filters"));
    DTG_TRY(DeviceName::parse(options.device_filters[i]).status().with_context("device_filters"));
    filters->emplace_back(options.device_filters[i]);
  }
  return {};
}

Status read_durability(const dtg_server_options& options, std::string* directory) {
  *directory = text(options.state_dir, options.state_dir_len);
  switch (options.durability) {
    case DTG_DURABILITY_DEFAULT: return {};
    case DTG_DURABILITY_MEMORY:
      if (directory->empty()) return {};
      return invalid_argument("start a server: durability is MEMORY, but there is a state directory");
    case DTG_DURABILITY_REPLAY: return unimplemented("start a server: durability REPLAY is not built in yet; take WAL");
    case DTG_DURABILITY_WAL:
    case DTG_DURABILITY_WAL_ASYNC:
      if (!directory->empty()) return {};
      return invalid_argument("start a server: durability is WAL, which needs a state directory");
    default: return invalid_argument("start a server: durability %d is none", options.durability);
  }
}

// Where the program says nothing, whoever started it may, for the tasks that keep variables for others.
Status take_environment(dtg_server_options* options) {
  const char* const directory = std::getenv("DTG_STATE_DIR");
  const char* const durability = std::getenv("DTG_DURABILITY");
  const bool is_silent = !options->state_dir && options->durability == DTG_DURABILITY_DEFAULT && options->emu_devices == 0;
  if (!directory || !*directory || !is_silent || text(options->job, options->job_len) != "ps") return {};
  const std::string_view how = durability ? durability : "";
  if (how == "memory") return {};
  if (how == "wal") options->durability = DTG_DURABILITY_WAL;
  else if (how == "wal-async") options->durability = DTG_DURABILITY_WAL_ASYNC;
  else if (!how.empty())
    return invalid_argument("start a server: the environment wants the durability \"%.100s\"; it is memory, wal or wal-async", durability);
  options->state_dir = directory;
  options->state_dir_len = std::strlen(directory);
  return {};
}

// Ten years: the longest times, by which a host means for ever, are multiplied and added to the clock.
constexpr int64_t kLongestNs = int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;

Status start(dtg_runtime* handle, const dtg_cluster* cluster, const dtg_server_options* given, dtg_server** out) {
  DTG_TRY(require(out, "out"));
  if (!cluster)
    return invalid_argument(
        "start a server: the cluster is NULL, as where TF_CONFIG names none; start the program with dtg run, or set TF_CONFIG");
  const Held<ClusterObject> spec(cluster, HandleType::cluster);
  DTG_TRY(spec.status());
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_server_options), "dtg_server_options", &options));
  if (options.heartbeat_ns < 0 || options.dead_ns < 0) return invalid_argument("start a server: a time of the options is negative");
  if (options.no_shared_memory != 0 && options.no_shared_memory != 1) {
    return invalid_argument("start a server: no_shared_memory is %d; it is 0 or 1", options.no_shared_memory);
  }
  Server::Options wanted;
  wanted.shared_memory = options.no_shared_memory == 0;
  wanted.cluster = spec->spec;
  wanted.job = text(options.job, options.job_len);
  wanted.task = options.task;
  if (options.cpu_devices != 0) wanted.devices.cpu = options.cpu_devices;
  wanted.devices.emu = options.emu_devices;
  wanted.devices.emu_memory_bytes = options.emu_memory_bytes;
  DTG_TRY(read_filters(options, &wanted.filters));
  DTG_TRY(read_security(options.key_file, options.key_file_len, options.security, &wanted.security));
  DTG_TRY(take_environment(&options));
  DTG_TRY(read_durability(options, &wanted.state_directory));
  wanted.waits_for_disk = options.durability != DTG_DURABILITY_WAL_ASYNC;
  if (options.heartbeat_ns != 0) wanted.timing.heartbeat_ns = std::min(options.heartbeat_ns, kLongestNs / 2);
  if (options.dead_ns != 0) wanted.timing.dead_ns = std::min(options.dead_ns, kLongestNs);
  if (wanted.timing.dead_ns < 2 * wanted.timing.heartbeat_ns) {
    return invalid_argument("start a server: a peer would be given up for dead after %g s, less than two heartbeats of %g s",
                            static_cast<double>(wanted.timing.dead_ns) * 1e-9, static_cast<double>(wanted.timing.heartbeat_ns) * 1e-9);
  }
  DTG_ASSIGN(Ref<Runtime> runtime, runtime_of(handle));
  DTG_ASSIGN(const Host host, runtime->host());
  DTG_ASSIGN(Ref<Server> server, Server::start(host, std::move(wanted), runtime));
  return give(HandleType::server, make_ref<ServerObject>(std::move(runtime), std::move(server)), out);
}

Status join(ServerObject& held, int64_t timeout_ns) {
  if (timeout_ns < 0 && timeout_ns != DTG_INFINITE) {
    return invalid_argument("join: the timeout is %g s; it may not be negative, DTG_INFINITE waits for the end",
                            static_cast<double>(timeout_ns) * 1e-9);
  }
  return held.server->join(timeout_ns == DTG_INFINITE ? Deadline::never() : Deadline::after(held.runtime->clock(), timeout_ns));
}

Status stop(ServerObject& held, int64_t timeout_ns) {
  if (timeout_ns < 0)
    return invalid_argument("stop: the timeout is %g s; it may not be negative, and 0 means 5 s", static_cast<double>(timeout_ns) * 1e-9);
  return held.server->stop(timeout_ns ? timeout_ns : kStopNs);
}

Status give_text(Result<std::string> text, dtg_string** out) {
  DTG_TRY(text.status());
  return give(HandleType::string, make_ref<StringObject>(text.take()), out);
}

Status run_repeatedly(Session& session, const dtg_value* targets, size_t num_targets, dtg_cq* cq, uint64_t tag, dtg_run** out) {
  DTG_TRY(require_array(targets, num_targets, "targets"));
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < num_targets; ++i) {
    DTG_TRY(check_owner(session.graph(), value_of(targets[i])));
    nodes.push_back(value_of(targets[i]).node());
  }
  Ref<CompletionQueue> queue;
  if (cq) {
    const Held<CompletionQueue> held(cq, HandleType::cq);
    DTG_TRY(held.status());
    queue = Ref<CompletionQueue>::share(held.get());
  }
  DTG_ASSIGN(Ref<AsyncRun> run, session.run_repeatedly(nodes, std::move(queue), tag));
  if (!out) return {};
  Status status = give(HandleType::run, run, out);
  if (!status.ok()) run->cancel();
  return status;
}

Status look(dtg_runtime* handle, std::string_view target, const dtg_session_options* given, dtg_string** out) {
  DTG_TRY(require(out, "out"));
  DTG_ASSIGN(const Ref<Runtime> runtime, runtime_of(handle));
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_session_options), "dtg_session_options", &options));
  if (options.connect_timeout_ns < 0) return invalid_argument("connect a session: the connect timeout may not be negative");
  DTG_ASSIGN(const Address address, Address::parse(target));
  DTG_ASSIGN(Host host, runtime->host());
  DTG_TRY(read_security(options.key_file, options.key_file_len, options.security, &host.security));
  const int64_t timeout_ns = options.connect_timeout_ns ? options.connect_timeout_ns : kLookNs;
  auto seen = Driver::look(host, {}, address, Deadline::after(runtime->clock(), timeout_ns), runtime);
  if (names_whereabouts(seen.status().code())) return seen.status().at_peer(address.text()).in_phase("ask");
  return give_text(seen, out);
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_keygen(const char* path, size_t path_len) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(path, "path"));
    const std::string file(text(path, path_len));
    if (file.empty() || file.find('\0') != std::string::npos)
      return invalid_argument("make a job key: the path is empty or has a NUL inside");
    return keygen(file);
  });
}

dtg_error* dtg_server_start(dtg_runtime* runtime, const dtg_cluster* cluster, const dtg_server_options* options,
                            dtg_server** out) noexcept {
  return guard([&] { return start(runtime, cluster, options, out); });
}
const char* dtg_server_target(const dtg_server* server) noexcept {
  const Held<ServerObject> held(server, HandleType::server);
  return held ? held->server->target().c_str() : nullptr;
}
dtg_error* dtg_server_join(dtg_server* server, int64_t timeout_ns) noexcept {
  return with<ServerObject>(server, HandleType::server, [&](ServerObject& s) { return join(s, timeout_ns); });
}
dtg_error* dtg_server_stop(dtg_server* server, int64_t timeout_ns) noexcept {
  return with<ServerObject>(server, HandleType::server, [&](ServerObject& s) { return stop(s, timeout_ns); });
}
dtg_error* dtg_server_status(const dtg_server* server, dtg_string** out) noexcept {
  return with<ServerObject>(server, HandleType::server, [&](ServerObject& s) -> Status {
    DTG_TRY(require(out, "out"));
    return give_text(s.server->inspect(), out);
  });
}
dtg_server* dtg_server_retain(dtg_server* server) noexcept { return retain_handle(server, HandleType::server); }
void dtg_server_release(dtg_server* server) noexcept { release_handle(server, HandleType::server); }

dtg_error* dtg_session_end_job(dtg_session* session, int64_t timeout_ns) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return s.end_job(timeout_ns); });
}
dtg_error* dtg_session_end_job_now(dtg_session* session, int64_t timeout_ns) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return s.end_job_now(timeout_ns); });
}
dtg_error* dtg_session_barrier(dtg_session* session, const char* name, size_t name_len, int64_t timeout_ns) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) -> Status {
    DTG_TRY(require(name, "name"));
    const std::string_view barrier = text(name, name_len);
    if (barrier.empty() || barrier.size() > kBarrierNameMax || barrier.find('\0') != std::string_view::npos) {
      return invalid_argument("barrier: its name has %zu bytes; give one of 1 to %zu, without a NUL", barrier.size(), kBarrierNameMax);
    }
    return s.meet_workers(std::string(barrier), timeout_ns);
  });
}
dtg_error* dtg_session_outcome(dtg_session* session, uint64_t write, int64_t timeout_ns, dtg_outcome* out) noexcept {
  static_assert(static_cast<int>(Driver::Outcome::updated) == DTG_OUTCOME_UPDATED &&
                static_cast<int>(Driver::Outcome::forgotten) == DTG_OUTCOME_FORGOTTEN);
  return with<Session>(session, HandleType::session, [&](Session& s) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const Driver::Outcome found, s.outcome(write, timeout_ns));
    *out = static_cast<dtg_outcome>(found);
    return {};
  });
}
dtg_error* dtg_session_cluster_status(dtg_session* session, int64_t timeout_ns, dtg_string** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) -> Status {
    DTG_TRY(require(out, "out"));
    return give_text(s.inspect_cluster(timeout_ns), out);
  });
}
dtg_error* dtg_cluster_status(dtg_runtime* runtime, const char* target, size_t target_len, const dtg_session_options* options,
                              dtg_string** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(target, "target"));
    return look(runtime, text(target, target_len), options, out);
  });
}
dtg_error* dtg_session_run_repeatedly(dtg_session* session, const dtg_value* targets, size_t num_targets, dtg_cq* cq, uint64_t tag,
                                      dtg_run** out) noexcept {
  return with<Session>(session, HandleType::session, [&](Session& s) { return run_repeatedly(s, targets, num_targets, cq, tag, out); });
}

}  // extern "C"
