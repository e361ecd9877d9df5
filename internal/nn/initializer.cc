// Adds the nodes of a first value: a constant, or stateless random numbers scaled to what the initializer promises.
// Called by the thread that builds the model.
#include "nn/initializer.h"

#include <array>
#include <cmath>

#include "base/hash.h"

namespace dtg {
namespace {

// What remains of the deviation of a normal distribution that is cut at two deviations.
constexpr double kCutDeviation = 0.87962566103423978;
constexpr double kPhilox = 1;

Value filled(Build& build, DType dtype, const Shape& shape, double value) {
  return build.op("Fill", {build.ints(shape.dims()), build.scalar(dtype, value)});
}

// The random op's inputs: the key is the seed's, the high half of the counter the stream's number; the
// elements use up the low half.
Value random(Build& build, const char* op, DType dtype, const Shape& shape, RandomStream stream) {
  const uint64_t key = hash_mix(stream.seed), counter[2] = {stream.block, stream.number};
  auto key_tensor = Tensor::of<uint64_t>(Shape::of({1}), {&key, 1});
  auto counter_tensor = Tensor::of<uint64_t>(Shape::of({2}), counter);
  if (!key_tensor.ok()) build.fail(key_tensor.status());
  if (!counter_tensor.ok()) build.fail(counter_tensor.status());
  if (!build.ok()) return {};
  return build.op(op,
                  {build.ints(shape.dims()), build.constant(key_tensor.value()), build.constant(counter_tensor.value()),
                   build.scalar(DType::i32, kPhilox)},
                  {{"dtype", dtype}});
}

Value scaled(Build& build, Value value, double factor, double offset) {
  const Value product = factor == 1 ? value : build.mul(value, build.like(value, factor));
  return offset == 0 ? product : build.add(product, build.like(product, offset));
}

Value uniform(Build& build, DType dtype, const Shape& shape, RandomStream stream, double low, double high) {
  return scaled(build, random(build, "StatelessRandomUniformV2", dtype, shape, stream), high - low, low);
}

Value truncated(Build& build, DType dtype, const Shape& shape, RandomStream stream, double mean, double deviation) {
  return scaled(build, random(build, "StatelessTruncatedNormalV2", dtype, shape, stream), deviation, mean);
}

// The orthogonal factor of a matrix of normal numbers, with signs that make it one draw in equal measure.
Value orthogonal(Build& build, DType dtype, const Shape& shape, RandomStream stream) {
  if (shape.rank() < 2) {
    build.fail(invalid_argument("initialise %s: an orthogonal matrix has 2 dimensions or more", shape.text().c_str()));
    return {};
  }
  const int64_t columns = shape.dim(shape.rank() - 1), rows = shape.count(0, shape.rank() - 1);
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  auto tall = Shape::make(std::array{std::max(rows, columns), std::min(rows, columns)});
  if (!tall.ok()) build.fail(tall.status());
  if (!build.ok() || rows == 0 || columns == 0) return filled(build, dtype, shape, 0);
  const Value q = build.op("Qr", {random(build, "StatelessRandomNormalV2", wide, tall.value(), stream)});
  if (!build.ok()) return {};
  const Value signs = build.op("Sign", {build.op("MatrixDiagPart", {q.sibling(1)})});
  Value made = build.mul(q, signs);
  if (rows < columns) made = build.op("Transpose", {made, build.ints({1, 0})});
  made = build.reshape(made, build.ints(shape.dims()));
  return build.ok() ? build.cast(made, dtype) : Value();
}

}  // namespace

Fans fans_of(const Shape& kernel) {
  const int rank = kernel.rank();
  if (rank == 0) return {};
  if (rank == 1) return {static_cast<double>(kernel.dim(0)), static_cast<double>(kernel.dim(0))};
  const auto window = static_cast<double>(kernel.count(0, rank - 2));
  return {window * static_cast<double>(kernel.dim(rank - 2)), window * static_cast<double>(kernel.dim(rank - 1))};
}

namespace {

// `shape` of a kernel that may be larger.
Value drawn(Build& build, const Initializer& initializer, DType dtype, const Shape& shape, const Shape& kernel, RandomStream stream) {
  using Kind = Initializer::Kind;
  if (initializer.kind > Kind::constant && !dtype_is_floating(dtype)) {
    build.fail(invalid_argument("initialise %s%s: random initializers make floating-point values only; use a constant", dtype_name(dtype),
                                shape.text().c_str()));
    return {};
  }
  const Fans fans = fans_of(kernel);
  // A kernel without elements has no weights to balance, and must not divide by zero.
  const double fan_in = std::max(fans.in, 1.0), fan_both = std::max(fans.in + fans.out, 1.0);
  const double a = initializer.a, b = initializer.b;
  switch (initializer.kind) {
    case Kind::zeros: return filled(build, dtype, shape, 0);
    case Kind::ones: return filled(build, dtype, shape, 1);
    case Kind::constant: return filled(build, dtype, shape, a);
    case Kind::uniform: return uniform(build, dtype, shape, stream, a, b);
    case Kind::normal: return scaled(build, random(build, "StatelessRandomNormalV2", dtype, shape, stream), b, a);
    case Kind::truncated_normal: return truncated(build, dtype, shape, stream, a, b);
    case Kind::glorot_uniform: {
      const double limit = std::sqrt(6 / fan_both);
      return uniform(build, dtype, shape, stream, -limit, limit);
    }
    case Kind::he_uniform: {
      const double limit = std::sqrt(6 / fan_in);
      return uniform(build, dtype, shape, stream, -limit, limit);
    }
    case Kind::glorot_normal: return truncated(build, dtype, shape, stream, 0, std::sqrt(2 / fan_both) / kCutDeviation);
    case Kind::he_normal: return truncated(build, dtype, shape, stream, 0, std::sqrt(2 / fan_in) / kCutDeviation);
    case Kind::orthogonal: return orthogonal(build, dtype, shape, stream);
  }
  build.fail(invalid_argument("initialise a variable: initializer %d is unknown", static_cast<int>(initializer.kind)));
  return {};
}

}  // namespace

Value initial_value(Build& build, const Initializer& initializer, DType dtype, const Shape& shape, RandomStream stream) {
  const Value all = drawn(build, initializer, dtype, shape, shape, stream);
  const int64_t from = initializer.ones_from, end = initializer.ones_end;
  if (end <= from || !build.ok()) return all;
  if (shape.rank() != 1 || from < 0 || end > shape.dim(0)) {
    build.fail(invalid_argument("initialise %s: elements %lld to %lld are not all in it", shape.text().c_str(),
                                static_cast<long long>(from), static_cast<long long>(end)));
    return {};
  }
  const Value before = build.op("Slice", {all, build.ints({0}), build.ints({from})});
  const Value after = build.op("Slice", {all, build.ints({end}), build.ints({-1})});
  return build.op("ConcatV2", {before, filled(build, dtype, Shape::of({end - from}), 1), after, build.integer(0)});
}

namespace {

using Kind = Initializer::Kind;

bool is_random(Kind kind) { return kind > Kind::constant && kind != Kind::orthogonal; }
bool is_truncated(Kind kind) { return kind == Kind::truncated_normal || kind == Kind::glorot_normal || kind == Kind::he_normal; }

// The elements of the whole from number `first` on. The random ops draw in groups (device/cpu/philox.h): what is drawn begins at a group,
// and what is not asked for is cut off.
Value drawn_from(Build& build, const Initializer& initializer, DType dtype, const Shape& whole, int64_t first, const Shape& shape,
                 RandomStream stream) {
  const int64_t group = dtype == DType::f64 ? 2 : 4, before = first % group;
  const uint64_t blocks = is_truncated(initializer.kind) ? static_cast<uint64_t>(group) * 64 : 1;
  stream.block = static_cast<uint64_t>(first / group) * blocks;
  const Value all = drawn(build, initializer, dtype, Shape::of({before + shape.count()}), whole, stream);
  return build.reshape(build.op("Slice", {all, build.ints({before}), build.ints({shape.count()})}), build.ints(shape.dims()));
}

}  // namespace

Value initial_part(Build& build, const Initializer& initializer, DType dtype, const Shape& whole, const InitialPart& part,
                   RandomStream stream) {
  const bool plain = initializer.ones_end <= initializer.ones_from;
  if (plain && initializer.kind <= Kind::constant) return drawn(build, initializer, dtype, part.shape, whole, stream);
  // A draw of no elements has no group either.
  if (plain && part.axis == 0 && is_random(initializer.kind) && part.shape.count() > 0) {
    return drawn_from(build, initializer, dtype, whole, part.first * part.shape.count(1, part.shape.rank()), part.shape, stream);
  }
  std::vector<int64_t> begin(static_cast<size_t>(whole.rank()), 0);
  begin[static_cast<size_t>(part.axis)] = part.first;
  const Value all = initial_value(build, initializer, dtype, whole, stream);
  return build.op("Slice", {all, build.ints(begin), build.ints(part.shape.dims())});
}

}  // namespace dtg
