/* unet.c: a U-Net says of each pixel whether it belongs to a disc, to a square or to neither. Two levels down by pooling; up again once by a
 * transposed convolution and once by resizing, beside what was seen on the way down. Adam. */
#include "models.h"

enum { SIDE = 32, CLASSES = 3 };

static dtg_error *twice(struct work *w, int64_t filters, dtg_value *x) {
  TRY(conv(w, filters, 3, 1, DTG_ACT_RELU, x));
  return conv(w, filters, 3, 1, DTG_ACT_RELU, x);
}

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE, SIDE, 1}, rows[] = {-1, CLASSES}, line[] = {-1};
  dtg_conv up = DTG_CONV_INIT;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_value x, labels, fine, coarse;
  TRY(feed(w, "images", DTG_F32, image, 4, &x));
  TRY(feed(w, "labels", DTG_I32, image, 3, &labels));
  TRY(twice(w, 8, &x));
  fine = x;
  TRY(dtg_nn_max_pool2d(w->model, x, NULL, &x));
  TRY(twice(w, 16, &x));
  coarse = x;
  TRY(dtg_nn_max_pool2d(w->model, x, NULL, &x));
  TRY(twice(w, 32, &x));
  up.filters = 16;
  up.kernel[0] = 2;
  up.stride[0] = 2;
  up.padding = DTG_PADDING_SAME;
  TRY(dtg_nn_conv2d_transpose(w->model, x, &up, &x));
  TRY(join(w, coarse, x, 3, &x));
  TRY(twice(w, 16, &x));
  TRY(dtg_nn_up_sampling2d(w->model, x, 2, 2, 1, &x));
  TRY(join(w, fine, x, 3, &x));
  TRY(twice(w, 8, &x));
  TRY(conv(w, CLASSES, 1, 1, DTG_ACT_NONE, &x));
  TRY(reshape(w, rows, 2, &x));
  TRY(reshape(w, line, 1, &labels));
  TRY(classify(w, labels, x));
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.002;
  return train_on(w, w->losses[0], &adam);
}

/* One disc and one square, which may lie over it, in grey, under noise. */
static void picture(struct dice *dice, float *image, int32_t *labels) {
  const int64_t radius = 4 + below(dice, 5), side = 6 + below(dice, 8), cx = below(dice, SIDE), cy = below(dice, SIDE),
                left = below(dice, SIDE - side), top = below(dice, SIDE - side);
  const float greys[CLASSES] = {0, unit(dice) + 0.25f, -unit(dice) - 0.25f};
  for (int64_t i = 0; i < SIDE; i++) {
    for (int64_t j = 0; j < SIDE; j++) {
      const int disc = (i - cy) * (i - cy) + (j - cx) * (j - cx) <= radius * radius;
      const int square = i >= top && i < top + side && j >= left && j < left + side;
      *labels = square ? 2 : disc;
      *image++ = greys[*labels++] + (unit(dice) - 0.5f) * 0.5f;
    }
  }
}

static dtg_error *fill(struct work *w, int64_t step) {
  struct dice dice = dice_of(4, (uint64_t)step, 0);
  for (int64_t i = 0; i < w->batch; i++) picture(&dice, floats(w, 1) + i * SIDE * SIDE, ints(w, 2) + i * SIDE * SIDE);
  return NULL;
}

const struct example unet = {"unet", "images", "accuracy of pixels", 8, 0.1, build, fill, NULL};
