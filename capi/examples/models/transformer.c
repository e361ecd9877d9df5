/* transformer.c: an encoder and a decoder with attention learn to write a row of digits backwards. Each half is a block of attention and a
 * dense layer with GELU, with layer normalization before and what went in added after; the decoder sees what it wrote so far, and the
 * encoder's answer. Adam. Afterwards it writes some rows, digit by digit (decode.c): the likeliest each time, and by beam search. */
#include <stdio.h>
#include <string.h>

#include "transformer.h"

/* Tokens as vectors, with a vector for each place. */
static dtg_error *embed(struct work *w, dtg_value *x) {
  const int64_t length = LONGEST;
  int32_t places[LONGEST];
  dtg_embedding tokens = DTG_EMBEDDING_INIT, at = DTG_EMBEDDING_INIT;
  dtg_value where;
  for (int32_t i = 0; i < LONGEST; i++) places[i] = i;
  TRY(dtg_const_of(w->graph, DTG_I32, &length, 1, places, sizeof places, &where));
  tokens.rows = TOKENS;
  at.rows = LONGEST;
  tokens.width = at.width = WIDTH;
  TRY(dtg_nn_embedding(w->model, *x, &tokens, x));
  TRY(dtg_nn_embedding(w->model, where, &at, &where));
  return dtg_add2(w->graph, "AddV2", *x, where, x);
}

/* Looks at itself where `value` is {0}. */
static dtg_error *attend(struct work *w, dtg_value value, dtg_value lengths, int causal, dtg_value *x) {
  dtg_attention layer = DTG_ATTENTION_INIT;
  dtg_value y;
  layer.heads = HEADS;
  layer.key_width = WIDTH / HEADS;
  layer.causal = causal;
  layer.lengths = lengths;
  TRY(dtg_nn_layer_norm(w->model, *x, NULL, &y));
  TRY(dtg_nn_attention(w->model, y, value.id ? value : y, &layer, &y));
  return dtg_add2(w->graph, "AddV2", *x, y, x);
}

static dtg_error *think(struct work *w, dtg_value *x) {
  dtg_value y;
  TRY(dtg_nn_layer_norm(w->model, *x, NULL, &y));
  TRY(dense(w, 2 * WIDTH, DTG_ACT_GELU, &y));
  TRY(dense(w, WIDTH, DTG_ACT_NONE, &y));
  return dtg_add2(w->graph, "AddV2", *x, y, x);
}

static dtg_error *build(struct work *w) {
  const int64_t rows[] = {w->batch, LONGEST};
  const dtg_value none = {0};
  dtg_loss by_token = DTG_LOSS_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value x, y, next, mask, lengths, loss;
  TRY(feed(w, "source", DTG_I32, rows, 2, &x));
  TRY(feed(w, "written", DTG_I32, rows, 2, &y));
  TRY(feed(w, "next", DTG_I32, rows, 2, &next));
  TRY(feed(w, "mask", DTG_F32, rows, 2, &mask));
  TRY(feed(w, "lengths", DTG_I32, rows, 1, &lengths));
  TRY(embed(w, &x));
  TRY(attend(w, none, lengths, 0, &x));
  TRY(think(w, &x));
  TRY(dtg_nn_layer_norm(w->model, x, NULL, &x));
  TRY(embed(w, &y));
  TRY(attend(w, none, none, 1, &y));
  TRY(attend(w, x, lengths, 0, &y));
  TRY(think(w, &y));
  TRY(dtg_nn_layer_norm(w->model, y, NULL, &y));
  TRY(dense(w, TOKENS, DTG_ACT_NONE, &y));
  w->output = y;
  by_token.kind = DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
  by_token.from_logits = 1;
  by_token.reduction = DTG_LOSS_MEAN_BY_WEIGHTS;
  TRY(dtg_nn_loss(w->model, &by_token, next, y, mask, &loss));
  TRY(dtg_add1(w->graph, "Exp", loss, &w->metric));
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.003;
  TRY(train_on(w, loss, &adam));
  for (int k = 0; k < WRITERS; k++) {
    w->writers[k].beams = k == 0 ? 1 : 4;
    TRY(add_writer(w, x, lengths, &w->writers[k]));
  }
  return NULL;
}

static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(9, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) {
    int32_t *source = ints(w, 1) + i * LONGEST, *written = ints(w, 2) + i * LONGEST, *next = ints(w, 3) + i * LONGEST;
    const int64_t length = 3 + below(&dice, LONGEST - 2);
    for (int64_t t = 0; t < LONGEST; t++) source[t] = t < length ? FIRST + (int32_t)below(&dice, TOKENS - FIRST) : 0;
    for (int64_t t = 0; t < LONGEST; t++) {
      next[t] = t < length ? source[length - 1 - t] : 0;
      written[t] = t == 0 ? START : next[t - 1];
      floats(w, 4)[i * LONGEST + t] = t < length;
    }
    ints(w, 5)[i] = (int32_t)length;
  }
  return NULL;
}

/* What the two searches write for rows that nobody trained on, and how likely they take it to be. */
static dtg_error *show(struct work *w) {
  TRY(fill(w, -100));
  for (int k = 0; k < WRITERS; k++) {
    const int64_t beams = w->writers[k].beams;
    dtg_tensor *rows, *scores;
    int right = 0;
    TRY(look(w, w->writers[k].rows, &rows));
    TRY(look(w, w->writers[k].scores, &scores));
    printf("beams: %lld\n", (long long)beams);
    for (int64_t i = 0; i < w->batch; i++) {
      const int32_t *wrote = (const int32_t *)dtg_tensor_data(rows, NULL) + i * beams * LONGEST, *wanted = ints(w, 3) + i * LONGEST;
      const int length = ints(w, 5)[i];
      for (int t = 0; t < length; t++) printf("%d", ints(w, 1)[i * LONGEST + t] - FIRST);
      printf(" -> ");
      for (int t = 0; t < length; t++) printf("%c", "?!0123456789"[wrote[t]]);
      printf("  %.5f\n", (double)((const float *)dtg_tensor_data(scores, NULL))[i * beams]);
      right += memcmp(wrote, wanted, sizeof *wanted * LONGEST) == 0;
    }
    printf("%d of %lld right\n", right, (long long)w->batch);
    dtg_tensor_release(rows);
    dtg_tensor_release(scores);
  }
  return NULL;
}

const struct example transformer = {"transformer", "rows", "perplexity", 16, 0.1, build, fill, show};
