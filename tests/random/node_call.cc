// The seam to exec/kernel.h.
#include "random/node_call.h"

#include <algorithm>
#include <cstring>

#include "exec/completion.h"
#include "exec/memory_pool.h"
#include "exec/step.h"
#include "graph/infer.h"

namespace dtg::random {
namespace {

constexpr int64_t kGuard = 64;
constexpr unsigned char kFill = 0xA5;

// Memory that shows what a kernel forgot to write and what it wrote behind the end.
Result<Tensor> guarded(DType dtype, const Shape& shape) {
  const int64_t bytes = shape.count() * dtype_size(dtype);
  DTG_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(bytes + kGuard));
  std::memset(buffer->data(), kFill, static_cast<size_t>(bytes + kGuard));
  return Tensor::wrap(std::move(buffer), 0, dtype, shape);
}

bool intact(const void* end) {
  const auto* at = static_cast<const unsigned char*>(end);
  for (int64_t i = 0; i < kGuard; ++i) {
    if (at[i] != kFill) return false;
  }
  return true;
}

class Preparing final : public PrepareContext {
 public:
  Preparing(const Machine& machine, const Node& node, std::span<const Datum> inputs, std::span<const Datum> outputs) : data_(inputs) {
    node_ = &node;
    arena_ = &arena_own_;
    pool_ = machine.pool;
    store_ = machine.store;
    kernels_ = machine.kernels;
    device_ = "/job:localhost/replica:0/task:0/device:CPU:0";
    for (const Datum& datum : inputs) inputs_.push_back(operand(datum));
    for (const Datum& datum : outputs) outputs_.push_back(operand(datum));
  }
  Tensor constant(int i) const override { return data_[static_cast<size_t>(i)].tensor; }
  const void* block() const { return args_; }
  int64_t workspace_bytes() const { return workspace_; }
  int aliased(int o) const {
    for (const Pair& pair : aliases_) {
      if (pair.out == o) return pair.in;
    }
    return -1;
  }
  Ref<RefCounted> bound(int o) const {
    for (const Bound& row : bound_) {
      if (row.out == o) return row.resource;
    }
    return {};
  }

 private:
  static Operand operand(const Datum& datum) {
    Operand result{datum.info.dtype, Shape(), datum.info.held, false, datum.info.shape};
    if (datum.info.dtype == DType::variant) return result;
    auto shape = datum.info.shape.complete() ? datum.info.shape.to_shape() : Result<Shape>(invalid_argument("open"));
    result.dynamic = !shape.ok();
    if (shape.ok()) result.shape = shape.take();
    return result;
  }
  std::span<const Datum> data_;
  Arena arena_own_;
};

// The operands of one kernel: memory with guards for what has a shape before it runs; what it leases or is given is copied after.
class Operands {
 public:
  Operands(std::span<const Datum> inputs, std::span<Datum> outputs)
      : outputs_(outputs),
        first_(static_cast<uint32_t>(inputs.size())),
        slots_(static_cast<uint32_t>(inputs.size() + outputs.size()), 0, true, memory()) {
    for (uint32_t i = 0; i < first_; ++i) {
      slots_.bind(i, inputs[i].resource ? static_cast<void*>(inputs[i].resource.get()) : inputs[i].tensor.data());
      if (inputs[i].tensor.valid()) slots_.set_shape(i, inputs[i].tensor.shape());
    }
  }
  Status allocate(uint32_t o, const Shape& shape) {
    DTG_ASSIGN(outputs_[o].tensor, guarded(outputs_[o].info.dtype, shape));
    guarded_.push_back(outputs_[o].tensor);
    return {};
  }
  void bind_output(uint32_t o) {
    const Datum& out = outputs_[o];
    slots_.bind(first_ + o, out.resource ? static_cast<void*>(out.resource.get()) : out.tensor.data());
  }
  Status take_found() {
    for (uint32_t o = 0; o < outputs_.size(); ++o) {
      Datum& out = outputs_[o];
      if (out.tensor.valid() || out.resource || !slots_.data(first_ + o)) continue;
      if (is_holder(out.info.dtype)) {
        out.resource = Ref<RefCounted>::share(static_cast<RefCounted*>(slots_.data(first_ + o)));
        continue;
      }
      DTG_ASSIGN(out.tensor, Tensor::allocate(out.info.dtype, slots_.shape(first_ + o)));
      if (out.tensor.bytes() > 0) std::memcpy(out.tensor.data(), slots_.data(first_ + o), static_cast<size_t>(out.tensor.bytes()));
    }
    return {};
  }
  bool whole() const {
    return std::ranges::all_of(guarded_, [](const Tensor& tensor) { return intact(tensor.as<char>() + tensor.bytes()); });
  }
  Slots& slots() { return slots_; }
  uint32_t first_output() const { return first_; }
  uint32_t count() const { return first_ + static_cast<uint32_t>(outputs_.size()); }

