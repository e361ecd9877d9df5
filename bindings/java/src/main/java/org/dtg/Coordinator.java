// Coordinators and their closures. Any thread.

package org.dtg;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Gives closures out to the workers of a session's cluster, which are plain servers, one at a time to each. A worker that is lost gives its
 * closure back, another one takes it, and what it changes on parameter servers counts once.
 *
 * <pre>{@code
 * try (Coordinator coordinator = new Coordinator(session, new CoordinatorOptions())) {
 *   Coordinator.Closure step = coordinator.prepare(List.of(x, y), List.of(loss), List.of(train), null);
 *   for (...) last = coordinator.schedule(step, images, labels);
 *   coordinator.join(null);
 *   try (Results results = last.get()) { ... }
 * }
 * }</pre>
 */
public final class Coordinator extends Handle {
  /** A part of the graph that a worker is to run. It belongs to its coordinator. */
  public static final class Closure extends Handle {
    private final int fetches;

    Closure(long address, int fetches) {
      super(Kind.CLOSURE, address);
      this.fetches = fetches;
    }
  }

  /**
   * A coordinator for the workers of the session's cluster. Closing it ends what was scheduled with {@link DtgException.Cancelled}.
   *
   * @param session of a cluster
   * @param options who works, and how long it waits
   * @throws DtgException.FailedPrecondition for a local session, and where nobody would work
   */
  public Coordinator(Session session, CoordinatorOptions options) {
    super(Kind.COORDINATOR, create(given(session, "session"), given(options, "options")));
  }

  private static long create(Session session, CoordinatorOptions options) {
    long mine = session.hold();
    try {
      return Native.coordinatorCreate(mine, options.packet().bytes());
    } finally {
      session.drop();
    }
  }

  /**
   * Says what a closure does.
   *
   * @param feeds what each call feeds
   * @param fetches what comes back
   * @param targets what else runs
   * @param worker an int64 scalar that is fed with the number of the worker that takes the closure; null: none
   * @return the closure
   */
  public Closure prepare(List<Value> feeds, List<Value> fetches, List<Value> targets, Value worker) {
    long mine = hold();
    try {
      return new Closure(Native.coordinatorPrepare(mine, Value.ids(feeds, "feeds"), Value.ids(fetches, "fetches"),
          Value.ids(targets, "targets"), worker == null ? 0 : Value.ids(List.of(worker))[0]), fetches.size());
    } finally {
      drop();
    }
  }

  /**
   * Runs a closure on every worker before its next one, and again on a worker that was started anew. Does not wait.
   *
   * @param closure it
   * @param tensors one per feed
   */
  public void createPerWorker(Closure closure, Tensor... tensors) {
    with(closure, tensors, (mine, what, in) -> {
      Native.coordinatorPerWorker(mine, what, in);
      return 0;
    });
  }

  /**
   * Puts a closure into the queue; waits while that is full.
   *
   * @param closure it
   * @param tensors one per feed, which nobody may write to until it has ended
   * @return what it fetches, to be closed. Cancelling the future does not end the closure: {@link #cancel} ends all of them
   * @throws DtgException of a closure that failed before, once; this one was not scheduled then
   */
  public CompletableFuture<Results> schedule(Closure closure, Tensor... tensors) {
    given(closure, "closure");
    int count = closure.fetches;
    RunFuture<Results> out = new RunFuture<>(Kind.REMOTE_VALUE, value -> Results.owning(Native.remoteValueFetch(value, count)));
    DtgException[] refused = {null};
    CompletionQueue.start(out, (queue, tag) -> {
      try {
        return with(closure, tensors, (mine, what, in) -> Native.coordinatorSchedule(mine, what, in, queue, tag));
      } catch (DtgException e) {
        refused[0] = e;
        throw e;
      }
    });
    if (refused[0] != null) throw refused[0];
    return out;
  }

  /** A call with what it takes held. */
  private interface Call {
    long run(long mine, long closure, long[] tensors);
  }

  private long with(Closure closure, Tensor[] tensors, Call call) {
    for (int i = 0; i < given(tensors, "tensors").length; i++) given(tensors[i], "tensors[" + i + "]");
    long mine = hold();
    try {
      long what = given(closure, "closure").hold();
      try {
        long[] in = hold(tensors);
        try {
          return call.run(mine, what, in);
        } finally {
          drop(tensors);
        }
      } finally {
        closure.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * Waits until all that was scheduled has ended.
   *
   * @param time null: the session's default; zero: it only looks
   * @throws DtgException of the first closure that failed, once; the others have ended with {@link DtgException.Cancelled} then
   * @throws DtgException.DeadlineExceeded when the time was up; it says who is missing
   */
  public void join(Duration time) {
    join(time, null);
  }

  /**
   * The same, until another thread cancels the wait.
   *
   * @param time null: the session's default; zero: it only looks
   * @param cancellation what ends the wait, not the closures; null: nothing
   */
  public void join(Duration time, Cancellation cancellation) {
    long mine = hold();
    try {
      long until = hold(cancellation);
      try {
        Native.coordinatorJoin(mine, Packet.nanos(time), until);
      } finally {
        drop(cancellation);
      }
    } finally {
      drop();
    }
  }

  /**
   * Whether all that was scheduled has ended.
   *
   * @return true when it has
   * @throws DtgException as {@link #join(Duration)}
   */
  public boolean isDone() {
    long mine = hold();
    try {
      return Native.coordinatorDone(mine);
    } finally {
      drop();
    }
  }

  /** Ends all that was scheduled with {@link DtgException.Cancelled}; what it changed stays. Does not wait. */
  public void cancel() {
    long mine = hold();
    try {
      Native.coordinatorCancel(mine);
    } finally {
      drop();
    }
  }

  /**
   * What the coordinator is at.
   *
   * @return JSON
   */
  public String status() {
    long mine = hold();
    try {
      return Native.text(Native.coordinatorStatus(mine));
    } finally {
      drop();
    }
  }
}
