/* first_hour.c: what one types in the first hour: data in two parts, a model, training, a test, and the trained model served from one file.
 * capi/FIRST_HOUR.md goes through it; the same in Go, Rust and Java. One thread. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

int main(int argc, char **argv) {
  dtg_error *err = NULL; dtg_dataset *data = NULL, *train = NULL, *test = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL, *served = NULL;
  dtg_session *session = NULL, *server = NULL; dtg_string *numbers = NULL; dtg_tensor *batch[2] = {NULL, NULL}, *answer = NULL;
  const char *file = argc > 2 ? argv[2] : "digits.dtg"; const int64_t open[2] = {-1, 64}; int32_t more; float loss_now, right;
  dtg_value feeds[2], x, y, normal, layer, logits, loss, accuracy, axis, digit, init;

  /* Data: one file in two parts. What is fitted is fitted on the training part. */
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_split parts = DTG_SPLIT_INIT;
  csv.label = "c64"; /* the last column; all others together are the features */
  parts.fraction = 0.2; parts.seed = 1; parts.stratify = 1; parts.classes = 1;
  TRY(dtg_dataset_csv(NULL, argc > 1 ? argv[1] : "tests/data/digits.csv.gz", DTG_STRLEN, &csv, &data));
  TRY(dtg_dataset_split(data, &parts, &train, &test));
  TRY(dtg_dataset_fit_normalization(train, 0, DTG_NORMALIZE_STANDARD, &numbers));
  TRY(dtg_dataset_shuffle(train, 0, 1));
  TRY(dtg_dataset_batch(train, 32, 1));
  TRY(dtg_dataset_batch(test, 1000, 0));

  /* A model: what is fed, layers, a loss, an optimizer. */
  dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT; dtg_optimizer adam = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT;
  hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10;
  adam.kind = DTG_OPT_ADAMW; adam.rate = 0.003;
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &x));
  TRY(dtg_placeholder(graph, "y", DTG_I64, open, 1, &y));
  TRY(dtg_nn_normalize(model, x, dtg_string_data(numbers, NULL), DTG_STRLEN, &normal));
  TRY(dtg_nn_dense(model, normal, &hidden, &layer));
  TRY(dtg_nn_dense(model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, y, logits, &loss));
  TRY(dtg_nn_accuracy(model, y, logits, &accuracy));
  TRY(dtg_nn_minimize(model, loss, &adam, &training));
  TRY(dtg_model_init(model, &init));

  /* Training: one run per step. */
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, NULL, &session));
  TRY(dtg_run_target(session, init));
  feeds[0] = x; feeds[1] = y;
  for (int epoch = 1; epoch <= 5; epoch++) {
    for (;;) {
      TRY(dtg_dataset_next(train, batch, 2, &more));
      if (!more) break;
      err = dtg_step_f32(session, feeds, batch, 2, loss, training.train, &loss_now);
      dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]); batch[0] = batch[1] = NULL;
      if (err) goto done;
    }
    TRY(dtg_dataset_restart(train));
    printf("epoch %d: loss %.4f\n", epoch, loss_now);
  }

  /* A test with what it has never seen. */
  TRY(dtg_dataset_next(test, batch, 2, &more));
  dtg_value none = {0};
  TRY(dtg_step_f32(session, feeds, batch, 2, accuracy, none, &right));
  printf("right: %.4f\n", right);

  /* The trained model as one file, served without what built it. */
  const char *in_name = "pixels", *out_name = "digit";
  dtg_export what = DTG_EXPORT_INIT; dtg_run_args run = DTG_RUN_ARGS_INIT;
  const int32_t classes_axis = 1;
  TRY(dtg_const_of(graph, DTG_I32, NULL, 0, &classes_axis, sizeof classes_axis, &axis));
  TRY(dtg_add2(graph, "ArgMax", logits, axis, &digit));
  what.input_names = &in_name; what.inputs = &x; what.num_inputs = 1;
  what.output_names = &out_name; what.outputs = &digit; what.num_outputs = 1;
  TRY(dtg_model_export(model, session, &what, file, DTG_STRLEN));
  TRY(dtg_model_load(NULL, file, DTG_STRLEN, &server, &served));
  TRY(dtg_model_endpoint(served, in_name, DTG_STRLEN, &x));
  TRY(dtg_model_endpoint(served, out_name, DTG_STRLEN, &digit));
  run.feeds = &x; run.feed_tensors = (const dtg_tensor *const *)batch; run.num_feeds = 1;
  run.fetches = &digit; run.fetched = &answer; run.num_fetches = 1;
  TRY(dtg_session_run(server, &run));
  const int64_t *found = dtg_tensor_data(answer, NULL), *label = dtg_tensor_data(batch[1], NULL);
  for (int i = 0; i < 5; i++) printf("a %lld, taken for a %lld\n", (long long)label[i], (long long)found[i]);
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]); dtg_tensor_release(answer); dtg_session_release(server); dtg_model_release(served); dtg_session_release(session); dtg_model_release(model);
  dtg_graph_release(graph); dtg_string_release(numbers); dtg_dataset_release(test); dtg_dataset_release(train); dtg_dataset_release(data);
  dtg_error_release(err);
  return err != NULL;
}
