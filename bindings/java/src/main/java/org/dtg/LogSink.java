// Where a runtime's log goes. Called by one Java thread of the binding.

package org.dtg;

/** Receives the lines of a runtime's log, one after the other, on a daemon thread of Java: never on a thread of the library. */
@FunctionalInterface
public interface LogSink {
  /**
   * One line.
   *
   * @param level how grave it is
   * @param component the part of the library that speaks
   * @param message the line
   */
  void log(LogLevel level, String component, String message);
}
