/* network.c: two convolutions, each with a pooling, and a linear classifier; and what a step of its training is. The graph
 * is built the same way by every worker: variables of the same name on the same parameter server are one variable. */
#include "fashion_mnist.h"

#include <stdio.h>
#include <string.h>

static dtg_error *build_tower(struct network *n, struct tower *t, int64_t side) {
  const int64_t image[4] = {-1, side, side, 1}, any[1] = {-1};
  dtg_conv2d conv = DTG_CONV2D_INIT;
  dtg_dense classes = DTG_DENSE_INIT;
  dtg_value x, shape, mean, scale;
  TRY(dtg_placeholder(n->graph, NULL, DTG_F32, NULL, DTG_STRLEN, &t->images));
  TRY(dtg_placeholder(n->graph, NULL, DTG_I64, any, 1, &t->labels));
  TRY(dtg_const_i64s(n->graph, image, 4, &shape));
  TRY(dtg_add2(n->graph, "Reshape", t->images, shape, &x));
  /* Most pixels are black: centred and scaled, the first layer learns faster. */
  TRY(dtg_const_f32(n->graph, 0.286f, &mean));
  TRY(dtg_const_f32(n->graph, 1 / 0.353f, &scale));
  TRY(dtg_add2(n->graph, "Sub", x, mean, &x));
  TRY(dtg_add2(n->graph, "Mul", x, scale, &x));
  conv.padding = DTG_PADDING_SAME;
  conv.activation = DTG_ACT_RELU;
  conv.filters = 16;
  TRY(dtg_nn_conv2d(n->model, x, &conv, &x));
  TRY(dtg_nn_max_pool2d(n->model, x, NULL, &x));
  conv.filters = 32;
  TRY(dtg_nn_conv2d(n->model, x, &conv, &x));
  TRY(dtg_nn_max_pool2d(n->model, x, NULL, &x));
  TRY(dtg_nn_flatten(n->model, x, &x));
  classes.units = 10;
  TRY(dtg_nn_dense(n->model, x, &classes, &x));
  TRY(dtg_nn_sparse_softmax_cross_entropy(n->model, t->labels, x, &t->loss));
  TRY(dtg_nn_accuracy(n->model, t->labels, x, &t->accuracy));
  return dtg_nn_correct_count(n->model, t->labels, x, &t->correct);
}

/* The mean over the towers, for the curves. */
static dtg_error *mean_of_towers(struct network *n, size_t field, dtg_value *out) {
  dtg_value values[MAX_SHARDS] = {{0}}, sum, share;
  for (int i = 0; i < n->num_towers; i++) memcpy(&values[i], (const char *)&n->towers[i] + field, sizeof values[i]);
  *out = values[0];
  if (n->num_towers == 1) return NULL;
  TRY(dtg_addn(n->graph, "AddN", values, (size_t)n->num_towers, &sum));
  TRY(dtg_const_f32(n->graph, 1.0f / (float)n->num_towers, &share));
  return dtg_add2(n->graph, "Mul", sum, share, out);
}

/* Half a cosine down to 0 after a short warm-up, by the count of updates. The count lives on a parameter server, and so does
 * what follows from it. */
static dtg_error *add_rate(const struct options *options, const struct place *place, const struct data *data, struct network *n) {
  const int async = place->cluster && (place->coordinates || each_for_itself(options));
  const int updates = async ? count_workers(place) : 1; /* per step of a worker, each from a share of the batch */
  const double total = (double)(data->steps * options->epochs * (place->coordinates ? 1 : updates)),
               warm = total / 10 < 100.0 * updates ? total / 10 : 100.0 * updates;
  dtg_variable step = DTG_VARIABLE_INIT;
  TRY(dtg_model_global_step(n->model, &step));
  if (has_ps(place)) TRY(dtg_graph_push_device(n->graph, "/job:ps/task:0", DTG_STRLEN));
  TRY(dtg_nn_cosine_decay(n->model, step.read, options->rate / updates, total, 0, warm, &n->rate));
  return has_ps(place) ? dtg_graph_pop_device(n->graph) : NULL;
}

static dtg_error *add_training(const struct options *options, const struct place *place, const struct data *data, struct network *n) {
  dtg_value losses[MAX_SHARDS];
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_replication replication = DTG_REPLICATION_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.momentum = 0.9;
  optimizer.learning_rate = n->rate;
  n->training = (dtg_training)DTG_TRAINING_INIT;
  n->replicated = (dtg_replicated)DTG_REPLICATED_INIT;
  for (int i = 0; i < n->num_towers; i++) losses[i] = n->towers[i].loss;
  if (!place->cluster || place->coordinates)
    return dtg_nn_minimize_towers(n->model, losses, (size_t)n->num_towers, &optimizer, &n->training);
  replication.mode = sync_mode(options);
  if (replication.mode == DTG_SYNC_SSP) replication.staleness = options->staleness;
  if (replication.mode == DTG_SYNC_ELASTIC) replication.min_workers = place->min_workers, replication.elements = data->elements;
  replication.worker = place->task.id;
  replication.total = place->task.num_workers;
  return dtg_nn_minimize_replicated(n->model, losses[0], &optimizer, &replication, &n->replicated);
}

/* ---- the shards as replicas of a strategy ---- */

