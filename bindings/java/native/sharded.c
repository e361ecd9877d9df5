/* sharded.c: variables in shards. One thread at a time per model. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

/* As Partitioner.java writes it: kind, three sizes. */
static dtg_partitioner partitioner(packet* from) {
  dtg_partitioner to = DTG_PARTITIONER_INIT;
  to.kind = (dtg_partitioner_kind)packet_int(from);
  to.num_shards = packet_int(from);
  to.shard_bytes = packet_int(from);
  to.max_shards = packet_int(from);
  return to;
}

static jbyteArray add(JNIEnv* env, jclass self, jlong model, jbyteArray spec) {
  dtg_variable_spec to;
  dtg_partitioner how;
  dtg_sharded out = DTG_SHARDED_INIT;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, spec, &from)) return NULL;
  how = partitioner(&from);
  to = jni_variable_spec(&from);
  failed = jni_threw(env, dtg_model_add_sharded_variable(AS(dtg_model, model), &to, &how, &out));
  packet_close(&from);
  return failed ? NULL : jni_bytes(env, out.name, out.name_len);
}

/* {dtype, axis, shards, dimensions...} */
static jlongArray describe(JNIEnv* env, jclass self, jlong model, jbyteArray name) {
  dtg_sharded found = DTG_SHARDED_INIT;
  int64_t out[3 + 8];
  char* text;
  size_t length;
  bool failed = true;
  (void)self;
  if (jni_text(env, name, &text, &length))
    failed = jni_threw(env, dtg_model_find_sharded_variable(AS(dtg_model, model), text, length, &found));
  free(text);
  if (failed) return NULL;
  out[0] = found.dtype;
  out[1] = found.axis;
  out[2] = found.shards;
  memcpy(out + 3, found.dims, found.rank * sizeof *out);
  return jni_array(env, out, 3 + found.rank);
}

static jlongArray shard(JNIEnv* env, jclass self, jlong model, jbyteArray name, jlong i) {
  dtg_variable out = DTG_VARIABLE_INIT;
  char* text;
  size_t length;
  bool failed = true;
  (void)self;
  if (jni_text(env, name, &text, &length)) failed = jni_threw(env, dtg_sharded_shard(AS(dtg_model, model), text, length, i, &out));
  free(text);
  return failed ? NULL : jni_variable(env, &out);
}

/* Without ids: all of it. */
static jlong lookup(JNIEnv* env, jclass self, jlong model, jbyteArray name, jlong ids) {
  dtg_value out = {0};
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) {
    jni_threw(env, ids ? dtg_nn_sharded_lookup(AS(dtg_model, model), text, length, of(ids), &out)
                       : dtg_nn_sharded_value(AS(dtg_model, model), text, length, &out));
  }
  free(text);
  return (jlong)out.id;
}

static jlong embedding(JNIEnv* env, jclass self, jlong model, jlong ids, jbyteArray layer) {
  dtg_embedding to;
  dtg_partitioner how;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  how = partitioner(&from);
  to = jni_embedding(&from);
  jni_threw(env, dtg_nn_sharded_embedding(AS(dtg_model, model), of(ids), &to, &how, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("shardedAdd", "(J[B)[B", add),       NATIVE("shardedDescribe", "(J[B)[J", describe),   NATIVE("shardedShard", "(J[BJ)[J", shard),
    NATIVE("shardedLookup", "(J[BJ)J", lookup), NATIVE("shardedEmbedding", "(JJ[B)J", embedding),
};
JNI_TABLE(jni_sharded, methods);
