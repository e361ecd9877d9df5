// Who is there, who is missing, and what follows from that.
#include "cluster/attendance.h"

#include <algorithm>
#include <utility>

#include "cluster/rights.h"

namespace dtg {

namespace {

constexpr size_t kNamed = 8;  // tasks that a message lists

std::string what_is(const std::string& name) { return name.empty() ? "the end of the job" : "the barrier \"" + name + "\""; }

// Of an error's origin.
const char* phase_of(const std::string& name) { return name.empty() ? "end" : "meet"; }

bool is_worker_job(std::string_view job) { return job == "chief" || job == "master" || job == "worker"; }

}  // namespace

// ---- absentees ---------------------------------------------------------------------------------------------

std::string absence_text(wire::Presence presence, int64_t for_ns, const std::string& reason) {
  const double seconds = static_cast<double>(for_ns) * 1e-9;
  if (presence == wire::Presence::left) return format("it left %.1f s ago", seconds);
  return format("lost %.1f s ago: %s", seconds, reason.c_str());
}

void Absentees::note(const wire::Roll& roll) {
  const std::lock_guard lock(mutex_);
  if (roll.presence == wire::Presence::there) absent_.erase(roll.task);
  else absent_[roll.task] = {roll.presence, clock_.monotonic_ns(), roll.reason};
}

std::string Absentees::text() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  size_t named = 0;
  for (const auto& [task, entry] : absent_) {
    if (++named > kNamed) break;
    all +=
        (all.empty() ? "" : ", ") + task + " (" + absence_text(entry.presence, clock_.monotonic_ns() - entry.since_ns, entry.reason) + ")";
  }
  if (absent_.size() > kNamed) all += format(" and %zu more", absent_.size() - kNamed);
  return all;
}

// ---- members -----------------------------------------------------------------------------------------------

std::string Attendance::home_of(const ClusterSpec& cluster) {
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (task.job == "ps") return task.name();
  }
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    if (party_of(cluster, task.name()) == Party::chief) return task.name();
  }
  return cluster.empty() ? std::string() : cluster.tasks()[0].name();
}

Attendance::Attendance(const Host& host, const Timing& timing, const ClusterSpec& cluster, std::string self, Announce announce)
    : host_(host),
      loop_(host.loop()),
      return_ns_(timing.dead_ns * kReturnFactor),
      brief_ns_(timing.dead_ns + kAnnounceNs),
      settled_ns_(loop_.clock().monotonic_ns() + brief_ns_),
      cluster_(cluster),
      self_(std::move(self)),
      announce_(std::move(announce)),
      absentees_(make_ref<Absentees>(*host.seams.clock)),
      alarm_([this] { review(); }) {
  for (const ClusterSpec::Task& task : cluster_.tasks()) {
    if (!is_worker_job(task.job)) continue;
    Member& member = members_.emplace_back();
    member.task = task.name();
    member.is_chief = party_of(cluster_, member.task) == Party::chief;
  }
}

Attendance::~Attendance() = default;

Attendance::Member* Attendance::find(const std::string& task) {
  const auto at = std::ranges::find(members_, task, &Member::task);
  return at == members_.end() ? nullptr : &*at;
}

bool Attendance::is_lost(const Member& member, int64_t now_ns, int64_t return_ns) const {
  return member.came && !is_there(member) && now_ns - member.left_ns >= return_ns;
}

void Attendance::came(const std::string& task, uint64_t life) {
  Member* const member = find(task);
  if (!member || !closed_.ok()) return;
  if (member->came && member->life != life) {
    // Another process in its place: what the former one said of itself is not true of this one.
    member->is_done = false;
    if (member->is_chief) has_ended_ = false;
    for (auto& [name, barrier] : barriers_) barrier.arrivals.erase(task);
  }
  member->came = true;
  member->life = life;
  ++member->sessions;
  Said said;
  if (std::exchange(member->announced, false)) said.rolls.push_back({task, wire::Presence::there, {}});
  tell(std::move(said));
  review();
}

