// The programs of a simulated job and what befalls it.
#include "cluster.h"

#include <algorithm>
#include <array>
#include <functional>

#include "cluster/server.h"
#include "graph/build.h"
#include "graph/closure.h"
#include "strict.h"
#include "timed_runs.h"

namespace dtg::sim {
namespace {

constexpr int64_t kDisturbedNs = 40 * kSecond, kCalmNs = 20 * kSecond, kStepNs = 3 * kSecond;

Value cells(Build& b, Graph& graph, int server, int count) {
  graph.push_device("/job:ps/task:" + std::to_string(server));
  const Value handle =
      b.op("VarHandleOp", {}, {{"dtype", DType::i64}, {"shape", Shape::of({count})}, {"shared_name", std::string("cells")}});
  (void)graph.pop_device();
  return handle;
}

Value order(Build& b, Graph& graph, int server) {
  graph.push_device("/job:ps/task:" + std::to_string(server));
  const Value handle = b.op("VarHandleOp", {}, {{"dtype", DType::u64}, {"shape", Shape::of({2})}, {"shared_name", std::string("order")}});
  (void)graph.pop_device();
  return handle;
}

NodeId add_once(Build& b, Value handle, Value index, int64_t amount) {
  const Value amounts = b.constant(Tensor::of<int64_t>(Shape::of({1}), {&amount, 1}).take());
  return b.node("ResourceScatterAdd", std::vector<Value>{handle, index, amounts});
}

Ref<Graph> inside(const Ref<Graph>& graph) { return Graph::create_inside(graph).take(); }

// In a function, which is one unit as a whole.
NodeId add_in_branch(const Ref<Graph>& graph, Value handle, Value index) {
  std::vector<Closure> branches;
  for (const int64_t amount : {1, 1000}) {
    const Ref<Graph> body = inside(graph);
    Build b(*body);
    const NodeId add = add_once(b, handle, index, amount);
    branches.push_back(finish_function(body, "add", {b.integer(0)}, {add}).take());
  }
  Build b(*graph);
  const Value zero = b.integer(0);
  return add_case(*graph, b.op("Minimum", {b.op("Squeeze", {index}), zero}), std::move(branches)).take()[0].node();
}

// A loop of so many rounds from 0, in a graph or a body.
NodeId rounds(const Ref<Graph>& graph, int count, const std::function<std::vector<NodeId>(const Ref<Graph>&, Value number)>& round) {
  Build b(*graph);
  const Value start[] = {b.integer(0)};
  const Ref<Graph> condition = inside(graph), body = inside(graph);
  const Value asked = condition->add_argument(graph->info(start[0])).take(), number = body->add_argument(graph->info(start[0])).take();
  Build c(*condition), d(*body);
  Closure more = finish_function(condition, "more", {c.op("Less", {asked, c.integer(count)})}).take();
  const std::vector<NodeId> acts = round(body, number);
  Closure rounds = finish_function(body, "add", {d.add(number, d.integer(1))}, acts).take();
  return add_while(*graph, start, std::move(more), std::move(rounds)).take()[0].node();
}

NodeId add_where(const Ref<Graph>& graph, Value handle, Value index, Value adds) {
  Build b(*graph);
  return b.node("ResourceScatterAdd", std::vector<Value>{handle, index, b.op("Reshape", {b.cast(adds, DType::i64), b.ints({1})})});
}

// Three rounds, each of which is a unit, and the second adds.
NodeId add_in_rounds(const Ref<Graph>& graph, Value handle, Value index) {
  return rounds(graph, 3, [&](const Ref<Graph>& body, Value number) {
    Build b(*body);
    return std::vector<NodeId>{add_where(body, handle, index, b.op("Equal", {number, b.integer(1)}))};
  });
}

// Rounds that wait, and have rounds of their own: the second of the second adds. What comes out of the queue is what this round or another
// worker's put there.
NodeId add_in_strand(const Ref<Graph>& graph, Value handle, Value index) {
  Build q(*graph);
  const Value queue = q.op("FIFOQueueV2", std::span<const Value>(),
                           std::vector<Attr>{{"component_types", std::vector<DType>{DType::i32}},
                                             {"shapes", std::vector<PartialShape>{Shape()}},
                                             {"shared_name", std::string("passed on")}});
  return rounds(graph, 2, [&](const Ref<Graph>& body, Value number) {
    Build b(*body);
    const NodeId put[] = {b.node("QueueEnqueueV2", std::vector<Value>{queue, b.integer(1)})};
    const Value got =
        b.op("QueueDequeueV2", std::vector<Value>{queue}, std::vector<Attr>{{"component_types", std::vector<DType>{DType::i32}}}, {}, put);
    const Value second = b.op("Equal", {number, got});
    return std::vector<NodeId>{rounds(body, 3, [&](const Ref<Graph>& inner, Value inside_number) {
      Build d(*inner);
      const Value both = d.op("LogicalAnd", {second, d.op("Equal", {inside_number, d.integer(1)})});
      return std::vector<NodeId>{add_where(inner, handle, index, both)};
    })};
  });
}

}  // namespace

// A session and the graph of a worker.
class WorkerHost {
 public:
  WorkerHost(Process& process, int servers, int count, Adding adding, bool keeps_order)
      : process_(process), graph_(Graph::create(&process.runtime()->ops()).take()) {
    Build b(*graph_);
    index_ = b.op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape(Shape::of({1}))}}, "index");
    token_ = b.op("Placeholder", {}, {{"dtype", DType::u64}, {"shape", PartialShape(Shape::of({2}))}}, "token");
    const Value zeros = b.constant([count] {
      Tensor none = Tensor::allocate(DType::i64, Shape::of({count})).take();
      std::fill_n(none.as<int64_t>(), count, int64_t{0});
      return none;
    }());
    for (int p = 0; p < servers; ++p) {
      const Value handle = cells(b, *graph_, p, count);
      graph_->push_device("/job:ps/task:" + std::to_string(p));
      add_.push_back(adding == Adding::plain       ? add_once(b, handle, index_, 1)
                     : adding == Adding::in_branch ? add_in_branch(graph_, handle, index_)
                     : adding == Adding::in_rounds ? add_in_rounds(graph_, handle, index_)
                                                   : add_in_strand(graph_, handle, index_));
      if (keeps_order) keep_order(b, p);
      clear_.push_back(b.node("AssignVariableOp", std::vector<Value>{handle, zeros}));
      is_there_.push_back(b.op("VarIsInitializedOp", {handle}));
      read_.push_back(b.op("ReadVariableOp", {handle}, {{"dtype", DType::i64}}));
      (void)graph_->pop_device();
    }
    status_ = b.status();
  }

  Status connect(const std::string& target) {
    DTG_TRY(status_);
    Session::Options options;
    options.connect_timeout_ns = 10 * kSecond;
    auto session = Session::connect(process_.runtime(), target, graph_, options);
    process_.hears(session.status());
    DTG_ASSIGN(session_, std::move(session));
    return {};
  }
  // One run, that nobody's thread waits for; the host waits for its end as a host does. Late by more than 100 ms is an error of its own.
  Status run(std::span<const Value> fetches, std::span<const NodeId> targets, std::vector<Tensor>* fetched, int cell = -1) {
    Tensor fed, told;
    const std::array<const Tensor*, 2> feeds{&fed, &told};
    const std::array<Value, 2> inputs{index_, token_};
    RunArgs args{{}, {}, fetches, targets, kStepNs};
    if (cell >= 0) {
      fed = Tensor::ints(DType::i32, std::vector<int64_t>{cell}).take();
      args.feeds = {inputs.data(), order_.empty() ? size_t{1} : 2};
      args.feed_tensors = {feeds.data(), args.feeds.size()};
      const uint64_t token[] = {1, OrderWatch::token(cell)};
      told = Tensor::of<uint64_t>(Shape::of({2}), token).take();
    }
    return runs_.run(*session_, args, fetched);
  }
  bool was_late() { return runs_.was_late(); }
  Session& session() { return *session_; }
  const std::vector<NodeId>& add() const { return add_; }
  const std::vector<NodeId>& clear() const { return clear_; }
  const std::vector<Value>& is_there() const { return is_there_; }
  const std::vector<Value>& read() const { return read_; }
  const std::vector<Value>& order() const { return order_; }

 private:
  // Two writes that are one unit with the cell's.
  void keep_order(Build& b, int server) {
    const Value handle = sim::order(b, *graph_, server);
    const auto constant = [&](std::vector<uint64_t> values) {
      const Shape shape = Shape::of({static_cast<int64_t>(values.size())});
      return b.constant(Tensor::of<uint64_t>(shape, std::span<const uint64_t>(values)).take());
    };
    clear_.push_back(b.node("AssignVariableOp", std::vector<Value>{handle, constant({0, 0})}));
    add_.push_back(b.node("ResourceScatterMul", std::vector<Value>{handle, b.ints({1}), constant({OrderWatch::kBase})}));
    add_.push_back(b.node("ResourceScatterAdd", std::vector<Value>{handle, b.ints({0, 1}), token_}));
    is_there_.push_back(b.op("VarIsInitializedOp", {handle}));
    order_.push_back(b.op("ReadVariableOp", {handle}, {{"dtype", DType::u64}}));
  }

  Process& process_;
  Ref<Graph> graph_;
  Ref<Session> session_;
  Status status_;
  Value index_, token_;
  std::vector<Value> order_;
  std::vector<NodeId> add_, clear_;
  std::vector<Value> is_there_, read_;
  TimedRuns runs_{process_};
};

