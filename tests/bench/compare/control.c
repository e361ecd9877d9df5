/* control.c: what loops cost against the same without one, for `make bench`. It answers requests on its standard input: "measure NAME" with
 * the seconds of one call (of one addition or round for chain and while), those of the processor, and the number of calls; "plan NAME" with
 * the seconds of the processor that the first run of a new session takes more than later ones, the median of several sessions. What a loop
 * of one round takes more is its planning; in one of 100 rounds it would be the memory of their lists as well, which is new to the
 * processor. It sees only the public headers.
 *
 *   chain, while                  1,000 additions in a row, and as 1,000 rounds of a loop
 *   lstm_unrolled, lstm_while     100 steps of an LSTM and the gradient of its kernel
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
#define OF(...) (const dtg_value[]){__VA_ARGS__}, sizeof((const dtg_value[]){__VA_ARGS__}) / sizeof(dtg_value)

enum { CHAIN = 1000, TIME = 100, BATCH = 16, INPUT = 32, HIDDEN = 64, SESSIONS = 9 };
static const double SLICE = 0.2; /* seconds that one answer takes */

struct workload {
  const char *name;
  dtg_graph *graph;
  dtg_session *session;
  dtg_value feeds[4], fetch;
  dtg_tensor *fed[4];
  size_t num_feeds;
  double per_call; /* what one call is divided by */
};

static dtg_runtime *runtime;

static double read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static dtg_error *integer(dtg_graph *g, int32_t value, dtg_value *out) {
  return dtg_const_of(g, DTG_I32, NULL, 0, &value, sizeof value, out);
}

static dtg_error *feed(struct workload *w, size_t i, const char *name, dtg_dtype dtype, const int64_t *dims, size_t rank) {
  size_t bytes = 0;
  TRY(dtg_placeholder(w->graph, name, dtype, dims, rank, &w->feeds[i]));
  TRY(dtg_tensor_allocate(dtype, dims, rank, &w->fed[i]));
  dtg_tensor_data(w->fed[i], &bytes);
  w->num_feeds = i + 1;
  if (dtype == DTG_I32) {
    *(int32_t *)dtg_tensor_mutable_data(w->fed[i]) = CHAIN;
    return NULL;
  }
  float *at = dtg_tensor_mutable_data(w->fed[i]);
  for (size_t k = 0; k < bytes / sizeof *at; k++) at[k] = (float)(k % 17) / 170.0f - 0.05f;
  return NULL;
}

/* Of a loop over time; another workload has none. */
static void set_rounds(const struct workload *w, int32_t rounds) {
  if (w->fed[3] != NULL) *(int32_t *)dtg_tensor_mutable_data(w->fed[3]) = rounds;
}

static dtg_error *arguments(dtg_graph *outer, const char *name, const dtg_value *like, size_t count, dtg_graph **body, dtg_value *v) {
  TRY(dtg_function_begin(outer, name, DTG_STRLEN, body));
  for (size_t i = 0; i < count; i++) TRY(dtg_function_add_argument_like(*body, like[i], &v[i]));
  return NULL;
}

/* The condition of all loops here: the first variable is less than `limit`. */
static dtg_error *less_than(dtg_graph *outer, const dtg_value *start, size_t count, dtg_value limit, dtg_function **out) {
  dtg_graph *g = NULL;
  dtg_value v[4], more;
  TRY(arguments(outer, "condition", start, count, &g, v));
  TRY(dtg_add2(g, "Less", v[0], limit, &more));
  TRY(dtg_function_end(g, &more, 1, NULL, 0, out));
  dtg_graph_release(g);
  return NULL;
}

