// A layer's options. One thread.

package org.dtg;

/**
 * Attention with several heads, as tf.keras.layers.MultiHeadAttention. Its variables: "query/kernel" and "key/kernel" [in, heads, key width],
 * "value/kernel" [in, heads, value width], "attention_output/kernel" [heads, value width, output width], and a "bias" beside each.
 */
public final class Attention {
  long heads;
  long keyWidth;
  String name;
  String weightsOf;
  long valueWidth;
  long outputWidth;
  boolean bias = true;
  boolean causal;
  Value key;
  Value mask;
  Value lengths;
  Initializer kernelInit = Initializer.DEFAULT;
  Initializer biasInit = Initializer.DEFAULT;

  /**
   * A layer with these heads.
   *
   * @param heads how many, at least 1
   * @param keyWidth the width of a key, of each head, at least 1
   */
  public Attention(long heads, long keyWidth) {
    this.heads = heads;
    this.keyWidth = keyWidth;
  }

  /**
   * Its name.
   *
   * @param name null: "multi_head_attention"
   * @return this
   */
  public Attention name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Attention weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  /**
   * The width of a value, of each head.
   *
   * @param valueWidth 0: like the key
   * @return this
   */
  public Attention valueWidth(long valueWidth) {
    this.valueWidth = valueWidth;
    return this;
  }

  /**
   * The width of what comes out.
   *
   * @param outputWidth 0: that of the query
   * @return this
   */
  public Attention outputWidth(long outputWidth) {
    this.outputWidth = outputWidth;
    return this;
  }

  /**
   * Whether there are biases.
   *
   * @param bias false for none
   * @return this
   */
  public Attention bias(boolean bias) {
    this.bias = bias;
    return this;
  }

  /**
   * Whether place i of the query sees keys 0 to i only.
   *
   * @param causal false: all
   * @return this
   */
  public Attention causal(boolean causal) {
    this.causal = causal;
    return this;
  }

  /**
   * What the keys are made of.
   *
   * @param key [batch, keys, in]; null: the value
   * @return this
   */
  public Attention key(Value key) {
    this.key = key;
    return this;
  }

  /**
   * What may be seen.
   *
   * @param mask bool [batch, queries, keys], or dimensions of 1 for what is the same for all; null: all
   * @return this
   */
  public Attention mask(Value mask) {
    this.mask = mask;
    return this;
  }

  /**
   * How many keys of each example count.
   *
   * @param lengths int32 or int64 [batch]; null: all
   * @return this
   */
  public Attention lengths(Value lengths) {
    this.lengths = lengths;
    return this;
  }

  /**
   * The first value of the kernels.
   *
   * @param kernelInit default: Glorot uniform
   * @return this
   */
  public Attention kernelInit(Initializer kernelInit) {
    this.kernelInit = Handle.given(kernelInit, "kernelInit");
    return this;
  }

  /**
   * The first value of the biases.
   *
   * @param biasInit default: zeros
   * @return this
   */
  public Attention biasInit(Initializer biasInit) {
    this.biasInit = Handle.given(biasInit, "biasInit");
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(heads).integer(keyWidth).integer(valueWidth).integer(outputWidth).bool(!bias).bool(causal)
        .integer(Value.id(key)).integer(Value.id(mask)).integer(Value.id(lengths)).initializer(kernelInit).initializer(biasInit).text(weightsOf);
  }
}
