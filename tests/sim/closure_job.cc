// The programs of a coordinator's job, its faults and its checks.
#include "closure_job.h"

#include <algorithm>

#include "cluster/server.h"
#include "graph/build.h"
#include "session/async_run.h"
#include "train/coordinator.h"

namespace dtg::sim {
namespace {

constexpr int64_t kDisturbedNs = 30 * kSecond, kCalmNs = 10 * kSecond;
// Where each death is told: a worker that is back after a second at most is met within the pause between two attempts, of 2 s at most.
// Otherwise who is silent is missed after T_dead, and the closure may meet three such, one after the other.
constexpr int64_t kToldStallNs = 2300 * kMillisecond, kStallNs = 3 * Timing().dead_ns + 3 * kSecond;

}  // namespace

ClosureJob::ClosureJob(uint64_t seed, bool talks)
    : world_(seed),
      net_(world_),
      servers_(static_cast<int>(world_.between(1, 2))),
      workers_(static_cast<int>(world_.between(1, 3))),
      is_told_(world_.one_in(2)) {
  if (is_told_) net_.always_tell();
  world_.talks = talks;
  for (int p = 0; p < servers_; ++p) members_.push_back({"ps" + std::to_string(p), "ps", p, nullptr});
  for (int w = 0; w < workers_; ++w) members_.push_back({"worker" + std::to_string(w), "worker", w, nullptr});
}

ClosureJob::~ClosureJob() = default;

void ClosureJob::wrong(const std::string& what) {
  world_.say("WRONG: " + what);
  if (wrong_.empty()) wrong_ = what;
}

void ClosureJob::start(Member& member) {
  world_.say("start " + member.name);
  last_change_ns_ = world_.now_ns();
  member.process = std::make_unique<Process>(world_, net_, member.name, world_.u64(), nullptr,
                                             [this, &member](Process& process) { serve(process, member); });
}

void ClosureJob::serve(Process& process, const Member& member) {
  Server::Options options;
  options.cluster = ClusterSpec::parse(spec_of(servers_, workers_)).take();
  options.job = member.job;
  options.task = member.number;
  auto server = Server::start(process.runtime()->host().take(), options, process.runtime());
  if (!server.ok()) return process.is_cut_off() ? void() : wrong("a server does not start: " + server.status().message());
  while (!process.is_cut_off() && !over_) process.sleep(50 * kMillisecond);
  process.hears(server.value()->stop(5 * kSecond));
}

namespace {

// A run that nobody's thread waits for.
Status run_once(Session& session, const Clock& clock, std::span<const Value> fetches, std::span<const NodeId> targets,
                std::vector<Tensor>* fetched) {
  const Ref<CompletionQueue> queue = CompletionQueue::create().take();
  DTG_ASSIGN(const Ref<AsyncRun> run, session.run_async({{}, {}, fetches, targets, 10 * kSecond}, queue, 0));
  CompletionQueue::Event event;
  if (queue->next({&event, 1}, clock, Deadline::after(clock, 20 * kSecond)) == 0) return internal_error("a run does not end");
  for (size_t i = 0; event.status.ok() && i < fetches.size(); ++i) fetched->push_back(run->take(i).take());
  return event.status;
}

}  // namespace

// Schedules closures as they end, a few at a time, and looks in the end at what the servers have counted.
void ClosureJob::coordinate(Process& process) {
  const Clock& clock = process.clock();
  const Ref<Graph> graph = Graph::create(&process.runtime()->ops()).take();
  Build b(*graph);
  const auto scalar = [&] { return b.op("Placeholder", {}, {{"dtype", DType::i64}, {"shape", PartialShape(Shape())}}); };
  const Value cell = scalar(), worker = scalar();
  const Value one = b.op("OneHot", {cell, b.integer(kCells), b.scalar(DType::i64, 1), b.scalar(DType::i64, 0)});
  std::vector<NodeId> clear, add;
  std::vector<Value> read;
  const auto variable = [&](const std::string& device, const char* name, int64_t count) {
    graph->push_device(device);
    const Value handle =
        b.op("VarHandleOp", {}, {{"dtype", DType::i64}, {"shape", Shape::of({count})}, {"shared_name", std::string(name)}});
    (void)graph->pop_device();
    return handle;
  };
  for (int p = 0; p < servers_; ++p) {
    const std::string device = "/job:ps/task:" + std::to_string(p);
    const Value handle = variable(device, "cells", kCells);
    graph->push_device(device);
    const Value zeros = b.op("Fill", {b.ints({kCells}), b.scalar(DType::i64, 0)}, {});
    clear.push_back(b.node("AssignVariableOp", std::vector<Value>{handle, zeros}));
    read.push_back(b.op("ReadVariableOp", {handle}, {{"dtype", DType::i64}}));
    (void)graph->pop_device();
    add.push_back(b.node("AssignAddVariableOp", std::vector<Value>{handle, one}));
  }
  // Of each worker: its number, which is gone with it.
  const Value own = variable("/job:worker", "own", 1);
  graph->push_device("/job:worker");
  const NodeId own_init = b.node("AssignVariableOp", std::vector<Value>{own, b.reshape(worker, b.ints({1}))});
  const Value own_value = b.op("ReadVariableOp", {own}, {{"dtype", DType::i64}});
  // From a server to a worker and back, with and without: plans of several kinds.
  const Value seen = b.op("Sum", {read[0], b.ints({0})}, {{"keep_dims", false}});
  const Value answer = b.add(cell, b.mul(seen, b.scalar(DType::i64, 0)));
  (void)graph->pop_device();
  if (!b.status().ok()) return wrong(b.status().message());

  Session::Options wanted;
  wanted.connect_timeout_ns = 20 * kSecond;
  auto session = Session::connect(process.runtime(), "unix:/sim/ps0", graph, wanted);
  if (!session.ok()) return wrong("the coordinator cannot connect: " + session.status().message());
  if (const Status status = run_once(*session.value(), clock, {}, clear, nullptr); !status.ok()) return wrong(status.message());
  Coordinator::Options options;
  options.closure_losses = 1'000;
  auto made = Coordinator::create(session.value(), options);
  if (!made.ok()) return wrong(made.status().message());
  const Ref<Coordinator> coordinator = made.take();
  const auto resource = coordinator->prepare({}, {}, {&own_init, 1}, worker);
  (void)coordinator->add_per_worker(resource.value(), {}).ok();
  // Those of one kind only write, others ask, too.
  const Value fetches[] = {own_value, answer};
  const std::vector<Ref<RemoteClosure>> kinds = {coordinator->prepare({&cell, 1}, fetches, add, {}).take(),
                                                 coordinator->prepare({&cell, 1}, {fetches, 1}, add, {}).take(),
                                                 coordinator->prepare({&cell, 1}, {fetches + 1, 1}, {}, {}).take()};
  struct Given {
    int64_t number = 0;
    bool writes = false;
    Ref<RemoteValue> value;
  };
  const Ref<CompletionQueue> ends = CompletionQueue::create().take();
  std::vector<int> expected(kCells);
  std::vector<Given> under_way;
  int64_t number = 0;
  const int64_t stall_ns = is_told_ ? kToldStallNs : kStallNs;
  int64_t last_done_ns = world_.now_ns();
  while (wrong_.empty() && (world_.now_ns() < calm_from_ns_ + kCalmNs || !under_way.empty())) {
    const bool more = world_.now_ns() < calm_from_ns_ + kCalmNs && number < kCells;
    if (!more && under_way.empty()) break;
    const auto most = static_cast<size_t>(world_.between(1, 6));
    while (more && under_way.size() < most && number < kCells) {
      const size_t kind = static_cast<size_t>(world_.between(0, 2));
      auto given = coordinator->schedule(kinds[kind], {Tensor::of<int64_t>(Shape(), std::span<const int64_t>(&number, 1)).take()},
                                         10 * kSecond, nullptr, ends, static_cast<uint64_t>(number));
      process.hears(given.status());
      if (!given.ok()) return wrong("a closure cannot be scheduled: " + given.status().message());
      under_way.push_back({number++, kind < 2, given.take()});
    }
    CompletionQueue::Event event;
    if (ends->next({&event, 1}, clock, Deadline::after(clock, 50 * kMillisecond)) == 0) {
      if (world_.now_ns() - (is_told_ ? std::max(last_done_ns, last_change_ns_) : last_done_ns) < stall_ns) continue;
      wrong("no closure has ended for " + std::to_string(stall_ns / kMillisecond) + " ms: " + coordinator->describe());
      break;
    }
    process.hears(event.status);
    const auto at = std::ranges::find(under_way, static_cast<int64_t>(event.tag), &Given::number);
    if (!event.status.ok()) {
      wrong("a closure failed: " + event.status.message());
      break;
    }
    ++done_;
    last_done_ns = world_.now_ns();
    world_.note(event.tag);
    expected[event.tag] = at->writes ? 1 : 0;
    under_way.erase(at);
    if (world_.one_in(2)) process.sleep(world_.between(0, 40) * kMillisecond);
  }
  if (wrong_.empty()) {
    const Status joined = coordinator->join(10 * kSecond, nullptr);
    process.hears(joined);
    if (!joined.ok()) wrong("join: " + joined.message());
    std::vector<Tensor> cells;
    if (const Status status = run_once(*session.value(), clock, read, {}, &cells); !status.ok()) wrong(status.message());
    for (const Tensor& each : cells) {
      for (int64_t c = 0; c < number; ++c) {
        if (each.as<int64_t>()[c] != expected[static_cast<size_t>(c)])
          wrong("closure " + std::to_string(c) + " took place " + std::to_string(each.as<int64_t>()[c]) + " times");
      }
    }
  }
  coordinator->close();
  finished_ = true;
}

// Workers are killed, one now and then stays, and connections break.
void ClosureJob::disturb() {
  if (world_.now_ns() >= calm_from_ns_) return;
  ++faults_;
  Member& one = members_[static_cast<size_t>(servers_ + world_.between(0, workers_ - 1))];
  switch (world_.between(0, 5)) {
    case 0:
      world_.say("slow");
      net_.slow_down(world_.between(1, 30) * kMillisecond);
      world_.after(world_.between(1, 1000) * kMillisecond, [this] { net_.slow_down(0); });
      break;
    case 1:
      world_.say("stall " + one.name);
      if (one.process && !is_told_) one.process->stall(world_.now_ns() + world_.between(1, 1500) * kMillisecond);
      break;
    default:
      if (!one.process) break;
      world_.say("kill " + one.name);
      one.process->kill();
      last_change_ns_ = world_.now_ns();
      remains_.push_back(std::move(one.process));
      world_.after(world_.between(1, 900) * kMillisecond, [this, &one] { start(one); });
  }
  world_.after(world_.between(10, 2500) * kMillisecond, [this] { disturb(); });
}

Outcome ClosureJob::run() {
  calm_from_ns_ = world_.now_ns() + kDisturbedNs;
  for (Member& member : members_) start(member);
  const auto coordinator =
      std::make_unique<Process>(world_, net_, "coordinator", world_.u64(), nullptr, [this](Process& process) { coordinate(process); });
  world_.after(2 * kSecond, [this] { disturb(); });
  for (const int64_t until = world_.now_ns() + kDisturbedNs + kCalmNs + 60 * kSecond; !coordinator->is_gone() && world_.step(until);) {
  }
  if (!finished_ && wrong_.empty()) wrong("the coordinator does not come to an end");
  over_ = true;
  for (Member& member : members_) {
    if (member.process) remains_.push_back(std::move(member.process));
  }
  run_out(world_, remains_, [this](const std::string& what) { wrong(what); });
  return {wrong_, done_, 0, faults_, world_.events(), world_.history()};
}

}  // namespace dtg::sim
