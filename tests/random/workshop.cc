// Trying nodes, and finding values of the right kind among them.
#include "random/workshop.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtg::random {
namespace {

constexpr int64_t kLargest = 600;  // elements of a value; small values find the same defects sooner

double special(Draw& draw) {
  const std::vector<double> list = {
      0.0,          -0.0,  1.0,  -1.0,   std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
      std::nan(""), 1e-40, 3e38, 65504.0};
  return draw.pick(list);
}

template <class T>
void fill(Draw& draw, const Tensor& tensor) {
  const bool odd = draw.chance(4);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    T& at = tensor.as<T>()[i];
    if constexpr (std::is_same_v<T, bool>) at = draw.chance(50);
    else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      at = T(static_cast<float>(odd && draw.chance(20) ? special(draw) : draw.real(-2, 2)));
    else if constexpr (std::is_floating_point_v<T>) at = static_cast<T>(odd && draw.chance(20) ? special(draw) : draw.real(-2, 2));
    else if constexpr (std::is_unsigned_v<T>) at = static_cast<T>(odd && draw.chance(20) ? std::numeric_limits<T>::max() : draw.below(7));
    else at = static_cast<T>(odd && draw.chance(20) ? std::numeric_limits<T>::min() : draw.between(-3, 6));
  }
}

}  // namespace

Workshop::Workshop(const OpTable& table, const KernelTable& kernels, Pool& pool, Tally& total, const Wishes& what, uint64_t seed)
    : draw(seed), tally(total), wishes(what), ops(table), graph_(Graph::create(&table).take()), interpreter_(kernels, pool) {
  scene.seed = seed;
  const std::vector<std::vector<int64_t>> palettes = {{1, 2, 3}, {2, 3, 4}, {1, 4, 5}, {0, 1, 2},
                                                      {1, 1, 7}, {3, 3, 3}, {2, 5, 8}, {1, 16, 3}};
  sizes_ = draw.pick(palettes);
}

const Tensor& Workshop::tensor(const Port& port) const {
  return values_[static_cast<size_t>(port.node)][static_cast<size_t>(port.output)].tensor;
}
const ValueInfo& Workshop::info(const Port& port) const {
  return graph_->node(ids_[static_cast<size_t>(port.node)]).outputs[static_cast<size_t>(port.output)];
}

Result<NodeId> Workshop::add_to_graph(const NodeRecord& record) {
  std::vector<Value> inputs;
  for (const Port& port : record.inputs) {
    if (port.node < 0) return invalid_argument("%s: an input could not be made", record.op.c_str());
    inputs.push_back(value(port));
  }
  std::vector<NodeId> controls;
  for (int control : record.controls) controls.push_back(ids_[static_cast<size_t>(control)]);
  std::vector<Attr> attrs;
  for (const auto& [name, attr] : record.attrs) attrs.push_back({name, attr});
  return graph_->add({.op = record.op, .inputs = inputs, .controls = controls, .attrs = attrs});
}

int Workshop::add(NodeRecord record) {
  const auto added = add_to_graph(record);
  if (!added.ok() || !run(record, added.value())) {
    ++tally.refused[record.op];
    return -1;
  }
  return static_cast<int>(scene.nodes.size()) - 1;
}

int Workshop::add_untried(NodeRecord record) {
  const auto added = add_to_graph(record);
  if (!added.ok()) return -1;
  publish(std::move(record), added.value(), std::vector<Datum>(graph_->node(added.value()).outputs.size()));
  return static_cast<int>(scene.nodes.size()) - 1;
}

bool Workshop::run(const NodeRecord& record, NodeId id) {
  std::vector<Datum> inputs, outputs;
  for (const Port& port : record.inputs) inputs.push_back(values_[static_cast<size_t>(port.node)][static_cast<size_t>(port.output)]);
  const Node& node = graph_->node(id);
  if (record.op == "Placeholder") {
    const Tensor& fed = defaults[-1];
    outputs.push_back({fed, {}, {fed.dtype(), DType::invalid, fed.shape()}});
  } else if (!interpreter_.call(node, inputs, outputs).ok()) {
    return false;
  }
  for (const Datum& datum : outputs) {
    if (datum.tensor.valid() && datum.tensor.count() > kLargest) return false;
  }
  publish(record, id, std::move(outputs));
  return true;
}

void Workshop::publish(NodeRecord record, NodeId id, std::vector<Datum> outputs) {
  ++tally.accepted[record.op];
  const int at = static_cast<int>(scene.nodes.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].tensor.valid()) known.push_back({{at, static_cast<int>(o)}, outputs[o].tensor});
  }
  if (record.op == "Placeholder") defaults[at] = defaults[-1];
  scene.nodes.push_back(std::move(record));
  ids_.push_back(id);
  values_.push_back(std::move(outputs));
  exact.push_back(false);
}

