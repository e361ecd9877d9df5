// Variables in shards. Immutable.

package org.dtg;

import java.util.Arrays;

/**
 * A variable in shards: one variable for people and files, and several, "name/part_0" and so on, for the graph. Every optimizer trains the
 * shards as it trains other variables; checkpoints hold one tensor, which a model with another number of shards restores.
 *
 * @param name of the whole, scopes included
 * @param dtype the type of its elements
 * @param axis that it is cut along
 * @param shards how many there are
 * @param shape of the whole
 */
public record Sharded(String name, DType dtype, int axis, long shards, long[] shape) {
  static Sharded of(String name, long[] numbers) {
    return new Sharded(name, DType.find((int) numbers[0]), (int) numbers[1], numbers[2], Arrays.copyOfRange(numbers, 3, numbers.length));
  }

  /** Name, type, shape and shards: {@code table float32[1000, 64] in 4 shards}. */
  @Override
  public String toString() {
    return name + " " + dtype.label() + Arrays.toString(shape) + " in " + shards + (shards == 1 ? " shard" : " shards");
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Sharded o && o.name.equals(name) && o.dtype.equals(dtype) && o.axis == axis && o.shards == shards
        && Arrays.equals(o.shape, shape);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }
}
