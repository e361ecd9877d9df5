// Asynchronous runs as futures. Any thread.

package org.dtg;

import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongFunction;
import java.util.function.Supplier;

/**
 * A run that nobody waits for. The thread of CompletionQueue hears of its end; it is completed on the thread that waits, or on the common pool.
 * Whoever completes it otherwise, as its timeout does, wants nothing of the run any more, which is cancelled.
 */
final class RunFuture<T> extends CompletableFuture<T> {
  private static final class Running extends Handle {
    private final boolean ends; // a run ends when its future is cancelled; a closure that was scheduled does not

    Running(Kind kind, long address) {
      super(kind, address);
      ends = kind == Kind.RUN;
    }

    void cancel() {
      if (!ends) return;
      long mine;
      try {
        mine = hold();
      } catch (IllegalStateException e) {
        return; // it has ended
      }
      try {
        Native.runCancel(mine);
      } finally {
        drop();
      }
    }
  }

  private final Handle.Kind kind;
  private final LongFunction<T> collect;
  private Running running; // guarded by this, as what follows
  private boolean refused; // it never started
  private boolean unwanted; // somebody else completes it
  private boolean over; // the end is known
  private boolean published;
  private T result;
  private Throwable error;

  RunFuture(LongFunction<T> collect) {
    this(Handle.Kind.RUN, collect);
  }

  RunFuture(Handle.Kind kind, LongFunction<T> collect) {
    this.kind = kind;
    this.collect = collect;
  }

  synchronized void started(long address) {
    running = new Running(kind, address);
    notifyAll();
    if (unwanted) running.cancel();
  }

  void notStarted(Throwable why) {
    synchronized (this) {
      refused = true;
      notifyAll();
    }
    tell(super.completeExceptionally(why));
  }

  /** The end can be announced before the call that started the run has returned. Null: the run was refused after all. */
  private synchronized Running awaitStart() {
    boolean interrupted = false;
    while (running == null && !refused) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
    return running;
  }

  /** On the thread of all runs, which must not wait: what hangs on this future runs elsewhere. */
  void ended(Throwable failed) {
    Running mine = awaitStart();
    if (mine == null) return;
    T value = null;
    Throwable why = failed;
    try (mine) {
      if (why == null) {
        long address = mine.hold();
        try {
          value = collect.apply(address);
        } finally {
          mine.drop();
        }
      }
    } catch (Throwable e) {
      why = e;
    }
    synchronized (this) {
      over = true;
      result = value;
      error = why;
      notifyAll();
    }
    ForkJoinPool.commonPool().execute(this::publish);
  }

  /** Completes the future with the end, which is known; the first to come does, unless somebody else completes it. */
  private void publish() {
    T value;
    Throwable why;
    boolean wanted;
    synchronized (this) {
      if (!over || published) return;
      published = true;
      value = result;
      why = error;
      wanted = !unwanted;
      result = null;
    }
    boolean told = wanted && tell(why == null ? super.complete(value) : super.completeExceptionally(why));
    if (!told && value instanceof Results results) results.close();
  }

  /** Waits on this thread, and publishes on it, without a third one between, unless somebody else does. Zero: for ever. */
  private void await(long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    while (!isDone()) {
      publish();
      synchronized (this) {
        if (isDone() || (over && !published)) continue;
        long left = nanos == 0 ? 0 : end - System.nanoTime();
        if (nanos != 0 && left <= 0) return;
        wait(left / 1_000_000, (int) (left % 1_000_000)); // for the end, or for who publishes it
      }
    }
  }

  @Override
  public T get() throws InterruptedException, ExecutionException {
    if (!isDone()) await(0);
    return super.get();
  }

  @Override
  public T get(long time, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
    if (!isDone() && time > 0) await(unit.toNanos(time));
    return super.get(Math.max(time > 0 ? 1 : time, isDone() ? 1 : 0), TimeUnit.NANOSECONDS);
  }

  @Override
  public T join() {
    boolean interrupted = false;
    while (!isDone()) {
      try {
        await(0);
        break;
      } catch (InterruptedException e) { // join cannot be interrupted
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
    return super.join();
  }

  private synchronized boolean tell(boolean changed) {
    notifyAll(); // who waits here looks whether it is done
    return changed;
  }

  /** Whoever calls this completes the future next. First the run ends, as what hangs on the future may take long. */
  private void giveUp() {
    Running now;
    synchronized (this) {
      unwanted = true;
      now = running;
    }
    if (now != null) now.cancel();
  }

  @Override
  public boolean complete(T value) {
    giveUp();
    return tell(super.complete(value));
  }

  @Override
  public boolean completeExceptionally(Throwable why) {
    Objects.requireNonNull(why);
    giveUp();
    return tell(super.completeExceptionally(why));
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    giveUp();
    return tell(super.cancel(mayInterruptIfRunning));
  }

  @Override
  public CompletableFuture<T> completeAsync(Supplier<? extends T> supplier, Executor executor) {
    Objects.requireNonNull(supplier);
    executor.execute(() -> {
      if (isDone()) return;
      try {
        complete(supplier.get());
      } catch (Throwable e) {
        completeExceptionally(e);
      }
    });
    return this;
  }

  @Override
  public void obtrudeValue(T value) {
    giveUp();
    super.obtrudeValue(value);
    tell(true);
  }

  @Override
  public void obtrudeException(Throwable why) {
    Objects.requireNonNull(why);
    giveUp();
    super.obtrudeException(why);
    tell(true);
  }

  @Override
  public <U> CompletableFuture<U> newIncompleteFuture() {
    return new CompletableFuture<>();
  }
}
