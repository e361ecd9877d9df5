import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.LongFunction;
import org.dtg.*;

/**
 * Five models that people train: LeNet, word2vec (skip-grams with sampled softmax), language models with an LSTM and a GRU, and a transformer that
 * learns to write rows of digits backwards and then writes some (Decoder); capi/examples/models in Java, with the same losses.
 *
 * <pre>
 * Models                            the names of all
 * Models lenet [--steps 200]        trains, and prints the loss now and then
 * Models lenet --steps 400 --save FILE  the same, and keeps the weights
 * Models lenet --reference 50       the losses of the first steps in full, for whoever holds them to another library's
 * </pre>
 */
public final class Models implements AutoCloseable {
  /** Numbers by chance that are the same on every machine: SplitMix64. */
  static final class Dice {
    private long state;

    Dice(long model, long step) {
      state = model;
      state = draw() ^ step;
      state = draw();
    }

    long draw() {
      state += 0x9e3779b97f4a7c15L;
      long z = state;
      z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
      z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
      return z ^ (z >>> 31);
    }

    int below(int limit) {
      return (int) ((draw() >>> 33) % limit);
    }

    float unit() {
      return (draw() >>> 40) * 0x1p-24f;
    }
  }

  /** Prints what a model has learned. */
  private interface Show {
    void print(Session session);
  }

  private final Graph g = new Graph();
  private final Model model = new Model(g, 2015);
  private final boolean reference; // nothing is by chance but what dice say, and learning is slow
  private Value loss;
  private Value train;
  private Show show; // null: nothing more than the loss

  private Models(boolean reference) {
    this.reference = reference;
  }

  @Override
  public void close() {
    model.close();
    g.close();
  }

  private Value feed(String name, DType dtype, long... dims) {
    long[] all = new long[dims.length + 1];
    all[0] = -1;
    System.arraycopy(dims, 0, all, 1, dims.length);
    return g.placeholder(name, dtype, all);
  }

  private void trainOn(Value loss, Optimizer how, double rate, double calm) {
    this.loss = loss;
    train = model.minimize(loss, how.rate(reference ? rate * calm : rate)).train();
  }

  /** The mean cross entropy over the tokens that the mask counts. */
  private Value byToken(Value next, Value logits, Value mask) {
    return model.loss(next, logits,
        new Loss(Loss.Kind.SPARSE_CATEGORICAL_CROSSENTROPY).fromLogits(true).reduction(Loss.Reduction.MEAN_BY_WEIGHTS).sampleWeights(mask));
  }

  // ---- LeNet ----

  private static final int SIDE = 28, TEXTURES = 10;

  LongFunction<Map<Value, Tensor>> lenet() {
    int batch = 32;
    Value images = feed("images", DType.F32, SIDE, SIDE, 1), labels = feed("labels", DType.I32);
    Value x = model.conv2d(images, new Conv2D(6).kernelHeight(5).padding(Padding.SAME).activation(Activation.RELU));
    x = model.maxPool2d(x, new Pool2D());
    x = model.maxPool2d(model.conv2d(x, new Conv2D(16).kernelHeight(5).activation(Activation.RELU)), new Pool2D());
    x = model.dense(model.flatten(x), new Dense(120).activation(Activation.RELU));
    x = model.dense(model.dense(x, new Dense(84).activation(Activation.RELU)), new Dense(TEXTURES));
    trainOn(model.sparseSoftmaxCrossEntropy(labels, x), Optimizer.momentum(0.9), 0.02, 0.1);
    return step -> {
      Dice dice = new Dice(1, step);
      float[] pixels = new float[batch * SIDE * SIDE];
      int[] classes = new int[batch];
      for (int i = 0; i < batch; i++) {
        classes[i] = dice.below(TEXTURES);
        textured(dice, classes[i], pixels, i * SIDE * SIDE);
      }
      return Map.of(images, Tensor.of(pixels, batch, SIDE, SIDE, 1), labels, Tensor.of(classes));
    };
  }

