/* train.c: the steps and the tests. The chief gives the variables their first values and keeps the updates going; every
 * worker, the chief too, then repeats its step. */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

volatile int interrupted;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

float scalar(const dtg_tensor *tensor) { return *(const float *)dtg_tensor_data(tensor, NULL); }
static int64_t integer(const dtg_tensor *tensor) { return *(const int64_t *)dtg_tensor_data(tensor, NULL); }
static int is_chief(const struct place *place) { return !place->cluster || place->task.is_chief; }

/* ---- before the first step ---- */

/* What happens every step and every test batch is prepared once: inputs, results and targets. */
static dtg_error *prepare_callables(struct training_run *run, const struct place *place, const struct network *n) {
  dtg_value feeds[2 * MAX_SHARDS];
  const dtg_replicated *r = &n->replicated;
  const dtg_value alone[3] = {n->loss, n->accuracy, n->training.gradient_norm};
  const dtg_value trained[2] = {r->train, n->ledger.advance};
  const dtg_value together[5] = {n->loss, n->accuracy, r->gradient_norm, r->local_step, r->next_step};
  dtg_run_args step = DTG_RUN_ARGS_INIT, test = DTG_RUN_ARGS_INIT, rate = DTG_RUN_ARGS_INIT;
  for (int i = 0; i < n->num_towers; i++) feeds[2 * i] = n->towers[i].images, feeds[2 * i + 1] = n->towers[i].labels;
  run->num_results = has_ps(place) ? 5 : 3;
  step.feeds = feeds;
  step.num_feeds = 2 * (size_t)n->num_towers;
  step.fetches = has_ps(place) ? together : alone;
  step.num_fetches = (size_t)run->num_results;
  step.targets = has_ps(place) ? trained : &n->training.train;
  step.num_targets = has_ps(place) && n->ledger.advance.id ? 2 : 1;
  TRY(dtg_session_prepare(run->session, &step, &run->step));
  test.feeds = feeds;
  test.num_feeds = 2;
  test.fetches = &n->towers[0].correct;
  test.num_fetches = 1;
  TRY(dtg_session_prepare(run->session, &test, &run->test));
  rate.fetches = &n->rate;
  rate.num_fetches = 1;
  TRY(dtg_session_prepare(run->session, &rate, &run->rate));
  for (int i = 0; i < run->num_results; i++) TRY(dtg_tensor_allocate(i < 3 ? DTG_F32 : DTG_I64, NULL, 0, &run->results[i]));
  return NULL;
}

static dtg_error *wait_ready(struct training_run *run, const struct network *n) {
  TRY(dtg_model_wait_ready(n->model, run->session, 60 * SECOND));
  return n->ledger.progress ? dtg_model_wait_ready(n->ledger.progress, run->session, 60 * SECOND) : NULL;
}

static dtg_error *run_if_any(struct training_run *run, dtg_value target) { return target.id ? dtg_run_target(run->session, target) : NULL; }

/* Alone, the sets hold the place of the data too; in a cluster the count of steps tells each worker where its own is. */
static dtg_error *open_sets(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                            const struct options *options) {
  dtg_checkpoint_options sets = DTG_CHECKPOINT_OPTIONS_INIT;
  char name[32];
  if (!options->checkpoint || !is_chief(place)) return NULL;
  sets.directory = options->checkpoint;
  sets.every_steps = options->every;
  TRY(dtg_checkpoint_open(n->model, run->session, &sets, &run->sets));
  for (int i = 0; i < data->shards && !place->cluster; i++) {
    snprintf(name, sizeof name, "train-%d", i);
    TRY(dtg_checkpoint_add_data(run->sets, name, DTG_STRLEN, data->train[i]));
  }
  return NULL;
}

/* First values, or those of the newest set. */
static dtg_error *start_or_go_on(struct training_run *run, const struct network *n, int64_t *step) {
  *step = 0;
  if (!run->sets) return dtg_run_target(run->session, n->init);
  TRY(dtg_checkpoint_resume(run->sets, step, NULL));
  if (*step > 0) printf("going on after step %lld\n", (long long)*step);
  return NULL;
}

/* Whatever has values keeps them: an earlier life of the chief gave them, and the workers have trained since. They begin when
 * all have values, so before that it does no harm to begin anew. */
