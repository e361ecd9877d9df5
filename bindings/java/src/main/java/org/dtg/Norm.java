// A layer's options. One thread.

package org.dtg;

/**
 * What normalizes each example by itself, as tf.keras.layers.LayerNormalization, RMSNormalization and GroupNormalization. Its variables:
 * "gamma" and "beta" over the channels; of RMS normalization "scale" alone.
 */
public final class Norm {
  String name;
  String weightsOf;
  double epsilon;
  long groups;
  boolean center = true;
  boolean scale = true;

  /** All defaults. */
  public Norm() {}

  /**
   * Its name.
   *
   * @param name null: "layer_normalization", "rms_normalization", "group_normalization"
   * @return this
   */
  public Norm name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Norm weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  /**
   * What is added to the variance.
   *
   * @param epsilon 0: 0.001; of RMS normalization 0.000001
   * @return this
   */
  public Norm epsilon(double epsilon) {
    this.epsilon = epsilon;
    return this;
  }

  /**
   * Groups of channels, of group normalization.
   *
   * @param groups 0: 32
   * @return this
   */
  public Norm groups(long groups) {
    this.groups = groups;
    return this;
  }

  /**
   * Whether there is a beta.
   *
   * @param center false for none
   * @return this
   */
  public Norm center(boolean center) {
    this.center = center;
    return this;
  }

  /**
   * Whether there is a gamma, or scale.
   *
   * @param scale false for none
   * @return this
   */
  public Norm scale(boolean scale) {
    this.scale = scale;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).real(epsilon).integer(groups).bool(!center).bool(!scale).text(weightsOf);
  }
}
