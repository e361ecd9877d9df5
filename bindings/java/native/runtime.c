/* runtime.c: the library itself (version, types, live handles, releasing) and runtimes. Any Java thread. */
#include <stdlib.h>

#include "dtg_jni.h"
#include "events.h"

/* ---- the library ---- */

static jint abi_version(JNIEnv* env, jclass self) {
  (void)env, (void)self;
  return (jint)dtg_abi_version();
}

static jbyteArray version(JNIEnv* env, jclass self) {
  (void)self;
  return jni_name(env, dtg_version());
}

static jboolean has_feature(JNIEnv* env, jclass self, jbyteArray name) {
  char* text;
  size_t length;
  jboolean has = JNI_FALSE;
  (void)self;
  if (jni_text(env, name, &text, &length)) has = dtg_has_feature(text) != 0;
  free(text);
  return has;
}

static jlong dtype_size(JNIEnv* env, jclass self, jint dtype) {
  (void)env, (void)self;
  return (jlong)dtg_dtype_size(dtype);
}

static jbyteArray dtype_name(JNIEnv* env, jclass self, jint dtype) {
  (void)self;
  return jni_name(env, dtg_dtype_name(dtype));
}

static jint dtype_from_name(JNIEnv* env, jclass self, jbyteArray name) {
  char* text;
  size_t length;
  jint dtype = 0;
  (void)self;
  if (jni_text(env, name, &text, &length)) dtype = dtg_dtype_from_name(text);
  free(text);
  return dtype;
}

static jlong live_handles(JNIEnv* env, jclass self) {
  (void)env, (void)self;
  return (jlong)dtg_live_handles();
}

static jbyteArray code_name(JNIEnv* env, jclass self, jint code) {
  (void)self;
  return jni_name(env, dtg_code_name(code));
}

/* The kinds are those of Handle.Kind, in their order. */
static void release(JNIEnv* env, jclass self, jint kind, jlong handle) {
  (void)env, (void)self;
  switch (kind) {
    case 0: dtg_runtime_release(AS(dtg_runtime, handle)); break;
    case 1: dtg_tensor_release(AS(dtg_tensor, handle)); break;
    case 2: dtg_graph_release(AS(dtg_graph, handle)); break;
    case 3: dtg_session_release(AS(dtg_session, handle)); break;
    case 4: dtg_callable_release(AS(dtg_callable, handle)); break;
    case 5: dtg_run_release(AS(dtg_run, handle)); break;
    case 6: dtg_cq_release(AS(dtg_cq, handle)); break;
    case 7: dtg_model_release(AS(dtg_model, handle)); break;
    case 8: dtg_dataset_release(AS(dtg_dataset, handle)); break;
    case 9: dtg_event_writer_release(AS(dtg_event_writer, handle)); break;
    case 10: dtg_server_release(AS(dtg_server, handle)); break;
    case 11: dtg_weights_release(AS(dtg_weights, handle)); break;
    case 12: dtg_cluster_release(AS(dtg_cluster, handle)); break;
    case 13: dtg_checkpoint_release(AS(dtg_checkpoint, handle)); break;
    case 14: dtg_function_release(AS(dtg_function, handle)); break;
    case 15: dtg_group_release(AS(dtg_group, handle)); break;
    case 16: dtg_cancellation_release(AS(dtg_cancellation, handle)); break;
    case 17: dtg_strategy_release(AS(dtg_strategy, handle)); break;
    case 18: dtg_trainer_release(AS(dtg_trainer, handle)); break;
    case 19: dtg_coordinator_release(AS(dtg_coordinator, handle)); break;
    case 20: dtg_closure_release(AS(dtg_closure, handle)); break;
    case 21: dtg_remote_value_release(AS(dtg_remote_value, handle)); break;
    case 22: dtg_mesh_release(AS(dtg_mesh, handle)); break;
    default: break;
  }
}

static const JNINativeMethod base_methods[] = {
    NATIVE("abiVersion", "()I", abi_version),   NATIVE("version", "()[B", version),       NATIVE("hasFeature", "([B)Z", has_feature),
    NATIVE("dtypeSize", "(I)J", dtype_size),    NATIVE("dtypeName", "(I)[B", dtype_name), NATIVE("dtypeFromName", "([B)I", dtype_from_name),
    NATIVE("liveHandles", "()J", live_handles), NATIVE("codeName", "(I)[B", code_name),   NATIVE("release", "(IJ)V", release),
};
JNI_TABLE(jni_base, base_methods);

/* ---- runtimes ---- */

/* `sink`: the number under which Java knows the log sink, 0 for none. */
static jlong create(JNIEnv* env, jclass self, jbyteArray options, jlong sink) {
  dtg_runtime_options to = DTG_RUNTIME_OPTIONS_INIT;
  dtg_runtime* out = NULL;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.compute_threads = (int32_t)packet_int(&from);
  to.pin_threads = (int32_t)packet_int(&from);
  to.spin_ns = packet_int(&from);
  to.memory_limit_bytes = packet_int(&from);
  to.log_level = (dtg_log_level)packet_int(&from);
  packet_close(&from);
  if (sink != 0) {
    to.log = events_log;
    to.log_user = AS(void, sink);
    to.log_user_free = events_log_ended;
  }
  return jni_threw(env, dtg_runtime_create(&to, &out)) ? 0 : JLONG(out);
}

static jint threads(JNIEnv* env, jclass self, jlong runtime) {
  (void)env, (void)self;
  return dtg_runtime_threads(AS(dtg_runtime, runtime));
}

static jbyteArray ops_json(JNIEnv* env, jclass self, jlong runtime) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_ops_json(AS(dtg_runtime, runtime), &out)) ? NULL : jni_string(env, out);
}

static jbyteArray metrics(JNIEnv* env, jclass self, jlong runtime) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_runtime_metrics(AS(dtg_runtime, runtime), &out)) ? NULL : jni_string(env, out);
}

static void trim(JNIEnv* env, jclass self, jlong runtime) {
  (void)self;
  jni_threw(env, dtg_runtime_trim(AS(dtg_runtime, runtime)));
}

static void trace_start(JNIEnv* env, jclass self, jlong runtime) {
  (void)self;
  jni_threw(env, dtg_runtime_trace_start(AS(dtg_runtime, runtime)));
}

static jbyteArray trace_stop(JNIEnv* env, jclass self, jlong runtime) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_runtime_trace_stop(AS(dtg_runtime, runtime), &out)) ? NULL : jni_string(env, out);
}

static const JNINativeMethod runtime_methods[] = {
    NATIVE("runtimeCreate", "([BJ)J", create),  NATIVE("runtimeThreads", "(J)I", threads), NATIVE("opsJson", "(J)[B", ops_json),
    NATIVE("runtimeMetrics", "(J)[B", metrics), NATIVE("runtimeTrim", "(J)V", trim),       NATIVE("traceStart", "(J)V", trace_start),
    NATIVE("traceStop", "(J)[B", trace_stop),
};
JNI_TABLE(jni_runtime, runtime_methods);
