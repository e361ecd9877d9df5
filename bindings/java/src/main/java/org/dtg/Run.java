// One run on its way. One thread describes it; what it starts is any thread's.

package org.dtg;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What a run feeds, fetches and runs; {@link #call} waits for its end, {@link #start} does not. */
public final class Run {
  private final Session session;
  private final List<Value> feeds = new ArrayList<>();
  private final List<Tensor> fed = new ArrayList<>();
  private final List<Value> fetches = new ArrayList<>();
  private final List<Tensor> into = new ArrayList<>();
  private final List<Value> targets = new ArrayList<>();
  private Duration timeout;

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
    feeds.add(value);
    fed.add(tensor);
    return this;
  }

  /**
   * Fetches values.
   *
   * @param values they, in the order of the results
   * @return this
   */
  public Run fetch(Value... values) {
    for (Value value : values) fetch(value, null);
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
    fetches.add(value);
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
    targets.addAll(Arrays.asList(values));
    return this;
  }

  /**
   * The deadline.
   *
   * @param time how long the run may take; null: the session's default
   * @return this
   */
  public Run timeout(Duration time) {
    timeout = time;
    return this;
  }

  /** The words that native/session.c reads. */
  static long[] request(long[] feeds, long[] fed, long[] fetches, long[] into, long[] targets, Duration timeout) {
    long[] out = new long[4 + feeds.length + fed.length + fetches.length + into.length + targets.length];
    out[0] = feeds.length;
    out[1] = fetches.length;
    out[2] = targets.length;
    out[3] = Packet.nanos(timeout);
    int at = 4;
    for (long[] part : new long[][] {feeds, fed, fetches, into, targets}) {
      System.arraycopy(part, 0, out, at, part.length);
      at += part.length;
    }
    return out;
  }

  /**
   * Runs on this thread, with the runtime's threads helping.
   *
   * @return the fetched values; close them
   * @throws DtgException.InvalidArgument for an unfed placeholder, a wrong type or shape, nothing asked for
   * @throws DtgException.DeadlineExceeded when the time was up
   */
  public Results call() {
    Tensor[] in = fed.toArray(Tensor[]::new);
    Tensor[] out = into.toArray(Tensor[]::new);
    long mine = session.hold();
    try {
      long[] tensors = Handle.hold(in);
      try {
        long[] written = Handle.hold(out);
        try {
          long[] ask = request(Value.ids(feeds), tensors, Value.ids(fetches), written, Value.ids(targets), timeout);
          Native.sessionRun(mine, ask);
          return Results.of(out, ask, 4 + 2 * in.length + out.length);
        } finally {
          Handle.drop(out);
        }
      } finally {
        Handle.drop(in);
      }
    } finally {
      session.drop();
    }
  }

  /**
   * Starts the run; no thread waits for it. The future completes with the fetched values, to be closed, or with a {@link DtgException},
   * also where the run could not start; {@code cancel} cancels the run itself. What is chained without {@code Async} runs on the one thread that completes
   * all runs, so it must be short.
   *
   * @return the run's end
   */
  public CompletableFuture<Results> start() {
    if (into.stream().anyMatch(tensor -> tensor != null)) {
      return CompletableFuture.failedFuture(
          new DtgException.InvalidArgument("start a run that writes into given tensors: only call() does that; fetch without a tensor"));
    }
    Tensor[] in = fed.toArray(Tensor[]::new);
    int count = fetches.size();
    RunFuture<Results> out = new RunFuture<>(run -> Results.taken(run, count));
    CompletionQueue.start(out, (queue, tag) -> {
      long mine = session.hold();
      try {
        long[] tensors = Handle.hold(in);
        try {
          long[] ask = request(Value.ids(feeds), tensors, Value.ids(fetches), new long[count], Value.ids(targets), timeout);
          return Native.sessionRunAsync(mine, ask, queue, tag);
        } finally {
          Handle.drop(in);
        }
      } finally {
        session.drop();
      }
    });
    return out;
  }

  /**
   * Runs, and gives the first fetched value, a float32 scalar.
   *
   * @return its element
   */
  public float callFloat() {
    try (Results out = call()) {
      return out.get(0).getFloat(0);
    }
  }
}
