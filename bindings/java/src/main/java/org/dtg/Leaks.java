// What happened to be left open: where it was made, and what is done about it. Any thread.

package org.dtg;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

final class Leaks {
  private static final String HOW = System.getProperty("org.dtg.leak", "warn");
  private static final boolean STACKS = HOW.equals("trace") || HOW.equals("fail");
  private static final boolean FAIL = HOW.equals("fail");
  private static final StackWalker WALKER = StackWalker.getInstance();
  private static final AtomicReference<IllegalStateException> FIRST = new AtomicReference<>();

  private Leaks() {}

  /**
   * Tensors and runs are made so often that looking for the place of each would cost more than they do. The first ones are looked at, and
   * all of them from the moment on at which one without a place has leaked.
   */
  private static final int LOOKED_AT = 1000;

  private static final AtomicInteger SEEN = new AtomicInteger();
  private static volatile boolean all;

  /** Where an object is being made: a Throwable, "File.java:12", or null where nobody looked. */
  static Object site(Handle.Kind kind) {
    if (FAIL) {
      IllegalStateException leaked = FIRST.getAndSet(null);
      if (leaked != null) {
        leaked.fillInStackTrace(); // of who hears of it; its cause has the place of the object that leaked
        throw leaked;
      }
    }
    if (STACKS) return new Throwable("made here");
    boolean often = kind == Handle.Kind.TENSOR || kind == Handle.Kind.RUN;
    return !often || all || (SEEN.get() < LOOKED_AT && SEEN.incrementAndGet() <= LOOKED_AT) ? caller() : null;
  }

  /** "File.java:12" of the nearest caller outside of this package and of the JDK; null when there is none. */
  static String caller() {
    return WALKER.walk(
        frames ->
            frames
                .filter(frame -> !ours(frame.getClassName()) && !ofTheJdk(frame.getClassName()))
                .findFirst()
                .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
                .orElse(null));
  }

  /** What stands between the program and a method reference that it gave a stream, and the like. */
  private static boolean ofTheJdk(String name) {
    return name.startsWith("java.") || name.startsWith("jdk.") || name.startsWith("sun.");
  }

  private static boolean ours(String name) {
    return name.startsWith("org.dtg.") && name.indexOf('.', "org.dtg.".length()) < 0;
  }

  /** Places that are told apart; what leaks at others is counted together. */
  private static final int PLACES = 1000;

  /** How many have leaked, by what they are and the place; guarded by the class. A loop that leaks does so millions of times. */
  private static final Map<String, Long> COUNTS = new HashMap<>();

  /** How many of them there are by now, where that is to be told: the first, the tenth, the hundredth and so on; else 0. */
  private static synchronized long count(String noun, Object site) {
    Object place = site instanceof Throwable stack ? nearest(stack) : site;
    String key = noun + " at " + place;
    if (COUNTS.size() >= PLACES && !COUNTS.containsKey(key)) key = "elsewhere";
    long count = COUNTS.merge(key, 1L, Long::sum);
    long power = 1;
    while (power < count) power *= 10;
    return power == count ? count : 0;
  }

  private static StackTraceElement nearest(Throwable stack) {
    for (StackTraceElement frame : stack.getStackTrace()) {
      if (!ours(frame.getClassName()) && !ofTheJdk(frame.getClassName())) return frame;
    }
    return null;
  }

  static void found(String noun, Object site) {
    String text = "a " + noun + " was never closed" + (site instanceof String ? "; it was made at " + site : "")
        + (site == null ? "; from now on the place is kept of all that are made" : "");
    if (site == null) all = true;
    long count = count(noun, site);
    if (count > 1) text += "; " + count + " of them by now, and the next is told when there are ten times as many";
    if (FAIL) FIRST.compareAndSet(null, new IllegalStateException(text, site instanceof Throwable stack ? stack : null));
    if (count == 0) return;
    System.Logger log = System.getLogger("org.dtg");
    if (site instanceof Throwable stack) {
      log.log(System.Logger.Level.WARNING, text, stack);
    } else {
      log.log(System.Logger.Level.WARNING, text);
    }
  }
}
