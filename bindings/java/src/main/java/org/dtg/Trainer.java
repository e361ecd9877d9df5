// Trainers and their fits. One thread at a time, the one that uses the model and the data sets; stop from any.

package org.dtg;

import java.util.Map;

/**
 * Fits a model: its loss, its optimizer and its metrics trained over epochs of a data set, with validation, checkpoints that a training goes on
 * from, early stopping, a learning rate that falls on a plateau, and a directory that keeps what came of it.
 *
 * <pre>{@code
 * try (Trainer trainer = new Trainer(model, new TrainerOptions().feeds(x, y).loss(loss).optimizer(Optimizer.adam()).metric("accuracy", right))) {
 *   trainer.fit(train, new FitOptions().epochs(10).validation(test).directory("run").earlyStopping(new EarlyStopping().patience(3))
 *       .on(FitEvent.Kind.EPOCH_END, event -> System.out.println(event.epoch() + ": " + event.values())));
 * }
 * }</pre>
 *
 * <p>A fit may be pulled too, event by event: {@link #begin}, then {@link #next} until {@link FitEvent.Kind#DONE}. Nothing happens between two
 * calls, and a step is one run. So a fit makes the same steps, to the last bit, as a loop of {@link Dataset#next} and {@link Session#run()}.
 *
 * <p>With a directory a fit that was killed at any moment, and is begun again by the same program, goes on with the step that comes after its
 * last checkpoint, and ends with the same weights to the last bit, where training is deterministic.
 *
 * <p>A trainer keeps its model and its session, and the data sets of a fit until the next one. {@link #close} gives up a fit that is under way
 * where it stands. In the middle of an epoch {@link #trainStep(Tensor...)} and {@link #evaluate(Dataset)} are {@link
 * DtgException.FailedPrecondition}: they would change what it counts.
 */
public final class Trainer extends Handle {
  private final int outputs;
  private final Session given; // null: it has a session of its own
  private Session lent; // that one, once it was asked for; guarded by this
  private boolean telling; // a listener is being told

  /**
   * A trainer of a model. Adds the training to the graph, with a learning rate that a plateau may lower where the optimizer has a number for
   * it. Variables without a value get their first one when it begins.
   *
   * @param model the model; it gets the optimizer's variables
   * @param options what is trained
   * @throws DtgException.Unimplemented for a session that is not the chief's
   */
  public Trainer(Model model, TrainerOptions options) {
    super(Kind.TRAINER, make(model, options));
    this.outputs = options.outputs.length;
    this.given = options.session;
  }

  private static long make(Model model, TrainerOptions options) {
    byte[] what = given(options, "options").packet().bytes();
    return given(model, "model").build(mine -> make(mine, options, what));
  }

  private static long make(long model, TrainerOptions options, byte[] what) {
    long session = hold(options.session);
    long strategy = 0;
    try {
      strategy = hold(options.strategy);
      long made = Native.trainerCreate(model, session, strategy, what);
      boolean good = false;
      try {
        for (Map.Entry<String, MetricValues> each : options.metrics.entrySet()) {
          Native.trainerAddMetric(made, Native.utf8(each.getKey()), TrainerOptions.ids(each.getValue()));
        }
        good = true;
        return made;
      } finally {
        if (!good) Native.release(Kind.TRAINER.ordinal(), made);
      }
    } finally {
      if (strategy != 0) drop(options.strategy);
      drop(options.session);
    }
  }

  /**
   * The session in which the trainer runs: the one of the options, or its own.
   *
   * @return always the same. It need not be closed: the trainer's own is closed with the trainer
   */
  public synchronized Session session() {
    long mine = hold();
    try {
      if (given != null) return given;
      if (lent == null || lent.isClosed()) lent = new Session(Native.trainerSession(mine), true);
      return lent;
    } finally {
      drop();
    }
  }

  /** Gives up a fit that is under way, and the trainer with a session of its own. */
  @Override
  public void close() {
    super.close();
    Session mine;
    synchronized (this) {
      mine = lent;
    }
    if (mine != null) mine.takeBack();
  }

