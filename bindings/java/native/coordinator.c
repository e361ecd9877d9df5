/* coordinator.c: coordinators, closures and remote values. Any Java thread. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong create(JNIEnv* env, jclass self, jlong session, jbyteArray options) {
  dtg_coordinator_options to = DTG_COORDINATOR_OPTIONS_INIT;
  dtg_coordinator* out = NULL;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.job = packet_text(&from, &to.job_len);
  to.queue_capacity = packet_int(&from);
  to.closure_timeout_ns = packet_int(&from);
  to.worker_timeout_ns = packet_int(&from);
  to.server_timeout_ns = packet_int(&from);
  to.closure_losses = packet_int(&from);
  jni_threw(env, dtg_coordinator_create(AS(dtg_session, session), &to, &out));
  packet_close(&from);
  return JLONG(out);
}

static jlong prepare(JNIEnv* env, jclass self, jlong coordinator, jlongArray feeds, jlongArray fetches, jlongArray targets, jlong worker) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_value number;
  dtg_closure* out = NULL;
  int64_t *in = jni_longs(env, feeds, &args.num_feeds), *wanted = NULL, *run = NULL;
  (void)self;
  number.id = (uint64_t)worker;
  if (in && (wanted = jni_longs(env, fetches, &args.num_fetches)) && (run = jni_longs(env, targets, &args.num_targets))) {
    args.feeds = (const dtg_value*)in;
    args.fetches = (const dtg_value*)wanted;
    args.targets = (const dtg_value*)run;
    jni_threw(env, dtg_coordinator_prepare(AS(dtg_coordinator, coordinator), &args, number, &out));
  }
  free(in);
  free(wanted);
  free(run);
  return JLONG(out);
}

static void per_worker(JNIEnv* env, jclass self, jlong coordinator, jlong closure, jlongArray tensors) {
  size_t count;
  int64_t* feeds = jni_longs(env, tensors, &count);
  (void)self;
  if (feeds) {
    jni_threw(env, dtg_coordinator_create_per_worker(AS(dtg_coordinator, coordinator), AS(dtg_closure, closure),
                                                     (const dtg_tensor* const*)(const void*)feeds, count));
  }
  free(feeds);
}

static jlong schedule(JNIEnv* env, jclass self, jlong coordinator, jlong closure, jlongArray tensors, jlong cq, jlong tag) {
  dtg_schedule_options options = DTG_SCHEDULE_OPTIONS_INIT;
  dtg_remote_value* out = NULL;
  size_t count;
  int64_t* feeds = jni_longs(env, tensors, &count);
  (void)self;
  options.cq = AS(dtg_cq, cq);
  options.tag = (uint64_t)tag;
  if (feeds) {
    jni_threw(env, dtg_coordinator_schedule(AS(dtg_coordinator, coordinator), AS(dtg_closure, closure),
                                            (const dtg_tensor* const*)(const void*)feeds, count, &options, &out));
  }
  free(feeds);
  return JLONG(out);
}

static void join(JNIEnv* env, jclass self, jlong coordinator, jlong timeout_ns, jlong cancellation) {
  (void)self;
  jni_threw(env, dtg_coordinator_join(AS(dtg_coordinator, coordinator), timeout_ns, AS(dtg_cancellation, cancellation)));
}

static jboolean done(JNIEnv* env, jclass self, jlong coordinator) {
  int32_t out = 0;
  (void)self;
  jni_threw(env, dtg_coordinator_done(AS(dtg_coordinator, coordinator), &out));
  return out != 0;
}

static void cancel(JNIEnv* env, jclass self, jlong coordinator) {
  (void)self;
  jni_threw(env, dtg_coordinator_cancel(AS(dtg_coordinator, coordinator)));
}

static jbyteArray status(JNIEnv* env, jclass self, jlong coordinator) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_coordinator_status(AS(dtg_coordinator, coordinator), &out)) ? NULL : jni_string(env, out);
}

/* Of a closure that has ended well: as many tensors as it fetches. */
static jlongArray fetch(JNIEnv* env, jclass self, jlong value, jint count) {
  dtg_tensor** fetched = (dtg_tensor**)calloc((size_t)count + 1, sizeof *fetched);
  int64_t* handles = (int64_t*)calloc((size_t)count + 1, sizeof *handles);
  jlongArray out = NULL;
  jint i;
  (void)self;
  if (!fetched || !handles) {
    jni_no_memory(env);
  } else if (!jni_threw(env, dtg_remote_value_fetch(AS(dtg_remote_value, value), fetched, (size_t)count, 0, NULL))) {
    for (i = 0; i < count; ++i) handles[i] = JLONG(fetched[i]);
    out = jni_array(env, handles, (size_t)count);
    for (i = 0; !out && i < count; ++i) dtg_tensor_release(fetched[i]);
  }
  free(fetched);
  free(handles);
  return out;
}

static jlong shards(JNIEnv* env, jclass self, jint kind, jint axis, jlongArray sizes, jint dtype, jlongArray dims) {
  dtg_partitioner partitioner = DTG_PARTITIONER_INIT;
  size_t given, rank;
  int64_t out = 0, *numbers = jni_longs(env, sizes, &given), *of = NULL;
  (void)self;
  if (numbers && (of = jni_longs(env, dims, &rank))) {
    partitioner.kind = kind;
    partitioner.axis = axis;
    partitioner.num_shards = numbers[0];
    partitioner.shard_bytes = numbers[1];
    partitioner.max_shards = numbers[2];
    jni_threw(env, dtg_partitioner_shards(&partitioner, dtype, of, rank, &out));
  }
  free(numbers);
  free(of);
  return out;
}

static jlongArray shard_rows(JNIEnv* env, jclass self, jlong rows, jlong count, jlong shard) {
  int64_t out[2] = {0, 0};
  (void)self;
  return jni_threw(env, dtg_shard_rows(rows, count, shard, &out[0], &out[1])) ? NULL : jni_array(env, out, 2);
}

static const JNINativeMethod methods[] = {
    NATIVE("coordinatorCreate", "(J[B)J", create),
    NATIVE("coordinatorPrepare", "(J[J[J[JJ)J", prepare),
    NATIVE("coordinatorPerWorker", "(JJ[J)V", per_worker),
    NATIVE("coordinatorSchedule", "(JJ[JJJ)J", schedule),
    NATIVE("coordinatorJoin", "(JJJ)V", join),
    NATIVE("coordinatorDone", "(J)Z", done),
    NATIVE("coordinatorCancel", "(J)V", cancel),
    NATIVE("coordinatorStatus", "(J)[B", status),
    NATIVE("remoteValueFetch", "(JI)[J", fetch),
    NATIVE("partitionerShards", "(II[JI[J)J", shards),
    NATIVE("shardRows", "(JJJ)[J", shard_rows),
};
JNI_TABLE(jni_coordinator, methods);
