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
 * try (Session session = Session.connect("local", graph); Results out = session.run().feed(x, batch).fetch(loss).targets(train).call()) {
 *   System.out.println(out.get(0).getFloat(0));
 * }
 * }</pre>
 *
 * <p>{@link #close} ends what is under way with {@link DtgException.Cancelled}, on other threads too, without waiting for it; runs that come
 * later, prepared ones too, throw the same, so a thread that runs in a loop has one thing to catch. (Other methods of a closed session throw
 * {@link IllegalStateException}, as those of everything that is closed.) So close a session after the trainers, coordinators and checkpoints that it was given to. One that is
 * forgotten, and freed after the garbage collector found it, lets its runs go on to their end.
 */
public final class Session extends Handle {
  private final boolean lent; // by a trainer, which works on in it
  private volatile boolean ending; // it is being closed, and refuses runs already

  /** A session that C gave. */
  Session(long address) {
    this(address, false);
  }

  Session(long address, boolean lent) {
    super(Kind.SESSION, address);
    this.lent = lent;
  }

  /**
   * Ends the runs under way with {@link DtgException.Cancelled}, and gives the session up. Does not wait for their end, as {@link #stop} does,
   * and never fails. Of what {@link Trainer#session} gave, nothing is ended: the trainer does that when it is closed.
   */
  @Override
  public void close() {
    if (!lent) endRuns();
    super.close();
  }

  /** For a run. Who closes a session ends its runs, and those that come too late for that hear of it in the same way. */
  long holdForRun() {
    try {
      return hold();
    } catch (IllegalStateException e) {
      throw tooLate();
    }
  }

  /** Refuses a run that comes too late, before anything else is looked at. */
  void mustTakeRuns() {
    if (isClosed()) throw tooLate();
  }

  private DtgException tooLate() {
    return new DtgException.Cancelled("run: " + wasClosed() + "; nothing has run");
  }

  /** What a run is told that C has refused: that its session was being closed, where that is why. */
  DtgException refused(DtgException.FailedPrecondition by) {
    return ending ? tooLate() : by;
  }

  /** Closes a session that was lent. */
  void takeBack() {
    endRuns();
    super.close();
  }

  private void endRuns() {
    ending = true;
    try {
      stop(Duration.ZERO);
    } catch (DtgException | IllegalStateException e) {
      // They were told to end, and will soon; or it was closed before.
    }
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
   * @param options how; null: all defaults
   * @return the session
   * @throws DtgException.Unavailable which tasks are missing, where they should be, and the last error of each
   * @throws DtgException.DeadlineExceeded the same, when the time was up first
   * @throws DtgException.Unauthenticated for a wrong key
   */
  public static Session connect(DtgRuntime runtime, String target, Graph graph, SessionOptions options) {
    long at = hold(runtime);
    try {
      long it = hold(graph, "graph");
      try {
        return new Session(Native.sessionConnect(at, Native.utf8(given(target, "target")), it, (options == null ? new SessionOptions() : options).packet().bytes()));
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
   * A run with feeds, fetches and targets fixed, for calling many times with as little in between as possible. It ends with the session.
   *
   * @param feeds what each call feeds
   * @param fetches what each call fetches
   * @param targets what else runs
   * @return the callable
   */
  public PreparedRun prepare(List<Value> feeds, List<Value> fetches, List<Value> targets) {
    long mine = hold();
    try {
      long[] in = Value.ids(feeds, "feeds");
      long[] out = Value.ids(fetches, "fetches");
      long[] ask = Run.request(in, new long[in.length], out, new long[out.length], Value.ids(targets, "targets"), null, 0);
      return new PreparedRun(this, Native.sessionPrepare(mine, ask), feeds.size(), fetches.size());
    } finally {
      drop();
    }
  }

  /**
   * Runs targets again and again, one run after the other and without a thread that waits: TensorFlow's queue runner.
   *
   * @param targets they
   * @return never completes well: with {@link DtgException.Cancelled} after {@code cancel}, {@link #stop} or {@link #close}, or with what a run died of
   */
  public CompletableFuture<Void> runRepeatedly(Value... targets) {
    long[] ids = Value.ids(targets, "targets");
    RunFuture<Void> out = new RunFuture<>(run -> null);
    CompletionQueue.start(out, (queue, tag) -> {
      long mine = holdForRun();
      try {
        return Native.sessionRunRepeatedly(mine, ids, queue, tag);
      } catch (DtgException.FailedPrecondition e) {
        throw refused(e);
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
      Native.sessionReset(mine, new Packet().plain(all(containers, "containers")).bytes());
    } finally {
      drop();
    }
  }

  /**
   * Refuses new runs, cancels those under way and waits for their end, which {@link #close} does not.
   *
   * @param timeout how long; null: the session's default; zero: no time at all
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
   * Waits until all workers of the job (the tasks of the jobs "chief", "master" and "worker") wait at the barrier of that name, which may be
   * used again when all were let through. A local session is let through at once.
   *
   * @param name of the barrier
   * @param timeout how long; null: the session's default; zero: no time at all
   * @throws DtgException.Unavailable where a worker is gone, which it names
   * @throws DtgException.DeadlineExceeded which names those that have not come
   */
  public void barrier(String name, Duration timeout) {
    long mine = hold();
    try {
      Native.sessionBarrier(mine, Native.utf8(Native.plain(name)), Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * The work of this worker is done: waits until that is so of every worker; then the chief tells every task but its own to stop. A worker
   * that is gone is waited for, for half a minute, as it may be back, and then no more; the chief's log names it. So every worker should call it
   * before it exits, not the chief alone: one that exits without it makes the chief wait for that half minute.
   *
   * @param timeout how long; null: the session's default; zero: no time at all
   * @throws DtgException.DeadlineExceeded which names those that work on, or are lost and may come back; nothing was ended then. {@link
   *     #endJobNow} ends the job without them
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
   * Ends the job at once, whatever the workers are at.
   *
   * @param timeout how long; null: the session's default; zero: no time at all
   * @throws DtgException.PermissionDenied when this task is not the chief
   */
  public void endJobNow(Duration timeout) {
    long mine = hold();
    try {
      Native.sessionEndJobNow(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * Asks the tasks of the cluster what took place of a run of this session. To have all of it done, whatever the answer is, run the same once
   * more with that number.
   *
   * @param write the number that {@link Run#write} gave
   * @param timeout how long; null: the session's default; zero: no time at all
   * @return what is known
   * @throws DtgException.InvalidArgument where the session has made no run of that number
   * @throws DtgException.Unavailable where a task is gone, or the run is still under way there
   * @throws DtgException.Unimplemented where a task runs an earlier release
   */
  public Outcome outcome(long write, Duration timeout) {
    long mine = hold();
    try {
      return Outcome.values()[Native.sessionOutcome(mine, write, Packet.nanos(timeout))];
    } finally {
      drop();
    }
  }

  /**
   * What each task of the cluster is doing, asked over the network.
   *
   * @param timeout how long; null: the session's default; zero: no time at all
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
