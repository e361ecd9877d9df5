// What the tests share: small graphs, what failed and how, and that nothing stays behind.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.dtg.*;
import org.junit.jupiter.api.function.Executable;

final class World {
  private World() {}

  static void assertNothingLives() throws InterruptedException {
    assertLiving(0);
  }

  /** Handles go when views are collected and the completion queue has lingered; within ten seconds. */
  static void assertLiving(long handles) throws InterruptedException {
    CountDownLatch tick = new CountDownLatch(1);
    for (int i = 0; i < 100 && Dtg.liveHandles() != handles; i++) {
      System.gc();
      assertTrue(!tick.await(100, TimeUnit.MILLISECONDS));
    }
    assertEquals(handles, Dtg.liveHandles(), "native objects that nobody closed, or those that should be there");
  }

  static <T extends DtgException> T fails(Class<T> type, Executable what, String... words) {
    T out = assertThrows(type, what);
    for (String word : words) assertTrue(out.getMessage().contains(word), () -> "\"" + word + "\" is not in: " + out.getMessage());
    tellsWhere(out);
    return out;
  }

  /** What others or the clock have caused tells a phase, and a task, a peer or both; not what Java refuses before it has asked anybody. */
  static void tellsWhere(DtgException error) {
    if (error.getMessage().contains("its timeout is zero")) return;
    if (error.code() != Code.DEADLINE_EXCEEDED && error.code() != Code.ABORTED && error.code() != Code.UNAVAILABLE) return;
    assertTrue(!error.phase().isEmpty(), () -> "no phase: " + error);
    assertTrue(!(error.task() + error.peer()).isEmpty(), () -> "neither task nor peer: " + error);
  }

  static void isClosed(Executable what, String noun) {
    IllegalStateException out = assertThrows(IllegalStateException.class, what);
    assertTrue(out.getMessage().contains("not an open " + noun), out.getMessage());
  }

  /** A run of a session that was closed. */
  static void isTooLate(Executable what) {
    fails(DtgException.Cancelled.class, what, "not an open session");
  }

  /** A queue that nothing is ever put into. */
  static Value dequeue(Graph graph) {
    return graph.queueDequeueV2(graph.fifoQueueV2(new DType[] {DType.F32}), new DType[] {DType.F32}).get(0);
  }

  static PreparedRun doubling(Graph graph, Session session, Value x) {
    return session.prepare(List.of(x), List.of(graph.addV2(x, x)), List.of());
  }

  static final Duration SECOND = Duration.ofSeconds(1);

  /** Resident memory in KiB. */
  static long resident() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("VmRSS:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .findFirst()
        .orElseThrow();
  }
}
