// Rights: every op that takes a resource, tried by every party, on every kind and state of resource, by every way that a handle can
// take, over real connections. What is expected is read from the one table; a refused op has changed nothing; one that was let through
// did just what it does for the chief.
#include <sys/stat.h>

#include <map>
#include <set>

#include "asked_part.h"
#include "cluster/part_run.h"
#include "cluster/server.h"
#include "peer.h"
#include "scratch.h"
#include "seconds.h"
#include "session/runtime.h"
#include "state_ops.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

std::string task_name(const std::string& job, int index) { return "/job:" + job + "/replica:0/task:" + std::to_string(index); }

// A session that says what it likes, to one server.
struct Speaker {
  Peer peer;
  uint64_t sequence = 0;

  Speaker(const std::string& path, const std::string& task, uint64_t session) : peer(path) {
    peer.say(
        wire::make_frame(wire::Hello{.role = task.empty() ? wire::Role::client : wire::Role::task, .task = task, .session = session}, 1));
    const Status status = peer.hear<wire::HelloReply>().status;
    EXPECT_TRUE(status.ok()) << status.message();
  }
  Result<uint64_t> enroll(const std::string& graph, NodeId target) {
    const std::string header = wire::encode(wire::RegisterPart{.targets = {target}, .deadline_left_ns = 20 * kSecond});
    peer.say(wire::make_head(wire::Kind::register_part, 2, header, graph.size()) + graph);
    const auto reply = peer.hear<wire::RegisterReply>();
    if (!reply.status.ok()) return reply.status;
    return reply.part;
  }
  void begin(uint64_t part) {
    peer.say(wire::make_frame(wire::RunPart{.part = part, .sequence = ++sequence, .deadline_left_ns = 20 * kSecond}));
  }
  Status end() { return peer.hear<wire::RunReply>().status; }
  Status run(const std::string& graph, NodeId target) {
    DTG_ASSIGN(const uint64_t part, enroll(graph, target));
    begin(part);
    Status status = end();
    peer.say(wire::make_frame(wire::DropPart{part}));
    return status;
  }
};

// How the op comes to its handle.
enum class Way : uint8_t { direct, identity, identities, no_device, after_dequeue, known_part, node_name, container };
constexpr const char* kWayNames[] = {"direct",          "Identity",   "IdentityN of Identity", "no device",
                                     "after a dequeue", "known part", "by the node's name",    "in a container"};
constexpr Way kWays[] = {Way::direct,        Way::identity,   Way::identities, Way::no_device,
                         Way::after_dequeue, Way::known_part, Way::node_name,  Way::container};
enum class State : uint8_t { filled, empty, absent };
constexpr const char* kStateNames[] = {"filled", "empty", "absent"};

// At the server `at`, by whoever speaks for `peer`.
struct Seat {
  const char* at;
  std::string peer;
  Party party;
  bool own = false;
};

struct Case {
  const OpDef* op;
  Kept kind;
  Way way;
  State state;
  std::string text(const Seat& seat) const {
    return op->name() + " on a " + kKeptNames[int(kind)] + ", " + kStateNames[int(state)] + ", " + kWayNames[int(way)] + ", at " + seat.at +
           " by \"" + seat.peer + "\"";
  }
};

class RightsTest : public ::testing::Test {
 protected:
  RightsTest() {
    ::chmod(scratch_.path().c_str(), 0700);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    serve("ps");
    serve("worker");
  }
  ~RightsTest() override {
    speakers_.clear();
    servers_.clear();
  }

