// What a fit has come to. Immutable.

package org.dtg;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * One event of a fit.
 *
 * @param kind what has happened
 * @param epoch from 1; where none is under way, how many are over
 * @param batch steps made in this epoch
 * @param batches steps of an epoch; -1 where that is not known
 * @param step steps made in all, also before the fit went on
 * @param examples of this epoch, so far
 * @param loss STEP: of this step; else the mean of this epoch so far
 * @param learningRate of the steps that it tells of; of RATE, from here on; 0: a schedule's, or not the trainer's
 * @param examplesPerSecond in this epoch
 * @param seconds since the fit began, in this process
 * @param values by name, in order: see {@link Kind}; cannot be changed
 * @param text what there is to say, or ""
 */
public record FitEvent(Kind kind, long epoch, long batch, long batches, long step, long examples, double loss, double learningRate,
    double examplesPerSecond, double seconds, Map<String, Double> values, String text) {
  /**
   * The kinds of events, in C's order. Of an epoch they come in the order EPOCH_BEGIN, STEP for each step, VALIDATION, RATE, EPOCH_END,
   * CHECKPOINT; those in the middle, and CHECKPOINT between steps, only where there is cause.
   */
  public enum Kind {
    /** Once, before the first step; text: whether it starts or goes on. */
    BEGIN,
    /** Before the first step of an epoch; comes again for an epoch that a resumed fit goes on with. */
    EPOCH_BEGIN,
    /** After a step; values: "loss", that of this step. */
    STEP,
    /** After a validation; values: the epoch's so far, "val_loss" and "val_" metrics among them. */
    VALIDATION,
    /** A plateau has lowered the learning rate; text. */
    RATE,
    /** After an epoch; values: "loss", the mean over its examples; metrics; those of the validation; "learning_rate". */
    EPOCH_END,
    /** The values of a checkpoint are taken, and are being written; text: where. */
    CHECKPOINT,
    /** The fit ends early; text: why. A rule, the time limit, {@link Trainer#stop}. */
    STOPPED,
    /** The last one: everything is on the disk. */
    DONE
  }

  private static final Kind[] KINDS = Kind.values();

  /** What native/trainer.c writes. */
  static FitEvent of(byte[] packet) {
    ByteBuffer from = ByteBuffer.wrap(packet).order(ByteOrder.nativeOrder());
    Kind kind = KINDS[(int) from.getLong()];
    long[] counts = new long[5];
    for (int i = 0; i < counts.length; i++) counts[i] = from.getLong();
    double[] reals = reals(from, 4);
    String text = text(from);
    double[] numbers = reals(from, (int) from.getLong());
    Map<String, Double> values = new LinkedHashMap<>();
    for (double number : numbers) values.put(text(from), number);
    return new FitEvent(kind, counts[0], counts[1], counts[2], counts[3], counts[4], reals[0], reals[1], reals[2], reals[3],
        Collections.unmodifiableMap(values), text);
  }

  private static double[] reals(ByteBuffer from, int count) {
    double[] out = new double[count];
    for (int i = 0; i < count; i++) out[i] = from.getDouble();
    return out;
  }

  private static String text(ByteBuffer from) {
    int length = (int) from.getLong();
    String out = new String(from.array(), from.position(), length, StandardCharsets.UTF_8);
    from.position(from.position() + (length / 8 + 1) * 8);
    return out;
  }
}
