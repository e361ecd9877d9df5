// Candidate samplers: classes to compare the true ones with, and how often each was to be expected among them; and
// ComputeAccidentalHits, which finds the true ones that were drawn. The draws are TensorFlow's.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/watched.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/keys.h"
#include "ops/random_stream.h"
#include "ops/sampler_counts.h"

namespace dtg::ops {
namespace {

using cpu::PhiloxWords;

Status sampler_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  PartialShape expected = PartialShape::vector(c.input(0).dim(0));
  DTG_TRY(expected.append(c.integer("num_true")));
  c.output(0, PartialShape::vector(c.integer("num_sampled")));
  c.output(1, expected);
  c.output(2, PartialShape::vector(c.integer("num_sampled")));
  return {};
}

// ---- the distributions -------------------------------------------------------------------------------------

struct UniformClasses {
  int64_t range = 0;
  int64_t sample(PhiloxWords& words) const { return static_cast<int64_t>(words.below64(static_cast<uint64_t>(range))); }
  float probability(int64_t) const { return static_cast<float>(1.0 / static_cast<double>(range)); }
};

// Class k with a probability of log((k + 2) / (k + 1)) / log(range + 1).
struct LogUniformClasses {
  int64_t range = 0;
  double log_range = 0;
  int64_t sample(PhiloxWords& words) const { return (static_cast<int64_t>(std::exp(words.uniform_double() * log_range)) - 1) % range; }
  float probability(int64_t k) const {
    const auto value = static_cast<double>(k);
    return static_cast<float>(std::log((value + 2.0) / (value + 1.0)) / log_range);
  }
};

// Weights that are given, drawn from by the method of aliases: a class keeps its share or hands it to another. Reserved classes come first
// and have no weight; they are as many as an attribute says, so nothing is kept for each: they hand theirs over in stretches.
struct FixedClasses {
  struct Stretch {
    int64_t from;  // to the end of the one before
    int64_t alias;
  };
  int64_t reserved = 0;
  int64_t kept = 0;                      // of the reserved: these keep their share, which is what rounding has left
  std::span<const Stretch> stretches;    // from the last to the first
  std::span<const float> weights, keep;  // behind the reserved ones
  std::span<const int32_t> alias;
  float total = 0;
  int64_t sample(PhiloxWords& words) const {
    const float r = words.uniform_float();
    const auto at = static_cast<int64_t>(words.below(static_cast<uint32_t>(reserved + static_cast<int64_t>(keep.size()))));
    if (at < kept) return at;
    if (at < reserved) return std::ranges::lower_bound(stretches, at, std::greater(), &Stretch::from)->alias;
    const auto k = static_cast<size_t>(at - reserved);
    return r < keep[k] ? at : alias[k];
  }
  float probability(int64_t k) const {
    k -= reserved;
    return k < 0 || k >= static_cast<int64_t>(weights.size()) ? 0.0f : weights[static_cast<size_t>(k)] / total;
  }
};

// ---- sampling ----------------------------------------------------------------------------------------------

struct SamplerArgs {
  Ref<RandomState> state;
  Ref<LearnedClasses> learned;
  bool log_candidates = false;  // of _SampleClasses
  UniformClasses uniform;
  LogUniformClasses log_uniform;
  FixedClasses fixed;
  int64_t trues = 0, samples = 0, slots = 0;
  bool unique = false;
};

// Words that a run uses up of its stream, as blocks.
uint64_t reserved_blocks(const SamplerArgs& a) { return static_cast<uint64_t>(2048 * a.samples + 3) / 4; }

// Of a table for so many values.
Result<int64_t> slots_for(const PrepareContext& c, int64_t values) {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (values > kMost) {
    return resource_exhausted("%s \"%.*s\": %lld sampled classes are more than any memory holds", c.node().op->name().c_str(),
                              static_cast<int>(c.node().name.size()), c.node().name.data(), static_cast<long long>(values));
  }
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(values) * 2 + 2));
}

// Was the value there already? If not it is now.
bool is_new(int64_t value, int64_t* table, int64_t slots) {
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(slots));
  auto slot = static_cast<int64_t>(slot_of(static_cast<uint64_t>(value), shift));
  for (; table[slot] >= 0; slot = (slot + 1) & (slots - 1)) {
    if (table[slot] == value) return false;
  }
  table[slot] = value;
  return true;
}

