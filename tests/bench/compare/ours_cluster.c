/* ours_cluster.c: our side of the benchmarks with several processes (cluster.py). It sees only the public headers.
 *
 *   bench_ours_cluster serve CLUSTER SECURITY THREADS           the first parameter server; stops at the end of its input
 *   bench_ours_cluster client CLUSTER SECURITY THREADS          answers requests, see turns.h
 *   bench_ours_cluster start CLUSTER SECURITY THREADS JOB TASK  waits for a line, starts the task; a worker makes one
 *                                                               synchronous step and prints "ready"
 * SECURITY is tls or clear. One thread here; those of the library are its own. */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "turns.h"

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { BATCH = 128, PIXELS = 784, HIDDEN = 512, CLASSES = 10, WORKERS = 2 };
static const int64_t SECOND = 1000000000;

static struct {
  const char *cluster_text;
  dtg_security security;
  int threads;
  dtg_cluster *cluster;
  dtg_runtime *runtime;
} here;

static void must(dtg_error *error, const char *what) {
  if (!error) return;
  fprintf(stderr, "bench_ours_cluster: %s: %s\n", what, dtg_error_message(error, NULL));
  exit(1);
}

/* ---- places ---- */

static dtg_error *arrive(void) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.compute_threads = here.threads;
  TRY(dtg_runtime_create(&options, &here.runtime));
  return dtg_cluster_parse(here.cluster_text, DTG_STRLEN, &here.cluster);
}

static dtg_error *start_server(const char *job, int task, dtg_server **out) {
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  const char *const filters[] = {"/job:ps"};
  options.job = job;
  options.task = task;
  options.security = here.security;
  if (!strcmp(job, "worker")) options.device_filters = filters, options.num_device_filters = 1;
  return dtg_server_start(here.runtime, here.cluster, &options, out);
}

static dtg_error *connect_to(const char *target, dtg_graph *graph, dtg_session **out) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.security = here.security;
  return dtg_session_connect(here.runtime, target, DTG_STRLEN, graph, &options, out);
}

/* ---- workloads ---- */

struct workload {
  dtg_session *session;
  dtg_callable *call;
  dtg_tensor *feeds[2], *result;
  size_t num_feeds, num_results;
};

static dtg_error *take_step(struct workload *w) {
  const dtg_tensor *feeds[2] = {w->feeds[0], w->feeds[1]};
  return dtg_callable_run(w->call, feeds, w->num_feeds, &w->result, w->num_results, 60 * SECOND);
}

static dtg_error *prepare(struct workload *w, const dtg_value *feeds, const dtg_value *fetch, const dtg_value *target) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds;
  args.num_feeds = w->num_feeds;
  args.fetches = fetch;
  args.num_fetches = w->num_results = fetch != NULL;
  args.targets = target;
  args.num_targets = target != NULL;
  return dtg_session_prepare(w->session, &args, &w->call);
}

static dtg_error *filled(const int64_t *dims, size_t rank, float value, dtg_tensor **out) {
  size_t bytes = 0;
  TRY(dtg_tensor_allocate(DTG_F32, dims, rank, out));
  float *at = dtg_tensor_mutable_data(*out);
  dtg_tensor_data(*out, &bytes);
  for (size_t i = 0; i < bytes / sizeof *at; i++) at[i] = value;
  return NULL;
}

/* A counter on the parameter server, one more with every step. */
static dtg_error *make_count(struct workload *w, dtg_graph *graph, dtg_model *model) {
  dtg_variable count = DTG_VARIABLE_INIT;
  dtg_value one, more;
  TRY(dtg_variable_f32(model, "count", 0, &count));
  TRY(dtg_const_f32(graph, 1, &one));
  TRY(dtg_add2(graph, "AssignAddVariableOp", count.handle, one, &more));
  TRY(connect_to(dtg_cluster_address(here.cluster, "ps", 0), graph, &w->session));
  TRY(dtg_run_target(w->session, count.assign));
  return prepare(w, NULL, NULL, &more);
}

/* 64 bytes there and 64 bytes back. */
static dtg_error *make_null(struct workload *w, dtg_graph *graph) {
  const int64_t dims[1] = {16};
  dtg_value in, one, out;
  TRY(dtg_placeholder(graph, "in", DTG_F32, dims, 1, &in));
  TRY(dtg_const_f32(graph, 1, &one));
  TRY(dtg_add2(graph, "AddV2", in, one, &out));
  TRY(connect_to(dtg_cluster_address(here.cluster, "ps", 0), graph, &w->session));
  w->num_feeds = 1;
  TRY(filled(dims, 1, 1, &w->feeds[0]));
  TRY(filled(dims, 1, 0, &w->result));
  return prepare(w, &in, &out, NULL);
}

