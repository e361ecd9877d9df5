/* strategy.c: strategies, their runs and per-replica values. One thread at a time per model. */
#include <stdlib.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

static dtg_per_replica spread(int64_t id) {
  dtg_per_replica value;
  value.id = (uint64_t)id;
  return value;
}

static jlong create(JNIEnv* env, jclass self, jlong model, jlong group, jbyteArray options) {
  dtg_strategy_options to = DTG_STRATEGY_OPTIONS_INIT;
  dtg_replication share = DTG_REPLICATION_INIT;
  dtg_strategy* out = NULL;
  const char** devices;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.kind = (dtg_strategy_kind)packet_int(&from);
  to.group = AS(dtg_group, group);
  to.algorithm = (dtg_reduce_algorithm)packet_int(&from);
  to.pack_bytes = packet_int(&from);
  to.timeout_ns = packet_int(&from);
  to.cross_device = (dtg_cross_device)packet_int(&from);
  to.devices = devices = packet_texts(&from, &to.num_devices, NULL);
  to.variable_device = packet_text(&from, NULL);
  if (packet_int(&from)) {
    share.mode = (dtg_sync_mode)packet_int(&from);
    share.worker = (int32_t)packet_int(&from);
    share.total = (int32_t)packet_int(&from);
    share.to_aggregate = (int32_t)packet_int(&from);
    share.staleness = (int32_t)packet_int(&from);
    to.replication = &share;
  }
  jni_threw(env, dtg_strategy_create(AS(dtg_model, model), &to, &out));
  free((void*)(uintptr_t)devices);
  packet_close(&from);
  return JLONG(out);
}

/* {replicas, replicas in sync} */
static jlongArray describe(JNIEnv* env, jclass self, jlong strategy) {
  dtg_strategy_info info = DTG_STRATEGY_INFO_INIT;
  int64_t out[2];
  (void)self;
  if (jni_threw(env, dtg_strategy_describe(AS(dtg_strategy, strategy), &info))) return NULL;
  out[0] = info.num_replicas;
  out[1] = info.num_replicas_in_sync;
  return jni_array(env, out, 2);
}

static void scope(JNIEnv* env, jclass self, jlong strategy, jboolean enter) {
  (void)self;
  jni_threw(env, enter ? dtg_strategy_enter(AS(dtg_strategy, strategy)) : dtg_strategy_exit(AS(dtg_strategy, strategy)));
}

static void begin_replica(JNIEnv* env, jclass self, jlong strategy, jint replica) {
  (void)self;
  jni_threw(env, dtg_strategy_begin_replica(AS(dtg_strategy, strategy), replica));
}

/* As many per-replica values as results; they mean something at the end of the last replica. */
static jlongArray end_replica(JNIEnv* env, jclass self, jlong strategy, jlongArray results) {
  size_t count;
  int64_t* const ids = jni_longs(env, results, &count);
  dtg_per_replica* const out = ids ? calloc(count + 1, sizeof(dtg_per_replica)) : NULL;
  jlongArray answer = NULL;
  (void)self;
  if (ids && !out) jni_no_memory(env);
  if (out && !jni_threw(env, dtg_strategy_end_replica(AS(dtg_strategy, strategy), (const dtg_value*)ids, count, out)))
    answer = jni_array(env, (const int64_t*)(const void*)out, count);
  free(out);
  free(ids);
  return answer;
}

/* Not over what is being thrown. */
static void abandon(JNIEnv* env, jclass self, jlong strategy) {
  (void)env, (void)self;
  dtg_error_release(dtg_strategy_abandon_run(AS(dtg_strategy, strategy)));
}

static jlong reduce(JNIEnv* env, jclass self, jlong strategy, jint op, jlong value, jint axis) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_reduce(AS(dtg_strategy, strategy), op, spread(value), axis, &out)) ? 0 : (jlong)out.id;
}

static jlong gather(JNIEnv* env, jclass self, jlong strategy, jlong value, jint axis) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_gather(AS(dtg_strategy, strategy), spread(value), axis, &out)) ? 0 : (jlong)out.id;
}

static jlong local(JNIEnv* env, jclass self, jlong strategy, jlong value) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_local(AS(dtg_strategy, strategy), spread(value), &out)) ? 0 : (jlong)out.id;
}

