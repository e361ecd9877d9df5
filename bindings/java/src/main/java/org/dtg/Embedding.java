// A layer's options. One thread.

package org.dtg;

/** A table of rows, as tf.keras.layers.Embedding. */
public final class Embedding {
  String name;
  String weightsOf;
  long rows;
  long width;
  Initializer tableInit = Initializer.DEFAULT;

  /**
   * A table of this size.
   *
   * @param rows how many ids there are
   * @param width elements of a row
   */
  public Embedding(long rows, long width) {
    this.rows = rows;
    this.width = width;
  }

  /**
   * Its name.
   *
   * @param name null: "embedding"
   * @return this
   */
  public Embedding name(String name) {
    this.name = name;
    return this;
  }

  /**
   * The table's first value.
   *
   * @param tableInit default: uniform in [-0.05, 0.05)
   * @return this
   */
  public Embedding tableInit(Initializer tableInit) {
    this.tableInit = Handle.given(tableInit, "tableInit");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Embedding weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(rows).integer(width).initializer(tableInit).text(weightsOf);
  }
}
