/* Training by all-reduce in four processes that meet on unix sockets: each has variables of its own, a table whose gradients are rows
 * among them, and at the end all have the bits of four towers in one process. One of them
 * meets a loss that is no number, one is killed in the middle of its steps, one stands still: the steps of the others fail soon, with its
 * name, and after the first they go on when they have formed the group anew. */
#define _GNU_SOURCE
#include "guest.h"

#include <math.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { kMembers = 4, kSteps = 12, kBatch = 6, kRows = 10, kFile = 1 << 16 };
#define SECOND INT64_C(1000000000)

/* ---- the model ---- */

struct copy {
  dtg_value ids, labels, loss;
};

static void add_copy(dtg_graph *graph, dtg_model *model, struct copy *copy) {
  const int64_t batch[] = {kBatch}, two[] = {kBatch, 2};
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_dense hidden = DTG_DENSE_INIT, last = DTG_DENSE_INIT;
  dtg_value x;
  table.rows = kRows;
  table.width = 5;
  hidden.units = 7;
  hidden.activation = DTG_ACT_TANH;
  last.units = 2;
  ok(dtg_placeholder(graph, NULL, DTG_I32, batch, 1, &copy->ids), "ids");
  ok(dtg_placeholder(graph, NULL, DTG_F32, two, 2, &copy->labels), "labels");
  ok(dtg_nn_embedding(model, copy->ids, &table, &x), "a table");
  ok(dtg_nn_dense(model, x, &hidden, &x), "a layer");
  ok(dtg_nn_dense(model, x, &last, &x), "a layer");
  ok(dtg_nn_mean_squared_error(model, copy->labels, x, &copy->loss), "the loss");
}

/* What member `rank` is given in a step; `bad`: a label that is no number. */
static void batch_of(int step, int rank, int bad, dtg_tensor *out[2]) {
  int32_t ids[kBatch];
  float labels[kBatch * 2];
  const int64_t dims[] = {kBatch, 2};
  for (int i = 0; i < kBatch; i++) ids[i] = (step * 3 + rank * 5 + i * i) % kRows;
  for (int i = 0; i < kBatch * 2; i++) labels[i] = (float)((step + 1) * (rank + 2) * (i + 3) % 17) * 0.0625f - 0.4f;
  if (bad) labels[3] = NAN;
  ok(dtg_tensor_create(DTG_I32, dims, 1, ids, sizeof ids, NULL, NULL, &out[0]), "ids");
  ok(dtg_tensor_create(DTG_F32, dims, 2, labels, sizeof labels, NULL, NULL, &out[1]), "labels");
}

static dtg_optimizer momentum(void) {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.rate = 0.1;
  optimizer.momentum = 0.5;
  optimizer.clip_norm = 0.3;
  return optimizer;
}

static dtg_error *run(dtg_session *session, dtg_value target, const dtg_value *feeds, dtg_tensor **fed, size_t count) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds;
  args.feed_tensors = (const dtg_tensor *const *)fed;
  args.num_feeds = count;
  args.targets = &target;
  args.num_targets = 1;
  args.timeout_ns = 60 * SECOND;
  return dtg_session_run(session, &args);
}

/* The bytes of all variables, one after the other. */
static size_t values_of(dtg_session *session, dtg_model *model, char *into) {
  size_t at = 0;
  for (size_t i = 0; i < dtg_model_variable_count(model); i++) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    dtg_tensor *value = NULL;
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    size_t bytes = 0;
    ok(dtg_model_variable(model, i, &variable), "a variable");
    args.fetches = &variable.read;
    args.fetched = &value;
    args.num_fetches = 1;
    ok(dtg_session_run(session, &args), "a value");
    const void *data = dtg_tensor_data(value, &bytes);
    if (data && at + bytes <= kFile) memcpy(into + at, data, bytes);
    at += bytes;
    dtg_tensor_release(value);
  }
  return at;
}