void Attendance::left(const std::string& task, uint64_t session, bool clean, const Status& why) {
  Member* const member = find(task);
  if (!member || !closed_.ok() || member->sessions == 0) return;
  // Nobody hears the answer. That its work is done stays.
  for (auto& [name, barrier] : barriers_) {
    const auto at = barrier.arrivals.find(task);
    if (at != barrier.arrivals.end() && at->second.session == session) barrier.arrivals.erase(at);
  }
  if (--member->sessions == 0) {
    member->left_ns = loop_.clock().monotonic_ns();
    member->clean = clean;
    member->reason = why.message();
    // A link's reason begins with who is at its other end.
    if (member->reason.starts_with(task + ": ")) member->reason.erase(0, task.size() + 2);
  }
  review();
}

std::vector<wire::Roll> Attendance::absent() const {
  std::vector<wire::Roll> rolls;
  for (const Member& member : members_) {
    if (member.announced) rolls.push_back({member.task, member.clean ? wire::Presence::left : wire::Presence::lost, member.reason});
  }
  return rolls;
}

void Attendance::announce_absences(int64_t now_ns, Said& said) {
  for (Member& member : members_) {
    if (!member.came || is_there(member) || member.announced || now_ns - member.left_ns < kAnnounceNs) continue;
    member.announced = true;
    said.rolls.push_back({member.task, member.clean ? wire::Presence::left : wire::Presence::lost, member.reason});
  }
}

// ---- arriving ----------------------------------------------------------------------------------------------

Status Attendance::check(const std::string& task, const wire::Arrive& question) {
  DTG_TRY(closed_);
  const bool is_end = question.end;
  if (!is_end && question.name.empty()) return invalid_argument("arrive at a barrier: it has no name");
  if (!find(task) && !(is_end && party_of(cluster_, task) == Party::chief)) {
    return failed_precondition("arrive at %s: %s is none of the workers (the tasks of the jobs \"chief\", \"master\" and \"worker\")",
                               what_is(is_end ? "" : question.name).c_str(), task.empty() ? "a client" : task.c_str());
  }
  if (barriers_.size() >= kBarriersMax && !barriers_.contains(is_end ? "" : question.name)) forget_idle();
  if (barriers_.size() < kBarriersMax + 1) return {};
  return resource_exhausted("arrive at the barrier \"%s\": workers wait at %zu others already", question.name.c_str(), kBarriersMax);
}

// The one that was used longest ago of those where nobody waits: an answer that got lost there is not asked for any more.
void Attendance::forget_idle() {
  auto oldest = barriers_.end();
  for (auto at = barriers_.begin(); at != barriers_.end(); ++at) {
    if (at->second.arrivals.empty() && !at->first.empty() && (oldest == barriers_.end() || at->second.used < oldest->second.used))
      oldest = at;
  }
  if (oldest != barriers_.end()) barriers_.erase(oldest);
}

void Attendance::arrive(const std::string& task, uint64_t session, const wire::Arrive& question, Answer answer) {
  if (Status refused = check(task, question); !refused.ok()) return answer({.status = std::move(refused)});
  Barrier& barrier = barriers_[question.end ? std::string() : question.name];
  barrier.used = ++uses_;
  const auto was = barrier.released.find(task);
  const bool again = was != barrier.released.end() && was->second == std::pair(session, question.ticket);
  if (again || (question.end && has_ended_)) return answer({.released = true});
  if (Member* const member = find(task); question.end && member && !member->is_chief) member->is_done = true;
  Said said;
  Arrival& arrival = barrier.arrivals[task];
  const bool same = arrival.session == session && arrival.ticket == question.ticket;
  if (arrival.answer && same) said.answers.emplace_back(std::move(arrival.answer), wire::ArriveReply{});
  else if (arrival.answer)
    said.answers.emplace_back(
        std::move(arrival.answer),
        wire::ArriveReply{.status = aborted("%s has arrived once more", task.c_str()).at_peer(task).in_phase("meet")});
  const int64_t now = loop_.clock().monotonic_ns();
  arrival = {
      session, question.ticket, now + question.expires_left_ns, std::move(answer), now + question.answer_left_ns, question.those_there};
  tell(std::move(said));
  review();
}