  /**
   * Trains: begins a fit, or goes on with the one of the directory, and tells the listeners until it is done. As keras.Model.fit. When a
   * listener throws, the fit is given up where it stands, as by {@link #giveUp}, and this throws the same: data sets and directory are free
   * then, and a fit that is begun anew goes on from the last checkpoint.
   *
   * @param data what is trained on; as many components as there are feeds, of the same types
   * @param how how long and so on; null: one epoch
   * @return the last event
   * @throws DtgException.InvalidArgument when a loss is no finite number: with the name of the first value that was not; and for options out of
   *     range
   * @throws DtgException.FailedPrecondition when another process trains in the directory, or a checkpoint does not fit the model
   * @throws DtgException.Cancelled when it was cancelled
   */
  public FitEvent fit(Dataset data, FitOptions how) {
    FitOptions options = how == null ? new FitOptions() : how;
    begin(data, options);
    for (; ; ) {
      FitEvent event = pull();
      tell(options, event);
      if (event.kind() == FitEvent.Kind.DONE) return event;
    }
  }

  /** What a listener throws ends the fit, as an error of a callback does in other languages, and is thrown on. */
  private void tell(FitOptions options, FitEvent event) {
    telling = true;
    try {
      options.tell(event);
    } catch (Throwable thrown) {
      telling = false;
      try {
        giveUp();
      } catch (RuntimeException e) { // such as of a trainer that the listener has closed, and its fit with it
        thrown.addSuppressed(e);
      }
      throw thrown;
    } finally {
      telling = false;
    }
  }

  /**
   * Begins a fit that {@link #next} is to pull, or goes on with the one of the directory; one that was under way is given up. The data sets get
   * no transforms until its end. The listeners of the options are not told.
   *
   * @param data what is trained on
   * @param how how long and so on; null: one epoch
   * @throws DtgException.AlreadyExists when the directory has a training, and a fresh one was asked for
   */
  public void begin(Dataset data, FitOptions how) {
    if (telling) throw new DtgException.FailedPrecondition("fit: a listener may not begin another fit; stop() this one and begin that after it");
    FitOptions options = how == null ? new FitOptions() : how;
    byte[] packet = options.packet().bytes();
    Handle[] handles = {this, given(data, "data"), options.validation, options.cancellation};
    long[] held = hold(handles);
    try {
      data.lend();
      if (options.validation != null) options.validation.lend();
      Native.trainerBegin(held[0], held[1], held[2], held[3], packet);
    } finally {
      drop(handles);
    }
  }

  /**
   * Goes on to the next event; makes no more than one step. After an error the fit is over: calls repeat it, and a fit that is begun anew goes
   * on from its last checkpoint.
   *
   * @return the event; DONE is the last one
   * @throws DtgException.FailedPrecondition when no fit was begun, or it is over
   */
  public FitEvent next() {
    if (telling) throw new DtgException.FailedPrecondition("go on with a fit: fit() does that, and tells a listener; only one of them may");
    return pull();
  }

  private FitEvent pull() {
    long mine = hold();
    try {
      return FitEvent.of(Native.trainerNext(mine));
    } finally {
      drop();
    }
  }

  /**
   * Writes the model as {@link #predict} runs it to a file of its own, for {@link Model#load(String)}: graph, weights, and the names, types and
   * shapes of inputs and outputs; a fit with a directory leaves one as model.dtg. Any number of threads may run what is loaded.
   *
   * @param path the file
   * @throws DtgException.FailedPrecondition for a trainer without outputs
   * @throws DtgException.Unimplemented for variables with copies on several devices
   */
  public void export(java.nio.file.Path path) {
    export(Native.path(path, "path"));
  }

  /**
   * As {@link #export(java.nio.file.Path)}.
   *
   * @param path the file
   */
  public void export(String path) {
    byte[] to = Native.utf8(given(path, "path"));
    long mine = hold();
    try {
      Native.trainerExport(mine, to);
    } finally {
      drop();
    }
  }

  /**
   * Gives up the fit under way where it stands, without a checkpoint; it goes on from its last one where it is begun anew. One that is being
   * written gets written, and is waited for. The data sets and the directory are free then. A fit that is over stays as it is, and none is
   * fine.
   *
   * @throws DtgException.FailedPrecondition when {@link #fit} is under way and tells a listener
   */
  public void giveUp() {
    if (telling) throw new DtgException.FailedPrecondition("give up a fit: fit() tells a listener, which throws to end it, or asks it to stop()");
    long mine = hold();
    try {
      Native.trainerGiveUp(mine);
    } finally {
      drop();
    }
  }

