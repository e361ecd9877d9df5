/* mobilenet.c: a small MobileNet: convolutions that are cut in two, one by channel and one over the channels, each with batch
 * normalization. RMSProp. */
#include "models.h"

enum { SIDE = 32, COLOURS = 3 };

static dtg_error *block(struct work *w, int64_t filters, int64_t stride, dtg_value *x) {
  dtg_conv by_channel = DTG_CONV_INIT;
  by_channel.stride[0] = stride;
  by_channel.padding = DTG_PADDING_SAME;
  by_channel.no_bias = 1;
  TRY(dtg_nn_depthwise_conv2d(w->model, *x, &by_channel, x));
  TRY(batch_norm(w, DTG_ACT_RELU6, x));
  TRY(conv(w, filters, 1, 1, DTG_ACT_NONE, x));
  return batch_norm(w, DTG_ACT_RELU6, x);
}

static dtg_error *build(struct work *w) {
  const int64_t image[] = {w->batch, SIDE, SIDE, COLOURS};
  dtg_optimizer rms = DTG_OPTIMIZER_INIT;
  dtg_value x, labels;
  TRY(feed(w, "images", DTG_F32, image, 4, &x));
  TRY(feed(w, "labels", DTG_I32, image, 1, &labels));
  TRY(conv(w, 16, 3, 2, DTG_ACT_NONE, &x));
  TRY(batch_norm(w, DTG_ACT_RELU6, &x));
  TRY(block(w, 32, 1, &x));
  TRY(block(w, 64, 2, &x));
  TRY(block(w, 64, 1, &x));
  TRY(block(w, 128, 2, &x));
  TRY(dtg_nn_global_avg_pool(w->model, x, 0, &x));
  TRY(dense(w, TEXTURES, DTG_ACT_NONE, &x));
  TRY(classify(w, labels, x));
  rms.kind = DTG_OPT_RMSPROP;
  rms.momentum = 0.9;
  rms.rate = 0.001;
  return train_on(w, w->losses[0], &rms);
}

static dtg_error *fill(struct work *w, int64_t step) {
  textured_batch(w, dice_of(3, (uint64_t)step, 0), SIDE, COLOURS);
  return NULL;
}

const struct example mobilenet = {"mobilenet", "images", "accuracy", 16, 0.01, build, fill, NULL};
