/* coordinate.c: --strategy coordinator: the chief feeds every batch, and whichever worker is free makes a step of it; workers and parameter
 * servers have no program but their server. A worker that dies gives its step back to another one, and it counts once. What each did is
 * known from the results: every one comes with the number of the worker that made it. */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

/* Enough that no worker waits for the next batch, few enough that no weights are older than that many updates. */
enum { PER_WORKER = 2, MOST_UNDER_WAY = 64, RESULTS = 4 };

struct under_way {
  dtg_remote_value *value;
  int64_t images;
  double since;
};

struct desk {
  dtg_coordinator *coordinator;
  dtg_closure *step, *test;
  struct under_way steps[MOST_UNDER_WAY]; /* a ring: step i is at i modulo its size */
  int64_t given;                          /* those before it were given out; run->steps is the oldest that has not ended */
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

dtg_error *prepare_desk(struct training_run *run, const struct network *n) {
  struct desk *desk = run->desk = calloc(1, sizeof *desk);
  const dtg_value feeds[2] = {n->towers[0].images, n->towers[0].labels}, none = {0};
  const dtg_value results[RESULTS] = {n->loss, n->accuracy, n->training.gradient_norm, n->maker};
  dtg_run_args step = DTG_RUN_ARGS_INIT, test = DTG_RUN_ARGS_INIT, rate = DTG_RUN_ARGS_INIT;
  if (!desk) return dtg_error_create(DTG_RESOURCE_EXHAUSTED, "out of memory", DTG_STRLEN);
  desk->given = run->begun_at;
  TRY(dtg_coordinator_create(run->session, NULL, &desk->coordinator));
  step.feeds = test.feeds = feeds;
  step.num_feeds = test.num_feeds = 2;
  step.fetches = results;
  step.num_fetches = RESULTS;
  step.targets = &n->training.train;
  step.num_targets = 1;
  TRY(dtg_coordinator_prepare(desk->coordinator, &step, n->worker, &desk->step));
  test.fetches = &n->towers[0].correct;
  test.num_fetches = 1;
  TRY(dtg_coordinator_prepare(desk->coordinator, &test, none, &desk->test));
  rate.fetches = &n->rate;
  rate.num_fetches = 1;
  return dtg_session_prepare(run->session, &rate, &run->rate);
}

static dtg_error *give_out(struct training_run *run, const struct data *data) {
  struct desk *desk = run->desk;
  struct under_way *mine = &desk->steps[desk->given % MOST_UNDER_WAY];
  TRY(next_batch(run, data));
  mine->images = dtg_tensor_dim(run->batch[0], 0);
  mine->since = now();
  const dtg_tensor *feeds[2] = {run->batch[0], run->batch[1]};
  TRY(dtg_coordinator_schedule(desk->coordinator, desk->step, feeds, 2, NULL, &mine->value));
  desk->given++;
  return NULL;
}

static void count_for(struct training_run *run, int64_t worker, int64_t images) {
  if (worker < 0 || worker >= MAX_WORKERS) return;
  run->reports[worker].steps += 1;
  run->reports[worker].images += (double)images;
}

/* The oldest step: when it has ended, what came of it is the latest that is known. */
static dtg_error *take_back(struct training_run *run, const struct place *place) {
  struct under_way *oldest = &run->desk->steps[run->steps % MOST_UNDER_WAY];
  dtg_tensor *results[RESULTS] = {NULL};
  TRY(dtg_remote_value_fetch(oldest->value, results, RESULTS, 300 * SECOND, NULL));
  dtg_remote_value_release(oldest->value);
  oldest->value = NULL;
  for (int i = 0; i < 3; i++) dtg_tensor_release(run->results[i]), run->results[i] = results[i];
  count_for(run, *(const int64_t *)dtg_tensor_data(results[3], NULL), oldest->images);
  dtg_tensor_release(results[3]);
  run->loss = scalar(run->results[0]);
  run->images += oldest->images;
  if (run->steps % EVENTS_EVERY == 0) TRY(write_events(run, place, now() - oldest->since));
  run->steps++;
  return NULL;
}

/* After Ctrl-C nothing more is given out. */
dtg_error *coordinate_until(int64_t goal, struct training_run *run, const struct place *place, const struct data *data) {
  const int64_t workers = count_workers(place), most = workers * PER_WORKER < MOST_UNDER_WAY ? workers * PER_WORKER : MOST_UNDER_WAY;
  const double started = now();
  while (run->steps < goal) {
    const int64_t given = run->desk->given;
    if (given < goal && given - run->steps < most && !interrupted) {
      TRY(give_out(run, data));
      continue;
    }
    if (given == run->steps) break;
    TRY(take_back(run, place));
    show_progress(run, place, started);
  }
  run->seconds += now() - started;
  return NULL;
}

static dtg_error *take_count(dtg_remote_value *value, int64_t *correct) {
  dtg_tensor *count = NULL;
  TRY(dtg_remote_value_fetch(value, &count, 1, 300 * SECOND, NULL));
  *correct += *(const int64_t *)dtg_tensor_data(count, NULL);
  dtg_tensor_release(count);
  return NULL;
}

/* The workers test, too: all batches are given out, then counted. */
dtg_error *coordinate_test(struct training_run *run, dtg_dataset *data, int64_t *correct, int64_t *seen) {
  dtg_remote_value *values[MAX_TESTS] = {NULL};
  dtg_error *error = dtg_dataset_restart(data);
  int count = 0;
  for (int32_t more = 1; !error && count < MAX_TESTS; count++) {
    dtg_tensor *batch[2] = {NULL, NULL};
    error = dtg_dataset_next(data, batch, 2, &more);
    if (error || !more) break;
    const dtg_tensor *feeds[2] = {batch[0], batch[1]};
    *seen += dtg_tensor_dim(batch[0], 0);
    error = dtg_coordinator_schedule(run->desk->coordinator, run->desk->test, feeds, 2, NULL, &values[count]);
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
  }
  for (int i = 0; i < count; i++) {
    if (!error) error = take_count(values[i], correct);
    dtg_remote_value_release(values[i]);
  }
  return error;
}

/* A worker that is only just coming back would not hear that the job ends, and serve on. */
static dtg_error *wait_for_workers(struct training_run *run) {
  const struct timespec moment = {0, 50000000};
  for (int lost = 1, i = 0; lost && i < 200; i++) {
    dtg_string *status = NULL;
    if (i) nanosleep(&moment, NULL);
    TRY(dtg_coordinator_status(run->desk->coordinator, &status));
    lost = strstr(dtg_string_data(status, NULL), "\"lost\"") != NULL;
    dtg_string_release(status);
  }
  return NULL;
}

/* How often a worker was lost, which the coordinator tells as JSON, in the order of the workers. */
dtg_error *report_for_workers(struct training_run *run, const struct place *place) {
  static const char losses[] = "\"losses\":";
  dtg_string *status = NULL;
  TRY(wait_for_workers(run));
  TRY(dtg_coordinator_status(run->desk->coordinator, &status));
  const char *text = dtg_string_data(status, NULL);
  for (int i = 0; i < count_workers(place) && i < MAX_WORKERS; i++) {
    run->reports[i].seconds = run->seconds;
    text = text ? strstr(text, losses) : NULL;
    if (text) run->reports[i].recoveries = strtod(text += sizeof losses - 1, NULL);
  }
  dtg_string_release(status);
  return NULL;
}

void release_desk(struct desk *desk) {
  if (!desk) return;
  for (int i = 0; i < MOST_UNDER_WAY; i++) dtg_remote_value_release(desk->steps[i].value);
  dtg_closure_release(desk->step);
  dtg_closure_release(desk->test);
  dtg_coordinator_release(desk->coordinator);
  free(desk);
}
