/* resnet.c: ResNet-20 as for CIFAR-10: three stages of three blocks, each two convolutions with batch normalization and what went in
 * added to what comes out; where a stage begins, a convolution of one pixel makes that fit. Momentum with decay of the kernels. */
#include "models.h"

enum { SIDE = 16, COLOURS = 3, BLOCKS = 3 };

static dtg_error *block(struct work *w, int64_t filters, int64_t stride, dtg_value *x) {
  dtg_value y = *x;
  TRY(conv(w, filters, 3, stride, DTG_ACT_NONE, &y));
  TRY(batch_norm(w, DTG_ACT_RELU, &y));
  TRY(conv(w, filters, 3, 1, DTG_ACT_NONE, &y));
  TRY(batch_norm(w, DTG_ACT_NONE, &y));
  if (stride > 1) TRY(conv(w, filters, 1, stride, DTG_ACT_NONE, x));
  TRY(dtg_add2(w->graph, "AddV2", *x, y, x));
  return dtg_nn_activation(w->model, *x, DTG_ACT_RELU, x);
}

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE, SIDE, COLOURS};
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  dtg_value x, labels;
  TRY(feed(w, "images", DTG_F32, image, 4, &x));
  TRY(feed(w, "labels", DTG_I32, image, 1, &labels));
  TRY(conv(w, 16, 3, 1, DTG_ACT_NONE, &x));
  TRY(batch_norm(w, DTG_ACT_RELU, &x));
  for (int stage = 0; stage < 3; stage++) {
    for (int k = 0; k < BLOCKS; k++) TRY(block(w, 16 << stage, stage > 0 && k == 0 ? 2 : 1, &x));
  }
  TRY(dtg_nn_global_avg_pool(w->model, x, 0, &x));
  TRY(dense(w, TEXTURES, DTG_ACT_NONE, &x));
  TRY(classify(w, labels, x));
  TRY(dtg_nn_regularize(w->model, w->losses[0], NULL, 0, 0, 1e-4, &w->losses[0]));
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.momentum = 0.9;
  momentum.rate = 0.01;
  return train_on(w, w->losses[0], &momentum);
}

static dtg_error *fill(struct work *w, int64_t step) {
  textured_batch(w, dice_of(2, (uint64_t)step, 0), SIDE, COLOURS);
  return NULL;
}

const struct example resnet = {"resnet", "images", "accuracy", 16, 0.0005, build, fill, NULL};
