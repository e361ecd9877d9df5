// A server in this process, and peers that do not keep to the protocol: each is closed, and the server serves on.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cluster/server.h"
#include "graph/build.h"
#include "peer.h"
#include "scratch.h"
#include "session/session.h"
#include "wire/graph_codec.h"

namespace dtg {
namespace {

class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    ::chmod(scratch_.path().c_str(), 0700);
    runtime_ = Runtime::create({.compute_threads = 2}).take();
    client_ = Runtime::create({.compute_threads = 2}).take();
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=unix:" + path_).take();
    options.timing.handshake_ns = 300'000'000;
    auto server = Server::start(runtime_->host().take(), options, runtime_);
    EXPECT_TRUE(server.ok()) << server.status().message();
    server_ = server.take();
  }

  static std::string hello() { return wire::make_frame(wire::Hello{.session = 1}, 1); }

  // The server still does its work, for a session of another runtime: one of its own would need no connection.
  void expect_service() {
    auto graph = Graph::create(&client_->ops()).take();
    Build b(*graph);
    const Value two = b.op("Identity", {b.scalar(DType::f32, 2)});
    auto session = Session::connect(client_, server_->target(), graph, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<Tensor> out(1);
    const Value fetches[] = {b.mul(two, two)};
    const Status status = session.value()->run({{}, {}, fetches, {}, 0}, out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out[0].as<float>()[0], 4);
  }

  Scratch scratch_;
  const std::string path_ = scratch_ / "ps";
  Ref<Runtime> runtime_, client_;
  Ref<Server> server_;
};

TEST_F(Hostile, WhoDoesNotSayHelloIsClosed) {
  Peer silent(path_), garbage(path_), early(path_), cut(path_), huge(path_);
  garbage.say(std::string(200, 'x'));
  early.say(wire::make_frame(wire::RunPart{.part = 1, .sequence = 1}));
  cut.say(hello().substr(0, 40));
  huge.say(wire::make_head(wire::Kind::register_part, 1, "", uint64_t{1} << 60));
  EXPECT_TRUE(garbage.is_closed());
  EXPECT_TRUE(early.is_closed());
  EXPECT_TRUE(huge.is_closed());
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(cut.is_closed());
  expect_service();
}

TEST_F(Hostile, AfterHello) {
  const std::string data = wire::make_head(wire::Kind::data, 0, wire::encode(wire::Data{.sequence = 9, .dtype = DType::f32}), 0);
  const std::pair<const char*, std::string> bad[] = {
      {"hello again", hello()},
      {"a part without a graph", wire::make_frame(wire::RegisterPart{}, 3)},
      {"an answer as a question", wire::make_head(wire::Kind::hello_reply, 0, "nonsense", 0) + std::string(64, '\0')},
      {"a header that is none", wire::make_head(wire::Kind::run_part, 0, "nonsense", 0)},
  };
  for (const auto& [what, bytes] : bad) {
    Peer peer(path_);
    peer.say(hello() + bytes);
    EXPECT_TRUE(peer.is_closed()) << what;
  }
  // Late words about steps that nobody knows are no offence; an unknown part is refused with an answer.
  Peer late(path_);
  late.say(hello() + data + wire::make_frame(wire::Abort{5, {}}) + wire::make_frame(wire::DropPart{8}) +
           wire::make_frame(wire::RunPart{.part = 3, .sequence = 5}));
  EXPECT_FALSE(late.is_closed_within(300));
  expect_service();
}

// Release 0.1 spoke version 1, and can read why it is refused. Who speaks newer ones too is answered in the newest of both.
TEST_F(Hostile, VersionsAreCompared) {
  const auto answer = [&](uint16_t least, uint16_t most) {
    Peer peer(path_);
    peer.say(wire::make_frame(wire::Hello{.version_min = least, .version_max = most, .features = ~uint64_t{0}, .session = 5}, 1));
    return peer.hear<wire::HelloReply>();
  };
  const Status old = answer(1, 1).status;
  EXPECT_EQ(old.code(), Code::failed_precondition);
  EXPECT_NE(old.message().find("the other end 1 to 1"), std::string::npos) << old.message();
  EXPECT_EQ(answer(wire::kVersion + 1, wire::kVersion + 3).status.code(), Code::failed_precondition);
  const auto newer = answer(1, wire::kVersion + 1);
  EXPECT_TRUE(newer.status.ok()) << newer.status.message();
  EXPECT_EQ(newer.version, wire::kVersion);
  EXPECT_EQ(newer.features, wire::kFeatures);
}

// What is used is what both have said, and a server that was told not to does not say it.
TEST_F(Hostile, FeaturesAreAgreedOn) {
  const auto answer = [](const std::string& path, uint64_t features) {
    Peer peer(path);
    peer.say(wire::make_frame(wire::Hello{.features = features, .session = 5}, 1));
    return peer.hear<wire::HelloReply>().features;
  };
  EXPECT_EQ(answer(path_, wire::kFeatures & ~wire::kSharedMemory) & wire::kSharedMemory, 0u);
  EXPECT_EQ(answer(path_, wire::kFeatures) & wire::kSharedMemory, wire::kSharedMemory);
  Server::Options options;
  options.cluster = ClusterSpec::parse("ps=unix:" + path_ + "2").take();
  options.shared_memory = false;
  auto server = Server::start(runtime_->host().take(), options, runtime_);
  ASSERT_TRUE(server.ok()) << server.status().message();
  EXPECT_EQ(answer(path_ + "2", wire::kFeatures), wire::kFeatures & ~wire::kSharedMemory);
  EXPECT_TRUE(server.value()->stop(5'000'000'000).ok());
}

TEST_F(Hostile, ServerIsAskedForSomebodyElse) {
  Peer peer(path_);
  peer.say(wire::make_frame(wire::Hello{.wanted_task = "/job:worker/replica:0/task:0"}, 1));
  EXPECT_EQ(peer.hear<wire::HelloReply>().status.code(), Code::failed_precondition);
  EXPECT_TRUE(peer.is_closed());
}

// Who says that he only brings values for a session can do nothing else, and not even that without a session or a name.
TEST_F(Hostile, NeighboursMayNotMore) {
  const auto answer = [&](const wire::Hello& hello, Peer& peer) {
    peer.say(wire::make_frame(hello, 1));
    return peer.hear<wire::HelloReply>().status;
  };
  const std::string self = "/job:ps/replica:0/task:0";
  Peer nobody(path_), lost(path_), guest(path_), session(path_);
  EXPECT_EQ(answer({.role = wire::Role::neighbour, .session = 5}, nobody).code(), Code::permission_denied);
  EXPECT_EQ(answer({.role = wire::Role::neighbour, .task = self, .session = 5}, lost).code(), Code::unavailable);
  ASSERT_TRUE(answer({.session = 5}, session).ok());
  ASSERT_TRUE(answer({.role = wire::Role::neighbour, .task = self, .session = 5}, guest).ok());
  guest.say(wire::make_frame(wire::Credit{.sequence = 3}) +
            wire::make_head(wire::Kind::data, 0, wire::encode(wire::Data{.sequence = 9, .dtype = DType::f32}), 0));
  EXPECT_FALSE(guest.is_closed_within(300));
  guest.say(wire::make_frame(wire::EndJob{}, 2));
  EXPECT_TRUE(guest.is_closed());
  EXPECT_FALSE(session.is_closed_within(100));
  Peer thief(path_);
  EXPECT_EQ(answer({.role = wire::Role::task, .task = self, .session = 5}, thief).code(), Code::permission_denied);
  Peer again(path_);
  ASSERT_TRUE(answer({.role = wire::Role::neighbour, .task = self, .session = 5}, again).ok());
  again.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(wire::RegisterPart{}), 100));
  EXPECT_TRUE(again.is_closed());
  expect_service();
}

TEST_F(Hostile, ManyIdleConnections) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 200; ++i) {
    peers.push_back(std::make_unique<Peer>(path_));
    ASSERT_TRUE(peers.back()->connected());
    if (i % 2) peers.back()->say(hello());
  }
  expect_service();
  peers.clear();
  expect_service();
}

