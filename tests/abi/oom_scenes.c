/* Memory that runs out in each part of the library by itself: data sets (prefetched too), files, weights, events, cluster specs, models
 * in every way of training. The allocator fails at the n-th call, once or from then on, in turn. Whatever was said before is asked
 * again after the failure, which is what a host does that goes on: an error or a success, never a crash, and nothing stays. */
#define _GNU_SOURCE
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_allocator.h"

#if OWN_ALLOCATOR
static dtg_runtime *runtime;
static char folder[64], table[96], weights_file[96], model_file[96], events_folder[96];
static long refused, strange;

/* An error on the way: RESOURCE_EXHAUSTED, or FAILED_PRECONDITION from what an earlier failure broke. 1: there was none. */
static int fine(dtg_error *error) {
  const dtg_code code = dtg_error_code(error);
  if (code == DTG_OK) return 1;
  refused++;
  if (code != DTG_RESOURCE_EXHAUSTED && code != DTG_FAILED_PRECONDITION) {
    strange++;
    fprintf(stderr, "%s: %s\n", dtg_code_name(code), dtg_error_message(error, NULL));
  } else if (dtg_error_message(error, NULL)[0] == 0) {
    strange++;
    fprintf(stderr, "an error without a text\n");
  }
  dtg_error_release(error);
  return 0;
}

/* Elements until the end, or until it has failed a few times. */
static void drain(dtg_dataset *data) {
  for (int i = 0, failures = 0; i < 200 && failures < 5; i++) {
    dtg_tensor *parts[4] = {NULL, NULL, NULL, NULL};
    const size_t count = dtg_dataset_component_count(data);
    int32_t more = 0;
    const int good = fine(dtg_dataset_next(data, parts, count, &more));
    failures += !good;
    if (good && !more) return;
    for (size_t k = 0; good && k < count; k++) dtg_tensor_release(parts[k]);
  }
}

static void data_set(int prefetched) {
  const int64_t dims[] = {20, 3};
  dtg_dataset *data = NULL, *other = NULL;
  dtg_tensor *parts[2] = {NULL, NULL};
  if (fine(dtg_tensor_allocate(DTG_U8, dims, 2, &parts[0])) && fine(dtg_tensor_allocate(DTG_I64, dims, 1, &parts[1]))) {
    memset(dtg_tensor_mutable_data(parts[0]), 1, 60);
    memset(dtg_tensor_mutable_data(parts[1]), 0, 160);
    fine(dtg_dataset_tensors(runtime, (const dtg_tensor *const *)parts, 2, &data));
  }
  if (data) {
    /* Each is tried whatever became of those before it. */
    fine(dtg_dataset_scale(data, 0, 255));
    fine(dtg_dataset_cast(data, 1, DTG_I32));
    fine(dtg_dataset_shuffle(data, 0, 1));
    fine(dtg_dataset_shard(data, 2, 0));
    fine(dtg_dataset_repeat(data, 2));
    fine(dtg_dataset_window(data, 2, 1, 1, 1)); /* of rows, which are alike however many there are */
    fine(dtg_dataset_batch(data, 4, 0));
    fine(dtg_dataset_rebatch(data, 2));
    fine(dtg_dataset_cache(data));
    fine(dtg_dataset_padded_batch(data, 2, 0, 0));
    if (fine(dtg_dataset_range(runtime, 0, 9, 1, &other))) fine(dtg_dataset_zip(data, &other, 1));
    if (prefetched) fine(dtg_dataset_prefetch(data, 2));
    dtg_dataset_cardinality(data);
    drain(data);
    fine(dtg_dataset_restart(data));
    drain(data);
  }
  dtg_dataset_release(data);
  dtg_dataset_release(other);
  for (int i = 0; i < 2; i++) dtg_tensor_release(parts[i]);
}

static void in_memory(void) { data_set(0); }
static void prefetched(void) { data_set(1); }

