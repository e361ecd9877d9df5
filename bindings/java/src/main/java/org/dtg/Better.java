// Which way a value gets better. Immutable.

package org.dtg;

/** Which way a watched value gets better, in C's order. */
public enum Better {
  /** Greater where the name has acc, auc, precision, recall, f1, r2 or iou in it, else less. */
  BY_NAME,
  /** A loss, an error. */
  LESS,
  /** A share of what is right. */
  GREATER
}
