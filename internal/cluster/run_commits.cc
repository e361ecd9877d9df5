// Entering and leaving.
#include "cluster/run_commits.h"

#include <new>

#include "cluster/task.h"

namespace dtg {

// What fails for lack of memory ends the commit, with the turn given back; it never leaves somebody waiting.
template <class Fn>
void RunCommits::contained(Fn&& fn) {
  try {
    fn();
  } catch (const std::bad_alloc&) {
    if (!done_) return;
    try {
      give_turn_back();
    } catch (const std::bad_alloc&) {
    }
    done_.step().unseal();
    go_on(resource_exhausted("commit: out of memory"));
  }
}

void RunCommits::enter(uint32_t phase, Completion done) {
  phase_ = phase;
  done_ = std::move(done);
  contained([this] { ask(); });
}

void RunCommits::ask() {
  dtg::Task& task = part_.task();
  const auto had = task.ledger().has(write_, phase_);
  if (!had.ok()) return go_on(had.status());
  if (had.value()) {
    done_.step().skip_writes(true);
    return go_on({});
  }
  if (task.log() && !task.log()->turns().take(*this)) return;
  has_turn_ = task.log() != nullptr;
  begin();
}

// Whoever gave the turn back is in the middle of something else.
void RunCommits::your_turn() {
  has_turn_ = true;
  part_.task().host().pool->submit(this);
}

void RunCommits::begin() {
  contained([this] { log_and_go_on(); });
}

void RunCommits::log_and_go_on() {
  Step& step = done_.step();
  if (!step.seal()) {
    give_turn_back();
    return go_on(step.cause());
  }
  if (Status status = log_it(); !status.ok()) {
    give_turn_back();
    step.unseal();
    return go_on(std::move(status));
  }
  open_ = true;
  go_on({});
}

Status RunCommits::log_it() {
  CommitLog* const log = part_.task().log();
  const LoggedWrites* const writes = log ? part_.logged(phase_) : nullptr;
  if (!log) return {};
  if (!writes) return internal_error("commit phase %u: it cannot be logged", phase_);
  DTG_ASSIGN(number_, log->append(write_, phase_, *writes, done_.context()));
  return {};
}

void RunCommits::give_turn_back() {
  if (!std::exchange(has_turn_, false)) return;
  dtg::Task& task = part_.task();
  task.log()->maybe_save(task.store(), task.ledger());
  task.log()->turns().give_back();
}

void RunCommits::leave(uint32_t phase, Completion done) {
  phase_ = phase;
  done_ = std::move(done);
  contained([this] { enter_row(); });
}

void RunCommits::enter_row() {
  Step& step = done_.step();
  dtg::Task& task = part_.task();
  if (step.skips_writes()) {
    // Whoever wrote it may have gone before it was on the disk.
    step.skip_writes(false);
    number_ = task.log() ? task.log()->last() : 0;
  } else {
    task.ledger().enter(write_, phase_);
    open_ = false;
    give_turn_back();
    step.unseal();
  }
  if (!task.log()) return go_on({});
  task.log()->when_on_disk(number_, *this);
}

Status RunCommits::enter_round(uint32_t loop, int64_t round, Step& step) {
  dtg::Task& task = part_.task();
  if (task.log()) return internal_error("round %lld of a loop that writes: it cannot be logged", static_cast<long long>(round));
  DTG_ASSIGN(const bool had, task.ledger().has_round(write_, loop, round));
  if (had) {
    step.skip_writes(true);
    return {};
  }
  if (!step.seal()) return step.cause();
  phase_ = Ledger::row_of_loop(loop);
  open_ = true;
  return {};
}

void RunCommits::leave_round(uint32_t loop, int64_t round, Step& step) {
  if (step.skips_writes()) return step.skip_writes(false);
  part_.task().ledger().enter_round(write_, loop, round);
  open_ = false;
  step.unseal();
}

void RunCommits::on_disk(const Status& status) { go_on(status); }

void RunCommits::go_on(Status status) {
  Completion done = std::move(done_);
  done.done(std::move(status));
}

void RunCommits::end(const Status& status) {
  if (!open_) return;
  part_.task().ledger().enter(write_, phase_, status.ok() ? internal_error("a commit was not ended") : status);
  if (has_turn_) part_.task().log()->append_failure();
  give_turn_back();
}

}  // namespace dtg
