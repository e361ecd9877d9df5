// Optimizers: formulas and their numbers. One thread.

package org.dtg;

import java.util.List;

/** How variables follow their gradients; {@code Optimizer.momentum(0.9).rate(0.05)}. Numbers that are not said have the library's default. */
public final class Optimizer {
  /** In C's order. */
  private enum Kind {
    SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, ADAMW, ADADELTA, ADAMAX, NADAM, FTRL, LION, LAMB, LARS, ADAFACTOR
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
  private boolean uncheckedLoss;
  private boolean lazy;
  private double weightDecay;
  private boolean amsgrad;
  private boolean centered;
  private double l1;
  private double l2;
  private double l2Shrinkage;
  private double ftrlBeta;
  private double ratePower;
  private double trust;
  private double epsilon2;
  private double clipThreshold;
  private double clipValue;
  private double clipEachNorm;
  private List<String> undecayedNames = List.of();
  private List<Variable> undecayed = List.of();
  private List<Variable> variables = List.of();
  private boolean ema;
  private double emaMomentum;
  private long emaOverwriteEvery;
  private long accumulationSteps;
  private long lookaheadSteps;
  private double lookaheadShare;

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
   * Gradient descent.
   *
   * @param rate how far a step goes
   * @return the optimizer
   */
  public static Optimizer sgd(double rate) {
    return sgd().rate(rate);
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
   * v -= rate * decay * v, then Adam.
   *
   * @param decay of every trainable variable; 0: 0.004
   * @return the optimizer
   */
  public static Optimizer adamW(double decay) {
    Optimizer out = new Optimizer(Kind.ADAMW);
    out.weightDecay = decay;
    return out;
  }

  /**
   * Of Adam and AdamW, for gradients that are rows: only the rows that were used move and decay.
   *
   * @param value false: as TensorFlow's Adam, all rows do
   * @return this
   */
  public Optimizer lazy(boolean value) {
    lazy = value;
    return this;
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
   * The rate as a value of the graph, in place of {@link #rate}.
   *
   * @param value a floating-point scalar, such as a placeholder or a schedule
   * @return this
   */
  public Optimizer learningRate(Value value) {
    learningRate = value;
    rate = 0;
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

  /**
   * Lets a loss that is no finite number go into the weights. Otherwise such a step fails with {@link DtgException.InvalidArgument}, names
   * the step, the worker or tower and the first value that is not finite, and changes nothing.
   *
   * @param value true: unchecked
   * @return this
   */
  public Optimizer uncheckedLoss(boolean value) {
    uncheckedLoss = value;
    return this;
  }

  /**
   * Steps as long as those before, by the squares of both.
   *
   * @return the optimizer
   */
  public static Optimizer adadelta() {
    return new Optimizer(Kind.ADADELTA);
  }

  /**
   * Adam with the greatest gradient in place of the mean square.
   *
   * @return the optimizer
   */
  public static Optimizer adamax() {
    return new Optimizer(Kind.ADAMAX);
  }

  /**
   * Adam with Nesterov's momentum.
   *
   * @return the optimizer
   */
  public static Optimizer nadam() {
    return new Optimizer(Kind.NADAM);
  }

  /**
   * Follow the regularized leader, with {@link #l1}, {@link #l2}, {@link #l2Shrinkage}.
   *
   * @return the optimizer
   */
  public static Optimizer ftrl() {
    return new Optimizer(Kind.FTRL);
  }

  /**
   * v -= rate * sign(beta1 * m + (1 - beta1) * g).
   *
   * @return the optimizer
   */
  public static Optimizer lion() {
    return new Optimizer(Kind.LION);
  }

  /**
   * Adam's step times |v| / |step|.
   *
   * @return the optimizer
   */
  public static Optimizer lamb() {
    return new Optimizer(Kind.LAMB);
  }

  /**
   * Squares of gradients by rows and columns only.
   *
   * @return the optimizer
   */
  public static Optimizer adafactor() {
    return new Optimizer(Kind.ADAFACTOR);
  }

  /**
   * Momentum with a rate by |v| / |g|.
   *
   * @param momentum the share of the past that is kept
   * @return the optimizer
   */
  public static Optimizer lars(double momentum) {
    Optimizer out = new Optimizer(Kind.LARS);
    out.momentum = momentum;
    return out;
  }

  /**
   * Share of each variable, times the rate, that goes each step.
   *
   * @param value 0: none, of AdamW 0.004
   * @return this
   */
  public Optimizer weightDecay(double value) {
    weightDecay = value;
    return this;
  }

  /**
   * Of Adam and AdamW: the largest mean square so far divides.
   *
   * @param value true for it
   * @return this
   */
  public Optimizer amsgrad(boolean value) {
    amsgrad = value;
    return this;
  }

  /**
   * Of RMSProp: the variance of the gradient divides.
   *
   * @param value true for it
   * @return this
   */
  public Optimizer centered(boolean value) {
    centered = value;
    return this;
  }

  /**
   * Of FTRL.
   *
   * @param value 0 or more
   * @return this
   */
  public Optimizer l1(double value) {
    l1 = value;
    return this;
  }

  /**
   * Of FTRL.
   *
   * @param value 0 or more
   * @return this
   */
  public Optimizer l2(double value) {
    l2 = value;
    return this;
  }

  /**
   * Of FTRL.
   *
   * @param value 0 or more
   * @return this
   */
  public Optimizer l2Shrinkage(double value) {
    l2Shrinkage = value;
    return this;
  }

  /**
   * Of FTRL.
   *
   * @param value 0 or more
   * @return this
   */
  public Optimizer ftrlBeta(double value) {
    ftrlBeta = value;
    return this;
  }

  /**
   * Of FTRL.
   *
   * @param value below 0; 0: -0.5
   * @return this
   */
  public Optimizer ratePower(double value) {
    ratePower = value;
    return this;
  }

  /**
   * Of LARS.
   *
   * @param value 0: 0.001
   * @return this
   */
  public Optimizer trust(double value) {
    trust = value;
    return this;
  }

  /**
   * Of Adafactor.
   *
   * @param value 0: 0.001
   * @return this
   */
  public Optimizer epsilon2(double value) {
    epsilon2 = value;
    return this;
  }

  /**
   * Of Adafactor.
   *
   * @param value 0: 1
   * @return this
   */
  public Optimizer clipThreshold(double value) {
    clipThreshold = value;
    return this;
  }

  /**
   * Each element of a gradient is cut to it, up and down.
   *
   * @param value 0: never
   * @return this
   */
  public Optimizer clipValue(double value) {
    clipValue = value;
    return this;
  }

  /**
   * Each gradient whose norm is greater is scaled down to it.
   *
   * @param value 0: never
   * @return this
   */
  public Optimizer clipEachNorm(double value) {
    clipEachNorm = value;
    return this;
  }

  /**
   * Variables whose names contain one of these words are exempt from weight decay.
   *
   * @param value words without commas
   * @return this
   */
  public Optimizer undecayedNames(List<String> value) {
    undecayedNames = List.copyOf(value);
    return this;
  }

  /**
   * Variables that are exempt from weight decay too.
   *
   * @param value of the model
   * @return this
   */
  public Optimizer undecayed(List<Variable> value) {
    undecayed = List.copyOf(value);
    return this;
  }

  /**
   * What is trained.
   *
   * @param value of the model; empty: every trainable variable
   * @return this
   */
  public Optimizer variables(List<Variable> value) {
    variables = List.copyOf(value);
    return this;
  }

  /**
   * Keeps a moving mean of each variable v, "v/ExponentialMovingAverage".
   *
   * @param momentum its momentum; 0: 0.99
   * @return this
   */
  public Optimizer ema(double momentum) {
    ema = true;
    emaMomentum = momentum;
    return this;
  }

  /**
   * Of {@link #ema}: steps after which v becomes its mean.
   *
   * @param value 0: never
   * @return this
   */
  public Optimizer emaOverwriteEvery(long value) {
    emaOverwriteEvery = value;
    return this;
  }

  /**
   * Each so manyth step applies the mean of the gradients since.
   *
   * @param value 2 or more; 0: every step
   * @return this
   */
  public Optimizer accumulationSteps(long value) {
    accumulationSteps = value;
    return this;
  }

  /**
   * After so many steps v goes back to its slow copy "v/Slow", which follows it.
   *
   * @param steps 1 or more; 0: never
   * @param share how far the copy goes; 0: 0.5
   * @return this
   */
  public Optimizer lookahead(long steps, double share) {
    lookaheadSteps = steps;
    lookaheadShare = steps == 0 ? 0 : share;
    return this;
  }

  Packet packet() {
    Packet out = new Packet().integer(kind.ordinal()).bool(nesterov).integer(Value.id(learningRate));
    return out.real(rate).real(momentum).real(beta1).real(beta2).real(epsilon).real(decay).real(initialAccumulator).real(clipNorm)
        .bool(uncheckedLoss).bool(lazy).real(weightDecay).bool(amsgrad).bool(centered).real(l1).real(l2).real(l2Shrinkage).real(ftrlBeta)
        .real(ratePower).real(trust).real(epsilon2).real(clipThreshold).real(clipValue).real(clipEachNorm)
        .text(String.join(",", undecayedNames)).integers(handles(undecayed)).integers(handles(variables)).bool(ema).real(emaMomentum)
        .integer(emaOverwriteEvery).integer(accumulationSteps).integer(lookaheadSteps).real(lookaheadShare);
  }

  private static long[] handles(List<Variable> list) {
    return list.stream().mapToLong(each -> Value.id(each.handle())).toArray();
  }

  static Packet packet(Optimizer optimizer) {
    return (optimizer == null ? sgd() : optimizer).packet();
  }
}