 private:
  std::span<Datum> outputs_;
  const uint32_t first_;
  // Elements of lists outlive the kernel that made them.
  static MemoryPool& memory() {
    static const Ref<MemoryPool> pool = make_ref<MemoryPool>(nullptr);
    return *pool;
  }
  Slots slots_;
  std::vector<Tensor> guarded_;
};

// By arithmetic that cannot wrap, and that shares nothing with the library's. More than 2^62 elements are no shape at all.
Status check_sizes(const Node& node, std::span<const Datum> outputs) {
  for (const Datum& datum : outputs) {
    if (is_holder(datum.info.dtype)) continue;
    __int128 count = datum.info.shape.complete() ? 1 : 0;
    for (int i = 0; datum.info.shape.complete() && i < datum.info.shape.rank(); ++i) {
      const int64_t dim = datum.info.shape.dim(i);
      // A product of 2^100 is too much, whatever comes; a zero makes it nothing.
      count = dim == 0 ? 0 : count > (__int128{1} << 100) / dim ? count : count * dim;
    }
    if (count > __int128{1} << 62) return invalid_argument("%s makes a value of too many elements", node.op->name().c_str());
    if (count * dtype_size(datum.info.dtype) > kMemoryLimit)
      return resource_exhausted("%s: beyond the memory limit", node.op->name().c_str());
  }
  return {};
}

}  // namespace

Status infer(const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  std::vector<ValueInfo> in, out(node.outputs.begin(), node.outputs.end());
  for (const Datum& datum : inputs) in.push_back(datum.info);
  for (ValueInfo& info : out) info.shape = PartialShape::unknown();
  const auto constant = [](void* context, int i) {
    return (*static_cast<std::span<const Datum>*>(context))[static_cast<size_t>(i)].tensor;
  };
  InferContext context(node, in, out, constant, &inputs);
  DTG_TRY(node.op->shape_fn()(context));
  size_t at = 0;
  for (const ArgDef& arg : node.op->inputs()) {
    if (!arg.number_attr.empty() || !arg.list_attr.empty()) break;  // list arguments carry no rank contract
    const PartialShape& shape = in[at++].shape;
    if (is_holder(in[at - 1].dtype) || !shape.has_rank()) continue;
    if (shape.rank() < arg.rank_min || shape.rank() > arg.rank_max)
      return invalid_argument("%s: rank of %s", node.op->name().c_str(), arg.name.c_str());
  }
  outputs.clear();
  for (ValueInfo& info : out) outputs.push_back({{}, {}, std::move(info)});
  return {};
}

