/* layers.c: layers, losses and metrics. One thread at a time per model. */
#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

static jlong dense(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_dense to = DTG_DENSE_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.units = packet_int(&from);
  to.activation = (dtg_activation)packet_int(&from);
  to.no_bias = (int32_t)packet_int(&from);
  to.kernel = packet_initializer(&from);
  to.bias = packet_initializer(&from);
  jni_threw(env, dtg_nn_dense(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong conv2d(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_conv2d to = DTG_CONV2D_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.filters = packet_int(&from);
  to.kernel_height = packet_int(&from);
  to.kernel_width = packet_int(&from);
  to.stride_height = packet_int(&from);
  to.stride_width = packet_int(&from);
  to.dilation_height = packet_int(&from);
  to.dilation_width = packet_int(&from);
  to.padding = (dtg_padding)packet_int(&from);
  to.activation = (dtg_activation)packet_int(&from);
  to.no_bias = (int32_t)packet_int(&from);
  to.kernel = packet_initializer(&from);
  to.bias = packet_initializer(&from);
  jni_threw(env, dtg_nn_conv2d(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong pool2d(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer, jboolean average) {
  dtg_pool2d to = DTG_POOL2D_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.window_height = packet_int(&from);
  to.window_width = packet_int(&from);
  to.stride_height = packet_int(&from);
  to.stride_width = packet_int(&from);
  to.padding = (dtg_padding)packet_int(&from);
  jni_threw(
      env, average ? dtg_nn_avg_pool2d(AS(dtg_model, model), of(x), &to, &out) : dtg_nn_max_pool2d(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong embedding(JNIEnv* env, jclass self, jlong model, jlong ids, jbyteArray layer) {
  dtg_embedding to = DTG_EMBEDDING_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.rows = packet_int(&from);
  to.width = packet_int(&from);
  to.table = packet_initializer(&from);
  jni_threw(env, dtg_nn_embedding(AS(dtg_model, model), of(ids), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong flatten(JNIEnv* env, jclass self, jlong model, jlong x) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_flatten(AS(dtg_model, model), of(x), &out)) ? 0 : (jlong)out.id;
}

static jlong dropout(JNIEnv* env, jclass self, jlong model, jlong x, jdouble rate, jlong step, jlong training) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_dropout(AS(dtg_model, model), of(x), rate, of(step), of(training), &out)) ? 0 : (jlong)out.id;
}

static jlong activation(JNIEnv* env, jclass self, jlong model, jlong x, jint kind) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_activation(AS(dtg_model, model), of(x), kind, &out)) ? 0 : (jlong)out.id;
}

/* The losses and metrics of labels and logits, numbered as in Model.java. */
static jlong judge(JNIEnv* env, jclass self, jlong model, jint which, jlong labels, jlong logits) {
  typedef dtg_error* (*judge_fn)(dtg_model*, dtg_value, dtg_value, dtg_value*);
  static const judge_fn judges[] = {
      dtg_nn_sparse_softmax_cross_entropy,
      dtg_nn_softmax_cross_entropy,
      dtg_nn_sigmoid_cross_entropy,
      dtg_nn_mean_squared_error,
      dtg_nn_accuracy,
      dtg_nn_correct_count,
  };
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, judges[which](AS(dtg_model, model), of(labels), of(logits), &out)) ? 0 : (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("nnDense", "(JJ[B)J", dense),          NATIVE("nnConv2d", "(JJ[B)J", conv2d), NATIVE("nnPool2d", "(JJ[BZ)J", pool2d),
    NATIVE("nnEmbedding", "(JJ[B)J", embedding),  NATIVE("nnFlatten", "(JJ)J", flatten), NATIVE("nnDropout", "(JJDJJ)J", dropout),
    NATIVE("nnActivation", "(JJI)J", activation), NATIVE("nnJudge", "(JIJJ)J", judge),
};
JNI_TABLE(jni_layers, methods);
