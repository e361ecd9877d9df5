/* work.c: what the models share: placeholders with the tensors that are fed for them, and short forms of layers whose other settings stay
 * as they are by default. `x` is what goes in, and receives what comes out. */
#include "models.h"

dtg_error *feed(struct work *w, const char *name, dtg_dtype dtype, const int64_t *dims, size_t rank, dtg_value *out) {
  int64_t open[DIM_LIMIT];
  for (size_t i = 0; i < rank; i++) open[i] = i == 0 ? -1 : dims[i];
  TRY(dtg_placeholder(w->graph, name, dtype, open, rank, out));
  if (dtype != DTG_STRING) TRY(dtg_tensor_allocate(dtype, dims, rank, &w->fed[w->num_feeds]));
  w->feed_names[w->num_feeds] = name;
  w->feeds[w->num_feeds++] = *out;
  return NULL;
}

float *floats(struct work *w, size_t i) { return (float *)dtg_tensor_mutable_data(w->fed[i]); }

int32_t *ints(struct work *w, size_t i) { return (int32_t *)dtg_tensor_mutable_data(w->fed[i]); }

void textured_batch(struct work *w, struct dice dice, int64_t side, int64_t channels) {
  for (int64_t i = 0; i < w->batch; i++) {
    ints(w, 2)[i] = (int32_t)below(&dice, TEXTURES);
    textured(&dice, ints(w, 2)[i], side, channels, floats(w, 1) + i * side * side * channels);
  }
}

dtg_error *conv(struct work *w, int64_t filters, int64_t kernel, int64_t stride, dtg_activation activation, dtg_value *x) {
  dtg_conv2d layer = DTG_CONV2D_INIT;
  layer.filters = filters;
  layer.kernel_height = kernel;
  layer.stride_height = stride;
  layer.padding = DTG_PADDING_SAME;
  layer.activation = activation;
  return dtg_nn_conv2d(w->model, *x, &layer, x);
}

dtg_error *dense(struct work *w, int64_t units, dtg_activation activation, dtg_value *x) {
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = units;
  layer.activation = activation;
  return dtg_nn_dense(w->model, *x, &layer, x);
}

dtg_error *embedding(struct work *w, dtg_value ids, int64_t rows, int64_t width, dtg_value *out) {
  dtg_embedding layer = DTG_EMBEDDING_INIT;
  layer.rows = rows;
  layer.width = width;
  return dtg_nn_embedding(w->model, ids, &layer, out);
}

dtg_error *batch_norm(struct work *w, dtg_activation activation, dtg_value *x) {
  dtg_batch_norm layer = DTG_BATCH_NORM_INIT;
  layer.momentum = 0.9;
  layer.training = w->training;
  TRY(dtg_nn_batch_norm(w->model, *x, &layer, x));
  return dtg_nn_activation(w->model, *x, activation, x);
}

dtg_error *reshape(struct work *w, const int64_t *dims, int64_t rank, dtg_value *x) {
  dtg_value shape;
  TRY(dtg_const_i64s(w->graph, dims, rank, &shape));
  return dtg_add2(w->graph, "Reshape", *x, shape, x);
}

dtg_error *scaled(struct work *w, float factor, dtg_value *x) {
  dtg_value scalar;
  TRY(dtg_const_f32(w->graph, factor, &scalar));
  return dtg_add2(w->graph, "Mul", *x, scalar, x);
}

dtg_error *reduce(struct work *w, const char *op, int64_t axis, dtg_value *x) {
  dtg_value axes;
  TRY(dtg_const_i64s(w->graph, &axis, 1, &axes));
  return dtg_add2(w->graph, op, *x, axes, x);
}

dtg_error *join(struct work *w, dtg_value a, dtg_value b, int64_t axis, dtg_value *out) {
  dtg_value inputs[3] = {a, b, {0}};
  TRY(dtg_const_of(w->graph, DTG_I64, NULL, 0, &axis, sizeof axis, &inputs[2]));
  return dtg_addn(w->graph, "ConcatV2", inputs, 3, out);
}

dtg_error *classify(struct work *w, dtg_value labels, dtg_value logits) {
  TRY(dtg_nn_sparse_softmax_cross_entropy(w->model, labels, logits, &w->losses[0]));
  return dtg_nn_accuracy(w->model, labels, logits, &w->metric);
}

dtg_error *guess(struct work *w, dtg_value clicks, dtg_value logits, dtg_value *loss) {
  dtg_value zero, x;
  TRY(dtg_nn_sigmoid_cross_entropy(w->model, clicks, logits, loss));
  TRY(dtg_const_f32(w->graph, 0, &zero));
  TRY(dtg_add2(w->graph, "Greater", logits, zero, &x));
  TRY(dtg_add_cast(w->graph, NULL, x, DTG_F32, NULL, &x));
  TRY(dtg_add2(w->graph, "Equal", x, clicks, &x));
  TRY(dtg_add_cast(w->graph, NULL, x, DTG_F32, NULL, &x));
  TRY(reduce(w, "Mean", 0, &x));
  w->metric = x;
  return reduce(w, "Mean", 0, &w->metric);
}

dtg_error *train_on(struct work *w, dtg_value loss, const dtg_optimizer *optimizer) {
  dtg_optimizer calm = *optimizer;
  if (w->as_reference) calm.rate *= w->calm;
  w->losses[w->phases] = loss;
  w->steps[w->phases] = (dtg_training)DTG_TRAINING_INIT;
  return dtg_nn_minimize(w->model, loss, &calm, &w->steps[w->phases++]);
}

dtg_error *train_some(struct work *w, dtg_value loss, const dtg_optimizer *optimizer, size_t from, size_t to) {
  dtg_optimizer how = *optimizer;
  dtg_value handles[MAX_TRAINED];
  dtg_variable one = DTG_VARIABLE_INIT;
  for (size_t i = from; i < to; i++) {
    TRY(dtg_model_variable(w->model, i, &one));
    handles[i - from] = one.handle;
  }
  how.variables = handles;
  how.num_variables = to - from;
  return train_on(w, loss, &how);
}

dtg_error *look(struct work *w, dtg_value value, dtg_tensor **out) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  *(uint8_t *)dtg_tensor_mutable_data(w->fed[0]) = 0;
  *out = NULL;
  args.feeds = w->feeds;
  args.feed_tensors = (const dtg_tensor *const *)w->fed;
  args.num_feeds = w->num_feeds;
  args.fetches = &value;
  args.fetched = out;
  args.num_fetches = 1;
  return dtg_session_run(w->session, &args);
}
