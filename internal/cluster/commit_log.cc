// Appending with the turn held; the disk's own thread makes sure and makes sets.
#include "cluster/commit_log.h"

#include <algorithm>
#include <new>

#include "checkpoint/directory.h"
#include "cluster/saved_state.h"
#include "exec/commits.h"

namespace dtg {
namespace {

constexpr int kSetsKept = 2;
constexpr int64_t kSyncEveryNs = 1'000'000'000;  // where nobody waits for the disk

Status explained(const Status& status) {
  return status.with_context("log a commit: this task keeps no updates any more until it is started anew, because its log failed");
}

}  // namespace

// One set, from values that were taken with the turn held. Deletes itself.
class CommitLog::Saving final : public Pool::Task {
 public:
  Saving(Ref<CommitLog> log, SavedState state, uint64_t number) : log_(std::move(log)), state_(std::move(state)), number_(number) {}

  void run() override {
    const Status status = save();
    if (status.ok()) {
      log_->sets_.fetch_add(1);
    } else {
      say(log_->host_, LogLevel::warn,
          "a set of the state in " + log_->directory_ + " could not be made, the log goes on: " + status.message());
    }
    log_->saving_ = false;
    delete this;
  }

 private:
  Status save() {
    Disk& disk = *log_->host_.seams.disk;
    CheckpointDirectory sets(disk, *log_->host_.seams.random, log_->directory_ + "/sets");
    DTG_ASSIGN(const SetId id, sets.begin(static_cast<int64_t>(number_)));
    auto receipt = sets.write(id, {}, state_.tensors);
    if (!receipt.ok()) {
      sets.give_up(id);
      return receipt.status();
    }
    const ShardReceipt receipts[] = {receipt.take()};
    DTG_TRY(sets.publish(id, receipts, state_.extras));
    DTG_TRY(sets.prune(kSetsKept));
    return forget(sets);
  }

  // What the oldest set that is kept holds already.
  Status forget(CheckpointDirectory& sets) {
    DTG_ASSIGN(const std::vector<FoundSet> found, sets.list());
    DTG_ASSIGN(const std::vector<JournalFile> files, list_journals(*log_->host_.seams.disk, log_->directory_));
    // With one set alone the whole log stays: it is what there is if that one is damaged.
    if (found.size() < static_cast<size_t>(kSetsKept)) return {};
    const auto held = static_cast<uint64_t>(found.back().id.step);
    for (size_t i = 0; i + 1 < files.size() && files[i + 1].first <= held + 1; ++i) DTG_TRY(log_->host_.seams.disk->remove(files[i].path));
    return {};
  }

  const Ref<CommitLog> log_;
  const SavedState state_;
  const uint64_t number_;
};

CommitLog::CommitLog(const Host& host, std::string directory, Beginning from, Ref<RefCounted> owner)
    : owner_(std::move(owner)),
      host_(host),
      directory_(std::move(directory)),
      lock_(std::move(from.lock)),
      set_bytes_(from.set_bytes),
      waits_for_disk_(from.waits_for_disk),
      since_set_(from.journal_bytes),
      save_after_(from.set_bytes),
      written_(from.last),
      on_disk_(from.last) {
  last_ = from.last;
}

Result<Ref<CommitLog>> CommitLog::begin(const Host& host, std::string directory, Beginning from, Ref<RefCounted> owner) {
  auto log = Ref<CommitLog>::adopt(new CommitLog(host, std::move(directory), std::move(from), std::move(owner)));
  DTG_TRY(log->open_file());
  return log;
}

// The file before is on the disk before there is another, so that only the last one can end in the middle.
Status CommitLog::open_file() {
  if (file_) DTG_TRY(file_->sync());
  DTG_ASSIGN(std::shared_ptr<JournalWriter> fresh, JournalWriter::begin(*host_.seams.disk, directory_, last() + 1));
  const std::lock_guard lock(mutex_);
  file_ = std::move(fresh);
  known_.clear();
  return {};
}

Status CommitLog::write_record(std::span<const std::string_view> pieces) {
  const int64_t before = file_->bytes();
  // Half a record may be there when it throws.
  const Status status = [&]() -> Status {
    try {
      return file_->append(pieces);
    } catch (const std::bad_alloc&) {
      return resource_exhausted("out of memory");
    }
  }();
  since_set_ += file_->bytes() - before;
  const std::lock_guard lock(mutex_);
  bytes_ += file_->bytes() - before;
  if (!status.ok() && failure_.ok()) failure_ = explained(status);
  return failure_;
}

Result<uint64_t> CommitLog::append(const WriteId& write, uint32_t phase, int64_t round, const LoggedWrites& writes,
                                   const RunContext& gate) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
  }
  if (!known_.contains(writes.key)) {
    const std::string record = encode(writes);
    const std::string_view pieces[] = {record};
    DTG_TRY(write_record(pieces));
    known_.insert(writes.key);
  }
  CommitRecord head;
  head.number = last() + 1;
  head.writes = writes.key;
  head.write = write;
  head.phase = phase;
  head.round = round;
  const auto values = gate.args<CommitArgs>().values;
  std::vector<std::string> texts = {encode_commit_head(head, values.size())};
  for (const auto& value : values) texts.push_back(describe_value(value.dtype, value.shape));
  std::vector<std::string_view> pieces = {texts[0]};
  for (size_t i = 0; i < values.size(); ++i) {
    pieces.push_back(texts[i + 1]);
    pieces.emplace_back(gate.in<char>(static_cast<int>(i)), static_cast<size_t>(values[i].bytes()));
  }
  DTG_TRY(write_record(pieces));
  last_.store(head.number, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  written_ = head.number;
  return head.number;
}

