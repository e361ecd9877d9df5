// One worker's share of training. Immutable.

package org.dtg;

/**
 * One worker's share. Targets that this worker does not have are null.
 *
 * @param train target: one step; push, then wait for the token
 * @param localInit target: once, when the variables have values
 * @param chiefInit target: the chief, once, before any worker's first step
 * @param resume target: the chief, in place of chiefInit, before updates go on
 * @param update target: the chief, over and over
 * @param globalStep an int64 scalar as it is now; fetch it in a run of its own
 * @param localStep an int64 scalar: the step whose variables the gradients of a run are computed from
 * @param nextStep an int64 scalar, part of train: the count right after its own update, or the step of its token
 * @param learningRate a floating-point scalar
 * @param gradientNorm float32: of this worker's own gradients; computed only if fetched
 * @param leave target: SSP and ELASTIC, a worker that makes no more steps but stays connected
 * @param clock an int64 scalar, part of train: SSP, the worker's clock
 * @param members bool by worker, part of update: ELASTIC, whose contributions made the step
 */
public record Replicated(Value train, Value localInit, Value chiefInit, Value resume, Value update, Value globalStep, Value localStep,
    Value nextStep, Value learningRate, Value gradientNorm, Value leave, Value clock, Value members) {
  static Replicated of(Graph graph, long[] ids) {
    Value[] all = new Value[ids.length];
    for (int i = 0; i < all.length; i++) all[i] = Value.orNull(graph, ids[i]);
    return new Replicated(all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], all[8], all[9],
        all[10], all[11], all[12]);
  }
}
