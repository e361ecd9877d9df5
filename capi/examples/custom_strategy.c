/* custom_strategy.c: a strategy of one's own, written against the public headers only. Each of three replicas has its weights on a device of its own;
 * their gradients meet in rank order from the last to the first, every bias stands in one place for all, and each replica builds under a name of
 * its own. The weights stay equal on all devices, and the loss falls. The devices are emulated ones, so it runs anywhere. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <string.h>

#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
enum { kReplicas = 3, kRows = 7, kIn = 4, kSteps = 25 };

typedef struct program {
  dtg_graph *graph;
  dtg_model *model;
  dtg_value kernels[kReplicas]; /* what each replica reads */
  int reduced;
} program;

/* Kernels on every device, which is what happens by itself; biases on the CPU, once. */
static dtg_error *create_variable(void *user, dtg_strategy *strategy, dtg_variable_place *place) {
  static const char *const cpu[1] = {"/device:CPU:0"};
  (void)user, (void)strategy;
  if (strcmp(place->name, "bias") == 0) {
    place->devices = cpu;
    place->num_devices = 1;
  }
  return NULL;
}

static dtg_error *begin_replica(void *user, dtg_strategy *strategy, int32_t replica) {
  (void)strategy, (void)replica;
  return dtg_graph_push_name_scope(((program *)user)->graph, "mine", DTG_STRLEN);
}

static dtg_error *end_replica(void *user, dtg_strategy *strategy, int32_t replica) {
  (void)strategy, (void)replica;
  return dtg_graph_pop_name_scope(((program *)user)->graph);
}

static dtg_error *reduce_to(void *user, dtg_strategy *strategy, dtg_reduction op, const dtg_value *parts, size_t num_parts, dtg_value *out) {
  program *p = (program *)user;
  dtg_error *err = NULL;
  dtg_value divisor;
  size_t i;
  (void)strategy;
  p->reduced++;
  *out = parts[num_parts - 1];
  for (i = num_parts - 1; i-- > 0;) TRY(dtg_add2(p->graph, "AddV2", *out, parts[i], out));
  if (op == DTG_REDUCE_MEAN) {
    TRY(dtg_const_f32(p->graph, (float)num_parts, &divisor));
    TRY(dtg_add2(p->graph, "RealDiv", *out, divisor, out));
  }
done:
  return err;
}

/* One replica: y = dense(x), which shall become the mean of x's columns. Its loss is the sum over its rows, by the rows of the whole batch. */
static dtg_error *build(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *in, size_t num_in, dtg_value *out, size_t num_out) {
  program *p = (program *)user;
  dtg_error *err = NULL;
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_variable kernel = DTG_VARIABLE_INIT;
  dtg_value y, square, axes, rows;
  dtg_tensor *both = NULL;
  const int64_t two[1] = {2};
  (void)strategy, (void)num_in, (void)num_out;
  layer.units = 1;
  TRY(dtg_nn_dense(p->model, in[0], &layer, &y));
  TRY(dtg_model_find_variable(p->model, "mine/dense/kernel", DTG_STRLEN, &kernel));
  p->kernels[replica] = kernel.read;
  TRY(dtg_add2(p->graph, "SquaredDifference", y, in[1], &square));
  TRY(dtg_tensor_allocate(DTG_I32, two, 1, &both));
  ((int32_t *)dtg_tensor_mutable_data(both))[0] = 0;
  ((int32_t *)dtg_tensor_mutable_data(both))[1] = 1;
  TRY(dtg_const(p->graph, both, &axes));
  TRY(dtg_add2(p->graph, "Sum", square, axes, &square));
  TRY(dtg_const_f32(p->graph, (float)kRows, &rows));
  TRY(dtg_add2(p->graph, "RealDiv", square, rows, &out[0]));
done:
  dtg_tensor_release(both);
  return err;
}

static dtg_error *fill(dtg_tensor **x, dtg_tensor **y) {
  const int64_t in[2] = {kRows, kIn}, out[2] = {kRows, 1};
  dtg_error *err = NULL;
  TRY(dtg_tensor_allocate(DTG_F32, in, 2, x));
  TRY(dtg_tensor_allocate(DTG_F32, out, 2, y));
  for (int row = 0; row < kRows; row++) {
    float sum = 0;
    for (int i = 0; i < kIn; i++) {
      const float value = (float)((row * 5 + i * 3) % 7) / 7.0f - 0.4f;
      ((float *)dtg_tensor_mutable_data(*x))[row * kIn + i] = value;
      sum += value;
    }
    ((float *)dtg_tensor_mutable_data(*y))[row] = sum / (float)kIn;
  }
done:
  return err;
}

