// Variables of models. Immutable.

package org.dtg;

import java.util.Arrays;

/**
 * A variable of a model.
 *
 * @param name its name, also in checkpoints
 * @param dtype the type of its elements
 * @param trainable false for counters and what optimizers keep
 * @param handle the resource, for ops such as AssignVariableOp
 * @param read its value; fetch it, or use it as an input
 * @param assign a target that gives it its first value
 * @param shape its dimensions
 */
public record Variable(String name, DType dtype, boolean trainable, Value handle, Value read, Value assign, long[] shape) {
  static Variable of(Graph graph, long[] numbers) {
    return of(graph, graph, numbers);
  }

  /** One that is asked for by the model inside of a body, which reads it there; all else is in the graph around all bodies. */
  static Variable of(Graph graph, Graph body, long[] numbers) {
    Value handle = new Value(graph, numbers[2]);
    return new Variable(handle.name(), DType.find((int) numbers[0]), numbers[1] != 0, handle, new Value(body, numbers[3]),
        new Value(graph, numbers[4]), Arrays.copyOfRange(numbers, 5, numbers.length));
  }

  /** Name, type and shape: {@code dense/kernel float32[64, 10]}. */
  @Override
  public String toString() {
    return name + " " + dtype.label() + Arrays.toString(shape) + (trainable ? "" : ", not trainable");
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Variable variable && variable.handle.equals(handle);
  }

  @Override
  public int hashCode() {
    return handle.hashCode();
  }
}
