// What of a file goes where. One thread.

package org.dtg;

import java.util.Map;

/** How {@link Model#restoreFrom} finds the values of variables. */
public final class RestoreOptions {
  private Map<String, String> names;
  private boolean partial;

  /** All names the same, and every variable. */
  public RestoreOptions() {}

  /**
   * What variables are called in the file.
   *
   * @param names from the model's names to the file's; two that end with "/" stand for all that begin so: {@code Map.of("encoder/",
   *     "bert/encoder/")}; "" beside such a one is the root, all names: {@code Map.of("", "bert/")}. A whole name counts before the
   *     longest beginning
   * @return this
   */
  public RestoreOptions names(Map<String, String> names) {
    this.names = names;
    return this;
  }

  /**
   * Whether what fits is taken.
   *
   * @param partial false: a variable that finds nothing of its type and shape is an error, and nothing is assigned
   * @return this
   */
  public RestoreOptions partial(boolean partial) {
    this.partial = partial;
    return this;
  }

  private static void text(StringBuilder out, String name) {
    out.append('"');
    for (char c : name.toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    out.append('"');
  }

  static String json(Map<String, String> names) {
    if (names == null || names.isEmpty()) return null;
    StringBuilder out = new StringBuilder();
    names.forEach((here, there) -> {
      out.append(out.length() == 0 ? '{' : ',');
      text(out, here);
      out.append(':');
      text(out, there);
    });
    return out.append('}').toString();
  }

  Packet packet() {
    return new Packet().text(json(names)).bool(partial);
  }
}
