// A layer's options. One thread.

package org.dtg;

/**
 * Gives categories numbers by a vocabulary, as tf.keras.layers.StringLookup and IntegerLookup, in this order: 0 to the mask token, where
 * there is one and the mode is {@link OutputMode#INT}; then {@link #numOovIndices} to what is not in the vocabulary, such as a category that
 * training did not know; then one to each token. So an embedding needs 1 row for the mask token, where there is one, as many as there are
 * indices for what is unknown, and one for each token. The vocabulary becomes part of the graph, and is exported and loaded with it.
 */
public final class Lookup {
  String name;
  final Tensor vocabulary;
  Tensor maskToken;
  Tensor oovToken;
  long numOovIndices;
  boolean noOov;
  boolean invert;
  OutputMode outputMode = OutputMode.INT;

  /**
   * With that vocabulary.
   *
   * @param vocabulary strings or int64 [tokens], at least 1, each once; copied when the layer is made
   */
  public Lookup(Tensor vocabulary) {
    this.vocabulary = vocabulary;
  }

  /**
   * Its name.
   *
   * @param name null: "string_lookup" or "integer_lookup", after the vocabulary
   * @return this
   */
  public Lookup name(String name) {
    this.name = name;
    return this;
  }

  /**
   * What has number 0, such as what fills up sentences.
   *
   * @param maskToken a scalar of the vocabulary's type, which is not in it; null: none
   * @return this
   */
  public Lookup maskToken(Tensor maskToken) {
    this.maskToken = maskToken;
    return this;
  }

  /**
   * What numbers become that no token has, where the layer is inverted.
   *
   * @param oovToken a scalar likewise; null: "[UNK]" or -1
   * @return this
   */
  public Lookup oovToken(Tensor oovToken) {
    this.oovToken = oovToken;
    return this;
  }

  /**
   * Numbers for what is not in the vocabulary: texts are spread over them by FarmHash, integers by their remainder.
   *
   * @param numOovIndices 0: 1
   * @return this
   */
  public Lookup numOovIndices(long numOovIndices) {
    this.numOovIndices = numOovIndices;
    return this;
  }

  /**
   * No number for what is not in the vocabulary: a run with such is an invalid argument and names it.
   *
   * @param noOov default: false
   * @return this
   */
  public Lookup noOov(boolean noOov) {
    this.noOov = noOov;
    return this;
  }

  /**
   * From numbers to tokens.
   *
   * @param invert default: false
   * @return this
   */
  public Lookup invert(boolean invert) {
    this.invert = invert;
    return this;
  }

  /**
   * How the numbers come out.
   *
   * @param outputMode default: as they are
   * @return this
   */
  public Lookup outputMode(OutputMode outputMode) {
    this.outputMode = outputMode;
    return this;
  }

  Packet packet(long[] tensors) {
    return new Packet().text(name).integer(tensors[0]).integer(tensors[1]).integer(tensors[2]).integer(numOovIndices).bool(noOov).bool(invert)
        .integer(outputMode.ordinal());
  }
}
