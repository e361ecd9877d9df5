/* Memory that runs out while models are built of layers, losses, metrics, schedules and optimizers, and in their steps. A layer that failed
 * is made again on the same model, which must then have the variables that it has without. See oom.h. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static const dtg_value none = {0};

/* An input of that shape, and tensor `k` of `h` for it. */
static int input(int k, dtg_dtype type, const int64_t *dims, size_t rank, dtg_value *x) {
  char name[8];
  snprintf(name, sizeof name, "x%d", k);
  TRY(dtg_placeholder(h.graph[0], name, type, dims, rank, x));
  return new_tensor(k, type, dims, rank);
}

/* One step of training on the squares of y, by Adam, with `count` inputs. */
static int learn(dtg_value y, const dtg_value *xs, size_t count, size_t variables) {
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_value zeros, loss;
  float value = 0;
  TRY(dtg_add1(h.graph[0], "ZerosLike", y, &zeros));
  TRY(dtg_nn_mean_squared_error(h.model[0], zeros, y, &loss));
  HOLDS(dtg_model_variable_count(h.model[0]) == variables);
  adam.kind = DTG_OPT_ADAM;
  TRY(dtg_nn_minimize(h.model[0], loss, &adam, &training));
  PART(begin_session(0, NULL));
  TRY(dtg_step_f32(h.session[0], xs, h.tensor, count, loss, training.train, &value));
  return 1;
}

static int images(void) {
  const int64_t dims[] = {2, 8, 8, 2}, sizes[] = {2, 2};
  dtg_value x, y, a, b;
  dtg_conv2d conv = DTG_CONV2D_INIT;
  dtg_conv more = DTG_CONV_INIT;
  dtg_norm groups = DTG_NORM_INIT;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 4, &x));
  conv.filters = more.filters = groups.groups = 2;
  conv.activation = DTG_ACT_RELU;
  conv.padding = more.padding = DTG_PADDING_SAME;
  TRY(dtg_nn_conv2d(m, x, &conv, &y));
  TRY(dtg_nn_batch_norm(m, y, NULL, &y));
  TRY(dtg_nn_avg_pool2d(m, y, NULL, &y));
  TRY(dtg_nn_depthwise_conv2d(m, y, &more, &y));
  TRY(dtg_nn_separable_conv2d(m, y, &more, &y));
  TRY(dtg_nn_conv2d_transpose(m, y, &more, &y));
  TRY(dtg_nn_up_sampling2d(m, y, 2, 2, 1, &y));
  TRY(dtg_nn_max_pool2d(m, y, NULL, &y));
  TRY(dtg_nn_adaptive_pool(m, y, sizes, 2, 0, &y));
  TRY(dtg_nn_group_norm(m, y, &groups, &y));
  TRY(dtg_nn_global_avg_pool(m, y, 0, &a));
  TRY(dtg_nn_global_max_pool(m, y, 0, &b));
  TRY(dtg_add2(h.graph[0], "AddV2", a, b, &y));
  TRY(dtg_nn_flatten(m, y, &y));
  return learn(y, &x, 1, 15);
}

static int volumes(void) {
  const int64_t dims[] = {1, 3, 4, 4, 1}, steps[] = {2, 5, 2};
  dtg_value x[2], y;
  dtg_conv conv = DTG_CONV_INIT;
  PART(new_graph(0));
  PART(input(0, DTG_F32, dims, 5, &x[0]));
  PART(input(1, DTG_F32, steps, 3, &x[1]));
  conv.filters = 2;
  conv.activation = DTG_ACT_GELU;
  TRY(dtg_nn_conv1d(h.model[0], x[1], &conv, &y));
  TRY(dtg_nn_flatten(h.model[0], y, &y));
  TRY(dtg_add1(h.graph[0], "L2Loss", y, &x[1]));
  TRY(dtg_nn_conv3d(h.model[0], x[0], &conv, &y));
  TRY(dtg_add2(h.graph[0], "AddV2", y, x[1], &y));
  TRY(dtg_graph_find(h.graph[0], "x1", DTG_STRLEN, &x[1]));
  return learn(y, x, 2, 4);
}

