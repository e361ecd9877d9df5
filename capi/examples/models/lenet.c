/* lenet.c: LeNet-5 with rectifiers: two convolutions with pooling and three dense layers tell ten textures apart. Momentum. */
#include "models.h"

enum { SIDE = 28 };

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE, SIDE, 1};
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  dtg_conv2d second = DTG_CONV2D_INIT;
  dtg_value x, labels;
  TRY(feed(w, "images", DTG_F32, image, 4, &x));
  TRY(feed(w, "labels", DTG_I32, image, 1, &labels));
  TRY(conv(w, 6, 5, 1, DTG_ACT_RELU, &x));
  TRY(dtg_nn_max_pool2d(w->model, x, NULL, &x));
  second.filters = 16;
  second.kernel_height = 5;
  second.activation = DTG_ACT_RELU;
  TRY(dtg_nn_conv2d(w->model, x, &second, &x));
  TRY(dtg_nn_max_pool2d(w->model, x, NULL, &x));
  TRY(dtg_nn_flatten(w->model, x, &x));
  TRY(dense(w, 120, DTG_ACT_RELU, &x));
  TRY(dense(w, 84, DTG_ACT_RELU, &x));
  TRY(dense(w, TEXTURES, DTG_ACT_NONE, &x));
  TRY(classify(w, labels, x));
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.momentum = 0.9;
  momentum.rate = 0.02;
  return train_on(w, w->losses[0], &momentum);
}

static dtg_error *fill(struct work *w, int64_t step) {
  textured_batch(w, dice_of(1, (uint64_t)step, 0), SIDE, 1);
  return NULL;
}

const struct example lenet = {"lenet", "images", "accuracy", 32, 0.1, build, fill, NULL};
