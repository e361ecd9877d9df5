// What the library's threads tell Java: log lines, and direct buffers that are free again. They append to a queue in C; one daemon thread
// takes from it while there is anybody to tell. Any thread may call in.

package org.dtg;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

final class Events implements Runnable {
  private static final int LOG = 0;
  private static final int LOG_ENDED = 1;
  private static final int FREED = 2;
  private static final long LINGER_MS = 200;

  private static final Object GUARD = new Object();
  private static final Map<Long, LogSink> SINKS = new HashMap<>();
  private static final Map<Long, ByteBuffer> BORROWED = new HashMap<>();
  private static long lastNumber;
  private static boolean running;

  private Events() {}

  /** Keeps the buffer reachable until the library is done with it; the number is how the library calls it. */
  static long lend(ByteBuffer buffer) {
    synchronized (GUARD) {
      BORROWED.put(++lastNumber, buffer);
      start();
      return lastNumber;
    }
  }

  static void takeBack(long number) {
    synchronized (GUARD) {
      BORROWED.remove(number);
    }
  }

  /** Buffers that the library holds, for tests. */
  static int lent() {
    synchronized (GUARD) {
      return BORROWED.size();
    }
  }

  static long listen(LogSink sink) {
    synchronized (GUARD) {
      SINKS.put(++lastNumber, sink);
      start();
      return lastNumber;
    }
  }

  static void stopListening(long number) {
    synchronized (GUARD) {
      SINKS.remove(number);
    }
  }

  private static void start() {
    if (running) return;
    running = true;
    Thread thread = new Thread(null, new Events(), "dtg-events", 0, false);
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void run() {
    long[] numbers = new long[4];
    for (; ; ) {
      byte[][] texts = Native.eventsNext(LINGER_MS, numbers);
      if (texts != null) {
        hear(numbers, texts);
        continue;
      }
      synchronized (GUARD) {
        if (SINKS.isEmpty() && BORROWED.isEmpty()) {
          running = false;
          return;
        }
      }
    }
  }

  private static void hear(long[] numbers, byte[][] texts) {
    switch ((int) numbers[0]) {
      case LOG -> log(numbers, texts);
      case LOG_ENDED -> stopListening(numbers[1]);
      case FREED -> takeBack(numbers[1]);
      default -> throw new IllegalStateException("no event " + numbers[0]);
    }
  }

  private static void log(long[] numbers, byte[][] texts) {
    LogSink sink;
    synchronized (GUARD) {
      sink = SINKS.get(numbers[1]);
    }
    if (sink == null) return;
    try {
      if (numbers[3] > 0) sink.log(LogLevel.WARN, "java", numbers[3] + " lines of the log were lost: the sink is too slow");
      sink.log(LogLevel.values()[(int) numbers[2]], Native.text(texts[0]), DtgException.inJava(Native.text(texts[1])));
    } catch (Throwable e) { // a sink's own fault, an Error too, must not end the others' log and the books of borrowed buffers
      System.getLogger("org.dtg").log(System.Logger.Level.WARNING, "a log sink threw", e);
    }
  }
}
