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

void RunCommits::enter(const CommitArgs& gate, Completion done) {
  if (has_to_wait(gate, done)) return;
  gate_ = &gate;
  done_ = std::move(done);
  contained([this] { ask(); });
}

// Another unit of the run is under way. False where this one is it now.
bool RunCommits::has_to_wait(const CommitArgs& gate, Completion& done) {
  Step& step = done.step();
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(busy_, true)) return false;
    const bool first = waiting_.empty();
    waiting_.emplace_back().gate = &gate;
    if (!first || step.add(this)) {
      waiting_.back().done = std::move(done);
      return true;
    }
    waiting_.pop_back();
  }
  done.done(step.cause());
  return true;
}

// The unit under way may fail, and then nobody goes on.
void RunCommits::aborted(const Status& cause) {
  size_t left = 0;
  {
    // A deque of this function's own would take memory even while it is empty, and its lack may be why.
    const std::lock_guard lock(mutex_);
    ended_.swap(waiting_);
    left = ended_.size();
  }
  // With the last one this may go.
  while (left-- > 0) {
    Asked each = std::move(ended_.front());
    ended_.pop_front();
    each.done.done(cause);
  }
}

// The next unit, if one waits, is under way then. Who takes the last one also takes it off the step's list; where an abort was faster, it
// is the abort's.
bool RunCommits::take_next() {
  const std::lock_guard lock(mutex_);
  const bool none = waiting_.empty() || (waiting_.size() == 1 && !waiting_.front().done.step().remove(this));
  if (none) {
    busy_ = false;
    return false;
  }
  gate_ = waiting_.front().gate;
  done_ = std::move(waiting_.front().done);
  waiting_.pop_front();
  return true;
}

void RunCommits::ask() {
  dtg::Task& task = part_.task();
  const auto had = took_place();
  if (!had.ok()) return go_on(had.status());
  if (had.value()) {
    done_.step().skip_writes(true);
    return go_on({});
  }
  if (task.log() && !task.log()->turns().take(*this)) return;
  has_turn_ = task.log() != nullptr;
  begin();
}

Result<bool> RunCommits::took_place() {
  round_ = -1;
  if (gate_->strand < 0) {
    row_ = gate_->phase;
    return part_.task().ledger().has(write_, row_);
  }
  const auto strand = static_cast<size_t>(gate_->strand);
  if (rounds_.size() <= strand) rounds_.resize(strand + 1);
  row_ = Ledger::row_of_strand(gate_->strand);
  round_ = rounds_[strand]++;
  return part_.task().ledger().has_round(write_, row_, round_);
}

// Whoever gave the turn back is in the middle of something else.
void RunCommits::your_turn() {
  has_turn_ = true;
  part_.task().host().pool->submit(this);
}

void RunCommits::run() {
  if (std::exchange(asked_, false)) contained([this] { ask(); });
  else begin();
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
  const LoggedWrites* const writes = log ? part_.logged(gate_->record) : nullptr;
  if (!log) return {};
  if (!writes) return internal_error("commit phase %u: it cannot be logged", gate_->phase);
  DTG_ASSIGN(number_, log->append(write_, row_, round_, *writes, done_.context()));
  return {};
}

void RunCommits::give_turn_back() {
  if (!std::exchange(has_turn_, false)) return;
  dtg::Task& task = part_.task();
  task.log()->maybe_save(task.store(), task.ledger());
  task.log()->turns().give_back();
}

void RunCommits::leave(const CommitArgs&, Completion done) {
  done_ = std::move(done);
  leaving_ = true;
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
    if (round_ < 0) task.ledger().enter(write_, row_);
    else task.ledger().enter_round(write_, row_, round_);
    open_ = false;
    give_turn_back();
    step.unseal();
  }
  if (!task.log()) return go_on({});
  task.log()->when_on_disk(number_, *this);
}

// Whoever asks what became of the run is told; nobody repeats it.
void RunCommits::changed() {
  if (!has_changed_.exchange(true)) part_.task().ledger().enter(write_, Ledger::kOutsideUnits);
}

void RunCommits::on_disk(const Status& status) { go_on(status); }

// Who is told may be the last to hold the run.
void RunCommits::go_on(Status status) {
  Completion done = std::move(done_);
  if (std::exchange(leaving_, false) || !status.ok()) {
    Pool& pool = *part_.task().host().pool;
    if (take_next()) {
      asked_ = true;
      pool.submit(this);
    }
  }
  done.done(std::move(status));
}

void RunCommits::end(const Status& status) {
  if (!open_) return;
  part_.task().ledger().enter(write_, row_, status.ok() ? internal_error("a commit was not ended") : status);
  if (has_turn_) part_.task().log()->append_failure();
  give_turn_back();
}

}  // namespace dtg
