// Loss: what a model is to be bad at as little as possible, as a value of settings; the losses of tf.keras, with its formulas. Each family
// is a file: loss_distance.cc (numbers), loss_entropy.cc (classes), loss_overlap.cc (masks), loss_ctc.cc (sequences); loss.cc checks,
// weighs and sums up. Functions over a model, which gets no variables; the thread that builds it.
#pragma once

#include <span>
#include <string_view>

#include "nn/model.h"

namespace dtg {

struct Loss {
  enum class Kind : int32_t {
    mean_squared_error,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_logarithmic_error,
    huber,
    log_cosh,
    cosine_similarity,
    kl_divergence,
    poisson,
    hinge,
    squared_hinge,
    categorical_hinge,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    sparse_categorical_crossentropy,
    ctc,
    dice,
    tversky,
    contrastive
  };
  // What becomes of the losses: their sum over their number, their sum, themselves, or their sum over that of the weights.
  enum class Reduction : int32_t { sum_over_batch_size, sum, none, mean_with_sample_weight };
  Kind kind = Kind::mean_squared_error;
  std::string_view name = {};
  Reduction reduction = Reduction::sum_over_batch_size;
  bool from_logits = false;
  double label_smoothing = 0;
  double delta = 1;     // huber
  double alpha = 0.25;  // focal; of tversky 0.5
  double beta = 0.5;    // tversky
  double gamma = 2;     // focal
  double margin = 1;    // contrastive
  bool class_balancing = false;
  bool per_example = false;  // dice, tversky
  int64_t axis = -1;         // of the classes or components
  bool ignores_class = false;
  int64_t ignore_class = 0;
  Value class_weights;  // [classes]; invalid: none
  Value lengths;        // ctc: steps of each prediction that count; invalid: all
};

const char* loss_name(Loss::Kind kind);

// The loss of labels and predictions; `weights` may be invalid.
Result<Value> loss(Model& model, const Loss& loss, Value labels, Value predictions, Value weights);

// One loss per example, before weights: what a metric takes the mean of. `mask` is bool like the values, or invalid: all of them count.
struct LossValues {
  Value values, mask;
};
Result<LossValues> loss_values(Model& model, const Loss& loss, Value labels, Value predictions);

// base + the sum of l1 |v| + l2 v^2 over the variables with these handles; of none: over all trainable ones that are no vector.
Result<Value> regularize(Model& model, Value base, std::span<const Value> handles, double l1, double l2);

// The mean of max(|anchor - positive|^2 - |anchor - negative|^2 + margin, 0), with distances over the last dimension.
Result<Value> triplet(Model& model, Value anchor, Value positive, Value negative, double margin);

}  // namespace dtg
