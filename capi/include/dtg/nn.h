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
 * Single: one thread at a time uses a model, the one that builds its graph; runs of the graph may go on meanwhile. Functions
 * that fail leave the model as it was, with their names free; the graph may hold nodes that nobody uses. Errors of all functions here:
 * INVALID_ARGUMENT (a closed handle, a value of another graph, a shape or type that does not fit; with the node and what was
 * expected) and RESOURCE_EXHAUSTED (no memory); others stand with the function.
 *
 * Layers, losses and optimizers compute nothing themselves: they add nodes, which sessions run. What they added can be looked at
 * with dtg_graph_node_at or `dtg graph`, and can be written by hand in the same way. Only what saves, restores, exports and loads, and
 * dtg_model_wait_ready (dtg/replicas.h), uses a session.
 */
#ifndef DTG_NN_H
#define DTG_NN_H

#include <dtg/base.h>
#include <dtg/graph.h>

DTG_BEGIN_DECLS

typedef struct dtg_model dtg_model;

/* ---- the model ---- */

/* A model without variables, adding to `graph`, which it keeps alive. Weights are functions of (seed, order of creation,
 * shape): equal programs with equal seeds get equal weights on every machine. Any `seed` will do, 0 as well. Several models
 * may share a graph; each knows only its own variables. `*out` is owned by the caller. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_model_create(dtg_graph *graph, uint64_t seed, dtg_model **out) DTG_NOEXCEPT;

/* The model inside of the body of a function (dtg/function.h): layers and losses that are given `*out` in place of the model add their
 * nodes to `body`, which lies in the model's graph or in another body there. With it loops decode with layers that were trained, and cells
 * of one's own are made of layers:
 *
 *   dtg_function_begin(graph, "letter", DTG_STRLEN, &body);
 *   dtg_function_add_argument_like(body, letters, &x);
 *   dtg_model_inside(model, body, &inside);
 *   dtg_dense scores = DTG_DENSE_INIT;
 *   scores.units = 26; scores.weights_of = "scores";           the layer that was trained
 *   dtg_nn_dense(inside, x, &scores, &y);
 *   dtg_model_release(inside);
 *
 * Layers may be given values from around the body, as other nodes may. Variables are always outside: with `weights_of` they are those of a
 * layer made before, else new ones named after the function and the scopes around it ("letter/dense/kernel", the next of that name
 * "letter_1/dense/kernel"), which the model has from then on. A body reads them once a step, before its first round, so gradients reach
 * them through loops and branches too. Besides layers and losses it takes dtg_model_add_variable, dtg_model_variable,
 * dtg_model_find_variable and dtg_model_global_step, whose answers have `handle` and `assign` in the graph around and `read` in the body;
 * everything else wants the model itself. `*out` keeps both alive and is owned by the caller. Errors: INVALID_ARGUMENT (the graph is no
 * body, or of another graph's functions), FAILED_PRECONDITION (the function was ended; later also where `*out` is given to something else),
 * UNIMPLEMENTED from layers that follow their batches there: a batch normalization needs a `training` that is a constant false. Since 0.1.
 */
DTG_ERR dtg_model_inside(dtg_model *model, dtg_graph *body, dtg_model **out) DTG_NOEXCEPT;

/* Adds a reference and returns the model; NULL for NULL. Any thread, though only one at a time may use it. Since 0.1. */
DTG_API dtg_model *dtg_model_retain(dtg_model *model) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. The graph keeps its nodes, and sessions the values of the variables. Since 0.1. */
DTG_API void dtg_model_release(dtg_model *model) DTG_NOEXCEPT;

/* Where the first value of a variable comes from. Random ones are drawn by a counter-based generator, element by element, and
 * need a floating-point variable. For "inputs" and "outputs" read the last two dimensions of the kernel, times the window of a
 * convolution; a vector counts as both. Semantics: tf.keras.initializers. */
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
  DTG_INIT_HE_NORMAL = 10,       /* truncated, variance 2 / inputs */
  DTG_INIT_ORTHOGONAL = 11       /* rank 2 or more; rows (all dimensions but the last) or columns, the fewer of them, of length 1 and at
                                    right angles */
};

/* An initializer and its two numbers; which of them count, and as what, stands beside each kind above. Part of other structs by
 * value, so it has no size and does not grow. All zero: the default of its place. */
