/* error.c: dtg_error to exception, in one place, freed on every path. Any Java thread. */
#include "dtg_jni.h"

void jni_no_memory(JNIEnv* env) {
  if (!(*env)->ExceptionCheck(env)) (*env)->ThrowNew(env, jni.no_memory, "dtg: no memory for the arguments of a native call");
}

jthrowable jni_exception(JNIEnv* env, dtg_error* error) {
  jthrowable made = NULL;
  jbyteArray parts[5];
  size_t length = 0;
  const char* message = dtg_error_message(error, &length);
  if (!error) return NULL;
  parts[0] = jni_bytes(env, message, length);
  parts[1] = parts[0] ? jni_name(env, dtg_error_node(error)) : NULL;
  parts[2] = parts[1] ? jni_name(env, dtg_error_task(error)) : NULL;
  parts[3] = parts[2] ? jni_name(env, dtg_error_peer(error)) : NULL;
  parts[4] = parts[3] ? jni_name(env, dtg_error_phase(error)) : NULL;
  if (parts[4]) {
    made = (jthrowable)(*env)->CallStaticObjectMethod(env, jni.exception, jni.make, (jint)dtg_error_code(error), parts[0], parts[1],
                                                      parts[2], parts[3], parts[4]);
    if ((*env)->ExceptionCheck(env)) made = NULL;
  }
  dtg_error_release(error);
  return made;
}

bool jni_threw(JNIEnv* env, dtg_error* error) {
  jthrowable exception;
  if (!error) return false;
  exception = jni_exception(env, error);
  if (exception) (*env)->Throw(env, exception);
  return true;
}
