/* mesh.c: a small transformer on a mesh of 2 x 2 x 2 devices: two shares of the batch, layers cut over two devices, and two stages that
 * four micro-batches follow each other through; the losses are those of the same layers on one device. The devices are emulated ones, so it
 * runs anywhere. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <math.h>
#include <stdio.h>

#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
enum { kSteps = 20, kBatch = 16, kPlaces = 6, kLetters = 13, kWidth = 8, kBlocks = 2 };

/* A block on whatever mesh: attention over the places before, and two dense layers, the wide one cut by columns and the narrow one by rows. */
static dtg_error *add_block(dtg_graph *graph, dtg_model *model, dtg_mesh *mesh, size_t ranks, dtg_value *x) {
  dtg_error *err = NULL;
  dtg_attention look = DTG_ATTENTION_INIT;
  dtg_dense wide = DTG_DENSE_INIT, narrow = DTG_DENSE_INIT;
  dtg_value seen, parts[8];
  look.heads = 4;
  look.key_width = 4;
  look.causal = 1;
  wide.units = 4 * kWidth;
  wide.activation = DTG_ACT_GELU;
  narrow.units = kWidth;
  TRY(dtg_nn_layer_norm(model, *x, NULL, &seen));
  TRY(dtg_mesh_attention(mesh, seen, seen, &look, &seen));
  TRY(dtg_add2(graph, "AddV2", *x, seen, x));
  TRY(dtg_nn_layer_norm(model, *x, NULL, &seen));
  TRY(dtg_mesh_column_dense(mesh, seen, &wide, parts, ranks));
  TRY(dtg_mesh_row_dense(mesh, parts, ranks, &narrow, &seen));
  TRY(dtg_add2(graph, "AddV2", *x, seen, x));
done:
  return err;
}

static dtg_error *add_loss(dtg_graph *graph, dtg_model *model, dtg_mesh *mesh, size_t ranks, dtg_value x, dtg_value labels, dtg_value *loss) {
  dtg_error *err = NULL;
  dtg_dense head = DTG_DENSE_INIT;
  dtg_value parts[8], logits, flat, rows, all;
  const int64_t letters[2] = {-1, kLetters}, every[1] = {-1};
  head.units = kLetters;
  TRY(dtg_mesh_column_dense(mesh, x, &head, parts, ranks));
  TRY(dtg_mesh_together(mesh, parts, ranks, -1, &logits));
  TRY(dtg_const_i64s(graph, letters, 2, &rows));
  TRY(dtg_const_i64s(graph, every, 1, &all));
  TRY(dtg_add2(graph, "Reshape", logits, rows, &logits));
  TRY(dtg_add2(graph, "Reshape", labels, all, &flat));
  TRY(dtg_nn_sparse_softmax_cross_entropy(model, flat, logits, loss));
done:
  return err;
}

/* Stage by stage, as the mesh asks for it. */
static dtg_error *build(dtg_graph *graph, dtg_model *model, dtg_mesh *mesh, const dtg_mesh_options *grid, const dtg_value batch[2]) {
  dtg_error *err = NULL;
  dtg_mesh_step step = DTG_MESH_STEP_INIT;
  dtg_embedding table = DTG_EMBEDDING_INIT;
  int32_t more = 1;
  table.rows = kLetters;
  table.width = kWidth;
  TRY(dtg_mesh_begin(mesh, batch, 2, 4, 0));
  for (;;) {
    dtg_value x;
    TRY(dtg_mesh_next(mesh, &step, &more));
    if (!more) break;
    if (step.stage == 0) TRY(dtg_mesh_embedding(mesh, step.batch[0], &table, DTG_CUT_ROWS, &x));
    else x = step.inputs[0];
    for (int64_t b = step.stage * kBlocks / grid->pipe; b < (step.stage + 1) * kBlocks / grid->pipe; b++)
      TRY(add_block(graph, model, mesh, (size_t)grid->model, &x));
    if (step.stage + 1 == grid->pipe) TRY(add_loss(graph, model, mesh, (size_t)grid->model, x, step.batch[1], &x));
    TRY(dtg_mesh_give(mesh, &x, 1));
  }
done:
  return err;
}

static dtg_error *train(int64_t data, int64_t ranks, int64_t pipe, float losses[kSteps]) {
  static const char *const devices[8] = {"/device:EMU:0", "/device:EMU:1", "/device:EMU:2", "/device:EMU:3",
                                         "/device:EMU:4", "/device:EMU:5", "/device:EMU:6", "/device:EMU:7"};
  dtg_error *err = NULL;
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_mesh *mesh = NULL;
  dtg_session *session = NULL;
  dtg_tensor *fed[2] = {NULL, NULL};
  dtg_value batch[2], loss, init;
  const int64_t dims[2] = {kBatch, kPlaces};
  dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  grid.data = data;
  grid.model = ranks;
  grid.pipe = pipe;
  grid.devices = devices;
  grid.num_devices = (size_t)(data * ranks * pipe);
  grid.zero = DTG_ZERO_GRADIENTS;
  options.emu_devices = (int32_t)grid.num_devices;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.01;
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "letters", DTG_I32, dims, 2, &batch[0]));
  TRY(dtg_placeholder(graph, "next", DTG_I32, dims, 2, &batch[1]));
  TRY(dtg_mesh_create(model, &grid, &mesh));
  TRY(build(graph, model, mesh, &grid, batch));
  TRY(dtg_mesh_minimize(mesh, &adam, &training));
  TRY(dtg_mesh_result(mesh, 0, &loss));
  TRY(dtg_model_init(model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, &options, &session));
  TRY(dtg_run_target(session, init));
  for (int step = 0; step < kSteps; step++) {
    for (int i = 0; i < 2; i++) {
      int32_t *letters;
      TRY(dtg_tensor_allocate(DTG_I32, dims, 2, &fed[i]));
      letters = (int32_t *)dtg_tensor_mutable_data(fed[i]);
      for (int k = 0; k < kBatch * kPlaces; k++) letters[k] = (k / kPlaces + step + (k % kPlaces + i) * 5) % kLetters;
    }
    TRY(dtg_step_f32(session, batch, fed, 2, loss, training.train, &losses[step]));
    for (int i = 0; i < 2; i++) {
      dtg_tensor_release(fed[i]);
      fed[i] = NULL;
    }
  }
done:
  for (int i = 0; i < 2; i++) dtg_tensor_release(fed[i]);
  dtg_session_release(session);
  dtg_mesh_release(mesh);
  dtg_model_release(model);
  dtg_graph_release(graph);
  return err;
}

int main(void) {
  float alone[kSteps], together[kSteps];
  dtg_error *err = train(1, 1, 1, alone);
  if (!err) err = train(2, 2, 2, together);
  if (err) {
    fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
    dtg_error_release(err);
    return 1;
  }
  for (int step = 0; step < kSteps; step++) {
    if (step % 5 == 4) printf("step %d: loss %.6f on 2 x 2 x 2 devices, %.6f on one\n", step + 1, together[step], alone[step]);
    if (fabsf(alone[step] - together[step]) > 1e-4f) {
      fprintf(stderr, "step %d: the losses differ\n", step + 1);
      return 1;
    }
  }
  return alone[kSteps - 1] < alone[0] ? 0 : 1;
}
