/* dataset.c: data sets. One thread at a time per data set. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong tensors(JNIEnv* env, jclass self, jlong runtime, jlongArray handles) {
  dtg_dataset* out = NULL;
  size_t count;
  int64_t* all = jni_longs(env, handles, &count);
  (void)self;
  if (all) jni_threw(env, dtg_dataset_tensors(AS(dtg_runtime, runtime), (const dtg_tensor* const*)(const void*)all, count, &out));
  free(all);
  return JLONG(out);
}

static jlong range(JNIEnv* env, jclass self, jlong runtime, jlong begin, jlong end, jlong step) {
  dtg_dataset* out = NULL;
  (void)self;
  return jni_threw(env, dtg_dataset_range(AS(dtg_runtime, runtime), begin, end, step, &out)) ? 0 : JLONG(out);
}

typedef dtg_error* (*of_files_fn)(dtg_runtime*, const char* const*, size_t, dtg_dataset**);

static jlong of_files(JNIEnv* env, jlong runtime, jbyteArray paths, of_files_fn make) {
  dtg_dataset* out = NULL;
  packet from;
  size_t count;
  const char** all;
  if (!packet_open(env, paths, &from)) return 0;
  all = packet_texts(&from, &count, NULL);
  jni_threw(env, make(AS(dtg_runtime, runtime), all, count, &out));
  free((void*)(uintptr_t)all);
  packet_close(&from);
  return JLONG(out);
}

static jlong idx(JNIEnv* env, jclass self, jlong runtime, jbyteArray paths) {
  (void)self;
  return of_files(env, runtime, paths, dtg_dataset_idx);
}

static jlong csv(JNIEnv* env, jclass self, jlong runtime, jbyteArray options) {
  dtg_csv_options to = DTG_CSV_OPTIONS_INIT;
  dtg_dataset* out = NULL;
  packet from;
  const char *path, **columns;
  size_t length;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  path = packet_text(&from, &length);
  to.label = packet_text(&from, &to.label_len);
  to.columns = columns = packet_texts(&from, &to.num_columns, NULL);
  to.header = (int32_t)packet_int(&from);
  to.missing = (int32_t)packet_int(&from);
  to.delimiter = (int32_t)packet_int(&from);
  to.schema = packet_text(&from, &to.schema_len);
  jni_threw(env, dtg_dataset_csv(AS(dtg_runtime, runtime), path, length, &to, &out));
  free((void*)(uintptr_t)columns);
  packet_close(&from);
  return JLONG(out);
}

static jlong npy(JNIEnv* env, jclass self, jlong runtime, jbyteArray paths) {
  (void)self;
  return of_files(env, runtime, paths, dtg_dataset_npy);
}

static jlong npz(JNIEnv* env, jclass self, jlong runtime, jbyteArray what) {
  dtg_dataset* out = NULL;
  packet from;
  size_t count, length;
  const char *path, **names;
  (void)self;
  if (!packet_open(env, what, &from)) return 0;
  path = packet_text(&from, &length);
  names = packet_texts(&from, &count, NULL);
  jni_threw(env, dtg_dataset_npz(AS(dtg_runtime, runtime), path, length, names, count, &out));
  free((void*)(uintptr_t)names);
  packet_close(&from);
  return JLONG(out);
}

static jlong tfrecord(JNIEnv* env, jclass self, jlong runtime, jbyteArray what) {
  dtg_dataset* out = NULL;
  packet from;
  size_t count, length;
  const char *features, **paths;
  (void)self;
  if (!packet_open(env, what, &from)) return 0;
  features = packet_text(&from, &length);
  paths = packet_texts(&from, &count, NULL);
  jni_threw(env, dtg_dataset_tfrecord(AS(dtg_runtime, runtime), paths, count, features, length, &out));
  free((void*)(uintptr_t)paths);
  packet_close(&from);
  return JLONG(out);
}

static jlong json_lines(JNIEnv* env, jclass self, jlong runtime, jbyteArray options) {
  dtg_json_lines_options to = DTG_JSON_LINES_OPTIONS_INIT;
  dtg_dataset* out = NULL;
  packet from;
  const char *path, **columns;
  size_t length;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  path = packet_text(&from, &length);
  to.label = packet_text(&from, &to.label_len);
  to.columns = columns = packet_texts(&from, &to.num_columns, NULL);
  to.missing = (int32_t)packet_int(&from);
  to.skip_bad_rows = (int32_t)packet_int(&from);
  to.schema = packet_text(&from, &to.schema_len);
  jni_threw(env, dtg_dataset_json_lines(AS(dtg_runtime, runtime), path, length, &to, &out));
  free((void*)(uintptr_t)columns);
  packet_close(&from);
  return JLONG(out);
}

static jlong arrow(JNIEnv* env, jclass self, jlong runtime, jlong stream, jbyteArray options) {
  dtg_arrow_options to = DTG_ARROW_OPTIONS_INIT;
  dtg_dataset* out = NULL;
  packet from;
  const char** columns;
  (void)self;
  if (!packet_open(env, options, &from)) return 0;
  to.label = packet_text(&from, &to.label_len);
  to.columns = columns = packet_texts(&from, &to.num_columns, NULL);
  to.missing = (int32_t)packet_int(&from);
  to.schema = packet_text(&from, &to.schema_len);
  jni_threw(env, dtg_dataset_arrow(AS(dtg_runtime, runtime), AS(ArrowArrayStream, stream), &to, &out));
  free((void*)(uintptr_t)columns);
  packet_close(&from);
  return JLONG(out);
}

static jlong bad_rows(JNIEnv* env, jclass self, jlong data) {
  int64_t count = 0;
  (void)self;
  return jni_threw(env, dtg_dataset_bad_rows(AS(dtg_dataset, data), &count, NULL)) ? 0 : count;
}

static jbyteArray why_bad(JNIEnv* env, jclass self, jlong data) {
  int64_t count = 0;
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_dataset_bad_rows(AS(dtg_dataset, data), &count, &out)) ? NULL : jni_string(env, out);
}

/* The transforms, numbered as in Dataset.java. */
static void transform(JNIEnv* env, jclass self, jlong handle, jint which, jlong a, jlong b, jdouble divisor) {
  dtg_dataset* data = AS(dtg_dataset, handle);
  dtg_error* error;
  (void)self;
  switch (which) {
    case 0: error = dtg_dataset_shuffle(data, a, (uint64_t)b); break;
    case 1: error = dtg_dataset_batch(data, a, (int32_t)b); break;
    case 2: error = dtg_dataset_shard(data, a, b); break;
    case 3: error = dtg_dataset_auto_shard(data, a, b); break;
    case 4: error = dtg_dataset_rebatch(data, a); break;
    case 5: error = dtg_dataset_repeat(data, a); break;
    case 6: error = dtg_dataset_take(data, a); break;
    case 7: error = dtg_dataset_skip(data, a); break;
    case 8: error = dtg_dataset_scale(data, (size_t)a, divisor); break;
    case 9: error = dtg_dataset_cast(data, (size_t)a, (dtg_dtype)b); break;
    case 10: error = dtg_dataset_prefetch(data, a); break;
    case 13: error = dtg_dataset_cache(data); break;
    case 14: error = dtg_dataset_padded_batch(data, a, (int32_t)b, divisor); break;
    case 12: error = dtg_dataset_shuffle_once(data, a, (uint64_t)b); break;
    default: error = dtg_dataset_restart(data); break;
  }
  jni_threw(env, error);
}

