/* fit.c: a small network learns handwritten digits by dtg_trainer_fit: epochs, validation, early stopping, a checkpoint after each epoch. Killed
 * and started again it goes on where it was. fit [DIGITS [DIRECTORY [EPOCHS]]]: DIGITS is digits.csv.gz, which is installed beside the examples
 * (in the source tree tests/data/digits.csv.gz); what comes of it is in DIRECTORY. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

/* One line an epoch; a program with a terminal may draw a bar from the events of steps. */
static dtg_error *tell(void *user, dtg_trainer *trainer, const dtg_fit_event *event) {
  (void)user; (void)trainer;
  printf("epoch %lld:", (long long)event->epoch);
  for (size_t i = 0; i < event->num_values; i++) printf(" %s %.4f", event->names[i], event->values[i]);
  printf("\n");
  return NULL;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; dtg_dataset *rows = NULL, *train = NULL, *test = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL;
  dtg_trainer *trainer = NULL; const int64_t open[2] = {-1, 64}; dtg_value feeds[2], layer, logits; const dtg_value no_weights = {0};
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT; dtg_metric metric = DTG_METRIC_INIT; dtg_metric_values accuracy = DTG_METRIC_VALUES_INIT;
  dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT; dtg_fit how = DTG_FIT_INIT; dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  const char *const path = argc > 1 ? argv[1] : "tests/data/digits.csv.gz";
  csv.label = "c64"; hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10;
  adam.kind = DTG_OPT_ADAM; adam.rate = 0.003; metric.kind = DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY;
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &rows)); TRY(dtg_dataset_split(rows, NULL, &train, &test));
  TRY(dtg_dataset_scale(train, 0, 16)); TRY(dtg_dataset_shuffle(train, 0, 1)); TRY(dtg_dataset_batch(train, 32, 0));
  TRY(dtg_dataset_scale(test, 0, 16)); TRY(dtg_dataset_batch(test, 100, 0));
  TRY(dtg_graph_create(NULL, &graph)); TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &feeds[0])); TRY(dtg_placeholder(graph, "y", DTG_I64, open, 1, &feeds[1]));
  TRY(dtg_nn_dense(model, feeds[0], &hidden, &layer)); TRY(dtg_nn_dense(model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], logits, &what.loss));
  TRY(dtg_nn_metric(model, &metric, feeds[1], logits, no_weights, &accuracy));
  what.feeds = feeds; what.num_feeds = 2; what.optimizer = &adam;
  TRY(dtg_trainer_create(model, &what, &trainer)); TRY(dtg_trainer_add_metric(trainer, "accuracy", DTG_STRLEN, &accuracy));
  stopping.patience = 3; stopping.restore_best = 1; callbacks.epoch_end = tell;
  how.early_stopping = &stopping; how.directory = argc > 2 ? argv[2] : NULL; how.epochs = argc > 3 ? strtoll(argv[3], NULL, 10) : 5;
  TRY(dtg_trainer_fit(trainer, train, test, &how, &callbacks));
done:
  if (err && argc < 2) fprintf(stderr, "usage: fit DIGITS [DIRECTORY [EPOCHS]], where DIGITS is digits.csv.gz, beside the installed examples\n");
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_trainer_release(trainer); dtg_model_release(model); dtg_graph_release(graph); dtg_dataset_release(rows);
  dtg_dataset_release(train); dtg_dataset_release(test); dtg_error_release(err); return err != NULL;
}
