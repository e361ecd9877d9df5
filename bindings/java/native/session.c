/* session.c: sessions, their runs and callables. Any Java thread; a run is one crossing. */
#include <stdlib.h>

#include "dtg_jni.h"

/* The texts are the packet's. */
static dtg_session_options read_options(packet* from) {
  dtg_session_options to = DTG_SESSION_OPTIONS_INIT;
  to.cpu_devices = (int32_t)packet_int(from);
  to.soft_placement = (int32_t)packet_int(from);
  to.disable_fusion = (int32_t)packet_int(from);
  to.default_timeout_ns = packet_int(from);
  to.connect_timeout_ns = packet_int(from);
  to.key_file = packet_text(from, &to.key_file_len);
  to.security = (dtg_security)packet_int(from);
  to.emu_devices = (int32_t)packet_int(from);
  to.emu_memory_bytes = packet_int(from);
  return to;
}

static jlong connect(JNIEnv* env, jclass self, jlong runtime, jbyteArray target, jlong graph, jbyteArray options) {
  dtg_session_options to;
  dtg_session* out = NULL;
  packet from;
  char* text = NULL;
  size_t length;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to = read_options(&from);
  if (jni_text(env, target, &text, &length)) {
    jni_threw(env, dtg_session_connect(AS(dtg_runtime, runtime), text, length, AS(dtg_graph, graph), &to, &out));
  }
  free(text);
  packet_close(&from);
  return JLONG(out);
}

/* What a run asks for, in one long[]: {feeds f, fetches n, targets t, timeout, cancellation or 0, whether its number is asked for, the
 * number, f values, f tensors, n values, n tensors to write into or 0, t values}. */
enum { WRITE = 6, HEAD };
typedef struct request {
  int64_t space[40];
  int64_t* words;
  dtg_run_args args;
  jsize fetched; /* where the fetched tensors begin */
} request;

static bool request_open(JNIEnv* env, jlongArray array, request* out) {
  const dtg_run_args args = DTG_RUN_ARGS_INIT;
  const jsize size = (*env)->GetArrayLength(env, array);
  int64_t* at;
  out->words = (size_t)size <= sizeof out->space / sizeof *out->space ? out->space : (int64_t*)malloc((size_t)size * sizeof *out->words);
  if (!out->words) {
    jni_no_memory(env);
    return false;
  }
  (*env)->GetLongArrayRegion(env, array, 0, size, (jlong*)out->words);
  out->args = args;
  out->args.num_feeds = (size_t)out->words[0];
  out->args.num_fetches = (size_t)out->words[1];
  out->args.num_targets = (size_t)out->words[2];
  out->args.timeout_ns = out->words[3];
  out->args.cancellation = AS(dtg_cancellation, out->words[4]);
  if (out->words[WRITE - 1]) out->args.write = (uint64_t*)(out->words + WRITE);
  at = out->words + HEAD;
  out->args.feeds = (const dtg_value*)at;
  at += out->args.num_feeds;
  out->args.feed_tensors = (const dtg_tensor* const*)(const void*)at;
  at += out->args.num_feeds;
  out->args.fetches = (const dtg_value*)at;
  at += out->args.num_fetches;
  out->args.fetched = (dtg_tensor**)(void*)at;
  out->fetched = (jsize)(at - out->words);
  out->args.targets = (const dtg_value*)(at + out->args.num_fetches);
  return true;
}

static void request_close(request* from) {
  if (from->words != from->space) free(from->words);
}

/* The number comes back in its place, whether the run has failed or not: before that is thrown, for afterwards nothing may be written. */
static bool request_threw(JNIEnv* env, jlongArray array, const request* from, dtg_error* error) {
  if (from->args.write) (*env)->SetLongArrayRegion(env, array, WRITE, 1, (const jlong*)from->words + WRITE);
  return jni_threw(env, error);
}

/* Fetched tensors come back in their places of the array. */
static void run(JNIEnv* env, jclass self, jlong session, jlongArray array) {
  request ask;
  (void)self;
  if (!request_open(env, array, &ask)) return;
  if (!request_threw(env, array, &ask, dtg_session_run(AS(dtg_session, session), &ask.args))) {
    (*env)->SetLongArrayRegion(env, array, ask.fetched, (jsize)ask.args.num_fetches, (const jlong*)ask.words + ask.fetched);
  }
  request_close(&ask);
}

