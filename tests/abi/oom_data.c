/* Memory that runs out while data are read from files, tables and functions of the host, changed, cut in two, measured and handed out. A
 * transform that failed may take its data set with it (dtg/data.h), and says so ever after; an element that failed is asked for again, and
 * none is left out for it. See oom.h. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static char csv[96], json[96], idx[96], npy[96], npz[96], records[96];

/* ---- files ---- */

static uint32_t crc(const uint8_t *bytes, size_t count, uint32_t polynomial) {
  uint32_t sum = 0xffffffffu;
  for (size_t i = 0; i < count; i++) {
    sum ^= bytes[i];
    for (int k = 0; k < 8; k++) sum = sum & 1 ? sum >> 1 ^ polynomial : sum >> 1;
  }
  return ~sum;
}

static void put(uint8_t **to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) *(*to)++ = (uint8_t)(number >> 8 * i);
}

static void new_file(char *path, const char *name, const void *bytes, size_t count) {
  snprintf(path, 96, "%s/%s", folder, name);
  FILE *const out = fopen(path, "w");
  if (!out || fwrite(bytes, 1, count, out) != count || fclose(out) != 0) abort();
}

/* An array of four rows of two float32. */
static size_t npy_bytes(uint8_t *bytes) {
  const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8};
  memset(bytes, ' ', 128);
  memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
  const char *const head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }";
  memcpy(bytes + 10, head, strlen(head));
  bytes[127] = '\n';
  memcpy(bytes + 128, rows, sizeof rows);
  return 128 + sizeof rows;
}

/* That array, stored in an archive as "a". */
static size_t npz_bytes(uint8_t *bytes) {
  uint8_t array[256], *to = bytes;
  const size_t size = npy_bytes(array);
  const uint32_t sum = crc(array, size, 0xedb88320u);
  for (int central = 0; central < 2; central++) {
    put(&to, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) put(&to, 20, 2);
    put(&to, 20, 2), put(&to, 0, 2), put(&to, 0, 2), put(&to, 0, 4);
    put(&to, sum, 4), put(&to, size, 4), put(&to, size, 4);
    put(&to, 5, 2), put(&to, 0, 2);
    if (central) put(&to, 0, 2), put(&to, 0, 2), put(&to, 0, 2), put(&to, 0, 4), put(&to, 0, 4);
    memcpy(to, "a.npy", 5), to += 5;
    if (!central) memcpy(to, array, size), to += size;
  }
  const size_t begin = 30 + 5 + size;
  put(&to, 0x06054b50, 4), put(&to, 0, 4), put(&to, 1, 2), put(&to, 1, 2);
  put(&to, (size_t)(to - bytes) - 12 - begin, 4), put(&to, begin, 4), put(&to, 0, 2);
  return (size_t)(to - bytes);
}

/* Four tf.Examples with an int64 "x". */
static size_t record_bytes(uint8_t *bytes) {
  uint8_t *to = bytes;
  for (int i = 0; i < 4; i++) {
    uint8_t example[] = {0x0a, 12, 0x0a, 10, 0x0a, 1, 'x', 0x12, 5, 0x1a, 3, 0x0a, 1, 0};
    example[13] = (uint8_t)i;
    uint8_t *const length = to;
    put(&to, sizeof example, 8);
    const uint32_t head = crc(length, 8, 0x82f63b78u), body = crc(example, sizeof example, 0x82f63b78u);
    put(&to, (head >> 15 | head << 17) + 0xa282ead8u, 4);
    memcpy(to, example, sizeof example), to += sizeof example;
    put(&to, (body >> 15 | body << 17) + 0xa282ead8u, 4);
  }
  return (size_t)(to - bytes);
}

static void new_files(void) {
  if (csv[0]) return;
  static const char table[] = "a,b,y\n1,2,cat\n3,4,dog\n5,,cat\n7,8,dog\n";
  static const char lines[] =
      "{\"a\": 1.5, \"b\": [1, 2], \"y\": \"cat\"}\n{\"a\": 2.5, \"b\": [3, 4], \"y\": \"dog\"}\nnot a row\n"
      "{\"a\": 3.5, \"b\": [5, 6], \"y\": \"cat\"}\n{\"a\": 4.5, \"b\": [7, 8], \"y\": \"a name that is longer than others\"}\n";
  static const uint8_t four[] = {0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4};
  uint8_t bytes[1024];
  new_file(csv, "table.csv", table, sizeof table - 1);
  new_file(json, "rows.jsonl", lines, sizeof lines - 1);
  new_file(idx, "labels.idx", four, sizeof four);
  new_file(npy, "rows.npy", bytes, npy_bytes(bytes));
  new_file(npz, "rows.npz", bytes, npz_bytes(bytes));
  new_file(records, "rows.tfrecord", bytes, record_bytes(bytes));
}

