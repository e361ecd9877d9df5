// Data sets. One thread at a time.

package org.dtg;

import java.util.List;

/**
 * A pipeline that hands out elements (one or more tensors each), one by one. It begins with a source; each transform is added to what is
 * there, in the order of the calls. Equal seeds give equal orders on every machine.
 *
 * <pre>{@code
 * try (Dataset data = Dataset.csv("digits.csv.gz", new CsvOptions().label("c64")).scale(0, 16).shuffle(0, 1).batch(64, true)) {
 *   for (Results batch = data.next(); batch != null; batch = data.next()) {
 *     try (batch) { ... }
 *   }
 *   data.restart();
 * }
 * }</pre>
 */
public final class Dataset extends Handle {
  private Dataset(long address) {
    super(Kind.DATASET, address);
  }

  /**
   * Slices of tensors along their first dimension; the tensors are shared, not copied.
   *
   * @param tensors one per component
   * @return the data set
   */
  public static Dataset tensors(Tensor... tensors) {
    long[] handles = hold(tensors);
    try {
      return new Dataset(Native.datasetTensors(0, handles));
    } finally {
      drop(tensors);
    }
  }

  /**
   * int64 scalars.
   *
   * @param start the first
   * @param stop just behind the last
   * @param step from one to the next; may be negative, not 0
   * @return the data set
   */
  public static Dataset range(long start, long stop, long step) {
    return new Dataset(Native.datasetRange(0, start, stop, step));
  }

  /**
   * IDX files, the format of MNIST and its family, plain or gzip.
   *
   * @param paths one per component
   * @return the data set
   */
  public static Dataset idx(String... paths) {
    return idx(null, paths);
  }

  /**
   * IDX files, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param paths one per component
   * @return the data set
   */
  public static Dataset idx(Runtime runtime, String... paths) {
    long it = hold(runtime);
    try {
      return new Dataset(Native.datasetIdx(it, new Packet().plain(List.of(paths)).bytes()));
    } finally {
      drop(runtime);
    }
  }

  /**
   * The rows of a CSV file, plain or gzip.
   *
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset csv(String path, CsvOptions options) {
    return csv(null, path, options);
  }

  /**
   * The rows of a CSV file, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset csv(Runtime runtime, String path, CsvOptions options) {
    long it = hold(runtime);
    try {
      Packet how = (options == null ? new CsvOptions() : options).packet();
      return new Dataset(Native.datasetCsv(it, new Packet().text(path).append(how).bytes()));
    } finally {
      drop(runtime);
    }
  }

  private Dataset transform(int which, long a, long b, double divisor) {
    long mine = hold();
    try {
      Native.datasetTransform(mine, which, a, b, divisor);
      return this;
    } finally {
      drop();
    }
  }

  /**
   * Draws at random from a buffer; every epoch has an order of its own.
   *
   * @param buffer its elements; 0: the whole epoch
   * @param seed decides the orders
   * @return this
   */
  public Dataset shuffle(long buffer, long seed) {
    return transform(0, buffer, seed, 0);
  }

  /**
   * Stacks elements along a new first dimension.
   *
   * @param size how many
   * @param dropRemainder whether a shorter last batch is left out
   * @return this
   */
  public Dataset batch(long size, boolean dropRemainder) {
    return transform(1, size, dropRemainder ? 1 : 0, 0);
  }

  /**
   * Keeps elements index, index + count, and so on.
   *
   * @param count how many workers share
   * @param index which worker this is
   * @return this
   */
  public Dataset shard(long count, long index) {
    return transform(2, count, index, 0);
  }

  /**
   * The same for the batches of one job, where a worker that finds none reports it.
   *
   * @param count how many workers share
   * @param index which worker this is
   * @return this
   */
  public Dataset autoShard(long count, long index) {
    return transform(3, count, index, 0);
  }

  /**
   * Cuts every batch along the first dimension.
   *
   * @param parts how many
   * @return this
   */
  public Dataset rebatch(long parts) {
    return transform(4, parts, 0, 0);
  }

  /**
   * Several epochs as one.
   *
   * @param count how many; negative: for ever
   * @return this
   */
  public Dataset repeat(long count) {
    return transform(5, count, 0, 0);
  }

  /**
   * The first elements.
   *
   * @param count how many
   * @return this
   */
  public Dataset take(long count) {
    return transform(6, count, 0, 0);
  }

  /**
   * All but the first elements.
   *
   * @param count how many
   * @return this
   */
  public Dataset skip(long count) {
    return transform(7, count, 0, 0);
  }

  /**
   * A component as float32, divided.
   *
   * @param component which
   * @param divisor 255 for pixels
   * @return this
   */
  public Dataset scale(long component, double divisor) {
    return transform(8, component, 0, divisor);
  }

  /**
   * A component as float32, float64, int32 or int64.
   *
   * @param component which
   * @param dtype the new type
   * @return this
   */
  public Dataset cast(long component, DType dtype) {
    return transform(9, component, dtype.number(), 0);
  }

  /**
   * Keeps elements ready, made by a thread of the data set's own.
   *
   * @param count how many
   * @return this
   */
  public Dataset prefetch(long count) {
    return transform(10, count, 0, 0);
  }

  /**
   * Begins the next epoch, wherever this one stands.
   *
   * @return this
   */
  public Dataset restart() {
    return transform(11, 0, 0, 0);
  }

  /**
   * The next element.
   *
   * @return its components, to be closed; null at the end of the data
   */
  public Results next() {
    long mine = hold();
    try {
      long[] handles = Native.datasetNext(mine);
      return handles == null ? null : Results.owning(handles);
    } finally {
      drop();
    }
  }

  /**
   * Elements (batches, after batch) per epoch.
   *
   * @return -1: endless, -2: not known before they are read
   */
  public long cardinality() {
    long mine = hold();
    try {
      return Native.datasetCardinality(mine);
    } finally {
      drop();
    }
  }

  /**
   * Tensors per element.
   *
   * @return their number
   */
  public long componentCount() {
    long mine = hold();
    try {
      return Native.datasetComponentCount(mine);
    } finally {
      drop();
    }
  }

  /**
   * What a component of every element is.
   *
   * @param dtype its element type
   * @param shape its dimensions, -1 where they differ; null when not even their number is known
   */
  public record Component(DType dtype, long[] shape) {}

  /**
   * Type and shape of a component.
   *
   * @param i which
   * @return what is known
   * @throws DtgException.OutOfRange when there are fewer
   */
  public Component component(long i) {
    long mine = hold();
    try {
      long[] all = Native.datasetComponent(mine, i);
      long[] shape = all[1] < 0 ? null : java.util.Arrays.copyOfRange(all, 2, all.length);
      return new Component(DType.find((int) all[0]), shape);
    } finally {
      drop();
    }
  }

  /**
   * How a worker batches so that all workers together use a global batch a step, also where that does not divide.
   *
   * @param globalBatch elements per step of all workers
   * @param workers how many there are
   * @param replicasPerWorker batches per worker and step
   * @param worker which worker this is
   * @return the sizes of its successive batches, and then over again
   */
  public static long[] batchSizes(long globalBatch, long workers, long replicasPerWorker, long worker) {
    return Native.batchSizes(globalBatch, workers, replicasPerWorker, worker);
  }
}
