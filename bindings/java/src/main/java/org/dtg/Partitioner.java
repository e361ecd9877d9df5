// Into how many shards a variable is cut. Any thread.

package org.dtg;

/** The rules of tf.distribute.experimental.partitioners. */
public final class Partitioner {
  private final int kind;
  private final long[] sizes;

  private Partitioner(int kind, long... sizes) {
    this.kind = kind;
    this.sizes = sizes;
  }

  /** Zero is the default in C, and no size here. */
  private static long size(long size) {
    return size == 0 ? -1 : size;
  }

  /**
   * So many, and never more than there are rows.
   *
   * @param shards how many
   * @return the rule
   */
  public static Partitioner fixedShards(long shards) {
    return new Partitioner(0, shards, 0, 0);
  }

  /**
   * As many as there are whole or begun pieces of so many bytes.
   *
   * @param bytes of a piece; 256 KiB in TensorFlow
   * @param maxShards at most so many; 1 in TensorFlow
   * @return the rule
   */
  public static Partitioner minSize(long bytes, long maxShards) {
    return new Partitioner(1, 0, size(bytes), size(maxShards));
  }

  /**
   * So that none has more bytes, but at least a row.
   *
   * @param bytes of a shard
   * @param maxShards at most so many; 0: any number
   * @return the rule
   */
  public static Partitioner maxSize(long bytes, long maxShards) {
    return new Partitioner(2, 0, size(bytes), maxShards);
  }

  Packet packet() {
    return new Packet().integer(kind).integer(sizes[0]).integer(sizes[1]).integer(sizes[2]);
  }

  /**
   * The number of shards of a variable.
   *
   * @param dtype its type
   * @param axis which dimension is cut
   * @param dims its shape
   * @return how many
   */
  public long shards(DType dtype, int axis, long... dims) {
    return Native.partitionerShards(kind, axis, sizes, Handle.given(dtype, "dtype").number(), Handle.given(dims, "dims"));
  }

  /**
   * Which rows a shard has.
   *
   * @param rows of all shards
   * @param shards how many there are
   * @param shard which one
   * @return the first row, and how many
   */
  public static long[] shardRows(long rows, long shards, long shard) {
    return Native.shardRows(rows, shards, shard);
  }
}
