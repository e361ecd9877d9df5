/* training.c: optimizers, schedules and training by many workers. One thread at a time per model. */
#include <stdlib.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

/* Its pointers are the packet's. */
dtg_optimizer jni_optimizer(packet* from) {
  dtg_optimizer to = DTG_OPTIMIZER_INIT;
  to.kind = (dtg_optimizer_kind)packet_int(from);
  to.nesterov = (int32_t)packet_int(from);
  to.learning_rate = of(packet_int(from));
  to.rate = packet_double(from);
  to.momentum = packet_double(from);
  to.beta1 = packet_double(from);
  to.beta2 = packet_double(from);
  to.epsilon = packet_double(from);
  to.decay = packet_double(from);
  to.initial_accumulator = packet_double(from);
  to.clip_norm = packet_double(from);
  to.unchecked_loss = (int32_t)packet_int(from);
  to.lazy = (int32_t)packet_int(from);
  to.weight_decay = packet_double(from);
  to.amsgrad = (int32_t)packet_int(from);
  to.centered = (int32_t)packet_int(from);
  to.l1 = packet_double(from);
  to.l2 = packet_double(from);
  to.l2_shrinkage = packet_double(from);
  to.ftrl_beta = packet_double(from);
  to.rate_power = packet_double(from);
  to.trust = packet_double(from);
  to.epsilon2 = packet_double(from);
  to.clip_threshold = packet_double(from);
  to.clip_value = packet_double(from);
  to.clip_each_norm = packet_double(from);
  to.undecayed_names = packet_text(from, &to.undecayed_names_len);
  to.undecayed = packet_values(from, &to.num_undecayed);
  to.variables = packet_values(from, &to.num_variables);
  if (to.num_variables == 0) to.variables = NULL; /* all of them */
  to.use_ema = (int32_t)packet_int(from);
  to.ema_momentum = packet_double(from);
  to.ema_overwrite_every = packet_int(from);
  to.accumulation_steps = packet_int(from);
  to.lookahead_steps = packet_int(from);
  to.lookahead_share = packet_double(from);
  return to;
}

static dtg_replication read_replication(packet* from) {
  dtg_replication to = DTG_REPLICATION_INIT;
  to.mode = (dtg_sync_mode)packet_int(from);
  to.worker = (int32_t)packet_int(from);
  to.total = (int32_t)packet_int(from);
  to.to_aggregate = (int32_t)packet_int(from);
  to.staleness = (int32_t)packet_int(from);
  to.min_workers = (int32_t)packet_int(from);
  to.elements = packet_int(from);
  return to;
}

jlongArray jni_training_ids(JNIEnv* env, const dtg_training* from) {
  const int64_t out[4] = {(int64_t)from->train.id, (int64_t)from->global_step.id, (int64_t)from->learning_rate.id,
                          (int64_t)from->gradient_norm.id};
  return jni_array(env, out, 4);
}

jlongArray jni_replicated_ids(JNIEnv* env, const dtg_replicated* from) {
  const dtg_value all[13] = {from->train,       from->local_init, from->chief_init, from->resume,        from->update,
                             from->global_step, from->local_step, from->next_step,  from->learning_rate, from->gradient_norm,
                             from->leave,       from->clock,      from->members};
  int64_t out[13];
  size_t i;
  for (i = 0; i < 13; ++i) out[i] = (int64_t)all[i].id;
  return jni_array(env, out, 13);
}

/* One loss, or those of several towers. */
static jlongArray minimize(JNIEnv* env, jclass self, jlong model, jlongArray losses, jbyteArray optimizer, jboolean towers) {
  dtg_training out = DTG_TRAINING_INIT;
  dtg_optimizer how;
  packet from;
  size_t count;
  int64_t* ids;
  bool failed = true;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  ids = jni_longs(env, losses, &count);
  if (ids) {
    failed = jni_threw(env, towers ? dtg_nn_minimize_towers(AS(dtg_model, model), (const dtg_value*)ids, count, &how, &out)
                                   : dtg_nn_minimize(AS(dtg_model, model), of(ids[0]), &how, &out));
  }
  free(ids);
  packet_close(&from);
  return failed ? NULL : jni_training_ids(env, &out);
}

static jlongArray minimize_all_reduce(JNIEnv* env, jclass self, jlong model, jlong loss, jbyteArray optimizer) {
  dtg_training out = DTG_TRAINING_INIT;
  dtg_all_reduce group = DTG_ALL_REDUCE_INIT;
  dtg_optimizer how;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  group.group_key = (int32_t)packet_int(&from);
  group.group_size = (int32_t)packet_int(&from);
  group.first_instance = (int32_t)packet_int(&from);
  group.pack_bytes = packet_int(&from);
  group.timeout_ns = packet_int(&from);
  failed = jni_threw(env, dtg_nn_minimize_all_reduce(AS(dtg_model, model), of(loss), &how, &group, &out));
  packet_close(&from);
  return failed ? NULL : jni_training_ids(env, &out);
}

