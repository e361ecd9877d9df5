// Random numbers that are a function of a key and a counter (the V2 ops) or of a seed. The generator and the order
// of its samples are in device/cpu/philox.h; here are the ops around it.
#include <algorithm>

#include "device/cpu/philox.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/random_stream.h"

namespace dtg::ops {
namespace {

using cpu::Distribution;

// An input that must be a vector of that length.
Status require_length(InferContext& c, int input, int64_t length) {
  DTG_TRY(c.require_rank(input, 1));
  if (!c.input(input).has_rank() || c.input(input).dim(0) < 0 || c.input(input).dim(0) == length) return {};
  return c.error("input %d must have %lld elements, but has shape %s", input, static_cast<long long>(length),
                 c.input(input).text().c_str());
}

// --- filling a tensor ---

struct FillArgs {
  Distribution distribution = Distribution::uniform;
  DType dtype = DType::f32;
  Shape shape;  // when static
  bool dynamic = false;
  bool wide_shape = false;
  int64_t rank = 0;
  bool seeded = false;  // input 1 is a seed; otherwise key, counter and algorithm follow the shape
  bool wide_seed = false;
  int range = -1;  // input of the lower bound; the upper one follows
};

Result<Shape> wanted_shape(const RunContext& c, const FillArgs& a) {
  int64_t dims[kRankMax];
  if (a.rank > kRankMax) return c.error("a shape of rank %lld", static_cast<long long>(a.rank));
  for (int64_t i = 0; i < a.rank; ++i) dims[i] = a.wide_shape ? c.in<int64_t>(0)[i] : c.in<int32_t>(0)[i];
  auto shape = Shape::make({dims, static_cast<size_t>(a.rank)});
  return shape.ok() ? std::move(shape) : Result<Shape>(c.error("%s", shape.status().message().c_str()));
}

Status bounds(const RunContext& c, const FillArgs& a, int64_t* low, int64_t* high) {
  const auto read = [&](int input) -> int64_t {
    switch (a.dtype) {
      case DType::i32: return *c.in<int32_t>(input);
      case DType::u32: return *c.in<uint32_t>(input);
      default: return *c.in<int64_t>(input);
    }
  };
  *low = read(a.range);
  *high = read(a.range + 1);
  const bool empty = a.dtype == DType::u64 ? static_cast<uint64_t>(*low) >= static_cast<uint64_t>(*high) : *low >= *high;
  if (!empty) return {};
  return c.error("minval %lld must be below maxval %lld", static_cast<long long>(*low), static_cast<long long>(*high));
}

Status fill_run(RunContext& c) {
  const auto& a = c.args<FillArgs>();
  Shape shape = a.shape;
  if (a.dynamic) {
    DTG_ASSIGN(shape, wanted_shape(c, a));
  }
  Stream stream;
  if (a.seeded) {
    stream = stream_from_input(c, 1, a.wide_seed);
  } else {
    DTG_TRY(check_algorithm(c, *c.in<int32_t>(3)));
    stream = {*c.in<uint64_t>(1), c.in<uint64_t>(2)[0], c.in<uint64_t>(2)[1]};
  }
  int64_t low = 0, high = 0;
  if (a.range >= 0) DTG_TRY(bounds(c, a, &low, &high));
  void* out = c.out<void>(0);
  if (a.dynamic) {
    DTG_ASSIGN(out, c.lease_output(0, a.dtype, shape));
  }
  cpu::fill_random(a.distribution, a.dtype, cpu::Philox(stream.key, stream.low, stream.high), out, shape.count(), low, high, c.pool());
  return {};
}

template <Distribution kDistribution, bool kSeeded>
Status fill_prepare(PrepareContext& c) {
  auto* const a = c.args<FillArgs>();
  a->distribution = kDistribution;
  a->dtype = c.attr<DType>("dtype");
  a->seeded = kSeeded;
  if (kSeeded) a->wide_seed = c.input(1).dtype == DType::i64;
  if (kDistribution == Distribution::integers) a->range = kSeeded ? 2 : 4;
  a->wide_shape = c.input(0).dtype == DType::i64;
  a->rank = c.input(0).shape.count();
  a->dynamic = c.output(0).dynamic;
  if (!a->dynamic) a->shape = c.output(0).shape;
  if (!kSeeded && c.input(2).shape.count() < 2) return c.error("a counter of Philox has 2 elements");
  return c.sync(fill_run);
}

Status filled_shape(InferContext& c) {
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(0));
  c.output(0, std::move(shape));
  return {};
}
Status keyed_shape(InferContext& c) {
  DTG_TRY(require_length(c, 1, 1));
  DTG_TRY(c.require_rank(2, 1));
  DTG_TRY(c.require_rank(3, 0));
  return filled_shape(c);
}
Status seeded_shape(InferContext& c) {
  DTG_TRY(require_length(c, 1, 2));
  return filled_shape(c);
}

constexpr DTypeSet kInts32And64{DType::i32, DType::i64, DType::u32, DType::u64};

template <Distribution kDistribution>
void register_fill(OpTable& ops, KernelTable& kernels, const char* keyed, const char* seeded, const char* doc) {
  constexpr bool kRange = kDistribution == Distribution::integers;
  constexpr bool kWhole = kRange || kDistribution == Distribution::bits;
  const DTypeSet types = kWhole ? kInts32And64 : kFloating;
  OpDef op = OpDef::make(keyed);
  std::move(op).input("shape: Tshape").input("key: uint64").input("counter: uint64").input("alg: int32");
  if (kRange) std::move(op).input("minval: dtype", {.rank = 0}).input("maxval: dtype", {.rank = 0});
  std::move(op).output("output: dtype");
  if (kRange) {
    std::move(op).attr("dtype: {int32, int64, uint32, uint64}");
  } else if (kWhole) {
    std::move(op).attr("dtype: {int32, int64, uint32, uint64} = uint64");
  } else {
    std::move(op).attr("dtype: {half, bfloat16, float, double} = float");
  }
  std::move(op).attr("Tshape: {int32, int64} = int32").shape(keyed_shape).no_gradient().doc(doc);
  ops.add(std::move(op));
  kernels.add({.op = keyed, .types = {{"dtype", types}}, .prepare = fill_prepare<kDistribution, false>});
  if (!seeded) return;

  OpDef old = OpDef::make(seeded);
  std::move(old).input("shape: T").input("seed: Tseed");
  if (kRange) std::move(old).input("minval: dtype", {.rank = 0}).input("maxval: dtype", {.rank = 0});
  std::move(old).output("output: dtype");
  if (kRange) {
    std::move(old).attr("dtype: {int32, int64}").attr("T: {int32, int64}");
  } else {
    std::move(old).attr("dtype: {half, bfloat16, float, double} = float").attr("T: {int32, int64} = int32");
  }
  std::move(old).attr("Tseed: {int32, int64} = int64").shape(seeded_shape).no_gradient().doc(doc);
  ops.add(std::move(old));
  kernels.add({.op = seeded, .types = {{"dtype", types}}, .prepare = fill_prepare<kDistribution, true>});
}

// --- keys and counters from a seed ---

struct SeedArgs {
  bool wide = false;
};

Status key_shape(InferContext& c) {
  DTG_TRY(require_length(c, 0, 2));
  c.output(0, PartialShape::vector(1));
  c.output(1, PartialShape::vector(2));
  if (c.node().outputs.size() > 2) c.output(2, PartialShape::scalar());
  return {};
}

Status key_run(RunContext& c) {
  const Stream stream = stream_from_input(c, 0, c.args<SeedArgs>().wide);
  *c.out<uint64_t>(0) = stream.key;
  c.out<uint64_t>(1)[0] = stream.low;
  c.out<uint64_t>(1)[1] = stream.high;
  return {};
}

Status key_and_algorithm_run(RunContext& c) {
  *c.out<int32_t>(2) = kPhilox;
  return key_run(c);
}

Status algorithm_run(RunContext& c) {
  *c.out<int32_t>(0) = kPhilox;
  return {};
}

Status key_prepare(PrepareContext& c) {
  c.args<SeedArgs>()->wide = c.input(0).dtype == DType::i64;
  return c.sync(c.num_outputs() > 2 ? key_and_algorithm_run : key_run);
}

void register_keys(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("StatelessRandomGetKeyCounter")
              .input("seed: Tseed")
              .output("key: uint64")
              .output("counter: uint64")
              .attr("Tseed: {int32, int64} = int64")
              .shape(key_shape)
              .no_gradient()
              .doc("Mixes a seed of two numbers into a key and a counter."));
  kernels.add({.op = "StatelessRandomGetKeyCounter", .prepare = key_prepare});
  ops.add(OpDef::make("StatelessRandomGetKeyCounterAlg")
              .input("seed: Tseed")
              .output("key: uint64")
              .output("counter: uint64")
              .output("alg: int32")
              .attr("Tseed: {int32, int64} = int64")
              .shape(key_shape)
              .no_gradient()
              .doc("Mixes a seed into a key and a counter, and names the generator."));
  kernels.add({.op = "StatelessRandomGetKeyCounterAlg", .prepare = key_prepare});
  ops.add(OpDef::make("StatelessRandomGetAlg")
              .output("alg: int32")
              .shape(scalar_shape)
              .no_gradient()
              .doc("The number of this device's generator: 1, Philox."));
  kernels.add({.op = "StatelessRandomGetAlg", .prepare = [](PrepareContext& c) { return c.sync(algorithm_run); }});
}

}  // namespace

void register_random(OpTable& ops, KernelTable& kernels) {
  register_keys(ops, kernels);
  register_fill<Distribution::uniform>(ops, kernels, "StatelessRandomUniformV2", "StatelessRandomUniform",
                                       "Floats in [0, 1), a function of shape and key alone.");
  register_fill<Distribution::normal>(ops, kernels, "StatelessRandomNormalV2", "StatelessRandomNormal",
                                      "Normal floats, a function of shape and key alone.");
  register_fill<Distribution::truncated_normal>(ops, kernels, "StatelessTruncatedNormalV2", "StatelessTruncatedNormal",
                                                "Normal floats within two standard deviations.");
  register_fill<Distribution::bits>(ops, kernels, "StatelessRandomUniformFullIntV2", nullptr,
                                    "Integers of all values, a function of shape and key alone.");
  register_fill<Distribution::integers>(ops, kernels, "StatelessRandomUniformIntV2", "StatelessRandomUniformInt",
                                        "Integers in [minval, maxval), a function of shape and key alone.");
}

}  // namespace dtg::ops
