/* Who is gone is told: the worker of a strict job dies, as a process. The log of another worker names it within a second or so, so does
 * what is said of the cluster under `attendance`, and the step that waits for it. A ps, two workers, three processes; this one is the
 * chief. Its log comes on a thread of the library. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

extern char **environ;
static const char lost[] = "/job:worker/replica:0/task:1";

/* ---- what the log says ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards warnings */
static char warnings[1 << 14];

static void keep(void *user, dtg_log_level level, const char *component, const char *message) {
  (void)user, (void)component;
  if (level < DTG_LOG_WARN) return;
  pthread_mutex_lock(&lock);
  const size_t used = strlen(warnings);
  snprintf(warnings + used, sizeof warnings - used, "%s\n", message);
  pthread_mutex_unlock(&lock);
}

static int warned_of(const char *what) {
  pthread_mutex_lock(&lock);
  const char *const line = strstr(warnings, what);
  const int found = line && strstr(line, "is gone");
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- one worker ---- */

struct worker {
  struct guest g;
  dtg_model *model;
  dtg_replicated share;
};

/* w, which the ps keeps, comes nearer to 1. */
static void build(struct worker *w, int32_t number) {
  const char *const here = number ? "/job:worker/task:1" : "/job:worker/task:0";
  dtg_variable weight = DTG_VARIABLE_INIT, step = DTG_VARIABLE_INIT;
  dtg_replication replication = DTG_REPLICATION_INIT;
  dtg_value one, loss;
  replication.mode = DTG_SYNC_STRICT;
  replication.worker = number;
  replication.total = 2;
  ok(dtg_graph_create(w->g.runtime, &w->g.graph), "make a graph");
  ok(dtg_model_create(w->g.graph, 1, &w->model), "make a model");
  ok(dtg_graph_push_device(w->g.graph, "/job:ps", DTG_STRLEN), "on the ps");
  ok(dtg_variable_f32(w->model, "w", 0, &weight), "a variable");
  ok(dtg_model_global_step(w->model, &step), "the step");
  ok(dtg_graph_pop_device(w->g.graph), "off the ps");
  ok(dtg_graph_push_device(w->g.graph, here, DTG_STRLEN), "here");
  ok(dtg_const_f32(w->g.graph, 1, &one), "one");
  ok(dtg_nn_mean_squared_error(w->model, one, weight.read, &loss), "a loss");
  ok(dtg_graph_pop_device(w->g.graph), "everywhere");
  ok(dtg_nn_minimize_replicated(w->model, loss, NULL, &replication, &w->share), "a share of the training");
}

/* It needs the ps alone, so that the chief may begin before the other worker is there. */
static void join(struct worker *w, int32_t number) {
  const char *const needed[] = {"/job:ps"};
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.device_filters = needed;
  options.num_device_filters = 1;
  options.job = "worker";
  options.task = number;
  ok(dtg_cluster_parse(w->g.spec, DTG_STRLEN, &w->g.cluster), "read the cluster");
  ok(dtg_server_start(w->g.runtime, w->g.cluster, &options, &w->g.worker), "start a server");
  build(w, number);
  ok(dtg_session_connect(w->g.runtime, dtg_server_target(w->g.worker), DTG_STRLEN, w->g.graph, NULL, &w->g.session), "connect");
}

static void begin(struct worker *w) {
  ok(dtg_model_wait_ready(w->model, w->g.session, INT64_C(30000000000)), "wait for the variables");
  ok(dtg_run_target(w->g.session, w->share.local_init), "begin");
}

/* ---- the other processes ---- */

/* Starts this program in another role and waits until it says that it is at work. */
static pid_t start(const char *role, const char *spec) {
  char *const arguments[] = {"attendance", (char *)role, (char *)spec, NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  int ends[2];
  char byte = 0;
  check(pipe(ends) == 0, "a pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0, "start a process");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  check(read(ends[0], &byte, 1) == 1, "the other process is at work");
  close(ends[0]);
  return pid;
}

static void at_work(void) { check(write(1, "r", 1) == 1, "say so"); }

static int ps_role(const char *spec) {
  struct guest g = {0};
  snprintf(g.spec, sizeof g.spec, "%s", spec);
  serve(&g, "ps", &g.ps);
  at_work();
  ok(dtg_server_join(g.ps, DTG_INFINITE), "join");
  return failures != 0;
}

/* It makes the first step with the chief, and stands there. */
static int worker_role(const char *spec) {
  struct worker w = {.share = DTG_REPLICATED_INIT};
  snprintf(w.g.spec, sizeof w.g.spec, "%s", spec);
  join(&w, 1);
  begin(&w);
  at_work();
  ok(dtg_run_target(w.g.session, w.share.train), "the first step");
  while (failures == 0) pause();
  return 1;
}

static void end_process(pid_t pid) {
  int status = 0;
  check(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "the other process is gone");
}

/* ---- what is told ---- */

/* Whether the text names the lost one as that, in what the ps says of its workers. */
static int names_it(const char *status) {
  const char *at = strstr(status, "\"attendance\":{");
  const char *const who = at ? strstr(at, lost) : NULL;
  const char *const end = who ? strchr(who, '}') : NULL;
  const char *const presence = who ? strstr(who, "\"presence\":\"lost\"") : NULL;
  const char *const reason = who ? strstr(who, "\"reason\":\"") : NULL;
  return presence && reason && presence < end && reason < end;
}

static void status_names_it(struct worker *w) {
  dtg_string *told = NULL;
  ok(dtg_session_cluster_status(w->g.session, INT64_C(10000000000), &told), "ask the cluster");
  check(told && names_it(dtg_string_data(told, NULL)), "the session's word on the cluster names the lost worker");
  dtg_string_release(told);
  told = NULL;
  ok(dtg_cluster_status(w->g.runtime, dtg_server_target(w->g.worker), DTG_STRLEN, NULL, &told), "ask from outside");
  check(told && names_it(dtg_string_data(told, NULL)), "and so does what is told from outside");
  if (failures) fprintf(stderr, "%s\n", told ? dtg_string_data(told, NULL) : "nothing was told");
  dtg_string_release(told);
}

static void log_names_it(void) {
  for (int i = 0; i < 5000 && !warned_of(lost); i++) poll(NULL, 0, 1);
  check(warned_of(lost), "the log names the lost worker");
  if (failures) fprintf(stderr, "the log: %s\n", warnings);
}

static void a_step_names_it(struct worker *w) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &w->share.train;
  args.num_targets = 1;
  args.timeout_ns = INT64_C(2000000000);
  dtg_error *const error = dtg_session_run(w->g.session, &args);
  check(dtg_error_code(error) == DTG_DEADLINE_EXCEEDED, "the step waits for the lost worker");
  check(error && strstr(dtg_error_message(error, NULL), lost) != NULL, "and names it");
  if (failures) fprintf(stderr, "%s\n", error ? dtg_error_message(error, NULL) : "no error");
  dtg_error_release(error);
}

static void chief(struct worker *w, pid_t *ps) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  dtg_value init;
  dtg_run *updates = NULL;
  options.log = keep;
  ok(dtg_runtime_create(&options, &w->g.runtime), "a runtime with a log");
  *ps = start("ps", w->g.spec);
  join(w, 0);
  ok(dtg_model_init(w->model, &init), "first values");
  ok(dtg_run_target(w->g.session, init), "give them");
  ok(dtg_run_target(w->g.session, w->share.chief_init), "as the chief");
  ok(dtg_cq_create(&w->g.cq), "make a queue of completions");
  ok(dtg_session_run_repeatedly(w->g.session, &w->share.update, 1, w->g.cq, 1, &updates), "update");
  begin(w);
  const pid_t other = start("worker", w->g.spec);
  ok(dtg_run_target(w->g.session, w->share.train), "the first step, of both");
  check(!warned_of(lost), "nobody is gone yet");
  end_process(other);
  log_names_it();
  status_names_it(w);
  a_step_names_it(w);
  dtg_run_cancel(updates);
  dtg_run_release(updates);
}

int main(int argc, char **argv) {
  struct worker w = {.share = DTG_REPLICATED_INIT};
  pid_t ps = -1;
  if (argc == 3) ends_in_the_middle = 1;
  if (argc == 3 && strcmp(argv[1], "ps") == 0) return ps_role(argv[2]);
  if (argc == 3) return worker_role(argv[2]);
  alarm(120);
  const size_t handles = dtg_live_handles();
  choose_addresses(&w.g, 0);
  snprintf(w.g.spec, sizeof w.g.spec, "ps=unix:%s/p;worker=unix:%s/w,unix:%s/v", w.g.folder, w.g.folder, w.g.folder);
  chief(&w, &ps);
  dtg_model_release(w.model);
  char path[80];
  snprintf(path, sizeof path, "%s/v", w.g.folder);
  unlink(path);
  end_process(ps);
  close_guest(&w.g);
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
