// Quantization: floats as whole numbers of 8, 16 and 32 bits and back (QuantizeV2, Dequantize), and there and back in one op
// (QuantizeAndDequantizeV2 to V4), with one range or one for each slice along an axis. The arithmetic is TensorFlow's, step by step.
// Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/watched.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

using Long = long long;

enum class Mode { combined, first, scaled };
enum class Rounding { away, even, up };

// What the slices of a tensor along an axis are: element i belongs to slice i / inner % slices.
struct Slices {
  int64_t count = 0, slices = 1, inner = 1;
  int64_t of(int64_t i) const { return i / inner % slices; }
};

struct QuantizeArgs {
  Slices slices;
  Mode mode = Mode::combined;
  Rounding rounding = Rounding::even;
  bool narrow = false, given = false, is_signed = true;
  float least_range = 0;
  double lowest = 0, highest = 0;  // of the quantized type
  int bits = 8;                    // of it
  DType dtype = DType::qi8;
};

// The bounds of a type as whole numbers, and its bits.
void set_type(QuantizeArgs* a, DType dtype) {
  a->dtype = dtype;
  a->bits = static_cast<int>(8 * dtype_size(dtype));
  a->is_signed = dtype != DType::qu8 && dtype != DType::qu16;
  a->lowest = a->is_signed ? -std::ldexp(1.0, a->bits - 1) : 0;
  a->highest = std::ldexp(1.0, a->is_signed ? a->bits - 1 : a->bits) - 1;
}

void store(void* data, DType dtype, int64_t i, int64_t value) {
  switch (dtype) {
    case DType::qi8: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(value); break;
    case DType::qu8: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value); break;
    case DType::qi16: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(value); break;
    case DType::qu16: static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(value); break;
    default: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); break;
  }
}

int32_t load(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::qi8: return static_cast<const int8_t*>(data)[i];
    case DType::qu8: return static_cast<const uint8_t*>(data)[i];
    case DType::qi16: return static_cast<const int16_t*>(data)[i];
    case DType::qu16: return static_cast<const uint16_t*>(data)[i];
    default: return static_cast<const int32_t*>(data)[i];
  }
}

// ---- QuantizeV2 --------------------------------------------------------------------------------------------

// One slice's way from a float to a whole number.
struct Quantizer {
  Quantizer(const QuantizeArgs& a, float given_min, float given_max) : args(a) {
    // Ranges that are next to nothing are taken apart a little, and hold 0.
    min = std::min(0.0f, given_min);
    const float apart = std::max(1.0f, std::max(std::fabs(given_min), std::fabs(given_max))) * a.least_range;
    max = std::max(0.0f, std::max(given_max, min + apart));
    if (a.mode == Mode::combined) {
      scale = static_cast<float>((a.highest - a.lowest) / static_cast<double>(max - min));
      half = a.is_signed ? static_cast<float>((a.highest - a.lowest + 1) / 2) : 0.0f;
    } else if (a.mode == Mode::first) {
      const double steps = std::ldexp(1.0, a.bits), range = (static_cast<double>(max) - static_cast<double>(min)) * (steps / (steps - 1));
      scale = static_cast<float>(steps / range);
      half = static_cast<float>(std::round(static_cast<double>(min) * static_cast<double>(scale)));
    } else {
      const auto low = static_cast<float>(a.lowest + (a.narrow ? 1 : 0)), high = static_cast<float>(a.highest);
      constexpr float kNone = std::numeric_limits<float>::max();
      const float from_min = low * min > 0 ? low / min : kNone, from_max = high * max > 0 ? high / max : kNone;
      scale = std::min(from_min, from_max);
      min = low / scale;
      max = high / scale;
    }
  }