// How many of the samples are to be that class: of `tries` draws with repetitions taken out.
float expected_count(float p, int64_t samples, int64_t tries) {
  if (tries == samples) return p * static_cast<float>(samples);
  return static_cast<float>(-std::expm1(static_cast<double>(tries) * std::log1p(-static_cast<double>(p))));
}

template <class Classes>
Status draw_classes(RunContext& c, const SamplerArgs& a, const Classes& classes, const cpu::Philox& stream) {
  PhiloxWords words(stream);
  auto* const sampled = c.out<int64_t>(0);
  int64_t tries = 0;
  if (a.unique) {
    auto* const table = c.workspace<int64_t>();
    for (const int64_t i : watched(a.slots, 1)) table[i] = -1;
    Lookout lookout;
    for (int64_t picked = 0; picked < a.samples; ++tries) {
      lookout.after(60);
      if (tries == std::numeric_limits<int32_t>::max()) return c.error("no end of draws: most classes have a probability of nearly 0");
      const int64_t value = classes.sample(words);
      if (is_new(value, table, a.slots)) sampled[picked++] = value;
    }
  } else {
    for (const int64_t i : watched(a.samples, 60)) sampled[i] = classes.sample(words);
    tries = a.samples;
  }
  for (const int64_t i : watched(a.trues, 60)) {
    c.out<float>(1)[i] = expected_count(classes.probability(c.in<int64_t>(0)[i]), a.samples, tries);
  }
  for (const int64_t i : watched(a.samples, 60)) c.out<float>(2)[i] = expected_count(classes.probability(sampled[i]), a.samples, tries);
  return {};
}

Status uniform_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  return draw_classes(c, a, a.uniform, a.state->take(reserved_blocks(a)));
}
Status log_uniform_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  return draw_classes(c, a, a.log_uniform, a.state->take(reserved_blocks(a)));
}
Status fixed_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  return draw_classes(c, a, a.fixed, a.state->take(reserved_blocks(a)));
}
// Room first, so that a run has learned all of its classes or none: nothing looks at an interrupt while they are added.
Status learned_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  DTG_ASSIGN(const Ref<ClassCounts> counts, a.learned->counts(c.slots().memory()));
  for (const int64_t i : watched(a.trues, 60)) DTG_TRY(counts->make_room(c.in<int64_t>(0)[i], c.slots().memory()));
  DTG_TRY(draw_classes(c, a, *counts, a.state->take(reserved_blocks(a))));
  Interrupt::look();
  for (int64_t i = 0; i < a.trues; ++i) counts->add(c.in<int64_t>(0)[i]);
  return {};
}

// Of seeds that are fed, and without a state.
Status stateless_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  const Stream seeded = stream_from_input(c, 1, true);
  const cpu::Philox stream(seeded.key, seeded.low, seeded.high);
  return a.log_candidates ? draw_classes(c, a, a.log_uniform, stream) : draw_classes(c, a, a.uniform, stream);
}

Status prepare_sampler(PrepareContext& c, int64_t range) {
  auto* a = c.args<SamplerArgs>();
  const Shape& trues = c.input(0).shape;
  if (trues.dim(1) != c.integer("num_true")) {
    return c.error("true_classes must have num_true = %lld columns, but has shape %s", static_cast<long long>(c.integer("num_true")),
                   trues.text().c_str());
  }
  a->trues = trues.count();
  a->samples = c.integer("num_sampled");
  a->unique = c.boolean("unique");
  if (a->unique && a->samples > range) {
    return c.error("%lld different ones of %lld classes", static_cast<long long>(a->samples), static_cast<long long>(range));
  }
  if (a->unique) {
    DTG_ASSIGN(a->slots, slots_for(c, a->samples));
    c.workspace(Bytes::of(a->slots, sizeof(int64_t)));
  }
  return {};
}

Status uniform_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  a->uniform.range = c.integer("range_max");
  DTG_TRY(prepare_sampler(c, a->uniform.range));
  DTG_ASSIGN(a->state, random_state(c));
  return c.sync(uniform_run);
}

