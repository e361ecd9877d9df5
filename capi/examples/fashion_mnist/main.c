/* main.c: trains a small convolutional network on the 60,000 images of Fashion-MNIST and tests it on the other 10,000.
 * Where the data set is absent (Debian: package dataset-fashion-mnist) it takes the 8x8 digits that come with the library: --data . where
 * digits.csv.gz is, as beside the installed examples.
 *
 *   example_fashion_mnist                                                       alone, in one process
 *   dtg run --local --ps 1 --workers 2 -- example_fashion_mnist --mode sync     a cluster; see --help
 *   dtg run --local --ps 0 --workers 4 -- example_fashion_mnist --strategy multi-worker    another, without parameter servers
 *   dtg run --local --chief --workers 2 -- example_fashion_mnist --strategy coordinator         one task feeds workers that are servers
 *
 * Ctrl-C ends early and saves. With --checkpoint DIR, sets of all that training has come to are saved there while it goes on, and the
 * same command goes on from the newest.
 */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <signal.h>
#include <stdio.h>

static void on_interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

/* What the chief, or the only process, leaves behind. */
static dtg_error *leave_results(const struct options *options, const struct place *place, const struct data *data, const struct network *n,
                                struct training_run *run, int *written) {
  if (place->coordinates) TRY(report_for_workers(run, place));
  else if (!run->reports[0].steps) run->reports[0] = report_of(run, place);
  TRY(finish_run(run));
  TRY(check_ledger(options, run, place, n, data));
  TRY(save_set(run));
  TRY(save_weights(options, n, run));
  TRY(dtg_event_writer_close(run->events));
  *written = write_summary(options, place, data, run) && *written;
  /* After Ctrl-C the chief ends the job, whatever the others are at; and workers that a coordinator directs never say that they are done.
   */
  if (has_ps(place))
    TRY(interrupted || place->coordinates ? dtg_session_end_job_now(run->session, 0) : dtg_session_end_job(run->session, 0));
  if (*written) printf("%.2f%% of the test images are right; weights, curves and summary are in %s\n", 100 * run->accuracy, options->run);
  return NULL;
}

static dtg_error *work(const struct options *options, struct place *place, int argc, char **argv, int *written) {
  struct data data = {0};
  struct network network = {0};
  struct training_run run = {0};
  const int chief = place->task.is_chief;
  dtg_error *error = open_data(options, place, &data);
  if (!error) error = build_network(options, place, &data, &network);
  if (!error) error = prepare_run(&run, place, &network, &data, options);
  if (!error) error = open_events(options, place, run.begun_at, &run.events); /* makes the directory */
  if (!error && chief) *written = write_run(options, argc, argv);
  if (!error) error = train(&run, place, &network, &data, options);
  if (!error && chief) error = leave_results(options, place, &data, &network, &run, written);
  if (!error && place->group && !interrupted) error = part_from_equals(&run, place, &network);
  if (!error && !chief && has_ps(place)) error = dtg_session_end_job(run.session, 0); /* waits for the others */
  if (error && !chief && (interrupted || job_has_ended(place))) dtg_error_release(error), error = NULL;
  release_run(&run);
  release_ledger(&network.ledger);
  dtg_strategy_release(network.strategy);
  dtg_model_release(network.model);
  dtg_graph_release(network.graph);
  close_data(&data);
  return error;
}

int main(int argc, char **argv) {
  struct options options;
  struct place place = {0};
  struct sigaction interrupt = {.sa_handler = on_interrupt};
  const int code = read_options(argc, argv, &options);
  if (code) return code - 1;
  sigaction(SIGINT, &interrupt, NULL);

  int written = 1;
  dtg_error *error = find_place(&options, &place);
  if (!error) error = is_worker(&place) ? work(&options, &place, argc, argv, &written) : serve(&place, &options);
  if (error) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(error)), dtg_error_message(error, NULL));
  leave_place(&place);
  const int failed = error != NULL || !written;
  dtg_error_release(error);
  return failed;
}
