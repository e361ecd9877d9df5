// Where a fit shows how far it is. Immutable.

package org.dtg;

/** Where a fit shows how far it is; never on the standard output. */
public enum Progress {
  /**
   * The standard error where that is a terminal and the program takes no log: one line with a bar, the time left, the mean loss and examples per
   * second, and a line that stays for each epoch. Elsewhere as LINES.
   */
  BEST,
  /** A line per epoch to the program's log, at level INFO; without one nothing. */
  LINES,
  /** Nowhere. */
  OFF
}
