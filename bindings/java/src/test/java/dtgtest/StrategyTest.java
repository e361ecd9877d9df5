// Strategies: a mirrored model on emulated accelerators against towers, per-replica values, aggregated writes, and misuse.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StrategyTest {
  private static final String[] EMUS = {"/device:EMU:0", "/device:EMU:1"};

  private static final float[] BATCH = {1, 2, 3, -1, 0, 1, 0.5f, 0.5f, 0, 2, -2, 1};

  @TempDir Path folder;

  private String address(String name) {
    return "unix:" + folder.resolve(name);
  }

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static Value loss(Graph graph, Model model, Value half) {
    Value y = model.dense(half, new Dense(2).activation(Activation.TANH));
    return model.meanSquaredError(graph.zerosLike(y), y);
  }

  /** The kernel after three steps. */
  private static float[] trained(BiFunction<Model, Value, Training> build) {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5)) {
      Value x = graph.placeholder("x", DType.F32, 4, 3);
      Training training = build.apply(model, x);
      Value init = model.init();
      try (Session session = Session.connect(null, "local", graph, new SessionOptions().emuDevices(2));
          Tensor batch = Tensor.of(BATCH, 4, 3)) {
        session.run(init);
        for (int step = 0; step < 3; step++) session.run().feed(x, batch).targets(training.train()).call().close();
        try (Results read = session.run().fetch(model.variable("dense/kernel").read()).call()) {
          float[] values = new float[6];
          for (int i = 0; i < values.length; i++) values[i] = read.get(0).getFloat(i);
          return values;
        }
      }
    }
  }

  private static float[] towers() {
    return trained(
        (model, x) -> {
          Graph graph = x.graph();
          List<Value> halves = graph.split(graph.constant(0), x, 2);
          Value first = loss(graph, model, halves.get(0));
          model.nextTower();
          return model.minimizeTowers(List.of(first, loss(graph, model, halves.get(1))), Optimizer.adam().rate(0.1));
        });
  }

  /** A worker's kernel after three steps on its half of the batch, by hand or by a fit of all workers. */
  private static float[] worker(Server server, int rank, boolean fits) {
    Duration soon = World.SECOND.multipliedBy(20);
    try (Group group = Group.join(server, new GroupOptions().timeout(soon)); Graph graph = new Graph();
        Model model = new Model(graph, 5 + rank); // the first one's values are everybody's
        Strategy strategy =
            new Strategy(
                model,
                new StrategyOptions(StrategyOptions.Kind.MULTI_WORKER_MIRRORED)
                    .group(group)
                    .algorithm(StrategyOptions.Algorithm.RING)
                    .packBytes(1 << 10)
                    .timeout(soon))) {
      assertEquals(2, strategy.replicasInSync());
      Value x = graph.placeholder("x", DType.F32, 2, 3);
      Value[] mean = new Value[1];
      Training training =
          strategy.scope(
              () -> {
                List<Strategy.PerReplica> losses =
                    strategy.run((replica, own) -> List.of(loss(graph, model, own.get(0))), strategy.split(x));
                model.globalStep(); // behind the layers, so that they draw the first values of those in towers
                mean[0] = strategy.reduce(Reduction.MEAN, losses.get(0));
                return strategy.minimize(losses.get(0), Reduction.MEAN, Optimizer.adam().rate(0.1));
              });
      Value level = strategy.level(), init = model.init();
      try (Session session = Session.connect(null, server.target(), graph, new SessionOptions());
          Tensor half = Tensor.of(Arrays.copyOfRange(BATCH, 6 * rank, 6 * rank + 6), 2, 3)) {
        if (fits) {
          TrainerOptions what = new TrainerOptions().session(session).feeds(x).loss(mean[0]).train(training.train()).strategy(strategy);
          try (Trainer trainer = new Trainer(model, what); Dataset data = Dataset.tensors(half)) {
            trainer.fit(data.batch(2, true), new FitOptions().epochs(3));
          }
        } else {
          session.run(init);
          for (int step = 0; step < 3; step++) session.run().feed(x, half).targets(training.train()).call().close();
        }
        session.run(level);
        try (Results read = session.run().fetch(model.variable("dense/kernel").read()).call()) {
          float[] values = read.get(0).toFloats();
          group.barrier(soon);
          return values;
        }
      }
    }
  }

  @Test
  void workersTrainLikeTowers() throws Exception {
    float[] towers = towers();
    for (boolean fits : new boolean[] {false, true}) {
      // Servers of its own: variables belong to the tasks.
      try (Cluster cluster = Cluster.parse("worker=" + address("w0" + fits) + "," + address("w1" + fits));
          Server first = Server.start(cluster, new ServerOptions()); Server second = Server.start(cluster, new ServerOptions().task(1))) {
        CompletableFuture<float[]> other = CompletableFuture.supplyAsync(() -> worker(second, 1, fits));
        assertArrayEquals(towers, worker(first, 0, fits));
        assertArrayEquals(towers, other.get(60, TimeUnit.SECONDS));
      }
    }
  }

  @Test
  void copiesTrainLikeTowers() {
    float[] towers = towers();
    for (StrategyOptions.Kind kind : List.of(StrategyOptions.Kind.MIRRORED, StrategyOptions.Kind.CENTRAL_STORAGE)) {
      float[] got =
          trained(
              (model, x) -> {
                try (Strategy strategy = new Strategy(model, new StrategyOptions(kind, EMUS))) {
                  return strategy.scope(
                      () -> {
                        List<Strategy.PerReplica> losses =
                            strategy.run((replica, own) -> List.of(loss(x.graph(), model, own.get(0))), strategy.split(x));
                        return strategy.minimize(losses.get(0), Reduction.MEAN, Optimizer.adam().rate(0.1));
                      });
                }
              });
      assertArrayEquals(towers, got, kind.toString());
    }
  }

  @Test
  void valuesAndWritesOfReplicasMeet() {
    try (Graph graph = new Graph();
        Model model = new Model(graph, 1);
        Strategy strategy = new Strategy(model, new StrategyOptions(StrategyOptions.Kind.MIRRORED, EMUS).hierarchical())) {
      assertEquals(2, strategy.replicas());
      assertEquals(2, strategy.replicasInSync());
      Variable seen =
          strategy.scope(() -> model.addVariable(new VariableSpec("seen").trainable(false).onRead().aggregation(Aggregation.SUM)));
      Strategy.PerReplica numbers =
          strategy
              .run(
                  (replica, own) -> {
                    Value number = graph.constant(replica + 1f);
                    assertNotNull(strategy.assign(seen, Strategy.Assign.ADD, number));
                    return List.of(number);
                  })
              .get(0);
      Value updates = strategy.updates();
      Value sum = strategy.reduce(Reduction.SUM, numbers);
      Value mean = strategy.reduce(Reduction.MEAN, numbers);
      assertEquals(List.of(sum, sum), strategy.localResults(strategy.broadcast(sum)));
      assertEquals(2, strategy.localResults(strategy.distribute(strategy.localResults(numbers))).size());
      Value init = model.init();
      try (Session session = Session.connect(null, "local", graph, new SessionOptions().emuDevices(2))) {
        session.run(init);
        session.run(updates);
        assertEquals(3f, session.run().fetch(sum).callFloat());
        assertEquals(1.5f, session.run().fetch(mean).callFloat());
        assertEquals(3f, session.run().fetch(seen.read()).callFloat());
      }
    }
  }

  @Test
  void misuseSaysWhereItBelongs() {
    try (Graph graph = new Graph();
        Model model = new Model(graph, 1);
        Strategy strategy = new Strategy(model, new StrategyOptions(StrategyOptions.Kind.CENTRAL_STORAGE, "CPU:0", "CPU:1"));
        Strategy other = new Strategy(model, new StrategyOptions(StrategyOptions.Kind.ONE_DEVICE, "CPU:0"))) {
      Strategy.PerReplica numbers = strategy.run((replica, own) -> List.of(graph.constant(1f))).get(0);
      World.fails(
          DtgException.FailedPrecondition.class,
          () -> strategy.run((replica, own) -> List.of(strategy.reduce(Reduction.SUM, numbers))),
          "cross-replica");
      assertThrows(
          ArithmeticException.class,
          () ->
              strategy.run(
                  (replica, own) -> {
                    throw new ArithmeticException("the program's own");
                  }));
      World.fails(DtgException.InvalidArgument.class, () -> other.gather(numbers, 0), "mixed");
      World.fails(DtgException.FailedPrecondition.class, () -> strategy.scope(() -> other.scope(() -> null)), "mixed");
      World.fails(DtgException.FailedPrecondition.class, strategy::replicated, "parameter servers");
      World.fails(
          DtgException.InvalidArgument.class,
          () -> new Strategy(model, new StrategyOptions(StrategyOptions.Kind.MIRRORED)),
          "devices");
      assertEquals(2, strategy.replicas());
    }
  }
}
