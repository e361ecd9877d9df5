// Driver: waiting for the other workers. The question is asked again every few seconds and after each loss, under one ticket; what has
// changed meanwhile goes into the log, so that nobody waits without a word.
#include <algorithm>

#include "cluster/answer.h"
#include "cluster/driver.h"

namespace dtg {
namespace {

// How long one question may wait for its answer, and so how old the news is.
constexpr int64_t kNewsNs = 3'000'000'000;
// What an answer may take on its way, so that it says who is missing before the time of who asks is over.
constexpr int64_t kWayNs = 200'000'000;

int64_t less_the_way(int64_t left_ns) { return left_ns - std::min(left_ns / 8, kWayNs); }

std::string what_is(const std::string& barrier) { return barrier.empty() ? "the end of the job" : "the barrier \"" + barrier + "\""; }

}  // namespace

std::string Driver::absentees() const {
  if (is_local_) return {};
  const Attendance* const here = home_->task().attendance();
  return here ? here->absentees()->text() : absentees_->text();
}

Result<wire::ArriveReply> Driver::ask_attendance(Worker& home, const wire::Arrive& question, Deadline deadline) {
  Awaited<Result<wire::ArriveReply>> told;
  const auto taker = told.taker();
  home.reach(deadline, [question, deadline, taker, kept = Ref<Worker>::share(&home), session = session_](Status status) {
    if (status.ok()) kept->arrive(session, question, deadline, taker);
    else taker(std::move(status));
  });
  return told.wait(*host_.seams.clock, deadline);
}

Status Driver::meet_workers(const std::string& barrier, bool those_there, Deadline deadline, const Pause& pause) {
  const Clock& clock = *host_.seams.clock;
  const std::string what = what_is(barrier);
  const auto home = std::ranges::find_if(workers_, [&](const Ref<Worker>& worker) { return worker->name() == attendance_home_; });
  if (home == workers_.end()) {
    return failed_precondition("wait for the other workers at %s: %s, which keeps their attendance, is hidden from this session by the "
                               "device filters of its server",
                               what.c_str(), attendance_home_.c_str());
  }
  wire::Arrive question{.name = barrier, .end = barrier.empty(), .ticket = ++tickets_, .those_there = those_there};
  std::string waits_for;
  Status last = deadline_exceeded("nobody has answered");
  while (!deadline.passed(clock)) {
    const Deadline until = within(kNewsNs, deadline);
    question.expires_left_ns = less_the_way(deadline.left_ns(clock));
    question.answer_left_ns = less_the_way(until.left_ns(clock));
    auto asked = ask_attendance(**home, question, until);
    last = asked.ok() ? asked.value().status : asked.status();
    const bool told = asked.ok() && last.ok();
    if (told && asked.value().released) {
      for (const std::string& gone : asked.value().gone)
        say(host_, LogLevel::warn, home_->name() + ": the job ends without a worker that is gone: " + gone);
      return {};
    }
    // Whoever ends the job may be faster than the answer.
    if (barrier.empty() && (home_->task().job_has_ended() || last.code() == Code::cancelled)) return {};
    if (told && asked.value().waits_for != waits_for) {
      waits_for = asked.value().waits_for;
      say(host_, LogLevel::info, home_->name() + " waits at " + what + " for " + waits_for);
    }
    // Who was asked has said that it is over; a task that cannot be reached is looked for as long as there is time.
    const bool may_pass = !asked.ok() && (last.code() == Code::unavailable || last.code() == Code::deadline_exceeded);
    if (!told && !may_pass) return last.with_context("wait for the other workers").at_task(attendance_home_);
    if (!told) DTG_TRY(pause(deadline));
  }
  if (last.ok() || (last.code() == Code::deadline_exceeded && !waits_for.empty()))
    return deadline_exceeded("wait for the other workers: %s waits for %s", what.c_str(), waits_for.c_str())
        .at_task(attendance_home_)
        .at_peer(waits_for.substr(0, waits_for.find_first_of(" ,")))
        .in_phase(barrier.empty() ? "end" : "meet");
  return last.with_context("wait for the other workers at " + what).at_peer(attendance_home_);
}

}  // namespace dtg