static size_t by_towers(char *into) {
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_session *session = NULL;
  struct copy copies[kMembers];
  dtg_value losses[kMembers], init, feeds[2 * kMembers];
  dtg_variable step = DTG_VARIABLE_INIT;
  const dtg_optimizer optimizer = momentum();
  dtg_training training = DTG_TRAINING_INIT;
  ok(dtg_graph_create(NULL, &graph), "a graph");
  ok(dtg_model_create(graph, 3, &model), "a model");
  for (int i = 0; i < kMembers; i++) {
    if (i > 0) ok(dtg_model_next_tower(model), "a tower");
    add_copy(graph, model, &copies[i]);
    losses[i] = copies[i].loss;
    feeds[2 * i] = copies[i].ids;
    feeds[2 * i + 1] = copies[i].labels;
  }
  ok(dtg_model_global_step(model, &step), "the step");
  ok(dtg_nn_minimize_towers(model, losses, kMembers, &optimizer, &training), "towers");
  ok(dtg_model_init(model, &init), "init");
  ok(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, NULL, &session), "a session");
  ok(dtg_run_target(session, init), "init");
  for (int i = 0; i < kSteps; i++) {
    dtg_tensor *fed[2 * kMembers];
    for (int m = 0; m < kMembers; m++) batch_of(i, m, 0, fed + 2 * m);
    ok(run(session, training.train, feeds, fed, 2 * kMembers), "a step of towers");
    for (int m = 0; m < 2 * kMembers; m++) dtg_tensor_release(fed[m]);
  }
  const size_t bytes = values_of(session, model, into);
  dtg_session_release(session);
  dtg_model_release(model);
  dtg_graph_release(graph);
  return bytes;
}

/* ---- a member ---- */

struct member {
  int rank;
  dtg_runtime *runtime;
  dtg_cluster *cluster;
  dtg_server *server;
  dtg_group *group;
  dtg_graph *graph;
  dtg_model *model;
  dtg_session *session;
  dtg_training training;
  struct copy copy;
};

static void open_member(struct member *m, const char *folder, int rank) {
  char spec[512] = "worker=";
  dtg_runtime_options runtime = DTG_RUNTIME_OPTIONS_INIT;
  dtg_server_options which = DTG_SERVER_OPTIONS_INIT;
  dtg_group_options joins = DTG_GROUP_OPTIONS_INIT;
  dtg_all_reduce how = DTG_ALL_REDUCE_INIT;
  const dtg_optimizer optimizer = momentum();
  dtg_variable step = DTG_VARIABLE_INIT;
  dtg_value init;
  for (int i = 0; i < kMembers; i++) snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "%sunix:%s/w%d", i ? "," : "", folder, i);
  m->rank = rank;
  runtime.compute_threads = 1;
  which.job = "worker";
  which.task = rank;
  joins.key = 5;
  ok(dtg_runtime_create(&runtime, &m->runtime), "a runtime");
  ok(dtg_cluster_parse(spec, DTG_STRLEN, &m->cluster), "a cluster");
  ok(dtg_server_start(m->runtime, m->cluster, &which, &m->server), "a server");
  ok(dtg_group_join(m->server, &joins, &m->group), "a group");
  ok(dtg_graph_create(m->runtime, &m->graph), "a graph");
  ok(dtg_graph_push_device(m->graph, dtg_group_member(m->group, rank), DTG_STRLEN), "a device");
  ok(dtg_model_create(m->graph, 3, &m->model), "a model");
  add_copy(m->graph, m->model, &m->copy);
  ok(dtg_model_global_step(m->model, &step), "the step");
  how.group_key = 5;
  how.group_size = kMembers;
  how.pack_bytes = 200; /* some together, some alone */
  m->training = (dtg_training)DTG_TRAINING_INIT;
  ok(dtg_nn_minimize_all_reduce(m->model, m->copy.loss, &optimizer, &how, &m->training), "a share");
  ok(dtg_model_init(m->model, &init), "init");
  ok(dtg_session_connect(m->runtime, dtg_server_target(m->server), DTG_STRLEN, m->graph, NULL, &m->session), "a session");
  ok(dtg_run_target(m->session, init), "init");
}