typedef struct dtg_initializer {
  dtg_initializer_kind kind;
  int32_t reserved0;
  double a;
  double b;
} dtg_initializer;
#define DTG_INITIALIZER_INIT \
  { DTG_INIT_DEFAULT, 0, 0.0, 0.0 }

/* Variables of a strategy (dtg/strategy.h): whether the copies that replicas have are kept equal by writing to all of them, or each
 * replica writes its own and who reads from outside gets them combined (counts and sums, as of metrics). */
typedef int32_t dtg_variable_sync;
enum { DTG_VARIABLE_ON_WRITE = 0, DTG_VARIABLE_ON_READ = 1 };

/* And how the values of several replicas become one. NONE is for variables that no replica assigns to by itself, such as weights.
 * Semantics: tf.VariableAggregation. */
typedef int32_t dtg_variable_aggregation;
enum { DTG_AGGREGATION_NONE = 0, DTG_AGGREGATION_SUM = 1, DTG_AGGREGATION_MEAN = 2, DTG_AGGREGATION_ONLY_FIRST_REPLICA = 3 };

/* A variable to add by hand. The open name scopes go before its name, so that "bias" under "head" is "head/bias" in the graph
 * and in checkpoints. The shape must be known: no dimension is -1. */
typedef struct dtg_variable_spec {
  size_t struct_size;
  const char *name; /* one that is taken gets a number */
  size_t name_len;
  dtg_dtype dtype; /* 0: DTG_F32 */
  int32_t not_trainable;
  const int64_t *dims;
  size_t rank;
  dtg_initializer initializer;          /* default: zeros */
  dtg_variable_sync synchronization;    /* only in the scope of a strategy; ON_READ: not trainable, and with an aggregation */
  dtg_variable_aggregation aggregation; /* the same */
} dtg_variable_spec;
#define DTG_VARIABLE_SPEC_INIT \
  { sizeof(dtg_variable_spec), NULL, DTG_STRLEN, 0, 0, NULL, 0, DTG_INITIALIZER_INIT, DTG_VARIABLE_ON_WRITE, DTG_AGGREGATION_NONE }

/* A variable of a model, as the library tells it; the host sets struct_size (DTG_VARIABLE_INIT) and nothing else. The values are
 * of the model's graph. `name` is borrowed from the graph and valid as long as that. */
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

/* Adds a variable; its handle is made on the device of the open device scope, its first value beside it. It has no value in a
 * session until its `assign`, the target of dtg_model_init or dtg_model_restore has run there. `out` may be NULL.
 * Errors: INVALID_ARGUMENT (no name, rank above 8, an element type or initializer that is none), FAILED_PRECONDITION (a
 * tower asks for another variable than the first one did, see dtg_model_next_tower). Since 0.1. */
DTG_ERR dtg_model_add_variable(dtg_model *model, const dtg_variable_spec *spec, dtg_variable *out) DTG_NOEXCEPT;

/* Number of variables, in order of creation: usually those of layers, then those of optimizers. Counters and what optimizers
 * keep are among them (`trainable` 0), as a checkpoint needs them. 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_model_variable_count(const dtg_model *model) DTG_NOEXCEPT;

/* The variable added as number `i`, counted from 0 in order of creation; numbers never change while the model lives. Errors: OUT_OF_RANGE,
 * INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_model_variable(const dtg_model *model, size_t i, dtg_variable *out) DTG_NOEXCEPT;

/* The variable of that full name, scopes included: "dense/kernel". Errors: NOT_FOUND, INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_model_find_variable(const dtg_model *model, const char *name, size_t name_len, dtg_variable *out) DTG_NOEXCEPT;

/* The int64 scalar variable that counts training steps, "global_step"; made when first asked for, with the first value 0, and
 * from then on always the same one. Not trainable. Since 0.1. Semantics: tf.train.get_or_create_global_step. */
DTG_ERR dtg_model_global_step(dtg_model *model, dtg_variable *out) DTG_NOEXCEPT;

/* The target that gives every variable so far its first value, counters and what optimizers keep included; running it again
 * begins anew. Ask when the model is complete: variables that come later are not covered by a target that was handed out, but by
 * the one that the next call makes. Since 0.1. Semantics: tf.compat.v1.global_variables_initializer. */
