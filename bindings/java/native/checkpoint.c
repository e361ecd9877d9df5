/* checkpoint.c: checkpoints of training. One thread at a time, but for waiting and status. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong open_sets(JNIEnv* env, jclass self, jlong model, jlong session, jbyteArray options) {
  dtg_checkpoint_options to = DTG_CHECKPOINT_OPTIONS_INIT;
  dtg_checkpoint* out = NULL;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.directory = packet_text(&from, &to.directory_len);
  to.keep = (int32_t)packet_int(&from);
  to.shards = (int32_t)packet_int(&from);
  to.every_steps = packet_int(&from);
  to.every_ns = packet_int(&from);
  to.partial = (int32_t)packet_int(&from);
  to.names = packet_text(&from, &to.names_len);
  jni_threw(env, dtg_checkpoint_open(AS(dtg_model, model), AS(dtg_session, session), &to, &out));
  packet_close(&from);
  return JLONG(out);
}

static void add_data(JNIEnv* env, jclass self, jlong checkpoint, jbyteArray name, jlong dataset) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) {
    jni_threw(env, dtg_checkpoint_add_data(AS(dtg_checkpoint, checkpoint), text, length, AS(dtg_dataset, dataset)));
  }
  free(text);
}

/* The step goes into `step`, of one element; the report is the answer. `set` null: go on, or start; empty: the newest. */
static jbyteArray restore(JNIEnv* env, jclass self, jlong checkpoint, jbyteArray set, jlongArray step) {
  dtg_string* report = NULL;
  int64_t at = 0;
  bool failed = true;
  (void)self;
  if (!set) {
    failed = jni_threw(env, dtg_checkpoint_resume(AS(dtg_checkpoint, checkpoint), &at, &report));
  } else {
    char* text;
    size_t length;
    if (jni_text(env, set, &text, &length)) {
      failed = jni_threw(env, dtg_checkpoint_restore(AS(dtg_checkpoint, checkpoint), text, length, &at, &report));
    }
    free(text);
  }
  if (failed) return NULL;
  (*env)->SetLongArrayRegion(env, step, 0, 1, (const jlong*)&at);
  return jni_string(env, report);
}

static jboolean reached(JNIEnv* env, jclass self, jlong checkpoint, jlong step) {
  int32_t began = 0;
  (void)self;
  jni_threw(env, dtg_checkpoint_reached(AS(dtg_checkpoint, checkpoint), step, &began));
  return began ? JNI_TRUE : JNI_FALSE;
}

static void save(JNIEnv* env, jclass self, jlong checkpoint, jlong step, jlong timeout_ns, jboolean wait) {
  dtg_checkpoint* const to = AS(dtg_checkpoint, checkpoint);
  (void)self;
  jni_threw(env, wait ? dtg_checkpoint_save(to, step, timeout_ns) : dtg_checkpoint_begin_save(to, step, timeout_ns));
}

static void await(JNIEnv* env, jclass self, jlong checkpoint, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_checkpoint_wait(AS(dtg_checkpoint, checkpoint), timeout_ns));
}

static jbyteArray status(JNIEnv* env, jclass self, jlong checkpoint) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_checkpoint_status(AS(dtg_checkpoint, checkpoint), &out)) ? NULL : jni_string(env, out);
}

static const JNINativeMethod methods[] = {
    NATIVE("checkpointOpen", "(JJ[B)J", open_sets),    NATIVE("checkpointAddData", "(J[BJ)V", add_data),
    NATIVE("checkpointRestore", "(J[B[J)[B", restore), NATIVE("checkpointReached", "(JJ)Z", reached),
    NATIVE("checkpointSave", "(JJJZ)V", save),         NATIVE("checkpointAwait", "(JJ)V", await),
    NATIVE("checkpointStatus", "(J)[B", status),
};
JNI_TABLE(jni_checkpoint, methods);