static dtg_error *train(struct member *m, int step, int bad) {
  const dtg_value feeds[] = {m->copy.ids, m->copy.labels};
  dtg_tensor *fed[2];
  batch_of(step, m->rank, bad, fed);
  dtg_error *error = run(m->session, m->training.train, feeds, fed, 2);
  dtg_tensor_release(fed[0]);
  dtg_tensor_release(fed[1]);
  return error;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* It failed with that code, and names the task. */
static void refused(dtg_error *error, dtg_code code, int task, const char *what) {
  char name[64];
  snprintf(name, sizeof name, "/job:worker/replica:0/task:%d", task);
  const int good = error && dtg_error_code(error) == code && strstr(dtg_error_message(error, NULL), name);
  if (!good) fprintf(stderr, "%s: %s\n", what, error ? dtg_error_message(error, NULL) : "no error");
  check(good, what);
  dtg_error_release(error);
}

/* Of steps that come after a loss that is no number on rank 2, which nobody applies. */
static void after_a_bad_loss(struct member *m) {
  dtg_error *error = train(m, 0, m->rank == 2);
  if (m->rank == 2) {
    check(error && dtg_error_code(error) == DTG_INVALID_ARGUMENT, "a loss that is no number");
    dtg_error_release(error);
  } else {
    refused(error, DTG_ABORTED, 2, "a step without a member's gradients");
  }
  ok(dtg_group_reform(m->group, 0, 0), "form the group anew");
}

static int is_loss(const char *mode) { return strcmp(mode, "kill") == 0 || strcmp(mode, "stop") == 0; }

static int member(const char *folder, int rank, const char *mode) {
  struct member m = {0};
  char path[256];
  static char bytes[kFile];
  open_member(&m, folder, rank);
  if (strcmp(mode, "bad") == 0) after_a_bad_loss(&m);
  if (is_loss(mode)) {
    /* Rank 1 goes, or stands still, in the middle; the others keep on until they hear of it. */
    for (int i = 0; rank == 1 && i < 20; i++) ok(train(&m, i, 0), "a step");
    if (rank == 1) raise(strcmp(mode, "kill") == 0 ? SIGKILL : SIGSTOP);
    dtg_error *error = NULL;
    double began = now();
    for (int i = 0; !error && i < 1000; i++, began = error ? began : now()) error = train(&m, i, 0);
    /* T_dead and a second are promised; a machine with too much to do is given some more, for who is never told hangs here. */
    check(now() - began < 5 + 10, "the loss of a member was told late");
    refused(error, DTG_UNAVAILABLE, 1, "a step without a member");
  } else {
    for (int i = 0; i < kSteps; i++) ok(train(&m, i, 0), "a step");
    snprintf(path, sizeof path, "%s/%s%d", folder, mode, rank);
    const size_t size = values_of(m.session, m.model, bytes);
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "write the values");
    ok(dtg_group_barrier(m.group, 60 * SECOND), "the end");
  }
  dtg_session_release(m.session);
  dtg_model_release(m.model);
  dtg_graph_release(m.graph);
  dtg_group_release(m.group);
  dtg_server_release(m.server);
  dtg_cluster_release(m.cluster);
  dtg_runtime_release(m.runtime);
  return failures != 0;
}

/* ---- all of them ---- */

static void all(const char *folder, const char *mode) {
  pid_t pids[kMembers];
  for (int i = 0; i < kMembers; i++) {
    char rank[8];
    snprintf(rank, sizeof rank, "%d", i);
    char *const arguments[] = {"all_reduce", (char *)folder, rank, (char *)mode, NULL};
    check(posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, arguments, environ) == 0, "start a process");
  }
  for (int k = 2; k < kMembers + 2; k++) {
    int status = 0;
    const int i = k % kMembers, killed = is_loss(mode) && i == 1; /* who stands still is the last, and is waited for by nobody */
    if (killed && strcmp(mode, "stop") == 0) kill(pids[i], SIGKILL);
    waitpid(pids[i], &status, 0);
    check(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0, mode);
  }
}

static void compare(const char *folder, const char *mode, const char *want, size_t size) {
  static char bytes[kFile];
  for (int i = 0; i < kMembers; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s%d", folder, mode, i);
    FILE *file = fopen(path, "rb");
    const size_t have = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    check(have == size && memcmp(bytes, want, size) == 0, "the bits of towers");
    unlink(path);
  }
}

int main(int count, char **words) {
  if (count == 4) return member(words[1], atoi(words[2]), words[3]);
  char folder[] = "/tmp/dtg-all-reduce-XXXXXX";
  static char towers[kFile];
  check(mkdtemp(folder) != NULL, "a folder");
  const size_t size = by_towers(towers);
  check(size > 0 && size < kFile, "values of towers");
  all(folder, "train");
  compare(folder, "train", towers, size);
  all(folder, "bad");
  compare(folder, "bad", towers, size);
  all(folder, "kill");
  all(folder, "stop");
  char path[128];
  for (int i = 0; i < kMembers; i++) {
    snprintf(path, sizeof path, "%s/w%d", folder, i);
    unlink(path);
    snprintf(path, sizeof path, "%s/w%d.lock", folder, i);
    unlink(path);
  }
  check(rmdir(folder) == 0, "the folder is empty");
  return failures != 0;
}