  // "ps" is ps 0, "worker" is worker 1.
  void serve(const std::string& job) {
    Server::Options options;
    const auto at = [&](const char* name) { return "unix:" + (scratch_ / name); };
    options.cluster = ClusterSpec::parse("ps=" + at("ps") + "," + at("ps1") + ";worker=" + at("w0") + "," + at("worker") + "," + at("w2") +
                                         ";observer=" + at("o"))
                          .take();
    options.job = job;
    options.task = job == "ps" ? 0 : 1;
    options.timing.dead_ns = 600 * kSecond;
    options.timing.heartbeat_ns = 60 * kSecond;
    auto server = Server::start(runtime_->host().take(), options, runtime_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    servers_[job] = server.take();
  }
  Task& task(const std::string& at) { return servers_.at(at)->task(); }
  Keeper keeper(const std::string& at) { return {task(at).store(), task(at).name() + "/device:CPU:0"}; }
  Speaker& speaker(const std::string& at, const std::string& peer) {
    auto& found = speakers_[{at, peer}];
    if (!found) found = std::make_unique<Speaker>(scratch_ / at, peer, 100 + speakers_.size());
    return *found;
  }

  // The graph of a case on resources called `name`.
  std::pair<std::string, NodeId> graph_of(const Case& c, const std::string& device, const std::string& name) {
    auto graph = Graph::create(&runtime_->ops()).take();
    Build b(*graph);
    if (c.way != Way::no_device) graph->push_device(device);
    const std::string container = c.way == Way::container ? "box" : "";
    std::vector<NodeId> controls;
    if (c.way == Way::after_dequeue) {
      const Value tokens = handle_op(b, Kept::queue, name + "_tokens", "tokens");
      controls.push_back(b.op("QueueDequeueV2", {tokens}, {{"component_types", std::vector<DType>{DType::f32}}}).node());
    }
    const bool by_node = c.way == Way::node_name;
    Value handle = handle_op(b, c.kind, by_node ? "" : name, by_node ? name : "handle", container);
    if (c.way == Way::identity || c.way == Way::identities) handle = b.op("Identity", {handle});
    if (c.way == Way::identities) handle = b.op("IdentityN", {b.scalar(DType::f32, 1), handle}).sibling(1);
    EXPECT_TRUE(b.ok()) << b.status().message();
    const NodeId target = state_node(*graph, *c.op, handle, name, controls);
    EXPECT_NE(target, kNoNode) << c.op->name();
    if (c.way != Way::no_device) {
      EXPECT_TRUE(graph->pop_device().ok());
    }
    auto bytes = encode_graph(*graph);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return {bytes.take(), target};
  }

  struct Outcome {
    Status status;
    std::string before, after;
  };
  Outcome try_case(const Case& c, const Seat& seat) {
    const Keeper at = keeper(seat.at);
    const std::string name = "r" + std::to_string(++made_), container = c.way == Way::container ? "box" : "";
    if (c.state != State::absent) at.make(c.kind, name, c.state == State::filled, container);
    for (int i = 1; i < 4; ++i) at.make(Kept::variable, name + "_" + std::to_string(i), true);
    if (c.way == Way::after_dequeue) at.make(Kept::queue, name + "_tokens", true);
    const auto [graph, target] = graph_of(c, at.device, name);
    Outcome out{{}, at.look(name, container), {}};
    if (c.way == Way::known_part) {
      const auto known = speaker(seat.at, chief_).enroll(graph, target);
      EXPECT_TRUE(known.ok()) << c.text(seat) << ": " << known.status().message();
      out.before = at.look(name, container);
    }
    out.status = speaker(seat.at, seat.peer).run(graph, target);
    out.after = at.look(name, container);
    return out;
  }

  // What the table says.
  static bool is_allowed(const Case& c, const Seat& seat) {
    const auto may = [&](Verb verb) {
      const Grant grant = grant_of(verb, seat.party);
      return grant == Grant::yes || (grant == Grant::own && seat.own);
    };
    if (!may(Verb::run) || (c.state == State::absent && c.way != Way::known_part && !may(Verb::attach))) return false;
    if (c.way == Way::after_dequeue && !may(Verb::take)) return false;
    const Access access = c.op->access_of(0);
    // A table that is filled once stays as it is; taking entries out undoes what others did.
    const bool takes_away = (access == Access::assign && c.kind != Kept::vocabulary) || c.op->name() == "LookupTableRemoveV2";
    const bool replaces = takes_away && c.state == State::filled;
    return may(replaces ? Verb::replace : verb_of(access));
  }

  std::string untouched(Kept kind) {
    const Keeper at = keeper("ps");
    const std::string name = std::string("untouched ") + kKeptNames[int(kind)];
    at.make(kind, name, false);
    return at.look(name);
  }

  void check(const Case& c, const Seat& seat) {
    ++cases_;
    const Outcome out = try_case(c, seat);
    if (!is_allowed(c, seat)) {
      ++refused_;
      EXPECT_EQ(out.status.code(), Code::permission_denied) << c.text(seat) << ": " << out.status.message();
      // Naming it may have made it.
      if (out.before == "absent" && out.after != "absent") {
        EXPECT_EQ(out.after, untouched(c.kind)) << c.text(seat);
      } else {
        EXPECT_EQ(out.before, out.after) << c.text(seat);
      }
      return;
    }
    // For the chief it is what it is for anybody.
    auto& known = chiefs_[{c.op, c.kind, c.way, c.state}];
    if (!known) known = std::make_unique<Outcome>(try_case(c, seats_[0]));
    EXPECT_TRUE(c.state != State::filled || known->status.ok()) << c.text(seats_[0]) << ": " << known->status.message();
    EXPECT_EQ(out.status.code(), known->status.code()) << c.text(seat) << ": " << out.status.message();
    EXPECT_EQ(out.after, known->after) << c.text(seat);
    done_ += out.status.ok() ? 1 : 0;
  }

  const std::string chief_ = task_name("worker", 0);
  const std::vector<Seat> seats_ = {
      {"ps", task_name("worker", 0), Party::chief},
      {"ps", task_name("worker", 1), Party::worker},
      {"ps", task_name("ps", 1), Party::ps},
      {"ps", "", Party::client},
      {"ps", task_name("observer", 0), Party::observer},
      {"ps", task_name("ps", 0), Party::ps, true},
      {"worker", task_name("worker", 1), Party::worker, true},
      {"worker", task_name("worker", 2), Party::worker},
  };
  Scratch scratch_;
  Ref<Runtime> runtime_;
  std::map<std::string, Ref<Server>> servers_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Speaker>> speakers_;
  std::map<std::tuple<const OpDef*, Kept, Way, State>, std::unique_ptr<Outcome>> chiefs_;
  int made_ = 0, cases_ = 0, refused_ = 0, done_ = 0;
};

// The ops that take a resource with the kinds they are for.
std::vector<std::pair<const OpDef*, Kept>> state_ops(const OpTable& ops) {
  std::vector<std::pair<const OpDef*, Kept>> found;
  for (const OpDef* op : ops.list()) {
    // A stack or an array lives in one run: nobody else reaches it. What calls other tasks is refused as a whole, below.
    const bool of_one_run = op->name().starts_with("Stack") || op->name().find("TensorArray") != std::string::npos;
    if (!takes_resource(*op) || of_one_run || op->capability() == Capability::net) continue;
    if (op->access_of(0) != Access::destroy) {
      found.emplace_back(op, kind_for(*op));
    } else {
      for (int kind = 0; kind < kKinds; ++kind) found.emplace_back(op, static_cast<Kept>(kind));
    }
  }
  return found;
}

// An op that takes from what is empty, or asks it, would wait.
bool is_tried(const OpDef& op, State state) {
  return state == State::filled || (op.access_of(0) != Access::consume && op.name().find("Ask") == std::string::npos);
}

TEST_F(RightsTest, EveryOpByEveryParty) {
  const auto ops = state_ops(runtime_->ops());
  for (const auto& [op, kind] : ops) {
    for (const Seat& seat : seats_) {
      for (const State state : {State::filled, State::empty}) {
        if (is_tried(*op, state)) check({op, kind, Way::direct, state}, seat);
      }
    }
  }
  printf("%zu ops, %d cases, %d refused, %d done\n", ops.size(), cases_, refused_, done_);
  EXPECT_GE(ops.size(), 70u);
  EXPECT_GE(refused_, 300);
  EXPECT_GE(done_, 300);
}

// One op for each thing that is done to each kind of resource.
TEST_F(RightsTest, EveryWayToAHandle) {
  std::set<std::tuple<Access, Kept>> met;
  for (const auto& [op, kind] : state_ops(runtime_->ops())) {
    if (!met.emplace(op->access_of(0), kind).second) continue;
    for (const Seat& seat : seats_) {
      for (const Way way : kWays) {
        for (const State state : {State::filled, State::empty, State::absent}) {
          if (is_tried(*op, state)) check({op, kind, way, state}, seat);
        }
      }
    }
  }
  printf("%zu deeds, %d cases, %d refused, %d done\n", met.size(), cases_, refused_, done_);
  EXPECT_GE(cases_, 1000);
  EXPECT_GE(refused_, 300);
  EXPECT_GE(done_, 300);
}

// What a worker waits for comes when the variable has got its value meanwhile: what counts is the moment of the assignment.
TEST_F(RightsTest, AVariableThatGotItsValueWhileTheRunWaited) {
  const Keeper at = keeper("ps");
  const Case assign{runtime_->ops().find("AssignVariableOp"), Kept::variable, Way::after_dequeue, State::empty};
  for (int round = 0; round < 20; ++round) {
    const std::string name = "raced" + std::to_string(round);
    at.make(Kept::variable, name, false);
    at.make(Kept::queue, name + "_tokens", false);
    const auto [graph, target] = graph_of(assign, at.device, name);
    Speaker& worker = speaker("ps", task_name("worker", 1));
    const auto part = worker.enroll(graph, target);
    ASSERT_TRUE(part.ok()) << part.status().message();
    worker.begin(part.value());
    auto* const variable = static_cast<Variable*>(at.find(name).get());
    Keeper::set(*variable, Tensor::of<float>(Shape::of({2}), std::array<float, 2>{1, 2}).take());
    const std::string before = at.look(name);
    auto* const token = new Put;
    token->tuple = {Tensor::of<float>(Shape(), std::array<float, 1>{1}).take()};
    static_cast<Queue*>(at.find(name + "_tokens").get())->start(token, nullptr);
    const Status status = worker.end();
    ASSERT_EQ(status.code(), Code::permission_denied) << status.message();
    EXPECT_EQ(at.look(name), before);
  }
}

TEST_F(RightsTest, ARefusalSaysWhoMayWhat) {
  const Seat& worker = seats_[1];
  const Case assign{runtime_->ops().find("AssignVariableOp"), Kept::variable, Way::identity, State::filled};
  const Status status = try_case(assign, worker).status;
  for (const std::string& word : {std::string("\"deed\""), "\"r" + std::to_string(made_) + "\"", worker.peer, task_name("ps", 0),
                                  std::string("only the chief"), std::string("update, put, take")}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << word << " in " << status.message();
  }
  EXPECT_EQ(status.origin().node, "deed");
  EXPECT_EQ(status.origin().peer, worker.peer);
}

// What a handle cannot become: a value that is stored, fed or received.
TEST_F(RightsTest, AHandleIsNoValue) {
  const Keeper at = keeper("ps");
  const auto refused = [&](const std::function<NodeId(Build&, Value)>& make) {
    auto graph = Graph::create(&runtime_->ops()).take();
    graph->push_device(at.device);
    Build b(*graph);
    const NodeId target = make(b, handle_op(b, Kept::variable, "kept", "handle"));
    EXPECT_TRUE(graph->pop_device().ok());
    auto bytes = encode_graph(*graph);
    if (!b.ok() || !bytes.ok()) return;
    EXPECT_FALSE(speaker("ps", chief_).run(bytes.value(), target).ok()) << graph->node(target).op->name();
  };
  at.make(Kept::variable, "kept", true);
  const std::vector<DType> resource = {DType::resource};
  const auto queue = [&](Build& b) {
    return b.op("FIFOQueueV2", {}, {{"component_types", resource}, {"shared_name", std::string("handles")}});
  };
  refused([&](Build& b, Value handle) { return b.node("QueueEnqueueV2", std::vector<Value>{queue(b), handle}); });
  refused([&](Build& b, Value) {
    const Value taken = b.op("QueueDequeueV2", {queue(b)}, {{"component_types", resource}});
    return b.node("AssignVariableOp", std::vector<Value>{taken, b.scalar(DType::f32, 1)});
  });
  refused([&](Build& b, Value) {
    const Value fed = b.op("Placeholder", {}, {{"dtype", DType::resource}, {"shape", PartialShape::scalar()}});
    return b.node("AssignVariableOp", std::vector<Value>{fed, b.scalar(DType::f32, 1)});
  });
  refused([&](Build& b, Value) {
    const Value come = b.op("_Recv", {}, {{"dtype", DType::resource}, {"shape", PartialShape::scalar()}, {"edge", int64_t{1}}});
    return b.node("AssignVariableOp", std::vector<Value>{come, b.scalar(DType::f32, 1)});
  });
  refused([&](Build& b, Value handle) { return b.node("_Send", std::vector<Value>{handle}, std::array{Attr{"edge", int64_t{1}}}); });
  EXPECT_EQ(at.look("kept").find("without"), std::string::npos);
}

// Who may not make resources may not say more of their shapes either.
TEST_F(RightsTest, OnlyWhoAttachesNarrowsAShape) {
  const Keeper at = keeper("ps");
  const auto open = make_ref<Variable>("open", DType::f32, PartialShape::unknown());
  ASSERT_TRUE(at.store.find_or_create(at.device, "", "open", Variable::kKind, [&] { return Ref<Resource>(open); }).ok());
  auto graph = Graph::create(&runtime_->ops()).take();
  graph->push_device(at.device);
  Build b(*graph);
  const NodeId asks = b.node("VarIsInitializedOp", std::vector<Value>{handle_op(b, Kept::variable, "open", "handle")});
  ASSERT_TRUE(graph->pop_device().ok() && b.ok());
  const std::string bytes = encode_graph(*graph).take();
  EXPECT_FALSE(speaker("ps", task_name("ps", 1)).run(bytes, asks).ok());
  EXPECT_FALSE(open->declared_shape().complete());
  EXPECT_TRUE(speaker("ps", task_name("worker", 1)).run(bytes, asks).ok());
  EXPECT_TRUE(open->declared_shape().complete());
  EXPECT_TRUE(speaker("ps", task_name("ps", 1)).run(bytes, asks).ok());
}

TEST_F(RightsTest, OnlyTheChiefResetsAndEnds) {
  for (const Seat& seat : seats_) {
    Speaker& who = speaker(seat.at, seat.peer);
    const auto may = [&](Verb verb) { return Rights(seat.party, seat.peer, task(seat.at).name()).allows(verb); };
    who.peer.say(wire::make_frame(wire::Reset{.containers = {"nothing"}}, 5));
    EXPECT_EQ(who.peer.hear<wire::Reply>().status.ok(), may(Verb::reset)) << seat.peer;
    who.peer.say(wire::make_frame(wire::Inspect{}, 6));
    EXPECT_TRUE(who.peer.hear<wire::InspectReply>().status.ok()) << seat.peer;
    who.peer.say(wire::make_frame(wire::Arrive{.name = "b", .ticket = 1, .expires_left_ns = 1, .answer_left_ns = 1}, 8));
    const Status met = who.peer.hear<wire::ArriveReply>().status;
    EXPECT_EQ(met.code() == Code::permission_denied, !may(Verb::meet)) << seat.peer << ": " << met.message();
    if (may(Verb::end_job)) continue;
    who.peer.say(wire::make_frame(wire::EndJob{}, 7));
    EXPECT_EQ(who.peer.hear<wire::Reply>().status.code(), Code::permission_denied) << seat.peer;
  }
}

// --- without connections ---

// The end of a run of a part, on behalf of `rights`.
Status run_as(const Ref<ServedPart>& part, Ref<const Rights> rights, const Host& host) {
  static uint64_t sequence = 0;
  struct End {
    Condition changed;
    bool over = false;
    Status status;
  } end;
  auto edges = make_ref<StepEdges>(host.loop(), *host.seams.budget, part->edges(), std::vector<Ref<Link>>{}, ++sequence, false);
  auto run = make_ref<PartRun>(part, std::move(rights), edges, WriteId{}, Deadline::after(*host.seams.clock, 20 * kSecond),
                               [&](const Status& status) {
                                 end.changed.change([&] {
                                   end.status = status;
                                   end.over = true;
                                 });
                               });
  run->start(true);
  EXPECT_TRUE(end.changed.wait(*host.seams.clock, Deadline::after(*host.seams.clock, 30 * kSecond), [&] { return end.over; }));
  return end.status;
}

// Every kernel asks by itself: whatever was let through when the part was registered, a run without rights does nothing.
TEST_F(RightsTest, EveryKernelAsks) {
  const Keeper at = keeper("ps");
  const Host host = runtime_->host().take();
  const auto chief = make_ref<Rights>(Party::chief, chief_, task("ps").name());
  const auto worker = make_ref<Rights>(Party::worker, task_name("worker", 1), task("ps").name());
  const auto nobody = make_ref<Rights>(Party::neighbour, task_name("worker", 2), task("ps").name());
  for (const auto& [op, kind] : state_ops(runtime_->ops())) {
    const std::string name = "asked" + std::to_string(++made_);
    at.make(kind, name, true);
    for (int i = 1; i < 4; ++i) at.make(Kept::variable, name + "_" + std::to_string(i), true);
    const std::string before = at.look(name);
    const auto [graph, target] = graph_of({op, kind, Way::direct, State::filled}, at.device, name);
    const auto asked = make_ref<AskedPart>(task("ps"), graph, std::vector<uint32_t>{target}, chief);
    asked->submit();
    const auto part = asked->wait();
    ASSERT_TRUE(part.ok()) << op->name() << ": " << part.status().message();
    const Status refused = run_as(part.value(), nobody, host);
    EXPECT_EQ(refused.code(), Code::permission_denied) << op->name() << ": " << refused.message();
    if (op->access_of(0) == Access::destroy) {
      EXPECT_EQ(run_as(part.value(), worker, host).code(), Code::permission_denied);
    }
    EXPECT_EQ(at.look(name), before) << op->name();
    const Status allowed = run_as(part.value(), chief, host);
    EXPECT_NE(allowed.code(), Code::permission_denied) << op->name() << ": " << allowed.message();
  }
}

// Members of a group run their own calls: a graph from another process may not make a task take part.
TEST_F(RightsTest, NobodyCallsForAnother) {
  size_t found = 0;
  for (const OpDef* op : runtime_->ops().list()) found += op->capability() == Capability::net;
  EXPECT_GE(found, 7u);
  auto graph = Graph::create(&runtime_->ops()).take();
  Build b(*graph);
  const std::string device = keeper("ps").device;
  graph->push_device(device);
  const Value one = b.integer(1);
  const Value sum = b.op("CollectiveReduceV2", {b.scalar(DType::f32, 1), one, one, one},
                         {{"merge_op", "Add"}, {"final_op", "Id"}, {"Nordering_token", int64_t{0}}});
  ASSERT_TRUE(b.ok()) << b.status().message();
  ASSERT_TRUE(graph->pop_device().ok());
  const auto chief = make_ref<Rights>(Party::chief, chief_, task("ps").name());
  const auto asked = make_ref<AskedPart>(task("ps"), encode_graph(*graph).take(), std::vector<uint32_t>{sum.node()}, chief);
  asked->submit();
  const auto part = asked->wait();
  EXPECT_EQ(part.status().code(), Code::permission_denied) << part.status().message();
}

// A handle where a value is expected would be memory of ours, read or overwritten. What asks for a shape does not look there.
TEST_F(RightsTest, NoKernelTakesAHandleForAValue) {
  std::set<std::string> taking;
  for (const OpDef* op : runtime_->ops().list()) {
    Node node;
    node.op = op;
    for (size_t i = 0; i < op->inputs().size(); ++i) {
      const ArgDef& arg = op->inputs()[i];
      const AttrDef* attr = arg.type_attr.empty() ? nullptr : op->find_attr(arg.type_attr);
      if (!attr || !attr->types.has(DType::resource) || op->forwards(i, i)) continue;
      std::vector<Attr> types;
      for (const AttrDef& each : op->attrs()) {
        if (each.kind == AttrKind::type) types.push_back({each.name, each.name == arg.type_attr ? DType::resource : DType::f32});
      }
      node.attrs = types;
      if (runtime_->kernels().find(node, "CPU")) taking.insert(op->name());
    }
  }
  EXPECT_EQ(taking, (std::set<std::string>{"Rank", "Shape", "ShapeN", "Size"}));
}

TEST(Party, OfATask) {
  const auto of = [](const char* cluster, const std::string& task) { return party_of(ClusterSpec::parse(cluster).take(), task); };
  const char* const implied = "ps=a:1,a:2;worker=a:3,a:4;evaluator=a:5;observer=a:6";
  const char* const named = "chief=a:7;ps=a:1;worker=a:3,a:4";
  EXPECT_EQ(of(implied, task_name("worker", 0)), Party::chief);
  EXPECT_EQ(of(implied, task_name("worker", 1)), Party::worker);
  EXPECT_EQ(of(implied, task_name("evaluator", 0)), Party::worker);
  EXPECT_EQ(of(implied, task_name("ps", 1)), Party::ps);
  EXPECT_EQ(of(implied, task_name("observer", 0)), Party::observer);
  EXPECT_EQ(of(implied, ""), Party::client);
  EXPECT_EQ(of(named, task_name("chief", 0)), Party::chief);
  EXPECT_EQ(of(named, task_name("worker", 0)), Party::worker);
  EXPECT_EQ(of(named, ""), Party::client);
  EXPECT_EQ(of("ps=a:1,a:2", ""), Party::chief);
  EXPECT_EQ(of("ps=a:1,a:2", task_name("ps", 0)), Party::ps);
  EXPECT_EQ(of("master=a:1;worker=a:2", task_name("master", 0)), Party::chief);
  EXPECT_EQ(of(implied, "/job:chief/replica:0/task:0"), Party::worker);
}

// The table once more, as the reference has it: a change there has to be meant.
TEST(Party, Table) {
  const auto row = [](Party party) {
    std::string text;
    for (size_t v = 0; v < kVerbs; ++v) text += "noy"[static_cast<size_t>(grant_of(static_cast<Verb>(v), party))];
    return text;
  };
  EXPECT_EQ(row(Party::chief), "yyyyyyyyyyyyyy");
  EXPECT_EQ(row(Party::worker), "yyyyyyyooooony");
  EXPECT_EQ(row(Party::ps), "yoyooooooooonn");
  EXPECT_EQ(row(Party::client), "yyyyyyynnnnnnn");
  EXPECT_EQ(row(Party::neighbour), "nnnnnnnnnnnnnn");
  EXPECT_EQ(row(Party::observer), "nnnnnnnnnnnnnn");
}

}  // namespace
}  // namespace dtg
