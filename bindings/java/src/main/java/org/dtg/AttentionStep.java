// What a step of attention gives. Immutable.

package org.dtg;

/**
 * What {@link Layers#attentionStep} gives.
 *
 * @param output [batch, places, output width]
 * @param cache the cache as it is then
 */
public record AttentionStep(Value output, AttentionCache cache) {}
