// Ledger: which writes a task has committed, by who made them and the number they gave them. A run that is repeated, because its end
// never reached whoever asked for it, finds its writes here and does not make them again.
//
// Of who is connected the rows stay, as many as one writer may have. Who is away may come back, and shares room with others that are: they
// lose rows first, and then all of them, but never the knowledge that there was something. Who said goodbye cannot ask any more, and
// nothing is kept of him. So nobody is told that his rows may be forgotten unless rows of his were.
//
// Owner: the task. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
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
  static constexpr size_t kWriters = 1024;                   // who are away
  static constexpr size_t kRowsAway = size_t{1} << 20;       // of all of them; then those that have most lose half
  static constexpr size_t kForgotten = size_t{1} << 16;      // writers whose rows are gone, and who are known by name
  static constexpr size_t kFailureTextMax = 512;             // bytes of it that are kept
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
    std::vector<Row> rows;   // by number and phase
  };

  // Whose rows are to stay: who is connected. Of others that nothing is known, unless they write.
  void came(uint64_t writer);
  // It is not, and may come back.
  void left(uint64_t writer);
  // It said goodbye, and nothing of it goes on. Nothing where it is connected again.
  void forget(uint64_t writer);

  // Was that phase of the write committed? An error where that failed, or where nobody knows any more.
  Result<bool> has(const WriteId& write, uint32_t phase);
  // Where there is no memory for it, nobody knows any more.
  void enter(const WriteId& write, uint32_t phase, const Status& failure = {});
  // The row of all that a run does outside of its units: to queues and accumulators.
  static constexpr uint32_t kOutsideUnits = 0x7fff;
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
  // Writers of whom no row is left: rows of numbers below the second are not known any more.
  struct Forgotten {
    std::vector<std::pair<uint64_t, uint64_t>> writers;
    bool others = false;  // there are more, nobody knows which
  };
  Forgotten forgotten() const;
  void restore(const Forgotten& forgotten);
  // Repetitions that were recognised.
  uint64_t repetitions() const;
  struct Counts {
    size_t writers = 0, rows = 0;
  };
  Counts counts() const;

 private:
  struct Outcome {
    Status failure;
    int64_t rounds = 0;  // of a strand
  };
  struct Known {
    std::deque<uint64_t> rows;         // by number and phase, in order
    std::map<uint64_t, Outcome> more;  // of rows of which there is more to say
    uint64_t forgotten = 0;
    bool present = false;
    std::list<uint64_t>::iterator place;  // where it is not
  };
  static uint64_t key(uint64_t sequence, uint32_t phase) { return sequence << 16 | (phase & 0xffff); }
  static bool contains(const Known& known, uint64_t row);
  static const Outcome& outcome(const Known& known, uint64_t row);
  static void drop_oldest(Known& known);
  uint64_t forgotten_of(uint64_t writer) const;
  Known& known(uint64_t writer);
  void add(Known& known, uint64_t row);
  void make_room();
  void halve_the_longest();
  void drop(uint64_t writer);
  Result<const Outcome*> find(const WriteId& write, uint32_t phase);

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Known> writers_;
  std::list<uint64_t> away_;  // writers, the one that wrote or left last in front
  size_t rows_away_ = 0;
  std::unordered_map<uint64_t, uint64_t> forgotten_;  // what Forgotten tells
  bool others_forgotten_ = false;
  uint64_t repetitions_ = 0;
};

}  // namespace dtg
