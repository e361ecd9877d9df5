// What became of a run. Immutable.

package org.dtg;

/**
 * What became of a run that failed with an error after which nobody knows ({@link DtgException.DeadlineExceeded}, {@link
 * DtgException.Unavailable}, {@link DtgException.Cancelled}, {@link DtgException.Aborted}), in C's order. {@link Session#outcome} tells it.
 */
public enum Outcome {
  /** It has updated nothing on any other task, and will not. */
  NOTHING,
  /** It has, on one task at least: all of it, or up to where it was cut short. */
  UPDATED,
  /** So many runs ago that a task does not know any more. */
  FORGOTTEN
}
