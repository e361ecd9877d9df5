// dtg keygen, dtg server and dtg status: a key for a job, one task of a cluster in this process, and what a running cluster
// has to say. Main thread;
// dtg server joins in a second one, so that signals can be waited for here.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "json_text.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

struct ReleaseCluster {
  void operator()(dtg_cluster* p) const { dtg_cluster_release(p); }
  void operator()(dtg_server* p) const { dtg_server_release(p); }
};

// ---- server ----

struct Place {
  std::string spec, job, key_file;
  bool tf_config = false, clear_frames = false, no_shared_memory = false, as_json = false;
  int64_t task = -1;
};

// Who this process is: as TF_CONFIG says, with --job and --task before it.
dtg_error* find_cluster(Place* place, dtg_cluster** out) {
  if (!place->tf_config) return dtg_cluster_parse(place->spec.data(), place->spec.size(), out);
  dtg_task self = DTG_TASK_INIT;
  if (dtg_error* error = dtg_cluster_from_tf_config(nullptr, 0, out, &self)) return error;
  if (place->job.empty()) place->job = self.type;
  if (place->task < 0) place->task = self.index;
  return nullptr;
}

// The signals that end a server, and two that mean nothing: whoever sends one of those by mistake ends no training. The joining
// thread wakes with the first of them who waits here.
sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&set, number);
  if (!ignores_hangup()) sigaddset(&set, SIGHUP);
  return set;
}

void announce(const Place& place, const char* target) {
  const std::string name = place.job + "/" + std::to_string(place.task);
  if (place.as_json) print(one_line(json{{"task", name}, {"target", target}, {"clear_frames", place.clear_frames}}) + "\n");
  else
    print(name + " serves at " + paint(Color::bold, target) + (place.clear_frames ? paint(Color::yellow, "  FRAMES IN THE CLEAR") : "") +
          "\n");
}

// Until the chief ends the job, or a signal asks for the end.
int serve(dtg_server* server, bool as_json) {
  const sigset_t awaited = awaited_signals();
  const pthread_t waiting = pthread_self();
  dtg_error* joined = nullptr;
  std::atomic<bool> over = false;
  std::thread joiner([&] {
    joined = dtg_server_join(server, DTG_INFINITE);
    over = true;
    pthread_kill(waiting, SIGUSR1);
  });
  // A signal may come from anybody, so it is the flag that says whether the job is over.
  int number = 0;
  do {
    sigwait(&awaited, &number);
  } while (!over && (number == SIGUSR1 || number == SIGUSR2));
  dtg_error* stopped = over ? nullptr : dtg_server_stop(server, 0);
  joiner.join();
  if (stopped) dtg_error_release(joined);
  dtg_error* const problem = stopped ? stopped : joined;
  return problem ? report(problem, as_json) : kOk;
}

bool read_server(int argc, char** argv, Place* place, int* code) {
  Arguments arguments(
      "server", "server --cluster SPEC|--tf-config --job J --task N [OPTIONS]",
      "One task of a cluster, most often a parameter server: it lends its devices and holds variables until the chief ends\n"
      "the job, or SIGTERM, SIGHUP (unless started by nohup) or Ctrl-C. SIGUSR1 and SIGUSR2 do nothing.");
  arguments.text("--cluster", "SPEC", &place->spec, "JSON, or \"ps=HOST:PORT;worker=HOST:PORT,HOST:PORT\"; also unix:PATH");
  arguments.flag("--tf-config", &place->tf_config, "cluster, job and task from the environment variable TF_CONFIG");
  arguments.text("--job", "J", &place->job, "which job this is a task of");
  arguments.number("--task", "N", 0, INT32_MAX, &place->task, "which task; default 0");
  arguments.text("--key-file", "FILE", &place->key_file, "the job key, for TCP beyond this machine: see dtg keygen; default $DTG_KEY_FILE");
  arguments.flag("--clear-frames", &place->clear_frames, "TCP without encryption after the authenticated handshake; every task must ask");
  arguments.flag("--no-shared-memory", &place->no_shared_memory,
                 "large values go through the socket also to processes of this host and user");
  arguments.flag("--json", &place->as_json, "where it listens, and errors, as JSON");
  arguments.exit_codes("0 the job ended, or a signal ended this task; 1 it could not serve or stop; 2 a mistake on the command line.");
  if (!arguments.read(argc, argv, code)) return false;
  if (place->tf_config != place->spec.empty()) {
    complain(
        "say either --cluster or --tf-config\n  for example: dtg server --cluster \"ps=unix:/run/user/me/ps0;worker=unix:/run/user/me/w0\" --job ps");
    return *code = kUsage, false;
  }
  return true;
}

// ---- status ----

// "12.5 MB"
std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, unit++;
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

// A field that may be of another type in another version of the library; text for people either way.
std::string field(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "?";
  return found->is_string() ? found->get<std::string>() : one_line(*found);
}

bool in_the_clear(const json& session) { return field(session, "security").find("clear") != std::string::npos; }

std::string describe_session(const json& session, const std::string& address) {
  const std::string channel = session.contains("channel") ? field(session, "channel") : address.starts_with("unix:") ? "unix" : "tcp";
  const std::string task = session.value("task", "");
  std::string text = "    " + field(session, "peer") + (task.empty() ? "" : " of " + task) + "  " + channel + ", ";
  text += in_the_clear(session) ? paint(Color::yellow, "FRAMES IN THE CLEAR") : field(session, "security");
  return text + ", parts " + field(session, "parts") + ", runs " + field(session, "runs") + "\n";
}

