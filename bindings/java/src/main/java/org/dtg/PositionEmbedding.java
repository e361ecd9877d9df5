// A layer's options. One thread.

package org.dtg;

/**
 * Tells attention in which order places stand, as keras_hub's SinePositionEncoding and PositionEmbedding. Variable of a learned one:
 * "embeddings" [longest, width].
 */
public final class PositionEmbedding {
  String name;
  boolean learned;
  double wavelength;
  long longest;
  Value start;
  Initializer table = Initializer.DEFAULT;
  String weightsOf;

  /** All defaults. */
  public PositionEmbedding() {}

  /**
   * Its name, of a learned one.
   *
   * @param name null: "position_embedding"
   * @return this
   */
  public PositionEmbedding name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Whether places have rows that are learned.
   *
   * @param learned false: sin and cos by turns
   * @return this
   */
  public PositionEmbedding learned(boolean learned) {
    this.learned = learned;
    return this;
  }

  /**
   * The longest wavelength of a sine.
   *
   * @param wavelength 0: 10000
   * @return this
   */
  public PositionEmbedding wavelength(double wavelength) {
    this.wavelength = wavelength;
    return this;
  }

  /**
   * Places that a learned one has rows for.
   *
   * @param longest at least 1
   * @return this
   */
  public PositionEmbedding longest(long longest) {
    this.longest = longest;
    return this;
  }

  /**
   * The place of the first step, in decoding.
   *
   * @param start int32 or int64 scalar; null: 0
   * @return this
   */
  public PositionEmbedding start(Value start) {
    this.start = start;
    return this;
  }

  /**
   * The first value of the rows.
   *
   * @param table default: Glorot uniform
   * @return this
   */
  public PositionEmbedding table(Initializer table) {
    this.table = Handle.given(table, "table");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call.
   *
   * @param weightsOf full name of a layer made before, scopes included; null: new ones are made
   * @return this
   */
  public PositionEmbedding weightsOf(String weightsOf) {
    this.weightsOf = weightsOf;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(learned ? 1 : 0).real(wavelength).integer(longest).integer(Value.id(start)).initializer(table).text(weightsOf);
  }
}
