// The transformer of Models writes: a beam search in a loop of the graph.

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.dtg.*;

/**
 * A loop of the graph, whose body is made of the layers that were trained ({@code weightsOf}), takes all beams of all rows one place further in
 * each round; what attention has seen so far goes along in a cache, so that a place costs one place of work. Of the ways to go on, those that are
 * likeliest so far are kept; with one beam that is the likeliest each time. capi/examples/models/decode.c in Java.
 */
final class Decoder {
  static final int LONGEST = 8, TOKENS = 12, WIDTH = 32, HEADS = 2, START = 1, FIRST = 2;

  /** What goes from round to round, by its place in the list. */
  private static final int AT = 0, LAST = 1, WRITTEN = 2, SCORES = 3, KEYS = 4, VALUES = 5;

  /** A way to go on for each beam: with which row of the beams it does, and with what. */
  private record Choice(Value scores, Value from, Value token) {}

  final int beams;
  final Value rows;   // int32 [batch * beams, LONGEST]
  final Value scores; // float32 [batch, beams]: logarithms of their probabilities, the best first
  private final int batch;
  private final Value lengths;       // of all rows of all beams
  private final AttentionCache read; // what the encoder gave, the same in all rounds

  /** Adds a search. {@code read}: what the encoder gives for a batch of rows, of these lengths. */
  Decoder(Graph g, Model model, Value read, Value lengths, int batch, int beams) {
    this.batch = batch;
    this.beams = beams;
    // What was read, once for each beam.
    Value which = g.constant(IntStream.range(0, batch * beams).map(i -> i / beams).toArray());
    this.lengths = rowsOf(g, lengths, which);
    this.read = model.attentionCache(rowsOf(g, read, which), attention("multi_head_attention_2"), 0);
    List<Value> end = g.whileLoop(begin(g), (body, v) -> body.less(v.get(AT), body.constant(LONGEST)), (body, v) -> {
      try (Model inside = model.inside(body)) {
        return goOn(body, inside, v);
      }
    });
    rows = end.get(WRITTEN);
    scores = end.get(SCORES);
  }

  private static Value rowsOf(Graph g, Value x, Value rows) {
    return g.gatherV2(x, rows, g.constant(0));
  }

  private static Value shaped(Graph g, Value x, long... dims) {
    return g.reshape(x, g.constant(dims));
  }

  private static Attention attention(String trained) {
    return new Attention(HEADS, WIDTH / HEADS).weightsOf(trained);
  }

  /** Nothing is written, and all beams of a row but one are out of the question, so that they do not all write the same. */
  private List<Value> begin(Graph g) {
    int all = batch * beams;
    int[] begins = new int[all];
    float[] likely = new float[all];
    for (int i = 0; i < all; i++) {
      begins[i] = START;
      likely[i] = i % beams == 0 ? 0 : -1e9f;
    }
    Value none = g.constant(0), cache = g.fill(g.constant((long) all, LONGEST, HEADS, WIDTH / HEADS), g.constant(0f));
    return List.of(none, g.constant(begins, all, 1), g.fill(g.constant((long) all, LONGEST), none), g.constant(likely, batch, beams), cache, cache);
  }

  /** One round: the next token of each beam is chosen, and what goes along follows those rows that it goes on with. */
  private List<Value> goOn(Graph g, Model inside, List<Value> v) {
    List<Value> next = new ArrayList<>(v);
    Value likely = endRows(g, v.get(AT), nextToken(g, inside, next));
    Choice chosen = choose(g, v.get(SCORES), likely);
    next.set(SCORES, chosen.scores());
    next.set(LAST, chosen.token());
    for (int i : new int[] {WRITTEN, KEYS, VALUES}) next.set(i, rowsOf(g, next.get(i), chosen.from()));
    Value here = g.equal(g.constant(IntStream.range(0, LONGEST).toArray()), v.get(AT));
    next.set(WRITTEN, g.selectV2(here, chosen.token(), next.get(WRITTEN)));
    next.set(AT, g.addV2(v.get(AT), g.constant(1)));
    return next;
  }

  /** One place of the decoder: logarithms of probabilities [rows, TOKENS] of what stands there. The cache in {@code v} grows by it. */
  private Value nextToken(Graph g, Model inside, List<Value> v) {
    Value x = inside.embedding(v.get(LAST), new Embedding(TOKENS, WIDTH).weightsOf("embedding_2"));
    x = g.addV2(x, inside.embedding(v.get(AT), new Embedding(LONGEST, WIDTH).weightsOf("embedding_3")));
    Value y = inside.layerNorm(x, new Norm().weightsOf("layer_normalization_3"));
    AttentionCache before = new AttentionCache(v.get(KEYS), v.get(VALUES), v.get(AT));
    AttentionStep written = inside.attentionStep(y, attention("multi_head_attention_1"), before);
    v.set(KEYS, written.cache().keys());
    v.set(VALUES, written.cache().values());
    x = g.addV2(x, written.output());
    y = inside.layerNorm(x, new Norm().weightsOf("layer_normalization_4"));
    x = g.addV2(x, inside.attentionStep(y, attention("multi_head_attention_2").lengths(lengths), read).output());
    y = inside.layerNorm(x, new Norm().weightsOf("layer_normalization_5"));
    y = inside.dense(y, new Dense(2 * WIDTH).activation(Activation.GELU).weightsOf("dense_2"));
    x = g.addV2(x, inside.dense(y, new Dense(WIDTH).weightsOf("dense_3")));
    y = inside.layerNorm(x, new Norm().weightsOf("layer_normalization_6"));
    y = inside.dense(y, new Dense(TOKENS).weightsOf("dense_4"));
    return g.logSoftmax(shaped(g, y, batch * beams, TOKENS));
  }

  /** Behind its end a row says nothing but 0, which changes no score. */
  private Value endRows(Graph g, Value at, Value likely) {
    float[] silence = new float[TOKENS];
    for (int k = 1; k < TOKENS; k++) silence[k] = -1e9f;
    Value open = shaped(g, g.less(at, lengths), batch * beams, 1);
    return g.selectV2(open, likely, g.constant(silence, 1, TOKENS));
  }

  /** The likeliest of all ways to go on. */
  private Choice choose(Graph g, Value scores, Value likely) {
    Value total = g.addV2(shaped(g, scores, batch * beams, 1), likely), tokens = g.constant(TOKENS);
    var best = g.topKV2(shaped(g, total, batch, beams * TOKENS), g.constant(beams));
    Value first = g.constant(IntStream.range(0, batch).map(i -> i * beams).toArray(), batch, 1);
    Value from = g.addV2(g.floorDiv(best.indices(), tokens), first);
    return new Choice(best.values(), shaped(g, from, batch * beams), shaped(g, g.floorMod(best.indices(), tokens), batch * beams, 1));
  }
}