static dtg_error *begin_as_chief(struct training_run *run, const struct network *n) {
  int ready = 1;
  TRY(has_values(run->session, n->graph, n->model, &ready));
  if (n->ledger.progress) TRY(has_values(run->session, n->graph, n->ledger.progress, &ready));
  if (ready) return dtg_model_recover(n->model, run->session, 60 * SECOND);
  int64_t step = 0;
  TRY(start_or_go_on(run, n, &step));
  TRY(run_if_any(run, n->ledger.init));
  return run_if_any(run, n->replicated.chief_init);
}

static dtg_error *start_updates(struct training_run *run, const struct network *n) {
  if (!n->replicated.update.id) return NULL;
  return dtg_session_run_repeatedly(run->session, &n->replicated.update, 1, run->ended, 0, &run->updates);
}

static dtg_error *stop_updates(struct training_run *run) {
  dtg_completion end = {0, NULL};
  size_t count = 0;
  if (!run->updates) return NULL;
  dtg_run_cancel(run->updates);
  TRY(dtg_cq_next(run->ended, &end, 0, 1, 10 * SECOND, &count));
  dtg_run_release(run->updates);
  run->updates = NULL;
  return count > 0 ? end.error : NULL;
}

/* A parameter server was lost in the middle of a step. When it is back, whoever is the chief sees to it that the step was made
 * everywhere or nowhere, and the count of steps tells whether it has to be made again. */
static dtg_error *go_on_after_loss(struct training_run *run, const struct place *place, const struct network *n) {
  dtg_error_release(stop_updates(run));
  TRY(dtg_model_recover(n->model, run->session, 120 * SECOND));
  if (n->ledger.progress) TRY(dtg_model_wait_ready(n->ledger.progress, run->session, 60 * SECOND));
  TRY(find_progress(run->session, place, n, &run->steps));
  run->losses++;
  return start_updates(run, n);
}

static int is_loss(const dtg_error *error) { return dtg_error_code(error) == DTG_UNAVAILABLE || dtg_error_code(error) == DTG_ABORTED; }

/* A worker was lost. When it is there again, all have what the furthest of them has; `target` says how: one that begins has first values
 * before that. Who is lost meanwhile is waited for as well. */
static dtg_error *level_workers(struct training_run *run, const struct place *place, dtg_value target) {
  for (;;) {
    TRY(dtg_group_reform(place->group, 0, 120 * SECOND));
    dtg_error *error = dtg_run_target(run->session, target);
    if (!is_loss(error) || interrupted) return error;
    dtg_error_release(error);
  }
}

static dtg_error *begin_as_equal(struct training_run *run, const struct place *place, const struct network *n) {
  dtg_error *error = dtg_run_target(run->session, n->init);
  if (!is_loss(error)) return error;
  dtg_error_release(error);
  return level_workers(run, place, n->init);
}

static dtg_error *go_on_with_equals(struct training_run *run, const struct place *place, const struct network *n) {
  TRY(level_workers(run, place, n->level));
  TRY(find_progress(run->session, place, n, &run->steps));
  run->losses++;
  return NULL;
}

dtg_error *prepare_run(struct training_run *run, const struct place *place, const struct network *n, struct data *data,
                       const struct options *options) {
  const dtg_replicated *r = &n->replicated;
  TRY(connect_session(place, n, &run->session));
  TRY(open_sets(run, place, n, data, options));
  if (!place->cluster) TRY(start_or_go_on(run, n, &run->begun_at));
  if (place->group) TRY(begin_as_equal(run, place, n));
  if (has_ps(place) && is_chief(place)) TRY(begin_as_chief(run, n));
  if (has_ps(place)) TRY(wait_ready(run, n));
  TRY(run_if_any(run, r->local_init));
  if (place->cluster) {
    TRY(find_progress(run->session, place, n, &run->begun_at));
    if (!data->elements) TRY(skip_steps(data, run->begun_at));
  }
  if (data->elements) TRY(dtg_dataset_deal(data->train[0], n->model, run->session, 0));
  run->steps = run->taken = run->begun_at;
  if (place->coordinates) return prepare_desk(run, n);
  TRY(prepare_callables(run, place, n));
  TRY(dtg_cq_create(&run->ended));
  return start_updates(run, n);
}

