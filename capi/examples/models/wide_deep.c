/* wide_deep.c: Wide & Deep: who clicks? Strings become numbers by hashing and by a vocabulary; a linear part with FTRL remembers, a network
 * with Adagrad generalizes. Gradients of tables are rows. The metric is the share of right guesses. */
#include "models.h"

enum { NUMBERS = 4, BUCKETS = 50, KINDS = 6, WIDTH = 8 };

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

static dtg_error *build(struct work *w) {
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
  TRY(embedding(w, site, BUCKETS, 1, &by_site));
  TRY(embedding(w, kind, KINDS, 1, &by_kind));
  TRY(dtg_add2(w->graph, "AddV2", by_site, by_kind, &wide));
  deep = dtg_model_variable_count(w->model);
  TRY(embedding(w, site, BUCKETS, WIDTH, &by_site));
  TRY(embedding(w, kind, KINDS, WIDTH, &by_kind));
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
static dtg_error *fill(struct work *w, int64_t step) {
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

const struct example wide_deep = {"wide_deep", "examples", "accuracy", 64, 1, build, fill, NULL};
