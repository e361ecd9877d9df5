// What is drawn in training. A constant.

package org.dtg;

/** What is drawn in training, as tf.keras.layers.SpatialDropout1D, 2D, 3D, GaussianNoise, GaussianDropout and AlphaDropout. */
public enum Noise {
  /** Whole channels of x[batch, ..., channels] become 0, the rest is divided by 1 - amount. */
  SPATIAL_DROPOUT,
  /** x + amount * n, n normal. */
  GAUSSIAN,
  /** x * (1 + sqrt(amount / (1 - amount)) * n). */
  GAUSSIAN_DROPOUT,
  /** For networks of SELU, whose mean and variance it keeps. */
  ALPHA_DROPOUT
}
