// Categories: texts become numbers and rows, a model is served with texts, what is unknown has a number of its own, misuse is told.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CategoriesTest {
  @TempDir Path folder;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void areServedAsTexts() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph);
        Tensor vocabulary = Tensor.of(new String[] {"a", "b"}); Tensor mask = Tensor.scalar("");
        Tensor x = Tensor.of(new String[] {"b", "", "x", "a", "a", "\0ü"}, 2, 3)) {
      Value words = graph.placeholder("words", DType.STRING, -1, 3);
      Value numbers = model.lookup(words, new Lookup(vocabulary).maskToken(mask).numOovIndices(2));
      Value y = model.dense(model.flatten(model.embedding(numbers, new Embedding(5, 2))), new Dense(1));
      Value counts = model.lookup(words, new Lookup(vocabulary).numOovIndices(2).outputMode(OutputMode.COUNT));
      Training training = model.minimize(model.meanSquaredError(y, model.dense(counts, new Dense(1))), Optimizer.adamW(0.1));
      session.run(model.init());
      session.run().feed(words, x).targets(training.train()).call().close();
      Path path = folder.resolve("model.dtg");
      model.export(session, path, new Export().input("words", words).output("y", y).freeze(true));
      try (Model.Loaded served = Model.load(path); Results want = session.run().feed(words, x).fetch(y).call();
          Results got = served.session().run().feed(served.model().endpoint("words"), x).fetch(served.model().endpoint("y")).call()) {
        for (int i = 0; i < 2; i++) assertEquals(want.get(0).getFloat(i), got.get(0).getFloat(i));
      }
    }
  }

  private static void bins(Session session, Value x, Value y, String[] given, long... wanted) {
    try (Tensor tensor = Tensor.of(given); Results got = session.run().feed(x, tensor).fetch(y).call()) {
      for (int i = 0; i < wanted.length; i++) assertEquals(wanted[i], got.get(0).getLong(i));
    }
  }

  /** The bins of Keras' own examples. */
  @Test
  void hashingHasTheBinsOfKeras() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph); Tensor mask = Tensor.scalar("")) {
      Value x = graph.placeholder("x", DType.STRING, -1);
      String[] letters = {"A", "B", "C", "D", "E"};
      bins(session, x, model.hashing(x, new Hashing(3)), letters, 1, 0, 1, 1, 2);
      bins(session, x, model.hashing(x, new Hashing(3).maskValue(mask)), new String[] {"A", "B", "", "C", "D"}, 1, 1, 0, 2, 2);
      bins(session, x, model.hashing(x, new Hashing(3).salt(133, 137)), letters, 1, 2, 1, 0, 2);
    }
  }

  @Test
  void whatIsMisusedIsTold() {
    Tensor closed = Tensor.scalar(4L);
    closed.close();
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph);
        Tensor twice = Tensor.of(new long[] {4, 5, 4}); Tensor fine = Tensor.of(new long[] {4, 5}); Tensor unknown = Tensor.of(new long[] {4, -9})) {
      Value x = graph.placeholder("x", DType.I64, -1);
      World.fails(DtgException.InvalidArgument.class, () -> model.lookup(x, null), "layer is null");
      World.fails(DtgException.InvalidArgument.class, () -> model.lookup(x, new Lookup(null)), "vocabulary is null");
      World.fails(DtgException.InvalidArgument.class, () -> model.lookup(x, new Lookup(twice)), "the token 4 is in the vocabulary twice");
      World.fails(DtgException.InvalidArgument.class, () -> model.lookup(x, new Lookup(fine).noOov(true).numOovIndices(2)), "give one of them");
      World.fails(DtgException.InvalidArgument.class, () -> model.hashing(x, new Hashing(0)), "0 bins");
      assertThrows(IllegalStateException.class, () -> model.lookup(x, new Lookup(fine).maskToken(closed)));
      Value y = model.lookup(x, new Lookup(fine).noOov(true));
      Value back = model.lookup(y, new Lookup(fine).noOov(true).invert(true));
      try (Results got = session.run().feed(x, twice).fetch(y).fetch(back).call()) {
        assertEquals(1, got.get(0).getLong(1));
        assertEquals(5, got.get(1).getLong(1));
      }
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(x, unknown).fetch(y).call(), "[-9]");
    }
  }
}
