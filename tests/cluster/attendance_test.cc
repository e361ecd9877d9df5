// Barriers of workers: the state machine on time that the test moves, and with real processes one of which dies while all wait.
#include "cluster/attendance.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "graph/build.h"
#include "process.h"
#include "scratch.h"
#include "seconds.h"
#include "session/session.h"
#include "solo_server.h"

namespace dtg {
namespace {

constexpr int64_t kReturnNs = 30 * kSecond;  // six times the default dead_ns

std::string worker(int index) { return "/job:worker/replica:0/task:" + std::to_string(index); }

// Three workers at a ps that keeps their attendance; worker i connects as session 10 + i.
class Attending : public ::testing::Test {
 protected:
  explicit Attending(int came = 3) {
    const ClusterSpec cluster = ClusterSpec::parse("ps=unix:/p;worker=unix:/a,unix:/b,unix:/c").take();
    EXPECT_EQ(Attendance::home_of(cluster), "/job:ps/replica:0/task:0");
    kept_ = make_ref<Attendance>(host_.host, Timing{}, cluster, Attendance::home_of(cluster), [this](const wire::Roll& roll) {
      rolls_.push_back(roll.task.substr(roll.task.size() - 1) + (roll.presence == wire::Presence::there  ? " there"
                                                                 : roll.presence == wire::Presence::left ? " left"
                                                                                                         : " lost"));
    });
    for (int i = 0; i < came; ++i) kept_->came(worker(i), 1);
  }
  ~Attending() override { kept_->close(unavailable("over")); }

  void pass(int64_t ns) { host_.network().loop().run_for(ns); }
  // Asks with so much patience; what was answered stands in told_ under the worker and the ticket.
  void arrive(int who, uint64_t ticket, const std::string& name, int64_t expires_ns = 600 * kSecond, int64_t answer_ns = 600 * kSecond) {
    wire::Arrive question{.name = name, .end = name.empty(), .ticket = ticket, .expires_left_ns = expires_ns, .answer_left_ns = answer_ns};
    const auto key = std::pair(who, ticket);
    ++asked_;
    kept_->arrive(worker(who), 10 + static_cast<uint64_t>(who), question, [this, key](const wire::ArriveReply& reply) {
      ++answered_;
      told_[key] = reply;
    });
  }
  // The same at the end of those who are there.
  void arrive_at_end(int who, uint64_t ticket) {
    const wire::Arrive question{
        .end = true, .ticket = ticket, .expires_left_ns = 600 * kSecond, .answer_left_ns = 600 * kSecond, .those_there = true};
    ++asked_;
    kept_->arrive(worker(who), 10 + static_cast<uint64_t>(who), question,
                  [this, key = std::pair(who, ticket)](const wire::ArriveReply& reply) {
                    ++answered_;
                    told_[key] = reply;
                  });
  }
  const wire::ArriveReply* told(int who, uint64_t ticket) {
    const auto at = told_.find({who, ticket});
    return at == told_.end() ? nullptr : &at->second;
  }
  bool released(int who, uint64_t ticket) {
    const wire::ArriveReply* const reply = told(who, ticket);
    return reply && reply->status.ok() && reply->released;
  }
  Code code(int who, uint64_t ticket) {
    const wire::ArriveReply* const reply = told(who, ticket);
    return reply ? reply->status.code() : Code::ok;
  }
  std::string text(int who, uint64_t ticket) { return told(who, ticket) ? told(who, ticket)->status.message() : ""; }
  void lose(int who) { kept_->left(worker(who), 10 + static_cast<uint64_t>(who), false, unavailable("its cable was cut")); }

