// RunCommits: the commits of one run of a part. Each unit is entered once: its writes are found in the task's ledger and skipped, or the
// step is sealed until they have taken place and a row of the ledger says so. Where the task keeps a log, a unit is entered with the
// log's turn and a record in it, and left when that is on the disk. Units of different strands may come at the same time; one is entered,
// the others wait, and hear of the step's end while they do.
//
// Owner: the run. The threads of its segments, of the log and whoever aborts the step.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "cluster/commit_log.h"
#include "exec/commits.h"
#include "exec/step.h"

namespace dtg {

class ServedPart;

class RunCommits final : public Commits, private Turns::Waiter, private CommitLog::Waiter, private Pool::Task, private Step::Waiter {
 public:
  RunCommits(const ServedPart& part, const WriteId& write) : part_(part), write_(write) {}

  uint64_t writer() const override { return write_.writer; }
  void enter(const CommitArgs& gate, Completion done) override;
  void leave(const CommitArgs& point, Completion done) override;
  void changed() override;
  // Nothing of the run goes on; what was entered and not left has failed.
  void end(const Status& status);

 private:
  struct Asked {
    const CommitArgs* gate = nullptr;
    Completion done;
  };
  void your_turn() override;
  void aborted(const Status& cause) override;
  void run() override;
  template <class Fn>
  void contained(Fn&& fn);
  bool has_to_wait(const CommitArgs& gate, Completion& done);
  void ask();
  Result<bool> took_place();
  void begin();
  void log_and_go_on();
  void enter_row();
  Status log_it();
  void give_turn_back();
  void on_disk(const Status& status) override;
  void go_on(Status status);
  bool take_next();

  const ServedPart& part_;
  const WriteId write_;
  // Of the unit under way.
  const CommitArgs* gate_ = nullptr;
  uint32_t row_ = 0;       // of the ledger
  int64_t round_ = -1;     // of a strand
  bool asked_ = false;     // it is to be begun, by run()
  bool open_ = false;      // it was entered
  bool leaving_ = false;   // its writes have taken place
  bool has_turn_ = false;  // the log's
  uint64_t number_ = 0;    // the log's, of the last commit
  Completion done_;
  std::vector<int64_t> rounds_;  // begun, by strand
  std::atomic<bool> has_changed_{false};

  std::mutex mutex_;  // guards what follows
  bool busy_ = false;
  std::deque<Asked> waiting_;  // on the step's list while there are any
  std::deque<Asked> ended_;    // those that an abort ends
};

}  // namespace dtg