Result<LogUniformClasses> log_uniform_classes(const PrepareContext& c) {
  const int64_t range = c.integer("range_max");
  // exp() of what is drawn must be an int64.
  if (range > int64_t{1} << 62) return c.error("range_max %lld is too large", static_cast<long long>(range));
  return LogUniformClasses{range, std::log1p(static_cast<double>(range))};
}

Status log_uniform_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  DTG_ASSIGN(a->log_uniform, log_uniform_classes(c));
  DTG_TRY(prepare_sampler(c, a->log_uniform.range));
  DTG_ASSIGN(a->state, random_state(c));
  return c.sync(log_uniform_run);
}

Status stateless_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  if (c.input(1).shape.count() != 2) return c.error("the seed must have 2 elements");
  a->uniform.range = c.integer("range_max");
  a->log_candidates = c.boolean("log_uniform");
  if (a->log_candidates) {
    DTG_ASSIGN(a->log_uniform, log_uniform_classes(c));
  }
  DTG_TRY(prepare_sampler(c, a->uniform.range));
  return c.sync(stateless_run);
}

// With the number of classes in its name: a node of as many others has learned nothing about these.
Status learned_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  const int64_t range = c.integer("range_max");
  if (range > ClassCounts::kMost / 2) return c.error("range_max %lld is too large to count", static_cast<long long>(range));
  DTG_TRY(prepare_sampler(c, range));
  DTG_ASSIGN(a->state, random_state(c));
  const std::string name = format("%s of %lld", a->state->name().c_str(), static_cast<long long>(range));
  DTG_ASSIGN(Ref<Resource> found, c.store().find_or_create(place_of_draws(c), kDefaultContainer, name, LearnedClasses::kKind,
                                                           [&] { return Ref<Resource>(make_ref<LearnedClasses>(name, range)); }));
  a->learned = Ref<LearnedClasses>::share(static_cast<LearnedClasses*>(found.get()));
  return c.sync(learned_run);
}

// FixedClasses while they are made.
struct Aliases {
  std::vector<float> weights, keep;
  std::vector<int32_t> alias;
  std::vector<FixedClasses::Stretch> stretches;
  int64_t reserved = 0;
  int64_t kept = 0;
  int64_t classes() const { return reserved + static_cast<int64_t>(weights.size()); }
};

// Shares of at most 1 per class: what a heavy class has too much fills up a light one. Light ones come off from the last to the first, so
// reserved ones when no other is left: each takes a whole share, and a heavy class fills up as many as it has whole ones. Taken together
// they leave it the very same rest, as a double of 1 or more less 1 is exact.
void make_aliases(Aliases& a) {
  const auto n = static_cast<float>(a.classes());
  double sum = 0;
  for (float weight : a.weights) sum += static_cast<double>(weight);
  std::vector<double> share;
  std::vector<size_t> heavy, light;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    share.push_back(static_cast<double>(a.weights[i] * n) / sum);
    (share.back() < 1.0 ? light : heavy).push_back(i);
  }
  const auto number = [&](size_t i) { return static_cast<int32_t>(a.reserved + static_cast<int64_t>(i)); };
  a.alias.assign(a.weights.size(), -1);
  a.kept = a.reserved;
  while (!heavy.empty() && (!light.empty() || a.kept > 0)) {
    const size_t high = heavy.back();
    heavy.pop_back();
    if (light.empty()) {
      const double whole = std::min(std::floor(share[high]), static_cast<double>(a.kept));
      a.kept -= static_cast<int64_t>(whole);
      share[high] -= whole;
      a.stretches.push_back({a.kept, number(high)});
    } else {
      const size_t low = light.back();
      light.pop_back();
      a.alias[low] = number(high);
      share[high] -= 1.0 - share[low];
    }
    (share[high] < 1.0 ? light : heavy).push_back(high);
  }
  for (double value : share) a.keep.push_back(static_cast<float>(value));
  // What is left has a share of 1 but for rounding.
  for (const auto& rest : {heavy, light}) {
    for (size_t i : rest) a.keep[i] = 1.0f, a.alias[i] = number(i);
  }
}

// So many of the classes from 0 to `count` are of that shard.
int64_t classes_of_shard(int64_t count, int64_t shard, int64_t shards) { return count > shard ? (count - shard - 1) / shards + 1 : 0; }