Cluster::Cluster(uint64_t seed, bool talks, Work work)
    : world_(seed),
      net_(world_),
      servers_(static_cast<int>(world_.between(1, 3))),
      workers_(static_cast<int>(world_.between(1, 4))),
      elastic_(work == Work::elastic),
      strict_(world_.one_in(24) || work != Work::any),
      keeps_state_(world_.one_in(2)),
      adding_(static_cast<Adding>(seed % 4)),
      keeps_order_(keeps_state_ && !strict_ && adding_ == Adding::plain),
      ledger_(servers_, workers_),
      order_(servers_),
      next_step_(static_cast<size_t>(workers_)),
      last_done_ns_(static_cast<size_t>(workers_)) {
  world_.talks = talks;
  for (int p = 0; p < servers_; ++p)
    members_.push_back({"ps" + std::to_string(p), true, p, nullptr, keeps_state_ ? std::make_shared<ModelDisk>() : nullptr, 0});
  for (int w = 0; w < workers_; ++w) members_.push_back({"worker" + std::to_string(w), false, w, nullptr, nullptr, 0});
}

Cluster::~Cluster() = default;

void Cluster::wrong(const std::string& what) {
  world_.say("WRONG: " + what);
  if (wrong_.empty()) wrong_ = what;
}

void Cluster::start(Member& member) {
  if (member.stays_away) return;
  world_.say("start " + member.name);
  const bool is_server = member.is_server;
  const int index = member.index;
  if (member.disk) member.disk->fail(-1, ModelDisk::Fault::none);
  if (is_server && !keeps_state_) ledger_.begin_life(static_cast<size_t>(index));
  member.process =
      std::make_unique<Process>(world_, net_, member.name, world_.u64(), member.disk, [this, is_server, index](Process& process) {
        if (is_server) serve(process, index);
        else work(process, index);
      });
}

