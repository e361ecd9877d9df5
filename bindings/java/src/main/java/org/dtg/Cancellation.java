// Ending calls from another thread. Any thread.

package org.dtg;

/**
 * The wish that calls end, for calls that wait on one thread while another one decides. Give it to any number of calls ({@link
 * Run#cancelledBy}, {@link PreparedRun#runInto(Tensor[], Tensor[], Cancellation)}); {@link #cancel} ends them with {@link
 * DtgException.Cancelled}. It is used once: calls that are given it afterwards are refused, so make one per request. Futures need none:
 * {@code cancel} of the future cancels its run.
 *
 * <pre>{@code
 * try (Cancellation stop = new Cancellation()) {
 *   client.onDisconnect(stop::cancel);
 *   try (Results out = session.run().fetch(loss).cancelledBy(stop).call()) { ... }
 * }
 * }</pre>
 */
public final class Cancellation extends Handle {
  /** One that was not used yet. */
  public Cancellation() {
    super(Kind.CANCELLATION, Native.cancellationCreate());
  }

  /** Ends the calls that were given it, soon, unless they end by themselves first. Does not wait for them. Any number of times. */
  public void cancel() {
    long mine = hold();
    try {
      Native.cancellationCancel(mine);
    } finally {
      drop();
    }
  }
}
