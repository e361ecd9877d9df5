// Models, data sets and files.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelTest {
  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void quickstart() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable w = model.scalar("w", 0);
      Value loss = model.meanSquaredError(graph.constant(3f), w.read());
      Training training = model.minimize(loss, Optimizer.sgd().rate(0.25));
      session.run(model.init());
      for (float expected = 9; expected > 0.1f; expected /= 4) {
        assertEquals(expected, session.run().fetch(loss).targets(training.train()).callFloat());
      }
      try (Results steps = session.run().fetch(training.globalStep(), training.learningRate()).call()) {
        assertEquals(4, steps.get(0).getLong(0));
        assertEquals(0.25f, steps.get(1).getFloat(0));
      }
    }
  }

  @Test
  void layersLossesAndSchedules() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 3)) {
      Value image = graph.placeholder("image", DType.F32, 2, 8, 8, 1);
      Value conv = model.conv2d(image, new Conv2D(4).kernelHeight(3).padding(Padding.SAME).activation(Activation.RELU).bias(false));
      assertArrayEquals(new long[] {2, 8, 8, 4}, conv.shape());
      Value pooled = model.avgPool2d(model.maxPool2d(conv, new Pool2D()), new Pool2D().windowHeight(4).name("mean"));
      assertArrayEquals(new long[] {2, 1, 1, 4}, pooled.shape());
      Value step = model.globalStep().read();
      Value flat = model.dropout(model.flatten(pooled), 0.5, step, null);
      Value logits = model.activation(model.dense(flat, new Dense(3).kernelInit(Initializer.normal(0, 1)).biasInit(Initializer.constant(2))), Activation.TANH);
      Value labels = graph.placeholder("labels", DType.I64, 2);
      Value shares = graph.placeholder("shares", DType.F32, 2, 3);
      for (Value scalar : List.of(model.sparseSoftmaxCrossEntropy(labels, logits), model.softmaxCrossEntropy(shares, logits),
          model.sigmoidCrossEntropy(shares, logits), model.accuracy(labels, logits), model.correctCount(labels, logits),
          model.exponentialDecay(step, 0.1, 10, 0.5, true), model.cosineDecay(step, 0.1, 100, 0, 10))) {
        assertArrayEquals(new long[0], scalar.shape());
      }
      assertArrayEquals(new long[] {2, 5}, model.embedding(labels, new Embedding(10, 5).tableInit(Initializer.uniform(0, 1))).shape());
      assertEquals("dense/bias", model.variable("dense/bias").name());
      assertEquals(List.of("conv2d/kernel", "global_step", "dense/kernel", "dense/bias", "embedding/embeddings"),
          model.variables().stream().map(Variable::name).toList());
      Variable mine = model.addVariable(new VariableSpec("mine", 2, 2).dtype(DType.F64).trainable(false).initializer(Initializer.ONES));
      assertArrayEquals(new long[] {2, 2}, mine.shape());
      assertFalse(mine.trainable());
      World.fails(DtgException.NotFound.class, () -> model.variable("nobody"), "nobody");
      World.fails(DtgException.InvalidArgument.class, () -> model.dense(flat, new Dense(0)));
    }
  }

  @Test
  void everyOptimizerLearns() {
    for (Optimizer optimizer : List.of(Optimizer.sgd(), Optimizer.momentum(0.5).nesterov(true), Optimizer.adam().beta1(0.8).beta2(0.99).epsilon(1e-6),
        Optimizer.adagrad().initialAccumulator(0.2), Optimizer.rmsprop(0.1).decay(0.8).clipNorm(1), Optimizer.rmsprop(0).centered(true).epsilon(1e-3),
        Optimizer.adam().amsgrad(true).weightDecay(0.01).undecayedNames(List.of("w")), Optimizer.adadelta(), Optimizer.adamax(), Optimizer.nadam(),
        Optimizer.ftrl().l1(0.01).l2(0.01).l2Shrinkage(0.01).ftrlBeta(0.1).ratePower(-0.6), Optimizer.lion(), Optimizer.lars(0.5).trust(0.01),
        Optimizer.adafactor().epsilon2(0.1).clipThreshold(0.5), Optimizer.sgd().lookahead(3, 0.5), Optimizer.sgd().ema(0.9).emaOverwriteEvery(5),
        Optimizer.sgd().accumulationSteps(2), Optimizer.sgd().clipValue(1), Optimizer.sgd().clipEachNorm(1))) {
      try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
        Variable w = model.scalar("w", 0);
        Value loss = graph.square(graph.sub(w.read(), graph.constant(3f)));
        Value train = model.minimize(loss, optimizer.rate(0.1)).train();
        session.run(model.init());
        for (int i = 0; i < 10; i++) session.run(train);
        assertTrue(session.run().fetch(loss).callFloat() < 9);
      }
    }
  }

  /** A generator and its critic: two optimizers in one model, each with variables of its own. */
  @Test
  void twoOptimizersTrainEachItsOwn() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable a = model.scalar("a", 1);
      Variable b = model.scalar("b", 2);
      Value loss = graph.mul(a.read(), b.read());
      Value ofA = model.minimize(loss, Optimizer.sgd(0.25).variables(List.of(a))).train();
      Value ofB = model.minimize(loss, Optimizer.lamb().rate(0.5).variables(List.of(b)).undecayed(List.of(b))).train();
      session.run(model.init());
      session.run(ofA);
      assertEquals(0.5f, session.run().fetch(a.read()).callFloat());
      assertEquals(2f, session.run().fetch(b.read()).callFloat());
      session.run(ofB);
      assertEquals(0.5f, session.run().fetch(a.read()).callFloat());
      assertEquals(1f, session.run().fetch(b.read()).callFloat(), 1e-5f);
    }
  }

  @Test
  void schedulesFollowTheStep() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Value step = graph.constant(5);
      Schedule[] schedules = {Schedule.exponentialDecay(1, 4, 0.5).staircase(true), Schedule.inverseTimeDecay(1, 2, 1),
          Schedule.polynomialDecay(1, 8, 0.5, 1, false), Schedule.piecewiseConstant(new long[] {3, 5}, new double[] {3, 2, 1}),
          Schedule.cosineDecay(0, 8).warmup(2, 2).alpha(0.5), Schedule.cosineDecayRestarts(1, 2, 1, 0.5)};
      double[] wanted = {0.5, 1 / 3.5, 0.6875, 2, 1.5 + 0.5 * Math.cos(Math.PI * 3 / 8), 0.125};
      for (int i = 0; i < schedules.length; i++) {
        assertEquals((float) wanted[i], session.run().fetch(model.schedule(step, schedules[i])).callFloat(), 1e-5f);
      }
      World.fails(DtgException.InvalidArgument.class, () -> Schedule.piecewiseConstant(new long[] {1}, new double[0]), "one value more");
    }
  }

  @Test
  void gradientsOfOnesOwnAndTowers() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable w = model.scalar("w", 1);
      Value loss = graph.square(w.read());
      Value train = model.applyGradients(List.of(w), graph.gradients(loss, w.read()), Optimizer.sgd().rate(0.25));
      session.run(model.init());
      session.run(train);
      assertEquals(0.5f, session.run().fetch(w.read()).callFloat());
      World.fails(DtgException.InvalidArgument.class, () -> model.applyGradients(List.of(w), List.of(), null), "one each");
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value x = graph.placeholder("x", DType.F32, 4, 2);
      Value first = graph.l2Loss(model.dense(x, new Dense(1)));
      model.nextTower();
      Value second = graph.l2Loss(model.dense(x, new Dense(1)));
      assertNotNull(model.minimizeTowers(List.of(first, second), null).train());
      assertEquals(3, model.variables().size());
    }
  }

  @Test
  void oneMemberTrainsByAllReduce() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable w = model.scalar("w", 1);
      Value train = model.minimizeAllReduce(graph.square(w.read()), Optimizer.sgd().rate(0.25), new AllReduce(1)).train();
      session.run(model.init());
      session.run(train);
      assertEquals(0.5f, session.run().fetch(w.read()).callFloat());
      World.fails(DtgException.InvalidArgument.class, () -> model.minimizeAllReduce(graph.square(w.read()), null, new AllReduce(0)), "at least one");
    }
  }

  @Test
  void savedAndRestored() throws IOException {
    String path = folder.resolve("weights.safetensors").toString();
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable w = model.scalar("w", 5);
      World.fails(DtgException.FailedPrecondition.class, () -> model.save(session, path));
      World.fails(DtgException.DeadlineExceeded.class, () -> model.waitReady(session, Duration.ofMillis(20)), "w");
      session.run(model.init());
      model.waitReady(session, World.SECOND);
      model.save(session, path);
      try (Tensor two = Tensor.scalar(2f)) {
        session.run(graph.assignVariableOp(w.handle(), graph.constant(two)));
      }
      assertEquals(2, session.run().fetch(w.read()).callFloat());
      model.restore(session, path);
      assertEquals(5, session.run().fetch(w.read()).callFloat());
      World.fails(DtgException.NotFound.class, () -> model.restore(session, path + ".not"));
    }
    try (Weights weights = Weights.load(path); Tensor w = weights.get("w"); Tensor more = Tensor.of(new long[] {1, 2})) {
      assertEquals(5, w.getFloat(0));
      weights.set("more", more);
      weights.setMetadata("who", "Jürgen");
      assertEquals(List.of("w", "more"), weights.names());
      weights.save(path);
    }
    try (Weights weights = Weights.load(path)) {
      assertEquals("Jürgen", weights.metadata("who"));
      assertNull(weights.metadata("nobody"));
      World.fails(DtgException.NotFound.class, () -> weights.get("nobody"));
    }
    Files.write(Path.of(path), new byte[] {1, 2, 3});
    World.fails(DtgException.DataLoss.class, () -> Weights.load(path));
    try (Weights empty = new Weights()) {
      assertEquals(List.of(), empty.names());
    }
  }

  @Test
  void events() throws IOException {
    try (EventWriter writer = new EventWriter(folder.toString()); Tensor tensor = Tensor.of(new float[] {1, 2})) {
      writer.scalar("loss", 1, 0.5);
      writer.histogram("weights", 1, tensor);
      writer.text("note", 1, "**bold**");
      writer.flush();
      writer.finish();
      World.fails(DtgException.FailedPrecondition.class, () -> writer.scalar("loss", 2, 0.5));
    }
    try (EventWriter resumed = new EventWriter(folder.toString(), World.SECOND, 1)) {
      resumed.flush();
    }
    try (var files = Files.list(folder)) {
      assertEquals(2, files.filter(path -> path.getFileName().toString().contains("tfevents")).count());
    }
  }

  @Test
  void dataSets() throws IOException {
    try (Dataset numbers = Dataset.range(0, 10, 1).skip(1).take(8).shard(2, 1).batch(2, false)) {
      try (Results batch = numbers.next()) {
        assertArrayEquals(new long[] {2, 4}, batch.get(0).toLongs());
      }
      assertEquals(2, numbers.cardinality());
      numbers.next().close();
      assertNull(numbers.next());
      numbers.restart();
      numbers.next().close();
    }
    Path csv = Files.writeString(folder.resolve("a.csv"), "a;b\n1;2\n3;\n");
    CsvOptions options = new CsvOptions().delimiter(';').header(CsvOptions.Header.NAMES).missing(CsvOptions.Missing.DROPPED).columns("b");
    try (Dataset rows = Dataset.csv(csv.toString(), options).cast(0, DType.F32).repeat(2).prefetch(1)) {
      assertEquals(1, rows.badRows());
      assertTrue(rows.whyBad().contains("line 3 has no value in column \"b\"; it was dropped"), rows.whyBad());
      assertEquals(1, rows.componentCount());
      assertEquals(DType.F32, rows.component(0).dtype());
      assertEquals(0, rows.component(0).shape().length);
      assertEquals("float32[]", rows.component(0).toString());
      assertEquals(rows.component(0), rows.component(0));
      try (Results row = rows.next()) {
        assertEquals(2, row.get(0).getFloat(0));
      }
      World.fails(DtgException.OutOfRange.class, () -> rows.component(1));
    }
    try (Tensor x = Tensor.of(new float[] {1, 2, 3, 4}); Dataset slices = Dataset.tensors(x).autoShard(1, 0).batch(4, true).rebatch(2)) {
      assertEquals("Dataset(float32[-1])", slices.toString());
      try (Results half = slices.next()) {
        assertArrayEquals(new float[] {1, 2}, half.get(0).toFloats());
      }
    }
    assertArrayEquals(new long[] {4, 3}, new long[] {Dataset.batchSizes(7, 2, 1, 0)[0], Dataset.batchSizes(7, 2, 1, 1)[0]});
    World.fails(DtgException.NotFound.class, () -> Dataset.csv("/no/such.csv", null), "/no/such.csv");
    World.fails(DtgException.NotFound.class, () -> Dataset.idx("/no/such", "/nor/that"));
  }

  /** w moving towards a stream of numbers by Adam, and its checkpoints. */
  private static final class Learner implements AutoCloseable {
    final Graph graph = new Graph();
    final Model model = new Model(graph, 1);
    final Dataset data = Dataset.range(0, 10, 1).cast(0, DType.F32).shuffle(0, 7).repeat(-1).batch(2, true);
    final Value x = graph.placeholder("x", DType.F32, 2);
    final Variable w;
    final Training training;
    final Session session;
    final Checkpoint sets;

    Learner(Path directory, long size, CheckpointOptions options) {
      w = model.addVariable(new VariableSpec("w", size));
      Value zero = graph.constant(new long[] {0});
      Value loss = model.meanSquaredError(graph.mean(x, zero), graph.mean(w.read(), zero));
      training = model.minimize(loss, Optimizer.adam().rate(0.1));
      session = Session.connect("local", graph);
      sets = new Checkpoint(model, session, directory.toString(), options);
      sets.addData("train", data);
    }

    void step() {
      try (Results batch = data.next()) {
        session.run().feed(x, batch.get(0)).targets(training.train()).call().close();
      }
    }

    float[] value() {
      try (Results out = session.run().fetch(w.read()).call()) {
        return out.get(0).toFloats();
      }
    }

    @Override
    public void close() {
      sets.close();
      session.close();
      data.close();
      model.close();
      graph.close();
    }
  }

  @Test
  void checkpointsGoOn() {
    Path directory = folder.resolve("sets");
    float[] value;
    CheckpointOptions every = new CheckpointOptions().every(2).every(Duration.ofHours(1)).keep(2).shards(2);
    try (Learner first = new Learner(directory, 3, every)) {
      assertEquals(0, first.sets.resume().step());
      for (long step = 1; step <= 7; step++) {
        first.step();
        assertEquals(step % 2 == 0, first.sets.reached(step));
        first.sets.await(null);
      }
      first.sets.save(7, Duration.ofMinutes(1));
      first.sets.beginSave(7, null);
      first.sets.await(Duration.ofMinutes(1));
      assertTrue(first.sets.status().contains("\"saves\":5"), first.sets.status());
      value = first.value();
    }
    try (Learner second = new Learner(directory, 3, null)) {
      Checkpoint.Restored at = second.sets.resume();
      assertEquals(7, at.step());
      assertTrue(at.report().contains("\"restored\""), at.report());
      RestoreReport told = RestoreReport.of(at.report());
      assertEquals("restored", told.outcome());
      assertEquals(at.step(), told.step());
      assertTrue(told.variables() > 0 && told.missing().isEmpty() && told.reshaped().isEmpty(), told::toString);
      assertArrayEquals(value, second.value());
      assertEquals(7, second.data.position()[0]);
      second.data.moveTo(second.data.position());
      World.fails(DtgException.NotFound.class, () -> second.sets.restore("step-000000000001-0000000000000001"));
    }
    try (Learner other = new Learner(directory, 4, new CheckpointOptions())) {
      World.fails(DtgException.FailedPrecondition.class, () -> other.sets.restore(null), "float32[3] there and float32[4] here");
    }
    try (Learner partial = new Learner(directory, 4, new CheckpointOptions().partial(true))) {
      assertTrue(partial.sets.restore("").report().contains("\"variables\":3"));
    }
  }
}