void Cluster::serve(Process& process, int index) {
  Server::Options options;
  options.cluster = ClusterSpec::parse(spec_of(servers_, workers_)).take();
  options.job = "ps";
  options.task = index;
  if (keeps_state_) options.state_directory = "/state";
  options.set_bytes = 2'000;
  auto server = Server::start(process.runtime()->host().take(), options, process.runtime());
  if (!server.ok() && process.is_cut_off()) return;
  if (!server.ok()) return wrong("a server does not start: " + server.status().message());
  while (!process.is_cut_off() && !over_) process.sleep(50 * kMillisecond);
  process.hears(server.value()->stop(5 * kSecond));
}

void Cluster::work(Process& process, int index) {
  Server::Options options;
  options.cluster = ClusterSpec::parse(spec_of(servers_, workers_)).take();
  options.job = "worker";
  options.task = index;
  // Nobody needs a worker that does not come back.
  if (elastic_) options.filters = {"/job:ps", "/job:worker/task:" + std::to_string(index)};
  auto server = Server::start(process.runtime()->host().take(), options, process.runtime());
  if (!server.ok()) return wrong("a worker does not start: " + server.status().message());
  if (strict_) train(process, server.value()->target(), index);
  else add(process, server.value()->target(), index);
  while (!process.is_cut_off() && !over_) process.sleep(50 * kMillisecond);
  process.hears(server.value()->stop(5 * kSecond));
}