/* ---- elements ---- */

/* All elements until the end; how many there must be. An element that failed may be left out by who asks again: an epoch that is begun
 * anew has all of them. */
static int drain(dtg_dataset *data, int64_t expected) {
  const size_t count = dtg_dataset_component_count(data);
  int64_t elements = 0;
  int tries = tries_before();
  for (int32_t more = 1;; elements++) {
    const int next = judge(dtg_dataset_next(data, h.tensor, count, &more), 1, &tries, "dtg_dataset_next", __LINE__);
    if (next < 0) return 0;
    if (next == 0) {
      if (way == LASTING) fail_no_more(), is_back = 1, tries = 2;
      TRY(dtg_dataset_restart(data));
      elements = -1;
      continue;
    }
    if (!more) break;
    for (size_t k = 0; k < count; k++) {
      dtg_tensor_release(h.tensor[k]);
      h.tensor[k] = NULL;
    }
  }
  HOLDS(elements == expected || expected < 0);
  return 1;
}

/* A data set that a transform has taken with it tells so, whatever is asked. */
static int lost(dtg_dataset *data) {
  dtg_tensor *parts[4] = {NULL, NULL, NULL, NULL};
  int32_t more = 0;
  dtg_error *const error = dtg_dataset_next(data, parts, dtg_dataset_component_count(data), &more);
  const dtg_code code = dtg_error_code(error);
  HOLDS(code == DTG_RESOURCE_EXHAUSTED || code == DTG_FAILED_PRECONDITION || code == DTG_OK);
  dtg_error_release(error);
  for (int k = 0; k < 4; k++) dtg_tensor_release(parts[k]);
  (void)dtg_dataset_cardinality(data);
  return 0;
}

