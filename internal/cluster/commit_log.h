// CommitLog: what a task has committed, written down before it takes place and on the disk before anybody is told. One commit at a time
// has the turn: it gets a number, its record is appended, its writes take place; then the next one may, while the first waits for the
// disk together with all who came meanwhile. From time to time, with the turn held, the values of all variables are taken as they are,
// and a set is made of them beside the log (checkpoint/directory.h), so that the log up to there may go.
//
// DIRECTORY/
//   identity              which state this is, in 16 hex digits, and of which task
//   lock                  held by whoever serves it
//   journal-...           records (checkpoint/journal.h, cluster/commit_record.h)
//   sets/step-...         of step n: the state after commit n
//
// Owner: the task. Any thread but the loop's; what needs the turn says so.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/turns.h"
#include "checkpoint/journal.h"
#include "cluster/commit_record.h"
#include "cluster/host.h"
#include "exec/resource.h"

namespace dtg {

class CommitLog final : public RefCounted, private Pool::Task {
 public:
  // Told once what came of it, from a thread of the disk's pool or at once.
  class Waiter {
   public:
    virtual void on_disk(const Status& status) = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class CommitLog;
    uint64_t number_ = 0;
  };
  static constexpr int64_t kSetBytes = int64_t{64} << 20;
  // Where a log goes on.
  struct Beginning {
    int64_t set_bytes = kSetBytes;  // a set is due when the log has grown by so much, or by as much as the last set took
    uint64_t last = 0;              // the last commit there was
    int64_t journal_bytes = 0;      // since the last set
    bool waits_for_disk = true;     // else whoever wrote is told when the system has the record, and the disk gets it within a second
    std::unique_ptr<FileLock> lock;
  };
  struct Counts {
    uint64_t commits = 0, on_disk = 0, sets = 0;
    int64_t bytes = 0;
    Status failure;
  };

  // Begins a file of its own. `owner` keeps what the host points to.
  static Result<Ref<CommitLog>> begin(const Host& host, std::string directory, Beginning from, Ref<RefCounted> owner);

  Turns& turns() { return turns_; }
  // With the turn: the number of the commit whose record is in the file now. After an error nothing is logged any more. `round` is of a
  // strand's row.
  Result<uint64_t> append(const WriteId& write, uint32_t phase, int64_t round, const LoggedWrites& writes, const RunContext& gate);
  // With the turn: the last commit has failed.
  void append_failure();
  // With the turn, after the writes: takes a set where it is time for one.
  void maybe_save(const ResourceStore& store, const Ledger& ledger);
  void when_on_disk(uint64_t number, Waiter& waiter);
  uint64_t last() const { return last_.load(std::memory_order_acquire); }
  bool waits_for_disk() const { return waits_for_disk_; }
  Counts counts() const;

 private:
  class Saving;
  CommitLog(const Host& host, std::string directory, Beginning from, Ref<RefCounted> owner);
  Status open_file();
  void run() override;
  bool sync_once();
  void start_sync();
  Status write_record(std::span<const std::string_view> pieces);

  const Ref<RefCounted> owner_;
  const Host host_;
  const std::string directory_;
  const std::unique_ptr<FileLock> lock_;
  const int64_t set_bytes_;
  const bool waits_for_disk_;
  Turns turns_;
  // Whose turn it is.
  std::set<uint64_t> known_;  // LoggedWrites of this file
  int64_t since_set_ = 0;     // bytes
  std::atomic<uint64_t> last_{0};
  std::atomic<bool> saving_{false};
  std::atomic<int64_t> save_after_;  // bytes
  std::atomic<uint64_t> sets_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<JournalWriter> file_;
  std::vector<Waiter*> waiters_;
  uint64_t written_ = 0, on_disk_ = 0;
  int64_t bytes_ = 0;
  bool syncing_ = false;
  int64_t synced_ns_ = 0;  // when that was begun last
  Status failure_;
};

}  // namespace dtg
