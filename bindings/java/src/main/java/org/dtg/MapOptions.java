// How elements of a data set are given to a function of a graph. A value; one thread.

package org.dtg;

/** How {@link Dataset#map} and {@link Dataset#filter} work: one element at a time, in a graph of their own, unless said otherwise. */
public final class MapOptions {
  int parallel = 1;
  boolean seed;
  Graph graph;
  Session session;

  /** All defaults. */
  public MapOptions() {}

  /**
   * How many elements are worked on at once, on the compute threads. They come in the order of the source anyway.
   *
   * @param elements 1 to 1,024; 0: as many as there are compute threads
   * @return this
   */
  public MapOptions parallel(int elements) {
    parallel = elements;
    return this;
  }

  /**
   * Gives the function one argument more, its last: int64 [2], the numbers of the epoch and of the element in it, for the stateless random
   * ops.
   *
   * @return this
   */
  public MapOptions seed() {
    seed = true;
    return this;
  }

  /**
   * Lets the function use values from around.
   *
   * @param graph what the function is built in
   * @param session tells, now, what the values are, also what was read of variables
   * @return this
   */
  public MapOptions around(Graph graph, Session session) {
    this.graph = graph;
    this.session = session;
    return this;
  }
}
