// The clocks of bounded staleness: histories by chance against an oracle that looks at everything anew after each event, and what the
// errors say.
#include "exec/step_clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

namespace dtg {
namespace {

struct Outcome {
  bool ended = false;
  Status status;
  int64_t clock = -2;
};

class Recorded final : public StepClocks::Wait {
 public:
  explicit Recorded(Outcome& outcome) : outcome_(outcome) {}

 private:
  void finished(Status status) override { outcome_ = {true, std::move(status), clock}; }
  Outcome& outcome_;
};

// What has happened, and who may go on after it; by sets and sums, without any list of who waits.
class Oracle {
 public:
  Oracle(int workers, int64_t staleness) : staleness_(staleness), workers_(static_cast<size_t>(workers)) {}
  struct Worker {
    std::optional<int64_t> clock;  // of the variable
    std::optional<int64_t> seen;   // of whoever looked last
    std::optional<uint64_t> session;
    std::optional<int64_t> passed;
    bool waits = false;
    bool lost = false;
  };
  std::set<uint64_t> there;
  bool settled = true;

  bool lives(const Worker& w) const { return w.seen && (w.session ? !w.lost && there.contains(*w.session) : !settled); }
  void loses(uint64_t session) {
    there.erase(session);
    for (Worker& w : workers_) w.lost |= w.session == session;
  }
  void look() {
    for (Worker& w : workers_) {
      if (w.clock) w.seen = std::max(w.seen.value_or(*w.clock), *w.clock);
    }
  }
  int64_t joins(int which, uint64_t session) {
    look();
    std::vector<int64_t> others;
    for (int i = 0; i < static_cast<int>(workers_.size()); ++i) {
      if (i != which && lives(at(i))) others.push_back(*at(i).seen);
    }
    const int64_t begins = std::max(at(which).clock.value_or(0), others.empty() ? 0 : *std::ranges::min_element(others));
    at(which) = {begins, begins, session, std::nullopt, false, false};
    return begins;
  }
  // False: refused.
  bool asks(int which, uint64_t session) {
    look();
    Worker& own = at(which);
    if (!own.seen) return false;
    const bool missed = std::ranges::any_of(
        workers_, [&](const Worker& w) { return &w != &own && lives(w) && w.passed && *w.passed > *own.seen + staleness_; });
    if (!lives(own) && missed) return false;
    own.session = session;
    own.lost = false;
    own.waits = true;
    return true;
  }
  bool may_go(int which) {
    const Worker& own = at(which);
    return own.waits && own.seen &&
           std::ranges::none_of(workers_, [&](const Worker& w) { return &w != &own && lives(w) && *w.seen + staleness_ < *own.seen; });
  }
  void goes(int which) {
    at(which).waits = false;
    at(which).passed = std::max(at(which).passed.value_or(-1), *at(which).seen);
  }
  Worker& at(int i) { return workers_[static_cast<size_t>(i)]; }
  std::vector<int64_t> variable() const {
    std::vector<int64_t> all;
    for (const Worker& w : workers_) all.push_back(w.clock.value_or(-1));
    return all;
  }
  const int64_t staleness_;

 private:
  std::vector<Worker> workers_;
};

class History {
 public:
  explicit History(uint64_t seed)
      : chance_(seed),
        count_(1 + below(5)),
        oracle_(count_, below(4)),
        clocks_(make_ref<StepClocks>("clocks", count_, presence_->roll())),
        outcomes_(static_cast<size_t>(count_)),
        sessions_(static_cast<size_t>(count_)) {
    presence_->watch([clocks = clocks_] { return clocks->review(); });
    if (below(3) == 0) begin_again();
    for (int w = 0; w < count_; ++w) come(w, true);
  }
  // Whoever still waits is let go.
  ~History() { clocks_->destroy(cancelled("the history is over")); }
  void run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFailure(); ++i) {
      const int w = below(count_);
      switch (below(12)) {
        case 0: join(w); break;
        case 1: leave(w); break;
        case 2: lose(w); break;
        case 3: come(w, below(2) == 0); break;
        case 4: settle(); break;
        default: step(w);
      }
      compare();
    }
  }
  int64_t passes() const { return passes_; }

 private:
  int below(int n) { return static_cast<int>(chance_() % static_cast<uint64_t>(n)); }
  uint64_t& session(int w) { return sessions_[static_cast<size_t>(w)]; }
  Outcome& outcome(int w) { return outcomes_[static_cast<size_t>(w)]; }

