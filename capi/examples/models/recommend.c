/* recommend.c: who clicks? Wide & Deep: strings become numbers by hashing and by a vocabulary; a linear part with FTRL remembers, a network
 * with Adagrad generalizes. And a small DLRM: tables with a bag of entries each, and the products of all vectors with each other. Gradients
 * of tables are rows. The metric is the share of right guesses. */
#include "models.h"

enum { NUMBERS = 4, BUCKETS = 50, KINDS = 6, TABLES = 3, ROWS = 100, BAG = 4, WIDTH = 8, MOST = 16 };

static dtg_error *table(struct work *w, dtg_value ids, int64_t rows, int64_t width, dtg_value *out) {
  dtg_embedding layer = DTG_EMBEDDING_INIT;
  layer.rows = rows;
  layer.width = width;
  return dtg_nn_embedding(w->model, ids, &layer, out);
}

/* How often the sign of the logit is the label's, and the loss. */
static dtg_error *guess(struct work *w, dtg_value clicks, dtg_value logits, dtg_value *loss) {
  dtg_value zero, x;
  TRY(dtg_nn_sigmoid_cross_entropy(w->model, clicks, logits, loss));
  TRY(dtg_const_f32(w->graph, 0, &zero));
  TRY(dtg_add2(w->graph, "Greater", logits, zero, &x));
  TRY(dtg_add_cast(w->graph, NULL, x, DTG_F32, NULL, &x));
  TRY(dtg_add2(w->graph, "Equal", x, clicks, &x));
  TRY(dtg_add_cast(w->graph, NULL, x, DTG_F32, NULL, &x));
  TRY(reduce(w, "Mean", 0, &x));
  w->metric = x;
  return reduce(w, "Mean", 0, &w->metric);
}

/* The place of each word in the vocabulary "0", "1", ...; what is not in it has the last place. The table is filled before training. */
static dtg_error *vocabulary(struct work *w, dtg_value words, dtg_value *out) {
  static const char *const known[KINDS - 1] = {"0", "1", "2", "3", "4"};
  const int64_t places[KINDS - 1] = {0, 1, 2, 3, 4}, other = KINDS - 1, count = KINDS - 1;
  dtg_tensor *strings = NULL;
  dtg_value handle, keys, values, none;
  dtg_error *err;
  TRY(dtg_tensor_create_strings(&count, 1, known, NULL, &strings));
  err = dtg_const(w->graph, strings, &keys);
  dtg_tensor_release(strings);
  TRY(err);
  TRY(dtg_const_i64s(w->graph, places, count, &values));
  TRY(dtg_const_of(w->graph, DTG_I64, NULL, 0, &other, sizeof other, &none));
  TRY(dtg_add_hash_table_v2(w->graph, NULL, DTG_STRING, DTG_I64, NULL, &handle));
  TRY(dtg_add_initialize_table_v2(w->graph, NULL, handle, keys, values, &w->before));
  return dtg_add_lookup_table_find_v2(w->graph, NULL, handle, words, none, out);
}

/* A phase that trains the variables from number `from` on. */
static dtg_error *train_some(struct work *w, dtg_value loss, dtg_optimizer *how, size_t from, size_t to) {
  dtg_value handles[MOST];
  dtg_variable one = DTG_VARIABLE_INIT;
  for (size_t i = from; i < to; i++) {
    TRY(dtg_model_variable(w->model, i, &one));
    handles[i - from] = one.handle;
  }
  how->variables = handles;
  how->num_variables = to - from;
  return train_on(w, loss, how);
}

static dtg_error *build_wide(struct work *w) {
  const int64_t numbers[] = {w->batch, NUMBERS}, column[] = {w->batch, 1};
  dtg_optimizer ftrl = DTG_OPTIMIZER_INIT, adagrad = DTG_OPTIMIZER_INIT;
  dtg_value x, site, kind, clicks, by_site, by_kind, wide, loss;
  size_t deep, all;
  TRY(feed(w, "numbers", DTG_F32, numbers, 2, &x));
  TRY(feed(w, "site", DTG_I32, column, 1, &site));
  TRY(feed(w, "kind", DTG_I32, column, 1, &kind));
  TRY(feed(w, "clicks", DTG_F32, column, 2, &clicks));
  TRY(dtg_add_as_string(w->graph, NULL, site, NULL, &site));
  TRY(dtg_add_string_to_hash_bucket_fast(w->graph, NULL, site, BUCKETS, &site));
  TRY(dtg_add_as_string(w->graph, NULL, kind, NULL, &kind));
  TRY(vocabulary(w, kind, &kind));
  TRY(table(w, site, BUCKETS, 1, &by_site));
  TRY(table(w, kind, KINDS, 1, &by_kind));
  TRY(dtg_add2(w->graph, "AddV2", by_site, by_kind, &wide));
  deep = dtg_model_variable_count(w->model);
  TRY(table(w, site, BUCKETS, WIDTH, &by_site));
  TRY(table(w, kind, KINDS, WIDTH, &by_kind));
  TRY(join(w, x, by_site, 1, &x));
  TRY(join(w, x, by_kind, 1, &x));
  TRY(dense(w, 32, DTG_ACT_RELU, &x));
  TRY(dense(w, 16, DTG_ACT_RELU, &x));
  TRY(dense(w, 1, DTG_ACT_NONE, &x));
  all = dtg_model_variable_count(w->model);
  TRY(dtg_add2(w->graph, "AddV2", x, wide, &x));
  TRY(guess(w, clicks, x, &loss));
  ftrl.kind = DTG_OPT_FTRL;
  ftrl.rate = 0.1;
  ftrl.l1 = 0.001;
  adagrad.kind = DTG_OPT_ADAGRAD;
  adagrad.rate = 0.05;
  TRY(train_some(w, loss, &ftrl, 0, deep));
  return train_some(w, loss, &adagrad, deep, all);
}

