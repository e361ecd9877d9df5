// What the value of a node is when constants alone decide it. Shape functions ask for axes, sizes and
// shapes; those come from Const, from the shapes of values already known, and from a little integer
// arithmetic between the two. Everything else answers "not known". Bounded depth, small tensors only.
#include <algorithm>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace dtg {
namespace {

constexpr int kDepth = 24;
constexpr int64_t kElements = 64;

// A small integer tensor: scalar or vector.
struct Ints {
  std::vector<int64_t> values;
  bool scalar = false;
};

class Tracer {
 public:
  explicit Tracer(const Graph& graph) : graph_(graph) {}

  std::optional<Ints> trace(Value value, int depth) const {
    if (depth > kDepth || !graph_.check(value).ok()) return {};
    const Node& node = graph_.node(value.node());
    const std::string& op = node.op->name();
    if (op == "Const") return literal(node.attr<Tensor>("value"));
    if (op == "Identity" || op == "StopGradient" || op == "Cast") return through(node, depth);
    if (op == "Shape" || op == "ShapeN") return shape(node.inputs[value.output()]);
    if (op == "Size" || op == "Rank") return size(node, op == "Rank");
    if (op == "Pack") return pack(node, depth);
    if (op == "ConcatV2") return concat(node, depth);
    if (op == "Reshape" || op == "ExpandDims" || op == "Squeeze") return reshape(node, depth);
    if (op == "StridedSlice") return strided_slice(node, depth);
    if (op == "Slice") return slice(node, depth);
    return arithmetic(node, op, depth);
  }

