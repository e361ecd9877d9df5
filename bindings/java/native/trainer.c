/* trainer.c: trainers and their fits, pulled event by event. One thread at a time per trainer; stop from any. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

static jlong create(JNIEnv* env, jclass self, jlong model, jlong session, jlong strategy, jbyteArray options) {
  dtg_trainer_options to = DTG_TRAINER_OPTIONS_INIT;
  dtg_optimizer how;
  dtg_trainer* out = NULL;
  packet from;
  const char **inputs, **outputs;
  size_t named;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.session = AS(dtg_session, session);
  to.strategy = AS(dtg_strategy, strategy);
  to.feeds = packet_values(&from, &to.num_feeds);
  to.num_inputs = (size_t)packet_int(&from);
  to.outputs = packet_values(&from, &to.num_outputs);
  inputs = packet_texts(&from, &named, NULL);
  to.input_names = named ? inputs : NULL;
  outputs = packet_texts(&from, &named, NULL);
  to.output_names = named ? outputs : NULL;
  to.loss = of(packet_int(&from));
  to.train = of(packet_int(&from));
  to.training = of(packet_int(&from));
  how = jni_optimizer(&from);
  to.optimizer = &how;
  jni_threw(env, dtg_trainer_create(AS(dtg_model, model), &to, &out));
  free((void*)(uintptr_t)inputs);
  free((void*)(uintptr_t)outputs);
  packet_close(&from);
  return JLONG(out);
}

/* `ids`: {update, reset, result} */
static void add_metric(JNIEnv* env, jclass self, jlong trainer, jbyteArray name, jlongArray ids) {
  dtg_metric_values metric = DTG_METRIC_VALUES_INIT;
  char* text = NULL;
  size_t length, count;
  int64_t* const values = jni_longs(env, ids, &count);
  (void)self;
  if (values && jni_text(env, name, &text, &length)) {
    metric.update = of(values[0]);
    metric.reset = of(values[1]);
    metric.result = of(values[2]);
    jni_threw(env, dtg_trainer_add_metric(AS(dtg_trainer, trainer), text, length, &metric));
  }
  free(text);
  free(values);
}

static jlong session_of(JNIEnv* env, jclass self, jlong trainer) {
  dtg_session* out = NULL;
  (void)self;
  return jni_threw(env, dtg_trainer_session(AS(dtg_trainer, trainer), &out)) ? 0 : JLONG(out);
}

/* The texts are the packet's. */
static dtg_early_stopping read_early_stopping(packet* from) {
  dtg_early_stopping to = DTG_EARLY_STOPPING_INIT;
  to.monitor = packet_text(from, &to.monitor_len);
  to.better = (dtg_better)packet_int(from);
  to.has_baseline = (int32_t)packet_int(from);
  to.baseline = packet_double(from);
  to.min_delta = packet_double(from);
  to.patience = packet_int(from);
  to.start_from_epoch = packet_int(from);
  to.restore_best = (int32_t)packet_int(from);
  return to;
}

static dtg_plateau read_plateau(packet* from) {
  dtg_plateau to = DTG_PLATEAU_INIT;
  to.monitor = packet_text(from, &to.monitor_len);
  to.better = (dtg_better)packet_int(from);
  to.factor = packet_double(from);
  to.min_delta = packet_double(from);
  to.min_rate = packet_double(from);
  to.patience = packet_int(from);
  to.cooldown = packet_int(from);
  return to;
}

static void begin(JNIEnv* env, jclass self, jlong trainer, jlong data, jlong validation, jlong cancellation, jbyteArray how) {
  dtg_fit to = DTG_FIT_INIT;
  dtg_early_stopping stopping;
  dtg_plateau plateau;
  packet from;
  (void)self;
  if (!packet_open(env, how, &from)) return;
  to.epochs = packet_int(&from);
  to.steps_per_epoch = packet_int(&from);
  to.validation_every = packet_int(&from);
  to.validation_steps = packet_int(&from);
  to.time_limit_ns = packet_int(&from);
  to.directory = packet_text(&from, &to.directory_len);
  to.checkpoint_steps = packet_int(&from);
  to.checkpoint_ns = packet_int(&from);
  to.checkpoint_epochs = packet_int(&from);
  to.keep = (int32_t)packet_int(&from);
  to.fresh = (int32_t)packet_int(&from);
  to.no_tensorboard = (int32_t)packet_int(&from);
  to.tensorboard_steps = packet_int(&from);
  to.histogram_epochs = packet_int(&from);
  to.progress = (dtg_progress)packet_int(&from);
  to.best = packet_text(&from, &to.best_len);
  to.best_better = (dtg_better)packet_int(&from);
  if (packet_int(&from)) {
    stopping = read_early_stopping(&from);
    to.early_stopping = &stopping;
  }
  if (packet_int(&from)) {
    plateau = read_plateau(&from);
    to.plateau = &plateau;
  }
  to.cancellation = AS(dtg_cancellation, cancellation);
  jni_threw(env, dtg_trainer_begin(AS(dtg_trainer, trainer), AS(dtg_dataset, data), AS(dtg_dataset, validation), &to));
  packet_close(&from);
}

/* Words of a text in a packet: its length, its bytes, NULs. */
static size_t text_words(const char* text) { return 2 + strlen(text) / sizeof(int64_t); }

