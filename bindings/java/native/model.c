/* model.c: models and their variables. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

static jlong create(JNIEnv* env, jclass self, jlong graph, jlong seed) {
  dtg_model* out = NULL;
  (void)self;
  return jni_threw(env, dtg_model_create(AS(dtg_graph, graph), (uint64_t)seed, &out)) ? 0 : JLONG(out);
}

/* {dtype, trainable, handle, read, assign, dimensions...}; Java asks the graph for the name. */
static jlongArray variable(JNIEnv* env, const dtg_variable* from) {
  int64_t out[5 + 8];
  out[0] = from->dtype;
  out[1] = from->trainable;
  out[2] = (int64_t)from->handle.id;
  out[3] = (int64_t)from->read.id;
  out[4] = (int64_t)from->assign.id;
  memcpy(out + 5, from->dims, from->rank * sizeof *out);
  return jni_array(env, out, 5 + from->rank);
}

static jlongArray add_variable(JNIEnv* env, jclass self, jlong model, jbyteArray spec) {
  dtg_variable_spec to = DTG_VARIABLE_SPEC_INIT;
  dtg_variable out = DTG_VARIABLE_INIT;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, spec, &from)) return NULL;
  to.name = packet_text(&from, &to.name_len);
  to.dtype = (dtg_dtype)packet_int(&from);
  to.not_trainable = (int32_t)packet_int(&from);
  to.dims = packet_ints(&from, &to.rank);
  to.initializer = packet_initializer(&from);
  failed = jni_threw(env, dtg_model_add_variable(AS(dtg_model, model), &to, &out));
  packet_close(&from);
  return failed ? NULL : variable(env, &out);
}

static jlong variable_count(JNIEnv* env, jclass self, jlong model) {
  (void)env, (void)self;
  return (jlong)dtg_model_variable_count(AS(dtg_model, model));
}

static jlongArray variable_at(JNIEnv* env, jclass self, jlong model, jlong i) {
  dtg_variable out = DTG_VARIABLE_INIT;
  (void)self;
  return jni_threw(env, dtg_model_variable(AS(dtg_model, model), (size_t)i, &out)) ? NULL : variable(env, &out);
}

static jlongArray find_variable(JNIEnv* env, jclass self, jlong model, jbyteArray name) {
  dtg_variable out = DTG_VARIABLE_INIT;
  char* text;
  size_t length;
  bool failed = true;
  (void)self;
  if (jni_text(env, name, &text, &length)) failed = jni_threw(env, dtg_model_find_variable(AS(dtg_model, model), text, length, &out));
  free(text);
  return failed ? NULL : variable(env, &out);
}

static jlongArray global_step(JNIEnv* env, jclass self, jlong model) {
  dtg_variable out = DTG_VARIABLE_INIT;
  (void)self;
  return jni_threw(env, dtg_model_global_step(AS(dtg_model, model), &out)) ? NULL : variable(env, &out);
}

static jlong init(JNIEnv* env, jclass self, jlong model) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_model_init(AS(dtg_model, model), &out)) ? 0 : (jlong)out.id;
}

static void save_restore(JNIEnv* env, jclass self, jlong model, jlong session, jbyteArray path, jboolean save) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length)) {
    jni_threw(env, save ? dtg_model_save(AS(dtg_model, model), AS(dtg_session, session), text, length)
                        : dtg_model_restore(AS(dtg_model, model), AS(dtg_session, session), text, length));
  }
  free(text);
}

static void next_tower(JNIEnv* env, jclass self, jlong model) {
  (void)self;
  jni_threw(env, dtg_model_next_tower(AS(dtg_model, model)));
}

static void wait_ready(JNIEnv* env, jclass self, jlong model, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_model_wait_ready(AS(dtg_model, model), AS(dtg_session, session), timeout_ns));
}

static const JNINativeMethod methods[] = {
    NATIVE("modelCreate", "(JJ)J", create),
    NATIVE("modelAddVariable", "(J[B)[J", add_variable),
    NATIVE("modelVariableCount", "(J)J", variable_count),
    NATIVE("modelVariable", "(JJ)[J", variable_at),
    NATIVE("modelFindVariable", "(J[B)[J", find_variable),
    NATIVE("modelGlobalStep", "(J)[J", global_step),
    NATIVE("modelInit", "(J)J", init),
    NATIVE("modelSaveRestore", "(JJ[BZ)V", save_restore),
    NATIVE("modelNextTower", "(J)V", next_tower),
    NATIVE("modelWaitReady", "(JJJ)V", wait_ready),
};
JNI_TABLE(jni_model, methods);
