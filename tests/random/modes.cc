// Running a scene through sessions.
#include "random/modes.h"

#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "ops/all.h"
#include "random/compare.h"
#include "scratch.h"
#include "session/async_run.h"

namespace dtg::random {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kTimeout = 20 * kSecond;

constexpr Mode kModes[] = {
    {.name = "fused"},
    {.name = "plain", .threads = 1, .fusion = false},
    {.name = "single", .threads = 1},
    {.name = "place", .way = Way::in_place},
    {.name = "overlap", .way = Way::overlap, .threads = 1},
    {.name = "callable", .way = Way::callable},
    {.name = "async", .way = Way::async},
    {.name = "together", .way = Way::together},
    {.name = "aborted", .way = Way::aborted},
    {.name = "devices", .places = Places::devices},
    {.name = "tasks", .places = Places::tasks},
    {.name = "emu", .places = Places::emu},
    {.name = "joined", .committing = Committing::joined},
    {.name = "logged", .committing = Committing::logged},
};

using Mutant = Accelerator::Mutant;
constexpr Mode kMutants[] = {
    {.name = "skips_wait", .places = Places::emu, .mutant = Mutant::skips_wait},
    {.name = "frees_early", .places = Places::emu, .mutant = Mutant::frees_early},
    {.name = "reads_device", .places = Places::emu, .mutant = Mutant::reads_device},
    {.name = "swaps_streams", .places = Places::emu, .mutant = Mutant::swaps_streams},
};

// One run of a scene in terms of a session.
struct Request {
  std::vector<Value> feeds, fetches;
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> pointers;
  std::vector<NodeId> targets;

  Request(const RunRecord& run, const Graph& graph) {
    const auto value = [&](const Port& port) { return graph.value(static_cast<NodeId>(port.node), static_cast<uint32_t>(port.output)); };
    for (const auto& [port, tensor] : run.feeds) {
      feeds.push_back(value(port));
      tensors.push_back(copy_of(tensor));
    }
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    for (const Port& port : run.fetches) fetches.push_back(value(port));
    targets.assign(run.targets.begin(), run.targets.end());
  }
  RunArgs args() const { return {feeds, pointers, fetches, targets, kTimeout}; }
};

// Judges one result.
std::string judge(const Outcome& truth, const Status& status, const std::vector<Tensor>& got) {
  if (truth.verdict == Verdict::either) return {};
  if (truth.verdict == Verdict::error) {
    if (status.ok()) return "it went well, but the truth is an error: " + truth.status.message();
    // What is too large is known to be that, not to be something else that went wrong.
    const bool other = truth.status.code() == Code::resource_exhausted && status.code() != Code::resource_exhausted;
    return other ? std::string("it failed with ") + code_name(status.code()) + ": " + status.message() +
                       ", but the truth is: " + truth.status.message()
                 : "";
  }
  if (!status.ok()) return std::string("it failed with ") + code_name(status.code()) + ": " + status.message();
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string text = difference(truth.fetched[i], got[i]);
    if (!text.empty()) return "fetch " + std::to_string(i) + ": " + text;
  }
  return {};
}

std::string feeds_untouched(const RunRecord& run, const Request& request) {
  for (size_t i = 0; i < run.feeds.size(); ++i) {
    if (!difference(run.feeds[i].second, request.tensors[i]).empty()) return "feed " + std::to_string(i) + " was written to";
  }
  return {};
}

std::string run_async(Session& session, const RunRecord& run, const Request& request, const Outcome& truth, int times) {
  auto queue = CompletionQueue::create();
  if (!queue.ok()) return queue.status().message();
  std::vector<Ref<AsyncRun>> runs;
  for (int i = 0; i < times; ++i) {
    auto started = session.run_async(request.args(), queue.value(), static_cast<uint64_t>(i));
    if (!started.ok()) return judge(truth, started.status(), {});
    runs.push_back(started.take());
  }
  for (int i = 0; i < times; ++i) {
    CompletionQueue::Event event;
    const Clock& clock = session.runtime().clock();
    if (queue.value()->next({&event, 1}, clock, Deadline::after(clock, 2 * kTimeout)) != 1) return "an asynchronous run never ended";
  }
  for (const Ref<AsyncRun>& one : runs) {
    std::vector<Tensor> got;
    for (size_t i = 0; one->outcome().ok() && i < run.fetches.size(); ++i) {
      auto taken = one->take(i);
      if (!taken.ok()) return taken.status().message();
      got.push_back(taken.take());
    }
    if (std::string text = judge(truth, one->outcome(), got); !text.empty()) return text;
  }
  return {};
}