/* zip, concatenate, interleave, by number. */
static void combine(JNIEnv* env, jclass self, jlong handle, jint which, jlongArray others, jlong block) {
  dtg_dataset* data = AS(dtg_dataset, handle);
  size_t count;
  int64_t* all = jni_longs(env, others, &count);
  dtg_dataset* const* list = (dtg_dataset* const*)(const void*)all;
  (void)self;
  if (!all) return;
  switch (which) {
    case 0: jni_threw(env, dtg_dataset_zip(data, list, count)); break;
    case 1: jni_threw(env, dtg_dataset_concatenate(data, list, count)); break;
    default: jni_threw(env, dtg_dataset_interleave(data, list, count, block)); break;
  }
  free(all);
}

static void window(JNIEnv* env, jclass self, jlong data, jlong size, jlong shift, jlong stride, jint drop_remainder) {
  (void)self;
  jni_threw(env, dtg_dataset_window(AS(dtg_dataset, data), size, shift, stride, drop_remainder));
}

static void buckets(JNIEnv* env, jclass self, jlong data, jlong component, jlongArray boundaries, jlongArray sizes, jint drop_remainder,
                    jdouble padding) {
  size_t edges = 0, batches = 0;
  int64_t* const to = jni_longs(env, boundaries, &edges);
  int64_t* const of = to ? jni_longs(env, sizes, &batches) : NULL;
  (void)self;
  if (of) {
    jni_threw(env, dtg_dataset_bucket_batch(AS(dtg_dataset, data), (size_t)component, to, edges, of, batches, drop_remainder, padding));
  }
  free(of);
  free(to);
}

