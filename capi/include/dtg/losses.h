/* dtg/losses.h: the losses of tf.keras beyond the four of dtg/nn.h, weights of samples and of classes, losses over sampled classes, and
 * penalties on variables.
 *
 * What stands at the head of dtg/nn.h holds here: names and scopes, shapes that are open until a run, errors, and that one thread at a time
 * uses a model. All of it adds nodes and computes nothing; gradients go through all of it, and all runs on any device, alone and on a
 * cluster.
 *
 *   dtg_loss what = DTG_LOSS_INIT;
 *   what.kind = DTG_LOSS_CATEGORICAL_CROSSENTROPY; what.from_logits = 1; what.label_smoothing = 0.1;
 *   dtg_nn_loss(model, &what, labels, logits, no_weights, &loss);      with dtg_value no_weights = {0}
 *   dtg_nn_regularize(model, loss, NULL, 0, 0.0, 1e-4, &loss);         weight decay as a part of the loss
 *   dtg_nn_minimize(model, loss, &optimizer, &training);
 *
 * Errors of all functions: INVALID_ARGUMENT (a closed handle, a value of another graph, a shape, a type or a number that does not fit, with
 * what was expected; labels and logits that look swapped), FAILED_PRECONDITION, RESOURCE_EXHAUSTED. What fails leaves the model as it was.
 */
#ifndef DTG_LOSSES_H
#define DTG_LOSSES_H

#include <dtg/nn.h>

DTG_BEGIN_DECLS

/* Which loss: one value for each example, from labels y and predictions p, as tf.keras.losses has it under this name. "mean" and "sum" go
 * over `axis`, the last dimension unless said otherwise, which the losses no longer have; e is 1e-7. Labels have the shape of the
 * predictions and any type of number; where ranks differ by a last dimension of 1, it is dropped, or given to a vector. */
typedef int32_t dtg_loss_kind;
enum {
  /* mean (y - p)^2 */
  DTG_LOSS_MEAN_SQUARED_ERROR = 0,
  /* mean |y - p| */
  DTG_LOSS_MEAN_ABSOLUTE_ERROR = 1,
  /* 100 mean |y - p| / max(|y|, e) */
  DTG_LOSS_MEAN_ABSOLUTE_PERCENTAGE_ERROR = 2,
  /* mean (log(max(p, e) + 1) - log(max(y, e) + 1))^2 */
  DTG_LOSS_MEAN_SQUARED_LOGARITHMIC_ERROR = 3,
  /* mean of d^2 / 2 where |d| <= delta, else delta |d| - delta^2 / 2; d = p - y */
  DTG_LOSS_HUBER = 4,
  /* mean log cosh(p - y) */
  DTG_LOSS_LOG_COSH = 5,
  /* -sum of y / |y| * p / |p|: -1 for equal directions */
  DTG_LOSS_COSINE_SIMILARITY = 6,
  /* sum y log(y / p), both clipped to [e, 1] */
  DTG_LOSS_KL_DIVERGENCE = 7,
  /* mean p - y log(p + e) */
  DTG_LOSS_POISSON = 8,
  /* mean max(1 - y p, 0); labels -1 or 1, or all of them 0 or 1 */
  DTG_LOSS_HINGE = 9,
  /* mean max(1 - y p, 0)^2, likewise */
  DTG_LOSS_SQUARED_HINGE = 10,
  /* max(max (1 - y) p - sum y p + 1, 0) */
  DTG_LOSS_CATEGORICAL_HINGE = 11,
  /* mean -y log p - (1 - y) log(1 - p) */
  DTG_LOSS_BINARY_CROSSENTROPY = 12,
  /* the same times (1 - the probability of the label)^gamma */
  DTG_LOSS_BINARY_FOCAL_CROSSENTROPY = 13,
  /* -sum y log p; rows of y are distributions */
  DTG_LOSS_CATEGORICAL_CROSSENTROPY = 14,
  /* -sum alpha (1 - p)^gamma y log p */
  DTG_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY = 15,
  /* -log p[y]; labels are integers, numbers of classes, one for each row of the predictions */
  DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY = 16,
  /* labels int32 or int64[batch, length] with zeros after the last, logits[batch, steps, classes], class 0 the blank; `lengths`. Labels
     that do not fit into their steps are lost at 1e30 */
  DTG_LOSS_CTC = 17,
  /* 1 - 2 sum y p / (sum y + sum p + e), over the whole batch, or `per_example` */
  DTG_LOSS_DICE = 18,
  /* 1 - sum y p / (sum y p + alpha sum y (1 - p) + beta sum p (1 - y) + e), likewise */
  DTG_LOSS_TVERSKY = 19,
  /* by element, p a distance, y 1 for pairs of a kind: y p^2 + (1 - y) max(margin - p, 0)^2 */
  DTG_LOSS_CONTRASTIVE = 20
};

