/* between_graph.c: between-graph replication in its smallest form. The same program is every task: a ps serves, a worker builds
 * the graph with its variables on the ps and trains. Variables of the same name on the same ps are one variable, so what one
 * worker learns all have. The program fits y = 3x + 2.
 *
 *   dtg run --local --ps 1 --workers 2 -- example_between_graph      without a launcher it trains alone
 */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

int main(void) {
  dtg_error *err = NULL; dtg_cluster *cluster = NULL; dtg_server *server = NULL;
  dtg_graph *graph = NULL; dtg_model *model = NULL; dtg_session *session = NULL;
  dtg_task self = DTG_TASK_INIT; dtg_server_options place = DTG_SERVER_OPTIONS_INIT; dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  dtg_variable w = DTG_VARIABLE_INIT, b = DTG_VARIABLE_INIT; dtg_optimizer sgd = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT;
  dtg_session_options patience = DTG_SESSION_OPTIONS_INIT;
  dtg_value x, y, product, sum, loss, init; float slope, offset, last; char here[96];
  const float xs[4] = {-1, 0, 1, 2}, ys[4] = {-1, 2, 5, 8}; const int64_t four[1] = {4};

  TRY(dtg_cluster_from_tf_config(NULL, 0, &cluster, &self)); /* who am I, and who else is there */
  place.job = self.type; place.task = self.index;
  if (cluster) TRY(dtg_server_start(NULL, cluster, &place, &server));
  if (cluster && strcmp(self.type, "ps") == 0) { TRY(dtg_server_join(server, DTG_INFINITE)); goto done; }

  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  snprintf(here, sizeof here, "/job:%s/task:%d", self.type, (int)self.index);
  setter.cluster = cluster; setter.worker_device = here;
  if (cluster) TRY(dtg_graph_push_device_setter(graph, &setter)); /* variables to the ps in turns, all else here */
  TRY(dtg_const_of(graph, DTG_F32, four, 1, xs, sizeof xs, &x));
  TRY(dtg_const_of(graph, DTG_F32, four, 1, ys, sizeof ys, &y));
  TRY(dtg_variable_f32(model, "w", 0.0, &w));
  TRY(dtg_variable_f32(model, "b", 0.0, &b));
  TRY(dtg_add2(graph, "Mul", x, w.read, &product));
  TRY(dtg_add2(graph, "AddV2", product, b.read, &sum));
  TRY(dtg_nn_mean_squared_error(model, y, sum, &loss));
  sgd.rate = 0.1;
  TRY(dtg_nn_minimize(model, loss, &sgd, &training));
  TRY(dtg_model_init(model, &init));

  patience.default_timeout_ns = INT64_C(10000000000); /* a worker that comes when the ps is gone should not wait for long */
  TRY(dtg_session_connect(NULL, server ? dtg_server_target(server) : "local", DTG_STRLEN, graph, &patience, &session));
  if (self.is_chief) TRY(dtg_run_target(session, init)); /* once: it sets all back */
  TRY(dtg_model_wait_ready(model, session, patience.default_timeout_ns));
  for (int step = 0; step < 200; step++) TRY(dtg_run_f32(session, loss, training.train, &last));
  TRY(dtg_run_f32(session, w.read, (dtg_value){0}, &slope));
  TRY(dtg_run_f32(session, b.read, (dtg_value){0}, &offset));
  printf("y = %.3f x + %.3f\n", slope, offset);
  if (cluster) TRY(dtg_session_end_job(session, INT64_C(60000000000))); /* when every worker is through, the ps ends too */
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_session_release(session); dtg_model_release(model); dtg_graph_release(graph); dtg_server_release(server); dtg_cluster_release(cluster);
  dtg_error_release(err);
  return err != NULL;
}
