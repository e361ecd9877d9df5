// Waiting and following up, by runs of the session.
#include "session/recover.h"

#include <algorithm>
#include <limits>

#include "base/whereabouts.h"
#include "session/async_run.h"
#include "session/completion_queue.h"
#include "session/levelling.h"

namespace dtg {
namespace {

constexpr int64_t kFirstPauseNs = 2'000'000, kLastPauseNs = 100'000'000;
constexpr int64_t kGraceNs = 1'000'000'000;
constexpr int64_t kPatienceNs = 5'000'000'000;  // until it is told what is waited for
constexpr size_t kNamed = 8;                    // variables a message lists

// Nothing arrives here; it is a wait with an end.
class Pause {
 public:
  Status rest(const Clock& clock, Deadline deadline) {
    if (!queue_) {
      DTG_ASSIGN(queue_, CompletionQueue::create());
    }
    CompletionQueue::Event none;
    (void)queue_->next({&none, 1}, clock, Deadline{std::min(deadline.at_ns, clock.monotonic_ns() + pause_ns_)});
    // What is waited for is noticed late by a quarter of the time that it took, at most.
    pause_ns_ = std::min(pause_ns_ + pause_ns_ / 4, kLastPauseNs);
    return {};
  }

 private:
  Ref<CompletionQueue> queue_;
  int64_t pause_ns_ = kFirstPauseNs;
};

// A run whose caller waits by the clock that it was given, whatever that is.
class Waiting {
 public:
  Waiting(Session& session, const Clock& clock) : session_(session), clock_(clock) {}
  Status run(std::span<const Value> fetches, std::span<const NodeId> targets, int64_t timeout_ns, std::vector<Tensor>* fetched = nullptr) {
    if (!queue_) {
      DTG_ASSIGN(queue_, CompletionQueue::create());
    }
    const RunArgs args{{}, {}, fetches, targets, timeout_ns};
    DTG_ASSIGN(const Ref<AsyncRun> run, session_.run_async(args, queue_, 0));
    CompletionQueue::Event event;
    // It ends by itself when its time is over.
    while (queue_->next({&event, 1}, clock_, Deadline::after(clock_, timeout_ns + kGraceNs)) == 0) run->cancel();
    for (size_t i = 0; fetched && event.status.ok() && i < fetches.size(); ++i) {
      DTG_ASSIGN(Tensor value, run->take(i));
      fetched->push_back(std::move(value));
    }
    return event.status;
  }

 private:
  Session& session_;
  const Clock& clock_;
  Ref<CompletionQueue> queue_;
};

// The names of variables without a value, those beyond the first few counted only; empty when all are ready.
Result<std::string> unready(const Model& model, Waiting& waiting, std::span<const Value> flags, int64_t timeout_ns) {
  std::vector<Tensor> fetched;
  DTG_TRY(waiting.run(flags, {}, timeout_ns, &fetched));
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (fetched[i].values<bool>()[0]) continue;
    if (++count <= kNamed) names += (names.empty() ? "\"" : ", \"") + model.variables()[i].name + "\"";
  }
  if (count > kNamed) names += format(" and %zu more", count - kNamed);
  return names;
}

// A task that was lost may come back, and a run that was cut short may be made again.
// A task that is silent and not dead lets a connection's own time pass, which is not the caller's.
bool may_pass(const Status& status, const Clock& clock, Deadline deadline) {
  const bool late = status.code() == Code::deadline_exceeded && !deadline.passed(clock);
  return late || status.code() == Code::unavailable || status.code() == Code::aborted;
}

class Recovery {
 public:
  Recovery(const Replicated& added, Session& session, const Clock& clock, Deadline deadline)
      : added_(added), session_(session), waiting_(session, clock), clock_(clock), deadline_(deadline) {}

  Status run(Model& model) {
    Pause pause;
    for (;;) {
      Status status = attempt(model);
      if (!may_pass(status, clock_, deadline_)) return status;
      if (deadline_.passed(clock_)) return status.with_context("recover");
      DTG_TRY(pause.rest(clock_, deadline_));
    }
  }

