// A metric and its settings. One thread.

package org.dtg;

/** A metric of labels y and predictions p over as many batches as one likes, as tf.keras.metrics. */
public final class Metric {
  /** Which metric; in the order of C's numbers. */
  public enum Kind {
    /** Of values, without labels. */
    MEAN,
    /** Of values, without labels. */
    SUM,
    /** The mean of a loss. */
    LOSS,
    /** Mean (y - p)^2. */
    MEAN_SQUARED_ERROR,
    /** Mean |y - p|. */
    MEAN_ABSOLUTE_ERROR,
    /** The root of the mean of (y - p)^2. */
    ROOT_MEAN_SQUARED_ERROR,
    /** Of [batch, outputs]. */
    R2_SCORE,
    /** Binary cross entropy. */
    LOG_LOSS,
    /** How often p is y. */
    ACCURACY,
    /** How often (p &gt; threshold) is y. */
    BINARY_ACCURACY,
    /** How often the greatest p is where the greatest y is. */
    CATEGORICAL_ACCURACY,
    /** How often it is at y. */
    SPARSE_CATEGORICAL_ACCURACY,
    /** How often that is among the k greatest. */
    TOP_K_CATEGORICAL_ACCURACY,
    /** Likewise, y a number of a class. */
    SPARSE_TOP_K_CATEGORICAL_ACCURACY,
    /** The area under a curve. */
    AUC,
    /** True / (true + false positives). */
    PRECISION,
    /** True positives / all that are there. */
    RECALL,
    /** How many. */
    TRUE_POSITIVES,
    /** How many. */
    FALSE_POSITIVES,
    /** How many. */
    TRUE_NEGATIVES,
    /** How many. */
    FALSE_NEGATIVES,
    /** Of [batch, classes]. */
    F1_SCORE,
    /** Of numbers of classes, or scores. */
    MEAN_IOU,
    /** Rows: what is right; columns: what was said. */
    CONFUSION_MATRIX
  }

  /** What an area is under; in the order of C's numbers. */
  public enum Curve {
    /** True positives' rate over false positives'. */
    ROC,
    /** Precision over recall. */
    PR
  }

  /** How the area between two thresholds is taken; in the order of C's numbers. */
  public enum Summation {
    /** Trapezoids. */
    INTERPOLATION,
    /** The lesser side. */
    MINORING,
    /** The greater side. */
    MAJORING
  }

  /** What becomes of one number per class or output; in the order of C's numbers. */
  public enum Average {
    /** That of Keras: none of F1, uniform of R2. */
    DEFAULT,
    /** The numbers themselves. */
    NONE,
    /** Their mean. */
    UNIFORM,
    /** By how many there are, of R2 by variance. */
    WEIGHTED,
    /** Of F1: all classes as one. */
    MICRO
  }

  final Kind kind;
  String name;
  boolean fromLogits;
  double threshold;
  long k;
  long classes;
  long thresholds;
  Curve curve;
  Summation summation;
  Average average;
  Long ignoreClass;
  Loss loss;
  Value sampleWeights;

  /**
   * One kind with all defaults.
   *
   * @param kind which
   */
  public Metric(Kind kind) {
    if (kind == null) throw new DtgException.InvalidArgument("a metric: kind is null");
    this.kind = kind;
  }

  /**
   * Its name.
   *
   * @param name null: the name of the kind in tf.keras
   * @return this
   */
  public Metric name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Of AUC, log loss and kinds with a threshold: predictions are logits.
   *
   * @param fromLogits true for logits
   * @return this
   */
  public Metric fromLogits(boolean fromLogits) {
    this.fromLogits = fromLogits;
    return this;
  }

  /**
   * Above which a prediction says yes; of probabilities, also with {@link #fromLogits}.
   *
   * @param threshold 0: 0.5; of F1: none
   * @return this
   */
  public Metric threshold(double threshold) {
    this.threshold = threshold;
    return this;
  }

  /**
   * Of top k.
   *
   * @param k 0: 5
   * @return this
   */
  public Metric k(long k) {
    this.k = k;
    return this;
  }

  /**
   * Of IoU and the confusion matrix.
   *
   * @param classes how many there are
   * @return this
   */
  public Metric classes(long classes) {
    this.classes = classes;
    return this;
  }

  /**
   * Of AUC.
   *
   * @param thresholds 0: 200
   * @return this
   */
  public Metric thresholds(long thresholds) {
    this.thresholds = thresholds;
    return this;
  }

  /**
   * Of AUC.
   *
   * @param curve null: ROC
   * @return this
   */
  public Metric curve(Curve curve) {
    this.curve = curve;
    return this;
  }

  /**
   * Of AUC.
   *
   * @param summation null: interpolation
   * @return this
   */
  public Metric summation(Summation summation) {
    this.summation = summation;
    return this;
  }

  /**
   * What becomes of one number per class or output.
   *
   * @param average null: that of Keras
   * @return this
   */
  public Metric average(Average average) {
    this.average = average;
    return this;
  }

  /**
   * Of IoU and the confusion matrix: labels that do not count.
   *
   * @param ignoreClass which class; null: none
   * @return this
   */
  public Metric ignoreClass(Long ignoreClass) {
    this.ignoreClass = ignoreClass;
    return this;
  }

  /**
   * Of LOSS.
   *
   * @param loss its reduction is not looked at
   * @return this
   */
  public Metric loss(Loss loss) {
    this.loss = loss;
    return this;
  }

  /**
   * What each example counts.
   *
   * @param sampleWeights null: all alike
   * @return this
   */
  public Metric sampleWeights(Value sampleWeights) {
    this.sampleWeights = sampleWeights;
    return this;
  }

  private static int number(Enum<?> of) {
    return of == null ? 0 : of.ordinal();
  }

  Packet packet() {
    Packet made = new Packet().text(name).integer(kind.ordinal()).bool(fromLogits).real(threshold).integer(k).integer(classes);
    made.integer(thresholds).integer(number(curve)).integer(number(summation)).integer(number(average));
    return made.bool(ignoreClass != null).integer(ignoreClass == null ? 0 : ignoreClass);
  }
}
