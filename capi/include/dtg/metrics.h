/* dtg/metrics.h: metrics over as many batches as one likes: accuracy and its kin, AUC, precision, recall, F1, errors, R2, IoU, the
 * confusion matrix, means.
 *
 * A metric is state in variables of the model, a target that adds a batch to it, a value that says the result so far, and a target that
 * begins anew. All state is sums and counts in float64, so that it adds up exactly: batches of any sizes, the workers of a cluster that
 * share the variables, and towers (a metric that is made again after dtg_model_next_tower adds to the same state) give what one batch of
 * all of them would have given. Under a strategy each replica counts in a copy of its own, and the result is that of all of them, of all
 * workers too: take what the last replica of a run is given, whose `update` adds for all replicas of this process and whose `result`
 * sees what they added in the same run.
 *
 *   dtg_metric what = DTG_METRIC_INIT; dtg_metric_values area = DTG_METRIC_VALUES_INIT;
 *   what.kind = DTG_METRIC_AUC; what.from_logits = 1;
 *   dtg_nn_metric(model, &what, labels, logits, no_weights, &area);      with dtg_value no_weights = {0}
 *   each epoch: run area.reset, then area.update with each batch, then fetch area.result
 *
 * What stands at the head of dtg/nn.h holds here: names and scopes, shapes that are open until a run, errors, and that one thread at a time
 * uses a model. A run that has both `update` as a target and `result` as a fetch sees its own batch; runs at the same time may not. A step
 * that trains and measures gives both targets to one run. Metrics have no gradient. */
#ifndef DTG_METRICS_H
#define DTG_METRICS_H

#include <dtg/losses.h>

DTG_BEGIN_DECLS

/* Which metric: of labels y and predictions p, as tf.keras.metrics has it under this name. */
typedef int32_t dtg_metric_kind;
enum {
  /* of values of any shape, without labels; each example counts once, however many values it has */
  DTG_METRIC_MEAN = 0,
  /* of values, likewise */
  DTG_METRIC_SUM = 1,
  /* the mean of `loss` */
  DTG_METRIC_LOSS = 2,
  /* (y - p)^2 */
  DTG_METRIC_MEAN_SQUARED_ERROR = 3,
  /* |y - p| */
  DTG_METRIC_MEAN_ABSOLUTE_ERROR = 4,
  /* the root of the mean of (y - p)^2 */
  DTG_METRIC_ROOT_MEAN_SQUARED_ERROR = 5,
  /* 1 - sum (y - p)^2 / sum (y - mean y)^2 of [batch, outputs]; `average` over the outputs */
  DTG_METRIC_R2_SCORE = 6,
  /* "BinaryCrossentropy"; `from_logits` */
  DTG_METRIC_LOG_LOSS = 7,
  /* how often p is y; both may be integers */
  DTG_METRIC_ACCURACY = 8,
  /* how often (p > threshold) is y */
  DTG_METRIC_BINARY_ACCURACY = 9,
  /* how often the greatest p is where the greatest y is */
  DTG_METRIC_CATEGORICAL_ACCURACY = 10,
  /* how often it is at y, a number of a class */
  DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY = 11,
  /* how often that is among the k greatest */
  DTG_METRIC_TOP_K_CATEGORICAL_ACCURACY = 12,
  /* likewise, y a number of a class */
  DTG_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY = 13,
  /* the area under `curve`, from counts at `thresholds` thresholds; `from_logits` */
  DTG_METRIC_AUC = 14,
  /* of those with p > threshold, the share with y: true / (true + false positives) */
  DTG_METRIC_PRECISION = 15,
  /* of those with y, the share with p > threshold */
  DTG_METRIC_RECALL = 16,
  /* how many (by weight) have y and p > threshold */
  DTG_METRIC_TRUE_POSITIVES = 17,
  /* ... no y, but p > threshold */
  DTG_METRIC_FALSE_POSITIVES = 18,
  /* ... neither */
  DTG_METRIC_TRUE_NEGATIVES = 19,
  /* ... y, but not p > threshold */
  DTG_METRIC_FALSE_NEGATIVES = 20,
  /* 2 / (1 / precision + 1 / recall) of [batch, classes]; `average` over the classes; without threshold the greatest p of a row is what is
     said */
  DTG_METRIC_F1_SCORE = 21,
  /* mean over `classes` of |y and p| / |y or p|; y and p are numbers of classes, or scores of them */
  DTG_METRIC_MEAN_IOU = 22,
  /* [classes, classes]: how often y (the row) was said to be p; what is no class is not counted */
  DTG_METRIC_CONFUSION_MATRIX = 23
};

