/* dtg/nn.h: layers, losses, metrics and optimizers, for programs that do not want to write every node themselves.
 *
 * A model keeps the variables that its layers make: their names, handles, values and first values. Everything else is
 * nodes of the graph it was made for, where one's own nodes may be mixed in at any point. Names, formulas and defaults
 * are those of tf.keras (layers, initializers) and of TensorFlow's optimizers.
 *
 *   dtg_model_create(graph, seed, &model);
 *   dtg_nn_dense(model, x, &layer, &logits);
 *   dtg_nn_sparse_softmax_cross_entropy(model, labels, logits, &loss);
 *   dtg_nn_minimize(model, loss, &optimizer, &training);
 *   dtg_model_init(model, &init);         then run init once and training.train every step
 *
 * Single: one thread at a time uses a model, the one that builds its graph. Functions that fail leave the model as it
 * was; the graph may hold nodes that nobody uses. Errors of all functions here: INVALID_ARGUMENT, with the node and
 * what was expected.
 */
#ifndef DTG_NN_H
#define DTG_NN_H

#include <dtg/base.h>
#include <dtg/graph.h>

DTG_BEGIN_DECLS

typedef struct dtg_model dtg_model;

/* ---- the model ---- */

/* A model without variables, adding to `graph`, which it keeps alive. Weights are functions of (seed, order of creation,
 * shape): equal programs with equal seeds get equal weights on every machine. Since 0.1. */
DTG_ERR dtg_model_create(dtg_graph *graph, uint64_t seed, dtg_model **out) DTG_NOEXCEPT;

/* Adds a reference and returns the model; NULL for NULL. Since 0.1. */
DTG_API dtg_model *dtg_model_retain(dtg_model *model) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. The graph keeps its nodes. Since 0.1. */
DTG_API void dtg_model_release(dtg_model *model) DTG_NOEXCEPT;

/* Where the first value of a variable comes from. */
typedef int32_t dtg_initializer_kind;
enum {
  DTG_INIT_DEFAULT = 0, /* what the layer would take: Glorot uniform for kernels, zeros for biases */
  DTG_INIT_ZEROS = 1,
  DTG_INIT_ONES = 2,
  DTG_INIT_CONSTANT = 3,         /* a */
  DTG_INIT_UNIFORM = 4,          /* in [a, b) */
  DTG_INIT_NORMAL = 5,           /* mean a, standard deviation b */
  DTG_INIT_TRUNCATED_NORMAL = 6, /* the same, cut at two deviations */
  DTG_INIT_GLOROT_UNIFORM = 7,   /* +-sqrt(6 / (inputs + outputs)) */
  DTG_INIT_GLOROT_NORMAL = 8,    /* truncated, variance 2 / (inputs + outputs) */
  DTG_INIT_HE_UNIFORM = 9,       /* +-sqrt(6 / inputs) */
  DTG_INIT_HE_NORMAL = 10        /* truncated, variance 2 / inputs */
};

/* Part of other structs by value; it does not grow. All zero: the default of its place. */
typedef struct dtg_initializer {
  dtg_initializer_kind kind;
  int32_t reserved0;
  double a;
  double b;
} dtg_initializer;
#define DTG_INITIALIZER_INIT \
  { DTG_INIT_DEFAULT, 0, 0.0, 0.0 }

/* A variable to add by hand. */
typedef struct dtg_variable_spec {
  size_t struct_size;
  const char *name; /* one that is taken gets a number */
  size_t name_len;
  dtg_dtype dtype; /* 0: DTG_F32 */
  int32_t not_trainable;
  const int64_t *dims;
  size_t rank;
  dtg_initializer initializer; /* default: zeros */
} dtg_variable_spec;
#define DTG_VARIABLE_SPEC_INIT \
  { sizeof(dtg_variable_spec), NULL, DTG_STRLEN, 0, 0, NULL, 0, DTG_INITIALIZER_INIT }

/* A variable of a model. `name` is borrowed from the graph. */
typedef struct dtg_variable {
  size_t struct_size;
  const char *name; /* also its name in checkpoints; ends with NUL */
  size_t name_len;
  dtg_dtype dtype;
  int32_t trainable; /* 0: counters and what optimizers keep */
  dtg_value handle;  /* the resource, for ops such as AssignVariableOp */
  dtg_value read;    /* its value; fetch it, or use it as an input */
  dtg_value assign;  /* a target that gives it its first value */
  size_t rank;
  int64_t dims[8];
} dtg_variable;
/* clang-format off */
#define DTG_VARIABLE_INIT {sizeof(dtg_variable), NULL, 0, 0, 0, {0}, {0}, {0}, 0, {0, 0, 0, 0, 0, 0, 0, 0}}
/* clang-format on */

