/* Memory that runs out in clusters: servers and sessions that meet on unix sockets in one process, coordinators and groups. It fails once,
 * and for the thread of the scene: the loop of the network, and releases of servers while memory goes on lacking, do not hold yet; nor do
 * groups and training by all-reduce, whose members may wait for who could not make a call, so these are played with all the memory there
 * is. A task that lacks memory is one that cannot be reached for the others, so errors are those of a lost peer too. See oom.h. */
#define _GNU_SOURCE
#include <pthread.h>

#include "oom.h"

#if OWN_ALLOCATOR
#define SECONDS(n) ((n)*INT64_C(1000000000))

/* ---- the second member of a group, on a thread that is there before memory fails ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static dtg_error *(*task)(int rank);
static dtg_error *answer;
static pthread_t other_thread;
static int is_running;

static void *serve_tasks(void *unused) {
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (!task) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    dtg_error *const error = task(1);
    pthread_mutex_lock(&mutex);
    answer = error;
    task = NULL;
    pthread_cond_broadcast(&changed);
  }
  return unused;
}

/* Both members' part at once: the error of one that failed, which is judged as one. */
static dtg_error *both(dtg_error *(*part)(int rank)) {
  if (!is_running) is_running = pthread_create(&other_thread, NULL, serve_tasks, NULL) == 0;
  pthread_mutex_lock(&mutex);
  task = part;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  dtg_error *const own = part(0);
  pthread_mutex_lock(&mutex);
  while (task) pthread_cond_wait(&changed, &mutex);
  dtg_error *const others = answer;
  pthread_mutex_unlock(&mutex);
  if (own && dtg_error_code(others) != DTG_RESOURCE_EXHAUSTED) {
    dtg_error_release(others);
    return own;
  }
  dtg_error_release(own);
  return others;
}

/* ---- servers ---- */

static int new_cluster(const char *format) {
  static int number;
  char path[96], spec[512];
  snprintf(path, sizeof path, "%s/%d", folder, number++);
  if (mkdir(path, 0700) != 0) return 0;
  snprintf(spec, sizeof spec, format, path, path, path);
  TRY(dtg_cluster_parse(spec, DTG_STRLEN, &h.cluster));
  return 1;
}

static int new_server(int k, const char *job, int32_t number) {
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = job;
  options.task = number;
  options.heartbeat_ns = SECONDS(1);
  TRY(dtg_server_start(runtime, h.cluster, &options, &h.server[k]));
  return 1;
}

/* A task that keeps its variables on the disk, and one that goes on with them. */
static int servers(void) {
  static int number;
  char state[96];
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  PART(new_cluster("ps=unix:%s/p"));
  snprintf(state, sizeof state, "%s/state-%d", folder, number++);
  options.state_dir = state;
  for (int life = 0; life < 2; life++) {
    TRY(dtg_server_start(runtime, h.cluster, &options, &h.server[0]));
    HOLDS(dtg_server_target(h.server[0]) != NULL);
    TRY(dtg_server_status(h.server[0], &h.string[0]));
    dtg_string_release(h.string[0]);
    h.string[0] = NULL;
    dtg_server_release(dtg_server_retain(h.server[0]));
    TRY(dtg_server_stop(h.server[0], SECONDS(5)));
    TRY(dtg_server_join(h.server[0], SECONDS(5)));
    dtg_server_release(h.server[0]);
    h.server[0] = NULL;
  }
  return 1;
}

/* ---- sessions ---- */

/* A variable on the ps that a worker trains; everything that a session can ask of its cluster; the end of the job. */
static int job(void) {
  const int64_t dims[] = {3};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_value loss;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_outcome outcome = 0;
  uint64_t write = 0;
  float value = 0;
  PART(new_cluster("ps=unix:%s/p;worker=unix:%s/w"));
  PART(new_server(0, "ps", 0));
  PART(new_server(1, "worker", 0));
  PART(new_graph(0));
  TRY(dtg_graph_push_device(h.graph[0], "/job:ps", DTG_STRLEN));
  spec.name = "w";
  spec.dims = dims;
  spec.rank = 1;
  spec.initializer.kind = DTG_INIT_ONES;
  TRY(dtg_model_add_variable(h.model[0], &spec, &w));
  TRY(dtg_graph_pop_device(h.graph[0]));
  TRY(dtg_add1(h.graph[0], "L2Loss", w.read, &loss));
  TRY(dtg_nn_minimize(h.model[0], loss, NULL, &training));
  PART(begin_session(0, dtg_server_target(h.server[1])));
  TRY(dtg_run_f32(h.session[0], loss, training.train, &value));
  args.targets = &training.train;
  args.num_targets = 1;
  args.write = &write;
  TRY((write = 0, dtg_session_run(h.session[0], &args)));
  TRY(dtg_session_outcome(h.session[0], write, 0, &outcome));
  TRY(dtg_session_barrier(h.session[0], "all", DTG_STRLEN, SECONDS(5)));
  TRY(dtg_session_cluster_status(h.session[0], SECONDS(5), &h.string[0]));
  TRY(dtg_cluster_status(runtime, dtg_server_target(h.server[0]), DTG_STRLEN, NULL, &h.string[1]));
  TRY(dtg_session_end_job(h.session[0], SECONDS(5)));
  TRY(dtg_server_join(h.server[0], SECONDS(5)));
  return 1;
}

