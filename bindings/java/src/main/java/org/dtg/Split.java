// How a data set is cut in two. One thread.

package org.dtg;

/** Which rows {@link Dataset#split} holds out; {@code new Split().fraction(0.2).seed(1).stratify(1)}. */
public final class Split {
  private double fraction;
  private long seed;
  private int folds;
  private int fold;
  private int classes = -1;

  /** A fifth of the rows. */
  public Split() {}

  /**
   * The share that is held out.
   *
   * @param fraction between 0 and 1; 0: 0.2
   * @return this
   */
  public Split fraction(double fraction) {
    this.fraction = fraction;
    return this;
  }

  /**
   * What decides which row goes where.
   *
   * @param seed any number
   * @return this
   */
  public Split seed(long seed) {
    this.seed = seed;
    return this;
  }

  /**
   * One of k folds instead of a share: {@link Dataset#split} refuses both.
   *
   * @param folds how many, 2 or more; 0: none
   * @param fold which one is held out, from 0
   * @return this
   */
  public Split fold(int folds, int fold) {
    this.folds = folds;
    this.fold = fold;
    return this;
  }

  /**
   * Cuts each class alike, to a row.
   *
   * @param component of one whole number or bool per row
   * @return this
   */
  public Split stratify(int component) {
    this.classes = component;
    return this;
  }

  Packet packet() {
    return new Packet().real(fraction).integer(seed).integer(folds).integer(fold).bool(classes >= 0).integer(Math.max(0, classes));
  }
}