TEST_F(Hostile, PathsAreGuarded) {
  const Host host = runtime_->host().take();
  const auto start = [&](const std::string& path) {
    Server::Options options;
    options.cluster = ClusterSpec::parse("ps=unix:" + path).take();
    return Server::start(host, options, runtime_).status();
  };
  EXPECT_EQ(start(path_).code(), Code::already_exists);
  EXPECT_EQ(start("/tmp/dtg-not-private").code(), Code::permission_denied);
  EXPECT_EQ(start(scratch_ / std::string(120, 'x')).code(), Code::invalid_argument);
  // A directory of its own is made, and private.
  ASSERT_TRUE(start(scratch_ / "sub/ps").ok());
  struct stat found {};
  ASSERT_EQ(::stat((scratch_ / "sub").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  // After a stop the place is free again.
  ASSERT_TRUE(server_->stop(1'000'000'000).ok());
  EXPECT_TRUE(start(path_).ok());
}

// A part may hold only ops that compute or change this task's state, and must be whole.
TEST_F(Hostile, BadPartsAreRefused) {
  Peer peer(path_);
  peer.say(hello());
  auto graph = Graph::create(&runtime_->ops()).take();
  Build b(*graph);
  const NodeId read =
      b.op("ReadVariableOp", {b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape()}})}, {{"dtype", DType::f32}}).node();
  const std::string good = encode_graph(*graph).take();
  const auto reply_to = [&](const std::string& bytes, uint32_t target) {
    const wire::RegisterPart request{.targets = {target}};
    peer.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(request), bytes.size()) + bytes);
    return peer.hear<wire::RegisterReply>();
  };
  EXPECT_EQ(reply_to(good, read).part, 1u);
  EXPECT_EQ(reply_to(good, 1000).status.code(), Code::invalid_argument);
  EXPECT_EQ(reply_to(good.substr(0, good.size() / 2), read).status.code(), Code::data_loss);
  EXPECT_EQ(reply_to(std::string(1000, 'z'), read).status.code(), Code::data_loss);
  EXPECT_FALSE(peer.is_closed_within(100));
  expect_service();
}

