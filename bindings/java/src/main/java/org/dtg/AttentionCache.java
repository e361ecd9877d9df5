// What decoding keeps. A value.

package org.dtg;

/**
 * What decoding keeps, so that each new place costs one place of work. In a loop of the graph its keys, values and position are among what the
 * loop carries, and {@link Layers#attentionStep} is called on the {@link Model#inside} of the loop's body.
 *
 * @param keys the keys of the places before as the heads see them, [batch, longest, heads, key width]
 * @param values the values, likewise
 * @param position how many places are there, an int32 scalar; null: all, and none is added (those of an encoder)
 */
public record AttentionCache(Value keys, Value values, Value position) {
  static AttentionCache of(Graph graph, long[] ids, int first) {
    return new AttentionCache(Value.orNull(graph, ids[first]), Value.orNull(graph, ids[first + 1]), Value.orNull(graph, ids[first + 2]));
  }

  long[] ids() {
    return new long[] {Value.id(keys, "keys"), Value.id(values, "values"), Value.id(position)};
  }
}