static jlongArray batch_sizes(JNIEnv* env, jclass self, jlong global_batch, jlong workers, jlong replicas, jlong worker) {
  size_t count = 0;
  int64_t* sizes;
  jlongArray out = NULL;
  (void)self;
  if (jni_threw(env, dtg_batch_sizes(global_batch, workers, replicas, worker, NULL, 0, &count))) return NULL;
  sizes = (int64_t*)malloc((count + 1) * sizeof *sizes);
  if (!sizes) jni_no_memory(env);
  if (sizes && !jni_threw(env, dtg_batch_sizes(global_batch, workers, replicas, worker, sizes, count, &count))) {
    out = jni_array(env, sizes, count);
  }
  free(sizes);
  return out;
}

/* Null at the end of the data. */
static jlongArray next(JNIEnv* env, jclass self, jlong handle) {
  dtg_dataset* data = AS(dtg_dataset, handle);
  const size_t count = dtg_dataset_component_count(data);
  dtg_tensor** tensors_out = (dtg_tensor**)calloc(count + 1, sizeof *tensors_out);
  int32_t more = 0;
  jlongArray out = NULL;
  size_t i;
  (void)self;
  if (!tensors_out) jni_no_memory(env);
  if (tensors_out && !jni_threw(env, dtg_dataset_next(data, tensors_out, count, &more)) && more) {
    out = jni_array(env, (const int64_t*)(const void*)tensors_out, count);
    for (i = 0; !out && i < count; ++i) dtg_tensor_release(tensors_out[i]);
  }
  free(tensors_out);
  return out;
}

static void normalize(JNIEnv* env, jclass self, jlong data, jlong component, jbyteArray normalization) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, normalization, &text, &length)) {
    jni_threw(env, dtg_dataset_normalize(AS(dtg_dataset, data), (size_t)component, text, length));
  }
  free(text);
}

static jbyteArray fit_normalization(JNIEnv* env, jclass self, jlong data, jlong component, jint kind) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_dataset_fit_normalization(AS(dtg_dataset, data), (size_t)component, kind, &out)) ? NULL : jni_string(env, out);
}

/* {train, held out} */
static jlongArray split(JNIEnv* env, jclass self, jlong data, jbyteArray how) {
  dtg_split to = DTG_SPLIT_INIT;
  dtg_dataset *train = NULL, *held_out = NULL;
  jlongArray out = NULL;
  packet from;
  (void)self;
  if (!packet_open(env, how, &from)) return NULL;
  to.fraction = packet_double(&from);
  to.seed = (uint64_t)packet_int(&from);
  to.folds = (int32_t)packet_int(&from);
  to.fold = (int32_t)packet_int(&from);
  to.stratify = (int32_t)packet_int(&from);
  to.classes = (size_t)packet_int(&from);
  packet_close(&from);
  if (!jni_threw(env, dtg_dataset_split(AS(dtg_dataset, data), &to, &train, &held_out))) {
    const int64_t both[] = {JLONG(train), JLONG(held_out)};
    out = jni_array(env, both, 2);
    if (!out) {
      dtg_dataset_release(train);
      dtg_dataset_release(held_out);
    }
  }
  return out;
}

static jbyteArray schema(JNIEnv* env, jclass self, jlong data) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_dataset_schema(AS(dtg_dataset, data), &out)) ? NULL : jni_string(env, out);
}

static jlong cardinality(JNIEnv* env, jclass self, jlong data) {
  (void)env, (void)self;
  return dtg_dataset_cardinality(AS(dtg_dataset, data));
}