static int64_t* put_text(int64_t* at, const char* text) {
  const size_t length = strlen(text);
  *at = (int64_t)length;
  memcpy(at + 1, text, length);
  return at + text_words(text);
}

static int64_t* put_doubles(int64_t* at, const double* values, size_t count) {
  if (count > 0) memcpy(at, values, count * sizeof *values);
  return at + count;
}

/* As a packet, which FitEvent.java reads: {kind, epoch, batch, batches, step, examples, loss, rate, examples a second, seconds, text, count
 * of values, values, names}. */
static jbyteArray event_bytes(JNIEnv* env, const dtg_fit_event* from) {
  const double reals[4] = {from->loss, from->learning_rate, from->examples_per_s, from->seconds};
  size_t words = 11 + text_words(from->text) + from->num_values, i;
  int64_t *out, *at;
  jbyteArray bytes;
  for (i = 0; i < from->num_values; ++i) words += text_words(from->names[i]);
  out = calloc(words, sizeof *out);
  if (!out) return jni_no_memory(env), NULL;
  out[0] = from->kind;
  out[1] = from->epoch;
  out[2] = from->batch;
  out[3] = from->batches;
  out[4] = from->step;
  out[5] = from->examples;
  at = put_text(put_doubles(out + 6, reals, 4), from->text);
  *at++ = (int64_t)from->num_values;
  at = put_doubles(at, from->values, from->num_values);
  for (i = 0; i < from->num_values; ++i) at = put_text(at, from->names[i]);
  bytes = jni_bytes(env, out, words * sizeof *out);
  free(out);
  return bytes;
}

static jbyteArray next(JNIEnv* env, jclass self, jlong trainer) {
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  (void)self;
  return jni_threw(env, dtg_trainer_next(AS(dtg_trainer, trainer), &event)) ? NULL : event_bytes(env, &event);
}

static void export(JNIEnv* env, jclass self, jlong trainer, jbyteArray path) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length)) jni_threw(env, dtg_trainer_export(AS(dtg_trainer, trainer), text, length));
  free(text);
}

static void give_up(JNIEnv* env, jclass self, jlong trainer) {
  (void)self;
  jni_threw(env, dtg_trainer_give_up(AS(dtg_trainer, trainer)));
}

static void stop(JNIEnv* env, jclass self, jlong trainer) {
  (void)env, (void)self;
  dtg_trainer_stop(AS(dtg_trainer, trainer));
}

static jbyteArray summary(JNIEnv* env, jclass self, jlong trainer) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_trainer_summary(AS(dtg_trainer, trainer), &out)) ? NULL : jni_string(env, out);
}

static jdouble train_step(JNIEnv* env, jclass self, jlong trainer, jlongArray tensors, jlong cancellation) {
  double loss = 0;
  size_t count;
  int64_t* const fed = jni_longs(env, tensors, &count);
  (void)self;
  if (fed) {
    jni_threw(env, dtg_trainer_train_step(AS(dtg_trainer, trainer), (const dtg_tensor* const*)(const void*)fed, count,
                                          AS(dtg_cancellation, cancellation), &loss));
  }
  free(fed);
  return loss;
}

static jbyteArray evaluate(JNIEnv* env, jclass self, jlong trainer, jlong data, jlong steps, jlong cancellation) {
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  dtg_error* const error =
      dtg_trainer_evaluate(AS(dtg_trainer, trainer), AS(dtg_dataset, data), steps, AS(dtg_cancellation, cancellation), &event);
  (void)self;
  return jni_threw(env, error) ? NULL : event_bytes(env, &event);
}

static jlongArray predict(JNIEnv* env, jclass self, jlong trainer, jlong data, jlong cancellation, jint count) {
  dtg_tensor** const outputs = calloc((size_t)count + 1, sizeof *outputs);
  jlongArray out = NULL;
  jint i;
  (void)self;
  if (!outputs) jni_no_memory(env);
  if (outputs && !jni_threw(env, dtg_trainer_predict(AS(dtg_trainer, trainer), AS(dtg_dataset, data), AS(dtg_cancellation, cancellation),
                                                     outputs, (size_t)count))) {
    out = jni_array(env, (const int64_t*)(const void*)outputs, (size_t)count);
    for (i = 0; !out && i < count; ++i) dtg_tensor_release(outputs[i]);
  }
  free(outputs);
  return out;
}

static const JNINativeMethod methods[] = {
    NATIVE("trainerCreate", "(JJJ[B)J", create),
    NATIVE("trainerAddMetric", "(J[B[J)V", add_metric),
    NATIVE("trainerSession", "(J)J", session_of),
    NATIVE("trainerBegin", "(JJJJ[B)V", begin),
    NATIVE("trainerNext", "(J)[B", next),
    NATIVE("trainerExport", "(J[B)V", export),
    NATIVE("trainerGiveUp", "(J)V", give_up),
    NATIVE("trainerStop", "(J)V", stop),
    NATIVE("trainerSummary", "(J)[B", summary),
    NATIVE("trainerStep", "(J[JJ)D", train_step),
    NATIVE("trainerEvaluate", "(JJJJ)[B", evaluate),
    NATIVE("trainerPredict", "(JJJI)[J", predict),
};
JNI_TABLE(jni_trainer, methods);