  /** Blocks of four pixels that are bright or dark as the class says, moved a little, with noise over all. */
  private static void textured(Dice dice, int kind, float[] image, int at) {
    int down = dice.below(4), right = dice.below(4);
    for (int i = 0; i < SIDE; i++) {
      for (int j = 0; j < SIDE; j++) {
        boolean bright = (new Dice(kind, (i + down) / 4 * 64 + (j + right) / 4).draw() & 1) != 0;
        image[at++] = (bright ? 0.5f : -0.5f) + 2 * (dice.unit() - 0.5f);
      }
    }
  }

  // ---- word2vec ----

  LongFunction<Map<Value, Tensor>> word2vec() {
    int batch = 128, words = 200, topics = 10, samples = 20;
    Value x = feed("words", DType.I32), context = feed("context", DType.I32);
    SampledLoss head = new SampledLoss(SampledLoss.Kind.SAMPLED_SOFTMAX, words, samples);
    // What is drawn, and how likely it was, comes from us where another library does the same.
    Value sampled = reference ? feed("sampled", DType.I64) : null, ofTrue = reference ? feed("true_expected", DType.F32, 1) : null;
    Value ofSampled = reference ? feed("sampled_expected", DType.F32) : null;
    if (reference) head.sampled(sampled, ofTrue, ofSampled);
    Value rows = model.embedding(x, new Embedding(words, 16));
    trainOn(model.sampledLoss(context, rows, head), Optimizer.adagrad(), 0.2, 1);
    return step -> {
      Dice dice = new Dice(7, step);
      int[] from = new int[batch], to = new int[batch];
      for (int i = 0; i < batch; i++) {
        int here = word(dice, words), there = word(dice, words);
        from[i] = here;
        // Four neighbours of five are of the topic, which is the number's last digit.
        to[i] = dice.below(5) != 0 ? there - there % topics + here % topics : there;
      }
      Map<Value, Tensor> feeds = new LinkedHashMap<>();
      feeds.put(x, Tensor.of(from));
      feeds.put(context, Tensor.of(to));
      if (!reference) return feeds;
      long[] classes = new long[samples];
      float[] expected = new float[samples], each = new float[batch];
      for (int i = 0; i < samples; i++) classes[i] = i * (words / samples) + dice.below(words / samples);
      Arrays.fill(expected, (float) samples / words);
      Arrays.fill(each, (float) samples / words);
      feeds.put(sampled, Tensor.of(classes));
      feeds.put(ofTrue, Tensor.of(each, batch, 1));
      feeds.put(ofSampled, Tensor.of(expected));
      return feeds;
    };
  }

  /** Frequent words have low numbers. */
  private static int word(Dice dice, int words) {
    float u = dice.unit();
    return (int) (u * u * words);
  }

  // ---- language models ----

  /** Lewis Carroll, Alice's Adventures in Wonderland. */
  private static final String[] SENTENCES = {"alice was beginning to get very tired", "of sitting by her sister on the bank",
      "and of having nothing to do", "once or twice she had peeped into the book", "her sister was reading", "but it had no pictures",
      "or conversations in it", "and what is the use of a book", "thought alice", "without pictures or conversations",
      "so she was considering in her own mind", "whether the pleasure of making a daisy chain", "would be worth the trouble of getting up",
      "and picking the daisies", "when suddenly a white rabbit", "with pink eyes ran close by her",
      "there was nothing so very remarkable in that", "oh dear, oh dear, i shall be late"};

  private static int number(char letter) {
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 1 : letter == ' ' ? 27 : 28;
  }

