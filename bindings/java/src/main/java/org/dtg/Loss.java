// A loss and its settings. One thread.

package org.dtg;

/** A loss of labels y and predictions p, as tf.keras.losses. */
public final class Loss {
  /** Which loss; in the order of C's numbers. Means and sums go over the last dimension. */
  public enum Kind {
    /** Mean (y - p)^2. */
    MEAN_SQUARED_ERROR,
    /** Mean |y - p|. */
    MEAN_ABSOLUTE_ERROR,
    /** 100 mean |y - p| / |y|. */
    MEAN_ABSOLUTE_PERCENTAGE_ERROR,
    /** Mean (log(1 + p) - log(1 + y))^2. */
    MEAN_SQUARED_LOGARITHMIC_ERROR,
    /** Squared up to Delta, straight beyond. */
    HUBER,
    /** Mean log cosh(p - y). */
    LOG_COSH,
    /** -1 for equal directions. */
    COSINE_SIMILARITY,
    /** Sum y log(y / p). */
    KL_DIVERGENCE,
    /** Mean p - y log p. */
    POISSON,
    /** Mean max(1 - y p, 0). */
    HINGE,
    /** Mean max(1 - y p, 0)^2. */
    SQUARED_HINGE,
    /** How far the best wrong class is from one below the right one. */
    CATEGORICAL_HINGE,
    /** Mean -y log p - (1 - y) log(1 - p). */
    BINARY_CROSSENTROPY,
    /** The same, less for what is right. */
    BINARY_FOCAL_CROSSENTROPY,
    /** -sum y log p. */
    CATEGORICAL_CROSSENTROPY,
    /** The same, less for what is right. */
    CATEGORICAL_FOCAL_CROSSENTROPY,
    /** -log p[y]; labels are numbers of classes. */
    SPARSE_CATEGORICAL_CROSSENTROPY,
    /** Labels[batch, length] with zeros at the end, logits[batch, steps, classes], class 0 the blank. */
    CTC,
    /** 1 - 2 sum y p / (sum y + sum p). */
    DICE,
    /** With alpha for what is missed and beta for what is invented. */
    TVERSKY,
    /** Of distances p, y 1 for pairs of a kind. */
    CONTRASTIVE
  }

  /** What becomes of the losses of the examples, times their weights; in the order of C's numbers. */
  public enum Reduction {
    /** Their sum over their number, weights of 0 counted. */
    MEAN,
    /** Their sum. */
    SUM,
    /** Themselves. */
    EACH,
    /** Their sum over that of the weights. */
    MEAN_BY_WEIGHTS
  }

  final Kind kind;
  String name;
  Reduction reduction;
  boolean fromLogits;
  boolean classBalancing;
  boolean perExample;
  Long ignoreClass;
  long axis;
  double labelSmoothing;
  double delta;
  double alpha;
  double beta;
  double gamma;
  double margin;
  Value classWeights;
  Value lengths;
  Value sampleWeights;

  /**
   * One kind with all defaults.
   *
   * @param kind which
   */
  public Loss(Kind kind) {
    if (kind == null) throw new DtgException.InvalidArgument("a loss: kind is null");
    this.kind = kind;
  }

  /**
   * Its name.
   *
   * @param name null: the name of the kind in tf.keras
   * @return this
   */
  public Loss name(String name) {
    this.name = name;
    return this;
  }

  /**
   * What becomes of the losses.
   *
   * @param reduction null: their mean
   * @return this
   */
  public Loss reduction(Reduction reduction) {
    this.reduction = reduction;
    return this;
  }

  /**
   * Of cross entropies: predictions are logits. Nothing overflows, so prefer them.
   *
   * @param fromLogits true for logits
   * @return this
   */
  public Loss fromLogits(boolean fromLogits) {
    this.fromLogits = fromLogits;
    return this;
  }

  /**
   * Of binary focal: weights by alpha.
   *
   * @param classBalancing true for that
   * @return this
   */
  public Loss classBalancing(boolean classBalancing) {
    this.classBalancing = classBalancing;
    return this;
  }

  /**
   * Of dice and tversky: of each example by itself.
   *
   * @param perExample true for that
   * @return this
   */
  public Loss perExample(boolean perExample) {
    this.perExample = perExample;
    return this;
  }

  /**
   * Of sparse: labels that have no loss.
   *
   * @param ignoreClass which class, which may be none; null: none
   * @return this
   */
  public Loss ignoreClass(Long ignoreClass) {
    this.ignoreClass = ignoreClass;
    return this;
  }

  /**
   * The dimension of the classes.
   *
   * @param axis 0: the last
   * @return this
   */
  public Loss axis(long axis) {
    this.axis = axis;
    return this;
  }

  /**
   * Of cross entropies with distributions.
   *
   * @param labelSmoothing the share of each label that goes to all classes alike
   * @return this
   */
  public Loss labelSmoothing(double labelSmoothing) {
    this.labelSmoothing = labelSmoothing;
    return this;
  }

  /**
   * Of huber.
   *
   * @param delta 0: 1
   * @return this
   */
  public Loss delta(double delta) {
    this.delta = delta;
    return this;
  }

  /**
   * Of focal losses and tversky.
   *
   * @param alpha 0: 0.25, of tversky 0.5
   * @return this
   */
  public Loss alpha(double alpha) {
    this.alpha = alpha;
    return this;
  }

  /**
   * Of tversky.
   *
   * @param beta 0: 0.5
   * @return this
   */
  public Loss beta(double beta) {
    this.beta = beta;
    return this;
  }

  /**
   * Of focal losses.
   *
   * @param gamma 0: 2
   * @return this
   */
  public Loss gamma(double gamma) {
    this.gamma = gamma;
    return this;
  }

  /**
   * Of contrastive.
   *
   * @param margin 0: 1
   * @return this
   */
  public Loss margin(double margin) {
    this.margin = margin;
    return this;
  }

  /**
   * What an example of each class counts.
   *
   * @param classWeights [classes]; null: all alike
   * @return this
   */
  public Loss classWeights(Value classWeights) {
    this.classWeights = classWeights;
    return this;
  }

  /**
   * Of CTC: steps of each example that count.
   *
   * @param lengths int32 or int64 [batch]; null: all
   * @return this
   */
  public Loss lengths(Value lengths) {
    this.lengths = lengths;
    return this;
  }

  /**
   * What each example counts. Of metrics, give those of the metric.
   *
   * @param sampleWeights null: all alike
   * @return this
   */
  public Loss sampleWeights(Value sampleWeights) {
    this.sampleWeights = sampleWeights;
    return this;
  }

  Packet packet() {
    Packet made = new Packet().text(name).integer(kind.ordinal()).integer(reduction == null ? 0 : reduction.ordinal()).bool(fromLogits);
    made.bool(classBalancing).bool(perExample).bool(ignoreClass != null).integer(ignoreClass == null ? 0 : ignoreClass).integer(axis);
    made.real(labelSmoothing).real(delta).real(alpha).real(beta).real(gamma).real(margin);
    return made.integer(Value.id(classWeights)).integer(Value.id(lengths));
  }
}
