// A layer's options. One thread.

package org.dtg;

/** A fully connected layer: activation(x * kernel + bias), as tf.keras.layers.Dense. */
public final class Dense {
  String name;
  String weightsOf;
  long units;
  Activation activation = Activation.NONE;
  boolean bias = true;
  Initializer kernelInit = Initializer.DEFAULT;
  Initializer biasInit = Initializer.DEFAULT;

  /**
   * A layer with these outputs.
   *
   * @param units how many
   */
  public Dense(long units) {
    this.units = units;
  }

  /**
   * Its name.
   *
   * @param name null: "dense"; a second one becomes "dense_1"
   * @return this
   */
  public Dense name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Its activation.
   *
   * @param activation what the sums go through
   * @return this
   */
  public Dense activation(Activation activation) {
    this.activation = Handle.given(activation, "activation");
    return this;
  }

  /**
   * Whether there is a bias.
   *
   * @param bias false for none
   * @return this
   */
  public Dense bias(boolean bias) {
    this.bias = bias;
    return this;
  }

  /**
   * The kernel's first value.
   *
   * @param kernelInit default: Glorot uniform
   * @return this
   */
  public Dense kernelInit(Initializer kernelInit) {
    this.kernelInit = Handle.given(kernelInit, "kernelInit");
    return this;
  }

  /**
   * The bias's first value.
   *
   * @param biasInit default: zeros
   * @return this
   */
  public Dense biasInit(Initializer biasInit) {
    this.biasInit = Handle.given(biasInit, "biasInit");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Dense weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(units).integer(activation.ordinal()).bool(!bias).initializer(kernelInit).initializer(biasInit).text(weightsOf);
  }
}
