// The ring behind the flight recorder: each slot is guarded by its own sequence word, so that a reader
// can tell a whole event from one that was overwritten under its eyes. Any thread.
#include "monitor/recorder.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace dtg {

Recorder::Recorder(const Clock& clock) : clock_(clock), slots_(new Slot[kEvents]) {}

void Recorder::record(const char* what, std::string_view label, int64_t a, int64_t b) {
  const uint64_t sequence = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[sequence % kEvents];
  uint64_t state = slot.state.load(std::memory_order_relaxed);
  const bool taken = (state & 1u) != 0 || state > 2 * sequence;
  if (taken || !slot.state.compare_exchange_strong(state, 2 * sequence + 1, std::memory_order_relaxed)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // Whoever sees one of the words below also sees that the slot is being written.
  std::atomic_thread_fence(std::memory_order_release);
  slot.time_ns.store(clock_.monotonic_ns(), std::memory_order_relaxed);
  slot.what.store(what, std::memory_order_relaxed);
  slot.a.store(a, std::memory_order_relaxed);
  slot.b.store(b, std::memory_order_relaxed);
  uint64_t words[kLabelBytes / 8] = {};
  const std::string_view kept = label.substr(label.size() - std::min(label.size(), kLabelBytes));
  if (!kept.empty()) std::memcpy(words, kept.data(), kept.size());
  for (size_t i = 0; i < kLabelBytes / 8; ++i) slot.label[i].store(words[i], std::memory_order_relaxed);
  slot.state.store(2 * sequence + 2, std::memory_order_release);
}

std::vector<RecordedEvent> Recorder::events() const {
  std::vector<RecordedEvent> events;
  const uint64_t end = next_.load(std::memory_order_acquire);
  events.reserve(std::min<uint64_t>(end, kEvents));
  for (uint64_t sequence = end > kEvents ? end - kEvents : 0; sequence < end; ++sequence) {
    const Slot& slot = slots_[sequence % kEvents];
    if (slot.state.load(std::memory_order_acquire) != 2 * sequence + 2) continue;
    RecordedEvent event;
    event.sequence = sequence;
    event.time_ns = slot.time_ns.load(std::memory_order_relaxed);
    event.what = slot.what.load(std::memory_order_relaxed);
    event.a = slot.a.load(std::memory_order_relaxed);
    event.b = slot.b.load(std::memory_order_relaxed);
    uint64_t words[kLabelBytes / 8];
    for (size_t i = 0; i < kLabelBytes / 8; ++i) words[i] = slot.label[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.state.load(std::memory_order_relaxed) != 2 * sequence + 2) continue;
    const char* const characters = reinterpret_cast<const char*>(words);
    event.label.assign(characters, strnlen(characters, kLabelBytes));
    events.push_back(std::move(event));
  }
  return events;
}

std::string Recorder::text() const {
  const std::vector<RecordedEvent> all = events();
  std::string out;
  if (all.empty()) return out;
  const int64_t newest = all.back().time_ns;
  for (const RecordedEvent& event : all) {
    out += format("%12.6f  %-20s %-24s %lld %lld\n", static_cast<double>(event.time_ns - newest) * 1e-9, event.what, event.label.c_str(),
                  static_cast<long long>(event.a), static_cast<long long>(event.b));
  }
  return out;
}

}  // namespace dtg