/* Which curve of DTG_METRIC_AUC. */
typedef int32_t dtg_metric_curve;
enum {
  /* true positives' rate over false positives' */
  DTG_CURVE_ROC = 0,
  /* precision over recall */
  DTG_CURVE_PR = 1
};

/* How the area between two thresholds is taken. */
typedef int32_t dtg_metric_summation;
enum {
  /* trapezoids; of PR as Davis and Goadrich have it */
  DTG_SUMMATION_INTERPOLATION = 0,
  /* the lesser side */
  DTG_SUMMATION_MINORING = 1,
  /* the greater side */
  DTG_SUMMATION_MAJORING = 2
};

/* What becomes of one number per class or output. */
typedef int32_t dtg_metric_average;
enum {
  /* that of Keras: none of F1, uniform of R2 */
  DTG_AVERAGE_DEFAULT = 0,
  /* the numbers themselves */
  DTG_AVERAGE_NONE = 1,
  /* their mean ("macro", "uniform_average") */
  DTG_AVERAGE_UNIFORM = 2,
  /* by how many of the class there are ("weighted"); of R2 by variance ("variance_weighted_average") */
  DTG_AVERAGE_WEIGHTED = 3,
  /* of F1: all classes counted as one */
  DTG_AVERAGE_MICRO = 4
};

/* A metric and its settings, which are constants of the graph. A 0 means the default that stands beside the field. */
typedef struct dtg_metric {
  size_t struct_size;
  /* of the scope of its variables; NULL: the name of the kind in tf.keras, "auc" */
  const char *name;
  size_t name_len;
  dtg_metric_kind kind;
  /* predictions are logits: of AUC, log loss, binary accuracy, precision, recall, true and false positives and negatives, and F1 with a
     threshold. Elsewhere an error */
  int32_t from_logits;
  /* of probabilities, also with `from_logits`, which compares logits with that of the threshold: with 0 for 0.5. 0: 0.5; of F1: none */
  double threshold;
  /* of top k; 0: 5 */
  int64_t k;
  /* of IoU and the confusion matrix */
  int64_t classes;
  /* of AUC, at least 3; 0: 200 */
  int64_t thresholds;
  dtg_metric_curve curve;
  dtg_metric_summation summation;
  dtg_metric_average average;
  /* of IoU and the confusion matrix: labels of `ignore_class` do not count */
  int32_t ignores_class;
  int64_t ignore_class;
  /* of DTG_METRIC_LOSS; NULL: the mean squared error. Its reduction and its class weights are not looked at */
  const dtg_loss *loss;
} dtg_metric;
/* clang-format off */
#define DTG_METRIC_INIT                                                                                                                    \
  {sizeof(dtg_metric), NULL, DTG_STRLEN, DTG_METRIC_MEAN, 0, 0.0, 0, 0, 0, DTG_CURVE_ROC, DTG_SUMMATION_INTERPOLATION,                     \
   DTG_AVERAGE_DEFAULT, 0, 0, NULL}
/* clang-format on */

/* What dtg_nn_metric adds, as values of the graph; written by the library. */
typedef struct dtg_metric_values {
  size_t struct_size;
  /* the target that adds a batch */
  dtg_value update;
  /* the target that makes all state 0 */
  dtg_value reset;
  dtg_value
      /* float32: a scalar, a vector over classes or outputs (F1, R2), or a matrix. 0 before the first batch, R2 not a number */
      result;
} dtg_metric_values;
/* clang-format off */
#define DTG_METRIC_VALUES_INIT {sizeof(dtg_metric_values), {0}, {0}, {0}}
/* clang-format on */

/* Adds a metric of `predictions` for `labels` ({0} for mean and sum). `sample_weights` as in dtg_nn_loss: what an example counts; {0}: all
 * alike. The model gets variables that are not trained, so run dtg_model_init's target or `reset` before the first batch. They are saved
 * with the model. `metric` may be NULL: a mean. Errors: INVALID_ARGUMENT (shapes, types and numbers that do not fit, labels and logits that
 * look swapped), FAILED_PRECONDITION (a tower that is built otherwise than the first one), RESOURCE_EXHAUSTED. Since 0.1. Semantics:
 * tf.keras.metrics of Keras 3, but for counts in float64. */
DTG_ERR dtg_nn_metric(dtg_model *model, const dtg_metric *metric, dtg_value labels, dtg_value predictions, dtg_value sample_weights,
                      dtg_metric_values *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_METRICS_H */
