// Every failure of the library. native/error.c makes them; immutable once they are thrown out of a call.

package org.dtg;

/**
 * What the library could not do: the message says what was attempted, on what, what was found and what to try. One subclass per
 * {@link Code}, so that callers catch what they can handle:
 *
 * <pre>{@code
 * try {
 *   session.run(train);
 * } catch (DtgException.Unavailable peer) {
 *   reconnect(peer.peer());
 * }
 * }</pre>
 */
public class DtgException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The code. */
  private final Code code;

  /** The node to blame, or "". */
  private final String node;

  /** The task that found it, or "". */
  private final String task;

  /** The other end, or "". */
  private final String peer;

  /** When it failed, or "". */
  private final String phase;

  /** The line of the program that made the call, where the message does not have it; "" where it does, null: not known yet. */
  private String place;

  DtgException(Code code, String message, String... where) {
    super(message);
    this.code = code;
    node = where.length > 0 ? where[0] : "";
    task = where.length > 1 ? where[1] : "";
    peer = where.length > 2 ? where[2] : "";
    phase = where.length > 3 ? where[3] : "";
  }

  /**
   * Why it failed.
   *
   * @return the code
   */
  public Code code() {
    return code;
  }

  /**
   * The node of the graph that failed.
   *
   * @return its name, or "" when none is to blame
   */
  public String node() {
    return node;
  }

  /**
   * The task that found the failure.
   *
   * @return such as {@code /job:ps/replica:0/task:0}, or ""
   */
  public String task() {
    return task;
  }

  /**
   * The other end of the connection that failed, or the first of those that were waited for.
   *
   * @return its address, or ""
   */
  public String peer() {
    return peer;
  }

  /**
   * When it failed. {@link DeadlineExceeded}, {@link Aborted} and {@link Unavailable} from the library always tell that, and a task, a peer
   * or both.
   *
   * @return "build" (a node was added), "place" (a device was chosen), "prepare" (a run was planned), "feed", "run" (also a collective),
   *     "connect" (a task was looked for), "listen" (a server took its address), "recover" (state or training after a loss), "wait" ({@link
   *     Model#waitReady}), "meet" (a barrier), "form" (a group), "schedule" (closures of a coordinator), "save" and "restore" (checkpoints),
   *     "ask" (a status, an outcome, a reset), "end" (of a session, a server or the job), or ""; new ones may come
   */
  public String phase() {
    return phase;
  }

  /** What was attempted, on what, what was found and what to try; of a call that builds, behind the line of the program. */
  @Override
  public String getMessage() {
    return place == null || place.isEmpty() ? super.getMessage() : "at " + place + ": " + super.getMessage();
  }

  /** The same, with the line of the call that it is of; the innermost that is told counts. */
  DtgException at(String line) {
    if (place == null && line != null) place = super.getMessage().contains("at " + line) ? "" : line;
    return this;
  }

  /** Called from C. */
  static DtgException of(int number, byte[] message, byte[] node, byte[] task, byte[] peer, byte[] phase) {
    String words = Native.text(message);
    DtgException out = of(Code.of(number), inJava(words), Native.text(node), Native.text(task), Native.text(peer), Native.text(phase));
    Throwable cause = HostData.cause(number, words);
    if (cause != null) out.initCause(cause);
    return out;
  }

  /** A message of the library without the words of C. What stands between quotes is the program's own and stays. */
  static String inJava(String message) {
    String[] parts = message.split("\"", -1);
    for (int i = 0; i < parts.length; i += 2) {
      for (int k = 0; k < Words.OF_C.length; k += 2) parts[i] = parts[i].replace(Words.OF_C[k], Words.OF_C[k + 1]);
    }
    return String.join("\"", parts);
  }

  private static DtgException of(Code code, String message, String... where) {
    return switch (code) {
      case CANCELLED -> new Cancelled(message, where);
      case UNKNOWN -> new Unknown(message, where);
      case INVALID_ARGUMENT -> new InvalidArgument(message, where);
      case DEADLINE_EXCEEDED -> new DeadlineExceeded(message, where);
      case NOT_FOUND -> new NotFound(message, where);
      case ALREADY_EXISTS -> new AlreadyExists(message, where);
      case PERMISSION_DENIED -> new PermissionDenied(message, where);
      case RESOURCE_EXHAUSTED -> new ResourceExhausted(message, where);
      case FAILED_PRECONDITION -> new FailedPrecondition(message, where);
      case ABORTED -> new Aborted(message, where);
      case OUT_OF_RANGE -> new OutOfRange(message, where);
      case UNIMPLEMENTED -> new Unimplemented(message, where);
      case INTERNAL -> new Internal(message, where);
      case UNAVAILABLE -> new Unavailable(message, where);
      case DATA_LOSS -> new DataLoss(message, where);
      case UNAUTHENTICATED -> new Unauthenticated(message, where);
      default -> new DtgException(code, message, where);
    };
  }

  /** CANCELLED: Somebody cancelled it. */
  public static final class Cancelled extends DtgException {
    private static final long serialVersionUID = 1;

    Cancelled(String message, String... where) {
      super(Code.CANCELLED, message, where);
    }
  }

  /** UNKNOWN: A failure of no known kind. */
  public static final class Unknown extends DtgException {
    private static final long serialVersionUID = 1;

    Unknown(String message, String... where) {
      super(Code.UNKNOWN, message, where);
    }
  }

  /** INVALID_ARGUMENT: An argument that can never be right, or a closed object. */
  public static final class InvalidArgument extends DtgException {
    private static final long serialVersionUID = 1;

    InvalidArgument(String message, String... where) {
      super(Code.INVALID_ARGUMENT, message, where);
    }
  }

  /** DEADLINE_EXCEEDED: The time was up. */
  public static final class DeadlineExceeded extends DtgException {
    private static final long serialVersionUID = 1;

    DeadlineExceeded(String message, String... where) {
      super(Code.DEADLINE_EXCEEDED, message, where);
    }
  }

  /** NOT_FOUND: There is no such op, node, variable or file. */
  public static final class NotFound extends DtgException {
    private static final long serialVersionUID = 1;

    NotFound(String message, String... where) {
      super(Code.NOT_FOUND, message, where);
    }
  }

  /** ALREADY_EXISTS: There is one already. */
  public static final class AlreadyExists extends DtgException {
    private static final long serialVersionUID = 1;

    AlreadyExists(String message, String... where) {
      super(Code.ALREADY_EXISTS, message, where);
    }
  }

  /** PERMISSION_DENIED: This peer may not do that. */
  public static final class PermissionDenied extends DtgException {
    private static final long serialVersionUID = 1;

    PermissionDenied(String message, String... where) {
      super(Code.PERMISSION_DENIED, message, where);
    }
  }

  /** RESOURCE_EXHAUSTED: No memory, or over a limit. */
  public static final class ResourceExhausted extends DtgException {
    private static final long serialVersionUID = 1;

    ResourceExhausted(String message, String... where) {
      super(Code.RESOURCE_EXHAUSTED, message, where);
    }
  }

  /** FAILED_PRECONDITION: Not in this state: a variable without value, a closed session. */
  public static final class FailedPrecondition extends DtgException {
    private static final long serialVersionUID = 1;

    FailedPrecondition(String message, String... where) {
      super(Code.FAILED_PRECONDITION, message, where);
    }
  }

  /** ABORTED: Given up in favour of another attempt. */
  public static final class Aborted extends DtgException {
    private static final long serialVersionUID = 1;

    Aborted(String message, String... where) {
      super(Code.ABORTED, message, where);
    }
  }

  /** OUT_OF_RANGE: Past the end: of a queue, of a list. */
  public static final class OutOfRange extends DtgException {
    private static final long serialVersionUID = 1;

    OutOfRange(String message, String... where) {
      super(Code.OUT_OF_RANGE, message, where);
    }
  }

  /** UNIMPLEMENTED: Not part of this library. */
  public static final class Unimplemented extends DtgException {
    private static final long serialVersionUID = 1;

    Unimplemented(String message, String... where) {
      super(Code.UNIMPLEMENTED, message, where);
    }
  }

  /** INTERNAL: A fault of the library. */
  public static final class Internal extends DtgException {
    private static final long serialVersionUID = 1;

    Internal(String message, String... where) {
      super(Code.INTERNAL, message, where);
    }
  }

  /** UNAVAILABLE: The other end is not there now; trying again may help. */
  public static final class Unavailable extends DtgException {
    private static final long serialVersionUID = 1;

    Unavailable(String message, String... where) {
      super(Code.UNAVAILABLE, message, where);
    }
  }

  /** DATA_LOSS: A file or message is cut or damaged. */
  public static final class DataLoss extends DtgException {
    private static final long serialVersionUID = 1;

    DataLoss(String message, String... where) {
      super(Code.DATA_LOSS, message, where);
    }
  }

  /** UNAUTHENTICATED: The wrong key, or none. */
  public static final class Unauthenticated extends DtgException {
    private static final long serialVersionUID = 1;

    Unauthenticated(String message, String... where) {
      super(Code.UNAUTHENTICATED, message, where);
    }
  }
}