  int64_t of(float x) const {
    if (std::isnan(x)) x = min;
    if (args.mode == Mode::first) {
      const double placed = std::round(static_cast<double>(x * scale)) - (static_cast<double>(half) - args.lowest);
      return static_cast<int64_t>(std::clamp(placed, args.lowest, args.highest));
    }
    const float within = std::max(std::min(x, max), min);
    if (args.mode == Mode::combined) {
      const float placed = (within - min) * scale;
      return clamped(args.is_signed ? std::round(placed - half) : std::floor(placed + 0.5f));
    }
    return clamped(args.rounding == Rounding::even ? std::nearbyint(within * scale) : std::round(within * scale));
  }
  int64_t clamped(float x) const { return static_cast<int64_t>(std::clamp(static_cast<double>(x), args.lowest, args.highest)); }

  const QuantizeArgs& args;
  float min = 0, max = 0, scale = 1, half = 0;
};

Status quantize_run(RunContext& c) {
  const auto& a = c.args<QuantizeArgs>();
  std::vector<Quantizer> ways;
  for (int64_t s = 0; s < a.slices.slices; ++s) {
    const float min = c.in<float>(1)[s], max = c.in<float>(2)[s];
    if (!(min <= max))
      return c.error("slice %lld has the range [%g, %g]", static_cast<Long>(s), static_cast<double>(min), static_cast<double>(max));
    ways.emplace_back(a, min, max);
    c.out<float>(1)[s] = ways.back().min;
    c.out<float>(2)[s] = ways.back().max;
  }
  for (const int64_t i : watched(a.slices.count)) {
    store(c.out<void>(0), a.dtype, i, ways[static_cast<size_t>(a.slices.of(i))].of(c.in<float>(0)[i]));
  }
  return {};
}

// ---- Dequantize --------------------------------------------------------------------------------------------

Status dequantize_run(RunContext& c) {
  const auto& a = c.args<QuantizeArgs>();
  struct Way {
    float scale, shift, before;
  };
  std::vector<Way> ways;
  for (int64_t s = 0; s < a.slices.slices; ++s) {
    const float min = c.in<float>(1)[s], max = c.in<float>(2)[s];
    const auto low = static_cast<float>(a.lowest), high = static_cast<float>(a.highest);
    if (a.mode == Mode::combined) {
      ways.push_back({(max - min) / (high - low), min, a.is_signed ? (high - low + 1) / 2.0f : 0.0f});
    } else if (a.mode == Mode::first) {
      const double steps = std::ldexp(1.0, a.bits);
      const double range = (static_cast<double>(max) - static_cast<double>(min)) * (steps / (steps - 1));
      const auto scale = static_cast<float>(range / steps);
      ways.push_back({scale, min == max ? min : std::round(min / scale) * scale, -low});
    } else {
      const float least = low + (a.narrow ? 1.0f : 0.0f);
      ways.push_back({a.lowest == 0 ? max / high : std::max(min / least, max / high), 0.0f, 0.0f});
    }
  }
  for (const int64_t i : watched(a.slices.count)) {
    const Way& way = ways[static_cast<size_t>(a.slices.of(i))];
    c.out<float>(0)[i] = (static_cast<float>(load(c.in<void>(0), a.dtype, i)) + way.before) * way.scale + way.shift;
  }
  return {};
}

// ---- QuantizeAndDequantize ---------------------------------------------------------------------------------

template <class T>
struct Round {
  Round(const QuantizeArgs& a, int bits, T low, T high) : given(a.given), rounding(a.rounding), min(low), max(high) {
    const T most = static_cast<T>(std::ldexp(1.0, a.is_signed ? bits - 1 : bits) - 1);
    const T least = a.is_signed ? static_cast<T>(-std::ldexp(1.0, bits - 1) + (a.narrow ? 1 : 0)) : T(0);
    constexpr T kNone = std::numeric_limits<T>::max();
    const T from_min = least * min > 0 ? least / min : kNone, from_max = most * max > 0 ? most / max : kNone;
    if (from_min < from_max) {
      scale = from_min;
      inverse = min / least;
      max = most * inverse;
    } else {
      scale = from_max;
      inverse = max / most;
      min = least * inverse;
    }
  }
  T of(T x) const {
    if (given) x = std::max(std::min(x, max), min);
    return (rounding == Rounding::up ? std::floor(x * scale + T(0.5)) : std::nearbyint(x * scale)) * inverse;
  }
  bool given;
  Rounding rounding;
  T min, max, scale = 1, inverse = 1;
};

