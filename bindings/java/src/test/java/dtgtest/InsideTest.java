// Layers in the bodies of functions: loops of layers that were made outside, variables of a body's own, and what a body cannot have.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class InsideTest {
  private static final float[] NUMBERS = {0.5f, -1, 0.25f, 2, -0.75f, 1};

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  /** A loop of so many rounds, in which x becomes what {@code round} makes of it with the model inside. */
  private static Value loop(Model model, Value x, int rounds, BiFunction<Model, Value, Value> round) {
    Graph graph = x.graph();
    return graph.whileLoop(List.of(graph.constant(0), x), (body, v) -> body.less(v.get(0), body.constant(rounds)), (body, v) -> {
      try (Model inside = model.inside(body)) {
        return List.of(body.addV2(v.get(0), body.constant(1)), round.apply(inside, v.get(1)));
      }
    }).get(1);
  }

  private static Dense mix() {
    return new Dense(3).activation(Activation.TANH);
  }

  private static float[] fetch(Session session, Value value) {
    try (Results out = session.run().fetch(value).call()) {
      return out.get(0).toFloats();
    }
  }

  @Test
  void aLoopOfALayerIsTheLayerAgainAndAgain() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5); Session session = Session.connect("local", graph)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      Value y = model.dense(x, mix());
      for (int i = 1; i < 4; i++) y = model.dense(y, mix().weightsOf("dense"));
      int variables = model.variables().size();
      Value looped = loop(model, x, 4, (inside, value) -> inside.dense(value, mix().weightsOf("dense")));
      assertEquals(variables, model.variables().size(), "weights of their own");
      assertArrayEquals(new long[] {2, 3}, looped.shape());
      session.run(model.init());
      assertArrayEquals(fetch(session, y), fetch(session, looped));
      assertNotEquals(0, fetch(session, looped)[0]);
    }
  }

  @Test
  void variablesOfABodyAreOutsideAndLearn() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5); Session session = Session.connect("local", graph)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      Value looped = loop(model, x, 3, (inside, value) -> inside.dense(value, mix()));
      Variable kernel = model.variable("body/dense/kernel");
      assertTrue(kernel.trainable());
      assertSame(graph, kernel.handle().graph());
      assertArrayEquals(new long[] {3, 3}, kernel.shape());
      Value y = x;
      for (int i = 0; i < 3; i++) y = model.dense(y, mix().weightsOf("body/dense"));
      Value loss = model.meanSquaredError(graph.zerosLike(x), looped);
      Value train = model.minimize(loss, Optimizer.sgd(0).rate(0.5)).train();
      session.run(model.init());
      float[] before = fetch(session, kernel.read());
      float first = session.run().fetch(loss).callFloat();
      for (int i = 0; i < 20; i++) session.run(train);
      assertFalse(Arrays.equals(before, fetch(session, kernel.read())));
      float last = session.run().fetch(loss).callFloat();
      assertTrue(last < first / 2, first + ", then " + last);
      assertArrayEquals(fetch(session, y), fetch(session, looped));
    }
  }

  /** The variables are in the graph around all bodies; what is read of them is a value of the body. */
  @Test
  void variablesThatABodyAsksForAreOfTheGraphAround() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5); Session session = Session.connect("local", graph)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      Variable two = model.scalar("two", 2);
      List<Variable> asked = new ArrayList<>();
      Value looped = loop(model, x, 3, (inside, value) -> {
        asked.add(inside.addVariable(new VariableSpec("gain").initializer(Initializer.ONES)));
        asked.add(inside.variable("two"));
        asked.add(inside.globalStep());
        assertEquals(two, asked.get(1));
        Graph body = value.graph();
        for (Variable variable : asked) {
          assertSame(body, variable.read().graph());
          assertArrayEquals(new long[0], variable.read().shape());
        }
        return body.mul(value, body.mul(asked.get(0).read(), asked.get(1).read()));
      });
      for (Variable variable : asked) {
        assertSame(graph, variable.handle().graph());
        assertEquals(variable, model.variable(variable.name()));
        assertNotEquals("", variable.assign().name());
      }
      session.run(model.init());
      float[] wanted = NUMBERS.clone();
      for (int i = 0; i < wanted.length; i++) wanted[i] *= 8;
      assertArrayEquals(wanted, fetch(session, looped));
    }
  }

  /** What a layer passes through is a value of the body: of an activation that is none, and of the cache of an encoder. */
  @Test
  void whatIsPassedThroughIsOfTheBody() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5)) {
      Value x = graph.constant(NUMBERS, 1, 2, 3);
      Attention layer = new Attention(1, 3);
      model.attention(x, x, layer);
      layer.weightsOf("multi_head_attention");
      AttentionCache read = model.attentionCache(x, layer, 0);
      loop(model, x, 1, (inside, value) -> {
        assertArrayEquals(new long[] {1, 2, 3}, inside.activation(x, Activation.NONE).shape());
        AttentionStep step = inside.attentionStep(value, layer, read);
        assertArrayEquals(new long[] {1, 2, 1, 3}, step.cache().keys().shape());
        assertArrayEquals(new long[] {1, 2, 1, 3}, step.cache().values().shape());
        assertNull(step.cache().position());
        return step.output();
      });
    }
  }

  @Test
  void bodiesNest() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5); Session session = Session.connect("local", graph)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      Value yes = graph.constant(true);
      Value looped = loop(model, x, 2, (inside, value) -> value.graph().ifElse(yes, then -> {
        try (Model innermost = inside.inside(then)) {
          return List.of(then.addV2(innermost.dense(x, mix()), value));
        }
      }, otherwise -> List.of(value)).get(0));
      Value once = model.dense(x, mix().weightsOf("body/then/dense"));
      session.run(model.init());
      float[] each = fetch(session, once);
      float[] found = fetch(session, looped);
      for (int i = 0; i < found.length; i++) assertEquals(NUMBERS[i] + 2 * each[i], found[i], 1e-6f);
    }
  }

  @Test
  void whatIsNoBodyIsRefused() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Graph other = new Graph()) {
      World.fails(invalid, () -> model.inside(null), "body is null");
      World.fails(invalid, () -> model.inside(graph), "no body", "InsideTest.java");
      World.fails(invalid, () -> model.inside(other), "no body");
      other.function("strange", List.of(), (body, v) -> {
        World.fails(invalid, () -> model.inside(body), "no body");
        return List.of(body.constant(1f));
      }).close();
      graph.function("twice", List.of(), (body, v) -> {
        try (Model inside = model.inside(body)) {
          World.fails(invalid, () -> inside.inside(body), "inside of that body already");
          World.fails(invalid, () -> inside.inside(null), "body is null");
        }
        return List.of(body.constant(1f));
      }).close();
      Model closed = new Model(graph, 2);
      closed.close();
      graph.function("late", List.of(), (body, v) -> {
        World.isClosed(() -> closed.inside(body), "model");
        return List.of(body.constant(1f));
      }).close();
      assertEquals(0, model.variables().size());
    }
  }

  @Test
  void whatABodyCannotHaveIsRefused() {
    Class<DtgException.FailedPrecondition> refused = DtgException.FailedPrecondition.class;
    try (Graph graph = new Graph(); Model model = new Model(graph, 1); Session session = Session.connect("local", graph)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      Value training = graph.placeholder("training", DType.BOOL);
      loop(model, x, 1, (inside, value) -> {
        World.fails(refused, inside::init, "inside of the body of \"body\"");
        World.fails(refused, () -> inside.minimize(value, null), "give the model itself");
        World.fails(refused, () -> inside.save(session, "nowhere"), "give the model itself");
        World.fails(refused, () -> new Trainer(inside, new TrainerOptions().feeds(x).loss(value)), "give the model itself");
        World.fails(DtgException.InvalidArgument.class, () -> inside.dense(value, new Dense(-1)), "InsideTest.java");
        World.fails(DtgException.Unimplemented.class, () -> inside.batchNorm(value, new BatchNorm().training(training)), "InsideTest.java");
        assertEquals(0, model.variables().size(), "what was refused leaves no variables");
        return inside.dense(value, mix());
      });
      assertEquals("body/dense/bias", model.variable("body/dense/bias").name());
    }
  }

  @Test
  void afterItsEndABodyTakesNothing() {
    List<Model> kept = new ArrayList<>();
    List<Graph> bodies = new ArrayList<>();
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value x = graph.constant(NUMBERS, 2, 3);
      graph.function("early", List.of(), (body, v) -> {
        bodies.add(body);
        kept.add(model.inside(body));
        return List.of(kept.get(0).dense(x, mix()));
      }).close();
      Model inside = kept.get(0);
      World.fails(DtgException.FailedPrecondition.class, () -> inside.dense(x, mix()), "\"early\"", "was ended");
      World.fails(DtgException.FailedPrecondition.class, () -> inside.scalar("w", 1), "was ended");
      World.isClosed(() -> model.inside(bodies.get(0)), "graph");
      assertEquals(2, model.variables().size());
      // One that is closed in the body that it is of, and one whose body came to nothing.
      graph.function("short", List.of(), (body, v) -> {
        Model brief = model.inside(body);
        brief.close();
        World.isClosed(() -> brief.dense(x, mix()), "model");
        return List.of(body.constant(1f));
      }).close();
      assertThrows(ArithmeticException.class, () -> graph.function("nothing", List.of(), (body, v) -> {
        kept.add(model.inside(body));
        throw new ArithmeticException("stop");
      }));
      World.isClosed(() -> kept.get(1).dense(x, mix()).shape(), "graph");
    }
    // They keep what they are made of, and may be closed last.
    kept.forEach(Model::close);
    World.isClosed(() -> kept.get(0).dense(null, mix()), "model");
  }
}