void CommitLog::append_failure() {
  const std::string record = encode_failure(last());
  const std::string_view pieces[] = {record};
  (void)write_record(pieces).ok();  // a log that fails says so to the next one
}

void CommitLog::maybe_save(const ResourceStore& store, const Ledger& ledger) {
  if (since_set_ < save_after_.load(std::memory_order_relaxed) || saving_.exchange(true)) return;
  auto state = take_state(store, ledger);
  // What cannot be done now is tried again when the log has grown some more.
  Status status = state.ok() ? open_file() : state.status();
  if (!status.ok()) {
    save_after_ = since_set_ + set_bytes_;
    saving_ = false;
    return say(host_, LogLevel::warn, "no set of the state in " + directory_ + " for now: " + status.message());
  }
  since_set_ = 0;
  save_after_ = std::max(set_bytes_, state.value().bytes);
  try {
    host_.disk_pool->submit(new Saving(Ref<CommitLog>::share(this), state.take(), last()));
  } catch (const std::bad_alloc&) {
    saving_ = false;
  }
}

void CommitLog::when_on_disk(uint64_t number, Waiter& waiter) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = failure_;
    if (status.ok() && on_disk_ < number) {
      if (waits_for_disk_) {
        waiter.number_ = number;
        waiters_.push_back(&waiter);
        return start_sync();
      }
      if (host_.seams.clock->monotonic_ns() - synced_ns_ > kSyncEveryNs) start_sync();
    }
  }
  waiter.on_disk(status);
}

// With the lock held.
void CommitLog::start_sync() {
  if (std::exchange(syncing_, true)) return;
  synced_ns_ = host_.seams.clock->monotonic_ns();
  retain();  // until run() has ended
  try {
    host_.disk_pool->submit(this);
  } catch (const std::bad_alloc&) {  // no thread can be made; the next one tries again
    syncing_ = false;
    release();
  }
}

void CommitLog::run() {
  while (sync_once()) {
  }
  release();
}

// False: nobody waits any more.
bool CommitLog::sync_once() {
  std::shared_ptr<JournalWriter> file;
  uint64_t target = 0;
  {
    const std::lock_guard lock(mutex_);
    file = file_;
    target = written_;
  }
  Status status = file->sync();
  std::vector<Waiter*> told;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && failure_.ok()) failure_ = explained(status);
    status = failure_;
    if (status.ok()) on_disk_ = std::max(on_disk_, target);
    std::erase_if(waiters_, [&](Waiter* waiter) {
      if (status.ok() && waiter->number_ > on_disk_) return false;
      told.push_back(waiter);
      return true;
    });
    more = syncing_ = !waiters_.empty();
  }
  for (Waiter* waiter : told) waiter->on_disk(status);
  return more;
}

CommitLog::Counts CommitLog::counts() const {
  const std::lock_guard lock(mutex_);
  return {written_, on_disk_, sets_.load(), bytes_, failure_};
}

}  // namespace dtg
