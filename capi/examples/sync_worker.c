/* sync_worker.c: one worker of a job that trains one model strictly synchronously; the job's tasks and this one's place come from
 * TF_CONFIG, and a ps is any server: dtg server. Written again in Go, Rust and Java (bindings/), so that one job can mix them.
 *
 *   dtg run --local --ps 1 --workers 4 -- example_sync_worker tests/data/digits.csv.gz weights.safetensors
 */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
#define SECOND INT64_C(1000000000)

/* What a program holds; all of it may be NULL when it ends. */
struct worker {
  dtg_task self; dtg_cluster *cluster; dtg_server *server; dtg_dataset *data; dtg_graph *graph; dtg_model *model; dtg_session *session;
  dtg_cq *ends; dtg_value feeds[2], loss; dtg_replicated steps;
};

/* The same layers in every worker: variables on the ps, everything else here. */
static dtg_error *build(struct worker *w) {
  dtg_error *err = NULL; dtg_value layer, logits; char here[96]; const int64_t open[2] = {-1, 64};
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT; dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT; dtg_replication share = DTG_REPLICATION_INIT;
  snprintf(here, sizeof here, "/job:%s/task:%d", w->self.type, (int)w->self.index);
  setter.cluster = w->cluster; setter.worker_device = here;
  hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10;
  momentum.kind = DTG_OPT_MOMENTUM; momentum.rate = 0.05; momentum.momentum = 0.9;
  share.mode = DTG_SYNC_STRICT; share.worker = w->self.id; share.total = w->self.num_workers;
  TRY(dtg_graph_create(NULL, &w->graph));
  TRY(dtg_graph_push_device_setter(w->graph, &setter));
  TRY(dtg_model_create(w->graph, 7, &w->model));
  TRY(dtg_placeholder(w->graph, "x", DTG_F32, open, 2, &w->feeds[0]));
  TRY(dtg_placeholder(w->graph, "y", DTG_I64, open, 1, &w->feeds[1]));
  TRY(dtg_nn_dense(w->model, w->feeds[0], &hidden, &layer));
  TRY(dtg_nn_dense(w->model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(w->model, w->feeds[1], logits, &w->loss));
  TRY(dtg_nn_minimize_replicated(w->model, w->loss, &momentum, &share, &w->steps));
done:
  return err;
}

/* This worker's share of every batch of 60. */
static dtg_error *open_data(struct worker *w, const char *path) {
  dtg_error *err = NULL; dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = "c64";
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &w->data));
  TRY(dtg_dataset_scale(w->data, 0, 16));
  TRY(dtg_dataset_shuffle(w->data, 0, 3));
  TRY(dtg_dataset_repeat(w->data, -1));
  TRY(dtg_dataset_shard(w->data, w->self.num_workers, w->self.id));
  TRY(dtg_dataset_batch(w->data, 60 / w->self.num_workers, 1));
done:
  return err;
}

/* The chief gives the variables their first values and keeps the updates going; the others wait until that is done. */
static dtg_error *begin(struct worker *w) {
  dtg_error *err = NULL; dtg_value init; const int chief = w->self.is_chief;
  TRY(dtg_session_connect(NULL, dtg_server_target(w->server), DTG_STRLEN, w->graph, NULL, &w->session));
  if (chief) TRY(dtg_model_init(w->model, &init));
  if (chief) TRY(dtg_run_target(w->session, init));
  TRY(dtg_model_wait_ready(w->model, w->session, 60 * SECOND));
  if (chief) TRY(dtg_run_target(w->session, w->steps.chief_init));
  if (chief) TRY(dtg_cq_create(&w->ends));
  if (chief) TRY(dtg_session_run_repeatedly(w->session, &w->steps.update, 1, w->ends, 0, NULL));
  TRY(dtg_run_target(w->session, w->steps.local_init));
done:
  return err;
}

static dtg_error *train(struct worker *w, int steps) {
  dtg_error *err = NULL; dtg_tensor *batch[2]; int32_t more; float loss;
  for (int step = 1; step <= steps; step++) {
    TRY(dtg_dataset_next(w->data, batch, 2, &more));
    err = dtg_step_f32(w->session, w->feeds, batch, 2, w->loss, w->steps.train, &loss);
    dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]);
    TRY(err);
    if (step % 20 == 0) printf("step %d: loss %.6f\n", step, loss);
  }
done:
  return err;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; struct worker w = {.self = DTG_TASK_INIT, .steps = DTG_REPLICATED_INIT}; dtg_server_options place = DTG_SERVER_OPTIONS_INIT;
  if (argc != 3) return fprintf(stderr, "usage: %s DATA WEIGHTS, as a task of a job (TF_CONFIG)\n", argv[0]), 2;
  TRY(dtg_cluster_from_tf_config(NULL, 0, &w.cluster, &w.self));
  place.job = w.self.type; place.task = w.self.index;
  TRY(dtg_server_start(NULL, w.cluster, &place, &w.server));
  if (strcmp(w.self.type, "ps") == 0) { TRY(dtg_server_join(w.server, DTG_INFINITE)); goto done; }
  TRY(build(&w)); TRY(open_data(&w, argv[1])); TRY(begin(&w)); TRY(train(&w, 100));
  if (w.self.is_chief) TRY(dtg_model_save(w.model, w.session, argv[2], DTG_STRLEN));
  TRY(dtg_session_end_job(w.session, 60 * SECOND)); /* waits until all workers are through */
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_session_release(w.session); dtg_cq_release(w.ends); dtg_model_release(w.model); dtg_graph_release(w.graph);
  dtg_dataset_release(w.data); dtg_server_release(w.server); dtg_cluster_release(w.cluster);
  dtg_error_release(err);
  return err != NULL;
}
