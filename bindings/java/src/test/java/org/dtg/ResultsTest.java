// What becomes of tensors that were taken where taking the next one fails, which no program can bring about: so this stands in the package,
// beside the others, which stand outside.

package org.dtg;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

class ResultsTest {
  /** Within ten seconds: the queue of ends lingers. Nothing is collected, which would not help what has only an address. */
  private static void assertLiving(long handles) throws InterruptedException {
    for (int i = 0; i < 1000 && Dtg.liveHandles() != handles; i++) Thread.sleep(10);
    assertEquals(handles, Dtg.liveHandles(), "what was taken was not released");
  }

  @Test
  void whatWasTakenOfARunIsReleased() throws InterruptedException {
    long live = Dtg.liveHandles();
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Run both = session.run().fetch(graph.constant(2f)).fetch(graph.constant(3f));
      try (Results good = both.startLong(run -> Results.taken(run, 2)).join()) {
        assertEquals(3f, good.get(1).getFloat(0));
      }
      CompletableFuture<Results> more = both.startLong(run -> Results.taken(run, 3)); // the third fails
      CompletionException failed = assertThrows(CompletionException.class, more::join);
      assertInstanceOf(DtgException.class, failed.getCause());
    }
    assertLiving(live);
  }

  /** Here org.dtg.leak=fail, so the next object that is made throws. */
  @Test
  void whatIsNotHandedOutIsReleased() throws InterruptedException {
    long live = Dtg.liveHandles();
    try (Tensor x = Tensor.of(new float[] {1, 2}); Tensor given = Tensor.of(new float[] {1, 2}); Dataset data = Dataset.tensors(x, x, x).repeat(2)) {
      long[] element = Native.datasetNext(data.hold());
      Leaks.found("test", "ResultsTest");
      assertThrows(IllegalStateException.class, () -> Results.owning(element));
      assertEquals(live + 3, Dtg.liveHandles());
      long[] second = Native.datasetNext(data.hold());
      Native.release(Handle.Kind.TENSOR.ordinal(), second[0]);
      Leaks.found("test", "ResultsTest");
      assertThrows(IllegalStateException.class, () -> Results.of(new Tensor[] {given, null, null}, second, 0));
      assertEquals(live + 3, Dtg.liveHandles());
      assertFalse(given.isClosed());
      data.drop();
      data.drop();
    }
    assertLiving(live);
  }
}