/* Adds a variable; its handle is made on the device of the open device scope, its first value beside it. `out` may be
 * NULL. Since 0.1. */
DTG_ERR dtg_model_add_variable(dtg_model *model, const dtg_variable_spec *spec, dtg_variable *out) DTG_NOEXCEPT;

/* Number of variables, in order of creation: those of layers, then those of optimizers. 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_model_variable_count(const dtg_model *model) DTG_NOEXCEPT;

/* Variable `i`. Errors: OUT_OF_RANGE. Since 0.1. */
DTG_ERR dtg_model_variable(const dtg_model *model, size_t i, dtg_variable *out) DTG_NOEXCEPT;

/* The variable of that name. Errors: NOT_FOUND. Since 0.1. */
DTG_ERR dtg_model_find_variable(const dtg_model *model, const char *name, size_t name_len, dtg_variable *out) DTG_NOEXCEPT;

/* The int64 scalar variable that counts training steps, "global_step"; made when first asked for. Since 0.1. */
DTG_ERR dtg_model_global_step(dtg_model *model, dtg_variable *out) DTG_NOEXCEPT;

/* The target that gives every variable so far its first value. Ask when the model is complete: variables that come later
 * are not covered. Since 0.1. */
DTG_ERR dtg_model_init(dtg_model *model, dtg_value *out) DTG_NOEXCEPT;

/* Writes the values that the model's variables have in `session` to a safetensors file, under their names, atomically:
 * readers find the old file or the new one. Errors: FAILED_PRECONDITION (a variable without value), and those of the
 * disk. The values are those of one run; keep training out of its way if they must belong to one step. Since 0.1. */
DTG_ERR dtg_model_save(const dtg_model *model, dtg_session *session, const char *path, size_t path_len) DTG_NOEXCEPT;

/* Gives every variable of the model its value from such a file. Types and shapes must be equal; tensors of the file that
 * the model does not have are ignored. Nothing is assigned on failure. Errors: NOT_FOUND (no file, or a variable is not
 * in it), INVALID_ARGUMENT (another type or shape), DATA_LOSS (cut or damaged). Since 0.1. */
DTG_ERR dtg_model_restore(const dtg_model *model, dtg_session *session, const char *path, size_t path_len) DTG_NOEXCEPT;

/* ---- layers ---- */

typedef int32_t dtg_activation;
enum {
  DTG_ACT_NONE = 0,
  DTG_ACT_RELU = 1,
  DTG_ACT_RELU6 = 2,
  DTG_ACT_ELU = 3,
  DTG_ACT_SELU = 4,
  DTG_ACT_SOFTPLUS = 5,
  DTG_ACT_SIGMOID = 6,
  DTG_ACT_TANH = 7,
  DTG_ACT_SOFTMAX = 8, /* over the last dimension */
  DTG_ACT_GELU = 9     /* with erf */
};

typedef int32_t dtg_padding;
enum {
  DTG_PADDING_VALID = 0, /* only windows that lie inside */
  DTG_PADDING_SAME = 1   /* output ceil(input / stride), the image surrounded by zeros */
};

typedef struct dtg_dense {
  size_t struct_size;
  const char *name; /* NULL: "dense"; a second one becomes "dense_1" */
  size_t name_len;
  int64_t units;
  dtg_activation activation;
  int32_t no_bias;
  dtg_initializer kernel;
  dtg_initializer bias;
} dtg_dense;
#define DTG_DENSE_INIT \
  { sizeof(dtg_dense), NULL, DTG_STRLEN, 0, DTG_ACT_NONE, 0, DTG_INITIALIZER_INIT, DTG_INITIALIZER_INIT }

/* out[..., units] = activation(x[..., in] * kernel[in, units] + bias[units]); x floating-point, of rank 2 or more, with a
 * known last dimension. Since 0.1. Semantics: tf.keras.layers.Dense. */
DTG_ERR dtg_nn_dense(dtg_model *model, dtg_value x, const dtg_dense *layer, dtg_value *out) DTG_NOEXCEPT;

typedef struct dtg_conv2d {
  size_t struct_size;
  const char *name; /* NULL: "conv2d" */
  size_t name_len;
  int64_t filters;
  int64_t kernel_height;   /* 0: 3 */
  int64_t kernel_width;    /* 0: like the height */
  int64_t stride_height;   /* 0: 1 */
  int64_t stride_width;    /* 0: like the height */
  int64_t dilation_height; /* 0: 1 */
  int64_t dilation_width;  /* 0: like the height */
  dtg_padding padding;
  dtg_activation activation;
  int32_t no_bias;
  int32_t reserved0;
  dtg_initializer kernel;
  dtg_initializer bias;
} dtg_conv2d;
/* clang-format off */
#define DTG_CONV2D_INIT                                                                                           \
  {sizeof(dtg_conv2d), NULL, DTG_STRLEN, 0, 0, 0, 0, 0, 0, 0, DTG_PADDING_VALID, DTG_ACT_NONE, 0, 0, DTG_INITIALIZER_INIT, \
   DTG_INITIALIZER_INIT}