DTG_ERR dtg_model_init(dtg_model *model, dtg_value *out) DTG_NOEXCEPT;

/* Keeps a text with the model: dtg_model_save writes it with the weights, dtg_model_restore brings it back. A key that is there gets the
 * new value. What "schema" keeps is the dtg_dataset_schema of the training data, by which other data mean the same, and the classes have
 * their names (dtg_model_classes); a fit keeps it by itself. Errors: INVALID_ARGUMENT (an empty key, or one that begins with "dtg.").
 * Since 0.1. */
DTG_ERR dtg_model_set_metadata(dtg_model *model, const char *key, size_t key_len, const char *value, size_t value_len) DTG_NOEXCEPT;

/* Such a text; `*out` is owned by the caller. Errors: NOT_FOUND. Since 0.1. */
DTG_ERR dtg_model_metadata(const dtg_model *model, const char *key, size_t key_len, dtg_string **out) DTG_NOEXCEPT;

/* Says what the classes are called that an output tells apart, in the order of their numbers, where no schema of the training data does:
 * metadata under "classes", or "classes/OUTPUT". `output`: the name it has in the exported file; NULL: all that have so many classes.
 * `names` are copied; each ends with NUL. Errors: INVALID_ARGUMENT (no names, or one twice; an output that is known, of a trainer or of the
 * loaded file, and does not tell so many apart, or with NULL a trainer none of whose outputs does. An output that is not known yet is
 * looked at when a fit begins, or by an export, which tells names for an output that it does not have by a warning). Since 0.1. */
DTG_ERR dtg_model_set_classes(dtg_model *model, const char *output, size_t output_len, const char *const *names,
                              size_t num_names) DTG_NOEXCEPT;

/* Those names, so that what a model predicts can be said in words: a DTG_STRING vector, of which dtg_tensor_string gives number i; `*out`
 * is owned by the caller. `output` is one of a model that was loaded: the names said for it, else those said for all, else those of the
 * label in the metadata "schema", which a fit on a file of named classes has kept. NULL: what is said for all, of any model. Errors:
 * NOT_FOUND (no such output; nobody has named its classes, or it does not tell so many apart). Since 0.1. */
DTG_ERR dtg_model_classes(const dtg_model *model, const char *output, size_t output_len, dtg_tensor **out) DTG_NOEXCEPT;

/* Writes the values that the model's variables have in `session` to a safetensors file, under their names, atomically:
 * readers find the old file or the new one, however many save there. A link is followed, the mode of a file that is replaced kept, and
 * what is no file (a pipe, a folder) refused with FAILED_PRECONDITION. The values are fetched in one run, with the session's default
 * timeout; keep training out of its way if they must belong to one step. The session must be one of the model's graph. Blocks for the run
 * and the disk. Errors: FAILED_PRECONDITION (no variables, or one without value), those of dtg_session_run and of the disk. Since 0.1.
 * Format: https://github.com/huggingface/safetensors */
DTG_ERR dtg_model_save(const dtg_model *model, dtg_session *session, const char *path, size_t path_len) DTG_NOEXCEPT;

/* Gives every variable of the model its value from such a file; dtg_model_init need not have run. Types and shapes must be equal;
 * tensors of the file that the model does not have are ignored. The whole file is checked first: nothing is assigned where it does
 * not fit. Errors: NOT_FOUND (no file, or a variable is not in it), INVALID_ARGUMENT (another type or shape), DATA_LOSS (cut or
 * damaged), RESOURCE_EXHAUSTED (beyond the runtime's memory limit), and those of dtg_session_run. Since 0.1. */
DTG_ERR dtg_model_restore(const dtg_model *model, dtg_session *session, const char *path, size_t path_len) DTG_NOEXCEPT;

/* What of a file goes where, for weights that were saved by another program or by an earlier form of this one. Read during the call only.
 */
/* clang-format off */
typedef struct dtg_restore {
  size_t struct_size;
  const char *names;  /* JSON: {"name in the model": "name in the file", ...}. Two that end with "/" stand for all that begin so: {"encoder/":
                         "bert/encoder/"}; "" beside such a one is the root, all names: {"": "bert/"}, {"bert/": ""}. A whole name counts
                         before the longest beginning. NULL: the names are the same */
  size_t names_len;
  int32_t partial;    /* not 0: what fits is taken, and the report names the rest; 0: a variable that finds nothing of its type and shape
                         is an error, and nothing is assigned */
  int32_t reserved0;
} dtg_restore;
#define DTG_RESTORE_INIT {sizeof(dtg_restore), NULL, DTG_STRLEN, 0, 0}
/* clang-format on */