static dtg_error *make_adds(struct workload *w, int loop) {
  dtg_graph *g = NULL;
  dtg_function *condition = NULL, *body = NULL;
  dtg_value v[2], inside[2], next[2], one;
  w->per_call = CHAIN;
  TRY(feed(w, 0, "x", DTG_F32, NULL, 0));
  TRY(feed(w, 1, "step", DTG_F32, NULL, 0));
  TRY(feed(w, 2, "rounds", DTG_I32, NULL, 0));
  v[1] = w->feeds[0];
  if (!loop) {
    for (int i = 0; i < CHAIN; i++) TRY(dtg_add2(w->graph, "AddV2", v[1], w->feeds[1], &v[1]));
    w->fetch = v[1];
    return NULL;
  }
  TRY(integer(w->graph, 0, &v[0]));
  TRY(less_than(w->graph, v, 2, w->feeds[2], &condition));
  TRY(arguments(w->graph, "body", v, 2, &g, inside));
  TRY(integer(g, 1, &one));
  TRY(dtg_add2(g, "AddV2", inside[0], one, &next[0]));
  TRY(dtg_add2(g, "AddV2", inside[1], w->feeds[1], &next[1]));
  TRY(dtg_function_end(g, next, 2, NULL, 0, &body));
  TRY(dtg_graph_add_while(w->graph, v, 2, condition, body, v));
  w->fetch = v[1];
  dtg_graph_release(g);
  dtg_function_release(condition);
  dtg_function_release(body);
  return NULL;
}

/* One step: state is h and c, before and after. */
static dtg_error *cell(const struct workload *w, dtg_graph *g, dtg_value t, dtg_value *h, dtg_value *c) {
  dtg_value zero, one, x, z, gates[4], shown;
  TRY(integer(g, 0, &zero));
  TRY(integer(g, 1, &one));
  TRY(dtg_addn(g, "GatherV2", OF(w->feeds[0], t, zero), &x));
  TRY(dtg_addn(g, "ConcatV2", OF(x, *h, one), &z));
  TRY(dtg_add2(g, "MatMul", z, w->feeds[1], &z));
  TRY(dtg_add_split(g, NULL, one, z, 4, gates));
  for (int i = 0; i < 3; i++) TRY(dtg_add1(g, "Sigmoid", gates[i], &gates[i]));
  TRY(dtg_add1(g, "Tanh", gates[3], &gates[3]));
  TRY(dtg_add2(g, "Mul", gates[1], *c, c));
  TRY(dtg_add2(g, "Mul", gates[0], gates[3], &shown));
  TRY(dtg_add2(g, "AddV2", *c, shown, c));
  TRY(dtg_add1(g, "Tanh", *c, &shown));
  return dtg_add2(g, "Mul", gates[2], shown, h);
}

static dtg_error *loop_over_time(struct workload *w, dtg_value v[3]) {
  dtg_graph *g = NULL;
  dtg_function *condition = NULL, *body = NULL;
  dtg_value inside[3], next[3], one;
  TRY(feed(w, 3, "rounds", DTG_I32, NULL, 0));
  set_rounds(w, TIME);
  TRY(less_than(w->graph, v, 3, w->feeds[3], &condition));
  TRY(arguments(w->graph, "body", v, 3, &g, inside));
  TRY(integer(g, 1, &one));
  TRY(dtg_add2(g, "AddV2", inside[0], one, &next[0]));
  next[1] = inside[1];
  next[2] = inside[2];
  TRY(cell(w, g, inside[0], &next[1], &next[2]));
  TRY(dtg_function_end(g, next, 3, NULL, 0, &body));
  TRY(dtg_graph_add_while(w->graph, v, 3, condition, body, v));
  dtg_graph_release(g);
  dtg_function_release(condition);
  dtg_function_release(body);
  return NULL;
}

static dtg_error *make_lstm(struct workload *w, int loop) {
  const int64_t input[] = {TIME, BATCH, INPUT}, kernel[] = {INPUT + HIDDEN, 4 * HIDDEN}, state[] = {BATCH, HIDDEN};
  const int32_t both[] = {0, 1};
  const int64_t two = 2;
  dtg_value v[3], axes;
  dtg_gradient gradient;
  w->per_call = 1;
  TRY(feed(w, 0, "x", DTG_F32, input, 3));
  TRY(feed(w, 1, "kernel", DTG_F32, kernel, 2));
  TRY(feed(w, 2, "state", DTG_F32, state, 2));
  TRY(integer(w->graph, 0, &v[0]));
  v[1] = v[2] = w->feeds[2];
  if (loop) TRY(loop_over_time(w, v));
  for (int32_t t = 0; !loop && t < TIME; t++) {
    dtg_value at;
    TRY(integer(w->graph, t, &at));
    TRY(cell(w, w->graph, at, &v[1], &v[2]));
  }
  TRY(dtg_graph_add_gradients(w->graph, &v[1], 1, &w->feeds[1], 1, NULL, &gradient));
  TRY(dtg_const_of(w->graph, DTG_I32, &two, 1, both, sizeof both, &axes));
  return dtg_add2(w->graph, "Sum", gradient.dense, axes, &w->fetch);
}