static jlong distribute(JNIEnv* env, jclass self, jlong strategy, jlongArray values) {
  dtg_per_replica out = {0};
  size_t count;
  int64_t* const ids = jni_longs(env, values, &count);
  (void)self;
  if (ids) jni_threw(env, dtg_strategy_distribute(AS(dtg_strategy, strategy), (const dtg_value*)ids, count, &out));
  free(ids);
  return (jlong)out.id;
}

static jlong broadcast(JNIEnv* env, jclass self, jlong strategy, jlong value) {
  dtg_per_replica out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_broadcast(AS(dtg_strategy, strategy), of(value), &out)) ? 0 : (jlong)out.id;
}

static jlong split(JNIEnv* env, jclass self, jlong strategy, jlong batch) {
  dtg_per_replica out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_split(AS(dtg_strategy, strategy), of(batch), &out)) ? 0 : (jlong)out.id;
}

static jlongArray local_results(JNIEnv* env, jclass self, jlong strategy, jlong value) {
  dtg_strategy* const it = AS(dtg_strategy, strategy);
  dtg_value* out = NULL;
  size_t count = 0;
  jlongArray answer = NULL;
  (void)self;
  if (jni_threw(env, dtg_strategy_local_results(it, spread(value), NULL, 0, &count))) return NULL;
  out = calloc(count + 1, sizeof(dtg_value));
  if (!out) jni_no_memory(env);
  if (out && !jni_threw(env, dtg_strategy_local_results(it, spread(value), out, count, &count)))
    answer = jni_array(env, (const int64_t*)(const void*)out, count);
  free(out);
  return answer;
}

static jlongArray minimize(JNIEnv* env, jclass self, jlong strategy, jlong losses, jint op, jbyteArray optimizer) {
  dtg_training out = DTG_TRAINING_INIT;
  dtg_optimizer how;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  failed = jni_threw(env, dtg_strategy_minimize(AS(dtg_strategy, strategy), spread(losses), op, &how, &out));
  packet_close(&from);
  return failed ? NULL : jni_training_ids(env, &out);
}

static jlongArray replicated(JNIEnv* env, jclass self, jlong strategy) {
  dtg_replicated out = DTG_REPLICATED_INIT;
  (void)self;
  return jni_threw(env, dtg_strategy_replicated(AS(dtg_strategy, strategy), &out)) ? NULL : jni_replicated_ids(env, &out);
}

static jlong assign(JNIEnv* env, jclass self, jlong strategy, jlong handle, jint op, jlong value) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_assign(AS(dtg_strategy, strategy), of(handle), op, of(value), &out)) ? 0 : (jlong)out.id;
}

static jlong updates(JNIEnv* env, jclass self, jlong strategy) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_updates(AS(dtg_strategy, strategy), &out)) ? 0 : (jlong)out.id;
}

static jlong level(JNIEnv* env, jclass self, jlong strategy) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_strategy_level(AS(dtg_strategy, strategy), &out)) ? 0 : (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("strategyCreate", "(JJ[B)J", create),
    NATIVE("strategyDescribe", "(J)[J", describe),
    NATIVE("strategyScope", "(JZ)V", scope),
    NATIVE("strategyBeginReplica", "(JI)V", begin_replica),
    NATIVE("strategyEndReplica", "(J[J)[J", end_replica),
    NATIVE("strategyAbandonRun", "(J)V", abandon),
    NATIVE("strategyReduce", "(JIJI)J", reduce),
    NATIVE("strategyGather", "(JJI)J", gather),
    NATIVE("strategyLocal", "(JJ)J", local),
    NATIVE("strategyDistribute", "(J[J)J", distribute),
    NATIVE("strategyBroadcast", "(JJ)J", broadcast),
    NATIVE("strategySplit", "(JJ)J", split),
    NATIVE("strategyLocalResults", "(JJ)[J", local_results),
    NATIVE("strategyMinimize", "(JJI[B)[J", minimize),
    NATIVE("strategyReplicated", "(J)[J", replicated),
    NATIVE("strategyAssign", "(JJIJ)J", assign),
    NATIVE("strategyUpdates", "(J)J", updates),
    NATIVE("strategyLevel", "(J)J", level),
};
JNI_TABLE(jni_strategy, methods);
