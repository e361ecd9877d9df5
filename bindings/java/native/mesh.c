/* mesh.c: meshes, their builds and layers. One thread at a time per model. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

static jlong create(JNIEnv* env, jclass self, jlong model, jbyteArray options) {
  dtg_mesh_options to = DTG_MESH_OPTIONS_INIT;
  dtg_mesh* out = NULL;
  const char** devices;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.data = packet_int(&from);
  to.model = packet_int(&from);
  to.pipe = packet_int(&from);
  to.zero = (dtg_mesh_zero)packet_int(&from);
  to.devices = devices = packet_texts(&from, &to.num_devices, NULL);
  jni_threw(env, dtg_mesh_create(AS(dtg_model, model), &to, &out));
  free((void*)(uintptr_t)devices);
  packet_close(&from);
  return JLONG(out);
}

static void begin(JNIEnv* env, jclass self, jlong mesh, jlongArray batch, jlong micro_batches, jboolean forward_only) {
  size_t count = 0;
  int64_t* values = jni_longs(env, batch, &count);
  (void)self;
  if (values) jni_threw(env, dtg_mesh_begin(AS(dtg_mesh, mesh), (const dtg_value*)values, count, micro_batches, forward_only));
  free(values);
}

/* {stage, data, micro, values of the batch, their ids..., ids of inputs...}; null where all is built. */
static jlongArray next(JNIEnv* env, jclass self, jlong mesh) {
  dtg_mesh_step step = DTG_MESH_STEP_INIT;
  int32_t more = 0;
  jlongArray array = NULL;
  int64_t* out;
  (void)self;
  if (jni_threw(env, dtg_mesh_next(AS(dtg_mesh, mesh), &step, &more)) || !more) return NULL;
  out = (int64_t*)malloc((4 + step.num_batch + step.num_inputs) * sizeof *out);
  if (!out) {
    jni_no_memory(env);
    return NULL;
  }
  out[0] = step.stage;
  out[1] = step.data;
  out[2] = step.micro;
  out[3] = (int64_t)step.num_batch;
  if (step.num_batch) memcpy(out + 4, step.batch, step.num_batch * sizeof *out);
  if (step.num_inputs) memcpy(out + 4 + step.num_batch, step.inputs, step.num_inputs * sizeof *out);
  array = jni_array(env, out, 4 + step.num_batch + step.num_inputs);
  free(out);
  return array;
}

static void give(JNIEnv* env, jclass self, jlong mesh, jlongArray outputs) {
  size_t count = 0;
  int64_t* values = jni_longs(env, outputs, &count);
  (void)self;
  if (values) jni_threw(env, dtg_mesh_give(AS(dtg_mesh, mesh), (const dtg_value*)values, count));
  free(values);
}

static void abandon(JNIEnv* env, jclass self, jlong mesh) {
  (void)self;
  jni_threw(env, dtg_mesh_abandon(AS(dtg_mesh, mesh)));
}

static jlong result(JNIEnv* env, jclass self, jlong mesh, jlong k) {
  dtg_value out = {0};
  (void)self;
  jni_threw(env, dtg_mesh_result(AS(dtg_mesh, mesh), (size_t)k, &out));
  return (jlong)out.id;
}

static jlongArray minimize(JNIEnv* env, jclass self, jlong mesh, jbyteArray optimizer) {
  dtg_training out = DTG_TRAINING_INIT;
  dtg_optimizer how;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  failed = jni_threw(env, dtg_mesh_minimize(AS(dtg_mesh, mesh), &how, &out));
  packet_close(&from);
  return failed ? NULL : jni_training_ids(env, &out);
}

static jlongArray column_dense(JNIEnv* env, jclass self, jlong mesh, jlong x, jint parts, jbyteArray layer) {
  dtg_value* out = (dtg_value*)calloc((size_t)parts + 1, sizeof *out);
  dtg_dense to;
  packet from;
  jlongArray made = NULL;
  (void)self;
  if (!out) {
    jni_no_memory(env);
  } else if (packet_open(env, layer, &from)) {
    to = jni_dense(&from);
    if (!jni_threw(env, dtg_mesh_column_dense(AS(dtg_mesh, mesh), of(x), &to, out, (size_t)parts)))
      made = jni_array(env, (const int64_t*)out, (size_t)parts);
    packet_close(&from);
  }
  free(out);
  return made;
}

static jlong row_dense(JNIEnv* env, jclass self, jlong mesh, jlongArray parts, jbyteArray layer) {
  dtg_value out = {0};
  dtg_dense to;
  packet from;
  size_t count = 0;
  int64_t* values = jni_longs(env, parts, &count);
  (void)self;
  if (values && packet_open(env, layer, &from)) {
    to = jni_dense(&from);
    jni_threw(env, dtg_mesh_row_dense(AS(dtg_mesh, mesh), (const dtg_value*)values, count, &to, &out));
    packet_close(&from);
  }
  free(values);
  return (jlong)out.id;
}

static jlong together(JNIEnv* env, jclass self, jlong mesh, jlongArray parts, jint axis) {
  dtg_value out = {0};
  size_t count = 0;
  int64_t* values = jni_longs(env, parts, &count);
  (void)self;
  if (values) jni_threw(env, dtg_mesh_together(AS(dtg_mesh, mesh), (const dtg_value*)values, count, axis, &out));
  free(values);
  return (jlong)out.id;
}

static jlong embedding(JNIEnv* env, jclass self, jlong mesh, jlong ids, jint by, jbyteArray layer) {
  dtg_value out = {0};
  dtg_embedding to;
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to = jni_embedding(&from);
  jni_threw(env, dtg_mesh_embedding(AS(dtg_mesh, mesh), of(ids), &to, by, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong attention(JNIEnv* env, jclass self, jlong mesh, jlong query, jlong value, jbyteArray layer) {
  dtg_value out = {0};
  dtg_attention to;
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to = jni_attention(&from);
  jni_threw(env, dtg_mesh_attention(AS(dtg_mesh, mesh), of(query), of(value), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("meshCreate", "(J[B)J", create),
    NATIVE("meshBegin", "(J[JJZ)V", begin),
    NATIVE("meshNext", "(J)[J", next),
    NATIVE("meshGive", "(J[J)V", give),
    NATIVE("meshAbandon", "(J)V", abandon),
    NATIVE("meshResult", "(JJ)J", result),
    NATIVE("meshMinimize", "(J[B)[J", minimize),
    NATIVE("meshColumnDense", "(JJI[B)[J", column_dense),
    NATIVE("meshRowDense", "(J[J[B)J", row_dense),
    NATIVE("meshTogether", "(J[JI)J", together),
    NATIVE("meshEmbedding", "(JJI[B)J", embedding),
    NATIVE("meshAttention", "(JJJ[B)J", attention),
};
JNI_TABLE(jni_mesh, methods);