// Who sends more than can be planned in its own time does not hold a thread for longer.
TEST_F(Hostile, APartIsPlannedNoLongerThanItsTime) {
  Peer peer(path_);
  peer.say(hello());
  auto graph = Graph::create(&runtime_->ops()).take();
  Build b(*graph);
  const Value v = b.op("VarHandleOp", {}, {{"dtype", DType::f32}, {"shape", Shape::of({4})}}, "v");
  Value x = b.op("ReadVariableOp", {v}, {{"dtype", DType::f32}});
  for (int i = 0; i < 30'000; ++i) x = b.neg(x);
  ASSERT_TRUE(b.ok()) << b.status().message();
  const std::string bytes = encode_graph(*graph).take();
  const auto reply_within = [&](int64_t left_ns) {
    const wire::RegisterPart request{.targets = {x.node()}, .deadline_left_ns = left_ns};
    peer.say(wire::make_head(wire::Kind::register_part, 7, wire::encode(request), bytes.size()) + bytes);
    return peer.hear<wire::RegisterReply>();
  };
  EXPECT_EQ(reply_within(1'000'000).status.code(), Code::deadline_exceeded);
  const Status enough = reply_within(30'000'000'000).status;
  EXPECT_TRUE(enough.ok()) << enough.message();
  expect_service();
}

}  // namespace
}  // namespace dtg
