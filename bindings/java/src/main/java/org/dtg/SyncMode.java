// Ways to train together. Immutable.

package org.dtg;

/** What a worker's share of the training is, in C's order. */
public enum SyncMode {
  /** A step applies its gradients at once and waits for nobody. */
  ASYNC,
  /** One contribution per worker and step, added up in the order of the workers: equal runs give equal bits. */
  STRICT,
  /** TensorFlow's SyncReplicasOptimizer: the mean of the gradients that are there once enough arrived. */
  REPLICAS,
  /** Stale synchronous parallel: as ASYNC, but nobody is more than so many steps ahead of the slowest that is there. */
  SSP,
  /** As STRICT, but with whoever is there: workers may come and go, so many at least. */
  ELASTIC
}
