// dtg run: a cluster of processes on this machine, for trying things and for machines that are enough. Clusters of several
// machines are started by Kubernetes, Slurm and their kin, which set TF_CONFIG themselves. Main thread.
#include <algorithm>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "supervisor.h"

namespace dtg::cli {
namespace {

struct Wanted {
  bool local = false, as_json = false;
  std::string channel = "unix", restart = "never";
  int64_t grace = 10, start = 0;
  LaunchOptions launch;
  SuperviseOptions supervise;
};

bool read(int argc, char** argv, Wanted* wanted, int* code) {
  Arguments arguments(
      "run", "run --local [--ps N] [--workers M] [OPTIONS] -- PROGRAM [ARGUMENT...]",
      "Starts PROGRAM once per task, each with its place in the cluster in TF_CONFIG, shows what they say, and ends\n"
      "them together. The tasks meet on unix sockets in a directory that only you can enter; nothing listens on TCP\n"
      "unless you ask for it. What a ps or a worker does is up to PROGRAM: see dtg_cluster_from_tf_config.\n\n"
      "Each process also gets DTG_PROGRESS=1 (a line drawn over itself with carriage returns is shown as its status),\n"
      "DTG_THREADS (its share of the processors, unless set), DTG_CHANNEL, DTG_RESTARTS (how often the task was started\n"
      "again), and DTG_CLEAR_FRAMES=1, DTG_STATE_DIR and DTG_DURABILITY if asked for. What it prints comes through a pipe: in C, line by\n"
      "line only after setvbuf(stdout, NULL, _IOLBF, 0).\n\n"
      "With --restart on-failure a task that dies by a signal or ends with a code other than 0, 2, 126 and 127 is started\n"
      "again at the same address, after 0.1 s, then after twice as long each time, up to 5 s; one that lived for 10 s begins\n"
      "anew. PROGRAM must know how to go on: what a worker has not kept elsewhere is lost, as is what a ps had in memory.\n"
      "Nothing is started again when the first worker and a ps have ended well: the job is over.\n\n"
      "SIGINT (Ctrl-C), SIGTERM and SIGHUP are passed on to all tasks and end the launch, a second one at once; under nohup\n"
      "SIGHUP does nothing. SIGUSR1 and SIGUSR2 are passed on and end nothing by themselves.");
  arguments.flag("--local", &wanted->local, "on this machine (the only place there is; it must be said)");
  arguments.number("--ps", "N", 0, 256, &wanted->launch.ps, "parameter servers; default 1");
  arguments.range("--workers", "M|LEAST..MOST", 1, 256, &wanted->launch.least_workers, &wanted->launch.workers,
                  "workers, the first of them the chief; default 1. With a range the cluster has tasks for MOST,\n"
                  "of which LEAST are started; dtg worker adds and removes others while it runs, and the launch\n"
                  "goes on without a worker that dies as long as LEAST are there. DTG_MIN_WORKERS tells LEAST");
  arguments.number("--start", "N", 1, 256, &wanted->start, "with a range: workers that are started at once; default LEAST");
  arguments.flag("--chief", &wanted->launch.chief,
                 "one task more, chief/0, for a program that gives the workers their work; its end is the end");
  arguments.text("--channel", "unix|tcp", &wanted->channel, "how tasks talk; tcp: 127.0.0.1, on ports found free; default unix");
  arguments.flag("--clear-frames", &wanted->launch.clear_frames, "TCP without encryption after the authenticated handshake");
  arguments.text("--log-dir", "DIR", &wanted->supervise.log_directory, "also write each task's lines to DIR/JOB-N.log");
  arguments.text("--restart", "never|on-failure", &wanted->restart, "whether a task that dies is started again; default never");
  arguments.number("--restart-limit", "N", 1, 1000000, &wanted->supervise.restart.limit,
                   "how often within any 60 s, per task; one time more ends the launch; default 10");
  arguments.text("--state", "DIR", &wanted->launch.state, "a folder per task for what outlives it, DIR/JOB-N, in DTG_STATE_DIR");
  arguments.text("--durability", "memory|wal|wal-async", &wanted->launch.durability,
                 "in DTG_DURABILITY: what of a ps outlives it; wal: every update that was answered, also if the\n"
                 "machine dies; wal-async: without waiting for the disk; both need --state");
  arguments.text("--pids", "FILE", &wanted->supervise.pid_file,
                 "keep in FILE which process each task is: lines of JOB/N, PID and its start, field 22 of /proc/PID/stat");
  arguments.number("--grace", "SECONDS", 1, 3600, &wanted->grace, "how long a task may take to end before it is made to; default 10");
  arguments.flag("--json", &wanted->as_json, "at the end how each task ended and died, as JSON on stdout; logs go to stderr");
  arguments.rest("PROGRAM...", &wanted->supervise.program, "what to start, and its arguments");
  arguments.exit_codes("0 all workers ended well; 1 the launch failed; 2 a mistake on the command line; 126, 127 PROGRAM cannot be\n"
                       "started; otherwise that of the task which failed first, 128 + n for signal n (130 after Ctrl-C).");
  return arguments.read(argc, argv, code);
}

bool check_restart(const Wanted& wanted) {
  const std::string& durability = wanted.launch.durability;
  if (wanted.restart != "never" && wanted.restart != "on-failure")
    return complain("--restart is never or on-failure, not \"" + wanted.restart + "\""), false;
  if (!durability.empty() && durability != "memory" && durability != "wal" && durability != "wal-async")
    return complain("--durability is memory, wal or wal-async, not \"" + durability + "\""), false;
  if (durability.starts_with("wal") && wanted.launch.state.empty())
    return complain("--durability " + durability + " needs a place for the log: say --state DIR too"), false;
  return true;
}

}  // namespace

int run(int argc, char** argv) {
  Wanted wanted;
  int code = kOk;
  if (!read(argc, argv, &wanted, &code)) return code;
  if (!wanted.local) {
    complain("say --local: this command starts processes on this machine only\n"
             "  on several machines let their scheduler start the program, with TF_CONFIG set for each task");
    return kUsage;
  }
  if (wanted.channel != "unix" && wanted.channel != "tcp")
    return complain("--channel is unix or tcp, not \"" + wanted.channel + "\""), kUsage;
  if (!check_restart(wanted)) return kUsage;
  wanted.launch.tcp = wanted.channel == "tcp";
  wanted.supervise.restart.on_failure = wanted.restart == "on-failure";
  const LaunchOptions& range = wanted.launch;
  if (wanted.start != 0 && (!range.is_range() || wanted.start < range.least_workers || wanted.start > range.workers))
    return complain("--start is about a range of workers and lies in it: say --workers " +
                    std::to_string(std::min(wanted.start, range.least_workers)) + ".." +
                    std::to_string(std::max(wanted.start, range.workers) + 1) + " too, or neither"),
           kUsage;
  wanted.supervise.least_workers = range.least_workers;
  wanted.supervise.start_workers = wanted.start != 0 ? wanted.start : range.least_workers;
  if (wanted.launch.clear_frames && !wanted.launch.tcp)
    return complain("--clear-frames is about TCP: say --channel tcp too, or neither"), kUsage;
  wanted.supervise.grace = std::chrono::seconds(wanted.grace);
  wanted.supervise.quiet_stdout = wanted.as_json;
  Launch launch;
  if (!launch.prepare(wanted.launch)) return kFailed;
  Supervisor supervisor(launch, wanted.supervise);
  code = supervisor.run();
  if (wanted.as_json)
    print("{\"exit_code\": " + std::to_string(code) + ", \"tasks\": " + supervisor.report_json() +
          ", \"deaths\": " + supervisor.deaths_json() + "}\n");
  return code;
}

}  // namespace dtg::cli
