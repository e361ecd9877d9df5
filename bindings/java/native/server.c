/* server.c: servers and keys. Any Java thread. */
#include <stdlib.h>

#include "dtg_jni.h"

static void keygen(JNIEnv* env, jclass self, jbyteArray path) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, path, &text, &length)) jni_threw(env, dtg_keygen(text, length));
  free(text);
}

static jlong start(JNIEnv* env, jclass self, jlong runtime, jlong cluster, jbyteArray options) {
  dtg_server_options to = DTG_SERVER_OPTIONS_INIT;
  dtg_server* out = NULL;
  const char** filters;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.job = packet_text(&from, &to.job_len);
  to.task = (int32_t)packet_int(&from);
  to.cpu_devices = (int32_t)packet_int(&from);
  to.key_file = packet_text(&from, &to.key_file_len);
  to.security = (dtg_security)packet_int(&from);
  to.device_filters = filters = packet_texts(&from, &to.num_device_filters, NULL);
  to.heartbeat_ns = packet_int(&from);
  to.dead_ns = packet_int(&from);
  to.state_dir = packet_text(&from, &to.state_dir_len);
  to.emu_devices = (int32_t)packet_int(&from);
  to.emu_memory_bytes = packet_int(&from);
  to.no_shared_memory = (int32_t)packet_int(&from);
  jni_threw(env, dtg_server_start(AS(dtg_runtime, runtime), AS(dtg_cluster, cluster), &to, &out));
  free((void*)(uintptr_t)filters);
  packet_close(&from);
  return JLONG(out);
}

static jbyteArray target(JNIEnv* env, jclass self, jlong server) {
  (void)self;
  return jni_name(env, dtg_server_target(AS(dtg_server, server)));
}

static void join(JNIEnv* env, jclass self, jlong server, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_server_join(AS(dtg_server, server), timeout_ns));
}

static void stop(JNIEnv* env, jclass self, jlong server, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_server_stop(AS(dtg_server, server), timeout_ns));
}

static jbyteArray status(JNIEnv* env, jclass self, jlong server) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_server_status(AS(dtg_server, server), &out)) ? NULL : jni_string(env, out);
}

static const JNINativeMethod methods[] = {
    NATIVE("keygen", "([B)V", keygen),   NATIVE("serverStart", "(JJ[B)J", start), NATIVE("serverTarget", "(J)[B", target),
    NATIVE("serverJoin", "(JJ)V", join), NATIVE("serverStop", "(JJ)V", stop),     NATIVE("serverStatus", "(J)[B", status),
};
JNI_TABLE(jni_server, methods);
