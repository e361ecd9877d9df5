/* dtg/sugar.h: the common steps of graph building and running as one-liners. Static inline code over the ABI: source
 * only, nothing here is exported, and a program can do without all of it. Errors are those of the functions called. One function
 * per op, dtg_add_mat_mul and so on, comes with dtg/sugar_ops.h. */
#ifndef DTG_SUGAR_H
#define DTG_SUGAR_H

#include <dtg/dtg.h>
#include <dtg/sugar_ops.h>
#include <string.h>

DTG_BEGIN_DECLS

/* ---- nodes; attributes that the inputs do not decide take their defaults ---- */

/* A node of `count` inputs; its first output, or itself if it has none. */
static inline dtg_error *dtg_addn(dtg_graph *graph, const char *type, const dtg_value *inputs, size_t count, dtg_value *out) {
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  spec.type = type;
  spec.inputs = inputs;
  spec.num_inputs = count;
  return dtg_graph_add_op(graph, &spec, out, 1);
}

/* A node of one input: dtg_add1(graph, "Neg", x, &y). */
static inline dtg_error *dtg_add1(dtg_graph *graph, const char *type, dtg_value a, dtg_value *out) {
  return dtg_addn(graph, type, &a, 1, out);
}

/* A node of two inputs: dtg_add2(graph, "Mul", x, x, &y). */
static inline dtg_error *dtg_add2(dtg_graph *graph, const char *type, dtg_value a, dtg_value b, dtg_value *out) {
  dtg_value inputs[2];
  inputs[0] = a;
  inputs[1] = b;
  return dtg_addn(graph, type, inputs, 2, out);
}

/* A constant; the tensor is shared. */
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

/* A constant of these elements. */
static inline dtg_error *dtg_const_of(dtg_graph *graph, dtg_dtype dtype, const int64_t *dims, size_t rank, const void *data, size_t nbytes,
                                      dtg_value *out) {
  dtg_tensor *tensor = NULL;
  dtg_error *error = dtg_tensor_allocate(dtype, dims, rank, &tensor);
  if (!error) {
    if (nbytes > 0) memcpy(dtg_tensor_mutable_data(tensor), data, nbytes);
    error = dtg_const(graph, tensor, out);
  }
  dtg_tensor_release(tensor);
  return error;
}

/* A float32 scalar. */
static inline dtg_error *dtg_const_f32(dtg_graph *graph, float value, dtg_value *out) {
  return dtg_const_of(graph, DTG_F32, NULL, 0, &value, sizeof value, out);
}

/* An int64 vector, as shapes and axes are. */
static inline dtg_error *dtg_const_i64s(dtg_graph *graph, const int64_t *values, int64_t count, dtg_value *out) {
  return dtg_const_of(graph, DTG_I64, &count, 1, values, sizeof *values * (size_t)count, out);
}

/* A value that every run must feed. dims may hold -1 for open dimensions; rank DTG_STRLEN leaves all open. */
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

/* A trainable float32 scalar with this first value. */
static inline dtg_error *dtg_variable_f32(dtg_model *model, const char *name, double first, dtg_variable *out) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = name;
  spec.initializer.kind = DTG_INIT_CONSTANT;
  spec.initializer.a = first;
  return dtg_model_add_variable(model, &spec, out);
}

/* ---- running ---- */

/* Runs one target. */
static inline dtg_error *dtg_run_target(dtg_session *session, dtg_value target) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &target;
  args.num_targets = 1;
  return dtg_session_run(session, &args);
}

/* Runs a target with one tensor fed per value and gives the value of a float32 scalar: a training step and its loss. */
static inline dtg_error *dtg_step_f32(dtg_session *session, const dtg_value *feeds, dtg_tensor *const *tensors, size_t count,
                                      dtg_value fetch, dtg_value target, float *out) {
  dtg_tensor *tensor = NULL;
  dtg_error *error;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
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

/* Runs a target ({0}: none) and gives the value of a float32 scalar. */
static inline dtg_error *dtg_run_f32(dtg_session *session, dtg_value fetch, dtg_value target, float *out) {
  return dtg_step_f32(session, NULL, NULL, 0, fetch, target, out);
}

DTG_END_DECLS

#endif /* DTG_SUGAR_H */
