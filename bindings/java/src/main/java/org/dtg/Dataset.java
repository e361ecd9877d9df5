// Data sets. One thread at a time.

package org.dtg;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;

/**
 * A pipeline that hands out elements (one or more tensors each), one by one. It begins with a source; each transform is added to what is
 * there, in the order of the calls. Equal seeds give equal orders on every machine.
 *
 * <pre>{@code
 * try (Dataset data = Dataset.csv("digits.csv.gz", new CsvOptions().label("c64")).scale(0, 16).shuffle(0, 1).batch(64, true)) {
 *   for (int epoch = 0; epoch < 10; epoch++) {
 *     for (Results batch : data) session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).targets(train).call().close();
 *   }
 * }
 * }</pre>
 *
 * <p>A loop over it is an epoch, from its start, and closes each element when it goes on; {@link #next} gives one element, which is the
 * caller's to close, and begins nothing anew.
 */
public final class Dataset extends Handle implements Iterable<Results> {
  private boolean begun; // an element was handed out, or the end told, since the epoch began
  private final AtomicReference<Results> lent = new AtomicReference<>(); // what a loop has now

  private Dataset(long address) {
    super(Kind.DATASET, address);
  }

  /** For a trainer, which begins it where it wants to; a loop over it afterwards begins anew. */
  void lend() {
    begun = true;
  }

  /** Gives the data set up, and the element that a loop was left with. Tensors that {@link #next} handed out stay valid. */
  @Override
  public void close() {
    super.close();
    pass(null);
  }

  /** The element before is closed, the next one is the loop's. */
  private Results pass(Results next) {
    Results before = lent.getAndSet(next);
    if (before != null) before.close();
    return next;
  }

  /** A source; an error of it names the line of the program. */
  private static Dataset source(DtgRuntime runtime, LongUnaryOperator make) {
    long it = hold(runtime);
    try {
      return new Dataset(make.applyAsLong(it));
    } catch (DtgException e) {
      throw e.at(Leaks.caller());
    } finally {
      drop(runtime);
    }
  }