/* What becomes of the losses of the examples, times their weights. */
typedef int32_t dtg_loss_reduction;
enum {
  /* their sum over their number, weights of 0 counted: "sum_over_batch_size" */
  DTG_LOSS_MEAN = 0,
  /* their sum */
  DTG_LOSS_SUM = 1,
  /* themselves: "none" */
  DTG_LOSS_EACH = 2,
  /* their sum over that of the weights: "mean_with_sample_weight" */
  DTG_LOSS_MEAN_BY_WEIGHTS = 3
};

/* A loss and its settings, which are constants of the graph. A 0 means the default that stands beside the field. Settings that would be
 * taken for done and that the kind does not know (from_logits, label_smoothing, ignored classes, lengths) are errors; other numbers are not
 * looked at. */
typedef struct dtg_loss {
  size_t struct_size;
  /* of the scope; NULL: the name of the kind in tf.keras, "mean_squared_error" */
  const char *name;
  size_t name_len;
  dtg_loss_kind kind;
  dtg_loss_reduction reduction;
  /* of cross entropies: predictions are logits; 0: probabilities, but of ctc, which has logits only. With logits nothing overflows, so
   * prefer them */
  int32_t from_logits;
  /* of binary focal: the loss of a label y times y alpha + (1 - y) (1 - alpha) */
  int32_t class_balancing;
  /* of dice and tversky: of each example by itself */
  int32_t per_example;
  /* of sparse: labels of `ignore_class` have no loss; a mean is over the others */
  int32_t ignores_class;
  /* may be none of the classes, such as -1 or 255 */
  int64_t ignore_class;
  /* of the classes or components, also from behind (-2); 0: the last */
  int64_t axis;
  /* of cross entropies with distributions: this share of each label goes to all classes alike */
  double label_smoothing;
  /* of huber; 0: 1 */
  double delta;
  /* of focal losses; 0: 0.25. Of tversky; 0: 0.5 */
  double alpha;
  /* of tversky; 0: 0.5 */
  double beta;
  /* of focal losses; 0: 2 */
  double gamma;
  /* of contrastive; 0: 1 */
  double margin;
  /* [classes], one for each: the loss of an example counts as much as its class says (as Model.fit's class_weight); {0}: none */
  dtg_value class_weights;
  /* of ctc, int32 or int64[batch]: steps of each example that count; {0}: all */
  dtg_value lengths;
} dtg_loss;
/* clang-format off */
#define DTG_LOSS_INIT                                                                                                                      \
  {sizeof(dtg_loss), NULL, DTG_STRLEN, DTG_LOSS_MEAN_SQUARED_ERROR, DTG_LOSS_MEAN, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, {0}, {0}}
/* clang-format on */

/* The loss of `predictions` (floating-point, of known rank) for `labels`, of the type of the predictions: a scalar, but with DTG_LOSS_EACH
 * one value for each example. `sample_weights` has the shape of those, or of their first dimensions, or is a scalar; {0}: all count alike.
 * `loss` may be NULL: the mean squared error. The model gets no variables. Since 0.1. Semantics: tf.keras.losses of Keras 3. */
DTG_ERR dtg_nn_loss(dtg_model *model, const dtg_loss *loss, dtg_value labels, dtg_value predictions, dtg_value sample_weights,
                    dtg_value *out) DTG_NOEXCEPT;

/* How anchors are nearer to what is of their kind than to what is not: the mean of max(|a - p|^2 - |a - n|^2 + margin, 0) over all
 * examples, distances over the last dimension of anchors a, positives p and negatives n, which have one shape; `margin` 0: 1. Since 0.1.
 * Semantics: the triplet loss of FaceNet, as tf.keras formulas would have it. */