  LongFunction<Map<Value, Tensor>> language(Recurrent layer) {
    int batch = 8, letters = 29, longest = 48;
    Value x = feed("letters", DType.I32, longest), next = feed("next", DType.I32, longest), mask = feed("mask", DType.F32, longest);
    Value lengths = feed("lengths", DType.I32);
    Value y = model.recurrent(model.embedding(x, new Embedding(letters, 16)), layer.lengths(lengths)).outputs();
    trainOn(byToken(next, model.dense(y, new Dense(letters)), mask), Optimizer.adam(), 0.005, 1);
    return step -> {
      Dice dice = new Dice(8, step);
      int[] in = new int[batch * longest], out = new int[batch * longest], ends = new int[batch];
      float[] counts = new float[batch * longest];
      for (int i = 0; i < batch; i++) {
        String sentence = SENTENCES[dice.below(SENTENCES.length)];
        for (int t = 0; t <= sentence.length(); t++) {
          in[i * longest + t] = t > 0 ? number(sentence.charAt(t - 1)) : 0;
          out[i * longest + t] = t < sentence.length() ? number(sentence.charAt(t)) : 0;
          counts[i * longest + t] = 1;
        }
        ends[i] = sentence.length() + 1;
      }
      return Map.of(x, Tensor.of(in, batch, longest), next, Tensor.of(out, batch, longest), mask, Tensor.of(counts, batch, longest), lengths,
          Tensor.of(ends));
    };
  }

  // ---- a transformer ----

  private static final int LONGEST = Decoder.LONGEST, TOKENS = Decoder.TOKENS, WIDTH = Decoder.WIDTH, HEADS = Decoder.HEADS;

  private Value embed(Value x) {
    Value places = g.constant(new int[] {0, 1, 2, 3, 4, 5, 6, 7}, LONGEST);
    Value rows = model.embedding(x, new Embedding(TOKENS, WIDTH));
    return g.addV2(rows, model.embedding(places, new Embedding(LONGEST, WIDTH)));
  }

  /** Looks at itself where {@code value} is null. */
  private Value attend(Value x, Value value, Value lengths, boolean causal) {
    Value y = model.layerNorm(x, null);
    Attention layer = new Attention(HEADS, WIDTH / HEADS).causal(causal).lengths(lengths);
    return g.addV2(x, model.attention(y, value == null ? y : value, layer));
  }

  private Value think(Value x) {
    Value y = model.dense(model.layerNorm(x, null), new Dense(2 * WIDTH).activation(Activation.GELU));
    return g.addV2(x, model.dense(y, new Dense(WIDTH)));
  }

  LongFunction<Map<Value, Tensor>> transformer() {
    int batch = 16;
    Value source = feed("source", DType.I32, LONGEST), written = feed("written", DType.I32, LONGEST), next = feed("next", DType.I32, LONGEST);
    Value mask = feed("mask", DType.F32, LONGEST), lengths = feed("lengths", DType.I32);
    Value x = model.layerNorm(think(attend(embed(source), null, lengths, false)), null);
    Value y = think(attend(attend(embed(written), null, null, true), x, lengths, false));
    Value logits = model.dense(model.layerNorm(y, null), new Dense(TOKENS));
    trainOn(byToken(next, logits, mask), Optimizer.adam(), 0.003, 0.1);
    List<Decoder> writers = new ArrayList<>();
    for (int beams : new int[] {1, 4}) writers.add(new Decoder(g, model, x, lengths, batch, beams));
    show = session -> {
      Rows rows = new Rows(batch, -100); // that nobody trained on
      for (Decoder writer : writers) {
        try (Tensor from = Tensor.of(rows.source, batch, LONGEST); Tensor ends = Tensor.of(rows.lengths);
            Results wrote = session.run().feed(source, from).feed(lengths, ends).fetch(writer.rows, writer.scores).call()) {
          rows.print(writer.beams, wrote.get(0).toInts(), wrote.get(1).toFloats());
        }
      }
    };
    return step -> {
      Rows rows = new Rows(batch, step);
      return Map.of(source, Tensor.of(rows.source, batch, LONGEST), written, Tensor.of(rows.written, batch, LONGEST), next,
          Tensor.of(rows.next, batch, LONGEST), mask, Tensor.of(rows.mask, batch, LONGEST), lengths, Tensor.of(rows.lengths));
    };
  }

  /** A batch of rows of digits, and what is to be written for them. */
  private static final class Rows {
    final int[] source, written, next, lengths;
    final float[] mask;

