/* quickstart.c: the smallest whole training program: find the w for which (w - 3)^2 is least. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

int main(void) {
  dtg_error *err = NULL; dtg_graph *graph = NULL; dtg_model *model = NULL; dtg_session *session = NULL;
  dtg_variable w = DTG_VARIABLE_INIT; dtg_optimizer sgd = DTG_OPTIMIZER_INIT; dtg_training training = DTG_TRAINING_INIT;
  dtg_value three, loss, init;
  float value;
  sgd.rate = 0.25;
  TRY(dtg_graph_create(NULL, &graph));
  TRY(dtg_model_create(graph, 1, &model));
  TRY(dtg_variable_f32(model, "w", 0.0, &w));
  TRY(dtg_const_f32(graph, 3.0f, &three));
  TRY(dtg_nn_mean_squared_error(model, three, w.read, &loss));
  TRY(dtg_nn_minimize(model, loss, &sgd, &training));
  TRY(dtg_model_init(model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, NULL, &session));
  TRY(dtg_run_target(session, init));
  for (int step = 0; step < 5; step++) {
    TRY(dtg_run_f32(session, loss, training.train, &value));
    printf("step %d: loss %g\n", step, value);
  }
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_error_release(err); dtg_session_release(session); dtg_model_release(model); dtg_graph_release(graph);
  return err != NULL;
}
