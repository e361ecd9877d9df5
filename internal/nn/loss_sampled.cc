// NCE and sampled softmax, as tf.nn has them. Called by the thread that builds the model.
#include "nn/loss_sampled.h"

#include "nn/layer.h"
#include "nn/loss_parts.h"
#include "nn/scope.h"

namespace dtg {
namespace {

using Kind = SampledLoss::Kind;

const char* what(const SampledLoss& loss) { return loss.kind == Kind::nce ? "nce" : "sampled_softmax"; }

Status check_sampled(const Model& model, const SampledLoss& loss, Value labels, Value x) {
  DTG_TRY(model.graph().check(labels).with_context(what(loss)));
  const ValueInfo& l = model.graph().info(labels);
  const bool ints = l.dtype == DType::i32 || l.dtype == DType::i64;
  const bool many = l.shape.rank() == 2 && l.shape.dim(1) > 0;
  if (!ints || (l.shape.rank() != 1 && !many)) {
    return invalid_argument(
        "%s: the labels are %s; int32 or int64[batch], or [batch,trues] with trues known, is needed. They come before x", what(loss),
        described(model, labels).c_str());
  }
  if (model.graph().info(x).dtype != DType::f32) {
    return invalid_argument("%s: the input is %s; float32 is needed", what(loss), described(model, x).c_str());
  }
  if (loss.classes < 1 || loss.samples < 1 || loss.samples > loss.classes) {
    return invalid_argument("%s: %lld samples of %lld classes; at least 1 and at most as many as classes are needed", what(loss),
                            static_cast<long long>(loss.samples), static_cast<long long>(loss.classes));
  }
  const int given = (loss.sampled.valid() ? 1 : 0) + (loss.true_expected.valid() ? 1 : 0) + (loss.sampled_expected.valid() ? 1 : 0);
  if (given != 0 && given != 3) {
    return invalid_argument("%s: classes that were drawn elsewhere need all of sampled, true_expected and sampled_expected", what(loss));
  }
  for (const Value each : {loss.sampled, loss.true_expected, loss.sampled_expected}) {
    if (given) DTG_TRY(model.graph().check(each).with_context(what(loss)));
  }
  return {};
}

struct Drawn {
  Value classes, true_expected, expected;
};

// A function of (seed, this layer, step), as dropout is: nothing is kept between runs, so a step that is made again draws the same classes,
// whoever makes it. Where a class is drawn is no function of the weights.
Result<Drawn> draw(Model& model, Build& b, const SampledLoss& loss, Value labels, int64_t trues) {
  if (loss.sampled.valid()) return Drawn{b.cast(loss.sampled, DType::i64), loss.true_expected, loss.sampled_expected};
  DTG_TRY(b.status());
  DTG_ASSIGN(const NamedVariable step, model.global_step());
  const RandomStream stream = model.next_stream();
  const auto layer = static_cast<int64_t>(stream.seed ^ stream.number * 0x9e3779b97f4a7c15u);
  const Value pair[] = {b.integer(layer, DType::i64), step.read};
  const Value made = b.op("_SampleClasses", {labels, b.op("Pack", pair)},
                          {{"num_true", trues},
                           {"num_sampled", loss.samples},
                           {"unique", true},
                           {"range_max", loss.classes},
                           {"log_uniform", loss.candidates == SampledLoss::Candidates::log_uniform}});
  DTG_TRY(b.status());
  return Drawn{made, made.sibling(1), made.sibling(2)};
}

// Sampled classes that are true ones of the example, as logits that say never.
Value without_hits(Build& b, Value logits, Value labels, Value sampled, int64_t trues) {
  const Value hits = b.op("ComputeAccidentalHits", {labels, sampled}, {{"num_true", trues}});
  if (!b.ok()) return {};
  const Value pair[] = {b.cast(hits, DType::i64), hits.sibling(1)};
  const Value places = b.op("Pack", pair, std::array{Attr{"axis", 1}});
  const Value shape = b.op("Shape", {logits}, {{"out_type", DType::i64}});
  return b.add(logits, b.op("SparseToDense", {places, shape, hits.sibling(2), b.scalar(DType::f32, 0)}, {{"validate_indices", false}}));
}

struct Logits {
  Value trues, sampled;
};

Logits logits_of(Model& model, Build& b, const NamedVariable& weights, const NamedVariable& biases, Value labels, Value sampled, Value x,
                 int64_t trues, int64_t width) {
  const Value flat = b.reshape(labels, b.ints({-1}));
  // One lookup each, so that their gradients are rows of one piece.
  const Value ids = b.op("ConcatV2", {flat, sampled, b.integer(0)});
  const Value rows = look_up(model, b, weights, ids), offsets = look_up(model, b, biases, ids);
  const Value count = b.op("Size", {flat}), vector = b.ints({1});
  const Value cut = b.reshape(count, vector);
  const Value from = b.op("ConcatV2", {cut, b.ints({0}), b.integer(0)}), to = b.op("ConcatV2", {cut, b.ints({-1}), b.integer(0)});
  const Value true_rows = b.reshape(b.op("Slice", {rows, b.ints({0, 0}), to}), b.ints({-1, trues, width}));
  const Value sampled_rows = b.op("Slice", {rows, from, b.ints({-1, -1})});
  const Value true_offsets = b.reshape(b.op("Slice", {offsets, b.ints({0}), cut}), b.ints({-1, trues}));
  const Value sampled_offsets = b.op("Slice", {offsets, cut, b.ints({-1})});
  const Value products = b.sum(b.mul(b.op("ExpandDims", {x, b.integer(1)}), true_rows), b.ints({2}));
  return {b.add(products, true_offsets), b.add(b.op("MatMul", {x, sampled_rows}, {{"transpose_b", true}}), sampled_offsets)};
}

Value losses(Build& b, const SampledLoss& loss, const Logits& logits, int64_t trues) {
  const Value all = b.op("ConcatV2", {logits.trues, logits.sampled, b.integer(1)});
  const Value share = times(b, b.op("OnesLike", {logits.trues}), 1.0 / static_cast<double>(trues));
  if (!b.ok()) return {};
  const Value wanted = b.op("StopGradient", {b.op("ConcatV2", {share, b.zeros_like(logits.sampled), b.integer(1)})});
  if (loss.kind == Kind::nce) return sum_last(b, sigmoid_entropy(b, wanted, all));
  return b.op("SoftmaxCrossEntropyWithLogits", {all, wanted});
}

}  // namespace

Result<Value> sampled_loss(Model& model, const SampledLoss& loss, Value labels, Value x) {
  DTG_ASSIGN(const int64_t width, channels_of(model, x, what(loss), 2, 2));
  DTG_TRY(check_sampled(model, loss, labels, x));
  const NameScope scope(model.graph(), loss.name.empty() ? std::string_view(what(loss)) : loss.name);
  Build b(model.graph());
  DTG_ASSIGN(const Shape table, Shape::make(std::array{loss.classes, width}));
  DTG_ASSIGN(const NamedVariable weights,
             variable_of(model, loss.weights_of, {.name = "weights", .shape = table, .initializer = loss.weights}));
  DTG_ASSIGN(const NamedVariable biases,
             variable_of(model, loss.weights_of, {.name = "biases", .shape = Shape::of({loss.classes}), .initializer = loss.biases}));
  if (rank_of(b, labels) == 1) labels = b.op("ExpandDims", {labels, b.integer(1)});
  labels = b.cast(labels, DType::i64);
  DTG_TRY(b.status());
  const int64_t trues = b.info(labels).shape.dim(1);
  const auto found = draw(model, b, loss, labels, trues);
  DTG_TRY(found.status().with_context(what(loss)));
  const Drawn& drawn = found.value();
  Logits logits = logits_of(model, b, weights, biases, labels, drawn.classes, x, trues, width);
  if (!loss.keep_hits) logits.sampled = without_hits(b, logits.sampled, labels, drawn.classes, trues);
  // Less for what is drawn often anyway.
  logits.trues = b.sub(logits.trues, b.op("Log", {drawn.true_expected}));
  logits.sampled = b.sub(logits.sampled, b.op("Log", {drawn.expected}));
  const Value out = reduced_loss(b, losses(b, loss, logits, trues), {}, loss.reduction);
  DTG_TRY(b.status().with_context(what(loss)));
  return out;
}

}  // namespace dtg