/* 0 where all replicas read the same kernel. */
static dtg_error *compare(dtg_session *session, const program *p, int *differ) {
  dtg_tensor *fetched[kReplicas] = {NULL};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_error *err = NULL;
  size_t size = 0;
  args.fetches = p->kernels;
  args.fetched = fetched;
  args.num_fetches = kReplicas;
  TRY(dtg_session_run(session, &args));
  for (int r = 1; r < kReplicas; r++) *differ |= memcmp(dtg_tensor_data(fetched[0], &size), dtg_tensor_data(fetched[r], &size), size) != 0;
done:
  for (int r = 0; r < kReplicas; r++) dtg_tensor_release(fetched[r]);
  return err;
}

int main(void) {
  static const char *const devices[kReplicas] = {"/device:EMU:0", "/device:EMU:1", "/device:EMU:2"};
  const int64_t in_dims[2] = {-1, kIn}, out_dims[2] = {-1, 1};
  program p = {NULL, NULL, {{0}}, 0};
  dtg_strategy_hooks hooks = DTG_STRATEGY_HOOKS_INIT;
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  dtg_session_options local = DTG_SESSION_OPTIONS_INIT;
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_strategy *strategy = NULL;
  dtg_session *session = NULL;
  dtg_tensor *batch[2] = {NULL, NULL};
  dtg_per_replica shares[2], loss;
  dtg_value feeds[2], total, init;
  float first = 0, last = 0;
  int differ = 0;
  dtg_error *err = NULL;
  hooks.create_variable = create_variable;
  hooks.begin_replica = begin_replica;
  hooks.end_replica = end_replica;
  hooks.reduce_to = reduce_to;
  options.kind = DTG_STRATEGY_CUSTOM;
  options.devices = devices;
  options.num_devices = kReplicas;
  options.hooks = &hooks;
  options.user = &p;
  local.emu_devices = kReplicas;
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.rate = 0.1;
  momentum.momentum = 0.9;
  TRY(dtg_graph_create(NULL, &p.graph));
  TRY(dtg_model_create(p.graph, 1, &p.model));
  TRY(dtg_placeholder(p.graph, "x", DTG_F32, in_dims, 2, &feeds[0]));
  TRY(dtg_placeholder(p.graph, "y", DTG_F32, out_dims, 2, &feeds[1]));
  TRY(dtg_strategy_create(p.model, &options, &strategy));
  TRY(dtg_strategy_enter(strategy));
  for (int i = 0; i < 2; i++) TRY(dtg_strategy_split(strategy, feeds[i], &shares[i]));
  TRY(dtg_strategy_run(strategy, build, &p, shares, 2, &loss, 1));
  TRY(dtg_strategy_minimize(strategy, loss, DTG_REDUCE_SUM, &momentum, &training));
  TRY(dtg_strategy_reduce(strategy, DTG_REDUCE_SUM, loss, DTG_NO_AXIS, &total));
  TRY(dtg_strategy_exit(strategy));
  TRY(dtg_model_init(p.model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, p.graph, &local, &session));
  TRY(dtg_run_target(session, init));
  TRY(fill(&batch[0], &batch[1]));
  for (int step = 0; step < kSteps; step++) TRY(dtg_step_f32(session, feeds, batch, 2, total, training.train, step == 0 ? &first : &last));
  TRY(compare(session, &p, &differ));
  printf("loss %g, then %g; %d reductions were ours; the kernels %s\n", first, last, p.reduced, differ ? "differ" : "are equal");
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  differ |= err != NULL || !(last < first / 10) || p.reduced != 3; /* kernel, bias, and the loss that is shown */
  dtg_error_release(err);
  for (int i = 0; i < 2; i++) dtg_tensor_release(batch[i]);
  dtg_session_release(session);
  dtg_strategy_release(strategy);
  dtg_model_release(p.model);
  dtg_graph_release(p.graph);
  return differ;
}
