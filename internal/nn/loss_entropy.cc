// Cross entropies: two classes by element, classes that exclude each other as distributions or as numbers, and the focal forms of them,
// which count less what is right already. Called by the thread that builds the model.
#include "nn/loss_parts.h"

namespace dtg {
namespace {

// Labels moved towards what would be said without knowing anything: `even` of it in all.
Value smoothed(Build& b, Value labels, double smoothing, Value even) {
  return smoothing == 0 ? labels : b.add(times(b, labels, 1 - smoothing), even);
}

Value smoothed_pair(const LossInput& in) {
  Build& b = in.build;
  if (!b.ok()) return {};
  return smoothed(b, in.labels, in.loss.label_smoothing, b.like(in.labels, 0.5 * in.loss.label_smoothing));
}

Value smoothed_classes(const LossInput& in) {
  Build& b = in.build;
  if (!b.ok() || in.loss.label_smoothing == 0) return in.labels;
  const PartialShape& shape = b.info(in.labels).shape;
  const int64_t known = shape.dim(shape.rank() - 1);
  if (known >= 0)
    return smoothed(b, in.labels, in.loss.label_smoothing, b.like(in.labels, in.loss.label_smoothing / static_cast<double>(known)));
  const Value size =
      b.op("StridedSlice", {b.shape(in.labels), b.ints({-1}), b.ints({0}), b.ints({1})}, {{"shrink_axis_mask", 1}, {"end_mask", 1}});
  if (!b.ok()) return {};
  const Value share = b.div(b.like(in.labels, in.loss.label_smoothing), b.cast(size, b.info(in.labels).dtype));
  return smoothed(b, in.labels, in.loss.label_smoothing, share);
}

// -(z log p + (1 - z) log(1 - p)) by element.
Value entropy_of_pair(Build& b, Value labels, Value p) {
  const Value sure = clip(b, p, kFuzz, 1 - kFuzz);
  const Value yes = b.mul(labels, b.op("Log", {sure})), no = b.mul(rest_of(b, 1, labels), b.op("Log", {rest_of(b, 1, sure)}));
  return b.neg(b.add(yes, no));
}

Value power(Build& b, Value x, double exponent) { return b.ok() ? b.op("Pow", {x, b.like(x, exponent)}) : Value(); }

Value binary_focal(const LossInput& in) {
  Build& b = in.build;
  const Value labels = smoothed_pair(in);
  const Value p = in.loss.from_logits ? b.op("Sigmoid", {in.predictions}) : in.predictions;
  // Keras takes the logits for this part also where it made probabilities of them.
  const Value entropy = in.loss.from_logits ? sigmoid_entropy(b, labels, in.predictions) : entropy_of_pair(b, labels, p);
  const Value right = b.add(b.mul(labels, p), b.mul(rest_of(b, 1, labels), rest_of(b, 1, p)));
  Value focal = b.mul(power(b, rest_of(b, 1, right), in.loss.gamma), entropy);
  if (in.loss.class_balancing) {
    const Value weight = b.add(times(b, labels, in.loss.alpha), times(b, rest_of(b, 1, labels), 1 - in.loss.alpha));
    focal = b.mul(weight, focal);
  }
  return mean_last(b, focal);
}

// Probabilities that add up to 1 and are never quite 0 or 1.
Value as_distribution(Build& b, Value p) { return clip(b, b.div(p, b.sum(p, last_axis(b), /*keep_dims=*/true)), kFuzz, 1 - kFuzz); }

Value softmax(Build& b, Value logits) {
  if (rank_of(b, logits) == 2) return b.op("Softmax", {logits});
  return b.reshape(b.op("Softmax", {as_rows(b, logits)}), b.shape(logits));
}

Value categorical_focal(const LossInput& in) {
  Build& b = in.build;
  const Value p = as_distribution(b, in.loss.from_logits ? softmax(b, in.predictions) : in.predictions);
  const Value entropy = b.mul(b.neg(smoothed_classes(in)), b.op("Log", {p}));
  const Value factor = times(b, power(b, rest_of(b, 1, p), in.loss.gamma), in.loss.alpha);
  return sum_last(b, b.mul(factor, entropy));
}

}  // namespace

Value sigmoid_entropy(Build& b, Value labels, Value logits) {
  if (!b.ok()) return {};
  const Value zero = b.zeros_like(logits), positive = b.op("GreaterEqual", {logits, zero});
  const Value relu = b.op("SelectV2", {positive, logits, zero});
  const Value minus_size = b.op("SelectV2", {positive, b.neg(logits), logits});
  return b.add(b.sub(relu, b.mul(logits, labels)), b.op("Log1p", {b.op("Exp", {minus_size})}));
}

Value binary_loss(const LossInput& in) {
  Build& b = in.build;
  if (in.loss.kind == Loss::Kind::binary_focal_crossentropy) return binary_focal(in);
  const Value labels = smoothed_pair(in);
  return mean_last(b, in.loss.from_logits ? sigmoid_entropy(b, labels, in.predictions) : entropy_of_pair(b, labels, in.predictions));
}

Value categorical_loss(const LossInput& in) {
  Build& b = in.build;
  if (in.loss.kind == Loss::Kind::categorical_focal_crossentropy) return categorical_focal(in);
  const Value labels = smoothed_classes(in);
  if (!in.loss.from_logits) return b.neg(sum_last(b, b.mul(labels, b.op("Log", {as_distribution(b, in.predictions)}))));
  const Value rows = b.op("SoftmaxCrossEntropyWithLogits", {as_rows(b, in.predictions), as_rows(b, labels)});
  return like_outer(b, rows, in.predictions);
}

Value sparse_loss(const LossInput& in, Value* mask) {
  Build& b = in.build;
  if (!b.ok()) return {};
  Value labels = in.labels, predictions = in.predictions;
  if (in.loss.ignores_class) {
    *mask = b.op("NotEqual", {labels, b.integer(in.loss.ignore_class, b.info(labels).dtype)});
    labels = b.op("SelectV2", {*mask, labels, b.zeros_like(labels)});
    predictions = b.op("SelectV2", {b.op("ExpandDims", {*mask, b.integer(-1)}), predictions, b.zeros_like(predictions)});
  }
  if (!in.loss.from_logits) predictions = b.op("Log", {clip(b, predictions, kFuzz, 1 - kFuzz)});
  const Value flat = rank_of(b, labels) == 1 ? labels : b.reshape(labels, b.ints({-1}));
  Value values = like_outer(b, b.op("SparseSoftmaxCrossEntropyWithLogits", {as_rows(b, predictions), flat}), predictions);
  if (mask->valid()) values = b.op("SelectV2", {*mask, values, b.zeros_like(values)});
  return values;
}

}  // namespace dtg
