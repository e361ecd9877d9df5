// Many who mean no good at once: seeded nonsense, crowds that connect and say nothing, and no descriptors left. Each is
// closed, nothing of them stays, and meanwhile the server serves.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <memory>
#include <random>

#include "cluster/server.h"
#include "graph/build.h"
#include "peer.h"
#include "scratch.h"
#include "seconds.h"
#include "session/session.h"

namespace dtg {
namespace {

constexpr int kCases = 500;
constexpr int kCrowd = 500;

// Room for a crowd; the limit of the process is put back.
class Descriptors {
 public:
  Descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    allow(std::min<rlim_t>(before_.rlim_max, 4096));
  }
  ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  void allow(rlim_t count) {
    rlimit now = before_;
    now.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }

 private:
  rlimit before_{};
};

class Storm : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ::chmod(scratch_.path().c_str(), 0700);
    security_.runtime_dir = scratch_.path();
    Server::Options options;
    options.cluster = ClusterSpec::parse(GetParam() ? "ps=127.0.0.1:0" : "ps=unix:" + path_).take();
    options.security = security_;
    options.timing.handshake_ns = kSecond / 2;
    options.accept = {.strangers = 1000,
                      .unknown_per_host = 1000,
                      .handshakes = 1000,
                      .handshakes_per_host = 1000,
                      .accepts_per_second = 1e6,
                      .first_word_ns = kSecond / 2};
    auto server = Server::start(here_->host().take(), options, here_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = server.take();
    level_ = here_->host().take().seams.budget->used();
  }
  std::unique_ptr<Peer> peer() const {
    if (!GetParam()) return std::make_unique<Peer>(path_);
    return std::make_unique<Peer>(Address::parse(server_->target()).take().port);
  }
  void expect_service() {
    auto graph = Graph::create(&there_->ops()).take();
    Build b(*graph);
    const Value two = b.op("Identity", {b.scalar(DType::f32, 2)});
    const Value fetches[] = {b.mul(two, two)};
    Session::Options options;
    options.security = security_;
    auto session = Session::connect(there_, server_->target(), graph, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<Tensor> out(1);
    const Status status = session.value()->run({{}, {}, fetches, {}, 0}, out);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out[0].as<float>()[0], 4);
    ASSERT_TRUE(session.value()->close(kSecond).ok());
  }
  // All of them are forgotten.
  void expect_calm() {
    const Deadline deadline = Deadline::after(system_clock(), 5 * kSecond);
    std::string state;
    do state = server_->inspect().take();
    while ((state.find("\"sessions\":[]") == state.npos || here_->host().take().seams.budget->used() != level_) &&
           !deadline.passed(system_clock()));
    EXPECT_EQ(here_->host().take().seams.budget->used(), level_);
    EXPECT_NE(state.find("\"sessions\":[]"), state.npos) << state;
  }

  Descriptors descriptors_;
  Scratch scratch_;
  const std::string path_ = scratch_ / "ps";
  SecurityOptions security_;
  Ref<Runtime> here_ = Runtime::create({.compute_threads = 2}).take(), there_ = Runtime::create({.compute_threads = 2}).take();
  Ref<Server> server_;
  int64_t level_ = 0;
};

// A dialogue with something wrong in it.
std::string nonsense(std::mt19937& random) {
  const auto below = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  const std::string graph(below(5000), 'g');
  const std::string words[] = {
      wire::make_frame(wire::Hello{.session = below(9)}, 1),
      wire::make_head(wire::Kind::register_part, 2, wire::encode(wire::RegisterPart{.targets = {1}}), graph.size()) + graph,
      wire::make_frame(wire::RunPart{.part = below(3), .sequence = below(3)}),
      wire::make_frame(wire::Abort{below(3), {}}),
      wire::make_head(wire::Kind::data, 0, wire::encode(wire::Data{.sequence = below(3), .dtype = DType::f32}), below(2000)),
      wire::make_head(static_cast<wire::Kind>(1 + below(wire::kKindMax)), 1, "nonsense", uint64_t{1} << below(64)),
      wire::make_frame(wire::Reset{{"a"}}, 4),
      std::string(below(300), static_cast<char>(below(256))),
      "\x16\x03\x01\x02" + std::string(1 + below(600), static_cast<char>(below(256))),  // like the beginning of TLS
  };
  std::string bytes = below(4) ? words[0] : "";
  for (size_t i = 0; i < 1 + below(4); ++i) bytes += words[below(std::size(words))];
  for (size_t i = below(4); i > 0; --i) bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
  if (below(3) == 0) bytes.resize(1 + below(bytes.size()));
  return bytes;
}

TEST_P(Storm, SeededNonsense) {
  for (int seed = 0; seed < kCases;) {
    std::vector<std::unique_ptr<Peer>> peers;
    for (; peers.size() < 50; ++seed) {
      std::mt19937 random(static_cast<uint32_t>(seed));
      peers.push_back(peer());
      ASSERT_TRUE(peers.back()->connected()) << seed;
      peers.back()->say(nonsense(random));
    }
    // On TCP nobody gets past TLS; on a unix socket some say hello and then behave well enough to be kept.
    if (GetParam()) {
      for (const auto& one : peers) EXPECT_TRUE(one->is_closed()) << "before seed " << seed;
    } else if (seed % 100 == 0) {
      expect_service();
    }
  }
  expect_calm();
  expect_service();
}

TEST_P(Storm, CrowdThatSaysNothing) {
  std::vector<std::unique_ptr<Peer>> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.push_back(peer());
    ASSERT_TRUE(crowd.back()->connected()) << i;
    if (i % 3 == 1) crowd.back()->say(wire::make_frame(wire::Hello{.session = 1}, 1).substr(0, 20));
  }
  expect_service();
  // They are told to go; nobody has to hang up.
  for (const auto& one : crowd) EXPECT_TRUE(one->is_closed());
  expect_calm();
  expect_service();
}

class UnixStorm : public Storm {};

TEST_P(UnixStorm, NoDescriptorsLeft) {
  expect_service();
  expect_calm();
  Peer late[4];
  const int highest = ::dup(0);
  ASSERT_GE(highest, 0);
  descriptors_.allow(static_cast<rlim_t>(highest) + 20);
  std::vector<int> fill{highest};
  for (int one = ::dup(0); one >= 0; one = ::dup(0)) fill.push_back(one);
  for (Peer& one : late) EXPECT_TRUE(one.connect(path_));
  for (Peer& one : late) EXPECT_TRUE(one.is_closed());
  for (int one : fill) ::close(one);
  expect_service();
  expect_calm();
}

INSTANTIATE_TEST_SUITE_P(Carriers, Storm, ::testing::Values(false, true),
                         [](const auto& tcp) { return std::string(tcp.param ? "tcp" : "unix"); });

// The acceptor is the same on TCP.
INSTANTIATE_TEST_SUITE_P(Carriers, UnixStorm, ::testing::Values(false));

}  // namespace
}  // namespace dtg
