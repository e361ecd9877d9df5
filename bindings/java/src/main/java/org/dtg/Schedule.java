// Schedules: formulas of learning rates and their numbers. One thread.

package org.dtg;

/**
 * How a learning rate follows n, the count of steps from 0, as in tf.keras.optimizers.schedules; {@code Schedule.cosineDecay(0.1, 1000).alpha(0.1)}.
 */
public final class Schedule {
  /** In C's order. */
  private enum Kind {
    EXPONENTIAL_DECAY, INVERSE_TIME_DECAY, POLYNOMIAL_DECAY, PIECEWISE_CONSTANT, COSINE_DECAY, COSINE_DECAY_RESTARTS
  }

  private final Kind kind;
  private final double rate;
  private final double steps;
  private boolean staircase;
  private boolean cycle;
  private boolean warmsUp;
  private double decayRate;
  private double endRate;
  private double power;
  private double alpha;
  private double warmupTarget;
  private double warmupSteps;
  private double tMul;
  private double mMul;
  private long[] boundaries = {};
  private double[] values = {};

  private Schedule(Kind kind, double rate, double steps) {
    this.kind = kind;
    this.rate = rate;
    this.steps = steps;
  }

  /**
   * rate * decayRate^(n / steps).
   *
   * @param rate at first
   * @param steps per factor
   * @param decayRate the factor
   * @return the schedule
   */
  public static Schedule exponentialDecay(double rate, double steps, double decayRate) {
    Schedule out = new Schedule(Kind.EXPONENTIAL_DECAY, rate, steps);
    out.decayRate = decayRate;
    return out;
  }

  /**
   * rate / (1 + decayRate * n / steps).
   *
   * @param rate at first
   * @param steps per share
   * @param decayRate the share
   * @return the schedule
   */
  public static Schedule inverseTimeDecay(double rate, double steps, double decayRate) {
    Schedule out = new Schedule(Kind.INVERSE_TIME_DECAY, rate, steps);
    out.decayRate = decayRate;
    return out;
  }

  /**
   * (rate - endRate) * (1 - n / steps)^power + endRate.
   *
   * @param rate at first
   * @param steps until the end
   * @param endRate there
   * @param power 0: 1
   * @param cycle whether it begins again and again
   * @return the schedule
   */
  public static Schedule polynomialDecay(double rate, double steps, double endRate, double power, boolean cycle) {
    Schedule out = new Schedule(Kind.POLYNOMIAL_DECAY, rate, steps);
    out.endRate = endRate;
    out.power = power;
    out.cycle = cycle;
    return out;
  }

  /**
   * values[i] while n is up to boundaries[i], the last one after that.
   *
   * @param boundaries rising
   * @param values one more of them
   * @return the schedule
   */
  public static Schedule piecewiseConstant(long[] boundaries, double[] values) {
    if (Handle.given(values, "values").length != Handle.given(boundaries, "boundaries").length + 1) {
      throw new DtgException.InvalidArgument("schedule: " + boundaries.length + " boundaries need one value more, not " + values.length);
    }
    Schedule out = new Schedule(Kind.PIECEWISE_CONSTANT, 0, 0);
    out.boundaries = boundaries.clone();
    out.values = values.clone();
    return out;
  }

  /**
   * Down along half a cosine.
   *
   * @param rate at first
   * @param steps until the end, without a warm-up
   * @return the schedule
   */
  public static Schedule cosineDecay(double rate, double steps) {
    return new Schedule(Kind.COSINE_DECAY, rate, steps);
  }

  /**
   * The same again and again.
   *
   * @param rate at first
   * @param steps of the first period
   * @param tMul each period is so many times as long as the one before; 0: 2
   * @param mMul and begins at so many times its rate; 0: 1
   * @return the schedule
   */
  public static Schedule cosineDecayRestarts(double rate, double steps, double tMul, double mMul) {
    Schedule out = new Schedule(Kind.COSINE_DECAY_RESTARTS, rate, steps);
    out.tMul = tMul;
    out.mMul = mMul;
    return out;
  }

  /**
   * Of exponentialDecay and inverseTimeDecay: n / steps is rounded down.
   *
   * @param value true for it
   * @return this
   */
  public Schedule staircase(boolean value) {
    staircase = value;
    return this;
  }

  /**
   * Of cosines: the share of the rate that remains.
   *
   * @param value 0: none
   * @return this
   */
  public Schedule alpha(double value) {
    alpha = value;
    return this;
  }

  /**
   * Of cosineDecay: from the rate to a target in a line, and down from there.
   *
   * @param target the rate in the end
   * @param over steps of it
   * @return this
   */
  public Schedule warmup(double target, double over) {
    warmsUp = true;
    warmupTarget = target;
    warmupSteps = over;
    return this;
  }

  Packet packet() {
    return new Packet().integer(kind.ordinal()).bool(staircase).bool(cycle).bool(warmsUp).real(rate).real(steps).real(decayRate).real(endRate)
        .real(power).real(alpha).real(warmupTarget).real(warmupSteps).real(tMul).real(mMul).integers(boundaries).reals(values);
  }
}
