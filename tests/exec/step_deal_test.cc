// Elements of data that are dealt to the workers of elastic steps: histories by chance, with updates that fail before and behind their
// commit and a task that is started anew, against a model in sets that knows the ledger's truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "exec/step_members.h"

namespace dtg {
namespace {

using Element = StepMembers::Element;

struct Told {
  bool ended = false;
  Status status;
  int64_t next = -2;
  Element element;
  std::vector<uint8_t> members;
  std::vector<int64_t> elements;
};
using Answer = std::shared_ptr<Told>;

struct Arrives final : StepMembers::Arrival {
  void finished(Status status) override { to->ended = true, to->status = std::move(status), to->next = next; }
  Answer to = std::make_shared<Told>();
};
struct Gathers final : StepMembers::Gathering {
  void finished(Status status) override {
    to->ended = true, to->status = std::move(status), to->members = members, to->elements = elements;
  }
  Answer to = std::make_shared<Told>();
};
struct Asks final : StepMembers::Asking {
  void finished(Status status) override { to->ended = true, to->status = std::move(status), to->element = element; }
  Answer to = std::make_shared<Told>();
};

// The task of the global step, in one of its lives.
struct Task {
  Task(int workers, const Ref<Presence>& presence, int64_t elements)
      : members(make_ref<StepMembers>("m", workers, presence->roll(), elements)) {
    presence->watch([held = members] { return held->review(); });
  }
  ~Task() { members->destroy(aborted("the task is gone")); }
  Task(const Task&) = delete;
  Answer ask(int64_t worker, uint64_t session, int64_t epoch, Step* running = nullptr) {
    auto* const op = new Asks;
    op->worker = worker, op->session = session, op->epoch = epoch, op->running = running;
    Answer told = op->to;
    members->start(op, running);
    return told;
  }
  Answer arrive(int64_t worker, int64_t step, uint64_t session, Element element) {
    auto* const op = new Arrives;
    op->worker = worker, op->step = op->now = step, op->session = session, op->element = element;
    Answer told = op->to;
    members->start(op, nullptr);
    return told;
  }
  Answer gather(int64_t step, int64_t least, std::span<const double> times) {
    auto* const op = new Gathers;
    op->step = step, op->least = least, op->times = times;
    Answer told = op->to;
    members->start(op, nullptr);
    return told;
  }
  const Ref<StepMembers> members;
};

TEST(StepDeal, WhoWaitsInVainIsToldForWhat) {
  const auto presence = make_ref<Presence>();
  Task task(3, presence, 2);
  for (const uint64_t session : {11, 12, 13}) presence->came(session);
  const auto late = [](Step& step) {
    step.abort(deadline_exceeded("late"));
    return step.cause().message();
  };
  Step first(1, Deadline::never());
  EXPECT_FALSE(task.ask(0, 11, -1, &first)->ended);
  EXPECT_NE(late(first).find("worker 0 waits for an element, and the chief has not begun its updates"), std::string::npos);
  const double times[] = {3, 3};
  task.members->begin(0, StepMembers::Begin::first, times);
  EXPECT_EQ(task.ask(0, 11, -1)->element, (Element{3, 0}));
  EXPECT_EQ(task.ask(1, 12, 3)->element, (Element{3, 1}));
  EXPECT_EQ(task.ask(2, 13, 2)->element, (Element{3, -1})) << "that epoch is over";
  Step second(2, Deadline::never()), third(3, Deadline::never());
  EXPECT_FALSE(task.ask(2, 13, 3, &second)->ended);
  EXPECT_NE(late(second).find("those of epoch 3 that are in no update yet are with workers 0 and 1"), std::string::npos)
      << second.cause().message();
  EXPECT_FALSE(task.ask(2, 13, 4, &third)->ended);
  EXPECT_NE(late(third).find("worker 2 waits for an element of epoch 4, and epoch 3 is not over"), std::string::npos);
  const auto waits = task.ask(2, 13, 3);
  presence->gone(12);
  EXPECT_EQ(waits->element, (Element{3, 1})) << "what the one had who is gone";
  // It is back, and what it brings is another's.
  presence->came(12);
  EXPECT_EQ(task.arrive(1, 0, 12, {3, 1})->next, 0);
  EXPECT_EQ(task.members->text(), "step 0: 1 awaited");
}

// The world as it is, and what follows from it, looked at as a whole after each event.
class History {
 public:
  explicit History(unsigned seed) : random_(seed), seed_(seed), workers_(1 + upto(4)), least_(1 + upto(workers_ - 1)) {
    times_.assign(static_cast<size_t>(1 + upto(7)), 0.0);
    session_.assign(static_cast<size_t>(workers_), 0);
    live();
    fresh_ = true;
    told();
    task_->members->begin(0, StepMembers::Begin::first, times_);
    keep();
  }

