// One run on its way. One thread describes it; what it starts is any thread's.

package org.dtg;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;

/** What a run feeds, fetches and runs; {@link #call} waits for its end, {@link #start} does not. */
public final class Run {
  private final Session session;
  private final List<Value> feeds = new ArrayList<>();
  private final List<Tensor> fed = new ArrayList<>();
  private final List<Value> fetches = new ArrayList<>();
  private final List<Tensor> into = new ArrayList<>();
  private final List<Value> targets = new ArrayList<>();
  private Duration timeout;
  private Cancellation cancellation;
  private AtomicLong write;

  Run(Session session) {
    this.session = session;
  }

  /**
   * Feeds a value, which cuts what would compute it.
   *
   * @param value any value
   * @param tensor what it is; do not write to it until the run has ended
   * @return this
   */
  public Run feed(Value value, Tensor tensor) {
    feeds.add(Handle.given(value, "feed(value, tensor): value"));
    fed.add(Handle.given(tensor, "feed(value, tensor): tensor"));
    return this;
  }

  /**
   * Fetches values.
   *
   * @param values they, in the order of the results
   * @return this
   */
  public Run fetch(Value... values) {
    for (Value value : Handle.given(values, "fetch(values): values")) fetch(value, null);
    return this;
  }

  /**
   * Fetches a value into a tensor that is there.
   *
   * @param value it
   * @param tensor of its type and shape; it becomes the result and stays the caller's. Not with {@link #start}
   * @return this
   */
  public Run fetch(Value value, Tensor tensor) {
    fetches.add(Handle.given(value, "fetch(value): value"));
    into.add(tensor);
    return this;
  }

  /**
   * Nodes that only run.
   *
   * @param values they
   * @return this
   */
  public Run targets(Value... values) {
    for (Value value : Handle.given(values, "targets(values): values")) targets.add(Handle.given(value, "targets(values): a value"));
    return this;
  }

  /**
   * The deadline.
   *
   * @param time how long the run may take; null: the session's default; zero: no time is left,
   *     nothing runs, {@link DtgException.DeadlineExceeded}
   * @return this
   */
  public Run timeout(Duration time) {
    timeout = time;
    return this;
  }

  /**
   * What ends the run when another thread cancels it.
   *
   * @param by it; null: nothing. Not with {@link #start}, whose future cancels the run
   * @return this
   */
  public Run cancelledBy(Cancellation by) {
    cancellation = by;
    return this;
  }

  /**
   * Asks for the number by which the cluster knows what the run updates: {@link Session#outcome} asks by it what took place. Where a number
   * is given, the run repeats that earlier one of the session, and what took place of it is not made again:
   *
   * <pre>{@code
   * AtomicLong number = new AtomicLong();
   * for (;;) { // the step is made once, however often it is tried
   *   try (Results none = session.run().targets(train).write(number).call()) {
   *     break;
   *   } catch (DtgException.Unavailable e) {
   *     Thread.sleep(1000);
   *   }
   * }
   * }</pre>
   *
   * <p>Only runs that update variables of other tasks, and nothing of their own, can be repeated; one that puts into a queue or an
   * accumulator, or fetches what an update gives, is then refused with {@link DtgException.FailedPrecondition}. A number that the session
   * has not made is {@link DtgException.InvalidArgument}.
   *
   * @param number 0: receives the number, also where the run fails; by {@link #start}, before that returns. Not 0: the run to be repeated.
   *     null: nobody asks
   * @return this
   */
  public Run write(AtomicLong number) {
    write = number;
    return this;
  }

  /** A brief run can end before anybody looks at the clock; without any time it does not begin. */
  static DtgException late() {
    return new DtgException.DeadlineExceeded("run: its timeout is zero, so no time is left; nothing has run");
  }

  private static final int WRITE = 6; // the word of the number
  private static final int HEAD = 7; // words in front of the lists

  /** The words that native/session.c reads. */
  static long[] request(long[] feeds, long[] fed, long[] fetches, long[] into, long[] targets, Duration timeout, long cancellation) {
    long[] out = new long[HEAD + feeds.length + fed.length + fetches.length + into.length + targets.length];
    out[0] = feeds.length;
    out[1] = fetches.length;
    out[2] = targets.length;
    out[3] = Packet.nanos(timeout);
    out[4] = cancellation;
    int at = HEAD;
    for (long[] part : new long[][] {feeds, fed, fetches, into, targets}) {
      System.arraycopy(part, 0, out, at, part.length);
      at += part.length;
    }
    return out;
  }

  /** A crossing with these words; false: nothing has run. */
  private interface Crossing {
    boolean run(long session, long[] ask);
  }

  /** The words of a run whose number may have been asked for. */
  private long[] ask(long[] fed, long[] into, long cancellation) {
    long[] out = request(Value.ids(feeds), fed, Value.ids(fetches), into, Value.ids(targets), timeout, cancellation);
    if (write != null) {
      out[WRITE - 1] = 1;
      out[WRITE] = write.get();
    }
    return out;
  }

  /** Tells the number, which is there also where the run has failed. */
  private void tell(long[] ask) {
    if (write != null) write.set(ask[WRITE]);
  }