  /**
   * Asks a fit to end in good order before its next step: with STOPPED, a last checkpoint, DONE. Does not wait. A fit that is begun afterwards
   * is not meant. Any thread, a listener too.
   */
  public void stop() {
    long mine = hold();
    try {
      Native.trainerStop(mine);
    } finally {
      drop();
    }
  }

  /**
   * What came of the fit that was begun last; from any thread: while that fit is under way, as of its next event, or, where none comes
   * within a second, as of one before.
   *
   * @return JSON: outcome ("running", "done", "stopped" or "failed"), why, epochs, steps, resumed, directory, best_epoch, best, history
   * @throws DtgException.FailedPrecondition when none was begun
   */
  public String summary() {
    long mine = hold();
    try {
      return Native.text(Native.trainerSummary(mine));
    } finally {
      drop();
    }
  }

  /**
   * One step of training. Metrics are updated; {@link #evaluate(Dataset)} and a fit begin them anew.
   *
   * @param tensors one per feed
   * @return the loss, before the step
   */
  public double trainStep(Tensor... tensors) {
    return trainStep(tensors, null);
  }

  /**
   * The same with an element of a data set.
   *
   * @param batch one tensor per feed; stays open
   * @return the loss, before the step
   */
  public double trainStep(Results batch) {
    Tensor[] tensors = new Tensor[given(batch, "batch").size()];
    for (int i = 0; i < tensors.length; i++) tensors[i] = batch.get(i);
    return trainStep(tensors, null);
  }

  /**
   * The same, for others to end.
   *
   * @param tensors one per feed
   * @param cancellation what ends it; null: nothing
   * @return the loss, before the step
   * @throws DtgException.Cancelled when it was cancelled
   */
  public double trainStep(Tensor[] tensors, Cancellation cancellation) {
    for (int i = 0; i < given(tensors, "tensors").length; i++) given(tensors[i], "tensors[" + i + "]");
    Handle[] handles = {this, cancellation};
    long[] held = hold(handles);
    try {
      long[] fed = hold(tensors);
      try {
        return Native.trainerStep(held[0], fed, held[1]);
      } finally {
        drop(tensors);
      }
    } finally {
      drop(handles);
    }
  }

  /**
   * Loss and metrics over a whole data set. As keras.Model.evaluate.
   *
   * @param data from its beginning
   * @return by name: "loss", the mean over examples, and the metrics
   * @throws DtgException.FailedPrecondition for a data set without elements, or one that a fit reads
   */
  public Map<String, Double> evaluate(Dataset data) {
    return evaluate(data, 0, null);
  }

  /**
   * The same over a part of it.
   *
   * @param data from its beginning
   * @param steps elements; 0: all
   * @param cancellation what ends it; null: nothing
   * @return by name
   */
  public Map<String, Double> evaluate(Dataset data, long steps, Cancellation cancellation) {
    Handle[] handles = {this, given(data, "data"), cancellation};
    long[] held = hold(handles);
    try {
      data.lend();
      return FitEvent.of(Native.trainerEvaluate(held[0], held[1], steps, held[2])).values();
    } finally {
      drop(handles);
    }
  }

  /**
   * The outputs of the trainer for a data set, one row per example. As keras.Model.predict.
   *
   * @param data from its beginning; its elements have the inputs, or the labels too
   * @return one tensor per output: those of all batches one below the other
   * @throws DtgException.FailedPrecondition for a data set without elements, or a trainer without outputs
   */
  public Results predict(Dataset data) {
    return predict(data, null);
  }

  /**
   * The same, for others to end.
   *
   * @param data from its beginning
   * @param cancellation what ends it; null: nothing
   * @return one tensor per output
   */
  public Results predict(Dataset data, Cancellation cancellation) {
    Handle[] handles = {this, given(data, "data"), cancellation};
    long[] held = hold(handles);
    try {
      data.lend();
      return Results.owning(Native.trainerPredict(held[0], held[1], held[2], outputs));
    } finally {
      drop(handles);
    }
  }
}
