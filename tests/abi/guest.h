/* A guest and its host, for the programs here that look at what the library does to its process: checks that say what failed, and a
 * cluster of two tasks in this process (a worker and a ps, with sockets between them) with a session at the worker. One thread. */
#ifndef DTG_TESTS_ABI_GUEST_H
#define DTG_TESTS_ABI_GUEST_H

#include <arpa/inet.h>
#include <dirent.h>
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures = 0;

static inline void check(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

static inline void ok(dtg_error *error, const char *what) {
  if (error) fprintf(stderr, "%s: %s\n", what, dtg_error_message(error, NULL));
  check(error == NULL, what);
  dtg_error_release(error);
}

static inline int threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* A port of 127.0.0.1 that nobody listens at. */
static inline int free_port(void) {
  struct sockaddr_in at = {0};
  socklen_t size = sizeof at;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0, "find a port");
  close(fd);
  return ntohs(at.sin_port);
}

struct guest {
  char folder[64];
  char spec[256];
  dtg_runtime *runtime;
  dtg_cluster *cluster;
  dtg_server *ps, *worker;
  dtg_graph *graph;
  dtg_session *session;
  dtg_cq *cq;
  dtg_value x, sum, wait; /* sum = x + x on the ps; wait = the next of a queue there that nobody fills */
};

/* Where the tasks will listen: on unix sockets, or on ports of 127.0.0.1. */
static inline void choose_addresses(struct guest *g, int tcp) {
  strcpy(g->folder, "/tmp/dtg-guest-XXXXXX");
  check(mkdtemp(g->folder) != NULL, "make a folder");
  if (tcp) snprintf(g->spec, sizeof g->spec, "ps=127.0.0.1:%d;worker=127.0.0.1:%d", free_port(), free_port());
  else snprintf(g->spec, sizeof g->spec, "ps=unix:%s/p;worker=unix:%s/w", g->folder, g->folder);
}

static inline void serve(struct guest *g, const char *job, dtg_server **server) {
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  options.job = job;
  if (!g->cluster) ok(dtg_cluster_parse(g->spec, DTG_STRLEN, &g->cluster), "read the cluster");
  ok(dtg_server_start(g->runtime, g->cluster, &options, server), "start a server");
}

static inline void build_graph(struct guest *g) {
  const int64_t types[] = {DTG_F32}, dims[] = {-1};
  dtg_attr attr = DTG_ATTR_INIT;
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  dtg_value queue;
  ok(dtg_graph_create(g->runtime, &g->graph), "make a graph");
  ok(dtg_placeholder(g->graph, "x", DTG_F32, dims, 1, &g->x), "a placeholder");
  ok(dtg_graph_push_device(g->graph, "/job:ps", DTG_STRLEN), "on the ps");
  ok(dtg_add2(g->graph, "AddV2", g->x, g->x, &g->sum), "a sum");
  attr.name = "component_types";
  attr.kind = DTG_ATTR_LIST_TYPE;
  attr.ints = types;
  attr.count = 1;
  spec.type = "FIFOQueueV2";
  spec.attrs = &attr;
  spec.num_attrs = 1;
  ok(dtg_graph_add_op(g->graph, &spec, &queue, 1), "a queue");
  spec.type = "QueueDequeueV2";
  spec.inputs = &queue;
  spec.num_inputs = 1;
  ok(dtg_graph_add_op(g->graph, &spec, &g->wait, 1), "its next");
  ok(dtg_graph_pop_device(g->graph), "off the ps");
}

static inline void connect_session(struct guest *g, const char *target) {
  build_graph(g);
  ok(dtg_session_connect(g->runtime, target, DTG_STRLEN, g->graph, NULL, &g->session), "connect");
  ok(dtg_cq_create(&g->cq), "make a queue of completions");
}

static inline void open_guest(struct guest *g, int tcp) {
  choose_addresses(g, tcp);
  serve(g, "ps", &g->ps);
  serve(g, "worker", &g->worker);
  connect_session(g, dtg_server_target(g->worker));
}

/* x of `count` ones goes to the ps and comes back doubled. */
static inline dtg_error *double_ones(struct guest *g, int64_t count) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_tensor *ones = NULL, *twos = NULL;
  const dtg_tensor *feed;
  dtg_error *error = dtg_tensor_allocate(DTG_F32, &count, 1, &ones);
  if (error) return error;
  float *const data = dtg_tensor_mutable_data(ones);
  for (int64_t i = 0; i < count; i++) data[i] = 1;
  feed = ones;
  args.feeds = &g->x;
  args.feed_tensors = &feed;
  args.num_feeds = 1;
  args.fetches = &g->sum;
  args.fetched = &twos;
  args.num_fetches = 1;
  error = dtg_session_run(g->session, &args);
  if (!error) check(((const float *)dtg_tensor_data(twos, NULL))[count - 1] == 2, "1 + 1");
  dtg_tensor_release(ones);
  dtg_tensor_release(twos);
  return error;
}

static inline dtg_run *start_waiting(struct guest *g) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_run *run = NULL;
  args.fetches = &g->wait;
  args.num_fetches = 1;
  args.timeout_ns = INT64_C(600000000000);
  ok(dtg_session_run_async(g->session, &args, g->cq, 1, &run), "start a run that waits");
  return run;
}

static inline void release_guest(struct guest *g) {
  dtg_session_release(g->session);
  dtg_graph_release(g->graph);
  dtg_cq_release(g->cq);
  dtg_server_release(g->worker);
  dtg_server_release(g->ps);
  dtg_cluster_release(g->cluster);
  dtg_runtime_release(g->runtime);
}

static inline void close_guest(struct guest *g) {
  char path[80];
  if (g->worker) ok(dtg_server_stop(g->worker, 0), "stop the worker");
  if (g->ps) ok(dtg_server_stop(g->ps, 0), "stop the ps");
  release_guest(g);
  for (const char *name = "pw"; *name; name++) {
    snprintf(path, sizeof path, "%s/%c", g->folder, *name);
    unlink(path);
  }
  rmdir(g->folder);
  memset(g, 0, sizeof *g);
}

/* Asked by the leak sanitizer at exit, when there is one. A program that ends in the middle of things, or a forked child, where memory
 * that only the stacks of the parent's other threads point at looks lost, says that there is nothing to look for. */
static int ends_in_the_middle = 0;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return ends_in_the_middle; }

#endif