  /**
   * Slices of tensors along their first dimension; the tensors are shared, not copied.
   *
   * @param tensors one per component
   * @return the data set
   */
  public static Dataset tensors(Tensor... tensors) {
    return source(null, none -> {
      long[] handles = hold(tensors, "tensors");
      try {
        return Native.datasetTensors(0, handles);
      } finally {
        drop(tensors);
      }
    });
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
    return source(null, none -> Native.datasetRange(0, start, stop, step));
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
  public static Dataset idx(DtgRuntime runtime, String... paths) {
    return source(runtime, it -> Native.datasetIdx(it, new Packet().plain(all(paths, "paths")).bytes()));
  }

  /**
   * As {@link #idx(String...)}.
   *
   * @param first a file
   * @param more others
   * @return the data set
   */
  public static Dataset idx(Path first, Path... more) {
    return idx(null, first, more);
  }

  /**
   * As {@link #idx(DtgRuntime, String...)}.
   *
   * @param runtime null: the default one
   * @param first a file
   * @param more others
   * @return the data set
   */
  public static Dataset idx(DtgRuntime runtime, Path first, Path... more) {
    return idx(runtime, texts(first, more));
  }

  /** Those of one or more files. */
  private static String[] texts(Path first, Path... more) {
    return Stream.concat(Stream.of(given(first, "first")), all(more, "more").stream()).map(Path::toString).toArray(String[]::new);
  }

  /**
   * The rows of a CSV file, plain or gzip.
   *
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset csv(Path path, CsvOptions options) {
    return csv(Native.path(path, "path"), options);
  }

  /**
   * As {@link #csv(Path, CsvOptions)}.
   *
   * @param path the file
   * @param options how; null: all found out
   * @return the data set
   */
  public static Dataset csv(String path, CsvOptions options) {
    return csv(null, path, options);
  }

  /**
   * As {@link #csv(DtgRuntime, String, CsvOptions)}.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset csv(DtgRuntime runtime, Path path, CsvOptions options) {
    return csv(runtime, Native.path(path, "path"), options);
  }

  /**
   * The rows of a CSV file, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset csv(DtgRuntime runtime, String path, CsvOptions options) {
    return source(runtime, it -> {
      Packet how = (options == null ? new CsvOptions() : options).packet();
      return Native.datasetCsv(it, new Packet().text(path).append(how).bytes());
    });
  }

  /**
   * NumPy's .npy files, plain or gzip: one component per file, with equal numbers of rows.
   *
   * @param paths one per component
   * @return the data set
   */
  public static Dataset npy(String... paths) {
    return npy(null, paths);
  }

  /**
   * NumPy's .npy files, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param paths one per component
   * @return the data set
   */
  public static Dataset npy(DtgRuntime runtime, String... paths) {
    return source(runtime, it -> Native.datasetNpy(it, new Packet().plain(all(paths, "paths")).bytes()));
  }

  /**
   * As {@link #npy(String...)}.
   *
   * @param first a file
   * @param more others
   * @return the data set
   */
  public static Dataset npy(Path first, Path... more) {
    return npy(null, first, more);
  }

  /**
   * As {@link #npy(DtgRuntime, String...)}.
   *
   * @param runtime null: the default one
   * @param first a file
   * @param more others
   * @return the data set
   */
  public static Dataset npy(DtgRuntime runtime, Path first, Path... more) {
    return npy(runtime, texts(first, more));
  }

  /**
   * Arrays of a .npz file.
   *
   * @param path the file
   * @param names one per component, in this order; none: all there are
   * @return the data set
   */
  public static Dataset npz(String path, String... names) {
    return npz(null, path, names);
  }

  /**
   * Arrays of a .npz file, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param names one per component, in this order; none: all there are
   * @return the data set
   */
  public static Dataset npz(DtgRuntime runtime, String path, String... names) {
    return source(runtime, it -> Native.datasetNpz(it, new Packet().text(path).plain(all(names, "names")).bytes()));
  }

  /**
   * As {@link #npz(String, String...)}.
   *
   * @param path the file
   * @param names one per component; none: all there are
   * @return the data set
   */
  public static Dataset npz(Path path, String... names) {
    return npz(null, path, names);
  }

  /**
   * As {@link #npz(DtgRuntime, String, String...)}.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param names one per component; none: all there are
   * @return the data set
   */
  public static Dataset npz(DtgRuntime runtime, Path path, String... names) {
    return npz(runtime, Native.path(path, "path"), names);
  }

  /**
   * The tf.Example messages of TFRecord files, plain or gzip. They are read as they are needed, so {@link #next} tells errors of theirs: a
   * torn file or a bad checksum is {@link DtgException.DataLoss}, with record and byte.
   *
   * @param paths the files, read one after the other
   * @param features one per component
   * @return the data set
   */
  public static Dataset tfrecord(List<String> paths, Feature... features) {
    return tfrecord(null, paths, features);
  }

  /**
   * The tf.Example messages of TFRecord files, for a runtime.
   *
   * @param runtime null: the default one
   * @param paths the files, read one after the other
   * @param features one per component
   * @return the data set
   */
  public static Dataset tfrecord(DtgRuntime runtime, List<String> paths, Feature... features) {
    return source(runtime, it -> Native.datasetTfrecord(it, new Packet().text(Feature.words(features)).plain(paths).bytes()));
  }

  /**
   * As {@link #tfrecord(List, Feature...)}.
   *
   * @param paths the files, read one after the other
   * @param features one per component
   * @return the data set
   */
  public static Dataset tfrecord(Path[] paths, Feature... features) {
    return tfrecord(null, paths, features);
  }

  /**
   * As {@link #tfrecord(DtgRuntime, List, Feature...)}.
   *
   * @param runtime null: the default one
   * @param paths the files, read one after the other
   * @param features one per component
   * @return the data set
   */
  public static Dataset tfrecord(DtgRuntime runtime, Path[] paths, Feature... features) {
    return tfrecord(runtime, all(paths, "paths").stream().map(Path::toString).toList(), features);
  }

  /**
   * The rows of a file of JSON lines, one object per line, plain or gzip.
   *
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset jsonLines(String path, JsonLinesOptions options) {
    return jsonLines(null, path, options);
  }

  /**
   * As {@link #jsonLines(String, JsonLinesOptions)}.
   *
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset jsonLines(Path path, JsonLinesOptions options) {
    return jsonLines(null, path, options);
  }

  /**
   * As {@link #jsonLines(DtgRuntime, String, JsonLinesOptions)}.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset jsonLines(DtgRuntime runtime, Path path, JsonLinesOptions options) {
    return jsonLines(runtime, Native.path(path, "path"), options);
  }

  /**
   * The rows of a file of JSON lines, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset jsonLines(DtgRuntime runtime, String path, JsonLinesOptions options) {
    return source(runtime, it -> {
      Packet how = (options == null ? new JsonLinesOptions() : options).packet();
      return Native.datasetJsonLines(it, new Packet().text(path).append(how).bytes());
    });
  }

  /**
   * The rows of a stream of tables through the Arrow C data interface. Numbers and bools keep their type, fixed-size lists of them are
   * components of that shape, texts and dictionaries of texts are numbered in sorted order; a column that comes in one piece without missing
   * values is not copied.
   *
   * @param stream the address of a filled ArrowArrayStream, as its class of arrow-c-data tells by {@code memoryAddress()}; it is taken over,
   *     also where this fails
   * @param options how it is read; null: all found out
   * @return the data set
   * @throws DtgException.DataLoss where a value is missing, or the stream fails
   * @throws DtgException.Unimplemented for a column of another type, which is named
   */
  public static Dataset arrow(long stream, ArrowOptions options) {
    return arrow(null, stream, options);
  }

  /**
   * The rows of a stream of tables, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param stream the address of a filled ArrowArrayStream, which is taken over
   * @param options how it is read; null: all found out
   * @return the data set
   */
  public static Dataset arrow(DtgRuntime runtime, long stream, ArrowOptions options) {
    return source(runtime, it -> Native.datasetArrow(it, stream, (options == null ? new ArrowOptions() : options).packet().bytes()));
  }

  /**
   * How many rows the source left out: passed over as bad, or dropped because they lack a value.
   *
   * @return 0 for sources that leave none out
   */
  public long badRows() {
    long mine = hold();
    try {
      return Native.datasetBadRows(mine);
    } finally {
      drop();
    }
  }

  /**
   * Why rows were left out.
   *
   * @return of the first ten, a line each
   */
  public String whyBad() {
    long mine = hold();
    try {
      return Native.text(Native.datasetWhyBad(mine));
    } finally {
      drop();
    }
  }

  /**
   * The elements that a program gives: {@code epochs} begins an epoch, by its number, from which an order may be made, and iterates over its
   * elements, whose tensors are closed when they have been taken. A place that is gone to may be in any epoch. What is thrown is the error
   * of the element, with its message. Semantics: Dataset.from_generator.
   *
   * @param components what elements are
   * @param cardinality elements per epoch, which is then held to it; -1: endless, -2: not known
   * @param epochs begins epochs
   * @return the data set
   */
  public static Dataset of(List<Component> components, long cardinality, LongFunction<? extends Iterator<List<Tensor>>> epochs) {
    return of(null, components, cardinality, epochs);
  }

  /**
   * The elements that a program gives, under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param components what elements are
   * @param cardinality as above
   * @param epochs begins epochs
   * @return the data set
   */
  public static Dataset of(DtgRuntime runtime, List<Component> components, long cardinality,
      LongFunction<? extends Iterator<List<Tensor>>> epochs) {
    return source(runtime, it -> {
      byte[] what = HostData.packet(new Packet().integer(cardinality), given(components, "components")).bytes();
      return Native.datasetSource(it, what, new HostData.Rows(given(epochs, "epochs")));
    });
  }

  /**
   * Elements become what a function of a graph gives for them: its arguments are the components. It may stand before {@link #batch} or behind
   * it, which is faster. Semantics: Dataset.map, deterministic.
   *
   * @param body builds the function
   * @return this
   * @throws DtgException.InvalidArgument for an op that is more than a function of its inputs, which is named
   */
  public Dataset map(GraphFunction.Body body) {
    return map(new MapOptions(), body);
  }

  /**
   * The same, several elements at once, with a seed, or with values from around.
   *
   * @param options how
   * @param body builds the function
   * @return this
   */
  public Dataset map(MapOptions options, GraphFunction.Body body) {
    return apply(0, "map", options, body);
  }

  /**
   * The elements for which a function of a graph, which gives one bool, gives true. Semantics: Dataset.filter.
   *
   * @param body builds the function
   * @return this
   */
  public Dataset filter(GraphFunction.Body body) {
    return filter(new MapOptions(), body);
  }

  /**
   * The same, several elements at once, with a seed, or with values from around.
   *
   * @param options how
   * @param body builds the function
   * @return this
   */
  public Dataset filter(MapOptions options, GraphFunction.Body body) {
    return apply(1, "filter", options, body);
  }

  private Dataset apply(int which, String name, MapOptions options, GraphFunction.Body body) {
    given(options, "options");
    return build(mine -> {
      try (Graph own = options.graph == null ? new Graph() : null) {
        Graph around = own == null ? options.graph : own;
        int count = (int) componentCount() + (options.seed ? 1 : 0);
        try (GraphFunction function = around.function(name, it -> Native.datasetAddArguments(mine, it, count), body)) {
          long held = function.hold();
          long session = hold(options.session);
          try {
            Native.datasetApply(mine, which, held, options.parallel, session);
          } finally {
            drop(options.session);
            function.drop();
          }
        }
      }
      return this;
    });
  }

  /**
   * Elements become what a function of Java makes of them. It is called by whoever asks for an element, or on the thread of a
   * {@link #prefetch} behind it, one call at a time; it must not use this data set. Semantics: Dataset.map of a py_function.
   *
   * @param components what it gives
   * @param function makes an element
   * @return this
   */
  public Dataset mapElements(List<Component> components, HostData.Change function) {
    return build(mine -> {
      byte[] what = HostData.packet(new Packet(), given(components, "components")).bytes();
      Native.datasetMapHost(mine, what, given(function, "function"));
      return this;
    });
  }

  /**
   * The elements that a function of Java wants. Else as {@link #mapElements}.
   *
   * @param function chooses elements
   * @return this
   */
  public Dataset filterElements(HostData.Choice function) {
    return build(mine -> {
      Native.datasetFilterHost(mine, given(function, "function"));
      return this;
    });
  }

  private Dataset transform(int which, long a, long b, double divisor) {
    return build(mine -> {
      Native.datasetTransform(mine, which, a, b, divisor);
      return this;
    });
  }

  private Dataset combine(int which, long block, Dataset... others) {
    return build(mine -> {
      long[] all = hold(others, "others");
      try {
        Native.datasetCombine(mine, which, all, block);
        return this;
      } finally {
        drop(others);
      }
    });
  }

  /**
   * The components of all, side by side, until the first ends. The others are a part of this one from then on: every later call on them
   * fails, but close. No element may have been taken from any since its last restart.
   *
   * @param others whose components come after these
   * @return this
   */
  public Dataset zip(Dataset... others) {
    return combine(0, 0, others);
  }

  /**
   * The elements of the others after its own. Tables must mean the same by their names and columns: read the second by the schema of the
   * first. The others become a part, as in {@link #zip}.
   *
   * @param others of as many components of the same types
   * @return this
   */
  public Dataset concatenate(Dataset... others) {
    return combine(1, 0, others);
  }

  /**
   * Some elements of each in turn, itself first, without those that have ended. The others become a part, as in {@link #zip}.
   *
   * @param block how many elements
   * @param others of as many components of the same types
   * @return this
   */
  public Dataset interleave(long block, Dataset... others) {
    return combine(2, block, others);
  }

  /**
   * Keeps the elements of the first epoch in memory and hands them out again in every epoch; a shuffle before it shuffles once. Its tensors
   * must not be written to.
   *
   * @return this
   */
  public Dataset cache() {
    return transform(13, 0, 0, 0);
  }

  /**
   * Windows of the elements k * shift, k * shift + stride, ..., stacked.
   *
   * @param size how many elements
   * @param shift from the first of one window to the first of the next
   * @param stride from one element of a window to the next
   * @param dropRemainder whether windows at the end that are not whole are dropped
   * @return this
   */
  public Dataset window(long size, long shift, long stride, boolean dropRemainder) {
    return build(mine -> {
      Native.datasetWindow(mine, size, shift, stride, dropRemainder ? 1 : 0);
      return this;
    });
  }

  /**
   * As {@link #batch} for elements of different sizes: each is made as long as the longest of its batch.
   *
   * @param size elements a batch
   * @param dropRemainder whether a shorter last batch is dropped
   * @param padding what stands behind the shorter ones
   * @return this
   */
  public Dataset paddedBatch(long size, boolean dropRemainder, double padding) {
    return transform(14, size, dropRemainder ? 1 : 0, padding);
  }

  /**
   * Padded batches of elements of like length.
   *
   * @param component whose first dimension is the length
   * @param boundaries rising; they make one bucket more than there are of them
   * @param sizes elements a batch, of each bucket
   * @param dropRemainder whether what is left at the end is dropped
   * @param padding what stands behind the shorter ones
   * @return this
   */
  public Dataset bucketBatch(int component, long[] boundaries, long[] sizes, boolean dropRemainder, double padding) {
    return build(mine -> {
      Native.datasetBuckets(mine, component, boundaries, sizes, dropRemainder ? 1 : 0, padding);
      return this;
    });
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
   * Draws at random from a buffer, in the same order in every epoch.
   *
   * @param buffer its elements; 0: the whole epoch
   * @param seed decides the order
   * @return this
   */
  public Dataset shuffleOnce(long buffer, long seed) {
    return transform(12, buffer, seed, 0);
  }

  /**
   * A component as float32, (x - shift) / scale for each feature along its last dimension. Fit on what is trained on, apply to that and to
   * everything else.
   *
   * @param component its number
   * @param normalization what {@link #fitNormalization} found, on this data set or on another one
   * @return this
   */
  public Dataset normalize(long component, String normalization) {
    return build(mine -> {
      Native.datasetNormalize(mine, component, Native.utf8(normalization));
      return this;
    });
  }

  /** What a normalization does to each feature; in C's order. */
  public enum Normalization {
    /** To mean 0 and deviation 1. */
    STANDARD,
    /** To 0 at the least and 1 at the greatest. */
    RANGE
  }

  /**
   * The numbers for {@link #normalize} and {@link Model#normalize}, found by one look at all of a component; the data set stays where it stood.
   * Ask before batch. Keep the text with the weights by {@link Model#metadata(String, String)}.
   *
   * @param component its number
   * @param kind what it does
   * @return the numbers, as JSON
   * @throws DtgException.InvalidArgument when there are no elements, or one is NaN or infinite
   */
  public String fitNormalization(long component, Normalization kind) {
    return build(mine -> Native.text(Native.datasetFitNormalization(mine, component, given(kind, "kind").ordinal())));
  }

  /**
   * Two data sets without a row in common.
   *
   * @param train to train on
   * @param heldOut to test with
   */
  public record Parts(Dataset train, Dataset heldOut) implements AutoCloseable {
    /**
     * Of two that are there.
     *
     * @param train to train on
     * @param heldOut to test with
     */
    public Parts {
      given(train, "train");
      given(heldOut, "heldOut");
    }

    @Override
    public void close() {
      train.close();
      heldOut.close();
    }
  }

  /**
   * One part to train on and one that is held out. Which row goes where is decided by the seed alone; the order within both is that of this data
   * set, which stays as it was. Elements must be rows of tensors or files, so split before batch, prefetch and repeat, and before
   * {@link #normalize}.
   *
   * @param how which rows; null: a fifth
   * @return both
   * @throws DtgException.InvalidArgument when numbers are out of range, there are no such rows or classes, or a part would be empty
   */
  public Parts split(Split how) {
    return build(mine -> {
      long[] both = Native.datasetSplit(mine, (how == null ? new Split() : how).packet().bytes());
      return new Parts(new Dataset(both[0]), new Dataset(both[1]));
    });
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
    return transform(9, component, given(dtype, "dtype").number(), 0);
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
    begun = false;
    return transform(11, 0, 0, 0);
  }

  /**
   * What was found out about the columns of a CSV file or of JSON lines. Give it to the reading of other files ({@link CsvOptions#schema}), so that names have
   * the same numbers and missing values the same means there; keep it with the weights by {@link Model#metadata(String, String)}.
   *
   * @return the schema, as JSON
   * @throws DtgException.FailedPrecondition when the data does not come from a CSV file
   */
  public String schema() {
    long mine = hold();
    try {
      return Native.text(Native.datasetSchema(mine));
    } finally {
      drop();
    }
  }

  /**
   * An epoch, from its start: where one was begun, by this, by {@link #next} or by a fit, it is given up and the next one begins; after
   * {@link #moveTo} it goes on from there. Each element is closed when the next one is asked for, at the latest with the data set; where a run
   * that was started with it goes on, that is fine, as runs hold what they are fed. What is thrown is what {@link #next} throws.
   *
   * <pre>{@code
   * for (Results batch : data) {
   *   last = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(train).callFloat();
   * }
   * }</pre>
   *
   * @return its elements, one by one; one loop at a time
   */
  @Override
  public Iterator<Results> iterator() {
    pass(null);
    if (begun) restart();
    return new Iterator<>() {
      private Results ready;
      private boolean over;

      @Override
      public boolean hasNext() {
        if (ready == null && !over) {
          pass(null);
          ready = pass(Dataset.this.next());
          over = ready == null;
        }
        return ready != null;
      }

      @Override
      public Results next() {
        if (!hasNext()) throw new NoSuchElementException("the epoch is over; a new loop over the data set begins the next one");
        Results out = ready;
        ready = null;
        return out;
      }
    };
  }

  /**
   * The next element.
   *
   * @return its components, to be closed; null at the end of the data, and until {@link #restart}, of which the log tells whoever asks
   *     again, once
   */
  public Results next() {
    long mine = hold();
    begun = true;
    try {
      long[] handles = Native.datasetNext(mine);
      return handles == null ? null : Results.owning(handles);
    } finally {
      drop();
    }
  }

  /**
   * Where the data set stands: elements since its last restart, then the epoch of each stage. Checkpoints keep it.
   *
   * @return numbers for {@link #moveTo}
   * @throws DtgException.FailedPrecondition when a transform was added after elements had been taken
   */
  public long[] position() {
    long mine = hold();
    try {
      return Native.datasetPosition(mine);
    } finally {
      drop();
    }
  }

  /**
   * Goes to a position of a data set with the same stages, seeds and sources: what comes next is what came next there.
   *
   * @param position what {@link #position} told
   * @return this
   */
  public Dataset moveTo(long... position) {
    return build(mine -> {
      Native.datasetMoveTo(mine, position);
      begun = false;
      return this;
    });
  }

  /**
   * From now on hands out what is dealt to this worker of an epoch that all workers have in common ({@link SyncMode#ELASTIC}): each element
   * (batch) is in exactly one update of each epoch, whoever comes, leaves or is killed. Every worker makes the same data set, with the same
   * seeds and without a shard, says in {@link Replication#elements} how many elements it has ({@link #cardinality}), and calls this when it
   * is connected and before it reads; then it runs {@code train} once with each element. {@link #next} waits near the end of an epoch while
   * others have its last elements, and says null when the epoch is over for all; where nothing was trained with an element, it comes again.
   * {@link #restart} is for the next epoch. Nothing else can be done with the data set from then on.
   *
   * @param model with elastic training that deals
   * @param session of that model, connected
   * @param timeout how long {@link #next} waits for an element; null: 10 minutes
   * @return this
   * @throws DtgException.InvalidArgument when the training deals another number of elements
   * @throws DtgException.FailedPrecondition when it deals none, or elements have been taken
   */
  public Dataset deal(Model model, Session session, Duration timeout) {
    return build(mine -> {
      long around = hold(model, "model");
      try {
        long running = hold(session, "session");
        try {
          Native.datasetDeal(mine, around, running, Packet.nanos(timeout));
          return this;
        } finally {
          session.drop();
        }
      } finally {
        model.drop();
      }
    });
  }

  /**
   * The element that {@link #next} handed out last.
   *
   * @return its epoch and its number in that, from 0; where the epoch is over the number is -1, and the epoch the one that is now; before
   *     the first element both are -1
   * @throws DtgException.FailedPrecondition when the data set is not dealt
   */
  public long[] dealt() {
    long mine = hold();
    try {
      return Native.datasetDealt(mine);
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
  public record Component(DType dtype, long[] shape) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Component component && component.dtype == dtype && java.util.Arrays.equals(component.shape, shape);
    }

    @Override
    public int hashCode() {
      return 31 * dtype.hashCode() + java.util.Arrays.hashCode(shape);
    }

    /** Type and shape: {@code float32[-1, 64]}. */
    @Override
    public String toString() {
      return dtype.label() + (shape == null ? " of unknown rank" : java.util.Arrays.toString(shape));
    }
  }

  /** Types and shapes of an element's components: {@code Dataset(float32[32, 3], float32[32])}. Never fails. */
  @Override
  public String toString() {
    try {
      java.util.StringJoiner all = new java.util.StringJoiner(", ", "Dataset(", ")");
      for (long i = 0; i < componentCount(); i++) all.add(component(i).toString());
      return all.toString();
    } catch (DtgException | IllegalStateException e) {
      return "Dataset(closed)"; // or moved on into another one
    }
  }

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
