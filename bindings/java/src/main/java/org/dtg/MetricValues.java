// What a metric adds. Immutable.

package org.dtg;

/**
 * What {@link Model#metric} adds. A run with update as a target and result as a fetch sees its own batch.
 *
 * @param update the target that adds a batch
 * @param reset the target that begins anew
 * @param result float32: a scalar, a vector over classes or outputs, or a matrix
 */
public record MetricValues(Value update, Value reset, Value result) {
  static MetricValues of(Graph graph, long[] ids) {
    return new MetricValues(Value.orNull(graph, ids[0]), Value.orNull(graph, ids[1]), Value.orNull(graph, ids[2]));
  }
}