 private:
  Status attempt(Model& model) {
    DTG_TRY(wait_ready(model, session_, clock_, deadline_));
    // Updates that are under way are led to where they go on by themselves.
    const Ref<AsyncRun> updates = added_.update == kNoNode ? Ref<AsyncRun>() : session_.repeated_run(added_.update);
    DTG_TRY(updates ? mended(*updates) : levelled());
    return target(added_.local_init);
  }

  int64_t left() const { return std::max<int64_t>(1, deadline_.left_ns(clock_)); }

  Status target(NodeId node) { return waiting_.run({}, {&node, 1}, left()); }

  Status levelled() {
    Levelling levelling({.first = added_.resume, .effects = {}, .units = added_.units, .begin_units = added_.begin_units});
    std::vector<Tensor> fetched;
    for (;;) {
      DTG_ASSIGN(const Levelling::Wanted wanted, levelling.next(fetched));
      if (wanted.is_nothing()) return {};
      fetched.clear();
      DTG_TRY(waiting_.run(wanted.fetches, wanted.targets, left(), &fetched));
    }
  }

  Status mended(AsyncRun& updates) {
    const int wanted = updates.mend();
    for (Pause pause; updates.mended() < wanted && !updates.finished();) {
      if (deadline_.passed(clock_)) return deadline_exceeded("recover: the updates did not go on until the deadline passed");
      DTG_TRY(pause.rest(clock_, deadline_));
    }
    return updates.finished() ? levelled() : Status();
  }

  const Replicated& added_;
  Session& session_;
  Waiting waiting_;
  const Clock& clock_;
  const Deadline deadline_;
};

// Who looks at a program that waits long sees for what, before its time is over.
void tell_waiting(const Session& session, const std::string& why) {
  if (LogSink* const log = session.runtime().seams().log)
    log->write(LogLevel::warn, "session", "waiting for the variables of the model: " + why);
}

Status wait_for_values(Model& model, Session& session, const Clock& clock, Deadline deadline) {
  DTG_ASSIGN(const std::vector<Value> flags, ready_flags(model));
  if (flags.empty()) return {};
  std::string missing = "all of them, as far as is known";
  Status lost;
  Waiting waiting(session, clock);
  int64_t tell_at_ns = clock.monotonic_ns() + kPatienceNs;
  for (Pause pause;;) {
    auto names = unready(model, waiting, flags, std::max<int64_t>(1, deadline.left_ns(clock)));
    // A run that the deadline ended says nothing new; a task that is away may be starting again.
    const bool away = may_pass(names.status(), clock, deadline);
    if (!names.ok() && !away && !(names.status().code() == Code::deadline_exceeded && deadline.passed(clock))) return names.status();
    if (names.ok() && names.value().empty()) return {};
    // Who was away is told rather than that the time is over.
    if (away) lost = names.status();
    if (names.ok()) missing = names.take(), lost = {};
    if (!lost.ok() && deadline.passed(clock)) return lost.with_context("wait for the variables of the model");
    const std::string without = "without a value are " + missing + "; does the chief run, and has it initialised them?";
    if (deadline.passed(clock)) return deadline_exceeded("wait for the variables of the model (%zu): %s", flags.size(), without.c_str());
    if (clock.monotonic_ns() > tell_at_ns) {
      tell_at_ns = std::numeric_limits<int64_t>::max();  // once
      tell_waiting(session, lost.ok() ? without : lost.message());
    }
    DTG_TRY(pause.rest(clock, deadline));
  }
}

}  // namespace

Status wait_ready(Model& model, Session& session, const Clock& clock, Deadline deadline) {
  return told_by(wait_for_values(model, session, clock, deadline), session.driver().task().name(), "wait");
}

Status recover(Model& model, const Replicated& added, Session& session, const Clock& clock, Deadline deadline) {
  return told_by(Recovery(added, session, clock, deadline).run(model), session.driver().task().name(), "recover");
}

}  // namespace dtg
