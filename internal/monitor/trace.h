// Tracer: spans, marks and flows of a runtime's threads, for the timeline of a step. Off, a span costs
// one branch. On, each thread writes to a ring of its own that keeps its latest events; nobody waits for
// anybody. The runtime owns the tracer; spans must end before it goes.
//
//   TraceSpan span(tracer, "exec", "MatMul");
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/disk.h"

namespace dtg {

// flow_out and flow_in with the same value are drawn as an arrow, from a send to its receive.
enum class TraceKind : uint8_t { span, mark, count, flow_out, flow_in };

struct TraceEvent {
  TraceKind kind = TraceKind::span;
  std::string category;
  std::string name;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint64_t value = 0;  // a size or a number with a span, the count, the id of a flow
};

struct TraceThread {
  uint64_t id = 0;  // small numbers in order of appearance
  std::string name;
  std::vector<TraceEvent> events;  // in the order they ended
  uint64_t lost = 0;               // overwritten before anybody looked
};

// What one process saw. Dumps of several processes go into one file; offset_ns is added to their times.
struct TraceDump {
  std::string process;
  int64_t process_id = 1;
  int64_t offset_ns = 0;
  std::vector<TraceThread> threads;
};

class Tracer {
 public:
  static constexpr size_t kEventsPerThread = size_t{1} << 14;
  static constexpr size_t kThreadsMax = 256;  // further threads are not traced

  explicit Tracer(const Clock& clock);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void start() { on_.store(true, std::memory_order_relaxed); }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  int64_t now_ns() const { return clock_.monotonic_ns(); }

  // A copy that lives as long as the tracer. Literals need none; names of nodes do, once, at prepare.
  const char* keep(std::string_view name);
  // How the calling thread is called in the picture.
  void name_thread(std::string_view name);

  void mark(const char* category, const char* name, uint64_t value = 0) { note(TraceKind::mark, category, name, value); }
  void count(const char* category, const char* name, uint64_t value) { note(TraceKind::count, category, name, value); }
  void flow_out(const char* category, const char* name, uint64_t id) { note(TraceKind::flow_out, category, name, id); }
  void flow_in(const char* category, const char* name, uint64_t id) { note(TraceKind::flow_in, category, name, id); }
  // For work that no scope encloses, such as a copy on a device.
  void add(TraceKind kind, const char* category, const char* name, int64_t start_ns, int64_t duration_ns, uint64_t value);

  // What the rings hold now. Recording goes on; events overwritten meanwhile are left out.
  TraceDump collect(std::string_view process) const;

 private:
  struct Ring;
  void note(TraceKind kind, const char* category, const char* name, uint64_t value) {
    if (on()) add(kind, category, name, now_ns(), 0, value);
  }
  Ring* ring();
  const Clock& clock_;
  const uint64_t id_;  // tells this tracer from one that lived at the same address
  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;  // guards what follows; taken on a thread's first event only
  std::vector<std::unique_ptr<Ring>> rings_;
  Arena names_;
};

class TraceSpan {
 public:
  TraceSpan(Tracer& tracer, const char* category, const char* name, uint64_t value = 0) {
    if (!tracer.on()) return;
    tracer_ = &tracer;
    category_ = category;
    name_ = name;
    value_ = value;
    start_ns_ = tracer.now_ns();
  }
  ~TraceSpan() {
    if (tracer_) tracer_->add(TraceKind::span, category_, name_, start_ns_, tracer_->now_ns() - start_ns_, value_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  // A size or number known only in the course of the span.
  void set_value(uint64_t value) { value_ = value; }

 private:
  Tracer* tracer_ = nullptr;
  const char* category_ = nullptr;
  const char* name_ = nullptr;
  uint64_t value_ = 0;
  int64_t start_ns_ = 0;
};

// Chrome's trace JSON, which Perfetto and chrome://tracing open.
std::string chrome_trace(std::span<const TraceDump> dumps);
Status write_chrome_trace(Disk& disk, const std::string& path, std::span<const TraceDump> dumps);

}  // namespace dtg