  // As after a restart of the task: the variable has clocks, and nobody is known.
  void begin_again() {
    presence_->settled(oracle_.settled = false);
    for (int w = 0; w < count_; ++w) {
      if (below(2)) oracle_.at(w).clock = below(6);
    }
  }
  void lose(int w) {
    presence_->gone(session(w));
    oracle_.loses(session(w));
  }
  void settle() { presence_->settled(oracle_.settled = true); }
  void come(int w, bool anew) {
    if (anew || session(w) == 0) {
      if (session(w)) lose(w);
      session(w) = ++last_session_;
    }
    presence_->came(session(w));
    oracle_.there.insert(session(w));
  }
  bool is_connected(int w) { return oracle_.there.contains(session(w)); }
  void join(int w) {
    if (!is_connected(w) || oracle_.at(w).waits) return;
    const std::vector<int64_t> now = oracle_.variable();
    const int64_t begins = oracle_.joins(w, session(w));
    EXPECT_EQ(clocks_->join(w, session(w), now), begins);
  }
  void leave(int w) {
    if (!is_connected(w) || oracle_.at(w).waits) return;
    oracle_.at(w) = {};
    clocks_->leave(w);
  }
  // It has made a step, or only asks once more.
  void step(int w) {
    if (!is_connected(w) || oracle_.at(w).waits) return;
    if (oracle_.at(w).clock && oracle_.at(w).passed && below(4) != 0) ++*oracle_.at(w).clock;
    outcome(w) = {};
    auto* const op = new Recorded(outcome(w));
    op->worker = w;
    op->staleness = oracle_.staleness_;
    op->session = session(w);
    op->clocks = oracle_.variable();
    const bool has_clock = oracle_.at(w).clock.has_value();
    const bool admitted = oracle_.asks(w, session(w));
    clocks_->start(op, nullptr);
    if (admitted) return;
    ASSERT_TRUE(outcome(w).ended);
    EXPECT_EQ(outcome(w).status.code(), has_clock ? Code::aborted : Code::failed_precondition) << outcome(w).status.message();
  }
  void compare() {
    for (int w = 0; w < count_; ++w) {
      if (!oracle_.at(w).waits) continue;
      const bool goes = oracle_.may_go(w);
      ASSERT_EQ(outcome(w).ended, goes) << "worker " << w << " at " << *oracle_.at(w).seen;
      if (!goes) continue;
      EXPECT_TRUE(outcome(w).status.ok()) << outcome(w).status.message();
      EXPECT_EQ(outcome(w).clock, *oracle_.at(w).seen);
      oracle_.goes(w);
      ++passes_;
    }
  }

  std::mt19937_64 chance_;
  const int count_;
  const Ref<Presence> presence_ = make_ref<Presence>();
  Oracle oracle_;
  const Ref<StepClocks> clocks_;
  std::vector<Outcome> outcomes_;
  std::vector<uint64_t> sessions_;
  uint64_t last_session_ = 0;
  int64_t passes_ = 0;
};

TEST(StepClocks, LetGoWhomTheOracleLetsGo) {
  int64_t passes = 0;
  for (uint64_t seed = 0; seed < 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.run(120);
    passes += history.passes();
  }
  EXPECT_GT(passes, 10000);
}

struct Two {
  Ref<Presence> presence = make_ref<Presence>();
  Ref<StepClocks> clocks = make_ref<StepClocks>("sync/waiting", 2, presence->roll());
  Outcome outcome;
  Two() {
    presence->watch([to = clocks] { return to->review(); });
    for (const uint64_t session : {uint64_t{11}, uint64_t{12}}) {
      presence->came(session);
      EXPECT_EQ(clocks->join(static_cast<int64_t>(session) - 11, session, std::array<int64_t, 2>{-1, -1}), 0);
    }
  }
  void ask(std::vector<int64_t> now, int64_t worker = 0, Step* step = nullptr) {
    outcome = {};
    auto* const op = new Recorded(outcome);
    op->worker = worker;
    op->staleness = 1;
    op->session = static_cast<uint64_t>(11 + worker);
    op->clocks = std::move(now);
    op->step = step;
    clocks->start(op, step);
  }
};

TEST(StepClocks, ADeadlineNamesWhoIsWaitedFor) {
  Two two;
  Step step(1, Deadline::never());
  two.ask({2, 0}, 0, &step);
  ASSERT_FALSE(two.outcome.ended);
  step.abort(deadline_exceeded("run: its time was over"));
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_EQ(step.cause().message(), "run: its time was over; worker 0 at clock 2 waits for worker 1 at clock 0 (staleness 1)");
}