/* Read both ways, then looked at. */
static int sequences(void) {
  const int64_t dims[] = {2, 3, 4}, batch[] = {2};
  dtg_value x[2], y;
  dtg_recurrent lstm = DTG_RECURRENT_INIT, gru = DTG_RECURRENT_INIT;
  dtg_recurrent_result read = DTG_RECURRENT_RESULT_INIT, again = DTG_RECURRENT_RESULT_INIT;
  dtg_position places = DTG_POSITION_INIT;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 3, &x[0]));
  PART(input(1, DTG_I64, batch, 1, &x[1]));
  lstm.units = 2;
  lstm.direction = DTG_BOTH;
  lstm.lengths = x[1];
  TRY(dtg_nn_recurrent(m, x[0], &lstm, &read));
  gru.kind = DTG_GRU;
  gru.units = 4;
  TRY(dtg_nn_recurrent(m, read.outputs, &gru, &again));
  places.kind = DTG_POSITION_LEARNED;
  places.longest = 3;
  TRY(dtg_nn_position_embedding(m, again.outputs, &places, &y));
  TRY(dtg_nn_layer_norm(m, y, NULL, &y));
  TRY(dtg_nn_rms_norm(m, y, NULL, &y));
  return learn(y, x, 2, 13);
}

/* Attention as it is trained, and as it decodes with the same weights. What lacks memory to find out a shape knows less of it, and the
 * cache is refused for that. */
static int attention(void) {
  const int64_t dims[] = {2, 3, 4}, one[] = {2, 1, 4};
  dtg_value x[2], y, z;
  dtg_attention look = DTG_ATTENTION_INIT;
  dtg_attention_cache cache = DTG_ATTENTION_CACHE_INIT;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 3, &x[0]));
  PART(input(1, DTG_F32, one, 3, &x[1]));
  look.heads = 2;
  look.key_width = 2;
  look.causal = 1;
  TRY(dtg_nn_attention(m, x[0], x[0], &look, &y));
  look.weights_of = "multi_head_attention";
  TRY(dtg_nn_attention_cache(m, y, &look, 5, &cache));
  TRY(dtg_nn_attention_step(m, x[1], &look, &cache, &z));
  TRY(dtg_add2(h.graph[0], "AddV2", y, z, &y));
  return learn(y, x, 2, 8);
}

/* What is drawn by the step. */
static int chance(void) {
  const int64_t dims[] = {2, 3, 4};
  dtg_variable step = DTG_VARIABLE_INIT;
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value x, y;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 3, &x));
  TRY(dtg_model_global_step(m, &step));
  TRY(dtg_nn_dropout(m, x, 0.5, step.read, none, &y));
  TRY(dtg_nn_noise(m, y, DTG_SPATIAL_DROPOUT, 0.25, step.read, none, &y));
  TRY(dtg_nn_noise(m, y, DTG_GAUSSIAN_NOISE, 0.25, step.read, none, &y));
  layer.units = 2;
  TRY(dtg_nn_dense(m, y, &layer, &y));
  TRY(dtg_nn_activation(m, y, DTG_ACT_SOFTMAX, &y));
  return learn(y, &x, 1, 3);
}

static int categories(void) {
  const char *const words[] = {"Berlin", "Lyon", "Porto, on the river with the bridges"};
  const char *const cities[] = {"Lyon", "Oslo", "Porto, on the river with the bridges", "Berlin", "", "Lyon"};
  const int64_t three[] = {3}, dims[] = {2, 3};
  dtg_value x[2], number, a, b, y;
  dtg_lookup lookup = DTG_LOOKUP_INIT;
  dtg_hashing hashing = DTG_HASHING_INIT;
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_embedding_bag bag = DTG_EMBEDDING_BAG_INIT;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 2, &x[0]));
  TRY(dtg_placeholder(h.graph[0], "cities", DTG_STRING, dims, 2, &x[1]));
  TRY(dtg_tensor_create_strings(dims, 2, cities, NULL, &h.tensor[1]));
  TRY(dtg_tensor_create_strings(three, 1, words, NULL, &h.tensor[2]));
  lookup.vocabulary = h.tensor[2];
  TRY(dtg_nn_lookup(m, x[1], &lookup, &number));
  table.rows = bag.rows = hashing.num_bins = 8;
  table.width = bag.width = 3;
  TRY(dtg_nn_embedding(m, number, &table, &a));
  hashing.salted = 1;
  TRY(dtg_nn_hashing(m, x[1], &hashing, &number));
  TRY(dtg_nn_embedding_bag(m, number, &bag, &b));
  TRY(dtg_nn_normalize(m, x[0], "{\"normalization\": \"standard\", \"shift\": [0.5], \"scale\": [2]}", DTG_STRLEN, &y));
  TRY(dtg_add2(h.graph[0], "Mul", y, b, &y));
  TRY(dtg_add2(h.graph[0], "AddV2", y, b, &y));
  TRY(dtg_nn_flatten(m, a, &a));
  TRY(dtg_add1(h.graph[0], "L2Loss", a, &a));
  TRY(dtg_add2(h.graph[0], "AddV2", y, a, &y));
  return learn(y, x, 2, 2);
}

