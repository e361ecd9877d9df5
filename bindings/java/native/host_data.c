/* host_data.c: functions of graphs and of Java over data sets, and sources in Java. The only place where C calls Java: on the Java thread
 * that asked for an element, or on the thread of a prefetching data set, which is attached as a daemon until it ends. */
#include <pthread.h>
#include <stdlib.h>

#include "dtg_jni.h"

/* ---- from C ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t attached;

static void detach(void* vm) { (*(JavaVM*)vm)->DetachCurrentThread((JavaVM*)vm); }
static void make_key(void) { pthread_key_create(&attached, detach); }

static JNIEnv* java(void) {
  JNIEnv* env = NULL;
  if ((*jni.vm)->GetEnv(jni.vm, (void**)&env, JNI_VERSION_10) == JNI_OK) return env;
  pthread_once(&once, make_key);
  if ((*jni.vm)->AttachCurrentThreadAsDaemon(jni.vm, (void**)&env, NULL) != JNI_OK) return NULL;
  pthread_setspecific(attached, jni.vm);
  return env;
}

static dtg_error* said(const char* what) { return dtg_error_create(DTG_RESOURCE_EXHAUSTED, what, DTG_STRLEN); }

/* The exception that is pending, which ends here, as an error; NULL where there is none. */
static dtg_error* caught(JNIEnv* env) {
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  dtg_error* error = NULL;
  jbyteArray message;
  jint code;
  if (!thrown) return NULL;
  (*env)->ExceptionClear(env);
  code = (*env)->CallStaticIntMethod(env, jni.host, jni.host_code, thrown);
  message = (*env)->ExceptionCheck(env) ? NULL : (jbyteArray)(*env)->CallStaticObjectMethod(env, jni.host, jni.host_message, thrown);
  if (message && !(*env)->ExceptionCheck(env)) {
    jbyte* bytes = (*env)->GetByteArrayElements(env, message, NULL);
    if (bytes) {
      error = dtg_error_create(code, (const char*)bytes, (size_t)(*env)->GetArrayLength(env, message));
      (*env)->ReleaseByteArrayElements(env, message, bytes, JNI_ABORT);
    }
  }
  (*env)->ExceptionClear(env);
  return error ? error : said("a Java function failed, and there was no memory for its exception");
}

/* The tensors of a Java long[], which are references of ours. */
static void take(JNIEnv* env, jlongArray from, dtg_tensor** results, size_t room) {
  jlong handle;
  size_t i;
  for (i = 0; i < room; ++i) {
    (*env)->GetLongArrayRegion(env, from, (jsize)i, 1, &handle);
    results[i] = AS(dtg_tensor, handle);
  }
}

static jlongArray retained(JNIEnv* env, dtg_tensor* const* tensors, size_t count) {
  jlongArray out = (*env)->NewLongArray(env, (jsize)count);
  size_t i;
  for (i = 0; out && i < count; ++i) {
    const jlong handle = JLONG(dtg_tensor_retain(tensors[i]));
    (*env)->SetLongArrayRegion(env, out, (jsize)i, 1, &handle);
  }
  return out;
}

static dtg_error* map_one(void* user, dtg_tensor* const* arguments, size_t count, dtg_tensor** results, size_t room) {
  JNIEnv* env = java();
  dtg_error* error;
  jlongArray given, made = NULL;
  if (!env || (*env)->PushLocalFrame(env, 16) != 0) return said("the thread could not be attached to the Java machine");
  given = retained(env, arguments, count);
  if (given) made = (jlongArray)(*env)->CallStaticObjectMethod(env, jni.host, jni.host_map, (jobject)user, given, (jint)room);
  error = caught(env);
  if (!error && made) take(env, made, results, room);
  (*env)->PopLocalFrame(env, NULL);
  return error;
}

static dtg_error* filter_one(void* user, dtg_tensor* const* arguments, size_t count, int32_t* keep) {
  JNIEnv* env = java();
  dtg_error* error;
  jlongArray given;
  if (!env || (*env)->PushLocalFrame(env, 16) != 0) return said("the thread could not be attached to the Java machine");
  given = retained(env, arguments, count);
  if (given) *keep = (*env)->CallStaticBooleanMethod(env, jni.host, jni.host_filter, (jobject)user, given) ? 1 : 0;
  error = caught(env);
  (*env)->PopLocalFrame(env, NULL);
  return error;
}

static dtg_error* source_restart(void* user, int64_t epoch) {
  JNIEnv* env = java();
  dtg_error* error;
  if (!env || (*env)->PushLocalFrame(env, 16) != 0) return said("the thread could not be attached to the Java machine");
  (*env)->CallStaticVoidMethod(env, jni.host, jni.host_begin, (jobject)user, (jlong)epoch);
  error = caught(env);
  (*env)->PopLocalFrame(env, NULL);
  return error;
}

