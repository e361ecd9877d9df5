// Metrics: what is asked of them, their state and its targets. Called by the thread that builds the model.
#include "nn/metric.h"

#include <cmath>
#include <string>

#include "nn/layer.h"
#include "nn/metric_parts.h"
#include "nn/scope.h"

namespace dtg {
namespace {

using Kind = Metric::Kind;

bool has_threshold(const Metric& metric) {
  const bool decides = metric.kind >= Kind::precision && metric.kind <= Kind::false_negatives;
  return decides || metric.kind == Kind::binary_accuracy || (metric.kind == Kind::f1_score && metric.threshold >= 0);
}

bool has_labels(Kind kind) { return kind != Kind::mean && kind != Kind::sum; }

Status check_metric(const Model& model, const Metric& metric, Value labels, Value predictions, Value weights) {
  const char* const what = metric_name(metric.kind);
  if (has_labels(metric.kind) != labels.valid()) {
    return invalid_argument(has_labels(metric.kind) ? "%s: labels are needed" : "%s: there are no labels in it, only values", what);
  }
  const bool numbers = metric.kind == Kind::accuracy || metric.kind == Kind::mean_iou || metric.kind == Kind::confusion_matrix;
  if (labels.valid() && !numbers) DTG_TRY(check_pair(model, what, labels, predictions));
  if (!labels.valid()) DTG_TRY(check_weights(model, what, predictions));
  if (labels.valid() && numbers) {
    DTG_TRY(check_weights(model, what, labels));
    DTG_TRY(check_weights(model, what, predictions));
  }
  if (weights.valid()) DTG_TRY(check_weights(model, what, weights));
  if (metric.threshold > 1 || std::isnan(metric.threshold))
    return invalid_argument("%s: a threshold of %g; it must be in [0, 1]", what, metric.threshold);
  if (metric.k < 1) return invalid_argument("%s: k is %lld; at least 1 is needed", what, static_cast<long long>(metric.k));
  if (metric.thresholds < 3 || metric.thresholds > (1 << 20)) {
    return invalid_argument("%s: %lld thresholds; 3 to %d are needed", what, static_cast<long long>(metric.thresholds), 1 << 20);
  }
  const bool logits = metric.kind == Kind::auc || metric.kind == Kind::log_loss || has_threshold(metric);
  if (metric.from_logits && !logits) {
    return invalid_argument("%s: it does not ask what predictions are; from_logits must be 0%s", what,
                            metric.kind == Kind::loss       ? ", and stand in the loss"
                            : metric.kind == Kind::f1_score ? ", unless a threshold decides"
                                                            : "");
  }
  return {};
}

}  // namespace

size_t Tally::add(std::string_view name, const Shape& shape, Value amount) {
  if (!b.ok()) return 0;
  // Each replica of a strategy counts what it sees, and who reads gets the sum of all.
  auto made = model_.add_variable(
      {.name = name, .dtype = DType::f64, .shape = shape, .trainable = false, .sync = Sync::on_read, .aggregation = Aggregation::sum});
  if (!made.ok()) {
    b.fail(made.status());
    return 0;
  }
  const Value operands[] = {made.value().handle, wide(amount)};
  const ColocationScope beside(b.graph(), made.value().handle.node());
  sums_.push_back({made.value(), b.node("AssignAddVariableOp", operands), {}});
  return sums_.size() - 1;
}

Value Tally::total(size_t place) { return b.ok() ? sums_[place].total : Value(); }

Value Tally::counted(Value values) {
  if (!weights.valid()) return b.op("OnesLike", {values});
  return b.op("BroadcastTo", {weights_for(b, weights, values), b.shape(values)});
}

// By now; that of all replicas where each has its own.
Value Tally::reading(const NamedVariable& variable) {
  std::vector<Value> reads;
  for (size_t i = 0; i == 0 || i < variable.copies.size(); ++i) {
    const Value handle = variable.at_replica(i).handle;
    const ColocationScope beside(b.graph(), handle.node());
    reads.push_back(b.op("ReadVariableOp", {handle}, {{"dtype", DType::f64}}));
  }
  if (variable.copies.empty() || !model_.policy() || !b.ok()) return reads[0];
  Result<Value> all = model_.policy()->read_of(variable, reads);
  if (all.ok()) return all.value();
  b.fail(all.status());
  return {};
}

// The readings come after the additions, so that a run that does both sees its own batch.
Status Tally::close(Measured* made) {
  DTG_TRY(b.status());
  std::vector<NodeId> adds, assigns;
  for (Sum& sum : sums_) {
    for (const NodeId add : model_.additions(sum.variable, sum.add)) adds.push_back(add);
    assigns.push_back(sum.variable.assign);
    sum.total = reading(sum.variable);
  }
  made->update = b.node("NoOp", {}, {}, "update", adds);
  made->reset = b.node("NoOp", {}, {}, "reset", assigns);
  return b.status();
}

double threshold_of(const Metric& metric) {
  const double threshold = metric.threshold < 0 ? 0.5 : metric.threshold;
  return metric.from_logits ? std::log(threshold / (1 - threshold)) : threshold;
}

const char* metric_name(Kind kind) {
  static constexpr const char* kNames[] = {"mean",
                                           "sum",
                                           "loss",
                                           "mean_squared_error",
                                           "mean_absolute_error",
                                           "root_mean_squared_error",
                                           "r2_score",
                                           "log_loss",
                                           "accuracy",
                                           "binary_accuracy",
                                           "categorical_accuracy",
                                           "sparse_categorical_accuracy",
                                           "top_k_categorical_accuracy",
                                           "sparse_top_k_categorical_accuracy",
                                           "auc",
                                           "precision",
                                           "recall",
                                           "true_positives",
                                           "false_positives",
                                           "true_negatives",
                                           "false_negatives",
                                           "f1_score",
                                           "mean_iou",
                                           "confusion_matrix"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Measured> measure(Model& model, const Metric& metric, Value labels, Value predictions, Value weights) {
  DTG_TRY(check_metric(model, metric, labels, predictions, weights));
  const char* const what = metric_name(metric.kind);
  const NameScope scope(model.graph(), metric.name.empty() ? std::string_view(what) : metric.name);
  Tally tally(model, metric, labels, predictions, weights);
  Result<Measured> made = [&] {
    switch (metric.kind) {
      case Kind::r2_score: return r2_metric(tally);
      case Kind::auc: return auc_metric(tally);
      case Kind::precision:
      case Kind::recall:
      case Kind::true_positives:
      case Kind::false_positives:
      case Kind::true_negatives:
      case Kind::false_negatives: return decision_metric(tally);
      case Kind::f1_score: return f1_metric(tally);
      case Kind::mean_iou:
      case Kind::confusion_matrix: return matrix_metric(tally);
      default: return mean_metric(tally);
    }
  }();
  // Some of them say it themselves.
  if (!made.ok() && !made.status().message().starts_with(std::string(what) + ":")) return made.status().with_context(what);
  return made;
}

}  // namespace dtg
