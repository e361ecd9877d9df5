// Random ops with a state of their own (RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt, RandomShuffle,
// Multinomial), their stateless twins where these are no fills (StatelessShuffle, StatelessMultinomial), and RngReadAndSkip, whose
// state is a variable. How much of its stream a run uses up is TensorFlow's, so the second run agrees as well.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "base/watched.h"
#include "device/cpu/copy.h"
#include "exec/variable.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/random_stream.h"
#include "ops/type_lists.h"
#include "ops/variable.h"

namespace dtg::ops {

Result<Ref<RandomState>> random_state(PrepareContext& c) {
  auto seed = static_cast<uint64_t>(c.integer("seed")), seed2 = static_cast<uint64_t>(c.integer("seed2"));
  const std::string name = format("%s %.*s %llu %llu", c.node().op->name().c_str(), static_cast<int>(c.node().name.size()),
                                  c.node().name.data(), static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed2));
  DTG_ASSIGN(Ref<Resource> found, c.store().find_or_create(place_of_draws(c), kDefaultContainer, name, RandomState::kKind, [&] {
    if (seed == 0 && seed2 == 0) seed = system_random().u64(), seed2 = system_random().u64();
    return Ref<Resource>(make_ref<RandomState>(name, cpu::Philox(seed, 0, seed2)));
  }));
  return Ref<RandomState>::share(static_cast<RandomState*>(found.get()));
}

namespace {

using cpu::Distribution;
using cpu::Philox;
using cpu::PhiloxWords;

// ---- filling a tensor --------------------------------------------------------------------------------------

Status drawn_shape(InferContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) DTG_TRY(c.require_rank(i, 0));
  const KnownIntegers dims = known_integers(c, 0);
  for (int64_t dim : dims.span()) {
    if (dim < 0) return c.error("a dimension of %lld", static_cast<long long>(dim));
  }
  DTG_ASSIGN(PartialShape shape, c.shape_from_input(0));
  c.output(0, std::move(shape));
  return {};
}

struct DrawArgs {
  Ref<RandomState> state;
  Distribution distribution = Distribution::uniform;
  Integers dims;
  OutputSpec out;
};

constexpr uint64_t kBlocksPerElement = 256;

Status draw_run(RunContext& c) {
  const auto& a = c.args<DrawArgs>();
  Integers::Buffer buffer;
  const auto shape = Shape::make(a.dims.get(c, buffer));
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  const int64_t count = shape.value().count();
  int64_t low = 0, high = 0;
  if (a.distribution == Distribution::integers) {
    low = integer_at(c.in<char>(1), a.out.dtype, 0), high = integer_at(c.in<char>(2), a.out.dtype, 0);
    if (count > 0 && low >= high) {
      return c.error("minval %lld must be below maxval %lld", static_cast<long long>(low), static_cast<long long>(high));
    }
  }
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  if (count == 0) return {};
  const Philox stream = a.state->take(static_cast<uint64_t>(count) * kBlocksPerElement);
  cpu::fill_random(a.distribution, a.out.dtype, stream, out, count, low, high, c.pool());
  return {};
}

template <Distribution kDistribution>
Status draw_prepare(PrepareContext& c) {
  auto* a = c.args<DrawArgs>();
  DTG_ASSIGN(a->state, random_state(c));
  a->distribution = kDistribution;
  DTG_TRY(a->dims.prepare(c, 0));
  a->out.prepare(c, 0);
  return c.sync(draw_run);
}

OpDef&& with_seeds(OpDef&& def) { return std::move(def).attr("seed: int = 0").attr("seed2: int = 0"); }

template <Distribution kDistribution>
void register_draw(OpTable& ops, KernelTable& kernels, const char* name, const char* doc) {
  ops.add(with_seeds(OpDef::make(name).input("shape: T", {.rank = 1}).output("output: dtype"))
              .attr("dtype: {half, bfloat16, float, double}")
              .attr("T: {int32, int64}")
              .shape(drawn_shape)
              .no_gradient()
              .draws()
              .doc(doc));
  kernels.add({.op = name, .types = {{"dtype", kFloating}}, .prepare = draw_prepare<kDistribution>});
}

