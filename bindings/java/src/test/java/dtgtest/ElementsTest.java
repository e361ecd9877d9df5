// Loops over data sets: where they begin, whose the elements are, and what is told of data that are over.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ElementsTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static List<Long> epoch(Dataset data) {
    List<Long> out = new ArrayList<>();
    for (Results element : data) out.add(element.get(0).getLong(0));
    return out;
  }

  @Test
  void aLoopBeginsAnew() {
    List<Long> all = List.of(0L, 1L, 2L, 3L);
    try (Dataset data = Dataset.range(0, 4, 1)) {
      for (int i = 0; i < 3; i++) assertEquals(all, epoch(data));
      data.restart().next().close(); // an epoch that was begun by hand
      assertEquals(all, epoch(data));
      for (Results element : data) { // and one that a loop was left in
        if (element.get(0).getLong(0) == 1) break;
      }
      assertEquals(2, data.position()[0]);
      long[] there = data.position();
      assertEquals(all, epoch(data));
      assertEquals(List.of(2L, 3L), epoch(data.moveTo(there)), "it goes on there");
      assertEquals(all, epoch(data));
      Iterator<Results> left = data.iterator();
      for (int i = 0; i < 4; i++) assertTrue(left.hasNext() && left.next().get(0).getLong(0) == i);
      assertThrows(NoSuchElementException.class, left::next);
      assertFalse(left.hasNext());
    }
    try (Dataset shuffled = Dataset.range(0, 100, 1).shuffle(0, 1)) {
      assertNotEquals(epoch(shuffled), epoch(shuffled));
    }
  }

  @Test
  void theLoopClosesItsElements() {
    Results kept = null;
    long live = Dtg.liveHandles();
    Dataset data = Dataset.range(0, 4, 1);
    for (Results element : data) {
      if (kept != null) assertTrue(kept.get(0).isClosed());
      assertFalse(element.get(0).isClosed());
      assertEquals(live + 2, Dtg.liveHandles());
      kept = element;
    }
    assertTrue(kept.get(0).isClosed());
    for (Results element : data) {
      kept = element;
      break;
    }
    assertFalse(kept.get(0).isClosed());
    try (Results mine = data.next()) { // nobody else's
      data.close();
      assertTrue(kept.get(0).isClosed());
      assertFalse(mine.get(0).isClosed());
    }
    assertEquals(live, Dtg.liveHandles());
    assertThrows(IllegalStateException.class, data::iterator);
  }

  /** What a fit has read begins anew too, or the loop behind it would have nothing. */
  @Test
  void aLoopBehindAFitBeginsAnew() {
    try (Tensor x = Tensor.of(new float[] {1, 2, 3, 4}, 4, 1); Tensor y = Tensor.of(new float[] {2, 4, 6, 8}, 4, 1);
        Dataset data = Dataset.tensors(x, y).batch(2, true); Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value in = graph.placeholder("x", DType.F32, -1, 1), wanted = graph.placeholder("y", DType.F32, -1, 1);
      Value out = model.dense(in, new Dense(1));
      TrainerOptions options = new TrainerOptions().feeds(in, wanted).outputs(out).loss(model.meanSquaredError(wanted, out)).optimizer(Optimizer.sgd().rate(0.01));
      try (Trainer trainer = new Trainer(model, options)) {
        trainer.fit(data, null);
        int batches = 0;
        for (Results batch : data) batches += batch.size() / 2;
        assertEquals(2, batches);
        trainer.evaluate(data);
        for (Results batch : data) batches += batch.size() / 2;
        assertEquals(4, batches);
      }
    }
  }

  /** Whoever asks again after the end, by hand, gets nothing, and is told so, once, in Java's words. */
  @Test
  void anEndThatIsAskedAgainIsTold(@TempDir Path folder) throws Exception {
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    Path table = Files.writeString(folder.resolve("t.csv"), "a\n1\n2\n");
    try (DtgRuntime runtime = new DtgRuntime(new RuntimeOptions().log(LogLevel.WARN, (level, component, message) -> lines.add(component + ": " + message)));
        Dataset data = Dataset.csv(runtime, table, null)) {
      for (int i = 0; i < 2; i++) {
        int rows = 0;
        for (Results row : data) rows += row.size();
        assertEquals(2, rows);
      }
      for (int i = 0; i < 3; i++) assertNull(data.next());
    }
    String line = lines.poll(10, TimeUnit.SECONDS);
    assertNotNull(line, "nothing was told");
    assertTrue(line.startsWith("data: next element: the data set (") && line.endsWith("until Dataset.restart begins the next epoch"), line);
    assertTrue(lines.isEmpty(), lines::toString);
  }
}
