// The one-node runner. It stands in for the planner and the executor in the simplest way that is still
// honest: exact shapes at prepare, separate memory for every operand, guard bytes behind every output.
#include "ops/one_op.h"

#include <cstring>

#include "exec/memory_pool.h"
#include "exec/step.h"
#include "graph/infer.h"
#include "graph/known.h"
#include "tensor/text.h"

namespace dtg {
namespace {

constexpr const char* kFeed = "TestFeed";
constexpr int64_t kGuard = 64;
constexpr unsigned char kFill = 0xA5;

Status feed_shape(InferContext& c) {
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

Status const_shape(InferContext& c) {
  c.output(0, c.attr<Tensor>("value").shape());
  return {};
}

void add_private_ops(OpTable& ops) {
  ops.add(OpDef::make(kFeed)
              .output("output: dtype")
              .attr("dtype: type")
              .attr("shape: shape = unknown")
              .shape(feed_shape)
              .no_gradient()
              .doc("An input of a test."));
  if (ops.find("Const")) return;
  ops.add(OpDef::make("Const")
              .output("output: dtype")
              .attr("value: tensor")
              .attr("dtype: type")
              .role(Role::constant)
              .shape(const_shape)
              .value([](ValueContext& c) { c.output(0, c.node().attr<Tensor>("value")); })
              .no_gradient()
              .doc("A constant."));
}

// Memory with guard bytes behind it, filled so that what a kernel forgets to write shows.
Result<Tensor> guarded(DType dtype, const Shape& shape) {
  // As the planner does before a kernel runs.
  if (shape.count() > int64_t{1} << 48) return resource_exhausted("a tensor of %s", shape.text().c_str());
  const int64_t bytes = shape.count() * cell_bytes(dtype);
  DTG_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(bytes + kGuard));
  std::memset(buffer->data(), kFill, static_cast<size_t>(bytes + kGuard));
  return Tensor::over(std::move(buffer), dtype, shape);
}

int64_t bytes_of(const Tensor& tensor) { return tensor.count() * cell_bytes(tensor.dtype()); }

bool guard_intact(const void* end) {
  const auto* at = static_cast<const unsigned char*>(end);
  for (int64_t i = 0; i < kGuard; ++i) {
    if (at[i] != kFill) return false;
  }
  return true;
}

}  // namespace

// Opens up what the planner fills in.
class OneOp::Prepare : public PrepareContext {
 public:
  Prepare(const Node& node, std::span<const Datum> inputs, std::span<const Datum> outputs, const Options& options, ResourceStore* store,
          const KernelTable& kernels)
      : data_(inputs), known_(options.known), pool_own_(Pool::Options{.threads = options.threads}) {
    node_ = &node;
    arena_ = &arena_own_;
    pool_ = &pool_own_;
    store_ = store;
    kernels_ = &kernels;
    device_ = "/job:localhost/replica:0/task:0/device:CPU:0";
    for (const Datum& datum : inputs) inputs_.push_back(operand(datum));
    for (const Datum& datum : outputs) outputs_.push_back(operand(datum));
  }
  Tensor constant(int i) const override { return known_ == Known::values ? data_[static_cast<size_t>(i)].tensor : Tensor(); }
  SyncFn sync_fn() const { return sync_; }
  bool is_async() const { return async_ != nullptr; }
  const void* args_block() const { return args_; }
  int64_t workspace_bytes() const { return workspace_; }
  // The input that output o may lie over, or -1: `wanted`, or the first when that is -1.
  int overwritten(int o, int wanted) const {
    for (const Pair& pair : overwrites_) {
      if (pair.out == o && (wanted < 0 || pair.in == wanted)) return pair.in;
    }
    return -1;
  }
  int aliased(int o) const { return find(aliases_, o); }
  Ref<RefCounted> bound(int o) const {
    for (const Bound& row : bound_) {
      if (row.out == o) return row.resource;
    }
    return {};
  }

