// How a fit goes on. One thread.

package org.dtg;

import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * How long a fit goes on, what it watches, what it keeps and who is told; what is not said has the library's default. A {@link Trainer} reads
 * it when the fit begins, but for the listeners. What would do nothing, such as {@link #checkpointSteps} without a directory, is {@link
 * DtgException.InvalidArgument}.
 */
public final class FitOptions {
  private long epochs;
  private long stepsPerEpoch;
  Dataset validation;
  private long validationEvery;
  private long validationSteps;
  private Duration timeLimit;
  private String directory;
  private long checkpointSteps;
  private Duration checkpointTime;
  private long checkpointEpochs;
  private int keep;
  private boolean fresh;
  private String best;
  private Better bestBetter = Better.BY_NAME;
  private EarlyStopping earlyStopping;
  private Plateau plateau;
  private boolean tensorBoard = true;
  private long tensorBoardSteps;
  private long histogramEpochs;
  private Progress progress = Progress.BEST;
  Cancellation cancellation;
  private final Map<FitEvent.Kind, Consumer<FitEvent>> listeners = new EnumMap<>(FitEvent.Kind.class);

  /** One epoch, of which nothing is kept. */
  public FitOptions() {}

  /**
   * How many epochs in all.
   *
   * @param epochs those of before it went on too; one where this is not called
   * @return this
   * @throws DtgException.InvalidArgument below 1
   */
  public FitOptions epochs(long epochs) {
    if (epochs < 1) throw new DtgException.InvalidArgument("epochs(" + epochs + "): a fit has one at least, and those of before it went on count");
    this.epochs = epochs;
    return this;
  }

  /**
   * Steps of an epoch. Epochs then go on in the data where the one before has ended, and where it ends it begins anew.
   *
   * @param steps 0: until the data ends, and the next epoch begins it anew
   * @return this
   */
  public FitOptions stepsPerEpoch(long steps) {
    this.stepsPerEpoch = steps;
    return this;
  }

  /**
   * Data that the model is tried on at the end of epochs.
   *
   * @param data another one than that of the training, with the same components; null: no validation
   * @return this
   */
  public FitOptions validation(Dataset data) {
    this.validation = data;
    return this;
  }

  /**
   * How often.
   *
   * @param epochs every so many; 0: 1
   * @return this
   */
  public FitOptions validationEvery(long epochs) {
    this.validationEvery = epochs;
    return this;
  }

  /**
   * How much of the data.
   *
   * @param steps elements from its beginning; 0: all
   * @return this
   */
  public FitOptions validationSteps(long steps) {
    this.validationSteps = steps;
    return this;
  }

  /**
   * When the fit ends in good order, before the first step after that.
   *
   * @param time since it began; null: no limit
   * @return this
   */
  public FitOptions timeLimit(Duration time) {
    this.timeLimit = time;
    return this;
  }

  /**
   * Where checkpoints, weights, model.dtg, metrics.csv, metrics.jsonl and summary.json of this run are kept, and from where it goes on after a stop.
   *
   * @param directory made where it is not there; null: nothing is kept
   * @return this
   */
  public FitOptions directory(String directory) {
    this.directory = Native.notEmpty(directory, "directory");
    return this;
  }

  /**
   * As {@link #directory(String)}.
   *
   * @param directory made where it is not there
   * @return this
   */
  public FitOptions directory(java.nio.file.Path directory) {
    return directory(Native.path(directory, "directory"));
  }

  /**
   * Checkpoints at steps, exactly: one waits for the one before.
   *
   * @param steps at each multiple of that; 0: not by steps
   * @return this
   */
  public FitOptions checkpointSteps(long steps) {
    this.checkpointSteps = steps;
    return this;
  }

  /**
   * Checkpoints by time.
   *
   * @param time since the last one; null: not by time
   * @return this
   */
  public FitOptions checkpointTime(Duration time) {
    this.checkpointTime = time;
    return this;
  }

  /**
   * Checkpoints after epochs. One is made at the end in any case.
   *
   * @param epochs after so many; 0: 1
   * @return this
   */
  public FitOptions checkpointEpochs(long epochs) {
    this.checkpointEpochs = epochs;
    return this;
  }

