// Rows by writer, bounded twice.
#include "cluster/ledger.h"

#include <algorithm>

namespace dtg {

// Null: it was not committed.
Result<const Ledger::Known::Outcome*> Ledger::find(const WriteId& write, uint32_t phase) {
  const auto writer = writers_.find(write.writer);
  if (writer != writers_.end()) {
    const auto row = writer->second.rows.find(key(write.sequence, phase));
    if (row != writer->second.rows.end()) {
      if (!row->second.failure.ok()) return row->second.failure.with_context("repeat a run whose commit failed");
      return &row->second;
    }
  }
  const bool may_be_forgotten = writer == writers_.end() ? dropped_ : write.sequence < writer->second.forgotten;
  if (!may_be_forgotten) return static_cast<const Known::Outcome*>(nullptr);
  return failed_precondition(
      "repeat run %llu: so many runs of the session were committed since its first attempt that nobody knows any more "
      "whether its updates took place",
      static_cast<unsigned long long>(write.sequence));
}

Result<bool> Ledger::has(const WriteId& write, uint32_t phase) {
  // A first attempt has nothing behind it, whatever was forgotten.
  if (!write.repeated) return false;
  const std::lock_guard lock(mutex_);
  DTG_ASSIGN(const auto* const row, find(write, phase));
  if (row) ++repetitions_;
  return row != nullptr;
}

Result<bool> Ledger::has_round(const WriteId& write, uint32_t row, int64_t round) {
  if (!write.repeated) return false;
  const std::lock_guard lock(mutex_);
  DTG_ASSIGN(const auto* const known, find(write, row));
  if (!known || known->rounds <= round) return false;
  if (round == 0) ++repetitions_;
  return true;
}

Ledger::Known& Ledger::known(uint64_t writer) {
  const auto [at, fresh] = writers_.try_emplace(writer);
  if (fresh) {
    recent_.push_front(writer);
    at->second.place = recent_.begin();
  } else {
    recent_.splice(recent_.begin(), recent_, at->second.place);
  }
  if (writers_.size() > kWriters) {
    writers_.erase(recent_.back());
    recent_.pop_back();
    dropped_ = true;
  }
  return at->second;
}

Ledger::Known::Outcome& Ledger::add(Known& known, uint64_t sequence, uint32_t phase) {
  const auto [at, fresh] = known.rows.try_emplace(key(sequence, phase));
  if (!fresh) return at->second;
  known.order.emplace_back(sequence, phase);
  if (known.order.size() <= kRowsPerWriter) return at->second;
  const auto [oldest, of] = known.order.front();
  known.order.pop_front();
  known.rows.erase(key(oldest, of));
  known.forgotten = std::max(known.forgotten, oldest + 1);
  return at->second;
}

void Ledger::enter(const WriteId& write, uint32_t phase, const Status& failure) {
  const std::lock_guard lock(mutex_);
  Known::Outcome& row = add(known(write.writer), write.sequence, phase);
  if (row.failure.ok()) row.failure = failure;
}

void Ledger::enter_round(const WriteId& write, uint32_t row, int64_t round) {
  const std::lock_guard lock(mutex_);
  add(known(write.writer), write.sequence, row).rounds = round + 1;
}

Ledger::Made Ledger::made(uint64_t writer, uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  Made made;
  const auto at = writers_.find(writer);
  if (at == writers_.end()) {
    made.forgotten = dropped_;
    return made;
  }
  for (const auto& [row, outcome] : at->second.rows) {
    if (row >> 16 != sequence) continue;
    ++made.units;
    if (made.failure.ok()) made.failure = outcome.failure;
  }
  made.forgotten = made.units == 0 && sequence < at->second.forgotten;
  return made;
}

std::vector<Ledger::Writer> Ledger::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Writer> all;
  for (auto at = recent_.rbegin(); at != recent_.rend(); ++at) {
    const Known& known = writers_.at(*at);
    Writer& writer = all.emplace_back(Writer{*at, known.forgotten, {}});
    for (const auto& [sequence, phase] : known.order) {
      const Known::Outcome& outcome = known.rows.at(key(sequence, phase));
      writer.rows.push_back({sequence, phase, outcome.failure, outcome.rounds});
    }
  }
  return all;
}

void Ledger::restore(const Writer& writer) {
  const std::lock_guard lock(mutex_);
  Known& known = this->known(writer.number);
  known.forgotten = std::max(known.forgotten, writer.forgotten);
  for (const Row& row : writer.rows) {
    Known::Outcome& restored = add(known, row.sequence, row.phase);
    if (restored.failure.ok()) restored.failure = row.failure;
    restored.rounds = std::max(restored.rounds, row.rounds);
  }
}

bool Ledger::has_dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Ledger::set_dropped() {
  const std::lock_guard lock(mutex_);
  dropped_ = true;
}

uint64_t Ledger::repetitions() const {
  const std::lock_guard lock(mutex_);
  return repetitions_;
}

}  // namespace dtg