 private:
  static std::optional<Ints> literal(const Tensor& tensor) {
    if (!kIndex.has(tensor.dtype()) || tensor.shape().rank() > 1 || tensor.count() > kElements) return {};
    Ints ints{{}, tensor.shape().is_scalar()};
    for (int64_t i = 0; i < tensor.count(); ++i) ints.values.push_back(tensor.int_at(i));
    return ints;
  }
  std::optional<Ints> through(const Node& node, int depth) const {
    if (!kIndex.has(node.outputs[0].dtype)) return {};
    return trace(node.inputs[0], depth + 1);
  }
  std::optional<Ints> shape(Value of) const {
    const ValueInfo& info = graph_.info(of);
    if (info.dtype == DType::resource || !info.shape.complete()) return {};
    return Ints{{info.shape.dims().begin(), info.shape.dims().end()}, false};
  }
  std::optional<Ints> size(const Node& node, bool rank) const {
    const ValueInfo& info = graph_.info(node.inputs[0]);
    if (info.dtype == DType::resource || !info.shape.has_rank()) return {};
    if (rank) return Ints{{info.shape.rank()}, true};
    auto shape = info.shape.complete() ? info.shape.to_shape() : Result<Shape>(Shape());
    if (!info.shape.complete() || !shape.ok()) return {};
    return Ints{{shape.value().count()}, true};
  }
  std::optional<Ints> pack(const Node& node, int depth) const {
    Ints all;
    for (Value input : node.inputs) {
      const auto one = trace(input, depth + 1);
      if (!one || !one->scalar) return {};
      all.values.push_back(one->values[0]);
    }
    return all;
  }
  std::optional<Ints> concat(const Node& node, int depth) const {
    Ints all;
    for (Value input : node.inputs.first(node.inputs.size() - 1)) {
      const auto one = trace(input, depth + 1);
      if (!one || one->scalar) return {};
      all.values.insert(all.values.end(), one->values.begin(), one->values.end());
    }
    return all.values.size() <= kElements ? std::optional(all) : std::nullopt;
  }
  std::optional<Ints> reshape(const Node& node, int depth) const {
    auto ints = trace(node.inputs[0], depth + 1);
    const PartialShape& out = node.outputs[0].shape;
    if (!ints || !out.has_rank() || out.rank() > 1) return {};
    ints->scalar = out.rank() == 0;
    return ints;
  }
  std::optional<Ints> strided_slice(const Node& node, int depth) const {
    const auto from = trace(node.inputs[0], depth + 1), begin = trace(node.inputs[1], depth + 1), end = trace(node.inputs[2], depth + 1),
               stride = trace(node.inputs[3], depth + 1);
    if (!from || !begin || !end || !stride || from->scalar || begin->values.size() != 1 || stride->values[0] != 1) return {};
    if (node.attr<int64_t>("ellipsis_mask") || node.attr<int64_t>("new_axis_mask")) return {};
    const auto count = static_cast<int64_t>(from->values.size());
    const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + count : i, 0, count); };
    int64_t first = node.attr<int64_t>("begin_mask") & 1 ? 0 : clamp(begin->values[0]);
    if (node.attr<int64_t>("shrink_axis_mask") & 1) {
      const int64_t at = begin->values[0] < 0 ? begin->values[0] + count : begin->values[0];
      if (at < 0 || at >= count) return {};
      return Ints{{from->values[static_cast<size_t>(at)]}, true};
    }
    const int64_t last = node.attr<int64_t>("end_mask") & 1 ? count : clamp(end->values[0]);
    first = std::min(first, last);
    return Ints{{from->values.begin() + first, from->values.begin() + last}, false};
  }
  std::optional<Ints> slice(const Node& node, int depth) const {
    const auto from = trace(node.inputs[0], depth + 1), begin = trace(node.inputs[1], depth + 1), size = trace(node.inputs[2], depth + 1);
    if (!from || !begin || !size || from->scalar || begin->values.size() != 1) return {};
    const auto count = static_cast<int64_t>(from->values.size());
    const int64_t first = begin->values[0];
    const int64_t length = size->values[0] == -1 ? count - first : size->values[0];
    if (first < 0 || length < 0 || first > count || length > count - first) return {};
    return Ints{{from->values.begin() + first, from->values.begin() + first + length}, false};
  }
  static std::optional<int64_t> apply(const std::string& op, int64_t a, int64_t b) {
    int64_t result = 0;
    if (op == "AddV2" || op == "Add") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    if (op == "Sub") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    if (op == "Mul") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    if (op == "Maximum") return std::max(a, b);
    if (op == "Minimum") return std::min(a, b);
    if (op == "FloorDiv" && b > 0) return a >= 0 ? a / b : -((-a + b - 1) / b);
    return {};
  }
  std::optional<Ints> arithmetic(const Node& node, const std::string& op, int depth) const {
    if (node.inputs.size() != 2 || node.outputs.size() != 1 || !kIndex.has(node.outputs[0].dtype)) return {};
    if (!apply(op, 1, 1)) return {};
    const auto a = trace(node.inputs[0], depth + 1), b = a ? trace(node.inputs[1], depth + 1) : std::nullopt;
    if (!a || !b) return {};
    const size_t count = a->scalar ? b->values.size() : a->values.size();
    if (!a->scalar && !b->scalar && a->values.size() != b->values.size()) return {};
    Ints result{{}, a->scalar && b->scalar};
    for (size_t i = 0; i < count; ++i) {
      const auto one = apply(op, a->values[a->scalar ? 0 : i], b->values[b->scalar ? 0 : i]);
      if (!one) return {};
      result.values.push_back(*one);
    }
    return result;
  }

  const Graph& graph_;
};

}  // namespace

Tensor Graph::constant_value(Value value) const {
  if (!check(value).ok()) return {};
  const Node& owner = node(value.node());
  if (owner.op->name() == "Const") return owner.attr<Tensor>("value");
  const DType dtype = owner.outputs[value.output()].dtype;
  if (!kIndex.has(dtype)) return {};
  const auto ints = Tracer(*this).trace(value, 0);
  if (!ints) return {};
  auto tensor = Tensor::ints(dtype, ints->values);
  if (!tensor.ok()) return {};
  return ints->scalar ? tensor.value().reshaped(Shape()) : tensor.value();
}

}  // namespace dtg