/* ---- losses and metrics ---- */

static int sum_of(const dtg_value *parts, size_t count, dtg_value *sum) {
  TRY(dtg_addn(h.graph[0], "AddN", parts, count, sum));
  return 1;
}

static int losses(void) {
  const int64_t dims[] = {4, 3}, rows[] = {4};
  dtg_value x[2], y, part[8];
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_loss what = DTG_LOSS_INIT;
  dtg_sampled_loss sampled = DTG_SAMPLED_LOSS_INIT;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  PART(input(0, DTG_F32, dims, 2, &x[0]));
  PART(input(1, DTG_I64, rows, 1, &x[1]));
  layer.units = 3;
  TRY(dtg_nn_dense(m, x[0], &layer, &y));
  TRY(dtg_nn_sparse_softmax_cross_entropy(m, x[1], y, &part[0]));
  TRY(dtg_nn_softmax_cross_entropy(m, x[0], y, &part[1]));
  TRY(dtg_nn_sigmoid_cross_entropy(m, x[0], y, &part[2]));
  TRY(dtg_nn_triplet_loss(m, y, x[0], y, 0, &part[3]));
  what.kind = DTG_LOSS_HUBER;
  TRY(dtg_nn_loss(m, &what, x[0], y, none, &part[4]));
  what.kind = DTG_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY;
  what.from_logits = 1;
  TRY(dtg_nn_loss(m, &what, x[0], y, none, &part[5]));
  sampled.classes = 9;
  sampled.samples = 4;
  TRY(dtg_nn_sampled_loss(m, &sampled, x[1], y, &part[6]));
  PART(sum_of(part, 7, &y));
  TRY(dtg_nn_regularize(m, y, NULL, 0, 0.01, 0.02, &y));
  return learn(y, x, 2, 5);
}

static int metrics(void) {
  const int64_t dims[] = {4, 3}, rows[] = {4};
  static const dtg_metric_kind kinds[] = {DTG_METRIC_MEAN, DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY, DTG_METRIC_CONFUSION_MATRIX};
  dtg_value x[2], results[5], updates[3];
  PART(new_graph(0));
  PART(input(0, DTG_F32, dims, 2, &x[0]));
  PART(input(1, DTG_I64, rows, 1, &x[1]));
  TRY(dtg_nn_accuracy(h.model[0], x[1], x[0], &results[3]));
  TRY(dtg_nn_correct_count(h.model[0], x[1], x[0], &results[4]));
  for (size_t i = 0; i < COUNT(kinds); i++) {
    dtg_metric what = DTG_METRIC_INIT;
    dtg_metric_values values = DTG_METRIC_VALUES_INIT;
    what.kind = kinds[i];
    what.classes = 3;
    TRY(dtg_nn_metric(h.model[0], &what, i == 0 ? none : x[1], x[0], none, &values));
    updates[i] = values.update;
    results[i] = values.result;
  }
  PART(begin_session(0, NULL));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = x;
  args.feed_tensors = (const dtg_tensor *const *)h.tensor;
  args.num_feeds = 2;
  args.fetches = results;
  args.fetched = &h.tensor[2];
  args.num_fetches = 5;
  args.targets = updates;
  args.num_targets = 3;
  TRY(dtg_session_run(h.session[0], &args));
  return 1;
}

/* ---- optimizers ---- */

static int schedules(void) {
  const int64_t boundaries[] = {2, 5};
  const double values[] = {0.5, 0.25, 0.125};
  dtg_variable step = DTG_VARIABLE_INIT;
  dtg_schedule how = DTG_SCHEDULE_INIT;
  dtg_value rates[4], sum;
  float rate = 0;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  TRY(dtg_model_global_step(m, &step));
  TRY(dtg_nn_exponential_decay(m, step.read, 0.1, 10, 0.5, 1, &rates[0]));
  TRY(dtg_nn_cosine_decay(m, step.read, 0.1, 10, 0.1, 2, &rates[1]));
  how.kind = DTG_SCHEDULE_PIECEWISE_CONSTANT;
  how.boundaries = boundaries;
  how.values = values;
  how.num_boundaries = 2;
  TRY(dtg_nn_schedule(m, step.read, &how, &rates[2]));
  how.kind = DTG_SCHEDULE_COSINE_DECAY_RESTARTS;
  how.rate = 0.1;
  how.steps = 10;
  TRY(dtg_nn_schedule(m, step.read, &how, &rates[3]));
  PART(sum_of(rates, 4, &sum));
  PART(begin_session(0, NULL));
  TRY(dtg_run_f32(h.session[0], sum, none, &rate));
  HOLDS(rate > 0);
  return 1;
}

