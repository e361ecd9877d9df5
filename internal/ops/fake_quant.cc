// Fake quantisation: floats rounded to what a whole number of few bits could hold between two bounds, with fixed bounds, bounds
// that are values, or bounds per channel. The gradient passes where a value lies within the bounds; elsewhere it is the bounds'.
#include <algorithm>
#include <cmath>

#include "device/cpu/copy.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "ops/all.h"

namespace dtg::ops {
namespace {

// Bounds, moved so that 0 is one of the steps.
struct Nudged {
  float low = 0, high = 0, scale = 1, inverse = 1, zero = 0;
  bool nothing = false;  // both bounds are 0: so is every value

  Nudged(float min, float max, int bits, bool narrow) : nothing(min == 0.0f && max == 0.0f) {
    const float first = narrow ? 1.0f : 0.0f, last = static_cast<float>((1 << bits) - 1);
    if (nothing) return;
    scale = (max - min) / (last - first);
    const float from_min = first - min / scale;
    const float place = from_min < first ? first : from_min > last ? last : std::round(from_min);
    low = (first - place) * scale;
    high = (last - place) * scale;
    inverse = 1.0f / scale;
    zero = std::floor(-low * inverse + 0.5f);
  }
  float of(float x) const {
    if (nothing) return 0.0f;
    const float shifted = std::max(std::min(x, high), low) - low;
    return std::floor(shifted * inverse - zero + 0.5f) * scale;
  }
};

// ---- shapes and gradients ----------------------------------------------------------------------------------

Status check_bits(InferContext& c) {
  const int64_t bits = c.integer("num_bits");
  if (bits >= 2 && bits <= 16) return {};
  return c.error("num_bits is %lld; it must be in [2, 16]", static_cast<long long>(bits));
}

Status fixed_shape(InferContext& c) {
  DTG_TRY(check_bits(c));
  if (!(c.attr<double>("min") < c.attr<double>("max")))
    return c.error("min %g must be below max %g", c.attr<double>("min"), c.attr<double>("max"));
  auto both = PartialShape::merge(c.input(0), c.input(c.num_inputs() - 1), "gradients and inputs");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  c.output(0, both.take());
  return {};
}

// Inputs [values, min, max], or [gradients, values, min, max] for a gradient op. Bounds are scalars, or one per channel.
Status bounded_shape(InferContext& c) {
  DTG_TRY(check_bits(c));
  const int first = c.num_inputs() - 2;
  auto both = PartialShape::merge(c.input(0), c.input(first - 1), "gradients and inputs");
  auto bounds = PartialShape::merge(c.input(first), c.input(first + 1), "min and max");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  if (!bounds.ok()) return c.error("%s", bounds.status().message().c_str());
  const PartialShape values = both.take(), each = bounds.take();
  if (values.has_rank() && each.rank() == 1) {
    if (values.rank() == 0) return c.error("a scalar has no channels");
    const int64_t channels = values.dim(values.rank() - 1);
    if (channels >= 0 && each.dim(0) >= 0 && channels != each.dim(0)) {
      return c.error("%lld bounds for values of shape %s", static_cast<long long>(each.dim(0)), values.text().c_str());
    }
  }
  c.output(0, values);
  for (int i = 1; i < c.num_outputs(); ++i) c.output(i, each);
  return {};
}

Status fixed_grad(GradContext& c) {
  c.dx(0, c.b().op("FakeQuantWithMinMaxArgsGradient", {c.dy(), c.input(0)},
                   {{"min", c.attr<double>("min")},
                    {"max", c.attr<double>("max")},
                    {"num_bits", c.attr<int64_t>("num_bits")},
                    {"narrow_range", c.attr<bool>("narrow_range")}}));
  return {};
}

Status bounded_grad(GradContext& c) {
  const Value flow = c.b().op(c.node().op->name() + "Gradient", {c.dy(), c.input(0), c.input(1), c.input(2)},
                              {{"num_bits", c.attr<int64_t>("num_bits")}, {"narrow_range", c.attr<bool>("narrow_range")}});
  if (!c.b().ok()) return c.b().status();
  c.dx(0, flow);
  c.dx(1, flow.sibling(1));
  c.dx(2, flow.sibling(2));
  return {};
}

// ---- kernels -----------------------------------------------------------------------------------------------

struct QuantArgs {
  int64_t count = 0, channels = 1;
  int values = 0;   // input
  int bounds = -1;  // the first of two inputs, or the attributes
  float min = 0, max = 0;
  int bits = 8;
  bool narrow = false;
};

Status quant_prepare_as(PrepareContext& c, SyncFn run, int values, int bounds) {
  auto* a = c.args<QuantArgs>();
  a->count = c.input(values).shape.count();
  a->values = values;
  a->bounds = bounds;
  if (bounds < 0) a->min = static_cast<float>(c.attr<double>("min")), a->max = static_cast<float>(c.attr<double>("max"));
  else a->channels = c.input(bounds).shape.count();
  a->bits = static_cast<int>(c.integer("num_bits"));
  a->narrow = c.boolean("narrow_range");
  return c.sync(run);
}

constexpr int64_t kBlock = 1 << 14;  // elements between two looks

Nudged bounds_of(RunContext& c, const QuantArgs& a, int64_t channel) {
  if (a.bounds < 0) return Nudged(a.min, a.max, a.bits, a.narrow);
  return Nudged(c.in<float>(a.bounds)[channel], c.in<float>(a.bounds + 1)[channel], a.bits, a.narrow);
}

Status quant_run(RunContext& c) {
  const auto& a = c.args<QuantArgs>();
  for (int64_t k = 0; k < a.channels; ++k) {
    const Nudged nudged = bounds_of(c, a, k);
    for (int64_t i = k; i < a.count;) {
      Interrupt::look();
      for (const int64_t end = std::min(a.count, i + kBlock * a.channels); i < end; i += a.channels) {
        c.out<float>(0)[i] = nudged.of(c.in<float>(0)[i]);
      }
    }
  }
  return {};
}

// What arrives at a value stays with it inside the bounds, and is added to the bound that it crossed otherwise.
Status quant_gradient_run(RunContext& c) {
  const auto& a = c.args<QuantArgs>();
  const float *const dy = c.in<float>(0), *const x = c.in<float>(a.values);
  for (int64_t k = 0; k < a.channels; ++k) {
    const Nudged nudged = bounds_of(c, a, k);
    float below = 0, above = 0;
    Lookout lookout;
    for (int64_t i = k; i < a.count; i += a.channels) {
      lookout.after(3);
      const bool low = !nudged.nothing && x[i] < nudged.low, high = !nudged.nothing && x[i] > nudged.high;
      const float own = dy[i];
      c.out<float>(0)[i] = low || high ? 0.0f : own;
      if (low) below += own;
      if (high) above += own;
    }
    if (a.bounds < 0) continue;
    c.out<float>(1)[k] = below;
    c.out<float>(2)[k] = above;
  }
  return {};
}

Status fixed_prepare(PrepareContext& c) { return quant_prepare_as(c, quant_run, 0, -1); }
Status bounded_prepare(PrepareContext& c) { return quant_prepare_as(c, quant_run, 0, 1); }
Status fixed_gradient_prepare(PrepareContext& c) { return quant_prepare_as(c, quant_gradient_run, 1, -1); }
Status bounded_gradient_prepare(PrepareContext& c) { return quant_prepare_as(c, quant_gradient_run, 1, 2); }

OpDef&& with_bits(OpDef&& def) { return std::move(def).attr("num_bits: int = 8").attr("narrow_range: bool = false"); }

void register_bounded(OpTable& ops, KernelTable& kernels, const char* name, const char* gradient, int rank) {
  const OpDef::Contract bound{.rank = rank};
  ops.add(with_bits(OpDef::make(name).input("inputs: float").input("min: float", bound).input("max: float", bound).output("outputs: float"))
              .shape(bounded_shape)
              .gradient(bounded_grad)
              .doc("The inputs rounded to steps between bounds that are values; with several, one pair per channel."));
  kernels.add({.op = name, .prepare = bounded_prepare});
  ops.add(with_bits(OpDef::make(gradient)
                        .input("gradients: float")
                        .input("inputs: float")
                        .input("min: float", bound)
                        .input("max: float", bound)
                        .output("backprops_wrt_input: float")
                        .output("backprop_wrt_min: float")
                        .output("backprop_wrt_max: float"))
              .shape(bounded_shape)
              .no_gradient()
              .doc("The gradients where the inputs lie within the bounds, and the sums of the rest by the bound that was crossed."));
  kernels.add({.op = gradient, .prepare = bounded_gradient_prepare});
}

}  // namespace

void register_fake_quant(OpTable& ops, KernelTable& kernels) {
  const auto with_bounds = [](OpDef&& def) -> OpDef&& {
    return with_bits(std::move(def).attr("min: float = -6.0").attr("max: float = 6.0"));
  };
  ops.add(with_bounds(OpDef::make("FakeQuantWithMinMaxArgs").input("inputs: float").output("outputs: float"))
              .shape(fixed_shape)
              .gradient(fixed_grad)
              .doc("The inputs rounded to the steps that a whole number of few bits has between two bounds."));
  kernels.add({.op = "FakeQuantWithMinMaxArgs", .prepare = fixed_prepare});
  ops.add(with_bounds(
              OpDef::make("FakeQuantWithMinMaxArgsGradient").input("gradients: float").input("inputs: float").output("backprops: float"))
              .shape(fixed_shape)
              .no_gradient()
              .doc("The gradients where the inputs lie within the bounds, zero elsewhere."));
  kernels.add({.op = "FakeQuantWithMinMaxArgsGradient", .prepare = fixed_gradient_prepare});
  register_bounded(ops, kernels, "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient", 0);
  register_bounded(ops, kernels, "FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient", 1);
}

}  // namespace dtg::ops