/* ---- what the person at the terminal sees ---- */

/* A launcher that shows our status itself says so; what is drawn is then ours all the same. */
static int draws(void) {
  const char *term = getenv("TERM");
  return getenv("DTG_PROGRESS") || (isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0);
}

/* One line, drawn over itself ten times a second, never wider than the terminal. */
void show_progress(const struct training_run *run, const struct place *place, double since) {
  static double drawn;
  if (!draws() || (now() - drawn < 0.1 && run->steps < run->total)) return;
  drawn = now();
  const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR");
  const int width = columns && atoi(columns) > 10 ? atoi(columns) - 1 : 79;
  const int color = !(no_color && *no_color);
  const double seconds = run->seconds + now() - since, speed = (double)run->images / seconds;
  char line[256];
  if (is_chief(place)) {
    snprintf(line, sizeof line, "step %lld/%lld  loss %.4f  %.1f%%  %.0f s left  %.0f images/s", (long long)run->steps,
             (long long)run->total, run->loss, 100 * scalar(run->results[1]),
             seconds * (double)(run->total - run->steps) / (double)(run->steps - run->begun_at), speed);
  } else {
    snprintf(line, sizeof line, "%.0f images/s", speed);
  }
  printf("\r%s%.*s%s\033[K", color ? "\033[36m" : "", width, line, color ? "\033[0m" : "");
  fflush(stdout);
}

static void wipe_progress(void) {
  if (draws()) printf("\r\033[K");
}

static void show_epoch(const struct training_run *run, int epoch, int epochs) {
  wipe_progress();
  if (run->steps == run->begun_at) printf("epoch %d/%d  test accuracy %.2f%%\n", epoch, epochs, 100 * run->accuracy);
  else
    printf("epoch %d/%d  loss %.4f  test accuracy %.2f%%  %.1f s  %.0f images/s\n", epoch, epochs, run->loss, 100 * run->accuracy,
           run->seconds, (double)run->images / run->seconds);
  fflush(stdout);
}

/* ---- steps ---- */

static dtg_error *point(const struct training_run *run, const char *curve, double value) {
  return dtg_event_writer_scalar(run->events, curve, DTG_STRLEN, run->steps, value);
}

dtg_error *write_events(const struct training_run *run, const struct place *place, double seconds) {
  dtg_tensor *rate = NULL;
  TRY(dtg_callable_run(run->rate, NULL, 0, &rate, 1, 0));
  dtg_error *error = point(run, "learning_rate", scalar(rate));
  dtg_tensor_release(rate);
  TRY(error);
  TRY(point(run, "loss", run->loss));
  TRY(point(run, "accuracy", scalar(run->results[1])));
  TRY(point(run, "gradient_norm", scalar(run->results[2])));
  if (has_ps(place) && !place->coordinates) TRY(point(run, "staleness", (double)run->staleness));
  return point(run, "step_time", seconds);
}

static void release_batch(struct training_run *run) {
  for (int i = 0; i < 2 * MAX_SHARDS; i++) dtg_tensor_release(run->batch[i]), run->batch[i] = NULL;
}

/* The next batch of every tower; at the end of the data it begins again. */
dtg_error *next_batch(struct training_run *run, const struct data *data) {
  release_batch(run);
  for (int i = 0; i < data->shards; i++) {
    int32_t more = 0;
    TRY(dtg_dataset_next(data->train[i], &run->batch[2 * i], 2, &more));
    if (more) continue;
    TRY(dtg_dataset_restart(data->train[i]));
    TRY(dtg_dataset_next(data->train[i], &run->batch[2 * i], 2, &more));
  }
  run->taken++;
  return NULL;
}

