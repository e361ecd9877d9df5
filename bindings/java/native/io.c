/* io.c: weight sets and event writers. One thread at a time per object. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong weights_create(JNIEnv* env, jclass self) {
  dtg_weights* out = NULL;
  (void)self;
  return jni_threw(env, dtg_weights_create(&out)) ? 0 : JLONG(out);
}

static jlong weights_load(JNIEnv* env, jclass self, jlong runtime, jbyteArray path) {
  dtg_weights* out = NULL;
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length)) jni_threw(env, dtg_weights_load(AS(dtg_runtime, runtime), text, length, &out));
  free(text);
  return JLONG(out);
}

static void weights_save(JNIEnv* env, jclass self, jlong weights, jbyteArray path) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length)) jni_threw(env, dtg_weights_save(AS(dtg_weights, weights), text, length));
  free(text);
}

static void weights_set(JNIEnv* env, jclass self, jlong weights, jbyteArray name, jlong tensor) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_weights_set(AS(dtg_weights, weights), text, length, AS(dtg_tensor, tensor)));
  free(text);
}

static jlong weights_get(JNIEnv* env, jclass self, jlong weights, jbyteArray name) {
  dtg_tensor* out = NULL;
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_weights_get(AS(dtg_weights, weights), text, length, &out));
  free(text);
  return JLONG(out);
}

static jlong weights_count(JNIEnv* env, jclass self, jlong weights) {
  (void)env, (void)self;
  return (jlong)dtg_weights_count(AS(dtg_weights, weights));
}

static jbyteArray weights_name(JNIEnv* env, jclass self, jlong weights, jlong i) {
  (void)self;
  return jni_name(env, dtg_weights_name(AS(dtg_weights, weights), (size_t)i));
}

static void weights_set_metadata(JNIEnv* env, jclass self, jlong weights, jbyteArray key, jbyteArray value) {
  char *name, *text = NULL;
  size_t name_length, text_length;
  (void)self;
  if (jni_text(env, key, &name, &name_length) && jni_text(env, value, &text, &text_length)) {
    jni_threw(env, dtg_weights_set_metadata(AS(dtg_weights, weights), name, name_length, text, text_length));
  }
  free(text);
  free(name);
}

static jbyteArray weights_metadata(JNIEnv* env, jclass self, jlong weights, jbyteArray key) {
  char* text;
  size_t length;
  jbyteArray out = NULL;
  (void)self;
  if (jni_text(env, key, &text, &length)) out = jni_name(env, dtg_weights_metadata(AS(dtg_weights, weights), text, length));
  free(text);
  return out;
}

/* ---- event writers ---- */

static jlong writer_open(JNIEnv* env, jclass self, jbyteArray directory, jlong flush_every_ns, jlong resumed_at_step) {
  dtg_event_writer_options to = DTG_EVENT_WRITER_OPTIONS_INIT;
  dtg_event_writer* out = NULL;
  char* text;
  size_t length;
  (void)self;
  to.flush_every_ns = flush_every_ns;
  to.resumed_at_step = resumed_at_step;
  if (jni_text(env, directory, &text, &length)) jni_threw(env, dtg_event_writer_open(text, length, &to, &out));
  free(text);
  return JLONG(out);
}

static void writer_scalar(JNIEnv* env, jclass self, jlong writer, jbyteArray tag, jlong step, jdouble value) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, tag, &text, &length)) jni_threw(env, dtg_event_writer_scalar(AS(dtg_event_writer, writer), text, length, step, value));
  free(text);
}

static void writer_histogram(JNIEnv* env, jclass self, jlong writer, jbyteArray tag, jlong step, jlong tensor) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, tag, &text, &length)) {
    jni_threw(env, dtg_event_writer_histogram(AS(dtg_event_writer, writer), text, length, step, AS(dtg_tensor, tensor)));
  }
  free(text);
}

static void writer_text(JNIEnv* env, jclass self, jlong writer, jbyteArray tag, jlong step, jbyteArray markdown) {
  char *name, *text = NULL;
  size_t name_length, text_length;
  (void)self;
  if (jni_text(env, tag, &name, &name_length) && jni_text(env, markdown, &text, &text_length)) {
    jni_threw(env, dtg_event_writer_text(AS(dtg_event_writer, writer), name, name_length, step, text, text_length));
  }
  free(text);
  free(name);
}

static void writer_flush(JNIEnv* env, jclass self, jlong writer) {
  (void)self;
  jni_threw(env, dtg_event_writer_flush(AS(dtg_event_writer, writer)));
}

static void writer_close(JNIEnv* env, jclass self, jlong writer) {
  (void)self;
  jni_threw(env, dtg_event_writer_close(AS(dtg_event_writer, writer)));
}

static const JNINativeMethod methods[] = {
    NATIVE("weightsCreate", "()J", weights_create),
    NATIVE("weightsLoad", "(J[B)J", weights_load),
    NATIVE("weightsSave", "(J[B)V", weights_save),
    NATIVE("weightsSet", "(J[BJ)V", weights_set),
    NATIVE("weightsGet", "(J[B)J", weights_get),
    NATIVE("weightsCount", "(J)J", weights_count),
    NATIVE("weightsName", "(JJ)[B", weights_name),
    NATIVE("weightsSetMetadata", "(J[B[B)V", weights_set_metadata),
    NATIVE("weightsMetadata", "(J[B)[B", weights_metadata),
    NATIVE("writerOpen", "([BJJ)J", writer_open),
    NATIVE("writerScalar", "(J[BJD)V", writer_scalar),
    NATIVE("writerHistogram", "(J[BJJ)V", writer_histogram),
    NATIVE("writerText", "(J[BJ[B)V", writer_text),
    NATIVE("writerFlush", "(J)V", writer_flush),
    NATIVE("writerClose", "(J)V", writer_close),
};
JNI_TABLE(jni_weights, methods);