DTG_ERR dtg_nn_triplet_loss(dtg_model *model, dtg_value anchor, dtg_value positive, dtg_value negative, double margin,
                            dtg_value *out) DTG_NOEXCEPT;

/* ---- over sampled classes ---- */

/* Which of the two; both need a small number of sampled classes in place of all. */
typedef int32_t dtg_sampled_kind;
enum {
  /* noise contrastive estimation: each class by itself, with the sigmoid */
  DTG_NCE = 0,
  /* softmax over the true and the sampled classes */
  DTG_SAMPLED_SOFTMAX = 1
};

/* How classes are drawn, without repetition, anew in each step. */
typedef int32_t dtg_candidates;
enum {
  /* classes that are sorted by how frequent they are, the most frequent first */
  DTG_LOG_UNIFORM = 0,
  /* all alike */
  DTG_UNIFORM = 1
};

/* A last layer for very many classes, such as words, together with its loss: variables "weights" [classes, width of the input], first value
 * Glorot uniform, and "biases" [classes], zeros. Its gradients are rows: only the classes of a step are touched. To evaluate or predict,
 * multiply with the same two variables. */
typedef struct dtg_sampled_loss {
  size_t struct_size;
  /* NULL: "nce" or "sampled_softmax" */
  const char *name;
  size_t name_len;
  dtg_sampled_kind kind;
  /* DTG_LOSS_MEAN, DTG_LOSS_SUM, DTG_LOSS_EACH */
  dtg_loss_reduction reduction;
  /* at least 1 */
  int64_t classes;
  /* sampled per step, at least 1 and at most `classes` */
  int64_t samples;
  dtg_candidates candidates;
  /* not 0: sampled classes that are true ones of an example count against it all the same */
  int32_t keep_hits;
  dtg_initializer weights;
  dtg_initializer biases;
  /* as in dtg/layers.h */
  const char *weights_of;
  size_t weights_of_len;
  /* classes of one's own, int64[samples], instead of drawn ones; {0}: drawn. With them: */
  dtg_value sampled;
  /* float32[batch, trues]: how often each true class was to be expected among them */
  dtg_value true_expected;
  /* float32[samples]: how often each of them was */
  dtg_value sampled_expected;
} dtg_sampled_loss;
/* clang-format off */
#define DTG_SAMPLED_LOSS_INIT                                                                                                              \
  {sizeof(dtg_sampled_loss), NULL, DTG_STRLEN, DTG_NCE, DTG_LOSS_MEAN, 0, 0, DTG_LOG_UNIFORM, 0, DTG_INITIALIZER_INIT,                     \
   DTG_INITIALIZER_INIT, NULL, DTG_STRLEN, {0}, {0}, {0}}
/* clang-format on */

/* The loss of x[batch, width], float32, for true classes labels[batch] or [batch, trues], int32 or int64 in [0, classes). Draws are a
 * function of the model's seed, the layer and the value of dtg_model_global_step, which dtg_nn_minimize counts up: a step that is made
 * again draws the same classes, and no state is kept. With `keep_hits` 0 hits are taken out, which tf.nn.nce_loss does only when asked. The
 * model gets two variables, and where classes are drawn the global step if it has none. Errors: INVALID_ARGUMENT also for samples in part,
 * NOT_FOUND (no layer is called as `weights_of` says). Since 0.1. Semantics: tf.nn.nce_loss, tf.nn.sampled_softmax_loss. */
DTG_ERR dtg_nn_sampled_loss(dtg_model *model, const dtg_sampled_loss *loss, dtg_value labels, dtg_value x, dtg_value *out) DTG_NOEXCEPT;

/* ---- penalties ---- */

/* `loss` + the sum of l1 |v| + l2 v^2 over all elements of some variables: handles[i] is the handle of a variable of the model. With
 * `num_handles` 0 it is over every trainable variable so far of rank 2 or more, kernels and tables but no biases. `loss` is a
 * floating-point scalar; l1 and l2 are not negative. A table whose gradient is rows gets a dense one by it. Errors: INVALID_ARGUMENT (a
 * handle that is no variable of the model, or twice), FAILED_PRECONDITION (no such variable). Since 0.1. Semantics:
 * tf.keras.regularizers.L1L2. */
DTG_ERR dtg_nn_regularize(dtg_model *model, dtg_value loss, const dtg_value *handles, size_t num_handles, double l1, double l2,
                          dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_LOSSES_H */