bool Attendance::asks_for_those_there(const Barrier& barrier) const {
  return std::ranges::any_of(barrier.arrivals, [](const auto& arrival) { return arrival.second.those_there; });
}

std::vector<const Attendance::Member*> Attendance::missing(const std::string& name, const Barrier& barrier, int64_t now_ns) const {
  const bool those_there = name.empty() && asks_for_those_there(barrier);
  std::vector<const Member*> all;
  for (const Member& member : members_) {
    if (barrier.arrivals.contains(member.task) || (name.empty() && member.is_done)) continue;
    const bool was_there = member.came ? is_there(member) || !member.clean : now_ns < settled_ns_;
    if (was_there || !those_there) all.push_back(&member);
  }
  return all;
}

bool Attendance::chief_is_there(const Barrier& barrier) const {
  return std::ranges::any_of(barrier.arrivals, [&](const auto& arrival) { return party_of(cluster_, arrival.first) == Party::chief; });
}

std::string Attendance::described(const Member& member, int64_t now_ns) const {
  if (is_there(member)) return member.task;
  if (!member.came) return member.task + " (has not connected yet)";
  const wire::Presence presence = member.clean ? wire::Presence::left : wire::Presence::lost;
  return member.task + " (" + absence_text(presence, now_ns - member.left_ns, member.reason) + ")";
}

std::string Attendance::list(const std::vector<const Member*>& of, int64_t now_ns) const {
  std::string all;
  for (size_t i = 0; i < of.size() && i < kNamed; ++i) all += (i == 0 ? "" : ", ") + described(*of[i], now_ns);
  if (of.size() > kNamed) all += format(" and %zu more", of.size() - kNamed);
  return all;
}

// ---- deciding ----------------------------------------------------------------------------------------------

void Attendance::review() {
  if (!closed_.ok()) return;
  const int64_t now = loop_.clock().monotonic_ns();
  Said said;
  announce_absences(now, said);
  for (auto& [name, barrier] : barriers_) {
    if (barrier.arrivals.empty()) continue;
    decide(name, barrier, now, said);
    look_at_times(name, barrier, now, said);
  }
  loop_.set(alarm_, next_due(now));
  tell(std::move(said));
}

void Attendance::decide(const std::string& name, Barrier& barrier, int64_t now_ns, Said& said) {
  std::vector<const Member*> absent = missing(name, barrier, now_ns), lost;
  const int64_t return_ns = name.empty() && asks_for_those_there(barrier) ? brief_ns_ : return_ns_;
  for (const Member* member : absent) {
    if (is_lost(*member, now_ns, return_ns)) lost.push_back(member);
  }
  if (name.empty()) {
    if (absent.size() == lost.size() && chief_is_there(barrier)) {
      std::vector<std::string> gone;
      for (const Member* member : lost) gone.push_back(described(*member, now_ns));
      has_ended_ = true;
      return release_all(barrier, gone, said);
    }
    std::erase_if(lost, [](const Member* member) { return !member->is_chief; });
    // Another chief may end it.
    if (chief_is_there(barrier)) lost.clear();
  } else if (absent.empty()) {
    return release_all(barrier, {}, said);
  }
  if (lost.empty()) return;
  fail_all(barrier,
           unavailable("%s cannot be reached by all: gone %s %s", what_is(name).c_str(), lost.size() == 1 ? "is" : "are",
                       list(lost, now_ns).c_str())
               .at_peer(lost[0]->task)
               .in_phase(phase_of(name)),
           said);
}

