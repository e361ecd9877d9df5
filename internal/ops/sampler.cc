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

// Weights that are given, drawn from by the method of aliases: a class keeps its share or hands it to another.
struct FixedClasses {
  std::span<const float> weights, keep;
  std::span<const int32_t> alias;
  float total = 0;
  int64_t sample(PhiloxWords& words) const {
    const float r = words.uniform_float();
    const auto at = static_cast<size_t>(words.below(static_cast<uint32_t>(keep.size())));
    return r < keep[at] ? static_cast<int64_t>(at) : alias[at];
  }
  float probability(int64_t k) const {
    return k < 0 || k >= static_cast<int64_t>(weights.size()) ? 0.0f : weights[static_cast<size_t>(k)] / total;
  }
};

// How often each class was a true one so far, beginning with 1 for each: a tree of sums over a power of two leaves. It is the state
// of one node and changes under its lock.
class LearnedClasses final : public Resource {
 public:
  LearnedClasses(std::string name, int64_t range, const cpu::Philox& stream)
      : Resource(std::move(name)), stream_(stream), leaves_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(range)))) {
    sums_.assign(static_cast<size_t>(2 * leaves_), 0);
    for (int64_t k = 0; k < range; ++k) add(k);
  }
  static constexpr std::string_view kKind = "class counts";
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override {}

  int64_t sample(PhiloxWords& words) const {
    int64_t rest = words.below(static_cast<uint32_t>(sums_[1])), at = 1;
    while (at < leaves_) {
      at *= 2;
      if (rest >= sums_[static_cast<size_t>(at)]) rest -= sums_[static_cast<size_t>(at++)];
    }
    return at - leaves_;
  }
  float probability(int64_t k) const {
    if (k < 0 || k >= leaves_) return 0.0f;
    return static_cast<float>(sums_[static_cast<size_t>(leaves_ + k)]) / static_cast<float>(sums_[1]);
  }
  void add(int64_t k) {
    if (k < 0 || k >= leaves_ || sums_[1] == std::numeric_limits<int32_t>::max()) return;
    for (int64_t at = leaves_ + k; at > 0; at /= 2) ++sums_[static_cast<size_t>(at)];
  }
  SpinLock& lock() { return word_; }
  cpu::Philox take(uint64_t blocks) {
    const cpu::Philox here = stream_;
    stream_.skip(blocks);
    return here;
  }

 private:
  SpinLock word_;
  cpu::Philox stream_;
  const int64_t leaves_;
  std::vector<int32_t> sums_;
};

// ---- sampling ----------------------------------------------------------------------------------------------

struct SamplerArgs {
  Ref<RandomState> state;
  Ref<LearnedClasses> learned;
  UniformClasses uniform;
  LogUniformClasses log_uniform;
  FixedClasses fixed;
  int64_t trues = 0, samples = 0, slots = 0;
  bool unique = false;
};

// Words that a run uses up of its stream, as blocks.
uint64_t reserved_blocks(const SamplerArgs& a) { return static_cast<uint64_t>(2048 * a.samples + 3) / 4; }

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
// Drawing and learning are one: the counts that a run draws from are those that it adds to. Nothing looks at an interrupt while they are
// added to: a run has learned all of its classes or none.
Status learned_run(RunContext& c) {
  const auto& a = c.args<SamplerArgs>();
  const std::lock_guard lock(a.learned->lock());
  DTG_TRY(draw_classes(c, a, *a.learned, a.learned->take(reserved_blocks(a))));
  for (int64_t i = 0; i < a.trues; ++i) a.learned->add(c.in<int64_t>(0)[i]);
  return {};
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
    a->slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(a->samples) * 2 + 2));
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

Status log_uniform_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  a->log_uniform = {c.integer("range_max"), std::log1p(static_cast<double>(c.integer("range_max")))};
  DTG_TRY(prepare_sampler(c, a->log_uniform.range));
  DTG_ASSIGN(a->state, random_state(c));
  return c.sync(log_uniform_run);
}

