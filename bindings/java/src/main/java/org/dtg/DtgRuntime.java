// Runtimes. Any thread.

package org.dtg;

/**
 * The compute threads, the op table and the settings that sessions share. Wherever one is asked for, null means the default runtime of the
 * process. Several may live side by side.
 */
public final class DtgRuntime extends Handle {
  /** With all defaults. */
  public DtgRuntime() {
    this(new RuntimeOptions());
  }

  /**
   * Makes a runtime. Its threads start when they are first needed.
   *
   * @param options how
   * @throws DtgException.InvalidArgument for values out of range
   */
  public DtgRuntime(RuntimeOptions options) {
    super(Kind.RUNTIME, make(options));
  }

  private static long make(RuntimeOptions options) {
    if (given(options, "options").sink == null) return Native.runtimeCreate(options.packet(), 0);
    long number = Events.listen(options.sink);
    try {
      return Native.runtimeCreate(options.packet(), number);
    } catch (RuntimeException e) {
      Events.stopListening(number);
      throw e;
    }
  }

  /**
   * Compute threads, the caller of a synchronous run included.
   *
   * @return their number
   */
  public int threads() {
    long mine = hold();
    try {
      return Native.runtimeThreads(mine);
    } finally {
      drop();
    }
  }

  /**
   * The numbers of a runtime in Prometheus' text format 0.0.4.
   *
   * @param runtime null: the default one
   * @return the text
   */
  public static String metrics(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      return Native.text(Native.runtimeMetrics(it));
    } finally {
      drop(runtime);
    }
  }

  /**
   * The op table as JSON.
   *
   * @param runtime null: the default one
   * @return a list of {name, doc, inputs, outputs, attributes, stateful, differentiable, kernels}
   */
  public static String opsJson(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      return Native.text(Native.opsJson(it));
    } finally {
      drop(runtime);
    }
  }

  /**
   * Gives the system what lies idle: the blocks that runs worked in, and freed tensors. For programs that pause for long.
   *
   * @param runtime null: the default one
   */
  public static void trim(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      Native.runtimeTrim(it);
    } finally {
      drop(runtime);
    }
  }

  /**
   * Begins to record what each thread executes.
   *
   * @param runtime null: the default one
   */
  public static void traceStart(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      Native.traceStart(it);
    } finally {
      drop(runtime);
    }
  }

  /**
   * Stops recording.
   *
   * @param runtime null: the default one
   * @return Chrome trace JSON, which Perfetto and chrome://tracing open
   */
  public static String traceStop(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      return Native.text(Native.traceStop(it));
    } finally {
      drop(runtime);
    }
  }
}