void Cluster::add(Process& process, const std::string& target, int index) {
  WorkerHost host(process, servers_, ledger_.cells(), adding_, keeps_order_);
  Status status;
  while (!process.is_cut_off() && !quiet_ && !(status = host.connect(target)).ok()) {
    world_.say(process.name() + " cannot connect: " + status.message());
    process.sleep(100 * kMillisecond);
  }
  while (status.ok() && !process.is_cut_off() && !quiet_ && step(process, host, index))
    process.sleep(world_.between(1, 150) * kMillisecond);
}

void Cluster::train(Process& process, const std::string& target, int index) {
  StrictWorker worker(process, servers_, share(index));
  Status status;
  while (!process.is_cut_off() && !quiet_ && !(status = worker.connect(target)).ok()) {
    world_.say(process.name() + " cannot connect: " + status.message());
    process.sleep(100 * kMillisecond);
  }
  while (status.ok() && !process.is_cut_off() && !quiet_ && worker.steps() < StrictWorker::kCells) {
    const Status made = worker.step();
    if (made.ok()) last_done_ns_[static_cast<size_t>(index)] = world_.now_ns();
    else world_.say(process.name() + " failed: " + made.message());
    if (made.code() == Code::data_loss && !process.is_cut_off()) wrong(process.name() + ": " + made.message());
    if (made.ok() && index == 0) ledger_.count_done();
    if (worker.was_late() && !process.is_cut_off() && process.last_stall_ns() < world_.now_ns() - 5 * kSecond)
      wrong(process.name() + ": a run ended later than its deadline and 100 ms");
    process.sleep(world_.between(1, 100) * kMillisecond);
  }
  if (worker.steps() >= StrictWorker::kCells) finished_ = true;
  // The chief's updates go on for the others.
  while (finished_ && !process.is_cut_off() && !quiet_) process.sleep(50 * kMillisecond);
  if (index != 0 || process.is_cut_off() || !status.ok()) return;
  status = worker.settle();
  if (!status.ok()) wrong("the chief cannot complete what was under way: " + status.message());
  // A client would look for a worker that is gone for good.
  while (elastic_ && !process.is_cut_off() && !over_ && !audited_) {
    if (is_asked_) audit_steps(worker);
    process.sleep(50 * kMillisecond);
  }
}

