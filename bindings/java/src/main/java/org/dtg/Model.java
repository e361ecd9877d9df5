// Models: layers, losses, metrics and training. One thread at a time, the one that builds the graph.

package org.dtg;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The variables that layers make: names, handles, values and first values. Everything else is nodes of the graph, where one's own may be
 * mixed in at any point. Names, formulas and defaults are those of tf.keras and of TensorFlow's optimizers.
 */
public final class Model extends Handle {
  private final Graph graph;

  /**
   * A model without variables.
   *
   * @param graph what it adds to
   * @param seed weights are functions of (seed, order of creation, shape)
   */
  public Model(Graph graph, long seed) {
    super(Kind.MODEL, make(graph, seed));
    this.graph = graph;
  }

  private static long make(Graph graph, long seed) {
    long it = graph.hold();
    try {
      return Native.modelCreate(it, seed);
    } finally {
      graph.drop();
    }
  }

  private Value value(long id) {
    return new Value(graph, id);
  }

  // ---- variables ----

  /**
   * Adds a variable; its handle is made on the device of the open device scope.
   *
   * @param spec what it is to be
   * @return the variable
   */
  public Variable addVariable(VariableSpec spec) {
    long mine = hold();
    try {
      return Variable.of(graph, Native.modelAddVariable(mine, spec.packet().bytes()));
    } finally {
      drop();
    }
  }

  /**
   * A trainable float32 scalar.
   *
   * @param name its name
   * @param first its first value
   * @return the variable
   */
  public Variable scalar(String name, double first) {
    return addVariable(new VariableSpec(name).initializer(Initializer.constant(first)));
  }

  /**
   * All variables, in order of creation: those of layers, then those of optimizers.
   *
   * @return a new list
   */
  public List<Variable> variables() {
    long mine = hold();
    try {
      List<Variable> out = new ArrayList<>();
      long count = Native.modelVariableCount(mine);
      for (long i = 0; i < count; i++) out.add(Variable.of(graph, Native.modelVariable(mine, i)));
      return out;
    } finally {
      drop();
    }
  }

  /**
   * The variable of a name.
   *
   * @param name as in checkpoints
   * @return the variable
   * @throws DtgException.NotFound when there is none
   */
  public Variable variable(String name) {
    long mine = hold();
    try {
      return Variable.of(graph, Native.modelFindVariable(mine, Native.utf8(name)));
    } finally {
      drop();
    }
  }

  /**
   * The int64 scalar variable that counts training steps, "global_step"; made when first asked for.
   *
   * @return the variable
   */
  public Variable globalStep() {
    long mine = hold();
    try {
      return Variable.of(graph, Native.modelGlobalStep(mine));
    } finally {
      drop();
    }
  }

  /**
   * The target that gives every variable so far its first value. Ask when the model is complete.
   *
   * @return the target
   */
  public Value init() {
    long mine = hold();
    try {
      return value(Native.modelInit(mine));
    } finally {
      drop();
    }
  }

