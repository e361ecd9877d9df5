// Models: variables, losses, metrics and training; their layers are in Layers.java. One thread at a time, the one that builds the graph.

package org.dtg;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The variables that layers make: names, handles, values and first values. Everything else is nodes of the graph, where one's own may be
 * mixed in at any point. Names, formulas and defaults are those of tf.keras and of TensorFlow's optimizers.
 */
public final class Model extends Layers {
  private final Graph outermost; // of the variables; another than the layers' where the model is inside of a body

  /**
   * A model without variables.
   *
   * @param graph what it adds to
   * @param seed weights are functions of (seed, order of creation, shape)
   */
  public Model(Graph graph, long seed) {
    super(graph, make(graph, seed));
    outermost = graph;
  }

  private Model(Graph graph, Graph outermost, long address) {
    super(graph, address);
    this.outermost = outermost;
  }

  /**
   * A model of the variables that a graph has already: after an import, or built by hand. Those of floating-point numbers are trainable, but for
   * what is named like an optimizer's slots.
   *
   * @param graph where they are
   * @param seed for what is added
   * @return the model
   */
  public static Model of(Graph graph, long seed) {
    return given(graph, "graph").build(it -> new Model(graph, graph, Native.modelImport(it, seed)));
  }

  /**
   * What {@link #load} gives. Closing it closes all three.
   *
   * @param model the model
   * @param graph its graph
   * @param session in which the variables have their values
   */
  public record Loaded(Model model, Graph graph, Session session) implements AutoCloseable {
    /**
     * Of three that are there.
     *
     * @param model with its variables
     * @param graph of the model
     * @param session where the variables have their values
     */
    public Loaded {
      given(model, "model");
      given(graph, "graph");
      given(session, "session");
    }

    @Override
    public void close() {
      session.close();
      model.close();
      graph.close();
    }
  }

  /**
   * A model that {@link #export} wrote.
   *
   * @param path the file
   * @return the model over a graph of its own, and a local session
   * @throws DtgException.NotFound when there is no such file
   * @throws DtgException.DataLoss when it is cut, damaged, or no exported model
   */
  public static Loaded load(String path) {
    return load(null, path);
  }

  /**
   * As {@link #load(String)}.
   *
   * @param path the file
   * @return the model
   */
  public static Loaded load(java.nio.file.Path path) {
    return load(null, Native.path(path, "path"));
  }

  /**
   * As {@link #load(DtgRuntime, String)}.
   *
   * @param runtime null: the default one
   * @param path the file
   * @return the model and a session with its weights
   */
  public static Loaded load(DtgRuntime runtime, java.nio.file.Path path) {
    return load(runtime, Native.path(path, "path"));
  }

  /**
   * As {@link #load(String)}, over the ops and under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @return the model
   */
  public static Loaded load(DtgRuntime runtime, String path) {
    long it = hold(runtime);
    try {
      long[] all = Native.modelLoad(it, Native.utf8(path));
      Graph graph = new Graph(all[1]);
      return new Loaded(new Model(graph, graph, all[0]), graph, new Session(all[2]));
    } finally {
      drop(runtime);
    }
  }

