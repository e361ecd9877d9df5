// When the learning rate of a fit falls. One thread.

package org.dtg;

/**
 * Lowers the learning rate of a fit when a value has not got better for some epochs, as tf.keras.callbacks.ReduceLROnPlateau: the rate becomes
 * max(rate * factor, minRate). The optimizer must have a number for a rate. What is not said has the library's default.
 */
public final class Plateau {
  private String monitor;
  private Better better = Better.BY_NAME;
  private double factor;
  private double minDelta;
  private double minRate;
  private long patience;
  private long cooldown;

  /** To a tenth after ten epochs without progress. */
  public Plateau() {}

  /**
   * Which value it watches.
   *
   * @param name "loss", "val_loss", or a metric's with or without "val_"; null: "val_loss" where the fit validates, else "loss"
   * @return this
   */
  public Plateau monitor(String name) {
    this.monitor = Native.notEmpty(name, "monitor");
    return this;
  }

  /**
   * Which way that gets better.
   *
   * @param better the way
   * @return this
   */
  public Plateau better(Better better) {
    this.better = Handle.given(better, "better");
    return this;
  }

  /**
   * What the rate is multiplied with.
   *
   * @param factor between 0 and 1; 0: 0.1
   * @return this
   */
  public Plateau factor(double factor) {
    this.factor = factor;
    return this;
  }

  /**
   * By how much a value must be better to count.
   *
   * @param delta 0: 0.0001; below 0: by any
   * @return this
   */
  public Plateau minDelta(double delta) {
    this.minDelta = delta;
    return this;
  }

  /**
   * What the rate does not fall below.
   *
   * @param rate 0 or more
   * @return this
   */
  public Plateau minRate(double rate) {
    this.minRate = rate;
    return this;
  }

  /**
   * Epochs without progress after which the rate falls.
   *
   * @param epochs 0: 10
   * @return this
   */
  public Plateau patience(long epochs) {
    this.patience = epochs;
    return this;
  }

  /**
   * Epochs after a fall in which none are counted.
   *
   * @param epochs so many
   * @return this
   */
  public Plateau cooldown(long epochs) {
    this.cooldown = epochs;
    return this;
  }

  Packet packet() {
    Packet out = new Packet().text(monitor).integer(better.ordinal()).real(factor).real(minDelta).real(minRate);
    return out.integer(patience).integer(cooldown);
  }
}
