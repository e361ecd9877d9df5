/* models.h: models that people train, one in each file beside this one, and what they share. Each says what it is fed, builds its graph,
 * and makes a batch; main.c trains it, as long as one likes, and says how well it does. One thread uses all of it.
 *
 *   data.c   numbers by chance that are the same on every machine
 *   work.c   what models share: placeholders, short forms of layers
 *   main.c   the command line, the steps, what the person at the terminal sees
 */
#ifndef MODELS_H
#define MODELS_H

#include <dtg/dtg.h>
#include <dtg/sugar.h>

/* Every function returns what went wrong, or NULL. */
#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { MAX_FEEDS = 8, MAX_PHASES = 2, MAX_TRAINED = 16, DIM_LIMIT = 4, WRITERS = 2 };

/* ---- data.c ---- */

/* A stream of numbers by chance, a function of the three keys that it began with: SplitMix64. */
struct dice {
  uint64_t state;
};

enum { TEXTURES = 10 };

struct dice dice_of(uint64_t model, uint64_t step, uint64_t what);
uint64_t draw(struct dice *dice);                    /* 64 bits */
int64_t below(struct dice *dice, int64_t limit);     /* 0 to limit - 1 */
float unit(struct dice *dice);                       /* in [0, 1), a multiple of 2^-24 */
float normal(struct dice *dice);                     /* about N(0, 1), without a library of mathematics: a sum of twelve */
void textured(struct dice *dice, int64_t class_, int64_t side, int64_t channels, float *image); /* an image of one of ten textures */

/* ---- work.c ---- */

/* A search for the likeliest sequences, the best first. One beam: the likeliest each time. */
struct writer {
  int64_t beams;
  dtg_value rows;   /* int32 [batch * beams, longest] */
  dtg_value scores; /* float32 [batch, beams]: logarithms of their probabilities */
};

/* A model in work: what it feeds, what it has for losses, and the targets that make a step of training. A step has a phase for each loss:
 * one, or two for two networks that take turns. */
struct work {
  dtg_graph *graph;
  dtg_model *model;
  dtg_session *session;
  int64_t batch;
  int as_reference;   /* not 0: nothing is by chance but what dice say, and learning is slow, so that another library can do the same and
                         rounding does not show in its first steps */
  double calm;        /* how slow that is: a share of the rate */
  dtg_value training; /* a bool scalar that is fed: whether a run trains */
  dtg_value feeds[MAX_FEEDS];
  dtg_tensor *fed[MAX_FEEDS];
  const char *feed_names[MAX_FEEDS];
  size_t num_feeds;
  int phases;
  dtg_value losses[MAX_PHASES];
  dtg_training steps[MAX_PHASES];
  dtg_value before;         /* a target to run before training, such as one that fills a table */
  dtg_value metric, output; /* a float32 scalar; what `show` looks at. {0}: none */
  struct writer writers[WRITERS]; /* of a model that writes */
};

/* What main.c knows of a model. */
struct example {
  const char *name, *items, *metric; /* "lenet", "images", "accuracy" */
  int64_t batch;                     /* items of a step */
  double calm;                       /* share of the rate for comparisons with others: rectifiers make small differences large */
  dtg_error *(*build)(struct work *);
  dtg_error *(*fill)(struct work *, int64_t step); /* writes the batch of a step into `fed`; steps below 0 are for evaluation */
  dtg_error *(*show)(struct work *);               /* prints what it has learned; NULL: nothing more than the metric */
};

/* A placeholder and the tensor that is fed for it. `dims` are those of the tensor; the first one is open in the graph, if there is one. */
dtg_error *feed(struct work *w, const char *name, dtg_dtype dtype, const int64_t *dims, size_t rank, dtg_value *out);
float *floats(struct work *w, size_t i);
int32_t *ints(struct work *w, size_t i);
/* Feeds 1 and 2: images of textures, and which texture each shows. */
void textured_batch(struct work *w, struct dice dice, int64_t side, int64_t channels);

dtg_error *conv(struct work *w, int64_t filters, int64_t kernel, int64_t stride, dtg_activation activation, dtg_value *x); /* SAME */
dtg_error *dense(struct work *w, int64_t units, dtg_activation activation, dtg_value *x);
dtg_error *embedding(struct work *w, dtg_value ids, int64_t rows, int64_t width, dtg_value *out);
dtg_error *batch_norm(struct work *w, dtg_activation activation, dtg_value *x);
dtg_error *reshape(struct work *w, const int64_t *dims, int64_t rank, dtg_value *x);
dtg_error *scaled(struct work *w, float factor, dtg_value *x);
dtg_error *reduce(struct work *w, const char *op, int64_t axis, dtg_value *x);
dtg_error *join(struct work *w, dtg_value a, dtg_value b, int64_t axis, dtg_value *out);
/* The mean of a cross entropy over classes, and the accuracy as the metric. */
dtg_error *classify(struct work *w, dtg_value labels, dtg_value logits);
/* The mean cross entropy of clicks, 0 or 1, and how often the sign of the logit is right as the metric. */
dtg_error *guess(struct work *w, dtg_value clicks, dtg_value logits, dtg_value *loss);
/* One phase more: this loss, made less by this optimizer. */
dtg_error *train_on(struct work *w, dtg_value loss, const dtg_optimizer *optimizer);
/* The same with the variables from number `from` to number `to` - 1 only. */
dtg_error *train_some(struct work *w, dtg_value loss, const dtg_optimizer *optimizer, size_t from, size_t to);
/* Runs without training: a value for what is fed. `*out` is the caller's. */
dtg_error *look(struct work *w, dtg_value value, dtg_tensor **out);

extern const struct example lenet, resnet, mobilenet, unet, vae, gan, word2vec, word2vec_softmax, lstm, gru, transformer, wide_deep, dlrm,
    policy;

#endif /* MODELS_H */