bool Workshop::adopt(uint32_t from) {
  std::map<NodeId, int> index;
  for (size_t i = 0; i < ids_.size(); ++i) index[ids_[i]] = static_cast<int>(i);
  for (NodeId id = from; id < graph_->node_count(); ++id) {
    const Node& node = graph_->node(id);
    NodeRecord record;
    record.op = node.op->name();
    for (Value input : node.inputs) {
      const auto at = index.find(input.node());
      if (at == index.end()) return false;
      record.inputs.push_back({at->second, static_cast<int>(input.output())});
    }
    for (NodeId control : node.controls) {
      const auto at = index.find(control);
      if (at == index.end()) return false;
      record.controls.push_back(at->second);
    }
    for (const Attr& attr : node.attrs) {
      // The number of another node, which here is that of the scene.
      const auto at = attr.name == Graph::kExtendsAttr ? index.find(static_cast<NodeId>(*attr.value.get<int64_t>())) : index.end();
      record.attrs.emplace_back(std::string(attr.name), at == index.end() ? attr.value : AttrValue(int64_t{at->second}));
    }
    if (!run(record, id)) return false;
    index[id] = static_cast<int>(scene.nodes.size()) - 1;
  }
  return true;
}

// Recent values are preferred, so that chains get long.
std::optional<Known> Workshop::find(DType dtype, int rank_min, int rank_max) {
  const auto count = static_cast<int64_t>(known.size());
  for (int attempt = 0; attempt < 12 && count > 0; ++attempt) {
    const int64_t back = draw.chance(50) ? draw.below(std::min<int64_t>(count, 8)) : draw.below(count);
    const Known& one = known[static_cast<size_t>(count - 1 - back)];
    const int rank = one.tensor.shape().rank();
    if (one.tensor.dtype() == dtype && rank >= rank_min && rank <= rank_max) return one;
  }
  return {};
}

Port Workshop::wanted(DType dtype, const Shape& shape) {
  if (draw.chance(85)) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const auto one = find(dtype, shape.rank(), shape.rank());
      if (one && one->tensor.shape() == shape) return one->port;
    }
  }
  const auto other = draw.chance(50) ? find(dtype) : std::nullopt;
  if (other && other->tensor.count() == shape.count()) {
    const int node = add({"Reshape", -1, {other->port, ints(DType::i32, {shape.dims().begin(), shape.dims().end()}, false)}, {}, {}});
    if (node >= 0) return {node, 0};
  }
  if (other && other->tensor.count() == 1 && other->tensor.shape().rank() <= shape.rank()) {
    const int node = add({"BroadcastTo", -1, {other->port, ints(DType::i32, {shape.dims().begin(), shape.dims().end()}, false)}, {}, {}});
    if (node >= 0) return {node, 0};
  }
  return source(dtype, shape);
}

Port Workshop::any(DType dtype, int rank_min, int rank_max) {
  if (favourite.node >= 0 && draw.chance(80)) {
    const Tensor& one = tensor(favourite);
    if (one.dtype() == dtype && one.shape().rank() >= rank_min && one.shape().rank() <= rank_max) return favourite;
  }
  if (draw.chance(90)) {
    if (const auto one = find(dtype, rank_min, rank_max)) return one->port;
  }
  return wanted(dtype, shape(rank_min, rank_max));
}

Port Workshop::constant(const Tensor& value) { return {add({"Const", -1, {}, {}, {{"value", value}, {"dtype", value.dtype()}}}), 0}; }

Port Workshop::source(const Tensor& value, bool means_something) {
  const int kind = static_cast<int>(draw.below(100));
  if (kind < (means_something ? 70 : 35)) return constant(value);
  PartialShape shape = value.shape();
  if (draw.chance(40)) {
    count("open_shape");
    if (draw.chance(50)) shape = PartialShape::unknown();
    for (int i = 0; i < shape.rank(); ++i) {
      if (draw.chance(50)) shape.set_dim(i, -1);
    }
  }
  defaults[-1] = value;
  const int node = add({"Placeholder", -1, {}, {}, {{"dtype", value.dtype()}, {"shape", shape}}});
  if (node < 0) return {};
  exact[static_cast<size_t>(node)] = means_something;
  return {node, 0};
}

Port Workshop::source(DType dtype, const Shape& shape) {
  if (draw.chance(15) && kReal.has(dtype)) {
    Resident& var = variable(dtype, shape);
    const int node = add({"ReadVariableOp", -1, {var.handle}, controls_for(var, false), {{"dtype", dtype}}});
    if (node >= 0) {
      done(var, node, false);
      return {node, 0};
    }
  }
  return source(random_tensor(dtype, shape), false);
}

Port Workshop::ints(DType dtype, const std::vector<int64_t>& values, const Shape& shape) {
  auto made = Tensor::ints(dtype == DType::i64 ? DType::i64 : DType::i32, values);
  return made.ok() ? source(made.value().reshaped(shape), true) : Port();
}
Port Workshop::ints(DType dtype, const std::vector<int64_t>& values, bool scalar) {
  return ints(dtype, values, scalar ? Shape() : Shape::of({static_cast<int64_t>(values.size())}));
}

