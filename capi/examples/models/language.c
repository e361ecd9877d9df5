/* language.c: language models letter by letter, with an LSTM and with a GRU, on sentences of different lengths, with Adam. The metric is the
 * perplexity: among how many letters it wavers. */
#include <string.h>

#include "models.h"

enum { LETTERS = 29, LONGEST = 48, WIDTH = 16, UNITS = 64 };

/* Lewis Carroll, Alice's Adventures in Wonderland. */
static const char *const sentences[] = {
    "alice was beginning to get very tired",       "of sitting by her sister on the bank",
    "and of having nothing to do",                 "once or twice she had peeped into the book",
    "her sister was reading",                      "but it had no pictures",
    "or conversations in it",                      "and what is the use of a book",
    "thought alice",                               "without pictures or conversations",
    "so she was considering in her own mind",      "whether the pleasure of making a daisy chain",
    "would be worth the trouble of getting up",    "and picking the daisies",
    "when suddenly a white rabbit",                "with pink eyes ran close by her",
    "there was nothing so very remarkable in that", "oh dear, oh dear, i shall be late",
};
enum { SENTENCES = sizeof sentences / sizeof *sentences };

static dtg_error *build(struct work *w, dtg_recurrent_kind kind) {
  const int64_t text[] = {w->batch, LONGEST};
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_recurrent layer = DTG_RECURRENT_INIT;
  dtg_recurrent_result read = DTG_RECURRENT_RESULT_INIT;
  dtg_loss by_letter = DTG_LOSS_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value x, next, mask, loss;
  TRY(feed(w, "letters", DTG_I32, text, 2, &x));
  TRY(feed(w, "next", DTG_I32, text, 2, &next));
  TRY(feed(w, "mask", DTG_F32, text, 2, &mask));
  TRY(feed(w, "lengths", DTG_I32, text, 1, &layer.lengths));
  table.rows = LETTERS;
  table.width = WIDTH;
  TRY(dtg_nn_embedding(w->model, x, &table, &x));
  layer.kind = kind;
  layer.units = UNITS;
  TRY(dtg_nn_recurrent(w->model, x, &layer, &read));
  x = read.outputs;
  TRY(dense(w, LETTERS, DTG_ACT_NONE, &x));
  by_letter.kind = DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
  by_letter.from_logits = 1;
  by_letter.reduction = DTG_LOSS_MEAN_BY_WEIGHTS;
  TRY(dtg_nn_loss(w->model, &by_letter, next, x, mask, &loss));
  TRY(dtg_add1(w->graph, "Exp", loss, &w->metric));
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.005;
  return train_on(w, loss, &adam);
}

static dtg_error *build_lstm(struct work *w) { return build(w, DTG_LSTM); }
static dtg_error *build_gru(struct work *w) { return build(w, DTG_GRU); }

static int32_t number(char letter) { return letter >= 'a' && letter <= 'z' ? letter - 'a' + 1 : letter == ' ' ? 27 : letter ? 28 : 0; }

/* From each letter the next one; 0 begins and ends a sentence. */
static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(8, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) {
    const char *sentence = sentences[below(&dice, SENTENCES)];
    const int64_t length = (int64_t)strlen(sentence);
    for (int64_t t = 0; t < LONGEST; t++) {
      ints(w, 1)[i * LONGEST + t] = t > 0 && t <= length ? number(sentence[t - 1]) : 0;
      ints(w, 2)[i * LONGEST + t] = t < length ? number(sentence[t]) : 0;
      floats(w, 3)[i * LONGEST + t] = t <= length;
    }
    ints(w, 4)[i] = (int32_t)length + 1;
  }
  return NULL;
}

const struct example lstm = {"lstm", "sentences", "perplexity", 8, 1, build_lstm, fill, NULL};
const struct example gru = {"gru", "sentences", "perplexity", 8, 1, build_gru, fill, NULL};
