/* two_devices.c: two towers of a small network train on two accelerators, each on its half of the batch; the losses are those of one device,
 * to the bit. The accelerators are emulated ones, so it runs anywhere; with --cpu on two virtual CPUs. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <string.h>

#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
enum { kSteps = 20, kRows = 32, kIn = 8 };

/* Trains with a tower on each of the two devices; what the second tower loses at each step goes to `losses`. Variables are where the first tower is. */
static dtg_error *train(const char *const devices[2], int32_t emu, int32_t cpu, float losses[kSteps]) {
  dtg_error *err = NULL;
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_session *session = NULL;
  dtg_tensor *batch[4] = {NULL, NULL, NULL, NULL};
  const int64_t images[2] = {kRows, kIn};
  const int64_t labels[1] = {kRows};
  dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  dtg_value feeds[4], layer, logits, loss[2], init;
  hidden.units = 16;
  hidden.activation = DTG_ACT_RELU;
  classes.units = 3;
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.rate = 0.1;
  options.emu_devices = emu;
  options.cpu_devices = cpu;
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  for (int tower = 0; tower < 2; tower++) {
    TRY(dtg_graph_push_device(graph, devices[tower], DTG_STRLEN));
    TRY(dtg_placeholder(graph, NULL, DTG_F32, images, 2, &feeds[2 * tower]));
    TRY(dtg_placeholder(graph, NULL, DTG_I64, labels, 1, &feeds[2 * tower + 1]));
    TRY(dtg_nn_dense(model, feeds[2 * tower], &hidden, &layer));
    TRY(dtg_nn_dense(model, layer, &classes, &logits));
    TRY(dtg_nn_sparse_softmax_cross_entropy(model, feeds[2 * tower + 1], logits, &loss[tower]));
    TRY(dtg_graph_pop_device(graph));
    if (tower == 0) TRY(dtg_model_next_tower(model));
  }
  TRY(dtg_nn_minimize_towers(model, loss, 2, &momentum, &training));
  TRY(dtg_model_init(model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, &options, &session));
  TRY(dtg_run_target(session, init));
  for (int step = 0; step < kSteps; step++) {
    for (int tower = 0; tower < 2; tower++) {
      float *x;
      int64_t *y;
      TRY(dtg_tensor_allocate(DTG_F32, images, 2, &batch[2 * tower]));
      TRY(dtg_tensor_allocate(DTG_I64, labels, 1, &batch[2 * tower + 1]));
      x = (float *)dtg_tensor_mutable_data(batch[2 * tower]);
      y = (int64_t *)dtg_tensor_mutable_data(batch[2 * tower + 1]);
      for (int row = 0; row < kRows; row++) {
        y[row] = (row + step + tower) % 3;
        for (int i = 0; i < kIn; i++) x[row * kIn + i] = (float)((row * 7 + i * 3 + step) % 5) / 5.0f + (i % 3 == y[row] ? 1.0f : 0.0f);
      }
    }
    TRY(dtg_step_f32(session, feeds, batch, 4, loss[1], training.train, &losses[step]));
    for (int i = 0; i < 4; i++) {
      dtg_tensor_release(batch[i]);
      batch[i] = NULL;
    }
  }
done:
  for (int i = 0; i < 4; i++) dtg_tensor_release(batch[i]);
  dtg_session_release(session);
  dtg_model_release(model);
  dtg_graph_release(graph);
  return err;
}

int main(int argc, char **argv) {
  static const char *const one[2] = {"/device:CPU:0", "/device:CPU:0"};
  static const char *const cpus[2] = {"/device:CPU:0", "/device:CPU:1"};
  static const char *const emus[2] = {"/device:EMU:0", "/device:EMU:1"};
  const int cpu = argc > 1 && strcmp(argv[1], "--cpu") == 0;
  float alone[kSteps], together[kSteps];
  dtg_error *err = train(one, 0, 1, alone);
  if (!err) err = train(cpu ? cpus : emus, cpu ? 0 : 2, 2, together);
  if (err) {
    fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
    dtg_error_release(err);
    return 1;
  }
  for (int step = 0; step < kSteps; step++) {
    if (step % 5 == 4) printf("step %d: loss %.6f, on one device %.6f\n", step + 1, together[step], alone[step]);
    if (memcmp(&alone[step], &together[step], sizeof(float)) != 0) {
      fprintf(stderr, "step %d: the losses differ\n", step + 1);
      return 1;
    }
  }
  return alone[kSteps - 1] < alone[0] ? 0 : 1;
}
