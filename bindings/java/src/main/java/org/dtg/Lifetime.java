// What was made while it was open, closed together: a stack of them per thread, and a list of handles in each. Any thread may close.

package org.dtg;

/**
 * Closes what was made in it:
 *
 * <pre>{@code
 * try (Lifetime life = Lifetime.open()) {
 *   Graph graph = new Graph();
 *   Session session = Session.connect("local", graph);
 *   ...
 *   return life.keep(session.run().fetch(y).call().get(0)); // outlives it
 * }
 * }</pre>
 *
 * <p>It covers the objects that its own thread makes until it is closed, tensors of results among them, and closes those that are still
 * open, the last first. They may be closed before, and are then forgotten. Lifetimes nest: an object belongs to the innermost one.
 */
public final class Lifetime implements AutoCloseable {
  private static final ThreadLocal<Lifetime> INNERMOST = new ThreadLocal<>();

  private final Lifetime outer;
  private final Handle.Link first = new Handle.Link(null); // of a ring
  private boolean closed;

  private Lifetime(Lifetime outer) {
    this.outer = outer;
    first.before = first.after = first;
  }

  /**
   * Begins one, inside of those that this thread has open.
   *
   * @return it
   */
  public static Lifetime open() {
    Lifetime life = new Lifetime(innermost());
    INNERMOST.set(life);
    return life;
  }

  /**
   * Lets an object outlive it: whoever has it closes it. What belongs to another lifetime, or to none, stays as it is.
   *
   * @param <T> what it is
   * @param handle the object
   * @return the same
   */
  public <T extends Handle> T keep(T handle) {
    forget(Handle.given(handle, "handle").link);
    return handle;
  }

  /** Closes what was made in it and is open. A second time does nothing. */
  @Override
  public void close() {
    for (; ; ) {
      Handle last;
      synchronized (this) {
        closed = true;
        last = first.before.handle;
        if (last == null) break;
        unlink(first.before);
      }
      last.close();
    }
    if (INNERMOST.get() == this) {
      Lifetime now = innermost();
      if (now == null) INNERMOST.remove();
      else INNERMOST.set(now);
    }
  }

  /** The innermost one of this thread that is open; null where there is none. */
  private static Lifetime innermost() {
    Lifetime life = INNERMOST.get();
    while (life != null && life.isClosed()) life = life.outer;
    return life;
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  /** An object was made on this thread: its place in a lifetime, or null. */
  static Handle.Link made(Handle handle) {
    Lifetime life = INNERMOST.get() == null ? null : innermost();
    return life == null ? null : life.add(handle);
  }

  private synchronized Handle.Link add(Handle handle) {
    if (closed) return null;
    Handle.Link link = new Handle.Link(handle);
    link.life = this;
    link.before = first.before;
    link.after = first;
    link.before.after = first.before = link;
    return link;
  }

  /** The object was closed, or is kept. */
  void forget(Handle.Link link) {
    if (link == null || link.life != this) return;
    synchronized (this) {
      unlink(link);
    }
  }

  private static void unlink(Handle.Link link) {
    if (link.after == null) return; // it is out already
    link.before.after = link.after;
    link.after.before = link.before;
    link.before = link.after = null;
  }
}