  void run() {
    for (int event = 0; event < 300 && !::testing::Test::HasFailure(); ++event) {
      happen(upto(16), upto(workers_ - 1));
      look();
    }
    if (!::testing::Test::HasFailure()) end_epoch();
  }

 private:
  struct Ask {
    int worker;
    int64_t epoch;
    uint64_t session;
    Answer answer;
  };
  int upto(int n) { return std::uniform_int_distribution<int>(0, n)(random_); }
  // As far as the task knows.
  int64_t now() const { return static_cast<int64_t>(*std::ranges::min_element(seen_)); }
  bool is_open(Element e) const {
    return e.index >= 0 && e.index < static_cast<int64_t>(seen_.size()) && e.epoch == now() &&
           static_cast<int64_t>(seen_[static_cast<size_t>(e.index)]) == e.epoch;
  }
  bool is_with_another(int w, Element e) const {
    return std::ranges::any_of(has_, [&](const auto& each) { return each.first != w && each.second == e; });
  }

  void live() {
    task_ = nullptr;  // first the former life, whose waits end
    task_ = std::make_unique<Task>(workers_, presence_, static_cast<int64_t>(times_.size()));
    known_ = fresh_ = counted_ = moved_ = false;
    left_.clear();
    has_.clear(), arrived_.clear(), in_update_.clear(), asks_.clear(), waits_.clear(), holder_.clear();
    counts_.assign(static_cast<size_t>(workers_), false);
    update_ = nullptr;
    under_way_ = false;
  }

  void happen(int what, int w) {
    const auto at = static_cast<size_t>(w);
    const bool there = there_.contains(session_[at]);
    if (what == 0) return come(w);
    if (what == 1 && there) return go(w);
    if (what == 2) return leave(w);
    if (what == 3 && upto(3) == 0) return live();
    if (what == 4) return fail(upto(1) == 0);
    if (what == 16) return upto(1) == 0 ? keep() : restore();
    if (what <= 7) return under_way_ ? commit() : ask_for_update();
    if (!there) return;
    if (what <= 11) return ask(w, now() - (upto(5) == 0) + (upto(7) == 0));
    // Mostly what it was given last; at times anything.
    Element brings = given_.contains(w) ? given_[w] : Element{now(), 0};
    if (upto(9) == 0) brings = {now() - upto(1), upto(static_cast<int>(times_.size()) - 1)};
    arrive(w, brings);
  }

  void come(int w) {
    session_[static_cast<size_t>(w)] = ++sessions_;
    there_.insert(sessions_);
    presence_->came(sessions_);
  }
  void go(int w) {
    const uint64_t who = session_[static_cast<size_t>(w)];
    there_.erase(who);
    // Its runs end with it.
    std::erase_if(asks_, [&](const Ask& each) { return each.worker == w; });
    forget();
    for (auto& step : steps_[w]) step->abort(cancelled("gone"));
    steps_[w].clear();
    presence_->gone(who);
    for (int other = 0; other < workers_; ++other) {
      if (member_session_[other] == who) counts_[static_cast<size_t>(other)] = false;
    }
  }
  void leave(int w) {
    counts_[static_cast<size_t>(w)] = false;
    left_.insert(w);
    task_->members->leave(w);
  }
  // Who has what as long as nobody may have it in its place.
  void forget() {
    std::erase_if(has_, [&](const auto& each) {
      const bool is_idle = !arrived_.contains(each.first) && !in_update_.contains(each.first);
      return is_idle && (left_.contains(each.first) || !there_.contains(holder_[each.first]));
    });
  }

  // A run that is made again asks the same.
  void ask(int w, int64_t epoch) {
    for (const Ask& each : asks_) {
      if (each.worker == w) epoch = each.epoch;
    }
    auto running = std::make_unique<Step>(++number_, Deadline::never());
    asks_.push_back({w, epoch, session_[static_cast<size_t>(w)], task_->ask(w, session_[static_cast<size_t>(w)], epoch, running.get())});
    steps_[w].push_back(std::move(running));
  }

