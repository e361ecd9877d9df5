/* ledger.c: what must outlive a worker: how many updates it has made, and in the end how it did. Both are variables on the parameter
 * server that counts the steps.
 *
 * progress/worker-1 is advanced in the run that applies the update, so it is exactly as far as the weights are, wherever a process
 * dies. A worker that is started again reads it and goes on behind it. report/worker-1 has no value until that worker is done; it is
 * given once, so a worker may report as often as it likes. Where workers do not train asynchronously, the count of updates alone
 * says how far each of them is. */
#include "fashion_mnist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* "KIND/worker-I" for each worker from `first` on; `mine` receives this worker's, if it is among them. */
static dtg_error *add_variables(const struct place *place, const char *kind, int first, dtg_variable_spec *spec, dtg_model *model,
                                dtg_variable *mine) {
  char name[64];
  for (int i = first; i < place->task.num_workers; i++) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    snprintf(name, sizeof name, "%s/worker-%d", kind, i);
    spec->name = name;
    TRY(dtg_model_add_variable(model, spec, &variable));
    if (i == place->task.id) *mine = variable;
  }
  return NULL;
}

static dtg_error *add_progress(const struct place *place, struct network *n) {
  const int64_t one = 1;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable mine = DTG_VARIABLE_INIT;
  dtg_value step;
  spec.dtype = DTG_I64;
  spec.not_trainable = 1;
  TRY(dtg_model_create(n->graph, 0, &n->ledger.progress));
  TRY(add_variables(place, "progress", 0, &spec, n->ledger.progress, &mine));
  n->ledger.mine = mine.read;
  TRY(dtg_model_init(n->ledger.progress, &n->ledger.init));
  TRY(dtg_const_of(n->graph, DTG_I64, NULL, 0, &one, sizeof one, &step));
  /* Behind the update: not counted before it is made. */
  TRY(dtg_graph_push_controls(n->graph, &n->replicated.train, 1));
  TRY(dtg_add_assign_add_variable_op(n->graph, "advance", mine.handle, step, &n->ledger.advance));
  return dtg_graph_pop_controls(n->graph);
}

/* The chief does not report to itself. */
static dtg_error *add_reports(const struct place *place, struct network *n) {
  const int64_t dims[1] = {REPORT_VALUES};
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable mine = DTG_VARIABLE_INIT;
  spec.dtype = DTG_F64;
  spec.not_trainable = 1;
  spec.dims = dims;
  spec.rank = 1;
  TRY(dtg_model_create(n->graph, 0, &n->ledger.reports));
  TRY(add_variables(place, "report", 1, &spec, n->ledger.reports, &mine));
  if (place->task.is_chief) return NULL;
  TRY(dtg_placeholder(n->graph, "report", DTG_F64, dims, 1, &n->ledger.report_in));
  return dtg_add_assign_variable_op(n->graph, "give_report", mine.handle, n->ledger.report_in, NULL, &n->ledger.report);
}

dtg_error *build_ledger(const struct options *options, const struct place *place, struct network *n) {
  dtg_variable step = DTG_VARIABLE_INIT;
  const char *device = NULL;
  TRY(dtg_model_global_step(n->model, &step));
  TRY(dtg_value_device(n->graph, step.handle, &device, NULL));
  TRY(dtg_graph_push_device(n->graph, device, DTG_STRLEN)); /* goes before the turns of the parameter servers */
  if (each_for_itself(options)) TRY(add_progress(place, n));
  TRY(add_reports(place, n));
  return dtg_graph_pop_device(n->graph);
}

/* ---- how far everybody is ---- */

static dtg_error *fetch(dtg_session *session, dtg_value value, void *out, size_t size) {
  dtg_tensor *tensor = NULL;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &value;
  args.fetched = &tensor;
  args.num_fetches = 1;
  TRY(dtg_session_run(session, &args));
  memcpy(out, dtg_tensor_data(tensor, NULL), size);
  dtg_tensor_release(tensor);
  return NULL;
}

