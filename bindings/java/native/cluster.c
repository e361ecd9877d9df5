/* cluster.c: clusters, immutable values. Any Java thread. */
#include <stdio.h>
#include <stdlib.h>

#include "dtg_jni.h"

static jlong parse(JNIEnv* env, jclass self, jbyteArray text) {
  dtg_cluster* out = NULL;
  char* said;
  size_t length;
  (void)self;
  if (jni_text(env, text, &said, &length)) jni_threw(env, dtg_cluster_parse(said, length, &out));
  free(said);
  return JLONG(out);
}

/* The cluster, 0 for none; {index, isChief, id, numWorkers, numPs} go to `numbers`, type and RPC layer to `texts`. */
static jlong from_tf_config(JNIEnv* env, jclass self, jbyteArray json, jlongArray numbers, jobjectArray texts) {
  dtg_cluster* out = NULL;
  dtg_task task = DTG_TASK_INIT;
  char* said;
  size_t length;
  bool failed = true;
  (void)self;
  if (jni_text(env, json, &said, &length)) failed = jni_threw(env, dtg_cluster_from_tf_config(said, length, &out, &task));
  free(said);
  if (!failed) {
    const jlong all[5] = {task.index, task.is_chief, task.id, task.num_workers, task.num_ps};
    jbyteArray type = jni_name(env, task.type), layer = type ? jni_name(env, task.rpc_layer) : NULL;
    (*env)->SetLongArrayRegion(env, numbers, 0, layer ? 5 : 0, all);
    if (layer) {
      (*env)->SetObjectArrayElement(env, texts, 0, type);
      (*env)->SetObjectArrayElement(env, texts, 1, layer);
    }
  }
  return JLONG(out);
}

/* `task`: type, index, rpc layer as a packet. */
static jbyteArray target(JNIEnv* env, jclass self, jlong cluster, jbyteArray task) {
  dtg_task of = DTG_TASK_INIT;
  dtg_string* out = NULL;
  packet from;
  const char* text;
  (void)self;
  if (!packet_open(env, task, &from)) return NULL;
  text = packet_text(&from, NULL);
  snprintf(of.type, sizeof of.type, "%s", text ? text : "");
  of.index = (int32_t)packet_int(&from);
  text = packet_text(&from, NULL);
  snprintf(of.rpc_layer, sizeof of.rpc_layer, "%s", text ? text : "");
  packet_close(&from);
  return jni_threw(env, dtg_cluster_target(AS(dtg_cluster, cluster), &of, &out)) ? NULL : jni_string(env, out);
}

static jbyteArray json(JNIEnv* env, jclass self, jlong cluster) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_cluster_json(AS(dtg_cluster, cluster), &out)) ? NULL : jni_string(env, out);
}

static jlong job_count(JNIEnv* env, jclass self, jlong cluster) {
  (void)env, (void)self;
  return (jlong)dtg_cluster_job_count(AS(dtg_cluster, cluster));
}

static jbyteArray job(JNIEnv* env, jclass self, jlong cluster, jlong i) {
  (void)self;
  return jni_name(env, dtg_cluster_job(AS(dtg_cluster, cluster), (size_t)i));
}

static jlongArray tasks(JNIEnv* env, jclass self, jlong cluster, jbyteArray job_name) {
  char* name;
  size_t length, count, i;
  jlongArray out = NULL;
  (void)self;
  if (jni_text(env, job_name, &name, &length)) {
    int64_t* indices;
    count = dtg_cluster_task_count(AS(dtg_cluster, cluster), name);
    indices = (int64_t*)malloc((count + 1) * sizeof *indices);
    for (i = 0; indices && i < count; ++i) indices[i] = dtg_cluster_task_index(AS(dtg_cluster, cluster), name, i);
    if (indices) {
      out = jni_array(env, indices, count);
    } else {
      jni_no_memory(env);
    }
    free(indices);
  }
  free(name);
  return out;
}

static jbyteArray address(JNIEnv* env, jclass self, jlong cluster, jbyteArray job_name, jint index) {
  char* name;
  size_t length;
  jbyteArray out = NULL;
  (void)self;
  if (jni_text(env, job_name, &name, &length)) out = jni_name(env, dtg_cluster_address(AS(dtg_cluster, cluster), name, index));
  free(name);
  return out;
}

static const JNINativeMethod methods[] = {
    NATIVE("clusterParse", "([B)J", parse),       NATIVE("clusterFromTfConfig", "([B[J[[B)J", from_tf_config),
    NATIVE("clusterTarget", "(J[B)[B", target),   NATIVE("clusterJson", "(J)[B", json),
    NATIVE("clusterJobCount", "(J)J", job_count), NATIVE("clusterJob", "(JJ)[B", job),
    NATIVE("clusterTasks", "(J[B)[J", tasks),     NATIVE("clusterAddress", "(J[BI)[B", address),
};
JNI_TABLE(jni_cluster, methods);
