// A strict update over three parameter servers, cut after any set of its commits, as a chief that dies there would leave it: whoever
// recovers completes what one task has applied, and forgets what none has. The weights are then those of a run that was never cut, to
// the bit, for each optimizer, with dense and with row gradients.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "cluster/server.h"
#include "graph/build.h"
#include "scratch.h"
#include "seconds.h"
#include "session/async_run.h"
#include "session/recover.h"

namespace dtg {
namespace {

constexpr int kServers = 3, kSteps = 4;

// Three parameter servers in this process.
class Servers {
 public:
  Servers() {
    ::chmod(scratch_.path().c_str(), 0700);
    std::string spec = "ps=";
    for (int p = 0; p < kServers; ++p) spec += (p ? ",unix:" : "unix:") + path(p);
    for (int p = 0; p < kServers; ++p) {
      there_.push_back(Runtime::create({.compute_threads = 1}).take());
      Server::Options options;
      options.cluster = ClusterSpec::parse(spec).take();
      options.job = "ps";
      options.task = p;
      servers_.push_back(Server::start(there_.back()->host().take(), options, there_.back()).take());
    }
  }
  std::string path(int p) const { return scratch_ / ("ps" + std::to_string(p)); }

  Scratch scratch_;
  std::vector<Ref<Runtime>> there_;
  std::vector<Ref<Server>> servers_;
};

// A client, which is the chief and the only worker.
class Chief {
 public:
  explicit Chief(const Optimizer& optimizer)
      : runtime_(Runtime::create({.compute_threads = 1}).take()), graph_(Graph::create(&runtime_->ops()).take()) {
    model_ = make_ref<Model>(graph_, 11);
    build(optimizer);
    session_ = Session::connect(runtime_, "unix:" + servers_.path(0), graph_, {}).take();
    queue_ = CompletionQueue::create().take();
  }
  ~Chief() { EXPECT_TRUE(session_->close(kSecond).ok()); }

  void begin() {
    run({}, {model_->init_target().take()});
    run({}, {added_.chief_init});
    run({}, {added_.local_init});
  }
  // One step, with the update that it waits for.
  void step(int number) {
    const Ref<AsyncRun> training = train(number);
    run({}, {added_.update});
    expect_end();
  }
  // As far as the gradients are there, and of the update only these commits.
  void cut_step(int number, unsigned units) {
    const Ref<AsyncRun> training = train(number);
    std::vector<NodeId> some{staged_};
    for (size_t u = 0; u < added_.units.size(); ++u) {
      if (units >> u & 1) some.push_back(commits_[u]);
    }
    run({}, some);
    training->cancel();
    expect_end();
  }
  Status recover() { return dtg::recover(*model_, added_, *session_, system_clock(), Deadline::after(system_clock(), 20 * kSecond)); }
  int64_t steps() { return run({added_.global_step}, {})[0].values<int64_t>()[0]; }
  size_t units() const { return added_.units.size(); }
  std::map<std::string, std::string> bits() {
    std::map<std::string, std::string> all;
    for (const NamedVariable& variable : model_->variables()) {
      const Tensor value = run({variable.read}, {})[0];
      all[variable.name] = std::string(value.as<char>(), static_cast<size_t>(value.bytes()));
    }
    return all;
  }

