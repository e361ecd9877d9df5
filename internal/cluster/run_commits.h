// RunCommits: the commits of one run of a part. Each phase is entered once, in order: its writes are found in the task's ledger and
// skipped, or the step is sealed until they have taken place and a row of the ledger says so. Where the task keeps a log, a phase is
// entered with the log's turn and a record in it, and left when that is on the disk.
//
// Owner: the run. The threads of its segments and of the log, one at a time.
#pragma once

#include <optional>

#include "cluster/commit_log.h"
#include "exec/commits.h"

namespace dtg {

class ServedPart;

class RunCommits final : public Commits, private Turns::Waiter, private CommitLog::Waiter, private Pool::Task {
 public:
  RunCommits(const ServedPart& part, const WriteId& write) : part_(part), write_(write) {}

  uint64_t writer() const override { return write_.writer; }
  void enter(uint32_t phase, Completion done) override;
  void leave(uint32_t phase, Completion done) override;
  Status enter_round(uint32_t loop, int64_t round, Step& step) override;
  void leave_round(uint32_t loop, int64_t round, Step& step) override;
  // Nothing of the run goes on; what was entered and not left has failed.
  void end(const Status& status);

 private:
  void your_turn() override;
  void run() override { begin(); }
  template <class Fn>
  void contained(Fn&& fn);
  void ask();
  void begin();
  void log_and_go_on();
  void enter_row();
  Status log_it();
  void give_turn_back();
  void on_disk(const Status& status) override;
  void go_on(Status status);

  const ServedPart& part_;
  const WriteId write_;
  uint32_t phase_ = 0;
  bool open_ = false;      // the phase was entered
  bool has_turn_ = false;  // the log's
  uint64_t number_ = 0;    // the log's, of the last commit
  Completion done_;
};

}  // namespace dtg