    Rows(int batch, long step) {
      Dice dice = new Dice(9, step);
      source = new int[batch * LONGEST];
      written = new int[batch * LONGEST];
      next = new int[batch * LONGEST];
      mask = new float[batch * LONGEST];
      lengths = new int[batch];
      for (int i = 0; i < batch; i++) {
        int row = i * LONGEST, length = 3 + dice.below(LONGEST - 2);
        for (int t = 0; t < length; t++) source[row + t] = Decoder.FIRST + dice.below(TOKENS - Decoder.FIRST);
        written[row] = Decoder.START;
        for (int t = 0; t < LONGEST; t++) {
          next[row + t] = t < length ? source[row + length - 1 - t] : 0;
          if (t > 0) written[row + t] = next[row + t - 1];
          mask[row + t] = t < length ? 1 : 0;
        }
        lengths[i] = length;
      }
    }

    /** What a search wrote for them, and how likely it takes it to be; of each row's beams the first is the best. */
    void print(int beams, int[] wrote, float[] scores) {
      int right = 0;
      System.out.println("beams: " + beams);
      for (int i = 0; i < lengths.length; i++) {
        int from = i * LONGEST, best = i * beams * LONGEST;
        StringBuilder line = new StringBuilder();
        for (int t = 0; t < lengths[i]; t++) line.append(source[from + t] - Decoder.FIRST);
        line.append(" -> ");
        for (int t = 0; t < lengths[i]; t++) line.append("?!0123456789".charAt(wrote[best + t]));
        System.out.println(line.append(String.format(Locale.ROOT, "  %.5f", scores[i * beams])));
        right += Arrays.equals(wrote, best, best + LONGEST, next, from, from + LONGEST) ? 1 : 0;
      }
      System.out.println(right + " of " + lengths.length + " right");
    }
  }

  // ---- training ----

  private static final Map<String, BiFunction<Models, String, LongFunction<Map<Value, Tensor>>>> ALL = new LinkedHashMap<>();

  static {
    ALL.put("lenet", (m, name) -> m.lenet());
    ALL.put("word2vec_softmax", (m, name) -> m.word2vec());
    ALL.put("lstm", (m, name) -> m.language(Recurrent.lstm(64)));
    ALL.put("gru", (m, name) -> m.language(Recurrent.gru(64)));
    ALL.put("transformer", (m, name) -> m.transformer());
  }

  private float step(Session session, Map<Value, Tensor> batch) {
    Run run = session.run();
    batch.forEach(run::feed);
    try {
      return run.fetch(loss).targets(train).callFloat();
    } finally {
      batch.values().forEach(Tensor::close);
    }
  }

  public static void main(String[] args) {
    if (args.length == 0) {
      ALL.keySet().forEach(name -> System.out.println(name + " steps loss"));
      return;
    }
    int steps = 200;
    boolean reference = false;
    String save = null;
    for (int i = 1; i + 1 < args.length; i += 2) {
      if (args[i].equals("--steps") || args[i].equals("--reference")) steps = Integer.parseInt(args[i + 1]);
      if (args[i].equals("--save")) save = args[i + 1];
      reference |= args[i].equals("--reference");
    }
    try (Models models = new Models(reference)) {
      LongFunction<Map<Value, Tensor>> fill = ALL.get(args[0]).apply(models, args[0]);
      Value init = models.model.init();
      try (Session session = Session.connect("local", models.g)) {
        session.run(init);
        models.train(session, fill, steps);
        if (save != null) models.model.save(session, save);
        if (models.show != null && !reference) models.show.print(session);
      }
    }
  }

  private void train(Session session, LongFunction<Map<Value, Tensor>> fill, int steps) {
    for (int step = 0; step < steps; step++) {
      float loss = step(session, fill.apply(step));
      if (reference) System.out.println("[" + loss + "]");
      else if (step % 20 == 19) System.out.printf(Locale.ROOT, "step %5d   loss %8.5f%n", step + 1, loss);
    }
  }
}