/* dtg_model_restore with names that differ, or for a part of the variables. `restore` may be NULL. `report` (NULL: none) receives JSON,
 * owned by the caller: {"path", "variables", "missing", "extra", "reshaped"}: how many variables have their values now; the names of those
 * that the file does not have; of what in the file no variable asked for; of those of another type or shape. Variables without counterpart
 * keep what they have, so run dtg_model_init before. Errors: those of dtg_model_restore, but FAILED_PRECONDITION names all variables that
 * do not fit; NOT_FOUND also where no variable is called as a rule says; INVALID_ARGUMENT (no such JSON). Since 0.1. */
DTG_ERR dtg_model_restore_from(const dtg_model *model, dtg_session *session, const char *path, size_t path_len, const dtg_restore *restore,
                               dtg_string **report) DTG_NOEXCEPT;

/* A model of the variables that `graph` has already: one that came by dtg_graph_import, or was built by hand. Variables are found by
 * their VarHandleOp, in the order of the nodes, and have the node's name. Those of floating-point numbers are trainable, but for what is
 * named like an optimizer's slots. Where none is read or assigned, nodes for that are added; a first value that nobody knows is then to be
 * restored. `seed` as in dtg_model_create, for what is added. `*out` is owned by the caller. Errors: INVALID_ARGUMENT (a variable whose
 * shape is not known). Since 0.1. */
DTG_ERR dtg_model_import(dtg_graph *graph, uint64_t seed, dtg_model **out) DTG_NOEXCEPT;

/* What of a model is saved for those who do not know how it was built. Read during the call only. Names end with NUL. */
/* clang-format off */
typedef struct dtg_export {
  size_t struct_size;
  const char *const *input_names;
  const dtg_value *inputs;          /* what is fed, such as placeholders; any value will do, the graph is cut off there */
  size_t num_inputs;
  const char *const *output_names;
  const dtg_value *outputs;         /* what is fetched, or a target such as dtg_training.train, for a model that is to be trained on */
  size_t num_outputs;
  int32_t freeze;                   /* not 0: variables become constants, for serving only */
  int32_t reserved0;
} dtg_export;
#define DTG_EXPORT_INIT {sizeof(dtg_export), NULL, NULL, 0, NULL, NULL, 0, 0, 0}
/* clang-format on */

/* Writes one file with all that it takes to compute the outputs from the inputs: the part of the graph that leads there (nothing of the
 * training, unless it is asked for), the values that its variables have in `session`, and the model's metadata. Devices are left out: it
 * runs anywhere. The file is a safetensors file, written as by dtg_model_save; dtg_model_restore reads it too. Errors: INVALID_ARGUMENT (no
 * outputs, a name twice), FAILED_PRECONDITION (an output needs a placeholder that is no input, which is named, such as the switch of a
 * dropout; a frozen variable is not only read; one without value), those of dtg_session_run and of the disk. Since 0.1. */
DTG_ERR dtg_model_export(const dtg_model *model, dtg_session *session, const dtg_export *what, const char *path,
                         size_t path_len) DTG_NOEXCEPT;

/* Such a file as a model over a graph of its own (dtg_model_graph), with its metadata. `session` receives a local session in which the
 * variables have their values, so that dtg_model_endpoint and a run are all that is left to do; NULL: none, for a session of one's own,
 * dtg_model_restore from the same file and the device scopes of a cluster. Nothing in the file is trusted. `runtime` may be NULL: the
 * default one. Both answers are owned by the caller. Errors: NOT_FOUND, DATA_LOSS (cut, damaged, or no exported model), UNIMPLEMENTED (of a
 * later release, or an op that this one does not have), RESOURCE_EXHAUSTED, those of dtg_session_run. Since 0.1. */
DTG_ERR dtg_model_load(dtg_runtime *runtime, const char *path, size_t path_len, dtg_session **session, dtg_model **out) DTG_NOEXCEPT;

/* The input or output of that name of a model that was loaded, as a value of its graph. Errors: NOT_FOUND, with the names that there
 * are. Since 0.1. */
