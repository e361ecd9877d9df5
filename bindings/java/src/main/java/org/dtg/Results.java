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
    return new Results(Arrays.stream(handles).mapToObj(Tensor::new).toArray(Tensor[]::new), new boolean[handles.length]);
  }

  /** Where `into` has a tensor it is the result, elsewhere the handle in its place is. */
  static Results of(Tensor[] into, long[] handles, int at) {
    Tensor[] out = into.clone();
    boolean[] given = new boolean[out.length];
    for (int i = 0; i < out.length; i++) {
      given[i] = out[i] != null;
      if (!given[i]) out[i] = new Tensor(handles[at + i]);
    }
    return new Results(out, given);
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
