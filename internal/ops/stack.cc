// Stacks: StackV2, StackPushV2, StackPopV2, StackCloseV2. A stack lives in one run: each run that comes to StackV2 has its own, which goes
// when the run ends, so no other run, session or task ever reaches it. Its values are copies, since the run's memory is used again.
#include <mutex>
#include <vector>

#include "exec/resource.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "tensor/text.h"

namespace dtg::ops {
namespace {

class Stack final : public Resource {
 public:
  static constexpr std::string_view kKind = "stack";
  Stack(std::string name, DType dtype, int64_t most) : Resource(std::move(name)), dtype_(dtype), most_(most) {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override { close(); }

  DType dtype() const { return dtype_; }
  Status push(Tensor value) {
    const std::lock_guard hold(mutex_);
    if (closed_) return invalid_argument("push on the stack \"%s\": it was closed", name().c_str());
    if (most_ >= 0 && static_cast<int64_t>(values_.size()) >= most_) {
      return invalid_argument("push on the stack \"%s\": it holds %lld values, and no more fit", name().c_str(),
                              static_cast<long long>(most_));
    }
    values_.push_back(std::move(value));
    return {};
  }
  Result<Tensor> pop() {
    const std::lock_guard hold(mutex_);
    if (values_.empty()) return invalid_argument("pop from the stack \"%s\": it is empty", name().c_str());
    Tensor last = std::move(values_.back());
    values_.pop_back();
    return last;
  }
  void close() {
    const std::lock_guard hold(mutex_);
    closed_ = true;
    values_.clear();
  }

 private:
  const DType dtype_;
  const int64_t most_;
  std::mutex mutex_;
  std::vector<Tensor> values_;
  bool closed_ = false;
};

struct StackArgs {
  Shape shape;
  DType dtype = DType::invalid;
  OutputSpec out;
};

Status make_run(RunContext& c) {
  auto made = make_ref<Stack>(std::string(c.node().name), c.args<StackArgs>().dtype, *c.in<int32_t>(0));
  RefCounted* const address = made.get();
  c.set_output(0, address, Shape(), std::move(made));
  return {};
}

Status make_prepare(PrepareContext& c) {
  c.args<StackArgs>()->dtype = c.attr<DType>("elem_type");
  return c.sync(make_run);
}

Status made_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 0));
  c.output_held(0, c.attr<DType>("elem_type"), PartialShape::unknown());
  return {};
}

Result<Stack*> stack_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  auto* const stack = resource_cast<Stack>(c.in<void>(0));
  if (!stack) return c.error("input 0 is not the handle of a stack");
  const DType wanted = c.args<StackArgs>().dtype;
  if (wanted == DType::invalid || wanted == stack->dtype()) return stack;
  return c.error("the stack \"%s\" holds %s, the op is for %s", stack->name().c_str(), dtype_name(stack->dtype()), dtype_name(wanted));
}

Status push_shape(InferContext& c) {
  c.output(0, c.input(1));
  return {};
}

Status push_run(RunContext& c) {
  const auto& a = c.args<StackArgs>();
  DTG_ASSIGN(Stack * stack, stack_at(c));
  DTG_ASSIGN(Tensor copy, copy_value(a.dtype, a.shape, c.in<void>(1)));
  const int64_t bytes = a.shape.count() * cell_bytes(a.dtype);
  if (bytes > 0) __builtin_memcpy(c.out<char>(0), c.in<char>(1), static_cast<size_t>(bytes));
  return stack->push(std::move(copy));
}

Status push_prepare(PrepareContext& c) {
  *c.args<StackArgs>() = {c.input(1).shape, c.input(1).dtype, {}};
  return c.sync(push_run);
}

Status pop_run(RunContext& c) {
  const auto& a = c.args<StackArgs>();
  DTG_ASSIGN(Stack * stack, stack_at(c));
  DTG_ASSIGN(Tensor last, stack->pop());
  DTG_ASSIGN(char* out, a.out.memory(c, last.shape()));
  const int64_t bytes = last.count() * cell_bytes(a.dtype);
  if (bytes > 0) __builtin_memcpy(out, last.data(), static_cast<size_t>(bytes));
  // Cells point at the bytes of what was popped.
  if (a.dtype == DType::string) c.slots().keep(last.buffer());
  return {};
}

Status pop_prepare(PrepareContext& c) {
  auto* const a = c.args<StackArgs>();
  a->dtype = c.output(0).dtype;
  a->out.prepare(c, 0);
  return c.sync(pop_run);
}

Status close_run(RunContext& c) {
  DTG_ASSIGN(Stack * stack, stack_at(c));
  stack->close();
  return {};
}

Status close_prepare(PrepareContext& c) {
  c.args<StackArgs>();
  return c.sync(close_run);
}

}  // namespace

void register_stack(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("StackV2")
              .input("max_size: int32", {.rank = 0})
              .output("handle: resource")
              .attr("elem_type: type")
              .attr("stack_name: string = ''")
              .shape(made_shape)
              .no_gradient()
              .stateful()
              .doc("A stack of at most max_size values, or of any number where that is negative; it lives as long as the run."));
  kernels.add({.op = "StackV2", .types = {{"elem_type", kMovable}}, .prepare = make_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("StackPushV2")
              .input("handle: resource")
              .input("elem: T")
              .output("output: T")
              .attr("T: type")
              .attr("swap_memory: bool = false")
              .shape(push_shape)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("Puts a value on a stack, and hands it on."));
  kernels.add({.op = "StackPushV2", .types = {{"T", kMovable}}, .prepare = push_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("StackPopV2")
              .input("handle: resource")
              .output("elem: elem_type")
              .attr("elem_type: type")
              .shape(unknown_shape)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("Takes the last value off a stack."));
  kernels.add({.op = "StackPopV2", .types = {{"elem_type", kMovable}}, .prepare = pop_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("StackCloseV2")
              .input("handle: resource")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("Drops what is on a stack; nothing can be pushed on it any more."));
  kernels.add({.op = "StackCloseV2", .prepare = close_prepare, .mode = KernelMode::host});
}

}  // namespace dtg::ops
