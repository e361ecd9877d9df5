// Data in two parts, numbers fitted on one of them, layers called twice, and models that are served without their builder.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServingTest {
  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void splitNormalizeTrainExportServe() {
    String numbers;
    try (Tensor x = Tensor.of(new float[] {0, 10, 1, 20, 2, 30, 3, 40, 4, 50, 5, 60}, 6, 2); Tensor labels = Tensor.of(new long[] {0, 1, 0, 1, 0, 1}, 6);
        Dataset all = Dataset.tensors(x, labels); Dataset.Parts parts = all.split(new Split().fraction(0.34).seed(1).stratify(1))) {
      assertEquals(4, parts.train().cardinality());
      assertEquals(2, parts.heldOut().cardinality());
      numbers = parts.train().fitNormalization(0, Dataset.Normalization.STANDARD);
      parts.heldOut().normalize(0, numbers).shuffleOnce(0, 3);
      parts.heldOut().next().close();
      assertThrows(DtgException.InvalidArgument.class, () -> all.split(new Split().fraction(2)));
      assertThrows(DtgException.InvalidArgument.class, () -> all.split(new Split().fold(3, 3)));
      serve(x, numbers);
    }
  }

  private void serve(Tensor x, String numbers) {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Value in = graph.placeholder("in", DType.F32, -1, 2);
      Value y = model.dense(model.normalize(in, numbers), new Dense(1).name("only"));
      Value again = model.dense(in, new Dense(1).weightsOf("only"));
      Training training = model.minimize(model.meanSquaredError(y, again), Optimizer.adamW(0.1).lazy(true));
      session.run(model.init());
      session.run().feed(in, x).targets(training.train()).call().close();
      model.setClasses("y", List.of("good"));
      World.fails(DtgException.InvalidArgument.class, () -> model.setClasses(null, List.of("a", "a")), "twice");
      World.fails(DtgException.InvalidArgument.class, () -> model.setClasses(null, null), "names is null");
      World.fails(DtgException.InvalidArgument.class, () -> model.setClasses(null, List.of()), "no names");
      Path path = folder.resolve("model.dtg");
      for (boolean freeze : new boolean[] {false, true}) {
        model.export(session, path, new Export().input("x", in).output("y", y).freeze(freeze));
        try (Model.Loaded served = Model.load(path); Results want = session.run().feed(in, x).fetch(y).call();
            Results got = served.session().run().feed(served.model().endpoint("x"), x).fetch(served.model().endpoint("y")).call()) {
          for (int i = 0; i < 6; i++) assertEquals(want.get(0).getFloat(i), got.get(0).getFloat(i));
          assertTrue(served.model().endpoints().contains("\"shape\":[-1,2]"));
          assertThrows(DtgException.NotFound.class, () -> served.model().endpoint("z"));
          assertEquals(List.of("good"), served.model().classes("y"));
          World.fails(DtgException.NotFound.class, () -> served.model().classes(null), "nobody has named");
        }
      }
      assertThrows(DtgException.NotFound.class, () -> Model.load(folder.resolve("none")));
    }
  }

  /** A fit keeps the names of its classes, whoever loads the model has them, and reads by its schema what has no label. */
  @Test
  void classesOfAFit() throws IOException {
    Path rows = folder.resolve("train.jsonl"), fresh = folder.resolve("new.jsonl");
    Files.writeString(rows, "{\"size\": 1, \"kind\": \"dog\"}\n{\"size\": 2, \"kind\": \"cat\"}\n");
    Files.writeString(fresh, "{\"size\": 3}\n");
    String run = folder.resolve("run").toString();
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value x = graph.placeholder("x", DType.F32, -1, 1), y = graph.placeholder("y", DType.I64, -1);
      Value scores = model.dense(x, new Dense(2));
      TrainerOptions what = new TrainerOptions().feeds(x, y).outputs(scores).loss(model.sparseSoftmaxCrossEntropy(y, scores));
      try (Dataset data = Dataset.jsonLines(rows.toString(), new JsonLinesOptions().label("kind")).batch(2, false); Trainer trainer = new Trainer(model, what)) {
        trainer.fit(data, new FitOptions().directory(run));
      }
    }
    try (Model.Loaded served = Model.load(Path.of(run, "model.dtg"))) {
      assertEquals(List.of("cat", "dog"), served.model().classes("output"));
      World.fails(DtgException.NotFound.class, () -> served.model().classes("outptu"), "did you mean \"output\"");
      try (Dataset data = Dataset.jsonLines(fresh.toString(), new JsonLinesOptions().schema(served.model().metadata("schema"))); Results row = data.next()) {
        assertEquals(1, row.size());
      }
    }
  }

  @Test
  void reportsAreReadWhateverIsInThem() {
    RestoreReport told = RestoreReport.of("{\"path\":\"a \\\"b\\\"\\u00e4\\n\",\"later\":[\"x\"],\"variables\":2,\"missing\":[\"m\",\"ü\"],\"extra\":[]}\n");
    assertEquals("a \"b\"ä\n", told.path());
    assertEquals(List.of(2L, List.of("m", "ü"), List.of(), List.of()), List.of(told.variables(), told.missing(), told.extra(), told.reshaped()));
    told = RestoreReport.of("{ \"outcome\" : \"kept\", \"step\" : -3, \"passed_over\" : [ \"a\", \"b\" ], \"notes\" : [\"n\"] }");
    assertEquals(List.of("kept", -3L, List.of("a", "b"), List.of("n")), List.of(told.outcome(), told.step(), told.passedOver(), told.notes()));
    for (String none : List.of("", "{", "[]", "{\"path\"}", "{\"path\":}", "{} {}", "{\"a\":{}}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"path\":1}")) {
      World.fails(DtgException.InvalidArgument.class, () -> RestoreReport.of(none), "is none");
    }
  }

  @Test
  void restoresByOtherNames() {
    String path = folder.resolve("old.safetensors").toString();
    byte[] bytes;
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      model.dense(graph.placeholder("x", DType.F32, -1, 2), new Dense(3).name("old"));
      session.run(model.init());
      model.save(session, path);
      bytes = graph.serialize();
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      model.dense(graph.placeholder("x", DType.F32, -1, 2), new Dense(3).name("new"));
      session.run(model.init());
      assertThrows(DtgException.FailedPrecondition.class, () -> model.restoreFrom(session, path, null));
      String report = model.restoreFrom(session, path, new RestoreOptions().names(Map.of("new/kernel", "old/kernel")).partial(true));
      assertTrue(report.contains("\"variables\":1"), report);
      RestoreReport told = RestoreReport.of(report);
      assertEquals(List.of(1L, path, List.of("new/bias")), List.of(told.variables(), told.path(), told.missing()), report);
      CheckpointOptions options = new CheckpointOptions().names(Map.of("new/", "old/"));
      try (Checkpoint sets = new Checkpoint(model, session, folder.resolve("sets").toString(), options)) {
        assertThrows(DtgException.NotFound.class, () -> sets.restore(""));
      }
    }
    try (Graph graph = new Graph()) {
      graph.importFrom(bytes);
      try (Model found = Model.of(graph, 1)) {
        assertEquals(2, found.variables().size());
      }
    }
  }
}
