// What a run fetched, or an element of a data set. Any thread.

package org.dtg;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

/** Tensors that came together. Closing it closes those that the library made; tensors that the caller gave stay the caller's. */
public final class Results implements AutoCloseable, Iterable<Tensor> {
  private final Tensor[] tensors;
  private final boolean[] given;

  private Results(Tensor[] tensors, boolean[] given) {
    this.tensors = tensors;
    this.given = given;
  }

  static Results owning(long[] handles) {
    return of(new Tensor[handles.length], handles, 0);
  }

  /** Where `into` has a tensor it is the result, elsewhere the handle in its place is. */
  static Results of(Tensor[] into, long[] handles, int at) {
    boolean[] given = new boolean[into.length];
    for (int i = 0; i < given.length; i++) given[i] = into[i] != null;
    Results out = new Results(into.clone(), given);
    int next = 0;
    try {
      for (; next < given.length; next++) {
        if (!given[next]) out.tensors[next] = new Tensor(handles[at + next]);
      }
      return out;
    } catch (Throwable e) { // such as of a leak that org.dtg.leak=fail tells now; that tensor itself is released
      for (int i = 0; i < given.length; i++) {
        if (!given[i] && i < next) out.tensors[i].close();
        if (!given[i] && i > next) Native.release(Handle.Kind.TENSOR.ordinal(), handles[at + i]);
      }
      throw e;
    }
  }

  /** The results of a run that has ended well. */
  static Results taken(long run, int count) {
    long[] handles = new long[count];
    try {
      for (int i = 0; i < count; i++) handles[i] = Native.runTakeResult(run, i);
    } catch (Throwable e) { // nobody gets those that were taken
      for (long handle : handles) {
        if (handle != 0) Native.release(Handle.Kind.TENSOR.ordinal(), handle);
      }
      throw e;
    }
    return owning(handles);
  }

  /**
   * One of them.
   *
   * @param i in the order of the fetches
   * @return the tensor
   */
  public Tensor get(int i) {
    return tensors[i];
  }

  /**
   * How many there are.
   *
   * @return their number
   */
  public int size() {
    return tensors.length;
  }

  @Override
  public Iterator<Tensor> iterator() {
    return List.of(tensors).iterator();
  }

  /** The tensors, each with type, shape and first elements. */
  @Override
  public String toString() {
    return Arrays.toString(tensors);
  }

  /** Closes the tensors that the library made. */
  @Override
  public void close() {
    for (int i = 0; i < tensors.length; i++) {
      if (!given[i]) tensors[i].close();
    }
  }
}
