/* ours_group.c: our side of the comparison of collectives (collectives.py): one rank. It sees only the public headers.
 *
 *   bench_ours_group CLUSTER SECURITY RANK      a member of the group of all workers of CLUSTER; answers as in ranks.h
 *
 * Workloads: "reduce:BYTES", a sum of float32 in place; "mlp:BATCH", a step of the network of the other benchmarks, with so many
 * rows here. One compute thread. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { PIXELS = 784, HIDDEN = 512, CLASSES = 10 };
static const int64_t SECOND = 1000000000;

static struct {
  dtg_runtime *runtime;
  dtg_server *server;
  dtg_group *group;
  dtg_security security;
} here;

static void must(dtg_error *error, const char *what) {
  if (!error) return;
  fprintf(stderr, "bench_ours_group: %s: %s\n", what, dtg_error_message(error, NULL));
  exit(1);
}

struct workload {
  dtg_tensor *values;  /* what is reduced */
  dtg_callable *train; /* or what is run */
  dtg_tensor *feeds[2], *loss;
};

static dtg_error *arrive(const char *cluster_text, const char *security, int rank) {
  dtg_runtime_options place = DTG_RUNTIME_OPTIONS_INIT;
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  dtg_cluster *cluster = NULL;
  place.compute_threads = 1;
  TRY(dtg_runtime_create(&place, &here.runtime));
  TRY(dtg_cluster_parse(cluster_text, DTG_STRLEN, &cluster));
  options.job = "worker";
  options.task = rank;
  options.security = here.security = !strcmp(security, "clear") ? DTG_SECURITY_CLEAR_FRAMES : DTG_SECURITY_TLS;
  TRY(dtg_server_start(here.runtime, cluster, &options, &here.server));
  dtg_cluster_release(cluster);
  return dtg_group_join(here.server, NULL, &here.group);
}

static dtg_error *filled(dtg_dtype dtype, const int64_t *dims, size_t rank, dtg_tensor **out) {
  size_t bytes = 0;
  TRY(dtg_tensor_allocate(dtype, dims, rank, out));
  void *const at = dtg_tensor_mutable_data(*out);
  dtg_tensor_data(*out, &bytes);
  for (size_t i = 0; dtype == DTG_F32 && i < bytes / sizeof(float); i++) ((float *)at)[i] = 0.5f;
  for (size_t i = 0; dtype == DTG_I64 && i < bytes / sizeof(int64_t); i++) ((int64_t *)at)[i] = (int64_t)(i * 7 % CLASSES);
  return NULL;
}

/* A sum of what everybody has must be as many times that; after it the values are nothing, so that they stay so. */
static dtg_error *make_reduction(struct workload *w, size_t bytes) {
  const int64_t dims[1] = {(int64_t)(bytes / sizeof(float))};
  TRY(filled(DTG_F32, dims, 1, &w->values));
  TRY(dtg_group_all_reduce(here.group, w->values, NULL, &w->values));
  float *const at = dtg_tensor_mutable_data(w->values);
  for (int64_t i = 0; i < dims[0]; i++) {
    if (at[i] != 0.5f * (float)dtg_group_size(here.group)) {
      fprintf(stderr, "bench_ours_group: element %lld of a sum is %g\n", (long long)i, (double)at[i]);
      exit(1);
    }
    at[i] = 0;
  }
  return NULL;
}

static dtg_error *build(dtg_model *model, dtg_graph *graph, int64_t batch, dtg_value feeds[2], dtg_value *loss) {
  const int64_t dims[2] = {batch, PIXELS};
  dtg_value x;
  TRY(dtg_placeholder(graph, NULL, DTG_F32, dims, 2, &feeds[0]));
  TRY(dtg_placeholder(graph, NULL, DTG_I64, dims, 1, &feeds[1]));
  x = feeds[0];
  for (int i = 0; i < 3; i++) {
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = i < 2 ? HIDDEN : CLASSES;
    layer.activation = i < 2 ? DTG_ACT_RELU : DTG_ACT_NONE;
    TRY(dtg_nn_dense(model, x, &layer, &x));
  }
  return dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], x, loss);
}

static dtg_error *make_training(struct workload *w, int64_t batch) {
  const int64_t dims[2] = {batch, PIXELS};
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_all_reduce how = DTG_ALL_REDUCE_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_session *session = NULL;
  dtg_value feeds[2], loss, init;
  TRY(dtg_graph_create(here.runtime, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(build(model, graph, batch, feeds, &loss));
  optimizer.rate = 0.01;
  how.group_size = dtg_group_size(here.group);
  TRY(dtg_nn_minimize_all_reduce(model, loss, &optimizer, &how, &training));
  TRY(dtg_model_init(model, &init));
  options.security = here.security;
  TRY(dtg_session_connect(here.runtime, dtg_server_target(here.server), DTG_STRLEN, graph, &options, &session));
  TRY(dtg_run_target(session, init));
  TRY(filled(DTG_F32, dims, 2, &w->feeds[0]));
  TRY(filled(DTG_I64, dims, 1, &w->feeds[1]));
  TRY(filled(DTG_F32, NULL, 0, &w->loss));
  args.feeds = feeds;
  args.num_feeds = 2;
  args.fetches = &loss;
  args.num_fetches = 1;
  args.targets = &training.train;
  args.num_targets = 1;
  return dtg_session_prepare(session, &args, &w->train);
}

/* ---- what ranks.h calls ---- */

static void step(void *made) {
  struct workload *const w = made;
  const dtg_tensor *const feeds[2] = {w->feeds[0], w->feeds[1]};
  if (w->train) must(dtg_callable_run(w->train, feeds, 2, &w->loss, 1, 60 * SECOND), "a step");
  else must(dtg_group_all_reduce(here.group, w->values, NULL, &w->values), "a reduction");
}

static void *make(const char *name, size_t number) {
  struct workload *const w = calloc(1, sizeof *w);
  must(!strcmp(name, "mlp") ? make_training(w, (int64_t)number) : make_reduction(w, number), name);
  for (int i = 0; i < 3; i++) step(w);
  return w;
}

static void meet(void) { must(dtg_group_barrier(here.group, 0), "a barrier"); }

int main(int argc, char **argv) {
  const struct ranks ranks = {make, step, meet};
  if (argc != 4) return 2;
  must(arrive(argv[1], argv[2], atoi(argv[3])), "join");
  return ranks_serve(&ranks);
}
