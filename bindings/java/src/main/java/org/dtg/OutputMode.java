// How categories come out. A constant.

package org.dtg;

/** How the numbers of categories come out. In rows there is a place for each category, depth in all. */
public enum OutputMode {
  /** int64, shaped like x: what an embedding looks up. */
  INT,
  /** float32 [..., depth]: 1 at the number's place; of an x whose last dimension is 1, in place of that. */
  ONE_HOT,
  /** float32 [depth] of x[places], [batch, depth] of x[batch, places]: 1 for each number that is there. */
  MULTI_HOT,
  /** Likewise, how often it is there. */
  COUNT
}
