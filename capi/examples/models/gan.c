/* gan.c: two networks that take turns: one paints images from chance, the other tells them from true ones. Each has an optimizer of its own,
 * which moves its variables only. */
#include "models.h"

enum { SIDE = 16, LATENT = 8 };

static dtg_error *up(struct work *w, int64_t filters, dtg_activation activation, dtg_value *x) {
  dtg_conv layer = DTG_CONV_INIT;
  layer.filters = filters;
  layer.kernel[0] = 4;
  layer.stride[0] = 2;
  layer.padding = DTG_PADDING_SAME;
  layer.activation = activation;
  return dtg_nn_conv2d_transpose(w->model, *x, &layer, x);
}

static dtg_error *paint(struct work *w, dtg_value *x) {
  const int64_t small[] = {-1, SIDE / 4, SIDE / 4, 16};
  TRY(dense(w, 16 * SIDE * SIDE / 16, DTG_ACT_ELU, x));
  TRY(reshape(w, small, 4, x));
  TRY(up(w, 8, DTG_ACT_ELU, x));
  return up(w, 1, DTG_ACT_TANH, x);
}

static dtg_error *judge(struct work *w, dtg_value *x) {
  TRY(conv(w, 8, 4, 2, DTG_ACT_ELU, x));
  TRY(conv(w, 16, 4, 2, DTG_ACT_ELU, x));
  TRY(dtg_nn_flatten(w->model, *x, x));
  return dense(w, 1, DTG_ACT_NONE, x);
}

/* The mean of log(1 + e^(sign * logit)): what it costs to say the other thing. */
static dtg_error *cost(struct work *w, dtg_value logits, float sign, dtg_value *out) {
  *out = logits;
  TRY(scaled(w, sign, out));
  TRY(dtg_nn_activation(w->model, *out, DTG_ACT_SOFTPLUS, out));
  TRY(reduce(w, "Mean", 0, out));
  return reduce(w, "Mean", 0, out);
}

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE, SIDE, 1}, latent[] = {w->batch, LATENT};
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value real, fake, both, half, verdicts[2], costs[2], fooled;
  size_t painters, judges;
  int32_t axis = 0;
  TRY(feed(w, "images", DTG_F32, image, 4, &real));
  TRY(feed(w, "chance", DTG_F32, latent, 2, &fake));
  TRY(paint(w, &fake));
  painters = dtg_model_variable_count(w->model);
  TRY(join(w, real, fake, 0, &both));
  TRY(judge(w, &both));
  judges = dtg_model_variable_count(w->model);
  TRY(dtg_const_of(w->graph, DTG_I32, NULL, 0, &axis, sizeof axis, &half));
  TRY(dtg_add_split(w->graph, NULL, half, both, 2, verdicts));
  TRY(cost(w, verdicts[0], -1, &costs[0]));
  TRY(cost(w, verdicts[1], 1, &costs[1]));
  TRY(cost(w, verdicts[1], -1, &fooled));
  TRY(dtg_add2(w->graph, "AddV2", costs[0], costs[1], &costs[0]));
  w->metric = fooled;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.001;
  adam.beta1 = 0.5;
  TRY(train_some(w, costs[0], &adam, painters, judges));
  return train_some(w, fooled, &adam, 0, painters);
}

/* A bright disc on dark ground. */
static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(6, (uint64_t)step, 0);
  float *image = floats(w, 1);
  for (int64_t n = 0; n < w->batch; n++) {
    const int64_t radius = 2 + below(&dice, 3), x = 5 + below(&dice, 6), y = 5 + below(&dice, 6);
    for (int64_t i = 0; i < SIDE; i++) {
      for (int64_t j = 0; j < SIDE; j++) *image++ = (i - y) * (i - y) + (j - x) * (j - x) <= radius * radius ? 0.9f : -0.9f;
    }
  }
  for (int64_t k = 0; k < w->batch * LATENT; k++) floats(w, 2)[k] = normal(&dice);
  return NULL;
}

const struct example gan = {"gan", "images", "painter's loss", 16, 0.1, build, fill, NULL};
