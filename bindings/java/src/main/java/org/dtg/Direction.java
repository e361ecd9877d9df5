// Directions of recurrent layers. Immutable.

package org.dtg;

/** Which way a recurrent layer goes over the steps, in C's order. Its outputs stand in the order of the input in each case. */
public enum Direction {
  /** From the first step to the last. */
  FORWARD,
  /** From the last step to the first. */
  BACKWARD,
  /** One layer each way, with weights of its own, under the scopes "forward" and "backward"; outputs side by side. */
  BOTH
}
