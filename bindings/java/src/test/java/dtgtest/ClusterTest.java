// Clusters, servers, and sessions that reach them or do not.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ClusterTest {
  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private String address(String name) {
    return "unix:" + folder.resolve(name);
  }

  @Test
  void specs() {
    try (Cluster cluster = Cluster.parse("ps=unix:/a;worker=3@127.0.0.1:1")) {
      assertEquals(List.of("ps", "worker"), cluster.jobs());
      assertEquals(List.of(3), cluster.tasks("worker"));
      assertEquals(List.of(), cluster.tasks("nobody"));
      assertEquals("unix:/a", cluster.address("ps", 0));
      assertNull(cluster.address("ps", 1));
      try (Cluster again = Cluster.parse(cluster.json())) {
        assertEquals(cluster.json(), again.json());
      }
    }
    World.fails(DtgException.InvalidArgument.class, () -> Cluster.parse("ps=nowhere"));
    String config = "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"], \"ps\": [\"c:3\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}, \"rpc_layer\": \"grpc\"}";
    try (Cluster.Place place = Cluster.fromTfConfig(config)) {
      assertEquals(new Task("worker", 1, false, 1, 2, 1, "grpc"), place.task());
      assertEquals("grpc://b:2", Cluster.target(place.cluster(), place.task()));
      assertEquals("c:3", Cluster.target(place.cluster(), new Task("ps", 0)));
    }
    try (Cluster.Place alone = Cluster.fromTfConfig("{}")) {
      assertNull(alone.cluster());
      assertTrue(alone.task().isChief());
    }
    World.fails(DtgException.InvalidArgument.class, () -> Cluster.fromTfConfig("{"));
  }

  private static void member(Server server, int rank) {
    try (Group group = Group.join(server, new GroupOptions().name("java").joinTimeout(World.SECOND.multipliedBy(20)).timeout(World.SECOND.multipliedBy(20)));
        Tensor in = Tensor.of(new float[] {rank, 1, 2, 3})) {
      assertEquals(rank, group.rank());
      assertEquals(2, group.size());
      assertEquals(1, group.epoch());
      assertEquals("/job:worker/replica:0/task:1", group.member(1));
      assertNull(group.member(2));
      try (Tensor sum = group.allReduce(in, Reduction.SUM); Tensor mean = group.reduceScatter(in, Reduction.MEAN); Tensor rows = group.allGather(in);
          Tensor same = group.broadcast(rank == 1 ? in : null, 1); Tensor turned = group.allToAll(in); Tensor cut = group.allToAll(in, 1, 3)) {
        assertArrayEquals(new float[] {1, 2, 4, 6}, sum.toFloats());
        assertArrayEquals(rank == 0 ? new float[] {0.5f, 1} : new float[] {2, 3}, mean.toFloats());
        assertArrayEquals(new float[] {0, 1, 2, 3, 1, 1, 2, 3}, rows.toFloats());
        assertArrayEquals(new float[] {1, 1, 2, 3}, same.toFloats());
        assertArrayEquals(rank == 0 ? new float[] {0, 1, 1, 1} : new float[] {2, 3, 2, 3}, turned.toFloats());
        assertArrayEquals(rank == 0 ? new float[] {0, 1} : new float[] {1, 2, 3, 1, 2, 3}, cut.toFloats());
      }
      group.barrier(null);
      if (rank == 1) {
        group.leave();
        return;
      }
      World.fails(DtgException.Unavailable.class, () -> group.barrier(null));
      group.reform(1, null);
      assertEquals(1, group.size());
      group.barrier(null);
    }
  }

  @Test
  void aGroupOfTwo() throws Exception {
    try (Cluster cluster = Cluster.parse("worker=" + address("w0") + "," + address("w1")); Server first = Server.start(cluster, new ServerOptions());
        Server second = Server.start(cluster, new ServerOptions().task(1))) {
      CompletableFuture<Void> other = CompletableFuture.runAsync(() -> member(second, 1));
      member(first, 0);
      other.get(30, TimeUnit.SECONDS);
    }
  }

  @Test
  void aJobOfTwo() throws Exception {
    try (Cluster cluster = Cluster.parse("ps=" + address("ps") + ";worker=" + address("w")); Server ps = Server.start(cluster, new ServerOptions().job("ps"));
        Server worker = Server.start(cluster, new ServerOptions().job("worker").deviceFilters("/job:ps").heartbeat(World.SECOND));
        Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      assertEquals(address("ps"), ps.target());
      Variable w;
      try (Graph.Scope there = graph.device("/job:ps")) {
        w = model.scalar("w", 4);
      }
      Value more = graph.assignAddVariableOp(w.handle(), graph.constant(1f));
      try (Session session = Session.connect(worker.target(), graph)) {
        session.run(model.init());
        session.run(more);
        assertEquals(5, session.run().fetch(w.read()).callFloat());
        assertTrue(session.clusterStatus(World.SECOND).contains("/job:ps"));
        assertTrue(worker.status().contains("/job:worker"));
        assertTrue(Cluster.status(ps.target(), null).contains("/job:worker"));
        World.fails(DtgException.DeadlineExceeded.class, () -> ps.join(Duration.ZERO));
        CompletableFuture<Void> joined = CompletableFuture.runAsync(() -> ps.join(null));
        session.barrier("the only worker", Duration.ofSeconds(20));
        World.fails(DtgException.InvalidArgument.class, () -> session.barrier("", World.SECOND));
        session.endJob(Duration.ofSeconds(20));
        joined.get(10, TimeUnit.SECONDS);
      }
      worker.stop(World.SECOND);
      worker.join(World.SECOND);
    }
  }

  /** A variable on a ps that runs count, and a queue there into which nothing is ever put. */
  private static final class Counts {
    final Variable w;
    final Value add;
    final Value waitsFirst;
    final Value waitsLast;

    Counts(Graph graph, Model model) {
      Value one = graph.constant(1f);
      try (Graph.Scope there = graph.device("/job:ps")) {
        w = model.scalar("w", 0);
        add = graph.assignAddVariableOp(w.handle(), one);
        try (Graph.Scope behind = graph.controls(World.dequeue(graph))) {
          waitsFirst = graph.assignAddVariableOp(w.handle(), w.read());
        }
        try (Graph.Scope behind = graph.controls(add)) {
          waitsLast = World.dequeue(graph);
        }
      }
    }

    float value(Session session) {
      return session.run().fetch(w.read()).callFloat();
    }
  }

  /** A run is known by its number: what took place can be asked for, and is not made again. */
  @Test
  void outcomes() throws Exception {
    try (Cluster cluster = Cluster.parse("ps=" + address("ps") + ";worker=" + address("w")); Server ps = Server.start(cluster, new ServerOptions().job("ps"));
        Server worker = Server.start(cluster, new ServerOptions().job("worker")); Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Counts job = new Counts(graph, model);
      Value init = model.init();
      try (Session session = Session.connect(worker.target(), graph)) {
        session.run(init);
        AtomicLong first = new AtomicLong();
        for (int i = 0; i < 3; i++) session.run().targets(job.add).write(first).call().close();
        assertEquals(1, job.value(session));
        assertEquals(Outcome.UPDATED, session.outcome(first.get(), World.SECOND));
        AtomicLong second = new AtomicLong();
        CompletableFuture<Results> started = session.run().targets(job.add).write(second).start();
        assertTrue(first.get() != 0 && second.get() != 0 && first.get() != second.get(), first + " and " + second);
        started.get(20, TimeUnit.SECONDS).close();
        session.run().targets(job.add).write(second).start().get(20, TimeUnit.SECONDS).close();
        assertEquals(2, job.value(session));

        AtomicLong before = new AtomicLong();
        AtomicLong after = new AtomicLong();
        Run waitsFirst = session.run().targets(job.waitsFirst).write(before).timeout(Duration.ofMillis(200));
        Run waitsLast = session.run().targets(job.waitsLast).write(after).timeout(Duration.ofMillis(200));
        World.fails(DtgException.DeadlineExceeded.class, waitsFirst::call, "its outcome is unknown: write ");
        assertEquals(Outcome.NOTHING, session.outcome(before.get(), null));
        DtgException cut = World.fails(DtgException.DeadlineExceeded.class, waitsLast::call);
        assertTrue(cut.getMessage().contains("its outcome is unknown: write " + after), cut::getMessage);
        assertEquals(Outcome.UPDATED, session.outcome(after.get(), null));
        World.fails(DtgException.FailedPrecondition.class, waitsLast::call, "queues");
        assertEquals(3, job.value(session));

        World.fails(DtgException.InvalidArgument.class, () -> session.outcome(1L << 30, null), "no such run");
        Run nobodys = session.run().targets(job.add).write(new AtomicLong(1L << 30));
        World.fails(DtgException.InvalidArgument.class, nobodys::call, "no such run");
        assertEquals(3, job.value(session));
      }
    }
  }

  @Test
  void aServerStopsUnderASession() throws Exception {
    try (Cluster cluster = Cluster.parse("worker=" + address("w")); Server server = Server.start(cluster, null); Graph graph = new Graph()) {
      Value one = graph.constant(1f);
      try (Session session = Session.connect(server.target(), graph)) {
        assertEquals(1, session.run().fetch(one).callFloat());
        CompletableFuture<Results> blocked = session.run().fetch(World.dequeue(graph)).start();
        server.stop(World.SECOND);
        ExecutionException failed = assertThrows(ExecutionException.class, () -> blocked.get(10, TimeUnit.SECONDS));
        assertInstanceOf(DtgException.class, failed.getCause());
        DtgException gone = assertThrows(DtgException.class, () -> session.run().fetch(one).callFloat());
        assertTrue(gone instanceof DtgException.Unavailable || gone instanceof DtgException.Cancelled, gone::toString);
        World.tellsWhere(gone);
        if (gone instanceof DtgException.Unavailable) assertTrue((gone.task() + gone.peer()).contains("/job:worker"), gone::toString);
      }
      server.close();
      World.isClosed(server::target, "server");
    }
  }

  @Test
  void nobodyListens() {
    try (Graph graph = new Graph()) {
      SessionOptions soon = new SessionOptions().connectTimeout(Duration.ofMillis(200));
      DtgException missing = assertThrows(DtgException.class, () -> Session.connect(null, address("nobody"), graph, soon));
      assertTrue(missing instanceof DtgException.Unavailable || missing instanceof DtgException.DeadlineExceeded, missing::toString);
      assertTrue(missing.getMessage().contains("nobody"), missing::getMessage);
      World.tellsWhere(missing);
      assertEquals("connect", missing.phase());
      assertThrows(DtgException.class, () -> Cluster.status(address("nobody"), soon));
      World.fails(DtgException.InvalidArgument.class, () -> Session.connect("no address", graph));
    }
  }

  @Test
  void keysAndAddresses() throws IOException {
    String key = folder.resolve("key").toString();
    Server.keygen(key);
    World.fails(DtgException.AlreadyExists.class, () -> Server.keygen(key));
    try (Cluster cluster = Cluster.parse("worker=127.0.0.1:0"); Server server = Server.start(cluster, new ServerOptions().keyFile(key)); Graph graph = new Graph();
        Session session = Session.connect(null, server.target(), graph, new SessionOptions().keyFile(key))) {
      assertEquals(2, session.run().fetch(graph.constant(2f)).callFloat());
      World.fails(DtgException.InvalidArgument.class, () -> Server.start(cluster, new ServerOptions().task(7)));
    }
  }

  /** A session and a server that were told no key, in a process of their own: they take the one that its environment names. */
  static final class ToldNoKey {
    public static void main(String[] target) {
      try (Graph graph = new Graph(); Session session = Session.connect(target[0], graph)) {
        assertEquals(2, session.run().fetch(graph.constant(2f)).callFloat());
      }
      // An address that others can reach asks for a key.
      try (Cluster open = Cluster.parse("worker=0.0.0.0:0"); Server server = Server.start(open, null)) {
        assertTrue(server.target().startsWith("0.0.0.0:"), server.target());
      }
    }
  }

  private String toldNoKey(String target, Path key, boolean good) throws IOException, InterruptedException {
    Path said = folder.resolve("said");
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    ProcessBuilder program = new ProcessBuilder(java, "-Xmx64m", "-Dorg.dtg.library.path=" + System.getProperty("org.dtg.library.path"), "-cp",
        System.getProperty("java.class.path"), ToldNoKey.class.getName(), target);
    program.environment().put("DTG_KEY_FILE", key.toString());
    Process process = program.redirectErrorStream(true).redirectOutput(said.toFile()).start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS));
    String text = Files.readString(said);
    assertEquals(good, process.exitValue() == 0, text);
    return text;
  }

  @Test
  void theKeyOfTheEnvironment() throws IOException, InterruptedException {
    Path key = folder.resolve("key");
    Path other = folder.resolve("other");
    Server.keygen(key.toString());
    Server.keygen(other.toString());
    try (Cluster cluster = Cluster.parse("worker=127.0.0.1:0"); Server server = Server.start(cluster, new ServerOptions().keyFile(key.toString()))) {
      toldNoKey(server.target(), key, true);
      assertTrue(toldNoKey(server.target(), other, false).contains("the same job key"));
      assertTrue(toldNoKey(server.target(), folder.resolve("none"), false).contains("none"));
    }
  }

  @Test
  void replicatedTraining() {
    try (Cluster cluster = Cluster.parse("worker=" + address("w")); Server server = Server.start(cluster, null); Graph graph = new Graph();
        Model model = new Model(graph, 1)) {
      Variable w = model.scalar("w", 0);
      Value loss = graph.square(graph.sub(w.read(), graph.constant(3f)));
      Replicated steps = model.minimizeReplicated(loss, Optimizer.sgd().rate(0.25), new Replication(SyncMode.STRICT, 0, 1));
      try (Session session = Session.connect(server.target(), graph)) {
        session.run(model.init());
        session.run(steps.chiefInit());
        CompletableFuture<Void> updates = session.runRepeatedly(steps.update());
        session.run(steps.localInit());
        for (int i = 0; i < 20; i++) session.run(steps.train());
        assertEquals(3, session.run().fetch(w.read()).callFloat(), 1e-3);
        updates.cancel(true);
      }
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Variable w = model.scalar("w", 0);
      Value loss = graph.square(w.read());
      Replicated share = model.applyReplicated(List.of(w), graph.gradients(loss, w.read()), null, new Replication(SyncMode.ASYNC, 1, 2));
      assertNotNull(share.train());
      assertNull(share.update());
      Replicated bounded =
          model.applyReplicated(List.of(w), graph.gradients(loss, w.read()), null, new Replication(SyncMode.SSP, 1, 2).staleness(3));
      assertNotNull(bounded.leave());
      assertNotNull(bounded.clock());
      assertNull(bounded.members());
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Variable w = model.scalar("w", 0);
      Value loss = graph.square(w.read());
      Replicated elastic =
          model.applyReplicated(List.of(w), graph.gradients(loss, w.read()), null, new Replication(SyncMode.ELASTIC, 0, 3).minWorkers(2));
      assertNotNull(elastic.leave());
      assertNotNull(elastic.members());
    }
  }
}
