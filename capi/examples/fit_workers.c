/* fit_workers.c: fit.c by several workers together, which meet in a group without a parameter server; the job's tasks and this one's place
 * come from TF_CONFIG. Each reads rows of its own, and the first one keeps the directory. A worker that is killed is started again, and all go
 * on together, to the very weights that nothing would have ended with.
 *
 *   dtg run --local --ps 0 --workers 3 --restart on-failure -- example_fit_workers tests/data/digits.csv.gz run 5
 */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

struct net { dtg_graph *graph; dtg_model *model; dtg_metric_values accuracy; };

/* The layers of one replica: there is one in each worker. */
static dtg_error *layers(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *in, size_t n, dtg_value *loss, size_t m) {
  dtg_error *err = NULL; struct net *net = user; dtg_value layer, logits; const dtg_value no_weights = {0};
  dtg_dense hidden = DTG_DENSE_INIT, classes = DTG_DENSE_INIT; dtg_metric metric = DTG_METRIC_INIT;
  (void)strategy; (void)replica; (void)n; (void)m;
  hidden.units = 32; hidden.activation = DTG_ACT_RELU; classes.units = 10; metric.kind = DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY;
  TRY(dtg_nn_dense(net->model, in[0], &hidden, &layer)); TRY(dtg_nn_dense(net->model, layer, &classes, &logits));
  TRY(dtg_nn_metric(net->model, &metric, in[1], logits, no_weights, &net->accuracy));
  TRY(dtg_nn_sparse_softmax_cross_entropy(net->model, in[1], logits, loss));
done:
  return err;
}

static dtg_error *tell(void *user, dtg_trainer *trainer, const dtg_fit_event *event) {
  (void)user; (void)trainer;
  printf("epoch %lld, step %lld: loss %.4f\n", (long long)event->epoch, (long long)event->step, event->loss);
  return NULL;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; dtg_cluster *cluster = NULL; dtg_task self = DTG_TASK_INIT; dtg_server *server = NULL; dtg_group *group = NULL;
  struct net net = {NULL, NULL, DTG_METRIC_VALUES_INIT}; dtg_strategy *strategy = NULL; dtg_session *session = NULL; dtg_trainer *trainer = NULL;
  dtg_dataset *rows = NULL, *train = NULL, *test = NULL; const int64_t open[2] = {-1, 64}; dtg_value feeds[2]; dtg_per_replica in[2], loss;
  dtg_server_options here = DTG_SERVER_OPTIONS_INIT; dtg_strategy_options workers = DTG_STRATEGY_OPTIONS_INIT; dtg_variable step = DTG_VARIABLE_INIT;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT; dtg_optimizer adam = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT;
  dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT; dtg_fit how = DTG_FIT_INIT; dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  if (argc < 2) { fprintf(stderr, "usage: fit_workers DIGITS [DIRECTORY [EPOCHS]], as a task of a job (TF_CONFIG)\n"); return 2; }
  TRY(dtg_cluster_from_tf_config(NULL, 0, &cluster, &self));
  if (cluster == NULL) { fprintf(stderr, "TF_CONFIG names no cluster; start this with dtg run\n"); return 1; }
  here.job = self.type; here.task = self.index; csv.label = "c64"; adam.kind = DTG_OPT_ADAM; adam.rate = 0.003;
  TRY(dtg_server_start(NULL, cluster, &here, &server)); TRY(dtg_group_join(server, NULL, &group));
  TRY(dtg_dataset_csv(NULL, argv[1], DTG_STRLEN, &csv, &rows)); TRY(dtg_dataset_split(rows, NULL, &train, &test));
  TRY(dtg_dataset_shard(train, self.num_workers, self.id)); TRY(dtg_dataset_shard(test, self.num_workers, self.id));
  TRY(dtg_dataset_scale(train, 0, 16)); TRY(dtg_dataset_shuffle(train, 0, 1)); TRY(dtg_dataset_batch(train, 16, 1));
  TRY(dtg_dataset_scale(test, 0, 16)); TRY(dtg_dataset_batch(test, 50, 0));
  TRY(dtg_graph_create(NULL, &net.graph)); TRY(dtg_model_create(net.graph, 1, &net.model)); TRY(dtg_model_global_step(net.model, &step));
  TRY(dtg_placeholder(net.graph, "x", DTG_F32, open, 2, &feeds[0])); TRY(dtg_placeholder(net.graph, "y", DTG_I64, open, 1, &feeds[1]));
  workers.kind = DTG_STRATEGY_MULTI_WORKER_MIRRORED; workers.group = group;
  TRY(dtg_strategy_create(net.model, &workers, &strategy)); TRY(dtg_strategy_enter(strategy));
  TRY(dtg_strategy_split(strategy, feeds[0], &in[0])); TRY(dtg_strategy_split(strategy, feeds[1], &in[1]));
  TRY(dtg_strategy_run(strategy, layers, &net, in, 2, &loss, 1));
  TRY(dtg_strategy_minimize(strategy, loss, DTG_REDUCE_MEAN, &adam, &training));
  TRY(dtg_strategy_reduce(strategy, DTG_REDUCE_MEAN, loss, DTG_NO_AXIS, &what.loss)); TRY(dtg_strategy_exit(strategy));
  TRY(dtg_session_connect(NULL, dtg_server_target(server), DTG_STRLEN, net.graph, NULL, &session));
  what.session = session; what.feeds = feeds; what.num_feeds = 2; what.train = training.train; what.strategy = strategy;
  TRY(dtg_trainer_create(net.model, &what, &trainer)); TRY(dtg_trainer_add_metric(trainer, "accuracy", DTG_STRLEN, &net.accuracy));
  callbacks.epoch_end = tell; how.directory = argc > 2 ? argv[2] : NULL; how.epochs = argc > 3 ? strtoll(argv[3], NULL, 10) : 5;
  TRY(dtg_trainer_fit(trainer, train, test, &how, &callbacks)); TRY(dtg_group_barrier(group, 0));
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_trainer_release(trainer); dtg_session_release(session); dtg_strategy_release(strategy); dtg_model_release(net.model);
  dtg_graph_release(net.graph); dtg_dataset_release(rows); dtg_dataset_release(train); dtg_dataset_release(test);
  dtg_group_release(group); dtg_server_release(server); dtg_cluster_release(cluster); dtg_error_release(err); return err != NULL;
}