/* People click where the site's number has a certain bit, and more with the first number. */
static dtg_error *fill_wide(struct work *w, int64_t step) {
  struct dice dice = dice_of(10, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) {
    float *x = floats(w, 1) + i * NUMBERS;
    for (int k = 0; k < NUMBERS; k++) x[k] = unit(&dice) * 2 - 1;
    ints(w, 2)[i] = (int32_t)below(&dice, 500);
    ints(w, 3)[i] = (int32_t)below(&dice, 8);
    floats(w, 4)[i] = x[0] + (float)(ints(w, 3)[i] % 3) * 0.5f + (ints(w, 2)[i] % 2 ? 0.5f : -0.5f) + unit(&dice) > 1;
  }
  return NULL;
}

static dtg_error *build_dlrm(struct work *w) {
  const int64_t numbers[] = {w->batch, NUMBERS}, bags[] = {w->batch, BAG}, column[] = {w->batch, 1}, one[] = {-1, 1, WIDTH},
                flat[] = {-1, (TABLES + 1) * (TABLES + 1)}, pairs[] = {1, 2, 3, 6, 7, 11}; /* above the diagonal of 4 x 4 */
  static const char *const names[TABLES] = {"bag_0", "bag_1", "bag_2"};
  dtg_optimizer adagrad = DTG_OPTIMIZER_INIT;
  dtg_batch_mat_mul_v2_options turned = DTG_BATCH_MAT_MUL_V2_OPTIONS_INIT;
  dtg_value x, bag[TABLES], clicks, all, gather[3], loss;
  const int64_t axis = 1;
  TRY(feed(w, "numbers", DTG_F32, numbers, 2, &x));
  for (int k = 0; k < TABLES; k++) TRY(feed(w, names[k], DTG_I32, bags, 2, &bag[k]));
  TRY(feed(w, "clicks", DTG_F32, column, 2, &clicks));
  TRY(dense(w, 16, DTG_ACT_RELU, &x));
  TRY(dense(w, WIDTH, DTG_ACT_RELU, &x));
  all = x;
  TRY(reshape(w, one, 3, &all));
  for (int k = 0; k < TABLES; k++) {
    TRY(table(w, bag[k], ROWS, WIDTH, &bag[k]));
    TRY(reduce(w, "Mean", 1, &bag[k]));
    TRY(reshape(w, one, 3, &bag[k]));
    TRY(join(w, all, bag[k], 1, &all));
  }
  turned.adj_y = 1;
  TRY(dtg_add_batch_mat_mul_v2(w->graph, NULL, all, all, &turned, &all));
  TRY(reshape(w, flat, 2, &all));
  gather[0] = all;
  TRY(dtg_const_i64s(w->graph, pairs, 6, &gather[1]));
  TRY(dtg_const_of(w->graph, DTG_I64, NULL, 0, &axis, sizeof axis, &gather[2]));
  TRY(dtg_addn(w->graph, "GatherV2", gather, 3, &all));
  TRY(join(w, x, all, 1, &x));
  TRY(dense(w, 16, DTG_ACT_RELU, &x));
  TRY(dense(w, 1, DTG_ACT_NONE, &x));
  TRY(guess(w, clicks, x, &loss));
  adagrad.kind = DTG_OPT_ADAGRAD;
  adagrad.rate = 0.1;
  return train_on(w, loss, &adagrad);
}

static dtg_error *fill_dlrm(struct work *w, int64_t step) {
  struct dice dice = dice_of(11, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) {
    float *x = floats(w, 1) + i * NUMBERS, sum = 0;
    for (int k = 0; k < NUMBERS; k++) x[k] = unit(&dice) * 2 - 1;
    for (size_t k = 0; k < TABLES; k++) {
      for (int j = 0; j < BAG; j++) {
        ints(w, 2 + k)[i * BAG + j] = (int32_t)below(&dice, ROWS);
        sum += (float)(ints(w, 2 + k)[i * BAG + j] % 3 - 1) * 0.3f;
      }
    }
    floats(w, 2 + TABLES)[i] = sum + x[0] > 0;
  }
  return NULL;
}

const struct example wide_deep = {"wide_deep", "examples", "accuracy", 64, 1, build_wide, fill_wide, NULL};
const struct example dlrm = {"dlrm", "examples", "accuracy", 64, 1, build_dlrm, fill_dlrm, NULL};