// The chief has run the initializer again: the other is not waited for by what it was, and hears that it joins anew.
TEST(StepClocks, AreSetBackWithTheirVariable) {
  Two two;
  Outcome other;
  two.ask({100, 99}, 1);
  EXPECT_TRUE(two.outcome.status.ok());
  EXPECT_EQ(two.clocks->join(0, 11, std::array<int64_t, 2>{-1, -1}), 99);
  two.ask({101, -1});
  ASSERT_FALSE(two.outcome.ended) << "nobody knows yet";
  auto* const behind = new Recorded(other);
  behind->worker = 1;
  behind->session = 12;
  behind->clocks = {101, 0};
  two.clocks->start(behind, nullptr);
  ASSERT_TRUE(other.ended);
  EXPECT_EQ(other.status.code(), Code::failed_precondition);
  EXPECT_NE(other.status.message().find("set back"), std::string::npos) << other.status.message();
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_TRUE(two.outcome.status.ok()) << two.outcome.status.message();
  EXPECT_EQ(two.clocks->join(1, 12, std::array<int64_t, 2>{101, 0}), 101);
}

// Several steps of one worker at once each look at its clock at another moment.
TEST(StepClocks, AnOlderLookSetsNothingBack) {
  Two two;
  two.ask({3, 3});
  EXPECT_TRUE(two.outcome.status.ok());
  two.ask({1, 3});
  EXPECT_TRUE(two.outcome.status.ok()) << two.outcome.status.message();
  EXPECT_EQ(two.outcome.clock, 3);
}

TEST(StepClocks, WhoLeavesWhileAStepOfItWaitsHearsIt) {
  Two two;
  two.ask({2, 0});
  ASSERT_FALSE(two.outcome.ended);
  two.clocks->leave(0);
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_EQ(two.outcome.status.code(), Code::failed_precondition);
  EXPECT_NE(two.outcome.status.message().find("worker 0 has left"), std::string::npos) << two.outcome.status.message();
}

TEST(StepClocks, WhoIsGoneIsNotWaitedForAndBeginsWhereTheOthersAre) {
  Two two;
  two.ask({2, 0});
  ASSERT_FALSE(two.outcome.ended);
  two.presence->gone(12);
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_TRUE(two.outcome.status.ok());
  // It is back, and the other has begun what it could not have begun with it there.
  two.presence->came(12);
  two.ask({5, 0});
  ASSERT_TRUE(two.outcome.ended);
  two.ask({5, 0}, 1);
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_EQ(two.outcome.status.code(), Code::aborted);
  EXPECT_NE(two.outcome.status.message().find("local_init"), std::string::npos) << two.outcome.status.message();
  EXPECT_EQ(two.clocks->join(1, 12, std::array<int64_t, 2>{5, 0}), 5);
}

TEST(StepClocks, AfterARestartThoseWhoHaveClocksAreWaitedForUntilItIsSettled) {
  const Ref<Presence> presence = make_ref<Presence>();
  presence->settled(false);
  const Ref<StepClocks> clocks = make_ref<StepClocks>("c", 2, presence->roll());
  presence->watch([clocks] { return clocks->review(); });
  presence->came(11);
  Outcome outcome;
  auto* const op = new Recorded(outcome);
  op->session = 11;
  op->clocks = {7, 3};
  clocks->start(op, nullptr);
  EXPECT_FALSE(outcome.ended);
  presence->settled(true);
  ASSERT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.clock, 7);
}

TEST(StepClocks, WithoutAClockOrAfterItsEndIsAnError) {
  Two two;
  two.clocks->leave(0);
  two.ask({-1, 0});
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_EQ(two.outcome.status.code(), Code::failed_precondition);
  two.ask({-1, 5}, 1);
  ASSERT_TRUE(two.outcome.ended) << "who has left is not waited for";
  EXPECT_EQ(two.clocks->join(0, 11, std::array<int64_t, 2>{-1, 5}), 5);
  two.ask({9, 5});
  two.clocks->destroy(aborted("gone"));
  ASSERT_TRUE(two.outcome.ended);
  EXPECT_EQ(two.outcome.status.code(), Code::aborted);
  two.ask({9, 5});
  EXPECT_TRUE(two.outcome.ended);
  EXPECT_FALSE(two.clocks->review());
}

}  // namespace
}  // namespace dtg