static void csv(void) {
  dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
  dtg_dataset *data = NULL;
  options.label = "y";
  if (fine(dtg_dataset_csv(runtime, table, DTG_STRLEN, &options, &data))) drain(data);
  dtg_dataset_release(data);
}

static void weights(void) {
  const int64_t dims[] = {5};
  dtg_weights *made = NULL, *read = NULL;
  dtg_tensor *value = NULL, *again = NULL;
  if (fine(dtg_weights_create(&made)) && fine(dtg_tensor_allocate(DTG_F32, dims, 1, &value))) {
    memset(dtg_tensor_mutable_data(value), 0, 20);
    fine(dtg_weights_set(made, "a", DTG_STRLEN, value));
    fine(dtg_weights_set_metadata(made, "k", DTG_STRLEN, "v", DTG_STRLEN));
    if (fine(dtg_weights_set(made, "b", DTG_STRLEN, value)) && fine(dtg_weights_save(made, weights_file, DTG_STRLEN)) &&
        fine(dtg_weights_load(runtime, weights_file, DTG_STRLEN, &read))) {
      fine(dtg_weights_get(read, "b", DTG_STRLEN, &again));
    }
  }
  dtg_tensor_release(again);
  dtg_tensor_release(value);
  dtg_weights_release(made);
  dtg_weights_release(read);
}

static void events(void) {
  const int64_t dims[] = {5};
  dtg_event_writer *writer = NULL;
  dtg_tensor *values = NULL;
  if (fine(dtg_event_writer_open(events_folder, DTG_STRLEN, NULL, &writer)) && fine(dtg_tensor_allocate(DTG_F32, dims, 1, &values))) {
    memset(dtg_tensor_mutable_data(values), 0, 20);
    for (int step = 0; step < 3; step++) fine(dtg_event_writer_scalar(writer, "loss", DTG_STRLEN, step, 1));
    fine(dtg_event_writer_histogram(writer, "weights", DTG_STRLEN, 1, values));
    fine(dtg_event_writer_text(writer, "note", DTG_STRLEN, 1, "x", DTG_STRLEN));
    fine(dtg_event_writer_flush(writer));
    fine(dtg_event_writer_close(writer));
  }
  dtg_tensor_release(values);
  dtg_event_writer_release(writer);
}

static void clusters(void) {
  dtg_cluster *parsed = NULL, *found = NULL;
  dtg_task task = DTG_TASK_INIT;
  dtg_string *json = NULL, *target = NULL;
  if (fine(dtg_cluster_parse("ps=unix:/a;worker=1.2.3.4:5,[::1]:6", DTG_STRLEN, &parsed))) fine(dtg_cluster_json(parsed, &json));
  if (fine(dtg_cluster_from_tf_config(
          "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:2\", \"c:3\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}", DTG_STRLEN,
          &found, &task))) {
    fine(dtg_cluster_target(found, &task, &target));
  }
  dtg_string_release(json);
  dtg_string_release(target);
  dtg_cluster_release(parsed);
  dtg_cluster_release(found);
}

/* Layers and a loss; 0 when something failed. */
static int build(dtg_model *model, dtg_value x, dtg_value *loss) {
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_value y;
  layer.units = 2;
  layer.activation = DTG_ACT_SOFTMAX;
  return fine(dtg_nn_dense(model, x, &layer, &y)) && fine(dtg_nn_mean_squared_error(model, y, y, loss));
}

/* mode -1: two towers; otherwise a mode of replicated training. */
static int train(dtg_model *model, dtg_value x, int mode) {
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value losses[2];
  adam.kind = DTG_OPT_ADAM;
  adam.clip_norm = 1;
  if (!build(model, x, &losses[0])) return 0;
  if (mode < 0) {
    dtg_training training = DTG_TRAINING_INIT;
    return fine(dtg_model_next_tower(model)) && build(model, x, &losses[1]) &&
           fine(dtg_nn_minimize_towers(model, losses, 2, &adam, &training));
  }
  dtg_replicated replicated = DTG_REPLICATED_INIT;
  dtg_replication how = DTG_REPLICATION_INIT;
  how.mode = mode;
  how.total = 2;
  return fine(dtg_nn_minimize_replicated(model, losses[0], &adam, &how, &replicated));
}

