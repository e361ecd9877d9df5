// First values of variables. Immutable.

package org.dtg;

/**
 * Where the first value of a variable comes from.
 *
 * @param kind which formula
 * @param a its first number
 * @param b its second number
 */
public record Initializer(Kind kind, double a, double b) {
  /** What the layer would take: Glorot uniform for kernels, zeros for biases. */
  public static final Initializer DEFAULT = new Initializer(Kind.DEFAULT, 0, 0);

  /** Zeros. */
  public static final Initializer ZEROS = new Initializer(Kind.ZEROS, 0, 0);

  /** Ones. */
  public static final Initializer ONES = new Initializer(Kind.ONES, 0, 0);

  /** The formulas, in C's order. */
  public enum Kind {
    /** What the layer would take. */
    DEFAULT,
    /** 0. */
    ZEROS,
    /** 1. */
    ONES,
    /** a. */
    CONSTANT,
    /** In [a, b). */
    UNIFORM,
    /** Mean a, standard deviation b. */
    NORMAL,
    /** The same, cut at two deviations. */
    TRUNCATED_NORMAL,
    /** +-sqrt(6 / (inputs + outputs)). */
    GLOROT_UNIFORM,
    /** Truncated, variance 2 / (inputs + outputs). */
    GLOROT_NORMAL,
    /** +-sqrt(6 / inputs). */
    HE_UNIFORM,
    /** Truncated, variance 2 / inputs. */
    HE_NORMAL,
    /** Rank 2 or more: rows (all dimensions but the last) or columns, the fewer of them, of length 1 and at right angles. */
    ORTHOGONAL
  }

  /**
   * The same value everywhere.
   *
   * @param value it
   * @return the initializer
   */
  public static Initializer constant(double value) {
    return new Initializer(Kind.CONSTANT, value, 0);
  }

  /**
   * Uniform in [from, to).
   *
   * @param from the least
   * @param to just above the greatest
   * @return the initializer
   */
  public static Initializer uniform(double from, double to) {
    return new Initializer(Kind.UNIFORM, from, to);
  }

  /**
   * Normal.
   *
   * @param mean the mean
   * @param deviation the standard deviation
   * @return the initializer
   */
  public static Initializer normal(double mean, double deviation) {
    return new Initializer(Kind.NORMAL, mean, deviation);
  }

  /**
   * A formula that takes no numbers.
   *
   * @param kind which
   * @return the initializer
   */
  public static Initializer of(Kind kind) {
    return new Initializer(kind, 0, 0);
  }
}
