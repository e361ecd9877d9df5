/* vae.c: a variational autoencoder: an image of bright and dark pixels becomes eight numbers by chance around a mean, and those become the
 * image again. The loss is what the image costs given them, and how far they are from chance alone. The chance is fed. Adam. */
#include "models.h"

enum { SIDE = 16, HIDDEN = 128, LATENT = 8 };

/* -0.5 sum(1 + v - m^2 - e^v), the divergence of N(m, e^v) from N(0, 1), for each example. */
static dtg_error *divergence(struct work *w, dtg_value mean, dtg_value log_variance, dtg_value *out) {
  dtg_value one, square, variance, sum;
  TRY(dtg_const_f32(w->graph, 1, &one));
  TRY(dtg_add1(w->graph, "Square", mean, &square));
  TRY(dtg_add1(w->graph, "Exp", log_variance, &variance));
  TRY(dtg_add2(w->graph, "AddV2", one, log_variance, &sum));
  TRY(dtg_add2(w->graph, "Sub", sum, square, &sum));
  TRY(dtg_add2(w->graph, "Sub", sum, variance, &sum));
  TRY(reduce(w, "Sum", 1, &sum));
  *out = sum;
  return scaled(w, -0.5f, out);
}

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE * SIDE}, latent[] = {w->batch, LATENT};
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value x, y, chance, mean, log_variance, deviation, cost, far;
  TRY(feed(w, "images", DTG_F32, image, 2, &x));
  TRY(feed(w, "chance", DTG_F32, latent, 2, &chance));
  y = x;
  TRY(dense(w, HIDDEN, DTG_ACT_RELU, &y));
  mean = log_variance = y;
  TRY(dense(w, LATENT, DTG_ACT_NONE, &mean));
  TRY(dense(w, LATENT, DTG_ACT_NONE, &log_variance));
  deviation = log_variance;
  TRY(scaled(w, 0.5f, &deviation));
  TRY(dtg_add1(w->graph, "Exp", deviation, &deviation));
  TRY(dtg_add2(w->graph, "Mul", deviation, chance, &y));
  TRY(dtg_add2(w->graph, "AddV2", mean, y, &y));
  TRY(dense(w, HIDDEN, DTG_ACT_RELU, &y));
  TRY(dense(w, SIDE * SIDE, DTG_ACT_NONE, &y));
  TRY(dtg_nn_sigmoid_cross_entropy(w->model, x, y, &cost));
  TRY(scaled(w, SIDE * SIDE, &cost)); /* the sum over an image, the mean over images */
  TRY(divergence(w, mean, log_variance, &far));
  TRY(reduce(w, "Mean", 0, &far));
  TRY(dtg_add2(w->graph, "AddV2", cost, far, &cost));
  w->metric = far;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.002;
  return train_on(w, cost, &adam);
}

/* A bright rectangle on dark ground. */
static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(5, (uint64_t)step, 0);
  float *image = floats(w, 1), *chance = floats(w, 2);
  for (int64_t n = 0; n < w->batch; n++) {
    const int64_t top = below(&dice, 8), left = below(&dice, 8), high = 3 + below(&dice, 6), wide = 3 + below(&dice, 6);
    for (int64_t i = 0; i < SIDE; i++) {
      for (int64_t j = 0; j < SIDE; j++) *image++ = i >= top && i < top + high && j >= left && j < left + wide;
    }
    for (int k = 0; k < LATENT; k++) *chance++ = normal(&dice);
  }
  return NULL;
}

const struct example vae = {"vae", "images", "divergence", 64, 0.1, build, fill, NULL};
