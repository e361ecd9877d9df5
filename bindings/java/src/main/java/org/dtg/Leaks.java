// What happened to be left open: where it was made, and what is done about it. Any thread.

package org.dtg;

import java.util.concurrent.atomic.AtomicReference;

final class Leaks {
  private static final String HOW = System.getProperty("org.dtg.leak", "warn");
  private static final boolean STACKS = HOW.equals("trace") || HOW.equals("fail");
  private static final boolean FAIL = HOW.equals("fail");
  private static final StackWalker WALKER = StackWalker.getInstance();
  private static final AtomicReference<String> FIRST = new AtomicReference<>();

  private Leaks() {}

  /** Where an object is being made: a Throwable, "File.java:12", or null where asking would cost more than the object. */
  static Object site(Handle.Kind kind) {
    if (FAIL) {
      String leaked = FIRST.getAndSet(null);
      if (leaked != null) throw new IllegalStateException(leaked);
    }
    if (STACKS) return new Throwable("made here");
    return kind == Handle.Kind.TENSOR || kind == Handle.Kind.RUN ? null : caller();
  }

  /** "File.java:12" of the nearest caller outside of this package; null when there is none. */
  static String caller() {
    return WALKER.walk(
        frames ->
            frames
                .filter(frame -> !ours(frame.getClassName()))
                .findFirst()
                .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
                .orElse(null));
  }

  private static boolean ours(String name) {
    return name.startsWith("org.dtg.") && name.indexOf('.', "org.dtg.".length()) < 0;
  }

  static void found(String noun, Object site) {
    String text = "a " + noun + " was never closed" + (site instanceof String ? "; it was made at " + site : "")
        + (site == null ? "; -Dorg.dtg.leak=trace tells where it was made" : "");
    System.Logger log = System.getLogger("org.dtg");
    if (site instanceof Throwable stack) {
      log.log(System.Logger.Level.WARNING, text, stack);
    } else {
      log.log(System.Logger.Level.WARNING, text);
    }
    if (FAIL) FIRST.compareAndSet(null, text);
  }
}