/* The same where the run is brief. False: nothing has run. */
static jboolean run_if_brief(JNIEnv* env, jclass self, jlong session, jlongArray array) {
  request ask;
  int32_t ran = 0;
  (void)self;
  if (!request_open(env, array, &ask)) return JNI_FALSE;
  if (!request_threw(env, array, &ask, dtg_session_run_if_brief(AS(dtg_session, session), &ask.args, &ran)) && ran) {
    (*env)->SetLongArrayRegion(env, array, ask.fetched, (jsize)ask.args.num_fetches, (const jlong*)ask.words + ask.fetched);
  }
  request_close(&ask);
  return ran ? JNI_TRUE : JNI_FALSE;
}

static jlong run_async(JNIEnv* env, jclass self, jlong session, jlongArray array, jlong cq, jlong tag) {
  request ask;
  dtg_run* out = NULL;
  (void)self;
  if (!request_open(env, array, &ask)) return 0;
  ask.args.fetched = NULL;
  request_threw(env, array, &ask, dtg_session_run_async(AS(dtg_session, session), &ask.args, AS(dtg_cq, cq), (uint64_t)tag, &out));
  request_close(&ask);
  return JLONG(out);
}

static jlong run_repeatedly(JNIEnv* env, jclass self, jlong session, jlongArray targets, jlong cq, jlong tag) {
  size_t count;
  int64_t* ids = jni_longs(env, targets, &count);
  dtg_run* out = NULL;
  (void)self;
  if (ids) {
    jni_threw(env, dtg_session_run_repeatedly(AS(dtg_session, session), (const dtg_value*)ids, count, AS(dtg_cq, cq), (uint64_t)tag, &out));
  }
  free(ids);
  return JLONG(out);
}

static jlong prepare(JNIEnv* env, jclass self, jlong session, jlongArray array) {
  request ask;
  dtg_callable* out = NULL;
  (void)self;
  if (!request_open(env, array, &ask)) return 0;
  ask.args.feed_tensors = NULL;
  ask.args.fetched = NULL;
  jni_threw(env, dtg_session_prepare(AS(dtg_session, session), &ask.args, &out));
  request_close(&ask);
  return JLONG(out);
}

/* The common step, without an array: at most one feed and one fetch (0: none), the fetch written into `fetched`. */
static void callable_step(JNIEnv* env, jclass self, jlong callable, jlong feed, jlong fetched, jlong timeout_ns) {
  const dtg_tensor* in = AS(dtg_tensor, feed);
  dtg_tensor* out = AS(dtg_tensor, fetched);
  dtg_error* error = dtg_callable_run(AS(dtg_callable, callable), &in, in != NULL, &out, out != NULL, timeout_ns);
  (void)self;
  if (error) jni_threw(env, error);
}

/* `array`: the feeds' tensors, then those to write into or 0, which come back filled. */
static void callable_run(JNIEnv* env, jclass self, jlong callable, jlongArray array, jint num_feeds, jint num_fetches, jlong timeout_ns,
                         jlong cancellation) {
  int64_t space[32];
  const jsize size = num_feeds + num_fetches;
  int64_t* words = size <= 32 ? space : (int64_t*)malloc((size_t)size * sizeof *words);
  (void)self;
  if (!words) {
    jni_no_memory(env);
    return;
  }
  (*env)->GetLongArrayRegion(env, array, 0, size, (jlong*)words);
  if (!jni_threw(env, dtg_callable_run_cancellable(AS(dtg_callable, callable), (const dtg_tensor* const*)(const void*)words,
                                                   (size_t)num_feeds, (dtg_tensor**)(void*)(words + num_feeds), (size_t)num_fetches,
                                                   timeout_ns, AS(dtg_cancellation, cancellation)))) {
    if (num_fetches > 0) (*env)->SetLongArrayRegion(env, array, num_feeds, num_fetches, (const jlong*)words + num_feeds);
  }
  if (words != space) free(words);
}

