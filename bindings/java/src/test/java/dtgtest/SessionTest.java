// Sessions: runs, callables, futures, and what can go wrong with them.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SessionTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void resultsGoWhereTheyAreTold() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph); Tensor in = Tensor.scalar(2f); Tensor out = Tensor.scalar(0f)) {
      Value x = graph.placeholder("x", DType.F32);
      Value square = graph.square(x);
      Value twice = graph.addV2(x, x);
      try (Results results = session.run().feed(x, in).fetch(square, out).fetch(twice).timeout(Duration.ofSeconds(5)).call()) {
        assertSame(out, results.get(0));
        assertEquals(4, results.get(1).getFloat(0));
      }
      assertEquals(4, out.getFloat(0), "what was given stays open");
      assertEquals(1, session.devices().size());
      session.reset();
      World.fails(DtgException.InvalidArgument.class, () -> session.reset("a\0b"), "NUL");
    }
  }

  /** The end is published by the first to come; whoever comes second must not take it for late. */
  @Test
  void manyMayWaitForOneRun() throws Exception {
    ExecutorService waiters = Executors.newFixedThreadPool(3);
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value queue = graph.fifoQueueV2(new DType[] {DType.F32});
      Value taken = graph.queueDequeueV2(queue, new DType[] {DType.F32}).get(0);
      Value put = graph.queueEnqueueV2(queue, List.of(graph.constant(9f)));
      for (int i = 0; i < 500; i++) {
        CompletableFuture<Results> run = session.run().fetch(taken).start();
        List<Future<Results>> told = new ArrayList<>();
        for (int w = 0; w < 3; w++) told.add(waiters.submit(() -> run.get(30, TimeUnit.SECONDS)));
        session.run().targets(put).call().close();
        try (Results results = run.get(30, TimeUnit.SECONDS)) {
          for (Future<Results> one : told) assertSame(results, one.get());
          assertEquals(9, results.get(0).getFloat(0));
        }
      }
    } finally {
      waiters.shutdown();
    }
  }

  @Test
  void callables() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect(null, "local", graph, new SessionOptions().cpuDevices(2).softPlacement(true))) {
      assertEquals(2, session.devices().size());
      Value x = graph.placeholder("x", DType.F32);
      try (PreparedRun callable = World.doubling(graph, session, x); Tensor in = Tensor.scalar(3f); Tensor out = Tensor.scalar(0f)) {
        callable.timeout(Duration.ofSeconds(5)).step(in, out);
        assertEquals(6, out.getFloat(0));
        try (Results results = callable.run(in)) {
          assertEquals(6, results.get(0).getFloat(0));
        }
        callable.runInto(new Tensor[] {in}, new Tensor[] {out}).close();
        World.fails(DtgException.InvalidArgument.class, () -> callable.run());
        World.fails(DtgException.InvalidArgument.class, () -> callable.step(in, null), "take run()");
        World.fails(DtgException.InvalidArgument.class, () -> callable.step(null, out));
        try (Tensor wrong = Tensor.scalar(1L); Tensor shape = Tensor.of(new float[2])) {
          World.fails(DtgException.InvalidArgument.class, () -> callable.step(wrong, out), "int64");
          World.fails(DtgException.InvalidArgument.class, () -> callable.step(shape, out), "[2]");
        }
        List<Thread> threads = new ArrayList<>();
        CountDownLatch good = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
          float mine = i;
          Thread thread = new Thread(() -> {
            try (Tensor of = Tensor.scalar(mine); Tensor to = Tensor.scalar(0f)) {
              for (int k = 0; k < 1000; k++) {
                callable.step(of, to);
                if (to.getFloat(0) != 2 * mine) return;
              }
              good.countDown();
            }
          });
          threads.add(thread);
          thread.start();
        }
        for (Thread thread : threads) thread.join();
        assertEquals(0, good.getCount());
      }
    }
  }

  @Test
  void futures() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value x = graph.placeholder("x", DType.F32);
      Value square = graph.square(x);
      List<CompletableFuture<Float>> all = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        try (Tensor in = Tensor.scalar((float) i)) { // the run keeps it
          all.add(session.run().feed(x, in).fetch(square).start().thenApply(results -> {
            try (results) {
              return results.get(0).getFloat(0);
            }
          }));
        }
      }
      for (int i = 0; i < 200; i++) assertEquals((float) i * i, all.get(i).get(10, TimeUnit.SECONDS));
      ExecutionException failed = assertThrows(ExecutionException.class, () -> session.run().fetch(square).start().get(10, TimeUnit.SECONDS));
      assertInstanceOf(DtgException.InvalidArgument.class, failed.getCause());
      try (Tensor to = Tensor.scalar(0f)) {
        refused(session.run().fetch(square, to).start(), "call()");
      }
    }
  }

  private static void refused(CompletableFuture<Results> run, String word) {
    ExecutionException failed = assertThrows(ExecutionException.class, () -> run.get(10, TimeUnit.SECONDS));
    assertTrue(assertInstanceOf(RuntimeException.class, failed.getCause()).getMessage().contains(word), failed.getCause()::toString);
  }

  @Test
  void aBlockedRunIsCancelled() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value never = World.dequeue(graph);
      CompletableFuture<Results> run = session.run().fetch(never).start();
      assertFalse(run.isDone());
      assertTrue(run.cancel(true));
      assertThrows(CancellationException.class, () -> run.get(10, TimeUnit.SECONDS));
      CompletableFuture<Results> stopped = session.run().fetch(never).start();
      session.stop(World.SECOND);
      ExecutionException failed = assertThrows(ExecutionException.class, () -> stopped.get(10, TimeUnit.SECONDS));
      assertEquals(Code.CANCELLED, assertInstanceOf(DtgException.Cancelled.class, failed.getCause()).code());
      World.fails(DtgException.FailedPrecondition.class, () -> session.run(never), "closed");
    }
  }

  /** Whatever completes the future ends the run, which would wait for ever; what completed it counts, not how the run ended of it. */
  @Test
  void aRunEndsWithItsFuture() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value never = World.dequeue(graph);
      IllegalStateException mine = new IllegalStateException("another's");
      List<Consumer<CompletableFuture<?>>> ends = List.of(run -> run.orTimeout(10, TimeUnit.MILLISECONDS),
          run -> run.completeOnTimeout(null, 10, TimeUnit.MILLISECONDS), run -> run.complete(null), run -> run.completeExceptionally(mine),
          run -> run.completeAsync(() -> null), run -> run.completeAsync(() -> {
            throw mine;
          }), run -> run.cancel(false), run -> run.obtrudeValue(null), run -> run.obtrudeException(mine));
      long living = Dtg.liveHandles();
      for (Consumer<CompletableFuture<?>> end : ends) {
        CompletableFuture<Results> run = session.run().fetch(never).start();
        CompletableFuture<Boolean> hangsOnIt = run.handle((none, e) -> e instanceof DtgException);
        end.accept(run);
        assertFalse(hangsOnIt.get(10, TimeUnit.SECONDS));
        World.assertLiving(living);
      }
    }
  }

  /** What calls end by, used on another thread. */
  private static Thread cancelling(Cancellation cancellation, long millis) {
    Thread thread = new Thread(() -> {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      cancellation.cancel();
      cancellation.cancel();
    });
    thread.start();
    return thread;
  }

  @Test
  void anotherThreadCancelsACall() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value never = World.dequeue(graph);
      try (PreparedRun call = session.prepare(List.of(), List.of(never), List.of())) {
        for (boolean prepared : new boolean[] {false, true}) {
          try (Cancellation cancellation = new Cancellation()) {
            Thread other = cancelling(cancellation, 10);
            for (int i = 0; i < 2; i++) { // while it waits, and again with one that was used
              World.fails(DtgException.Cancelled.class, () -> {
                if (prepared) call.runInto(new Tensor[0], new Tensor[1], cancellation);
                else session.run().fetch(never).cancelledBy(cancellation).call();
              }, "cancelled by its caller");
            }
            other.join();
            refused(session.run().fetch(never).cancelledBy(cancellation).start(), "only call()");
            cancellation.close();
            World.isClosed(cancellation::cancel, "cancellation");
            World.isClosed(() -> session.run().fetch(never).cancelledBy(cancellation).call(), "cancellation");
          }
        }
      }
    }
  }

  @Test
  void aLongProductIsLeft() throws Exception {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph); Tensor small = Tensor.allocate(DType.F32, 512, 512);
        Tensor large = Tensor.allocate(DType.F32, 5120, 5120)) {
      Value x = graph.placeholder("x", DType.F32, -1, -1);
      Value product = graph.matMul(x, x);
      long least = Long.MAX_VALUE;
      for (int i = 0; i < 5; i++) {
        long began = System.nanoTime();
        session.run().feed(x, small).fetch(product).call().close();
        least = Math.min(least, System.nanoTime() - began);
      }
      long whole = 1000 * least;
      try (Cancellation cancellation = new Cancellation()) {
        Thread other = cancelling(cancellation, whole / 50 / 1_000_000);
        long began = System.nanoTime();
        World.fails(DtgException.Cancelled.class, () -> session.run().feed(x, large).fetch(product).cancelledBy(cancellation).call(), "cancelled");
        assertTrue(System.nanoTime() - began < whole / 2, "the whole takes " + whole + " ns");
        other.join();
      }
    }
  }

  @Test
  void aBriefRunIsOverWhenItHasStarted() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph); Tensor in = Tensor.scalar(3f)) {
      Value x = graph.placeholder("x", DType.F32);
      Value square = graph.square(x);
      int brief = 0; // on a machine that is busy some are not, for a while
      for (int i = 0; i < 1000; i++) {
        CompletableFuture<Results> run = session.run().feed(x, in).fetch(square).start();
        if (run.isDone()) brief++;
        try (Results results = run.join()) {
          assertEquals(9, results.get(0).getFloat(0));
        }
      }
      assertTrue(brief > 0);
      Variable empty = model.scalar("w", 0);
      for (int i = 0; i < 10; i++) refused(session.run().fetch(empty.read()).start(), "w");
    }
  }

  /** Zero is no time at all, also for a run that is planned and brief; null is the session's default. */
  @Test
  void noTimeIsLeft() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph); Tensor in = Tensor.scalar(3f); Tensor out = Tensor.scalar(0f)) {
      Value x = graph.placeholder("x", DType.F32);
      Value y = graph.addV2(x, x);
      assertEquals(6, session.run().feed(x, in).fetch(y).timeout(null).callFloat());
      for (int i = 0; i < 100; i++) {
        World.fails(DtgException.DeadlineExceeded.class, () -> session.run().feed(x, in).fetch(y).timeout(Duration.ZERO).call());
        ExecutionException late = assertThrows(ExecutionException.class,
            () -> session.run().feed(x, in).fetch(y).timeout(Duration.ZERO).start().get(10, TimeUnit.SECONDS));
        assertInstanceOf(DtgException.DeadlineExceeded.class, late.getCause());
      }
      try (PreparedRun prepared = session.prepare(List.of(x), List.of(y), List.of())) {
        for (int i = 0; i < 100; i++) {
          World.fails(DtgException.DeadlineExceeded.class, () -> prepared.timeout(Duration.ZERO).step(in, out));
        }
        prepared.timeout(null).step(in, out);
      }
      assertEquals(6, out.getFloat(0));
    }
  }

  @Test
  void oneFloatIsOneFloat() {
    Graph graph = new Graph();
    try (graph; Session session = Session.connect("local", graph); Tensor in = Tensor.of(new float[] {1, 2, 3}); Tensor one = Tensor.of(new float[] {7})) {
      Value x = graph.placeholder("x", DType.F32, -1);
      Value y = graph.neg(x);
      Value counter = graph.varHandleOp(DType.F32, new long[0]);
      session.run(graph.assignVariableOp(counter, graph.constant(0f)));
      Value count = graph.assignAddVariableOp(counter, graph.constant(1f));
      Value counted = graph.readVariableOp(counter, DType.F32);
      Value pair = graph.constant(new float[] {1, 2});
      Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
      World.fails(invalid, () -> session.run().targets(count).callFloat(), "nothing is fetched");
      World.fails(invalid, () -> session.run().fetch(pair).targets(count).callFloat(), "float32[2]", "2 elements");
      World.fails(invalid, () -> session.run().fetch(graph.constant(3L)).targets(count).callFloat(), "int64", "float32");
      assertEquals(0, session.run().fetch(counted).callFloat(), "what the graph shows is told before the run");
      World.fails(invalid, () -> session.run().feed(x, in).fetch(y).callFloat(), "3 elements");
      assertEquals(-7, session.run().feed(x, one).fetch(y).callFloat());
      graph.close(); // the session has it
      assertEquals(-7, session.run().feed(x, one).fetch(y).callFloat());
    }
  }

  @Test
  void deadlines() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      Value never = World.dequeue(graph);
      World.fails(DtgException.DeadlineExceeded.class, () -> session.run().fetch(never).timeout(Duration.ofMillis(50)).call(), "deadline");
      CompletableFuture<Results> late = session.run().fetch(never).timeout(Duration.ofMillis(50)).start();
      ExecutionException failed = assertThrows(ExecutionException.class, () -> late.get(10, TimeUnit.SECONDS));
      assertInstanceOf(DtgException.DeadlineExceeded.class, failed.getCause());
      World.fails(DtgException.InvalidArgument.class, () -> session.run().fetch(never).timeout(Duration.ofSeconds(-1)).call());
    }
  }

  @Test
  void repeatedRuns() throws Exception {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Variable count = model.scalar("count", 0);
      Value more = graph.assignAddVariableOp(count.handle(), graph.constant(1f));
      session.run(model.init());
      CompletableFuture<Void> repeated = session.runRepeatedly(more);
      while (session.run().fetch(count.read()).callFloat() < 100) Thread.onSpinWait();
      repeated.cancel(true);
      assertTrue(repeated.isCancelled());
    }
  }

  @Test
  void mistakes() {
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph); Tensor one = Tensor.scalar(1f)) {
      Value x = graph.placeholder("x", DType.F32);
      Value y = graph.neg(x);
      World.fails(DtgException.InvalidArgument.class, () -> Session.connect("lokal", graph), "\"lokal\"", "\"local\"", "HOST:PORT", "unix:PATH");
      World.fails(DtgException.InvalidArgument.class, () -> session.run().call(), "nothing");
      assertEquals("x", World.fails(DtgException.InvalidArgument.class, () -> session.run().fetch(y).call(), "x").node());
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(y, one).fetch(y).call());
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(x, one).feed(x, one).fetch(y).call());
      Value target = graph.noOp(); // it can only run: it has nothing to feed
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(target, one).feed(x, one).fetch(y).call());
      World.fails(DtgException.InvalidArgument.class, () -> session.run().fetch(target).call());
      World.fails(DtgException.InvalidArgument.class, () -> session.run().feed(x, one).fetch(y, one).fetch(x, one).call());
      // For ever is a time too, and what cannot be asked for leaves nothing that waits.
      session.run().feed(x, one).fetch(y).timeout(Duration.ofSeconds(Long.MAX_VALUE)).start().join().close();
      assertThrows(Exception.class, () -> session.run().feed(x, one).fetch((Value) null).start().get(10, TimeUnit.SECONDS));
      session.run().feed(x, one).fetch(y).start().join().close();
      one.close();
      World.isClosed(() -> session.run().feed(x, one).fetch(y).call(), "tensor");
      session.close();
      session.close();
      World.isTooLate(() -> session.run(y));
      refused(session.run().fetch(y).start(), "not an open session");
    }
  }

  private static CompletableFuture<RuntimeException> waits(Runnable call) {
    return CompletableFuture.supplyAsync(() -> assertThrows(RuntimeException.class, call::run), one -> new Thread(one).start());
  }

  @Test
  void aCloseEndsWhatIsUnderWay() throws Exception {
    try (Graph graph = new Graph()) {
      Value queue = graph.fifoQueueV2(new DType[] {DType.F32});
      Value begun = graph.queueEnqueueV2(queue, List.of(graph.constant(1f)));
      Value size = graph.queueSizeV2(queue);
      Value never = World.dequeue(graph);
      Session session = Session.connect("local", graph);
      PreparedRun prepared = session.prepare(List.of(), List.of(never), List.of(begun));
      PreparedRun step = session.prepare(List.of(), List.of(), List.of(never, begun));
      try (prepared; step) {
        CompletableFuture<Results> started = session.run().fetch(never).start();
        CompletableFuture<Void> repeated = session.runRepeatedly(never);
        List<CompletableFuture<RuntimeException>> calls = List.of(waits(() -> session.run().fetch(never).targets(begun).call()),
            waits(() -> prepared.run()), waits(() -> step.step(null, null)));
        while (true) { // until each has told the queue that it has begun
          try (Results now = session.run().fetch(size).call()) {
            if (now.get(0).toInts()[0] == 3) break;
          }
        }
        session.close();
        assertInstanceOf(DtgException.Cancelled.class, assertThrows(ExecutionException.class, () -> started.get(10, TimeUnit.SECONDS)).getCause());
        assertInstanceOf(DtgException.Cancelled.class, assertThrows(ExecutionException.class, () -> repeated.get(10, TimeUnit.SECONDS)).getCause());
        for (CompletableFuture<RuntimeException> call : calls) {
          RuntimeException how = call.get(10, TimeUnit.SECONDS);
          assertTrue(how instanceof DtgException.Cancelled, how::toString);
        }
        World.isTooLate(() -> prepared.run());
        World.isTooLate(() -> step.step(null, null));
      }
      World.isTooLate(() -> prepared.run());
      session.close();
    }
  }
}