template <class T>
Status round_run(RunContext& c) {
  const auto& a = c.args<QuantizeArgs>();
  const T* const x = c.in<T>(0);
  int bits = a.bits;
  if (bits == 0) {
    bits = *c.in<int32_t>(3);
    if (bits < 1 || bits > 63 || (a.is_signed && bits < 2))
      return c.error("num_bits is %d; %d to 63 are possible", bits, a.is_signed ? 2 : 1);
  }
  const auto slices = static_cast<size_t>(a.slices.slices);
  std::vector<T> low(slices), high(slices);
  if (a.given) {
    std::copy_n(c.in<T>(1), slices, low.begin());
    std::copy_n(c.in<T>(2), slices, high.begin());
    for (size_t s = 0; s < slices; ++s) {
      if (!(low[s] <= high[s]))
        return c.error("slice %zu has the range [%g, %g]", s, static_cast<double>(low[s]), static_cast<double>(high[s]));
    }
  } else {
    std::ranges::fill(low, std::numeric_limits<T>::max());
    std::ranges::fill(high, std::numeric_limits<T>::lowest());
    for (const int64_t i : watched(a.slices.count)) {
      const auto s = static_cast<size_t>(a.slices.of(i));
      low[s] = std::min(low[s], x[i]);
      high[s] = std::max(high[s], x[i]);
    }
  }
  std::vector<Round<T>> ways;
  for (size_t s = 0; s < slices; ++s) ways.emplace_back(a, bits, low[s], high[s]);
  for (const int64_t i : watched(a.slices.count)) c.out<T>(0)[i] = ways[static_cast<size_t>(a.slices.of(i))].of(x[i]);
  return {};
}

// What arrives passes where the input lay in its range.
template <class T>
Status round_gradient_run(RunContext& c) {
  const auto& a = c.args<QuantizeArgs>();
  for (const int64_t i : watched(a.slices.count)) {
    const int64_t s = a.slices.of(i);
    const T x = c.in<T>(1)[i];
    c.out<T>(0)[i] = x >= c.in<T>(2)[s] && x <= c.in<T>(3)[s] ? c.in<T>(0)[i] : T(0);
  }
  std::fill_n(c.out<T>(1), a.slices.slices, T(0));
  std::fill_n(c.out<T>(2), a.slices.slices, T(0));
  return {};
}

// ---- shapes, gradients, preparation ------------------------------------------------------------------------

// The ranges, inputs `first` and the next, are scalars, or with an axis vectors of its size.
Status check_ranges(InferContext& c, int input, int first) {
  const int64_t axis = c.integer("axis");
  const PartialShape& x = c.input(input);
  if (axis < -1 || (x.has_rank() && axis >= x.rank()))
    return c.error("axis is %lld; -1 for none, or a dimension of %s is needed", static_cast<Long>(axis), x.text().c_str());
  for (int i = first; i < first + 2; ++i) {
    DTG_TRY(c.require_rank(i, axis < 0 ? 0 : 1));
    if (axis < 0 || !x.has_rank() || !c.input(i).has_rank()) continue;
    const int64_t own = x.dim(static_cast<int>(axis)), given = c.input(i).dim(0);
    if (own >= 0 && given >= 0 && own != given)
      return c.error("%lld ranges for the %lld slices of %s", static_cast<Long>(given), static_cast<Long>(own), x.text().c_str());
  }
  return {};
}

Status quantize_shape(InferContext& c) {
  DTG_TRY(check_ranges(c, 0, 1));
  c.output(0, c.input(0));
  for (int i = 1; i < c.num_outputs(); ++i) {
    const int64_t axis = c.integer("axis");
    c.output(i,
             axis < 0 ? PartialShape::scalar() : PartialShape::vector(c.input(0).has_rank() ? c.input(0).dim(static_cast<int>(axis)) : -1));
  }
  return {};
}