/* clang-format on */

/* Slides kernel[height, width, in, filters] over x[batch, height, width, in] (cross-correlation), adds bias[filters].
 * The channels of x must be known. Since 0.1. Semantics: tf.keras.layers.Conv2D, channels last. */
DTG_ERR dtg_nn_conv2d(dtg_model *model, dtg_value x, const dtg_conv2d *layer, dtg_value *out) DTG_NOEXCEPT;

typedef struct dtg_pool2d {
  size_t struct_size;
  const char *name; /* NULL: "max_pool2d" or "avg_pool2d" */
  size_t name_len;
  int64_t window_height; /* 0: 2 */
  int64_t window_width;  /* 0: like the height */
  int64_t stride_height; /* 0: like the window */
  int64_t stride_width;  /* 0: like the window */
  dtg_padding padding;
  int32_t reserved0;
} dtg_pool2d;
#define DTG_POOL2D_INIT \
  { sizeof(dtg_pool2d), NULL, DTG_STRLEN, 0, 0, 0, 0, DTG_PADDING_VALID, 0 }

/* The greatest element of each window of x[batch, height, width, channels]. `layer` may be NULL: windows of 2 x 2.
 * Since 0.1. Semantics: tf.keras.layers.MaxPool2D. */
DTG_ERR dtg_nn_max_pool2d(dtg_model *model, dtg_value x, const dtg_pool2d *layer, dtg_value *out) DTG_NOEXCEPT;

/* The mean of each window, padding not counted. `layer` may be NULL. Since 0.1.
 * Semantics: tf.keras.layers.AveragePooling2D. */
DTG_ERR dtg_nn_avg_pool2d(dtg_model *model, dtg_value x, const dtg_pool2d *layer, dtg_value *out) DTG_NOEXCEPT;

/* x as [batch, everything else]; all dimensions but the first must be known. Since 0.1. */
DTG_ERR dtg_nn_flatten(dtg_model *model, dtg_value x, dtg_value *out) DTG_NOEXCEPT;

/* Sets a share `rate` in [0, 1) of the elements to zero and divides the rest by 1 - rate; which ones is decided anew for
 * each value of `step`, an int64 scalar, so a run can be repeated. `training`, a bool scalar, lets x through unchanged
 * where it is false; {0} means always true. Since 0.1. Semantics: tf.keras.layers.Dropout. */
DTG_ERR dtg_nn_dropout(dtg_model *model, dtg_value x, double rate, dtg_value step, dtg_value training, dtg_value *out) DTG_NOEXCEPT;

typedef struct dtg_embedding {
  size_t struct_size;
  const char *name; /* NULL: "embedding" */
  size_t name_len;
  int64_t rows;
  int64_t width;
  dtg_initializer table; /* default: uniform in [-0.05, 0.05) */
} dtg_embedding;
#define DTG_EMBEDDING_INIT \
  { sizeof(dtg_embedding), NULL, DTG_STRLEN, 0, 0, DTG_INITIALIZER_INIT }

/* out[..., width] = table[ids[...]], ids int32 or int64 in [0, rows). Its gradient is rows, and optimizers touch only the
 * rows that were used (Adam excepted, as in TensorFlow). Since 0.1. Semantics: tf.keras.layers.Embedding. */
DTG_ERR dtg_nn_embedding(dtg_model *model, dtg_value ids, const dtg_embedding *layer, dtg_value *out) DTG_NOEXCEPT;

/* x through an activation. Since 0.1. */
DTG_ERR dtg_nn_activation(dtg_model *model, dtg_value x, dtg_activation activation, dtg_value *out) DTG_NOEXCEPT;

/* ---- losses and metrics: scalars ---- */

/* Mean over the batch of -log softmax(logits)[label]; logits[batch, classes], labels int32 or int64 [batch]. Since 0.1. */
DTG_ERR dtg_nn_sparse_softmax_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* The same with labels[batch, classes] as distributions. Since 0.1. */
DTG_ERR dtg_nn_softmax_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* Mean over all elements of the cross entropy of labels in [0, 1] under sigmoid(logits). Since 0.1. */
DTG_ERR dtg_nn_sigmoid_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* Mean over all elements of (labels - predictions)^2. Since 0.1. */
DTG_ERR dtg_nn_mean_squared_error(dtg_model *model, dtg_value labels, dtg_value predictions, dtg_value *out) DTG_NOEXCEPT;