// ---- RandomShuffle, StatelessShuffle -----------------------------------------------------------------------

struct ShuffleArgs {
  Ref<RandomState> state;  // none: input 1 is a key, 2 a counter, 3 the algorithm
  int64_t rows = 0, row = 0;
};

Status shuffle_run(RunContext& c) {
  const auto& a = c.args<ShuffleArgs>();
  if (!a.state) DTG_TRY(check_algorithm(c, *c.in<int32_t>(3)));
  auto* const order = c.workspace<int64_t>();
  for (const int64_t i : watched(a.rows, 1)) order[i] = i;
  if (a.rows > 1 && a.row > 0) {
    const Philox stream = a.state ? a.state->take(static_cast<uint64_t>(a.rows + 2) / 4)
                                  : Philox(*c.in<uint64_t>(1), c.in<uint64_t>(2)[0], c.in<uint64_t>(2)[1]);
    PhiloxWords words(stream);
    for (const int64_t i : watched(a.rows - 1, 40)) std::swap(order[i], order[i + words.next() % static_cast<uint32_t>(a.rows - i)]);
  }
  for (const int64_t i : watched(a.rows, 40 + a.row / 4)) {
    cpu::copy_row(c.out<char>(0) + i * a.row, c.in<char>(0) + order[i] * a.row, a.row);
  }
  return {};
}

Status shuffle_prepare(PrepareContext& c) {
  auto* a = c.args<ShuffleArgs>();
  if (c.num_inputs() == 1) {
    DTG_ASSIGN(a->state, random_state(c));
  } else if (c.input(1).shape.count() < 1 || c.input(2).shape.count() < 2) {
    return c.error("a key of Philox has 1 element and a counter 2");
  }
  const Shape& in = c.input(0).shape;
  a->rows = in.rank() == 0 ? 1 : in.dim(0);
  if (a->rows > std::numeric_limits<int32_t>::max()) return c.error("%lld rows are too many", static_cast<long long>(a->rows));
  a->row = (in.rank() == 0 ? 1 : in.count(1, in.rank())) * dtype_size(c.input(0).dtype);
  c.workspace(Bytes::of(a->rows, sizeof(int64_t)));
  return c.sync(shuffle_run);
}

Status stateless_shuffle_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 1));
  DTG_TRY(c.require_rank(2, 1));
  DTG_TRY(c.require_rank(3, 0));
  return c.same_as_input(0);
}

// ---- Multinomial, StatelessMultinomial ---------------------------------------------------------------------

Status multinomial_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 0));
  if (c.num_inputs() > 2) {
    DTG_TRY(c.require_rank(2, 1));
    if (c.input(2).has_rank() && c.input(2).dim(0) >= 0 && c.input(2).dim(0) != 2) return c.error("the seed must have 2 elements");
  }
  const KnownIntegers samples = known_integers(c, 1);
  if (samples.known && samples.values[0] < 0) return c.error("num_samples is %lld", static_cast<long long>(samples.values[0]));
  PartialShape out = PartialShape::vector(c.input(0).dim(0));
  DTG_TRY(out.append(samples.known ? samples.values[0] : -1));
  c.output(0, out);
  return {};
}

struct MultinomialArgs {
  Ref<RandomState> state;  // none: input 2 is a seed
  int64_t rows = 0, classes = 0;
  bool wide_seed = false;
  Integers samples;
  OutputSpec out;
};

// Sums of exp(logit - largest), class after class; logits that are not finite have no share. Returns the whole.
template <class T>
double cumulate(const T* logits, int64_t classes, double* sums) {
  double largest = std::numeric_limits<double>::lowest(), total = 0;
  for (const int64_t j : watched(classes)) {
    const auto logit = static_cast<double>(logits[j]);
    if (std::isfinite(logit)) largest = std::max(largest, logit);
  }
  for (const int64_t j : watched(classes, 10)) {
    const auto logit = static_cast<double>(logits[j]);
    if (std::isfinite(logit)) total += std::exp(logit - largest);
    sums[j] = total;
  }
  return total;
}

