// Meshes: models that are larger than a device. One thread, the one that builds the model.

package org.dtg;

import java.util.ArrayList;
import java.util.List;

/**
 * One model over a grid of devices: layers cut over the model axis, stages one behind the other on the pipe axis, a share of the batch for each
 * rank of the data axis. Everything here adds nodes to the model's graph; sessions run what comes of it.
 */
public final class Mesh extends Handle {
  /** Where what an optimizer keeps of a variable stands, on the ranks of the data axis; in the order of C's numbers. */
  public enum Zero {
    /** On each rank beside its copy. */
    NONE,
    /** Each variable's on one rank, which gives the others what the variable became (ZeRO-1). */
    STATES,
    /** And gradients are added up there and go nowhere else (ZeRO-2). */
    GRADIENTS
  }

  /** How the table of an embedding is cut over the model axis; in the order of C's numbers. */
  public enum TableCut {
    /** Each id is looked up on the device that has its row. */
    ROWS,
    /** Each device has a piece of every row. */
    COLUMNS
  }

  /**
   * What to build next.
   *
   * @param stage 0 to pipe - 1
   * @param data the rank of the data axis
   * @param micro the micro-batch
   * @param batch this micro-batch's rows of each value of the batch
   * @param inputs what the stage before gave for it; of stage 0 nothing
   */
  public record Step(long stage, long data, long micro, List<Value> batch, List<Value> inputs) {}

  /** Builds one stage for one micro-batch. */
  @FunctionalInterface
  public interface Stage {
    /**
     * Adds the stage.
     *
     * @param step which, and what it is made from
     * @return what the next stage takes; of the last stage its loss first
     */
    List<Value> build(Step step);
  }

  private final Graph graph;
  private final int ranks;

  /**
   * A mesh for a model, which it keeps alive.
   *
   * @param model the model
   * @param data length of the data axis
   * @param ranks length of the model axis
   * @param pipe length of the pipe axis
   * @param zero where states of optimizers stand
   * @param devices of (d, m, p): number (d * ranks + m) * pipe + p
   */
  public Mesh(Model model, int data, int ranks, int pipe, Zero zero, List<String> devices) {
    super(Kind.MESH, make(model, data, ranks, pipe, zero, devices));
    this.graph = model.graph;
    this.ranks = Math.max(ranks, 1);
  }

  /** Zero is the default in C, and no length here. */
  private static long length(int length) {
    return length == 0 ? -1 : length;
  }

  private static long make(Model model, int data, int ranks, int pipe, Zero zero, List<String> devices) {
    Packet grid = new Packet().integer(length(data)).integer(length(ranks)).integer(length(pipe));
    byte[] options = grid.integer(given(zero, "zero").ordinal()).plain(given(devices, "devices")).bytes();
    return given(model, "model").build(it -> Native.meshCreate(it, options));
  }

  @FunctionalInterface
  private interface Call {
    long on(long mesh);
  }

  private long call(Call call) {
    return build(call::on);
  }

  private Value value(Call call) {
    return new Value(graph, call(call));
  }

  private List<Value> values(long[] ids, int from, int end) {
    List<Value> out = new ArrayList<>();
    for (int i = from; i < end; ++i) out.add(new Value(graph, ids[i]));
    return out;
  }

  /**
   * Cuts each value of the batch into data x microBatches equal parts and calls the stage for every stage, data rank and micro-batch, in the
   * order of the pipeline. A later build is over the variables that the first one made. When it fails the model is as before.
   *
   * @param batch what is cut, along the first dimension
   * @param microBatches of each data rank
   * @param forwardOnly for evaluation: no ways back
   * @param stage builds
   */
  public void build(List<Value> batch, long microBatches, boolean forwardOnly, Stage stage) {
    given(stage, "stage");
    build(mine -> {
      build(mine, batch, microBatches, forwardOnly, stage);
      return null;
    });
  }

  private void build(long mine, List<Value> batch, long microBatches, boolean forwardOnly, Stage stage) {
    boolean over = false;
    try {
      Native.meshBegin(mine, Value.ids(batch, "batch"), microBatches, forwardOnly);
      for (long[] told = Native.meshNext(mine); told != null; told = Native.meshNext(mine)) {
        int first = 4 + (int) told[3];
        Step step = new Step(told[0], told[1], told[2], values(told, 4, first), values(told, first, told.length));
        Native.meshGive(mine, Value.ids(stage.build(step), "what the stage gives"));
      }
      over = true;
    } finally {
      if (!over) Native.meshAbandon(mine);
    }
  }

  /**
   * What the last stage gave, of all micro-batches.
   *
   * @param k which of its values
   * @return the mean of a floating-point scalar, rows one behind the other of anything else
   */
  public Value result(int k) {
    return value(it -> Native.meshResult(it, k));
  }

  /**
   * Adds a step of training over the mean of all losses.
   *
   * @param optimizer the optimizer
   * @return what to run
   */
  public Training minimize(Optimizer optimizer) {
    byte[] how = Optimizer.packet(optimizer).bytes();
    return build(mine -> Training.of(graph, Native.meshMinimize(mine, how)));
  }

  /**
   * A fully connected layer by columns: each device of the model axis has some columns of the kernel and makes as many of the product, which
   * stay there. Between this and {@link #rowDense} only what is element by element belongs.
   *
   * @param x what goes in
   * @param layer its options
   * @return one value for each device
   */
  public List<Value> columnDense(Value x, Dense layer) {
    byte[] options = given(layer, "layer").packet().bytes();
    return build(mine -> values(Native.meshColumnDense(mine, Value.id(x, "x"), ranks, options), 0, ranks));
  }

  /**
   * A fully connected layer by rows: each device has the rows of the kernel that go with its part of the input; the products are added up.
   *
   * @param parts one for each device
   * @param layer its options
   * @return what comes out
   */
  public Value rowDense(List<Value> parts, Dense layer) {
    return value(it -> Native.meshRowDense(it, Value.ids(parts, "parts"), given(layer, "layer").packet().bytes()));
  }

  /**
   * The parts of all devices one behind the other.
   *
   * @param parts one for each device
   * @param axis along which; negative: from the last
   * @return the whole
   */
  public Value together(List<Value> parts, int axis) {
    return value(it -> Native.meshTogether(it, Value.ids(parts, "parts"), axis));
  }

  /**
   * Rows of a table that is cut over the model axis.
   *
   * @param ids int32 or int64
   * @param layer its options
   * @param by how it is cut
   * @return what comes out
   */
  public Value embedding(Value ids, Embedding layer, TableCut by) {
    byte[] options = given(layer, "layer").packet().bytes();
    return value(it -> Native.meshEmbedding(it, Value.id(ids, "ids"), given(by, "by").ordinal(), options));
  }

  /**
   * Attention whose heads are shared out over the model axis.
   *
   * @param query [batch, queries, in]
   * @param value [batch, keys, in']
   * @param layer its options
   * @return what comes out
   */
  public Value attention(Value query, Value value, Attention layer) {
    byte[] options = given(layer, "layer").packet().bytes();
    return value(it -> Native.meshAttention(it, Value.id(query, "query"), Value.id(value, "value"), options));
  }
}
