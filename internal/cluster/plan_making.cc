// The stages of a plan.
#include "cluster/plan_making.h"

#include <algorithm>

#include "base/interrupt.h"

namespace dtg {
namespace {

// How long a run looks for a task that went away, which may just be starting anew.
constexpr int64_t kReturnNs = 30'000'000'000;
// And for one that another can stand in for, or that was there and comes back, if it does, without what its variables held.
constexpr int64_t kReturnBrieflyNs = 1'000'000'000;

// May a part be run once more, if the writes to variables that were made before are skipped then?
bool is_repeatable(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const OpDef& op = *graph.node(id).op;
    for (size_t i = 0; i < graph.node(id).inputs.size(); ++i) {
      switch (op.access_of(i)) {
        case Access::undeclared:
        case Access::read:
        case Access::peek:
        case Access::ask:
        case Access::attend: break;
        case Access::write:
        case Access::assign:
          // What it gave is not kept.
          if (!graph.node(id).outputs.empty()) return false;
          break;
        default: return false;
      }
    }
  }
  return true;
}

bool changes_something(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    for (size_t i = 0; i < graph.node(id).inputs.size(); ++i) {
      switch (graph.node(id).op->access_of(i)) {
        case Access::undeclared:
        case Access::read:
        case Access::peek:
        case Access::ask:
        case Access::attend: break;
        default: return true;
      }
    }
  }
  return false;
}

bool is_pure(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const OpDef& op = *graph.node(id).op;
    const bool edge = op.role() == Role::send || op.role() == Role::receive || op.role() == Role::join;
    if (op.capability() != Capability::pure && !edge) return false;
  }
  return true;
}

std::vector<Value> feeds_of(const PlanRequest& request) {
  std::vector<Value> feeds;
  for (const FeedSpec& feed : request.feeds) feeds.push_back(feed.value);
  return feeds;
}

class GivenUp final : public Interrupt {
 public:
  explicit GivenUp(const std::atomic<bool>& given_up) : given_up_(given_up) {}
  bool is_due() override { return given_up_.load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>& given_up_;
};

}  // namespace

PlanMaking::PlanMaking(Ref<Driver> driver, Ref<Graph> graph, PlanRequest request, Deadline deadline, int64_t wanted_ns)
    : driver_(std::move(driver)), graph_(std::move(graph)), request_(std::move(request)), deadline_(deadline), wanted_ns_(wanted_ns) {}

bool PlanMaking::advance() {
  GivenUp interrupt(is_given_up_);
  const Interrupt::Scope scope(&interrupt);
  Result<bool> done = false;
  Stage before;
  try {
    do {
      before = stage_;
      done = step();
      // A cut that turned out to be impossible is followed by another.
    } while (done.ok() && !done.value() && before == Stage::registered);
  } catch (const Interrupted&) {
    done = cancelled("plan: interrupted");
  }
  if (!done.ok()) result_ = why(done.status());
  else if (done.value()) result_ = std::move(plan_);
  return !done.ok() || done.value();
}

Result<bool> PlanMaking::step() {
  const auto& workers = driver_->workers_;
  if (stage_ == Stage::cut) return cut();
  DTG_TRY(outcome());
  if (stage_ == Stage::registered) return take_parts();
  return ask(Stage::registered, [&](size_t i, uint64_t round) {
    Part& part = parts_.others[i];
    workers[part.task]->register_part(
        part.graph, std::move(part.request), deadline_,
        [self = Ref<PlanMaking>::share(this), i, round](Result<Worker::Part> answer) { self->answered(round, i, std::move(answer)); });
  });
}

// All of them are met before the first part: a task that sends to another tells it for whom.
Result<bool> PlanMaking::cut() {
  Driver& driver = *driver_;
  plan_ = make_ref<PartitionedPlan>(Ref<RefCounted>::share(&driver), driver.host_, graph_, request_);
  if (driver.workers_.size() == 1) {
    DTG_TRY(finish(Part{driver.map_.home, graph_, request_}));
    return true;
  }
  DTG_ASSIGN(Placer* const placer, driver.placer_for(request_.at));
  DTG_ASSIGN(parts_, partition(driver.home_->context(*placer, deadline_), *graph_, request_, driver.map_));
  return ask(Stage::connected, [&](size_t i, uint64_t round) {
    const uint32_t task = parts_.others[i].task;
    const bool briefly = driver.map_.tasks[task] == request_.at || driver.workers_[task]->is_lost();
    const int64_t time_ns = briefly ? kReturnBrieflyNs : kReturnNs;
    driver.workers_[task]->connect(
        driver.looked_for(wanted_ns_, time_ns, deadline_), [self = Ref<PlanMaking>::share(this), i, round](Status status) {
          self->answered(round, i, status.ok() ? Result<Worker::Part>(Worker::Part()) : Result<Worker::Part>(std::move(status)));
        });
  });
}

