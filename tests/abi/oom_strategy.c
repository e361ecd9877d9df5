/* Memory that runs out while one model is built for many devices: strategies and their hooks, towers, replicas, tables in shards, and
 * meshes with layers that are cut. What failed leaves the model as it was, so it is built again on the same one. Then a step is made, on
 * emulated devices. See oom.h. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static const char *const devices[] = {"/device:EMU:0", "/device:EMU:1"};
static const dtg_value none = {0};

/* Four rows of three numbers, and tensor 0 for them. */
static int batch(dtg_value *x) {
  const int64_t dims[] = {4, 3};
  PART(new_graph(0));
  TRY(dtg_placeholder(h.graph[0], "x", DTG_F32, dims, 2, x));
  return new_tensor(0, DTG_F32, dims, 2);
}

static int step(dtg_value x, dtg_value fetch, dtg_value target) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  PART(begin_session(0, NULL));
  args.feeds = &x;
  args.feed_tensors = (const dtg_tensor *const *)h.tensor;
  args.num_feeds = 1;
  args.fetches = &fetch;
  args.fetched = &h.tensor[1];
  args.num_fetches = 1;
  args.targets = &target;
  args.num_targets = target.id != 0;
  TRY(dtg_session_run(h.session[0], &args));
  return 1;
}

/* ---- strategies ---- */

/* An error of a function that the library calls is that of the call that called it. */
#define PASS(call)              \
  do {                          \
    dtg_error *error_ = (call); \
    if (error_) return error_;  \
  } while (0)

/* The mean of the squares of a layer. */
static dtg_error *build(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs, dtg_value *results,
                        size_t num_results) {
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value y;
  (void)user, (void)strategy, (void)replica, (void)num_inputs, (void)num_results;
  layer.units = 2;
  PASS(dtg_nn_dense(h.model[0], inputs[0], &layer, &y));
  PASS(dtg_add1(h.graph[0], "L2Loss", y, &y));
  results[0] = y;
  return NULL;
}

static int new_strategy(dtg_strategy_kind kind, const dtg_strategy_hooks *hooks) {
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.devices = devices;
  options.num_devices = kind == DTG_STRATEGY_ONE_DEVICE ? 1 : 2;
  options.hooks = hooks;
  TRY(dtg_strategy_create(h.model[0], &options, &h.strategy));
  return 1;
}

static int trained(dtg_strategy_kind kind, const dtg_strategy_hooks *hooks) {
  dtg_value x, mean, target;
  dtg_per_replica parts, loss;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  PART(batch(&x));
  PART(new_strategy(kind, hooks));
  TRY(dtg_strategy_enter(h.strategy));
  TRY(dtg_strategy_split(h.strategy, x, &parts));
  TRY(dtg_strategy_run(h.strategy, build, NULL, &parts, 1, &loss, 1));
  HOLDS(dtg_model_variable_count(h.model[0]) == 2);
  TRY(dtg_strategy_minimize(h.strategy, loss, DTG_REDUCE_MEAN, NULL, &training));
  TRY(dtg_strategy_reduce(h.strategy, DTG_REDUCE_MEAN, loss, DTG_NO_AXIS, &mean));
  TRY(dtg_strategy_level(h.strategy, &target));
  TRY(dtg_strategy_exit(h.strategy));
  TRY(dtg_strategy_describe(h.strategy, &info));
  HOLDS(info.context == 0 && info.num_replicas == (kind == DTG_STRATEGY_ONE_DEVICE ? 1 : 2));
  return step(x, mean, training.train);
}

static int mirrored(void) { return trained(DTG_STRATEGY_MIRRORED, NULL); }
static int central(void) { return trained(DTG_STRATEGY_CENTRAL_STORAGE, NULL); }

static dtg_error *place(void *user, dtg_strategy *strategy, dtg_variable_place *where) {
  (void)user, (void)strategy;
  where->devices = devices;
  where->num_devices = 2;
  return NULL;
}
static dtg_error *around(void *user, dtg_strategy *strategy, int32_t replica) { return (void)user, (void)strategy, (void)replica, NULL; }
static dtg_error *add_up(void *user, dtg_strategy *strategy, dtg_reduction op, const dtg_value *values, size_t count, dtg_value *out) {
  (void)user, (void)strategy, (void)op;
  return dtg_addn(h.graph[0], "AddN", values, count, out);
}

