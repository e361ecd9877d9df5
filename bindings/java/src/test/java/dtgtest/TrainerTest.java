// Trainers: a fit is the loop by hand, to the bit; it goes on after a stop to the same end, ends when it is told, and refuses what is wrong.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TrainerTest {
  private static final int ROWS = 10, BATCHES = 3;

  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  /** Rows of three numbers, and a class that hangs on them. */
  private static Dataset rows(long seed, boolean shuffled) {
    Random random = new Random(seed);
    float[] x = new float[ROWS * 3];
    long[] y = new long[ROWS];
    for (int i = 0; i < x.length; i++) x[i] = random.nextFloat() - 0.5f;
    for (int i = 0; i < ROWS; i++) y[i] = x[3 * i] > x[3 * i + 1] ? 1 : 0;
    try (Tensor inputs = Tensor.of(x, ROWS, 3); Tensor labels = Tensor.of(y, ROWS)) {
      Dataset all = Dataset.tensors(inputs, labels);
      return (shuffled ? all.shuffle(0, seed) : all).batch(4, false);
    }
  }

  /** A small net with its data, and a trainer of it unless the training is made by hand. */
  private static final class Lab implements AutoCloseable {
    final Graph graph = new Graph();
    final Model model = new Model(graph, 3);
    final Dataset train = rows(1, true), test = rows(2, false);
    final Value x = graph.placeholder("x", DType.F32, -1, 3), y = graph.placeholder("y", DType.I64, -1);
    final Value logits = model.dense(model.dense(x, new Dense(6).activation(Activation.RELU)), new Dense(2));
    final Value loss = model.sparseSoftmaxCrossEntropy(y, logits);
    final MetricValues accuracy = model.metric(y, logits, new Metric(Metric.Kind.SPARSE_CATEGORICAL_ACCURACY));
    final Trainer trainer;
    final Session session;
    Training training;

    Lab(boolean trains) {
      trainer = trains ? new Trainer(model, options().metric("accuracy", accuracy)) : null;
      if (!trains) training = model.minimize(loss, Optimizer.adam().rate(0.05));
      Value init = model.init();
      session = trains ? trainer.session() : Session.connect("local", graph);
      if (!trains) session.run(init);
    }

    TrainerOptions options() {
      return new TrainerOptions().feeds(x, y).outputs(logits).loss(loss).optimizer(Optimizer.adam().rate(0.05));
    }

    /** One epoch by hand; the mean loss. The metric has counted it. */
    double epoch(Dataset data, Value... targets) {
      double sum = 0;
      session.run(accuracy.reset());
      for (; ; ) {
        try (Results batch = data.next()) {
          if (batch == null) break;
          Run run = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(accuracy.update()).targets(targets);
          sum += (double) run.callFloat() * batch.get(0).shape()[0];
        }
      }
      data.restart();
      return sum / ROWS;
    }

    double accuracy() {
      return session.run().fetch(accuracy.result()).callFloat();
    }

    /** The bits of every variable but the metric's. */
    Map<String, String> bits() {
      Map<String, String> out = new TreeMap<>();
      for (Variable variable : model.variables()) {
        if (variable.name().contains("accuracy")) continue;
        try (Results read = session.run().fetch(variable.read()).call()) {
          out.put(variable.name(), HexFormat.of().formatHex(read.get(0).toBytes()));
        }
      }
      return out;
    }

    FitEvent pull(FitEvent.Kind kind) {
      FitEvent event;
      do event = trainer.next();
      while (event.kind() != kind && event.kind() != FitEvent.Kind.DONE);
      assertEquals(kind, event.kind());
      return event;
    }

    @Override
    public void close() {
      session.close();
      if (trainer != null) trainer.close();
      train.close();
      test.close();
      model.close();
      graph.close();
    }
  }

  @Test
  void isTheLoopByHand() {
    try (Lab lab = new Lab(true); Lab hand = new Lab(false)) {
      List<FitEvent.Kind> kinds = new ArrayList<>();
      FitOptions how = new FitOptions().epochs(3).validation(lab.test);
      for (FitEvent.Kind kind : FitEvent.Kind.values()) how.on(kind, event -> kinds.add(event.kind()));
      how.on(
          FitEvent.Kind.EPOCH_END,
          event -> {
            double loss = hand.epoch(hand.train, hand.training.train());
            assertEquals(loss, event.loss());
            assertEquals(loss, event.values().get("loss"));
            assertEquals(hand.accuracy(), event.values().get("accuracy"));
            assertEquals(hand.epoch(hand.test), event.values().get("val_loss"));
            assertEquals(hand.accuracy(), event.values().get("val_accuracy"));
            assertEquals((double) 0.05f, event.values().get("learning_rate"));
            assertEquals(List.of(event.epoch() * BATCHES, (long) BATCHES, (long) BATCHES, (long) ROWS),
                List.of(event.step(), event.batch(), event.batches(), event.examples()));
          });
      FitEvent last = lab.trainer.fit(lab.train, how);
      assertEquals(3, last.epoch());
      assertEquals("all epochs", last.text());
      assertEquals(hand.bits(), lab.bits());
      assertEquals(
          "BEGIN" + " EPOCH_BEGIN STEP STEP STEP VALIDATION EPOCH_END".repeat(3) + " DONE",
          String.join(" ", kinds.stream().map(Enum::name).toList()));
      assertTrue(lab.trainer.summary().contains("\"outcome\":\"done\""), lab.trainer.summary());
    }
  }

  @Test
  void evaluatesPredictsAndSteps() {
    try (Lab lab = new Lab(true); Lab hand = new Lab(false); Cancellation stop = new Cancellation()) {
      double loss = hand.epoch(hand.test);
      assertEquals(Map.of("loss", loss, "accuracy", hand.accuracy()), lab.trainer.evaluate(lab.test));
      assertEquals(List.of("loss", "accuracy"), List.copyOf(lab.trainer.evaluate(lab.test, 1, stop).keySet()));
      try (Results all = lab.trainer.predict(lab.test); Results batch = hand.test.next();
          Results first = hand.session.run().feed(hand.x, batch.get(0)).fetch(hand.logits).call()) {
        assertArrayEquals(new long[] {ROWS, 2}, all.get(0).shape());
        float[] rows = all.get(0).toFloats(), expected = first.get(0).toFloats();
        for (int i = 0; i < expected.length; i++) assertEquals(expected[i], rows[i]);
        for (int step = 0; step < 2; step++) {
          Run run = hand.session.run().feed(hand.x, batch.get(0)).feed(hand.y, batch.get(1)).fetch(hand.loss);
          double told = run.targets(hand.training.train()).callFloat();
          assertEquals(told, step == 0 ? lab.trainer.trainStep(batch) : lab.trainer.trainStep(batch.get(0), batch.get(1)));
        }
        assertEquals(hand.bits(), lab.bits());
        stop.cancel();
        Tensor[] tensors = {batch.get(0), batch.get(1)};
        assertThrows(DtgException.Cancelled.class, () -> lab.trainer.trainStep(tensors, stop));
        assertThrows(DtgException.Cancelled.class, () -> lab.trainer.predict(lab.test, stop));
      }
    }
  }

  /** What the trainer predicts comes from a file too, on many threads. */
  private static void serves(Lab lab, Path path) throws Exception {
    lab.trainer.export(Path.of(path + ".again"));
    assertArrayEquals(Files.readAllBytes(path), Files.readAllBytes(Path.of(path + ".again")));
    try (Results wanted = lab.trainer.predict(lab.test); Dataset one = rows(2, false); Results batch = one.next();
        Model.Loaded loaded = Model.load(path)) {
      Value x = loaded.model().endpoint("x"), y = loaded.model().endpoint("output");
      java.util.stream.IntStream.range(0, 200).parallel().forEach(i -> {
        try (Results found = loaded.session().run().feed(x, batch.get(0)).fetch(y).call()) {
          float[] some = found.get(0).toFloats(), all = wanted.get(0).toFloats();
          for (int k = 0; k < some.length; k++) assertEquals(all[k], some[k], 1e-5f);
        }
      });
    }
    World.fails(DtgException.InvalidArgument.class, () -> new Trainer(lab.model, lab.options().outputNames("a", "b")), "outputNames");
  }

  private static FitOptions kept(Lab lab, Path directory) {
    Plateau plateau = new Plateau().monitor("loss").better(Better.LESS).factor(0.5).minDelta(0.2).minRate(0.001).patience(1).cooldown(0);
    return new FitOptions().epochs(4).validation(lab.test).directory(directory).checkpointSteps(5).checkpointEpochs(100).keep(2)
        .tensorBoardSteps(2).histogramEpochs(1).progress(Progress.LINES).best("val_accuracy").plateau(plateau).checkpointTime(Duration.ofHours(1));
  }

  @Test
  void goesOnToTheSameEnd() throws Exception {
    Path straight = folder.resolve("straight"), cut = folder.resolve("cut");
    Map<String, String> bits;
    try (Lab lab = new Lab(true)) {
      List<String> rates = new ArrayList<>();
      lab.trainer.fit(lab.train, kept(lab, straight).on(FitEvent.Kind.RATE, event -> rates.add(event.text())));
      bits = lab.bits();
      assertFalse(rates.isEmpty());
    }
    try (Lab lab = new Lab(true)) {
      lab.trainer.begin(lab.train, kept(lab, cut));
      assertEquals("starts", lab.pull(FitEvent.Kind.BEGIN).text());
      assertEquals(5, lab.pull(FitEvent.Kind.CHECKPOINT).step());
      lab.trainer.giveUp();
      World.fails(DtgException.Cancelled.class, lab.trainer::next, "given up");
      assertEquals(2, lab.trainer.evaluate(lab.test).size());
      lab.trainer.giveUp();
    }
    try (Lab lab = new Lab(true)) {
      lab.trainer.begin(lab.train, kept(lab, cut));
      assertEquals("goes on after step 5", lab.pull(FitEvent.Kind.BEGIN).text());
      assertEquals(4 * BATCHES, lab.pull(FitEvent.Kind.DONE).step());
      assertEquals(bits, lab.bits());
      World.fails(DtgException.AlreadyExists.class, () -> lab.trainer.begin(lab.train, kept(lab, straight).fresh(true)));
      serves(lab, cut.resolve("model.dtg"));
      assertTrue(Files.isDirectory(cut.resolve("tensorboard/validation")));
    }
    for (String file : List.of("metrics.csv", "metrics.jsonl", "model.safetensors", "best.safetensors")) {
      assertArrayEquals(Files.readAllBytes(straight.resolve(file)), Files.readAllBytes(cut.resolve(file)), file);
    }
  }

  @Test
  void endsWhenItIsTold() {
    try (Lab lab = new Lab(true); Cancellation wish = new Cancellation()) {
      // No accuracy is 2, and none is better than another by 2: the second epoch is the last.
      EarlyStopping rule =
          new EarlyStopping().monitor("val_accuracy").better(Better.GREATER).baseline(2).minDelta(2).patience(2).startFromEpoch(0).restoreBest(true);
      List<String> why = new ArrayList<>();
      FitOptions early = new FitOptions().epochs(1000).validation(lab.test).earlyStopping(rule);
      FitEvent last = lab.trainer.fit(lab.train, early.on(FitEvent.Kind.STOPPED, event -> why.add(event.text())));
      assertEquals(2, last.epoch());
      assertTrue(why.size() == 1 && why.get(0).contains("val_accuracy"), why.toString());

      last = lab.trainer.fit(lab.train, new FitOptions().epochs(1000).timeLimit(Duration.ZERO));
      assertEquals(0, last.step());

      // Another thread asks between two steps; no more is made.
      FitOptions endless = new FitOptions().epochs(1_000_000);
      endless.on(FitEvent.Kind.STEP, event -> {
        if (event.step() == 5) CompletableFuture.runAsync(lab.trainer::stop).join();
      });
      assertEquals(5, lab.trainer.fit(lab.train, endless).step());
      assertTrue(lab.trainer.summary().contains("\"stopped\""), lab.trainer.summary());

      FitOptions cancelled = new FitOptions().epochs(1_000_000).cancelledBy(wish).on(FitEvent.Kind.STEP, event -> wish.cancel());
      assertThrows(DtgException.Cancelled.class, () -> lab.trainer.fit(lab.train, cancelled));
      assertThrows(DtgException.Cancelled.class, lab.trainer::next);
      assertTrue(lab.trainer.summary().contains("\"failed\""), lab.trainer.summary());
    }
  }

  @Test
  void listenersMayUseTheTrainer() {
    try (Lab lab = new Lab(true); Dataset other = rows(3, false)) {
      FitOptions how = new FitOptions().epochs(2).validation(lab.test);
      how.on(FitEvent.Kind.STEP, event -> {
        World.fails(DtgException.FailedPrecondition.class, () -> lab.trainer.evaluate(other), "middle of an epoch");
        World.fails(DtgException.FailedPrecondition.class, () -> lab.trainer.fit(other, null), "listener");
        World.fails(DtgException.FailedPrecondition.class, lab.trainer::next, "listener");
        World.fails(DtgException.FailedPrecondition.class, lab.trainer::giveUp, "listener");
      });
      how.on(FitEvent.Kind.EPOCH_END, event -> {
        assertEquals(2, lab.trainer.evaluate(other).size());
        lab.trainer.predict(other).close();
        World.fails(DtgException.FailedPrecondition.class, () -> lab.trainer.evaluate(lab.test), "read by the fit");
        if (event.epoch() == 2) throw new ArithmeticException("the program's own");
      });
      assertThrows(ArithmeticException.class, () -> lab.trainer.fit(lab.train, how));
      World.fails(DtgException.Cancelled.class, lab.trainer::next, "given up");
      assertEquals(2, lab.trainer.evaluate(lab.test).size()); // the data is free
      assertEquals(1, lab.trainer.fit(lab.train, null).epoch());
    }
  }

  /** Whatever it throws; the directory is another's then. */
  @Test
  void aListenerThatThrowsEndsTheFit() {
    Path run = folder.resolve("thrown");
    try (Lab lab = new Lab(true)) {
      FitOptions how = new FitOptions().epochs(2).directory(run);
      how.on(FitEvent.Kind.STEP, event -> {
        if (event.step() == BATCHES + 1) throw new AssertionError("the program's own");
      });
      assertEquals("the program's own", assertThrows(AssertionError.class, () -> lab.trainer.fit(lab.train, how)).getMessage());
      assertTrue(lab.trainer.summary().contains("given up"), lab.trainer.summary());
      try (Lab other = new Lab(true)) {
        FitEvent last = other.trainer.fit(other.train, new FitOptions().epochs(2).directory(run));
        assertEquals(2 * BATCHES, last.step());
        assertTrue(other.trainer.summary().contains("\"resumed\":true"), other.trainer.summary());
      }
      FitOptions closing = new FitOptions().on(FitEvent.Kind.STEP, event -> {
        lab.trainer.close();
        throw new ArithmeticException("of a closed one");
      });
      assertThrows(ArithmeticException.class, () -> lab.trainer.fit(lab.train, closing));
    }
  }

  /** It is refused, without a word of C. */
  /** One session, whose close ends nothing of the trainer's; what was started in it ends with the trainer. */
  @Test
  void theSessionIsTheTrainers() throws Exception {
    CompletableFuture<Results> started;
    try (Lab lab = new Lab(true)) {
      assertSame(lab.session, lab.trainer.session());
      try (Session again = lab.trainer.session()) {
        again.run(lab.accuracy.reset());
      }
      World.isTooLate(() -> lab.session.run(lab.accuracy.reset()));
      lab.trainer.fit(lab.train, null);
      Session open = lab.trainer.session();
      started = open.run().fetch(World.dequeue(lab.graph)).start();
      lab.trainer.close();
      ExecutionException how = assertThrows(ExecutionException.class, () -> started.get(10, TimeUnit.SECONDS));
      assertInstanceOf(DtgException.Cancelled.class, how.getCause());
      World.isTooLate(() -> open.run(lab.accuracy.reset()));
      World.isClosed(lab.trainer::session, "trainer");
    }
    try (Lab hand = new Lab(false)) {
      try (Trainer theirs = new Trainer(hand.model, hand.options().train(hand.training.train()).session(hand.session))) {
        assertSame(hand.session, theirs.session());
      }
      hand.session.run(hand.accuracy.reset()); // who made it closes it
    }
  }

  private static <T extends DtgException> void refused(Class<T> type, org.junit.jupiter.api.function.Executable what, String word) {
    String message = World.fails(type, what, word).getMessage();
    assertFalse(message.contains("dtg_") || message.contains("DTG_") || message.contains("NULL"), message);
  }

  @Test
  void misuseSaysWhatIsWrong() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    Trainer closed;
    try (Lab lab = new Lab(true); Dataset one = Dataset.range(0, 8, 1).batch(4, false); Tensor tensor = Tensor.scalar(1f);
        Graph elsewhere = new Graph()) {
      closed = lab.trainer;
      refused(DtgException.FailedPrecondition.class, lab.trainer::summary, "none was begun");
      refused(DtgException.FailedPrecondition.class, lab.trainer::next, "none was begun");
      refused(invalid, () -> new Trainer(lab.model, lab.options().loss(null)), "loss is null");
      refused(invalid, () -> new Trainer(lab.model, lab.options().feeds(lab.x, null)), "feeds[1]");
      refused(invalid, () -> new Trainer(lab.model, lab.options().inputs(3)), "3 inputs");
      refused(invalid, () -> new Trainer(lab.model, lab.options().feeds(elsewhere.placeholder("x", DType.F32), lab.y)), "graph");
      refused(invalid, () -> new Trainer(lab.model, null), "options is null");
      refused(invalid, () -> new Trainer(null, lab.options()), "model is null");
      refused(DtgException.AlreadyExists.class, () -> lab.options().metric("a", lab.accuracy).metric("a", lab.accuracy), "taken");
      refused(invalid, () -> lab.trainer.fit(null, null), "data is null");
      refused(invalid, () -> lab.trainer.fit(one, null), "2 values are fed");
      refused(invalid, () -> lab.trainer.fit(lab.train, new FitOptions().validation(lab.train)), "make a second one");
      for (int none : new int[] {0, -1}) refused(invalid, () -> new FitOptions().epochs(none), "epochs(" + none + ")");
      refused(invalid, () -> lab.trainer.fit(lab.train, new FitOptions().best("loss")), "FitOptions");
      refused(invalid, () -> lab.trainer.fit(lab.train, new FitOptions().earlyStopping(new EarlyStopping().minDelta(-1))), "EarlyStopping");
      refused(invalid, () -> lab.trainer.fit(lab.train, new FitOptions().plateau(new Plateau().factor(2))), "Plateau");
      refused(invalid, () -> lab.trainer.fit(lab.train, new FitOptions().earlyStopping(new EarlyStopping().monitor("beauty"))), "beauty");
      refused(invalid, () -> lab.trainer.trainStep(tensor), "1 tensors for 2 feeds");
      refused(invalid, () -> lab.trainer.trainStep(tensor, null), "tensors[1] is null");
      refused(invalid, () -> lab.trainer.evaluate(one), "components");
      refused(invalid, () -> lab.trainer.evaluate(lab.test, -1, null), "-1 steps");
    }
    try (Lab hand = new Lab(false)) {
      TrainerOptions made = hand.options().train(hand.training.train()).outputs().session(hand.session);
      try (Trainer blind = new Trainer(hand.model, made)) {
        refused(DtgException.FailedPrecondition.class, () -> blind.predict(hand.test), "outputs");
        refused(invalid, () -> blind.fit(hand.train, new FitOptions().plateau(new Plateau())), "schedule");
      }
      refused(invalid, () -> new Trainer(hand.model, hand.options().train(hand.training.train()).metric("a b", hand.accuracy)), "a b");
      made.metric("loss", hand.accuracy);
      refused(DtgException.AlreadyExists.class, () -> new Trainer(hand.model, made), "loss");
    }
    World.isClosed(closed::summary, "trainer");
    World.isClosed(closed::stop, "trainer");
    World.isClosed(closed::next, "trainer");
  }
}
