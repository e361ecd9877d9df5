// A layer's options. One thread.

package org.dtg;

/**
 * A table whose rows are combined, one row per bag, as tf.nn.safe_embedding_lookup_sparse. Variable: "embeddings" [rows, width].
 */
public final class EmbeddingBag {
  String name;
  long rows;
  long width;
  Combiner combiner = Combiner.MEAN;
  Value lengths;
  Value weights;
  Initializer table = Initializer.DEFAULT;
  String weightsOf;

  /** All defaults. */
  public EmbeddingBag() {}

  /**
   * Its name.
   *
   * @param name null: "embedding_bag"
   * @return this
   */
  public EmbeddingBag name(String name) {
    this.name = name;
    return this;
  }

  /**
   * How many rows the table has.
   *
   * @param rows at least 1
   * @return this
   */
  public EmbeddingBag rows(long rows) {
    this.rows = rows;
    return this;
  }

  /**
   * How long each is.
   *
   * @param width at least 1
   * @return this
   */
  public EmbeddingBag width(long width) {
    this.width = width;
    return this;
  }

  /**
   * What becomes of a bag's rows.
   *
   * @param combiner default: their mean
   * @return this
   */
  public EmbeddingBag combiner(Combiner combiner) {
    this.combiner = Handle.given(combiner, "combiner");
    return this;
  }

  /**
   * How many ids of each bag count.
   *
   * @param lengths int32 or int64 [batch]; null: all
   * @return this
   */
  public EmbeddingBag lengths(Value lengths) {
    this.lengths = lengths;
    return this;
  }

  /**
   * What each row is multiplied by.
   *
   * @param weights float32 [batch, places]; null: 1
   * @return this
   */
  public EmbeddingBag weights(Value weights) {
    this.weights = weights;
    return this;
  }

  /**
   * The first value of the rows.
   *
   * @param table default: uniform in [-0.05, 0.05)
   * @return this
   */
  public EmbeddingBag table(Initializer table) {
    this.table = Handle.given(table, "table");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call.
   *
   * @param weightsOf full name of a layer made before, scopes included; null: new ones are made
   * @return this
   */
  public EmbeddingBag weightsOf(String weightsOf) {
    this.weightsOf = weightsOf;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(rows).integer(width).integer(combiner.ordinal()).integer(Value.id(lengths)).integer(Value.id(weights))
        .initializer(table).text(weightsOf);
  }
}
