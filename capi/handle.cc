// Handles: the slabs of cells, the free list, the quarantine of closed cells, and the flag of forked children. See
// handle.h for threads.
#include "capi/handle.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/spin_lock.h"

namespace dtg::capi {
namespace {

constexpr size_t kSlabCells = 4096;
constexpr size_t kQuarantine = 4096;
constexpr uintptr_t kClosed = 0;

// Its address is this copy of the library; what is added to it is the type.
alignas(256) constinit char copy_of_library[256] = {};
uintptr_t tag_of(HandleType type) { return reinterpret_cast<uintptr_t>(copy_of_library) + static_cast<uintptr_t>(type); }

// Handles are aligned like cells; anything else was never ours.
bool is_open(const Cell* cell, HandleType type) {
  return reinterpret_cast<uintptr_t>(cell) % alignof(Cell) == 0 && cell->tag.load(std::memory_order_acquire) == tag_of(type);
}

constinit SpinLock word;  // guards the lists below; the number of open cells is changed under it and read without
Cell* free_first = nullptr;
Cell* quarantine_first = nullptr;
Cell* quarantine_last = nullptr;
size_t quarantined = 0;
std::atomic<size_t> live{0};
std::atomic<bool> forked{false};
std::atomic<bool> fork_watched{false};

void lock() { word.lock(); }
void unlock() { word.unlock(); }

// Called locked, so that it is no atomic instruction more.
void count_live(size_t change) { live.store(live.load(std::memory_order_relaxed) + change, std::memory_order_relaxed); }

void after_fork_in_child() { forked.store(true, std::memory_order_relaxed); }

void watch_forks() {
  if (!fork_watched.load(std::memory_order_acquire) && !fork_watched.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

// Called locked. Mapped, never unmapped: a stale handle must stay readable.
bool add_slab() {
  void* const memory = mmap(nullptr, kSlabCells * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Cell* const cells = static_cast<Cell*>(memory);
  for (size_t i = kSlabCells; i-- > 0;) {
    Cell* const cell = new (&cells[i]) Cell;
    cell->next = free_first;
    free_first = cell;
  }
  return true;
}

void quarantine(Cell* cell) {
  lock();
  count_live(-size_t{1});
  cell->next = nullptr;
  (quarantine_last ? quarantine_last->next : quarantine_first) = cell;
  quarantine_last = cell;
  if (++quarantined > kQuarantine) {
    Cell* const oldest = quarantine_first;
    quarantine_first = oldest->next;
    --quarantined;
    oldest->next = free_first;
    free_first = oldest;
  }
  unlock();
}

}  // namespace

const char* handle_type_name(HandleType type) {
  switch (type) {
    case HandleType::none: break;
    case HandleType::runtime: return "runtime";
    case HandleType::tensor: return "tensor";
    case HandleType::graph: return "graph";
    case HandleType::session: return "session";
    case HandleType::callable: return "callable";
    case HandleType::run: return "run";
    case HandleType::cq: return "completion queue";
    case HandleType::error: return "error";
    case HandleType::string: return "string";
    case HandleType::model: return "model";
    case HandleType::dataset: return "dataset";
    case HandleType::cancellation: return "cancellation";
    case HandleType::function: return "function";
    case HandleType::event_writer: return "event writer";
    case HandleType::server: return "server";
    case HandleType::weights: return "weight set";
    case HandleType::cluster: return "cluster";
    case HandleType::checkpoint: return "checkpoint";
    case HandleType::group: return "group";
    case HandleType::collective: return "collective";
    case HandleType::strategy: return "strategy";
    case HandleType::trainer: return "trainer";
    case HandleType::coordinator: return "coordinator";
    case HandleType::closure: return "closure";
    case HandleType::remote_value: return "remote value";
    case HandleType::mesh: return "mesh";
  }
  return "object";
}

bool in_forked_child() { return forked.load(std::memory_order_relaxed); }
size_t live_cells() { return live.load(std::memory_order_relaxed); }

Cell* open_cell(HandleType type, RefCounted* object) {
  watch_forks();
  lock();
  if (!free_first && !add_slab()) {
    unlock();
    return nullptr;
  }
  Cell* const cell = free_first;
  free_first = cell->next;
  count_live(1);
  unlock();
  cell->object = object;
  cell->count.store(1, std::memory_order_relaxed);
  cell->tag.store(tag_of(type), std::memory_order_release);
  return cell;
}

bool hold(Cell* cell, HandleType type) {
  if (!is_open(cell, type)) return false;
  int32_t count = cell->count.load(std::memory_order_relaxed);
  do {
    if (count <= 0) return false;
  } while (!cell->count.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel));
  return true;
}

void drop(Cell* cell, HandleType type) {
  if (!is_open(cell, type)) return;
  int32_t count = cell->count.load(std::memory_order_relaxed);
  do {
    if (count <= 0) return;
  } while (!cell->count.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count != 1) return;
  RefCounted* const object = cell->object;
  cell->object = nullptr;
  cell->tag.store(kClosed, std::memory_order_release);
  quarantine(cell);
  object->release();
}

}  // namespace dtg::capi