// The chief gives a server that has begun anew its cells; then everybody adds. False: there are no cells left.
bool Cluster::step(Process& process, WorkerHost& host, int index) {
  std::vector<Tensor> there;
  Status status;
  if (index == 0) {
    status = host.run(host.is_there(), {}, &there);
    for (size_t p = 0; status.ok() && p < there.size(); ++p) {
      if (!there[p].as<bool>()[0]) status = host.run({}, {&host.clear()[p], 1}, nullptr);
    }
  }
  if (status.ok() && !process.is_cut_off()) {
    const int number = next_step_[static_cast<size_t>(index)]++;
    if (number >= Ledger::kSteps) return false;
    const int cell = Ledger::cell(index, number);
    ledger_.began(cell);
    const int64_t began_ns = world_.now_ns();
    status = host.run({}, host.add(), nullptr, cell);
    // Nobody hears what one who was cut off believes.
    if (!process.is_cut_off()) ledger_.ended(cell, status);
    if (status.ok() && !process.is_cut_off()) order_.done(began_ns);
    if (status.ok() && keeps_order_ && !process.is_cut_off() && world_.one_in(3)) look_at_order(process, host);
    if (status.ok()) last_done_ns_[static_cast<size_t>(index)] = world_.now_ns();
  }
  if (!status.ok()) world_.say(process.name() + " failed: " + status.message());
  if (host.was_late() && !process.is_cut_off() && process.last_stall_ns() < world_.now_ns() - 5 * kSecond)
    wrong(process.name() + ": a run ended later than its deadline and 100 ms");
  return true;
}

void Cluster::look_at_order(Process& process, WorkerHost& host) {
  const std::vector<OrderWatch::Seen> before = order_.firm();
  std::vector<Tensor> read;
  const Status status = host.run(host.order(), {}, &read);
  if (process.is_cut_off() || !status.ok()) return;
  for (size_t p = 0; p < read.size(); ++p) {
    const auto* const values = read[p].as<uint64_t>();
    const std::string found = order_.show(p, before[p], {values[0], values[1]}, world_.now_ns());
    if (!found.empty()) wrong(found);
  }
}

// Reads everything when it is calm, and judges.
void Cluster::audit_steps(StrictWorker& worker) {
  const Result<std::string> found = worker.judge();
  if (!found.ok()) return wrong("the cells cannot be read: " + found.status().message());
  if (!found.value().empty()) wrong(found.value());
  audited_ = true;
}

// A client that reads all cells when it is calm, and judges.
void Cluster::audit(Process& process) {
  if (strict_) {
    StrictWorker worker(process, servers_, share(0));
    const Status status = worker.connect("unix:/sim/ps0");
    return status.ok() ? audit_steps(worker) : wrong("the cells cannot be read: " + status.message());
  }
  WorkerHost host(process, servers_, ledger_.cells(), adding_, false);
  Status status = host.connect("unix:/sim/ps0");
  std::vector<Tensor> read;
  if (status.ok()) status = host.run(host.read(), {}, &read);
  if (!status.ok()) return wrong("the cells cannot be read: " + status.message());
  for (size_t p = 0; p < read.size(); ++p) {
    const std::string found = ledger_.judge(p, read[p]);
    if (!found.empty()) wrong(found);
  }
  audited_ = true;
}

// One fault, and when it is over.
void Cluster::disturb() {
  if (world_.now_ns() >= calm_from_ns_) return;
  ++faults_;
  Member& one = members_[static_cast<size_t>(world_.between(0, static_cast<int64_t>(members_.size()) - 1))];
  Member& other = members_[static_cast<size_t>(world_.between(0, static_cast<int64_t>(members_.size()) - 1))];
  const int64_t lasts_ns = world_.between(1, 80) * world_.between(1, 100) * kMillisecond;
  switch (world_.between(0, keeps_state_ ? 7 : 6)) {
    case 0:
      world_.say("block " + one.name + " -> " + other.name);
      net_.block(one.name, other.name);
      if (world_.one_in(2)) net_.block(other.name, one.name);
      break;
    case 1:
      world_.say("slow");
      net_.slow_down(world_.between(1, 300) * kMillisecond);
      break;
    case 2:
      world_.say("stall " + one.name);
      if (one.process) one.process->stall(world_.now_ns() + lasts_ns);
      break;
    case 3:
    case 4:
      if (one.process && !(strict_ && one.is_server && !keeps_state_)) kill(one, lasts_ns / 2);
      break;
    case 5:
      if (one.disk && one.process) fail_disk(one, lasts_ns / 2);
      break;
    default:
      world_.say("break a connection");
      for (int64_t k = world_.between(1, 6); k > 0 && net_.break_one(); --k) {
      }
  }
  if (world_.one_in(3)) world_.after(lasts_ns, [this] { rest(); });
  world_.after(world_.between(10, 2500) * kMillisecond, [this] { disturb(); });
}

