// Prepared runs. Any thread, also several at once.

package org.dtg;

import java.time.Duration;

/** A run with feeds, fetches and targets fixed. Each call is one crossing into C. Not to be used once its session is closed. */
public final class PreparedRun extends Handle {
  private static final long NO_TIME = Packet.nanos(Duration.ZERO);

  private final Session session;
  private final int feeds;
  private final int fetches;
  private volatile long timeoutNs;

  PreparedRun(Session session, long address, int feeds, int fetches) {
    super(Kind.CALLABLE, address);
    this.session = session;
    this.feeds = feeds;
    this.fetches = fetches;
  }

  /**
   * The deadline of each call from now on.
   *
   * @param time null: the session's default; zero: no time is left, nothing runs, {@link DtgException.DeadlineExceeded}
   * @return this
   */
  public PreparedRun timeout(Duration time) {
    timeoutNs = Packet.nanos(time);
    return this;
  }

  /**
   * Runs it.
   *
   * @param tensors one per prepared feed
   * @return the fetched values; close them
   */
  public Results run(Tensor... tensors) {
    return runInto(tensors, new Tensor[fetches]);
  }

  /**
   * Runs it and writes results into tensors that are there.
   *
   * @param tensors one per prepared feed
   * @param into one per prepared fetch, of its type and shape; null entries: a new tensor
   * @return the fetched values; closing it closes the new ones
   */
  public Results runInto(Tensor[] tensors, Tensor[] into) {
    return runInto(tensors, into, null);
  }

  /**
   * The same, until another thread cancels it.
   *
   * @param tensors one per prepared feed
   * @param into one per prepared fetch, of its type and shape; null entries: a new tensor
   * @param cancellation what ends the run; null: nothing but its deadline
   * @return the fetched values; closing it closes the new ones
   * @throws DtgException.Cancelled when it was cancelled, or the session was closed, before or meanwhile
   * @throws IllegalStateException when this was closed
   */
  public Results runInto(Tensor[] tensors, Tensor[] into, Cancellation cancellation) {
    session.mustTakeRuns();
    if (timeoutNs == NO_TIME) throw Run.late();
    long mine = hold();
    try {
      for (int i = 0; i < given(tensors, "tensors").length; i++) given(tensors[i], "tensors[" + i + "]");
      long[] in = hold(tensors);
      try {
        long[] out = hold(given(into, "into"));
        try {
          long until = hold(cancellation);
          try {
            long[] all = new long[in.length + out.length];
            System.arraycopy(in, 0, all, 0, in.length);
            System.arraycopy(out, 0, all, in.length, out.length);
            Native.callableRun(mine, all, in.length, out.length, timeoutNs, until);
            return Results.of(into, all, in.length);
          } finally {
            drop(cancellation);
          }
        } finally {
          drop(into);
        }
      } finally {
        drop(tensors);
      }
    } catch (DtgException.FailedPrecondition e) {
      throw session.refused(e);
    } finally {
      drop();
    }
  }

  /**
   * The cheapest step: at most one feed, and at most one fetch, which is written into a tensor that is there. Allocates nothing.
   *
   * @param tensor the feed; null when none was prepared
   * @param into receives the fetch; null when none was prepared
   */
  public void step(Tensor tensor, Tensor into) {
    if (fetches > 0 && into == null) {
      throw new DtgException.InvalidArgument("step a callable of " + feeds + " feeds and " + fetches + " fetches without a tensor to write into; take run()");
    }
    session.mustTakeRuns();
    if (timeoutNs == NO_TIME) throw Run.late();
    long mine = hold();
    try {
      long in = hold(tensor);
      try {
        long out = hold(into);
        try {
          Native.callableStep(mine, in, out, timeoutNs);
        } finally {
          drop(into);
        }
      } finally {
        drop(tensor);
      }
    } catch (DtgException.FailedPrecondition e) {
      throw session.refused(e);
    } finally {
      drop();
    }
  }
}