static jlong component_count(JNIEnv* env, jclass self, jlong data) {
  (void)env, (void)self;
  return (jlong)dtg_dataset_component_count(AS(dtg_dataset, data));
}

/* {dtype, rank or -1, dimensions...} */
static jlongArray component(JNIEnv* env, jclass self, jlong data, jlong i) {
  int64_t out[2 + 64];
  int32_t rank = -1;
  dtg_dtype dtype = 0;
  (void)self;
  if (jni_threw(env, dtg_dataset_component(AS(dtg_dataset, data), (size_t)i, &dtype, out + 2, 64, &rank))) return NULL;
  out[0] = dtype;
  out[1] = rank;
  return jni_array(env, out, 2 + (rank > 0 ? (size_t)rank : 0));
}

static jlongArray position(JNIEnv* env, jclass self, jlong data) {
  size_t count = 0;
  jlongArray out = NULL;
  int64_t* numbers;
  (void)self;
  if (jni_threw(env, dtg_dataset_position(AS(dtg_dataset, data), NULL, 0, &count))) return NULL;
  if (!(numbers = malloc(count * sizeof *numbers))) return jni_no_memory(env), NULL;
  if (!jni_threw(env, dtg_dataset_position(AS(dtg_dataset, data), numbers, count, &count))) out = jni_array(env, numbers, count);
  free(numbers);
  return out;
}

static void move_to(JNIEnv* env, jclass self, jlong data, jlongArray position) {
  size_t count = 0;
  int64_t* const numbers = jni_longs(env, position, &count);
  (void)self;
  if (numbers) jni_threw(env, dtg_dataset_move_to(AS(dtg_dataset, data), numbers, count));
  free(numbers);
}

static void deal(JNIEnv* env, jclass self, jlong data, jlong model, jlong session, jlong timeout_ns) {
  (void)self;
  jni_threw(env, dtg_dataset_deal(AS(dtg_dataset, data), AS(dtg_model, model), AS(dtg_session, session), timeout_ns));
}

static jlongArray dealt(JNIEnv* env, jclass self, jlong data) {
  int64_t out[2] = {-1, -1};
  (void)self;
  return jni_threw(env, dtg_dataset_dealt(AS(dtg_dataset, data), &out[0], &out[1])) ? NULL : jni_array(env, out, 2);
}

static const JNINativeMethod methods[] = {
    NATIVE("datasetTensors", "(J[J)J", tensors),
    NATIVE("datasetRange", "(JJJJ)J", range),
    NATIVE("datasetIdx", "(J[B)J", idx),
    NATIVE("datasetCsv", "(J[B)J", csv),
    NATIVE("datasetNpy", "(J[B)J", npy),
    NATIVE("datasetNpz", "(J[B)J", npz),
    NATIVE("datasetTfrecord", "(J[B)J", tfrecord),
    NATIVE("datasetJsonLines", "(J[B)J", json_lines),
    NATIVE("datasetArrow", "(JJ[B)J", arrow),
    NATIVE("datasetBadRows", "(J)J", bad_rows),
    NATIVE("datasetWhyBad", "(J)[B", why_bad),
    NATIVE("datasetTransform", "(JIJJD)V", transform),
    NATIVE("datasetCombine", "(JI[JJ)V", combine),
    NATIVE("datasetWindow", "(JJJJI)V", window),
    NATIVE("datasetBuckets", "(JJ[J[JID)V", buckets),
    NATIVE("batchSizes", "(JJJJ)[J", batch_sizes),
    NATIVE("datasetNext", "(J)[J", next),
    NATIVE("datasetPosition", "(J)[J", position),
    NATIVE("datasetMoveTo", "(J[J)V", move_to),
    NATIVE("datasetDeal", "(JJJJ)V", deal),
    NATIVE("datasetDealt", "(J)[J", dealt),
    NATIVE("datasetNormalize", "(JJ[B)V", normalize),
    NATIVE("datasetFitNormalization", "(JJI)[B", fit_normalization),
    NATIVE("datasetSplit", "(J[B)[J", split),
    NATIVE("datasetSchema", "(J)[B", schema),
    NATIVE("datasetCardinality", "(J)J", cardinality),
    NATIVE("datasetComponentCount", "(J)J", component_count),
    NATIVE("datasetComponent", "(JJ)[J", component),
};
JNI_TABLE(jni_dataset, methods);
