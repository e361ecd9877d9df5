// sim_cluster: simulated clusters from seeds. Prints what went wrong and how to see it again; the last line is a sum.
//
//   sim_cluster --from 1 --count 1000 --jobs 2 --seconds 120
//   sim_cluster --seed 17 --talk
//   sim_cluster --groups --count 300
//   sim_cluster --closures --count 300
//   sim_cluster --bounded --count 300
//   sim_cluster --strict --count 300
//   sim_cluster --elastic --count 300
//   sim_cluster --count 10000 --ledger tests/sim/ledger.tsv --commit 1a2b3c4
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "bounded_job.h"
#include "closure_job.h"
#include "cluster.h"
#include "group_job.h"

namespace {

using dtg::sim::BoundedJob;
using dtg::sim::ClosureJob;
using dtg::sim::Cluster;
using dtg::sim::GroupJob;
using dtg::sim::Outcome;
using dtg::sim::Work;

struct Options {
  uint64_t from = 1, count = 100, jobs = 1;
  double seconds = 1e9;
  bool talks = false;
  std::string what = "cluster";
  std::string ledger, commit = "-";
};

struct Sum {
  uint64_t seeds = 0, failed = 0, done = 0, unknown = 0, faults = 0, events = 0;
};

// A crash names its seed and where it was, on a stack of its own: a fiber may have overrun the one it is on.
uint64_t running_seed = 0;
void crashed(int signal) {
  char line[64];
  const int length = std::snprintf(line, sizeof line, "seed %llu: signal %d\n", static_cast<unsigned long long>(running_seed), signal);
  [[maybe_unused]] const ssize_t told = ::write(1, line, static_cast<size_t>(length));
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), 1);
  ::_exit(3);
}
void watch_crashes() {
  static char stack[1 << 16];
  const stack_t apart{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&apart, nullptr);
  struct sigaction action {};
  action.sa_handler = crashed;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Outcome run_once(uint64_t seed, const std::string& what, bool talks) {
  if (what == "groups") return GroupJob(seed, talks).run();
  if (what == "bounded") return BoundedJob(seed, talks).run();
  if (what == "closures") return ClosureJob(seed, talks).run();
  return Cluster(seed, talks, what == "strict" ? Work::strict : what == "elastic" ? Work::elastic : Work::any).run();
}

// Every fiftieth twice: it must end in the same history.
bool run_seed(uint64_t seed, const Options& options, Sum* sum) {
  running_seed = seed;
  Outcome outcome = run_once(seed, options.what, options.talks);
  if (outcome.wrong.empty() && seed % 50 == 0 && run_once(seed, options.what, false).history != outcome.history)
    outcome.wrong = "a second run of the seed was another";
  ++sum->seeds;
  sum->done += static_cast<uint64_t>(outcome.done);
  sum->unknown += static_cast<uint64_t>(outcome.failed);
  sum->faults += static_cast<uint64_t>(outcome.faults);
  sum->events += outcome.events;
  if (outcome.wrong.empty()) return true;
  ++sum->failed;
  std::printf("seed %llu: %s\n    again: sim_cluster %s--seed %llu --talk\n", static_cast<unsigned long long>(seed), outcome.wrong.c_str(),
              options.what == "cluster" ? "" : ("--" + options.what + " ").c_str(), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return false;
}

Sum run_share(const Options& options, uint64_t share) {
  Sum sum;
  const double until = now() + options.seconds;
  for (uint64_t i = share; i < options.count && now() < until && sum.failed < 10; i += options.jobs)
    run_seed(options.from + i, options, &sum);
  return sum;
}

// One line of the ledger: date, commit, first seed, seeds, faults, steps done, steps of unknown outcome, failed, what was simulated. Of
// groups the steps of each member count, and what is unknown are calls that failed.
bool enter(const Options& options, const Sum& sum) {
  FILE* const file = std::fopen(options.ledger.c_str(), "a");
  if (!file) return std::perror(options.ledger.c_str()), false;
  char date[32];
  const std::time_t seconds = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&seconds));
  std::fprintf(file, "%s\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\n", date, options.commit.c_str(),
               static_cast<unsigned long long>(options.from), static_cast<unsigned long long>(sum.seeds),
               static_cast<unsigned long long>(sum.faults), static_cast<unsigned long long>(sum.done),
               static_cast<unsigned long long>(sum.unknown), static_cast<unsigned long long>(sum.failed), options.what.c_str());
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--from") options.from = value();
    else if (word == "--count") options.count = value();
    else if (word == "--jobs") options.jobs = std::max<uint64_t>(1, value());
    else if (word == "--seconds") options.seconds = static_cast<double>(value());
    else if (word == "--groups" || word == "--closures" || word == "--bounded" || word == "--strict" || word == "--elastic")
      options.what = word.substr(2);
    else if (word == "--talk") options.talks = true;
    else if (word == "--ledger" && i + 1 < argc) options.ledger = argv[++i];
    else if (word == "--commit" && i + 1 < argc) options.commit = argv[++i];
    else if (word == "--seed") options.from = value(), options.count = 1;
    else return std::fprintf(stderr, "sim_cluster: unknown word \"%s\"\n", argv[i]), 2;
  }
  watch_crashes();
  const double began = now();
  Sum all;
  if (options.jobs == 1) {
    all = run_share(options, 0);
  } else {
    // A seed that crashes takes only its own process with it.
    std::vector<std::pair<pid_t, int>> shares;
    for (uint64_t share = 0; share < options.jobs; ++share) {
      int ends[2];
      if (::pipe(ends) != 0) return 2;
      const pid_t child = ::fork();
      if (child == 0) {
        const Sum sum = run_share(options, share);
        const bool told = ::write(ends[1], &sum, sizeof sum) == sizeof sum;
        std::fflush(stdout);
        ::_exit(told ? 0 : 2);
      }
      ::close(ends[1]);
      shares.emplace_back(child, ends[0]);
    }
    for (const auto& [child, end] : shares) {
      Sum sum;
      const bool told = ::read(end, &sum, sizeof sum) == sizeof sum;
      int status = 0;
      ::waitpid(child, &status, 0);
      if (!told) {
        sum = {};
        sum.failed = 1;
        std::printf("a share of the seeds ended with %s %d; run it with --jobs 1\n", WIFSIGNALED(status) ? "signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      }
      all.seeds += sum.seeds;
      all.failed += sum.failed;
      all.done += sum.done;
      all.unknown += sum.unknown;
      all.faults += sum.faults;
      all.events += sum.events;
    }
  }
  const double took = now() - began;
  std::printf(
      "%llu seeds, %llu faults, %llu steps done, %llu with unknown outcome, %llu events in %.1f s (%.0f times real time); %llu failed\n",
      static_cast<unsigned long long>(all.seeds), static_cast<unsigned long long>(all.faults), static_cast<unsigned long long>(all.done),
      static_cast<unsigned long long>(all.unknown), static_cast<unsigned long long>(all.events), took,
      static_cast<double>(all.seeds) * dtg::sim::kSimulatedSeconds / took, static_cast<unsigned long long>(all.failed));
  if (!options.ledger.empty() && !enter(options, all)) return 2;
  return all.failed == 0 ? 0 : 1;
}
