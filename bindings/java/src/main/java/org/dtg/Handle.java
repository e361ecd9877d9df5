// The base of everything native: counts uses, so that a close outlives the calls that run, and has a Cleaner as its net. Any thread.

package org.dtg;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.LongFunction;

/**
 * A native object. Close it when it is not needed any more: a {@code close} while another thread is inside a call on the object takes
 * effect when that call has ended (that of a {@link Session} ends it), later calls throw {@link IllegalStateException}, a second {@code close} does nothing.
 *
 * <p>An object that is never closed is freed after the garbage collector found it, and named in the log of {@code org.dtg} with the place
 * where it was made: of each place the first, the tenth, the hundredth and so on, with their number. The system property {@code org.dtg.leak} decides how closely that is watched: {@code warn} (the default), {@code trace}
 * (the whole stack) or {@code fail}, for tests: the next object that is made throws an {@link IllegalStateException}
 * about what leaked, whose cause has the stack of where that was made. {@link Lifetime} closes what was made in it.
 */
public abstract class Handle implements AutoCloseable {
  /** In the order of native/runtime.c. */
  enum Kind {
    RUNTIME("runtime"),
    TENSOR("tensor"),
    GRAPH("graph"),
    SESSION("session"),
    CALLABLE("callable"),
    RUN("run"),
    CQ("completion queue"),
    MODEL("model"),
    DATASET("dataset"),
    EVENT_WRITER("event writer"),
    SERVER("server"),
    WEIGHTS("weight set"),
    CLUSTER("cluster"),
    CHECKPOINT("checkpoint"),
    FUNCTION("function"),
    GROUP("group"),
    CANCELLATION("cancellation"),
    STRATEGY("strategy"),
    TRAINER("trainer"),
    COORDINATOR("coordinator"),
    CLOSURE("closure"),
    REMOTE_VALUE("remote value"),
    MESH("mesh");

    /** As C's errors call it. */
    final String noun;

    Kind(String noun) {
      this.noun = noun;
    }
  }

  /** What outlives the object: the Cleaner holds it, so it knows nothing of the object itself. */
  private static final class Owned implements Runnable {
    static final AtomicIntegerFieldUpdater<Owned> STATE = AtomicIntegerFieldUpdater.newUpdater(Owned.class, "state");
    final Kind kind;
    final long address;
    final Object site;
    volatile int state; // two for each use under way, one more once closed
    volatile boolean explicit; // nobody need be told that it was left

    Owned(Kind kind, long address, Object site) {
      this.kind = kind;
      this.address = address;
      this.site = site;
    }

    @Override
    public void run() {
      if (!explicit) Leaks.found(kind.noun, site);
      for (; ; ) {
        int now = state;
        if ((now & 1) != 0) return;
        if (STATE.compareAndSet(this, now, now | 1)) {
          if (now == 0) Native.release(kind.ordinal(), address);
          return;
        }
      }
    }
  }

  /** The place of an object in the {@link Lifetime} that it was made in, which guards it. */
  static final class Link {
    final Handle handle;
    Lifetime life;
    Link before;
    Link after;

    Link(Handle handle) {
      this.handle = handle;
    }
  }

  private static final Cleaner CLEANER = Cleaner.create();

  private final Owned owned;
  private final Cleaner.Cleanable cleanable;
  final Link link; // null: made outside of lifetimes

  Handle(Kind kind, long address) {
    try {
      owned = new Owned(kind, address, Leaks.site(kind));
    } catch (IllegalStateException e) { // another object leaked, org.dtg.leak=fail; this one must not
      Native.release(kind.ordinal(), address);
      throw e;
    }
    cleanable = CLEANER.register(this, owned);
    // Runs end by themselves, and the queue that they end in belongs to all of them.
    link = kind == Kind.RUN || kind == Kind.CQ ? null : Lifetime.made(this);
  }

  /** The native address, which stays valid until {@link #drop}. */
  final long hold() {
    Owned mine = owned;
    for (; ; ) {
      int now = mine.state;
      if ((now & 1) != 0) throw closed();
      if (Owned.STATE.compareAndSet(mine, now, now + 2)) return mine.address;
    }
  }

  final void drop() {
    Owned mine = owned;
    if (Owned.STATE.addAndGet(mine, -2) == 1) Native.release(mine.kind.ordinal(), mine.address);
  }

  /** A call that builds on the object, which stays open until it has: an error of it names the line of the program. */
  final <T> T build(LongFunction<T> call) {
    long mine = hold();
    try {
      return call.apply(mine);
    } catch (DtgException e) {
      throw e.at(Leaks.caller());
    } finally {
      drop();
    }
  }

  /** The address of an object that may be left out: 0 for null. */
  static long hold(Handle handle) {
    return handle == null ? 0 : handle.hold();
  }

  /** The address of an object that must be there; {@code name}: of the argument. */
  static long hold(Handle handle, String name) {
    return given(handle, name).hold();
  }

  /** The argument of that name, which may not be null. */
  static <T> T given(T argument, String name) {
    if (argument == null) throw new DtgException.InvalidArgument(name + " is null; it must not be");
    return argument;
  }

  /** All of a list, none of which may be null. */
  static <T> java.util.List<T> all(T[] list, String name) {
    for (int i = 0; i < given(list, name).length; i++) given(list[i], name + "[" + i + "]");
    return java.util.List.of(list);
  }

  /** The addresses of all, none of which may be null. */
  static long[] hold(Handle[] handles, String name) {
    all(handles, name);
    return hold(handles);
  }

  static void drop(Handle handle) {
    if (handle != null) handle.drop();
  }

  /** The addresses of all, or of none where one of them is closed. */
  static long[] hold(Handle[] handles) {
    long[] out = new long[handles.length];
    int held = 0;
    try {
      for (; held < out.length; held++) out[held] = hold(handles[held]);
      return out;
    } finally {
      for (int i = 0; held < out.length && i < held; i++) drop(handles[i]);
    }
  }

  static void drop(Handle[] handles) {
    for (Handle handle : handles) drop(handle);
  }

  /** What it holds is held by another object too: where nobody closes this, no memory is lost, and the Cleaner takes it without a word. */
  final void mayBeForgotten() {
    owned.explicit = true;
  }

  /** For what is known without a crossing. */
  final void mustBeOpen() {
    if (isClosed()) throw closed();
  }

  private IllegalStateException closed() {
    return new IllegalStateException(wasClosed());
  }

  final String wasClosed() {
    return "this is not an open " + owned.kind.noun + ": it was closed";
  }

  /**
   * Whether {@link #close} was called.
   *
   * @return true once it was
   */
  public final boolean isClosed() {
    return (owned.state & 1) != 0;
  }

  /** Gives the object up; see the class. Never blocks and never fails. */
  @Override
  public void close() {
    owned.explicit = true;
    if (link != null) link.life.forget(link);
    cleanable.clean();
  }
}
