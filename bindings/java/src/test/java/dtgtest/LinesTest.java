// Errors of whatever builds name the line of the program that called it. One test at a time.

package dtgtest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.Stream;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class LinesTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  /** The error begins with a line of this file, which is that of the innermost of its frames that is of this class, and tells no other. */
  private static DtgException told(Executable what) {
    DtgException error = assertThrows(DtgException.class, what);
    StackTraceElement frame =
        Stream.of(error.getStackTrace()).filter(each -> each.getClassName().startsWith(LinesTest.class.getName())).findFirst().orElseThrow();
    String place = "at LinesTest.java:" + frame.getLineNumber() + ": ";
    assertTrue(error.getMessage().startsWith(place), () -> place + "is not in front of: " + error.getMessage());
    assertEquals(2, error.getMessage().split("\\.java:", -1).length, error.getMessage());
    return error;
  }

  @Test
  void layersLossesAndTrainingNameTheLine() {
    try (Lifetime life = Lifetime.open()) {
      Graph graph = new Graph();
      Model model = new Model(graph, 1);
      Value x = graph.placeholder("x", DType.F32, 4, 4);
      Value many = model.dense(x, new Dense(2));
      DtgException none = told(() -> model.dense(x, new Dense(0)));
      assertTrue(none instanceof DtgException.InvalidArgument && none.getMessage().contains("0 units"), none.getMessage());
      assertEquals("DtgException.InvalidArgument", none.toString().split(":")[0].replaceAll(".*\\.(?=Dtg)", "").replace('$', '.'));
      told(() -> model.conv1d(x, new Conv(0)));
      told(() -> model.recurrent(x, Recurrent.lstm(0)));
      told(() -> model.attention(x, x, new Attention(0, 0)));
      told(() -> model.meanSquaredError(x, many));
      told(() -> model.loss(x, many, new Loss(Loss.Kind.HUBER)));
      told(() -> model.metric(null, x, new Metric(Metric.Kind.ACCURACY)));
      told(() -> model.minimize(many, null));
      told(() -> model.minimizeTowers(List.of(), null));
      told(() -> model.minimizeReplicated(many, null, new Replication(SyncMode.ASYNC, 0, 1)));
      told(() -> model.applyGradients(List.of(), List.of(graph.gradients(x, x).get(0)), null));
      told(() -> model.addVariable(new VariableSpec("w", -1)));
      told(() -> model.variable("dense/kernl"));
      told(() -> model.dense(x, null));
      told(() -> new Trainer(model, new TrainerOptions().feeds(x).loss(many)));
      told(() -> new Mesh(model, 1, -2, 1, Mesh.Zero.NONE, List.of()));
      assertEquals(2, model.variables().size());
    }
  }

  @Test
  void nodesScopesAndBodiesNameTheLine() {
    try (Lifetime life = Lifetime.open()) {
      Graph graph = new Graph();
      Value x = graph.constant(1f);
      told(() -> graph.find("z"));
      told(() -> graph.nameScope("a b"));
      told(() -> graph.device("/no/such"));
      told(() -> graph.gradients(graph.constant(1), x));
      told(() -> graph.ifElse(x, body -> List.of(body.constant(1)), body -> List.of(body.constant(1f))));
      told(() -> graph.whileLoop(List.of(x), (body, v) -> List.of(x).get(0), (body, v) -> List.of(body.constant(1))));
      // What fails inside of a body has the line in there, and a node that fails there is told with it by the library.
      DtgException inside =
          told(
              () -> graph.ifElse(x, body -> {
                throw told(() -> graph.find("y"));
              }, body -> List.of(x)));
      assertTrue(inside.getMessage().contains("no node \"y\""), inside.getMessage());
      DtgException node = assertThrows(DtgException.class, () -> graph.ifElse(x, body -> List.of(body.matMul(x, x)), body -> List.of(x)));
      assertEquals(2, node.getMessage().split(" at LinesTest\\.java:", -1).length, node.getMessage());
      // The line is the program's, where it is a stream of the JDK that calls the library.
      told(() -> Stream.of("z").map(graph::find).toList());
    }
  }

  @Test
  void dataSetsNameTheLine() {
    try (Lifetime life = Lifetime.open()) {
      Dataset range = Dataset.range(0, 9, 1), other = Dataset.range(0, 9, 1);
      told(() -> Dataset.csv("/no/such.csv", null));
      told(() -> Dataset.jsonLines("/no/such.jsonl", null));
      told(() -> Dataset.idx("/no/such"));
      told(() -> Dataset.npz("/no/such.npz"));
      told(() -> Dataset.tensors());
      told(() -> Dataset.range(0, 9, 0));
      told(() -> Dataset.range(0, 9, 1).batch(0, false));
      told(() -> range.split(new Split().fraction(2)));
      told(() -> other.mapElements(List.of(), x -> x));
      told(() -> range.mapElements(null, x -> x));
      told(() -> range.concatenate(range));
    }
  }
}
