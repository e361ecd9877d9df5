// Metrics that are a mean over examples: of values, of losses, of how often predictions are right; and R2. Called by the thread that builds
// the model.
#include "nn/layer.h"
#include "nn/metric_parts.h"

namespace dtg {
namespace {

using Kind = Metric::Kind;

Value best(Build& b, Value x) { return b.op("ArgMax", {x, b.integer(-1)}, {{"output_type", DType::i64}}); }

// As a loss asks it: one label for several predictions would be compared with each of them.
Status alike(Tally& t, Value labels, Value predictions) { return check_alike(t.model(), metric_name(t.metric.kind), labels, predictions); }

// Whether the greatest prediction of each row is the label's.
Result<Value> right_class(Tally& t) {
  Build& b = t.b;
  const char* const what = metric_name(t.metric.kind);
  const bool sparse = t.metric.kind == Kind::sparse_categorical_accuracy || t.metric.kind == Kind::sparse_top_k_categorical_accuracy;
  const int rank = rank_of(b, t.predictions);
  if (rank < 1)
    return invalid_argument("%s: the predictions are %s; a dimension of classes is needed", what,
                            described(t.model(), t.predictions).c_str());
  DTG_TRY(check_choice(t.model().graph(), what, "predictions", t.predictions));
  Value labels = t.labels;
  if (sparse) {
    const PartialShape& shape = b.info(labels).shape;
    if (shape.rank() == rank && shape.dim(rank - 1) == 1) labels = b.op("Squeeze", {labels}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
    DTG_TRY(check_classes(t.model(), what, labels, t.predictions));
    labels = b.cast(labels, DType::i64);
  } else {
    if (rank_of(b, labels) != rank) {
      return invalid_argument(
          "%s: the labels are %s and the predictions %s; equal shapes are needed. For labels that are numbers of classes use "
          "sparse_%s",
          what, described(t.model(), labels).c_str(), described(t.model(), t.predictions).c_str(), what);
    }
    labels = best(b, labels);
  }
  const bool top = t.metric.kind == Kind::top_k_categorical_accuracy || t.metric.kind == Kind::sparse_top_k_categorical_accuracy;
  if (!top) return b.op("Equal", {best(b, t.predictions), labels});
  const Value flat = b.reshape(labels, b.ints({-1}));
  const Value in = b.op("InTopKV2", {b.cast(as_rows(b, t.predictions), DType::f32), flat, b.integer(t.metric.k, DType::i64)});
  return like_outer(b, in, t.predictions);
}

// One value for each example or element, in float64, and `mask` where some do not count.
Result<Value> values_of(Tally& t, Value* mask) {
  Build& b = t.b;
  switch (t.metric.kind) {
    case Kind::mean:
    case Kind::sum: return t.wide(t.predictions);
    case Kind::accuracy: {
      Value labels = t.labels, predictions = t.predictions;
      match_ranks(b, &labels, &predictions);
      if (rank_of(b, labels) != rank_of(b, predictions)) {
        return invalid_argument("the labels are %s and the predictions %s; equal shapes are needed. Of scores of classes take "
                                "sparse_categorical_accuracy",
                                described(t.model(), labels).c_str(), described(t.model(), predictions).c_str());
      }
      DTG_TRY(alike(t, labels, predictions));
      return b.cast(b.op("Equal", {t.wide(labels), t.wide(predictions)}), DType::f64);
    }
    case Kind::binary_accuracy: {
      Value labels = t.labels, predictions = t.predictions;
      match_ranks(b, &labels, &predictions);
      if (!b.ok()) return b.status();
      DTG_TRY(alike(t, labels, predictions));
      const Value yes = b.op("Greater", {predictions, b.like(predictions, threshold_of(t.metric))});
      return b.cast(b.op("Equal", {t.wide(labels), t.wide(yes)}), DType::f64);
    }
    case Kind::categorical_accuracy:
    case Kind::sparse_categorical_accuracy:
    case Kind::top_k_categorical_accuracy:
    case Kind::sparse_top_k_categorical_accuracy: {
      DTG_ASSIGN(const Value right, right_class(t));
      return b.cast(right, DType::f64);
    }
    default: break;
  }
  Loss loss = t.metric.loss;
  if (t.metric.kind == Kind::mean_absolute_error) loss = {.kind = Loss::Kind::mean_absolute_error};
  if (t.metric.kind == Kind::log_loss) loss = {.kind = Loss::Kind::binary_crossentropy, .from_logits = t.metric.from_logits};
  if (t.metric.kind == Kind::mean_squared_error) loss = {};
  if (t.metric.kind == Kind::root_mean_squared_error) {
    Value labels = t.labels, predictions = t.predictions;
    match_ranks(b, &labels, &predictions);
    DTG_TRY(b.status());
    DTG_TRY(alike(t, labels, predictions));
    return b.ok() ? square(b, b.sub(t.wide(predictions), t.wide(labels))) : Value();
  }
  DTG_ASSIGN(const LossValues made, loss_values(t.model(), loss, t.labels, t.predictions));
  *mask = made.mask;
  return t.wide(made.values);
}

Value reduced(Build& b, Value x, int first, bool mean) {
  if (rank_of(b, x) <= first) return x;
  const Value axes = axes_from(b, x, first);
  return mean ? b.op("Mean", {x, axes}) : b.sum(x, axes);
}

}  // namespace

// Examples count alike, however many values one has: what an example has beyond the weights is made one value first.
Result<Measured> mean_metric(Tally& t) {
  Build& b = t.b;
  const bool mean = t.metric.kind != Kind::sum;
  Value mask;
  DTG_ASSIGN(Value values, values_of(t, &mask));
  DTG_TRY(b.status());
  Value weights = t.weights;
  if (weights.valid()) {
    weights = t.wide(weights);
    if (rank_of(b, weights) == rank_of(b, values) + 1) {
      match_ranks(b, &weights, &values, /*expand_vectors=*/false);
    }
    if (rank_of(b, weights) > rank_of(b, values)) {
      return invalid_argument("the sample weights are %s and the values %s; one weight per value, or per example, is needed",
                              described(t.model(), weights).c_str(), described(t.model(), values).c_str());
    }
  }
  if (mask.valid()) {
    const Value left = t.wide(mask);
    weights = weights.valid() ? b.mul(weights_for(b, weights, left), left) : left;
  }
  Value count;
  if (weights.valid()) {
    values = reduced(b, values, rank_of(b, weights), mean);
    weights = b.op("BroadcastTo", {weights, b.shape(values)});
    values = b.mul(values, weights);
    count = reduced(b, weights, 1, mean);
    count = b.sum(count, axes_from(b, count, 0));
  }
  values = reduced(b, values, 1, mean);
  if (!count.valid()) count = rank_of(b, values) == 0 ? b.scalar(DType::f64, 1) : t.wide(b.op("Size", {values}));
  const size_t total = t.add("total", {}, b.sum(values, axes_from(b, values, 0)));
  const size_t number = mean ? t.add("count", {}, count) : 0;
  return t.finish([&] {
    if (!mean) return t.total(total);
    const Value quotient = b.op("DivNoNan", {t.total(total), t.total(number)});
    return t.metric.kind == Kind::root_mean_squared_error ? b.op("Sqrt", {quotient}) : quotient;
  });
}

// 1 - residual / total, per output, from four sums each.
Result<Measured> r2_metric(Tally& t) {
  Build& b = t.b;
  match_ranks(b, &t.labels, &t.predictions);
  DTG_TRY(b.status());
  const PartialShape& shape = b.info(t.predictions).shape;
  if (shape.rank() != 2 || shape.dim(1) < 1 || rank_of(b, t.labels) != 2) {
    return invalid_argument("the labels are %s and the predictions %s; [batch,outputs] with outputs known is needed%s",
                            described(t.model(), t.labels).c_str(), described(t.model(), t.predictions).c_str(),
                            shape.rank() == 1 ? "; for one number per example reshape both to [-1, 1]" : "");
  }
  DTG_TRY(alike(t, t.labels, t.predictions));
  const Shape outputs = Shape::of({shape.dim(1)});
  const Value y = t.wide(t.labels), p = t.wide(t.predictions), weights = t.counted(y), weighted = b.mul(y, weights);
  const auto over = [&](Value x) { return b.sum(x, b.ints({0})); };
  const size_t squared = t.add("squared_sum", outputs, over(b.mul(y, weighted))), sum = t.add("sum", outputs, over(weighted));
  const size_t residual = t.add("residual", outputs, over(b.mul(square(b, b.sub(y, p)), weights)));
  const size_t count = t.add("count", outputs, over(weights));
  return t.finish([&] {
    const Value mean = b.div(t.total(sum), t.total(count));
    const Value total = b.sub(t.total(squared), b.mul(t.total(sum), mean));
    const Value raw = rest_of(b, 1, b.div(t.total(residual), total));
    if (!b.ok()) return Value();
    const Value scores = b.op("SelectV2", {b.op("IsInf", {raw}), b.zeros_like(raw), raw});
    switch (t.metric.average) {
      case Metric::Average::none: return scores;
      case Metric::Average::weighted: return b.div(sum_last(b, b.mul(total, scores)), sum_last(b, total));
      default: return mean_last(b, scores);
    }
  });
}

}  // namespace dtg