/* What a pull brings must be what the push before it brought there. */
static dtg_error *check_move(struct workload *w, const dtg_variable *variable, dtg_value in, dtg_value assign) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  const dtg_tensor *feed = w->feeds[0];
  args.feeds = &in;
  args.feed_tensors = &feed;
  args.num_feeds = 1;
  args.targets = &assign;
  args.num_targets = 1;
  TRY(dtg_session_run(w->session, &args));
  args = (dtg_run_args)DTG_RUN_ARGS_INIT;
  args.fetches = &variable->read;
  args.fetched = &w->result;
  args.num_fetches = 1;
  TRY(dtg_session_run(w->session, &args));
  size_t bytes = 0;
  const void *sent = dtg_tensor_data(feed, &bytes);
  if (memcmp(sent, dtg_tensor_data(w->result, NULL), bytes) != 0) {
    fprintf(stderr, "bench_ours_cluster: a pull of %zu bytes did not bring what was pushed\n", bytes);
    exit(1);
  }
  return NULL;
}

/* One variable on the parameter server: its value is fetched into a tensor that is there, or a tensor is fed and assigned. */
static dtg_error *make_move(struct workload *w, dtg_graph *graph, dtg_model *model, const struct turns_workload *which) {
  const int64_t dims[1] = {(int64_t)(which->bytes / sizeof(float))};
  const int pull = !strcmp(which->name, "pull");
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable variable = DTG_VARIABLE_INIT;
  dtg_value in, inputs[2], assign;
  char name[64];
  snprintf(name, sizeof name, "%s%zu", which->name, which->bytes);
  spec.name = name;
  spec.dims = dims;
  spec.rank = 1;
  TRY(dtg_model_add_variable(model, &spec, &variable));
  TRY(dtg_placeholder(graph, "in", DTG_F32, dims, 1, &in));
  inputs[0] = variable.handle;
  inputs[1] = in;
  TRY(dtg_addn(graph, "AssignVariableOp", inputs, 2, &assign));
  TRY(connect_to(dtg_cluster_address(here.cluster, "ps", 0), graph, &w->session));
  TRY(dtg_run_target(w->session, variable.assign));
  TRY(filled(dims, 1, 0.5f, &w->feeds[0]));
  TRY(filled(dims, 1, 0, &w->result));
  TRY(check_move(w, &variable, in, assign));
  w->num_feeds = !pull;
  return pull ? prepare(w, NULL, &variable.read, NULL) : prepare(w, &in, NULL, &assign);
}

/* ---- training ---- */

struct network {
  dtg_graph *graph;
  dtg_model *model;
  dtg_value feeds[2], loss;
  dtg_replicated share;
};

static dtg_error *build_tower(struct network *n) {
  const int64_t dims[2] = {BATCH, PIXELS};
  dtg_value x;
  TRY(dtg_placeholder(n->graph, NULL, DTG_F32, dims, 2, &n->feeds[0]));
  TRY(dtg_placeholder(n->graph, NULL, DTG_I64, dims, 1, &n->feeds[1]));
  x = n->feeds[0];
  for (int i = 0; i < 3; i++) {
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = i < 2 ? HIDDEN : CLASSES;
    layer.activation = i < 2 ? DTG_ACT_RELU : DTG_ACT_NONE;
    TRY(dtg_nn_dense(n->model, x, &layer, &x));
  }
  return dtg_nn_sparse_softmax_cross_entropy(n->model, n->feeds[1], x, &n->loss);
}

/* Variables on the parameter server, everything else on this worker. */
static dtg_error *build_network(struct network *n, dtg_sync_mode mode, int worker, int total) {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_replication replication = DTG_REPLICATION_INIT;
  dtg_variable step = DTG_VARIABLE_INIT;
  char device[64];
  TRY(dtg_graph_create(here.runtime, &n->graph));
  TRY(dtg_model_create(n->graph, 1, &n->model));
  TRY(dtg_graph_push_device(n->graph, "/job:ps/task:0", DTG_STRLEN));
  TRY(build_tower(n));
  TRY(dtg_model_global_step(n->model, &step));
  TRY(dtg_graph_pop_device(n->graph));
  TRY(dtg_model_next_tower(n->model));
  snprintf(device, sizeof device, "/job:worker/task:%d", worker);
  TRY(dtg_graph_push_device(n->graph, device, DTG_STRLEN));
  TRY(build_tower(n));
  optimizer.rate = 0.01;
  replication.mode = mode;
  replication.worker = worker;
  replication.total = total;
  n->share = (dtg_replicated)DTG_REPLICATED_INIT;
  return dtg_nn_minimize_replicated(n->model, n->loss, &optimizer, &replication, &n->share);
}