// False: they have the word. Without others there is nobody to wait for, and the answers are as good as there.
bool PlanMaking::ask(Stage next, const std::function<void(size_t i, uint64_t round)>& question) {
  const size_t count = parts_.others.size();
  uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    round = ++asked_.round;
    asked_.left = count;
    asked_.status.assign(count, Status());
    asked_.parts.assign(count, Worker::Part());
    // Who has lost a task is told at once: another that is to send there dials it in vain until this session is there again, which
    // comes behind this plan.
    asked_.ends_early = next == Stage::registered;
  }
  stage_ = next;
  for (size_t i = 0; i < count; ++i) question(i, round);
  return false;
}

void PlanMaking::answered(uint64_t round, size_t i, Result<Worker::Part> answer) {
  std::function<void()> then;
  {
    const std::lock_guard lock(mutex_);
    if (round == asked_.round && asked_.given_up.ok()) {
      if (answer.ok()) asked_.parts[i] = answer.take();
      else asked_.status[i] = answer.status();
      if (!answer.ok() && asked_.ends_early) asked_.given_up = answer.status();
      if (--asked_.left == 0 || !asked_.given_up.ok()) then = std::exchange(asked_.then, nullptr);
      if (!then) return;
    }
  }
  if (then) return then();
  // Nobody runs a part that came too late.
  if (answer.ok() && answer.value().id != 0) driver_->workers_[parts_.others[i].task]->drop(answer.value());
}

void PlanMaking::when_answered(std::function<void()> fn) {
  {
    const std::lock_guard lock(mutex_);
    if (asked_.left > 0 && asked_.given_up.ok()) {
      asked_.then = std::move(fn);
      return;
    }
  }
  fn();
}

void PlanMaking::give_up(const Status& cause) {
  std::function<void()> then;
  {
    const std::lock_guard lock(mutex_);
    if (!asked_.given_up.ok()) return;
    asked_.given_up = cause;
    is_given_up_ = true;
    then = std::exchange(asked_.then, nullptr);
  }
  if (then) then();
}

// Passes that were interrupted know no more than that.
Status PlanMaking::why(const Status& status) {
  const std::lock_guard lock(mutex_);
  return asked_.given_up.ok() ? status : asked_.given_up;
}

// Of the round. Parts that some have registered go where another has not.
Status PlanMaking::outcome() {
  std::vector<Worker::Part> dropped;
  Status first;
  {
    const std::lock_guard lock(mutex_);
    first = asked_.given_up;
    for (const Status& status : asked_.status) {
      if (first.ok()) first = status;
    }
    if (first.ok()) return {};
    dropped.swap(asked_.parts);
    dropped.resize(parts_.others.size());
  }
  for (size_t i = 0; i < dropped.size(); ++i) {
    if (dropped[i].id != 0) driver_->workers_[parts_.others[i].task]->drop(dropped[i]);
  }
  return first;
}

// False where tasks turned out to be apart, which the map knows then: the request has to be cut anew.
Result<bool> PlanMaking::take_parts() {
  std::vector<Worker::Part> parts;
  {
    const std::lock_guard lock(mutex_);
    parts.swap(asked_.parts);
  }
  stage_ = Stage::cut;
  bool apart = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t task = parts_.others[i].task;
    if (parts[i].unreachable.empty()) plan_->others_.push_back({driver_->workers_[task], std::move(parts[i])});
    else DTG_TRY(driver_->keep_apart(task, parts[i].unreachable));
    apart |= plan_->others_.size() <= i;
  }
  if (apart) return false;
  const auto peer_of = [&](const std::string& peer, bool) -> Result<uint32_t> {
    const auto at = std::ranges::find_if(plan_->others_, [&](const PartitionedPlan::Piece& piece) { return piece.worker->name() == peer; });
    if (at == plan_->others_.end()) return internal_error("partition: an edge to %s, which has no part", peer.c_str());
    return static_cast<uint32_t>(at - plan_->others_.begin());
  };
  DTG_ASSIGN(plan_->edges_, EdgeTable::make(*parts_.home.graph, peer_of));
  plan_->home_is_pure_ = is_pure(*parts_.home.graph);
  plan_->writes_elsewhere_ = std::ranges::any_of(parts_.others, [](const Part& part) { return changes_something(*part.graph); });
  plan_->is_repeatable_ = plan_->home_is_pure_ &&
                          std::ranges::all_of(parts_.others, [](const Part& part) { return is_repeatable(*part.graph); }) &&
                          std::ranges::all_of(plan_->others_, [](const PartitionedPlan::Piece& piece) { return piece.part.knows_writes; });
  if (makes_known_steps(*parts_.home.graph))
    plan_->repeats_ = repetition_of(*graph_, feeds_of(request_), request_.fetches, request_.targets);
  DTG_TRY(finish(std::move(parts_.home)));
  return true;
}

Status PlanMaking::finish(Part home) {
  plan_->home_.worker = driver_->workers_[driver_->map_.home];
  DTG_ASSIGN(plan_->home_.part, driver_->home_->prepare(std::move(home.graph), std::move(home.request), deadline_));
  return {};
}

}  // namespace dtg