static int custom(void) {
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  hooks.create_variable = place;
  hooks.begin_replica = hooks.end_replica = around;
  hooks.reduce_to = add_up;
  return trained(DTG_STRATEGY_CUSTOM, &hooks);
}

/* Parameter servers, of which there is one: this process. */
static int parameters(void) {
  dtg_value x;
  dtg_per_replica parts, loss;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_replication how = DTG_REPLICATION_INIT;
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  PART(batch(&x));
  options.kind = DTG_STRATEGY_PARAMETER_SERVER;
  options.replication = &how;
  TRY(dtg_strategy_create(h.model[0], &options, &h.strategy));
  TRY(dtg_strategy_enter(h.strategy));
  TRY(dtg_strategy_broadcast(h.strategy, x, &parts));
  TRY(dtg_strategy_run(h.strategy, build, NULL, &parts, 1, &loss, 1));
  TRY(dtg_strategy_minimize(h.strategy, loss, DTG_REDUCE_MEAN, NULL, &training));
  TRY(dtg_strategy_replicated(h.strategy, &replicated));
  TRY(dtg_strategy_exit(h.strategy));
  PART(begin_session(0, NULL));
  TRY(dtg_run_target(h.session[0], replicated.local_init));
  float value = 0;
  dtg_value read;
  TRY(dtg_strategy_local_results(h.strategy, loss, &read, 1, &(size_t){0}));
  TRY(dtg_step_f32(h.session[0], &x, h.tensor, 1, read, training.train, &value));
  return 1;
}

/* ---- values of replicas, and what is written to variables ---- */

static dtg_error *merge(void *user, dtg_strategy *strategy, const dtg_per_replica *values, size_t num_values, dtg_per_replica *results,
                        size_t num_results) {
  dtg_value sum;
  (void)user, (void)num_values, (void)num_results;
  PASS(dtg_strategy_reduce(strategy, DTG_REDUCE_SUM, values[0], DTG_NO_AXIS, &sum));
  return dtg_strategy_broadcast(strategy, sum, &results[0]);
}

static dtg_value counter;
static dtg_error *then(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs, dtg_value *results,
                       size_t num_results) {
  dtg_value target;
  (void)user, (void)replica, (void)num_inputs, (void)num_results;
  PASS(dtg_strategy_assign(strategy, counter, DTG_ASSIGN_ADD, inputs[0], &target));
  results[0] = inputs[0];
  return NULL;
}

static dtg_error *halves(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs,
                         dtg_value *results, size_t num_results) {
  dtg_value sum;
  (void)replica, (void)num_inputs, (void)num_results;
  PASS(dtg_add1(h.graph[0], "L2Loss", inputs[0], &sum));
  PASS(dtg_strategy_merge_call(strategy, &sum, 1, merge, NULL, 1, then, user));
  results[0] = sum;
  return NULL;
}

static dtg_error *add_one(void *user, dtg_strategy *strategy, int32_t copy, const dtg_variable *variable, const dtg_value *values,
                          size_t num_values, dtg_value *out) {
  (void)user, (void)strategy, (void)copy, (void)num_values;
  return dtg_add_assign_add_variable_op(h.graph[0], NULL, variable->handle, values[0], out);
}

