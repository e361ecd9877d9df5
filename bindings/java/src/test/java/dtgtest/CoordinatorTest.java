// Coordinators: two workers that are plain servers, and a chief that gives them closures, all in this process.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CoordinatorTest {
  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private Cluster cluster() {
    String at = "unix:" + folder;
    return Cluster.parse("chief=" + at + "/c;worker=" + at + "/w0," + at + "/w1");
  }

  @Test
  void closuresComeBack() throws Exception {
    try (Cluster cluster = cluster(); Server chief = Server.start(cluster, new ServerOptions().job("chief").task(0));
        Server first = Server.start(cluster, new ServerOptions().job("worker").task(0));
        Server second = Server.start(cluster, new ServerOptions().job("worker").task(1)); Graph graph = new Graph()) {
      Value x = graph.placeholder("x", DType.F32);
      Value number = graph.placeholder("number", DType.I64);
      Value square = graph.mul(x, x);
      Value who = graph.identity(number);
      CoordinatorOptions options = new CoordinatorOptions().job("worker").queueCapacity(100).closureTimeout(World.SECOND.multipliedBy(30)).closureLosses(5);
      try (Session session = Session.connect(chief.target(), graph); Coordinator coordinator = new Coordinator(session, options);
          Coordinator.Closure closure = coordinator.prepare(List.of(x), List.of(square, who), List.of(), number)) {
        List<CompletableFuture<Results>> values = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
          try (Tensor in = Tensor.scalar((float) i)) {
            values.add(coordinator.schedule(closure, in));
          }
        }
        for (int i = 0; i < 20; i++) {
          try (Results results = values.get(i).get(30, TimeUnit.SECONDS)) {
            assertEquals(i * i, results.get(0).toFloats()[0]);
            long worker = results.get(1).toLongs()[0];
            assertTrue(worker == 0 || worker == 1, "worker " + worker);
          }
        }
        coordinator.join(null);
        assertTrue(coordinator.isDone());
        assertTrue(coordinator.status().contains("/job:worker/replica:0/task:1"), coordinator.status());
        World.fails(DtgException.InvalidArgument.class, () -> coordinator.schedule(closure), "tensor");
        World.fails(DtgException.InvalidArgument.class, () -> coordinator.prepare(List.of(x), List.of(), List.of(), null), "fetch");
        try (Cancellation over = new Cancellation()) {
          over.cancel();
          World.fails(DtgException.Cancelled.class, () -> coordinator.join(null, over));
        }
        coordinator.cancel();
        coordinator.join(World.SECOND.multipliedBy(30));
      }
    }
  }

  @Test
  void theErrorOfAClosureIsToldOnce() throws Exception {
    try (Cluster cluster = cluster(); Server chief = Server.start(cluster, new ServerOptions().job("chief").task(0));
        Server first = Server.start(cluster, new ServerOptions().job("worker").task(0));
        Server second = Server.start(cluster, new ServerOptions().job("worker").task(1)); Graph graph = new Graph()) {
      Value x = graph.placeholder("x", DType.F32);
      Value bad = graph.checkNumerics(x, "not a number");
      try (Session session = Session.connect(chief.target(), graph); Coordinator coordinator = new Coordinator(session, new CoordinatorOptions());
          Coordinator.Closure closure = coordinator.prepare(List.of(x), List.of(bad), List.of(), null);
          Tensor nan = Tensor.scalar(Float.NaN); Tensor two = Tensor.scalar(2f)) {
        CompletableFuture<Results> value = coordinator.schedule(closure, nan);
        World.fails(DtgException.InvalidArgument.class, () -> coordinator.join(null), "closure on /job:worker");
        ExecutionException told = assertThrows(ExecutionException.class, () -> value.get(30, TimeUnit.SECONDS));
        assertInstanceOf(DtgException.InvalidArgument.class, told.getCause());
        coordinator.join(null);
        try (Results results = coordinator.schedule(closure, two).get(30, TimeUnit.SECONDS)) {
          assertEquals(2, results.get(0).toFloats()[0]);
        }
      }
      try (Session local = Session.connect("local", graph)) {
        World.fails(DtgException.FailedPrecondition.class, () -> new Coordinator(local, new CoordinatorOptions()), "local");
      }
    }
  }

  @Test
  void shardsOfRows() {
    assertEquals(3, Partitioner.fixedShards(3).shards(DType.F32, 0, 8, 4));
    assertArrayEquals(new long[] {6, 2}, Partitioner.shardRows(8, 3, 2));
    World.fails(DtgException.InvalidArgument.class, () -> Partitioner.shardRows(8, 3, 3));
  }
}
