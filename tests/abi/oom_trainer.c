/* Memory that runs out in fits: trainers with metrics, rules, validation, a directory of checkpoints, curves and models, and what is asked
 * of them between. A fit that failed is over, and one that is begun again goes on from its last checkpoint (dtg/trainer.h): so every fit
 * here comes to its end, and to as many steps. See oom.h. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static const dtg_value none = {0};

/* Ten rows of three numbers and a class, in batches of four. */
static int rows(int k) {
  const int64_t dims[] = {10, 3};
  PART(new_tensor(0, DTG_F32, dims, 2));
  PART(new_tensor(1, DTG_I64, dims, 1));
  TRY(dtg_dataset_tensors(runtime, (const dtg_tensor *const *)h.tensor, 2, &h.data[k]));
  LET_GO(tensor, h.tensor);
  memset(h.tensor, 0, sizeof h.tensor);
  ONCE(dtg_dataset_shuffle(h.data[k], 0, 3));
  ONCE(dtg_dataset_batch(h.data[k], 4, 0));
  return 1;
}

static int new_trainer(void) {
  const int64_t dims[] = {-1, 3};
  dtg_value feeds[2], logits, loss;
  dtg_dense layer = DTG_DENSE_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT;
  dtg_metric how = DTG_METRIC_INIT;
  dtg_metric_values accuracy = DTG_METRIC_VALUES_INIT;
  PART(new_graph(0));
  TRY(dtg_placeholder(h.graph[0], "x", DTG_F32, dims, 2, &feeds[0]));
  TRY(dtg_placeholder(h.graph[0], "y", DTG_I64, dims, 1, &feeds[1]));
  layer.units = 3;
  TRY(dtg_nn_dense(h.model[0], feeds[0], &layer, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(h.model[0], feeds[1], logits, &loss));
  how.kind = DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY;
  TRY(dtg_nn_metric(h.model[0], &how, feeds[1], logits, none, &accuracy));
  adam.kind = DTG_OPT_ADAM;
  what.feeds = feeds;
  what.num_feeds = 2;
  what.outputs = &logits;
  what.num_outputs = 1;
  what.loss = loss;
  what.optimizer = &adam;
  TRY(dtg_trainer_create(h.model[0], &what, &h.trainer));
  TRY(dtg_trainer_add_metric(h.trainer, "accuracy", DTG_STRLEN, &accuracy));
  return 1;
}

/* Pulls a fit to its end, from its last checkpoint where it fails. */
static int pulled(const dtg_fit *how, int64_t steps) {
  for (int again = 0; again < 3; again++) {
    dtg_fit_event event = DTG_FIT_EVENT_INIT;
    dtg_error *failed = NULL;
    TRY(dtg_trainer_begin(h.trainer, h.data[0], h.data[1], how));
    while (!failed && event.kind != DTG_FIT_DONE) failed = dtg_trainer_next(h.trainer, &event);
    if (!failed) {
      HOLDS(event.step == steps);
      return 1;
    }
    int tries = tries_before();
    if (judge(failed, 1, &tries, "dtg_trainer_next", __LINE__) < 0) return 0;
    /* The fit is over, and says so again. */
    failed = dtg_trainer_next(h.trainer, &event);
    HOLDS(failed != NULL);
    dtg_error_release(failed);
    if (way == LASTING) {
      fail_no_more();
      is_back = 1;
    }
  }
  return 0;
}

/* Two epochs with validation and rules, nothing kept. */
static int short_fit(void) {
  dtg_fit how = DTG_FIT_INIT;
  dtg_early_stopping stopping = DTG_EARLY_STOPPING_INIT;
  dtg_plateau plateau = DTG_PLATEAU_INIT;
  how.epochs = 2;
  how.progress = DTG_PROGRESS_OFF;
  stopping.patience = 5;
  stopping.restore_best = 1;
  plateau.patience = 1;
  plateau.monitor = "loss";
  how.early_stopping = &stopping;
  how.plateau = &plateau;
  PART(new_trainer());
  PART(rows(0));
  PART(rows(1));
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  TRY(dtg_trainer_begin(h.trainer, h.data[0], h.data[1], &how));
  while (event.kind != DTG_FIT_DONE) ONCE(dtg_trainer_next(h.trainer, &event));
  HOLDS(event.step == 6);
  TRY(dtg_trainer_summary(h.trainer, &h.string[0]));
  return 1;
}

/* With a directory, a best epoch, checkpoints and curves. */
static int kept(void) {
  static int number;
  char path[96], file[128];
  dtg_fit how = DTG_FIT_INIT;
  snprintf(path, sizeof path, "%s/run-%d", folder, number++);
  how.epochs = 2;
  how.directory = path;
  how.checkpoint_steps = 2;
  how.best = "val_accuracy";
  how.tensorboard_steps = 2;
  how.histogram_epochs = 1;
  how.progress = DTG_PROGRESS_OFF;
  PART(new_trainer());
  PART(rows(0));
  PART(rows(1));
  PART(pulled(&how, 6));
  snprintf(file, sizeof file, "%s/model.dtg", path);
  TRY(dtg_model_load(runtime, file, DTG_STRLEN, NULL, &h.model[1]));
  return 1;
}

static int events;
static dtg_error *hear(void *user, dtg_trainer *trainer, const dtg_fit_event *event) {
  events++;
  if (event->kind == DTG_FIT_STEP && event->step == 4) dtg_trainer_stop(trainer);
  return (void)user, NULL;
}

/* By callbacks, stopped on the way. */
static int told_fit(void) {
  dtg_fit how = DTG_FIT_INIT;
  dtg_fit_callbacks callbacks = DTG_FIT_CALLBACKS_INIT;
  how.epochs = 3;
  how.progress = DTG_PROGRESS_OFF;
  callbacks.step = callbacks.done = callbacks.stopped = hear;
  events = 0;
  PART(new_trainer());
  PART(rows(0));
  TRY(dtg_trainer_fit(h.trainer, h.data[0], NULL, &how, &callbacks));
  HOLDS(events >= 3);
  TRY(dtg_trainer_give_up(h.trainer));
  return 1;
}

/* Between fits: steps of one's own, what is measured, predicted and exported. */
static int by_hand(void) {
  const int64_t dims[] = {4, 3};
  char path[96];
  double loss = 0;
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  snprintf(path, sizeof path, "%s/by-hand.dtg", folder);
  PART(new_trainer());
  TRY(dtg_trainer_session(h.trainer, &h.session[0]));
  PART(rows(0));
  PART(new_tensor(0, DTG_F32, dims, 2));
  PART(new_tensor(1, DTG_I64, dims, 1));
  TRY(dtg_trainer_train_step(h.trainer, (const dtg_tensor *const *)h.tensor, 2, NULL, &loss));
  TRY(dtg_trainer_evaluate(h.trainer, h.data[0], 0, NULL, &event));
  HOLDS(event.num_values == 2);
  TRY(dtg_trainer_predict(h.trainer, h.data[0], NULL, &h.tensor[2], 1));
  HOLDS(dtg_tensor_dim(h.tensor[2], 0) == 10);
  TRY(dtg_trainer_export(h.trainer, path, DTG_STRLEN));
  dtg_trainer_release(dtg_trainer_retain(h.trainer));
  return 1;
}

static const struct scene scenes[] = {
    {"short fit", short_fit, 0, 0},
    {"kept", kept, 0, 0},
    {"told fit", told_fit, 0, 0},
    {"by hand", by_hand, 0, 0},
};
#endif

STAGE("trainer", scenes)
