// What a trainer trains. One thread.

package org.dtg;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a {@link Trainer} trains; {@code new TrainerOptions().feeds(x, y).loss(loss).optimizer(Optimizer.adam()).metric("accuracy", right)}. */
public final class TrainerOptions {
  private Value[] feeds = {};
  private int inputs;
  Value[] outputs = {};
  private Value loss;
  private Optimizer optimizer;
  private Value train;
  private Value training;
  private String[] inputNames = {};
  private String[] outputNames = {};
  Session session;
  Strategy strategy;
  final Map<String, MetricValues> metrics = new LinkedHashMap<>();

  /** Nothing yet; feeds and a loss must be said. */
  public TrainerOptions() {}

  /**
   * What the components of an element of data are fed to.
   *
   * @param feeds in their order: inputs, then labels and weights
   * @return this
   */
  public TrainerOptions feeds(Value... feeds) {
    this.feeds = feeds;
    return this;
  }

  /**
   * How many of the feeds {@link Trainer#predict} feeds.
   *
   * @param count the first so many; 0: 1
   * @return this
   */
  public TrainerOptions inputs(int count) {
    if (count < 0) throw new DtgException.InvalidArgument("inputs is " + count + "; give how many of the feeds are inputs, the first ones, or 0 for one");
    this.inputs = count;
    return this;
  }

  /**
   * What {@link Trainer#predict} gives.
   *
   * @param outputs they; none is fine
   * @return this
   */
  public TrainerOptions outputs(Value... outputs) {
    this.outputs = outputs;
    return this;
  }

  /**
   * What the inputs are called in model.dtg.
   *
   * @param names one for each input; none: the names of their nodes
   * @return this
   */
  public TrainerOptions inputNames(String... names) {
    Handle.all(names, "names");
    this.inputNames = names;
    return this;
  }

  /**
   * What the outputs are called in model.dtg.
   *
   * @param names one for each output; none: "output", "output_1" and so on
   * @return this
   */
  public TrainerOptions outputNames(String... names) {
    Handle.all(names, "names");
    this.outputNames = names;
    return this;
  }

  private static void checkNames(String[] names, int values, String what) {
    if (names.length == 0 || names.length == values) return;
    throw new DtgException.InvalidArgument(
        "make a trainer: " + what + " has " + names.length + " names for " + values + " values; name all of them or none");
  }

  /**
   * What is made small.
   *
   * @param loss a float32 or float64 scalar
   * @return this
   */
  public TrainerOptions loss(Value loss) {
    this.loss = loss;
    return this;
  }

  /**
   * By which rule. Not looked at where {@link #train} is given.
   *
   * @param optimizer null: SGD
   * @return this
   */
  public TrainerOptions optimizer(Optimizer optimizer) {
    this.optimizer = optimizer;
    return this;
  }

  /**
   * The target of a step that was made before, as by {@link Strategy#minimize}.
   *
   * @param train null: the trainer makes it
   * @return this
   */
  public TrainerOptions train(Value train) {
    this.train = train;
    return this;
  }

  /**
   * A switch for dropout and norms.
   *
   * @param training a bool scalar placeholder, fed true in steps of training and false elsewhere; null: none
   * @return this
   */
  public TrainerOptions training(Value training) {
    this.training = training;
    return this;
  }

  /**
   * Where it runs.
   *
   * @param session of the model's graph, local or the chief's; null: a local one of the trainer's own
   * @return this
   */
  public TrainerOptions session(Session session) {
    this.session = session;
    return this;
  }

  /**
   * Whose workers all fit together. Each is a program that builds the same model, gives its trainer the strategy, the target of its {@link
   * Strategy#minimize}, and as loss the mean of its {@link Strategy#reduce}, and reads data of its own ({@link Dataset#shard}). The fit gives
   * the variables their values; do not run {@link Model#init}. A worker that is lost is waited for, a minute at most, and all go on from where
   * the furthest is. The first worker alone writes the directory.
   *
   * @param strategy a MultiWorkerMirrored one; null, or another kind: this program alone
   * @return this
   */
  public TrainerOptions strategy(Strategy strategy) {
    this.strategy = strategy;
    return this;
  }

  /**
   * A metric that steps update. Epochs and evaluations tell its result, a scalar, under this name, and validations with "val_" before it.
   *
   * @param name 1 to 64 characters of ASCII without spaces, commas and quotes
   * @param values what {@link Model#metric} gave
   * @return this
   * @throws DtgException.AlreadyExists when the name is taken
   */
  public TrainerOptions metric(String name, MetricValues values) {
    if (metrics.containsKey(Handle.given(name, "name"))) {
      throw new DtgException.AlreadyExists("add a metric: the name \"" + name + "\" is taken; find another");
    }
    metrics.put(name, Handle.given(values, "values"));
    return this;
  }

  Packet packet() {
    Packet out = new Packet().integers(Value.ids(feeds, "feeds")).integer(inputs).integers(Value.ids(outputs, "outputs"));
    checkNames(inputNames, Math.max(inputs, 1), "inputNames");
    checkNames(outputNames, outputs.length, "outputNames");
    out.plain(List.of(inputNames)).plain(List.of(outputNames));
    out.integer(Value.id(loss, "loss")).integer(Value.id(train)).integer(Value.id(training));
    return out.append(Optimizer.packet(optimizer));
  }

  static long[] ids(MetricValues of) {
    return Value.ids(List.of(of.update(), of.reset(), of.result()));
  }
}
