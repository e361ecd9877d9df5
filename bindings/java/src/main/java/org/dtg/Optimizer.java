// Optimizers: formulas and their numbers. One thread.

package org.dtg;

/** How variables follow their gradients; {@code Optimizer.momentum(0.9).rate(0.05)}. Numbers that are not said have the library's default. */
public final class Optimizer {
  /** In C's order. */
  private enum Kind {
    SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP
  }

  private final Kind kind;
  private boolean nesterov;
  private Value learningRate;
  private double rate;
  private double momentum;
  private double beta1;
  private double beta2;
  private double epsilon;
  private double decay;
  private double initialAccumulator;
  private double clipNorm;

  private Optimizer(Kind kind) {
    this.kind = kind;
  }

  /**
   * v -= rate * g.
   *
   * @return the optimizer
   */
  public static Optimizer sgd() {
    return new Optimizer(Kind.SGD);
  }

  /**
   * a = momentum * a + g; v -= rate * a.
   *
   * @param momentum the share of the past that is kept
   * @return the optimizer
   */
  public static Optimizer momentum(double momentum) {
    Optimizer out = new Optimizer(Kind.MOMENTUM);
    out.momentum = momentum;
    return out;
  }

  /**
   * Adam: moving means of g and of its square.
   *
   * @return the optimizer
   */
  public static Optimizer adam() {
    return new Optimizer(Kind.ADAM);
  }

  /**
   * a += g * g; v -= rate * g / sqrt(a).
   *
   * @return the optimizer
   */
  public static Optimizer adagrad() {
    return new Optimizer(Kind.ADAGRAD);
  }

  /**
   * A moving mean of the square of g, and momentum.
   *
   * @param momentum the share of the past that is kept; 0: none
   * @return the optimizer
   */
  public static Optimizer rmsprop(double momentum) {
    Optimizer out = new Optimizer(Kind.RMSPROP);
    out.momentum = momentum;
    return out;
  }

  /**
   * Nesterov's momentum: v -= rate * (g + momentum * a).
   *
   * @param how true for it
   * @return this
   */
  public Optimizer nesterov(boolean how) {
    nesterov = how;
    return this;
  }

  /**
   * The rate as a value of the graph.
   *
   * @param value a floating-point scalar, such as a placeholder or a schedule
   * @return this
   */
  public Optimizer learningRate(Value value) {
    learningRate = value;
    return this;
  }

  /**
   * How far a step goes.
   *
   * @param value 0: 0.01
   * @return this
   */
  public Optimizer rate(double value) {
    rate = value;
    return this;
  }

  /**
   * Of Adam.
   *
   * @param value 0: 0.9
   * @return this
   */
  public Optimizer beta1(double value) {
    beta1 = value;
    return this;
  }

  /**
   * Of Adam.
   *
   * @param value 0: 0.999
   * @return this
   */
  public Optimizer beta2(double value) {
    beta2 = value;
    return this;
  }

  /**
   * Keeps quotients finite.
   *
   * @param value 0: 1e-8
   * @return this
   */
  public Optimizer epsilon(double value) {
    epsilon = value;
    return this;
  }

  /**
   * Of RMSProp.
   *
   * @param value 0: 0.9
   * @return this
   */
  public Optimizer decay(double value) {
    decay = value;
    return this;
  }

  /**
   * Of Adagrad.
   *
   * @param value 0: 0.1
   * @return this
   */
  public Optimizer initialAccumulator(double value) {
    initialAccumulator = value;
    return this;
  }

  /**
   * Gradients whose norm over all variables is greater are scaled down to it.
   *
   * @param value 0: never
   * @return this
   */
  public Optimizer clipNorm(double value) {
    clipNorm = value;
    return this;
  }

  Packet packet() {
    Packet out = new Packet().integer(kind.ordinal()).bool(nesterov).integer(Value.id(learningRate));
    return out.real(rate).real(momentum).real(beta1).real(beta2).real(epsilon).real(decay).real(initialAccumulator).real(clipNorm);
  }

  static Packet packet(Optimizer optimizer) {
    return (optimizer == null ? sgd() : optimizer).packet();
  }
}
