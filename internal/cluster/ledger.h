// Ledger: which writes a task has committed, by who made them and the number they gave them. A run that is repeated, because its end
// never reached whoever asked for it, finds its writes here and does not make them again.
//
// Owner: the task. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace dtg {

struct WriteId {
  uint64_t writer = 0;    // the session
  uint64_t sequence = 0;  // of its run, or of the first attempt at it
  bool repeated = false;  // there was an attempt before
};

class Ledger {
 public:
  // Of one writer so many are known; who repeats an older one is told that nobody knows.
  static constexpr size_t kRowsPerWriter = 16384;
  static constexpr size_t kWriters = 1024;
  static constexpr uint64_t kSequences = uint64_t{1} << 47;  // numbers are below

  struct Row {
    uint64_t sequence = 0;
    uint32_t phase = 0;
    Status failure;      // of the commit, part of which may have taken place
    int64_t rounds = 0;  // of a strand
  };
  struct Writer {
    uint64_t number = 0;
    uint64_t forgotten = 0;  // rows of numbers below this one are not known any more
    std::vector<Row> rows;   // oldest first
  };

  // Was that phase of the write committed? An error where that failed, or where nobody knows any more.
  Result<bool> has(const WriteId& write, uint32_t phase);
  void enter(const WriteId& write, uint32_t phase, const Status& failure = {});
  // A strand (exec/commits.h) has one row, which counts its units: they come in order, from 0.
  static constexpr uint32_t row_of_strand(int64_t strand) { return 0x8000u + (static_cast<uint32_t>(strand) & 0x7fffu); }
  static constexpr bool is_strand(uint32_t phase) { return (phase & 0x8000u) != 0; }
  Result<bool> has_round(const WriteId& write, uint32_t row, int64_t round);
  void enter_round(const WriteId& write, uint32_t row, int64_t round);
  // What is known of a run: its phases that were committed, and units of its strands.
  struct Made {
    size_t units = 0;
    Status failure;          // of one of them
    bool forgotten = false;  // nobody knows any more
  };
  Made made(uint64_t writer, uint64_t sequence) const;
  // All that is known, to be kept; and what was kept.
  std::vector<Writer> list() const;
  void restore(const Writer& writer);
  // Has a writer been forgotten as a whole?
  bool has_dropped() const;
  void set_dropped();
  // Repetitions that were recognised.
  uint64_t repetitions() const;

 private:
  struct Known {
    struct Outcome {
      Status failure;
      int64_t rounds = 0;  // of a strand
    };
    std::unordered_map<uint64_t, Outcome> rows;  // by number and phase
    std::deque<std::pair<uint64_t, uint32_t>> order;
    uint64_t forgotten = 0;
    std::list<uint64_t>::iterator place;
  };
  static uint64_t key(uint64_t sequence, uint32_t phase) { return sequence << 16 | (phase & 0xffff); }
  Known& known(uint64_t writer);
  Known::Outcome& add(Known& known, uint64_t sequence, uint32_t phase);
  Result<const Known::Outcome*> find(const WriteId& write, uint32_t phase);

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Known> writers_;
  std::list<uint64_t> recent_;  // writers, the one that wrote last in front
  bool dropped_ = false;        // a writer that was forgotten as a whole
  uint64_t repetitions_ = 0;
};

}  // namespace dtg
