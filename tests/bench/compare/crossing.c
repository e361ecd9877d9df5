/* crossing.c: what a call into the library costs from C, the measure of what the bindings add. Prints, as a JSON line each, the median
 * nanoseconds of dtg_abi_version ("crossing") and of a prepared run of a tiny graph ("warm_step": one scalar fed, one scalar written
 * into a tensor that is given, one compute thread). The twins in the other languages are crossing_<language>. Main thread. */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRY(call)                          \
  do {                                     \
    if ((err = (call)) != NULL) goto done; \
  } while (0)
#define SAMPLES 51
#define CROSSINGS 200000
#define STEPS 20000

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void say(const char *name, double *samples) {
  qsort(samples, SAMPLES, sizeof *samples, by_size);
  printf("{\"name\": \"%s\", \"ns\": %.2f}\n", name, samples[SAMPLES / 2]);
}

static void crossings(void) {
  double samples[SAMPLES];
  uint32_t sum = 0;
  for (int i = 0; i < SAMPLES; i++) {
    const double start = now_ns();
    for (int k = 0; k < CROSSINGS; k++) sum += dtg_abi_version();
    samples[i] = (now_ns() - start) / CROSSINGS;
  }
  if (sum == 1) printf("\n"); /* the sum is used */
  say("crossing", samples);
}

int main(void) {
  dtg_error *err = NULL;
  dtg_runtime *runtime = NULL;
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  dtg_callable *call = NULL;
  dtg_tensor *in = NULL, *out = NULL;
  dtg_value x, y;
  double samples[SAMPLES];
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  options.compute_threads = 1;
  crossings();
  TRY(dtg_runtime_create(&options, &runtime));
  TRY(dtg_graph_create(runtime, &graph));
  TRY(dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_add2(graph, "AddV2", x, x, &y));
  TRY(dtg_session_connect(runtime, "local", DTG_STRLEN, graph, NULL, &session));
  args.feeds = &x;
  args.num_feeds = 1;
  args.fetches = &y;
  args.num_fetches = 1;
  TRY(dtg_session_prepare(session, &args, &call));
  TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &in));
  TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &out));
  for (int i = -5; i < SAMPLES; i++) { /* the first ones warm up */
    const dtg_tensor *feeds[1] = {in};
    const double start = now_ns();
    for (int k = 0; k < STEPS; k++) TRY(dtg_callable_run(call, feeds, 1, &out, 1, 0));
    if (i >= 0) samples[i] = (now_ns() - start) / STEPS;
  }
  say("warm_step", samples);
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_tensor_release(in);
  dtg_tensor_release(out);
  dtg_callable_release(call);
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_runtime_release(runtime);
  return err != NULL;
}
