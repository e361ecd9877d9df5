/* word2vec.c: skip-grams: from a word the words around it, with noise contrastive estimation or sampled softmax in place of a softmax over
 * all words. The text is by chance: words of one topic stand together. The metric: how often the likeliest neighbour is of the topic. */
#include "models.h"

enum { WORDS = 200, TOPICS = 10, WIDTH = 16, SAMPLES = 20 };

/* Whether the word that the whole softmax would choose is of the topic of the word that came. */
static dtg_error *add_metric(struct work *w, const char *weights, const char *biases, dtg_value x, dtg_value context) {
  dtg_variable v = DTG_VARIABLE_INIT, b = DTG_VARIABLE_INIT;
  dtg_arg_max_options as_i32 = DTG_ARG_MAX_OPTIONS_INIT;
  dtg_mat_mul_options turned = DTG_MAT_MUL_OPTIONS_INIT;
  dtg_value topics, last;
  const int32_t number = TOPICS, one = 1;
  TRY(dtg_model_find_variable(w->model, weights, DTG_STRLEN, &v));
  TRY(dtg_model_find_variable(w->model, biases, DTG_STRLEN, &b));
  turned.transpose_b = 1;
  as_i32.output_type = DTG_I32;
  TRY(dtg_add_mat_mul(w->graph, NULL, x, v.read, &turned, &x));
  TRY(dtg_add2(w->graph, "AddV2", x, b.read, &x));
  TRY(dtg_const_of(w->graph, DTG_I32, NULL, 0, &one, sizeof one, &last));
  TRY(dtg_add_arg_max(w->graph, NULL, x, last, &as_i32, &x));
  TRY(dtg_const_of(w->graph, DTG_I32, NULL, 0, &number, sizeof number, &topics));
  TRY(dtg_add2(w->graph, "FloorMod", x, topics, &x));
  TRY(dtg_add2(w->graph, "FloorMod", context, topics, &context));
  TRY(dtg_add2(w->graph, "Equal", x, context, &x));
  TRY(dtg_add_cast(w->graph, NULL, x, DTG_F32, NULL, &x));
  w->metric = x;
  return reduce(w, "Mean", 0, &w->metric);
}

static dtg_error *build(struct work *w, dtg_sampled_kind kind) {
  const int64_t words[] = {w->batch}, pairs[] = {w->batch, 1}, samples[] = {SAMPLES};
  dtg_embedding table = DTG_EMBEDDING_INIT;
  dtg_sampled_loss head = DTG_SAMPLED_LOSS_INIT;
  dtg_optimizer adagrad = DTG_OPTIMIZER_INIT;
  dtg_value x, context, loss;
  TRY(feed(w, "words", DTG_I32, words, 1, &x));
  TRY(feed(w, "context", DTG_I32, words, 1, &context));
  head.kind = kind;
  head.classes = WORDS;
  head.samples = SAMPLES;
  if (w->as_reference) { /* what is drawn, and how likely it was, comes from us */
    TRY(feed(w, "sampled", DTG_I64, samples, 1, &head.sampled));
    TRY(feed(w, "true_expected", DTG_F32, pairs, 2, &head.true_expected));
    TRY(feed(w, "sampled_expected", DTG_F32, samples, 1, &head.sampled_expected));
  }
  table.rows = WORDS;
  table.width = WIDTH;
  TRY(dtg_nn_embedding(w->model, x, &table, &x));
  TRY(dtg_nn_sampled_loss(w->model, &head, context, x, &loss));
  TRY(add_metric(w, kind == DTG_NCE ? "nce/weights" : "sampled_softmax/weights", kind == DTG_NCE ? "nce/biases" : "sampled_softmax/biases", x,
                 context));
  adagrad.kind = DTG_OPT_ADAGRAD;
  adagrad.rate = 0.2;
  return train_on(w, loss, &adagrad);
}

static dtg_error *build_nce(struct work *w) { return build(w, DTG_NCE); }
static dtg_error *build_softmax(struct work *w) { return build(w, DTG_SAMPLED_SOFTMAX); }

/* Frequent words have low numbers. Four neighbours of five are of the topic, which is the number's last digit. */
static int32_t word(struct dice *dice) {
  const float u = unit(dice);
  return (int32_t)(u * u * WORDS);
}

static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(7, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) {
    const int32_t here = word(&dice), there = word(&dice);
    ints(w, 1)[i] = here;
    ints(w, 2)[i] = below(&dice, 5) ? there - there % TOPICS + here % TOPICS : there;
  }
  if (!w->as_reference) return NULL;
  for (int64_t i = 0; i < SAMPLES; i++) { /* one of each ten words, so that none comes twice */
    ((int64_t *)dtg_tensor_mutable_data(w->fed[3]))[i] = i * (WORDS / SAMPLES) + below(&dice, WORDS / SAMPLES);
    floats(w, 5)[i] = (float)SAMPLES / WORDS;
  }
  for (int64_t i = 0; i < w->batch; i++) floats(w, 4)[i] = (float)SAMPLES / WORDS;
  return NULL;
}

const struct example word2vec = {"word2vec", "pairs", "share of topics", 128, 1, build_nce, fill, NULL};
const struct example word2vec_softmax = {"word2vec_softmax", "pairs", "share of topics", 128, 1, build_softmax, fill, NULL};
