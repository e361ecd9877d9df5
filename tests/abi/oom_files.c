/* Memory that runs out while weights, curves, models and sets of checkpoints are written and read. What is on the disk is whole whatever
 * failed: it is read once more. See oom.h. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static const int64_t five[] = {5};

/* ---- weights and curves ---- */

static int weights(void) {
  char path[96];
  snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  PART(new_tensor(0, DTG_F32, five, 1));
  TRY(dtg_weights_create(&h.weights[0]));
  TRY(dtg_weights_set(h.weights[0], "a", DTG_STRLEN, h.tensor[0]));
  TRY(dtg_weights_set_metadata(h.weights[0], "k", DTG_STRLEN, "a value that is longer than short ones", DTG_STRLEN));
  TRY(dtg_weights_set(h.weights[0], "a name that is longer than the short ones", DTG_STRLEN, h.tensor[0]));
  TRY(dtg_weights_set(h.weights[0], "a", DTG_STRLEN, h.tensor[0]));
  HOLDS(dtg_weights_count(h.weights[0]) == 2);
  TRY(dtg_weights_save(h.weights[0], path, DTG_STRLEN));
  TRY(dtg_weights_load(runtime, path, DTG_STRLEN, &h.weights[1]));
  TRY(dtg_weights_get(h.weights[1], "a", DTG_STRLEN, &h.tensor[1]));
  HOLDS(dtg_weights_name(h.weights[1], 1) != NULL && dtg_weights_metadata(h.weights[1], "k", DTG_STRLEN) != NULL);
  dtg_weights_release(dtg_weights_retain(h.weights[1]));
  return 1;
}

/* A write that failed is the answer of all that come after it. */
static int curves(void) {
  char path[96];
  snprintf(path, sizeof path, "%s/curves", folder);
  PART(new_tensor(0, DTG_F32, five, 1));
  TRY(dtg_event_writer_open(path, DTG_STRLEN, NULL, &h.writer));
  for (int step = 0; step < 3; step++) ONCE(dtg_event_writer_scalar(h.writer, "loss", DTG_STRLEN, step, 1));
  ONCE(dtg_event_writer_histogram(h.writer, "weights", DTG_STRLEN, 1, h.tensor[0]));
  ONCE(dtg_event_writer_text(h.writer, "note", DTG_STRLEN, 1, "x", DTG_STRLEN));
  ONCE(dtg_event_writer_flush(h.writer));
  dtg_event_writer_release(dtg_event_writer_retain(h.writer));
  ONCE(dtg_event_writer_close(h.writer));
  return 1;
}

static int keys(void) {
  char path[96];
  snprintf(path, sizeof path, "%s/job.key", folder);
  unlink(path);
  TRY(dtg_keygen(path, DTG_STRLEN));
  return 1;
}

static int clusters(void) {
  dtg_task task = DTG_TASK_INIT;
  const char *const config =
      "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:2\", \"c:3\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}";
  TRY(dtg_cluster_parse("ps=unix:/a;worker=1.2.3.4:5,[::1]:6", DTG_STRLEN, &h.cluster));
  TRY(dtg_cluster_json(h.cluster, &h.string[0]));
  dtg_cluster_release(h.cluster);
  h.cluster = NULL;
  TRY(dtg_cluster_from_tf_config(config, DTG_STRLEN, &h.cluster, &task));
  TRY(dtg_cluster_target(h.cluster, &task, &h.string[1]));
  return 1;
}

/* ---- models ---- */

/* Classes of three numbers. */
static int new_model(int k, dtg_value *x, dtg_value *y) {
  const int64_t dims[] = {-1, 3};
  dtg_dense layer = DTG_DENSE_INIT;
  PART(new_graph(k));
  TRY(dtg_placeholder(h.graph[k], "x", DTG_F32, dims, 2, x));
  layer.units = 2;
  layer.activation = DTG_ACT_SOFTMAX;
  TRY(dtg_nn_dense(h.model[k], *x, &layer, y));
  return 1;
}

static int saved(void) {
  char path[96];
  dtg_value x, y;
  dtg_restore how = DTG_RESTORE_INIT;
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  PART(new_model(0, &x, &y));
  PART(begin_session(0, NULL));
  TRY(dtg_model_set_metadata(h.model[0], "note", DTG_STRLEN, "of the run of today", DTG_STRLEN));
  TRY(dtg_model_save(h.model[0], h.session[0], path, DTG_STRLEN));
  TRY(dtg_model_restore(h.model[0], h.session[0], path, DTG_STRLEN));
  how.partial = 1;
  how.names = "{\"dense/kernel\": \"dense/kernel\"}";
  TRY(dtg_model_restore_from(h.model[0], h.session[0], path, DTG_STRLEN, &how, &h.string[0]));
  TRY(dtg_model_metadata(h.model[0], "note", DTG_STRLEN, &h.string[1]));
  dtg_model_release(dtg_model_retain(h.model[0]));
  return 1;
}