static dtg_error *train_batch(struct training_run *run, const struct place *place, const struct data *data, const struct options *options) {
  const dtg_tensor *feeds[2 * MAX_SHARDS];
  const size_t count = 2 * (size_t)data->shards;
  for (size_t i = 0; i < count; i++) feeds[i] = run->batch[i];
  const double started = now();
  TRY(dtg_callable_run(run->step, feeds, count, run->results, (size_t)run->num_results, 60 * SECOND));
  run->loss = scalar(run->results[0]);
  /* How many updates there were between reading the variables and applying what came of them. */
  if (has_ps(place)) run->staleness = integer(run->results[4]) - 1 - integer(run->results[3]);
  if (run->steps % EVENTS_EVERY == 0) TRY(write_events(run, place, now() - started));
  for (int i = 0; i < data->shards; i++) run->images += dtg_tensor_dim(run->batch[2 * i], 0);
  /* A token of the same step asks for it once more: somebody else was lost before it was applied. An elastic worker may have missed some.
   */
  run->steps = has_ps(place) && in_step(options) ? integer(run->results[4]) : run->steps + 1;
  return NULL;
}

/* The batch hangs on the step, so one that has to be made again gives the same. */
static dtg_error *next_step(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                            const struct options *options) {
  while (run->taken <= run->steps) TRY(next_batch(run, data));
  dtg_error *error = train_batch(run, place, data, options);
  const int lost = place->cluster && is_loss(error);
  if (!lost || interrupted || job_has_ended(place)) return error;
  dtg_error_release(error);
  return place->group ? go_on_with_equals(run, place, n) : go_on_after_loss(run, place, n);
}

static dtg_error *test_here(struct training_run *run, dtg_dataset *data, int64_t *correct, int64_t *seen) {
  int32_t more = 0;
  dtg_tensor *batch[2], *count = NULL;
  TRY(dtg_dataset_restart(data));
  for (;;) {
    TRY(dtg_dataset_next(data, batch, 2, &more));
    if (!more) break;
    const dtg_tensor *feeds[2] = {batch[0], batch[1]};
    dtg_error *error = dtg_callable_run(run->test, feeds, 2, &count, 1, 0);
    if (!error) *correct += integer(count);
    *seen += dtg_tensor_dim(batch[0], 0);
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
    TRY(error);
  }
  dtg_tensor_release(count);
  return NULL;
}

static dtg_error *test_all(struct training_run *run, dtg_dataset *data) {
  int64_t correct = 0, seen = 0;
  TRY(run->desk ? coordinate_test(run, data, &correct, &seen) : test_here(run, data, &correct, &seen));
  run->accuracy = seen ? (double)correct / (double)seen : 0;
  return point(run, "test_accuracy", run->accuracy);
}

/* ---- epochs ---- */

/* How far this worker is. With "sync-replicas" a fast worker makes more steps than a slow one, so there the token tells, which
 * is the count of updates. */
static int64_t progress(const struct training_run *run, const struct place *place, const struct options *options) {
  if (!has_ps(place) || run->steps == run->begun_at || sync_mode(options) != DTG_SYNC_REPLICAS) return run->steps;
  return integer(run->results[4]);
}

static dtg_error *train_until(int64_t goal, struct training_run *run, const struct place *place, const struct network *n,
                              const struct data *data, const struct options *options) {
  const double started = now();
  while (progress(run, place, options) < goal && !(interrupted && is_chief(place))) {
    TRY(next_step(run, place, n, data, options));
    if (run->sets) TRY(dtg_checkpoint_reached(run->sets, run->steps, NULL));
    show_progress(run, place, started);
  }
  run->seconds += now() - started;
  return NULL;
}

/* When all have made their last step. One that is started again until then gets the weights, and finds that it has nothing to do. */
static dtg_error *end_with_equals(struct training_run *run, const struct place *place, const struct network *n) {
  for (;;) {
    dtg_error *error = exchange_reports(run, place);
    if (!is_loss(error) || interrupted) return error;
    dtg_error_release(error);
    TRY(go_on_with_equals(run, place, n));
  }
}

/* When the results are written. Whoever is lost before that makes all come here again, behind the exchange of reports. */
dtg_error *part_from_equals(struct training_run *run, const struct place *place, const struct network *n) {
  for (;;) {
    dtg_error *error = dtg_group_barrier(place->group, 0);
    if (!is_loss(error) || interrupted) return error;
    dtg_error_release(error);
    TRY(go_on_with_equals(run, place, n));
    TRY(end_with_equals(run, place, n));
  }
}

/* A batch that was dealt to this worker, and a step with it. When the epoch is over, for all workers at once, `*more` becomes 0. What a
 * step was not made with, as a task was lost, comes again. */