DTG_ERR dtg_model_endpoint(const dtg_model *model, const char *name, size_t name_len, dtg_value *out) DTG_NOEXCEPT;

/* All of them as JSON: {"inputs": [{"name", "dtype", "shape"}, ...], "outputs": [...]}, a shape with -1 for what is open, or null where its
 * rank is; targets have the dtype "". Both lists are empty for a model that was not loaded. `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_model_endpoints(const dtg_model *model, dtg_string **out) DTG_NOEXCEPT;

/* The graph that the model adds to, as a handle more, owned by the caller. Since 0.1. */
DTG_ERR dtg_model_graph(const dtg_model *model, dtg_graph **out) DTG_NOEXCEPT;

/* ---- layers ----
 *
 * A layer adds its variables and nodes under a name scope of its own, on the devices of the open device scopes, and gives its output
 * as a value of the graph. Its variables are trainable and have the element type of its input. Layers check shapes when they are
 * built; dimensions that are open then (a batch of any size, dimension -1) are settled by what a run feeds. `x` and `out` may be the
 * same variable of the host. The structs are read during the call only.
 *
 * A layer is called again with the same weights by naming the first one in `weights_of`, as siamese nets and unrolled cells need it; its
 * input must have the features of the first one's, and gradients of all calls add up. Errors then: NOT_FOUND (no such layer). */

/* What is applied to each element x of a layer's output, after the bias. Semantics: tf.keras.activations.
 *   RELU      max(x, 0)                         RELU6     min(max(x, 0), 6)
 *   ELU       x; below 0: e^x - 1               SELU      1.0507 x; below 0: 1.7581 (e^x - 1)
 *   SOFTPLUS  log(1 + e^x)                      SIGMOID   1 / (1 + e^-x)
 *   TANH      tanh x                            GELU      x/2 (1 + erf(x / sqrt 2)), the exact form
 *   SOFTMAX   e^x / sum of e^x over the last dimension */
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
  DTG_ACT_SOFTMAX = 8,
  DTG_ACT_GELU = 9
};

/* What a window does at the edges of an image. Semantics: "VALID" and "SAME" of TensorFlow's Conv2D. */
typedef int32_t dtg_padding;
enum {
  DTG_PADDING_VALID = 0, /* only windows that lie inside */
  DTG_PADDING_SAME = 1   /* output ceil(input / stride), the image surrounded by zeros */
};

/* A fully connected layer. Variables: "kernel" of [in, units], first value Glorot uniform, and "bias" of [units], first value
 * zeros. */
typedef struct dtg_dense {
  size_t struct_size;
  const char *name; /* NULL: "dense"; a second one becomes "dense_1" */
  size_t name_len;
  int64_t units;
  dtg_activation activation;
  int32_t no_bias;
  dtg_initializer kernel;
  dtg_initializer bias;
  const char
      *weights_of; /* full name of a layer made before, scopes included: its variables are used, and no new ones made; NULL: its own */
  size_t weights_of_len;
} dtg_dense;
#define DTG_DENSE_INIT \
  { sizeof(dtg_dense), NULL, DTG_STRLEN, 0, DTG_ACT_NONE, 0, DTG_INITIALIZER_INIT, DTG_INITIALIZER_INIT, NULL, DTG_STRLEN }

/* out[..., units] = activation(x[..., in] * kernel[in, units] + bias[units]); x floating-point, of rank 2 to 8, with a
 * known last dimension. `units` is at least 1. Bias and activation are computed where the product is made, in one pass. Since 0.1.
 * Semantics: tf.keras.layers.Dense. */
DTG_ERR dtg_nn_dense(dtg_model *model, dtg_value x, const dtg_dense *layer, dtg_value *out) DTG_NOEXCEPT;

/* A layer of filters over images. Variables: "kernel" of [kernel_height, kernel_width, in, filters], first value Glorot uniform,
 * and "bias" of [filters], first value zeros. A dilation of d looks at every d-th pixel, so
 * that a kernel of 3 spans 2 * d + 1 of them. */
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
  const char
      *weights_of; /* full name of a layer made before, scopes included: its variables are used, and no new ones made; NULL: its own */
  size_t weights_of_len;
} dtg_conv2d;
/* clang-format off */
#define DTG_CONV2D_INIT                                                                                           \
  {sizeof(dtg_conv2d), NULL, DTG_STRLEN, 0, 0, 0, 0, 0, 0, 0, DTG_PADDING_VALID, DTG_ACT_NONE, 0, 0, DTG_INITIALIZER_INIT, \
   DTG_INITIALIZER_INIT, NULL, DTG_STRLEN}
