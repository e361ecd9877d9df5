// A checkpoint's options. One thread.

package org.dtg;

import java.time.Duration;

/** When to save and what to keep; what is not said has the library's default. */
public final class CheckpointOptions {
  private int keep;
  private int shards;
  private long everySteps;
  private Duration every;
  private boolean partial;
  private java.util.Map<String, String> names;

  /** All defaults: nothing is saved unless it is asked for, and three sets are kept. */
  public CheckpointOptions() {}

  /**
   * How many sets to keep, the newest ones.
   *
   * @param keep 0: 3
   * @return this
   */
  public CheckpointOptions keep(int keep) {
    this.keep = keep;
    return this;
  }

  /**
   * Files per set.
   *
   * @param shards 0: as many as make none larger than 1 GiB, about
   * @return this
   */
  public CheckpointOptions shards(int shards) {
    this.shards = shards;
    return this;
  }

  /**
   * At which steps {@link Checkpoint#reached} saves.
   *
   * @param steps each multiple of that, or, while the save before is still written, the first step after it; 0: not by steps
   * @return this
   */
  public CheckpointOptions every(long steps) {
    this.everySteps = steps;
    return this;
  }

  /**
   * And after which time.
   *
   * @param time since the last save; null: not by time
   * @return this
   */
  public CheckpointOptions every(Duration time) {
    this.every = time;
    return this;
  }

  /**
   * Whether a restore takes what fits and tells the rest.
   *
   * @param partial false: whatever does not fit is an error
   * @return this
   */
  public CheckpointOptions partial(boolean partial) {
    this.partial = partial;
    return this;
  }

  /**
   * What restored variables are called in the sets, as in {@link RestoreOptions#names}.
   *
   * @param names from the model's names to the sets'; null: they are the same
   * @return this
   */
  public CheckpointOptions names(java.util.Map<String, String> names) {
    this.names = names;
    return this;
  }

  Packet packet(String directory) {
    return new Packet().text(directory).integer(keep).integer(shards).integer(everySteps).duration(every).bool(partial).text(RestoreOptions.json(names));
  }
}
