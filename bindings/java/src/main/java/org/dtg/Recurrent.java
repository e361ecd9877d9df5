// A layer's options. One thread.

package org.dtg;

/**
 * A recurrent layer, as tf.keras.layers.LSTM, GRU, SimpleRNN and Bidirectional; {@code Recurrent.gru(64).direction(Direction.BOTH)}. Its
 * variables: "kernel" [in, gates * units], first value Glorot uniform; "recurrent_kernel" [units, gates * units], orthogonal; "bias"
 * [gates * units], of a GRU [2, gates * units], zeros. The gates are those of Keras in its order: LSTM input, forget, candidate, output; GRU
 * update, reset, candidate.
 */
public final class Recurrent {
  /** In C's order. */
  private enum Kind {
    LSTM, GRU, SIMPLE
  }

  Kind kind;
  long units;
  String name;
  String weightsOf;
  Direction direction = Direction.FORWARD;
  boolean bias = true;
  boolean forgetBias = true;
  Initializer kernelInit = Initializer.DEFAULT;
  Initializer recurrentInit = Initializer.DEFAULT;
  Initializer biasInit = Initializer.DEFAULT;
  Value lengths;
  Value hidden;
  Value cell;

  private Recurrent(Kind kind, long units) {
    this.kind = kind;
    this.units = units;
  }

  /**
   * Long short-term memory, for float32 and float16.
   *
   * @param units the size of its state, at least 1
   * @return the layer
   */
  public static Recurrent lstm(long units) {
    return new Recurrent(Kind.LSTM, units);
  }

  /**
   * Gated recurrent units, with the reset gate after the product: reset_after of Keras, its default.
   *
   * @param units the size of its state, at least 1
   * @return the layer
   */
  public static Recurrent gru(long units) {
    return new Recurrent(Kind.GRU, units);
  }

  /**
   * h' = tanh(x kernel + h recurrent_kernel + bias).
   *
   * @param units the size of its state, at least 1
   * @return the layer
   */
  public static Recurrent simple(long units) {
    return new Recurrent(Kind.SIMPLE, units);
  }

  /**
   * Its name.
   *
   * @param name null: "lstm", "gru", "simple_rnn"; "bidirectional"
   * @return this
   */
  public Recurrent name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call: siamese nets, unrolled cells.
   *
   * @param layer full name of a layer made before, scopes included: its variables are used; null: new ones are made
   * @return this
   */
  public Recurrent weightsOf(String layer) {
    this.weightsOf = layer;
    return this;
  }

  /**
   * Which way over the steps.
   *
   * @param direction default: forward
   * @return this
   */
  public Recurrent direction(Direction direction) {
    this.direction = direction;
    return this;
  }

  /**
   * Whether there is a bias.
   *
   * @param bias false for none
   * @return this
   */
  public Recurrent bias(boolean bias) {
    this.bias = bias;
    return this;
  }

  /**
   * Whether the bias of an LSTM's forget gate begins at 1.
   *
   * @param forgetBias false: it begins like the others
   * @return this
   */
  public Recurrent forgetBias(boolean forgetBias) {
    this.forgetBias = forgetBias;
    return this;
  }

  /**
   * The kernel's first value.
   *
   * @param kernelInit default: Glorot uniform
   * @return this
   */
  public Recurrent kernelInit(Initializer kernelInit) {
    this.kernelInit = kernelInit;
    return this;
  }

  /**
   * The recurrent kernel's first value.
   *
   * @param recurrentInit default: orthogonal
   * @return this
   */
  public Recurrent recurrentInit(Initializer recurrentInit) {
    this.recurrentInit = recurrentInit;
    return this;
  }

  /**
   * The bias's first value.
   *
   * @param biasInit default: zeros
   * @return this
   */
  public Recurrent biasInit(Initializer biasInit) {
    this.biasInit = biasInit;
    return this;
  }

  /**
   * Steps of each example that count, 0 to all. More is an error of the run.
   *
   * @param lengths int32 or int64 [batch]; null: all
   * @return this
   */
  public Recurrent lengths(Value lengths) {
    this.lengths = lengths;
    return this;
  }

  /**
   * The first state. Not with {@link Direction#BOTH}.
   *
   * @param hidden [batch, units]; null: zeros
   * @return this
   */
  public Recurrent hidden(Value hidden) {
    this.hidden = hidden;
    return this;
  }

  /**
   * The first cell state, of an LSTM. Not with {@link Direction#BOTH}.
   *
   * @param cell [batch, units]; null: zeros
   * @return this
   */
  public Recurrent cell(Value cell) {
    this.cell = cell;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(kind.ordinal()).integer(direction.ordinal()).integer(units).bool(!bias).bool(!forgetBias)
        .initializer(kernelInit).initializer(recurrentInit).initializer(biasInit).integer(Value.id(lengths)).integer(Value.id(hidden))
        .integer(Value.id(cell)).text(weightsOf);
  }
}
