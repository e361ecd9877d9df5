/* dtg/sugar.h: the common steps of graph building and running as one-liners. Static inline code over the ABI: source
 * only, nothing here is exported, and a program can do without all of it. One function per op, dtg_add_mat_mul and so on, comes with
 * dtg/sugar_ops.h.
 *
 *   dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &x);            y = 3 x, dy/dx = 3
 *   dtg_const_f32(graph, 3.0f, &three);
 *   dtg_add2(graph, "Mul", three, x, &y);
 *   dtg_step_f32(session, &x, &tensor, 1, y, none, &value);       none: a dtg_value of {0}
 *
 * As everywhere a result other than NULL is an error that the caller releases; the library's attribute that warns of one that is
 * not looked at does not reach through these functions. Threads and errors are those of the functions called, which each comment
 * names; out-parameters are written only on success. Only what is called ends up in a program.
 */
#ifndef DTG_SUGAR_H
#define DTG_SUGAR_H

#include <dtg/dtg.h>
#include <dtg/sugar_ops.h>
#include <string.h>

DTG_BEGIN_DECLS

/* ---- nodes ----
 *
 * Attributes that the inputs do not decide take the op's defaults; an op with others needs dtg_graph_add_op or its function of
 * dtg/sugar_ops.h. Names are made from the type, "Mul", "Mul_1", under the open scopes; device and control scopes count as always.
 * Single: one thread at a time adds to a graph. What is added stays: there is nothing to release but the graph. */

/* A node of `count` inputs, list arguments in a row; gives its first output, or itself if it has none. Other outputs are reached
 * with dtg_value_output.
 *
 *   dtg_addn(graph, "SelectV2", inputs, 3, &out)
 *
 * Errors: NOT_FOUND (no such op), INVALID_ARGUMENT (number, types or shapes of the inputs, or an attribute that has no default), as
 * dtg_graph_add_op. The graph is unchanged on failure. Since 0.1. */
static inline dtg_error *dtg_addn(dtg_graph *graph, const char *type, const dtg_value *inputs, size_t count, dtg_value *out) {
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = type;
  spec.inputs = inputs;
  spec.num_inputs = count;
  return dtg_graph_add_op(graph, &spec, out, 1);
}

/* A node of one input, y = -x:
 *
 *   dtg_add1(graph, "Neg", x, &y)
 *
 * Errors: as dtg_addn. Since 0.1. */
static inline dtg_error *dtg_add1(dtg_graph *graph, const char *type, dtg_value a, dtg_value *out) {
  return dtg_addn(graph, type, &a, 1, out);
}

/* A node of two inputs, y = x * x; they may be the same value. Element-wise ops broadcast their shapes as NumPy does.
 *
 *   dtg_add2(graph, "Mul", x, x, &y)
 *
 * No number converts by itself: both have the same element type. Errors: as dtg_addn. Since 0.1. */
static inline dtg_error *dtg_add2(dtg_graph *graph, const char *type, dtg_value a, dtg_value b, dtg_value *out) {
  dtg_value inputs[2];
  inputs[0] = a;
  inputs[1] = b;
  return dtg_addn(graph, type, inputs, 2, out);
}

/* A constant node with the value of a tensor, of its type and shape. The tensor is shared with the graph, not copied: do not write to
 * it afterwards; the caller's reference stays the caller's and may be released at once. Large constants make large graphs (they
 * travel to every task that runs a part): weights belong into variables, data into feeds. Errors: INVALID_ARGUMENT (a handle that is
 * no open tensor), as dtg_graph_add_op. Since 0.1. Semantics: tf.constant. */
