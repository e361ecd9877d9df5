/* dtg/mesh.h: models that are larger than a device: layers cut over several devices, stages one behind the other on more of them, and
 * copies of all that for shares of the batch, in one job.
 *
 * A mesh is a grid of devices with three named axes, any of which may be 1:
 *
 *   data    each rank trains on a share of the batch with copies of the variables of its own; gradients are averaged over the ranks
 *   model   layers are cut: each rank has a part of the weights and computes with that (dtg_mesh_column_dense and those below it)
 *   pipe    the model is a row of stages on ranks of their own; each share is cut into micro-batches, which follow each other through
 *           them, one forward and one backward by turns (1F1B): stage s of S holds what S - s micro-batches need for their way back
 *
 * The host builds each stage for each micro-batch on each data rank, in the order that the mesh says, and gives it what comes out of it;
 * ways back, copies, edges between devices and the order of things are the mesh's:
 *
 *   dtg_mesh_options grid = DTG_MESH_OPTIONS_INIT;
 *   grid.data = 2; grid.model = 2; grid.pipe = 2; grid.devices = devices; grid.num_devices = 8;
 *   dtg_mesh_create(model, &grid, &mesh);
 *   dtg_mesh_begin(mesh, (dtg_value[]){ids, labels}, 2, 4, 0);                          4 micro-batches
 *   dtg_mesh_step step = DTG_MESH_STEP_INIT;
 *   for (int32_t more = 1; dtg_mesh_next(mesh, &step, &more) == NULL && more;) {
 *     if (step.stage == 0) { ... of step.batch[0] ... } else { ... of step.inputs[0] ... }
 *     dtg_mesh_give(mesh, &out, 1);                                                  the last stage gives its loss
 *   }
 *   dtg_mesh_minimize(mesh, &optimizer, &training);     dtg_mesh_result(mesh, 0, &loss);
 *
 * All of it is nodes of the model's graph, which any session with the devices runs: devices of one process, or of several tasks that the
 * session drives. Within a step the open device scope is the first device of its group; layers of dtg/nn.h and dtg/layers.h stand there.
 *
 * The same layers have the same names, first values and checkpoints whatever the mesh: a weight that is cut is, like a variable in shards
 * (dtg/sharded.h), parts of one whole, "dense/kernel/part_0" and so on, that is saved and restored as one tensor, in one piece or in
 * other parts; copies of a variable are one variable. So a model may be trained on one mesh, go on on another, and be served by one device.
 * Losses are those of one device but for the order of additions. Every micro-batch must build the same layers in the same order; random
 * layers draw anew for each.
 *
 * Single: one thread at a time uses a mesh, the one that builds its model's graph. Errors of all functions: INVALID_ARGUMENT (a closed
 * handle, a value of another graph, a number that does not fit), FAILED_PRECONDITION (out of turn), RESOURCE_EXHAUSTED. A failure of
 * dtg_mesh_next or dtg_mesh_give abandons the build. */
#ifndef DTG_MESH_H
#define DTG_MESH_H

#include <dtg/base.h>
#include <dtg/layers.h>
#include <dtg/nn.h>

DTG_BEGIN_DECLS

typedef struct dtg_mesh dtg_mesh;

/* Where what an optimizer keeps of a variable stands, and who makes its update, on the ranks of the data axis. */
typedef int32_t dtg_mesh_zero;
enum {
  DTG_ZERO_NONE = 0,   /* on each rank beside its copy: every rank applies every gradient */
  DTG_ZERO_STATES = 1, /* each variable's on one rank, which applies the gradient and gives the others what the variable became (ZeRO-1) */
  DTG_ZERO_GRADIENTS = 2 /* the same, and gradients are added up there and go nowhere else (ZeRO-2) */
};

/* The grid. Device (d, m, p) is devices[(d * model + m) * pipe + p]; each stands in the grid once. Read during the call only. */
/* clang-format off */
typedef struct dtg_mesh_options {
  size_t struct_size;
  int64_t data;                /* 0: 1; so are the others */
  int64_t model;
  int64_t pipe;
  const char *const *devices;  /* data x model x pipe names, each ends with NUL: "/device:EMU:0", "/job:worker/task:1/device:CPU:0" */
  size_t num_devices;
  dtg_mesh_zero zero;          /* variables are dealt out whole, by size, as PyTorch's ZeroRedundancyOptimizer does */
  int32_t reserved0;           /* 0 */
} dtg_mesh_options;
#define DTG_MESH_OPTIONS_INIT {sizeof(dtg_mesh_options), 0, 0, 0, NULL, 0, DTG_ZERO_NONE, 0}

/* What to build next, as the library tells it; the host sets struct_size (DTG_MESH_STEP_INIT) and nothing else. The arrays are the
 * mesh's, until its next call. */
typedef struct dtg_mesh_step {
  size_t struct_size;
  int64_t stage;            /* 0 to pipe - 1 */
  int64_t data;             /* the rank of the data axis */
  int64_t micro;            /* the micro-batch */
  const dtg_value *batch;   /* this micro-batch's rows of each value that dtg_mesh_begin was given */
  size_t num_batch;
  const dtg_value *inputs;  /* what the stage before gave for it; of stage 0 nothing */
  size_t num_inputs;
} dtg_mesh_step;
#define DTG_MESH_STEP_INIT {sizeof(dtg_mesh_step), 0, 0, 0, NULL, 0, NULL, 0}
/* clang-format on */

/* A mesh for that model, which is kept. `*out` is owned by the caller. Errors: INVALID_ARGUMENT (an axis that is no length, another number
 * of devices than the axes make, a device twice). Since 0.1. */