void Attendance::look_at_times(const std::string& name, Barrier& barrier, int64_t now_ns, Said& said) {
  for (auto at = barrier.arrivals.begin(); at != barrier.arrivals.end();) {
    const auto current = at++;
    Arrival& arrival = current->second;
    const bool expired = arrival.expires_ns <= now_ns;
    if (!expired && (!arrival.answer || arrival.answer_ns > now_ns)) continue;
    wire::ArriveReply reply;
    const std::vector<const Member*> awaited = missing(name, barrier, now_ns);
    reply.waits_for = list(awaited, now_ns);
    if (expired) {
      reply.status = deadline_exceeded("%s waits for %s", what_is(name).c_str(), reply.waits_for.c_str())
                         .at_peer(awaited.empty() ? "" : awaited[0]->task)
                         .in_phase(phase_of(name));
    }
    if (arrival.answer) said.answers.emplace_back(std::exchange(arrival.answer, nullptr), std::move(reply));
    if (expired) barrier.arrivals.erase(current);
  }
}

// The chief last: it ends the job, and everybody else should know by then.
void Attendance::release_all(Barrier& barrier, const std::vector<std::string>& gone, Said& said) {
  for (const bool chiefs : {false, true}) {
    for (auto& [task, arrival] : barrier.arrivals) {
      if ((party_of(cluster_, task) == Party::chief) != chiefs) continue;
      barrier.released[task] = {arrival.session, arrival.ticket};
      if (arrival.answer) said.answers.emplace_back(std::move(arrival.answer), wire::ArriveReply{.released = true, .gone = gone});
    }
  }
  barrier.arrivals.clear();
}

// Who is between two questions learns the same with the next one.
void Attendance::fail_all(Barrier& barrier, const Status& why, Said& said) {
  for (auto& [task, arrival] : barrier.arrivals) {
    if (arrival.answer) said.answers.emplace_back(std::move(arrival.answer), wire::ArriveReply{.status = why});
  }
  barrier.arrivals.clear();
}

int64_t Attendance::next_due(int64_t now_ns) const {
  int64_t due = INT64_MAX;
  for (const Member& member : members_) {
    if (!member.came || is_there(member)) continue;
    if (!member.announced) due = std::min(due, member.left_ns + kAnnounceNs);
    for (const int64_t return_ns : {brief_ns_, return_ns_}) {
      if (!is_lost(member, now_ns, return_ns)) due = std::min(due, member.left_ns + return_ns);
    }
  }
  for (const auto& [name, barrier] : barriers_) {
    if (name.empty() && now_ns < settled_ns_ && asks_for_those_there(barrier)) due = std::min(due, settled_ns_);
    for (const auto& [task, arrival] : barrier.arrivals) {
      due = std::min(due, arrival.expires_ns);
      if (arrival.answer) due = std::min(due, arrival.answer_ns);
    }
  }
  return due;
}

void Attendance::tell(Said said) {
  const Ref<Attendance> self = Ref<Attendance>::share(this);
  for (const wire::Roll& roll : said.rolls) {
    absentees_->note(roll);
    announce_(roll);
  }
  for (const auto& [answer, reply] : said.answers) answer(reply);
}

void Attendance::close(const Status& why) {
  if (!closed_.ok()) return;
  closed_ = why;
  loop_.cancel(alarm_);
  Said said;
  for (auto& [name, barrier] : barriers_) fail_all(barrier, why, said);
  tell(std::move(said));
}

Json Attendance::state() const {
  const int64_t now = loop_.clock().monotonic_ns();
  Json::Array workers, barriers;
  for (const Member& member : members_) {
    const char* const presence = is_there(member) ? "there" : !member.came ? "awaited" : member.clean ? "left" : "lost";
    Json::Object one{{"task", member.task}, {"presence", presence}, {"done", member.is_done}};
    if (member.came && !is_there(member)) {
      one.emplace_back("seconds", static_cast<double>(now - member.left_ns) * 1e-9);
      one.emplace_back("reason", member.reason);
    }
    workers.emplace_back(std::move(one));
  }
  for (const auto& [name, barrier] : barriers_) {
    if (barrier.arrivals.empty()) continue;
    Json::Array arrived;
    for (const auto& [task, arrival] : barrier.arrivals) arrived.emplace_back(task);
    barriers.emplace_back(Json::Object{{"name", name}, {"arrived", std::move(arrived)}});
  }
  return Json::Object{{"workers", std::move(workers)}, {"barriers", std::move(barriers)}};
}

}  // namespace dtg
