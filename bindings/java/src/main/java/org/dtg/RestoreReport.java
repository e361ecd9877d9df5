// What became of a restore, read from the text that the library gives. Immutable; any thread.

package org.dtg;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What became of {@link Model#restoreFrom}, or of {@link Checkpoint#resume} and {@link Checkpoint#restore}, out of their report. What a
 * report does not have is empty:
 *
 * <pre>{@code
 * RestoreReport report = RestoreReport.of(model.restoreFrom(session, "old.safetensors", options));
 * if (!report.missing().isEmpty()) ...
 * }</pre>
 *
 * @param outcome of a checkpoint: "started", "kept" or "restored"
 * @param path of the file or the set
 * @param step of a checkpoint: how far training is, 0 for a start
 * @param variables how many have their values now
 * @param passedOver of a checkpoint: why newer sets were not taken
 * @param missing variables that are not in it
 * @param extra what is in it, and no variable asked for
 * @param reshaped variables that are of another type or shape there
 * @param notes of a checkpoint: what else is worth knowing
 */
public record RestoreReport(String outcome, String path, long step, long variables, List<String> passedOver, List<String> missing,
    List<String> extra, List<String> reshaped, List<String> notes) {
  /**
   * Reads a report. What later releases add to it is passed over.
   *
   * @param text as the library gave it
   * @return what it says
   * @throws DtgException.InvalidArgument for a text that is none
   */
  public static RestoreReport of(String text) {
    Map<String, Object> told = new Scanner(Handle.given(text, "text")).report();
    try {
      return new RestoreReport((String) told.getOrDefault("outcome", ""), (String) told.getOrDefault("path", ""),
          (Long) told.getOrDefault("step", 0L), (Long) told.getOrDefault("variables", 0L), names(told, "passed_over"), names(told, "missing"),
          names(told, "extra"), names(told, "reshaped"), names(told, "notes"));
    } catch (ClassCastException e) {
      throw none(text);
    }
  }

  private static List<String> names(Map<String, Object> told, String key) {
    List<String> out = new ArrayList<>();
    for (Object each : (List<?>) told.getOrDefault(key, List.of())) out.add((String) each);
    return List.copyOf(out);
  }

  private static DtgException none(String text) {
    String shown = text.length() > 60 ? text.substring(0, 60) + "..." : text;
    return new DtgException.InvalidArgument("read the report of a restore: \"" + shown + "\" is none; give it as it came");
  }

  /** The JSON of reports: one object of texts, whole numbers and lists of texts. */
  private static final class Scanner {
    private final String text;
    private int at;

    Scanner(String text) {
      this.text = text;
    }

    Map<String, Object> report() {
      Map<String, Object> out = new HashMap<>();
      list('{', '}', () -> {
        String key = string();
        expect(':');
        out.put(key, value());
      });
      if (peek() != 0) throw none(text);
      return out;
    }

    /** The next character that is no blank, 0 at the end. */
    private char peek() {
      while (at < text.length() && text.charAt(at) <= ' ') at++;
      return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean took(char wanted) {
      if (peek() != wanted) return false;
      at++;
      return true;
    }

    private void expect(char wanted) {
      if (!took(wanted)) throw none(text);
    }

    private void list(char open, char close, Runnable each) {
      expect(open);
      if (took(close)) return;
      do {
        each.run();
      } while (took(','));
      expect(close);
    }

    private Object value() {
      switch (peek()) {
        case '"':
          return string();
        case '[':
          List<String> out = new ArrayList<>();
          list('[', ']', () -> out.add(string()));
          return out;
        default:
          int from = at;
          while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) at++;
          try {
            return Long.valueOf(text.substring(from, at));
          } catch (NumberFormatException e) {
            throw none(text);
          }
      }
    }

    private char next() {
      if (at >= text.length()) throw none(text);
      return text.charAt(at++);
    }

    private String string() {
      expect('"');
      StringBuilder out = new StringBuilder();
      for (char c = next(); c != '"'; c = next()) out.append(c == '\\' ? escaped() : c);
      return out.toString();
    }

    private char escaped() {
      char c = next();
      switch (c) {
        case '"':
        case '\\':
        case '/':
          return c;
        case 'u':
          int unit = 0;
          for (int i = 0; i < 4; i++) {
            int digit = Character.digit(next(), 16);
            if (digit < 0) throw none(text);
            unit = 16 * unit + digit;
          }
          return (char) unit;
        default:
          int which = "bfnrt".indexOf(c);
          if (which < 0) throw none(text);
          return "\b\f\n\r\t".charAt(which);
      }
    }
  }
}
