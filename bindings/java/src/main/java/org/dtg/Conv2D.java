// A layer's options. One thread.

package org.dtg;

/** A two-dimensional convolution, as tf.keras.layers.Conv2D, channels last. */
public final class Conv2D {
  String name;
  String weightsOf;
  long filters;
  long kernelHeight;
  long kernelWidth;
  long strideHeight;
  long strideWidth;
  long dilationHeight;
  long dilationWidth;
  Padding padding = Padding.VALID;
  Activation activation = Activation.NONE;
  boolean bias = true;
  Initializer kernelInit = Initializer.DEFAULT;
  Initializer biasInit = Initializer.DEFAULT;

  /**
   * A layer with these output channels.
   *
   * @param filters how many
   */
  public Conv2D(long filters) {
    this.filters = filters;
  }

  /**
   * Its name.
   *
   * @param name null: "conv2d"
   * @return this
   */
  public Conv2D name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Height of the kernel.
   *
   * @param kernelHeight 0: 3
   * @return this
   */
  public Conv2D kernelHeight(long kernelHeight) {
    this.kernelHeight = kernelHeight;
    return this;
  }

  /**
   * Width of the kernel.
   *
   * @param kernelWidth 0: like the height
   * @return this
   */
  public Conv2D kernelWidth(long kernelWidth) {
    this.kernelWidth = kernelWidth;
    return this;
  }

  /**
   * Vertical step.
   *
   * @param strideHeight 0: 1
   * @return this
   */
  public Conv2D strideHeight(long strideHeight) {
    this.strideHeight = strideHeight;
    return this;
  }

  /**
   * Horizontal step.
   *
   * @param strideWidth 0: like the height
   * @return this
   */
  public Conv2D strideWidth(long strideWidth) {
    this.strideWidth = strideWidth;
    return this;
  }

  /**
   * Vertical dilation.
   *
   * @param dilationHeight 0: 1
   * @return this
   */
  public Conv2D dilationHeight(long dilationHeight) {
    this.dilationHeight = dilationHeight;
    return this;
  }

  /**
   * Horizontal dilation.
   *
   * @param dilationWidth 0: like the height
   * @return this
   */
  public Conv2D dilationWidth(long dilationWidth) {
    this.dilationWidth = dilationWidth;
    return this;
  }

  /**
   * What happens at the border.
   *
   * @param padding how
   * @return this
   */
  public Conv2D padding(Padding padding) {
    this.padding = Handle.given(padding, "padding");
    return this;
  }

  /**
   * Its activation.
   *
   * @param activation what the sums go through
   * @return this
   */
  public Conv2D activation(Activation activation) {
    this.activation = Handle.given(activation, "activation");
    return this;
  }

  /**
   * Whether there is a bias.
   *
   * @param bias false for none
   * @return this
   */
  public Conv2D bias(boolean bias) {
    this.bias = bias;
    return this;
  }

  /**
   * The kernel's first value.
   *
   * @param kernelInit default: Glorot uniform
   * @return this
   */
  public Conv2D kernelInit(Initializer kernelInit) {
    this.kernelInit = Handle.given(kernelInit, "kernelInit");
    return this;
  }

  /**
   * The bias's first value.
   *
   * @param biasInit default: zeros
   * @return this
   */
  public Conv2D biasInit(Initializer biasInit) {
    this.biasInit = Handle.given(biasInit, "biasInit");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Conv2D weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(filters).integer(kernelHeight).integer(kernelWidth).integer(strideHeight).integer(strideWidth)
        .integer(dilationHeight).integer(dilationWidth).integer(padding.ordinal()).integer(activation.ordinal()).bool(!bias)
        .initializer(kernelInit).initializer(biasInit).text(weightsOf);
  }
}