 private:
  static Operand operand(const Datum& datum) {
    Operand result;
    result.dtype = datum.info.dtype;
    result.held = datum.info.held;
    auto shape = datum.info.shape.to_shape();
    result.dynamic = !shape.ok();
    if (shape.ok()) result.shape = shape.take();
    return result;
  }
  static int find(const std::vector<Pair>& pairs, int o) {
    for (const Pair& pair : pairs) {
      if (pair.out == o) return pair.in;
    }
    return -1;
  }
  std::span<const Datum> data_;
  Known known_;
  Pool pool_own_;
  Arena arena_own_;
};

namespace {

// What a kernel leased or was given belongs to the run; the result needs a copy that outlives it.
Result<Tensor> copy_of(const Slots& slots, uint32_t slot, DType dtype) { return copy_value(dtype, slots.shape(slot), slots.data(slot)); }

}  // namespace

OneOp::OneOp(std::span<const RegisterFn> families) {
  for (RegisterFn family : families) family(ops_, kernels_);
  add_private_ops(ops_);
}

OneOp::OneOp(std::initializer_list<RegisterFn> families) : OneOp(std::span(families.begin(), families.size())) {}

Result<Value> OneOp::input(Graph& graph, const Tensor& tensor, Known known) {
  Build build(graph);
  if (known == Known::values) {
    const Value value = build.op("Const", {}, {{"value", tensor}, {"dtype", tensor.dtype()}});
    DTG_TRY(build.status());
    return value;
  }
  const PartialShape shape = known == Known::shapes ? PartialShape(tensor.shape()) : PartialShape::unknown();
  const Value value = build.op(kFeed, {}, {{"dtype", tensor.dtype()}, {"shape", shape}});
  DTG_TRY(build.status());
  feeds_[value.id] = tensor;
  return value;
}

Result<std::vector<Tensor>> OneOp::run(std::string_view op, std::span<const Tensor> inputs, std::span<const Attr> attrs, Options options) {
  if (!ops_.status().ok()) return ops_.status().in_phase("register");
  DTG_ASSIGN(Ref<Graph> graph, this->graph());
  std::vector<Value> values;
  for (const Tensor& tensor : inputs) {
    DTG_ASSIGN(Value value, input(*graph, tensor, options.known));
    values.push_back(value);
  }
  auto added = graph->add({.op = op, .inputs = values, .attrs = attrs});
  if (!added.ok()) return added.status().in_phase("build");
  std::vector<Value> fetches;
  const NodeId id = added.value();
  for (uint32_t o = 0; o < graph->node(id).outputs.size(); ++o) fetches.push_back(graph->value(id, o));
  if (fetches.empty()) fetches.push_back(graph->value(id, 0));
  return evaluate(*graph, fetches, options);
}

Result<std::vector<Tensor>> OneOp::evaluate(const Graph& graph, std::span<const Value> fetches, Options options) {
  std::vector<bool> needed(graph.node_count());
  for (Value fetch : fetches) needed[fetch.node()] = true;
  for (NodeId id = graph.node_count(); id-- > 0;) {
    if (!needed[id]) continue;
    for (Value in : graph.node(id).inputs) needed[in.node()] = true;
    for (NodeId control : graph.node(id).controls) needed[control] = true;
  }
  std::map<uint64_t, Datum> known;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!needed[id]) continue;
    const Node& node = graph.node(id);
    std::vector<Datum> inputs;
    for (Value in : node.inputs) inputs.push_back(known[in.id]);
    std::vector<Datum> outputs;
    if (node.op->name() == kFeed || node.op->name() == "Const") {
      const Value self = graph.value(id);
      const Tensor tensor = node.op->name() == kFeed ? feeds_[self.id] : node.attr<Tensor>("value");
      outputs.push_back({tensor, {}, {tensor.dtype(), DType::invalid, tensor.shape()}});
    } else {
      DTG_ASSIGN(outputs, run_node(node, inputs, options));
    }
    for (uint32_t o = 0; o < outputs.size(); ++o) known[graph.value(id, o).id] = outputs[o];
  }
  std::vector<Tensor> result;
  for (Value fetch : fetches) result.push_back(known[fetch.id].tensor);
  return result;
}

Result<std::vector<OneOp::Datum>> OneOp::run_node(const Node& node, std::span<const Datum> inputs, const Options& options) {
  struct Source {
    std::span<const Datum> inputs;
    bool known;
  } source{inputs, options.known == Known::values};
  std::vector<ValueInfo> in_infos, out_infos(node.outputs.begin(), node.outputs.end());
  for (const Datum& datum : inputs) in_infos.push_back(datum.info);
  for (ValueInfo& info : out_infos) info.shape = PartialShape::unknown();
  const auto constant = [](void* context, int i) {
    const auto& from = *static_cast<Source*>(context);
    return from.known ? from.inputs[static_cast<size_t>(i)].tensor : Tensor();
  };
  InferContext infer(node, in_infos, out_infos, constant, &source);
  if (Status status = node.op->shape_fn()(infer); !status.ok()) return status.in_phase("prepare");
  std::vector<Datum> outputs;
  for (const ValueInfo& info : out_infos) outputs.push_back({{}, {}, info});

  const KernelRow* row = kernels_.find(node, "CPU");
  if (!row) {
    return unimplemented("no CPU kernel for %s; there are: %s", node.op->name().c_str(), kernels_.describe(node.op->name()).c_str())
        .in_phase("prepare");
  }
  Prepare prepare(node, inputs, outputs, options, store_, kernels_);
  if (Status status = row->prepare(prepare); !status.ok()) return status.in_phase("prepare");
  if (prepare.is_async()) return unimplemented("one_op runs synchronous kernels only: %s", node.op->name().c_str());
  DTG_TRY(execute(node, inputs, options, prepare, outputs));
  for (Datum& out : outputs) {
    if (out.tensor.valid()) out.info.shape = out.tensor.shape();
  }
  return outputs;
}

