// Adds the nodes of position embeddings and bags of embeddings. Called by the thread that builds the model.
#include "nn/places.h"

#include <cmath>

#include "nn/layer.h"
#include "nn/scope.h"

namespace dtg {
namespace {

// The places of the steps of x, from `start`: int32 [steps].
Value places_of(Build& b, Value x, Value start) {
  const Value places = counting(b, dimension(b, b.shape(x), 1));
  return start.valid() ? b.add(places, b.cast(start, DType::i32)) : places;
}

// sin and cos by turns, of place / wavelength^(2 (i / 2) / width).
Value sines(Build& b, Value x, int64_t width, const PositionLayer& layer) {
  const DType dtype = b.info(x).dtype, wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  std::vector<double> rates, shifts;
  for (int64_t i = 0; i < width; ++i) {
    rates.push_back(std::pow(layer.wavelength, -static_cast<double>(i / 2 * 2) / static_cast<double>(width)));
    shifts.push_back(static_cast<double>(i % 2));
  }
  const auto row = [&](const std::vector<double>& values) {
    auto tensor = Tensor::of<double>(Shape::of({width}), std::span<const double>(values));
    if (!tensor.ok()) b.fail(tensor.status());
    return b.ok() ? b.cast(b.constant(tensor.take()), wide) : Value();
  };
  const Value places = b.op("ExpandDims", {b.cast(places_of(b, x, layer.start), wide), b.integer(1)});
  const Value angles = b.mul(places, row(rates)), cosine = row(shifts);
  if (!b.ok()) return {};
  const Value sine = b.sub(b.like(cosine, 1), cosine);
  return b.cast(b.add(b.mul(b.op("Sin", {angles}), sine), b.mul(b.op("Cos", {angles}), cosine)), dtype);
}

Status check_start(const Model& model, Value start) {
  if (!start.valid()) return {};
  DTG_TRY(model.graph().check(start).with_context("position embedding, start"));
  const ValueInfo& info = model.graph().info(start);
  if ((info.dtype == DType::i32 || info.dtype == DType::i64) && (!info.shape.has_rank() || info.shape.rank() == 0)) return {};
  return invalid_argument("position embedding: the start is %s; an int32 or int64 scalar is needed", described(model, start).c_str());
}

}  // namespace

Result<Value> position_embedding(Model& model, Value x, const PositionLayer& layer) {
  constexpr const char* kWhat = "position embedding";
  DTG_ASSIGN(const int64_t width, channels_of(model, x, kWhat, 3, 3));
  DTG_TRY(check_start(model, layer.start));
  const bool learned = layer.kind == PositionLayer::Kind::learned;
  const int64_t steps = model.graph().info(x).shape.dim(1);
  if (learned && (layer.longest < 1 || layer.longest > INT32_MAX || steps > layer.longest)) {
    return invalid_argument("%s: rows for %lld places, and the input is %s; as many rows as steps are needed", kWhat,
                            static_cast<long long>(layer.longest), described(model, x).c_str());
  }
  if (!learned && !(layer.wavelength > 0 && std::isfinite(layer.wavelength)))
    return invalid_argument("%s: the longest wavelength is %g; it must be above 0", kWhat, layer.wavelength);
  const NameScope scope(model.graph(), learned ? layer.name : std::string_view("sine_position_encoding"));
  Build b(model.graph());
  Value rows;
  if (learned) {
    DTG_ASSIGN(
        const NamedVariable table,
        variable_of(
            model, layer.weights_of,
            {.name = "embeddings", .dtype = b.info(x).dtype, .shape = Shape::of({layer.longest, width}), .initializer = layer.table}));
    rows = look_up(model, b, table, places_of(b, x, layer.start));
  } else {
    rows = sines(b, x, width, layer);
  }
  const Value y = b.add(x, rows);
  DTG_TRY(b.status());
  return y;
}

namespace {

constexpr const char* kBag = "embedding bag";

Status check_bag(const Model& model, Value ids, const EmbeddingBagLayer& layer) {
  DTG_TRY(model.graph().check(ids).with_context(kBag));
  const ValueInfo& info = model.graph().info(ids);
  if ((info.dtype != DType::i32 && info.dtype != DType::i64) || info.shape.rank() != 2)
    return invalid_argument("%s: the ids are %s; int32 or int64 of [batch, places] is needed", kBag, described(model, ids).c_str());
  if (layer.rows < 1 || layer.width < 1) {
    return invalid_argument("%s: %lld rows of %lld; at least 1 of each is needed", kBag, static_cast<long long>(layer.rows),
                            static_cast<long long>(layer.width));
  }
  if (layer.lengths.valid()) {
    DTG_TRY(model.graph().check(layer.lengths).with_context(kBag));
    const ValueInfo& lengths = model.graph().info(layer.lengths);
    if ((lengths.dtype != DType::i32 && lengths.dtype != DType::i64) || (lengths.shape.has_rank() && lengths.shape.rank() != 1))
      return invalid_argument("%s: the lengths are %s; int32 or int64 of [batch] is needed", kBag, described(model, layer.lengths).c_str());
  }
  if (!layer.weights.valid()) return {};
  DTG_TRY(model.graph().check(layer.weights).with_context(kBag));
  if (model.graph().info(layer.weights).dtype == DType::f32 && model.graph().info(layer.weights).shape.rank() == 2) return {};
  return invalid_argument("%s: the weights are %s; float32 of [batch, places] is needed", kBag, described(model, layer.weights).c_str());
}

// What counts of [batch, places], one after the other: where it stands in the matrix, and its bag. Only such ids are looked up, so rows
// that stand for nothing get no gradient.
class Bags {
 public:
  Bags(Build& b, Value ids, const EmbeddingBagLayer& layer) : b_(b), ids_(ids), shape_(b.shape(ids)) {
    const Value places = counting(b, dimension(b, shape_, 1));
    if (layer.lengths.valid()) {
      const Value counts = checked_lengths(b, layer.lengths, dimension(b, shape_, 1));
      const Value at = b.op("Where", {b.op("Less", {places, b.op("ExpandDims", {counts, b.integer(1)})})});
      where_ = at;
      bag_ = b.op("StridedSlice", {at, b.ints({0, 0}), b.ints({0, 1}), b.ints({1, 1})},
                  {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
    } else {
      const Value rows = b.op("ExpandDims", {counting(b, dimension(b, shape_, 0)), b.integer(1)});
      bag_ = b.reshape(b.add(rows, b.op("Mul", {b.op("ExpandDims", {places, b.integer(0)}), b.integer(0)})), b.ints({-1}));
    }
  }

  // Those entries of a matrix like the ids.
  Value of(Value matrix) { return where_.valid() ? b_.op("GatherNd", {matrix, where_}) : b_.reshape(matrix, b_.ints({-1})); }
  Value sum(Value parts) { return b_.op("UnsortedSegmentSum", {parts, bag_, dimension(b_, shape_, 0)}); }

 private:
  Build& b_;
  Value ids_, shape_, where_, bag_;
};

}  // namespace

Result<Value> embedding_bag(Model& model, Value ids, const EmbeddingBagLayer& layer) {
  using Combiner = EmbeddingBagLayer::Combiner;
  DTG_TRY(check_bag(model, ids, layer));
  const NameScope scope(model.graph(), layer.name);
  Build b(model.graph());
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{layer.rows, layer.width}));
  DTG_ASSIGN(const NamedVariable table,
             variable_of(model, layer.weights_of, {.name = "embeddings", .shape = shape, .initializer = layer.table}));
  Bags bags(b, ids, layer);
  const Value rows = look_up(model, b, table, bags.of(ids));
  const Value one = b.scalar(DType::f32, 1);
  const Value weights = b.op(
      "ExpandDims", {layer.weights.valid() ? bags.of(layer.weights) : b.op("OnesLike", {b.cast(bags.of(ids), DType::f32)}), b.integer(1)});
  Value y = bags.sum(layer.weights.valid() ? b.mul(rows, weights) : rows);
  if (layer.combiner != Combiner::sum) {
    const bool root = layer.combiner == Combiner::sqrtn;
    const Value total = bags.sum(root ? b.op("Square", {weights}) : weights);
    const Value safe = b.op("SelectV2", {b.op("Equal", {total, b.scalar(DType::f32, 0)}), one, total});
    y = b.div(y, root ? b.op("Sqrt", {safe}) : safe);
  }
  PartialShape out = PartialShape::of_rank(2);
  out.set_dim(0, b.ok() ? b.info(ids).shape.dim(0) : -1);
  out.set_dim(1, layer.width);
  y = shaped(b, y, out);
  DTG_TRY(b.status());
  return y;
}

}  // namespace dtg