Status fixed_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  if (!c.attr<std::string>("vocab_file").empty()) return unimplemented("FixedUnigramCandidateSampler with a vocab_file; give the unigrams");
  const int64_t shards = c.integer("num_shards"), shard = c.integer("shard");
  if (shard < 0 || shard >= shards) return c.error("shard %lld of %lld", static_cast<long long>(shard), static_cast<long long>(shards));
  Aliases made;
  made.reserved = classes_of_shard(c.integer("num_reserved_ids"), shard, shards);
  // TensorFlow counts on from the reserved ones of this shard.
  int64_t word = made.reserved % shards;
  const auto distortion = static_cast<float>(c.attr<double>("distortion"));
  for (double unigram : c.attr<std::vector<double>>("unigrams")) {
    if (word++ % shards != shard) continue;
    made.weights.push_back(std::pow(static_cast<float>(unigram), distortion));
    a->fixed.total += made.weights.back();
  }
  const int64_t range = c.integer("range_max");
  if (range - made.reserved != static_cast<int64_t>(made.weights.size())) {
    return c.error("range_max is %lld, but there are %lld reserved classes and %zu unigrams", static_cast<long long>(range),
                   static_cast<long long>(made.reserved), made.weights.size());
  }
  if (range > std::numeric_limits<int32_t>::max()) return c.error("range_max %lld is too large", static_cast<long long>(range));
  if (!(a->fixed.total > 0.0f) || !std::isfinite(a->fixed.total)) return c.error("the unigrams have no weight, or none that is finite");
  make_aliases(made);
  a->fixed.reserved = made.reserved;
  a->fixed.kept = made.kept;
  a->fixed.stretches = c.arena().copy(std::span<const FixedClasses::Stretch>(made.stretches));
  a->fixed.weights = c.arena().copy(std::span<const float>(made.weights));
  a->fixed.keep = c.arena().copy(std::span<const float>(made.keep));
  a->fixed.alias = c.arena().copy(std::span<const int32_t>(made.alias));
  DTG_TRY(prepare_sampler(c, range));
  DTG_ASSIGN(a->state, random_state(c));
  return c.sync(fixed_run);
}

// ---- ComputeAccidentalHits ---------------------------------------------------------------------------------

Status hits_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 2));
  DTG_TRY(c.require_rank(1, 1));
  const int64_t columns = c.input(0).has_rank() ? c.input(0).dim(1) : -1;
  if (columns >= 0 && columns != c.integer("num_true")) {
    return c.error("true_classes must have num_true = %lld columns, but has shape %s", static_cast<long long>(c.integer("num_true")),
                   c.input(0).text().c_str());
  }
  for (int i = 0; i < 3; ++i) c.output(i, PartialShape::vector(-1));
  return {};
}

struct HitsArgs {
  int64_t rows = 0, trues = 0, samples = 0, slots = 0;
  OutputSpec indices, ids, weights;
};

// Where the value was drawn, the last time; -1 where it was not. The table holds places + 1.
int64_t place_of(int64_t value, const int64_t* sampled, const int64_t* table, int64_t slots, int64_t* free_slot) {
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(slots));
  auto slot = static_cast<int64_t>(slot_of(static_cast<uint64_t>(value), shift));
  for (; table[slot] != 0 && sampled[table[slot] - 1] != value; slot = (slot + 1) & (slots - 1)) {
  }
  *free_slot = slot;
  return table[slot] - 1;
}

Status hits_run(RunContext& c) {
  const auto& a = c.args<HitsArgs>();
  auto* const table = c.workspace<int64_t>();
  auto* const places = table + a.slots;
  const auto* const sampled = c.in<int64_t>(1);
  watched_fill(table, table + a.slots, int64_t{0});
  int64_t slot = 0, found = 0;
  for (const int64_t i : watched(a.samples, 20)) {
    place_of(sampled[i], sampled, table, a.slots, &slot);
    table[slot] = i + 1;
  }
  for (const int64_t i : watched(a.rows * a.trues, 20)) {
    places[i] = place_of(c.in<int64_t>(0)[i], sampled, table, a.slots, &slot);
    found += places[i] >= 0;
  }
  const Shape shape = Shape::of({found});
  DTG_ASSIGN(char* indices, a.indices.memory(c, shape));
  DTG_ASSIGN(char* ids, a.ids.memory(c, shape));
  DTG_ASSIGN(char* weights, a.weights.memory(c, shape));
  for (int64_t i = 0, at = 0; i < a.rows * a.trues; ++i) {
    if (places[i] < 0) continue;
    reinterpret_cast<int32_t*>(indices)[at] = static_cast<int32_t>(i / a.trues);
    reinterpret_cast<int64_t*>(ids)[at] = places[i];
    reinterpret_cast<float*>(weights)[at++] = -std::numeric_limits<float>::max();
  }
  return {};
}