Resident& Workshop::variable_of_rank(DType dtype, int rank_min) {
  for (int attempt = 0; attempt < 6 && !variables.empty(); ++attempt) {
    Resident& one = variables[static_cast<size_t>(draw.below(static_cast<int64_t>(variables.size())))];
    if (one.dtype == dtype && one.shape.rank() >= rank_min) return one;
  }
  return variable(dtype, shape(rank_min, std::max(rank_min, 2)));
}

Resident& Workshop::variable(DType dtype, const Shape& shape) {
  for (int attempt = 0; attempt < 6 && !variables.empty(); ++attempt) {
    Resident& one = variables[static_cast<size_t>(draw.below(static_cast<int64_t>(variables.size())))];
    if (one.dtype == dtype && one.shape == shape) return one;
  }
  return new_variable(dtype, shape, draw.chance(60) ? static_cast<int>(draw.below(2)) : -1);
}

Resident& Workshop::slot_of(const Resident& owner, std::span<const Resident* const> taken) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    Resident& one = variables[static_cast<size_t>(draw.below(static_cast<int64_t>(variables.size())))];
    if (std::ranges::find(taken, &one) == taken.end() && one.dtype == owner.dtype && one.shape == owner.shape && one.place == owner.place)
      return one;
  }
  return new_variable(owner.dtype, owner.shape, owner.place);
}

// With its first value, which a run of its own gives it.
Resident& Workshop::new_variable(DType dtype, const Shape& shape, int place) {
  Resident fresh;
  fresh.dtype = dtype;
  fresh.shape = shape;
  fresh.place = place;
  PartialShape declared = shape;
  if (draw.chance(15)) {
    declared = PartialShape::unknown();
    count("open_variable");
  }
  const std::string name = "s" + std::to_string(scene.seed) + "v" + std::to_string(variables.size());
  fresh.handle = {add({"VarHandleOp", place, {}, {}, {{"dtype", dtype}, {"shape", declared}, {"shared_name", name}}}), 0};
  fresh.assign = add({"AssignVariableOp", -1, {fresh.handle, constant(random_tensor(dtype, shape))}, {}, {{"dtype", dtype}}});
  variables.push_back(fresh);
  return variables.back();
}

// Every legal way to stand to the effects that are there: after the last write, after the reads, or no edge at all.
std::vector<int> Workshop::controls_for(const Resident& resident, bool writes) {
  std::vector<int> controls;
  const int kind = static_cast<int>(draw.below(100));
  // What a queue gives is determined only where its operations are in order.
  const bool after_write = wishes.ordered || kind < 55 || !resident.components.empty();
  if (resident.last_write >= 0 && after_write) controls.push_back(resident.last_write);
  if (resident.last_write >= 0 && !after_write) count("unordered_effect");
  if (writes && (kind < 25 || kind > 85)) {
    for (int read : resident.reads) controls.push_back(read);
  }
  return controls;
}

void Workshop::done(Resident& resident, int node, bool writes) {
  if (writes) {
    resident.last_write = node;
    resident.reads.clear();
  } else {
    resident.reads.push_back(node);
  }
}

Shape Workshop::shape(int rank_min, int rank_max) {
  static constexpr int kRanks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4};
  int rank = kRanks[draw.below(9)];
  rank = std::min(std::max(rank, rank_min), rank_max);
  for (;;) {
    std::vector<int64_t> dims;
    for (int i = 0; i < rank; ++i) dims.push_back(draw.chance(8) ? 1 : draw.pick(sizes_));
    auto made = Shape::make(dims);
    if (made.ok() && made.value().count() <= kLargest / 2) return made.take();
  }
}

Tensor Workshop::random_tensor(DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  switch (dtype) {
    case DType::f32: fill<float>(draw, tensor); break;
    case DType::f64: fill<double>(draw, tensor); break;
    case DType::f16: fill<Half>(draw, tensor); break;
    case DType::bf16: fill<BFloat16>(draw, tensor); break;
    case DType::i8: fill<int8_t>(draw, tensor); break;
    case DType::i16: fill<int16_t>(draw, tensor); break;
    case DType::i32: fill<int32_t>(draw, tensor); break;
    case DType::i64: fill<int64_t>(draw, tensor); break;
    case DType::u8: fill<uint8_t>(draw, tensor); break;
    case DType::u16: fill<uint16_t>(draw, tensor); break;
    case DType::u32: fill<uint32_t>(draw, tensor); break;
    case DType::u64: fill<uint64_t>(draw, tensor); break;
    case DType::boolean: fill<bool>(draw, tensor); break;
    default: std::memset(tensor.data(), 0, static_cast<size_t>(tensor.bytes()));
  }
  return tensor;
}

}  // namespace dtg::random
