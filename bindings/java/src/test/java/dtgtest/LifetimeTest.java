// Lifetimes: what is made in them is closed with them, and nothing else is; and what is told of tensors that nobody closed.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LifetimeTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void whatIsMadeInItIsClosedWithIt() {
    Tensor before = Tensor.scalar(1f);
    Tensor kept;
    Tensor fetched;
    Graph graph;
    try (Lifetime life = Lifetime.open()) {
      graph = new Graph();
      Model model = new Model(graph, 1);
      Value x = graph.placeholder("x", DType.F32, -1, 2);
      Value y = model.dense(x, new Dense(3));
      Session session = Session.connect("local", graph);
      session.run(model.init());
      fetched = session.run().feed(x, Tensor.of(new float[] {1, 2}, 1, 2)).fetch(y).call().get(0);
      kept = life.keep(session.run().feed(x, Tensor.allocate(DType.F32, 4, 2)).fetch(y).call().get(0));
      assertFalse(fetched.isClosed());
    }
    assertTrue(graph.isClosed() && fetched.isClosed());
    assertFalse(kept.isClosed() || before.isClosed());
    assertEquals("float32[4, 3]", kept.toString().substring(0, 13));
    kept.close();
    before.close();
  }

  @Test
  void theyNest() {
    try (Lifetime outer = Lifetime.open()) {
      Tensor ours = Tensor.scalar(1);
      Tensor theirs;
      Tensor handedOut;
      try (Lifetime inner = Lifetime.open()) {
        theirs = Tensor.scalar(2);
        handedOut = inner.keep(Tensor.scalar(3));
        assertEquals(ours, inner.keep(ours)); // of another one: it stays
      }
      assertTrue(theirs.isClosed());
      assertFalse(ours.isClosed() || handedOut.isClosed());
      handedOut.close();
      Tensor last = Tensor.scalar(4);
      outer.close();
      assertTrue(ours.isClosed() && last.isClosed());
      Tensor.scalar(5).close(); // in no lifetime
      outer.close();
    }
  }

  /** A tensor that was made for a constant alone is the graph's; nobody is told of it (here the next object would throw), and nothing stays. */
  @Test
  void theTensorOfALiteralNeedsNoClose() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      long live = Dtg.liveHandles();
      Value three = graph.constant(Tensor.scalar(3f));
      Value rows = graph.op("Const").attr("value", Tensor.of(new long[] {1, 2}, 1, 2)).attr("dtype", DType.I64).add();
      assertEquals(live + 2, Dtg.liveHandles());
      World.assertLiving(live);
      try (Tensor next = Tensor.scalar(1f); Results out = session.run().fetch(three).fetch(rows).call()) {
        assertFalse(next.isClosed());
        assertEquals(3f, out.get(0).getFloat(0));
        assertEquals(2, out.get(1).getLong(1));
      }
      Tensor kept = Tensor.scalar(4f);
      graph.constant(kept);
      assertEquals(4f, kept.getFloat(0)); // it stays the caller's
      kept.close();
    }
  }

  /** A loop that closes what it makes leaves nothing behind in the lifetime around it. */
  @Test
  void whatIsClosedBeforeIsForgotten() throws Exception {
    long live;
    try (Lifetime life = Lifetime.open()) {
      assertNotNull(life);
      for (int i = 0; i < 100_000; i++) Tensor.scalar(1f).close();
      live = Dtg.liveHandles();
      Tensor[] made = {Tensor.scalar(1f), Tensor.scalar(2f), Tensor.scalar(3f)};
      Thread other = new Thread(() -> {
        made[1].close(); // any thread may
        made[0] = Tensor.scalar(4f); // this one has no lifetime
      });
      other.start();
      other.join();
      made[0].close();
      assertEquals(live + 2, Dtg.liveHandles());
    }
    assertEquals(live, Dtg.liveHandles());
  }

  /** A JVM of its own, as the tests' has other settings: the warning names the line, for the first tensors and once one has leaked. */
  @Test
  void aTensorThatLeaksIsToldWithItsPlace(@TempDir Path folder) throws Exception {
    Path said = folder.resolve("said");
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    ProcessBuilder program = new ProcessBuilder(java, "-Xmx64m", "-Dorg.dtg.library.path=" + System.getProperty("org.dtg.library.path"), "-cp",
        System.getProperty("java.class.path"), Leaky.class.getName());
    Process process = program.redirectErrorStream(true).redirectOutput(said.toFile()).start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS));
    String text = Files.readString(said);
    assertEquals(0, process.exitValue(), text);
    assertTrue(text.contains("a tensor was never closed; it was made at LifetimeTest.java:" + Leaky.EARLY), text);
    assertTrue(text.contains("a tensor was never closed; from now on"), text);
    assertTrue(text.contains("a tensor was never closed; it was made at LifetimeTest.java:" + Leaky.LATE), text);
    // A loop that leaks a thousand says so four times.
    String graph = "a graph was never closed; it was made at LifetimeTest.java:";
    assertTrue(text.contains("; 10 of them by now") && text.contains("; 100 of them by now"), text);
    long told = text.lines().filter(line -> line.contains(graph)).count();
    assertTrue(told == 3 || told == 4, told + " of the graphs: " + text);
  }

  /** Leaks one of the first tensors, one when nobody looks any more, and one after that. */
  static final class Leaky {
    static final int EARLY = line(0);
    static final int LATE = line(2);

    /** The line of a leak below, read from where it happens. */
    private static int line(int which) {
      return new Throwable().getStackTrace()[0].getLineNumber() + 7 + 3 * which;
    }

    @SuppressWarnings("resource")
    private static void leak(int which) {
      switch (which) {
        case 0:
          Tensor.scalar(0f).count(); // EARLY
          break;
        case 1:
          Tensor.scalar(1f).count();
          break;
        default:
          LongStream.of(2).mapToObj(Tensor::scalar).forEach(Tensor::count); // LATE, and called by a frame of the JDK
      }
    }

    public static void main(String[] args) throws InterruptedException {
      for (int which = 0; which < 3; which++) {
        leak(which);
        long live = Dtg.liveHandles();
        for (int i = 0; i < 200 && Dtg.liveHandles() == live; i++) {
          System.gc();
          Thread.sleep(20);
        }
        for (int i = 0; which == 0 && i < 2000; i++) Tensor.scalar(1f).close();
      }
      long live = Dtg.liveHandles();
      for (int i = 0; i < 1000; i++) new Graph().isClosed();
      for (int i = 0; i < 200 && Dtg.liveHandles() > live + 1; i++) {
        System.gc();
        Thread.sleep(20);
      }
    }
  }
}