static dtg_error* source_next(void* user, dtg_tensor** tensors, size_t room, int32_t* more) {
  JNIEnv* env = java();
  dtg_error* error;
  jlongArray made;
  if (!env || (*env)->PushLocalFrame(env, 16) != 0) return said("the thread could not be attached to the Java machine");
  made = (jlongArray)(*env)->CallStaticObjectMethod(env, jni.host, jni.host_next, (jobject)user, (jint)room);
  error = caught(env);
  if (!error) *more = made != NULL;
  if (!error && made) take(env, made, tensors, room);
  (*env)->PopLocalFrame(env, NULL);
  return error;
}

static void user_free(void* user) {
  JNIEnv* env = java();
  if (env) (*env)->DeleteGlobalRef(env, (jobject)user);
}

/* ---- from Java ---- */

/* Their count, then the type of each and its dimensions (-1: not even their number is known). Free with free(). */
static dtg_component* components_of(packet* from, size_t* count) {
  const int64_t size = packet_int(from);
  dtg_component* out = (dtg_component*)calloc((size_t)size + 1, sizeof *out);
  size_t i, rank;
  *count = (size_t)size;
  for (i = 0; i < *count; ++i) {
    const dtg_dtype dtype = (dtg_dtype)packet_int(from);
    const int64_t* dims = packet_ints(from, &rank);
    if (!out) continue;
    out[i].dtype = dtype;
    out[i].rank = dims ? (int32_t)rank : -1;
    out[i].dims = dims;
  }
  return out;
}

static void map_host(JNIEnv* env, jclass self, jlong data, jbyteArray what, jobject function) {
  packet from;
  size_t count;
  dtg_component* components;
  jobject user;
  (void)self;
  if (!packet_open(env, what, &from)) return;
  components = components_of(&from, &count);
  user = components ? (*env)->NewGlobalRef(env, function) : NULL;
  if (!user) jni_no_memory(env);
  else if (jni_threw(env, dtg_dataset_map_host(AS(dtg_dataset, data), map_one, user, user_free, components, count))) {
    (*env)->DeleteGlobalRef(env, user);
  }
  free(components);
  packet_close(&from);
}

static void filter_host(JNIEnv* env, jclass self, jlong data, jobject function) {
  jobject user = (*env)->NewGlobalRef(env, function);
  (void)self;
  if (!user) jni_no_memory(env);
  else if (jni_threw(env, dtg_dataset_filter_host(AS(dtg_dataset, data), filter_one, user, user_free))) (*env)->DeleteGlobalRef(env, user);
}

static jlong source(JNIEnv* env, jclass self, jlong runtime, jbyteArray what, jobject rows) {
  dtg_host_source to = DTG_HOST_SOURCE_INIT;
  dtg_dataset* out = NULL;
  packet from;
  dtg_component* components;
  (void)self;
  if (!packet_open(env, what, &from)) return 0;
  to.cardinality = packet_int(&from);
  to.components = components = components_of(&from, &to.num_components);
  to.next = source_next;
  to.restart = source_restart;
  to.user_free = user_free;
  to.user = components ? (*env)->NewGlobalRef(env, rows) : NULL;
  if (!to.user) jni_no_memory(env);
  else if (jni_threw(env, dtg_dataset_host(AS(dtg_runtime, runtime), &to, &out))) (*env)->DeleteGlobalRef(env, (jobject)to.user);
  free(components);
  packet_close(&from);
  return JLONG(out);
}

static jlongArray add_arguments(JNIEnv* env, jclass self, jlong data, jlong body, jint count) {
  jlongArray out = NULL;
  dtg_value* values = (dtg_value*)calloc((size_t)count + 1, sizeof *values);
  (void)self;
  if (!values) jni_no_memory(env);
  else if (!jni_threw(env, dtg_dataset_add_arguments(AS(dtg_dataset, data), AS(dtg_graph, body), values, (size_t)count))) {
    out = jni_array(env, (const int64_t*)(const void*)values, (size_t)count);
  }
  free(values);
  return out;
}

/* map or filter, by number. */
static void apply(JNIEnv* env, jclass self, jlong data, jint which, jlong function, jint parallel, jlong session) {
  dtg_map_options options = DTG_MAP_OPTIONS_INIT;
  (void)self;
  options.parallel = parallel;
  options.session = AS(dtg_session, session);
  if (which == 0) jni_threw(env, dtg_dataset_map(AS(dtg_dataset, data), AS(dtg_function, function), &options));
  else jni_threw(env, dtg_dataset_filter(AS(dtg_dataset, data), AS(dtg_function, function), &options));
}

static const JNINativeMethod methods[] = {
    NATIVE("datasetMapHost", "(J[BLorg/dtg/HostData$Change;)V", map_host),
    NATIVE("datasetFilterHost", "(JLorg/dtg/HostData$Choice;)V", filter_host),
    NATIVE("datasetSource", "(J[BLorg/dtg/HostData$Rows;)J", source),
    NATIVE("datasetAddArguments", "(JJI)[J", add_arguments),
    NATIVE("datasetApply", "(JIJIJ)V", apply),
};
JNI_TABLE(jni_host_data, methods);