static void model_of(int mode) {
  const int64_t dims[] = {-1, 3};
  dtg_graph *graph = NULL;
  dtg_model *model = NULL;
  dtg_session *session = NULL;
  dtg_value x, init;
  if (fine(dtg_graph_create(runtime, &graph)) && fine(dtg_model_create(graph, 1, &model)) &&
      fine(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x)) && train(model, x, mode) && fine(dtg_model_init(model, &init)) &&
      fine(dtg_session_connect(runtime, "local", DTG_STRLEN, graph, NULL, &session))) {
    if (fine(dtg_run_target(session, init)) && fine(dtg_model_save(model, session, model_file, DTG_STRLEN))) {
      fine(dtg_model_restore(model, session, model_file, DTG_STRLEN));
    }
    /* A variable whose assignment failed takes the next one. */
    if (fine(dtg_run_target(session, init))) fine(dtg_model_wait_ready(model, session, 5000000000));
  }
  dtg_session_release(session);
  dtg_model_release(model);
  dtg_graph_release(graph);
}

static void towers(void) { model_of(-1); }
static void asynchronous(void) { model_of(DTG_SYNC_ASYNC); }
static void strict(void) { model_of(DTG_SYNC_STRICT); }

static const struct {
  const char *name;
  void (*play)(void);
  long stride; /* the longer ones are alike over long stretches */
} scenes[] = {
    {"a data set", in_memory, 1},  {"a prefetched data set", prefetched, 1},
    {"a table", csv, 1},           {"weights", weights, 1},
    {"events", events, 1},         {"cluster specs", clusters, 1},
    {"two towers", towers, 7},     {"asynchronous workers", asynchronous, 7},
    {"strict workers", strict, 7},
};

/* 0: every failure of this scene was an error, and nothing stayed. */
static int play(size_t which) {
  size_t handles;
  long total;
  scenes[which].play(); /* what is made once per process is made */
  handles = dtg_live_handles();
  fail_from(-1, 0);
  scenes[which].play();
  total = calls;
  const long before = refused;
  for (long n = 1; n <= total; n += scenes[which].stride) {
    fail_from(n, (int)((n / scenes[which].stride) % 2));
    scenes[which].play();
    fail_no_more();
    if (dtg_live_handles() == handles && strange == 0) continue;
    fprintf(stderr, "%s: allocation %ld of %ld failed: %zu handles stay\n", scenes[which].name, n, total, dtg_live_handles() - handles);
    return 1;
  }
  printf("%s: %ld allocations, %ld failures were reported\n", scenes[which].name, total, refused - before);
  return refused == before;
}

int main(void) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  int bad = 0;
  snprintf(folder, sizeof folder, "/tmp/dtg-oom-%d", (int)getpid());
  snprintf(table, sizeof table, "%s.csv", folder);
  snprintf(weights_file, sizeof weights_file, "%s.safetensors", folder);
  snprintf(model_file, sizeof model_file, "%s-model.safetensors", folder);
  snprintf(events_folder, sizeof events_folder, "%s-events", folder);
  FILE *const out = fopen(table, "w");
  if (!out) return 1;
  fputs("a,b,y\n1,2,cat\n3,4,dog\n5,6,cat\n", out);
  fclose(out);
  alarm(280);
  options.compute_threads = 2;
  options.log_level = DTG_LOG_OFF;
  if (!fine(dtg_runtime_create(&options, &runtime))) return 1;
  for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) bad += play(i);
  dtg_runtime_release(runtime);
  /* The files, and the folder with as many event files as were begun. */
  char command[512];
  snprintf(command, sizeof command, "rm -rf %s %s %s %s", table, weights_file, model_file, events_folder);
  return system(command) != 0 || bad != 0;
}
#else
int main(void) {
  printf("the sanitizer brings its own allocator\n");
  return 0;
}
#endif
