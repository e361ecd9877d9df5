// Hints for where values come from, and for what has state: variables, the optimizers' updates, queues.
#include "random/hints.h"

namespace dtg::random {
namespace {

DType held(Ask& a) { return a.op.find_attr("dtype") ? a.type("dtype") : a.type("T"); }

void constant(Ask& a) { a.set("value", a.w.random_tensor(a.type("dtype"), a.w.shape())); }

void placeholder(Ask& a) {
  const Shape shape = a.w.shape();
  a.w.defaults[-1] = a.w.random_tensor(a.type("dtype"), shape);
  a.set("shape", a.w.draw.chance(50) ? PartialShape(shape) : PartialShape::unknown());
}

void handle(Ask& a) {
  const DType dtype = a.type("dtype");
  a.set("shape", PartialShape(a.w.shape()));
  a.set("container", std::string());
  a.set("allowed_devices", AttrValue::Variant(std::vector<std::string>()));
  a.set("debug_name", std::string());
  a.set("shared_name", "s" + std::to_string(a.w.scene.seed) + "h" + std::to_string(a.w.scene.nodes.size()));
  a.set("dtype", dtype);
}

void read(Ask& a) { a.use("resource", a.w.variable_of_rank(held(a), 0), false); }
void ask_state(Ask& a) { a.use(a.op.inputs()[0].name, a.w.variable_of_rank(a.w.draw.chance(70) ? DType::f32 : DType::i32, 0), false); }

void assign(Ask& a) {
  Resident& var = a.w.variable_of_rank(held(a), 0);
  a.use("resource", var, true);
  a.put("value", a.w.wanted(var.dtype, var.shape));
}

void count_up(Ask& a) {
  a.use("resource", a.w.variable(held(a), Shape()), true);
  a.set("limit", a.w.draw.between(8, 30));
}

void gather(Ask& a) {
  Resident& var = a.w.variable_of_rank(held(a), 1);
  a.use("resource", var, false);
  a.set("batch_dims", 0);
  const Shape at = a.w.shape(0, 2);
  a.numbers("indices", indices(a.w.draw, at.count(), var.shape.dim(0)), at);
}

std::vector<int64_t> tuples(Draw& draw, int64_t rows, const Shape& shape, int64_t depth) {
  std::vector<int64_t> list;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < depth; ++k) list.push_back(draw.below(shape.dim(static_cast<int>(k))));
  }
  return list;
}

void rows_nd(Ask& a) {
  Resident& var = a.w.variable_of_rank(held(a), 1);
  const bool reads = a.op.name() == "ResourceGatherNd";
  a.use(a.op.inputs()[0].name, var, !reads);
  const int64_t depth = a.w.draw.between(1, var.shape.rank()), rows = a.w.draw.between(1, 3);
  a.numbers("indices", tuples(a.w.draw, rows, var.shape, depth), with_dims({rows, depth}));
  if (reads) return;
  std::vector<int64_t> dims = {rows};
  for (int i = static_cast<int>(depth); i < var.shape.rank(); ++i) dims.push_back(var.shape.dim(i));
  a.put("updates", a.w.wanted(var.dtype, with_dims(dims)));
  a.set("bad_indices_policy", std::string());
}

void scatter(Ask& a) {
  Resident& var = a.w.variable_of_rank(held(a), 1);
  a.use("resource", var, true);
  const Shape at = a.w.shape(0, 1);
  a.numbers("indices", indices(a.w.draw, at.count(), var.shape.dim(0)), at);
  std::vector<int64_t> dims(at.dims().begin(), at.dims().end());
  dims.insert(dims.end(), var.shape.dims().begin() + 1, var.shape.dims().end());
  a.put("updates", a.w.wanted(var.dtype, a.w.draw.chance(15) ? Shape() : with_dims(dims)));
}