static int values(void) {
  dtg_value x, ys[2], all, updates, more, mean;
  dtg_per_replica parts, sums, spread;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable count = DTG_VARIABLE_INIT;
  size_t here = 0;
  PART(batch(&x));
  PART(new_strategy(DTG_STRATEGY_MIRRORED, NULL));
  TRY(dtg_strategy_enter(h.strategy));
  spec.name = "count";
  spec.not_trainable = 1;
  spec.aggregation = DTG_AGGREGATION_MEAN;
  TRY(dtg_model_add_variable(h.model[0], &spec, &count));
  counter = count.handle;
  TRY(dtg_strategy_split(h.strategy, x, &parts));
  TRY(dtg_strategy_run(h.strategy, halves, NULL, &parts, 1, &sums, 1));
  TRY(dtg_strategy_updates(h.strategy, &updates));
  TRY(dtg_strategy_gather(h.strategy, parts, 0, &all));
  TRY(dtg_strategy_local_results(h.strategy, sums, ys, 2, &here));
  HOLDS(here == 2);
  TRY(dtg_strategy_distribute(h.strategy, ys, 2, &spread));
  TRY(dtg_strategy_update(h.strategy, counter, add_one, NULL, &spread, 1, &more));
  TRY(dtg_strategy_assign(h.strategy, counter, DTG_ASSIGN_SET, ys[0], NULL));
  TRY(dtg_strategy_reduce(h.strategy, DTG_REDUCE_MEAN, parts, 0, &mean));
  TRY(dtg_strategy_exit(h.strategy));
  PART(step(x, all, updates));
  TRY(dtg_run_target(h.session[0], count.assign));
  dtg_strategy_release(dtg_strategy_retain(h.strategy));
  return 1;
}

/* Replica by replica; the first run is given up. */
static int turns(void) {
  dtg_value x, y, result;
  dtg_per_replica parts, sums = {0};
  PART(batch(&x));
  PART(new_strategy(DTG_STRATEGY_MIRRORED, NULL));
  TRY(dtg_strategy_enter(h.strategy));
  TRY(dtg_strategy_split(h.strategy, x, &parts));
  TRY(dtg_strategy_begin_replica(h.strategy, 0));
  TRY(dtg_strategy_abandon_run(h.strategy));
  for (int32_t replica = 0; replica < 2; replica++) {
    ONCE(dtg_strategy_begin_replica(h.strategy, replica)); /* after an error the run is over */
    ONCE(dtg_strategy_local(h.strategy, parts, &y));
    ONCE(build(NULL, h.strategy, replica, &y, 1, &result, 1));
    ONCE(dtg_strategy_end_replica(h.strategy, &result, 1, &sums));
  }
  TRY(dtg_strategy_reduce(h.strategy, DTG_REDUCE_SUM, sums, DTG_NO_AXIS, &y));
  TRY(dtg_strategy_exit(h.strategy));
  return step(x, y, none);
}

/* ---- towers, replicas, shards ---- */

static int tower(dtg_value x, dtg_value *loss) {
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value y;
  layer.units = 2;
  TRY(dtg_nn_dense(h.model[0], x, &layer, &y));
  TRY(dtg_add1(h.graph[0], "L2Loss", y, loss));
  return 1;
}

static int towers(void) {
  dtg_value x, losses[2];
  dtg_training training = DTG_TRAINING_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  PART(batch(&x));
  PART(tower(x, &losses[0]));
  TRY(dtg_model_next_tower(h.model[0]));
  PART(tower(x, &losses[1]));
  adam.kind = DTG_OPT_ADAM;
  adam.clip_norm = 1;
  TRY(dtg_nn_minimize_towers(h.model[0], losses, 2, &adam, &training));
  return step(x, losses[1], training.train);
}

static int replicas(dtg_sync_mode mode) {
  dtg_value x, loss;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_replication how = DTG_REPLICATION_INIT;
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  PART(batch(&x));
  PART(tower(x, &loss));
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.momentum = 0.5;
  how.mode = mode;
  TRY(dtg_nn_minimize_replicated(h.model[0], loss, &momentum, &how, &replicated));
  PART(begin_session(0, NULL));
  TRY(dtg_model_wait_ready(h.model[0], h.session[0], INT64_C(5000000000)));
  TRY(dtg_model_recover(h.model[0], h.session[0], INT64_C(5000000000)));
  return 1;
}

static int asynchronous(void) { return replicas(DTG_SYNC_ASYNC); }
static int strict(void) { return replicas(DTG_SYNC_STRICT); }
static int elastic(void) { return replicas(DTG_SYNC_ELASTIC); }

/* Batches that are dealt out by a ledger beside the weights. With all the memory there is: a run that gives no contribution for lack of it,
 * and asks for the update, may wait beyond its deadline yet. */
