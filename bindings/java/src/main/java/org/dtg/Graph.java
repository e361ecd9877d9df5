// Graphs. One thread at a time while nodes are added or scopes change; any thread otherwise.

package org.dtg;

import java.util.Arrays;
import java.util.List;

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
  public Graph(Runtime runtime) {
    super(make(runtime));
  }

  private static long make(Runtime runtime) {
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
   * A constant; the tensor is shared and may be closed afterwards.
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
   * An int64 vector, as shapes and axes are.
   *
   * @param values its elements
   * @return the value
   */
  public Value constant(long... values) {
    try (Tensor tensor = Tensor.of(values)) {
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
    long mine = hold();
    try {
      return new Value(this, Native.graphFind(mine, Native.utf8(name)));
    } finally {
      drop();
    }
  }

  // ---- scopes ----

  /** What is left when a scope is closed, in the order of native/graph.c. */
  private enum Kind {
    NAME, DEVICE, CONTROLS, COLOCATION
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
    long mine = hold();
    try {
      Native.graphPushText(mine, device, Native.utf8(text));
      return new Scope(this, kind);
    } finally {
      drop();
    }
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
    long mine = hold();
    try {
      long cluster = hold(setter.cluster);
      try {
        Native.graphPushSetter(mine, cluster, setter.packet().bytes());
        return new Scope(this, Kind.DEVICE);
      } finally {
        drop(setter.cluster);
      }
    } finally {
      drop();
    }
  }

  /**
   * Nodes that run before everything that is added inside.
   *
   * @param values they
   * @return the scope
   */
  public Scope controls(Value... values) {
    long mine = hold();
    try {
      Native.graphPushControls(mine, Value.ids(values));
      return new Scope(this, Kind.CONTROLS);
    } finally {
      drop();
    }
  }

  /**
   * The device of a node, for everything that is added inside.
   *
   * @param value the node
   * @return the scope
   */
  public Scope colocation(Value value) {
    long mine = hold();
    try {
      Native.graphPushColocation(mine, Value.id(value));
      return new Scope(this, Kind.COLOCATION);
    } finally {
      drop();
    }
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
    return gradients(List.of(y), List.of(xs), null);
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
    long mine = hold();
    try {
      long[] ids = Native.graphAddGradients(mine, Value.ids(ys), Value.ids(xs), gradYs == null ? null : Value.ids(gradYs));
      Gradient[] out = new Gradient[xs.size()];
      for (int i = 0; i < out.length; i++) out[i] = Gradient.of(this, ids, 4 * i);
      return Arrays.asList(out);
    } finally {
      drop();
    }
  }

  /**
   * The dense form of a gradient that came as rows.
   *
   * @param gradient it
   * @return its dense form; the same value when it is dense already
   */
  public Value densify(Gradient gradient) {
    long mine = hold();
    try {
      return new Value(this, Native.graphDensify(mine, Value.id(gradient.dense()), Value.id(gradient.values()), Value.id(gradient.indices()),
          Value.id(gradient.denseShape())));
    } finally {
      drop();
    }
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