// Slots are variables of the same type and shape; factors are scalars between 0 and 1.
void apply(Ask& a) {
  const bool sparse = a.op.find_attr("Tindices") != nullptr;
  Resident& var = a.w.variable_of_rank(held(a), sparse ? 1 : 0);
  const DType dtype = var.dtype;
  const Shape shape = var.shape;
  const int64_t rows = a.w.draw.between(1, 3);
  std::vector<const Resident*> taken = {&var};
  for (const ArgDef& arg : a.op.inputs()) {
    if (arg.name == "var") {
      a.use("var", var, true);
    } else if (arg.dtype == DType::resource) {
      Resident& slot = a.w.slot_of(var, taken);
      taken.push_back(&slot);
      a.use(arg.name, slot, true);
    } else if (arg.name == "indices") {
      a.numbers("indices", indices(a.w.draw, rows, shape.dim(0)));
    } else if (arg.name == "grad" || arg.name == "delta") {
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      if (sparse) dims[0] = rows;
      a.put(arg.name, a.w.wanted(dtype, with_dims(dims)));
    } else if (arg.dtype == DType::i64) {
      a.numbers(arg.name, {a.w.draw.between(1, 9)}, true);
    } else {
      Tensor factor = a.w.random_tensor(dtype, Shape());
      const double value = arg.name == "lr_power" ? -0.5 : a.w.draw.real(0.05, 0.95);
      if (dtype == DType::f32) *factor.as<float>() = static_cast<float>(value);
      if (dtype == DType::f64) *factor.as<double>() = value;
      if (dtype == DType::f16) *factor.as<Half>() = Half(static_cast<float>(value));
      if (dtype == DType::bf16) *factor.as<BFloat16>() = BFloat16(static_cast<float>(value));
      a.put(arg.name, a.w.source(factor, true));
    }
  }
}

// --- queues: an operation is ordered after the one before by a control edge, and what is taken was put before ---

Resident& queue_of(Ask& a, bool batches = false) {
  Workshop& w = a.w;
  if (!w.queues.empty() && w.draw.chance(70)) {
    Resident& one = w.queues[static_cast<size_t>(w.draw.below(static_cast<int64_t>(w.queues.size())))];
    if (one.batches || !batches) return one;
  }
  Resident fresh;
  std::vector<PartialShape> shapes;
  for (int64_t i = w.draw.between(1, 2); i > 0; --i) {
    fresh.components.push_back(w.draw.chance(70) ? DType::f32 : DType::i64);
    fresh.shapes.push_back(w.shape(0, 2));
    shapes.push_back(fresh.shapes.back());
  }
  fresh.place = w.draw.chance(60) ? static_cast<int>(w.draw.below(2)) : -1;
  NodeRecord record{"FIFOQueueV2", fresh.place, {}, {}, {{"component_types", fresh.components}}};
  fresh.batches = batches || w.draw.chance(60);
  if (fresh.batches) record.attrs.emplace_back("shapes", shapes);
  record.attrs.emplace_back("shared_name", "s" + std::to_string(w.scene.seed) + "q" + std::to_string(w.queues.size()));
  fresh.handle = {w.add(std::move(record)), 0};
  w.queues.push_back(fresh);
  return w.queues.back();
}

void enqueue_into(Ask& a, Resident& queue, int64_t rows) {
  std::vector<Port> ports;
  for (size_t i = 0; i < queue.components.size(); ++i) {
    std::vector<int64_t> dims(queue.shapes[i].dims().begin(), queue.shapes[i].dims().end());
    if (rows >= 0) dims.insert(dims.begin(), rows);
    ports.push_back(a.w.wanted(queue.components[i], with_dims(dims)));
  }
  a.set("Tcomponents", queue.components);
  a.set("timeout_ms", -1);
  a.puts("components", std::move(ports));
  a.use("handle", queue, true);
}

void enqueue(Ask& a) { enqueue_into(a, queue_of(a), a.op.name() == "QueueEnqueueManyV2" ? a.w.draw.between(0, 3) : -1); }

