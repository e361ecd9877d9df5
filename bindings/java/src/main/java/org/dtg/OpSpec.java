// A node on its way into a graph. One thread.

package org.dtg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A node to add, by the name of its op: {@code graph.op("MatMul").inputs(a, b).attr("transpose_a", true).add()}. Attributes that the inputs
 * or a default decide need not be said. {@link Ops} has a typed method per op.
 */
public final class OpSpec {
  /** C's kinds of attributes, in their order. */
  private enum Kind {
    INT, FLOAT, BOOL, TYPE, SHAPE, STRING, TENSOR, LIST_INT, LIST_FLOAT, LIST_BOOL, LIST_TYPE, LIST_SHAPE, LIST_STRING, FUNC, LIST_FUNC
  }

  private final Graph graph;
  private final String type;
  private final List<Value> inputs = new ArrayList<>();
  private final List<Value> controls = new ArrayList<>();
  private final List<Value> colocate = new ArrayList<>();
  private final Packet attrs = new Packet();
  private final List<Handle> shared = new ArrayList<>();
  private final List<RuntimeException> refused = new ArrayList<>();
  private int count;
  private String name;
  private String device;
  private String location;

  OpSpec(Graph graph, String type) {
    this.graph = graph;
    this.type = type;
  }

  /**
   * Its name.
   *
   * @param text free in the current name scope; null: made from the type
   * @return this
   */
  public OpSpec name(String text) {
    name = text;
    return this;
  }

  /**
   * More inputs.
   *
   * @param values in order, list arguments in a row
   * @return this
   */
  public OpSpec inputs(Value... values) {
    return inputs(Arrays.asList(values));
  }

  /**
   * More inputs.
   *
   * @param values in order
   * @return this
   */
  public OpSpec inputs(List<Value> values) {
    for (Value value : values) inputs.add(value != null ? value : given("input " + inputs.size(), value));
    return this;
  }

  /** An input whose argument has a name. */
  OpSpec input(String argument, Value value) {
    inputs.add(given(argument, value));
    return this;
  }

  /** Inputs that are one argument. */
  OpSpec input(String argument, List<Value> values) {
    int at = 0;
    for (Value value : given(argument, values)) inputs.add(given(argument, at++, value));
    return this;
  }

  private <T> T given(String what, T value) {
    return value != null ? value : Handle.given(null, "add a " + type + ": " + what);
  }

  private Value given(String list, int at, Value value) {
    return value != null ? value : given(list + "[" + at + "]", value);
  }

  /**
   * Nodes that must run before this one.
   *
   * @param values they
   * @return this
   */
  public OpSpec controls(Value... values) {
    for (Value value : values) controls.add(given("a control input", value));
    return this;
  }

  /**
   * Nodes whose device this one must share.
   *
   * @param values they
   * @return this
   */
  public OpSpec colocate(Value... values) {
    for (Value value : values) colocate.add(given("a node to colocate with", value));
    return this;
  }

  /**
   * The device it asks for, merged over the device scope's.
   *
   * @param text such as "/job:ps/task:1"; null: the scope's alone
   * @return this
   */
  public OpSpec device(String text) {
    device = text;
    return this;
  }

  /**
   * Where errors of this node point to; without it the line that calls {@link #add}.
   *
   * @param text "file:line"
   * @return this
   */
  public OpSpec location(String text) {
    location = text;
    return this;
  }

  private Packet put(String key, Kind kind) {
    count++;
    return attrs.text(key).integer(kind.ordinal());
  }

  /**
   * An integer attribute.
   *
   * @param key its name
   * @param value its value
   * @return this
   */
  public OpSpec attr(String key, long value) {
    put(key, Kind.INT).integer(value);
    return this;
  }

  /**
   * A floating-point attribute.
   *
   * @param key its name
   * @param value its value
   * @return this
   */
  public OpSpec attr(String key, double value) {
    put(key, Kind.FLOAT).real(value);
    return this;
  }

  /**
   * A truth value.
   *
   * @param key its name
   * @param value its value
   * @return this
   */
  public OpSpec attr(String key, boolean value) {
    put(key, Kind.BOOL).bool(value);
    return this;
  }

  /**
   * An element type.
   *
   * @param key its name
   * @param value its value
   * @return this
   */
  public OpSpec attr(String key, DType value) {
    put(key, Kind.TYPE).integer(given(key, value).number());
    return this;
  }

  /**
   * A text.
   *
   * @param key its name
   * @param value its value
   * @return this
   */
  public OpSpec attr(String key, String value) {
    put(key, Kind.STRING).text(value);
    return this;
  }