std::string describe_task(const json& task) {
  std::string text = paint(Color::bold, field(task, "task"));
  if (task.contains("error")) return text + "  " + paint(Color::red, field(task, "error")) + "\n";
  text += "  " + field(task, "address") + "  incarnation " + field(task, "incarnation") + "\n";
  const json variables = task.value("variables", json::object());
  const double bytes = variables.value("bytes", 0.0);
  text += "    variables " + field(variables, "count") + ", " + bytes_text(bytes) + "\n";
  for (const json& session : task.value("sessions", json::array())) text += describe_session(session, field(task, "address"));
  return text;
}

// 1 when a task does not answer, so that scripts notice.
int show(std::string_view text, bool as_json) {
  const json tasks = json::parse(text, nullptr, false);
  if (!tasks.is_array()) return complain("the cluster's answer cannot be read; command and library do not belong together"), kFailed;
  std::string shown;
  size_t silent = 0, clear = 0;
  for (const json& task : tasks) {
    shown += describe_task(task);
    silent += task.contains("error");
    for (const json& session : task.value("sessions", json::array())) clear += in_the_clear(session);
  }
  if (clear > 0) shown += paint(Color::yellow, "warning: what these sessions send can be read and changed on the way") + "\n";
  if (!print(as_json ? lines(tasks) + "\n" : shown)) return kFailed;
  if (silent > 0)
    complain(std::to_string(silent) + " of " + std::to_string(tasks.size()) +
             " tasks did not answer\n  their errors say why; a task that was killed comes back by --restart of dtg run");
  return silent > 0 ? kFailed : kOk;
}

}  // namespace

int keygen(int argc, char** argv) {
  std::string path;
  bool as_json = false;
  Arguments arguments(
      "keygen", "keygen FILE [--json]",
      "Makes the key that the tasks of a job prove to each other with, in a new file that only you can read. Copy it to every\n"
      "machine of the job by a way that nobody can listen to, and give it to every task: --key-file, or key_file.");
  arguments.position("FILE", true, &path, "the new file");
  arguments.flag("--json", &as_json, "as JSON");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  if (dtg_error* error = dtg_keygen(path.data(), path.size())) return report(error, as_json);
  return print(as_json ? one_line(json{{"key_file", path}}) + "\n" : "the job key is in " + path + "\n") ? kOk : kFailed;
}

int server(int argc, char** argv) {
  Place place;
  int code = kOk;
  if (!read_server(argc, argv, &place, &code)) return code;
  dtg_cluster* cluster = nullptr;
  if (dtg_error* error = find_cluster(&place, &cluster))
    return place.tf_config ? report(error, place.as_json) : report_on_words(error, place.as_json);
  const std::unique_ptr<dtg_cluster, ReleaseCluster> owned_cluster(cluster);
  if (!cluster) return complain("TF_CONFIG names no cluster\n  set it, or give --cluster"), kFailed;
  if (place.job.empty() && dtg_cluster_job_count(cluster) == 1) place.job = dtg_cluster_job(cluster, 0);
  if (place.task < 0) place.task = 0;
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = place.job.empty() ? nullptr : place.job.c_str();
  options.task = static_cast<int32_t>(place.task);
  options.key_file = place.key_file.empty() ? nullptr : place.key_file.c_str();
  options.security = place.clear_frames ? DTG_SECURITY_CLEAR_FRAMES : DTG_SECURITY_TLS;
  options.no_shared_memory = place.no_shared_memory;
  // Before the server starts its threads, so that they do not get these signals either.
  const sigset_t awaited = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  dtg_server* started = nullptr;
  if (dtg_error* error = dtg_server_start(nullptr, cluster, &options, &started))
    return place.tf_config ? report(error, place.as_json) : report_on_words(error, place.as_json);
  const std::unique_ptr<dtg_server, ReleaseCluster> owned_server(started);
  announce(place, dtg_server_target(started));
  return serve(started, place.as_json);
}

int status(int argc, char** argv) {
  std::string target, key_file;
  bool as_json = false, clear_frames = false;
  int64_t seconds = 10;
  Arguments arguments("status", "status TARGET [OPTIONS]",
                      "What each task of a running cluster is doing: variables, and the sessions that use it, with how they are secured.");
  arguments.position("TARGET", true, &target, "any task of the cluster: unix:PATH or HOST:PORT");
  arguments.text("--key-file", "FILE", &key_file, "the job key, where the cluster has one; default $DTG_KEY_FILE");
  arguments.flag("--clear-frames", &clear_frames, "the cluster sends its frames in the clear");
  arguments.number("--timeout", "SECONDS", 1, 3600, &seconds, "how long to look for the tasks; default 10");
  arguments.flag("--json", &as_json, "as JSON");
  arguments.exit_codes("0 all tasks answered, 1 one did not or there is no such cluster, 2 a mistake on the command line.");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.connect_timeout_ns = seconds * 1'000'000'000;
  options.key_file = key_file.empty() ? nullptr : key_file.c_str();
  options.security = clear_frames ? DTG_SECURITY_CLEAR_FRAMES : DTG_SECURITY_TLS;
  dtg_string* text = nullptr;
  if (dtg_error* error = dtg_cluster_status(nullptr, target.data(), target.size(), &options, &text)) {
    return report_on_words(error, as_json, "give the address of a task that runs: what it printed when it began to serve");
  }
  const Owned<dtg_string> owned_text(text);
  return show(view(text), as_json);
}

}  // namespace dtg::cli
