// Graphs: nodes by name and by typed methods, scopes, gradients, bytes.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.util.Arrays;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GraphTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void typedMethodsAndWhatTheyAdd() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value a = graph.placeholder("a", DType.F32, 2, 3);
      Value product = graph.matMul(a, a, new Ops.MatMulOptions().transposeB(true).name("product"));
      assertEquals("product", product.name());
      assertEquals("MatMul", product.op());
      assertEquals(DType.F32, product.dtype());
      assertArrayEquals(new long[] {2, 2}, product.shape());
      assertSame(graph, product.graph());
      List<Value> parts = graph.split(scalar(graph, 1), a, 3);
      assertEquals(3, parts.size());
      assertEquals(parts.get(2), parts.get(0).output(2));
      assertEquals(3, parts.get(0).outputCount());
      Ops.UniqueOutputs unique = graph.unique(graph.constant(5, 5, 6));
      Value joined = graph.concatV2(parts, scalar(graph, 0));
      try (Tensor in = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
          Results out = session.run().feed(a, in).fetch(product, unique.y(), joined).call()) {
        assertArrayEquals(new float[] {14, 32, 32, 77}, out.get(0).toFloats());
        assertArrayEquals(new long[] {5, 6}, out.get(1).toLongs());
        assertArrayEquals(new float[] {1, 4, 2, 5, 3, 6}, out.get(2).toFloats());
        assertEquals(3, out.size());
      }
      assertEquals(product, graph.find("product"));
      assertEquals(a, graph.nodeAt(0));
      assertTrue(graph.nodeCount() > 5);
      assertNull(graph.placeholder(null, DType.F32, (long[]) null).shape());
    }
  }

  static Value scalar(Graph graph, int value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return graph.constant(tensor);
    }
  }

  @Test
  void everyKindOfAttribute() {
    try (Graph graph = new Graph(); Tensor image = Tensor.allocate(DType.F32, 1, 4, 4, 1); Tensor filter = Tensor.allocate(DType.F32, 2, 2, 1, 1)) {
      Value out = graph.conv2d(graph.constant(image), graph.constant(filter), new long[] {1, 1, 1, 1}, "SAME",
          new Ops.Conv2DOptions().dataFormat("NHWC").dilations(new long[] {1, 1, 1, 1}));
      assertArrayEquals(new long[] {1, 4, 4, 1}, out.shape());
      Value queue = graph.fifoQueueV2(new DType[] {DType.F32, DType.I64},
          new Ops.FIFOQueueV2Options().shapes(new long[][] {{2}, {}}).capacity(3).container("c").sharedName("s"));
      assertEquals(DType.RESOURCE, queue.dtype());
      List<Value> taken = graph.queueDequeueV2(queue, new DType[] {DType.F32, DType.I64});
      assertEquals(List.of(DType.F32, DType.I64), taken.stream().map(Value::dtype).toList());
      assertEquals(DType.I64, graph.cast(graph.constant(1f), DType.I64).dtype());
      Value leaky = graph.op("LeakyRelu").inputs(graph.constant(1f)).attr("alpha", 0.5).name("leaky").controls(queue).add();
      assertEquals("leaky", leaky.name());
    }
  }

  @Test
  void scopes() {
    try (Graph graph = new Graph()) {
      try (Graph.Scope name = graph.nameScope("outer"); Graph.Scope device = graph.device("/job:ps")) {
        Value inside = graph.noOp(new Ops.NodeOptions().name("n").device("/task:3"));
        assertEquals("outer/n", inside.name());
        assertEquals("/job:ps/task:3", inside.device());
        try (Graph.Scope controls = graph.controls(inside); Graph.Scope beside = graph.colocation(inside)) {
          assertEquals("/job:ps/task:3", graph.noOp().device());
        }
      }
      assertEquals("", graph.noOp().device());
      try (Cluster cluster = Cluster.parse("ps=unix:/tmp/a,unix:/tmp/b;worker=unix:/tmp/c"); Model model = new Model(graph, 1);
          Graph.Scope setter = graph.device(new DeviceSetter().cluster(cluster))) {
        assertEquals("/job:ps/task:0", model.scalar("v", 0).handle().device());
        assertEquals("/job:ps/task:1", model.scalar("w", 0).handle().device());
      }
    }
  }

  @Test
  void gradientsAndBytes() {
    byte[] bytes;
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value x = graph.placeholder("x", DType.F32);
      Value y = graph.square(x);
      Gradient gradient = graph.gradients(y, x, graph.constant(1f)).get(0);
      assertFalse(gradient.isNone());
      assertTrue(graph.gradients(y, graph.constant(1f)).get(0).isNone());
      assertEquals(gradient.dense(), graph.densify(gradient));
      Value weighted = graph.gradients(List.of(y), List.of(x), Arrays.asList((Value) null)).get(0).dense();
      try (Tensor three = Tensor.scalar(3f); Results out = session.run().feed(x, three).fetch(gradient.dense(), weighted).call()) {
        assertEquals(6, out.get(0).getFloat(0));
        assertEquals(6, out.get(1).getFloat(0));
      }
      bytes = graph.serialize();
      World.fails(DtgException.FailedPrecondition.class, () -> graph.importFrom(bytes));
    }
    try (Graph copy = new Graph()) {
      copy.importFrom(bytes);
      assertEquals("Square", copy.find("Square").op());
      assertArrayEquals(bytes, copy.serialize());
    }
    try (Graph broken = new Graph()) {
      World.fails(DtgException.DataLoss.class, () -> broken.importFrom(Arrays.copyOf(bytes, 20)));
    }
  }

  @Test
  void mistakesNameNodeAndPlace() {
    try (Graph graph = new Graph(); Graph other = new Graph()) {
      Value x = graph.placeholder("x", DType.F32, 2, 2);
      World.fails(DtgException.NotFound.class, () -> graph.op("MatMull").inputs(x, x).add(), "MatMul");
      World.fails(DtgException.InvalidArgument.class, () -> graph.matMul(x, graph.placeholder("whole", DType.I64, 2, 2)), "float32", "int64");
      DtgException shape = World.fails(DtgException.InvalidArgument.class,
          () -> graph.matMul(x, graph.placeholder("y", DType.F32, 3, 2), new Ops.MatMulOptions().name("product")), "GraphTest.java:");
      assertEquals("product", shape.node());
      assertEquals("build", shape.phase());
      assertEquals(Code.INVALID_ARGUMENT, shape.code());
      World.fails(DtgException.InvalidArgument.class, () -> graph.neg(other.constant(1f)));
      World.fails(DtgException.InvalidArgument.class, () -> graph.neg(null));
      World.fails(DtgException.NotFound.class, () -> graph.find("nobody"), "nobody");
      World.fails(DtgException.OutOfRange.class, () -> graph.nodeAt(99));
      World.fails(DtgException.OutOfRange.class, () -> x.output(1));
      Graph.Scope scope = graph.nameScope("a");
      scope.close();
      scope.close();
      graph.close();
      World.isClosed(() -> graph.neg(x), "graph");
      World.isClosed(x::name, "graph");
      assertEquals("a value of a closed graph", x.toString());
    }
  }
}
