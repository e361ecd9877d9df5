// A layer with its loss, and its options. One thread.

package org.dtg;

/** A last layer for very many classes with its loss, as tf.nn.nce_loss: variables "weights" [classes, width] and "biases" [classes]. */
public final class SampledLoss {
  /** Which of the two; in the order of C's numbers. */
  public enum Kind {
    /** Each class by itself, with the sigmoid. */
    NCE,
    /** Over the true and the sampled classes. */
    SAMPLED_SOFTMAX
  }

  final Kind kind;
  final long classes;
  final long samples;
  String name;
  Loss.Reduction reduction;
  boolean uniform;
  boolean keepHits;
  Initializer weights = Initializer.DEFAULT;
  Initializer biases = Initializer.DEFAULT;
  String weightsOf;
  private Value sampled;
  private Value trueExpected;
  private Value sampledExpected;

  /**
   * All defaults.
   *
   * @param kind which
   * @param classes how many there are
   * @param samples how many are sampled per step
   */
  public SampledLoss(Kind kind, long classes, long samples) {
    if (kind == null) throw new DtgException.InvalidArgument("a sampled loss: kind is null");
    this.kind = kind;
    this.classes = classes;
    this.samples = samples;
  }

  /**
   * Its name.
   *
   * @param name null: "nce" or "sampled_softmax"
   * @return this
   */
  public SampledLoss name(String name) {
    this.name = name;
    return this;
  }

  /**
   * What becomes of the losses.
   *
   * @param reduction MEAN, SUM or EACH; null: the mean
   * @return this
   */
  public SampledLoss reduction(Loss.Reduction reduction) {
    this.reduction = reduction;
    return this;
  }

  /**
   * How classes are drawn.
   *
   * @param uniform true: all alike; false: the first ones are the most frequent
   * @return this
   */
  public SampledLoss uniform(boolean uniform) {
    this.uniform = uniform;
    return this;
  }

  /**
   * Whether sampled classes that are true ones count against the example all the same.
   *
   * @param keepHits true for that
   * @return this
   */
  public SampledLoss keepHits(boolean keepHits) {
    this.keepHits = keepHits;
    return this;
  }

  /**
   * First values of the weights.
   *
   * @param weights Initializer.DEFAULT: Glorot uniform
   * @return this
   */
  public SampledLoss weights(Initializer weights) {
    this.weights = Handle.given(weights, "weights");
    return this;
  }

  /**
   * First values of the biases.
   *
   * @param biases Initializer.DEFAULT: zeros
   * @return this
   */
  public SampledLoss biases(Initializer biases) {
    this.biases = Handle.given(biases, "biases");
    return this;
  }

  /**
   * Calls a layer again with the weights of the first call.
   *
   * @param weightsOf full name of a layer made before, scopes included; null: new ones are made
   * @return this
   */
  public SampledLoss weightsOf(String weightsOf) {
    this.weightsOf = weightsOf;
    return this;
  }

  /**
   * Classes of one's own instead of drawn ones.
   *
   * @param classes int64 [samples]
   * @param ofTrue float32 [batch, trues]: how often each true class was to be expected among them
   * @param ofSampled float32 [samples]: how often each of them was
   * @return this
   */
  public SampledLoss sampled(Value classes, Value ofTrue, Value ofSampled) {
    this.sampled = classes;
    this.trueExpected = ofTrue;
    this.sampledExpected = ofSampled;
    return this;
  }

  Packet packet() {
    Packet made = new Packet().text(name).integer(kind.ordinal()).integer(reduction == null ? 0 : reduction.ordinal()).integer(classes);
    made.integer(samples).bool(uniform).bool(keepHits);
    made.initializer(weights).initializer(biases);
    return made.text(weightsOf).integer(Value.id(sampled)).integer(Value.id(trueExpected)).integer(Value.id(sampledExpected));
  }
}