/* Share of rows whose greatest logit is the label's: float32 in [0, 1]. Labels int32 or int64 [batch]. Since 0.1. */
DTG_ERR dtg_nn_accuracy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* How many rows that are: int64, for accuracy over many batches. Since 0.1. */
DTG_ERR dtg_nn_correct_count(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* ---- training ---- */

typedef int32_t dtg_optimizer_kind;
enum {
  DTG_OPT_SGD = 0,      /* v -= rate * g */
  DTG_OPT_MOMENTUM = 1, /* a = momentum * a + g; v -= rate * a, with nesterov v -= rate * (g + momentum * a) */
  DTG_OPT_ADAM = 2,     /* moving means m of g and s of g^2; v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(s) + epsilon) */
  DTG_OPT_ADAGRAD = 3,  /* a += g^2; v -= rate * g / sqrt(a) */
  DTG_OPT_RMSPROP = 4   /* s = decay * s + (1 - decay) * g^2; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a */
};

typedef struct dtg_optimizer {
  size_t struct_size;
  dtg_optimizer_kind kind;
  int32_t nesterov;
  dtg_value learning_rate;    /* a floating-point scalar, such as a placeholder or a schedule; {0}: `rate` */
  double rate;                /* 0: 0.01 */
  double momentum;            /* of DTG_OPT_MOMENTUM and DTG_OPT_RMSPROP */
  double beta1;               /* 0: 0.9 */
  double beta2;               /* 0: 0.999 */
  double epsilon;             /* 0: 1e-8 */
  double decay;               /* 0: 0.9 */
  double initial_accumulator; /* of DTG_OPT_ADAGRAD; 0: 0.1 */
  double clip_norm;           /* gradients whose norm over all variables is greater are scaled down to it; 0: never */
} dtg_optimizer;
#define DTG_OPTIMIZER_INIT \
  { sizeof(dtg_optimizer), DTG_OPT_SGD, 0, {0}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 }

/* What dtg_nn_minimize adds. */
typedef struct dtg_training {
  size_t struct_size;
  dtg_value train;         /* the target that makes one step: all updates, then global_step + 1 */
  dtg_value global_step;   /* int64 scalar. Within a step it is read before or after the count, so fetch it by itself */
  dtg_value learning_rate; /* floating-point scalar */
  dtg_value gradient_norm; /* float32: the norm over all variables, before clipping. Computed only if fetched or clipped by */
} dtg_training;
/* clang-format off */
#define DTG_TRAINING_INIT {sizeof(dtg_training), {0}, {0}, {0}, {0}}
/* clang-format on */

/* Adds the gradients of `loss` with respect to every trainable variable so far, and the updates of `optimizer` (NULL:
 * SGD). What an optimizer keeps per variable stands on the variable's device and is named after it
 * ("dense/kernel/Momentum"). The model gets new variables, so ask dtg_model_init afterwards. Since 0.1.
 * Semantics: tf.train.Optimizer.minimize. */
DTG_ERR dtg_nn_minimize(dtg_model *model, dtg_value loss, const dtg_optimizer *optimizer, dtg_training *out) DTG_NOEXCEPT;

/* The second half of it, for gradients of one's own: handles[i] is the handle of a variable of the model, gradients[i] its
 * gradient (all zero: left out). clip_norm is not applied. `out` receives the target that makes one step. Since 0.1.
 * Semantics: tf.train.Optimizer.apply_gradients. */
DTG_ERR dtg_nn_apply_gradients(dtg_model *model, const dtg_optimizer *optimizer, const dtg_value *handles, const dtg_gradient *gradients,
                               size_t num_gradients, dtg_value *out) DTG_NOEXCEPT;

/* rate * factor^(step / every), the exponent rounded down with a non-zero `staircase`; step an int64 scalar. float32
 * scalar. Since 0.1. Semantics: tf.keras.optimizers.schedules.ExponentialDecay. */
DTG_ERR dtg_nn_exponential_decay(dtg_model *model, dtg_value step, double rate, double every, double factor, int32_t staircase,
                                 dtg_value *out) DTG_NOEXCEPT;

/* From 0 up to `rate` over the first `warmup` steps, then down to rate * floor along half a cosine until step `steps`,
 * then constant. float32 scalar. Since 0.1. Semantics: tf.keras.optimizers.schedules.CosineDecay. */
DTG_ERR dtg_nn_cosine_decay(dtg_model *model, dtg_value step, double rate, double steps, double floor, double warmup,
                            dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_NN_H */
