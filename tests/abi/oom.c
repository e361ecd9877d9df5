/* Memory that runs out: the allocator fails at the n-th call, for every n up to the length of a scenario, from the
 * first node to the last result. Each time an error or a success, never a crash, a hang or a handle that stays.
 * Failing goes on after the n-th call or happens once, in turn. */
#define _GNU_SOURCE
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "failing_allocator.h"

#if OWN_ALLOCATOR
/* Everything that the scenario holds, so that it can stop anywhere. */
struct scene {
  dtg_runtime *runtime;
  dtg_graph *graph, *copy;
  dtg_model *model;
  dtg_session *session;
  dtg_callable *callable;
  dtg_tensor *x, *fetched;
  dtg_cq *cq;
  dtg_run *run;
  dtg_string *bytes;
};

#define STEP(call)              \
  do {                          \
    dtg_error *error_ = (call); \
    if (error_) return error_;  \
  } while (0)

static dtg_error *build(struct scene *s, dtg_value *x, dtg_value *loss, dtg_training *training) {
  const int64_t dims[] = {4, 3};
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_value y, zeros, square;
  dtg_gradient gradient;
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  options.compute_threads = 2;
  options.log_level = DTG_LOG_OFF;
  STEP(dtg_runtime_create(&options, &s->runtime));
  STEP(dtg_graph_create(s->runtime, &s->graph));
  STEP(dtg_model_create(s->graph, 1, &s->model));
  STEP(dtg_placeholder(s->graph, "x", DTG_F32, dims, 2, x));
  layer.units = 2;
  layer.activation = DTG_ACT_RELU;
  STEP(dtg_nn_dense(s->model, *x, &layer, &y));
  STEP(dtg_add1(s->graph, "ZerosLike", y, &zeros));
  STEP(dtg_nn_mean_squared_error(s->model, zeros, y, loss));
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.momentum = 0.9;
  STEP(dtg_nn_minimize(s->model, *loss, &optimizer, training));
  STEP(dtg_add1(s->graph, "Square", *x, &square));
  STEP(dtg_graph_add_gradients(s->graph, &square, 1, x, 1, NULL, &gradient));
  STEP(dtg_tensor_allocate(DTG_F32, dims, 2, &s->x));
  return NULL;
}

static dtg_error *run(struct scene *s, dtg_value x, dtg_value loss, dtg_value train) {
  const dtg_tensor *const feeds[] = {s->x};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_completion done = {0, NULL};
  dtg_value init;
  size_t count = 0;
  STEP(dtg_model_init(s->model, &init));
  STEP(dtg_session_connect(s->runtime, NULL, 0, s->graph, NULL, &s->session));
  STEP(dtg_run_target(s->session, init));
  args.feeds = &x;
  args.num_feeds = 1;
  args.fetches = &loss;
  args.num_fetches = 1;
  args.targets = &train;
  args.num_targets = 1;
  STEP(dtg_session_prepare(s->session, &args, &s->callable));
  STEP(dtg_callable_run(s->callable, feeds, 1, &s->fetched, 1, 0));
  args.feed_tensors = feeds;
  STEP(dtg_cq_create(&s->cq));
  STEP(dtg_session_run_async(s->session, &args, s->cq, 1, &s->run));
  /* It was started, so its end must come. */
  while (count == 0) STEP(dtg_cq_next(s->cq, &done, 0, 1, DTG_INFINITE, &count));
  return done.error;
}

static dtg_error *scenario(struct scene *s) {
  dtg_value x, loss;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_tensor *result = NULL;
  size_t nbytes = 0;
  STEP(build(s, &x, &loss, &training));
  STEP(run(s, x, loss, training.train));
  STEP(dtg_run_take_result(s->run, 0, &result));
  dtg_tensor_release(result);
  STEP(dtg_graph_serialize(s->graph, &s->bytes));
  STEP(dtg_graph_create(s->runtime, &s->copy));
  const char *bytes = dtg_string_data(s->bytes, &nbytes);
  return dtg_graph_import(s->copy, bytes, nbytes);
}

