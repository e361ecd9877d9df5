// Places of processes in clusters. Immutable.

package org.dtg;

/**
 * The place of a process in its cluster, as a launcher told it.
 *
 * @param type "chief", "worker", "ps", "evaluator"; "" when not said
 * @param index -1 when not said
 * @param isChief whether it is the chief, the master, worker 0 where there is neither, or a process without a cluster
 * @param id chief 0, worker i: i + number of chiefs; others: their index; 0 when not said
 * @param numWorkers chief and workers; at least 1
 * @param numPs tasks of the job "ps"
 * @param rpcLayer "" when not said
 */
public record Task(String type, int index, boolean isChief, int id, int numWorkers, int numPs, String rpcLayer) {
  /**
   * A task by its name.
   *
   * @param type its job
   * @param index its index
   */
  public Task(String type, int index) {
    this(type, index, false, 0, 1, 0, "");
  }
}
