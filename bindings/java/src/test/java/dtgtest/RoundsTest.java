// Ten thousand of everything: nothing grows, nothing stays.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Path;
import org.dtg.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RoundsTest {
  private static final int ROUNDS = 10_000;
  private static final long KIB = 8 * 1024; // what compiled code and pools may add meanwhile; the heap does not grow, see pom.xml

  @TempDir Path folder;

  private interface Round {
    void run() throws Exception;
  }

  private static void rounds(String what, int count, Round round) throws Exception {
    for (int i = 0; i < count / 5; i++) round.run();
    System.gc();
    long before = World.resident();
    for (int i = 0; i < count; i++) round.run();
    World.assertNothingLives();
    long grown = World.resident() - before;
    System.out.println(what + ": " + count + " rounds, " + grown + " KiB more");
    assertTrue(grown < KIB, () -> what + " grow by " + grown + " KiB");
  }

  @Test
  void tensorsAndSessions() throws Exception {
    rounds("tensors", ROUNDS, () -> {
      try (Tensor tensor = Tensor.of(new float[] {1, 2, 3})) {
        assertEquals(3, tensor.getFloat(2));
      }
    });
    rounds("sessions", ROUNDS, () -> {
      try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
        assertEquals(1, session.run().fetch(graph.constant(1f)).callFloat());
      }
    });
  }

  @Test
  void errors() throws Exception {
    try (Graph graph = new Graph()) {
      for (int i = 0; i < ROUNDS; i++) assertThrows(DtgException.NotFound.class, () -> graph.find("nobody"));
    }
    World.assertNothingLives();
  }

  @Test
  void servers() throws Exception {
    String address = "worker=unix:" + folder.resolve("w");
    rounds("servers", ROUNDS, () -> {
      try (Cluster cluster = Cluster.parse(address); Server server = Server.start(cluster, null); Graph graph = new Graph();
          Session session = Session.connect(server.target(), graph)) {
        assertEquals(1, session.devices().size());
      }
    });
  }

  @Test
  void futures() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value one = graph.constant(1f);
      for (int i = 0; i < ROUNDS; i++) session.run().fetch(one).start().join().close();
    }
    World.assertNothingLives();
  }
}
