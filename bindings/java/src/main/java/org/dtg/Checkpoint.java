// Checkpoints of training. One thread at a time, the one that uses the model and the data sets; waiting and status from any.

package org.dtg;

import java.time.Duration;

/**
 * What training has come to, saved as sets in a directory while it goes on, and going on from them.
 *
 * <pre>{@code
 * Checkpoint sets = new Checkpoint(model, session, "run/checkpoints", new CheckpointOptions().every(500));
 * sets.addData("train", data);
 * for (long step = sets.resume().step(); step < steps; ) {
 *   ... train ...
 *   sets.reached(++step);
 * }
 * }</pre>
 */
public final class Checkpoint extends Handle {
  /**
   * As {@link #Checkpoint(Model, Session, String, CheckpointOptions)}.
   *
   * @param model what is saved
   * @param session where it runs
   * @param directory where the sets lie
   * @param options how; null: all defaults
   */
  public Checkpoint(Model model, Session session, java.nio.file.Path directory, CheckpointOptions options) {
    this(model, session, Native.path(directory, "directory"), options);
  }

  /**
   * Opens checkpoints of a model. Touches no file.
   *
   * @param model whose variables
   * @param session as they are there
   * @param directory of sets; made by the first save
   * @param options when to save; null: all defaults
   */
  public Checkpoint(Model model, Session session, String directory, CheckpointOptions options) {
    super(Kind.CHECKPOINT, open(model, session, directory, options));
  }

  private static long open(Model model, Session session, String directory, CheckpointOptions options) {
    byte[] packet = (options == null ? new CheckpointOptions() : options).packet(directory).bytes();
    long of = hold(model, "model");
    try {
      long in = hold(session, "session");
      try {
        return Native.checkpointOpen(of, in, packet);
      } finally {
        session.drop();
      }
    } finally {
      model.drop();
    }
  }

  /**
   * What became of a restore.
   *
   * @param step how far training is, 0 for a start
   * @param report JSON: outcome, path, step, variables, passed_over, missing, extra, reshaped, notes; {@link RestoreReport#of} reads it
   */
  public record Restored(long step, String report) {}

  /**
   * From now on each set holds where a data set stands, and each restore brings it there. It must have the stages, seeds and sources it
   * had, and get no more transforms.
   *
   * @param name 1 to 64 letters, digits, or any of ._-/
   * @param data the data set
   */
  public void addData(String name, Dataset data) {
    long mine = hold();
    try {
      long it = hold(data, "data");
      try {
        Native.checkpointAddData(mine, Native.utf8(name), it);
      } finally {
        data.drop();
      }
    } finally {
      drop();
    }
  }

  private Restored restored(byte[] set) {
    long mine = hold();
    try {
      long[] step = new long[1];
      String report = Native.text(Native.checkpointRestore(mine, set, step));
      return new Restored(step[0], report);
    } finally {
      drop();
    }
  }

  /**
   * Start, or go on: restores the newest valid set; where there is none, gives the variables their first values. What the session has
   * already stays where it is as far by its count of steps. A damaged set is passed over with a warning.
   *
   * @return how far training is
   * @throws DtgException.FailedPrecondition when variables do not fit, by name, or another process saves there
   * @throws DtgException.DataLoss when no set is whole
   * @throws DtgException.PermissionDenied for who is not the chief
   */
  public Restored resume() {
    return restored(null);
  }

  /**
   * Restores one set, whatever values there are.
   *
   * @param set its name; "" or null: the newest valid one
   * @return how far training was then
   * @throws DtgException.NotFound when there is none
   */
  public Restored restore(String set) {
    return restored(Native.utf8(set == null ? "" : set));
  }

  /**
   * Tells that training is at a step; call it after each. What the disk refuses is no error here: {@link #await} and {@link #status} tell it.
   *
   * <p>Where the model counts its steps itself ({@link Model#globalStep}, which optimizers make), a set is named by that count, and {@link
   * #resume} gives it, here and in {@link #save} and {@link #beginSave}; the step that is given only says whether a save is due by {@link
   * CheckpointOptions#every(long)}.
   *
   * @param step how far
   * @return whether a save was due: its values are taken, and it is being written
   */
  public boolean reached(long step) {
    long mine = hold();
    try {
      return Native.checkpointReached(mine, step);
    } finally {
      drop();
    }
  }

  private void save(long step, Duration timeout, boolean wait) {
    long mine = hold();
    try {
      Native.checkpointSave(mine, step, Packet.nanos(timeout), wait);
    } finally {
      drop();
    }
  }

  /**
   * Saves now and waits until the set is on the disk.
   *
   * @param step how far training is, where the model does not count its steps itself, as in {@link #reached}
   * @param timeout null: 10 minutes; zero: no time at all
   * @throws DtgException.ResourceExhausted when the disk is full; the sets that are there stay
   */
  public void save(long step, Duration timeout) {
    save(step, timeout, true);
  }

  /**
   * The same, but returns as soon as the values are taken.
   *
   * @param step how far training is, where the model does not count
   * @param timeout for a save before that is still being written; null: 10 minutes; zero: no time at all
   */
  public void beginSave(long step, Duration timeout) {
    save(step, timeout, false);
  }

  /**
   * Waits until nothing is being written, and tells what came of the last save.
   *
   * @param timeout null: 10 minutes; zero: no time at all
   */
  public void await(Duration timeout) {
    long mine = hold();
    try {
      Native.checkpointAwait(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * What this object has saved.
   *
   * @return JSON: directory, writing, saves, failures, step, path, failure
   */
  public String status() {
    long mine = hold();
    try {
      return Native.text(Native.checkpointStatus(mine));
    } finally {
      drop();
    }
  }
}