/* A dense layer and its loss. */
static int fit_a_line(dtg_value *x, dtg_value *loss) {
  const int64_t dims[] = {4, 3};
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value y;
  PART(new_graph(0));
  PART(input(0, DTG_F32, dims, 2, x));
  layer.units = 3;
  TRY(dtg_nn_dense(h.model[0], *x, &layer, &y));
  TRY(dtg_nn_mean_squared_error(h.model[0], *x, y, loss));
  return 1;
}

static int optimizers(void) {
  dtg_value x, loss;
  float value = 0;
  PART(fit_a_line(&x, &loss));
  dtg_training by_lamb = DTG_TRAINING_INIT, by_ftrl = DTG_TRAINING_INIT;
  dtg_optimizer how = DTG_OPTIMIZER_INIT;
  how.kind = DTG_OPT_LAMB;
  how.clip_norm = 1;
  how.use_ema = 1;
  how.lookahead_steps = 2;
  how.accumulation_steps = 2;
  how.undecayed_names = "bias";
  how.weight_decay = 0.01;
  TRY(dtg_nn_minimize(h.model[0], loss, &how, &by_lamb));
  how = (dtg_optimizer)DTG_OPTIMIZER_INIT;
  how.kind = DTG_OPT_FTRL;
  TRY(dtg_nn_minimize(h.model[0], loss, &how, &by_ftrl));
  PART(begin_session(0, NULL));
  for (int i = 0; i < 2; i++) TRY(dtg_step_f32(h.session[0], &x, h.tensor, 1, loss, by_lamb.train, &value));
  TRY(dtg_step_f32(h.session[0], &x, h.tensor, 1, loss, by_ftrl.train, &value));
  return 1;
}

/* Gradients of one's own. */
static int gradients(void) {
  dtg_value x, loss, train;
  dtg_variable kernel = DTG_VARIABLE_INIT, bias = DTG_VARIABLE_INIT;
  dtg_gradient made[2];
  float value = 0;
  PART(fit_a_line(&x, &loss));
  TRY(dtg_model_variable(h.model[0], 0, &kernel));
  TRY(dtg_model_find_variable(h.model[0], "dense/bias", DTG_STRLEN, &bias));
  const dtg_value handles[] = {kernel.handle, bias.handle};
  TRY(dtg_graph_add_gradients(h.graph[0], &loss, 1, handles, 2, NULL, made));
  TRY(dtg_nn_apply_gradients(h.model[0], NULL, handles, made, 2, &train));
  PART(begin_session(0, NULL));
  TRY(dtg_step_f32(h.session[0], &x, h.tensor, 1, loss, train, &value));
  return 1;
}

/* A layer with its weights inside of a loop. */
static int inside(void) {
  const int64_t dims[] = {2, 3};
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value x, v, y, less;
  PART(new_graph(0));
  PART(input(0, DTG_F32, dims, 2, &x));
  TRY(dtg_add1(h.graph[0], "L2Loss", x, &less));
  TRY(dtg_function_begin(h.graph[0], "round", DTG_STRLEN, &h.body));
  TRY(dtg_function_add_argument_like(h.body, x, &v));
  TRY(dtg_model_inside(h.model[0], h.body, &h.inside));
  layer.units = 3;
  layer.activation = DTG_ACT_TANH;
  TRY(dtg_nn_dense(h.inside, v, &layer, &y));
  layer.weights_of = "round/dense";
  TRY(dtg_nn_dense(h.inside, y, &layer, &y));
  TRY(dtg_function_end(h.body, &y, 1, NULL, 0, &h.function[0]));
  TRY(dtg_graph_add_call(h.graph[0], h.function[0], &x, 1, &y, 1));
  TRY(dtg_graph_add_call(h.graph[0], h.function[0], &y, 1, &y, 1));
  return learn(y, &x, 1, 2);
}

static const struct scene scenes[] = {
    {"images", images, 0, 0},       {"volumes", volumes, 0, 0},
    {"sequences", sequences, 0, 0}, {"attention", attention, AS(DTG_INVALID_ARGUMENT), 0},
    {"chance", chance, 0, 0},       {"categories", categories, 0, 0},
    {"losses", losses, 0, 0},       {"metrics", metrics, 0, 0},
    {"schedules", schedules, 0, 0}, {"optimizers", optimizers, 0, 0},
    {"gradients", gradients, 0, 0}, {"inside", inside, 0, 0},
};
#endif

STAGE("layers", scenes)
