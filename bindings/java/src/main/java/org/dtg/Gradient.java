// Gradients. Immutable.

package org.dtg;

/**
 * The gradient with respect to one value, in one of two forms: dense; or rows: {@code values[i]} is the gradient of row {@code indices[i]},
 * rows that are not listed have none, equal indices add up. What is not part of the form is null.
 *
 * @param dense the dense form
 * @param values the rows' gradients
 * @param indices which rows
 * @param denseShape the shape that the rows are of
 */
public record Gradient(Value dense, Value values, Value indices, Value denseShape) {
  static Gradient of(Graph graph, long[] ids, int at) {
    return new Gradient(
        Value.orNull(graph, ids[at]), Value.orNull(graph, ids[at + 1]), Value.orNull(graph, ids[at + 2]), Value.orNull(graph, ids[at + 3]));
  }

  /**
   * Whether no path leads from the value to what was derived.
   *
   * @return true when both forms are missing
   */
  public boolean isNone() {
    return dense == null && values == null;
  }
}
