/* digits.c: a small network learns handwritten digits through a server of this process. digits DIGITS, the file digits.csv.gz
 * beside the installed examples. The same in Go, Rust, Java: bindings/. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
int main(int argc, char **argv) {
  dtg_error *err = NULL; dtg_dataset *data = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL; dtg_cluster *cluster = NULL;
  dtg_server *server = NULL; dtg_session *session = NULL; dtg_tensor *batch[2]; const int64_t open[2] = {-1, 64}; int32_t more; float last;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer sgd = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT; dtg_value feeds[2], layer, logits, loss, init;
  csv.label = "c64"; hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10; sgd.rate = 0.1;
  TRY(dtg_dataset_csv(NULL, argc > 1 ? argv[1] : "tests/data/digits.csv.gz", DTG_STRLEN, &csv, &data)); TRY(dtg_dataset_scale(data, 0, 16));
  TRY(dtg_dataset_shuffle(data, 0, 1)); TRY(dtg_dataset_repeat(data, -1)); TRY(dtg_dataset_batch(data, 64, 1));
  TRY(dtg_graph_create(NULL, &graph)); TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, open, 2, &feeds[0])); TRY(dtg_placeholder(graph, "y", DTG_I64, open, 1, &feeds[1]));
  TRY(dtg_nn_dense(model, feeds[0], &hidden, &layer)); TRY(dtg_nn_dense(model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[1], logits, &loss)); TRY(dtg_nn_minimize(model, loss, &sgd, &training));
  TRY(dtg_model_init(model, &init)); TRY(dtg_cluster_parse("worker=127.0.0.1:0", DTG_STRLEN, &cluster));
  TRY(dtg_server_start(NULL, cluster, NULL, &server));
  TRY(dtg_session_connect(NULL, dtg_server_target(server), DTG_STRLEN, graph, NULL, &session)); TRY(dtg_run_target(session, init));
  for (int step = 1; step <= 200; step++) {
    TRY(dtg_dataset_next(data, batch, 2, &more)); err = dtg_step_f32(session, feeds, batch, 2, loss, training.train, &last);
    dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]); TRY(err);
    if (step % 40 == 0) printf("step %d: loss %.6f\n", step, last);
  }
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  if (err && argc < 2) fprintf(stderr, "usage: digits DIGITS, where DIGITS is digits.csv.gz, beside the installed examples\n");
  dtg_session_release(session); dtg_server_release(server); dtg_cluster_release(cluster); dtg_model_release(model);
  dtg_graph_release(graph); dtg_dataset_release(data); dtg_error_release(err); return err != NULL;
}