static dtg_error *build_replica(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs,
                                dtg_value *results, size_t num_results) {
  struct network *n = user;
  (void)strategy, (void)inputs, (void)num_inputs, (void)num_results;
  TRY(build_tower(n, &n->towers[replica], n->side));
  results[0] = n->towers[replica].loss;
  return NULL;
}

/* STRATEGY=custom: gradients meet from the last replica to the first. */
static dtg_error *from_the_last(void *user, dtg_strategy *strategy, dtg_reduction op, const dtg_value *parts, size_t num_parts,
                                dtg_value *out) {
  struct network *n = user;
  dtg_value share;
  (void)strategy;
  *out = parts[num_parts - 1];
  for (size_t i = num_parts - 1; i-- > 0;) TRY(dtg_add2(n->graph, "AddV2", *out, parts[i], out));
  if (op == DTG_REDUCE_SUM) return NULL;
  TRY(dtg_const_f32(n->graph, (float)num_parts, &share));
  return dtg_add2(n->graph, "RealDiv", *out, share, out);
}

static dtg_error *create_strategy(const char *name, const struct place *place, int replicas, struct network *n) {
  static const char *const devices[MAX_SHARDS] = {"/device:EMU:0",  "/device:EMU:1",  "/device:EMU:2",  "/device:EMU:3",
                                                  "/device:EMU:4",  "/device:EMU:5",  "/device:EMU:6",  "/device:EMU:7",
                                                  "/device:EMU:8",  "/device:EMU:9",  "/device:EMU:10", "/device:EMU:11",
                                                  "/device:EMU:12", "/device:EMU:13", "/device:EMU:14", "/device:EMU:15"};
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  options.kind = strcmp(name, "one") == 0        ? DTG_STRATEGY_ONE_DEVICE
                 : strcmp(name, "mirrored") == 0 ? DTG_STRATEGY_MIRRORED
                 : strcmp(name, "central") == 0  ? DTG_STRATEGY_CENTRAL_STORAGE
                 : place->group                  ? DTG_STRATEGY_MULTI_WORKER_MIRRORED
                                                 : DTG_STRATEGY_CUSTOM;
  options.group = place->group;
  options.algorithm = place->group ? DTG_ALGORITHM_RING : DTG_ALGORITHM_AUTO;
  if (!place->group) options.devices = devices, options.num_devices = (size_t)replicas;
  hooks.reduce_to = from_the_last;
  if (options.kind == DTG_STRATEGY_CUSTOM) options.hooks = &hooks, options.user = n;
  return dtg_strategy_create(n->model, &options, &n->strategy);
}

static dtg_error *train_by_strategy(struct network *n) {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.momentum = 0.9;
  optimizer.learning_rate = n->rate;
  n->training = (dtg_training)DTG_TRAINING_INIT;
  n->replicated = (dtg_replicated)DTG_REPLICATED_INIT;
  TRY(dtg_strategy_minimize(n->strategy, n->losses, DTG_REDUCE_MEAN, &optimizer, &n->training));
  return dtg_strategy_level(n->strategy, &n->level);
}

/* Variables go to the parameter servers in turn, everything else is computed here. */
static dtg_error *push_placement(const struct place *place, struct network *n) {
  char here[96];
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  snprintf(here, sizeof here, "/job:%s/task:%d", place->task.type, (int)place->task.index);
  if (place->coordinates) snprintf(here, sizeof here, "/job:worker"); /* whichever takes the closure */
  setter.cluster = place->cluster;
  setter.worker_device = here;
  return dtg_graph_push_device_setter(n->graph, &setter);
}

dtg_error *build_network(const struct options *options, const struct place *place, const struct data *data, struct network *n) {
  TRY(dtg_graph_create(place->runtime, &n->graph));
  TRY(dtg_model_create(n->graph, options->seed, &n->model));
  if (has_ps(place)) TRY(push_placement(place, n));
  if (options->strategy && !has_ps(place)) {
    n->num_towers = data->shards;
    n->side = data->side;
    TRY(create_strategy(options->strategy, place, data->shards, n));
    TRY(dtg_strategy_enter(n->strategy));
    TRY(dtg_strategy_run(n->strategy, build_replica, n, NULL, 0, &n->losses, 1));
    TRY(dtg_strategy_exit(n->strategy));
  }
  for (; n->num_towers < data->shards; n->num_towers++) {
    if (n->num_towers > 0) TRY(dtg_model_next_tower(n->model));
    TRY(build_tower(n, &n->towers[n->num_towers], data->side));
  }
  TRY(add_rate(options, place, data, n));
  TRY(n->strategy ? train_by_strategy(n) : add_training(options, place, data, n));
  if (place->coordinates) {
    TRY(dtg_placeholder(n->graph, NULL, DTG_I64, NULL, 0, &n->worker));
    TRY(dtg_add1(n->graph, "Identity", n->worker, &n->maker));
  }
  if (has_ps(place) && !place->coordinates) TRY(build_ledger(options, place, n));
  TRY(mean_of_towers(n, offsetof(struct tower, loss), &n->loss));
  TRY(mean_of_towers(n, offsetof(struct tower, accuracy), &n->accuracy));
  return dtg_model_init(n->model, &n->init);
}