  void arrive(int w, Element brings) {
    // Where the count of steps says that the update was made, before the task was told: a step further.
    if (counted_ && !std::exchange(moved_, true)) arrived_.clear(), waits_.clear();
    left_.erase(w);
    const bool repeats = has_.contains(w) && has_[w] == brings && !counted_;
    const bool takes = (!in_update_.contains(w) || repeats) && (!known_ || is_open(brings)) && !is_with_another(w, brings);
    counts_[static_cast<size_t>(w)] = true;
    member_session_[w] = session_[static_cast<size_t>(w)];
    if (takes) {
      arrived_.insert(w);
      has_[w] = brings;
      holder_[w] = session_[static_cast<size_t>(w)];
    }
    const Answer answer = task_->arrive(w, step_, session_[static_cast<size_t>(w)], brings);
    if (takes) waits_.push_back({w, answer});
    EXPECT_TRUE(takes || (answer->ended && answer->next == step_))
        << where() << ": worker " << w << " brings " << brings.index << " of epoch " << brings.epoch;
  }

  void ask_for_update() {
    if (update_ || under_way_) return;
    told();
    update_ = task_->gather(step_, least_, times_);
  }
  // The ledger is told: what is in an update by now is nobody's any more.
  void told() {
    const int64_t before = seen_.empty() ? 0 : now();
    seen_ = times_;
    if (!std::exchange(known_, true)) set_back_ = !fresh_;
    else if (now() != before) set_back_ = now() < before;
    in_update_.clear();
    std::erase_if(has_, [&](const auto& each) {
      if (is_open(each.second)) return false;
      if (arrived_.erase(each.first) > 0) std::erase_if(waits_, [&](const auto& wait) { return wait.first == each.first; });
      return true;
    });
  }
  void count() {
    for (const int64_t element : brought_) {
      EXPECT_EQ(static_cast<int64_t>(times_[static_cast<size_t>(element)]), epoch_brought_) << where() << ": element " << element;
      times_[static_cast<size_t>(element)] += 1;
    }
    ++step_;
  }
  void commit() {
    if (!std::exchange(counted_, true)) {
      count();
      if (upto(1) == 0) return;  // others hear of it before the task does
    }
    const int64_t before = now();
    seen_ = times_;
    if (now() > before) set_back_ = false;
    for (const int w : in_update_) has_.erase(w);
    in_update_.clear();
    if (!moved_) arrived_.clear(), waits_.clear();
    under_way_ = counted_ = moved_ = false;
    task_->members->begin(step_, StepMembers::Begin::next);
  }
  void keep() { kept_ = times_, kept_step_ = step_; }
  // Weights from before, and the ledger with them.
  void restore() {
    if (update_ || counted_) return;
    times_ = kept_, step_ = kept_step_;
    fail(false);
  }
  void fail(bool behind_the_commit) {
    if (under_way_ && behind_the_commit && !counted_) count();
    under_way_ = counted_ = moved_ = false;
    told();
    arrived_.clear(), waits_.clear();
    task_->members->begin(step_, StepMembers::Begin::again, times_);
  }

