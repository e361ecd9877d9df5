/* async.c: cancellations, asynchronous runs and their completions. One Java thread waits in `next`; the rest may be called from any. */
#include "dtg_jni.h"

enum { BATCH = 64 };

static void cancel(JNIEnv* env, jclass self, jlong run) {
  (void)env, (void)self;
  dtg_run_cancel(AS(dtg_run, run));
}

static jlong cancellation_create(JNIEnv* env, jclass self) {
  dtg_cancellation* out = NULL;
  (void)self;
  return jni_threw(env, dtg_cancellation_create(&out)) ? 0 : JLONG(out);
}

static void cancellation_cancel(JNIEnv* env, jclass self, jlong cancellation) {
  (void)env, (void)self;
  dtg_cancellation_cancel(AS(dtg_cancellation, cancellation));
}

static jlong take_result(JNIEnv* env, jclass self, jlong run, jlong i) {
  dtg_tensor* out = NULL;
  (void)self;
  return jni_threw(env, dtg_run_take_result(AS(dtg_run, run), (size_t)i, &out)) ? 0 : JLONG(out);
}

static jlong create(JNIEnv* env, jclass self) {
  dtg_cq* out = NULL;
  (void)self;
  return jni_threw(env, dtg_cq_create(&out)) ? 0 : JLONG(out);
}

/* Up to BATCH ends of runs: their tags, and the exception of each or null. Returns how many. */
static jint next(JNIEnv* env, jclass self, jlong cq, jlong timeout_ns, jlongArray tags, jobjectArray errors) {
  dtg_completion events[BATCH];
  jlong numbers[BATCH];
  size_t count = 0, i;
  (void)self;
  if (jni_threw(env, dtg_cq_next(AS(dtg_cq, cq), events, sizeof events[0], BATCH, timeout_ns, &count))) return 0;
  for (i = 0; i < count; ++i) {
    jthrowable exception = jni_exception(env, events[i].error);
    if ((*env)->ExceptionCheck(env)) { /* no memory for the exception; the run ended with that, then */
      exception = (*env)->ExceptionOccurred(env);
      (*env)->ExceptionClear(env);
    }
    numbers[i] = (jlong)events[i].tag;
    (*env)->SetObjectArrayElement(env, errors, (jsize)i, exception);
    if (exception) (*env)->DeleteLocalRef(env, exception);
  }
  if (count > 0) (*env)->SetLongArrayRegion(env, tags, 0, (jsize)count, numbers);
  return (jint)count;
}

static const JNINativeMethod methods[] = {
    NATIVE("cancellationCreate", "()J", cancellation_create),
    NATIVE("cancellationCancel", "(J)V", cancellation_cancel),
    NATIVE("runCancel", "(J)V", cancel),
    NATIVE("runTakeResult", "(JJ)J", take_result),
    NATIVE("cqCreate", "()J", create),
    NATIVE("cqNext", "(JJ[J[Ljava/lang/Throwable;)I", next),
};
JNI_TABLE(jni_async, methods);