static void clean(struct scene *s) {
  dtg_run_release(s->run);
  dtg_cq_release(s->cq);
  dtg_string_release(s->bytes);
  dtg_tensor_release(s->x);
  dtg_tensor_release(s->fetched);
  dtg_callable_release(s->callable);
  dtg_session_release(s->session);
  dtg_model_release(s->model);
  dtg_graph_release(s->graph);
  dtg_graph_release(s->copy);
  dtg_runtime_release(s->runtime);
}

static dtg_code once(long fail_at, int go_on) {
  struct scene s = {0};
  dtg_error *error;
  dtg_code code;
  fail_from(fail_at, go_on);
  error = scenario(&s);
  fail_no_more();
  code = dtg_error_code(error);
  if (error && dtg_error_message(error, NULL)[0] == 0) code = DTG_UNKNOWN;
  if (error && code != DTG_RESOURCE_EXHAUSTED) {
    fprintf(stderr, "allocation %ld failed: %s: %s\n", fail_at, dtg_code_name(code), dtg_error_message(error, NULL));
  }
  dtg_error_release(error);
  clean(&s);
  return code;
}

static int given_back;
static void give_back(void *data, size_t nbytes, void *user) {
  (void)data, (void)nbytes, (void)user;
  given_back++;
}

/* Borrowed memory is not given back by a call that failed: it is still the caller's. */
static int loans(void) {
  static float lent[4];
  const int64_t dims[] = {4};
  dtg_tensor *held[100] = {NULL};
  long refused = 0;
  int bad = 0;
  for (long n = 1; n <= 100; n++) {
    DLManagedTensorVersioned *managed = NULL;
    dtg_error *error;
    given_back = 0;
    fail_from(n % 5 + 1, (int)(n % 2));
    error = dtg_tensor_create(DTG_F32, dims, 1, lent, sizeof lent, give_back, NULL, &held[n - 1]);
    if (!error) error = dtg_tensor_to_dlpack(held[n - 1], 0, &managed);
    fail_no_more();
    refused += error != NULL;
    bad += given_back != 0 || (error != NULL && managed != NULL) || (error != NULL && dtg_error_code(error) != DTG_RESOURCE_EXHAUSTED);
    dtg_error_release(error);
    if (managed) {
      dtg_tensor *again = NULL;
      error = dtg_tensor_from_dlpack(managed, &again);
      bad += error != NULL;
      dtg_error_release(error);
      dtg_tensor_release(again);
    }
  }
  given_back = 0;
  int made = 0;
  for (int i = 0; i < 100; i++) {
    made += held[i] != NULL;
    dtg_tensor_release(held[i]);
  }
  printf("%d loans, %ld refused\n", made, refused);
  return bad == 0 && refused > 0 && made > 0 && given_back == made;
}

int main(int argc, char **argv) {
  const long stride = argc > 1 ? atol(argv[1]) : 7;
  const long only = argc > 2 ? atol(argv[2]) : 0;
  size_t handles;
  long total, refused = 0, other = 0;
  if (once(-1, 0) != DTG_OK) return 1; /* what is made once per process is made */
  handles = dtg_live_handles();
  if (once(-1, 0) != DTG_OK) return 1;
  total = calls;
  alarm(280);
  if (!loans()) {
    fprintf(stderr, "borrowed memory was given back by a call that failed, or not once\n");
    return 1;
  }
  /* The first ones, where the tables are filled, are many and alike: there a coarse stride is enough. */
  for (long n = only ? only : 1; n <= (only ? only : total); n += stride) {
    const dtg_code code = once(n, (int)((n / stride) % 2));
    refused += code != DTG_OK;
    other += code != DTG_OK && code != DTG_RESOURCE_EXHAUSTED;
    if (dtg_live_handles() == handles) continue;
    fprintf(stderr, "allocation %ld failed: %zu handles were leaked\n", n, dtg_live_handles() - handles);
    return 1;
  }
  printf("%ld allocations, %ld failures were reported, %ld of them not as RESOURCE_EXHAUSTED\n", total, refused, other);
  if (once(-1, 0) != DTG_OK || other != 0) return 1;
  return refused > 0 || only ? 0 : 1;
}
#else
int main(void) {
  printf("the sanitizer brings its own allocator\n");
  return 0;
}
#endif
