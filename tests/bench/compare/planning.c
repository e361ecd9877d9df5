/* planning.c: our side of the rows about large graphs. It answers requests on its standard input, one line each, with figures of
 * one attempt; every attempt makes its graph anew.
 *
 *   graph N      nodes, seconds to build them; nodes that gradients added, seconds; seconds of the first plan of all N
 *   events N     seconds of one run in which a device waits N times for another
 *   batches N    kilobytes that N batch sizes, up to the largest, left in the process; "batches 1" is the largest alone
 */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <dtg/sugar_ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { LARGEST_BATCH = 4096, RUNS = 9 };
static dtg_runtime *runtime;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this thread, which builds and plans alone: a busy machine does not change it. */
static double worked(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of layers that are one product, one bias and one activation; each tenth has a variable of its own, each eighth waits for the one
 * before by a control edge, and sixteen at a time stand on one of two devices. */
static dtg_error *build_graph(dtg_graph *graph, size_t nodes, dtg_value *x, dtg_value *y) {
  static const char *const devices[2] = {"/device:CPU:0", "/device:CPU:1"};
  const int64_t square[2] = {2, 2}, two = 2;
  const float numbers[4] = {0.1f, 0.2f, 0.3f, 0.4f};
  dtg_value bias, weights;
  TRY(dtg_placeholder(graph, "x", DTG_F32, square, 2, x));
  TRY(dtg_const_of(graph, DTG_F32, square, 2, numbers, sizeof numbers, &weights));
  TRY(dtg_const_of(graph, DTG_F32, &two, 1, numbers, 2 * sizeof *numbers, &bias));
  *y = *x;
  for (int layer = 0; dtg_graph_node_count(graph) < nodes; layer++) {
    const dtg_value before = *y;
    TRY(dtg_graph_push_device(graph, devices[layer / 16 % 2], DTG_STRLEN));
    if (layer % 10 == 0) {
      dtg_value handle;
      TRY(dtg_add_var_handle_op(graph, NULL, DTG_F32, square, 2, NULL, &handle));
      TRY(dtg_add_read_variable_op(graph, NULL, handle, DTG_F32, &weights));
    }
    if (layer % 8 == 0) TRY(dtg_graph_push_controls(graph, &before, 1));
    TRY(dtg_add2(graph, "MatMul", *y, weights, y));
    if (layer % 8 == 0) TRY(dtg_graph_pop_controls(graph));
    TRY(dtg_add2(graph, "BiasAdd", *y, bias, y));
    TRY(dtg_add1(graph, "Tanh", *y, y));
    TRY(dtg_graph_pop_device(graph));
  }
  return NULL;
}

/* Two devices, no fusion where the waits are to stay as many as they are. */
static dtg_error *connect(dtg_graph *graph, int fusion, dtg_session **out) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.cpu_devices = 2;
  options.disable_fusion = !fusion;
  return dtg_session_connect(runtime, "local", DTG_STRLEN, graph, &options, out);
}

/* The first call of a new session plans. Its run ends at the first read, for the variables have no value; what that takes is within. */
static dtg_error *plan_once(dtg_graph *graph, dtg_value x, dtg_value y, double *seconds) {
  const int64_t square[2] = {2, 2};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_session *session = NULL;
  dtg_tensor *feed = NULL, *result = NULL;
  const dtg_tensor *given = NULL;
  TRY(connect(graph, 1, &session));
  TRY(dtg_tensor_allocate(DTG_F32, square, 2, &feed));
  memset(dtg_tensor_mutable_data(feed), 0, 4 * sizeof(float));
  given = feed;
  args.feeds = &x;
  args.feed_tensors = &given;
  args.num_feeds = 1;
  args.fetches = &y;
  args.fetched = &result;
  args.num_fetches = 1;
  const double start = worked();
  dtg_error *error = dtg_session_run(session, &args);
  *seconds = worked() - start;
  if (!error || dtg_error_code(error) != DTG_FAILED_PRECONDITION) {
    fprintf(stderr, "bench_planning: a variable without a value was read\n");
    return error;
  }
  dtg_error_release(error);
  dtg_tensor_release(feed);
  dtg_session_release(session);
  return NULL;
}

