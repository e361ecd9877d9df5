/* layers.c: layers, losses and metrics. One thread at a time per model. */
#include <stdlib.h>

#include "dtg_jni.h"

static dtg_value of(int64_t id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

dtg_dense jni_dense(packet* from) {
  dtg_dense to = DTG_DENSE_INIT;
  to.name = packet_text(from, &to.name_len);
  to.units = packet_int(from);
  to.activation = (dtg_activation)packet_int(from);
  to.no_bias = (int32_t)packet_int(from);
  to.kernel = packet_initializer(from);
  to.bias = packet_initializer(from);
  to.weights_of = packet_text(from, &to.weights_of_len);
  return to;
}

static jlong dense(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_dense to;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to = jni_dense(&from);
  jni_threw(env, dtg_nn_dense(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong conv2d(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_conv2d to = DTG_CONV2D_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.filters = packet_int(&from);
  to.kernel_height = packet_int(&from);
  to.kernel_width = packet_int(&from);
  to.stride_height = packet_int(&from);
  to.stride_width = packet_int(&from);
  to.dilation_height = packet_int(&from);
  to.dilation_width = packet_int(&from);
  to.padding = (dtg_padding)packet_int(&from);
  to.activation = (dtg_activation)packet_int(&from);
  to.no_bias = (int32_t)packet_int(&from);
  to.kernel = packet_initializer(&from);
  to.bias = packet_initializer(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, dtg_nn_conv2d(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong pool2d(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer, jboolean average) {
  dtg_pool2d to = DTG_POOL2D_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.window_height = packet_int(&from);
  to.window_width = packet_int(&from);
  to.stride_height = packet_int(&from);
  to.stride_width = packet_int(&from);
  to.padding = (dtg_padding)packet_int(&from);
  jni_threw(
      env, average ? dtg_nn_avg_pool2d(AS(dtg_model, model), of(x), &to, &out) : dtg_nn_max_pool2d(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

dtg_embedding jni_embedding(packet* from) {
  dtg_embedding to = DTG_EMBEDDING_INIT;
  to.name = packet_text(from, &to.name_len);
  to.rows = packet_int(from);
  to.width = packet_int(from);
  to.table = packet_initializer(from);
  to.weights_of = packet_text(from, &to.weights_of_len);
  return to;
}

static jlong embedding(JNIEnv* env, jclass self, jlong model, jlong ids, jbyteArray layer) {
  dtg_embedding to;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to = jni_embedding(&from);
  jni_threw(env, dtg_nn_embedding(AS(dtg_model, model), of(ids), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong flatten(JNIEnv* env, jclass self, jlong model, jlong x) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_flatten(AS(dtg_model, model), of(x), &out)) ? 0 : (jlong)out.id;
}

static jlong dropout(JNIEnv* env, jclass self, jlong model, jlong x, jdouble rate, jlong step, jlong training) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_dropout(AS(dtg_model, model), of(x), rate, of(step), of(training), &out)) ? 0 : (jlong)out.id;
}

static jlong activation(JNIEnv* env, jclass self, jlong model, jlong x, jint kind) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_activation(AS(dtg_model, model), of(x), kind, &out)) ? 0 : (jlong)out.id;
}

static jlong batch_norm(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_batch_norm to = DTG_BATCH_NORM_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.momentum = packet_double(&from);
  to.epsilon = packet_double(&from);
  to.no_center = (int32_t)packet_int(&from);
  to.no_scale = (int32_t)packet_int(&from);
  to.training = of(packet_int(&from));
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, dtg_nn_batch_norm(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

/* What normalizes each example, numbered as in Layers.java. */
static jlong norm(JNIEnv* env, jclass self, jlong model, jint which, jlong x, jbyteArray layer) {
  typedef dtg_error* (*norm_fn)(dtg_model*, dtg_value, const dtg_norm*, dtg_value*);
  static const norm_fn norms[] = {
      dtg_nn_layer_norm,
      dtg_nn_rms_norm,
      dtg_nn_group_norm,
  };
  dtg_norm to = DTG_NORM_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.epsilon = packet_double(&from);
  to.groups = packet_int(&from);
  to.no_center = (int32_t)packet_int(&from);
  to.no_scale = (int32_t)packet_int(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, norms[which](AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

/* The outputs, the last state, and the last cell state or 0. */
static jlongArray recurrent(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_recurrent to = DTG_RECURRENT_INIT;
  dtg_recurrent_result out = DTG_RECURRENT_RESULT_INIT;
  packet from;
  bool threw;
  (void)self;
  if (!packet_open(env, layer, &from)) return NULL;
  to.name = packet_text(&from, &to.name_len);
  to.kind = (dtg_recurrent_kind)packet_int(&from);
  to.direction = (dtg_direction)packet_int(&from);
  to.units = packet_int(&from);
  to.no_bias = (int32_t)packet_int(&from);
  to.no_forget_bias = (int32_t)packet_int(&from);
  to.kernel = packet_initializer(&from);
  to.recurrent = packet_initializer(&from);
  to.bias = packet_initializer(&from);
  to.lengths = of(packet_int(&from));
  to.hidden = of(packet_int(&from));
  to.cell = of(packet_int(&from));
  to.weights_of = packet_text(&from, &to.weights_of_len);
  threw = jni_threw(env, dtg_nn_recurrent(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  if (threw) return NULL;
  {
    const int64_t ids[] = {(int64_t)out.outputs.id, (int64_t)out.hidden.id, (int64_t)out.cell.id};
    return jni_array(env, ids, 3);
  }
}

dtg_attention jni_attention(packet* from) {
  dtg_attention to = DTG_ATTENTION_INIT;
  to.name = packet_text(from, &to.name_len);
  to.heads = packet_int(from);
  to.key_width = packet_int(from);
  to.value_width = packet_int(from);
  to.output_width = packet_int(from);
  to.no_bias = (int32_t)packet_int(from);
  to.causal = (int32_t)packet_int(from);
  to.key = of(packet_int(from));
  to.mask = of(packet_int(from));
  to.lengths = of(packet_int(from));
  to.kernel = packet_initializer(from);
  to.bias = packet_initializer(from);
  to.weights_of = packet_text(from, &to.weights_of_len);
  return to;
}

static jlong attention(JNIEnv* env, jclass self, jlong model, jlong query, jlong value, jbyteArray layer) {
  dtg_attention to;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to = jni_attention(&from);
  jni_threw(env, dtg_nn_attention(AS(dtg_model, model), of(query), of(value), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

/* The keys, the values, and the position or 0. */
static jlongArray attention_cache(JNIEnv* env, jclass self, jlong model, jlong value, jbyteArray layer, jlong longest) {
  dtg_attention to = DTG_ATTENTION_INIT;
  dtg_attention_cache cache = DTG_ATTENTION_CACHE_INIT;
  packet from;
  bool threw;
  (void)self;
  if (!packet_open(env, layer, &from)) return NULL;
  to = jni_attention(&from);
  threw = jni_threw(env, dtg_nn_attention_cache(AS(dtg_model, model), of(value), &to, longest, &cache));
  packet_close(&from);
  if (threw) return NULL;
  {
    const int64_t ids[] = {(int64_t)cache.keys.id, (int64_t)cache.values.id, (int64_t)cache.position.id};
    return jni_array(env, ids, 3);
  }
}

/* The output, and the cache as it is then. */
static jlongArray attention_step(JNIEnv* env, jclass self, jlong model, jlong query, jbyteArray layer, jlongArray before) {
  dtg_attention to = DTG_ATTENTION_INIT;
  dtg_attention_cache cache = DTG_ATTENTION_CACHE_INIT;
  dtg_value out = {0};
  packet from;
  bool threw = true;
  size_t count;
  int64_t* ids = jni_longs(env, before, &count);
  (void)self;
  if (ids && count == 3 && packet_open(env, layer, &from)) {
    cache.keys = of(ids[0]);
    cache.values = of(ids[1]);
    cache.position = of(ids[2]);
    to = jni_attention(&from);
    threw = jni_threw(env, dtg_nn_attention_step(AS(dtg_model, model), of(query), &to, &cache, &out));
    packet_close(&from);
  }
  free(ids);
  if (threw) return NULL;
  {
    const int64_t made[] = {(int64_t)out.id, (int64_t)cache.keys.id, (int64_t)cache.values.id, (int64_t)cache.position.id};
    return jni_array(env, made, 4);
  }
}

static jlong position_embedding(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_position to = DTG_POSITION_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.kind = (dtg_position_kind)packet_int(&from);
  to.wavelength = packet_double(&from);
  to.longest = packet_int(&from);
  to.start = of(packet_int(&from));
  to.table = packet_initializer(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, dtg_nn_position_embedding(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong embedding_bag(JNIEnv* env, jclass self, jlong model, jlong ids, jbyteArray layer) {
  dtg_embedding_bag to = DTG_EMBEDDING_BAG_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.rows = packet_int(&from);
  to.width = packet_int(&from);
  to.combiner = (dtg_combiner)packet_int(&from);
  to.lengths = of(packet_int(&from));
  to.weights = of(packet_int(&from));
  to.table = packet_initializer(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, dtg_nn_embedding_bag(AS(dtg_model, model), of(ids), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong hashing(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_hashing to = DTG_HASHING_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.num_bins = packet_int(&from);
  to.mask_value = AS(dtg_tensor, packet_int(&from));
  to.salted = (int32_t)packet_int(&from);
  to.output_mode = (dtg_output_mode)packet_int(&from);
  to.salt[0] = (uint64_t)packet_int(&from);
  to.salt[1] = (uint64_t)packet_int(&from);
  jni_threw(env, dtg_nn_hashing(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong lookup(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray layer) {
  dtg_lookup to = DTG_LOOKUP_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.vocabulary = AS(dtg_tensor, packet_int(&from));
  to.mask_token = AS(dtg_tensor, packet_int(&from));
  to.oov_token = AS(dtg_tensor, packet_int(&from));
  to.num_oov_indices = packet_int(&from);
  to.no_oov = (int32_t)packet_int(&from);
  to.invert = (int32_t)packet_int(&from);
  to.output_mode = (dtg_output_mode)packet_int(&from);
  jni_threw(env, dtg_nn_lookup(AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong noise(JNIEnv* env, jclass self, jlong model, jlong x, jint kind, jdouble amount, jlong step, jlong training) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_nn_noise(AS(dtg_model, model), of(x), kind, amount, of(step), of(training), &out)) ? 0 : (jlong)out.id;
}

static jlong adaptive_pool(JNIEnv* env, jclass self, jlong model, jlong x, jlongArray sizes, jboolean greatest) {
  dtg_value out = {0};
  size_t count;
  int64_t* entries = jni_longs(env, sizes, &count);
  (void)self;
  if (entries) jni_threw(env, dtg_nn_adaptive_pool(AS(dtg_model, model), of(x), entries, count, greatest, &out));
  free(entries);
  return (jlong)out.id;
}

/* The layers of dtg_conv, numbered as in Layers.java. */
static jlong conv(JNIEnv* env, jclass self, jlong model, jint which, jlong x, jbyteArray layer) {
  typedef dtg_error* (*conv_fn)(dtg_model*, dtg_value, const dtg_conv*, dtg_value*);
  static const conv_fn convs[] = {
      dtg_nn_conv1d, dtg_nn_conv3d, dtg_nn_conv2d_transpose, dtg_nn_depthwise_conv2d, dtg_nn_separable_conv2d,
  };
  dtg_conv to = DTG_CONV_INIT;
  dtg_value out = {0};
  packet from;
  int i;
  (void)self;
  if (!packet_open(env, layer, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.filters = packet_int(&from);
  to.multiplier = packet_int(&from);
  for (i = 0; i < 3; ++i) to.kernel[i] = packet_int(&from);
  for (i = 0; i < 3; ++i) to.stride[i] = packet_int(&from);
  for (i = 0; i < 3; ++i) to.dilation[i] = packet_int(&from);
  to.padding = (dtg_padding)packet_int(&from);
  to.causal = (int32_t)packet_int(&from);
  to.activation = (dtg_activation)packet_int(&from);
  to.no_bias = (int32_t)packet_int(&from);
  to.kernel_init = packet_initializer(&from);
  to.bias_init = packet_initializer(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  jni_threw(env, convs[which](AS(dtg_model, model), of(x), &to, &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong global_pool(JNIEnv* env, jclass self, jlong model, jlong x, jboolean keep, jboolean greatest) {
  dtg_value out = {0};
  (void)self;
  jni_threw(env, greatest ? dtg_nn_global_max_pool(AS(dtg_model, model), of(x), keep, &out)
                          : dtg_nn_global_avg_pool(AS(dtg_model, model), of(x), keep, &out));
  return (jlong)out.id;
}

static jlong up_sampling2d(JNIEnv* env, jclass self, jlong model, jlong x, jlong high, jlong wide, jboolean bilinear) {
  dtg_value out = {0};
  (void)self;
  jni_threw(env, dtg_nn_up_sampling2d(AS(dtg_model, model), of(x), high, wide, bilinear, &out));
  return (jlong)out.id;
}

static dtg_loss packet_loss(packet* from) {
  dtg_loss to = DTG_LOSS_INIT;
  to.name = packet_text(from, &to.name_len);
  to.kind = (dtg_loss_kind)packet_int(from);
  to.reduction = (dtg_loss_reduction)packet_int(from);
  to.from_logits = (int32_t)packet_int(from);
  to.class_balancing = (int32_t)packet_int(from);
  to.per_example = (int32_t)packet_int(from);
  to.ignores_class = (int32_t)packet_int(from);
  to.ignore_class = packet_int(from);
  to.axis = packet_int(from);
  to.label_smoothing = packet_double(from);
  to.delta = packet_double(from);
  to.alpha = packet_double(from);
  to.beta = packet_double(from);
  to.gamma = packet_double(from);
  to.margin = packet_double(from);
  to.class_weights = of(packet_int(from));
  to.lengths = of(packet_int(from));
  return to;
}

static jlong loss(JNIEnv* env, jclass self, jlong model, jlong labels, jlong predictions, jlong weights, jbyteArray what) {
  dtg_value out = {0};
  dtg_loss to;
  packet from;
  (void)self;
  if (!packet_open(env, what, &from)) return 0;
  to = packet_loss(&from);
  jni_threw(env, dtg_nn_loss(AS(dtg_model, model), &to, of(labels), of(predictions), of(weights), &out));
  packet_close(&from);
  return (jlong)out.id;
}

static jlong triplet_loss(JNIEnv* env, jclass self, jlong model, jlong anchor, jlong positive, jlong negative, jdouble margin) {
  dtg_value out = {0};
  (void)self;
  jni_threw(env, dtg_nn_triplet_loss(AS(dtg_model, model), of(anchor), of(positive), of(negative), margin, &out));
  return (jlong)out.id;
}

static jlong regularize(JNIEnv* env, jclass self, jlong model, jlong base, jlongArray handles, jdouble l1, jdouble l2) {
  dtg_value out = {0};
  size_t count;
  int64_t* const ids = jni_longs(env, handles, &count);
  (void)self;
  if (!ids) return 0;
  /* A value is its number. */
  jni_threw(env, dtg_nn_regularize(AS(dtg_model, model), of(base), (const dtg_value*)ids, count, l1, l2, &out));
  free(ids);
  return (jlong)out.id;
}

static jlong sampled_loss(JNIEnv* env, jclass self, jlong model, jlong labels, jlong x, jbyteArray what) {
  dtg_sampled_loss to = DTG_SAMPLED_LOSS_INIT;
  dtg_value out = {0};
  packet from;
  (void)self;
  if (!packet_open(env, what, &from)) return 0;
  to.name = packet_text(&from, &to.name_len);
  to.kind = (dtg_sampled_kind)packet_int(&from);
  to.reduction = (dtg_loss_reduction)packet_int(&from);
  to.classes = packet_int(&from);
  to.samples = packet_int(&from);
  to.candidates = (dtg_candidates)packet_int(&from);
  to.keep_hits = (int32_t)packet_int(&from);
  to.weights = packet_initializer(&from);
  to.biases = packet_initializer(&from);
  to.weights_of = packet_text(&from, &to.weights_of_len);
  to.sampled = of(packet_int(&from));
  to.true_expected = of(packet_int(&from));
  to.sampled_expected = of(packet_int(&from));
  jni_threw(env, dtg_nn_sampled_loss(AS(dtg_model, model), &to, of(labels), of(x), &out));
  packet_close(&from);
  return (jlong)out.id;
}

/* `values` are labels, predictions and weights; the loss of a metric may be NULL. */
static jlongArray metric(JNIEnv* env, jclass self, jlong model, jlongArray values, jbyteArray what, jbyteArray of_loss) {
  dtg_metric to = DTG_METRIC_INIT;
  dtg_metric_values out = DTG_METRIC_VALUES_INIT;
  dtg_loss mean = DTG_LOSS_INIT;
  packet from, inner;
  bool threw;
  size_t count;
  int64_t* const ids = jni_longs(env, values, &count);
  (void)self;
  if (!ids || !packet_open(env, what, &from)) {
    free(ids);
    return NULL;
  }
  to.name = packet_text(&from, &to.name_len);
  to.kind = (dtg_metric_kind)packet_int(&from);
  to.from_logits = (int32_t)packet_int(&from);
  to.threshold = packet_double(&from);
  to.k = packet_int(&from);
  to.classes = packet_int(&from);
  to.thresholds = packet_int(&from);
  to.curve = (dtg_metric_curve)packet_int(&from);
  to.summation = (dtg_metric_summation)packet_int(&from);
  to.average = (dtg_metric_average)packet_int(&from);
  to.ignores_class = (int32_t)packet_int(&from);
  to.ignore_class = packet_int(&from);
  threw = of_loss && !packet_open(env, of_loss, &inner);
  if (!threw) {
    if (of_loss) {
      mean = packet_loss(&inner);
      to.loss = &mean;
    }
    threw = jni_threw(env, dtg_nn_metric(AS(dtg_model, model), &to, of(ids[0]), of(ids[1]), of(ids[2]), &out));
    if (of_loss) packet_close(&inner);
  }
  packet_close(&from);
  free(ids);
  if (threw) return NULL;
  {
    const int64_t made[] = {(int64_t)out.update.id, (int64_t)out.reset.id, (int64_t)out.result.id};
    return jni_array(env, made, 3);
  }
}

/* The losses and metrics of labels and logits, numbered as in Model.java. */
static jlong judge(JNIEnv* env, jclass self, jlong model, jint which, jlong labels, jlong logits) {
  typedef dtg_error* (*judge_fn)(dtg_model*, dtg_value, dtg_value, dtg_value*);
  static const judge_fn judges[] = {
      dtg_nn_sparse_softmax_cross_entropy,
      dtg_nn_softmax_cross_entropy,
      dtg_nn_sigmoid_cross_entropy,
      dtg_nn_mean_squared_error,
      dtg_nn_accuracy,
      dtg_nn_correct_count,
  };
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, judges[which](AS(dtg_model, model), of(labels), of(logits), &out)) ? 0 : (jlong)out.id;
}

static jlong normalize(JNIEnv* env, jclass self, jlong model, jlong x, jbyteArray normalization) {
  dtg_value out = {0};
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, normalization, &text, &length)) jni_threw(env, dtg_nn_normalize(AS(dtg_model, model), of(x), text, length, &out));
  free(text);
  return (jlong)out.id;
}

static const JNINativeMethod methods[] = {
    NATIVE("nnNormalize", "(JJ[B)J", normalize),
    NATIVE("nnDense", "(JJ[B)J", dense),
    NATIVE("nnConv2d", "(JJ[B)J", conv2d),
    NATIVE("nnPool2d", "(JJ[BZ)J", pool2d),
    NATIVE("nnEmbedding", "(JJ[B)J", embedding),
    NATIVE("nnFlatten", "(JJ)J", flatten),
    NATIVE("nnDropout", "(JJDJJ)J", dropout),
    NATIVE("nnActivation", "(JJI)J", activation),
    NATIVE("nnLoss", "(JJJJ[B)J", loss),
    NATIVE("nnTripletLoss", "(JJJJD)J", triplet_loss),
    NATIVE("nnRegularize", "(JJ[JDD)J", regularize),
    NATIVE("nnSampledLoss", "(JJJ[B)J", sampled_loss),
    NATIVE("nnMetric", "(J[J[B[B)[J", metric),
    NATIVE("nnJudge", "(JIJJ)J", judge),
    NATIVE("nnBatchNorm", "(JJ[B)J", batch_norm),
    NATIVE("nnNorm", "(JIJ[B)J", norm),
    NATIVE("nnRecurrent", "(JJ[B)[J", recurrent),
    NATIVE("nnAttention", "(JJJ[B)J", attention),
    NATIVE("nnConv", "(JIJ[B)J", conv),
    NATIVE("nnGlobalPool", "(JJZZ)J", global_pool),
    NATIVE("nnUpSampling2d", "(JJJJZ)J", up_sampling2d),
    NATIVE("nnPositionEmbedding", "(JJ[B)J", position_embedding),
    NATIVE("nnEmbeddingBag", "(JJ[B)J", embedding_bag),
    NATIVE("nnHashing", "(JJ[B)J", hashing),
    NATIVE("nnLookup", "(JJ[B)J", lookup),
    NATIVE("nnNoise", "(JJIDJJ)J", noise),
    NATIVE("nnAdaptivePool", "(JJ[JZ)J", adaptive_pool),
    NATIVE("nnAttentionCache", "(JJ[BJ)[J", attention_cache),
    NATIVE("nnAttentionStep", "(JJ[B[J)[J", attention_step),
};
JNI_TABLE(jni_layers, methods);
