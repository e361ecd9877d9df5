// Rows by writer. A row is a number mostly; what more there is to say of one stands beside.
#include "cluster/ledger.h"

#include <algorithm>
#include <new>

namespace dtg {

bool Ledger::contains(const Known& known, uint64_t row) { return std::ranges::binary_search(known.rows, row); }

const Ledger::Outcome& Ledger::outcome(const Known& known, uint64_t row) {
  static const Outcome kFine;
  const auto at = known.more.find(row);
  return at == known.more.end() ? kFine : at->second;
}

// Rows of numbers below that may have been, and are not known.
uint64_t Ledger::forgotten_of(uint64_t writer) const {
  const auto at = forgotten_.find(writer);
  if (at != forgotten_.end()) return at->second;
  return others_forgotten_ ? kSequences : 0;
}

// Null: it was not committed.
Result<const Ledger::Outcome*> Ledger::find(const WriteId& write, uint32_t phase) {
  const auto writer = writers_.find(write.writer);
  const uint64_t row = key(write.sequence, phase);
  if (writer != writers_.end() && contains(writer->second, row)) {
    const Outcome& found = outcome(writer->second, row);
    if (!found.failure.ok()) return found.failure.with_context("repeat a run whose commit failed");
    return &found;
  }
  const uint64_t forgotten = writer == writers_.end() ? forgotten_of(write.writer) : writer->second.forgotten;
  if (write.sequence >= forgotten) return static_cast<const Outcome*>(nullptr);
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

// Who is new and not connected is away.
Ledger::Known& Ledger::known(uint64_t writer) {
  const auto [at, fresh] = writers_.try_emplace(writer);
  Known& known = at->second;
  if (fresh) {
    known.forgotten = forgotten_of(writer);
    away_.push_front(writer);
    known.place = away_.begin();
  } else if (!known.present) {
    away_.splice(away_.begin(), away_, known.place);
  }
  return known;
}

void Ledger::came(uint64_t writer) {
  const std::lock_guard lock(mutex_);
  Known& known = this->known(writer);
  if (std::exchange(known.present, true)) return;
  away_.erase(known.place);
  rows_away_ -= known.rows.size();
}

void Ledger::left(uint64_t writer) {
  const std::lock_guard lock(mutex_);
  const auto at = writers_.find(writer);
  if (at == writers_.end() || !at->second.present) return;
  Known& known = at->second;
  // There is nothing to remember of who has not written.
  if (known.rows.empty() && known.forgotten == forgotten_of(writer)) {
    writers_.erase(at);
    return;
  }
  known.present = false;
  away_.push_front(writer);
  known.place = away_.begin();
  rows_away_ += known.rows.size();
  make_room();
}

void Ledger::forget(uint64_t writer) {
  const std::lock_guard lock(mutex_);
  const auto at = writers_.find(writer);
  if (at == writers_.end() || at->second.present) return;
  rows_away_ -= at->second.rows.size();
  away_.erase(at->second.place);
  writers_.erase(at);
}

// The newest of those away is the one that is being written of, and stays.
void Ledger::make_room() {
  while (away_.size() > kWriters) drop(away_.back());
  while (rows_away_ > kRowsAway) halve_the_longest();
}

void Ledger::halve_the_longest() {
  Known* longest = nullptr;
  for (const uint64_t writer : away_) {
    Known& known = writers_.at(writer);
    if (!longest || known.rows.size() > longest->rows.size()) longest = &known;
  }
  for (size_t left = longest->rows.size() / 2; longest->rows.size() > left; --rows_away_) drop_oldest(*longest);
}

// What is left is its name, and how far its numbers went.
void Ledger::drop(uint64_t writer) {
  const auto at = writers_.find(writer);
  Known& known = at->second;
  rows_away_ -= known.rows.size();
  const uint64_t last = known.rows.empty() ? 0 : (known.rows.back() >> 16) + 1;
  const uint64_t below = std::max(known.forgotten, last);
  away_.erase(known.place);
  writers_.erase(at);
  if (forgotten_.size() < kForgotten || forgotten_.contains(writer)) forgotten_[writer] = below;
  else others_forgotten_ = true;
}

void Ledger::drop_oldest(Known& known) {
  const uint64_t oldest = known.rows.front();
  known.rows.pop_front();
  known.more.erase(oldest);
  known.forgotten = std::max(known.forgotten, (oldest >> 16) + 1);
}

// Numbers mostly come in order.
void Ledger::add(Known& known, uint64_t row) {
  const auto at = std::ranges::lower_bound(known.rows, row);
  if (at != known.rows.end() && *at == row) return;
  known.rows.insert(at, row);
  if (!known.present) ++rows_away_;
  if (known.rows.size() > kRowsPerWriter) {
    drop_oldest(known);
    if (!known.present) --rows_away_;
  }
  make_room();
}

namespace {

// There may be thousands of them.
Status in_brief(const Status& failure) {
  if (failure.message().size() <= Ledger::kFailureTextMax) return failure;
  return {failure.code(), failure.message().substr(0, Ledger::kFailureTextMax)};
}

}  // namespace

void Ledger::enter(const WriteId& write, uint32_t phase, const Status& failure) {
  const std::lock_guard lock(mutex_);
  const uint64_t row = key(write.sequence, phase);
  Known& known = this->known(write.writer);
  try {
    // First what is wrong with it, so that no row is there without.
    if (!failure.ok()) {
      Outcome& more = known.more[row];
      if (more.failure.ok()) more.failure = in_brief(failure);
    }
    add(known, row);
  } catch (const std::bad_alloc&) {
    known.forgotten = std::max(known.forgotten, write.sequence + 1);
  }
}

void Ledger::enter_round(const WriteId& write, uint32_t row, int64_t round) {
  const std::lock_guard lock(mutex_);
  Known& known = this->known(write.writer);
  add(known, key(write.sequence, row));
  if (contains(known, key(write.sequence, row))) known.more[key(write.sequence, row)].rounds = round + 1;
}

Ledger::Made Ledger::made(uint64_t writer, uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  Made made;
  const auto at = writers_.find(writer);
  if (at == writers_.end()) {
    made.forgotten = sequence < forgotten_of(writer);
    return made;
  }
  const Known& known = at->second;
  for (auto row = std::ranges::lower_bound(known.rows, key(sequence, 0)); row != known.rows.end() && *row >> 16 == sequence; ++row) {
    ++made.units;
    if (made.failure.ok()) made.failure = outcome(known, *row).failure;
  }
  made.forgotten = made.units == 0 && sequence < known.forgotten;
  return made;
}

std::vector<Ledger::Writer> Ledger::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Writer> all;
  const auto add = [&](uint64_t number, const Known& known) {
    Writer& writer = all.emplace_back(Writer{number, known.forgotten, {}});
    for (const uint64_t row : known.rows) {
      const Outcome& more = outcome(known, row);
      writer.rows.push_back({row >> 16, static_cast<uint32_t>(row & 0xffff), more.failure, more.rounds});
    }
  };
  for (auto at = away_.rbegin(); at != away_.rend(); ++at) add(*at, writers_.at(*at));
  for (const auto& [number, known] : writers_) {
    if (known.present) add(number, known);
  }
  return all;
}

void Ledger::restore(const Writer& writer) {
  const std::lock_guard lock(mutex_);
  Known& known = this->known(writer.number);
  known.forgotten = std::max(known.forgotten, writer.forgotten);
  for (const Row& row : writer.rows) {
    const uint64_t number = key(row.sequence, row.phase);
    add(known, number);
    if ((row.failure.ok() && row.rounds == 0) || !contains(known, number)) continue;
    Outcome& more = known.more[number];
    if (more.failure.ok()) more.failure = in_brief(row.failure);
    more.rounds = std::max(more.rounds, row.rounds);
  }
}

Ledger::Forgotten Ledger::forgotten() const {
  const std::lock_guard lock(mutex_);
  Forgotten all{{forgotten_.begin(), forgotten_.end()}, others_forgotten_};
  // Who came back and has not written since.
  for (const auto& [number, known] : writers_) {
    if (known.rows.empty() && known.forgotten > 0 && !forgotten_.contains(number)) all.writers.emplace_back(number, known.forgotten);
  }
  return all;
}

void Ledger::restore(const Forgotten& forgotten) {
  const std::lock_guard lock(mutex_);
  for (const auto& [writer, below] : forgotten.writers) {
    if (forgotten_.size() >= kForgotten && !forgotten_.contains(writer)) {
      others_forgotten_ = true;
      break;
    }
    uint64_t& known = forgotten_[writer];
    known = std::max(known, below);
  }
  others_forgotten_ |= forgotten.others;
}

Ledger::Counts Ledger::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts{writers_.size(), 0};
  for (const auto& [number, known] : writers_) counts.rows += known.rows.size();
  return counts;
}

uint64_t Ledger::repetitions() const {
  const std::lock_guard lock(mutex_);
  return repetitions_;
}

}  // namespace dtg