static dtg_error *next_dealt(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                             const struct options *options, int64_t *epoch, int32_t *more) {
  release_batch(run);
  dtg_error *error = dtg_dataset_next(data->train[0], run->batch, 2, more);
  if (!error) error = dtg_dataset_dealt(data->train[0], epoch, NULL);
  if (!error && *more && *epoch < options->epochs) error = train_batch(run, place, data, options);
  if (!is_loss(error) || interrupted || job_has_ended(place)) return error;
  dtg_error_release(error);
  *more = 1;
  return go_on_after_loss(run, place, n);
}

/* "elastic": whoever comes begins in the epoch that is now. */
static dtg_error *train_dealt(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                              const struct options *options) {
  int64_t epoch = 0;
  while (epoch < options->epochs && !(interrupted && is_chief(place))) {
    int32_t more = 1;
    const double started = now();
    TRY(next_dealt(run, place, n, data, options, &epoch, &more));
    run->seconds += now() - started;
    if (run->sets && more) TRY(dtg_checkpoint_reached(run->sets, run->steps, NULL));
    if (more) show_progress(run, place, now());
    if (more) continue;
    if (is_chief(place) && epoch < options->epochs) {
      TRY(test_all(run, data->test));
      show_epoch(run, (int)epoch, options->epochs);
    }
    TRY(dtg_dataset_restart(data->train[0]));
  }
  TRY(run_if_any(run, n->replicated.leave));
  if (!is_chief(place)) return NULL;
  if (!interrupted) TRY(take_reports(run, place, n));
  TRY(test_all(run, data->test));
  show_epoch(run, (int)(epoch < options->epochs ? epoch : options->epochs), options->epochs);
  return NULL;
}

static dtg_error *train_epochs(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                               const struct options *options) {
  const int64_t passed = run->begun_at / data->steps; /* epochs, by earlier lives; the last one is tested again */
  for (int epoch = passed < options->epochs ? (int)passed + 1 : options->epochs;
       epoch <= options->epochs && !(interrupted && is_chief(place)); epoch++) {
    const int64_t goal = epoch * data->steps;
    TRY(run->desk ? coordinate_until(goal, run, place, data) : train_until(goal, run, place, n, data, options));
    /* "ssp": it stays until all are done, and nobody is to wait for its next step. */
    if (epoch == options->epochs) TRY(run_if_any(run, n->replicated.leave));
    if (!is_chief(place)) continue;
    if (epoch == options->epochs && !interrupted && !run->desk)
      TRY(place->group ? end_with_equals(run, place, n) : take_reports(run, place, n));
    TRY(test_all(run, data->test));
    show_epoch(run, epoch, options->epochs);
  }
  return NULL;
}

dtg_error *train(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                 const struct options *options) {
  run->total = data->steps * options->epochs;
  TRY(data->elements ? train_dealt(run, place, n, data, options) : train_epochs(run, place, n, data, options));
  if (!is_chief(place)) wipe_progress();
  if (interrupted) printf("interrupted after step %lld\n", (long long)run->steps);
  if (is_chief(place)) return NULL;
  return place->group ? end_with_equals(run, place, n) : send_report(run, place, n);
}

dtg_error *save_set(struct training_run *run) {
  return run->sets && run->steps > run->begun_at ? dtg_checkpoint_save(run->sets, run->steps, 0) : NULL;
}

/* After this nothing changes the variables any more. */
dtg_error *finish_run(struct training_run *run) {
  dtg_error *error = stop_updates(run);
  if (dtg_error_code(error) != DTG_CANCELLED && !run->losses) return error;
  dtg_error_release(error);
  return NULL;
}

void release_run(struct training_run *run) {
  for (int i = 0; i < 5; i++) dtg_tensor_release(run->results[i]);
  release_batch(run);
  release_desk(run->desk);
  dtg_run_release(run->updates);
  dtg_cq_release(run->ended);
  dtg_callable_release(run->step);
  dtg_callable_release(run->test);
  dtg_callable_release(run->rate);
  dtg_session_release(run->session);
  dtg_event_writer_release(run->events);
  dtg_checkpoint_release(run->sets);
}
