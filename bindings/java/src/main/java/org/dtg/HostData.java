// What C calls for a data set: functions of Java over elements, and sources in Java. Called on the thread that asks for an element, or on
// the thread of a prefetching data set.

package org.dtg;

import java.lang.ref.SoftReference;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongFunction;

/** Functions of Java that data sets call. What they throw is the cause of the {@link DtgException} that the data set's reader gets. */
public final class HostData {
  private static final int KEPT = 8;
  private static final Deque<Thrown> THROWN = new ArrayDeque<>(); // the newest first; guarded by itself

  private HostData() {}

  /** What a function threw, for which C has no place: it takes the code and the words, and puts words of its own before them at most. */
  private record Thrown(int code, String words, SoftReference<Throwable> what) {}

  /** Makes one element of another. */
  @FunctionalInterface
  public interface Change {
    /**
     * Makes an element.
     *
     * @param x the components, which are closed when this returns
     * @return as many tensors as were announced, which are then closed; components may be among them
     * @throws Exception what it throws is the error of the element, with its message, and its cause
     */
    List<Tensor> apply(List<Tensor> x) throws Exception;
  }

  /** Chooses elements. */
  @FunctionalInterface
  public interface Choice {
    /**
     * Looks at an element.
     *
     * @param x the components, which are closed when this returns
     * @return whether it stays
     * @throws Exception what it throws is the error of the element, with its message, and its cause
     */
    boolean test(List<Tensor> x) throws Exception;
  }

  /** A source, and the epoch of it that is under way. */
  static final class Rows {
    private final LongFunction<? extends Iterator<List<Tensor>>> epochs;
    private Iterator<List<Tensor>> rows;

    Rows(LongFunction<? extends Iterator<List<Tensor>>> epochs) {
      this.epochs = epochs;
    }
  }

  /** The components of elements, as C takes them. */
  static Packet packet(Packet to, List<Dataset.Component> components) {
    to.integer(components.size());
    for (int i = 0; i < components.size(); i++) {
      Dataset.Component one = Handle.given(components.get(i), "components[" + i + "]");
      to.integer(Handle.given(one.dtype(), "components[" + i + "].dtype").number()).integers(one.shape());
    }
    return to;
  }

  /** Called from C. The handles are references of ours, and those given back are C's. */
  static long[] map(Change function, long[] handles, int room) throws Exception {
    try (Results x = Results.owning(handles)) {
      return give(function.apply(tensors(x)), room);
    }
  }

  /** Called from C. */
  static boolean filter(Choice function, long[] handles) throws Exception {
    try (Results x = Results.owning(handles)) {
      return function.test(tensors(x));
    }
  }

  /** Called from C. */
  static void begin(Rows source, long epoch) {
    source.rows = null;
    source.rows = source.epochs.apply(epoch);
    if (source.rows == null) {
      throw new DtgException.InvalidArgument("the source gave null for epoch " + epoch + "; of no elements it is an empty iterator");
    }
  }

  /** Called from C; null at the end of the epoch. */
  static long[] next(Rows source, int room) {
    return source.rows.hasNext() ? give(source.rows.next(), room) : null;
  }

  private static List<Tensor> tensors(Results x) {
    List<Tensor> all = new ArrayList<>();
    x.forEach(all::add);
    return all;
  }

  private static long[] give(List<Tensor> made, int room) {
    long[] out = new long[room];
    int given = 0;
    try {
      if (made == null || made.size() != room) {
        throw new DtgException.InvalidArgument("the function gave " + (made == null ? "null" : made.size() + " tensors") + ", announced were " + room
            + "; give a list of one tensor for each component" + (made == null ? ", and leave elements out by filterElements" : ""));
      }
      for (; given < room; given++) {
        if (made.get(given) == null) {
          throw new DtgException.InvalidArgument("the function gave a list whose tensor " + given + " is null; give one for each component");
        }
        long held = made.get(given).hold();
        try {
          out[given] = Native.tensorRetain(held);
        } finally {
          made.get(given).drop();
        }
      }
      return out;
    } finally {
      for (int i = 0; given < room && i < given; i++) Native.release(Handle.Kind.TENSOR.ordinal(), out[i]);
      if (made != null) {
        for (Tensor tensor : made) {
          if (tensor != null) tensor.close();
        }
      }
    }
  }

  /** Called from C: the code of what a function threw. */
  static int code(Throwable thrown) {
    return (thrown instanceof DtgException ours ? ours.code() : thrown instanceof Exception ? Code.UNKNOWN : Code.INTERNAL).number();
  }

  /** Called from C: what a function threw, in words. It is kept until it is told, among the last ones. */
  static byte[] message(Throwable thrown) {
    String text = thrown instanceof DtgException ? thrown.getMessage() : thrown.toString();
    String words = text == null ? thrown.getClass().getName() : text;
    synchronized (THROWN) {
      if (THROWN.size() == KEPT) THROWN.removeLast();
      THROWN.addFirst(new Thrown(code(thrown), words, new SoftReference<>(thrown)));
    }
    return words.getBytes(StandardCharsets.UTF_8);
  }

  /** What a function threw that ended as this error of C, whether on this thread or ahead of it; null: none did. */
  static Throwable cause(int code, String message) {
    synchronized (THROWN) {
      Thrown found = null;
      for (Thrown one : THROWN) {
        boolean longer = found == null || one.words.length() > found.words.length();
        if (longer && one.code == code && message.endsWith(one.words)) found = one;
      }
      if (found == null) return null;
      THROWN.remove(found);
      return found.what.get();
    }
  }
}
