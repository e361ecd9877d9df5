// The library itself. Any thread.

package org.dtg;

/** Facts about the native library that is loaded. */
public final class Dtg {
  private Dtg() {}

  /**
   * Its version.
   *
   * @return such as "0.1.0"
   */
  public static String version() {
    return Native.text(Native.version());
  }

  /**
   * Its version as a number, the cheapest call there is.
   *
   * @return major &lt;&lt; 16 | minor
   */
  public static int abiVersion() {
    return Native.abiVersion();
  }

  /**
   * Whether the library was built with a feature.
   *
   * @param name "cpu", "cuda", "tls"
   * @return false also for names it does not know
   */
  public static boolean hasFeature(String name) {
    return Native.hasFeature(Native.utf8(Native.plain(name)));
  }

  /**
   * Native objects of this process that are alive, for leak checks in tests.
   *
   * @return their number
   */
  public static long liveHandles() {
    return Native.liveHandles();
  }
}
