// The members of elastic steps: histories by chance against an oracle that looks at everything anew after each event, and what the errors
// say.
#include "exec/step_members.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>

namespace dtg {
namespace {

struct Told {
  bool ended = false;
  Status status;
  int64_t next = -2;
  std::vector<uint8_t> members;
};

struct Arrives final : StepMembers::Arrival {
  explicit Arrives(std::shared_ptr<Told> to) : told(std::move(to)) {}
  void finished(Status status) override { *told = {true, std::move(status), next, {}}; }
  std::shared_ptr<Told> told;
};
struct Gathers final : StepMembers::Gathering {
  explicit Gathers(std::shared_ptr<Told> to) : told(std::move(to)) {}
  void finished(Status status) override { *told = {true, std::move(status), -2, members}; }
  std::shared_ptr<Told> told;
};

struct Job {
  explicit Job(int workers) : presence(make_ref<Presence>()), members(make_ref<StepMembers>("m", workers, presence->roll())) {
    presence->watch([held = members] { return held->review(); });
  }
  ~Job() { members->destroy(cancelled("the job is over")); }
  Job(const Job&) = delete;
  std::shared_ptr<Told> arrive(int64_t worker, int64_t step, int64_t now, uint64_t session, Step* running = nullptr) {
    auto told = std::make_shared<Told>();
    auto* const op = new Arrives(told);
    op->worker = worker;
    op->step = step;
    op->now = now;
    op->session = session;
    op->running = running;
    members->start(op, running);
    return told;
  }
  std::shared_ptr<Told> gather(int64_t step, int64_t least, Step* running = nullptr) {
    auto told = std::make_shared<Told>();
    auto* const op = new Gathers(told);
    op->step = step;
    op->least = least;
    op->running = running;
    members->start(op, running);
    return told;
  }
  const Ref<Presence> presence;
  const Ref<StepMembers> members;
};

TEST(StepMembers, WhoHasArrivedOnceIsWaitedForAsLongAsItIsThere) {
  Job job(3);
  for (const uint64_t session : {11, 12, 13}) job.presence->came(session);
  job.members->begin(0, StepMembers::Begin::first);
  auto update = job.gather(0, 1);
  auto one = job.arrive(0, 0, 0, 11);
  ASSERT_TRUE(update->ended);
  EXPECT_EQ(update->members, (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_FALSE(one->ended);
  // It comes for a step that is about to be made without it.
  auto two = job.arrive(1, 0, 0, 12);
  job.members->begin(1, StepMembers::Begin::next);
  EXPECT_EQ(one->next, 1);
  EXPECT_EQ(two->next, 1) << "and is told that it was too late";
  update = job.gather(1, 1);
  one = job.arrive(0, 1, 1, 11);
  EXPECT_FALSE(update->ended) << "it is slower, but there";
  job.presence->gone(12);
  ASSERT_TRUE(update->ended);
  EXPECT_EQ(update->members, (std::vector<uint8_t>{1, 0, 0}));
  job.members->begin(2, StepMembers::Begin::next);
  // Back, for a step that is over.
  job.presence->came(12);
  two = job.arrive(1, 1, 2, 12);
  EXPECT_EQ(two->next, 2);
  update = job.gather(2, 1);
  one = job.arrive(0, 2, 2, 11);
  EXPECT_FALSE(update->ended);
  two = job.arrive(1, 2, 2, 12);
  ASSERT_TRUE(update->ended);
  EXPECT_EQ(update->members, (std::vector<uint8_t>{1, 1, 0}));
}

TEST(StepMembers, ANumberIsOneTasksAsLongAsThatIsThere) {
  Job job(3);
  for (const uint64_t session : {11, 12, 13}) job.presence->came(session);
  EXPECT_TRUE(job.members->claim(1, 11, "a").ok());
  EXPECT_TRUE(job.members->claim(1, 11, "a").ok());
  const Status other = job.members->claim(1, 12, "b");
  EXPECT_EQ(other.code(), Code::failed_precondition);
  EXPECT_EQ(other.message(), "worker 1 is a, which is there, and b says that it is that one too; give every worker a number of its own");
  EXPECT_TRUE(job.members->claim(2, 12, "b").ok());
  EXPECT_TRUE(job.members->claim(1, 13, "a").ok()) << "the same task anew, before its old session is missed";
  job.presence->gone(13);
  EXPECT_TRUE(job.members->claim(1, 12, "b").ok());
  job.members->leave(1);
  EXPECT_TRUE(job.members->claim(1, 11, "a").ok());
  EXPECT_TRUE(job.members->claim(0, Presence::kOwn, "").ok());
  EXPECT_EQ(job.members->claim(0, 11, "a").code(), Code::failed_precondition) << "this task's own sessions are always there";
}

TEST(StepMembers, WhatAWorkerLeftBehindCountsWhenItIsGone) {
  Job job(2);
  job.presence->came(11);
  job.presence->came(12);
  job.members->begin(0, StepMembers::Begin::first);
  auto one = job.arrive(0, 0, 0, 11), two = job.arrive(1, 0, 0, 12);
  job.presence->gone(12);
  EXPECT_EQ(job.gather(0, 2)->members, (std::vector<uint8_t>{1, 1}));
}

TEST(StepMembers, ATaskThatWasStartedAnewLeavesNobodyOut) {
  Job job(3);
  job.presence->settled(false);
  job.presence->came(11);
  auto update = job.gather(7, 1);
  auto one = job.arrive(0, 7, 7, 11);
  EXPECT_FALSE(update->ended);
  job.presence->settled(true);
  ASSERT_TRUE(update->ended);
  EXPECT_EQ(update->members, (std::vector<uint8_t>{1, 0, 0}));
  job.presence->settled(false);
  update = job.gather(8, 1);
  for (int64_t w = 0; w < 3; ++w) job.arrive(w, 8, 8, 11);
  EXPECT_TRUE(update->ended) << "nobody is left to come";
}

TEST(StepMembers, WhatIsContributedAgainCountsOnce) {
  Job job(2);
  job.presence->came(11);
  job.members->begin(3, StepMembers::Begin::first);
  auto one = job.arrive(0, 3, 3, 11);
  auto again = job.arrive(0, 3, 3, 11);
  EXPECT_EQ(job.gather(3, 1)->members, (std::vector<uint8_t>{1, 0}));
  // The same step by another update.
  auto other = job.gather(3, 1);
  EXPECT_FALSE(other->ended);
  job.members->begin(3, StepMembers::Begin::again);
  EXPECT_EQ(one->next, 3);
  EXPECT_EQ(again->next, 3);
  EXPECT_FALSE(other->ended);
  job.arrive(0, 3, 3, 11);
  EXPECT_TRUE(other->ended);
  // Set back, as by a checkpoint: who is ahead is told.
  auto ahead = job.arrive(0, 4, 3, 11);
  EXPECT_EQ(ahead->next, 3);
  job.members->destroy(aborted("it is over"));
  EXPECT_EQ(job.arrive(0, 3, 3, 11)->status.code(), Code::aborted);
}

TEST(StepMembers, WhoWaitsInVainIsToldForWhom) {
  Job job(4);
  for (const uint64_t session : {11, 12, 13}) job.presence->came(session);
  job.members->begin(5, StepMembers::Begin::first);
  const auto late = [](Step& step) {
    step.abort(deadline_exceeded("late"));
    return step.cause().message();
  };
  Step first(1, Deadline::never());
  auto one = job.arrive(0, 5, 5, 11, &first);
  EXPECT_NE(late(first).find("worker 0 has contributed to step 5, which no update has asked for"), std::string::npos)
      << first.cause().message();
  job.arrive(1, 4, 5, 12);
  job.arrive(2, 5, 5, 13);
  job.presence->gone(13);
  Step second(2, Deadline::never());
  auto update = job.gather(5, 3, &second);
  EXPECT_FALSE(update->ended);
  Step third(3, Deadline::never());
  job.arrive(0, 5, 5, 11, &third);
  EXPECT_NE(late(third).find("worker 0 has contributed to step 5, which waits for worker 1"), std::string::npos) << third.cause().message();
  EXPECT_NE(
      late(second).find("step 5 has 2 contributions, of 3 at least; there, but without a contribution: worker 1; never came: worker 3"),
      std::string::npos)
      << second.cause().message();
  EXPECT_EQ(update->status.code(), Code::deadline_exceeded);
}

// The state of the world in sets, looked at as a whole after each event.
struct Oracle {
  explicit Oracle(int workers) : sessions(static_cast<size_t>(workers)) {}
  std::vector<std::optional<uint64_t>> sessions;  // of those who are waited for
  std::set<int> arrived;                          // for the present step
  std::set<uint64_t> there;
  int64_t step = 0;
  bool asked = false;

  bool complete(int least) const {
    for (size_t w = 0; w < sessions.size(); ++w) {
      if (sessions[w] && there.contains(*sessions[w]) && !arrived.contains(static_cast<int>(w))) return false;
    }
    return asked && static_cast<int>(arrived.size()) >= least;
  }
};

void expect_history(unsigned seed) {
  std::mt19937 random(seed);
  const auto upto = [&](int n) { return std::uniform_int_distribution<int>(0, n)(random); };
  const int workers = 1 + upto(4), least = 1 + upto(workers - 1);
  Job job(workers);
  Oracle oracle(workers);
  std::map<int, uint64_t> session_of;
  uint64_t sessions = 10;
  job.members->begin(0, StepMembers::Begin::first);
  std::shared_ptr<Told> update;
  std::map<int, std::shared_ptr<Told>> waiting;
  for (int event = 0; event < 200; ++event) {
    const int w = upto(workers - 1), what = upto(9);
    if (what == 0) {  // another life
      job.presence->came(session_of[w] = ++sessions);
      oracle.there.insert(sessions);
    } else if (what == 1 && session_of.contains(w)) {  // gone
      oracle.there.erase(session_of[w]);
      for (auto& session : oracle.sessions) {
        if (session == session_of[w]) session.reset();
      }
      job.presence->gone(session_of[w]);
    } else if (what == 2) {
      oracle.sessions[static_cast<size_t>(w)].reset();
      job.members->leave(w);
    } else if (what == 3 && !update) {
      oracle.asked = true;
      update = job.gather(oracle.step, least);
    } else if (what == 4) {
      oracle.arrived.clear();
      job.members->begin(oracle.step, StepMembers::Begin::again);
      for (auto& [who, told] : waiting) EXPECT_TRUE(told->ended && told->next == oracle.step) << seed;
      waiting.clear();
    } else if (session_of.contains(w) && oracle.there.contains(session_of[w])) {
      const int64_t of = std::max<int64_t>(0, oracle.step - (upto(3) == 0 ? 1 : 0));
      oracle.sessions[static_cast<size_t>(w)] = session_of[w];
      if (of == oracle.step) oracle.arrived.insert(w);
      const auto told = job.arrive(w, of, oracle.step, session_of[w]);
      if (of == oracle.step) waiting[w] = told;
      else EXPECT_TRUE(told->ended && told->next == oracle.step) << seed;
    }
    ASSERT_EQ(update && update->ended, oracle.complete(least)) << "seed " << seed << ", event " << event << ": " << job.members->text();
    if (!update || !update->ended) continue;
    for (int i = 0; i < workers; ++i)
      ASSERT_EQ(update->members[static_cast<size_t>(i)] != 0, oracle.arrived.contains(i)) << "seed " << seed;
    update = nullptr;
    oracle.arrived.clear();
    oracle.asked = false;
    job.members->begin(++oracle.step, StepMembers::Begin::next);
    for (auto& [who, told] : waiting) ASSERT_TRUE(told->ended && told->next == oracle.step) << seed;
    waiting.clear();
  }
}

TEST(StepMembers, HistoriesByChance) {
  for (unsigned seed = 0; seed < 2000 && !::testing::Test::HasFailure(); ++seed) expect_history(seed);
}

}  // namespace
}  // namespace dtg
