// When a fit ends early. One thread.

package org.dtg;

/** Ends a fit when a value has not got better for some epochs, as tf.keras.callbacks.EarlyStopping; what is not said has the library's default. */
public final class EarlyStopping {
  private String monitor;
  private Better better = Better.BY_NAME;
  private Double baseline;
  private double minDelta;
  private long patience;
  private long startFromEpoch;
  private boolean restoreBest;

  /** After the first epoch without progress of "val_loss", or of "loss" where the fit does not validate. */
  public EarlyStopping() {}

  /**
   * Which value it watches.
   *
   * @param name "loss", "val_loss", or a metric's with or without "val_"; null: "val_loss" where the fit validates, else "loss"
   * @return this
   */
  public EarlyStopping monitor(String name) {
    this.monitor = Native.notEmpty(name, "monitor");
    return this;
  }

  /**
   * Which way that gets better.
   *
   * @param better the way
   * @return this
   */
  public EarlyStopping better(Better better) {
    this.better = Handle.given(better, "better");
    return this;
  }

  /**
   * Patience begins anew only with values that are better than this one too.
   *
   * @param value the value to beat
   * @return this
   */
  public EarlyStopping baseline(double value) {
    this.baseline = value;
    return this;
  }

  /**
   * By how much a value must be better to count.
   *
   * @param delta 0 or more
   * @return this
   */
  public EarlyStopping minDelta(double delta) {
    this.minDelta = delta;
    return this;
  }

  /**
   * Epochs without progress after which the fit ends.
   *
   * @param epochs 0 is as 1
   * @return this
   */
  public EarlyStopping patience(long epochs) {
    this.patience = epochs;
    return this;
  }

  /**
   * How many epochs pass before it looks.
   *
   * @param epochs so many
   * @return this
   */
  public EarlyStopping startFromEpoch(long epochs) {
    this.startFromEpoch = epochs;
    return this;
  }

  /**
   * Whether the weights are those of the best epoch when the fit ends, but by no error. They are kept in memory and in each checkpoint.
   *
   * @param restore false: those of the last step
   * @return this
   */
  public EarlyStopping restoreBest(boolean restore) {
    this.restoreBest = restore;
    return this;
  }

  Packet packet() {
    Packet out = new Packet().text(monitor).integer(better.ordinal()).bool(baseline != null).real(baseline == null ? 0 : baseline);
    return out.real(minDelta).integer(patience).integer(startFromEpoch).bool(restoreBest);
  }
}
