// Functions of a graph: bodies that were ended. Immutable; any thread.

package org.dtg;

import java.util.Arrays;
import java.util.List;

/**
 * A function of a graph, made by {@link Graph#function}. It may be called any number of times from the graph that it was made in; nodes keep
 * what they call, so it may be closed when it has been called for the last time.
 */
public final class GraphFunction extends Handle {
  private final Graph outer;
  final int results;

  GraphFunction(Graph outer, long address, int results) {
    super(Kind.FUNCTION, address);
    this.outer = outer;
    this.results = results;
  }

  /** Builds what a function does. */
  @FunctionalInterface
  public interface Body {
    /**
     * Adds to the body.
     *
     * @param body a graph of its own, which is closed when this returns; values of the graphs around may be used in it as they are
     * @param v the function's arguments, or what a loop carries
     * @return the results
     */
    List<Value> build(Graph body, List<Value> v);
  }

  /** Builds the condition of a loop. */
  @FunctionalInterface
  public interface Condition {
    /**
     * Adds to the condition.
     *
     * @param body as in {@link Body}
     * @param v what the loop carries
     * @return whether it turns once more
     */
    Value build(Graph body, List<Value> v);
  }

  /** Builds a branch. */
  @FunctionalInterface
  public interface Branch {
    /**
     * Adds to the branch.
     *
     * @param body as in {@link Body}
     * @return the results
     */
    List<Value> build(Graph body);
  }

  /** What a function takes from whoever calls it. In a loop its shape holds in every round. */
  public static final class Argument {
    private final Value like;
    private final DType dtype;
    private final long[] dims;

    private Argument(Value like, DType dtype, long[] dims) {
      this.like = like;
      this.dtype = dtype;
      this.dims = dims;
    }

    /**
     * An argument of the type and shape of a value, also of a list or the handle of a variable.
     *
     * @param value the value
     * @return the argument
     */
    public static Argument like(Value value) {
      return new Argument(value, null, null);
    }

    /**
     * An argument of a type and a shape.
     *
     * @param dtype the element type
     * @param dims the dimensions, -1 where open; null: unknown rank
     * @return the argument
     */
    public static Argument of(DType dtype, long... dims) {
      return new Argument(null, dtype, dims == null ? null : dims.clone());
    }

    /** Adds it to a body that is held. */
    long add(long body) {
      return dtype == null ? Native.functionArgumentLike(body, Value.id(like)) : Native.functionArgument(body, dtype.number(), dims);
    }
  }

  /**
   * What it took from around, in the order of the arguments that stand for it, which come after those asked for: for nodes that are added
   * with {@link Graph#op} and the function as an attribute, which must be given them as inputs. {@link Graph#call} sees to that itself.
   *
   * @return the values
   */
  public List<Value> captures() {
    long mine = hold();
    try {
      return Arrays.stream(Native.functionCaptures(mine)).mapToObj(id -> new Value(outer, id)).toList();
    } finally {
      drop();
    }
  }
}
