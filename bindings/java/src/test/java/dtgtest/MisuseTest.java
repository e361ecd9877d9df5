// What a program does wrong, or to the limit: it hears of it, and the process goes on.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MisuseTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void literalsKeepTheirType() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      assertEquals(DType.I32, graph.constant(3).dtype());
      assertEquals(DType.I64, graph.constant(3L).dtype());
      assertEquals(DType.F32, graph.constant(3f).dtype());
      assertEquals(DType.F64, graph.constant(3.0).dtype());
      assertEquals(DType.BOOL, graph.constant(true).dtype());
      assertEquals(DType.I64, graph.constant(1, 2).dtype());
      assertEquals(DType.I64, graph.constant(new long[] {1, 2}).dtype());
      assertEquals(DType.I32, graph.constant(new int[] {1, 2}).dtype());
      assertEquals(DType.F32, graph.constant(new float[] {1, 2}).dtype());
      assertEquals(DType.F64, graph.constant(new double[] {1, 2}).dtype());
      assertArrayEquals(new long[] {2, 1}, graph.constant(new float[] {1, 2}, 2, 1).shape());
      try (Results results = session.run().fetch(graph.constant(16777217), graph.constant(1L, 2L)).call()) {
        assertEquals(16777217, results.get(0).toInts()[0]);
        assertArrayEquals(new long[] {1, 2}, results.get(1).toLongs());
      }
    }
  }

  @Test
  void twoThreadsInsideOneObject(@TempDir Path folder) throws Exception {
    try (Dataset data = Dataset.range(0, 1000, 1).shuffle(100, 1).repeat(-1).batch(8, true); Graph graph = new Graph();
        Model model = new Model(graph, 1)) {
      Value x = graph.placeholder("x", DType.F32, -1, 4);
      assertRefusesTheSecond(() -> data.next().close(), "data set");
      assertRefusesTheSecond(() -> model.dense(x, new Dense(3)), "model");
      assertRefusesTheSecond(() -> graph.square(x), "graph");
    }
    try (Dataset data = Dataset.range(0, 1000, 1).shuffle(100, 1).repeat(-1).batch(8, true); Graph graph = new Graph();
        Model model = new Model(graph, 1); EventWriter events = new EventWriter(folder.resolve("events"))) {
      model.addVariable(new VariableSpec("w", 2));
      try (Session session = Session.connect("local", graph);
          Checkpoint sets = new Checkpoint(model, session, folder.resolve("sets"), null)) {
        sets.addData("train", data);
        sets.resume();
        sets.save(1, null);
        AtomicLong step = new AtomicLong(1);
        assertRefusesTheSecond(() -> sets.beginSave(step.incrementAndGet(), null), "checkpoint");
        assertRefusesTheSecond(() -> sets.restore(""), () -> data.next().close(), "data set");
        assertRefusesTheSecond(() -> events.scalar("loss", step.incrementAndGet(), 1), "event writer");
        sets.await(null);
        sets.save(1_000_000, null);
        sets.restore("");
      }
    }
  }

  /** What was closed goes back to the system, whichever thread closed it, and is there again. */
  @Test
  void memoryGoesBack() throws Exception {
    float[] ones = new float[250_000];
    java.util.Arrays.fill(ones, 1);
    Tensor.of(ones).close();
    long before = World.resident();
    for (int round = 0; round < 2; round++) {
      List<Tensor> tensors = new java.util.ArrayList<>();
      for (int i = 0; i < 200; i++) tensors.add(Tensor.of(ones, 250, 1000));
      long full = World.resident() - before;
      assertTrue(full > 150_000, full + " KiB for 200 MB");
      Thread other = new Thread(() -> tensors.forEach(Tensor::close));
      other.start();
      other.join();
      long left = World.resident() - before;
      assertTrue(left < full / 3, left + " KiB of " + full + " are left");
    }
  }

  /** A service that meets a new batch size with each request, and then one of them over and over, in all three ways to run. */
  @Test
  void manySizesThenOne() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value x = graph.placeholder("x", DType.F32, -1, 64);
      Value y = graph.square(x);
      for (int size = 1; size < 600; size++) {
        try (Tensor in = Tensor.allocate(DType.F32, size, 64); Results out = session.run().feed(x, in).fetch(y).call()) {
          assertArrayEquals(new long[] {size, 64}, out.get(0).shape());
        }
      }
      try (PreparedRun prepared = session.prepare(List.of(x), List.of(y), List.of()); Tensor in = Tensor.of(new float[64], 1, 64);
          Tensor out = Tensor.allocate(DType.F32, 1, 64)) {
        in.setFloat(63, 3);
        for (int i = 0; i < 100; i++) {
          prepared.step(in, out);
          assertEquals(9, out.getFloat(63));
          try (Results called = session.run().feed(x, in).fetch(y).call(); Results started = session.run().feed(x, in).fetch(y).start().get()) {
            assertEquals(9, called.get(0).getFloat(63));
            assertEquals(9, started.get(0).getFloat(63));
          }
        }
      }
    }
  }

  private static void assertRefusesTheSecond(Runnable call, String noun) throws InterruptedException {
    assertRefusesTheSecond(call, call, noun);
  }

  /** One thread does the one, another the other, until one of them is refused. */
  private static void assertRefusesTheSecond(Runnable one, Runnable another, String noun) throws InterruptedException {
    AtomicReference<Throwable> met = new AtomicReference<>();
    long end = System.nanoTime() + 60_000_000_000L;
    Consumer<Runnable> hammer = call -> {
      while (met.get() == null && System.nanoTime() < end) {
        try {
          call.run();
        } catch (Throwable e) {
          met.compareAndSet(null, e);
        }
      }
    };
    Thread other = new Thread(() -> hammer.accept(another), "other");
    other.start();
    hammer.accept(one);
    other.join();
    assertInstanceOf(DtgException.FailedPrecondition.class, met.get());
    assertTrue(met.get().getMessage().contains(noun), met.get().getMessage());
  }

  @Test
  void elementsAreWhereTheirIndexSays() {
    try (Tensor f = Tensor.of(new float[] {1, 2, 3}); Tensor l = Tensor.of(new long[] {7})) {
      for (int index : new int[] {3, -1, 1 << 30, (1 << 30) + 1, Integer.MAX_VALUE}) {
        assertThrows(IndexOutOfBoundsException.class, () -> f.getFloat(index));
        assertThrows(IndexOutOfBoundsException.class, () -> f.setFloat(index, 9));
      }
      assertThrows(IndexOutOfBoundsException.class, () -> l.getLong(1 << 29));
      assertArrayEquals(new float[] {1, 2, 3}, f.toFloats());
      assertEquals("float32[3] [1.0, 2.0, 3.0]", f.toString());
      assertEquals("int64[1] [7]", l.toString());
    }
  }

  @Test
  void onlyMemoryThatStaysIsBorrowed() throws Exception {
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(DType.F32, ByteBuffer.allocateDirect(16).asReadOnlyBuffer(), 4), "read-only");
    Class<?> arenas;
    try {
      arenas = Class.forName("java.lang.foreign.Arena");
      arenas.getMethod("ofConfined");
    } catch (ReflectiveOperationException e) {
      return; // this Java has no arenas to close
    }
    if (java.lang.Runtime.version().feature() < 22) return; // only for a preview
    for (String kind : new String[] {"ofConfined", "ofShared", "ofAuto"}) {
      Object arena = arenas.getMethod(kind).invoke(null);
      Object segment = arenas.getMethod("allocate", long.class, long.class).invoke(arena, 4096L, 64L);
      ByteBuffer buffer = (ByteBuffer) Class.forName("java.lang.foreign.MemorySegment").getMethod("asByteBuffer").invoke(segment);
      buffer.order(java.nio.ByteOrder.nativeOrder());
      if (kind.equals("ofAuto")) Tensor.borrow(DType.F32, buffer, 1024).close();
      else World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(DType.F32, buffer, 1024), "arena");
    }
  }

  /** Whoever runs in a session while another thread closes it hears of it in one way, whenever that comes. */
  @Test
  void aSessionThatIsClosedUnderItsRuns() throws Exception {
    for (int round = 0; round < 20; round++) {
      try (Graph graph = new Graph(); Tensor in = Tensor.of(new float[] {1}); Tensor out = Tensor.allocate(DType.F32, 1)) {
        Value x = graph.placeholder("x", DType.F32, 1);
        Session session = Session.connect("local", graph);
        PreparedRun prepared = World.doubling(graph, session, x);
        Value y = graph.square(x);
        List<Runnable> ways = List.of(() -> prepared.step(in, out), () -> session.run().feed(x, in).fetch(y).call().close(), () -> prepared.run(in).close(), () -> {
          try {
            session.run().feed(x, in).fetch(y).start().join().close();
          } catch (java.util.concurrent.CompletionException e) {
            throw (RuntimeException) e.getCause();
          }
        });
        List<Throwable> met = java.util.Collections.synchronizedList(new java.util.ArrayList<>());
        List<Thread> threads = new java.util.ArrayList<>();
        java.util.concurrent.CountDownLatch running = new java.util.concurrent.CountDownLatch(ways.size());
        for (Runnable way : ways) {
          threads.add(new Thread(() -> {
            try {
              for (int i = 0;; i++) {
                way.run();
                if (i == 2) running.countDown();
              }
            } catch (Throwable e) {
              met.add(e);
            }
          }));
        }
        threads.forEach(Thread::start);
        assertTrue(running.await(60, TimeUnit.SECONDS), met.toString());
        session.close();
        for (Thread thread : threads) thread.join();
        prepared.close();
        for (Throwable one : met) assertInstanceOf(DtgException.Cancelled.class, one, one.toString());
      }
    }
  }

  /** Half a pair of surrogates has no bytes: what it is in would be written as another text. */
  @Test
  void loneSurrogatesAreRefused(@TempDir Path folder) {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    String lone = "a\ud800b";
    String[] says = {"\\ud800", "index 1"};
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Weights weights = new Weights(); Tensor one = Tensor.scalar(1f)) {
      assertFalse(World.fails(invalid, () -> graph.placeholder(lone, DType.F32), says).getMessage().contains("ofStrings"));
      World.fails(invalid, () -> graph.placeholder("\udc00", DType.F32), "\\udc00", "index 0");
      World.fails(invalid, () -> graph.find(lone), says);
      World.fails(invalid, () -> model.variable(lone), says);
      World.fails(invalid, () -> weights.set(lone, one), says);
      assertFalse(World.fails(invalid, () -> weights.save(folder + "/" + lone), "\\ud800").getMessage().contains("ofStrings"));
      World.fails(invalid, () -> Dataset.csv(folder + "/" + lone, null), "\\ud800");
      World.fails(invalid, () -> Dataset.csv(folder.resolve("x"), new CsvOptions().label(lone)), says);
      World.fails(invalid, () -> Tensor.of(new String[] {"x", lone}), "\\ud800", "ofStrings");
      World.fails(invalid, () -> Tensor.scalar(lone), "ofStrings");
      graph.constant(one);
      try (Tensor whole = Tensor.of(new String[] {"\ud83d\ude00"})) {
        assertArrayEquals(new String[] {"\ud83d\ude00"}, whole.toStrings());
      }
    }
  }

  /** What is said and empty is not what was never said. */
  @Test
  void emptyIsNotNone(@TempDir Path folder) throws Exception {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    World.fails(invalid, () -> new FitOptions().directory(""), "directory is empty");
    World.fails(invalid, () -> new ServerOptions().stateDir(""), "stateDir is empty");
    World.fails(invalid, () -> new SessionOptions().keyFile(""), "keyFile is empty");
    World.fails(invalid, () -> new CsvOptions().columns(), "columns is an empty list");
    World.fails(invalid, () -> new JsonLinesOptions().columns(), "columns is an empty list");
    World.fails(invalid, () -> new ArrowOptions().columns(), "columns is an empty list");
    Path table = Files.writeString(folder.resolve("t.csv"), "a,b\n1,2\n");
    World.fails(invalid, () -> Dataset.csv(table, new CsvOptions().label("")), "label is empty");
    World.fails(invalid, () -> Dataset.csv(table, new CsvOptions().label("a\0b")), "label is \"a\\0b\"", "NUL");
    World.fails(invalid, () -> new TrainerOptions().inputs(-1), "inputs is -1");
    World.fails(invalid, () -> Cluster.fromTfConfig("{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}"), "has 1 task");
  }

  @Test
  void aTypeThatIsAnotherTellsTheWay() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    try (Tensor floats = Tensor.of(new float[] {1}); Tensor text = Tensor.of(new String[] {"x"})) {
      World.fails(invalid, () -> floats.getLong(0), "float32", "toFloats", "cast");
      World.fails(invalid, floats::toInts, "float32", "toFloats", "cast");
      World.fails(invalid, () -> floats.write(new long[1]), "float32", "give an array of that type");
      World.fails(invalid, () -> floats.stringBytes(0), "float32", "toFloats");
      World.fails(invalid, text::toFloats, "toStrings");
    }
  }

  @Test
  void whatIsNullIsNamed() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    World.fails(invalid, () -> Server.start(null, null), "cluster is null");
    World.fails(invalid, () -> Session.connect("local", null), "graph is null");
    try (Graph graph = new Graph()) {
      World.fails(invalid, () -> Session.connect(null, graph), "target is null");
      World.fails(invalid, () -> Session.connect("", graph), "the target is empty", "\"local\"");
    }
    World.fails(invalid, () -> new Model(null, 1), "graph is null");
    World.fails(invalid, () -> Tensor.of((float[]) null), "values is null");
    World.fails(invalid, () -> Tensor.borrow(DType.F32, null, 1), "buffer is null");
    World.fails(invalid, () -> Tensor.borrow(DType.F32, ByteBuffer.allocateDirect(4), (long[]) null), "shape is null");
    World.fails(invalid, () -> Tensor.allocate(DType.F32, (long[]) null), "shape is null");
    World.fails(invalid, () -> Tensor.allocate(null, 1), "dtype is null");
    World.fails(invalid, () -> Tensor.of(new float[1], (long[]) null), "shape is null");
    World.fails(invalid, () -> Tensor.of(DType.U8, null, 1), "raw is null");
    World.fails(invalid, () -> Tensor.scalar((String) null), "value is null");
    World.fails(invalid, () -> Tensor.ofStrings(null), "values is null");
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph); Tensor one = Tensor.scalar(1f)) {
      Value x = graph.placeholder("x", DType.F32);
      World.fails(invalid, () -> one.read(null), "into is null");
      World.fails(invalid, () -> one.write((float[]) null), "values is null");
      World.fails(invalid, () -> graph.ifElse(x, null, body -> List.of(x)), "then is null");
      World.fails(invalid, () -> graph.whileLoop(null, (body, v) -> v.get(0), (body, v) -> v), "start is null");
      World.fails(invalid, () -> graph.whileLoop(List.of(x), null, (body, v) -> v), "condition is null");
      World.fails(DtgException.OutOfRange.class, () -> graph.nodeAt(-1), "node -1: the graph has 1");
      World.fails(invalid, () -> session.run().feed(x, null), "feed", "tensor is null");
      World.fails(invalid, () -> session.run().feed(null, one), "feed", "value is null");
      World.fails(invalid, () -> session.run().fetch((Value) null), "fetch", "value is null");
      World.fails(invalid, () -> session.run((Value) null), "targets", "value is null");
      World.fails(invalid, () -> session.runRepeatedly(x, null), "targets[1] is null");
      World.fails(invalid, () -> session.prepare(java.util.Arrays.asList(x, null), List.of(), List.of()), "feeds[1] is null");
      World.fails(invalid, () -> graph.mean(x, null), "Mean", "reductionIndices is null");
      World.fails(invalid, () -> graph.addN(java.util.Arrays.asList(x, null)), "AddN", "inputs[1] is null");
      World.fails(invalid, () -> graph.addN(null), "AddN", "inputs is null");
      World.fails(invalid, () -> graph.cast(x, (DType) null), "Cast", "DstT is null");
      World.fails(invalid, () -> graph.op("AddV2").inputs(x, null), "AddV2", "input 1 is null");
      World.fails(invalid, () -> graph.constant((Tensor) null), "value is null");
      World.fails(invalid, () -> graph.gradients(x, (Value) null), "xs[0] is null");
      World.fails(invalid, () -> model.dense(null, new Dense(2)), "x is null");
      World.fails(invalid, () -> model.dense(x, null), "layer is null");
      World.fails(invalid, () -> model.meanSquaredError(x, null), "predictions is null");
      World.fails(invalid, () -> model.minimize(null, null), "loss is null");
      World.fails(invalid, () -> model.waitReady(null, null), "session is null");
    }
  }

  @Test
  void typesAndCountsAreToldAsSuch() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    try (Tensor whole = Tensor.of(new long[] {1}, 1)) {
      assertFalse(World.fails(invalid, () -> whole.toFloats(), "int64", "float32").getMessage().contains("1 elements"));
      World.fails(invalid, () -> whole.write(new float[1]), "int64", "float32");
      World.fails(invalid, () -> whole.write(new long[2]), "1 elements");
    }
    World.fails(invalid, () -> Tensor.borrow(DType.F32, ByteBuffer.allocateDirect(16), 3), "it has 3 elements, the buffer has 4");
    World.fails(invalid, () -> Tensor.borrow(DType.F32, ByteBuffer.allocateDirect(15), 4), "the buffer has 3 and 3 bytes");
    World.fails(invalid, () -> Tensor.borrow(DType.F32, ByteBuffer.allocateDirect(16), 1L << 62, 4), "the buffer has 4");
  }

  @Test
  void aContinuationMayWait() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph); Tensor in = Tensor.allocate(DType.F32, 300, 300)) {
      Value x = graph.placeholder("x", DType.F32, -1, -1);
      Value y = graph.matMul(x, x);
      CompletableFuture<Integer> nested = session.run().feed(x, in).fetch(y).start().thenApply(results -> {
        results.close();
        try (Results inner = session.run().feed(x, in).fetch(y).start().join()) {
          return inner.size();
        }
      });
      assertEquals(1, nested.get(60, TimeUnit.SECONDS));
      // For ever is a time too.
      try (Results results = session.run().feed(x, in).fetch(y).timeout(Duration.ofSeconds(Long.MAX_VALUE)).start().get(60, TimeUnit.SECONDS)) {
        assertEquals(1, results.size());
      }
      CompletableFuture<Results> never = session.run().fetch(World.dequeue(graph)).start();
      assertThrows(TimeoutException.class, () -> never.get(20, TimeUnit.MILLISECONDS));
      assertTrue(never.cancel(true));
    }
  }

  @Test
  void aSinkThatFailsHarmsNobody() throws Exception {
    LogSink sink = (level, component, message) -> {
      throw new StackOverflowError("a sink's");
    };
    try (DtgRuntime runtime = new DtgRuntime(new RuntimeOptions().log(LogLevel.INFO, sink)); Cluster alone = Cluster.parse("worker=127.0.0.1:0");
        Server server = Server.start(runtime, alone, new ServerOptions())) {
      assertFalse(server.target().isEmpty());
    }
    Tensor.borrow(DType.U8, ByteBuffer.allocateDirect(1 << 10), 1 << 10).close(); // its books are still kept, see nothingLives
  }

  @Test
  void aLossThatIsNoNumberIsToldWithItsStep() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph);
        Tensor good = Tensor.scalar(1f); Tensor bad = Tensor.scalar(Float.NaN)) {
      Value x = graph.placeholder("x", DType.F32);
      Value w = model.addVariable(new VariableSpec("w")).read();
      Training training = model.minimize(model.meanSquaredError(x, w), Optimizer.sgd(0.1));
      session.run(model.init());
      session.run().feed(x, good).targets(training.train()).call().close();
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(x, bad).targets(training.train()).call(), "nan at step 1");
    }
  }

  @Test
  void filesOfOneSchema(@TempDir Path folder) throws Exception {
    Path train = Files.writeString(folder.resolve("train.csv"), "size,kind\n1,cat\n,dog\n3,owl\n");
    Path test = Files.writeString(folder.resolve("test.csv"), "size,kind\n,owl\n");
    World.fails(DtgException.DataLoss.class, () -> Dataset.csv(train, null), "line 3", "size");
    String schema;
    try (Dataset data = Dataset.csv(train, new CsvOptions().label("kind").missing(CsvOptions.Missing.MEAN))) {
      schema = data.schema();
    }
    try (Dataset data = Dataset.csv(test, new CsvOptions().schema(schema)); Results row = data.next()) {
      assertArrayEquals(new float[] {2}, row.get(0).toFloats());
      assertEquals(2, row.get(1).getLong(0));
    }
    Files.writeString(test, "size,kind\n1,emu\n");
    World.fails(DtgException.InvalidArgument.class, () -> Dataset.csv(test, new CsvOptions().schema(schema)), "emu");
    Path file = folder.resolve("w.safetensors");
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      model.addVariable(new VariableSpec("w"));
      World.fails(DtgException.NotFound.class, () -> model.metadata("schema"));
      session.run(model.init());
      model.metadata("schema", schema);
      model.save(session, file);
    }
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      model.addVariable(new VariableSpec("w"));
      model.restore(session, file);
      assertEquals(schema, model.metadata("schema"));
    }
    DtgRuntime.trim(null);
  }
}
