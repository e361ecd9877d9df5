// Settings of coordinators. One thread.

package org.dtg;

import java.time.Duration;

/** Who works for a coordinator, and how long it waits. */
public final class CoordinatorOptions {
  private String job;
  private long queueCapacity;
  private Duration closureTimeout;
  private Duration workerTimeout;
  private Duration serverTimeout;
  private long closureLosses;

  /** All defaults. */
  public CoordinatorOptions() {}

  /**
   * Whose tasks are the workers.
   *
   * @param job null: "worker"
   * @return this
   */
  public CoordinatorOptions job(String job) {
    this.job = job;
    return this;
  }

  /**
   * Closures that may wait before {@link Coordinator#schedule} does.
   *
   * @param closures 0: 262,144
   * @return this
   */
  public CoordinatorOptions queueCapacity(long closures) {
    queueCapacity = closures;
    return this;
  }

  /**
   * The deadline of one attempt at a closure.
   *
   * @param time null: the session's default
   * @return this
   */
  public CoordinatorOptions closureTimeout(Duration time) {
    closureTimeout = time;
    return this;
  }

  /**
   * How long a lost worker is looked for, where no other is left.
   *
   * @param time null: 1 hour
   * @return this
   */
  public CoordinatorOptions workerTimeout(Duration time) {
    workerTimeout = time;
    return this;
  }

  /**
   * How long a task that is no worker is looked for.
   *
   * @param time null: 30 s
   * @return this
   */
  public CoordinatorOptions serverTimeout(Duration time) {
    serverTimeout = time;
    return this;
  }

  /**
   * How many workers may be lost at one closure, one after the other, before it is taken to be the cause.
   *
   * @param workers 0: 3
   * @return this
   */
  public CoordinatorOptions closureLosses(long workers) {
    closureLosses = workers;
    return this;
  }

  Packet packet() {
    return new Packet().text(job).integer(queueCapacity).duration(closureTimeout).duration(workerTimeout).duration(serverTimeout).integer(closureLosses);
  }
}