/* `*all` becomes 0 when a variable of the model has no value yet. Unlike dtg_model_wait_ready it answers at once, and however
 * long that takes, it is the answer. */
dtg_error *has_values(dtg_session *session, dtg_graph *graph, const dtg_model *model, int *all) {
  for (size_t i = 0; i < dtg_model_variable_count(model); i++) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    dtg_value flag;
    uint8_t has = 0;
    TRY(dtg_model_variable(model, i, &variable));
    TRY(dtg_graph_push_colocation(graph, variable.handle));
    TRY(dtg_add_var_is_initialized_op(graph, NULL, variable.handle, &flag));
    TRY(dtg_graph_pop_colocation(graph));
    TRY(fetch(session, flag, &has, sizeof has));
    *all &= has;
  }
  return NULL;
}

dtg_error *find_progress(dtg_session *session, const struct place *place, const struct network *n, int64_t *steps) {
  *steps = 0;
  if (!place->cluster) return NULL;
  if (place->group || place->coordinates) return fetch(session, n->training.global_step, steps, sizeof *steps);
  return fetch(session, n->ledger.progress ? n->ledger.mine : n->replicated.global_step, steps, sizeof *steps);
}

/* The updates of each worker, where it counts them. */
static dtg_error *check_workers(struct training_run *run, const struct network *n) {
  struct tally *tally = &run->tally;
  int64_t sum = 0;
  for (size_t i = 0; i < dtg_model_variable_count(n->ledger.progress); i++) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    int64_t made = 0;
    TRY(dtg_model_variable(n->ledger.progress, i, &variable));
    TRY(fetch(run->session, variable.read, &made, sizeof made));
    sum += made;
    if (made < run->total) tally->lost += run->total - made;
    if (made > run->total) tally->doubled += made - run->total;
  }
  tally->expected = sum;
  return NULL;
}

static dtg_error *fetch_sums(const struct training_run *run, const struct network *n, const char *name, double *values, size_t count) {
  dtg_variable variable = DTG_VARIABLE_INIT;
  TRY(dtg_model_find_variable(n->model, name, DTG_STRLEN, &variable));
  return fetch(run->session, variable.read, values, count * sizeof *values);
}

/* "elastic": in how many updates each batch has been, and how many contributions were applied, of whomever. */
static dtg_error *check_records(struct training_run *run, const struct network *n, const struct options *options, const struct place *place,
                                const struct data *data) {
  struct tally *tally = &run->tally;
  const int64_t size = options->batch > place->task.num_workers ? options->batch / place->task.num_workers : 1;
  double *times = calloc((size_t)data->elements, sizeof *times), applied[MAX_WORKERS] = {0}, contributions = 0;
  dtg_error *error = times ? fetch_sums(run, n, "sync/dealt", times, (size_t)data->elements) : NULL;
  if (!error) error = fetch_sums(run, n, "sync/contributions", applied, (size_t)place->task.num_workers);
  for (int64_t i = 0; times && !error && i < data->elements; i++) {
    const int64_t images = i + 1 < data->elements ? size : data->images - i * size, made = (int64_t)times[i];
    tally->counted += made * images;
    if (made < options->epochs) tally->lost += (options->epochs - made) * images;
    if (made > options->epochs) tally->doubled += (made - options->epochs) * images;
  }
  free(times);
  TRY(error);
  for (int i = 0; i < place->task.num_workers; i++) contributions += applied[i];
  tally->expected = data->images * options->epochs;
  printf("ledger: %" PRId64 " records dealt, %" PRId64 " committed in %.0f contributions to %" PRId64 " updates, %" PRId64 " lost, %" PRId64
         " doubled\n",
         tally->expected, tally->counted, contributions, run->steps, tally->lost, tally->doubled);
  return NULL;
}

