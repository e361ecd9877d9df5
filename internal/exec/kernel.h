// Kernels: how an op runs. A kernel has two halves. `prepare` is called when a plan is made; it sees exact
// types and shapes, picks the implementation, holds what it needs (loop bounds, tables) in an
// argument block, and states workspace and in-place rights. `run` is called every step; it allocates
// nothing, locks nothing and looks nothing up.
//
// The runtime builds one KernelTable by calling the register functions of the op families and then
// freezes it. Prepared blocks are immutable: two runs may execute the same instruction at the same time;
// what changes lives in the frame.
//
//   struct ReluArgs { int64_t count; };
//   Status relu_run(RunContext& c) {
//     const auto& a = c.args<ReluArgs>();
//     ...c.in<float>(0) -> c.out<float>(0)...
//     return {};
//   }
//   Status relu_prepare(PrepareContext& c) {
//     c.args<ReluArgs>()->count = c.input(0).shape.count();
//     c.may_overwrite(0, 0);
//     return c.sync(relu_run);
//   }
//   kernels.add({.op = "Relu", .types = {{"T", DTypeSet{DType::f32}}}, .prepare = relu_prepare});
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/pool.h"
#include "base/ref.h"
#include "base/seams.h"
#include "base/size.h"
#include "exec/slots.h"
#include "exec/step.h"
#include "graph/graph.h"

namespace dtg {

class BodySource;
class Function;
class KernelTable;
class Rights;
class Resource;
class ResourceStore;
class Completion;
class RunContext;

using SyncFn = Status (*)(RunContext&);
// Returns true when it is done already (the outcome is in c.status()); false when the completion will be
// called later, from any thread, exactly once.
using AsyncFn = bool (*)(RunContext&, Completion);

// One step of a segment: the function, its argument block, and where its operands are. One that runs to its end may tell then that
// an event has happened, a hand-over to another device; one without a function only does that.
struct alignas(64) Instruction {
  SyncFn sync = nullptr;
  AsyncFn async = nullptr;
  const void* args = nullptr;
  const uint32_t* in = nullptr;   // slots of the inputs; the two numbers in front of them say how many inputs and outputs there are
  const uint32_t* out = nullptr;  // slots of the outputs
  int64_t workspace = -1;         // offset in the chunk's memory, -1 none
  int32_t event = -1;             // that its end signals; -1 none: for an asynchronous one the segment waits then
  bool looks_at_clock = false;    // so much was done since the last one that did
  bool goes_on = true;            // to the next one at once: it is a call and neither of the two, and may not be cut
  bool gives_host = false;        // on an accelerator: its results are the host's to read
  bool may_be_cut = false;        // long enough for an interrupt, and nothing outlives the run that it leaves half made
  const Node* node = nullptr;     // for errors and traces

  uint32_t inputs() const { return in ? in[-2] : 0; }
  uint32_t outputs() const { return in ? in[-1] : 0; }
};

// What one instruction sees while it runs. Lives on the runner's stack.
class RunContext {
 public:
  RunContext(Slots& slots, char* scratch, Step& step, Pool& pool)
      : table_(slots.table()), scratch_(scratch), slots_(slots), step_(step), pool_(pool) {}
  // The instructions run on a device with memory of its own.
  void set_device(DeviceMemory* memory) { device_ = memory; }
  // The runner moves on to the next instruction.
  void set_instruction(const Instruction* instruction) { instruction_ = instruction; }

  template <class T>
  const T* in(int i) const {
    return static_cast<const T*>(table_[instruction_->in[i]]);
  }
  template <class T>
  T* out(int i) const {
    return static_cast<T*>(table_[instruction_->out[i]]);
  }
  template <class A>
  const A& args() const {
    return *static_cast<const A*>(instruction_->args);
  }
  // Scratch that prepare asked for, 64-byte aligned, undefined contents; null where it asked for none.
  template <class T = char>
  T* workspace() const {
    return instruction_->workspace < 0 ? nullptr : reinterpret_cast<T*>(scratch_ + instruction_->workspace);
  }
  Pool& pool() const { return pool_; }
  Step& step() const { return step_; }
  Slots& slots() const { return slots_; }
  const Instruction& instruction() const { return *instruction_; }
  const Node& node() const { return *instruction_->node; }

  // May the run do to the resource behind input i what the op declares? Each kernel that takes a resource asks before it does anything.
  Status permitted(int i) const { return step_.rights() ? check_rights(i) : Status(); }

  // For ops whose output shape is known only now: memory for output i, owned by the step. Outputs whose
  // shape is static have their memory already.
  Result<void*> lease_output(int i, DType dtype, const Shape& shape) {
    return slots_.lease(instruction_->out[i], dtype, shape, instruction_->gives_host ? nullptr : device_);
  }
  // Output i is this memory, kept alive until the step ends by the holder (may be null).
  void set_output(int i, void* data, const Shape& shape, Ref<RefCounted> holder) {
    slots_.hold(instruction_->out[i], data, shape, std::move(holder));
  }

