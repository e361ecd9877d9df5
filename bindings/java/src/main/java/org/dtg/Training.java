// What minimizing adds. Immutable.

package org.dtg;

/**
 * What {@link Model#minimize} adds.
 *
 * @param train the target that makes one step: all updates, then globalStep + 1
 * @param globalStep an int64 scalar; within a step it is read before or after the count, so fetch it by itself
 * @param learningRate a floating-point scalar
 * @param gradientNorm float32: the norm over all variables, before clipping; computed only if fetched or clipped by
 */
public record Training(Value train, Value globalStep, Value learningRate, Value gradientNorm) {
  static Training of(Graph graph, long[] ids) {
    return new Training(Value.orNull(graph, ids[0]), Value.orNull(graph, ids[1]), Value.orNull(graph, ids[2]), Value.orNull(graph, ids[3]));
  }
}
