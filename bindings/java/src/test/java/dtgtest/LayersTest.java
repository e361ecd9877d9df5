// Normalizations, layers over sequences and the further convolutions: a small network of them learns, every one of them is made with the
// shape that it should have, and what does not fit is refused in the words of the library.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LayersTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  /** A convolution that looks back, batch normalization with a switch, a recurrent layer both ways, attention, layer normalization. */
  private static final class Network implements AutoCloseable {
    final Graph graph = new Graph();
    final Model model = new Model(graph, 3);
    final Value x = graph.placeholder("x", DType.F32, -1, 6, 4);
    final Value labels = graph.placeholder("labels", DType.I64, -1);
    final Value training = graph.placeholder("training", DType.BOOL);
    final RecurrentResult steps;
    final Value loss;
    final Value train;
    final Variable mean;
    final Session session;
    final Tensor numbers;
    final Tensor classes;
    final Tensor on = Tensor.scalar(true);
    final Tensor off = Tensor.scalar(false);

    Network() {
      Value y = model.batchNorm(model.conv1d(x, new Conv(6).causal(true)), new BatchNorm().momentum(0.5).training(training));
      steps = model.recurrent(y, Recurrent.gru(5).direction(Direction.BOTH));
      y = model.layerNorm(model.attention(steps.outputs(), steps.outputs(), new Attention(2, 2)), null);
      loss = model.sparseSoftmaxCrossEntropy(labels, model.dense(model.globalAvgPool(y, false), new Dense(2)));
      train = model.minimize(loss, Optimizer.adam().rate(0.02)).train();
      Value init = model.init();
      mean = model.variable("batch_normalization/moving_mean");
      session = Session.connect("local", graph);
      session.run(init);
      // Class 1: the last step is greater than the first.
      float[] random = new float[16 * 6 * 4];
      long[] greater = new long[16];
      int state = 1;
      for (int i = 0; i < random.length; i++) {
        state = state * 1664525 + 1013904223;
        random[i] = (state >>> 8) / (float) (1 << 24) - 0.5f;
      }
      for (int i = 0; i < 16; i++) greater[i] = random[i * 24 + 20] > random[i * 24] ? 1 : 0;
      numbers = Tensor.of(random, 16, 6, 4);
      classes = Tensor.of(greater);
    }

    Run run(Tensor mode) {
      return session.run().feed(x, numbers).feed(labels, classes).feed(training, mode);
    }

    void step(Tensor mode) {
      run(mode).targets(train).call().close();
    }

    float[] moving() {
      try (Results out = session.run().fetch(mean.read()).call()) {
        return out.get(0).toFloats();
      }
    }

    @Override
    public void close() {
      for (Tensor tensor : new Tensor[] {numbers, classes, on, off}) tensor.close();
      session.close();
      model.close();
      graph.close();
    }
  }

  @Test
  void aNetworkOfThemLearns() {
    try (Network it = new Network()) {
      assertNull(it.steps.cell());
      assertArrayEquals(new long[] {-1, 6, 10}, it.steps.outputs().shape());
      assertArrayEquals(new long[] {-1, 10}, it.steps.hidden().shape());
      assertFalse(it.mean.trainable());
      float first = it.run(it.on).fetch(it.loss).callFloat();
      assertArrayEquals(new float[6], it.moving(), "a run that is no step");
      it.step(it.on);
      float[] moved = it.moving();
      assertFalse(java.util.Arrays.equals(new float[6], moved));
      it.step(it.off);
      assertArrayEquals(moved, it.moving(), "a step that is no training");
      for (int i = 0; i < 60; i++) it.step(it.on);
      float last = it.run(it.off).fetch(it.loss).callFloat();
      assertTrue(last < first / 2, first + ", then " + last);
    }
  }

  private static void shape(Value value, long... dims) {
    assertArrayEquals(dims, value.shape(), value.name());
  }

  @Test
  void normalizationsAndSequences() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value sequence = graph.placeholder("sequence", DType.F32, 2, 5, 4);
      Value image = graph.placeholder("image", DType.F32, 2, 8, 6, 4);
      Value lengths = graph.placeholder("lengths", DType.I32, 2);
      Value state = graph.placeholder("state", DType.F32, 2, 3);
      Value mask = graph.placeholder("mask", DType.BOOL, 2, 5, 5);
      shape(model.rmsNorm(sequence, new Norm().name("root")), 2, 5, 4);
      shape(model.groupNorm(image, new Norm().groups(2).scale(false).epsilon(1e-5)), 2, 8, 6, 4);
      shape(model.layerNorm(image, new Norm().center(false)), 2, 8, 6, 4);
      shape(model.batchNorm(image, new BatchNorm().name("batch").center(false).scale(false).epsilon(1e-4)), 2, 8, 6, 4);
      Initializer orthogonal = Initializer.of(Initializer.Kind.ORTHOGONAL);
      RecurrentResult memory = model.recurrent(sequence,
          Recurrent.lstm(3).name("memory").direction(Direction.BACKWARD).lengths(lengths).hidden(state).cell(state).kernelInit(orthogonal).forgetBias(false));
      shape(memory.outputs(), 2, 5, 3);
      shape(memory.hidden(), 2, 3);
      shape(memory.cell(), 2, 3);
      int variables = model.variables().size();
      shape(model.recurrent(sequence, Recurrent.lstm(3).weightsOf("memory")).outputs(), 2, 5, 3);
      assertEquals(variables, model.variables().size(), "weights of their own");
      shape(model.recurrent(sequence, Recurrent.simple(6).bias(false).recurrentInit(Initializer.ONES)).outputs(), 2, 5, 6);
      shape(model.attention(sequence, sequence,
          new Attention(2, 3).name("look").valueWidth(2).outputWidth(7).causal(true).mask(mask).lengths(lengths).key(sequence)), 2, 5, 7);
      assertArrayEquals(new long[] {3, 12}, model.variable("memory/recurrent_kernel").shape());
      assertArrayEquals(new long[] {4}, model.variable("root/scale").shape());
      assertArrayEquals(new long[] {2, 2, 7}, model.variable("look/attention_output/kernel").shape());
      World.fails(DtgException.NotFound.class, () -> model.variable("batch/gamma"), "gamma");
    }
  }

  @Test
  void convolutionsPoolsAndLargerImages() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value sequence = graph.placeholder("sequence", DType.F32, 2, 5, 4);
      Value image = graph.placeholder("image", DType.F32, 2, 8, 6, 4);
      Value volume = graph.placeholder("volume", DType.F32, 2, 5, 8, 6, 4);
      shape(model.conv1d(sequence, new Conv(3).kernel(2).dilation(2)), 2, 3, 3);
      shape(model.conv3d(volume, new Conv(3).kernel(2, 3, 4).stride(1, 2, 1)), 2, 4, 3, 3, 3);
      shape(model.conv2dTranspose(image, new Conv(3).stride(2).padding(Padding.SAME)), 2, 16, 12, 3);
      shape(model.depthwiseConv2d(image, new Conv(0).multiplier(2).activation(Activation.RELU)), 2, 6, 4, 8);
      shape(model.separableConv2d(image, new Conv(5).bias(false)), 2, 6, 4, 5);
      shape(model.globalAvgPool(image, true), 2, 1, 1, 4);
      shape(model.globalMaxPool(volume, false), 2, 4);
      shape(model.upSampling2d(image, 2, 3, false), 2, 16, 18, 4);
      shape(model.upSampling2d(image, 3, 1, true), 2, 24, 6, 4);
      assertArrayEquals(new long[] {2, 3, 4, 4, 3}, model.variable("conv3d/kernel").shape());
      assertArrayEquals(new long[] {1, 1, 4, 5}, model.variable("separable_conv2d/pointwise_kernel").shape());
    }
  }

  /** Places, bags and chance have their shapes; attention step by step gives what it gives at once. */
  @Test
  void placesBagsAndChance() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value sequence = graph.placeholder("sequence", DType.F32, 2, 5, 4);
      Value image = graph.placeholder("image", DType.F32, 2, 8, 6, 4);
      Value ids = graph.placeholder("ids", DType.I64, 2, 3);
      Value lengths = graph.placeholder("lengths", DType.I32, 2);
      Value step = graph.constant(3L);
      shape(model.positionEmbedding(sequence, null), 2, 5, 4);
      shape(model.positionEmbedding(sequence, new PositionEmbedding().learned(true).longest(9)), 2, 5, 4);
      shape(model.embeddingBag(ids, new EmbeddingBag().rows(7).width(6).combiner(Combiner.SQRTN).lengths(lengths)), 2, 6);
      for (Noise kind : Noise.values()) shape(model.noise(sequence, kind, 0.5, step, null), 2, 5, 4);
      shape(model.adaptiveAvgPool(image, 3, 4), 2, 3, 4, 4);
      shape(model.adaptiveMaxPool(sequence, 2), 2, 2, 4);
      World.fails(DtgException.InvalidArgument.class, () -> model.noise(image, Noise.GAUSSIAN_DROPOUT, 1, step, null), "[0, 1)");
      Value whole;
      try (Graph.Scope again = graph.recompute()) {
        whole = model.attention(sequence, sequence, new Attention(2, 3).name("look").causal(true));
      }
      Attention layer = new Attention(2, 3).weightsOf("look");
      Value first = graph.slice(sequence, graph.constant(new int[] {0, 0, 0}, 3), graph.constant(new int[] {2, 4, 4}, 3));
      Value last = graph.slice(sequence, graph.constant(new int[] {0, 4, 0}, 3), graph.constant(new int[] {2, 1, 4}, 3));
      AttentionStep made = model.attentionStep(last, layer, model.attentionCache(first, layer, 5));
      shape(made.output(), 2, 1, 4);
      shape(made.cache().keys(), 2, 5, 2, 3);
      Value init = model.init();
      float[] numbers = new float[40];
      for (int i = 0; i < 40; i++) numbers[i] = i % 7 - 3;
      try (Session session = Session.connect("local", graph); Tensor given = Tensor.of(numbers, 2, 5, 4)) {
        session.run(init);
        try (Results out = session.run().feed(sequence, given).fetch(whole, made.output()).call()) {
          float[] all = out.get(0).toFloats();
          float[] step4 = out.get(1).toFloats();
          for (int b = 0; b < 2; b++) {
            for (int i = 0; i < 4; i++) assertEquals(all[(b * 5 + 4) * 4 + i], step4[b * 4 + i], 1e-5f);
          }
        }
      }
    }
  }

  /** Rows of length 1 and at right angles. */
  @Test
  void orthogonalFirstValues() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Variable w = model.addVariable(new VariableSpec("w", 3, 5).initializer(Initializer.of(Initializer.Kind.ORTHOGONAL)));
      Value square = graph.matMul(w.read(), w.read(), new Ops.MatMulOptions().transposeB(true));
      try (Session session = Session.connect("local", graph)) {
        session.run(w.assign());
        try (Results out = session.run().fetch(square).call()) {
          assertArrayEquals(new float[] {1, 0, 0, 0, 1, 0, 0, 0, 1}, out.get(0).toFloats(), 1e-4f);
        }
      }
    }
  }

  @Test
  void whatDoesNotFitIsRefused() {
    Class<DtgException.InvalidArgument> invalid = DtgException.InvalidArgument.class;
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Value sequence = graph.placeholder("s", DType.F32, 2, 3, 4);
      Value image = graph.placeholder("i", DType.F32, 2, 8, 8, 6);
      Value flag = graph.placeholder("f", DType.F32);
      World.fails(invalid, () -> model.batchNorm(image, new BatchNorm().training(flag)), "bool scalar");
      World.fails(invalid, () -> model.batchNorm(image, new BatchNorm().momentum(2)), "[0, 1]");
      World.fails(invalid, () -> model.groupNorm(image, new Norm().groups(4)), "equal groups");
      World.fails(invalid, () -> model.recurrent(sequence, Recurrent.gru(0)), "at least 1");
      World.fails(invalid, () -> model.recurrent(image, Recurrent.lstm(1)), "rank");
      World.fails(invalid, () -> model.recurrent(sequence, Recurrent.simple(2).cell(image)), "cell");
      World.fails(invalid, () -> model.attention(sequence, sequence, new Attention(0, 1)), "at least 1");
      World.fails(DtgException.NotFound.class, () -> model.attention(sequence, sequence, new Attention(1, 1).weightsOf("nobody")), "nobody");
      World.fails(invalid, () -> model.conv1d(sequence, new Conv(0)), "filters");
      World.fails(invalid, () -> model.conv1d(sequence, new Conv(2).kernel(4)), "does not fit");
      World.fails(invalid, () -> model.conv3d(image, new Conv(2).kernel(1, 2, 3, 4)), "4 kernel sizes", "3 at most");
      World.fails(DtgException.Unimplemented.class, () -> model.conv2dTranspose(image, new Conv(1).dilation(2)), "dilation");
      World.fails(invalid, () -> model.depthwiseConv2d(image, new Conv(0).stride(1, 2)), "equal");
      World.fails(invalid, () -> model.upSampling2d(image, 0, 1, false), "at least 1");
      World.fails(invalid, () -> model.globalMaxPool(null, false));
      assertEquals(0, model.variables().size(), "what was refused leaves no variables");
      model.close();
      World.isClosed(() -> model.layerNorm(sequence, null), "model");
      World.isClosed(() -> model.recurrent(sequence, Recurrent.lstm(1)), "model");
    }
  }
}
