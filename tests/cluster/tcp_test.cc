// Servers and sessions over TCP: with the key made for this user, with a key file, in the clear, and without rights.
#include <gtest/gtest.h>

#include "cluster/server.h"
#include "graph/build.h"
#include "net/job_key.h"
#include "scratch.h"
#include "seconds.h"
#include "session/session.h"

namespace dtg {
namespace {

class Tcp : public ::testing::Test {
 protected:
  Tcp() {
    options_.cluster = ClusterSpec::parse("ps=127.0.0.1:0").take();
    options_.timing.handshake_ns = kSecond;
    options_.security = security_ = {.key_file = key("job.key"), .security = Security::tls, .runtime_dir = scratch_.path()};
  }
  std::string key(const char* name) {
    EXPECT_TRUE(keygen(scratch_ / name).ok());
    return scratch_ / name;
  }
  Status serve() {
    DTG_ASSIGN(const Host host, here_->host());
    DTG_ASSIGN(server_, Server::start(host, options_, here_));
    return {};
  }
  // A session of another runtime that squares a number on the server.
  Status square(const SecurityOptions& security, float* result) {
    DTG_ASSIGN(Ref<Graph> graph, Graph::create(&there_->ops()));
    Build b(*graph);
    graph->push_device("/job:ps/task:0");
    const Value two = b.op("Identity", {b.scalar(DType::f32, 2)});
    const Value square = b.mul(two, two);
    DTG_TRY(graph->pop_device());
    Session::Options options;
    options.security = security;
    options.connect_timeout_ns = 5 * kSecond;
    DTG_ASSIGN(const Ref<Session> session, Session::connect(there_, server_->target(), graph, options));
    std::vector<Tensor> out(1);
    const Value fetches[] = {square};
    DTG_TRY(session->run({{}, {}, fetches, {}, 0}, out));
    *result = out[0].as<float>()[0];
    return {};
  }
  void expect_service(const SecurityOptions& security) {
    float result = 0;
    const Status status = square(security, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(result, 4);
  }

  Scratch scratch_;
  Ref<Runtime> here_ = Runtime::create({.compute_threads = 2}).take();
  Ref<Runtime> there_ = Runtime::create({.compute_threads = 2}).take();
  SecurityOptions security_;
  Server::Options options_;
  Ref<Server> server_;
};

TEST_F(Tcp, WithAKeyFile) {
  ASSERT_TRUE(serve().ok());
  EXPECT_TRUE(server_->target().starts_with("127.0.0.1:"));
  EXPECT_FALSE(server_->target().ends_with(":0"));
  expect_service(security_);
  SecurityOptions other = security_;
  other.key_file = key("other.key");
  float result = 0;
  const int64_t began = system_clock().monotonic_ns();
  const Status refused = square(other, &result);
  EXPECT_EQ(refused.code(), Code::unauthenticated) << refused.message();
  EXPECT_NE(refused.message().find("key_file"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find(server_->target()), std::string::npos) << refused.message();
  EXPECT_LT(system_clock().monotonic_ns() - began, 4 * kSecond);  // at once, not after a time
  other.key_file = scratch_ / "none.key";
  EXPECT_EQ(square(other, &result).code(), Code::not_found);
  expect_service(security_);
}

TEST_F(Tcp, WithThisUsersKey) {
  options_.security.key_file = security_.key_file = "";
  ASSERT_TRUE(serve().ok());
  expect_service(security_);
  SecurityOptions stranger = security_;
  stranger.runtime_dir = scratch_ / "elsewhere";
  std::filesystem::create_directories(stranger.runtime_dir);
  float result = 0;
  EXPECT_EQ(square(stranger, &result).code(), Code::unauthenticated);
}

TEST_F(Tcp, FramesInTheClear) {
  options_.security.security = Security::clear_frames;
  ASSERT_TRUE(serve().ok());
  float result = 0;
  const Status refused = square(security_, &result);
  EXPECT_EQ(refused.code(), Code::failed_precondition) << refused.message();
  EXPECT_NE(refused.message().find("the other end asks for frames in the clear"), std::string::npos) << refused.message();
  security_.security = Security::clear_frames;
  expect_service(security_);
}

TEST_F(Tcp, BeyondThisMachineOnlyWithAKey) {
  options_.cluster = ClusterSpec::parse("ps=0.0.0.0:0").take();
  options_.security.key_file = "";
  const Status refused = serve();
  EXPECT_EQ(refused.code(), Code::failed_precondition) << refused.message();
  EXPECT_NE(refused.message().find("run `dtg keygen job.key`"), std::string::npos) << refused.message();
}

// What a hello claims must be what the key proves. The dialogue is played by hand on a real connection.
TEST_F(Tcp, HelloClaimsAnotherName) {
  options_.cluster = ClusterSpec::parse("ps=127.0.0.1:0;worker=127.0.0.1:1,127.0.0.1:2").take();
  options_.job = "ps";
  ASSERT_TRUE(serve().ok());
  class Ear final : public Channel::Sink {
   public:
    Result<Channel::Landing> begin(const wire::Prefix&, std::string_view) override { return Channel::Landing{}; }
    Status receive(const wire::Prefix& prefix, std::string_view header) override {
      if (prefix.kind != wire::Kind::hello_reply) return {};
      wire::HelloReply reply;
      DTG_TRY(wire::decode(header, reply));
      return answer(reply.status);
    }
    void closed(const Status& reason) override { (void)answer(reason).ok(); }
    Status answer(const Status& status) {
      const std::lock_guard lock(mutex);
      if (!there) heard = status;
      there = true;
      changed.notify_all();
      return {};
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool there = false;
    Status heard;
  };
  // A session of its own each time: the server need not have heard that the one before hung up.
  uint64_t session = 0;
  const auto greet = [&](const std::string& proven, const std::string& claimed) {
    Ear ear;
    Network& network = *there_->host().take().network;
    Loop& loop = network.loop();
    const Address address = Address::parse(server_->target()).take();
    const Credentials credentials = credentials_for(address, security_, proven, "/job:ps/replica:0/task:0").take();
    const Deadline until = Deadline::after(system_clock(), kSecond);
    Awaited<Result<Ref<Channel>>> connected;
    loop.post([&, told = connected.taker()] { network.connect(address, credentials, {}, until, told); });
    const Ref<Channel> channel = connected.wait(system_clock(), until).take();
    loop.call([&] {
      channel->open(&ear);
      channel->send(wire::make_frame(wire::Hello{.task = claimed, .session = ++session}, 1));
    });
    {
      std::unique_lock lock(ear.mutex);
      ear.changed.wait_for(lock, std::chrono::seconds(5), [&] { return ear.there; });
    }
    loop.call([&] { channel->close(); });
    return ear.heard;
  };
  const std::string first = "/job:worker/replica:0/task:0", second = "/job:worker/replica:0/task:1";
  EXPECT_EQ(greet(first, first).message(), "");
  EXPECT_EQ(greet("", "").message(), "");
  for (const auto& [proven, claimed] : {std::pair(first, second), std::pair(first, std::string()), std::pair(std::string(), first)}) {
    const Status status = greet(proven, claimed);
    EXPECT_EQ(status.code(), Code::unauthenticated) << status.message();
  }
  // A task that the cluster does not have does not get as far as hello.
  EXPECT_EQ(greet("/job:worker/replica:0/task:7", "/job:worker/replica:0/task:7").code(), Code::unauthenticated);
  EXPECT_EQ(greet("", "").message(), "");
}

}  // namespace
}  // namespace dtg
