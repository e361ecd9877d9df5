// Ten thousand of everything: nothing grows, nothing stays.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RoundsTest {
  private static final int ROUNDS = 10_000;
  private static final int SLICE = 2_000;
  private static final int LEAST = ROUNDS / SLICE; // and one to begin with
  private static final int MOST = 5 * LEAST;
  private static final long KIB = 128; // a leak of 64 bytes a round is seen; the heap does not grow, see pom.xml

  @TempDir Path folder;

  private interface Round {
    void run() throws Exception;
  }

  /**
   * Slices of rounds until two in a row add next to nothing: at least all the rounds, at most five times as many. What leaks never comes to
   * rest; what a JVM takes for its compilers and their code comes late and in one piece, but comes to an end.
   */
  private static void rounds(String what, Round round) throws Exception {
    List<Long> grown = new ArrayList<>();
    for (int quiet = 0; quiet < 2 || grown.size() <= LEAST; ) {
      long before = World.resident();
      for (int i = 0; i < SLICE; i++) round.run();
      grown.add(World.resident() - before);
      quiet = grown.get(grown.size() - 1) < KIB ? quiet + 1 : 0;
      assertTrue(grown.size() <= MOST, () -> SLICE + " " + what + " after the other add KiB without end: " + grown);
    }
    World.assertNothingLives();
    System.out.println(what + ": " + grown.size() + " times " + SLICE + " rounds, KiB more each time: " + grown);
  }

  @Test
  void tensorsAndSessions() throws Exception {
    rounds("tensors", () -> {
      try (Tensor tensor = Tensor.of(new float[] {1, 2, 3})) {
        assertEquals(3, tensor.getFloat(2));
      }
    });
    rounds("sessions", () -> {
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
    rounds("servers", () -> {
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
