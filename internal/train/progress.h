// Progress: where a fit is, for whoever looks on. On a terminal one line with a bar, the time left, the loss and the speed, drawn again ten
// times a second at most, and at an epoch's end a line that stays, with all of its values; elsewhere that line alone, to the log. A step
// that is drawn allocates nothing. Owner: a course; the thread that trains.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "train/record.h"

namespace dtg {

// Where to: `quiet` is nowhere.
enum class ProgressTo : int32_t { best, lines, quiet };

class Progress {
 public:
  // Of an epoch, as a course knows it; counts as in Course::Event.
  struct At {
    int64_t epoch, epochs, batch, batches;
    double loss, examples_per_s;
  };
  // `terminal` null, or none there: to the log.
  Progress(const Clock& clock, Terminal* terminal, LogSink* log) : clock_(clock), terminal_(terminal), log_(log) {}
  ~Progress() { wipe(); }
  void epoch_begins(const At& at);
  void step(const At& at);
  void epoch_ends(const At& at, const Record& values);
  // Something else is going to be written, or nothing more.
  void wipe();

 private:
  const Clock& clock_;
  Terminal* const terminal_;
  LogSink* const log_;
  int64_t drawn_ns_ = 0;  // when the line was drawn last
  bool drawn_ = false;
  // What the time left is guessed by: since the epoch began, here.
  int64_t began_ns_ = 0, began_batch_ = 0;
};

}  // namespace dtg
