// Variable: a value that outlives the step, with a version.
//
// Readers pin the current version and read straight from its buffer, so a read copies nothing and is never
// torn. A writer has the variable to itself (writers queue in arrival order); it writes in place when
// nobody pins the version, otherwise it works on a copy and swaps that in, and the readers keep the
// snapshot they have. Stored plain row-major, always. A spin word held for a few instructions guards the
// bookkeeping; nobody blocks a thread: who must wait leaves a callback.
//
// Any thread. Owner: the resource store and the plans bound to it.
#pragma once

#include <atomic>
#include <initializer_list>

#include "device/accelerator.h"
#include "exec/completion.h"
#include "exec/resource.h"

namespace dtg {

class Variable final : public Resource {
 public:
  // One value of the variable. `pins` counts readers.
  struct Version {
    Tensor tensor;
    int64_t pins = 0;
  };
  // Who waits for a turn; called once, from the thread that frees the turn, with nothing locked. Whoever is
  // called asks again with the same turn: a writer then gets in for sure (the right to write is kept for it
  // until it asks, or says abandon()), a reader unless another writer was faster.
  struct Turn {
    void (*ready)(Turn*) = nullptr;
    Turn* next = nullptr;
    bool writer = false;  // set by the variable
  };

  // `shape` may be partial; the first assignment completes it.
  // `memory`: of the device that it lives on; null: the host's.
  Variable(std::string name, DType dtype, PartialShape shape, Placement placement = Placement::heap, DeviceMemory* memory = nullptr);
  ~Variable() override;
  static constexpr std::string_view kKind = "variable";
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  DType dtype() const { return dtype_; }
  PartialShape declared_shape() const;
  // Another graph that names the variable: both must mean the same, and from now on the shape is what both
  // know of it. Plans rely on it, so a value that does not have it is never accepted. Who may not `narrow` it must mean what is there.
  Status attach(DType dtype, const PartialShape& shape, bool narrow = true);
  bool initialized() const;
  // Of its present value; 0 without one.
  int64_t bytes() const;
  int64_t version() const { return version_.load(std::memory_order_acquire); }

  enum class Pinned { yes, uninitialized, wait };
  // Pins the current version. `wait`: a writer is at work in place; `turn` is queued and will be called.
  // A null turn asks without queueing, here and below.
  Pinned pin(Version** version, Turn* turn);
  // Once more, for somebody else. The caller has it pinned, so there is nothing to wait for, whatever became the present one meanwhile.
  void pin_again(Version* version);
  void unpin(Version* version);

  // A writer's stay. The version's tensor is writable until the end of it.
  enum class Writing { yes, uninitialized, wait, no_memory, has_value };
  // For an update of the present value. Where a reader pins it, the version is a new one: a copy, or with
  // `copy` false memory without contents, for a writer that reads present() and writes every element.
  Writing begin_update(Version** version, Turn* turn, bool copy = true);
  // What readers see; for the writer, between begin and end.
  const Version* present() const { return current_; }
  // For a new value whatever the present one is; without `replace` only where there is none, which stays so until the end. `fresh` is
  // the tensor to become the value at end.
  Writing begin_assign(Turn* turn, bool replace = true);
  void end_update(Version* version, bool changed);
  // Refuses, and changes nothing, when the tensor is not of the declared type and shape.
  Status end_assign(Tensor fresh);
  void cancel_assign();
  // For a turn that was called, or may be called, and will not ask again: passes the right on if it has it.
  void abandon(Turn* turn);

  // A writable tensor for begin_assign, recycled from a version nobody pins when the shape fits.
  Result<Tensor> spare(const Shape& shape);
  // On a device with memory of its own, which the host cannot read.
  bool is_on_device() const { return static_cast<bool>(memory_); }

 private:
  void lock() const;
  void unlock() const;
  bool enter(Turn* turn);
  void queue(Turn* turn, bool writer);
  void finish_write(bool changed, Version* unused);
  Version* retire(Version* version);
  Version* take_spare(const Shape* shape);
  Version* fresh_version(const Shape& shape);
  Result<Tensor> fresh_tensor(const Shape& shape) const;

  const DType dtype_;
  PartialShape shape_;
  const Placement placement_;
  const Ref<DeviceMemory> memory_;
  mutable SpinLock word_;
  Version* current_ = nullptr;  // null: uninitialised
  Version* next_ = nullptr;     // what a writer works on while readers pin `current_`
  Version* spare_[2] = {};      // retired versions kept for the next writer; one without tensor is a shell
  bool writing_ = false;        // somebody writes, or `granted_` is about to
  bool in_place_ = false;
  bool doomed_ = false;      // destroyed while somebody wrote: the value goes when that ends
  Turn* granted_ = nullptr;  // the writer that was called and has not asked yet
  Turn* first_ = nullptr;
  Turn* last_ = nullptr;
  std::atomic<int64_t> version_{0};
};

// What the body of an update kernel sees: writable memory of the variables it named, all held.
class VariableUpdate {
 public:
  template <class T>
  T* data(int k) const {
    return static_cast<T*>(versions_[k]->tensor.data());
  }
  const Tensor& tensor(int k) const { return versions_[k]->tensor; }
  // The value before the update. The same memory as data(k) unless readers pin it; where `rewrites` was
  // declared, data(k) has no contents then and every element must be written.
  template <class T>
  const T* old(int k) const {
    return static_cast<const T*>(olds_[k]->tensor.data());
  }
  int count() const { return count_; }

 private:
  friend struct UpdateRun;
  Variable::Version* versions_[4] = {};
  const Variable::Version* olds_[4] = {};
  int count_ = 0;
};

using UpdateFn = Status (*)(RunContext&, VariableUpdate&);
// What it reads is pinned until it returns.
using ReadFn = Status (*)(RunContext&, Variable::Version&);
// Fills `fresh`, a tensor of `variable.spare()`, which becomes the value when the body succeeds.
using AssignFn = Status (*)(RunContext&, Variable& variable, Tensor& fresh);

// The head of the argument block of every kernel that reads or changes variables: a kernel that has arguments
// of its own derives its block from this one and asks for it before it calls prepare_update and the like.
struct UpdateArgs {
  enum class Mode : uint8_t { update, read, assign };
  UpdateFn update = nullptr;
  ReadFn read = nullptr;
  AssignFn assign = nullptr;
  int8_t inputs[4] = {};
  int8_t count = 0;
  Mode mode = Mode::update;
  bool rewrites = false;  // the body reads old(k) and writes all of data(k)
};

// Makes the instruction an update of the variables behind the resource inputs `inputs` (at most 4, k-th
// entry = k-th of VariableUpdate): the runner takes them in a fixed order, calls `body`, releases them and
// counts their versions up. An uninitialised variable is an error with its name. Where the declared shape of
// a variable is complete, prepare sees it as input(i).shape; a body whose variables have open shapes must
// check tensor(k).shape(). A body that fails must not have written; it then leaves the variables as they were.
Status prepare_update(PrepareContext& c, std::initializer_list<int> inputs, UpdateFn body);
// A look at the present value, pinned while `body` runs.
Status prepare_read(PrepareContext& c, int input, ReadFn body);
// A new value, whatever the present one is.
Status prepare_assign(PrepareContext& c, int input, AssignFn body);

// The variable behind resource input i of a running instruction; null when it is a resource of another kind.
inline Variable* variable_at(const RunContext& c, int i) { return resource_cast<Variable>(c.in<void>(i)); }

// What a kernel says about a variable that has no value.
Status no_value(const Variable& variable, const char* attempted);

}  // namespace dtg
