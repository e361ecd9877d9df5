/* ours.c: our side of `make bench` within one process. It answers requests on its standard input, so that the driver can take
 * turns with the peers: "measure NAME" with the seconds of one call, those of the processor, and the number of calls; "memory"
 * with the resident kilobytes; "allocations NAME" (where counting is linked in) with what one hundred warm calls did. It sees
 * only the public headers.
 *
 *   bench_ours THREADS            serve until the end of the input
 *   bench_ours THREADS NAME       make one workload, run it once, print "ready" and leave: for the time from start to first step
 */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { CHAIN = 1000, BIG_GRAPH = 100000, BATCHES = 5 };
static const double SLICE = 0.15; /* seconds that one answer takes */

/* Defined by count.c; without it every count is absent. */
extern void count_from_now(void) __attribute__((weak));
extern void count_until_now(long *allocations, long *releases, long *locks) __attribute__((weak));

struct workload {
  const char *name;
  dtg_session *session;
  dtg_callable *call;
  dtg_tensor *feeds[2], *results[1];
  size_t num_feeds;
  int new_result;  /* each call makes its result instead of writing over the last */
  long repeats;    /* calls of a slice, found by trying */
  double per_call; /* what one call is divided by */
};

static dtg_runtime *runtime;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static dtg_error *random_tensor(const int64_t *dims, size_t rank, dtg_tensor **out) {
  static uint32_t state = 12345;
  TRY(dtg_tensor_allocate(DTG_F32, dims, rank, out));
  size_t bytes = 0;
  dtg_tensor_data(*out, &bytes);
  float *at = dtg_tensor_mutable_data(*out);
  for (size_t i = 0; i < bytes / sizeof *at; i++) at[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  return NULL;
}

static dtg_error *label_tensor(int64_t batch, int64_t classes, dtg_tensor **out) {
  TRY(dtg_tensor_allocate(DTG_I64, &batch, 1, out));
  int64_t *at = dtg_tensor_mutable_data(*out);
  for (int64_t i = 0; i < batch; i++) at[i] = i * 7 % classes;
  return NULL;
}

static dtg_error *prepare(struct workload *w, dtg_graph *graph, const dtg_value *feeds, dtg_value fetch, const dtg_value *target,
                          const dtg_value *init, int no_fusion) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  options.disable_fusion = no_fusion;
  TRY(dtg_session_connect(runtime, "local", DTG_STRLEN, graph, &options, &w->session));
  if (init) TRY(dtg_run_target(w->session, *init));
  args.feeds = feeds;
  args.num_feeds = w->num_feeds;
  args.fetches = &fetch;
  args.num_fetches = 1;
  args.targets = target;
  args.num_targets = target != NULL;
  TRY(dtg_session_prepare(w->session, &args, &w->call));
  if (!w->new_result) TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &w->results[0]));
  dtg_graph_release(graph);
  return NULL;
}

/* One scalar in, `adds` additions, one scalar out; around it `idle` nodes that the call does not need. */
static dtg_error *make_adds(struct workload *w, int adds, int idle) {
  dtg_graph *graph = NULL;
  dtg_value x, y, other, feeds[2];
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_placeholder(graph, "step", DTG_F32, NULL, 0, &other));
  for (int i = 0; i < idle; i++) TRY(dtg_add2(graph, "AddV2", i ? y : other, other, &y));
  dtg_value one = other;
  if (adds == 1) TRY(dtg_const_f32(graph, 1.0f, &one));
  for (int i = 0; i < adds; i++) TRY(dtg_add2(graph, "AddV2", i ? y : x, one, &y));
  feeds[0] = x;
  feeds[1] = other;
  w->num_feeds = adds == 1 ? 1 : 2;
  for (size_t i = 0; i < w->num_feeds; i++) TRY(random_tensor(NULL, 0, &w->feeds[i]));
  return prepare(w, graph, feeds, y, NULL, NULL, 1);
}

/* A chain of additions, and the gradient with respect to what is added each time. It is seeded with what is fed, so that no part of it
 * is known before the call; the chain is a target, for the gradient of a sum does not need it. */
