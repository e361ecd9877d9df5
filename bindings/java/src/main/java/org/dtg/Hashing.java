// A layer's options. One thread.

package org.dtg;

/** Gives each text or integer a bin by its hash, always the same one, here and in TensorFlow, as tf.keras.layers.Hashing. */
public final class Hashing {
  String name;
  final long numBins;
  Tensor maskValue;
  boolean salted;
  long salt;
  long secondSalt;
  OutputMode outputMode = OutputMode.INT;

  /**
   * With so many bins.
   *
   * @param numBins at least 1
   */
  public Hashing(long numBins) {
    this.numBins = numBins;
  }

  /**
   * Its name.
   *
   * @param name null: "hashing"
   * @return this
   */
  public Hashing name(String name) {
    this.name = name;
    return this;
  }

  /**
   * What has bin 0, which no other value has.
   *
   * @param maskValue a scalar, string or (of integers) int64; null: none
   * @return this
   */
  public Hashing maskValue(Tensor maskValue) {
    this.maskValue = maskValue;
    return this;
  }

  /**
   * Hashes under a key: who does not know it cannot aim at a bin. One number of Keras is twice the same here.
   *
   * @param salt its first half
   * @param secondSalt its second half
   * @return this
   */
  public Hashing salt(long salt, long secondSalt) {
    this.salted = true;
    this.salt = salt;
    this.secondSalt = secondSalt;
    return this;
  }

  /**
   * How the bins come out.
   *
   * @param outputMode default: as they are
   * @return this
   */
  public Hashing outputMode(OutputMode outputMode) {
    this.outputMode = outputMode;
    return this;
  }

  Packet packet(long maskValue) {
    return new Packet().text(name).integer(numBins).integer(maskValue).bool(salted).integer(outputMode.ordinal()).integer(salt).integer(secondSalt);
  }
}
