// What the families of metrics have in common: state that batches are added to. For the files beside it; the thread that builds the model.
#pragma once

#include <vector>

#include "nn/loss_parts.h"
#include "nn/metric.h"

namespace dtg {

// One metric that is being built. All that is added up is float64.
class Tally {
 public:
  Tally(Model& model, const Metric& what, Value of_labels, Value of_predictions, Value of_weights)
      : metric(what), labels(of_labels), predictions(of_predictions), weights(of_weights), b(model.graph()), model_(model) {}

  const Metric& metric;
  Value labels, predictions, weights;
  Build b;

  Model& model() { return model_; }
  // A variable of zeros that each batch adds `amount` to, which has its shape: its place among all.
  size_t add(std::string_view name, const Shape& shape, Value amount);
  // What is in it by now; after all have been added.
  Value total(size_t place);
  Value wide(Value x) { return b.cast(x, DType::f64); }
  // float64 of weights as one per value, or ones.
  Value counted(Value values);
  // Update and reset, then what `result` makes of the totals.
  template <class Fn>
  Result<Measured> finish(Fn&& result) {
    Measured made;
    DTG_TRY(close(&made));
    made.result = b.cast(result(), DType::f32);
    DTG_TRY(b.status());
    return made;
  }

 private:
  Status close(Measured* made);
  Value reading(const NamedVariable& variable);
  struct Sum {
    NamedVariable variable;
    NodeId add = kNoNode;
    Value total;
  };
  Model& model_;
  std::vector<Sum> sums_;
};

// What a prediction is compared with to say yes. The threshold is one of probabilities; of logits, it is the logit of that.
double threshold_of(const Metric& metric);

Result<Measured> mean_metric(Tally& tally);
Result<Measured> r2_metric(Tally& tally);
Result<Measured> decision_metric(Tally& tally);  // precision, recall, counts of decisions
Result<Measured> auc_metric(Tally& tally);
Result<Measured> f1_metric(Tally& tally);
Result<Measured> matrix_metric(Tally& tally);

}  // namespace dtg