  // Value errors, with the node named.
  [[gnu::format(printf, 2, 3)]] Status error(const char* format, ...) const;
  // The outcome of an asynchronous kernel that returned true.
  void set_status(Status status) { status_ = std::move(status); }
  Status take_status() { return std::move(status_); }

 private:
  Status check_rights(int input) const;

  void* const* const table_;
  char* const scratch_;
  const Instruction* instruction_ = nullptr;
  Slots& slots_;
  Step& step_;
  Pool& pool_;
  DeviceMemory* device_ = nullptr;  // null: the host
  Status status_;
};

// What prepare sees and says.
class PrepareContext {
 public:
  struct Operand {
    DType dtype = DType::invalid;
    Shape shape;  // of a resource: shape of what it holds
    DType held = DType::invalid;
    bool dynamic = false;  // output only: shape known when it has run; shape is not valid
    PartialShape holds;    // of a resource or a variant: what is known of the shape of what it holds
    int64_t bytes() const { return Bytes::of(shape.count(), cell_bytes(dtype)).value(); }
  };
  virtual ~PrepareContext() = default;

  const Node& node() const { return *node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Operand& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const Operand& output(int i) const { return outputs_[static_cast<size_t>(i)]; }
  // The input's value when the plan knows it (a constant, a folded shape); invalid otherwise.
  virtual Tensor constant(int i) const = 0;
  template <class T>
  const T& attr(std::string_view name) const {
    return node_->attr<T>(name);
  }
  int64_t integer(std::string_view name) const { return attr<int64_t>(name); }
  bool boolean(std::string_view name) const { return attr<bool>(name); }

  // The argument block, default-constructed on first use; it lives as long as the plan. All calls of one
  // prepare must use the same type.
  template <class A>
  A* args() {
    if (!args_) args_ = arena_->make<A>();
    return static_cast<A*>(args_);
  }
  Arena& arena() { return *arena_; }
  Pool& pool() const { return *pool_; }
  // State of the task.
  ResourceStore& store() const { return *store_; }
  // For handle ops: the resource that the node names by container and shared_name (or its own name), made by `make` when it is not there.
  Result<Ref<Resource>> named_resource(std::string_view kind, const std::function<Ref<Resource>(const std::string& name)>& make);
  // May the plan make resources, and say more of their shapes than was known?
  bool may_attach() const;
  const KernelTable& kernels() const { return *kernels_; }
  // The bodies of a function that the node calls, prepared where the node runs (exec/body.h).
  virtual Result<Ref<BodySource>> bodies(const Function& function);
  // A read of a variable: the pin of the run that it is to use; kNoPin where it should give a copy.
  static constexpr uint32_t kNoPin = UINT32_MAX;
  uint32_t pin() const { return pin_; }
  // Full name of the device the node was placed on, and where its memory is; null: the host's.
  std::string_view device() const { return device_; }
  DeviceMemory* device_memory() const { return device_memory_; }
  // Output o is this resource from now on; the plan keeps it alive. The kernel needs no function then.
  void bind(int o, Ref<RefCounted> resource) { bound_.push_back({o, std::move(resource)}); }

  void workspace(int64_t bytes) { workspace(Bytes(bytes)); }
  void workspace(Bytes bytes) { workspace_ = bytes.value(); }
  // More than can be counted was asked for; sync() and async_in_place() are RESOURCE_EXHAUSTED then.
  bool workspace_overflows() const { return Bytes(workspace_).is_overflow(); }
  // The kernel says in every run where output o is (set_output or lease_output): no memory is planned for it.
  void brings(int o) { brought_.push_back(o); }
  bool is_brought(int o) const { return std::ranges::find(brought_, o) != brought_.end(); }
  // The kernel keeps input i beyond the run where its memory allows that (Slots::lasting), and copies it elsewhere; so a value that is
  // made here gets such memory, and nothing is written over it.
  void keeps(int i) { kept_.push_back(i); }
  const std::vector<int>& kept() const { return kept_; }
  // Output o may be written over input i (element-wise, same bytes), should i die here and be no other operand as well.
  void may_overwrite(int i, int o) { overwrites_.push_back({i, o}); }
  // Output o IS input i, no copy: Identity, Reshape. The op's definition must declare it (OpDef::forwards). The kernel needs no
  // function then.
  void alias(int i, int o) { aliases_.push_back({i, o}); }
  Status sync(SyncFn fn) {
    sync_ = fn;
    return workspace_overflows() ? workspace_error() : Status();
  }
  // Completes in place: the segment waits at this instruction.
  Status async_in_place(AsyncFn fn) {
    async_ = fn;
    return workspace_overflows() ? workspace_error() : Status();
  }
  // What was chosen.
  SyncFn sync_fn() const { return sync_; }
  AsyncFn async_fn() const { return async_; }
  [[gnu::format(printf, 2, 3)]] Status error(const char* format, ...) const;

 protected:
  Status workspace_error() const;
  struct Pair {
    int in, out;
  };
  const Node* node_ = nullptr;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  struct Bound {
    int out;
    Ref<RefCounted> resource;
  };
  Arena* arena_ = nullptr;
  Pool* pool_ = nullptr;
  ResourceStore* store_ = nullptr;
  const Rights* rights_ = nullptr;  // of the peer whose plan it is; null: all
  const KernelTable* kernels_ = nullptr;
  std::string_view device_;
  DeviceMemory* device_memory_ = nullptr;
  uint32_t pin_ = kNoPin;
  std::vector<Bound> bound_;
  void* args_ = nullptr;
  int64_t workspace_ = 0;
  std::vector<int> brought_;
  std::vector<int> kept_;
  std::vector<Pair> overwrites_;
  std::vector<Pair> aliases_;
  SyncFn sync_ = nullptr;
  AsyncFn async_ = nullptr;
};

using PrepareFn = Status (*)(PrepareContext&);

// What sort of instruction an op becomes.
enum class KernelMode : uint8_t {
  plain,     // runs where its inputs are ready
  blocking,  // may wait (dequeue, take, receive): ends the segment, holds no thread; on the host, wherever the node was placed
  host,      // as plain, but on the host and with operands there, wherever the node was placed
};

struct KernelRow {
  struct TypeClause {
    const char* attr;  // name of a type attribute
    DTypeSet types;    // what this kernel handles
  };
  const char* op = nullptr;
  const char* device = "CPU";
  std::vector<TypeClause> types = {};
  PrepareFn prepare = nullptr;
  KernelMode mode = KernelMode::plain;
  // Bit i: input (output) i is read (written) in host memory whatever the device; those from 31 on as 31.
  uint32_t host_inputs = 0;
  uint32_t host_outputs = 0;