static inline dtg_error *dtg_const(dtg_graph *graph, const dtg_tensor *tensor, dtg_value *out) {
  dtg_attr attrs[2] = {DTG_ATTR_INIT, DTG_ATTR_INIT};
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  attrs[0].name = "value";
  attrs[0].kind = DTG_ATTR_TENSOR;
  attrs[0].tensor = tensor;
  attrs[1].name = "dtype";
  attrs[1].kind = DTG_ATTR_TYPE;
  attrs[1].i = dtg_tensor_dtype(tensor);
  spec.type = "Const";
  spec.attrs = attrs;
  spec.num_attrs = 2;
  return dtg_graph_add_op(graph, &spec, out, 1);
}

/* A constant of these elements: `dtype` and `dims` (NULL where `rank` is 0, a scalar) say what lies at `data`, `nbytes` how much it is,
 * exactly the size of the elements in row-major order. The bytes are copied.
 *
 *   const float rows[] = {1, 2, 3, 4, 5, 6};
 *   const int64_t dims[] = {2, 3};
 *   dtg_const_of(graph, DTG_F32, dims, 2, rows, sizeof rows, &matrix)
 *
 * Errors: INVALID_ARGUMENT (an element type or dimension that cannot be, another number of bytes), UNIMPLEMENTED (types without plain
 * memory), RESOURCE_EXHAUSTED, as dtg_tensor_create. Since 0.1. */
static inline dtg_error *dtg_const_of(dtg_graph *graph, dtg_dtype dtype, const int64_t *dims, size_t rank, const void *data, size_t nbytes,
                                      dtg_value *out) {
  dtg_tensor *tensor = NULL;
  dtg_error *error;
  void *bytes;
  memcpy(&bytes, &data, sizeof bytes); /* without its const: they are only copied */
  error = dtg_tensor_create(dtype, dims, rank, bytes, nbytes, NULL, NULL, &tensor);
  if (!error) error = dtg_const(graph, tensor, out);
  dtg_tensor_release(tensor);
  return error;
}

/* A constant float32 scalar, such as a factor or a rate. It broadcasts against any shape; other types do not convert by themselves.
 * Errors: as dtg_const_of. Since 0.1. */
static inline dtg_error *dtg_const_f32(dtg_graph *graph, float value, dtg_value *out) {
  return dtg_const_of(graph, DTG_F32, NULL, 0, &value, sizeof value, out);
}

/* A constant int64 vector of `count` elements, which are copied: the form in which ops take shapes, axes, begins and paddings.
 *
 *   const int64_t axes[] = {1, 2};
 *   dtg_const_i64s(graph, axes, 2, &reduced);  dtg_add2(graph, "Sum", x, reduced, &sums)
 *
 * 0 elements make an empty vector: no axis, or the shape of a scalar. Errors: as dtg_const_of. Since 0.1. */
static inline dtg_error *dtg_const_i64s(dtg_graph *graph, const int64_t *values, int64_t count, dtg_value *out) {
  return dtg_const_of(graph, DTG_I64, &count, 1, values, sizeof *values * (size_t)count, out);
}

/* A value that every run must feed. `dims` may hold -1 for open dimensions, such as the size of a batch (NULL where `rank` is 0);
 * rank DTG_STRLEN leaves the rank open too. What is fed must have the type, and a shape that fits. `name` ends with NUL and must be
 * free in the open name scope; NULL: "Placeholder" with a number. A run that needs it and does not feed it is INVALID_ARGUMENT.
 *
 *   const int64_t dims[] = {-1, 784};
 *   dtg_placeholder(graph, "images", DTG_F32, dims, 2, &images)
 *
 * The more is known of the shape, the more mistakes are found here and not in the run. Errors: as dtg_graph_add_op. Since 0.1.
 * Semantics: tf.compat.v1.placeholder. */