namespace {

// Memory for every output whose shape is known, and the resources that prepare bound.
Status place_outputs(const Preparing& prepared, std::span<const Datum> inputs, std::vector<Datum>& outputs, Operands& operands) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    Datum& out = outputs[o];
    const int number = static_cast<int>(o);
    out.resource = prepared.bound(number);
    if (const int from = prepared.aliased(number); from >= 0 && !out.resource) {
      const Datum& source = inputs[static_cast<size_t>(from)];
      out.resource = source.resource;
      if (!out.resource) {
        if (prepared.output(number).dynamic || prepared.output(number).shape.count() != source.tensor.count()) {
          return internal_error("%s: output %d cannot be input %d", prepared.node().op->name().c_str(), number, from);
        }
        out.tensor = copy_of(source.tensor).reshaped(prepared.output(number).shape);
      }
    } else if (!out.resource && !prepared.output(number).dynamic && !prepared.is_brought(number) && !is_holder(out.info.dtype)) {
      DTG_TRY(operands.allocate(static_cast<uint32_t>(o), prepared.output(number).shape));
    }
    operands.bind_output(static_cast<uint32_t>(o));
  }
  return {};
}

Status execute(const Machine& machine, const Preparing& prepared, Operands& operands) {
  if (!prepared.sync_fn() && !prepared.async_fn()) return {};
  std::vector<uint32_t> numbers(operands.count());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i);
  DTG_ASSIGN(Tensor scratch, guarded(DType::u8, Shape::of({prepared.workspace_bytes()})));
  Instruction instruction;
  instruction.sync = prepared.sync_fn();
  instruction.async = prepared.async_fn();
  instruction.args = prepared.block();
  instruction.in = numbers.data();
  instruction.out = numbers.data() + operands.first_output();
  instruction.workspace = 0;
  instruction.node = &prepared.node();
  Step step(1, Deadline::never());
  RunContext context(operands.slots(), scratch.as<char>(), step, *machine.pool);
  context.set_instruction(&instruction);
  if (instruction.sync) {
    DTG_TRY(instruction.sync(context));
  } else {
    if (!instruction.async(context, Completion())) return internal_error("%s waits", prepared.node().op->name().c_str());
    DTG_TRY(context.take_status());
  }
  if (intact(scratch.as<char>() + scratch.bytes()) && operands.whole()) return operands.take_found();
  return internal_error("%s wrote past the end of an output or its workspace", prepared.node().op->name().c_str());
}

}  // namespace

Tensor copy_of(const Tensor& tensor) {
  auto copy = Tensor::allocate(tensor.dtype(), tensor.shape());
  if (!copy.ok()) return {};
  if (tensor.bytes() > 0) std::memcpy(copy.value().data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return copy.take();
}

Status call_node(const Machine& machine, const Node& node, std::span<const Datum> inputs, std::vector<Datum>& outputs) {
  DTG_TRY(infer(node, inputs, outputs));
  DTG_TRY(check_sizes(node, outputs));
  if (node.op->name() == "Const") {
    outputs[0].tensor = node.attr<Tensor>("value");
  } else if (node.op->name() != "NoOp") {
    const KernelRow* row = machine.kernels->find(node, "CPU");
    if (!row) return unimplemented("no CPU kernel for %s", node.op->name().c_str());
    Preparing prepared(machine, node, inputs, outputs);
    if (row->prepare) DTG_TRY(row->prepare(prepared));
    Operands operands(inputs, outputs);
    DTG_TRY(place_outputs(prepared, inputs, outputs, operands));
    DTG_TRY(execute(machine, prepared, operands));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    Datum& out = outputs[o];
    if (!out.tensor.valid()) {
      if (!out.resource) return internal_error("%s gave no output %zu", node.op->name().c_str(), o);
      continue;
    }
    if (!node.outputs[o].shape.admits(out.tensor.shape())) {
      return internal_error("%s: shape %s was inferred, but %s came", node.op->name().c_str(), node.outputs[o].shape.text().c_str(),
                            out.tensor.shape().text().c_str());
    }
    out.info.shape = out.tensor.shape();
  }
  return {};
}

}  // namespace dtg::random