static int dealt(void) {
  dtg_value x, loss;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_replication how = DTG_REPLICATION_INIT;
  int64_t epoch = 0, element = 0;
  PART(batch(&x));
  PART(tower(x, &loss));
  how.mode = DTG_SYNC_ELASTIC;
  how.elements = 2;
  TRY(dtg_nn_minimize_replicated(h.model[0], loss, NULL, &how, &replicated));
  PART(begin_session(0, NULL));
  TRY(dtg_run_target(h.session[0], replicated.chief_init));
  TRY(dtg_run_target(h.session[0], replicated.local_init));
  TRY(dtg_dataset_range(runtime, 0, 2, 1, &h.data[0]));
  TRY(dtg_dataset_deal(h.data[0], h.model[0], h.session[0], INT64_C(5000000000)));
  const dtg_value targets[] = {replicated.update, replicated.train};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.feed_tensors = (const dtg_tensor *const *)h.tensor;
  args.num_feeds = 1;
  args.targets = targets;
  args.num_targets = 2;
  for (int32_t more = 1, made = 0;; made++) {
    TRY(dtg_dataset_next(h.data[0], &h.tensor[1], 1, &more));
    TRY(dtg_dataset_dealt(h.data[0], &epoch, &element));
    HOLDS(made > 2 || more == (made < 2));
    if (!more) break;
    dtg_tensor_release(h.tensor[1]);
    h.tensor[1] = NULL;
    ONCE(dtg_session_run(h.session[0], &args)); /* what it has contributed by then is dtg_model_recover's to find out */
  }
  return 1;
}

static int own_gradients(void) {
  dtg_value x, loss;
  dtg_variable kernel = DTG_VARIABLE_INIT;
  dtg_gradient gradient;
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_replication how = DTG_REPLICATION_INIT;
  PART(batch(&x));
  PART(tower(x, &loss));
  TRY(dtg_model_variable(h.model[0], 0, &kernel));
  TRY(dtg_graph_add_gradients(h.graph[0], &loss, 1, &kernel.handle, 1, NULL, &gradient));
  how.mode = DTG_SYNC_REPLICAS;
  TRY(dtg_nn_apply_replicated(h.model[0], &kernel.handle, &gradient, 1, NULL, &how, &replicated));
  return begin_session(0, NULL);
}

static int shards(void) {
  const int64_t dims[] = {7, 2}, ids[] = {2, 3};
  dtg_value x, y, a, b;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_partitioner cuts = DTG_PARTITIONER_INIT;
  dtg_sharded sharded = DTG_SHARDED_INIT, found = DTG_SHARDED_INIT;
  dtg_variable shard = DTG_VARIABLE_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  int64_t first = 0, count = 0;
  PART(new_graph(0));
  dtg_model *const m = h.model[0];
  TRY(dtg_placeholder(h.graph[0], "ids", DTG_I64, ids, 2, &x));
  PART(new_tensor(0, DTG_I64, ids, 2));
  cuts.num_shards = 3;
  spec.name = "table";
  spec.dims = dims;
  spec.rank = 2;
  spec.initializer.kind = DTG_INIT_GLOROT_UNIFORM;
  TRY(dtg_partitioner_shards(&cuts, DTG_F32, dims, 2, &count));
  TRY(dtg_shard_rows(7, 3, 1, &first, &count));
  TRY(dtg_model_add_sharded_variable(m, &spec, &cuts, &sharded));
  TRY(dtg_model_find_sharded_variable(m, "table", DTG_STRLEN, &found));
  TRY(dtg_sharded_shard(m, "table", DTG_STRLEN, 2, &shard));
  HOLDS(found.shards == 3 && first == 3 && count == 2 && shard.dims[0] == 2);
  TRY(dtg_nn_sharded_value(m, "table", DTG_STRLEN, &a));
  TRY(dtg_nn_sharded_lookup(m, "table", DTG_STRLEN, x, &b));
  table.rows = 5;
  table.width = 2;
  TRY(dtg_nn_sharded_embedding(m, x, &table, &cuts, &y));
  TRY(dtg_add2(h.graph[0], "AddV2", y, b, &y));
  TRY(dtg_add1(h.graph[0], "L2Loss", y, &y));
  HOLDS(dtg_model_variable_count(m) == 6);
  TRY(dtg_nn_minimize(m, y, NULL, &training));
  return step(x, a, training.train);
}

