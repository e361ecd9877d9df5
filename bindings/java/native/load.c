/* load.c: what the virtual machine calls when it loads the library: finds the classes that natives need, registers all natives.
 * Runs once per class loader, on the thread that loads. */
#include "dtg_jni.h"

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#endif

jni_known jni;

static jclass find(JNIEnv* env, const char* name) {
  jclass local = (*env)->FindClass(env, name);
  jclass global = local ? (*env)->NewGlobalRef(env, local) : NULL;
  if (local) (*env)->DeleteLocalRef(env, local);
  return global;
}

static bool look_up_host(JNIEnv* env) {
  jclass host = jni.host = find(env, "org/dtg/HostData");
  if (!host) return false;
  jni.host_map = (*env)->GetStaticMethodID(env, host, "map", "(Lorg/dtg/HostData$Change;[JI)[J");
  if (jni.host_map) jni.host_filter = (*env)->GetStaticMethodID(env, host, "filter", "(Lorg/dtg/HostData$Choice;[J)Z");
  if (jni.host_filter) jni.host_begin = (*env)->GetStaticMethodID(env, host, "begin", "(Lorg/dtg/HostData$Rows;J)V");
  if (jni.host_begin) jni.host_next = (*env)->GetStaticMethodID(env, host, "next", "(Lorg/dtg/HostData$Rows;I)[J");
  if (jni.host_next) jni.host_code = (*env)->GetStaticMethodID(env, host, "code", "(Ljava/lang/Throwable;)I");
  if (jni.host_code) jni.host_message = (*env)->GetStaticMethodID(env, host, "message", "(Ljava/lang/Throwable;)[B");
  return jni.host_message != NULL;
}

static bool look_up(JNIEnv* env) {
  if (!(jni.exception = find(env, "org/dtg/DtgException"))) return false;
  if (!(jni.no_memory = find(env, "java/lang/OutOfMemoryError"))) return false;
  if (!(jni.bytes = find(env, "[B"))) return false;
  if (!(jni.throwable = find(env, "java/lang/Throwable"))) return false;
  jni.make = (*env)->GetStaticMethodID(env, jni.exception, "of", "(I[B[B[B[B[B)Lorg/dtg/DtgException;");
  return jni.make != NULL && look_up_host(env);
}

static bool enlist(JNIEnv* env) {
  const jni_table* tables[] = {&jni_base,     &jni_runtime,  &jni_tensor,      &jni_graph,      &jni_value,   &jni_model,
                               &jni_layers,   &jni_training, &jni_session,     &jni_async,      &jni_cluster, &jni_server,
                               &jni_dataset,  &jni_weights,  &jni_events,      &jni_checkpoint, &jni_control, &jni_group,
                               &jni_strategy, &jni_trainer,  &jni_coordinator, &jni_host_data,  &jni_sharded, &jni_mesh};
  jclass natives = (*env)->FindClass(env, "org/dtg/Native");
  size_t i;
  if (!natives) return false;
  for (i = 0; i < sizeof tables / sizeof tables[0]; ++i) {
    if ((*env)->RegisterNatives(env, natives, tables[i]->methods, tables[i]->count) != JNI_OK) return false;
  }
  (*env)->DeleteLocalRef(env, natives);
  return true;
}

static jint load(JavaVM* vm) {
  JNIEnv* env = NULL;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  jni.vm = vm;
  return look_up(env) && enlist(env) ? JNI_VERSION_10 : JNI_ERR;
}

#ifndef DTG_JNI_STATIC
EXPORT jint JNI_OnLoad(JavaVM* vm, void* reserved);
EXPORT jint JNI_OnLoad(JavaVM* vm, void* reserved) {
  (void)reserved;
  return load(vm);
}
#endif

/* For programs that link these files themselves and say System.loadLibrary("dtg"). */
EXPORT jint JNI_OnLoad_dtg(JavaVM* vm, void* reserved);
EXPORT jint JNI_OnLoad_dtg(JavaVM* vm, void* reserved) {
  (void)reserved;
  return load(vm);
}
