// Who is waited for, and who goes on.
#include "exec/step_members.h"

#include <algorithm>

namespace dtg {

StepMembers::StepMembers(std::string name, int64_t workers, Ref<const Presence::Roll> roll)
    : WaitingResource(std::move(name)), roll_(std::move(roll)), members_(static_cast<size_t>(workers)) {}

int64_t StepMembers::count_arrived() const {
  return std::ranges::count_if(members_, [&](const Member& member) { return has_arrived(member); });
}

// Everybody who arrived for another step is told which one it is now.
void StepMembers::move_to(int64_t step, PendingOpList& ended) {
  step_ = step;
  for (PendingOp* at = arrivals_.first(); at;) {
    auto& arrival = static_cast<Arrival&>(*at);
    at = PendingOpList::after(at);
    if (arrival.step == step_) continue;
    arrival.next = step_;
    end(arrival, arrivals_, ended, {});
  }
}

void StepMembers::begin(int64_t step, Begin how) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    fresh_ |= how == Begin::first;
    move_to(step, ended);
    if (how != Begin::next) {
      for (Member& member : members_) member.arrived = kNone;
      while (PendingOp* const first = arrivals_.first()) {
        static_cast<Arrival&>(*first).next = step_;
        end(*first, arrivals_, ended, {});
      }
    }
    serve(ended);
  }
  settle(ended);
}

std::string StepMembers::text() const {
  const std::lock_guard hold(mutex_);
  std::string all = format("step %lld:", static_cast<long long>(step_));
  for (size_t w = 0; w < members_.size(); ++w) {
    if (has_arrived(members_[w])) all += format(" %zu arrived,", w);
    else if (is_there(members_[w])) all += format(" %zu awaited,", w);
  }
  all.pop_back();
  return all;
}

void StepMembers::leave(int64_t worker) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    members_[static_cast<size_t>(worker)].counts = false;
    serve(ended);
  }
  settle(ended);
}

// Who was gone for long enough to be missed takes part again when it arrives again, whatever its session does meanwhile.
bool StepMembers::review() {
  PendingOpList ended;
  bool destroyed = false;
  {
    const std::lock_guard hold(mutex_);
    for (Member& member : members_) member.counts = is_there(member);
    serve(ended);
    destroyed = destroyed_;
  }
  settle(ended);
  return !destroyed;
}

void StepMembers::enter(PendingOp& pending, PendingOpList& ended) {
  if (destroyed_) return end(pending, ended, aborted("the members of steps in \"%s\" were destroyed", name().c_str()));
  if (static_cast<Wait&>(pending).is_update()) gather(static_cast<Gathering&>(pending), ended);
  else arrive(static_cast<Arrival&>(pending), ended);
  serve(ended);
}

// Its contribution is of no account where the step has been made without it, or the steps were set back. It is waited for from now on all
// the same: else one that is slower than the others would be late for ever.
void StepMembers::arrive(Arrival& arrival, PendingOpList& ended) {
  Member& own = members_[static_cast<size_t>(arrival.worker)];
  own.counts = own.came = true;
  own.session = arrival.session;
  if (arrival.now > step_) move_to(arrival.now, ended);
  if (arrival.step != step_) {
    arrival.next = step_;
    return end(arrival, ended, {});
  }
  own.arrived = step_;
  wait(arrival, arrivals_);
}

// The update knows best which step it is.
void StepMembers::gather(Gathering& gathering, PendingOpList& ended) {
  if (gathering.step != step_) move_to(gathering.step, ended);
  wait(gathering, gatherings_);
}

// What nobody has seen yet of a former life of this task is waited for until the roll is settled.
bool StepMembers::is_complete(const Gathering& gathering) const {
  const auto is_missing = [&](const Member& member) { return is_there(member) && !has_arrived(member); };
  if (gathering.step != step_ || std::ranges::any_of(members_, is_missing)) return false;
  const int64_t arrived = count_arrived();
  return arrived == workers() || (arrived >= gathering.least && (fresh_ || roll_->is_settled()));
}

// What is given to one update is not given to another.
void StepMembers::serve(PendingOpList& ended) {
  for (PendingOp* at = gatherings_.first(); at;) {
    auto& gathering = static_cast<Gathering&>(*at);
    at = PendingOpList::after(at);
    if (!is_complete(gathering)) continue;
    for (Member& member : members_) {
      gathering.members.push_back(has_arrived(member) ? 1 : 0);
      if (has_arrived(member)) member.arrived = kNone;
    }
    end(gathering, gatherings_, ended, {});
  }
}

template <class Fn>
std::string StepMembers::list(Fn&& is_it) const {
  std::vector<size_t> found;
  for (size_t w = 0; w < members_.size(); ++w) {
    if (is_it(members_[w])) found.push_back(w);
  }
  constexpr size_t kNamed = 8;
  std::string text = found.size() == 1 ? "worker " : "workers ";
  for (size_t i = 0; i < std::min(found.size(), kNamed); ++i) {
    const bool last = i > 0 && i + 1 == found.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(found[i]);
  }
  if (found.size() > kNamed) text += format(" and %zu more", found.size() - kNamed);
  return found.empty() ? std::string() : text;
}

Status StepMembers::lateness(const Gathering& gathering) const {
  const std::string awaited = list([&](const Member& member) { return is_there(member) && !has_arrived(member); });
  const std::string gone = list([&](const Member& member) { return member.came && !is_there(member) && !has_arrived(member); });
  const std::string absent = list([&](const Member& member) { return !member.came; });
  std::string why;
  if (!awaited.empty()) why = "; there, but without a contribution: " + awaited;
  if (!gone.empty()) why += "; gone, or left: " + gone;
  if (!absent.empty()) why += "; never came: " + absent;
  return deadline_exceeded("step %lld has %lld contributions, of %lld at least%s%s", static_cast<long long>(gathering.step),
                           static_cast<long long>(count_arrived()), static_cast<long long>(gathering.least), why.c_str(),
                           fresh_ || roll_->is_settled() ? "" : "; the task that counts them was started anew a moment ago");
}

Status StepMembers::lateness(const Arrival& arrival) const {
  const std::string awaited = list([&](const Member& member) { return is_there(member) && !has_arrived(member); });
  if (gatherings_.empty()) {
    return deadline_exceeded("worker %lld has contributed to step %lld, which no update has asked for; does the chief run its update?",
                             static_cast<long long>(arrival.worker), static_cast<long long>(arrival.step));
  }
  const auto& gathering = static_cast<const Gathering&>(*gatherings_.first());
  if (!awaited.empty()) {
    return deadline_exceeded("worker %lld has contributed to step %lld, which waits for %s", static_cast<long long>(arrival.worker),
                             static_cast<long long>(arrival.step), awaited.c_str());
  }
  return lateness(gathering);
}

void StepMembers::withdraw(PendingOp& pending, PendingOpList& ended) {
  auto& wait = static_cast<Wait&>(pending);
  if (wait.running) {
    wait.running->explain_lateness(wait.is_update() ? lateness(static_cast<Gathering&>(wait)) : lateness(static_cast<Arrival&>(wait)));
  }
  end(wait, wait.is_update() ? gatherings_ : arrivals_, ended, {});
}

void StepMembers::destroy(const Status& reason) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    destroyed_ = true;
    for (PendingOpList* const waiting : {&arrivals_, &gatherings_}) {
      while (!waiting->empty()) end(*waiting->first(), *waiting, ended, reason);
    }
  }
  settle(ended);
}

}  // namespace dtg