#define CHANGE(data, call)                                                  \
  do {                                                                      \
    int tries_ = tries_before();                                            \
    if (judge((call), 0, &tries_, #call, __LINE__) != 1) return lost(data); \
  } while (0)

/* Rows of three bytes and of one int64. */
static int rows(int k, int64_t count) {
  const int64_t dims[] = {count, 3};
  PART(new_tensor(0, DTG_U8, dims, 2));
  PART(new_tensor(1, DTG_I64, dims, 1));
  TRY(dtg_dataset_tensors(runtime, (const dtg_tensor *const *)h.tensor, 2, &h.data[k]));
  LET_GO(tensor, h.tensor);
  memset(h.tensor, 0, sizeof h.tensor);
  return 1;
}

/* ---- sources ---- */

static int tables(void) {
  dtg_csv_options options = DTG_CSV_OPTIONS_INIT;
  size_t nbytes = 0;
  int64_t count = 0;
  new_files();
  options.label = "y";
  options.missing = DTG_MISSING_DROP;
  TRY(dtg_dataset_csv(runtime, csv, DTG_STRLEN, &options, &h.data[0]));
  TRY(dtg_dataset_schema(h.data[0], &h.string[0]));
  TRY(dtg_dataset_bad_rows(h.data[0], &count, &h.string[1]));
  HOLDS(count == 1);
  PART(drain(h.data[0], 3));
  options.label = NULL;
  options.missing = DTG_MISSING_DEFAULT;
  options.schema = dtg_string_data(h.string[0], &nbytes);
  options.schema_len = nbytes;
  TRY(dtg_dataset_csv(runtime, csv, DTG_STRLEN, &options, &h.data[1]));
  return drain(h.data[1], 3);
}

static int json_lines(void) {
  dtg_json_lines_options options = DTG_JSON_LINES_OPTIONS_INIT;
  int64_t count = 0;
  new_files();
  options.label = "y";
  options.skip_bad_rows = 1;
  TRY(dtg_dataset_json_lines(runtime, json, DTG_STRLEN, &options, &h.data[0]));
  TRY(dtg_dataset_schema(h.data[0], &h.string[0]));
  TRY(dtg_dataset_bad_rows(h.data[0], &count, &h.string[1]));
  HOLDS(count == 1);
  return drain(h.data[0], 4);
}

static int arrays(void) {
  const char *const paths[] = {npy}, *const labels[] = {idx}, *const files[] = {records}, *const names[] = {"a"};
  new_files();
  TRY(dtg_dataset_idx(runtime, labels, 1, &h.data[0]));
  TRY(dtg_dataset_npy(runtime, paths, 1, &h.data[1]));
  TRY(dtg_dataset_npz(runtime, npz, DTG_STRLEN, names, 1, &h.data[2]));
  TRY(dtg_dataset_tfrecord(runtime, files, 1, "[{\"name\": \"x\", \"dtype\": \"int64\"}]", DTG_STRLEN, &h.data[3]));
  for (int i = 0; i < 4; i++) PART(drain(h.data[i], 4));
  return 1;
}

/* The struct of the interface, as every library declares it. */
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

static int lent; /* schemas, arrays and streams that were not given back */
static void take_schema(struct ArrowSchema *schema) { schema->release = NULL, lent--; }
static void take_array(struct ArrowArray *array) { array->release = NULL, lent--; }
static void take_stream(struct ArrowArrayStream *stream) { stream->release = NULL, lent--; }
static void keep_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static void keep_array(struct ArrowArray *array) { array->release = NULL; }
static const char *no_error(struct ArrowArrayStream *stream) { return (void)stream, "none"; }

/* A column of numbers, and one of names. */
static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  static struct ArrowSchema columns[2], *children[] = {&columns[0], &columns[1]};
  (void)stream;
  columns[0] = (struct ArrowSchema){"f", "a", NULL, 0, 0, NULL, NULL, keep_schema, NULL};
  columns[1] = (struct ArrowSchema){"u", "y", NULL, 0, 0, NULL, NULL, keep_schema, NULL};
  *out = (struct ArrowSchema){"+s", "", NULL, 0, 2, children, NULL, take_schema, NULL};
  lent++;
  return 0;
}

/* Twice four rows, so that they are put together. */
static int give_table(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  static const float numbers[] = {1, 2, 3, 4};
  static const int32_t ends[] = {0, 3, 6, 9, 12};
  static const void *values[] = {NULL, numbers}, *texts[] = {NULL, ends, "catdogcatdog"}, *none[] = {NULL};
  static struct ArrowArray columns[2], *children[] = {&columns[0], &columns[1]};
  memset(out, 0, sizeof *out);
  if (stream->private_data == NULL) return 0;
  stream->private_data = stream->private_data == stream ? (void *)columns : NULL;
  columns[0] = (struct ArrowArray){4, 0, 0, 2, 0, values, NULL, NULL, keep_array, NULL};
  columns[1] = (struct ArrowArray){4, 0, 0, 3, 0, texts, NULL, NULL, keep_array, NULL};
  *out = (struct ArrowArray){4, 0, 0, 1, 2, none, children, NULL, take_array, NULL};
  lent++;
  return 0;
}

static int arrow(void) {
  struct ArrowArrayStream stream = {give_schema, give_table, no_error, take_stream, &stream};
  dtg_arrow_options options = DTG_ARROW_OPTIONS_INIT;
  lent = 1;
  options.label = "y";
  dtg_error *const error = dtg_dataset_arrow(runtime, &stream, &options, &h.data[0]);
  HOLDS(stream.release == NULL); /* it is the library's in any case */
  HOLDS(!error || lent == 0);
  ONCE(error);
  TRY(dtg_dataset_schema(h.data[0], &h.string[0]));
  PART(drain(h.data[0], 8));
  dtg_dataset_release(h.data[0]);
  h.data[0] = NULL;
  HOLDS(lent == 0);
  return 1;
}

static int freed;
static void let_user_go(void *user) { (void)user, freed++; }

static dtg_error *next_number(void *user, dtg_tensor **tensors, size_t num_tensors, int32_t *more) {
  int64_t *const next = user;
  (void)num_tensors;
  if (*next == 5) {
    *more = 0;
    return NULL;
  }
  dtg_error *const error = dtg_tensor_create(DTG_I64, NULL, 0, next, sizeof *next, NULL, NULL, &tensors[0]);
  if (!error) ++*next;
  return error;
}

static dtg_error *from_the_start(void *user, int64_t epoch) {
  (void)epoch;
  *(int64_t *)user = 0;
  return NULL;
}

static dtg_error *pass(void *user, int64_t count, int64_t *passed) {
  int64_t *const next = user;
  *passed = count < 5 - *next ? count : 5 - *next;
  *next += *passed;
  return NULL;
}

static dtg_error *twice(void *user, dtg_tensor *const *arguments, size_t num_arguments, dtg_tensor **results, size_t num_results) {
  int64_t value;
  (void)user, (void)num_arguments, (void)num_results;
  memcpy(&value, dtg_tensor_data(arguments[0], NULL), sizeof value);
  value *= 2;
  return dtg_tensor_create(DTG_I64, NULL, 0, &value, sizeof value, NULL, NULL, &results[0]);
}

static dtg_error *not_four(void *user, dtg_tensor *const *arguments, size_t num_arguments, int32_t *keep) {
  (void)user, (void)num_arguments;
  *keep = *(const int64_t *)dtg_tensor_data(arguments[0], NULL) != 4;
  return NULL;
}

/* Numbers of the host's, mapped and filtered by it; what it gave to the functions is given back once for each that was taken. */
static int hosts(void) {
  static int64_t at_number;
  const dtg_component number = {DTG_I64, 0, NULL};
  dtg_host_source source = DTG_HOST_SOURCE_INIT;
  at_number = 0;
  freed = 0;
  source.user = &at_number;
  source.user_free = let_user_go;
  source.components = &number;
  source.num_components = 1;
  source.next = next_number;
  source.restart = from_the_start;
  source.skip = pass;
  source.cardinality = 5;
  TRY(dtg_dataset_host(runtime, &source, &h.data[0]));
  HOLDS(freed == 0);
  CHANGE(h.data[0], dtg_dataset_map_host(h.data[0], twice, NULL, let_user_go, &number, 1));
  CHANGE(h.data[0], dtg_dataset_filter_host(h.data[0], not_four, NULL, let_user_go));
  PART(drain(h.data[0], 4));
  CHANGE(h.data[0], dtg_dataset_restart(h.data[0]));
  PART(drain(h.data[0], 4));
  HOLDS(freed == 0);
  dtg_dataset_release(h.data[0]);
  h.data[0] = NULL;
  HOLDS(freed == 3);
  return 1;
}

/* ---- functions of a graph ---- */

/* Function k of `h`: sums of the bytes as float32, and the label; or whether that is not 1. */
static int new_function(int k) {
  dtg_value x[3], y[2];
  TRY(dtg_function_begin(h.graph[0], "of elements", DTG_STRLEN, &h.body));
  ONCE(dtg_dataset_add_arguments(h.data[0], h.body, x, k == 0 ? 3 : 2)); /* it may have added some */
  if (k == 0) {
    TRY(dtg_add_cast(h.body, NULL, x[0], DTG_F32, NULL, &y[0]));
    TRY(dtg_add2(h.body, "Mul", y[0], y[0], &y[0]));
    y[1] = x[1];
  } else {
    dtg_value one;
    TRY(dtg_const_of(h.body, DTG_I64, NULL, 0, &(int64_t){1}, 8, &one));
    TRY(dtg_add_not_equal(h.body, NULL, x[1], one, NULL, &y[0]));
  }
  TRY(dtg_function_end(h.body, y, k == 0 ? 2 : 1, NULL, 0, &h.function[k]));
  dtg_graph_release(h.body);
  h.body = NULL;
  return 1;
}

static int mapped(void) {
  dtg_map_options options = DTG_MAP_OPTIONS_INIT;
  PART(rows(0, 12));
  TRY(dtg_graph_create(runtime, &h.graph[0]));
  PART(new_function(0));
  options.parallel = 2;
  CHANGE(h.data[0], dtg_dataset_map(h.data[0], h.function[0], &options));
  PART(new_function(1));
  CHANGE(h.data[0], dtg_dataset_filter(h.data[0], h.function[1], NULL));
  CHANGE(h.data[0], dtg_dataset_batch(h.data[0], 4, 0));
  return drain(h.data[0], 2);
}

/* ---- transforms ---- */

static int in_memory(void) {
  int64_t position[32];
  size_t count = 0;
  PART(rows(0, 20));
  dtg_dataset *const data = h.data[0];
  CHANGE(data, dtg_dataset_scale(data, 0, 255));
  CHANGE(data, dtg_dataset_cast(data, 1, DTG_I32));
  CHANGE(data, dtg_dataset_shuffle(data, 0, 1));
  CHANGE(data, dtg_dataset_shard(data, 2, 0));
  CHANGE(data, dtg_dataset_repeat(data, 2));
  CHANGE(data, dtg_dataset_skip(data, 2));
  CHANGE(data, dtg_dataset_take(data, 16));
  CHANGE(data, dtg_dataset_batch(data, 4, 0));
  CHANGE(data, dtg_dataset_rebatch(data, 2));
  PART(drain(data, 8));
  TRY(dtg_dataset_position(data, position, 32, &count));
  CHANGE(data, dtg_dataset_restart(data));
  CHANGE(data, dtg_dataset_move_to(data, position, count));
  dtg_dataset_release(dtg_dataset_retain(data));
  return drain(data, -1);
}

static int prefetched(void) {
  PART(rows(0, 20));
  dtg_dataset *const data = h.data[0];
  CHANGE(data, dtg_dataset_shuffle_once(data, 4, 1));
  CHANGE(data, dtg_dataset_auto_shard(data, 2, 1));
  CHANGE(data, dtg_dataset_cache(data));
  CHANGE(data, dtg_dataset_window(data, 2, 1, 1, 1));
  CHANGE(data, dtg_dataset_padded_batch(data, 3, 0, 0));
  CHANGE(data, dtg_dataset_prefetch(data, 2));
  PART(drain(data, 3));
  CHANGE(data, dtg_dataset_restart(data));
  return drain(data, 3);
}

/* Several that become one. */
static int together(void) {
  const int64_t boundaries[] = {2}, sizes[] = {2, 2};
  int64_t worker[4];
  size_t count = 0;
  for (int i = 0; i < 4; i++) TRY(dtg_dataset_range(runtime, 0, 6, 1, &h.data[i]));
  dtg_dataset *const data = h.data[0];
  CHANGE(data, dtg_dataset_concatenate(data, &h.data[1], 1));
  CHANGE(data, dtg_dataset_interleave(data, &h.data[2], 1, 2));
  CHANGE(h.data[3], dtg_dataset_repeat(h.data[3], 3));
  CHANGE(data, dtg_dataset_zip(data, &h.data[3], 1));
  CHANGE(data, dtg_dataset_batch(data, 2, 0));
  CHANGE(data, dtg_dataset_bucket_batch(data, 0, boundaries, 1, sizes, 2, 0, 0));
  HOLDS(dtg_dataset_component_count(data) == 2);
  TRY(dtg_batch_sizes(9, 2, 2, 1, worker, 4, &count));
  return drain(data, 5);
}

static int parts(void) {
  dtg_split how = DTG_SPLIT_INIT;
  size_t nbytes = 0;
  dtg_dtype type = 0;
  int64_t dims[4];
  int32_t rank = 0;
  PART(rows(0, 20));
  how.stratify = 1;
  how.classes = 1;
  how.fraction = 0.25;
  TRY(dtg_dataset_split(h.data[0], &how, &h.data[1], &h.data[2]));
  TRY(dtg_dataset_fit_normalization(h.data[1], 0, DTG_NORMALIZE_STANDARD, &h.string[0]));
  const char *const numbers = dtg_string_data(h.string[0], &nbytes);
  CHANGE(h.data[2], dtg_dataset_normalize(h.data[2], 0, numbers, nbytes));
  CHANGE(h.data[1], dtg_dataset_normalize(h.data[1], 0, numbers, nbytes));
  TRY(dtg_dataset_component(h.data[1], 0, &type, dims, 4, &rank));
  HOLDS(type == DTG_F32 && rank == 1);
  const int64_t train = dtg_dataset_cardinality(h.data[1]);
  PART(drain(h.data[1], train));
  return drain(h.data[2], 20 - train);
}

static const struct scene scenes[] = {
    {"tables", tables, 0, 0},     {"json lines", json_lines, 0, 0}, {"arrays", arrays, 0, 0},       {"arrow", arrow, 0, 0},
    {"hosts", hosts, 0, 0},       {"mapped", mapped, 0, 0},         {"in memory", in_memory, 0, 0}, {"prefetched", prefetched, 0, 0},
    {"together", together, 0, 0}, {"parts", parts, 0, 0},
};
#endif

STAGE("data", scenes)
