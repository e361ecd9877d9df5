// Graphs. One thread at a time while nodes are added or scopes change; any thread otherwise.

package org.dtg;

import java.util.Arrays;
import java.util.List;
import java.util.function.LongFunction;

/**
 * A dataflow graph: append-only, so it may be run by other threads while one adds to it. Nodes are added by the typed methods that it
 * inherits, or by name with {@link #op}. Graphs are closed like everything native; sessions keep theirs alive themselves.
 */
public final class Graph extends Ops {
  /** An empty graph over the ops of the default runtime. */
  public Graph() {
    this(null);
  }

  /**
   * An empty graph over the ops of a runtime.
   *
   * @param runtime null: the default one
   */
  public Graph(DtgRuntime runtime) {
    super(make(runtime));
  }

  /** A graph that C gave. */
  Graph(long address) {
    super(address);
  }

  private static long make(DtgRuntime runtime) {
    long it = hold(runtime);
    try {
      return Native.graphCreate(it);
    } finally {
      drop(runtime);
    }
  }

  @Override
  public OpSpec op(String type) {
    return new OpSpec(this, type);
  }

  // ---- common nodes ----

  /**
   * A constant; the tensor is shared and may be closed afterwards. One that was made for it alone, {@code constant(Tensor.scalar(3f))}, need
   * not be.
   *
   * @param tensor its value
   * @return the value
   */
  public Value constant(Tensor tensor) {
    return op("Const").attr("value", tensor).attr("dtype", tensor.dtype()).add();
  }