  /**
   * A tensor, which is shared, not copied.
   *
   * @param key its name
   * @param value its value; must stay open until {@link #add}, and need not be closed after it: the graph has what it holds
   * @return this
   */
  public OpSpec attr(String key, Tensor value) {
    shared.add(given(key, value));
    try {
      put(key, Kind.TENSOR).integer(value.hold());
      value.drop();
    } catch (DtgException e) {
      refused.add(e);
    }
    return this;
  }

  /**
   * Functions, which are shared. What they captured is given to the node as inputs: {@link GraphFunction#captures}.
   *
   * @param key its name
   * @param list whether the attribute is a list; otherwise it takes one
   * @param values its value; must stay open until {@link #add}
   * @return this
   */
  public OpSpec functions(String key, boolean list, GraphFunction... values) {
    long[] addresses = Handle.hold(values);
    Handle.drop(values);
    shared.addAll(Arrays.asList(values));
    put(key, list ? Kind.LIST_FUNC : Kind.FUNC).integers(addresses);
    return this;
  }

  /**
   * Integers.
   *
   * @param key its name
   * @param values its value
   * @return this
   */
  public OpSpec attr(String key, long[] values) {
    put(key, Kind.LIST_INT).integers(values);
    return this;
  }

  /**
   * Numbers.
   *
   * @param key its name
   * @param values its value
   * @return this
   */
  public OpSpec attr(String key, double[] values) {
    put(key, Kind.LIST_FLOAT).reals(given(key, values));
    return this;
  }

  /**
   * Truth values.
   *
   * @param key its name
   * @param values its value
   * @return this
   */
  public OpSpec attr(String key, boolean[] values) {
    long[] all = new long[given(key, values).length];
    for (int i = 0; i < all.length; i++) all[i] = values[i] ? 1 : 0;
    put(key, Kind.LIST_BOOL).integers(all);
    return this;
  }

  /**
   * Element types.
   *
   * @param key its name
   * @param values its value
   * @return this
   */
  public OpSpec attr(String key, DType[] values) {
    put(key, Kind.LIST_TYPE).integers(Arrays.stream(given(key, values)).mapToLong(type -> given(key, type).number()).toArray());
    return this;
  }

  /**
   * Texts.
   *
   * @param key its name
   * @param values its value
   * @return this
   */
  public OpSpec attr(String key, String[] values) {
    put(key, Kind.LIST_STRING).texts(Arrays.asList(given(key, values)));
    return this;
  }

  /**
   * A shape.
   *
   * @param key its name
   * @param dims its dimensions, -1 where open; null: unknown rank
   * @return this
   */
  public OpSpec shape(String key, long[] dims) {
    put(key, Kind.SHAPE).integers(dims);
    return this;
  }

  /**
   * Shapes.
   *
   * @param key its name
   * @param shapes their dimensions, -1 where open; null: unknown rank
   * @return this
   */
  public OpSpec shapes(String key, long[][] shapes) {
    long[] ranks = Arrays.stream(given(key, shapes)).mapToLong(dims -> dims == null ? -1 : dims.length).toArray();
    long[] all = Arrays.stream(shapes).filter(dims -> dims != null).flatMapToLong(Arrays::stream).toArray();
    put(key, Kind.LIST_SHAPE).integers(ranks).integers(all);
    return this;
  }

  /**
   * Adds the node. All checks that can be made now are made now, and the graph is unchanged where one fails.
   *
   * @return its first output; the value that names it where it has none
   * @throws DtgException.NotFound when there is no such op; the message suggests the closest name
   * @throws DtgException.InvalidArgument for everything else that is wrong
   */
  public Value add() {
    return addAll().get(0);
  }

  /**
   * As {@link #add}, and gives all outputs.
   *
   * @return the outputs, in order; the value that names the node where it has none
   */
  public List<Value> addAll() {
    if (!refused.isEmpty()) throw refused.get(0);
    Handle[] held = shared.toArray(Handle[]::new);
    if (location == null) location = Leaks.caller();
    Packet spec = new Packet().text(type).text(name).text(device).text(location).values(inputs).values(controls).values(colocate);
    byte[] packet = spec.integer(count).append(attrs).bytes();
    Handle.hold(held);
    try {
      long it = graph.hold();
      try {
        List<Value> outputs = Arrays.stream(Native.graphAddOp(it, packet)).mapToObj(id -> new Value(graph, id)).toList();
        for (Handle each : held) {
          if (each instanceof Tensor) each.mayBeForgotten();
        }
        return outputs;
      } catch (DtgException e) {
        throw e.at(location);
      } finally {
        graph.drop();
      }
    } finally {
      Handle.drop(held);
    }
  }
}