/* Chains of additions are not fused, as in ours.c: they stand for nodes. */
static dtg_error *connect(const struct workload *w, dtg_session **out) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.disable_fusion = w->per_call > 1;
  return dtg_session_connect(runtime, "local", DTG_STRLEN, w->graph, &options, out);
}

static dtg_error *call(const struct workload *w, dtg_session *session, float *out) {
  const dtg_value none = {0};
  return dtg_step_f32(session, w->feeds, w->fed, w->num_feeds, w->fetch, none, out);
}

static dtg_error *make(struct workload *w, const char *name) {
  const int loop = strstr(name, "while") != NULL;
  w->name = name;
  TRY(dtg_graph_create(runtime, &w->graph));
  TRY(strncmp(name, "lstm", 4) == 0 ? make_lstm(w, loop) : make_adds(w, loop));
  return connect(w, &w->session);
}

static struct workload *find(const char *name) {
  static const char *const names[] = {"chain", "while", "lstm_unrolled", "lstm_while"};
  static struct workload all[4];
  for (size_t i = 0; i < 4; i++) {
    if (strcmp(name, names[i]) != 0) continue;
    dtg_error *error = all[i].graph ? NULL : make(&all[i], names[i]);
    if (!error) return &all[i];
    fprintf(stderr, "bench_control: %s: %s\n", name, dtg_error_message(error, NULL));
  }
  exit(1);
}

static dtg_error *answer_measure(const struct workload *w) {
  float result = 0;
  long count = 0;
  TRY(call(w, w->session, &result));
  const double start = read_clock(CLOCK_MONOTONIC), work = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  while (read_clock(CLOCK_MONOTONIC) - start < SLICE) {
    TRY(call(w, w->session, &result));
    count++;
  }
  const double calls = (double)count * w->per_call;
  printf("%.4e %.4e %ld\n", (read_clock(CLOCK_MONOTONIC) - start) / calls, (read_clock(CLOCK_PROCESS_CPUTIME_ID) - work) / calls, count);
  return NULL;
}

/* What a run costs in the processor's time, which other processes do not lengthen. */
static dtg_error *cost(const struct workload *w, dtg_session *session, double *out, float *result) {
  const double start = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  TRY(call(w, session, result));
  *out = read_clock(CLOCK_PROCESS_CPUTIME_ID) - start;
  return NULL;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* What the first run of a new session takes more than its later ones, which is its planning, and the memory of the plan. */
static dtg_error *plan_once(const struct workload *w, dtg_session **session, double *out, float *result) {
  double first = 0, least = 0;
  TRY(connect(w, session));
  TRY(cost(w, *session, &first, result));
  for (int i = 0; i < 5; i++) {
    double again = 0;
    TRY(cost(w, *session, &again, result));
    if (i == 0 || again < least) least = again;
  }
  *out = first - least;
  return NULL;
}

/* The median of several sessions, since what a processor has to fetch the first time is no planning. All of them live until the end, so
 * that none plans in the memory of one before. */
static dtg_error *answer_plan(const struct workload *w) {
  dtg_session *sessions[SESSIONS] = {NULL};
  double costs[SESSIONS];
  float result = 0;
  set_rounds(w, 1);
  for (int i = 0; i < 3; i++) TRY(call(w, w->session, &result));
  for (int i = 0; i < SESSIONS; i++) TRY(plan_once(w, &sessions[i], &costs[i], &result));
  set_rounds(w, TIME);
  qsort(costs, SESSIONS, sizeof *costs, by_value);
  printf("%.4e %.9g\n", costs[SESSIONS / 2], (double)result);
  for (int i = 0; i < SESSIONS; i++) dtg_session_release(sessions[i]);
  return NULL;
}

int main(void) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  char line[256], command[32], name[64];
  options.compute_threads = 1;
  dtg_error *error = dtg_runtime_create(&options, &runtime);
  while (!error && fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%31s %63s", command, name) != 2) break;
    error = strcmp(command, "plan") == 0 ? answer_plan(find(name)) : answer_measure(find(name));
    fflush(stdout);
  }
  if (error) fprintf(stderr, "bench_control: %s\n", dtg_error_message(error, NULL));
  return error != NULL;
}