  /**
   * Writes one file with all that it takes to compute the outputs from the inputs: the part of the graph that leads there, the values that its
   * variables have, and the metadata. {@link #load} reads it.
   *
   * @param session where the values are
   * @param path the file
   * @param what named inputs and outputs
   * @throws DtgException.FailedPrecondition when an output needs a placeholder that is no input, which is named, or a variable has no value
   */
  public void export(Session session, String path, Export what) {
    long mine = hold();
    try {
      long it = hold(session, "session");
      try {
        Native.modelExport(mine, it, given(what, "what").packet(path).bytes());
      } finally {
        session.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * As {@link #export(Session, String, Export)}.
   *
   * @param session where the values are
   * @param path the file
   * @param what named inputs and outputs
   */
  public void export(Session session, java.nio.file.Path path, Export what) {
    export(session, Native.path(path, "path"), what);
  }

  /**
   * The input or output of that name of a model that was loaded.
   *
   * @param name as it was exported
   * @return the value
   * @throws DtgException.NotFound with the names that there are
   */
  public Value endpoint(String name) {
    long mine = hold();
    try {
      return value(Native.modelEndpoint(mine, Native.utf8(name)));
    } finally {
      drop();
    }
  }

  /**
   * All inputs and outputs.
   *
   * @return as JSON: {"inputs": [{"name", "dtype", "shape"}], "outputs": [...]}
   */
  public String endpoints() {
    long mine = hold();
    try {
      return Native.text(Native.modelEndpoints(mine));
    } finally {
      drop();
    }
  }

  /**
   * Says what the classes are called that an output tells apart, where no schema of the training data does.
   *
   * @param output its name in the exported file; null: all that have so many classes
   * @param names in the order of their numbers
   */
  public void setClasses(String output, List<String> names) {
    long mine = hold();
    try {
      Native.modelSetClasses(mine, new Packet().text(output).plain(given(names, "names")).bytes());
    } finally {
      drop();
    }
  }

  /**
   * What the classes are called that an output tells apart, so that what a model predicts can be said in words: name i is that of class i.
   * A fit on a file whose label is of names keeps them by itself.
   *
   * @param output one of a model that was loaded; null: what is said for all, of any model
   * @return the names
   * @throws DtgException.NotFound when there is no such output, nobody has named its classes, or it does not tell so many apart
   */
  public List<String> classes(String output) {
    long mine = hold();
    try (Tensor names = new Tensor(Native.modelClasses(mine, Native.utf8(output)))) {
      return List.of(names.toStrings());
    } finally {
      drop();
    }
  }

  /**
   * As {@link #restoreFrom(Session, String, RestoreOptions)}.
   *
   * @param session where the variables are
   * @param path the file or set
   * @param options how; null: all defaults
   * @return the report, for {@link RestoreReport#of}
   */
  public String restoreFrom(Session session, java.nio.file.Path path, RestoreOptions options) {
    return restoreFrom(session, Native.path(path, "path"), options);
  }

  /**
   * {@link #restore} with names that differ, or for a part of the variables; the others keep what they have.
   *
   * @param session where the values go
   * @param path the file
   * @param options which; null: all, by their names
   * @return what became of it, as JSON: path, variables, missing, extra, reshaped; {@link RestoreReport#of} reads it
   * @throws DtgException.FailedPrecondition which names all variables that do not fit
   * @throws DtgException.NotFound when there is no file, or a rule that no variable meets
   */
  public String restoreFrom(Session session, String path, RestoreOptions options) {
    long mine = hold();
    try {
      long it = hold(session, "session");
      try {
        byte[] how = (options == null ? new RestoreOptions() : options).packet().bytes();
        return Native.text(Native.modelRestoreFrom(mine, it, Native.utf8(path), how));
      } finally {
        session.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * The model inside of the body of a function, of a loop or a branch: its layers and losses are added to the body, where they may use values
   * from around. With {@code weightsOf} they have the weights of a layer that was made before; others make variables outside of all functions,
   * named after the function ("body/dense/kernel" in a loop), which this model has from then on. It takes layers, losses and variables only.
   * The {@code read} of a variable that it gives is a value of the body.
   *
   * <pre>{@code
   * List<Value> out = graph.whileLoop(List.of(graph.constant(0), x), (body, v) -> body.less(v.get(0), rounds), (body, v) -> {
   *   try (Model inside = model.inside(body)) {
   *     Value y = inside.dense(v.get(1), new Dense(32).weightsOf("dense"));
   *     return List.of(body.addV2(v.get(0), body.constant(1)), y);
   *   }
   * });
   * }</pre>
   *
   * @param body what the function's builder is given
   * @return the model there, to be closed
   * @throws DtgException.InvalidArgument when the graph is no body in the model's graph
   * @throws DtgException.FailedPrecondition when the function was ended; later also where what this gives is used for anything else
   * @throws DtgException.Unimplemented from layers that follow their batches there
   */
  public Model inside(Graph body) {
    return given(body, "body").build(it -> build(mine -> new Model(body, outermost, Native.modelInside(mine, it))));
  }

  private static long make(Graph graph, long seed) {
    return given(graph, "graph").build(it -> Native.modelCreate(it, seed));
  }

  // ---- variables ----

  /**
   * Adds a variable; its handle is made on the device of the open device scope.
   *
   * @param spec what it is to be
   * @return the variable
   */
  public Variable addVariable(VariableSpec spec) {
    return build(mine -> Variable.of(outermost, graph, Native.modelAddVariable(mine, given(spec, "spec").packet().bytes())));
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
      for (long i = 0; i < count; i++) out.add(Variable.of(outermost, graph, Native.modelVariable(mine, i)));
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
    return build(mine -> Variable.of(outermost, graph, Native.modelFindVariable(mine, Native.utf8(name))));
  }

  /**
   * Adds a variable in shards; under a device setter they stand on one parameter server after the other. First values are those of the whole,
   * however it is cut.
   *
   * @param spec what the whole is
   * @param partitioner into how many it is cut
   * @return the variable
   */
  public Sharded addShardedVariable(VariableSpec spec, Partitioner partitioner) {
    byte[] what = given(partitioner, "partitioner").packet().append(given(spec, "spec").packet()).bytes();
    return build(mine -> {
      byte[] name = Native.shardedAdd(mine, what);
      return Sharded.of(new String(name, StandardCharsets.UTF_8), Native.shardedDescribe(mine, name));
    });
  }

  /**
   * The variable in shards of a name.
   *
   * @param name as in checkpoints
   * @return the variable
   * @throws DtgException.NotFound when there is none
   */
  public Sharded shardedVariable(String name) {
    return build(mine -> Sharded.of(name, Native.shardedDescribe(mine, Native.utf8(given(name, "name")))));
  }

  /**
   * One shard of a variable in shards.
   *
   * @param name of the whole
   * @param i which, from 0
   * @return the shard
   * @throws DtgException.NotFound when there is no such variable
   */
  public Variable shard(String name, long i) {
    return build(mine -> Variable.of(outermost, graph, Native.shardedShard(mine, Native.utf8(given(name, "name")), i)));
  }

  /**
   * The int64 scalar variable that counts training steps, "global_step"; made when first asked for.
   *
   * @return the variable
   */
  public Variable globalStep() {
    return build(mine -> Variable.of(outermost, graph, Native.modelGlobalStep(mine)));
  }

  /**
   * The target that gives every variable so far its first value. Ask when the model is complete.
   *
   * @return the target
   */
  public Value init() {
    return build(mine -> value(Native.modelInit(mine)));
  }

  private void file(Session session, String path, boolean save) {
    long mine = hold();
    try {
      long it = hold(session, "session");
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
   * Keeps a text with the model: {@link #save} writes it, {@link #restore} brings it back. Under "schema" it is the schema of the training
   * data, which has the names of {@link #classes} too; a fit keeps it by itself.
   *
   * @param key its name
   * @param value the text
   */
  public void metadata(String key, String value) {
    long mine = hold();
    try {
      Native.modelSetMetadata(mine, Native.utf8(key), Native.utf8(value));
    } finally {
      drop();
    }
  }

  /**
   * A text that is kept with the model.
   *
   * @param key its name
   * @return the text
   * @throws DtgException.NotFound when there is none
   */
  public String metadata(String key) {
    long mine = hold();
    try {
      return Native.text(Native.modelMetadata(mine, Native.utf8(key)));
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
   * As {@link #save(Session, String)}.
   *
   * @param session where the values are
   * @param path the file
   */
  public void save(Session session, java.nio.file.Path path) {
    save(session, Native.path(path, "path"));
  }

  /**
   * As {@link #restore(Session, String)}.
   *
   * @param session where the values go
   * @param path the file
   */
  public void restore(Session session, java.nio.file.Path path) {
    restore(session, Native.path(path, "path"));
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
   * @param timeout how long; null: 10 minutes; zero: no time at all
   * @throws DtgException.DeadlineExceeded which names those that have none
   */
  public void waitReady(Session session, Duration timeout) {
    long mine = hold();
    try {
      long it = hold(session, "session");
      try {
        Native.modelWaitReady(mine, it, Packet.nanos(timeout));
      } finally {
        session.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * Brings this worker to where it can go on, after {@code train} or {@code update} failed because a task was lost, or when this process is
   * a later life of a worker: waits until every variable has a value, completes on every task the update that one of them has applied (the
   * chief, {@link SyncMode#STRICT}), runs {@code resume} (the chief, with no {@code update} under way) and {@code localInit}. The next
   * {@code train} is the step that {@code globalStep} says: where that is the step that failed, give it the same batch again.
   *
   * @param session where
   * @param timeout how long; null: 10 minutes; zero: no time at all
   * @throws DtgException.FailedPrecondition when no replicated training was added
   * @throws DtgException.DeadlineExceeded which names the variables that have no value
   * @throws DtgException.Unavailable when a task is still lost at the end of the time
   * @throws DtgException.DataLoss when a task is further behind than what it keeps can mend
   */
  public void recover(Session session, Duration timeout) {
    long mine = hold();
    try {
      long it = hold(session, "session");
      try {
        Native.modelRecover(mine, it, Packet.nanos(timeout));
      } finally {
        session.drop();
      }
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
    return build(mine -> value(Native.nnJudge(mine, 0, Value.id(labels, "labels"), Value.id(logits, "logits"))));
  }

  /**
   * The same with labels as distributions.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value softmaxCrossEntropy(Value labels, Value logits) {
    return build(mine -> value(Native.nnJudge(mine, 1, Value.id(labels, "labels"), Value.id(logits, "logits"))));
  }

  /**
   * Mean over all elements of the cross entropy under sigmoid(logits).
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value sigmoidCrossEntropy(Value labels, Value logits) {
    return build(mine -> value(Native.nnJudge(mine, 2, Value.id(labels, "labels"), Value.id(logits, "logits"))));
  }

  /**
   * Mean over all elements of (labels - predictions) squared.
   *
   * @param labels what is right
   * @param predictions what the model says
   * @return a scalar
   */
  public Value meanSquaredError(Value labels, Value predictions) {
    return build(mine -> value(Native.nnJudge(mine, 3, Value.id(labels, "labels"), Value.id(predictions, "predictions"))));
  }

  /**
   * Share of rows whose greatest logit is the label's: float32.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value accuracy(Value labels, Value logits) {
    return build(mine -> value(Native.nnJudge(mine, 4, Value.id(labels, "labels"), Value.id(logits, "logits"))));
  }

  /**
   * How many rows that are: int64.
   *
   * @param labels what is right
   * @param logits what the model says
   * @return a scalar
   */
  public Value correctCount(Value labels, Value logits) {
    return build(mine -> value(Native.nnJudge(mine, 5, Value.id(labels, "labels"), Value.id(logits, "logits"))));
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
    return build(mine -> Training.of(graph, Native.nnMinimize(mine, new long[] {Value.id(loss, "loss")}, Optimizer.packet(optimizer).bytes(), false)));
  }

  /**
   * The same over the mean of the losses of several towers, added up in their order.
   *
   * @param losses one per tower
   * @param optimizer how; null: SGD
   * @return what was added
   */
  public Training minimizeTowers(List<Value> losses, Optimizer optimizer) {
    return build(mine -> Training.of(graph, Native.nnMinimize(mine, Value.ids(losses, "losses"), Optimizer.packet(optimizer).bytes(), true)));
  }

  /**
   * From here on layers answer the variables that the model has, from the first, until all have been asked for.
   */
  public void nextTower() {
    build(mine -> {
      Native.modelNextTower(mine);
      return null;
    });
  }

  /**
   * Training without parameter servers: every member of a group builds the same model with variables of its own, computes the gradients of its
   * share of the batch, and applies the mean over the members, which all have to the bit. Join the group before the first step
   * ({@link Group#join}), and connect the session to the member's server.
   *
   * @param loss a scalar
   * @param optimizer how; null: SGD
   * @param how with whom
   * @return what was added
   */
  public Training minimizeAllReduce(Value loss, Optimizer optimizer, AllReduce how) {
    return build(mine -> {
      byte[] packet = Optimizer.packet(optimizer).append(given(how, "how").packet()).bytes();
      return Training.of(graph, Native.nnMinimizeAllReduce(mine, Value.id(loss, "loss"), packet));
    });
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
    return build(mine -> {
      byte[] how = Optimizer.packet(optimizer).append(given(replication, "replication").packet()).bytes();
      return Replicated.of(graph, Native.nnMinimizeReplicated(mine, Value.id(loss, "loss"), how));
    });
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
    return build(mine -> {
      if (given(variables, "variables").size() != given(gradients, "gradients").size()) {
        throw new DtgException.InvalidArgument("apply " + gradients.size() + " gradients to " + variables.size() + " variables: give one each");
      }
      long[] handles = variables.stream().mapToLong(variable -> Value.id(variable.handle())).toArray();
      byte[] how = Optimizer.packet(optimizer).append(new Replication(SyncMode.ASYNC, 0, 1).packet()).bytes();
      return value(Native.nnApply(mine, handles, words(gradients), how, false)[0]);
    });
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
    return build(mine -> {
      if (given(variables, "variables").size() != given(gradients, "gradients").size()) {
        throw new DtgException.InvalidArgument("apply " + gradients.size() + " gradients to " + variables.size() + " variables: give one each");
      }
      long[] handles = variables.stream().mapToLong(variable -> Value.id(variable.handle())).toArray();
      byte[] how = Optimizer.packet(optimizer).append(given(replication, "replication").packet()).bytes();
      return Replicated.of(graph, Native.nnApply(mine, handles, words(gradients), how, true));
    });
  }

  /**
   * A learning rate that follows the count of steps.
   *
   * @param step an integer scalar
   * @param schedule how
   * @return a float32 scalar
   */
  public Value schedule(Value step, Schedule schedule) {
    return build(mine -> value(Native.nnSchedule(mine, Value.id(step, "step"), given(schedule, "schedule").packet().bytes())));
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
    return build(mine -> value(Native.nnExponentialDecay(mine, Value.id(step, "step"), rate, every, factor, staircase)));
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
    return build(mine -> value(Native.nnCosineDecay(mine, Value.id(step, "step"), rate, steps, floor, warmup)));
  }
}