Status learned_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  const int64_t range = c.integer("range_max");
  if (range > std::numeric_limits<int32_t>::max() / 2)
    return c.error("range_max %lld is too large to count", static_cast<long long>(range));
  DTG_TRY(prepare_sampler(c, range));
  DTG_ASSIGN(const Ref<RandomState> state, random_state(c));
  DTG_ASSIGN(Ref<Resource> found, c.store().find_or_create(c.device(), "class counts", state->name(), LearnedClasses::kKind, [&] {
    return Ref<Resource>(make_ref<LearnedClasses>(state->name(), range, state->take(0)));
  }));
  a->learned = Ref<LearnedClasses>::share(static_cast<LearnedClasses*>(found.get()));
  return c.sync(learned_run);
}

// Shares of at most 1 per class: what a heavy class has too much fills up a light one.
void make_aliases(std::span<const float> weights, std::vector<float>* keep, std::vector<int32_t>* alias) {
  const auto n = static_cast<int>(weights.size());
  double sum = 0;
  for (float weight : weights) sum += static_cast<double>(weight);
  std::vector<double> share;
  std::vector<int> heavy, light;
  for (int i = 0; i < n; ++i) {
    share.push_back(static_cast<double>(weights[static_cast<size_t>(i)] * static_cast<float>(n)) / sum);
    (share.back() < 1.0 ? light : heavy).push_back(i);
  }
  alias->assign(static_cast<size_t>(n), -1);
  while (!heavy.empty() && !light.empty()) {
    const auto low = static_cast<size_t>(light.back()), high = static_cast<size_t>(heavy.back());
    light.pop_back(), heavy.pop_back();
    (*alias)[low] = static_cast<int32_t>(high);
    share[high] -= 1.0 - share[low];
    (share[high] < 1.0 ? light : heavy).push_back(static_cast<int>(high));
  }
  keep->clear();
  for (double value : share) keep->push_back(static_cast<float>(value));
  // What is left has a share of 1 but for rounding.
  for (const auto& rest : {heavy, light}) {
    for (int i : rest) (*keep)[static_cast<size_t>(i)] = 1.0f, (*alias)[static_cast<size_t>(i)] = i;
  }
}

Status fixed_prepare(PrepareContext& c) {
  auto* a = c.args<SamplerArgs>();
  if (!c.attr<std::string>("vocab_file").empty()) return unimplemented("FixedUnigramCandidateSampler with a vocab_file; give the unigrams");
  const int64_t shards = c.integer("num_shards"), shard = c.integer("shard"), reserved = c.integer("num_reserved_ids");
  if (shard < 0 || shard >= shards) return c.error("shard %lld of %lld", static_cast<long long>(shard), static_cast<long long>(shards));
  std::vector<float> weights, keep;
  std::vector<int32_t> alias;
  int64_t word = 0;
  for (; word < reserved; ++word) {
    if (word % shards == shard) weights.push_back(0.0f);
  }
  // TensorFlow counts on from the reserved ones of this shard.
  word = static_cast<int64_t>(weights.size());
  const auto distortion = static_cast<float>(c.attr<double>("distortion"));
  for (double unigram : c.attr<std::vector<double>>("unigrams")) {
    if (word++ % shards != shard) continue;
    weights.push_back(std::pow(static_cast<float>(unigram), distortion));
    a->fixed.total += weights.back();
  }
  const int64_t range = c.integer("range_max");
  if (static_cast<int64_t>(weights.size()) != range) {
    return c.error("range_max is %lld, but there are %lld unigrams", static_cast<long long>(range), static_cast<long long>(weights.size()));
  }
  if (!(a->fixed.total > 0.0f)) return c.error("the unigrams have no weight");
  make_aliases(weights, &keep, &alias);
  a->fixed.weights = c.arena().copy(std::span<const float>(weights));
  a->fixed.keep = c.arena().copy(std::span<const float>(keep));
  a->fixed.alias = c.arena().copy(std::span<const int32_t>(alias));
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
  std::fill_n(table, a.slots, int64_t{0});
  int64_t slot = 0, found = 0;
  for (int64_t i = 0; i < a.samples; ++i) {
    place_of(sampled[i], sampled, table, a.slots, &slot);
    table[slot] = i + 1;
  }
  for (int64_t i = 0; i < a.rows * a.trues; ++i) {
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
  a->slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(a->samples) * 2 + 2));
  a->indices.prepare(c, 0);
  a->ids.prepare(c, 1);
  a->weights.prepare(c, 2);
  c.workspace(Bytes::of(a->slots + a->rows * a->trues, sizeof(int64_t)));
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
