/* elastic.c: one worker of a job whose workers come and go while it trains; capi/ELASTIC.md shows it piece by piece. Each batch of an epoch
 * is in exactly one update, whoever is there. The same in Go (bindings/go/examples/elastic).
 *
 *   dtg run --local --ps 1 --workers 1..4 --start 2 --restart on-failure -- example_elastic tests/data/digits.csv.gz
 */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
#define SECOND INT64_C(1000000000)
enum { EPOCHS = 3 };

/* What a program holds; all of it may be NULL when it ends. */
struct worker {
  dtg_task self; dtg_cluster *cluster; dtg_server *server; dtg_dataset *data; dtg_graph *graph; dtg_model *model; dtg_session *session;
  dtg_cq *ends; dtg_value feeds[2], loss; dtg_replicated steps;
};

/* A server that sees the parameter servers alone: that another worker is gone, or never came, is then none of its business. */
static dtg_error *take_place(struct worker *w) {
  dtg_error *err = NULL; dtg_server_options place = DTG_SERVER_OPTIONS_INIT; static const char *const seen[] = {"/job:ps"};
  TRY(dtg_cluster_from_tf_config(NULL, 0, &w->cluster, &w->self));
  place.job = w->self.type; place.task = w->self.index;
  if (strcmp(w->self.type, "ps") != 0) { place.device_filters = seen; place.num_device_filters = 1; }
  TRY(dtg_server_start(NULL, w->cluster, &place, &w->server));
done:
  return err;
}

/* The same data in every worker: the same seed, no shard, no repeat, and a last batch that may be short, as no record is to be left out. */
static dtg_error *open_data(struct worker *w, const char *path) {
  dtg_error *err = NULL; dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = "c64";
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &w->data));
  TRY(dtg_dataset_scale(w->data, 0, 16));
  TRY(dtg_dataset_shuffle(w->data, 0, 3));
  TRY(dtg_dataset_batch(w->data, 30, 0));
done:
  return err;
}

/* The same layers in every worker: variables on the ps, everything else here. */
static dtg_error *build(struct worker *w) {
  dtg_error *err = NULL; dtg_value layer, logits; char here[96]; const int64_t open[2] = {-1, 64}; const char *least = getenv("DTG_MIN_WORKERS");
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT; dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT;
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT; dtg_replication share = DTG_REPLICATION_INIT;
  snprintf(here, sizeof here, "/job:%s/task:%d", w->self.type, (int)w->self.index);
  setter.cluster = w->cluster; setter.worker_device = here;
  hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10;
  momentum.kind = DTG_OPT_MOMENTUM; momentum.rate = 0.05; momentum.momentum = 0.9;
  TRY(dtg_graph_create(NULL, &w->graph));
  TRY(dtg_graph_push_device_setter(w->graph, &setter));
  TRY(dtg_model_create(w->graph, 7, &w->model));
  TRY(dtg_placeholder(w->graph, "x", DTG_F32, open, 2, &w->feeds[0]));
  TRY(dtg_placeholder(w->graph, "y", DTG_I64, open, 1, &w->feeds[1]));
  TRY(dtg_nn_dense(w->model, w->feeds[0], &hidden, &layer));
  TRY(dtg_nn_dense(w->model, layer, &classes, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(w->model, w->feeds[1], logits, &w->loss));
  share.mode = DTG_SYNC_ELASTIC;
  share.worker = w->self.id;
  share.total = w->self.num_workers;             /* so many at most */
  share.min_workers = least ? atoi(least) : 1;   /* and no step with fewer; dtg run --workers 2..8 sets it */
  share.elements = dtg_dataset_cardinality(w->data);
  TRY(dtg_nn_minimize_replicated(w->model, w->loss, &momentum, &share, &w->steps));
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
  TRY(dtg_dataset_deal(w->data, w->model, w->session, 0)); /* from here on the data set hands out what is dealt to this worker */
done:
  return err;
}

/* One `train` with each batch that is dealt here. Whoever comes late joins the epoch that is now, and an epoch ends for all at once. */
static dtg_error *train(struct worker *w) {
  dtg_error *err = NULL; dtg_tensor *batch[2]; int32_t more; int64_t epoch = 0; float loss;
  while (epoch < EPOCHS) {
    TRY(dtg_dataset_next(w->data, batch, 2, &more));
    TRY(dtg_dataset_dealt(w->data, &epoch, NULL));
    if (!more) { if (epoch < EPOCHS) TRY(dtg_dataset_restart(w->data)); continue; }
    if (epoch < EPOCHS) err = dtg_step_f32(w->session, w->feeds, batch, 2, w->loss, w->steps.train, &loss);
    dtg_tensor_release(batch[0]); dtg_tensor_release(batch[1]);
    if (err && (dtg_error_code(err) == DTG_UNAVAILABLE || dtg_error_code(err) == DTG_ABORTED)) { /* a task was lost: the batch comes again */
      dtg_error_release(err); err = NULL;
      TRY(dtg_model_recover(w->model, w->session, 0));
    }
    TRY(err);
  }
  TRY(dtg_run_target(w->session, w->steps.leave)); /* nobody waits for another step of this worker */
done:
  return err;
}

/* In how many updates each batch was is a variable of the model, so it comes back with the weights, too. */
static dtg_error *count(struct worker *w) {
  dtg_error *err = NULL; dtg_variable dealt = DTG_VARIABLE_INIT; dtg_run_args ask = DTG_RUN_ARGS_INIT; dtg_tensor *times = NULL; int64_t right = 0;
  TRY(dtg_model_find_variable(w->model, "sync/dealt", DTG_STRLEN, &dealt));
  ask.fetches = &dealt.read; ask.fetched = &times; ask.num_fetches = 1;
  TRY(dtg_session_run(w->session, &ask));
  for (int64_t i = 0; i < dtg_tensor_count(times); i++) right += ((const double *)dtg_tensor_data(times, NULL))[i] == EPOCHS;
  printf("%d of %d batches were in %d updates each\n", (int)right, (int)dtg_tensor_count(times), EPOCHS);
done:
  dtg_tensor_release(times);
  return err;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; struct worker w = {.self = DTG_TASK_INIT, .steps = DTG_REPLICATED_INIT};
  if (argc != 2) return fprintf(stderr, "usage: %s DATA, as a task of a job (TF_CONFIG)\n", argv[0]), 2;
  TRY(take_place(&w));
  if (strcmp(w.self.type, "ps") == 0) { TRY(dtg_server_join(w.server, DTG_INFINITE)); goto done; }
  TRY(open_data(&w, argv[1])); TRY(build(&w)); TRY(begin(&w)); TRY(train(&w));
  if (w.self.is_chief) TRY(count(&w));
  TRY(dtg_session_end_job(w.session, 60 * SECOND)); /* every worker calls it: the chief waits for those that have not */
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_session_release(w.session); dtg_cq_release(w.ends); dtg_dataset_release(w.data); dtg_model_release(w.model); dtg_graph_release(w.graph);
  dtg_server_release(w.server); dtg_cluster_release(w.cluster);
  dtg_error_release(err);
  return err != NULL;
}