static dtg_error *make_chain_and_gradient(struct workload *w) {
  dtg_graph *graph = NULL;
  dtg_gradient gradient;
  dtg_value y, feeds[2];
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &feeds[0]));
  TRY(dtg_placeholder(graph, "step", DTG_F32, NULL, 0, &feeds[1]));
  y = feeds[0];
  for (int i = 0; i < CHAIN; i++) TRY(dtg_add2(graph, "AddV2", y, feeds[1], &y));
  TRY(dtg_graph_add_gradients(graph, &y, 1, &feeds[1], 1, &feeds[0], &gradient));
  w->num_feeds = 2;
  for (int i = 0; i < 2; i++) TRY(random_tensor(NULL, 0, &w->feeds[i]));
  return prepare(w, graph, feeds, gradient.dense, &y, NULL, 1);
}

static dtg_error *dense(dtg_model *model, int64_t units, dtg_activation activation, dtg_value *x) {
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = units;
  layer.activation = activation;
  return dtg_nn_dense(model, *x, &layer, x);
}

static dtg_error *conv_and_pool(dtg_model *model, int64_t filters, dtg_value *x) {
  dtg_conv2d layer = DTG_CONV2D_INIT;
  layer.filters = filters;
  layer.kernel_height = 5;
  layer.padding = DTG_PADDING_SAME;
  layer.activation = DTG_ACT_RELU;
  TRY(dtg_nn_conv2d(model, *x, &layer, x));
  return dtg_nn_max_pool2d(model, *x, NULL, x);
}

/* A classifier and one step of its training: softmax cross entropy, plain gradient descent, the loss fetched. */
static dtg_error *make_training(struct workload *w, int images, int64_t batch, int64_t width, int64_t hidden, int layers, int64_t classes) {
  const int64_t flat[2] = {batch, width}, square[4] = {batch, 28, 28, 1};
  const int64_t *dims = images ? square : flat;
  const size_t rank = images ? 4 : 2;
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_value x, loss, init, feeds[2];
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, dims, rank, &feeds[0]));
  TRY(dtg_placeholder(graph, "labels", DTG_I64, &batch, 1, &feeds[1]));
  x = feeds[0];
  if (images) {
    TRY(conv_and_pool(model, 32, &x));
    TRY(conv_and_pool(model, 64, &x));
    TRY(dtg_nn_flatten(model, x, &x));
  }
  for (int i = 0; i < layers; i++) TRY(dense(model, hidden, DTG_ACT_RELU, &x));
  TRY(dense(model, classes, DTG_ACT_NONE, &x));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], x, &loss));
  optimizer.rate = 0.01;
  TRY(dtg_nn_minimize(model, loss, &optimizer, &training));
  TRY(dtg_model_init(model, &init));
  w->num_feeds = 2;
  TRY(random_tensor(dims, rank, &w->feeds[0]));
  TRY(label_tensor(batch, classes, &w->feeds[1]));
  TRY(prepare(w, graph, feeds, loss, &training.train, &init, 0));
  dtg_model_release(model);
  return NULL;
}

static dtg_error *make(struct workload *w, const char *name) {
  w->name = name;
  w->per_call = 1;
  w->new_result = !strcmp(name, "call_new");
  if (!strcmp(name, "call") || w->new_result) return make_adds(w, 1, 0);
  if (!strcmp(name, "call_big")) return make_adds(w, 1, BIG_GRAPH);
  if (!strncmp(name, "chain", 5)) w->per_call = CHAIN;
  if (!strcmp(name, "chain")) return make_adds(w, CHAIN, 0);
  if (!strcmp(name, "chain_gradient")) return make_chain_and_gradient(w);
  if (!strcmp(name, "tiny")) return make_training(w, 0, 4, 8, 8, 1, 2);
  if (!strcmp(name, "mlp")) return make_training(w, 0, 128, 784, 512, 2, 10);
  if (!strcmp(name, "lenet")) return make_training(w, 1, 128, 0, 1024, 1, 10);
  fprintf(stderr, "bench_ours: no workload is called %s\n", name);
  exit(2);
}

static dtg_error *call_once(struct workload *w) {
  const dtg_tensor *feeds[2] = {w->feeds[0], w->feeds[1]};
  TRY(dtg_callable_run(w->call, feeds, w->num_feeds, w->results, 1, 0));
  if (w->new_result) {
    dtg_tensor_release(w->results[0]);
    w->results[0] = NULL;
  }
  return NULL;
}

