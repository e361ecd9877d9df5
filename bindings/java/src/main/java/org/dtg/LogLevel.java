// How grave a line of the log is. Immutable.

package org.dtg;

/** Levels of the library's log, in C's order. */
public enum LogLevel {
  /** For those who look for a fault of the library. */
  DEBUG,
  /** What happens. */
  INFO,
  /** What somebody should look at. */
  WARN,
  /** What failed. */
  ERROR,
  /** Nothing. */
  OFF
}