  /** The results, or null where the crossing says that nothing has run. */
  private Results cross(Tensor[] out, Crossing crossing) {
    if (timeout != null && timeout.isZero()) throw late();
    Tensor[] in = fed.toArray(Tensor[]::new);
    long mine = session.holdForRun();
    try {
      long[] tensors = Handle.hold(in);
      try {
        long[] written = Handle.hold(out);
        try {
          long until = Handle.hold(cancellation);
          try {
            long[] ask = ask(tensors, written, until);
            try {
              return crossing.run(mine, ask) ? Results.of(out, ask, HEAD + 2 * in.length + out.length) : null;
            } finally {
              tell(ask);
            }
          } finally {
            Handle.drop(cancellation);
          }
        } finally {
          Handle.drop(out);
        }
      } finally {
        Handle.drop(in);
      }
    } catch (DtgException.FailedPrecondition e) {
      throw session.refused(e);
    } finally {
      session.drop();
    }
  }

  /**
   * Runs on this thread, with the runtime's threads helping. {@link Thread#interrupt} does not end it, and the thread stays interrupted
   * until it returns: a deadline ({@link #timeout}) does, or another thread, by {@link #cancelledBy}.
   *
   * @return the fetched values; close them
   * @throws DtgException.InvalidArgument for an unfed placeholder, a wrong type or shape, nothing asked for
   * @throws DtgException.DeadlineExceeded when the time was up
   * @throws DtgException.Cancelled when it was cancelled, or the session was closed, before or meanwhile
   */
  public Results call() {
    return cross(into.toArray(Tensor[]::new), (mine, ask) -> {
      Native.sessionRun(mine, ask);
      return true;
    });
  }

  /**
   * Starts the run; no thread waits for it. The future completes with the fetched values, to be closed, or with a {@link DtgException},
   * also where the run could not start. Whatever else completes it ends the run: {@code cancel}, {@code orTimeout}, {@code
   * completeOnTimeout}, {@code complete}. To complete a future that was chained to it does not.
   *
   * <p>A run that waits for nobody and takes no more than some ten microseconds, as such runs did before, is made at once on this thread,
   * and the future is complete: to hand it over and to be woken again would take ten times as long. Of another one, what is chained
   * without {@code Async} runs on the common pool, or on a thread that waits for the future.
   *
   * @return the run's end
   */
  public CompletableFuture<Results> start() {
    if (into.stream().anyMatch(tensor -> tensor != null)) {
      return CompletableFuture.failedFuture(
          new DtgException.InvalidArgument("start a run that writes into given tensors: only call() does that; fetch without a tensor"));
    }
    if (cancellation != null) {
      return CompletableFuture.failedFuture(
          new DtgException.InvalidArgument("start a run with a cancellation: only call() takes one; cancel the future instead"));
    }
    try {
      Results now = cross(new Tensor[fetches.size()], Native::sessionRunIfBrief);
      return now == null ? startLong() : CompletableFuture.completedFuture(now);
    } catch (Throwable e) { // comes the same way, whether it is found before the run or in it
      return CompletableFuture.failedFuture(e);
    }
  }

  private CompletableFuture<Results> startLong() {
    int count = fetches.size();
    return startLong(run -> Results.taken(run, count));
  }

  /** `collect` takes the results of the run, by its address, when it has ended well. */
  CompletableFuture<Results> startLong(LongFunction<Results> collect) {
    Tensor[] in = fed.toArray(Tensor[]::new);
    int count = fetches.size();
    RunFuture<Results> out = new RunFuture<>(collect);
    CompletionQueue.start(out, (queue, tag) -> {
      long mine = session.holdForRun();
      try {
        long[] tensors = Handle.hold(in);
        try {
          long[] ask = ask(tensors, new long[count], 0);
          try {
            return Native.sessionRunAsync(mine, ask, queue, tag);
          } finally {
            tell(ask);
          }
        } finally {
          Handle.drop(in);
        }
      } catch (DtgException.FailedPrecondition e) {
        throw session.refused(e);
      } finally {
        session.drop();
      }
    });
    return out;
  }

  /**
   * Runs, and gives the first fetched value: a float32 scalar, or a float32 tensor of just one element.
   *
   * @return its element
   * @throws DtgException.InvalidArgument as {@link #call}; also where nothing is fetched, or what is fetched first has another type or
   *     another number of elements. Nothing has run then if the graph shows it already
   */
  public float callFloat() {
    if (fetches.isEmpty()) throw new DtgException.InvalidArgument("callFloat: nothing is fetched; say what, by fetch(value), or take call()");
    Value first = fetches.get(0);
    foresee(first);
    try (Results out = call()) {
      Tensor found = out.get(0);
      one(first, found.dtype(), found.shape());
      return found.getFloat(0);
    }
  }

  /** Refuses what the graph knows to be no single float. */
  private static void foresee(Value value) {
    DType dtype;
    long[] shape;
    try {
      dtype = value.dtype();
      shape = value.shape();
    } catch (IllegalStateException e) {
      return; // the graph was closed; the session runs it all the same, and what comes out is looked at
    }
    boolean open = shape == null || Arrays.stream(shape).anyMatch(dim -> dim < 0);
    if (!open || dtype != DType.F32) one(value, dtype, shape);
  }

  private static void one(Value value, DType dtype, long[] shape) {
    long count = shape == null ? 1 : Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    if (dtype == DType.F32 && count == 1) return;
    String found = dtype == DType.F32 ? "it has " + count + " elements" : "its elements are " + dtype.label();
    throw new DtgException.InvalidArgument("callFloat of " + value + ", " + new Dataset.Component(dtype, shape) + ": one float32 is asked for, and "
        + found + "; take call() and read the tensor");
  }
}