Status OneOp::execute(const Node& node, std::span<const Datum> inputs, const Options& options, Prepare& prepare, std::span<Datum> outputs) {
  const Ref<MemoryPool> memory = make_ref<MemoryPool>(nullptr);  // elements of lists keep it
  Slots slots(static_cast<uint32_t>(inputs.size() + outputs.size()), 0, true, *memory);
  std::vector<uint32_t> in_slots, out_slots;
  std::vector<Tensor> guards;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in_slots.push_back(static_cast<uint32_t>(i));
    slots.bind(static_cast<uint32_t>(i), inputs[i].data());
    slots.set_shape(static_cast<uint32_t>(i), inputs[i].tensor.valid() ? inputs[i].tensor.shape() : Shape());
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto slot = static_cast<uint32_t>(inputs.size() + o);
    out_slots.push_back(slot);
    Datum& out = outputs[o];
    const int output = static_cast<int>(o);
    out.resource = prepare.bound(output);
    const bool given = prepare.output(output).dynamic || prepare.is_brought(output);
    if (out.resource || (given && prepare.aliased(output) < 0)) {
      slots.bind(slot, out.data());
      continue;
    }
    if (const int from = prepare.aliased(output); from >= 0) {
      out.resource = inputs[static_cast<size_t>(from)].resource;
      if (!out.resource) out.tensor = inputs[static_cast<size_t>(from)].tensor.reshaped(prepare.output(output).shape);
      slots.bind(slot, out.data());
      continue;
    }
    DTG_ASSIGN(out.tensor, guarded(out.info.dtype, prepare.output(output).shape));
    guards.push_back(out.tensor);
    slots.bind(slot, out.tensor.data());
    slots.set_shape(slot, out.tensor.shape());
    const int over = options.in_place ? prepare.overwritten(output, options.over) : -1;
    if (over >= 0) {
      const Tensor& from = inputs[static_cast<size_t>(over)].tensor;
      if (bytes_of(from) != bytes_of(out.tensor)) {
        return internal_error("prepare lets output %d overwrite input %d of another size", output, over);
      }
      if (from.count() > 0) std::memcpy(out.tensor.data(), from.data(), static_cast<size_t>(bytes_of(from)));
      // A tensor that comes several times is one memory.
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].data() == from.data()) slots.bind(static_cast<uint32_t>(i), out.tensor.data());
      }
    }
  }
  if (!prepare.sync_fn()) return {};

  const int64_t bytes = prepare.workspace_bytes();
  DTG_ASSIGN(Tensor scratch, guarded(DType::u8, Shape::of({bytes})));
  Instruction instruction;
  instruction.sync = prepare.sync_fn();
  instruction.args = prepare.args_block();
  instruction.in = in_slots.data();
  instruction.out = out_slots.data();
  instruction.workspace = 0;
  instruction.node = &node;
  Step step(1, Deadline::never());
  RunContext context(slots, scratch.as<char>(), step, prepare.pool());
  context.set_instruction(&instruction);
  Status status;
  {
    const Interrupt::Scope scope(options.interrupt);
    Interrupt::look();
    status = instruction.sync(context);
    Interrupt::look();
  }
  if (!status.ok()) return status.in_phase("run");
  bool intact = guard_intact(scratch.as<char>() + bytes);
  for (const Tensor& tensor : guards) intact = intact && guard_intact(tensor.as<char>() + bytes_of(tensor));
  if (!intact) return internal_error("the kernel of %s wrote past the end of an output or its workspace", node.op->name().c_str());
  for (size_t o = 0; o < outputs.size(); ++o) {
    // Cells point at bytes of the run.
    if (outputs[o].tensor.valid() && outputs[o].tensor.dtype() == DType::string) {
      DTG_ASSIGN(outputs[o].tensor, make_texts(outputs[o].tensor.shape(), texts_of(outputs[o].tensor)));
    }
    const auto slot = static_cast<uint32_t>(inputs.size() + o);
    if (outputs[o].info.dtype == DType::variant && !outputs[o].resource && slots.data(slot)) {  // a list: the slot holds it
      outputs[o].tensor = Tensor();
      outputs[o].resource = Ref<RefCounted>::share(static_cast<RefCounted*>(slots.data(slot)));
    }
    if (outputs[o].tensor.valid() || outputs[o].resource) continue;
    if (!slots.data(slot)) return internal_error("%s leased no memory for output %zu", node.op->name().c_str(), o);
    DTG_ASSIGN(outputs[o].tensor, copy_of(slots, slot, outputs[o].info.dtype));
  }
  return {};
}

namespace one_op {

bool bit_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) return same_texts(texts_of(a), texts_of(b));
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

Tensor texts(std::initializer_list<int64_t> dims, std::initializer_list<std::string_view> values) {
  const std::vector<Text> list(values.begin(), values.end());
  return make_texts(shape(dims), list).take();
}

std::vector<std::string> as_strings(const Tensor& tensor) {
  std::vector<std::string> list;
  for (const Text& text : texts_of(tensor)) list.emplace_back(text.view());
  return list;
}

std::vector<float> ramp(int64_t count, float low, float high) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return values;
}

}  // namespace one_op

}  // namespace dtg
