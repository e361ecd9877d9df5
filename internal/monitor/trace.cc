// The rings behind Tracer. Each has one writer, its thread, and is read by whoever collects: the words of
// an event are relaxed atomics, and the reader drops what the writer may have overtaken meanwhile.
#include "monitor/trace.h"

#include <algorithm>
#include <array>
#include <thread>

namespace dtg {
namespace {

// The only process-wide state: a number to tell tracers apart.
std::atomic<uint64_t> next_tracer{1};

// The ring the calling thread used last. Plain data, so that no destructor runs when a host's thread ends.
struct Recent {
  uint64_t tracer;
  void* ring;
};
thread_local Recent recent{0, nullptr};

}  // namespace

struct Tracer::Ring {
  struct Slot {
    std::atomic<const char*> category{nullptr};
    std::atomic<const char*> name{nullptr};
    std::atomic<int64_t> start_ns{0};
    std::atomic<int64_t> duration_ns{0};
    std::atomic<uint64_t> value{0};
    std::atomic<TraceKind> kind{TraceKind::span};
  };
  std::thread::id thread;
  std::string name;  // guarded by the tracer's mutex
  std::unique_ptr<Slot[]> slots{new Slot[kEventsPerThread]};
  std::atomic<uint64_t> begun{0};  // events whose writing has begun
  std::atomic<uint64_t> done{0};

  void write(TraceKind kind, const char* category, const char* what, int64_t start_ns, int64_t duration_ns, uint64_t value) {
    const uint64_t at = done.load(std::memory_order_relaxed);
    Slot& slot = slots[at % kEventsPerThread];
    begun.store(at + 1, std::memory_order_relaxed);
    // Whoever sees one of the words below also sees `begun`.
    std::atomic_thread_fence(std::memory_order_release);
    slot.category.store(category, std::memory_order_relaxed);
    slot.name.store(what, std::memory_order_relaxed);
    slot.start_ns.store(start_ns, std::memory_order_relaxed);
    slot.duration_ns.store(duration_ns, std::memory_order_relaxed);
    slot.value.store(value, std::memory_order_relaxed);
    slot.kind.store(kind, std::memory_order_relaxed);
    done.store(at + 1, std::memory_order_release);
  }

  void read(TraceThread& thread_dump) const;
};

void Tracer::Ring::read(TraceThread& into) const {
  const uint64_t end = done.load(std::memory_order_acquire);
  const uint64_t first = end > kEventsPerThread ? end - kEventsPerThread : 0;
  struct Raw {
    const char* category;
    const char* name;
    TraceEvent event;
  };
  std::vector<Raw> raw;
  raw.reserve(end - first);
  for (uint64_t i = first; i < end; ++i) {
    const Slot& slot = slots[i % kEventsPerThread];
    Raw& copy = raw.emplace_back();
    copy.category = slot.category.load(std::memory_order_relaxed);
    copy.name = slot.name.load(std::memory_order_relaxed);
    copy.event.start_ns = slot.start_ns.load(std::memory_order_relaxed);
    copy.event.duration_ns = slot.duration_ns.load(std::memory_order_relaxed);
    copy.event.value = slot.value.load(std::memory_order_relaxed);
    copy.event.kind = slot.kind.load(std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t reached = begun.load(std::memory_order_relaxed);
  const uint64_t whole = std::max(first, reached > kEventsPerThread ? reached - kEventsPerThread : 0);
  into.lost = whole;
  for (uint64_t i = whole; i < end; ++i) {
    Raw& copy = raw[i - first];
    copy.event.category = copy.category;
    copy.event.name = copy.name;
    into.events.push_back(std::move(copy.event));
  }
}

Tracer::Tracer(const Clock& clock) : clock_(clock), id_(next_tracer.fetch_add(1, std::memory_order_relaxed)) {}
Tracer::~Tracer() = default;

const char* Tracer::keep(std::string_view name) {
  const std::lock_guard lock(mutex_);
  char* const copy = static_cast<char*>(names_.allocate(name.size() + 1, 1));
  if (!name.empty()) std::memcpy(copy, name.data(), name.size());
  copy[name.size()] = '\0';
  return copy;
}

Tracer::Ring* Tracer::ring() {
  if (recent.tracer == id_) return static_cast<Ring*>(recent.ring);
  const std::thread::id self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  Ring* found = nullptr;
  for (const auto& ring : rings_) {
    // A thread that ended leaves its ring; one that got the same id continues it.
    if (ring->thread == self) found = ring.get();
  }
  if (!found && rings_.size() < kThreadsMax) {
    rings_.push_back(std::make_unique<Ring>());
    found = rings_.back().get();
    found->thread = self;
  }
  recent = {id_, found};
  return found;
}

void Tracer::name_thread(std::string_view name) {
  Ring* const mine = ring();
  if (!mine) return;
  const std::lock_guard lock(mutex_);
  mine->name = name;
}

void Tracer::add(TraceKind kind, const char* category, const char* name, int64_t start_ns, int64_t duration_ns, uint64_t value) {
  if (Ring* const mine = ring()) mine->write(kind, category, name, start_ns, duration_ns, value);
}

TraceDump Tracer::collect(std::string_view process) const {
  TraceDump dump;
  dump.process = process;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < rings_.size(); ++i) {
    TraceThread& thread = dump.threads.emplace_back();
    thread.id = i + 1;
    thread.name = rings_[i]->name;
    rings_[i]->read(thread);
  }
  return dump;
}

}  // namespace dtg