 private:
  void build(const Optimizer& optimizer) {
    Build b(*graph_);
    ids_ = b.op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape(Shape::of({3}))}});
    const NamedVariable table = variable("table", {5, 4}, 1), first = variable("first", {4, 3}, 2), second = variable("second", {3, 2}, 1);
    Value x = b.op("ResourceGather", {table.handle, ids_}, {{"dtype", DType::f32}});
    x = b.op("Tanh", {b.op("MatMul", {x, first.read})});
    x = b.op("Tanh", {b.op("MatMul", {x, second.read})});
    const Value loss = b.op("Mean", {b.op("Square", {b.add(x, b.scalar(DType::f32, 0.5))}), b.ints({0, 1})});
    EXPECT_TRUE(b.ok()) << b.status().message();
    graph_->push_device("/job:ps/task:0");
    EXPECT_TRUE(model_->global_step().ok());
    EXPECT_TRUE(graph_->pop_device().ok());
    auto added = minimize_replicated(*model_, loss, optimizer, {.mode = SyncMode::strict, .worker = 0, .total = 1, .to_aggregate = 0});
    ASSERT_TRUE(added.ok()) << added.status().message();
    added_ = added.take();
    find_commits();
  }
  NamedVariable variable(const char* name, std::vector<int64_t> dims, int on) {
    graph_->push_device("/job:ps/task:" + std::to_string(on));
    auto made = model_->add_variable({.name = name, .shape = Shape::make(dims).take(), .initializer = Initializer::uniform(-1, 1)});
    EXPECT_TRUE(graph_->pop_device().ok());
    return made.take();
  }
  // The update's own counting of each note; whoever follows up has another, made later. And what waits for everything that is kept.
  void find_commits() {
    for (const UpdateUnit& unit : added_.units) commits_.push_back(counting_of(graph_->node(unit.applied.node()).inputs[0]));
    for (NodeId id = 0; id < graph_->node_count(); ++id) {
      if (graph_->node(id).name.ends_with("all_kept")) staged_ = id;
    }
    ASSERT_NE(staged_, kNoNode);
  }
  NodeId counting_of(Value note) const {
    for (NodeId id = 0; id < graph_->node_count(); ++id) {
      const Node& node = graph_->node(id);
      if (node.op->name() == "AssignAddVariableOp" && node.inputs[0] == note) return id;
    }
    return kNoNode;
  }

  std::vector<Tensor> run(std::vector<Value> fetches, std::vector<NodeId> targets) {
    std::vector<Tensor> out(fetches.size());
    const Status status =
        session_->run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = targets, .timeout_ns = 20 * kSecond}, out);
    EXPECT_TRUE(status.ok()) << status.message();
    return out;
  }
  Ref<AsyncRun> train(int number) {
    const std::array<int32_t, 3> ids{number % 5, (number * 3 + 1) % 5, number % 5};
    fed_ = Tensor::of<int32_t>(Shape::of({3}), ids).take();
    const Tensor* const tensor = &fed_;
    return session_
        ->run_async(
            {.feeds = {&ids_, 1}, .feed_tensors = {&tensor, 1}, .fetches = {}, .targets = {&added_.train, 1}, .timeout_ns = 20 * kSecond},
            queue_, 0)
        .take();
  }
  void expect_end() {
    CompletionQueue::Event event;
    EXPECT_EQ(queue_->next({&event, 1}, system_clock(), Deadline::after(system_clock(), 20 * kSecond)), 1u);
  }

  const Servers servers_;
  const Ref<Runtime> runtime_;
  const Ref<Graph> graph_;
  Ref<Model> model_;
  Value ids_;
  Replicated added_;
  std::vector<NodeId> commits_;
  NodeId staged_ = kNoNode;
  Ref<Session> session_;
  Ref<CompletionQueue> queue_;
  Tensor fed_;
};

TEST(Level, WhereverTheChiefDies) {
  using Kind = Optimizer::Kind;
  for (const Kind kind : {Kind::sgd, Kind::momentum, Kind::adam, Kind::adagrad, Kind::rms_prop}) {
    const Optimizer optimizer{.kind = kind, .learning_rate = {}, .rate = 0.1, .momentum = 0.9, .clip_norm = kind == Kind::sgd ? 0.01 : 0};
    Chief whole(optimizer);
    whole.begin();
    for (int step = 0; step < kSteps; ++step) whole.step(step);
    const auto wanted = whole.bits();
    // Two tasks hold variables; then Adam's powers, where it is Adam; the count of steps comes last.
    const size_t units = whole.units();
    ASSERT_EQ(units, kind == Kind::adam ? 4u : 3u);
    // Adam's powers move on when both tasks have applied.
    const unsigned tasks = 0b011;
    for (unsigned cut = 0; cut < 1u << (units - 1); ++cut) {
      if (cut > tasks && (cut & tasks) != tasks) continue;
      SCOPED_TRACE(format("optimizer %d, cut %u", static_cast<int>(kind), cut));
      Chief chief(optimizer);
      chief.begin();
      chief.step(0);
      chief.step(1);
      chief.cut_step(2, cut);
      const Status status = chief.recover();
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(chief.steps(), cut == 0 ? 2 : 3);
      for (auto step = static_cast<int>(chief.steps()); step < kSteps; ++step) chief.step(step);
      EXPECT_TRUE(chief.bits() == wanted);
    }
  }
}

}  // namespace
}  // namespace dtg