static jobjectArray devices(JNIEnv* env, jclass self, jlong session) {
  const size_t count = dtg_session_device_count(AS(dtg_session, session));
  jobjectArray out = (*env)->NewObjectArray(env, (jsize)count, jni.bytes, NULL);
  size_t i;
  (void)self;
  for (i = 0; out && i < count; ++i) {
    jbyteArray name = jni_name(env, dtg_session_device_name(AS(dtg_session, session), i));
    if (!name) return NULL;
    (*env)->SetObjectArrayElement(env, out, (jsize)i, name);
    (*env)->DeleteLocalRef(env, name);
  }
  return out;
}

static void reset(JNIEnv* env, jclass self, jlong session, jbyteArray containers) {
  packet from;
  size_t count;
  const char** names;
  (void)self;
  if (!packet_open(env, containers, &from)) return;
  names = packet_texts(&from, &count, NULL);
  jni_threw(env, dtg_session_reset(AS(dtg_session, session), names, count));
  free((void*)(uintptr_t)names);
  packet_close(&from);
}

static void stop(JNIEnv* env, jclass self, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_session_close(AS(dtg_session, session), timeout_ns));
}

static void end_job(JNIEnv* env, jclass self, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_session_end_job(AS(dtg_session, session), timeout_ns));
}

static void end_job_now(JNIEnv* env, jclass self, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_session_end_job_now(AS(dtg_session, session), timeout_ns));
}

static void barrier(JNIEnv* env, jclass self, jlong session, jbyteArray name, jlong timeout_ns) {
  char* text = NULL;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_session_barrier(AS(dtg_session, session), text, length, timeout_ns));
  free(text);
}

static jint outcome(JNIEnv* env, jclass self, jlong session, jlong write, jlong timeout_ns) {
  dtg_outcome out = DTG_OUTCOME_NOTHING;
  (void)self;
  jni_threw(env, dtg_session_outcome(AS(dtg_session, session), (uint64_t)write, timeout_ns, &out));
  return out;
}

static jbyteArray cluster_status(JNIEnv* env, jclass self, jlong session, jlong timeout_ns) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_session_cluster_status(AS(dtg_session, session), timeout_ns, &out)) ? NULL : jni_string(env, out);
}

/* Of a whole cluster, without a session. */
static jbyteArray status_at(JNIEnv* env, jclass self, jlong runtime, jbyteArray target, jbyteArray options) {
  dtg_session_options to;
  dtg_string* out = NULL;
  packet from;
  char* text = NULL;
  size_t length;
  bool failed = true;
  (void)self;
  if (!packet_open(env, options, &from)) return NULL;
  to = read_options(&from);
  if (jni_text(env, target, &text, &length)) failed = jni_threw(env, dtg_cluster_status(AS(dtg_runtime, runtime), text, length, &to, &out));
  free(text);
  packet_close(&from);
  return failed ? NULL : jni_string(env, out);
}

static const JNINativeMethod methods[] = {
    NATIVE("clusterStatus", "(J[B[B)[B", status_at),
    NATIVE("sessionConnect", "(J[BJ[B)J", connect),
    NATIVE("sessionRun", "(J[J)V", run),
    NATIVE("sessionRunIfBrief", "(J[J)Z", run_if_brief),
    NATIVE("sessionRunAsync", "(J[JJJ)J", run_async),
    NATIVE("sessionRunRepeatedly", "(J[JJJ)J", run_repeatedly),
    NATIVE("sessionPrepare", "(J[J)J", prepare),
    NATIVE("callableStep", "(JJJJ)V", callable_step),
    NATIVE("callableRun", "(J[JIIJJ)V", callable_run),
    NATIVE("sessionDevices", "(J)[[B", devices),
    NATIVE("sessionReset", "(J[B)V", reset),
    NATIVE("sessionStop", "(JJ)V", stop),
    NATIVE("sessionEndJob", "(JJ)V", end_job),
    NATIVE("sessionEndJobNow", "(JJ)V", end_job_now),
    NATIVE("sessionBarrier", "(J[BJ)V", barrier),
    NATIVE("sessionOutcome", "(JJJ)I", outcome),
    NATIVE("sessionClusterStatus", "(JJ)[B", cluster_status),
};
JNI_TABLE(jni_session, methods);