std::string run_together(Session& session, const RunRecord& run, const Request& request, const Outcome& truth) {
  std::string said[3];
  std::vector<std::thread> threads;
  for (std::string& text : said) {
    threads.emplace_back([&] {
      std::vector<Tensor> got(run.fetches.size());
      const Status status = session.run(request.args(), got);
      text = judge(truth, status, got);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : said) {
    if (!text.empty()) return "one of three at the same time: " + text;
  }
  return {};
}

// Ended from outside at some moment, in bodies too, and then made once more in full.
std::string run_aborted(Session& session, const RunRecord& run, const Request& request, const Outcome& truth) {
  auto queue = CompletionQueue::create();
  if (!queue.ok()) return queue.status().message();
  const Clock& clock = session.runtime().clock();
  for (uint64_t pause : {0, 40, 400}) {
    auto started = session.run_async(request.args(), queue.value(), pause);
    if (!started.ok()) return judge(truth, started.status(), {});
    for (const int64_t until = clock.monotonic_ns() + static_cast<int64_t>(pause) * 1000; clock.monotonic_ns() < until;) {
    }
    started.value()->cancel();
    CompletionQueue::Event event;
    if (queue.value()->next({&event, 1}, clock, Deadline::after(clock, kTimeout)) != 1) return "a cancelled run never ended";
    if (event.status.code() == Code::cancelled) continue;
    std::vector<Tensor> got;
    for (size_t i = 0; event.status.ok() && i < run.fetches.size(); ++i) {
      auto taken = started.value()->take(i);
      if (!taken.ok()) return taken.status().message();
      got.push_back(taken.take());
    }
    if (std::string text = judge(truth, event.status, got); !text.empty()) return "cancelled too late: " + text;
  }
  std::vector<Tensor> got(run.fetches.size());
  return judge(truth, session.run(request.args(), got), got);
}

// Fetched into tensors that are given, which is memory of our own or, overlapping, that of a feed.
std::string run_in_place(Session& session, const RunRecord& run, const Request& request, const Outcome& truth, bool overlap) {
  std::vector<Tensor> given;
  bool overlaps = false;
  for (const Tensor& wanted : truth.fetched) {
    given.push_back(copy_of(wanted));
    if (wanted.bytes() > 0) std::memset(given.back().data(), 0x5A, static_cast<size_t>(wanted.bytes()));
    for (const Tensor& fed : request.tensors) {
      if (!overlap || overlaps || fed.dtype() != wanted.dtype() || !(fed.shape() == wanted.shape())) continue;
      given.back() = fed;
      overlaps = true;
    }
  }
  if (truth.verdict != Verdict::ok) given.assign(run.fetches.size(), Tensor());
  const std::vector<Tensor> before = given;
  Status status = session.run(request.args(), given);
  if (overlaps && status.code() == Code::invalid_argument) {
    // Refusing is right, too; then nothing has happened, and the state must go on as the truth says.
    given.assign(run.fetches.size(), Tensor());
    status = session.run(request.args(), given);
    overlaps = false;
    return judge(truth, status, given);
  }
  for (size_t i = 0; status.ok() && truth.verdict == Verdict::ok && i < given.size(); ++i) {
    if (given[i].data() != before[i].data()) return "fetch " + std::to_string(i) + " is not in the memory that was given";
  }
  return judge(truth, status, given);
}

std::string run_one(Session& session, const Mode& mode, const Scene& scene, const RunRecord& run, const Outcome& truth) {
  const Request request(run, session.graph());
  const bool alone = mode.way != Way::together && mode.way != Way::async && mode.way != Way::aborted;
  const bool effects = alone || truth.verdict != Verdict::ok || has_effects(scene, run, session.graph().ops());
  std::vector<Tensor> got(run.fetches.size());
  std::string text;
  switch (mode.way) {
    case Way::run: text = judge(truth, session.run(request.args(), got), got); break;
    case Way::callable: {
      auto callable = session.prepare(request.feeds, request.fetches, request.targets);
      if (!callable.ok()) return judge(truth, callable.status(), got);
      text = judge(truth, callable.value()->run(request.pointers, got, kTimeout), got);
      if (text.empty() && !has_effects(scene, run, session.graph().ops())) {
        std::vector<Tensor> again(run.fetches.size());
        text = judge(truth, callable.value()->run(request.pointers, again, kTimeout), again);
        if (!text.empty()) text = "the second call of a callable: " + text;
      }
      break;
    }
    case Way::async: text = run_async(session, run, request, truth, effects ? 1 : 3); break;
    case Way::together:
      text = effects ? judge(truth, session.run(request.args(), got), got) : run_together(session, run, request, truth);
      break;
    case Way::aborted:
      text = effects ? judge(truth, session.run(request.args(), got), got) : run_aborted(session, run, request, truth);
      break;
    case Way::in_place: text = run_in_place(session, run, request, truth, false); break;
    case Way::overlap: return run_in_place(session, run, request, truth, true);
  }
  return text.empty() ? feeds_untouched(run, request) : text;
}

}  // namespace

std::span<const Mode> modes() { return kModes; }
std::span<const Mode> mutants() { return kMutants; }

// A worker, where the sessions live, and a parameter server, both in this process.
struct Stage::Cluster {
  Scratch scratch;
  Ref<Runtime> other;
  Ref<Server> ps, worker;

  Status start(const Ref<Runtime>& home) {
    ::chmod(scratch.path().c_str(), 0700);
    const std::string spec = "ps=unix:" + (scratch / "ps0") + ";worker=unix:" + (scratch / "w0");
    DTG_ASSIGN(other, Runtime::create({.compute_threads = 2, .memory_limit_bytes = kMemoryLimit}));
    DTG_ASSIGN(ps, serve(other, spec, "ps"));
    DTG_ASSIGN(worker, serve(home, spec, "worker"));
    return {};
  }
  static Result<Ref<Server>> serve(const Ref<Runtime>& runtime, const std::string& spec, const char* job) {
    Server::Options options;
    DTG_ASSIGN(options.cluster, ClusterSpec::parse(spec));
    options.job = job;
    options.task = 0;
    DTG_ASSIGN(const Host host, runtime->host());
    return Server::start(host, std::move(options), runtime);
  }
};

Stage::Stage() = default;
Stage::~Stage() = default;

Result<Ref<Runtime>> Stage::runtime(int threads) {
  Ref<Runtime>& at = runtimes_[threads];
  if (!at) {
    DTG_ASSIGN(at, Runtime::create({.compute_threads = threads, .memory_limit_bytes = kMemoryLimit}));
  }
  return at;
}

// Scenes hold functions, whose nodes point to their ops; so these outlive every stage.
static const auto& all_tables() {
  struct All {
    OpTable ops;
    KernelTable kernels;
    All() { dtg::ops::register_all(ops, kernels); }
  };
  static const All all;
  return all;
}

const OpTable& Stage::all_ops() { return all_tables().ops; }

Result<Tables> Stage::tables() {
  DTG_ASSIGN(const Ref<Runtime> shared, runtime(1));
  return Tables{&all_tables().ops, &all_tables().kernels, &shared->pool()};
}

Result<Ref<Session>> Stage::connect(const Mode& mode, Ref<Graph> graph, Ref<Runtime> runtime) {
  Session::Options options;
  options.fusion = mode.fusion;
  options.committing = mode.committing;
  options.devices.cpu = mode.places == Places::devices ? 2 : 1;
  if (mode.places == Places::emu) options.devices.emu = 2;
  options.devices.mutant = mode.mutant;
  options.connect_timeout_ns = kTimeout;
  std::string target = "local";
  if (mode.places == Places::tasks) {
    if (!cluster_) {
      auto made = std::make_unique<Cluster>();
      DTG_TRY(made->start(runtime));
      cluster_ = std::move(made);
    }
    target = cluster_->worker->target();
  }
  return Session::connect(std::move(runtime), target, std::move(graph), options);
}

std::string Stage::check(const Mode& mode, const Scene& scene, const Truth& truth) {
  auto shared = runtime(mode.threads);
  if (!shared.ok()) return shared.status().message();
  auto graph = Graph::create(&shared.value()->ops());
  if (!graph.ok()) return graph.status().message();
  auto session = connect(mode, graph.value(), shared.value());
  if (!session.ok()) return session.status().message();
  std::string text;
  for (size_t i = 0; i < truth.size() && text.empty(); ++i) {
    // What a body uses has to be in one place. Where a device is chosen when a node first runs, a call that is added later may be too late
    // to have what it takes brought together; so accelerators see the whole graph.
    const int upto = mode.places == Places::emu ? static_cast<int>(scene.nodes.size()) : scene.runs[i].nodes;
    const Status grown = replay(scene, upto, mode.places, *graph.value());
    if (!grown.ok()) text = grown.message();
    for (int time = 1; time <= truth[i].times && text.empty(); ++time)
      text = run_one(*session.value(), mode, scene, scene.runs[i], time < truth[i].times ? Outcome() : truth[i]);
    if (!text.empty()) text = "run " + std::to_string(i) + ": " + text;
  }
  if (mode.places == Places::tasks) {
    const Status reset = session.value()->reset({});
    if (text.empty() && !reset.ok()) text = "reset: " + reset.message();
  }
  const Status closed = session.value()->close(kTimeout);
  if (text.empty() && !closed.ok()) text = "close: " + closed.message();
  return text;
}

}  // namespace dtg::random
