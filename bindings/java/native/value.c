/* value.c: what a graph knows about its values. Any Java thread. */
#include "dtg_jni.h"

static dtg_value of(jlong id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

/* 0: the node's name, 1: its op, 2: the device it asks for. */
static jbyteArray text(JNIEnv* env, jclass self, jlong handle, jlong value, jint which) {
  const dtg_graph* graph = AS(dtg_graph, handle);
  const char* out = NULL;
  size_t length = 0;
  dtg_error* error;
  (void)self;
  if (which == 0) {
    error = dtg_value_name(graph, of(value), &out, &length);
  } else if (which == 1) {
    error = dtg_value_op(graph, of(value), &out, &length);
  } else {
    error = dtg_value_device(graph, of(value), &out, &length);
  }
  return jni_threw(env, error) ? NULL : jni_bytes(env, out, length);
}

static jlong num_outputs(JNIEnv* env, jclass self, jlong graph, jlong value) {
  size_t out = 0;
  (void)self;
  return jni_threw(env, dtg_value_num_outputs(AS(dtg_graph, graph), of(value), &out)) ? 0 : (jlong)out;
}

static jlong output(JNIEnv* env, jclass self, jlong graph, jlong value, jlong i) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_value_output(AS(dtg_graph, graph), of(value), (size_t)i, &out)) ? 0 : (jlong)out.id;
}

static jint dtype(JNIEnv* env, jclass self, jlong graph, jlong value) {
  dtg_dtype out = 0;
  (void)self;
  return jni_threw(env, dtg_value_dtype(AS(dtg_graph, graph), of(value), &out)) ? 0 : out;
}

/* Null when the rank is unknown. */
static jlongArray shape(JNIEnv* env, jclass self, jlong graph, jlong value) {
  int64_t dims[64];
  int32_t rank = -1;
  (void)self;
  if (jni_threw(env, dtg_value_shape(AS(dtg_graph, graph), of(value), dims, 64, &rank)) || rank < 0) return NULL;
  return jni_array(env, dims, rank < 64 ? (size_t)rank : 64);
}

static const JNINativeMethod methods[] = {
    NATIVE("valueText", "(JJI)[B", text), NATIVE("valueNumOutputs", "(JJ)J", num_outputs), NATIVE("valueOutput", "(JJJ)J", output),
    NATIVE("valueDtype", "(JJ)I", dtype), NATIVE("valueShape", "(JJ)[J", shape),
};
JNI_TABLE(jni_value, methods);