static jlongArray minimize_replicated(JNIEnv* env, jclass self, jlong model, jlong loss, jbyteArray optimizer) {
  dtg_replicated out = DTG_REPLICATED_INIT;
  dtg_replication share;
  dtg_optimizer how;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  share = read_replication(&from);
  failed = jni_threw(env, dtg_nn_minimize_replicated(AS(dtg_model, model), of(loss), &how, &share, &out));
  packet_close(&from);
  return failed ? NULL : jni_replicated_ids(env, &out);
}

/* Handles and gradients (four words each) of one's own; with `replicated` this worker's share, otherwise {train}. */
static jlongArray apply(JNIEnv* env, jclass self, jlong model, jlongArray handles, jlongArray gradients, jbyteArray optimizer,
                        jboolean replicated) {
  dtg_replicated share_out = DTG_REPLICATED_INIT;
  dtg_replication share;
  dtg_optimizer how;
  dtg_value train = {0};
  packet from;
  size_t count, words;
  int64_t *of_variables, *of_gradients;
  bool failed = true;
  (void)self;
  if (!packet_open(env, optimizer, &from)) return NULL;
  how = jni_optimizer(&from);
  share = read_replication(&from);
  of_variables = jni_longs(env, handles, &count);
  of_gradients = jni_longs(env, gradients, &words);
  if (of_variables && of_gradients) {
    const dtg_value* on = (const dtg_value*)of_variables;
    const dtg_gradient* by = (const dtg_gradient*)(const void*)of_gradients;
    failed = jni_threw(env, replicated ? dtg_nn_apply_replicated(AS(dtg_model, model), on, by, count, &how, &share, &share_out)
                                       : dtg_nn_apply_gradients(AS(dtg_model, model), &how, on, by, count, &train));
  }
  free(of_gradients);
  free(of_variables);
  packet_close(&from);
  if (failed) return NULL;
  return replicated ? jni_replicated_ids(env, &share_out) : jni_array(env, (const int64_t*)(const void*)&train, 1);
}

static jlong exponential_decay(JNIEnv* env, jclass self, jlong model, jlong step, jdouble rate, jdouble every, jdouble factor,
                               jboolean staircase) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_exponential_decay(AS(dtg_model, model), of(step), rate, every, factor, staircase, &out)) ? 0 : (jlong)out.id;
}

static jlong cosine_decay(JNIEnv* env, jclass self, jlong model, jlong step, jdouble rate, jdouble steps, jdouble floor, jdouble warmup) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_cosine_decay(AS(dtg_model, model), of(step), rate, steps, floor, warmup, &out)) ? 0 : (jlong)out.id;
}

static jlong schedule(JNIEnv* env, jclass self, jlong model, jlong step, jbyteArray how) {
  dtg_schedule to = DTG_SCHEDULE_INIT;
  dtg_value out = {0};
  size_t count;
  packet from;
  bool failed;
  (void)self;
  if (!packet_open(env, how, &from)) return 0;
  to.kind = (dtg_schedule_kind)packet_int(&from);
  to.staircase = (int32_t)packet_int(&from);
  to.cycle = (int32_t)packet_int(&from);
  to.warms_up = (int32_t)packet_int(&from);
  to.rate = packet_double(&from);
  to.steps = packet_double(&from);
  to.decay_rate = packet_double(&from);
  to.end_rate = packet_double(&from);
  to.power = packet_double(&from);
  to.alpha = packet_double(&from);
  to.warmup_target = packet_double(&from);
  to.warmup_steps = packet_double(&from);
  to.t_mul = packet_double(&from);
  to.m_mul = packet_double(&from);
  to.boundaries = packet_ints(&from, &to.num_boundaries);
  to.values = (const double*)(const void*)packet_ints(&from, &count); /* as many as Java has checked */
  failed = jni_threw(env, dtg_nn_schedule(AS(dtg_model, model), of(step), &to, &out));
  packet_close(&from);
  return failed ? 0 : (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("nnMinimize", "(J[J[BZ)[J", minimize),       NATIVE("nnMinimizeReplicated", "(JJ[B)[J", minimize_replicated),
    NATIVE("nnApply", "(J[J[J[BZ)[J", apply),           NATIVE("nnExponentialDecay", "(JJDDDZ)J", exponential_decay),
    NATIVE("nnCosineDecay", "(JJDDDD)J", cosine_decay), NATIVE("nnMinimizeAllReduce", "(JJ[B)[J", minimize_all_reduce),
    NATIVE("nnSchedule", "(JJ[B)J", schedule),
};
JNI_TABLE(jni_training, methods);
