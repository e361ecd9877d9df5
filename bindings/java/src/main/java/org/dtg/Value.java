// Values of graphs. Immutable; any thread.

package org.dtg;

import java.util.Arrays;
import java.util.List;

/** One output of one node of a graph; also names the node itself where a node is asked for (targets, control inputs). */
public final class Value {
  private final Graph graph;
  private final long id;

  Value(Graph graph, long id) {
    this.graph = graph;
    this.id = id;
  }

  /** Null for the id 0, which is no value. */
  static Value orNull(Graph graph, long id) {
    return id == 0 ? null : new Value(graph, id);
  }

  /** 0 for null. */
  static long id(Value value) {
    return value == null ? 0 : value.id;
  }

  /** The id of one that must be there; {@code name}: of the argument. */
  static long id(Value value, String name) {
    if (value == null) throw new DtgException.InvalidArgument(name + " is null; it must be a value of a graph");
    return value.id;
  }

  /** All of them, none of which may be null. */
  static long[] ids(List<Value> values, String name) {
    if (values == null) throw new DtgException.InvalidArgument(name + " is null; it must be a list of values");
    long[] out = new long[values.size()];
    for (int i = 0; i < out.length; i++) {
      Value value = values.get(i);
      out[i] = value == null ? id(null, name + "[" + i + "]") : value.id;
    }
    return out;
  }

  static long[] ids(Value[] values, String name) {
    return ids(values == null ? null : Arrays.asList(values), name);
  }

  static long[] ids(List<Value> values) {
    return values.stream().mapToLong(Value::id).toArray();
  }

  /**
   * The graph it belongs to.
   *
   * @return the graph
   */
  public Graph graph() {
    return graph;
  }

  /**
   * The name of its node.
   *
   * @return such as "dense/MatMul"
   */
  public String name() {
    return text(0);
  }

  /**
   * The op of its node.
   *
   * @return such as "MatMul"
   */
  public String op() {
    return text(1);
  }

  /**
   * The device that was asked for.
   *
   * @return such as "/job:ps/task:0"; "" when none was
   */
  public String device() {
    return text(2);
  }

  private String text(int which) {
    long it = graph.hold();
    try {
      return Native.text(Native.valueText(it, id, which));
    } finally {
      graph.drop();
    }
  }

  /**
   * The number of outputs of its node.
   *
   * @return 0 for a node without
   */
  public long outputCount() {
    long it = graph.hold();
    try {
      return Native.valueNumOutputs(it, id);
    } finally {
      graph.drop();
    }
  }

  /**
   * An output of the node it belongs to.
   *
   * @param i which, from 0
   * @return the output
   * @throws DtgException.OutOfRange when the node has fewer
   */
  public Value output(int i) {
    long it = graph.hold();
    try {
      return new Value(graph, Native.valueOutput(it, id, i));
    } finally {
      graph.drop();
    }
  }

  /**
   * Its element type.
   *
   * @return the type
   * @throws DtgException.InvalidArgument for a node without outputs
   */
  public DType dtype() {
    long it = graph.hold();
    try {
      return DType.find(Native.valueDtype(it, id));
    } finally {
      graph.drop();
    }
  }

  /**
   * What is known of its shape.
   *
   * @return the dimensions, -1 where open; null when not even their number is known
   */
  public long[] shape() {
    long it = graph.hold();
    try {
      return Native.valueShape(it, id);
    } finally {
      graph.drop();
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Value value && value.id == id; // ids hold the number of their graph
  }

  @Override
  public int hashCode() {
    return Long.hashCode(id);
  }

  @Override
  public String toString() {
    return graph.isClosed() ? "a value of a closed graph" : name();
  }
}