// Where ranges are not given nobody looks at them.
Status round_shape(InferContext& c) {
  if (c.boolean("range_given")) return quantize_shape(c);
  const int64_t axis = c.integer("axis");
  if (axis < -1 || (c.input(0).has_rank() && axis >= c.input(0).rank()))
    return c.error("axis is %lld; -1 for none, or a dimension of %s is needed", static_cast<Long>(axis), c.input(0).text().c_str());
  return c.same_as_input(0);
}

Status round_gradient_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(0), c.input(1), "gradients and input");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  DTG_TRY(check_ranges(c, 1, 2));
  c.output(0, both.take());
  c.output(1, c.input(2));
  c.output(2, c.input(3));
  return {};
}

// dx = dy: as if nothing were rounded
Status straight_through(GradContext& c) {
  c.dx(0, c.dy());
  return {};
}

Status round_v4_grad(GradContext& c) {
  const Value flow =
      c.b().op("QuantizeAndDequantizeV4Grad", {c.dy(), c.input(0), c.input(1), c.input(2)}, {{"axis", c.attr<int64_t>("axis")}});
  if (!c.b().ok()) return c.b().status();
  for (int i = 0; i < 3; ++i) c.dx(i, flow.sibling(static_cast<uint32_t>(i)));
  return {};
}

void set_slices(PrepareContext& c, int input, QuantizeArgs* a) {
  const Shape& shape = c.input(input).shape;
  const int64_t axis = c.integer("axis");
  a->slices.count = shape.count();
  if (axis < 0) return;
  a->slices.slices = shape.dim(static_cast<int>(axis));
  a->slices.inner = std::max<int64_t>(shape.count(static_cast<int>(axis) + 1, shape.rank()), 1);
}

Mode mode_of(PrepareContext& c) {
  const auto& mode = c.attr<std::string>("mode");
  return mode == "MIN_COMBINED" ? Mode::combined : mode == "MIN_FIRST" ? Mode::first : Mode::scaled;
}

Status quantize_prepare(PrepareContext& c) {
  auto& a = *c.args<QuantizeArgs>();
  set_slices(c, 0, &a);
  set_type(&a, c.output(0).dtype);
  a.mode = mode_of(c);
  a.rounding = c.attr<std::string>("round_mode") == "HALF_TO_EVEN" ? Rounding::even : Rounding::away;
  if (a.rounding == Rounding::even && a.mode != Mode::scaled) return c.error("round_mode HALF_TO_EVEN is for mode SCALED only");
  a.narrow = c.boolean("narrow_range");
  a.least_range = static_cast<float>(c.attr<double>("ensure_minimum_range"));
  return c.sync(quantize_run);
}

Status dequantize_prepare(PrepareContext& c) {
  auto& a = *c.args<QuantizeArgs>();
  set_slices(c, 0, &a);
  set_type(&a, c.input(0).dtype);
  a.mode = mode_of(c);
  a.narrow = c.boolean("narrow_range");
  return c.sync(dequantize_run);
}

Status round_prepare(PrepareContext& c) {
  auto& a = *c.args<QuantizeArgs>();
  set_slices(c, 0, &a);
  a.is_signed = c.boolean("signed_input");
  a.given = c.boolean("range_given");
  a.narrow = c.boolean("narrow_range");
  a.bits = c.num_inputs() > 3 ? 0 : static_cast<int>(c.integer("num_bits"));
  if (a.bits > 63 || (a.bits != 0 && a.bits < (a.is_signed ? 2 : 1)))
    return c.error("num_bits is %d; %d to 63 are possible", a.bits, a.is_signed ? 2 : 1);
  if (c.num_inputs() == 3 && c.attr<std::string>("round_mode") == "HALF_UP") a.rounding = Rounding::up;
  return c.sync(c.input(0).dtype == DType::f64 ? round_run<double> : round_run<float>);
}

