// What a variable is to be. One thread.

package org.dtg;

/** A variable to add by hand. */
public final class VariableSpec {
  String name;
  long[] shape;
  DType dtype = DType.F32;
  boolean trainable = true;
  Initializer initializer = Initializer.DEFAULT;
  boolean onRead;
  Aggregation aggregation = Aggregation.NONE;

  /**
   * A variable of this name and shape.
   *
   * @param name its name; one that is taken gets a number
   * @param shape its dimensions; none: a scalar
   */
  public VariableSpec(String name, long... shape) {
    this.name = name;
    this.shape = shape;
  }

  /**
   * The type of its elements.
   *
   * @param dtype the type
   * @return this
   */
  public VariableSpec dtype(DType dtype) {
    this.dtype = Handle.given(dtype, "dtype");
    return this;
  }

  /**
   * Whether optimizers change it.
   *
   * @param trainable false for counters and the like
   * @return this
   */
  public VariableSpec trainable(boolean trainable) {
    this.trainable = trainable;
    return this;
  }

  /**
   * Its first value.
   *
   * @param initializer default: zeros
   * @return this
   */
  public VariableSpec initializer(Initializer initializer) {
    this.initializer = Handle.given(initializer, "initializer");
    return this;
  }

  /**
   * Of a strategy: each replica writes its own, and who reads it from outside gets them combined; not trainable, and with an aggregation.
   *
   * @return this
   */
  public VariableSpec onRead() {
    this.onRead = true;
    return this;
  }

  /**
   * Of a strategy: how what the replicas give becomes one value.
   *
   * @param aggregation default: NONE
   * @return this
   */
  public VariableSpec aggregation(Aggregation aggregation) {
    this.aggregation = Handle.given(aggregation, "aggregation");
    return this;
  }

  Packet packet() {
    return new Packet()
        .text(name)
        .integer(dtype.number())
        .bool(!trainable)
        .integers(shape)
        .initializer(initializer)
        .bool(onRead)
        .integer(aggregation.ordinal());
  }
}