static inline dtg_error *dtg_placeholder(dtg_graph *graph, const char *name, dtg_dtype dtype, const int64_t *dims, size_t rank,
                                         dtg_value *out) {
  dtg_attr attrs[2] = {DTG_ATTR_INIT, DTG_ATTR_INIT};
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  attrs[0].name = "dtype";
  attrs[0].kind = DTG_ATTR_TYPE;
  attrs[0].i = dtype;
  attrs[1].name = "shape";
  attrs[1].kind = DTG_ATTR_SHAPE;
  attrs[1].ints = dims;
  attrs[1].count = rank;
  spec.type = "Placeholder";
  spec.name = name;
  spec.attrs = attrs;
  spec.num_attrs = 2;
  return dtg_graph_add_op(graph, &spec, out, 1);
}

/* A trainable float32 scalar of a model, with this first value once the target of dtg_model_init has run. `name` ends with NUL and is
 * taken under the open name scopes; `out->read` is its value in the graph, `out->handle` what ops such as AssignVariableOp take.
 * The host sets out->struct_size (DTG_VARIABLE_INIT); `out` may be NULL. Single, like the model. Errors: as dtg_model_add_variable.
 * Since 0.1. */
static inline dtg_error *dtg_variable_f32(dtg_model *model, const char *name, double first, dtg_variable *out) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = name;
  spec.initializer.kind = DTG_INIT_CONSTANT;
  spec.initializer.a = first;
  return dtg_model_add_variable(model, &spec, out);
}

/* ---- running ----
 *
 * Each is one dtg_session_run on the calling thread, with the session's default timeout, from any thread at any time. Loops that
 * count microseconds prepare a callable (dtg_session_prepare) instead: these here look their plan up in every call. */

/* Runs one target and everything that it needs; nothing is fed and nothing fetched. Returns when all of it has ended.
 *
 *   dtg_model_init(model, &init);  dtg_run_target(session, init)
 *
 * Errors: as dtg_session_run. Since 0.1. */
static inline dtg_error *dtg_run_target(dtg_session *session, dtg_value target) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &target;
  args.num_targets = 1;
  return dtg_session_run(session, &args);
}

/* Runs a target with one tensor fed per value and gives the value of a float32 scalar: a training step and its loss.
 *
 *   feeds, tensors   `count` values and what they are in this run; borrowed until the function returns. NULL with count 0
 *   fetch            what to give: a float32 scalar; another type or shape is INVALID_ARGUMENT
 *   target           what else to run, such as dtg_training.train; a dtg_value of {0}: nothing
 *
 * Where the target changes variables that `fetch` depends on, `fetch` is computed from the values before or after the change as the
 * graph orders them; the loss of dtg_nn_minimize comes before its step. Errors: as dtg_session_run. Since 0.1. */
static inline dtg_error *dtg_step_f32(dtg_session *session, const dtg_value *feeds, dtg_tensor *const *tensors, size_t count,
                                      dtg_value fetch, dtg_value target, float *out) {
  dtg_tensor *tensor = NULL;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  /* A tensor that is given makes the run refuse any other type and shape. */
  dtg_error *error = dtg_tensor_allocate(DTG_F32, NULL, 0, &tensor);
  if (error) return error;
  args.feeds = feeds;
  args.feed_tensors = (const dtg_tensor *const *)tensors;
  args.num_feeds = count;
  args.fetches = &fetch;
  args.fetched = &tensor;
  args.num_fetches = 1;
  args.targets = &target;
  args.num_targets = target.id != 0;
  error = dtg_session_run(session, &args);
  if (!error) memcpy(out, dtg_tensor_data(tensor, NULL), sizeof *out);
  dtg_tensor_release(tensor);
  return error;
}

/* The same without feeds: runs a target (a dtg_value of {0}: none) and gives the value of a float32 scalar.
 *
 *   dtg_run_f32(session, loss, training.train, &value)         a step of training whose data is in the graph
 *
 * Errors: as dtg_session_run. Since 0.1. */
static inline dtg_error *dtg_run_f32(dtg_session *session, dtg_value fetch, dtg_value target, float *out) {
  return dtg_step_f32(session, NULL, NULL, 0, fetch, target, out);
}

DTG_END_DECLS

#endif /* DTG_SUGAR_H */