DTG_ERR dtg_mesh_create(dtg_model *model, const dtg_mesh_options *options, dtg_mesh **out) DTG_NOEXCEPT;

/* Adds a reference and returns the mesh; NULL for NULL. Any thread. Since 0.1. */
DTG_API dtg_mesh *dtg_mesh_retain(dtg_mesh *mesh) DTG_NOEXCEPT;

/* Drops a reference. With the last one a build that is not over is abandoned. NULL is fine. Since 0.1. */
DTG_API void dtg_mesh_release(dtg_mesh *mesh) DTG_NOEXCEPT;

/* Begins a build over values of a batch, each of which is cut along its first dimension into data x micro_batches equal parts, in that
 * order; where it is not known while building, a batch that does not divide is an error of the run. `forward_only`, not 0: for evaluation
 * and prediction, without ways back. A later build is over the variables that the first one made. Errors: INVALID_ARGUMENT (a batch that
 * does not divide), FAILED_PRECONDITION (a build is not over; the scope of a strategy is open). Since 0.1. */
DTG_ERR dtg_mesh_begin(dtg_mesh *mesh, const dtg_value *batch, size_t num_batch, int64_t micro_batches, int32_t forward_only) DTG_NOEXCEPT;

/* Tells what to build next and opens the scope of its device; `*more` receives 0 where all is built, and `step` is then left alone.
 * Errors: FAILED_PRECONDITION (no build, or the step before was not given yet). Since 0.1. */
DTG_ERR dtg_mesh_next(dtg_mesh *mesh, dtg_mesh_step *step, int32_t *more) DTG_NOEXCEPT;

/* What the step makes: of the last stage its loss first, a floating-point scalar that is a mean over its rows, unless the build is forward
 * only; of the others what the next stage takes. As many as the stage gave the first time. Errors: FAILED_PRECONDITION (no step is
 * open; other variables than the first time), INVALID_ARGUMENT, those of dtg_add_gradients. Since 0.1. */
DTG_ERR dtg_mesh_give(dtg_mesh *mesh, const dtg_value *outputs, size_t num_outputs) DTG_NOEXCEPT;

/* Gives the build up; the model has the variables that it had before, and its nodes stay in the graph, unused. Nothing where there is
 * none. Since 0.1. */
DTG_ERR dtg_mesh_abandon(dtg_mesh *mesh) DTG_NOEXCEPT;

/* What the last stage gave as number `k`, of all micro-batches: the mean of a floating-point scalar, rows one behind the other of
 * anything else, in the order of the batch. Errors: FAILED_PRECONDITION (the build is not over), OUT_OF_RANGE. Since 0.1. */
DTG_ERR dtg_mesh_result(dtg_mesh *mesh, size_t k, dtg_value *out) DTG_NOEXCEPT;

/* Adds a step of training over the mean of all losses; `optimizer` NULL: SGD. Every copy of a variable ends as the others, to the bit. A
 * loss that is no finite number changes nothing and fails the step. `*out` as of dtg_nn_minimize. Errors: FAILED_PRECONDITION (the build
 * is not over, or was forward only), INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_mesh_minimize(dtg_mesh *mesh, const dtg_optimizer *optimizer, dtg_training *out) DTG_NOEXCEPT;

/* ---- layers that are cut over the model axis ----
 *
 * For the step that is open. A value of a step is on the first device of its group; it is sent to the others where a layer needs it, and
 * what they make is added up or put together on the first one; on the way back what was sent is added up, and what was added up is
 * sent. Numbers need not divide: the first devices have one column, row or head more; each has one at least. On a model axis of 1 these
 * are the plain layers. */

/* y = activation(x kernel + bias) by columns: each device has some columns of the kernel and makes as many of y, which stay there:
 * parts[m] for device m. Between this and dtg_mesh_row_dense only what is element by element belongs. `num_parts` is the length of the
 * model axis. Errors: INVALID_ARGUMENT (fewer units than devices, a softmax over columns). Since 0.1.
 * Semantics: ColumnParallelLinear of Megatron-LM. */
DTG_ERR dtg_mesh_column_dense(dtg_mesh *mesh, dtg_value x, const dtg_dense *layer, dtg_value *parts, size_t num_parts) DTG_NOEXCEPT;

/* y = activation(sum of parts[m] kernel[m] + bias) by rows, on the first device: each device has the rows of the kernel that go with its
 * part of the input. Since 0.1. Semantics: RowParallelLinear of Megatron-LM. */
DTG_ERR dtg_mesh_row_dense(dtg_mesh *mesh, const dtg_value *parts, size_t num_parts, const dtg_dense *layer, dtg_value *out) DTG_NOEXCEPT;

/* Parts of all devices one behind the other along `axis` (negative: from the last), on the first device. Since 0.1. */
DTG_ERR dtg_mesh_together(dtg_mesh *mesh, const dtg_value *parts, size_t num_parts, int32_t axis, dtg_value *out) DTG_NOEXCEPT;

/* How the table of an embedding is cut: whole rows, looked up on the device that has them, or a piece of each row on every device. */
typedef int32_t dtg_table_cut;
enum { DTG_CUT_ROWS = 0, DTG_CUT_COLUMNS = 1 };

/* dtg_nn_embedding with its table cut over the devices. An id that is no row is an error of the run. Since 0.1. */
DTG_ERR dtg_mesh_embedding(dtg_mesh *mesh, dtg_value ids, const dtg_embedding *layer, dtg_table_cut by, dtg_value *out) DTG_NOEXCEPT;

/* dtg_nn_attention with its heads shared out over the devices: as many as those at least. Since 0.1. */
DTG_ERR dtg_mesh_attention(dtg_mesh *mesh, dtg_value query, dtg_value value, const dtg_attention *layer, dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_MESH_H */
