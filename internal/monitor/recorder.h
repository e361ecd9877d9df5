// Recorder: the flight recorder. The last 4,096 small events of a runtime (connections, steps, stalls,
// epochs), always on, dumped when something goes wrong. Recording takes no lock and allocates nothing;
// any thread. When two writers meet on one slot a whole lap apart, the late one gives up its event.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace dtg {

struct RecordedEvent {
  uint64_t sequence = 0;  // counts all events of the recorder from 0
  int64_t time_ns = 0;    // monotonic clock
  const char* what = "";
  std::string label;
  int64_t a = 0;
  int64_t b = 0;
};

class Recorder {
 public:
  static constexpr size_t kEvents = 4096;
  static constexpr size_t kLabelBytes = 24;

  explicit Recorder(const Clock& clock);

  // `what` must be a literal. Of the label (a peer, a node) the last 24 bytes are kept, because names
  // tell their difference at the end.
  void record(const char* what, std::string_view label = {}, int64_t a = 0, int64_t b = 0);

  // Oldest first; events being written at this moment are left out.
  std::vector<RecordedEvent> events() const;
  // One line per event: seconds before the newest, what, label, numbers.
  std::string text() const;
  // Events given up because a slot was taken.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  // state: 2 n + 1 while event n is written, 2 n + 2 when it is complete, 0 at first.
  struct Slot {
    std::atomic<uint64_t> state{0};
    std::atomic<int64_t> time_ns{0};
    std::atomic<const char*> what{nullptr};
    std::atomic<int64_t> a{0};
    std::atomic<int64_t> b{0};
    std::array<std::atomic<uint64_t>, kLabelBytes / 8> label{};
  };
  const Clock& clock_;
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace dtg