  /**
   * A float32 scalar.
   *
   * @param value it
   * @return the value
   */
  public Value constant(float value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return constant(tensor);
    }
  }

  /**
   * A float64 scalar.
   *
   * @param value it
   * @return the value
   */
  public Value constant(double value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return constant(tensor);
    }
  }

  /**
   * An int32 scalar.
   *
   * @param value it
   * @return the value
   */
  public Value constant(int value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return constant(tensor);
    }
  }

  /**
   * An int64 scalar.
   *
   * @param value it
   * @return the value
   */
  public Value constant(long value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return constant(tensor);
    }
  }

  /**
   * A bool scalar.
   *
   * @param value it
   * @return the value
   */
  public Value constant(boolean value) {
    try (Tensor tensor = Tensor.scalar(value)) {
      return constant(tensor);
    }
  }

  /**
   * An int64 vector, as shapes and axes are.
   *
   * @param values its elements; a vector of one is {@code new long[] {value}}
   * @return the value
   */
  public Value constant(long... values) {
    try (Tensor tensor = Tensor.of(values)) {
      return constant(tensor);
    }
  }

  /**
   * An int32 constant of an array.
   *
   * @param values its elements, row by row
   * @param shape the dimensions; none: a vector
   * @return the value
   */
  public Value constant(int[] values, long... shape) {
    try (Tensor tensor = Tensor.of(values, shape)) {
      return constant(tensor);
    }
  }

  /**
   * A float32 constant of an array.
   *
   * @param values its elements, row by row
   * @param shape the dimensions; none: a vector
   * @return the value
   */
  public Value constant(float[] values, long... shape) {
    try (Tensor tensor = Tensor.of(values, shape)) {
      return constant(tensor);
    }
  }

  /**
   * A float64 constant of an array.
   *
   * @param values its elements, row by row
   * @param shape the dimensions; none: a vector
   * @return the value
   */
  public Value constant(double[] values, long... shape) {
    try (Tensor tensor = Tensor.of(values, shape)) {
      return constant(tensor);
    }
  }

  /**
   * A value that every run must feed.
   *
   * @param name its name; null: made from the type
   * @param dtype its element type
   * @param dims its dimensions, -1 where open; null: unknown rank
   * @return the value
   */
  public Value placeholder(String name, DType dtype, long... dims) {
    return op("Placeholder").name(name).attr("dtype", dtype).shape("shape", dims).add();
  }

  // ---- looking ----

  /**
   * The number of nodes.
   *
   * @return their number
   */
  public long nodeCount() {
    long mine = hold();
    try {
      return Native.graphNodeCount(mine);
    } finally {
      drop();
    }
  }

  /**
   * The node that was added as number {@code index}.
   *
   * @param index from 0
   * @return the value that names it
   * @throws DtgException.OutOfRange when there are fewer
   */
  public Value nodeAt(long index) {
    long mine = hold();
    try {
      return new Value(this, Native.graphNodeAt(mine, index));
    } finally {
      drop();
    }
  }

  /**
   * The value of a name.
   *
   * @param name "node" (its first output, or the node itself) or "node:1"
   * @return the value
   * @throws DtgException.NotFound when there is none
   */
  public Value find(String name) {
    return build(mine -> new Value(this, Native.graphFind(mine, Native.utf8(name))));
  }

  // ---- functions, conditions, loops ----

  /**
   * Builds a function. What goes wrong in {@code body} comes out of this call as it is.
   *
   * @param name for errors and traces
   * @param arguments what whoever calls it gives
   * @param body builds it
   * @return the function, to be closed
   * @throws DtgException.Unimplemented when it makes a variable or a queue of its own
   * @throws DtgException.ResourceExhausted for more than 64 levels of functions
   */
  public GraphFunction function(String name, List<GraphFunction.Argument> arguments, GraphFunction.Body body) {
    given(arguments, "arguments");
    return function(name, it -> arguments.stream().mapToLong(argument -> argument.add(it)).toArray(), body);
  }

  /** The same with arguments that whoever calls adds to the body, which is held. */
  GraphFunction function(String name, LongFunction<long[]> arguments, GraphFunction.Body body) {
    given(body, "body");
    try (Graph inside = begin(name)) {
      List<Value> v = inside.build(it -> Arrays.stream(arguments.apply(it)).mapToObj(id -> new Value(inside, id)).toList());
      List<Value> results = body.build(inside, v);
      return inside.build(it -> new GraphFunction(this, Native.functionEnd(it, Value.ids(results, "results")), results.size()));
    }
  }

  private Graph begin(String name) {
    return build(mine -> new Graph(Native.functionBegin(mine, Native.utf8(name))));
  }

  private GraphFunction branch(String name, GraphFunction.Branch build) {
    given(build, name);
    return function(name, List.of(), (body, none) -> build.build(body));
  }

  /** The outputs of a node that calls functions, all of which are held while it is added. */
  private List<Value> calling(GraphFunction[] functions, ToOutputs add) {
    return build(mine -> {
      long[] held = hold(functions);
      try {
        return Arrays.stream(add.outputs(mine, held)).mapToObj(id -> new Value(this, id)).toList();
      } finally {
        drop(functions);
      }
    });
  }

  private interface ToOutputs {
    long[] outputs(long graph, long[] functions);
  }

  /**
   * Calls a function. Semantics: tf.function.
   *
   * @param function made in this graph
   * @param arguments what it asked for
   * @return its results
   */
  public List<Value> call(GraphFunction function, Value... arguments) {
    long[] given = Value.ids(arguments, "arguments");
    return calling(new GraphFunction[] {given(function, "function")}, (mine, held) -> Native.graphAddCall(mine, held[0], given, function.results));
  }

  /**
   * Runs {@code then} where {@code condition} is true (a number that is not 0, a tensor that is not empty), else {@code otherwise}; both
   * give as many values of the same types. Only the branch that is taken runs. Semantics: tf.cond.
   *
   * @param condition decides
   * @param then one branch
   * @param otherwise the other
   * @return the results of the branch that is taken
   */
  public List<Value> ifElse(Value condition, GraphFunction.Branch then, GraphFunction.Branch otherwise) {
    try (GraphFunction yes = branch("then", then); GraphFunction no = branch("else", otherwise)) {
      return calling(new GraphFunction[] {yes, no},
          (mine, held) -> Native.graphAddIf(mine, Value.id(condition, "condition"), held[0], held[1], yes.results));
    }
  }

  /**
   * Runs the branch of a number. Semantics: tf.switch_case.
   *
   * @param index an int32, counted from 0; the last branch for every other number
   * @param branches at least one
   * @return the results of the branch that is taken
   */
  public List<Value> switchCase(Value index, List<GraphFunction.Branch> branches) {
    GraphFunction[] made = new GraphFunction[given(branches, "branches").size()];
    try {
      for (int i = 0; i < made.length; i++) made[i] = branch("case", branches.get(i));
      int results = made.length == 0 ? 0 : made[0].results;
      return calling(made, (mine, held) -> Native.graphAddCase(mine, Value.id(index, "index"), held, results));
    } finally {
      for (GraphFunction function : made) {
        if (function != null) function.close();
      }
    }
  }

  /**
   * Calls {@code body} on what it gave the last time, first on {@code start}, for as long as {@code condition} gives true. A shape must stay
   * what it is in {@code start}. A loop that does not end is ended by the run's deadline or by cancelling it. Semantics: tf.while_loop.
   *
   * <pre>{@code
   * List<Value> out = graph.whileLoop(List.of(graph.constant(0), graph.constant(3f)),
   *     (body, v) -> body.greater(v.get(1), small),
   *     (body, v) -> List.of(body.addV2(v.get(0), body.constant(1)), body.mul(v.get(1), half)));
   * }</pre>
   *
   * @param start what the loop carries, at first
   * @param condition whether it turns once more
   * @param body a round: as many values of the same types
   * @return what there is at the end
   */
  public List<Value> whileLoop(List<Value> start, GraphFunction.Condition condition, GraphFunction.Body body) {
    return whileLoop(start, given(start, "start").stream().map(GraphFunction.Argument::like).toList(), condition, body);
  }

  /**
   * As {@link #whileLoop(List, GraphFunction.Condition, GraphFunction.Body)}, with shapes that rounds may change.
   *
   * @param start what the loop carries, at first
   * @param arguments what holds in every round, for each value of {@code start}
   * @param condition whether it turns once more
   * @param body a round
   * @return what there is at the end
   */
  public List<Value> whileLoop(List<Value> start, List<GraphFunction.Argument> arguments, GraphFunction.Condition condition,
      GraphFunction.Body body) {
    long[] first = Value.ids(start, "start");
    given(condition, "condition");
    given(body, "body");
    try (GraphFunction test = function("condition", arguments, (inside, v) -> List.of(condition.build(inside, v)));
        GraphFunction round = function("body", arguments, body)) {
      return calling(new GraphFunction[] {test, round}, (mine, held) -> Native.graphAddWhile(mine, first, held[0], held[1]));
    }
  }

  // ---- scopes ----

  /** What is left when a scope is closed, in the order of native/graph.c. */
  private enum Kind {
    NAME, DEVICE, CONTROLS, COLOCATION, RECOMPUTE
  }

  /** A scope that is open: everything that is added until it is closed gets what it says. Close the innermost first. */
  public static final class Scope implements AutoCloseable {
    private final Graph graph;
    private final Graph.Kind kind;
    private boolean open = true;

    private Scope(Graph graph, Graph.Kind kind) {
      this.graph = graph;
      this.kind = kind;
    }

    /** Leaves the scope; a second time does nothing, and so does leaving it when the graph is closed. */
    @Override
    public void close() {
      if (!open || graph.isClosed()) return;
      open = false;
      long it = graph.hold();
      try {
        Native.graphPop(it, kind.ordinal());
      } finally {
        graph.drop();
      }
    }
  }

  private Scope text(int device, String text, Kind kind) {
    return build(mine -> {
      Native.graphPushText(mine, device, Native.utf8(text));
      return new Scope(this, kind);
    });
  }

  /**
   * Prefixes names.
   *
   * @param name one that was used before gets a number; null or "": back to the root
   * @return the scope
   */
  public Scope nameScope(String name) {
    return text(0, name, Kind.NAME);
  }

  /**
   * Asks for a device, merged over the outer scopes' field by field.
   *
   * @param device such as "/job:ps"; "" changes nothing; null leaves all outer ones
   * @return the scope
   */
  public Scope device(String device) {
    return text(1, device, Kind.DEVICE);
  }

  /**
   * Places nodes as the setter says.
   *
   * @param setter who goes where
   * @return the scope
   */
  public Scope device(DeviceSetter setter) {
    given(setter, "setter");
    return build(mine -> {
      long cluster = hold(setter.cluster);
      try {
        Native.graphPushSetter(mine, cluster, setter.packet().bytes());
        return new Scope(this, Kind.DEVICE);
      } finally {
        drop(setter.cluster);
      }
    });
  }

  /**
   * Nodes that run before everything that is added inside.
   *
   * @param values they
   * @return the scope
   */
  public Scope controls(Value... values) {
    return build(mine -> {
      Native.graphPushControls(mine, Value.ids(values, "values"));
      return new Scope(this, Kind.CONTROLS);
    });
  }

  /**
   * The device of a node, for everything that is added inside.
   *
   * @param value the node
   * @return the scope
   */
  public Scope colocation(Value value) {
    return build(mine -> {
      Native.graphPushColocation(mine, Value.id(value, "value"));
      return new Scope(this, Kind.COLOCATION);
    });
  }

  /**
   * Gradients compute what is added inside once more, when they get there, instead of keeping it until then: less memory for about the time of
   * its forward pass, and the same values to the bit. Such scopes do not nest. As tf.recompute_grad.
   *
   * @return the scope
   */
  public Scope recompute() {
    return build(mine -> {
      Native.graphPushRecompute(mine);
      return new Scope(this, Kind.RECOMPUTE);
    });
  }

  // ---- gradients, bytes ----

  /**
   * Adds the nodes that compute d(y)/d(x) for each x, as tf.gradients.
   *
   * @param y a floating-point value
   * @param xs with respect to what
   * @return one gradient per x, with rows kept as rows
   */
  public List<Gradient> gradients(Value y, Value... xs) {
    return gradients(Arrays.asList(y), Arrays.asList(given(xs, "xs")), null);
  }

  /**
   * Adds the nodes that compute d(sum of the ys)/d(x) for each x.
   *
   * @param ys floating-point values
   * @param xs with respect to what
   * @param gradYs weights of the ys, of their types and shapes; null, also for single ones: ones
   * @return one gradient per x, with rows kept as rows
   * @throws DtgException.Unimplemented when an op on the path has no gradient
   */
  public List<Gradient> gradients(List<Value> ys, List<Value> xs, List<Value> gradYs) {
    return build(mine -> {
      long[] ids = Native.graphAddGradients(mine, Value.ids(ys, "ys"), Value.ids(xs, "xs"), gradYs == null ? null : Value.ids(gradYs));
      Gradient[] out = new Gradient[xs.size()];
      for (int i = 0; i < out.length; i++) out[i] = Gradient.of(this, ids, 4 * i);
      return Arrays.asList(out);
    });
  }

  /**
   * The dense form of a gradient that came as rows.
   *
   * @param gradient it
   * @return its dense form; the same value when it is dense already
   */
  public Value densify(Gradient gradient) {
    given(gradient, "gradient");
    return build(mine -> new Value(this, Native.graphDensify(mine, Value.id(gradient.dense()), Value.id(gradient.values()), Value.id(gradient.indices()),
          Value.id(gradient.denseShape()))));
  }

  /**
   * The whole graph as bytes.
   *
   * @return what {@link #importFrom} of this and later versions reads
   */
  public byte[] serialize() {
    long mine = hold();
    try {
      return Native.graphSerialize(mine);
    } finally {
      drop();
    }
  }

  /**
   * Adds the nodes of a serialised graph to this one, which must be empty.
   *
   * @param bytes from {@link #serialize}; verified before anything is read
   * @throws DtgException.DataLoss when they are no graph, cut or damaged
   */
  public void importFrom(byte[] bytes) {
    long mine = hold();
    try {
      Native.graphImport(mine, bytes);
    } finally {
      drop();
    }
  }
}