Status hits_prepare(PrepareContext& c) {
  auto* a = c.args<HitsArgs>();
  a->rows = c.input(0).shape.dim(0);
  a->trues = c.input(0).shape.dim(1);
  if (a->trues != c.integer("num_true"))
    return c.error("true_classes must have num_true columns, but has shape %s", c.input(0).shape.text().c_str());
  a->samples = c.input(1).shape.count();
  DTG_ASSIGN(a->slots, slots_for(c, a->samples));
  a->indices.prepare(c, 0);
  a->ids.prepare(c, 1);
  a->weights.prepare(c, 2);
  c.workspace(Bytes::of(a->slots, sizeof(int64_t)) + Bytes::of(a->rows, sizeof(int64_t)) * a->trues);
  return c.sync(hits_run);
}

}  // namespace

void register_sampler(OpTable& ops, KernelTable& kernels) {
  struct Row {
    const char* name;
    PrepareFn prepare;
    const char* doc;
  };
  for (const Row& row : {Row{"UniformCandidateSampler", uniform_prepare, "Classes that are all alike."},
                         Row{"LogUniformCandidateSampler", log_uniform_prepare,
                             "Classes the rarer the higher their number, as words sorted by frequency are."},
                         Row{"LearnedUnigramCandidateSampler", learned_prepare, "Classes as often as they were true ones so far."},
                         Row{"FixedUnigramCandidateSampler", fixed_prepare, "Classes as often as the unigrams say."}}) {
    OpDef def = OpDef::make(row.name).input("true_classes: int64", {.rank = 2});
    std::move(def).output("sampled_candidates: int64").output("true_expected_count: float").output("sampled_expected_count: float");
    std::move(def).attr("num_true: int >= 1").attr("num_sampled: int >= 1").attr("unique: bool").attr("range_max: int >= 1");
    if (row.prepare == fixed_prepare) {
      std::move(def).attr("vocab_file: string = ''").attr("distortion: float = 1.0").attr("num_reserved_ids: int = 0");
      std::move(def).attr("num_shards: int >= 1 = 1").attr("shard: int >= 0 = 0").attr("unigrams: list(float) = []");
    }
    std::move(def).attr("seed: int = 0").attr("seed2: int = 0");
    std::move(def).shape(sampler_shape).no_gradient().draws().doc(row.doc);
    ops.add(std::move(def));
    kernels.add({.op = row.name, .prepare = row.prepare});
  }
  ops.add(OpDef::make("_SampleClasses")
              .input("true_classes: int64", {.rank = 2})
              .input("seed: int64", {.rank = 1})
              .output("sampled_candidates: int64")
              .output("true_expected_count: float")
              .output("sampled_expected_count: float")
              .attr("num_true: int >= 1")
              .attr("num_sampled: int >= 1")
              .attr("unique: bool")
              .attr("range_max: int >= 1")
              .attr("log_uniform: bool")
              .shape(sampler_shape)
              .no_gradient()
              .doc("As UniformCandidateSampler or LogUniformCandidateSampler, but a function of the seed."));
  kernels.add({.op = "_SampleClasses", .prepare = stateless_prepare});
  ops.add(OpDef::make("ComputeAccidentalHits")
              .input("true_classes: int64", {.rank = 2})
              .input("sampled_candidates: int64", {.rank = 1})
              .output("indices: int32")
              .output("ids: int64")
              .output("weights: float")
              .attr("num_true: int")
              .attr("seed: int = 0")
              .attr("seed2: int = 0")
              .shape(hits_shape)
              .no_gradient()
              .doc("Rows and places of sampled candidates that are true classes, with the lowest number as their weight."));
  kernels.add({.op = "ComputeAccidentalHits", .prepare = hits_prepare});
}

}  // namespace dtg::ops
