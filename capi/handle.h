// Handles: how the opaque pointers of the ABI are kept. A handle points at a cell in slabs that are never
// unmapped; a cell says its type and how often it is held. A cell that was released for the last time
// waits in quarantine until 4,096 others have been released after it, so that a stale pointer finds a
// closed cell instead of somebody else's object: an error, not a crash. The type is written as an address inside this copy
// of the library, so that a second copy in the same process (dlopen from another path) does not take our objects for its own.
//
// Process-wide; any thread. A spin word guards the free list; using a handle is two atomic operations.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ref.h"
#include "base/status.h"

namespace dtg::capi {

enum class HandleType : uint8_t {
  none = 0,
  runtime,
  tensor,
  graph,
  session,
  callable,
  run,
  cq,
  error,
  string,
  model,
  dataset,
  event_writer,
  server,
  weights,
  cluster,
  checkpoint,
  group,
  collective,
  function,
  cancellation,
  strategy,
  trainer,
  coordinator,
  closure,
  remote_value,
  mesh,
};

const char* handle_type_name(HandleType type);

struct alignas(32) Cell {
  std::atomic<uintptr_t> tag{0};  // 0: closed; else what tag_of() says of its type
  std::atomic<int32_t> count{0};
  RefCounted* object = nullptr;
  Cell* next = nullptr;
};

// A cell with one reference that takes over the caller's reference to `object`. Null: no memory.
Cell* open_cell(HandleType type, RefCounted* object);
// Adds a reference if the cell is open and of that type.
bool hold(Cell* cell, HandleType type);
// Drops one; the last one closes the cell and releases the object.
void drop(Cell* cell, HandleType type);
size_t live_cells();

// True in a process that was forked after the library was used.
bool in_forked_child();

// An object behind a handle, held for the length of a call.
template <class T>
class Held {
 public:
  template <class Handle>
  Held(Handle* handle, HandleType type) : type_(type) {
    Cell* cell = reinterpret_cast<Cell*>(const_cast<std::remove_const_t<Handle>*>(handle));
    if (cell && hold(cell, type)) cell_ = cell;
    null_ = handle == nullptr;
  }
  ~Held() {
    if (cell_) drop(cell_, type_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  explicit operator bool() const { return cell_ != nullptr; }
  T* get() const { return static_cast<T*>(cell_->object); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  // Why it could not be held.
  Status status() const {
    if (cell_) return {};
    if (null_) return invalid_argument("the %s is NULL; give an open handle", handle_type_name(type_));
    return invalid_argument("the handle is not an open %s: it was released, or is a handle of another type", handle_type_name(type_));
  }

 private:
  Cell* cell_ = nullptr;
  const HandleType type_;
  bool null_ = false;
};

// Gives an object to the host.
template <class Handle, class T>
Status give(HandleType type, Ref<T> object, Handle** out) {
  Cell* const cell = open_cell(type, object.get());
  if (!cell) return resource_exhausted("make a handle for a %s: no memory", handle_type_name(type));
  object.leak();
  *out = reinterpret_cast<Handle*>(cell);
  return {};
}

template <class Handle>
Handle* retain_handle(Handle* handle, HandleType type) {
  if (!handle || in_forked_child()) return handle;
  return hold(reinterpret_cast<Cell*>(handle), type) ? handle : nullptr;
}

template <class Handle>
void release_handle(Handle* handle, HandleType type) {
  if (handle && !in_forked_child()) drop(reinterpret_cast<Cell*>(handle), type);
}

}  // namespace dtg::capi
