// The one queue and the one daemon thread that complete all asynchronous runs. They exist while runs are under way, and a moment longer.

package org.dtg;

import java.util.HashMap;
import java.util.Map;

final class CompletionQueue extends Handle implements Runnable {
  private static final int BATCH = 64; // as in native/async.c
  private static final long LINGER_NS = 200_000_000;

  private static final Object GUARD = new Object();
  private static CompletionQueue open;
  private static long lastTag;

  private final Map<Long, RunFuture<?>> waiting = new HashMap<>(); // guarded by GUARD

  private CompletionQueue() {
    super(Kind.CQ, Native.cqCreate());
  }

  /** Starts a run in C and gives its handle. */
  interface Starter {
    long start(long queue, long tag);
  }

  static void start(RunFuture<?> run, Starter starter) {
    CompletionQueue queue;
    long tag;
    synchronized (GUARD) {
      if (open == null) {
        open = new CompletionQueue();
        Thread thread = new Thread(null, open, "dtg-completions", 0, false);
        thread.setDaemon(true);
        thread.start();
      }
      queue = open;
      tag = ++lastTag;
      queue.waiting.put(tag, run);
    }
    long address = queue.hold();
    try {
      run.started(starter.start(address, tag));
    } catch (Throwable e) { // what is wrong before the run starts comes the same way as what fails later
      synchronized (GUARD) {
        queue.waiting.remove(tag);
      }
      run.notStarted(e);
    } finally {
      queue.drop();
    }
  }

  @Override
  public void run() {
    long[] tags = new long[BATCH];
    Throwable[] errors = new Throwable[BATCH];
    long mine = hold();
    try {
      for (; ; ) {
        int count = Native.cqNext(mine, LINGER_NS, tags, errors);
        for (int i = 0; i < count; i++) {
          try {
            end(tags[i], errors[i]);
          } catch (Throwable e) { // the others' ends are to be told
            System.getLogger("org.dtg").log(System.Logger.Level.WARNING, "the end of a run could not be told", e);
          }
          errors[i] = null;
        }
        if (count == 0 && idle()) return;
      }
    } finally {
      drop();
      close();
    }
  }

  private void end(long tag, Throwable error) {
    RunFuture<?> run;
    synchronized (GUARD) {
      run = waiting.remove(tag);
    }
    if (run != null) run.ended(error);
  }

  private boolean idle() {
    synchronized (GUARD) {
      if (!waiting.isEmpty()) return false;
      open = null;
      return true;
    }
  }
}
