// A worker's share. One thread.

package org.dtg;

/** Which part of a job's training a worker does. */
public final class Replication {
  SyncMode mode;
  int worker;
  int total;
  int toAggregate;
  int staleness;
  int minWorkers;
  long elements;

  /**
   * One replica's share.
   *
   * @param mode how the workers train together
   * @param worker which replica this graph is, from 0; 0 is the chief
   * @param total replicas
   */
  public Replication(SyncMode mode, int worker, int total) {
    this.mode = Handle.given(mode, "mode");
    this.worker = worker;
    this.total = total;
  }

  /**
   * Gradients per update.
   *
   * @param toAggregate 0: as many as workers; only with REPLICAS
   * @return this
   */
  public Replication toAggregate(int toAggregate) {
    this.toAggregate = toAggregate;
    return this;
  }

  /**
   * How far workers may be apart.
   *
   * @param staleness steps that a worker may be ahead of the slowest; only with SSP
   * @return this
   */
  public Replication staleness(int staleness) {
    this.staleness = staleness;
    return this;
  }

  /**
   * Without whom no step is made.
   *
   * @param minWorkers workers that have to be there; 0: 1; only with ELASTIC
   * @return this
   */
  public Replication minWorkers(int minWorkers) {
    this.minWorkers = minWorkers;
    return this;
  }

  /**
   * Elements of an epoch of data that are dealt, see {@link Dataset#deal}.
   *
   * @param elements as many as the data set has; 0: none are dealt; only with ELASTIC
   * @return this
   */
  public Replication elements(long elements) {
    this.elements = elements;
    return this;
  }

  Packet packet() {
    return new Packet()
        .integer(mode.ordinal())
        .integer(worker)
        .integer(total)
        .integer(toAggregate)
        .integer(staleness)
        .integer(minWorkers)
        .integer(elements);
  }
}
