/* coordinator.c: one program trains with two workers that are plain servers. For an example all of the cluster is in this process; with
 * `dtg server --cluster SPEC --job worker --task 0` and so on its tasks are processes of their own, anywhere. */
#define _DEFAULT_SOURCE
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <dtg/sugar_ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

int main(void) {
  dtg_error *err = NULL; dtg_cluster *cluster = NULL; dtg_server *servers[4] = {NULL}; dtg_graph *graph = NULL; dtg_model *model = NULL;
  dtg_session *session = NULL; dtg_coordinator *coordinator = NULL; dtg_closure *closure = NULL; dtg_remote_value *last = NULL;
  dtg_tensor *tensor = NULL, *loss_now = NULL; int code = 1;
  dtg_variable w = DTG_VARIABLE_INIT; dtg_training training = DTG_TRAINING_INIT; dtg_run_args step = DTG_RUN_ARGS_INIT;
  dtg_value x, two, product, wanted, loss, init, none = {0};
  char folder[] = "/tmp/dtg-XXXXXX", spec[400];
  if (!mkdtemp(folder)) return 1;
  snprintf(spec, sizeof spec, "chief=unix:%s/chief;ps=unix:%s/ps;worker=unix:%s/w0,unix:%s/w1", folder, folder, folder, folder);
  TRY(dtg_cluster_parse(spec, DTG_STRLEN, &cluster));
  for (int i = 0; i < 4; i++) {
    dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
    options.job = i == 0 ? "chief" : i == 1 ? "ps" : "worker"; options.task = i == 3;
    TRY(dtg_server_start(NULL, cluster, &options, &servers[i]));
  }
  /* The w for which x * w = 2 * x: the variable on the parameter server, everything else on whichever worker takes the closure. */
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_placeholder(graph, "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_graph_push_device(graph, "/job:ps", DTG_STRLEN));
  TRY(dtg_variable_f32(model, "w", 0.0, &w));
  TRY(dtg_graph_pop_device(graph));
  TRY(dtg_const_f32(graph, 2.0f, &two));
  TRY(dtg_add_mul(graph, NULL, x, w.read, &product));
  TRY(dtg_add_mul(graph, NULL, x, two, &wanted));
  TRY(dtg_nn_mean_squared_error(model, wanted, product, &loss));
  TRY(dtg_nn_minimize(model, loss, NULL, &training));
  TRY(dtg_model_init(model, &init));
  TRY(dtg_session_connect(NULL, dtg_server_target(servers[0]), DTG_STRLEN, graph, NULL, &session));
  TRY(dtg_run_target(session, init));
  TRY(dtg_coordinator_create(session, NULL, &coordinator));
  step.feeds = &x; step.num_feeds = 1; step.fetches = &loss; step.num_fetches = 1; step.targets = &training.train; step.num_targets = 1;
  TRY(dtg_coordinator_prepare(coordinator, &step, none, &closure));
  for (int i = 0; i < 400; i++) {
    dtg_tensor_release(tensor); tensor = NULL;
    TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &tensor));
    *(float *)dtg_tensor_mutable_data(tensor) = 1.0f + (float)(i % 3);
    dtg_remote_value_release(last); last = NULL;
    TRY(dtg_coordinator_schedule(coordinator, closure, (const dtg_tensor *const *)&tensor, 1, NULL, &last));
  }
  TRY(dtg_coordinator_join(coordinator, 0, NULL));
  TRY(dtg_remote_value_fetch(last, &loss_now, 1, 0, NULL));
  printf("loss of the last closure: %g\n", *(const float *)dtg_tensor_data(loss_now, NULL));
  code = *(const float *)dtg_tensor_data(loss_now, NULL) > 0.01f;
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_error_release(err); dtg_tensor_release(tensor); dtg_tensor_release(loss_now); dtg_remote_value_release(last); dtg_closure_release(closure);
  dtg_coordinator_release(coordinator); dtg_session_release(session); dtg_model_release(model); dtg_graph_release(graph);
  for (int i = 0; i < 4; i++) dtg_server_release(servers[i]);
  dtg_cluster_release(cluster); rmdir(folder);
  return code;
}