template <class T>
Status multinomial_run(RunContext& c) {
  const auto& a = c.args<MultinomialArgs>();
  Integers::Buffer buffer;
  const int64_t samples = a.samples.get(c, buffer)[0];
  if (samples < 0) return c.error("num_samples is %lld", static_cast<long long>(samples));
  DTG_ASSIGN(char* out, a.out.memory(c, Shape::of({a.rows, samples})));
  if (a.rows * samples == 0) return {};
  Stream seeded;
  if (!a.state) seeded = stream_from_input(c, 2, a.wide_seed);
  // TensorFlow counts a double as two.
  const uint64_t rounded = static_cast<uint64_t>(samples + 3) / 4 * 4 * 2;
  const Philox stream =
      a.state ? a.state->take(static_cast<uint64_t>(a.rows) * rounded * kBlocksPerElement) : Philox(seeded.key, seeded.low, seeded.high);
  const int64_t shards = std::min<int64_t>(a.rows, 16);
  c.pool().parallel_for(shards, [&](int64_t s) {
    double* const sums = c.workspace<double>() + s * a.classes;
    for (const int64_t r : watched(a.rows * s / shards, a.rows * (s + 1) / shards, a.classes * 4 + samples * 30)) {
      const double whole = cumulate(c.in<T>(0) + r * a.classes, a.classes, sums);
      // Two words for each sample, row after row.
      PhiloxWords words(stream, static_cast<uint64_t>(r * samples) * 2);
      for (const int64_t i : watched(r * samples, (r + 1) * samples, 60)) {
        const int64_t found = std::upper_bound(sums, sums + a.classes, words.uniform_double() * whole) - sums;
        if (a.out.dtype == DType::i32) reinterpret_cast<int32_t*>(out)[i] = static_cast<int32_t>(found);
        else reinterpret_cast<int64_t*>(out)[i] = found;
      }
    }
  });
  return {};
}

template <class T>
Status multinomial_prepare(PrepareContext& c) {
  auto* a = c.args<MultinomialArgs>();
  a->rows = c.input(0).shape.dim(0);
  a->classes = c.input(0).shape.dim(1);
  if (a->rows > 0 && a->classes == 0) return c.error("there are no classes to draw from");
  if (c.num_inputs() > 2) {
    a->wide_seed = c.input(2).dtype == DType::i64;
    if (c.input(2).shape.count() != 2) return c.error("the seed must have 2 elements");
  } else {
    DTG_ASSIGN(a->state, random_state(c));
  }
  DTG_TRY(a->samples.prepare(c, 1));
  a->out.prepare(c, 0);
  c.workspace(Bytes::of(std::min<int64_t>(a->rows, 16) * a->classes, sizeof(double)));
  return c.sync(multinomial_run<T>);
}

template <class... T>
void add_multinomial_kernels(KernelTable& kernels) {
  for (const char* name : {"Multinomial", "StatelessMultinomial"}) {
    (kernels.add({.op = name, .types = {{"T", DTypeSet{dtype_of<T>}}}, .prepare = multinomial_prepare<T>}), ...);
  }
}

// ---- RngReadAndSkip ----------------------------------------------------------------------------------------

constexpr int64_t kStateWords = 3;  // the counter, then the key

Status read_and_skip_shape(InferContext& c) {
  DTG_TRY(c.require_rank(1, 0));
  DTG_TRY(c.require_rank(2, 0));
  c.output(0, PartialShape::vector(kStateWords));
  return {};
}

Status read_and_skip_run(RunContext& c, VariableUpdate& update) {
  const Tensor& state = update.tensor(0);
  DTG_TRY(check_algorithm(c, *c.in<int32_t>(1)));
  if (state.dtype() != DType::i64) return c.error("the state must be int64, but is %s", dtype_name(state.dtype()));
  if (state.shape().rank() != 1 || state.count() < kStateWords) {
    return c.error("a state of Philox has at least %lld elements, but the variable has shape %s", static_cast<long long>(kStateWords),
                   state.shape().text().c_str());
  }
  auto* const words = update.data<int64_t>(0);
  std::copy_n(words, kStateWords, c.out<int64_t>(0));
  const uint64_t blocks = *c.in<uint64_t>(2) * kBlocksPerElement, low = static_cast<uint64_t>(words[0]) + blocks;
  words[0] = static_cast<int64_t>(low);
  if (low < blocks) words[1] = static_cast<int64_t>(static_cast<uint64_t>(words[1]) + 1);
  return {};
}

