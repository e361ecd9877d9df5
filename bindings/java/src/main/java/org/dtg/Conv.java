// A layer's options. One thread.

package org.dtg;

/**
 * A layer of filters for {@link Model#conv1d}, {@link Model#conv3d}, {@link Model#conv2dTranspose}, {@link Model#depthwiseConv2d} and
 * {@link Model#separableConv2d}. Kernels slide along one, two or three dimensions, which is how many of the sizes, strides and dilations
 * count: where fewer are given, the others are like the last of them.
 */
public final class Conv {
  long filters;
  String name;
  String weightsOf;
  long multiplier;
  long[] kernel;
  long[] stride;
  long[] dilation;
  Padding padding = Padding.VALID;
  boolean causal;
  Activation activation = Activation.NONE;
  boolean bias = true;
  Initializer kernelInit = Initializer.DEFAULT;
  Initializer biasInit = Initializer.DEFAULT;

  /**
   * A layer with these output channels.
   *
   * @param filters how many, at least 1; depthwise: not looked at
   */
  public Conv(long filters) {
    this.filters = filters;
  }

  /**
   * Its name.
   *
   * @param name null: after the method, such as "conv1d"
   * @return this
   */
  public Conv name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Conv weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  /**
   * Outputs of each channel, of depthwise and separable ones.
   *
   * @param multiplier 0: 1
   * @return this
   */
  public Conv multiplier(long multiplier) {
    this.multiplier = multiplier;
    return this;
  }

  /**
   * The kernel's size along each dimension.
   *
   * @param sizes default: 3
   * @return this
   */
  public Conv kernel(long... sizes) {
    this.kernel = sizes;
    return this;
  }

  /**
   * Its steps along each dimension.
   *
   * @param steps default: 1
   * @return this
   */
  public Conv stride(long... steps) {
    this.stride = steps;
    return this;
  }

  /**
   * Its dilation along each dimension.
   *
   * @param dilations default: 1
   * @return this
   */
  public Conv dilation(long... dilations) {
    this.dilation = dilations;
    return this;
  }

  /**
   * What happens at the border.
   *
   * @param padding how
   * @return this
   */
  public Conv padding(Padding padding) {
    this.padding = Handle.given(padding, "padding");
    return this;
  }

  /**
   * Of a convolution over steps: zeros before the first step only, so that no output sees a later input.
   *
   * @param causal true: the padding does not count
   * @return this
   */
  public Conv causal(boolean causal) {
    this.causal = causal;
    return this;
  }

  /**
   * Its activation.
   *
   * @param activation what the sums go through
   * @return this
   */
  public Conv activation(Activation activation) {
    this.activation = Handle.given(activation, "activation");
    return this;
  }

  /**
   * Whether there is a bias.
   *
   * @param bias false for none
   * @return this
   */
  public Conv bias(boolean bias) {
    this.bias = bias;
    return this;
  }

  /**
   * The kernel's first value.
   *
   * @param kernelInit default: Glorot uniform
   * @return this
   */
  public Conv kernelInit(Initializer kernelInit) {
    this.kernelInit = Handle.given(kernelInit, "kernelInit");
    return this;
  }

  /**
   * The bias's first value.
   *
   * @param biasInit default: zeros
   * @return this
   */
  public Conv biasInit(Initializer biasInit) {
    this.biasInit = Handle.given(biasInit, "biasInit");
    return this;
  }

  private static void three(Packet to, long[] given, String what) {
    int count = given == null ? 0 : given.length;
    if (count > 3) throw new DtgException.InvalidArgument("a convolution with " + count + " " + what + ": 3 at most, one for each dimension");
    for (int i = 0; i < 3; i++) to.integer(i < count ? given[i] : 0);
  }

  Packet packet() {
    Packet out = new Packet().text(name).integer(filters).integer(multiplier);
    three(out, kernel, "kernel sizes");
    three(out, stride, "strides");
    three(out, dilation, "dilations");
    return out.integer(padding.ordinal()).bool(causal).integer(activation.ordinal()).bool(!bias).initializer(kernelInit)
        .initializer(biasInit).text(weightsOf);
  }
}