  private void file(Session session, String path, boolean save) {
    long mine = hold();
    try {
      long it = session.hold();
      try {
        Native.modelSaveRestore(mine, it, Native.utf8(path), save);
      } finally {
        session.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * Writes the values of the variables to a safetensors file, atomically.
   *
   * @param session where the values are
   * @param path the file
   * @throws DtgException.FailedPrecondition when a variable has no value
   */
  public void save(Session session, String path) {
    file(session, path, true);
  }

  /**
   * Gives every variable its value from such a file; nothing is assigned on failure.
   *
   * @param session where the values go
   * @param path the file
   * @throws DtgException.NotFound when there is no such file, or a variable is not in it
   * @throws DtgException.InvalidArgument when a type or shape differs
   */
  public void restore(Session session, String path) {
    file(session, path, false);
  }

  /**
   * Waits until every variable so far has a value.
   *
   * @param session where
   * @param timeout how long; null: 10 minutes
   * @throws DtgException.DeadlineExceeded which names those that have none
   */
  public void waitReady(Session session, Duration timeout) {
    long mine = hold();
    try {
      long it = session.hold();
      try {
        Native.modelWaitReady(mine, it, Packet.nanos(timeout));
      } finally {
        session.drop();
      }
    } finally {
      drop();
    }
  }

  // ---- layers ----

  /**
   * A fully connected layer.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value dense(Value x, Dense layer) {
    long mine = hold();
    try {
      return value(Native.nnDense(mine, Value.id(x), layer.packet().bytes()));
    } finally {
      drop();
    }
  }

  /**
   * A convolution of x[batch, height, width, in].
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value conv2d(Value x, Conv2D layer) {
    long mine = hold();
    try {
      return value(Native.nnConv2d(mine, Value.id(x), layer.packet().bytes()));
    } finally {
      drop();
    }
  }

  /**
   * The greatest element of each window.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value maxPool2d(Value x, Pool2D layer) {
    long mine = hold();
    try {
      return value(Native.nnPool2d(mine, Value.id(x), layer.packet().bytes(), false));
    } finally {
      drop();
    }
  }

  /**
   * The mean of each window, padding not counted.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value avgPool2d(Value x, Pool2D layer) {
    long mine = hold();
    try {
      return value(Native.nnPool2d(mine, Value.id(x), layer.packet().bytes(), true));
    } finally {
      drop();
    }
  }

  /**
   * Rows of a table.
   *
   * @param x int32 or int64 ids
   * @param layer its options
   * @return what comes out
   */
  public Value embedding(Value x, Embedding layer) {
    long mine = hold();
    try {
      return value(Native.nnEmbedding(mine, Value.id(x), layer.packet().bytes()));
    } finally {
      drop();
    }
  }

  /**
   * x as [batch, everything else].
   *
   * @param x what goes in
   * @return what comes out
   */
  public Value flatten(Value x) {
    long mine = hold();
    try {
      return value(Native.nnFlatten(mine, Value.id(x)));
    } finally {
      drop();
    }
  }

  /**
   * Sets a share of the elements to zero and scales the rest up; decided anew for each step, so that a run can be repeated.
   *
   * @param x what goes in
   * @param rate the share, in [0, 1)
   * @param step an int64 scalar
   * @param training a bool scalar, false lets x through; null: always true
   * @return what comes out
   */
  public Value dropout(Value x, double rate, Value step, Value training) {
    long mine = hold();
    try {
      return value(Native.nnDropout(mine, Value.id(x), rate, Value.id(step), Value.id(training)));
    } finally {
      drop();
    }
  }

  /**
   * x through an activation.
   *
   * @param x what goes in
   * @param activation which
   * @return what comes out
   */
  public Value activation(Value x, Activation activation) {
    long mine = hold();
    try {
      return value(Native.nnActivation(mine, Value.id(x), activation.ordinal()));
    } finally {
      drop();
    }
  }

  // ---- losses and metrics: scalars; the numbers are those of native/layers.c ----

  /**
   * Mean over the batch of -log softmax(logits)[label].
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value sparseSoftmaxCrossEntropy(Value labels, Value logits) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 0, Value.id(labels), Value.id(logits)));
    } finally {
      drop();
    }
  }

  /**
   * The same with labels as distributions.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value softmaxCrossEntropy(Value labels, Value logits) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 1, Value.id(labels), Value.id(logits)));
    } finally {
      drop();
    }
  }

  /**
   * Mean over all elements of the cross entropy under sigmoid(logits).
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value sigmoidCrossEntropy(Value labels, Value logits) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 2, Value.id(labels), Value.id(logits)));
    } finally {
      drop();
    }
  }

  /**
   * Mean over all elements of (labels - predictions) squared.
   *
   * @param labels what is right
   * @param predictions what the model says
   * @return a scalar
   */
  public Value meanSquaredError(Value labels, Value predictions) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 3, Value.id(labels), Value.id(predictions)));
    } finally {
      drop();
    }
  }

  /**
   * Share of rows whose greatest logit is the label's: float32.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value accuracy(Value labels, Value logits) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 4, Value.id(labels), Value.id(logits)));
    } finally {
      drop();
    }
  }

  /**
   * How many rows that are: int64.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value correctCount(Value labels, Value logits) {
    long mine = hold();
    try {
      return value(Native.nnJudge(mine, 5, Value.id(labels), Value.id(logits)));
    } finally {
      drop();
    }
  }

  // ---- training ----

  /**
   * Adds the gradients of a loss with respect to every trainable variable so far, and the updates of the optimizer. Ask {@link #init} afterwards.
   *
   * @param loss a scalar
   * @param optimizer how; null: SGD
   * @return what was added
   */
  public Training minimize(Value loss, Optimizer optimizer) {
    long mine = hold();
    try {
      return Training.of(graph, Native.nnMinimize(mine, Value.ids(loss), Optimizer.packet(optimizer).bytes(), false));
    } finally {
      drop();
    }
  }

  /**
   * The same over the mean of the losses of several towers, added up in their order.
   *
   * @param losses one per tower
   * @param optimizer how; null: SGD
   * @return what was added
   */
  public Training minimizeTowers(List<Value> losses, Optimizer optimizer) {
    long mine = hold();
    try {
      return Training.of(graph, Native.nnMinimize(mine, Value.ids(losses), Optimizer.packet(optimizer).bytes(), true));
    } finally {
      drop();
    }
  }

  /**
   * From here on layers answer the variables that the model has, from the first, until all have been asked for.
   */
  public void nextTower() {
    long mine = hold();
    try {
      Native.modelNextTower(mine);
    } finally {
      drop();
    }
  }

  /**
   * Adds one worker's share of training on a loss.
   *
   * @param loss a scalar
   * @param optimizer how; null: SGD
   * @param replication which share
   * @return what was added
   */
  public Replicated minimizeReplicated(Value loss, Optimizer optimizer, Replication replication) {
    long mine = hold();
    try {
      byte[] how = Optimizer.packet(optimizer).append(replication.packet()).bytes();
      return Replicated.of(graph, Native.nnMinimizeReplicated(mine, Value.id(loss), how));
    } finally {
      drop();
    }
  }

  private static long[] words(List<Gradient> gradients) {
    long[] out = new long[4 * gradients.size()];
    for (int i = 0; i < gradients.size(); i++) {
      Gradient from = gradients.get(i);
      Value[] parts = {from.dense(), from.values(), from.indices(), from.denseShape()};
      for (int k = 0; k < 4; k++) out[4 * i + k] = Value.id(parts[k]);
    }
    return out;
  }

  /**
   * Applies gradients of one's own; clipNorm is not applied.
   *
   * @param variables what changes
   * @param gradients the gradient of each; none at all: left out
   * @param optimizer how; null: SGD
   * @return the target that makes one step
   */
  public Value applyGradients(List<Variable> variables, List<Gradient> gradients, Optimizer optimizer) {
    long mine = hold();
    try {
      if (variables.size() != gradients.size()) {
        throw new DtgException.InvalidArgument("apply " + gradients.size() + " gradients to " + variables.size() + " variables: give one each");
      }
      long[] handles = variables.stream().mapToLong(variable -> Value.id(variable.handle())).toArray();
      byte[] how = Optimizer.packet(optimizer).append(new Replication(SyncMode.ASYNC, 0, 1).packet()).bytes();
      return value(Native.nnApply(mine, handles, words(gradients), how, false)[0]);
    } finally {
      drop();
    }
  }

  /**
   * One worker's share of training by gradients of one's own.
   *
   * @param variables what changes
   * @param gradients the gradient of each; none at all: left out
   * @param optimizer how; null: SGD
   * @param replication which share
   * @return what was added
   */
  public Replicated applyReplicated(List<Variable> variables, List<Gradient> gradients, Optimizer optimizer, Replication replication) {
    long mine = hold();
    try {
      if (variables.size() != gradients.size()) {
        throw new DtgException.InvalidArgument("apply " + gradients.size() + " gradients to " + variables.size() + " variables: give one each");
      }
      long[] handles = variables.stream().mapToLong(variable -> Value.id(variable.handle())).toArray();
      byte[] how = Optimizer.packet(optimizer).append(replication.packet()).bytes();
      return Replicated.of(graph, Native.nnApply(mine, handles, words(gradients), how, true));
    } finally {
      drop();
    }
  }

  /**
   * rate * factor^(step / every), as tf.keras.optimizers.schedules.ExponentialDecay.
   *
   * @param step an int64 scalar
   * @param rate the rate at step 0
   * @param every steps per factor
   * @param factor what it is multiplied with
   * @param staircase whether the exponent is rounded down
   * @return a float32 scalar
   */
  public Value exponentialDecay(Value step, double rate, double every, double factor, boolean staircase) {
    long mine = hold();
    try {
      return value(Native.nnExponentialDecay(mine, Value.id(step), rate, every, factor, staircase));
    } finally {
      drop();
    }
  }

  /**
   * Up from 0 over the warm-up, then down along half a cosine, as tf.keras.optimizers.schedules.CosineDecay.
   *
   * @param step an int64 scalar
   * @param rate the greatest rate
   * @param steps where the cosine ends
   * @param floor the share of the rate that remains
   * @param warmup steps of the warm-up
   * @return a float32 scalar
   */
  public Value cosineDecay(Value step, double rate, double steps, double floor, double warmup) {
    long mine = hold();
    try {
      return value(Native.nnCosineDecay(mine, Value.id(step), rate, steps, floor, warmup));
    } finally {
      drop();
    }
  }
}
