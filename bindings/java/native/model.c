/* model.c: models and their variables. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

static jlong create(JNIEnv* env, jclass self, jlong graph, jlong seed) {
  dtg_model* out = NULL;
  (void)self;
  return jni_threw(env, dtg_model_create(AS(dtg_graph, graph), (uint64_t)seed, &out)) ? 0 : JLONG(out);
}

static jlong inside(JNIEnv* env, jclass self, jlong model, jlong body) {
  dtg_model* out = NULL;
  (void)self;
  return jni_threw(env, dtg_model_inside(AS(dtg_model, model), AS(dtg_graph, body), &out)) ? 0 : JLONG(out);
}

/* {dtype, trainable, handle, read, assign, dimensions...}; Java asks the graph for the name. */
jlongArray jni_variable(JNIEnv* env, const dtg_variable* from) {
  int64_t out[5 + 8];
  out[0] = from->dtype;
  out[1] = from->trainable;
  out[2] = (int64_t)from->handle.id;
  out[3] = (int64_t)from->read.id;
  out[4] = (int64_t)from->assign.id;
  memcpy(out + 5, from->dims, from->rank * sizeof *out);
  return jni_array(env, out, 5 + from->rank);
}

dtg_variable_spec jni_variable_spec(packet* from) {
  dtg_variable_spec to = DTG_VARIABLE_SPEC_INIT;
  to.name = packet_text(from, &to.name_len);
  to.dtype = (dtg_dtype)packet_int(from);
  to.not_trainable = (int32_t)packet_int(from);
  to.dims = packet_ints(from, &to.rank);
  to.initializer = packet_initializer(from);
  to.synchronization = (dtg_variable_sync)packet_int(from);
  to.aggregation = (dtg_variable_aggregation)packet_int(from);
  return to;
}

static jlongArray add_variable(JNIEnv* env, jclass self, jlong model, jbyteArray spec) {
  dtg_variable_spec to;
  dtg_variable out = DTG_VARIABLE_INIT;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, spec, &from)) return NULL;
  to = jni_variable_spec(&from);
  failed = jni_threw(env, dtg_model_add_variable(AS(dtg_model, model), &to, &out));
  packet_close(&from);
  return failed ? NULL : jni_variable(env, &out);
}

static jlong variable_count(JNIEnv* env, jclass self, jlong model) {
  (void)env, (void)self;
  return (jlong)dtg_model_variable_count(AS(dtg_model, model));
}

static jlongArray variable_at(JNIEnv* env, jclass self, jlong model, jlong i) {
  dtg_variable out = DTG_VARIABLE_INIT;
  (void)self;
  return jni_threw(env, dtg_model_variable(AS(dtg_model, model), (size_t)i, &out)) ? NULL : jni_variable(env, &out);
}

static jlongArray find_variable(JNIEnv* env, jclass self, jlong model, jbyteArray name) {
  dtg_variable out = DTG_VARIABLE_INIT;
  char* text;
  size_t length;
  bool failed = true;
  (void)self;
  if (jni_text(env, name, &text, &length)) failed = jni_threw(env, dtg_model_find_variable(AS(dtg_model, model), text, length, &out));
  free(text);
  return failed ? NULL : jni_variable(env, &out);
}

static jlongArray global_step(JNIEnv* env, jclass self, jlong model) {
  dtg_variable out = DTG_VARIABLE_INIT;
  (void)self;
  return jni_threw(env, dtg_model_global_step(AS(dtg_model, model), &out)) ? NULL : jni_variable(env, &out);
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

static void set_metadata(JNIEnv* env, jclass self, jlong model, jbyteArray key, jbyteArray value) {
  char *name = NULL, *text = NULL;
  size_t name_len = 0, text_len = 0;
  (void)self;
  if (jni_text(env, key, &name, &name_len) && jni_text(env, value, &text, &text_len)) {
    jni_threw(env, dtg_model_set_metadata(AS(dtg_model, model), name, name_len, text, text_len));
  }
  free(name);
  free(text);
}

static jbyteArray metadata(JNIEnv* env, jclass self, jlong model, jbyteArray key) {
  char* name = NULL;
  size_t length = 0;
  dtg_string* out = NULL;
  jbyteArray text = NULL;
  (void)self;
  if (jni_text(env, key, &name, &length) && !jni_threw(env, dtg_model_metadata(AS(dtg_model, model), name, length, &out))) {
    text = jni_string(env, out);
  }
  free(name);
  return text;
}

static void next_tower(JNIEnv* env, jclass self, jlong model) {
  (void)self;
  jni_threw(env, dtg_model_next_tower(AS(dtg_model, model)));
}

static void wait_ready(JNIEnv* env, jclass self, jlong model, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_model_wait_ready(AS(dtg_model, model), AS(dtg_session, session), timeout_ns));
}

static void recover(JNIEnv* env, jclass self, jlong model, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_model_recover(AS(dtg_model, model), AS(dtg_session, session), timeout_ns));
}

static jlong import(JNIEnv* env, jclass self, jlong graph, jlong seed) {
  dtg_model* out = NULL;
  (void)self;
  return jni_threw(env, dtg_model_import(AS(dtg_graph, graph), (uint64_t)seed, &out)) ? 0 : JLONG(out);
}