/* Exported, frozen or not, and run again by who knows nothing of it. */
static int exported(int freeze) {
  char path[96];
  const char *const input = "pixels", *const output = "classes", *const names[] = {"cat", "dog"};
  const int64_t dims[] = {2, 3};
  dtg_value x, y;
  dtg_export what = DTG_EXPORT_INIT;
  snprintf(path, sizeof path, "%s/model.dtg", folder);
  PART(new_model(0, &x, &y));
  PART(begin_session(0, NULL));
  TRY(dtg_model_set_classes(h.model[0], output, DTG_STRLEN, names, 2));
  what.input_names = &input;
  what.inputs = &x;
  what.num_inputs = 1;
  what.output_names = &output;
  what.outputs = &y;
  what.num_outputs = 1;
  what.freeze = freeze;
  TRY(dtg_model_export(h.model[0], h.session[0], &what, path, DTG_STRLEN));
  TRY(dtg_model_load(runtime, path, DTG_STRLEN, &h.session[1], &h.model[1]));
  TRY(dtg_model_endpoint(h.model[1], input, DTG_STRLEN, &x));
  TRY(dtg_model_endpoint(h.model[1], output, DTG_STRLEN, &y));
  TRY(dtg_model_endpoints(h.model[1], &h.string[0]));
  TRY(dtg_model_classes(h.model[1], output, DTG_STRLEN, &h.tensor[2]));
  TRY(dtg_model_graph(h.model[1], &h.graph[1]));
  PART(new_tensor(0, DTG_F32, dims, 2));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.feed_tensors = (const dtg_tensor *const *)h.tensor;
  args.num_feeds = 1;
  args.fetches = &y;
  args.fetched = &h.tensor[1];
  args.num_fetches = 1;
  TRY(dtg_session_run(h.session[1], &args));
  return 1;
}

static int exports(void) { return exported(0); }
static int frozen(void) { return exported(1); }

/* A graph as bytes, and a model of the variables that it has. */
static int imported(void) {
  dtg_value x, y;
  size_t nbytes = 0;
  PART(new_model(0, &x, &y));
  TRY(dtg_graph_serialize(h.graph[0], &h.string[0]));
  const char *const bytes = dtg_string_data(h.string[0], &nbytes);
  TRY(dtg_graph_create(runtime, &h.graph[1]));
  ONCE(dtg_graph_import(h.graph[1], bytes, nbytes));
  TRY(dtg_model_import(h.graph[1], 1, &h.model[1]));
  HOLDS(dtg_model_variable_count(h.model[1]) == 2);
  PART(begin_session(1, NULL));
  TRY(dtg_model_wait_ready(h.model[1], h.session[1], INT64_C(5000000000)));
  return 1;
}

/* ---- sets ---- */

/* What came of the save that was begun; one that failed is made again. */
static int written(int64_t step) {
  int tries = tries_before();
  const int next = judge(dtg_checkpoint_wait(h.checkpoint, 0), 1, &tries, "dtg_checkpoint_wait", __LINE__);
  if (next < 0) return 0;
  if (next == 0) TRY(dtg_checkpoint_save(h.checkpoint, step, 0));
  return 1;
}

/* Saved in both ways, and gone on from. */
static int checkpoints(void) {
  static int number;
  char path[96];
  dtg_value x, y;
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  int64_t reached = -1;
  int32_t began = 0;
  snprintf(path, sizeof path, "%s/sets-%d", folder, number++);
  PART(new_model(0, &x, &y));
  PART(begin_session(0, NULL));
  TRY(dtg_dataset_range(runtime, 0, 9, 1, &h.data[0]));
  options.directory = path;
  options.every_steps = 1;
  options.keep = 2;
  TRY(dtg_checkpoint_open(h.model[0], h.session[0], &options, &h.checkpoint));
  TRY(dtg_checkpoint_add_data(h.checkpoint, "train", DTG_STRLEN, h.data[0]));
  TRY(dtg_checkpoint_resume(h.checkpoint, &reached, &h.string[0]));
  HOLDS(reached == 0);
  TRY(dtg_checkpoint_save(h.checkpoint, 0, 0));
  dtg_checkpoint_release(dtg_checkpoint_retain(h.checkpoint));
  TRY(dtg_checkpoint_status(h.checkpoint, &h.string[1]));
  TRY(dtg_checkpoint_restore(h.checkpoint, NULL, 0, &reached, NULL));
  HOLDS(reached == 0);
  TRY(dtg_checkpoint_reached(h.checkpoint, 1, &began));
  PART(written(2));
  TRY(dtg_checkpoint_begin_save(h.checkpoint, 3, 0));
  return written(4);
}

/* Sets that are there. */
static int sets(void) {
  static int number;
  char path[96], other[96];
  dtg_value x, y;
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/sets", folder);
  snprintf(other, sizeof other, "%s/other-sets-%d", folder, number++);
  if (access(path, F_OK) != 0) {
    PART(new_model(0, &x, &y));
    PART(begin_session(0, NULL));
    options.directory = path;
    TRY(dtg_checkpoint_open(h.model[0], h.session[0], &options, &h.checkpoint));
    TRY(dtg_checkpoint_save(h.checkpoint, 1, 0));
  }
  TRY(dtg_checkpoint_list(runtime, path, DTG_STRLEN, &h.string[0]));
  dtg_string_release(h.string[0]);
  h.string[0] = NULL;
  TRY(dtg_checkpoint_describe(runtime, path, DTG_STRLEN, &h.string[0]));
  TRY(dtg_checkpoint_verify(runtime, path, DTG_STRLEN, &h.string[1]));
  TRY(dtg_checkpoint_reshard(runtime, path, DTG_STRLEN, other, DTG_STRLEN, 2, &h.string[2]));
  return 1;
}

static const struct scene scenes[] = {
    {"weights", weights, 0, 0},   {"curves", curves, 0, 0},     {"keys", keys, AS(DTG_ALREADY_EXISTS), 0},
    {"clusters", clusters, 0, 0}, {"saved", saved, 0, 0},       {"exports", exports, 0, 0},
    {"frozen", frozen, 0, 0},     {"imported", imported, 0, 0}, {"checkpoints", checkpoints, 0, 0},
    {"sets", sets, 0, 0},
};
#endif

STAGE("files", scenes)