Status read_and_skip_prepare(PrepareContext& c) {
  c.args<UpdateArgs>();
  return prepare_update(c, {0}, read_and_skip_run);
}

void register_shuffles(OpTable& ops, KernelTable& kernels) {
  ops.add(with_seeds(OpDef::make("RandomShuffle").input("value: T").output("output: T"))
              .attr("T: type")
              .shape(unchanged_shape)
              .no_gradient()
              .draws()
              .doc("The rows of the value in another order; each run finds another one."));
  ops.add(OpDef::make("StatelessShuffle")
              .input("value: T")
              .input("key: uint64")
              .input("counter: uint64")
              .input("alg: int32")
              .output("output: T")
              .attr("T: type")
              .shape(stateless_shuffle_shape)
              .no_gradient()
              .doc("The rows of the value in an order that follows from key and counter."));
  for (const char* name : {"RandomShuffle", "StatelessShuffle"}) {
    kernels.add({.op = name, .types = {{"T", kPlain}}, .prepare = shuffle_prepare});
  }
}

}  // namespace

void register_random_stateful(OpTable& ops, KernelTable& kernels) {
  register_draw<Distribution::uniform>(ops, kernels, "RandomUniform", "Floats in [0, 1); each run draws others.");
  register_draw<Distribution::normal>(ops, kernels, "RandomStandardNormal", "Normal floats; each run draws others.");
  register_draw<Distribution::truncated_normal>(ops, kernels, "TruncatedNormal",
                                                "Normal floats within two standard deviations; each run draws others.");
  ops.add(with_seeds(OpDef::make("RandomUniformInt")
                         .input("shape: T", {.rank = 1})
                         .input("minval: Tout", {.rank = 0})
                         .input("maxval: Tout", {.rank = 0})
                         .output("output: Tout"))
              .attr("Tout: {int32, int64}")
              .attr("T: {int32, int64}")
              .shape(drawn_shape)
              .no_gradient()
              .draws()
              .doc("Integers in [minval, maxval); each run draws others."));
  kernels.add({.op = "RandomUniformInt", .prepare = draw_prepare<Distribution::integers>});
  register_shuffles(ops, kernels);
  ops.add(with_seeds(OpDef::make("Multinomial")
                         .input("logits: T", {.rank = 2})
                         .input("num_samples: int32", {.rank = 0})
                         .output("output: output_dtype"))
              .attr(kAttrReals)
              .attr("output_dtype: {int32, int64} = int64")
              .shape(multinomial_shape)
              .no_gradient()
              .draws()
              .doc("Classes drawn with probabilities proportional to exp(logits); each run draws others."));
  ops.add(OpDef::make("StatelessMultinomial")
              .input("logits: T", {.rank = 2})
              .input("num_samples: int32", {.rank = 0})
              .input("seed: Tseed", {.rank = 1})
              .output("output: output_dtype")
              .attr(kAttrReals)
              .attr("Tseed: {int32, int64} = int64")
              .attr("output_dtype: {int32, int64} = int64")
              .shape(multinomial_shape)
              .no_gradient()
              .doc("Classes drawn with probabilities proportional to exp(logits), a function of the seed."));
  add_multinomial_kernels<float, double, Half, BFloat16, int32_t, int64_t, int16_t, int8_t, uint8_t>(kernels);
  ops.add(OpDef::make("RngReadAndSkip")
              .input("resource: resource")
              .input("alg: int32", {.rank = 0})
              .input("delta: uint64", {.rank = 0})
              .output("value: int64")
              .shape(read_and_skip_shape)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("The state of a generator, which goes on by delta samples of 256 blocks."));
  kernels.add({.op = "RngReadAndSkip", .prepare = read_and_skip_prepare});
}

}  // namespace dtg::ops
