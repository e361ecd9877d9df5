// The codes of errors, as in C. Immutable.

package org.dtg;

/** Why something failed. The numbers are those of TensorFlow, Abseil and gRPC. */
public enum Code {
  /** No failure. */
  OK(0),
  /** Somebody cancelled it. */
  CANCELLED(1),
  /** A failure of no known kind. */
  UNKNOWN(2),
  /** An argument that can never be right, or a closed object. */
  INVALID_ARGUMENT(3),
  /** The time was up. */
  DEADLINE_EXCEEDED(4),
  /** There is no such op, node, variable or file. */
  NOT_FOUND(5),
  /** There is one already. */
  ALREADY_EXISTS(6),
  /** This peer may not do that. */
  PERMISSION_DENIED(7),
  /** No memory, or over a limit. */
  RESOURCE_EXHAUSTED(8),
  /** Not in this state: a variable without value, a closed session. */
  FAILED_PRECONDITION(9),
  /** Given up in favour of another attempt. */
  ABORTED(10),
  /** Past the end: of a queue, of a list. */
  OUT_OF_RANGE(11),
  /** Not part of this library. */
  UNIMPLEMENTED(12),
  /** A fault of the library. */
  INTERNAL(13),
  /** The other end is not there now; trying again may help. */
  UNAVAILABLE(14),
  /** A file or message is cut or damaged. */
  DATA_LOSS(15),
  /** The wrong key, or none. */
  UNAUTHENTICATED(16);

  private final int number;

  Code(int number) {
    this.number = number;
  }

  /**
   * The number in C.
   *
   * @return 0 to 16
   */
  public int number() {
    return number;
  }

  /**
   * The name as the library writes it, such as {@code INVALID_ARGUMENT}.
   *
   * @return the name
   */
  public String label() {
    return Native.text(Native.codeName(number));
  }

  static Code of(int number) {
    return number >= 0 && number < values().length ? values()[number] : UNKNOWN;
  }
}
