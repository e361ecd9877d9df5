/* resume.c: training that can be stopped at any time: resume DIGITS DIR STEPS trains digits up to STEPS, from wherever DIR says it is.
 * DIGITS is digits.csv.gz, which is installed beside the examples (in the source tree tests/data/digits.csv.gz). The same in Go, Rust, Java:
 * bindings/; any of them goes on where another one stopped, to the same loss. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

int main(int argc, char **argv) {
  dtg_error *err = NULL; dtg_dataset *data = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL; dtg_session *session = NULL;
  dtg_checkpoint *sets = NULL; dtg_tensor *batch[2]; const int64_t open[2] = {-1, 64}; int32_t more; float last = 0;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT; dtg_value feeds[2], layer, logits, loss;
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  const char *const path = argc > 1 ? argv[1] : "tests/data/digits.csv.gz";
  const int64_t steps = argc > 3 ? strtoll(argv[3], NULL, 10) : 20;
  int64_t step = 0;
  options.directory = argc > 2 ? argv[2] : "resume.sets"; options.every_steps = 50;
  csv.label = "c64"; hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10;
  adam.kind = DTG_OPT_ADAM; adam.rate = 0.002;
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &data)); TRY(dtg_dataset_scale(data, 0, 16));
  TRY(dtg_dataset_shuffle(data, 0, 1)); TRY(dtg_dataset_repeat(data, -1)); TRY(dtg_dataset_batch(data, 64, 1));
  TRY(dtg_graph_create(NULL, &graph)); TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &feeds[0])); TRY(dtg_placeholder(graph, "y", DTG_I64, open, 1, &feeds[1]));
  TRY(dtg_nn_dense(model, feeds[0], &hidden, &layer)); TRY(dtg_nn_dense(model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], logits, &loss)); TRY(dtg_nn_minimize(model, loss, &adam, &training));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, NULL, &session));
  TRY(dtg_checkpoint_open(model, session, &options, &sets)); TRY(dtg_checkpoint_add_data(sets, "train", DTG_STRLEN, data));
  TRY(dtg_checkpoint_resume(sets, &step, NULL));
  printf("from step %lld\n", (long long)step);
  while (step < steps) {
    TRY(dtg_dataset_next(data, batch, 2, &more)); err = dtg_step_f32(session, feeds, batch, 2, loss, training.train, &last);
    dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]); TRY(err);
    TRY(dtg_checkpoint_reached(sets, ++step, NULL));
  }
  TRY(dtg_checkpoint_save(sets, step, 0));
  printf("step %lld: loss %.6f\n", (long long)step, last);
done:
  if (err && argc < 2) fprintf(stderr, "usage: resume DIGITS [DIR [STEPS]], where DIGITS is digits.csv.gz, beside the installed examples\n");
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_checkpoint_release(sets); dtg_session_release(session); dtg_model_release(model); dtg_graph_release(graph);
  dtg_dataset_release(data); dtg_error_release(err); return err != NULL;
}
