// How a runtime is made. One thread.

package org.dtg;

import java.time.Duration;

/** Options of a {@link DtgRuntime}; what is not said has the library's default. */
public final class RuntimeOptions {
  private int computeThreads;
  private boolean pinThreads;
  private Duration spin;
  private long memoryLimit;
  private LogLevel logLevel = LogLevel.WARN;
  LogSink sink;

  /** All defaults. */
  public RuntimeOptions() {}

  /**
   * How many threads compute.
   *
   * @param count 0: one per CPU that this process may use
   * @return this
   */
  public RuntimeOptions computeThreads(int count) {
    computeThreads = count;
    return this;
  }

  /**
   * Whether each thread stays on a CPU of its own.
   *
   * @param pin true to pin them
   * @return this
   */
  public RuntimeOptions pinThreads(boolean pin) {
    pinThreads = pin;
    return this;
  }

  /**
   * How long an idle thread polls before it sleeps.
   *
   * @param time null: 50 microseconds
   * @return this
   */
  public RuntimeOptions spin(Duration time) {
    spin = time;
    return this;
  }

  /**
   * The limit for sizes that come from outside.
   *
   * @param bytes 0: half of the machine's or the cgroup's memory
   * @return this
   */
  public RuntimeOptions memoryLimit(long bytes) {
    memoryLimit = bytes;
    return this;
  }

  /**
   * Where the log goes. Without it warnings and errors go to standard error.
   *
   * @param level the smallest level that is handed over
   * @param to who receives the lines
   * @return this
   */
  public RuntimeOptions log(LogLevel level, LogSink to) {
    logLevel = Handle.given(level, "level");
    sink = to;
    return this;
  }

  byte[] packet() {
    return new Packet().integer(computeThreads).bool(pinThreads).duration(spin).integer(memoryLimit).integer(logLevel.ordinal()).bytes();
  }
}