  void look() {
    forget();
    look_at_asks();
    look_at_update();
    for (const auto& [w, answer] : waits_) {
      EXPECT_FALSE(answer->ended && (arrived_.contains(w) || in_update_.contains(w))) << where() << ": worker " << w;
    }
  }
  void look_at_asks() {
    // Who wants one of a later epoch has done with this.
    for (const Ask& each : asks_) {
      if (each.epoch > now() && known_ && !set_back_ && !arrived_.contains(each.worker) && !in_update_.contains(each.worker))
        has_.erase(each.worker);
    }
    for (size_t i = 0; i < asks_.size();) {
      const Ask each = asks_[i];
      const std::optional<Element> wanted = answer_to(each);
      ASSERT_EQ(each.answer->ended, wanted.has_value()) << where() << ": worker " << each.worker << " asks for epoch " << each.epoch;
      if (!wanted) {
        ++i;
        continue;
      }
      ASSERT_EQ(each.answer->element, *wanted) << where() << ": " << each.answer->element.index << ", not " << wanted->index;
      if (wanted->any()) given_[each.worker] = *wanted;
      asks_.erase(asks_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  std::optional<Element> answer_to(const Ask& each) {
    const int w = each.worker;
    if (!known_ || in_update_.contains(w)) return {};
    if (each.epoch != -1 && (each.epoch < now() || (set_back_ && each.epoch > now()))) return Element{now(), -1};
    if (each.epoch > now()) return {};
    if (has_.contains(w)) {
      left_.erase(w);
      holder_[w] = each.session;
      return has_[w];
    }
    for (int64_t i = 0; i < static_cast<int64_t>(times_.size()); ++i) {
      const Element one{now(), i};
      if (!is_open(one) || is_with_another(w, one)) continue;
      has_[w] = one;
      left_.erase(w);
      holder_[w] = each.session;
      return one;
    }
    return {};
  }
  bool is_asking(int w) const {
    return std::ranges::any_of(asks_, [&](const Ask& each) { return each.worker == w; });
  }
  void look_at_update() {
    if (!update_) return;
    int ready = 0;
    bool missing = false;
    for (int w = 0; w < workers_; ++w) {
      const bool is_ready = arrived_.contains(w) || is_asking(w);
      ready += is_ready;
      missing |= counts_[static_cast<size_t>(w)] && there_.contains(member_session_[w]) && !is_ready;
    }
    ASSERT_EQ(update_->ended, !missing && !arrived_.empty() && ready >= least_) << where();
    if (!update_->ended) return;
    brought_ = update_->elements;
    epoch_brought_ = now();
    std::vector<int64_t> wanted;
    for (int w = 0; w < workers_; ++w) {
      ASSERT_EQ(update_->members[static_cast<size_t>(w)] != 0, arrived_.contains(w)) << where();
      if (arrived_.contains(w)) wanted.push_back(has_[w].index);
    }
    ASSERT_EQ(brought_, wanted) << where();
    in_update_ = arrived_;
    arrived_.clear();
    update_ = nullptr;
    under_way_ = true;
  }

  // Whatever has been, the epoch can be ended, by whoever is there.
  void end_epoch() {
    for (int w = 0; w < workers_; ++w) {
      if (there_.contains(session_[static_cast<size_t>(w)])) go(w);
      look();
      come(w);
    }
    fail(true);
    look();
    const int64_t epoch = now();
    for (int round = 0; now() == epoch && round < 20 && !::testing::Test::HasFailure(); ++round) {
      for (int w = 0; w < workers_; ++w) {
        if (!is_asking(w)) ask(w, epoch);
        look();
        if (has_.contains(w) && !is_asking(w)) arrive(w, has_[w]);
        look();
      }
      ask_for_update();
      look();
      ASSERT_TRUE(under_way_) << where() << ", round " << round << ": " << task_->members->text();
      while (under_way_) commit();
      look();
    }
    EXPECT_EQ(now(), epoch + 1) << where();
    EXPECT_TRUE(std::ranges::all_of(times_, [&](double times) { return times == static_cast<double>(epoch + 1); })) << where();
  }

  std::string where() const { return "seed " + std::to_string(seed_) + ", step " + std::to_string(step_); }

  std::mt19937 random_;
  const unsigned seed_;
  const int workers_, least_;
  const Ref<Presence> presence_ = make_ref<Presence>();
  std::unique_ptr<Task> task_;
  std::vector<double> times_;  // the truth
  std::vector<double> seen_;   // what the task knows of it
  std::vector<double> kept_;
  int64_t kept_step_ = 0;
  bool known_ = false, fresh_ = false, set_back_ = false;
  bool counted_ = false, moved_ = false;  // the update is in the ledger, and the task was not told; but a worker has brought it further
  std::vector<uint64_t> session_;
  std::vector<bool> counts_;
  std::map<int, uint64_t> member_session_, holder_;
  std::map<int, Element> has_, given_;
  std::map<int, std::vector<std::unique_ptr<Step>>> steps_;
  std::set<int> arrived_, in_update_, left_;
  std::set<uint64_t> there_;
  std::vector<Ask> asks_;
  std::vector<std::pair<int, Answer>> waits_;
  Answer update_;
  bool under_way_ = false;
  std::vector<int64_t> brought_;
  int64_t epoch_brought_ = 0, step_ = 0;
  uint64_t sessions_ = 10;
  int64_t number_ = 0;
};

TEST(StepDeal, HistoriesByChance) {
  for (unsigned seed = 0; seed < 1000 && !::testing::Test::HasFailure(); ++seed) History(seed).run();
}

}  // namespace
}  // namespace dtg