static dtg_error *make_batch(struct workload *w) {
  const int64_t dims[2] = {BATCH, PIXELS};
  TRY(filled(dims, 2, 0.5f, &w->feeds[0]));
  TRY(dtg_tensor_allocate(DTG_I64, dims, 1, &w->feeds[1]));
  int64_t *labels = dtg_tensor_mutable_data(w->feeds[1]);
  for (int64_t i = 0; i < BATCH; i++) labels[i] = i * 7 % CLASSES;
  TRY(filled(NULL, 0, 0, &w->result));
  w->num_feeds = 2;
  return NULL;
}

/* This process becomes a worker; one step computes gradients here and applies them there. */
static dtg_error *make_training(struct workload *w, dtg_sync_mode mode, int worker, int total) {
  struct network n;
  dtg_server *server = NULL;
  dtg_value init;
  TRY(start_server("worker", worker, &server));
  TRY(build_network(&n, mode, worker, total));
  TRY(connect_to(dtg_server_target(server), n.graph, &w->session));
  if (worker == 0) {
    TRY(dtg_model_init(n.model, &init));
    TRY(dtg_run_target(w->session, init));
    if (n.share.chief_init.id) TRY(dtg_run_target(w->session, n.share.chief_init));
    if (n.share.update.id) TRY(dtg_session_run_repeatedly(w->session, &n.share.update, 1, NULL, 0, NULL));
  }
  TRY(dtg_model_wait_ready(n.model, w->session, 60 * SECOND));
  if (n.share.local_init.id) TRY(dtg_run_target(w->session, n.share.local_init));
  TRY(make_batch(w));
  return prepare(w, n.feeds, &n.loss, &n.share.train);
}

static dtg_error *make_workload(struct workload *w, const struct turns_workload *which) {
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  TRY(arrive());
  if (!strcmp(which->name, "mlp")) return make_training(w, DTG_SYNC_ASYNC, 0, 1);
  TRY(dtg_graph_create(here.runtime, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_graph_push_device(graph, "/job:ps/task:0", DTG_STRLEN));
  if (!strcmp(which->name, "count")) return make_count(w, graph, model);
  if (!strcmp(which->name, "null")) return make_null(w, graph);
  return make_move(w, graph, model, which);
}

/* ---- what turns.h calls ---- */

static void *make(const struct turns_workload *which) {
  struct workload *w = calloc(1, sizeof *w);
  must(make_workload(w, which), which->name);
  return w;
}

static void step(void *made) { must(take_step(made), "a step"); }

/* ---- the other modes ---- */

static dtg_error *serve(void) {
  dtg_server *server = NULL;
  char line[8];
  TRY(arrive());
  TRY(start_server("ps", 0, &server));
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
  }
  TRY(dtg_server_stop(server, SECOND));
  dtg_server_release(server);
  return NULL;
}

static dtg_error *start(const char *job, int task) {
  struct workload w = {NULL, NULL, {NULL, NULL}, NULL, 0, 0};
  dtg_server *server = NULL;
  char line[8];
  printf("loaded\n");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return NULL;
  TRY(arrive());
  if (!strcmp(job, "ps")) TRY(start_server(job, task, &server));
  else {
    TRY(make_training(&w, DTG_SYNC_STRICT, task, WORKERS));
    TRY(take_step(&w));
    printf("ready\n");
    fflush(stdout);
  }
  while (fgets(line, sizeof line, stdin)) {
  }
  _exit(0);
}

int main(int argc, char **argv) {
  const struct turns turns = {make, step};
  if (argc < 5) return 2;
  here.cluster_text = argv[2];
  here.security = !strcmp(argv[3], "clear") ? DTG_SECURITY_CLEAR_FRAMES : DTG_SECURITY_TLS;
  here.threads = atoi(argv[4]);
  if (!strcmp(argv[1], "client")) return turns_serve(&turns);
  if (!strcmp(argv[1], "serve")) must(serve(), "serve");
  else if (!strcmp(argv[1], "start") && argc == 7) must(start(argv[5], atoi(argv[6])), argv[5]);
  else return 2;
  return 0;
}