  /**
   * How many checkpoints are kept, the newest ones.
   *
   * @param keep 0: 3
   * @return this
   */
  public FitOptions keep(int keep) {
    this.keep = keep;
    return this;
  }

  /**
   * Whether a directory that has a training already is refused.
   *
   * @param fresh false: the fit goes on with it
   * @return this
   */
  public FitOptions fresh(boolean fresh) {
    this.fresh = fresh;
    return this;
  }

  /**
   * Writes best.safetensors to the directory after each epoch in which a value was the best so far. Its name says which way it gets better.
   *
   * @param name of the value, as in {@link EarlyStopping#monitor}; null: never
   * @return this
   */
  public FitOptions best(String name) {
    return best(name, Better.BY_NAME);
  }

  /**
   * The same for a value whose name does not say it.
   *
   * @param name of the value
   * @param better which way
   * @return this
   */
  public FitOptions best(String name, Better better) {
    this.best = Native.notEmpty(name, "best");
    this.bestBetter = Handle.given(better, "better");
    return this;
  }

  /**
   * Ends the fit when a value does not get better any more.
   *
   * @param rule when; null: never
   * @return this
   */
  public FitOptions earlyStopping(EarlyStopping rule) {
    this.earlyStopping = rule;
    return this;
  }

  /**
   * Lowers the learning rate when a value does not get better.
   *
   * @param rule when; null: never
   * @return this
   */
  public FitOptions plateau(Plateau rule) {
    this.plateau = rule;
    return this;
  }

  /**
   * Whether a directory gets curves for TensorBoard, in tensorboard.
   *
   * @param wanted true unless said otherwise
   * @return this
   */
  public FitOptions tensorBoard(boolean wanted) {
    this.tensorBoard = wanted;
    return this;
  }

  /**
   * The loss of steps, in the curves.
   *
   * @param steps each multiple of that; 0: values of epochs only
   * @return this
   */
  public FitOptions tensorBoardSteps(long steps) {
    this.tensorBoardSteps = steps;
    return this;
  }

  /**
   * Histograms of the weights, beside the curves.
   *
   * @param epochs after so many; 0: none
   * @return this
   */
  public FitOptions histogramEpochs(long epochs) {
    this.histogramEpochs = epochs;
    return this;
  }

  /**
   * Where it shows how far it is.
   *
   * @param progress the place
   * @return this
   */
  public FitOptions progress(Progress progress) {
    this.progress = Handle.given(progress, "progress");
    return this;
  }

  /**
   * Ends the fit with {@link DtgException.Cancelled}, in the middle of a step too.
   *
   * @param cancellation the wish; null: nobody's
   * @return this
   */
  public FitOptions cancelledBy(Cancellation cancellation) {
    this.cancellation = cancellation;
    return this;
  }

  /**
   * Tells a listener each event of a kind in {@link Trainer#fit}: on the thread of the fit, between two steps, so that it may use the trainer
   * (evaluate and predict between epochs, over other data sets than the two of the fit), the session and everything else. It may not begin
   * another fit. What it throws leaves the fit.
   *
   * @param kind of which events
   * @param listener who is told, after those that were added before
   * @return this
   */
  public FitOptions on(FitEvent.Kind kind, Consumer<FitEvent> listener) {
    listeners.merge(Handle.given(kind, "kind"), Handle.given(listener, "listener"), Consumer::andThen);
    return this;
  }

  void tell(FitEvent event) {
    Consumer<FitEvent> listener = listeners.get(event.kind());
    if (listener != null) listener.accept(event);
  }

  Packet packet() {
    Packet out = new Packet().integer(epochs).integer(stepsPerEpoch).integer(validationEvery).integer(validationSteps).duration(timeLimit);
    out.text(directory).integer(checkpointSteps).duration(checkpointTime).integer(checkpointEpochs).integer(keep).bool(fresh);
    out.bool(!tensorBoard).integer(tensorBoardSteps).integer(histogramEpochs).integer(progress.ordinal());
    out.text(best).integer(bestBetter.ordinal()).bool(earlyStopping != null);
    if (earlyStopping != null) out.append(earlyStopping.packet());
    out.bool(plateau != null);
    return plateau == null ? out : out.append(plateau.packet());
  }
}
