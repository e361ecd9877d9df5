// Rows by writer, bounded twice.
#include "cluster/ledger.h"

#include <algorithm>

namespace dtg {

Result<bool> Ledger::has(const WriteId& write, uint32_t phase) {
  // A first attempt has nothing behind it, whatever was forgotten.
  if (!write.repeated) return false;
  const std::lock_guard lock(mutex_);
  const auto writer = writers_.find(write.writer);
  if (writer != writers_.end()) {
    const auto row = writer->second.rows.find(key(write.sequence, phase));
    if (row != writer->second.rows.end()) {
      ++repetitions_;
      if (!row->second.ok()) return row->second.with_context("repeat a run whose commit failed");
      return true;
    }
  }
  const bool may_be_forgotten = writer == writers_.end() ? dropped_ : write.sequence < writer->second.forgotten;
  if (!may_be_forgotten) return false;
  return aborted("repeat run %llu: so many runs of the session were committed since its first attempt that nobody knows any more "
                 "whether its updates took place",
                 static_cast<unsigned long long>(write.sequence));
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

void Ledger::add(Known& known, uint64_t sequence, uint32_t phase, const Status& failure) {
  if (!known.rows.emplace(key(sequence, phase), failure).second) return;
  known.order.emplace_back(sequence, phase);
  if (known.order.size() <= kRowsPerWriter) return;
  const auto [oldest, of] = known.order.front();
  known.order.pop_front();
  known.rows.erase(key(oldest, of));
  known.forgotten = std::max(known.forgotten, oldest + 1);
}

void Ledger::enter(const WriteId& write, uint32_t phase, const Status& failure) {
  const std::lock_guard lock(mutex_);
  add(known(write.writer), write.sequence, phase, failure);
}

std::vector<Ledger::Writer> Ledger::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Writer> all;
  for (auto at = recent_.rbegin(); at != recent_.rend(); ++at) {
    const Known& known = writers_.at(*at);
    Writer& writer = all.emplace_back(Writer{*at, known.forgotten, {}});
    for (const auto& [sequence, phase] : known.order) writer.rows.push_back({sequence, phase, known.rows.at(key(sequence, phase))});
  }
  return all;
}

void Ledger::restore(const Writer& writer) {
  const std::lock_guard lock(mutex_);
  Known& known = this->known(writer.number);
  known.forgotten = std::max(known.forgotten, writer.forgotten);
  for (const Row& row : writer.rows) add(known, row.sequence, row.phase, row.failure);
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
