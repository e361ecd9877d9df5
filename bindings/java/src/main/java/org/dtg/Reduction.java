// What a collective makes of the ranks' elements. A value.

package org.dtg;

/** What is made of the ranks' elements; in the order of C's numbers. */
public enum Reduction {
  /** The sum. */
  SUM,
  /** The sum, divided by the number of ranks; whole numbers towards zero. */
  MEAN,
  /** The smallest. */
  MIN,
  /** The largest. */
  MAX,
  /** The product. */
  PRODUCT
}