  bool reads_host(size_t input) const { return host_inputs >> (input < 31 ? input : 31) & 1; }
  bool gives_host(size_t output) const { return host_outputs >> (output < 31 ? output : 31) & 1; }
  // Does a node on an accelerator run on the host, with all its operands there? What may wait does, and what deals with strings.
  // `dtype_of` tells the type of an input.
  template <class Fn>
  bool runs_on_host(const Node& node, Fn&& dtype_of) const {
    const auto lives_there = [](DType dtype) { return dtype == DType::string || dtype == DType::variant; };
    bool there = mode != KernelMode::plain;
    for (const ValueInfo& output : node.outputs) there = there || lives_there(output.dtype);
    for (Value input : node.inputs) there = there || lives_there(dtype_of(input));
    return there;
  }
};

// An element-wise op as a function over a short block, so that chains of them run in one pass: a fused
// chain calls one after the other on blocks that stay in the first-level cache. Operands and result have n
// elements; an operand whose elements are as large as the result's may be `out` itself.
struct ElementRow {
  using BlockFn = void (*)(const void* const* in, void* out, int64_t n);
  const char* op = nullptr;
  int arity = 1;
  DType in[3] = {};  // of the operands
  DType out = DType::invalid;
  BlockFn block = nullptr;
};

class KernelTable {
 public:
  void add(KernelRow row);
  void add_element(ElementRow row);
  const ElementRow* find_element(std::string_view op, std::span<const DType> in, DType out) const;
  // Where all operands and the result have that type.
  const ElementRow* find_element(std::string_view op, DType dtype) const;
  // Operands of an op that has rows, whatever their types; 0 for others.
  int element_arity(std::string_view op) const;
  // Called once all rows are there: finds them by the numbers of the definitions from then on, without hashing a name.
  void index(const OpTable& ops);
  // The row for a node on a device type, or null. Where an emulated device has none, it is the CPU's.
  const KernelRow* find(const Node& node, std::string_view device_type) const;
  // "CPU: T in {float32, float64}; ..." for an error, or "none".
  std::string describe(std::string_view op) const;
  bool has_device(const OpDef& op, std::string_view device_type) const;
  // The rows of an op for chains, by its definition; is_element() where it has any.
  bool is_element(const OpDef& op) const { return elements_of(op) != nullptr; }
  const ElementRow* find_element(const OpDef& op, std::span<const DType> in, DType out) const;

 private:
  static bool borrows(std::string_view device_type) { return device_type == "EMU"; }
  static const KernelRow* find_in_rows(const std::vector<KernelRow>& rows, const Node& node, std::string_view device_type);
  const std::vector<KernelRow>* rows_of(const OpDef& op) const;
  const std::vector<ElementRow>* elements_of(const OpDef& op) const;

  std::unordered_map<std::string_view, std::vector<KernelRow>> rows_;
  std::unordered_map<std::string_view, std::vector<ElementRow>> elements_;
  struct Indexed {
    const OpDef* op = nullptr;  // numbers of another table mean nothing
    const std::vector<KernelRow>* rows = nullptr;
    const std::vector<ElementRow>* elements = nullptr;
  };
  std::vector<Indexed> indexed_;  // by number of the definition
};

}  // namespace dtg
