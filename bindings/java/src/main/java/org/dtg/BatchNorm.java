// A layer's options. One thread.

package org.dtg;

/**
 * Batch normalization, as tf.keras.layers.BatchNormalization. Its variables go over the channels: "gamma" (first ones), "beta" (zeros), and
 * "moving_mean" (zeros) and "moving_variance" (ones), which are not trained. Of a 16-bit input they are float32.
 */
public final class BatchNorm {
  String name;
  String weightsOf;
  double momentum;
  double epsilon;
  boolean center = true;
  boolean scale = true;
  Value training;

  /** All defaults. */
  public BatchNorm() {}

  /**
   * Its name.
   *
   * @param name null: "batch_normalization"
   * @return this
   */
  public BatchNorm name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public BatchNorm weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  /**
   * Share of the moving statistics that a step leaves.
   *
   * @param momentum 0: 0.99
   * @return this
   */
  public BatchNorm momentum(double momentum) {
    this.momentum = momentum;
    return this;
  }

  /**
   * What is added to the variance.
   *
   * @param epsilon 0: 0.001
   * @return this
   */
  public BatchNorm epsilon(double epsilon) {
    this.epsilon = epsilon;
    return this;
  }

  /**
   * Whether there is a beta.
   *
   * @param center false for none
   * @return this
   */
  public BatchNorm center(boolean center) {
    this.center = center;
    return this;
  }

  /**
   * Whether there is a gamma.
   *
   * @param scale false for none
   * @return this
   */
  public BatchNorm scale(boolean scale) {
    this.scale = scale;
    return this;
  }

  /**
   * Whether the statistics are those of the batch, which a step of training then moves the moving ones towards.
   *
   * @param training a bool scalar, such as a placeholder; null: always true
   * @return this
   */
  public BatchNorm training(Value training) {
    this.training = training;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).real(momentum).real(epsilon).bool(!center).bool(!scale).integer(Value.id(training)).text(weightsOf);
  }
}