/* clang-format on */

/* Slides kernel[height, width, in, filters] over x[batch, height, width, in] (cross-correlation: the kernel is not turned), adds
 * bias[filters] and applies the activation: out[batch, height', width', filters]. Along each axis the output has ceil((size -
 * dilation * (kernel - 1)) / stride) pixels with DTG_PADDING_VALID and ceil(size / stride) with DTG_PADDING_SAME. x is floating-point,
 * its channels must be known; `filters` is at least 1. Since 0.1. Semantics: tf.keras.layers.Conv2D, channels last. */
DTG_ERR dtg_nn_conv2d(dtg_model *model, dtg_value x, const dtg_conv2d *layer, dtg_value *out) DTG_NOEXCEPT;

/* Windows that an image is made smaller by. No variables. Where windows overlap (a stride below the window) or leave pixels out (one
 * above it) is the caller's choice; by default they tile the image. */
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

/* The greatest element of each window of x[batch, height, width, channels], for each channel: out[batch, height', width', channels],
 * in the type of x. `layer` may be NULL: windows of 2 x 2. The gradient goes to the first of equally great elements. NaN is passed over, as
 * by TensorFlow on a CPU: the loss does not tell of it, while gradients of what lies below are NaN; trainers look at what they feed such a
 * model, and who loops by hand should (CheckNumerics). Since 0.1.
 * Semantics: tf.keras.layers.MaxPool2D. */
DTG_ERR dtg_nn_max_pool2d(dtg_model *model, dtg_value x, const dtg_pool2d *layer, dtg_value *out) DTG_NOEXCEPT;

/* The mean of each window, shapes as in dtg_nn_max_pool2d; x floating-point. What lies outside of the image is not counted, so a
 * window at the edge divides by fewer pixels. `layer` may be NULL: windows of 2 x 2. Since 0.1.
 * Semantics: tf.keras.layers.AveragePooling2D. */
DTG_ERR dtg_nn_avg_pool2d(dtg_model *model, dtg_value x, const dtg_pool2d *layer, dtg_value *out) DTG_NOEXCEPT;

/* x as [batch, everything else], without copying: what stands between convolutions and a dense layer. x may have any type and a
 * rank of 1 or more; all dimensions but the first must be known. Since 0.1. Semantics: tf.keras.layers.Flatten. */
DTG_ERR dtg_nn_flatten(dtg_model *model, dtg_value x, dtg_value *out) DTG_NOEXCEPT;

/* Sets a share `rate` in [0, 1) of the elements to zero and divides the rest by 1 - rate, so that sums keep their expectation; which
 * ones is decided anew for each value of `step`, an int64 scalar such as the `read` of dtg_model_global_step. The choice is a function
 * of (seed of the model, number of the dropout layer, step): a run can be repeated, and no state is kept. `training`, a bool scalar
 * such as a placeholder, lets x through unchanged where it is false; {0} means always true. x is floating-point, of any shape, which
 * the output has too. Since 0.1. Semantics: tf.keras.layers.Dropout, but for the source of randomness. */
DTG_ERR dtg_nn_dropout(dtg_model *model, dtg_value x, double rate, dtg_value step, dtg_value training, dtg_value *out) DTG_NOEXCEPT;

/* A table of vectors that is looked up by number. Variable: "embeddings", float32 of [rows, width]. */
typedef struct dtg_embedding {
  size_t struct_size;
  const char *name; /* NULL: "embedding" */
  size_t name_len;
  int64_t rows;
  int64_t width;
  dtg_initializer table; /* default: uniform in [-0.05, 0.05) */
  const char
      *weights_of; /* full name of a layer made before, scopes included: its variables are used, and no new ones made; NULL: its own */
  size_t weights_of_len;
} dtg_embedding;
#define DTG_EMBEDDING_INIT \
  { sizeof(dtg_embedding), NULL, DTG_STRLEN, 0, 0, DTG_INITIALIZER_INIT, NULL, DTG_STRLEN }