/* ---- meshes ---- */

/* Stage 0 looks ids up and attends, stage 1 has two layers that are cut. */
static dtg_error *stage(const dtg_mesh_step *at_step, dtg_value *out) {
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_attention look = DTG_ATTENTION_INIT;
  dtg_dense columns = DTG_DENSE_INIT, wide = DTG_DENSE_INIT;
  dtg_value y, parts[2];
  if (at_step->stage == 0) {
    table.rows = 5;
    table.width = 4;
    PASS(dtg_mesh_embedding(h.mesh, at_step->batch[0], &table, DTG_CUT_ROWS, &y));
    look.heads = 2;
    look.key_width = 2;
    return dtg_mesh_attention(h.mesh, y, y, &look, out);
  }
  columns.units = wide.units = 4;
  columns.activation = DTG_ACT_RELU;
  PASS(dtg_mesh_column_dense(h.mesh, at_step->inputs[0], &columns, parts, 2));
  PASS(dtg_mesh_row_dense(h.mesh, parts, 2, &wide, &y));
  PASS(dtg_mesh_column_dense(h.mesh, y, &wide, parts, 2));
  PASS(dtg_mesh_together(h.mesh, parts, 2, -1, &y));
  PASS(dtg_add1(h.graph[0], "L2Loss", y, out));
  return NULL;
}

static int mesh(void) {
  static const char *const four[] = {"/device:EMU:0", "/device:EMU:1", "/device:CPU:0", "/device:CPU:1"};
  const int64_t dims[] = {4, 3};
  dtg_value x, y, loss;
  dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
  dtg_mesh_step at_step = DTG_MESH_STEP_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  int32_t more = 1;
  PART(new_graph(0));
  TRY(dtg_placeholder(h.graph[0], "x", DTG_I64, dims, 2, &x));
  PART(new_tensor(0, DTG_I64, dims, 2));
  grid.model = grid.pipe = 2;
  grid.devices = four;
  grid.num_devices = 4;
  TRY(dtg_mesh_create(h.model[0], &grid, &h.mesh));
  TRY(dtg_mesh_begin(h.mesh, &x, 1, 2, 0));
  TRY(dtg_mesh_abandon(h.mesh));
  /* A failure of these abandons the build, which is begun again. */
  for (int again = 0; more; again++) {
    dtg_error *failed = NULL;
    if (again == 3) return 0;
    TRY(dtg_mesh_begin(h.mesh, &x, 1, 2, 0));
    while (!failed) {
      failed = dtg_mesh_next(h.mesh, &at_step, &more);
      if (failed || !more) break;
      failed = stage(&at_step, &y);
      if (!failed) failed = dtg_mesh_give(h.mesh, &y, 1);
    }
    int tries = tries_before();
    if (failed && judge(failed, 1, &tries, "dtg_mesh_next, dtg_mesh_give", __LINE__) < 0) return 0;
    if (!failed) continue;
    if (way == LASTING && again == 0) fail_no_more(), is_back = 1;
    TRY(dtg_mesh_abandon(h.mesh));
  }
  TRY(dtg_mesh_result(h.mesh, 0, &loss));
  TRY(dtg_mesh_minimize(h.mesh, NULL, &training));
  HOLDS(dtg_model_variable_count(h.model[0]) > 10);
  dtg_mesh_release(dtg_mesh_retain(h.mesh));
  return step(x, loss, training.train);
}

static const struct scene scenes[] = {
    {"mirrored", mirrored, 0, 0},
    {"central", central, 0, 0},
    {"custom", custom, 0, 0},
    {"parameters", parameters, 0, 0},
    {"values", values, 0, 0},
    {"turns", turns, 0, 0},
    {"towers", towers, 0, 0},
    {"asynchronous", asynchronous, 0, 0},
    {"strict", strict, 0, 0},
    {"elastic", elastic, 0, 0},
    {"own gradients", own_gradients, 0, 0},
    {"dealt", dealt, 0, 2},
    {"shards", shards, 0, 0},
    {"mesh", mesh, 0, 0},
};
#endif

STAGE("strategy", scenes)
