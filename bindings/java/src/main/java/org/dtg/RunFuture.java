// Asynchronous runs as futures. Any thread.

package org.dtg;

import java.util.concurrent.CompletableFuture;
import java.util.function.LongFunction;

/** A run that nobody waits for; completed by the thread of CompletionQueue. */
final class RunFuture<T> extends CompletableFuture<T> {
  private static final class Running extends Handle {
    Running(long address) {
      super(Kind.RUN, address);
    }

    void cancel() {
      long mine;
      try {
        mine = hold();
      } catch (DtgException.InvalidArgument e) {
        return; // it has ended
      }
      try {
        Native.runCancel(mine);
      } finally {
        drop();
      }
    }
  }

  private final LongFunction<T> collect;
  private Running running; // guarded by this

  RunFuture(LongFunction<T> collect) {
    this.collect = collect;
  }

  synchronized void started(long address) {
    running = new Running(address);
    notifyAll();
    if (isCancelled()) running.cancel();
  }

  /** The end can be announced before the call that started the run has returned. */
  private synchronized Running awaitStart() {
    boolean interrupted = false;
    while (running == null) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
    return running;
  }

  void ended(Throwable error) {
    try (Running mine = awaitStart()) {
      if (error != null) {
        completeExceptionally(error);
        return;
      }
      long address = mine.hold();
      T result;
      try {
        result = collect.apply(address);
      } catch (RuntimeException e) {
        completeExceptionally(e);
        return;
      } finally {
        mine.drop();
      }
      if (!complete(result) && result instanceof Results unwanted) unwanted.close();
    }
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    Running now;
    synchronized (this) {
      now = running;
    }
    boolean out = super.cancel(mayInterruptIfRunning);
    if (now != null) now.cancel();
    return out;
  }

  @Override
  public <U> CompletableFuture<U> newIncompleteFuture() {
    return new CompletableFuture<>();
  }
}