/* Every update that a worker was told of must be in the count of its own and in the count of all, once. */
dtg_error *check_ledger(const struct options *options, struct training_run *run, const struct place *place, const struct network *n,
                        const struct data *data) {
  struct tally *tally = &run->tally;
  if (!place->cluster || sync_mode(options) == DTG_SYNC_REPLICAS || interrupted) return NULL;
  if (data->elements) return check_records(run, n, options, place, data);
  TRY(fetch(run->session, place->group || place->coordinates ? n->training.global_step : n->replicated.global_step, &tally->counted,
            sizeof tally->counted));
  tally->expected = run->total;
  if (n->ledger.progress) TRY(check_workers(run, n));
  if (tally->counted < tally->expected) tally->lost += tally->expected - tally->counted;
  if (tally->counted > tally->expected) tally->doubled += tally->counted - tally->expected;
  if (n->ledger.progress) tally->expected = run->total * place->task.num_workers;
  printf("ledger: %" PRId64 " updates, %" PRId64 " lost, %" PRId64 " doubled\n", tally->counted, tally->lost, tally->doubled);
  return NULL;
}

/* ---- how the workers did ---- */

struct report report_of(const struct training_run *run, const struct place *place) {
  return (struct report){(double)run->steps, (double)run->images, run->seconds, place->restarts};
}

dtg_error *send_report(struct training_run *run, const struct place *place, const struct network *n) {
  const struct report report = report_of(run, place);
  const int64_t dims[1] = {REPORT_VALUES};
  dtg_tensor *tensor = NULL;
  TRY(dtg_tensor_allocate(DTG_F64, dims, 1, &tensor));
  memcpy(dtg_tensor_mutable_data(tensor), &report, sizeof report);
  const dtg_tensor *feed = tensor;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &n->ledger.report_in;
  args.feed_tensors = &feed;
  args.num_feeds = 1;
  args.targets = &n->ledger.report;
  args.num_targets = 1;
  dtg_error *error = dtg_session_run(run->session, &args);
  dtg_tensor_release(tensor);
  if (dtg_error_code(error) == DTG_PERMISSION_DENIED) dtg_error_release(error), error = NULL; /* an earlier life has reported */
  return error;
}

/* The chief waits here until the last worker has made its last step. */
dtg_error *take_reports(struct training_run *run, const struct place *place, const struct network *n) {
  run->reports[0] = report_of(run, place);
  /* Of a range nobody knows who comes, and who is gone for good. */
  if (!has_ps(place) || place->min_workers) return NULL;
  for (int seconds = 0;; seconds++) {
    dtg_error *error = dtg_model_wait_ready(n->ledger.reports, run->session, SECOND);
    if (!error) break;
    if (dtg_error_code(error) != DTG_DEADLINE_EXCEEDED || seconds >= 600) return error;
    dtg_error_release(error);
    if (interrupted) return NULL;
  }
  for (int i = 1; i < place->task.num_workers && i < MAX_WORKERS; i++) {
    dtg_variable variable = DTG_VARIABLE_INIT;
    TRY(dtg_model_variable(n->ledger.reports, (size_t)i - 1, &variable));
    TRY(fetch(run->session, variable.read, &run->reports[i], sizeof run->reports[i]));
  }
  return NULL;
}

/* Every worker hears of all, which is also how they know that nobody needs them any more. */
dtg_error *exchange_reports(struct training_run *run, const struct place *place) {
  const struct report report = report_of(run, place);
  const int64_t dims[2] = {1, REPORT_VALUES};
  dtg_tensor *mine = NULL, *all = NULL;
  size_t bytes = 0;
  TRY(dtg_tensor_allocate(DTG_F64, dims, 2, &mine));
  memcpy(dtg_tensor_mutable_data(mine), &report, sizeof report);
  dtg_error *error = dtg_group_all_gather(place->group, mine, NULL, &all);
  const void *data = error ? NULL : dtg_tensor_data(all, &bytes);
  if (data && bytes <= sizeof run->reports) memcpy(run->reports, data, bytes);
  dtg_tensor_release(mine);
  dtg_tensor_release(all);
  return error;
}

void release_ledger(struct ledger *ledger) {
  dtg_model_release(ledger->progress);
  dtg_model_release(ledger->reports);
}
