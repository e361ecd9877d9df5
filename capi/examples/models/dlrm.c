/* dlrm.c: a small DLRM: who clicks? Tables with a bag of entries each, and the products of all vectors with each other. Gradients of tables
 * are rows; Adagrad. The metric is the share of right guesses. */
#include "models.h"

enum { NUMBERS = 4, TABLES = 3, ROWS = 100, BAG = 4, WIDTH = 8 };

static dtg_error *build(struct work *w) {
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
    TRY(embedding(w, bag[k], ROWS, WIDTH, &bag[k]));
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

static dtg_error *fill(struct work *w, int64_t step) {
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

const struct example dlrm = {"dlrm", "examples", "accuracy", 64, 1, build, fill, NULL};