static void export(JNIEnv* env, jclass self, jlong model, jlong session, jbyteArray what) {
  dtg_export to = DTG_EXPORT_INIT;
  packet from;
  const char *path, **inputs, **outputs;
  size_t length, count;
  (void)self;
  if (!packet_open(env, what, &from)) return;
  path = packet_text(&from, &length);
  to.input_names = inputs = packet_texts(&from, &to.num_inputs, NULL);
  to.inputs = (const dtg_value*)(const void*)packet_ints(&from, &count);
  to.output_names = outputs = packet_texts(&from, &to.num_outputs, NULL);
  to.outputs = (const dtg_value*)(const void*)packet_ints(&from, &count);
  to.freeze = (int32_t)packet_int(&from);
  jni_threw(env, dtg_model_export(AS(dtg_model, model), AS(dtg_session, session), &to, path, length));
  free((void*)(uintptr_t)inputs);
  free((void*)(uintptr_t)outputs);
  packet_close(&from);
}

/* {model, graph, session} */
static jlongArray load(JNIEnv* env, jclass self, jlong runtime, jbyteArray path) {
  dtg_session* session = NULL;
  dtg_model* model = NULL;
  dtg_graph* graph = NULL;
  jlongArray out = NULL;
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length) && !jni_threw(env, dtg_model_load(AS(dtg_runtime, runtime), text, length, &session, &model)) &&
      !jni_threw(env, dtg_model_graph(model, &graph))) {
    const int64_t all[] = {JLONG(model), JLONG(graph), JLONG(session)};
    out = jni_array(env, all, 3);
  }
  if (!out) {
    dtg_graph_release(graph);
    dtg_model_release(model);
    dtg_session_release(session);
  }
  free(text);
  return out;
}

static jlong endpoint(JNIEnv* env, jclass self, jlong model, jbyteArray name) {
  dtg_value out = {0};
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_model_endpoint(AS(dtg_model, model), text, length, &out));
  free(text);
  return (jlong)out.id;
}

static jbyteArray endpoints(JNIEnv* env, jclass self, jlong model) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_model_endpoints(AS(dtg_model, model), &out)) ? NULL : jni_string(env, out);
}

static void set_classes(JNIEnv* env, jclass self, jlong model, jbyteArray what) {
  packet from;
  const char *output, **names;
  size_t length, count;
  (void)self;
  if (!packet_open(env, what, &from)) return;
  output = packet_text(&from, &length);
  names = packet_texts(&from, &count, NULL);
  jni_threw(env, dtg_model_set_classes(AS(dtg_model, model), output, length, names, count));
  free((void*)(uintptr_t)names);
  packet_close(&from);
}

static jlong classes(JNIEnv* env, jclass self, jlong model, jbyteArray output) {
  dtg_tensor* out = NULL;
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, output, &text, &length)) jni_threw(env, dtg_model_classes(AS(dtg_model, model), text, length, &out));
  free(text);
  return JLONG(out);
}

static jbyteArray restore_from(JNIEnv* env, jclass self, jlong model, jlong session, jbyteArray path, jbyteArray options) {
  dtg_restore to = DTG_RESTORE_INIT;
  dtg_string* out = NULL;
  jbyteArray report = NULL;
  packet from;
  char* text;
  size_t length;
  (void)self;
  if (!packet_open(env, options, &from)) return NULL;
  to.names = packet_text(&from, &to.names_len);
  to.partial = (int32_t)packet_int(&from);
  if (jni_text(env, path, &text, &length) &&
      !jni_threw(env, dtg_model_restore_from(AS(dtg_model, model), AS(dtg_session, session), text, length, &to, &out))) {
    report = jni_string(env, out);
  }
  free(text);
  packet_close(&from);
  return report;
}

static const JNINativeMethod methods[] = {
    NATIVE("modelImport", "(JJ)J", import),
    NATIVE("modelExport", "(JJ[B)V", export),
    NATIVE("modelLoad", "(J[B)[J", load),
    NATIVE("modelEndpoint", "(J[B)J", endpoint),
    NATIVE("modelEndpoints", "(J)[B", endpoints),
    NATIVE("modelSetClasses", "(J[B)V", set_classes),
    NATIVE("modelClasses", "(J[B)J", classes),
    NATIVE("modelRestoreFrom", "(JJ[B[B)[B", restore_from),
    NATIVE("modelCreate", "(JJ)J", create),
    NATIVE("modelInside", "(JJ)J", inside),
    NATIVE("modelAddVariable", "(J[B)[J", add_variable),
    NATIVE("modelVariableCount", "(J)J", variable_count),
    NATIVE("modelVariable", "(JJ)[J", variable_at),
    NATIVE("modelFindVariable", "(J[B)[J", find_variable),
    NATIVE("modelGlobalStep", "(J)[J", global_step),
    NATIVE("modelInit", "(J)J", init),
    NATIVE("modelSaveRestore", "(JJ[BZ)V", save_restore),
    NATIVE("modelSetMetadata", "(J[B[B)V", set_metadata),
    NATIVE("modelMetadata", "(J[B)[B", metadata),
    NATIVE("modelNextTower", "(J)V", next_tower),
    NATIVE("modelWaitReady", "(JJJ)V", wait_ready),
    NATIVE("modelRecover", "(JJJ)V", recover),
};
JNI_TABLE(jni_model, methods);
