// Sessions. Any thread.

package org.dtg;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Runs a graph. Any number of runs may be under way at once, from any threads.
 *
 * <pre>{@code
 * try (Session session = Session.connect("local", graph); Results out = session.run().feed(x, batch).fetch(loss).target(train).call()) {
 *   System.out.println(out.get(0).getFloat(0));
 * }
 * }</pre>
 */
public final class Session extends Handle {
  private Session(long address) {
    super(Kind.SESSION, address);
  }

  /**
   * Connects a graph to the devices behind a target.
   *
   * @param target "local" for this process alone, or the address of a task ({@link Server#target})
   * @param graph what to run; it may grow afterwards
   * @return the session
   */
  public static Session connect(String target, Graph graph) {
    return connect(null, target, graph, new SessionOptions());
  }

  /**
   * Connects a graph to the devices behind a target.
   *
   * @param runtime null: the default one
   * @param target "local" for this process alone, or the address of a task
   * @param graph what to run
   * @param options how
   * @return the session
   * @throws DtgException.Unavailable which tasks are missing, where they should be, and the last error of each
   * @throws DtgException.DeadlineExceeded the same, when the time was up first
   * @throws DtgException.Unauthenticated for a wrong key
   */
  public static Session connect(Runtime runtime, String target, Graph graph, SessionOptions options) {
    long at = hold(runtime);
    try {
      long it = graph.hold();
      try {
        return new Session(Native.sessionConnect(at, Native.utf8(target), it, options.packet().bytes()));
      } finally {
        graph.drop();
      }
    } finally {
      drop(runtime);
    }
  }

  /**
   * A run to be described.
   *
   * @return the description, empty
   */
  public Run run() {
    return new Run(this);
  }

  /**
   * Runs targets, without results.
   *
   * @param targets they
   */
  public void run(Value... targets) {
    new Run(this).targets(targets).call().close();
  }

  /**
   * A run with feeds, fetches and targets fixed, for calling many times with as little in between as possible.
   *
   * @param feeds what each call feeds
   * @param fetches what each call fetches
   * @param targets what else runs
   * @return the callable
   */
  public Callable prepare(List<Value> feeds, List<Value> fetches, List<Value> targets) {
    long mine = hold();
    try {
      long[] ask = Run.request(Value.ids(feeds), new long[feeds.size()], Value.ids(fetches), new long[fetches.size()], Value.ids(targets), null);
      return new Callable(Native.sessionPrepare(mine, ask), feeds.size(), fetches.size());
    } finally {
      drop();
    }
  }

  /**
   * Runs targets again and again, one run after the other and without a thread that waits: TensorFlow's queue runner.
   *
   * @param targets they
   * @return never completes well: with {@link DtgException.Cancelled} after {@code cancel} or {@link #stop}, or with what a run died of
   */
  public CompletableFuture<Void> runRepeatedly(Value... targets) {
    long[] ids = Value.ids(targets);
    RunFuture<Void> out = new RunFuture<>(run -> null);
    CompletionQueue.start(out, (queue, tag) -> {
      long mine = hold();
      try {
        return Native.sessionRunRepeatedly(mine, ids, queue, tag);
      } finally {
        drop();
      }
    });
    return out;
  }

  /**
   * Full names of the devices.
   *
   * @return such as "/job:localhost/replica:0/task:0/device:CPU:0"
   */
  public List<String> devices() {
    long mine = hold();
    try {
      return Arrays.stream(Native.sessionDevices(mine)).map(Native::text).toList();
    } finally {
      drop();
    }
  }

  /**
   * Drops variables, queues and accumulators; who waits for them fails.
   *
   * @param containers of these; none named: of the default container
   */
  public void reset(String... containers) {
    long mine = hold();
    try {
      Native.sessionReset(mine, new Packet().plain(List.of(containers)).bytes());
    } finally {
      drop();
    }
  }

  /**
   * Refuses new runs, cancels those under way and waits for their end. {@link #close} alone lets them go on.
   *
   * @param timeout how long; null: the session's default
   * @throws DtgException.DeadlineExceeded when runs have not ended yet
   */
  public void stop(Duration timeout) {
    long mine = hold();
    try {
      Native.sessionStop(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * Ends the job: every task but the session's own is told to stop.
   *
   * @param timeout how long; null: the session's default
   * @throws DtgException.PermissionDenied when this task is not the chief
   */
  public void endJob(Duration timeout) {
    long mine = hold();
    try {
      Native.sessionEndJob(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * What each task of the cluster is doing, asked over the network.
   *
   * @param timeout how long; null: the session's default
   * @return a JSON list; a task that does not answer has "error"
   */
  public String clusterStatus(Duration timeout) {
    long mine = hold();
    try {
      return Native.text(Native.sessionClusterStatus(mine, Packet.nanos(timeout)));
    } finally {
      drop();
    }
  }
}
