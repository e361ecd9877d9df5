// Who is waited for, and who goes on.
#include "exec/step_members.h"

#include <algorithm>
#include <utility>

namespace dtg {

StepMembers::StepMembers(std::string name, int64_t workers, Ref<const Presence::Roll> roll, int64_t elements)
    : WaitingResource(std::move(name)),
      roll_(std::move(roll)),
      members_(static_cast<size_t>(workers)),
      places_(members_.size()),
      deal_(elements) {}

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

void StepMembers::begin(int64_t step, Begin how, std::span<const double> times) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    fresh_ |= how == Begin::first;
    move_to(step, ended);
    end_updates(how == Begin::next, ended);
    if (how != Begin::next) {
      told(times, ended);
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

Status StepMembers::claim(int64_t worker, uint64_t session, std::string_view task) {
  const std::lock_guard hold(mutex_);
  return places_[static_cast<size_t>(worker)].take(*roll_, worker, session, task);
}

void StepMembers::leave(int64_t worker) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    Member& own = members_[static_cast<size_t>(worker)];
    own.counts = false;
    own.left = true;
    places_[static_cast<size_t>(worker)].give_up();
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
  switch (static_cast<Wait&>(pending).what()) {
    case Wait::For::step: arrive(static_cast<Arrival&>(pending), ended); break;
    case Wait::For::members: gather(static_cast<Gathering&>(pending), ended); break;
    case Wait::For::element:
      ++members_[static_cast<size_t>(static_cast<Asking&>(pending).worker)].asks;
      wait(pending, asks_);
      break;
  }
  serve(ended);
}

// Its contribution is of no account where the step has been made without it, or the steps were set back. It is waited for from now on all
// the same: else one that is slower than the others would be late for ever.
void StepMembers::arrive(Arrival& arrival, PendingOpList& ended) {
  Member& own = members_[static_cast<size_t>(arrival.worker)];
  own.counts = own.came = true;
  own.left = false;
  own.session = arrival.session;
  if (arrival.now > step_) move_to(arrival.now, ended);
  if (arrival.step != step_ || !may_bring(own, arrival)) {
    arrival.next = step_;
    return end(arrival, ended, {});
  }
  own.arrived = step_;
  own.element = arrival.element;
  own.holder = arrival.session;
  wait(arrival, arrivals_);
}

// The update knows best which step it is.
void StepMembers::gather(Gathering& gathering, PendingOpList& ended) {
  end_updates(false, ended);
  if (gathering.step != step_) move_to(gathering.step, ended);
  told(gathering.times, ended);
  wait(gathering, gatherings_);
}

// What nobody has seen yet of a former life of this task is waited for until the roll is settled.
bool StepMembers::is_complete(const Gathering& gathering) const {
  if (gathering.step != step_ || std::ranges::any_of(members_, [&](const Member& member) { return is_missing(member); })) return false;
  const int64_t arrived = count_arrived();
  // Who waits for an element would take part if there were one.
  const int64_t ready = std::ranges::count_if(members_, [&](const Member& member) { return has_arrived(member) || member.asks > 0; });
  if (deal_.is_on() && (arrived == 0 || !deal_.is_known())) return false;
  return ready == workers() || (ready >= gathering.least && (fresh_ || roll_->is_settled()));
}

// What is given to one update is not given to another.
void StepMembers::serve(PendingOpList& ended) {
  give_back();
  // Whoever finds none free leaves none for those behind him.
  bool any_free = true;
  for (PendingOp* at = asks_.first(); at;) {
    auto& asking = static_cast<Asking&>(*at);
    at = PendingOpList::after(at);
    if (deal_to(asking, any_free)) end_wait(asking, ended, {});
  }
  for (PendingOp* at = gatherings_.first(); at;) {
    auto& gathering = static_cast<Gathering&>(*at);
    at = PendingOpList::after(at);
    if (!is_complete(gathering)) continue;
    // Nothing changes before the memory is there.
    gathering.members.clear();
    gathering.members.reserve(members_.size());
    gathering.elements.clear();
    gathering.elements.reserve(members_.size());
    for (Member& member : members_) {
      gathering.members.push_back(has_arrived(member) ? 1 : 0);
      if (!has_arrived(member)) continue;
      member.arrived = kNone;
      if (!deal_.is_on()) continue;
      member.in_update = true;
      member.taken_for = gathering.step;
      gathering.elements.push_back(member.element.index);
    }
    end(gathering, gatherings_, ended, {});
  }
}

// ---- elements ----

// Of a former life of this task nobody knows who had which, so who brings one then has it, unless somebody else does.
// Where it is in an update already, that is a repetition of what the update was made of, and nothing for the step behind it.
bool StepMembers::may_bring(const Member& own, const Arrival& arrival) const {
  if (!deal_.is_on()) return true;
  const Element element = arrival.element;
  if (!element.any() || (own.in_update && (own.element != element || own.taken_for != arrival.step))) return false;
  if (deal_.is_known() && !deal_.is_open(element)) return false;
  return std::ranges::none_of(members_, [&](const Member& other) { return &other != &own && other.element == element; });
}

void StepMembers::forget_arrival(Member& member, PendingOpList& ended) {
  member.arrived = kNone;
  for (PendingOp* at = arrivals_.first(); at;) {
    auto& arrival = static_cast<Arrival&>(*at);
    at = PendingOpList::after(at);
    if (&members_[static_cast<size_t>(arrival.worker)] != &member) continue;
    arrival.next = step_;
    end(arrival, arrivals_, ended, {});
  }
}

// The update that took them was made, or nobody will hear of it: then the ledger tells.
void StepMembers::end_updates(bool made, PendingOpList& ended) {
  const int64_t epoch = deal_.epoch();
  for (Member& member : members_) {
    if (!std::exchange(member.in_update, false) || !made) continue;
    deal_.made(member.element);
    // Whoever repeated it meanwhile has contributed to nothing else.
    if (has_arrived(member)) forget_arrival(member, ended);
    member.element = {};
  }
  if (deal_.epoch() > epoch) set_back_ = false;
}

// Who arrived with what is in an update already, as that was made and its end got lost, has contributed to nothing.
void StepMembers::told(std::span<const double> times, PendingOpList& ended) {
  if (!deal_.is_on()) return;
  const bool was_known = deal_.is_known();
  const int64_t epoch = deal_.epoch();
  deal_.told(times);
  // In a former life of this task they may have come further.
  if (!was_known) set_back_ = !fresh_;
  else if (deal_.epoch() != epoch) set_back_ = deal_.epoch() < epoch;
  for (Member& member : members_) {
    if (!member.element.any() || deal_.is_open(member.element)) continue;
    const bool had_arrived = has_arrived(member);
    member.element = {};
    if (had_arrived) forget_arrival(member, ended);
  }
}

// What they had who are gone or have left, or who have turned to a later epoch.
void StepMembers::give_back() {
  for (Member& member : members_) {
    if (is_idle(member) && (member.left || !roll_->has(member.holder))) member.element = {};
  }
  if (set_back_) return;
  for (const PendingOp* at = asks_.first(); at; at = PendingOpList::after(at)) {
    const auto& asking = static_cast<const Asking&>(*at);
    Member& own = members_[static_cast<size_t>(asking.worker)];
    if (deal_.is_known() && asking.epoch > deal_.epoch() && is_idle(own)) own.element = {};
  }
}

StepMembers::Element StepMembers::free_element() const {
  std::vector<int64_t> held;
  for (const Member& member : members_) {
    if (member.element.any()) held.push_back(member.element.index);
  }
  std::ranges::sort(held);
  return deal_.first_but(held);
}

// It has one at a time: who asks again has not contributed with what it has, and gets that. False: it has to wait. Who had come further
// than a ledger that was set back hears which epoch is now.
bool StepMembers::deal_to(Asking& asking, bool& any_free) {
  Member& own = members_[static_cast<size_t>(asking.worker)];
  if (!deal_.is_known() || own.in_update) return false;
  if (asking.epoch != Deal::kNone && (asking.epoch < deal_.epoch() || (set_back_ && asking.epoch > deal_.epoch()))) {
    asking.element = {deal_.epoch(), Deal::kNone};
    return true;
  }
  if (asking.epoch > deal_.epoch()) return false;
  if (!own.element.any() && any_free) {
    own.element = free_element();
    any_free = own.element.any();
  }
  if (!own.element.any()) return false;
  own.left = false;
  own.holder = asking.session;
  asking.element = own.element;
  return true;
}

PendingOpList& StepMembers::list_of(const Wait& wait) {
  return wait.what() == Wait::For::step ? arrivals_ : wait.what() == Wait::For::members ? gatherings_ : asks_;
}

void StepMembers::end_wait(Wait& wait, PendingOpList& ended, Status status) {
  if (wait.what() == Wait::For::element) --members_[static_cast<size_t>(static_cast<Asking&>(wait).worker)].asks;
  end(wait, list_of(wait), ended, std::move(status));
}

// ---- what is said ----

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
  const std::string awaited = list([&](const Member& member) { return is_missing(member); });
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
  const std::string awaited = list([&](const Member& member) { return is_missing(member); });
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

Status StepMembers::lateness(const Asking& asking) const {
  const auto worker = static_cast<long long>(asking.worker), epoch = static_cast<long long>(deal_.epoch());
  if (!deal_.is_known()) return deadline_exceeded("worker %lld waits for an element, and the chief has not begun its updates", worker);
  if (asking.epoch > deal_.epoch()) {
    return deadline_exceeded("worker %lld waits for an element of epoch %lld, and epoch %lld is not over", worker,
                             static_cast<long long>(asking.epoch), epoch);
  }
  const std::string others = list([](const Member& member) { return member.element.any(); });
  return deadline_exceeded("worker %lld waits for an element; those of epoch %lld that are in no update yet are with %s", worker, epoch,
                           others.empty() ? "nobody" : others.c_str());
}

Status StepMembers::lateness(const Wait& wait) const {
  switch (wait.what()) {
    case Wait::For::step: return lateness(static_cast<const Arrival&>(wait));
    case Wait::For::members: return lateness(static_cast<const Gathering&>(wait));
    default: return lateness(static_cast<const Asking&>(wait));
  }
}

void StepMembers::withdraw(PendingOp& pending, PendingOpList& ended) {
  auto& wait = static_cast<Wait&>(pending);
  if (wait.running) wait.running->explain_lateness(lateness(wait));
  end_wait(wait, ended, {});
}

void StepMembers::destroy(const Status& reason) {
  PendingOpList ended;
  {
    const std::lock_guard hold(mutex_);
    destroyed_ = true;
    for (PendingOpList* const waiting : {&arrivals_, &gatherings_, &asks_}) {
      while (!waiting->empty()) end(*waiting->first(), *waiting, ended, reason);
    }
  }
  settle(ended);
}

}  // namespace dtg
