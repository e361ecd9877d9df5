// dtg/metrics.h. The function reads its structs, fills in the defaults and calls its namesake in internal/nn. One thread at a time uses a
// model.
#include "dtg/metrics.h"

#include "capi/guard.h"
#include "capi/losses.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "capi/scale.h"
#include "nn/metric.h"

namespace dtg::capi {
namespace {

Result<Metric> read_metric(const Model& model, const dtg_metric* given) {
  using Average = Metric::Average;
  dtg_metric c = DTG_METRIC_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_metric), "dtg_metric", &c));
  Metric metric;
  DTG_ASSIGN(metric.kind, read_enum(c.kind, Metric::Kind::confusion_matrix, "kind of metric"));
  DTG_ASSIGN(metric.curve, read_enum(c.curve, Metric::Curve::pr, "curve"));
  DTG_ASSIGN(metric.summation, read_enum(c.summation, Metric::Summation::majoring, "summation"));
  if (c.average < 0 || c.average > DTG_AVERAGE_MICRO) {
    return invalid_argument("average: %d is none of its values (0 to %d)", c.average, DTG_AVERAGE_MICRO);
  }
  const bool f1 = metric.kind == Metric::Kind::f1_score;
  if (c.average == DTG_AVERAGE_MICRO && !f1) return invalid_argument("micro average: it is for F1 only");
  metric.average = c.average != DTG_AVERAGE_DEFAULT ? static_cast<Average>(c.average - 1) : f1 ? Average::none : Average::uniform;
  metric.name = text(c.name, c.name_len);
  metric.from_logits = c.from_logits != 0;
  if (c.threshold < 0) return invalid_argument("a threshold of %g; it must be in [0, 1]", c.threshold);
  metric.threshold = real_or(c.threshold, metric.threshold);
  metric.k = number_or(c.k, metric.k);
  metric.classes = c.classes;
  metric.thresholds = number_or(c.thresholds, metric.thresholds);
  metric.ignores_class = c.ignores_class != 0;
  metric.ignore_class = c.ignore_class;
  if (c.loss && metric.kind != Metric::Kind::loss)
    return invalid_argument("a loss was given to a metric of another kind; use the metric of a loss");
  DTG_ASSIGN(metric.loss, read_loss(model, c.loss));
  return metric;
}

// A threshold of the host's own may be one of logits, unless it says what they are.
bool is_of_probabilities(const Metric& metric) {
  using Kind = Metric::Kind;
  if (metric.kind == Kind::loss) return capi::is_of_probabilities(metric.loss.kind);
  const bool decides = metric.kind == Kind::binary_accuracy || (metric.kind >= Kind::precision && metric.kind <= Kind::false_negatives);
  return metric.kind == Kind::log_loss || metric.kind == Kind::auc || metric.from_logits ||
         (decides && metric.threshold == Metric().threshold);
}

void tell_of(const ModelObject& object, const Metric& metric, Value predictions) {
  const char* const what = metric_name(metric.kind);
  const bool of_loss = metric.kind == Metric::Kind::loss;
  if (is_of_probabilities(metric)) {
    const bool logits = of_loss ? metric.loss.from_logits : metric.from_logits;
    tell_scale(object, predictions, logits ? Scale::logits : Scale::probabilities, what);
  }
  if (of_loss && is_over_classes(metric.loss.kind)) tell_one_class(object, predictions, metric.loss.axis, what);
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_metric(dtg_model* model, const dtg_metric* what, dtg_value labels, dtg_value predictions, dtg_value sample_weights,
                         dtg_metric_values* out) noexcept {
  return with_model(model, Owner::Use::change, [&](ModelObject& object) -> Status {
    dtg_metric_values values = DTG_METRIC_VALUES_INIT;
    DTG_TRY(read_struct(out, sizeof(dtg_metric_values), "dtg_metric_values", &values));
    return all_or_nothing(*object.model, [&]() -> Status {
      Model& m = *object.model;
      DTG_ASSIGN(const Metric metric, read_metric(m, what));
      DTG_ASSIGN(const Measured made, measure(m, metric, value_of(labels), value_of(predictions), value_of(sample_weights)));
      tell_of(object, metric, value_of(predictions));
      values.update = to_c(m.graph().value(made.update));
      values.reset = to_c(m.graph().value(made.reset));
      values.result = to_c(made.result);
      write_struct(values, out);
      return {};
    });
  });
}

}  // extern "C"
