// Event writers. One thread at a time.

package org.dtg;

import java.time.Duration;

/** Writes curves that TensorBoard reads. */
public final class EventWriter extends Handle {
  /**
   * As {@link #EventWriter(String)}.
   *
   * @param directory made if need be
   */
  public EventWriter(java.nio.file.Path directory) {
    this(Native.path(directory, "directory"));
  }

  /**
   * A new event file.
   *
   * @param directory where; made if need be. TensorBoard takes a directory for a run
   */
  public EventWriter(String directory) {
    this(directory, null, 0);
  }

  /**
   * As {@link #EventWriter(String, Duration, long)}.
   *
   * @param directory made if need be
   * @param flushEvery how long points may wait; null: the default
   * @param resumedAtStep what was written for later steps by others is hidden; 0: nothing
   */
  public EventWriter(java.nio.file.Path directory, Duration flushEvery, long resumedAtStep) {
    this(Native.path(directory, "directory"), flushEvery, resumedAtStep);
  }

  /**
   * A new event file.
   *
   * @param directory where; made if need be
   * @param flushEvery how long records may wait in memory; null: 2 s
   * @param resumedAtStep of a run that continues from a checkpoint: readers drop what older files say about this step and later ones; 0:
   *     a new run
   */
  public EventWriter(String directory, Duration flushEvery, long resumedAtStep) {
    super(Kind.EVENT_WRITER, Native.writerOpen(Native.utf8(directory), Packet.nanos(flushEvery), resumedAtStep));
  }

  /**
   * One point of a curve.
   *
   * @param tag the curve
   * @param step its place
   * @param value its height
   */
  public void scalar(String tag, long step, double value) {
    long mine = hold();
    try {
      Native.writerScalar(mine, Native.utf8(tag), step, value);
    } finally {
      drop();
    }
  }

  /**
   * The distribution of the finite elements of a float32 tensor, in 30 equal buckets.
   *
   * @param tag the curve
   * @param step its place
   * @param tensor the elements
   */
  public void histogram(String tag, long step, Tensor tensor) {
    long mine = hold();
    try {
      long it = hold(tensor, "tensor");
      try {
        Native.writerHistogram(mine, Native.utf8(tag), step, it);
      } finally {
        tensor.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * A text in Markdown.
   *
   * @param tag its name
   * @param step its place
   * @param markdown the text
   */
  public void text(String tag, long step, String markdown) {
    long mine = hold();
    try {
      Native.writerText(mine, Native.utf8(tag), step, Native.utf8(markdown));
    } finally {
      drop();
    }
  }

  /**
   * Hands what waits in memory to the system.
   */
  public void flush() {
    long mine = hold();
    try {
      Native.writerFlush(mine);
    } finally {
      drop();
    }
  }

  /**
   * Flushes and ends the file; later calls fail. {@link #close} without it flushes too, but cannot say whether that worked.
   */
  public void finish() {
    long mine = hold();
    try {
      Native.writerClose(mine);
    } finally {
      drop();
    }
  }
}
