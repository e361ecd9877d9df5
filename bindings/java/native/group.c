/* group.c: groups of tasks and their collectives. Any Java thread. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong join(JNIEnv* env, jclass self, jlong server, jbyteArray options) {
  dtg_group_options to = DTG_GROUP_OPTIONS_INIT;
  dtg_group* out = NULL;
  const char** members;
  packet from;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.members = members = packet_texts(&from, &to.num_members, NULL);
  to.join_timeout_ns = packet_int(&from);
  to.default_timeout_ns = packet_int(&from);
  to.key = (int32_t)packet_int(&from);
  jni_threw(env, dtg_group_join(AS(dtg_server, server), &to, &out));
  free((void*)(uintptr_t)members);
  packet_close(&from);
  return JLONG(out);
}

/* `kind` as in dtg_collective_kind; `splits` may be null; the answer is a new tensor. */
static jlong collect(JNIEnv* env, jclass self, jlong group, jint kind, jlong tensor, jint reduction, jint root, jlongArray splits) {
  dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  dtg_group* const of = AS(dtg_group, group);
  const dtg_tensor* const in = AS(dtg_tensor, tensor);
  dtg_tensor* out = NULL;
  dtg_error* error = NULL;
  int64_t* const rows = jni_longs(env, splits, &args.num_splits);
  (void)self;
  if (!rows) return 0;
  args.reduction = reduction;
  args.root = root;
  if (args.num_splits > 0) args.splits = rows;
  switch (kind) {
    case DTG_ALL_REDUCE: error = dtg_group_all_reduce(of, in, &args, &out); break;
    case DTG_ALL_GATHER: error = dtg_group_all_gather(of, in, &args, &out); break;
    case DTG_REDUCE_SCATTER: error = dtg_group_reduce_scatter(of, in, &args, &out); break;
    case DTG_BROADCAST: error = dtg_group_broadcast(of, in, &args, &out); break;
    default: error = dtg_group_all_to_all(of, in, &args, &out); break;
  }
  free(rows);
  jni_threw(env, error);
  return JLONG(out);
}

static void barrier(JNIEnv* env, jclass self, jlong group, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_group_barrier(AS(dtg_group, group), timeout_ns));
}

static void reform(JNIEnv* env, jclass self, jlong group, jlong least, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_group_reform(AS(dtg_group, group), (size_t)least, timeout_ns));
}

static void leave(JNIEnv* env, jclass self, jlong group) {
  (void)self;
  jni_threw(env, dtg_group_leave(AS(dtg_group, group)));
}

static jint rank(JNIEnv* env, jclass self, jlong group) {
  (void)env, (void)self;
  return dtg_group_rank(AS(dtg_group, group));
}

static jint size(JNIEnv* env, jclass self, jlong group) {
  (void)env, (void)self;
  return dtg_group_size(AS(dtg_group, group));
}

static jlong epoch(JNIEnv* env, jclass self, jlong group) {
  (void)env, (void)self;
  return (jlong)dtg_group_epoch(AS(dtg_group, group));
}

static jbyteArray member(JNIEnv* env, jclass self, jlong group, jint of) {
  (void)self;
  return jni_name(env, dtg_group_member(AS(dtg_group, group), of));
}

static const JNINativeMethod methods[] = {
    NATIVE("groupJoin", "(J[B)J", join),     NATIVE("groupCollect", "(JIJII[J)J", collect), NATIVE("groupBarrier", "(JJ)V", barrier),
    NATIVE("groupReform", "(JJJ)V", reform), NATIVE("groupLeave", "(J)V", leave),           NATIVE("groupRank", "(J)I", rank),
    NATIVE("groupSize", "(J)I", size),       NATIVE("groupEpoch", "(J)J", epoch),           NATIVE("groupMember", "(JI)[B", member),
};
JNI_TABLE(jni_group, methods);
