// What a recurrent layer gives. Immutable.

package org.dtg;

/**
 * What {@link Model#recurrent} gives. With {@link Direction#BOTH} every last dimension is 2 * units, forward first.
 *
 * @param outputs [batch, steps, units], in the order of the input; beyond an example's length: forward its last output, else zeros
 * @param hidden [batch, units], after each example's last step (backward: its first)
 * @param cell of an LSTM, likewise; null of others
 */
public record RecurrentResult(Value outputs, Value hidden, Value cell) {
  static RecurrentResult of(Graph graph, long[] ids) {
    return new RecurrentResult(Value.orNull(graph, ids[0]), Value.orNull(graph, ids[1]), Value.orNull(graph, ids[2]));
  }
}
