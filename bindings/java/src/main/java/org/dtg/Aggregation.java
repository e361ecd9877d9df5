// How values of several replicas become one. A value.

package org.dtg;

/** How what the replicas of a strategy give becomes one value; in the order of C's numbers. */
public enum Aggregation {
  /** Not at all: for variables that no replica assigns to by itself, such as weights. */
  NONE,
  /** The sum. */
  SUM,
  /** The mean. */
  MEAN,
  /** What replica 0 says. */
  ONLY_FIRST_REPLICA
}
