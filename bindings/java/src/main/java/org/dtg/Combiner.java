// What becomes of the rows of a bag. A constant.

package org.dtg;

/** What one row is made of the rows of a bag, w being their weights. */
public enum Combiner {
  /** sum(w row) / sum(w). */
  MEAN,
  /** sum(w row). */
  SUM,
  /** sum(w row) / sqrt(sum(w^2)). */
  SQRTN
}