static dtg_error *answer_graph(size_t nodes) {
  dtg_graph *graph = NULL;
  dtg_gradient gradient;
  dtg_value x, y;
  double plan = 0;
  TRY(dtg_graph_create(runtime, &graph));
  const double start = worked();
  TRY(build_graph(graph, nodes, &x, &y));
  const double built = worked();
  const size_t forward = dtg_graph_node_count(graph);
  TRY(plan_once(graph, x, y, &plan));
  const double planned = worked();
  TRY(dtg_graph_add_gradients(graph, &y, 1, &x, 1, NULL, &gradient));
  printf("%zu %.4e %zu %.4e %.4e\n", forward, built - start, dtg_graph_node_count(graph) - forward, worked() - planned, plan);
  dtg_graph_release(graph);
  return NULL;
}

/* A chain on one device, each element of which another device adds up: every addition waits for an event. */
static dtg_error *answer_events(int events) {
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  dtg_tensor *feed = NULL;
  dtg_value x, sum, term, none = {0};
  float result = 0;
  double best = 1e9;
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &feed));
  *(float *)dtg_tensor_mutable_data(feed) = 1;
  sum = term = x;
  for (int i = 0; i < events; i++) {
    TRY(dtg_graph_push_device(graph, "/device:CPU:1", DTG_STRLEN));
    TRY(dtg_add1(graph, "Sin", term, &term));
    TRY(dtg_graph_pop_device(graph));
    TRY(dtg_graph_push_device(graph, "/device:CPU:0", DTG_STRLEN));
    TRY(dtg_add2(graph, "AddV2", sum, term, &sum));
    TRY(dtg_graph_pop_device(graph));
  }
  TRY(connect(graph, 0, &session));
  for (int i = 0; i < RUNS; i++) {
    const double start = now();
    TRY(dtg_step_f32(session, &x, &feed, 1, sum, none, &result));
    const double seconds = now() - start;
    if (i > 0 && seconds < best) best = seconds;
  }
  printf("%.4e\n", best);
  dtg_tensor_release(feed);
  dtg_session_release(session);
  dtg_graph_release(graph);
  return NULL;
}

static long resident_kilobytes(void) {
  char line[256];
  long found = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
  }
  if (file) fclose(file);
  return found;
}

static void host_keeps(void *data, size_t bytes, void *user) { (void)data, (void)bytes, (void)user; }

/* Two wide layers whose batch is open; sizes come in equal steps up to the largest, each the front of one array of the host. */
static dtg_error *answer_batches(int batches) {
  const int64_t open[2] = {-1, 256}, square[2] = {256, 256}, two = 2;
  const int32_t axes[2] = {0, 1};
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  dtg_value x, y, w, all, none = {0};
  float *weights = calloc(256 * 256, sizeof *weights), *batch = calloc(LARGEST_BATCH * 256, sizeof *batch), result = 0;
  if (!weights || !batch) exit(1);
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &x));
  TRY(dtg_const_of(graph, DTG_F32, square, 2, weights, 256 * 256 * sizeof *weights, &w));
  TRY(dtg_const_of(graph, DTG_I32, &two, 1, axes, sizeof axes, &all));
  y = x;
  for (int layer = 0; layer < 2; layer++) TRY(dtg_add2(graph, "MatMul", y, w, &y));
  TRY(dtg_add2(graph, "Sum", y, all, &y));
  TRY(connect(graph, 1, &session));
  const long before = resident_kilobytes();
  for (int i = 1; i <= batches; i++) {
    const int64_t dims[2] = {(int64_t)LARGEST_BATCH * i / batches, 256};
    dtg_tensor *feed = NULL;
    TRY(dtg_tensor_create(DTG_F32, dims, 2, batch, (size_t)dims[0] * 256 * sizeof *batch, host_keeps, NULL, &feed));
    TRY(dtg_step_f32(session, &x, &feed, 1, y, none, &result));
    dtg_tensor_release(feed);
  }
  printf("%ld\n", resident_kilobytes() - before);
  free(weights);
  free(batch);
  dtg_session_release(session);
  dtg_graph_release(graph);
  return NULL;
}

int main(void) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  char line[256], command[32];
  int number = 0;
  options.compute_threads = 1;
  dtg_error *error = dtg_runtime_create(&options, &runtime);
  while (!error && fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%31s %d", command, &number) < 2 || number < 1) break;
    if (!strcmp(command, "graph")) error = answer_graph((size_t)number);
    else if (!strcmp(command, "events")) error = answer_events(number);
    else if (!strcmp(command, "batches")) error = answer_batches(number);
    else break;
    fflush(stdout);
  }
  if (error) fprintf(stderr, "bench_planning: %s\n", dtg_error_message(error, NULL));
  return error != NULL;
}