static int sudden_end(void) {
  PART(new_cluster("ps=unix:%s/p;worker=unix:%s/w"));
  PART(new_server(0, "ps", 0));
  PART(new_server(1, "worker", 0));
  TRY(dtg_graph_create(runtime, &h.graph[0]));
  TRY(dtg_session_connect(runtime, dtg_server_target(h.server[1]), DTG_STRLEN, h.graph[0], NULL, &h.session[0]));
  TRY(dtg_session_end_job_now(h.session[0], SECONDS(5)));
  TRY(dtg_server_join(h.server[0], SECONDS(5)));
  return 1;
}

/* ---- coordinators ---- */

static int coordinators(void) {
  dtg_value x, y, worker;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  int32_t done = 0;
  PART(new_cluster("ps=unix:%s/p;worker=unix:%s/w,unix:%s/v"));
  PART(new_server(0, "ps", 0));
  PART(new_server(1, "worker", 0));
  PART(new_server(2, "worker", 1));
  TRY(dtg_graph_create(runtime, &h.graph[0]));
  TRY(dtg_placeholder(h.graph[0], "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_placeholder(h.graph[0], "worker", DTG_I64, NULL, 0, &worker));
  TRY(dtg_add2(h.graph[0], "Mul", x, x, &y));
  options.default_timeout_ns = SECONDS(20);
  TRY(dtg_session_connect(runtime, dtg_server_target(h.server[0]), DTG_STRLEN, h.graph[0], &options, &h.session[0]));
  TRY(dtg_coordinator_create(h.session[0], NULL, &h.coordinator));
  args.feeds = &x;
  args.num_feeds = 1;
  args.fetches = &y;
  args.num_fetches = 1;
  TRY(dtg_coordinator_prepare(h.coordinator, &args, worker, &h.closure));
  PART(new_tensor(0, DTG_F32, NULL, 0));
  const dtg_tensor *const feeds[] = {h.tensor[0]};
  TRY(dtg_coordinator_create_per_worker(h.coordinator, h.closure, feeds, 1));
  for (int i = 0; i < 4; i++) {
    dtg_remote_value_release(h.remote);
    h.remote = NULL;
    TRY(dtg_coordinator_schedule(h.coordinator, h.closure, feeds, 1, NULL, &h.remote));
  }
  TRY(dtg_coordinator_join(h.coordinator, SECONDS(20), NULL));
  TRY(dtg_coordinator_done(h.coordinator, &done));
  TRY(dtg_coordinator_status(h.coordinator, &h.string[0]));
  TRY(dtg_remote_value_fetch(h.remote, &h.tensor[1], 1, SECONDS(20), NULL));
  TRY(dtg_coordinator_cancel(h.coordinator));
  HOLDS(done == 1);
  dtg_coordinator_release(dtg_coordinator_retain(h.coordinator));
  dtg_closure_release(dtg_closure_retain(h.closure));
  dtg_remote_value_release(dtg_remote_value_retain(h.remote));
  return 1;
}

/* ---- groups ---- */

/* In the group: the first time by joining it, then by agreeing on a next epoch. */
static dtg_error *meet(int rank) {
  dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
  options.join_timeout_ns = SECONDS(2);
  options.default_timeout_ns = SECONDS(1);
  return h.group[rank] ? dtg_group_reform(h.group[rank], 0, SECONDS(10)) : dtg_group_join(h.server[rank], &options, &h.group[rank]);
}

static dtg_error *start_and_take(int rank) {
  dtg_completion done = {0, NULL};
  dtg_cq *cq = NULL;
  dtg_collective *collective = NULL;
  dtg_tensor *result = NULL;
  size_t count = 0;
  dtg_error *error = dtg_cq_create(&cq);
  if (!error) error = dtg_group_start(h.group[rank], DTG_ALL_REDUCE, h.tensor[rank], NULL, NULL, cq, 1, &collective);
  while (!error && count == 0) error = dtg_cq_next(cq, &done, 0, 1, DTG_INFINITE, &count);
  if (!error) error = done.error;
  if (!error) error = dtg_collective_take_result(collective, &result);
  dtg_collective_cancel(collective);
  dtg_collective_release(dtg_collective_retain(collective));
  dtg_collective_release(collective);
  dtg_tensor_release(result);
  dtg_cq_release(cq);
  return error;
}

static dtg_error *collect(int rank) {
  dtg_group *const group = h.group[rank];
  dtg_tensor *const in = h.tensor[rank];
  typedef dtg_error *(*collective)(dtg_group *, const dtg_tensor *, const dtg_collective_args *, dtg_tensor **);
  static const collective calls_of[] = {dtg_group_all_reduce, dtg_group_all_gather, dtg_group_reduce_scatter, dtg_group_broadcast,
                                        dtg_group_all_to_all};
  dtg_error *error = NULL;
  for (size_t i = 0; !error && i < COUNT(calls_of); i++) {
    dtg_tensor *out = NULL;
    error = calls_of[i](group, calls_of[i] == dtg_group_broadcast && rank == 1 ? NULL : in, NULL, &out);
    dtg_tensor_release(out);
  }
  if (!error) error = dtg_group_barrier(group, SECONDS(4));
  return error ? error : start_and_take(rank);
}

/* After a failure both agree on a next epoch, and all of it is made again. */
static int groups(void) {
  const int64_t dims[] = {4, 2};
  PART(new_cluster("worker=unix:%s/w,unix:%s/v"));
  PART(new_server(0, "worker", 0));
  PART(new_server(1, "worker", 1));
  PART(new_tensor(0, DTG_F32, dims, 2));
  PART(new_tensor(1, DTG_F32, dims, 2));
  int next = 0;
  for (int tries = 0; next == 0;) {
    dtg_error *error = both(meet);
    if (!error) error = both(collect);
    next = judge(error, 1, &tries, "the collectives", __LINE__);
    if (next == 0 && way == LASTING) {
      fail_no_more();
      is_back = 1;
      tries = 2;
    }
  }
  if (next < 0) return 0;
  HOLDS(dtg_group_rank(h.group[1]) == 1 && dtg_group_size(h.group[0]) == 2 && dtg_group_epoch(h.group[0]) > 0);
  HOLDS(dtg_group_member(h.group[0], 1) != NULL);
  dtg_group_release(dtg_group_retain(h.group[0]));
  TRY(dtg_group_leave(h.group[0]));
  return 1;
}

static dtg_error *build(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs, dtg_value *results,
                        size_t num_results) {
  (void)strategy, (void)replica, (void)inputs, (void)num_inputs, (void)num_results;
  return dtg_add1(h.graph[0], "L2Loss", *(const dtg_value *)user, results);
}

/* Training by all-reduce, by hand and by a strategy, in a group of one. */
static int all_reduce(void) {
  const int64_t dims[] = {3};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable w = DTG_VARIABLE_INIT;
  dtg_all_reduce how = DTG_ALL_REDUCE_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_strategy_options options = DTG_STRATEGY_OPTIONS_INIT;
  dtg_per_replica losses;
  dtg_value loss, init;
  float value = 0;
  PART(new_cluster("worker=unix:%s/w"));
  PART(new_server(0, "worker", 0));
  TRY(dtg_group_join(h.server[0], NULL, &h.group[0]));
  PART(new_graph(0));
  spec.name = "w";
  spec.dims = dims;
  spec.rank = 1;
  spec.initializer.kind = DTG_INIT_ONES;
  TRY(dtg_model_add_variable(h.model[0], &spec, &w));
  TRY(dtg_add1(h.graph[0], "L2Loss", w.read, &loss));
  how.group_size = 1;
  TRY(dtg_nn_minimize_all_reduce(h.model[0], loss, NULL, &how, &training));
  PART(begin_session(0, dtg_server_target(h.server[0])));
  TRY(dtg_run_f32(h.session[0], loss, training.train, &value));
  TRY(dtg_model_create(h.graph[0], 7, &h.model[1]));
  options.kind = DTG_STRATEGY_MULTI_WORKER_MIRRORED;
  options.group = h.group[0];
  TRY(dtg_strategy_create(h.model[1], &options, &h.strategy));
  TRY(dtg_strategy_enter(h.strategy));
  spec.name = "v";
  TRY(dtg_model_add_variable(h.model[1], &spec, &w));
  TRY(dtg_strategy_run(h.strategy, build, &w.read, NULL, 0, &losses, 1));
  TRY(dtg_strategy_minimize(h.strategy, losses, DTG_REDUCE_MEAN, NULL, &training));
  TRY(dtg_strategy_exit(h.strategy));
  TRY(dtg_model_init(h.model[1], &init));
  TRY(dtg_run_target(h.session[0], init));
  TRY(dtg_run_target(h.session[0], training.train));
  return 1;
}

#define PEERS (AS(DTG_UNAVAILABLE) | AS(DTG_DEADLINE_EXCEEDED) | AS(DTG_ABORTED) | AS(DTG_CANCELLED))
static const struct scene scenes[] = {
    {"servers", servers, PEERS, 1},           {"job", job, PEERS, 1},       {"sudden end", sudden_end, PEERS, 1},
    {"coordinators", coordinators, PEERS, 1}, {"groups", groups, PEERS, 2}, {"all reduce", all_reduce, PEERS, 2},
};
#endif

STAGE("cluster", scenes)