void dequeue(Ask& a) {
  const bool many = a.op.name() == "QueueDequeueManyV2";
  Resident& queue = queue_of(a, many);
  const int64_t count = a.w.draw.between(1, 3);
  // What it takes is put right before.
  Ask first(a.w, *a.w.ops.find(many ? "QueueEnqueueManyV2" : "QueueEnqueueV2"));
  enqueue_into(first, queue, many ? count : -1);
  if (first.propose() < 0) return;
  a.set("component_types", queue.components);
  a.set("timeout_ms", -1);
  if (many) a.numbers("n", {count}, true);
  a.use("handle", queue, true);
}

void queue_size(Ask& a) { a.use("handle", queue_of(a), true); }

constexpr HintRow kRows[] = {
    {"Const", constant},
    {"Placeholder", placeholder},
    {"VarHandleOp", handle},
    {"ReadVariableOp", read},
    {"VarIsInitializedOp", ask_state},
    {"VariableShape", ask_state},
    {"AssignVariableOp", assign},
    {"AssignAddVariableOp", assign},
    {"AssignSubVariableOp", assign},
    {"ResourceCountUpTo", count_up},
    {"ResourceGather", gather},
    {"ResourceGatherNd", rows_nd},
    {"ResourceScatterAdd", scatter},
    {"ResourceScatterDiv", scatter},
    {"ResourceScatterMax", scatter},
    {"ResourceScatterMin", scatter},
    {"ResourceScatterMul", scatter},
    {"ResourceScatterSub", scatter},
    {"ResourceScatterUpdate", scatter},
    {"ResourceScatterNdAdd", rows_nd},
    {"ResourceScatterNdMax", rows_nd},
    {"ResourceScatterNdMin", rows_nd},
    {"ResourceScatterNdSub", rows_nd},
    {"ResourceScatterNdUpdate", rows_nd},
    {"_ResourceApplyAdamW", apply},
    {"_ResourceApplyAverage", apply},
    {"_ResourceSparseApplyAdamW", apply},
    {"ResourceApplyAdaMax", apply},
    {"ResourceApplyAdadelta", apply},
    {"ResourceApplyAdagrad", apply},
    {"ResourceApplyAdagradDA", apply},
    {"ResourceApplyAdagradV2", apply},
    {"ResourceApplyAdam", apply},
    {"ResourceApplyAdamWithAmsgrad", apply},
    {"ResourceApplyAddSign", apply},
    {"ResourceApplyCenteredRMSProp", apply},
    {"ResourceApplyFtrl", apply},
    {"ResourceApplyFtrlV2", apply},
    {"ResourceApplyGradientDescent", apply},
    {"ResourceApplyKerasMomentum", apply},
    {"ResourceApplyMomentum", apply},
    {"ResourceApplyPowerSign", apply},
    {"ResourceApplyProximalAdagrad", apply},
    {"ResourceApplyProximalGradientDescent", apply},
    {"ResourceApplyRMSProp", apply},
    {"ResourceSparseApplyAdadelta", apply},
    {"ResourceSparseApplyAdagrad", apply},
    {"ResourceSparseApplyAdagradDA", apply},
    {"ResourceSparseApplyAdagradV2", apply},
    {"ResourceSparseApplyCenteredRMSProp", apply},
    {"ResourceSparseApplyFtrl", apply},
    {"ResourceSparseApplyFtrlV2", apply},
    {"ResourceSparseApplyKerasMomentum", apply},
    {"ResourceSparseApplyMomentum", apply},
    {"ResourceSparseApplyProximalAdagrad", apply},
    {"ResourceSparseApplyProximalGradientDescent", apply},
    {"ResourceSparseApplyRMSProp", apply},
    {"FIFOQueueV2", [](Ask& a) { queue_of(a); }},
    {"QueueEnqueueV2", enqueue},
    {"QueueEnqueueManyV2", enqueue},
    {"QueueDequeueV2", dequeue},
    {"QueueDequeueManyV2", dequeue},
    {"QueueSizeV2", queue_size},
};

}  // namespace

std::span<const HintRow> state_hints() { return kRows; }

}  // namespace dtg::random
