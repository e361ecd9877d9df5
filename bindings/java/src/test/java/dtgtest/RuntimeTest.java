// The library, runtimes, the log, and what leaks.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RuntimeTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void versions() {
    assertTrue(Dtg.version().startsWith("0.1."));
    assertEquals(1, Dtg.abiVersion());
    assertTrue(Dtg.hasFeature("cpu"));
    assertFalse(Dtg.hasFeature("magic"));
    for (Code code : Code.values()) assertEquals(code.name(), code.label());
  }

  @Test
  void aRuntimeOfOnesOwn() {
    RuntimeOptions options = new RuntimeOptions().computeThreads(2).spin(Duration.ofNanos(1000)).memoryLimit(1 << 30).pinThreads(false);
    try (DtgRuntime runtime = new DtgRuntime(options); Graph graph = new Graph(runtime);
        Session session = Session.connect(runtime, "local", graph, new SessionOptions())) {
      assertEquals(2, runtime.threads());
      DtgRuntime.traceStart(runtime);
      assertEquals(3, session.run().fetch(graph.constant(3f)).callFloat());
      assertTrue(DtgRuntime.traceStop(runtime).contains("["));
      assertTrue(DtgRuntime.metrics(runtime).contains("dtg_"));
      assertTrue(DtgRuntime.opsJson(runtime).contains("\"MatMul\""));
    }
    assertFalse(DtgRuntime.metrics(null).isEmpty());
    World.fails(DtgException.InvalidArgument.class, () -> new DtgRuntime(new RuntimeOptions().computeThreads(-1)));
    World.fails(DtgException.InvalidArgument.class,
        () -> new DtgRuntime(new RuntimeOptions().computeThreads(-1).log(LogLevel.DEBUG, (level, component, message) -> {})));
  }

  @Test
  void theLogComesOnAJavaThread() throws InterruptedException {
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    LogSink sink = (level, component, message) -> {
      lines.add(Thread.currentThread().getName() + " " + level + " " + component + ": " + message);
      throw new IllegalStateException("a sink that fails ends nothing");
    };
    try (DtgRuntime runtime = new DtgRuntime(new RuntimeOptions().log(LogLevel.DEBUG, sink));
        Cluster cluster = Cluster.parse("worker=127.0.0.1:0"); Server server = Server.start(runtime, cluster, null)) {
      server.stop(World.SECOND);
      String line = lines.poll(10, TimeUnit.SECONDS);
      assertNotNull(line, "a server says that it listens");
      assertTrue(line.startsWith("dtg-events "), line);
    }
  }

  @Test
  void textsAreUtf8() {
    String name = "größe_𝄞";
    try (Graph graph = new Graph()) {
      DtgException wrong = World.fails(DtgException.NotFound.class, () -> graph.find(name), name);
      assertTrue(wrong.getMessage().getBytes(StandardCharsets.UTF_8).length > wrong.getMessage().length());
    }
  }

  @Test
  void whatLeaksIsFreedAndToldWithItsPlace() throws InterruptedException {
    leak();
    IllegalStateException told = null;
    CountDownLatch tick = new CountDownLatch(1);
    for (int i = 0; i < 100 && told == null; i++) {
      System.gc();
      assertFalse(tick.await(20, TimeUnit.MILLISECONDS));
      try {
        Tensor.scalar(1f).close();
      } catch (IllegalStateException e) { // org.dtg.leak=fail
        told = e;
      }
    }
    assertNotNull(told);
    assertTrue(told.getMessage().contains("graph was never closed"), told::getMessage);
    assertTrue(Arrays.stream(told.getStackTrace()).anyMatch(frame -> frame.getMethodName().equals("whatLeaksIsFreedAndToldWithItsPlace")));
    assertTrue(Arrays.stream(told.getCause().getStackTrace()).anyMatch(frame -> frame.getMethodName().equals("leak")), "its cause tells where it was made");
  }

  @SuppressWarnings("resource")
  private static void leak() {
    assertEquals(0, new Graph().nodeCount());
  }
}
