/* predict.c: a fit leaves model.dtg, and another program predicts with nothing but that file: what its columns mean, what the classes are
 * called, all is in it. capi/PREDICT.md shows it piece by piece. */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

static int write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (!file) return 0;
  return (fputs(text, file) >= 0) & (fclose(file) == 0);
}

/* A table with a label of names, a fit, and what it leaves in its directory. */
static dtg_error *train(const char *table, const char *directory) {
  dtg_error *err = NULL; dtg_dataset *data = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL; dtg_trainer *trainer = NULL;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_optimizer adam = DTG_OPTIMIZER_INIT; dtg_dense classes = DTG_DENSE_INIT;
  dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT; dtg_fit how = DTG_FIT_INIT; const int64_t open[2] = {-1, 2}; dtg_value feeds[2], logits;
  csv.label = "kind";
  TRY(dtg_dataset_csv(NULL, table, DTG_STRLEN, &csv, &data));
  TRY(dtg_dataset_batch(data, 6, 0));
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &feeds[0]));
  TRY(dtg_placeholder(graph, "y", DTG_I64, open, 1, &feeds[1]));
  classes.units = 3;
  TRY(dtg_nn_dense(model, feeds[0], &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], logits, &what.loss));
  adam.kind = DTG_OPT_ADAM; adam.rate = 0.1;
  what.feeds = feeds; what.num_feeds = 2; what.outputs = &logits; what.num_outputs = 1; what.optimizer = &adam;
  TRY(dtg_trainer_create(model, &what, &trainer));
  how.epochs = 100; how.directory = directory; how.progress = DTG_PROGRESS_OFF; how.checkpoint_epochs = 100;
  TRY(dtg_trainer_fit(trainer, data, NULL, &how, NULL));
done:
  dtg_trainer_release(trainer); dtg_model_release(model); dtg_graph_release(graph); dtg_dataset_release(data);
  return err;
}

/* Another program: it has model.dtg and rows without the label. */
static dtg_error *predict(const char *file, const char *rows) {
  dtg_error *err = NULL; dtg_session *session = NULL; dtg_model *model = NULL; dtg_string *schema = NULL; dtg_dataset *data = NULL;
  dtg_tensor *names = NULL, *batch = NULL, *scores = NULL; dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_run_args run = DTG_RUN_ARGS_INIT;
  dtg_value x, output; int32_t more; size_t length;
  TRY(dtg_model_load(NULL, file, DTG_STRLEN, &session, &model));
  TRY(dtg_model_endpoint(model, "x", DTG_STRLEN, &x)); /* dtg_model_endpoints, or `dtg graph model.dtg`, lists them */
  TRY(dtg_model_endpoint(model, "output", DTG_STRLEN, &output));
  TRY(dtg_model_classes(model, "output", DTG_STRLEN, &names));
  /* The columns in the order and by the numbers of the training; a label need not be there. */
  TRY(dtg_model_metadata(model, "schema", DTG_STRLEN, &schema));
  csv.schema = dtg_string_data(schema, &csv.schema_len);
  TRY(dtg_dataset_csv(NULL, rows, DTG_STRLEN, &csv, &data));
  TRY(dtg_dataset_batch(data, 2, 0));
  run.feeds = &x; run.feed_tensors = (const dtg_tensor *const *)&batch; run.num_feeds = 1;
  run.fetches = &output; run.fetched = &scores; run.num_fetches = 1;
  for (;;) {
    TRY(dtg_dataset_next(data, &batch, 1, &more));
    if (!more) break;
    TRY(dtg_session_run(session, &run));
    const int64_t classes = dtg_tensor_dim(scores, 1); const float *row = dtg_tensor_data(scores, NULL);
    for (int64_t i = 0, best; i < dtg_tensor_dim(scores, 0); i++, row += classes) {
      best = 0;
      for (int64_t k = 1; k < classes; k++) if (row[k] > row[best]) best = k;
      const char *name = dtg_tensor_string(names, (size_t)best, &length);
      printf("a %.*s\n", (int)length, name);
    }
    dtg_tensor_release(batch); dtg_tensor_release(scores); batch = scores = NULL;
  }
done:
  dtg_tensor_release(batch); dtg_tensor_release(scores); dtg_tensor_release(names); dtg_dataset_release(data); dtg_string_release(schema);
  dtg_session_release(session); dtg_model_release(model);
  return err;
}

int main(void) {
  dtg_error *err = NULL; char place[] = "/tmp/dtg-predict-XXXXXX"; const char *base = getenv("TMPDIR");
  if ((base && chdir(base) != 0) || !mkdtemp(place) || chdir(place) != 0) return perror("no folder to work in"), 1;
  if (!write_file("train.csv", "weight,legs,kind\n4,4,cat\n5,4,cat\n0.1,2,bird\n0.2,2,bird\n40,2,child\n35,2,child\n") ||
      !write_file("new.csv", "weight,legs\n4.5,4\n0.15,2\n38,2\n")) return perror("cannot write"), 1;
  TRY(train("train.csv", "run"));
  TRY(predict("run/model.dtg", "new.csv"));
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  const int failed = err != NULL;
  dtg_error_release(err);
  return failed | (system("rm -rf train.csv new.csv run") != 0) | (chdir("/") != 0) | (rmdir(place) != 0);
}