static dtg_error *calls(struct workload *w, long count, double *seconds) {
  const double start = now();
  for (long i = 0; i < count; i++) TRY(call_once(w));
  *seconds = now() - start;
  return NULL;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds of one call: the median of a few batches, so that one interruption does not count. Beside it the processor's time,
 * of all threads together, which does not see what else the machine is doing. */
static dtg_error *measure(struct workload *w, double *out, double *processor) {
  double part[BATCHES];
  if (w->repeats == 0) {
    for (int i = 0; i < 3; i++) TRY(call_once(w));
    double seconds = 0;
    for (w->repeats = 1; seconds < SLICE / BATCHES / 2; w->repeats *= 2) TRY(calls(w, w->repeats, &seconds));
  }
  const double start = processor_time();
  for (int i = 0; i < BATCHES; i++) {
    TRY(calls(w, w->repeats, &part[i]));
    part[i] /= (double)w->repeats * w->per_call;
  }
  *processor = (processor_time() - start) / ((double)w->repeats * w->per_call * BATCHES);
  qsort(part, BATCHES, sizeof *part, by_size);
  *out = part[BATCHES / 2];
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

static void failed(const char *name, dtg_error *error) {
  fprintf(stderr, "bench_ours: %s: %s\n", name, dtg_error_message(error, NULL));
  exit(1);
}

static struct workload *find(const char *name) {
  static struct workload all[16];
  size_t i = 0;
  while (all[i].name && strcmp(all[i].name, name) != 0) i++;
  if (!all[i].name) {
    char *copy = malloc(strlen(name) + 1);
    if (!copy) exit(1);
    strcpy(copy, name);
    dtg_error *error = make(&all[i], copy);
    if (error) failed(name, error);
  }
  return &all[i];
}

/* A tensor made and released must be seen, or the zeros of everything else mean nothing. */
static int counting_works(void) {
  const int64_t count = 1000; /* below what comes straight from the kernel */
  long allocations = 0, releases = 0, locks = 0;
  dtg_tensor *tensor = NULL;
  if (!count_from_now || !count_until_now) return 0;
  count_from_now();
  dtg_error *error = dtg_tensor_allocate(DTG_F32, &count, 1, &tensor);
  if (error) failed("counting", error);
  dtg_tensor_release(tensor);
  count_until_now(&allocations, &releases, &locks);
  return allocations > 0 && releases > 0;
}

static void answer_allocations(const char *name) {
  struct workload *w = find(name);
  double seconds = 0;
  long allocations = 0, releases = 0, locks = 0;
  if (!counting_works()) {
    printf("failed\n");
    return;
  }
  dtg_error *error = calls(w, 100, &seconds);
  count_from_now();
  if (!error) error = calls(w, 100, &seconds);
  count_until_now(&allocations, &releases, &locks);
  if (error) failed(name, error);
  printf("%ld %ld %ld\n", allocations, releases, locks);
}

static void answer_measure(const char *name) {
  double seconds = 0, processor = 0;
  dtg_error *error = measure(find(name), &seconds, &processor);
  if (error) failed(name, error);
  printf("%.4e %.4e %ld\n", seconds, processor, find(name)->repeats * BATCHES);
}

int main(int argc, char **argv) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  char line[256], command[32], name[64];
  options.compute_threads = argc > 1 ? atoi(argv[1]) : 1;
  dtg_error *error = dtg_runtime_create(&options, &runtime);
  if (error) failed("runtime", error);
  if (argc > 2) {
    error = call_once(find(argv[2]));
    if (error) failed(argv[2], error);
    printf("ready\n");
    return 0;
  }
  while (fgets(line, sizeof line, stdin)) {
    name[0] = 0;
    if (sscanf(line, "%31s %63s", command, name) < 1) continue;
    if (!strcmp(command, "measure")) answer_measure(name);
    else if (!strcmp(command, "memory")) printf("%ld\n", resident_kilobytes());
    else if (!strcmp(command, "allocations")) answer_allocations(name);
    else break;
    fflush(stdout);
  }
  return 0;
}