Status round_gradient_prepare(PrepareContext& c) {
  set_slices(c, 1, c.args<QuantizeArgs>());
  return c.sync(c.input(0).dtype == DType::f64 ? round_gradient_run<double> : round_gradient_run<float>);
}

constexpr const char* kQuantized = "T: {qint8, quint8, qint32, qint16, quint16}";
constexpr DTypeSet kQuantizedTypes{DType::qi8, DType::qu8, DType::qi32, DType::qi16, DType::qu16};
constexpr const char* kMode = "mode: {'MIN_COMBINED','MIN_FIRST','SCALED'} = 'MIN_COMBINED'";

OpDef&& with_round_attrs(OpDef&& def, bool bits_input) {
  std::move(def).input("input: T").input("input_min: T").input("input_max: T");
  if (bits_input) std::move(def).input("num_bits: int32", {.rank = 0});
  std::move(def).output("output: T").attr("signed_input: bool = true");
  if (!bits_input) std::move(def).attr("num_bits: int = 8");
  std::move(def).attr(bits_input ? "range_given: bool = true" : "range_given: bool = false");
  std::move(def).attr("T: {bfloat16, half, float, double}");
  if (!bits_input) std::move(def).attr("round_mode: {'HALF_TO_EVEN','HALF_UP'} = 'HALF_TO_EVEN'");
  return std::move(def).attr("narrow_range: bool = false").attr("axis: int = -1").shape(round_shape);
}

}  // namespace

void register_quantize(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("QuantizeV2")
              .input("input: float")
              .input("min_range: float")
              .input("max_range: float")
              .output("output: T")
              .output("output_min: float")
              .output("output_max: float")
              .attr(kQuantized)
              .attr(kMode)
              .attr("round_mode: {'HALF_AWAY_FROM_ZERO','HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
              .attr("narrow_range: bool = false")
              .attr("axis: int = -1")
              .attr("ensure_minimum_range: float = 0.01")
              .shape(quantize_shape)
              .gradient(nullptr)
              .doc("Floats as whole numbers of few bits that stand for a range, and the range that they stand for."));
  kernels.add({.op = "QuantizeV2", .types = {{"T", kQuantizedTypes}}, .prepare = quantize_prepare});
  ops.add(OpDef::make("Dequantize")
              .input("input: T")
              .input("min_range: float")
              .input("max_range: float")
              .output("output: dtype")
              .attr(kQuantized)
              .attr(kMode)
              .attr("narrow_range: bool = false")
              .attr("axis: int = -1")
              .attr("dtype: {bfloat16, float} = float")
              .shape(quantize_shape)
              .gradient(nullptr)
              .doc("The floats that quantized numbers stand for."));
  kernels.add({.op = "Dequantize", .types = {{"T", kQuantizedTypes}, {"dtype", DTypeSet{DType::f32}}}, .prepare = dequantize_prepare});
  constexpr DTypeSet kTypes{DType::f32, DType::f64};
  for (const char* name : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"}) {
    const std::string_view version = name;
    ops.add(with_round_attrs(OpDef::make(name), version.ends_with("3"))
                .gradient(version.ends_with("4") ? round_v4_grad : straight_through)
                .doc("Each element as the nearest of the values that a whole number of few bits can stand for."));
    kernels.add({.op = name, .types = {{"T", kTypes}}, .prepare = round_prepare});
  }
  ops.add(OpDef::make("QuantizeAndDequantizeV4Grad")
              .input("gradients: T")
              .input("input: T")
              .input("input_min: T")
              .input("input_max: T")
              .output("input_backprop: T")
              .output("input_min_backprop: T")
              .output("input_max_backprop: T")
              .attr("T: {bfloat16, half, float, double}")
              .attr("axis: int = -1")
              .shape(round_gradient_shape)
              .no_gradient()
              .doc("The gradients where the input lies in its range, zero elsewhere."));
  kernels.add({.op = "QuantizeAndDequantizeV4Grad", .types = {{"T", kTypes}}, .prepare = round_gradient_prepare});
}

}  // namespace dtg::ops
