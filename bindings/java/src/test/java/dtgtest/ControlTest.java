// Functions, conditions and loops: what closures build, and that what goes wrong in one comes out and leaves nothing open.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ControlTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static final GraphFunction.Branch ONE = body -> List.of(body.constant(1f));

  @Test
  void loopsTurnAndListsGrow() {
    try (Graph graph = new Graph(); Tensor three = Tensor.scalar(3); Tensor begin = Tensor.scalar(1f)) {
      Value n = graph.placeholder("n", DType.I32, new long[0]);
      Value x = graph.placeholder("x", DType.F32, new long[0]);
      Value none;
      try (Tensor empty = Tensor.of(new int[0])) {
        none = graph.constant(empty);
      }
      List<Value> out = graph.whileLoop(List.of(graph.constant(0), x, graph.emptyTensorList(none, graph.constant(-1), DType.F32)),
          (body, v) -> body.less(v.get(0), n),
          (body, v) -> List.of(body.addV2(v.get(0), body.constant(1)), body.addV2(v.get(1), v.get(1)), body.tensorListPushBack(v.get(2), v.get(1))));
      Value stack = graph.tensorListStack(out.get(2), none, DType.F32);
      Value dx = graph.gradients(stack, x).get(0).dense();
      try (Session session = Session.connect("local", graph);
          Results got = session.run().feed(n, three).feed(x, begin).fetch(stack, dx).call()) {
        assertArrayEquals(new float[] {1, 2, 4}, got.get(0).toFloats());
        assertArrayEquals(new float[] {7}, got.get(1).toFloats());
      }
    }
  }

  @Test
  void branchesAndFunctions() {
    try (Graph graph = new Graph(); Tensor yes = Tensor.scalar(true); Tensor three = Tensor.scalar(3f); Tensor two = Tensor.scalar(2)) {
      Value p = graph.placeholder("p", DType.BOOL, new long[0]);
      Value i = graph.placeholder("i", DType.I32, new long[0]);
      Value x = graph.placeholder("x", DType.F32, new long[0]);
      List<Value> either = graph.ifElse(p, body -> List.of(body.square(x), x), body -> List.of(x, body.neg(x)));
      List<GraphFunction.Branch> powers = new ArrayList<>();
      for (int k = 0; k < 3; k++) {
        float power = (float) Math.pow(10, k);
        powers.add(body -> List.of(body.constant(power)));
      }
      Value power = graph.switchCase(i, powers).get(0);
      try (GraphFunction sum = graph.function("sum", List.of(GraphFunction.Argument.like(x), GraphFunction.Argument.of(DType.F32, (long[]) null)),
          (body, v) -> List.of(body.mul(body.addV2(v.get(0), v.get(1)), either.get(0))))) {
        assertEquals(List.of(either.get(0)), sum.captures());
        Value called = graph.call(sum, x, either.get(1)).get(0);
        Value byHand = graph.op("PartitionedCall").inputs(x, x).inputs(sum.captures()).attr("Tout", new DType[] {DType.F32})
            .functions("f", false, sum).add();
        try (Session session = Session.connect("local", graph);
            Results got = session.run().feed(p, yes).feed(x, three).feed(i, two).fetch(called, byHand, power).call()) {
          assertArrayEquals(new float[] {54}, got.get(0).toFloats());
          assertArrayEquals(new float[] {54}, got.get(1).toFloats());
          assertArrayEquals(new float[] {100}, got.get(2).toFloats());
        }
      }
    }
  }

  @Test
  void shapesThatChangeAreDeclared() {
    try (Graph graph = new Graph(); Tensor seven = Tensor.of(new int[] {7})) {
      List<Value> start = List.of(graph.constant(seven));
      GraphFunction.Condition few = (body, v) -> body.less(body.size(v.get(0)), body.constant(4));
      GraphFunction.Body longer = (body, v) -> List.of(body.concatV2(List.of(v.get(0), v.get(0)), body.constant(0)));
      World.fails(DtgException.InvalidArgument.class, () -> graph.whileLoop(start, few, longer), "declare a wider one");
      List<Value> end = graph.whileLoop(start, List.of(GraphFunction.Argument.of(DType.I32, -1)), few, longer);
      try (Session session = Session.connect("local", graph); Results got = session.run().fetch(end.get(0)).call()) {
        assertArrayEquals(new int[] {7, 7, 7, 7}, got.get(0).toInts());
      }
    }
  }

  @Test
  void aLoopWithoutEndEndsWithItsDeadline() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      List<Value> out = graph.whileLoop(List.of(graph.constant(0)), (body, v) -> body.constant(true), (body, v) -> List.of(body.neg(v.get(0))));
      World.fails(DtgException.DeadlineExceeded.class, () -> session.run().fetch(out.get(0)).timeout(Duration.ofMillis(20)).call().close());
    }
  }

  /** What a closure throws comes out as it is. */
  @Test
  void whatGoesWrongInABody() {
    try (Graph graph = new Graph(); Graph other = new Graph()) {
      Value yes = graph.constant(true);
      Value foreign = other.constant(1f);
      Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
      World.fails(DtgException.NotFound.class, () -> graph.ifElse(yes, ONE, body -> List.of(body.op("MatMull").add())), "MatMul");
      World.fails(invalid, () -> graph.ifElse(yes, ONE, body -> List.of(body.op("Neg").add())), "ControlTest.java");
      World.fails(invalid, () -> graph.ifElse(yes, ONE, body -> List.of(body.constant(1))), "int32");
      World.fails(invalid, () -> graph.ifElse(yes, ONE, body -> List.of(foreign)));
      World.fails(invalid, () -> graph.ifElse(foreign, ONE, ONE));
      World.fails(invalid, () -> graph.switchCase(graph.constant(0), List.of()));
      World.fails(invalid, () -> graph.whileLoop(List.of(yes), (body, v) -> v.get(0), (body, v) -> List.of()));
      List<Value> kept = new ArrayList<>();
      List<Graph> bodies = new ArrayList<>();
      graph.ifElse(yes, body -> {
        bodies.add(body);
        kept.add(body.constant(1f));
        return kept;
      }, ONE);
      World.fails(invalid, () -> graph.neg(kept.get(0)));
      World.fails(invalid, () -> graph.ifElse(yes, ONE, body -> List.of(body.neg(kept.get(0)))));
      World.isClosed(() -> bodies.get(0).constant(1f), "graph");
      World.isClosed(() -> kept.get(0).shape(), "graph");
      World.isClosed(() -> graph.ifElse(yes, ONE, body -> {
        body.close();
        return kept;
      }), "graph");
      ArithmeticException own = new ArithmeticException("stop");
      assertSame(own, assertThrows(ArithmeticException.class, () -> graph.ifElse(yes, ONE, body -> {
        throw own;
      })));
      World.fails(DtgException.InvalidArgument.class, () -> graph.ifElse(yes, ONE, body -> null), "results is null");
      World.fails(DtgException.Unimplemented.class, () -> graph.ifElse(yes, ONE, body -> {
        try (Model model = new Model(body, 1)) {
          return List.of(model.addVariable(new VariableSpec("w")).read());
        }
      }));
      GraphFunction function = graph.function("f", List.of(), (body, v) -> ONE.build(body));
      World.fails(invalid, () -> graph.call(function, yes));
      World.fails(invalid, () -> other.call(function), "called only from that one");
      function.close();
      World.isClosed(() -> graph.call(function), "function");
      World.isClosed(function::captures, "function");
      World.isClosed(() -> graph.op("PartitionedCall").functions("f", false, function), "function");
      World.fails(DtgException.InvalidArgument.class, () -> graph.call(null), "function is null");
    }
  }
}
