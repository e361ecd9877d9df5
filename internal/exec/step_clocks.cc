// Who may begin.
#include "exec/step_clocks.h"

#include <algorithm>

namespace dtg {

StepClocks::StepClocks(std::string name, int64_t workers, Ref<const Presence::Roll> roll)
    : WaitingResource(std::move(name)), roll_(std::move(roll)), members_(static_cast<size_t>(workers)), places_(members_.size()) {}

// Of a worker that has a clock but has not been heard of since this task began, nobody knows yet whether it is still there.
bool StepClocks::is_there(const Member& member) const {
  if (member.clock == kNobody) return false;
  return member.known ? !member.gone && roll_->has(member.session) : !roll_->is_settled();
}

// They only grow: what is smaller was seen earlier.
void StepClocks::look(std::span<const int64_t> clocks) {
  for (size_t w = 0; w < clocks.size() && w < members_.size(); ++w) members_[w].clock = std::max(members_[w].clock, clocks[w]);
}

int64_t StepClocks::slowest(int64_t but) const {
  int64_t least = INT64_MAX;
  for (size_t w = 0; w < members_.size(); ++w) {
    if (static_cast<int64_t>(w) != but && is_there(members_[w])) least = std::min(least, members_[w].clock);
  }
  return least;
}

std::vector<int64_t> StepClocks::clocks() const {
  std::vector<int64_t> all;
  const std::lock_guard hold(mutex_);
  for (const Member& member : members_) all.push_back(member.clock);
  return all;
}

Status StepClocks::claim(int64_t worker, uint64_t session, std::string_view task) {
  const std::lock_guard hold(mutex_);
  return places_[static_cast<size_t>(worker)].take(*roll_, worker, session, task);
}

int64_t StepClocks::join(int64_t worker, uint64_t session, std::span<const int64_t> clocks) {
  PendingOpList ended;
  int64_t begins = 0;
  {
    const std::lock_guard hold(mutex_);
    look(clocks);
    const int64_t least = slowest(worker);
    // Its own as it is now: a checkpoint may have brought it back to a smaller one.
    const int64_t own = clocks[static_cast<size_t>(worker)];
    begins = std::max({int64_t{0}, own, least == INT64_MAX ? 0 : least});
    members_[static_cast<size_t>(worker)] = {true, false, session, begins, kNobody};
    serve(ended);
  }
  settle(ended);
  return begins;
}

void StepClocks::leave(int64_t worker) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    members_[static_cast<size_t>(worker)] = {};
    places_[static_cast<size_t>(worker)].give_up();
    serve(ended);
  }
  settle(ended);
}

bool StepClocks::review() {
  PendingOpList ended;
  bool destroyed = false;
  {
    const std::lock_guard hold(mutex_);
    for (Member& member : members_) member.gone |= member.known && !roll_->has(member.session);
    serve(ended);
    destroyed = destroyed_;
  }
  settle(ended);
  return !destroyed;
}

// A worker that was gone and is back counts again, unless others have begun what they could not have begun with it there.
Status StepClocks::admit(const Wait& wait) {
  Member& own = members_[static_cast<size_t>(wait.worker)];
  // Only the worker itself moves its clock on, so what it sees now is what there is, or what one of its runs beside this one has seen.
  const int64_t now = wait.clocks[static_cast<size_t>(wait.worker)];
  if (own.clock != kNobody && (now == kNobody || own.clock - now > kRunsAtOnceMost)) {
    own = {};
    return failed_precondition(
        "bounded staleness: the clocks in \"%s\" were set back, as by an initializer that was run again or a checkpoint that was restored; "
        "worker %lld runs local_init, as recovering the model does, and goes on where the others are",
        name().c_str(), static_cast<long long>(wait.worker));
  }
  if (own.clock == kNobody) {
    return failed_precondition("bounded staleness: worker %lld has no clock in \"%s\"; it runs local_init before its first step",
                               static_cast<long long>(wait.worker), name().c_str());
  }
  if (!is_there(own)) {
    for (size_t w = 0; w < members_.size(); ++w) {
      const Member& other = members_[w];
      if (&other == &own || !is_there(other) || other.begun - own.clock <= wait.staleness) continue;
      return aborted("bounded staleness: worker %lld was lost at clock %lld and the others went on without it (worker %zu is at %lld); it "
                     "runs local_init, as recovering the model does, and goes on where they are",
                     static_cast<long long>(wait.worker), static_cast<long long>(own.clock), w, static_cast<long long>(other.clock));
    }
  }
  own.known = true;
  own.gone = false;
  own.session = wait.session;
  return {};
}

const StepClocks::Member* StepClocks::behind(const Wait& wait) const {
  const Member& own = members_[static_cast<size_t>(wait.worker)];
  const Member* found = nullptr;
  for (const Member& other : members_) {
    if (&other == &own || !is_there(other) || own.clock - other.clock <= wait.staleness) continue;
    if (!found || other.clock < found->clock) found = &other;
  }
  return found;
}

void StepClocks::enter(PendingOp& pending, PendingOpList& ended) {
  auto& op = static_cast<Wait&>(pending);
  if (destroyed_) return end(op, ended, aborted("bounded staleness: the clocks \"%s\" were destroyed", name().c_str()));
  look(op.clocks);
  if (Status refused = admit(op); !refused.ok()) end(op, ended, std::move(refused));
  else wait(op, waiting_);
  serve(ended);
}

void StepClocks::serve(PendingOpList& ended) {
  for (PendingOp* at = waiting_.first(); at;) {
    auto& op = static_cast<Wait&>(*at);
    at = PendingOpList::after(at);
    Member& own = members_[static_cast<size_t>(op.worker)];
    if (own.clock == kNobody) {
      end(op, waiting_, ended,
          failed_precondition("bounded staleness: worker %lld has left \"%s\", or its clock was set back, while a step of it waited",
                              static_cast<long long>(op.worker), name().c_str()));
      continue;
    }
    if (behind(op)) continue;
    own.begun = std::max(own.begun, own.clock);
    op.clock = own.clock;
    end(op, waiting_, ended, {});
  }
}

Status StepClocks::lateness(const Wait& wait) const {
  const Member* const other = behind(wait);
  if (!other) return {};
  const bool known = other->known;
  return deadline_exceeded("worker %lld at clock %lld waits for worker %zu at clock %lld%s (staleness %lld)",
                           static_cast<long long>(wait.worker), static_cast<long long>(members_[static_cast<size_t>(wait.worker)].clock),
                           static_cast<size_t>(other - members_.data()), static_cast<long long>(other->clock),
                           known ? "" : ", which has not come back since the task that keeps the clocks was started anew",
                           static_cast<long long>(wait.staleness));
}

void StepClocks::withdraw(PendingOp& pending, PendingOpList& ended) {
  auto& op = static_cast<Wait&>(pending);
  if (const Status why = lateness(op); op.step && !why.ok()) op.step->explain_lateness(why);
  end(op, waiting_, ended, {});
}

void StepClocks::destroy(const Status& reason) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    destroyed_ = true;
    while (!waiting_.empty()) end(*waiting_.first(), waiting_, ended, reason);
  }
  settle(ended);
}

}  // namespace dtg