void Cluster::kill(Member& one, int64_t away_ns) {
  world_.say("kill " + one.name);
  one.process->kill();
  if (one.disk && world_.one_in(2)) {
    world_.say("its machine loses power");
    one.disk = one.disk->after_crash([this](int n) { return static_cast<int>(world_.between(0, n - 1)); });
  }
  remains_.push_back(std::move(one.process));
  one.back_at_ns = world_.now_ns() + away_ns;
  world_.at(one.back_at_ns, [this, &one] { start(one); });
}

// A write or a sync fails, once or from then on, until somebody starts the server again on a disk that works.
void Cluster::fail_disk(Member& one, int64_t lasts_ns) {
  const auto fault = world_.one_in(2) ? ModelDisk::Fault::io_error : ModelDisk::Fault::no_space;
  world_.say("a disk fails: " + one.name);
  one.disk->fail(one.disk->calls() + static_cast<int>(world_.between(0, 40)), fault, world_.one_in(2));
  world_.after(lasts_ns, [this, &one] {
    if (one.process) kill(one, 10 * kMillisecond);
  });
}

void Cluster::rest() {
  world_.say("heal");
  net_.heal();
  net_.slow_down(0);
}

// Not the chief; the others go on without it.
void Cluster::take_one_away() {
  Member& last = members_.back();
  if (workers_ == 1 || !world_.one_in(3)) return;
  last.stays_away = true;
  if (!last.process) return;
  world_.say("kill " + last.name + ", for good");
  last.process->kill();
  remains_.push_back(std::move(last.process));
}

Outcome Cluster::run() {
  for (Member& member : members_) start(member);
  const int64_t began = world_.now_ns();
  calm_from_ns_ = began + kDisturbedNs;
  world_.after(2 * kSecond, [this] { disturb(); });
  world_.at(calm_from_ns_ + 8 * kSecond, [this] {
    rest();
    if (elastic_) take_one_away();
  });
  world_.run(calm_from_ns_ + kCalmNs);
  for (int w = 0; w < workers_; ++w) {
    if (next_step_[static_cast<size_t>(w)] < Ledger::kSteps && !finished_ && !members_[static_cast<size_t>(servers_ + w)].stays_away &&
        last_done_ns_[static_cast<size_t>(w)] < calm_from_ns_ + kCalmNs - 2 * kSecond)
      wrong("worker " + std::to_string(w) + " has done nothing for two seconds, though all is well again");
  }
  // Nobody adds while the cells are read.
  quiet_ = true;
  world_.run(world_.now_ns() + (strict_ ? 15 : 5) * kSecond);
  Member auditor{"auditor", false, 0, nullptr, nullptr, 0};
  auditor.process = std::make_unique<Process>(world_, net_, auditor.name, world_.u64(), nullptr,
                                              [this](Process& process) { elastic_ ? void(is_asked_ = true) : audit(process); });
  for (const int64_t until = world_.now_ns() + 30 * kSecond; !(audited_ && auditor.process->is_gone()) && world_.step(until);) {
    if (!elastic_ && auditor.process->is_gone()) break;
  }
  if (!audited_ && wrong_.empty()) wrong("the cells could not be read in time");
  over_ = true;
  members_.push_back(std::move(auditor));
  for (Member& member : members_) {
    if (member.process) remains_.push_back(std::move(member.process));
  }
  run_out(world_, remains_, [this](const std::string& what) { wrong(what); });
  return {wrong_, ledger_.done(), ledger_.failed(), faults_, world_.events(), world_.history()};
}

}  // namespace dtg::sim