/* out[..., width] = table[ids[...]], ids int32 or int64 of any shape, in [0, rows); an id beyond is an error of the run,
 * INVALID_ARGUMENT, that names it. Its gradient is rows, and optimizers touch only the rows that were used (Adam
 * excepted, as in TensorFlow). On a cluster only the rows that are asked for travel. Since 0.1.
 * Semantics: tf.keras.layers.Embedding. */
DTG_ERR dtg_nn_embedding(dtg_model *model, dtg_value ids, const dtg_embedding *layer, dtg_value *out) DTG_NOEXCEPT;

/* x as float32, (x - shift) / scale for each feature along its last dimension, by the text of dtg_dataset_fit_normalization: the same bits
 * as dtg_dataset_normalize gives. In the graph it is part of what is saved and served, so that a server needs no scaling of its own. No
 * variables. `x` is a number of any type, its last dimension known (a normalization of one feature: any shape). Since 0.1. */
DTG_ERR dtg_nn_normalize(dtg_model *model, dtg_value x, const char *normalization, size_t normalization_len, dtg_value *out) DTG_NOEXCEPT;

/* x through an activation, element by element (DTG_ACT_SOFTMAX: row by row); x floating-point. DTG_ACT_NONE gives x itself.
 * Layers take an activation of their own; this is for one's own nodes. Since 0.1. Semantics: tf.keras.layers.Activation. */
DTG_ERR dtg_nn_activation(dtg_model *model, dtg_value x, dtg_activation activation, dtg_value *out) DTG_NOEXCEPT;

/* ---- losses and metrics: scalars ----
 *
 * Labels come before predictions, as in tf.keras.losses. Losses are means, so that learning rates do not depend on the batch; they
 * have the element type of the logits or predictions and can be differentiated with respect to them. Metrics have no gradient.
 * `out` is a value of the graph; fetch it, or give it to dtg_nn_minimize. The model gets no variables. */

/* Mean over the batch of -log softmax(logits)[label]; logits[batch, classes] floating-point, labels int32 or int64 [batch] or
 * [batch, 1], each in [0, classes). Of more dimensions (logits[batch, time, classes], labels[batch, time]) each but the classes counts as
 * examples. The logits are not normalised before: no layer with DTG_ACT_SOFTMAX goes in front. Computed so that no logit overflows.
 * Since 0.1. Semantics: tf.nn.sparse_softmax_cross_entropy_with_logits, averaged. */
DTG_ERR dtg_nn_sparse_softmax_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* The same with labels[batch, classes] as distributions, of the type of the logits: mean of -sum(label * log softmax(logits)). Rows
 * of labels should add up to 1; that is not checked. Since 0.1. Semantics: tf.nn.softmax_cross_entropy_with_logits, averaged. */
DTG_ERR dtg_nn_softmax_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* Mean over all elements of the cross entropy of labels in [0, 1] under sigmoid(logits): classes that do not exclude each other.
 * Labels have the type and the shape of the logits. Computed so that no logit overflows. Since 0.1.
 * Semantics: tf.nn.sigmoid_cross_entropy_with_logits, averaged. */
DTG_ERR dtg_nn_sigmoid_cross_entropy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* Mean over all elements of (labels - predictions)^2; both of one floating-point type, of equal rank (or one a scalar), as a row [batch]
 * and a column [batch, 1] would make a square. Since 0.1. Semantics: tf.keras.losses.MeanSquaredError, but for that. */
DTG_ERR dtg_nn_mean_squared_error(dtg_model *model, dtg_value labels, dtg_value predictions, dtg_value *out) DTG_NOEXCEPT;

/* Share of rows whose greatest logit is the label's: float32 in [0, 1]. Labels int32 or int64 [batch] or [batch, 1],
 * logits[batch, classes]; the first of equally great logits counts. Since 0.1. Semantics: tf.keras.metrics.SparseCategoricalAccuracy, of
 * one batch. */
DTG_ERR dtg_nn_accuracy(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

/* How many rows that are: int64, for accuracy over many batches of different sizes. Arguments as in dtg_nn_accuracy. Since 0.1. */
DTG_ERR dtg_nn_correct_count(dtg_model *model, dtg_value labels, dtg_value logits, dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

/* Optimizers and schedules, which need the model. */
#include <dtg/optimizers.h>

#endif /* DTG_NN_H */