  SoloHost host_;
  Ref<Attendance> kept_;
  std::vector<std::string> rolls_;
  std::map<std::pair<int, uint64_t>, wire::ArriveReply> told_;
  int asked_ = 0, answered_ = 0;
};

TEST_F(Attending, AllAreReleasedWhenTheLastHasCome) {
  for (uint64_t round = 1; round < 4; ++round) {
    arrive(0, round, "b");
    arrive(1, round, "b");
    pass(5 * kSecond);
    EXPECT_EQ(told(0, round), nullptr);
    arrive(2, round, "b");
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(released(i, round)) << i;
  }
  EXPECT_EQ(asked_, answered_);
}

// An answer that got lost is given again; it is no new arrival.
TEST_F(Attending, AskingAgainIsNoSecondArrival) {
  arrive(0, 1, "b");
  arrive(0, 1, "b");
  arrive(1, 1, "b");
  EXPECT_FALSE(told(1, 1));
  arrive(2, 1, "b");
  told_.clear();
  arrive(1, 1, "b");
  EXPECT_TRUE(released(1, 1));
  arrive(1, 2, "b");
  EXPECT_FALSE(told(1, 2)) << "the next round has nobody else yet";
}

TEST_F(Attending, BarriersOfOtherNamesAreOthers) {
  arrive(0, 1, "a");
  arrive(1, 2, "b");
  arrive(2, 3, "a");
  EXPECT_EQ(answered_, 0);
  arrive(1, 4, "a");
  EXPECT_TRUE(released(0, 1) && released(1, 4) && released(2, 3));
  EXPECT_FALSE(told(1, 2));
}

// Somebody who asks for news stays where it is, also when nobody holds a question of it at the moment.
TEST_F(Attending, NewsNameWhoIsMissing) {
  arrive(0, 1, "b", 600 * kSecond, kSecond);
  pass(2 * kSecond);
  ASSERT_NE(told(0, 1), nullptr);
  EXPECT_FALSE(told(0, 1)->released);
  EXPECT_TRUE(told(0, 1)->status.ok());
  EXPECT_NE(told(0, 1)->waits_for.find(worker(2)), std::string::npos) << told(0, 1)->waits_for;
  arrive(1, 1, "b");
  arrive(2, 1, "b");
  EXPECT_TRUE(released(1, 1) && released(2, 1));
  EXPECT_FALSE(released(0, 1));
  arrive(0, 1, "b");
  EXPECT_TRUE(released(0, 1));
}

TEST_F(Attending, WhoseTimeIsOverHasNotArrived) {
  arrive(0, 1, "b", 2 * kSecond);
  pass(3 * kSecond);
  EXPECT_EQ(code(0, 1), Code::deadline_exceeded);
  EXPECT_NE(text(0, 1).find(worker(1) + ", " + worker(2)), std::string::npos) << text(0, 1);
  EXPECT_EQ(told(0, 1)->status.origin().peer, worker(1)) << "the first who is awaited";
  EXPECT_EQ(told(0, 1)->status.origin().phase, "meet");
  arrive(1, 1, "b");
  arrive(2, 1, "b");
  EXPECT_FALSE(told(1, 1));
  arrive(0, 2, "b");
  EXPECT_TRUE(released(0, 2) && released(1, 1) && released(2, 1));
}

TEST_F(Attending, AWorkerThatIsGoneIsNamedToAllWhoWait) {
  arrive(0, 1, "b");
  arrive(1, 1, "b");
  lose(2);
  pass(2 * kSecond);
  EXPECT_EQ(rolls_, (std::vector<std::string>{"2 lost"}));
  EXPECT_EQ(answered_, 0) << "it may come back";
  EXPECT_NE(kept_->absentees()->text().find("its cable was cut"), std::string::npos) << kept_->absentees()->text();
  pass(kReturnNs);
  for (int i : {0, 1}) {
    EXPECT_EQ(code(i, 1), Code::unavailable);
    EXPECT_NE(text(i, 1).find(worker(2)), std::string::npos) << text(i, 1);
    EXPECT_NE(text(i, 1).find("its cable was cut"), std::string::npos) << text(i, 1);
  }
  arrive(0, 2, "b");
  EXPECT_EQ(code(0, 2), Code::unavailable) << "and to who comes later";
  kept_->came(worker(2), 2);
  EXPECT_EQ(rolls_.back(), "2 there");
  EXPECT_EQ(kept_->absentees()->text(), "");
  for (int i = 0; i < 3; ++i) arrive(i, 3, "b");
  EXPECT_TRUE(released(0, 3) && released(1, 3) && released(2, 3));
}

TEST_F(Attending, WhoComesBackSoonWasNotGone) {
  arrive(0, 1, "b");
  arrive(1, 1, "b");
  lose(1);
  pass(kSecond / 2);
  kept_->came(worker(1), 1);
  pass(5 * kSecond);
  EXPECT_TRUE(rolls_.empty()) << rolls_[0];
  arrive(2, 1, "b");
  EXPECT_FALSE(told(2, 1)) << "whose connection is lost has to arrive again";
  arrive(1, 1, "b");
  EXPECT_TRUE(released(0, 1) && released(1, 1) && released(2, 1));
}

TEST_F(Attending, AnArrivalDiesWithItsProcess) {
  arrive(0, 1, "b");
  arrive(1, 1, "b");
  kept_->came(worker(0), 2);
  arrive(2, 1, "b");
  EXPECT_FALSE(told(1, 1));
  arrive(0, 1, "b");
  EXPECT_TRUE(released(1, 1) && released(2, 1));
}

TEST_F(Attending, TheEndWaitsForAllAndNotForTheGone) {
  arrive(0, 1, "");
  arrive(1, 1, "");
  lose(2);
  pass(kReturnNs - kSecond);
  EXPECT_EQ(answered_, 0);
  pass(2 * kSecond);
  ASSERT_TRUE(released(0, 1) && released(1, 1));
  ASSERT_EQ(told(0, 1)->gone.size(), 1u);
  EXPECT_NE(told(0, 1)->gone[0].find(worker(2)), std::string::npos);
  EXPECT_NE(told(0, 1)->gone[0].find("its cable was cut"), std::string::npos);
}

// Who is done may leave. A later process in its place has work of its own.
TEST_F(Attending, TheEndRemembersWhoIsDone) {
  arrive(1, 1, "");
  arrive(2, 1, "", kSecond);
  kept_->left(worker(1), 11, true, unavailable("it said goodbye"));
  pass(2 * kSecond);
  EXPECT_EQ(code(2, 1), Code::deadline_exceeded);
  arrive(0, 1, "");
  EXPECT_TRUE(released(0, 1));
  EXPECT_TRUE(told(0, 1)->gone.empty());
}

TEST_F(Attending, ALaterLifeIsNotDone) {
  arrive(1, 1, "");
  lose(1);
  kept_->came(worker(1), 2);
  arrive(2, 1, "");
  arrive(0, 1, "");
  EXPECT_EQ(answered_, 0);
  arrive(1, 1, "");
  EXPECT_TRUE(released(0, 1) && released(1, 1) && released(2, 1));
}

TEST_F(Attending, WithoutTheChiefNothingEnds) {
  arrive(1, 1, "");
  arrive(2, 1, "");
  lose(0);
  pass(kReturnNs + kSecond);
  EXPECT_EQ(code(1, 1), Code::unavailable);
  EXPECT_NE(text(2, 1).find(worker(0)), std::string::npos) << text(2, 1);
  kept_->came(worker(0), 2);
  arrive(0, 1, "");
  EXPECT_TRUE(released(0, 1)) << "the others said that they are done";
}

// Worker 2 never comes, or late.
struct AttendingTwo : Attending {
  AttendingTwo() : Attending(2) {}
};

TEST_F(AttendingTwo, TheEndMayBeThatOfThoseThere) {
  arrive_at_end(0, 1);
  pass(100 * kSecond);
  EXPECT_EQ(answered_, 0) << "worker 1 is there";
  arrive_at_end(1, 1);
  EXPECT_TRUE(released(0, 1) && released(1, 1));
  EXPECT_TRUE(told(0, 1)->gone.empty());
}

TEST_F(AttendingTwo, WhoWasThereBeforeHasTimeToComeBack) {
  arrive_at_end(0, 1);
  arrive_at_end(1, 1);
  pass(3 * kSecond);
  EXPECT_EQ(answered_, 0);
  kept_->came(worker(2), 1);
  pass(100 * kSecond);
  EXPECT_EQ(answered_, 0) << "it came, and works on";
  arrive_at_end(2, 1);
  EXPECT_TRUE(released(0, 1) && released(1, 1) && released(2, 1));
}

TEST_F(AttendingTwo, TheEndIsOfAllWhereNobodyAsksForLess) {
  arrive(0, 1, "");
  arrive(1, 1, "");
  pass(100 * kSecond);
  EXPECT_EQ(answered_, 0);
}

TEST_F(Attending, ThoseThereAreWithoutWhoHasLeftOrIsLost) {
  pass(100 * kSecond);
  arrive_at_end(0, 1);
  kept_->left(worker(1), 11, true, unavailable("it said goodbye"));
  EXPECT_EQ(answered_, 0);
  lose(2);
  pass(3 * kSecond);
  EXPECT_EQ(answered_, 0) << "it may come back";
  pass(4 * kSecond);
  ASSERT_TRUE(released(0, 1));
  ASSERT_EQ(told(0, 1)->gone.size(), 1u);
  EXPECT_NE(told(0, 1)->gone[0].find(worker(2)), std::string::npos);
}

TEST_F(Attending, WhoIsNoWorkerIsRefused) {
  wire::ArriveReply reply;
  const auto take = [&](const wire::ArriveReply& told) { reply = told; };
  kept_->arrive("/job:ps/replica:0/task:0", 5, {.name = "b", .ticket = 1}, take);
  EXPECT_EQ(reply.status.code(), Code::failed_precondition) << reply.status.message();
  kept_->arrive(worker(0), 5, {.name = "", .ticket = 1}, take);
  EXPECT_EQ(reply.status.code(), Code::invalid_argument) << reply.status.message();
}

// Names that nobody uses any more are forgotten; where somebody waits at each, one more is refused.
TEST_F(Attending, NamesAreBounded) {
  for (uint64_t i = 0; i < 3000; ++i) {
    for (int w = 0; w < 3; ++w) arrive(w, i + 1, "step " + std::to_string(i));
    ASSERT_TRUE(released(1, i + 1));
  }
  Code refused = Code::ok;
  for (uint64_t i = 0; i < 1100 && refused == Code::ok; ++i) {
    arrive(0, 10'000 + i, "other " + std::to_string(i));
    refused = code(0, 10'000 + i);
  }
  EXPECT_EQ(refused, Code::resource_exhausted);
}

TEST_F(Attending, TheEndOfTheServerIsToldToAll) {
  arrive(0, 1, "b");
  arrive(1, 1, "");
  kept_->close(cancelled("the chief has ended the job"));
  EXPECT_EQ(code(0, 1), Code::cancelled);
  EXPECT_EQ(code(1, 1), Code::cancelled);
  arrive(2, 1, "b");
  EXPECT_EQ(code(2, 1), Code::cancelled);
  EXPECT_EQ(asked_, answered_);
}

TEST(AttendanceHome, StandsAtTheFirstPsOrTheChief) {
  const auto home = [](const char* text) { return Attendance::home_of(ClusterSpec::parse(text).take()); };
  EXPECT_EQ(home("worker=unix:/a,unix:/b;ps=3@unix:/p,8@unix:/q"), "/job:ps/replica:0/task:3");
  EXPECT_EQ(home("worker=unix:/a,unix:/b"), "/job:worker/replica:0/task:0");
  EXPECT_EQ(home("worker=unix:/a;chief=unix:/c"), "/job:chief/replica:0/task:0");
  EXPECT_EQ(home("trainer=unix:/a"), "/job:trainer/replica:0/task:0");
  EXPECT_EQ(home(""), "");
}

// --- processes ---

// A ps and workers 0 in this process, each with a runtime; worker 1 is a process that waits at the barrier and is killed there.
class MeetingTest : public ::testing::Test {
 protected:
  MeetingTest() { ::chmod(scratch_.path().c_str(), 0700); }
  std::string cluster() const {
    const auto at = [&](const char* name) { return "unix:" + (scratch_ / name); };
    return "ps=" + at("ps") + ";worker=" + at("w0") + "," + at("w1");
  }
  struct Place {
    Ref<Runtime> runtime = Runtime::create({.compute_threads = 1}).take();
    Ref<Server> server;
    Ref<Session> session;
    ~Place() { session = nullptr, server = nullptr; }
  };
  Status serve(Place& place, const char* job) {
    Server::Options options;
    DTG_ASSIGN(options.cluster, ClusterSpec::parse(cluster()));
    options.job = job;
    options.filters = {"/job:ps"};
    options.timing.heartbeat_ns = kSecond / 5;
    options.timing.dead_ns = kSecond;
    DTG_ASSIGN(const Host host, place.runtime->host());
    DTG_ASSIGN(place.server, Server::start(host, std::move(options), place.runtime));
    return {};
  }
  Status connect(Place& place) {
    DTG_ASSIGN(place.session, Session::connect(place.runtime, place.server->target(), Graph::create(&place.runtime->ops()).take(), {}));
    return {};
  }
  // Until the ps has seen that.
  testing::AssertionResult state_has(Place& ps, const std::string& text) {
    std::string state;
    for (int i = 0; i < 6000; ++i) {
      state = ps.server->inspect().take();
      if (state.find(text) != std::string::npos) return testing::AssertionSuccess();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return testing::AssertionFailure() << "no " << text << " in " << state;
  }
  Scratch scratch_;
};

TEST_F(MeetingTest, AWorkerThatDiesAtTheBarrierIsNamed) {
  Place ps, chief;
  ASSERT_TRUE(serve(ps, "ps").ok());
  ASSERT_TRUE(serve(chief, "worker").ok());
  const Status connected = connect(chief);
  ASSERT_TRUE(connected.ok()) << connected.message();
  const std::string arrived = R"({"name":"middle","arrived":[")" + worker(1) + R"("])";
  {
    OtherProcess other({"--meet", cluster(), "1", "middle"});
    ASSERT_TRUE(state_has(ps, arrived));
    other.kill();
  }
  ASSERT_TRUE(state_has(ps, R"("presence":"lost")"));
  const Status status = chief.session->meet_workers("middle", 120 * kSecond);
  EXPECT_EQ(status.code(), Code::unavailable) << status.message();
  EXPECT_NE(status.message().find(worker(1)), std::string::npos) << status.message();
  // Somebody takes its place, and both are let through.
  OtherProcess again({"--meet", cluster(), "1", "middle"});
  ASSERT_TRUE(state_has(ps, arrived));
  const Status met = chief.session->meet_workers("middle", 120 * kSecond);
  EXPECT_TRUE(met.ok()) << met.message();
  EXPECT_EQ(again.end(), 0);
}

TEST_F(MeetingTest, TheJobEndsWithoutAWorkerThatDied) {
  Place ps, chief;
  ASSERT_TRUE(serve(ps, "ps").ok());
  ASSERT_TRUE(serve(chief, "worker").ok());
  ASSERT_TRUE(connect(chief).ok());
  {
    OtherProcess other({"--meet", cluster(), "1", "middle"});
    ASSERT_TRUE(state_has(ps, R"("arrived":[")" + worker(1)));
    const Status early = chief.session->end_job(7 * kSecond);
    EXPECT_EQ(early.code(), Code::deadline_exceeded) << early.message();
    EXPECT_NE(early.message().find(worker(1)), std::string::npos) << early.message();
    EXPECT_FALSE(ps.server->join(Deadline::after(system_clock(), 1)).ok()) << "nothing was ended";
    other.kill();
  }
  const Status ended = chief.session->end_job(120 * kSecond);
  EXPECT_TRUE(ended.ok()) << ended.message();
  EXPECT_TRUE(ps.server->join(Deadline::after(system_clock(), 60 * kSecond)).ok());
}

// Whoever waits for a value that only a dead worker could bring is told who is gone when its time is over.
TEST_F(MeetingTest, ADeadlineNamesWhoIsGone) {
  Place ps, chief;
  ASSERT_TRUE(serve(ps, "ps").ok());
  ASSERT_TRUE(serve(chief, "worker").ok());
  Ref<Graph> graph = Graph::create(&chief.runtime->ops()).take();
  Build b(*graph);
  graph->push_device("/job:ps/task:0");
  const Value queue = b.op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::f32}}, {"shared_name", std::string("q")}});
  const Value token = b.op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::f32}}});
  ASSERT_TRUE(graph->pop_device().ok() && b.ok());
  auto session = Session::connect(chief.runtime, chief.server->target(), graph, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  chief.session = session.take();
  {
    OtherProcess other({"--meet", cluster(), "1", "middle"});
    ASSERT_TRUE(state_has(ps, R"("arrived":[")" + worker(1)));
    other.kill();
  }
  ASSERT_TRUE(state_has(ps, R"("presence":"lost")"));
  std::vector<Tensor> none;
  const NodeId target = token.node();
  const Status status = chief.session->run({{}, {}, {}, {&target, 1}, 10 * kSecond}, none);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.message();
  EXPECT_NE(status.message().find("gone: " + worker(1)), std::string::npos) << status.message();
}

}  // namespace
}  // namespace dtg
