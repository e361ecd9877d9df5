// Metric: what people look at, over as many batches as they like: sums and counts in variables, an update that adds a batch, a result, and
// a reset; the metrics of tf.keras. All state is sums in float64, so that what workers and towers add to the same variables is what one
// would have added. Each family is a file: metric_mean.cc, metric_decisions.cc, metric_matrix.cc. Functions over a model; the thread that
// builds it.
#pragma once

#include <string_view>

#include "nn/loss.h"

namespace dtg {

struct Metric {
  enum class Kind : int32_t {
    mean,
    sum,
    loss,  // the mean of `loss`
    mean_squared_error,
    mean_absolute_error,
    root_mean_squared_error,
    r2_score,
    log_loss,
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    top_k_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    auc,
    precision,
    recall,
    true_positives,
    false_positives,
    true_negatives,
    false_negatives,
    f1_score,
    mean_iou,
    confusion_matrix
  };
  enum class Curve : int32_t { roc, pr };
  enum class Summation : int32_t { interpolation, minoring, majoring };
  // Over classes or outputs. `uniform` is macro, `weighted` by how many there are, or by variance; micro counts all as one.
  enum class Average : int32_t { none, uniform, weighted, micro };
  Kind kind = Kind::mean;
  std::string_view name = {};
  bool from_logits = false;
  double threshold = -1;  // less than 0: not given; of probabilities, also where predictions are logits
  int64_t k = 5;
  int64_t classes = 0;
  int64_t thresholds = 200;
  Curve curve = Curve::roc;
  Summation summation = Summation::interpolation;
  Average average = Average::none;
  bool ignores_class = false;
  int64_t ignore_class = 0;
  Loss loss = {};
};

struct Measured {
  NodeId update = kNoNode;  // adds a batch
  NodeId reset = kNoNode;   // makes all state 0, which also is its first value
  Value result;             // float32. In a run that updates too, with that batch
};

const char* metric_name(Metric::Kind kind);

// `labels` are invalid for mean and sum, `weights` where all count alike.
Result<Measured> measure(Model& model, const Metric& metric, Value labels, Value predictions, Value weights);

}  // namespace dtg
