// The layers of a model: each adds nodes to its graph, and the variables that it needs. One thread at a time, the one that builds the graph.

package org.dtg;

import java.util.function.LongUnaryOperator;

/** The half of {@link Model} that is layers. */
abstract sealed class Layers extends Handle permits Model {
  final Graph graph;

  Layers(Graph graph, long address) {
    super(Kind.MODEL, address);
    this.graph = graph;
  }

  final Value value(long id) {
    return new Value(graph, id);
  }

  /** What a native adds to the model, which stays open until it has. */
  private Value add(LongUnaryOperator what) {
    return build(mine -> value(what.applyAsLong(mine)));
  }

  /**
   * A fully connected layer.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value dense(Value x, Dense layer) {
    return add(mine -> Native.nnDense(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes()));
  }

  /**
   * A convolution of x[batch, height, width, in].
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value conv2d(Value x, Conv2D layer) {
    return add(mine -> Native.nnConv2d(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes()));
  }

  /**
   * The greatest element of each window.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value maxPool2d(Value x, Pool2D layer) {
    return add(mine -> Native.nnPool2d(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes(), false));
  }

  /**
   * The mean of each window, padding not counted.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value avgPool2d(Value x, Pool2D layer) {
    return add(mine -> Native.nnPool2d(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes(), true));
  }

  /**
   * Rows of a table.
   *
   * @param x int32 or int64 ids
   * @param layer its options
   * @return what comes out
   */
  public Value embedding(Value x, Embedding layer) {
    return add(mine -> Native.nnEmbedding(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes()));
  }

  /**
   * Rows of a table in shards, each looked up where its shard stands.
   *
   * @param x int32 or int64 ids
   * @param layer its options
   * @param partitioner into how many shards the table is cut
   * @return what comes out
   */
  public Value shardedEmbedding(Value x, Embedding layer, Partitioner partitioner) {
    byte[] how = given(partitioner, "partitioner").packet().append(given(layer, "layer").packet()).bytes();
    return add(mine -> Native.shardedEmbedding(mine, Value.id(x, "x"), how));
  }

  /**
   * Rows of a variable in shards, as tf.nn.embedding_lookup with the partition strategy "div". Gradients are rows.
   *
   * @param name of the variable
   * @param x int32 or int64 ids
   * @return what comes out
   */
  public Value shardedLookup(String name, Value x) {
    return add(mine -> Native.shardedLookup(mine, Native.utf8(given(name, "name")), Value.id(x, "x")));
  }

  /**
   * All of a variable in shards as one value; each run that uses it moves all of them.
   *
   * @param name of the variable
   * @return what comes out
   */
  public Value shardedValue(String name) {
    return add(mine -> Native.shardedLookup(mine, Native.utf8(given(name, "name")), 0));
  }

  /**
   * x as [batch, everything else].
   *
   * @param x what goes in
   * @return what comes out
   */
  public Value flatten(Value x) {
    return add(mine -> Native.nnFlatten(mine, Value.id(x, "x")));
  }

  /**
   * Sets a share of the elements to zero and scales the rest up; decided anew for each step, so that a run can be repeated.
   *
   * @param x what goes in
   * @param rate the share, in [0, 1)
   * @param step an int64 scalar
   * @param training a bool scalar, false lets x through; null: always true
   * @return what comes out
   */
  public Value dropout(Value x, double rate, Value step, Value training) {
    return add(mine -> Native.nnDropout(mine, Value.id(x, "x"), rate, Value.id(step, "step"), Value.id(training)));
  }

  /**
   * x as float32, (x - shift) / scale for each feature along its last dimension. In the graph it is part of what is exported and served.
   *
   * @param x what goes in
   * @param normalization what {@link Dataset#fitNormalization} found
   * @return what comes out
   */
  public Value normalize(Value x, String normalization) {
    return add(mine -> Native.nnNormalize(mine, Value.id(x, "x"), Native.utf8(normalization)));
  }

  /**
   * x through an activation.
   *
   * @param x what goes in
   * @param activation which
   * @return what comes out
   */
  public Value activation(Value x, Activation activation) {
    return add(mine -> Native.nnActivation(mine, Value.id(x, "x"), given(activation, "activation").ordinal()));
  }

  // ---- normalization ----

  /**
   * gamma * (x - mean) / sqrt(variance + epsilon) + beta for each channel: while training, with mean and variance of the batch over all
   * dimensions but the last; otherwise with the moving ones. Each step of {@link Model#minimize} and its kin moves those by 1 - momentum of the
   * way to the batch's, whatever the optimizer; with several workers or towers, to the mean of theirs. A step that is run without training
   * leaves them as they are.
   *
   * @param x x[batch, ..., channels], rank 2 to 8
   * @param layer its options; null: all defaults
   * @return what comes out
   */
  public Value batchNorm(Value x, BatchNorm layer) {
    byte[] options = (layer == null ? new BatchNorm() : layer).packet().bytes();
    return add(mine -> Native.nnBatchNorm(mine, Value.id(x, "x"), options));
  }

  /**
   * gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each vector along the last dimension.
   *
   * @param x what goes in, rank 1 to 8
   * @param layer its options; null: all defaults
   * @return what comes out
   */
  public Value layerNorm(Value x, Norm layer) {
    return norm(0, x, layer);
  }

  /**
   * scale * x / sqrt(mean of x squared + epsilon), likewise.
   *
   * @param x what goes in, rank 1 to 8
   * @param layer its options; null: all defaults
   * @return what comes out
   */
  public Value rmsNorm(Value x, Norm layer) {
    return norm(1, x, layer);
  }

  /**
   * As layer normalization, with mean and variance of each example and each of equal groups of channels; as many groups as channels is instance
   * normalization.
   *
   * @param x x[batch, ..., channels], rank 2 to 8
   * @param layer its options; null: all defaults
   * @return what comes out
   */
  public Value groupNorm(Value x, Norm layer) {
    return norm(2, x, layer);
  }

  private Value norm(int which, Value x, Norm layer) {
    byte[] options = (layer == null ? new Norm() : layer).packet().bytes();
    return add(mine -> Native.nnNorm(mine, which, Value.id(x, "x"), options));
  }

  // ---- sequences ----

  /**
   * Runs over the steps of x[batch, steps, in]. An LSTM is one node; the others are a loop, whose products with x are made before it for all
   * steps at once.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public RecurrentResult recurrent(Value x, Recurrent layer) {
    return build(mine -> RecurrentResult.of(graph, Native.nnRecurrent(mine, Value.id(x, "x"), given(layer, "layer").packet().bytes())));
  }

  /**
   * For each head softmax(q k' / sqrt(key width)) v with projections q of the query, k of the key and v of the value, the heads side by side
   * projected to [batch, queries, output width]. What the mask, the lengths or a causal layer hide has no weight. Query, key and value are of
   * one floating-point type; self-attention gives the same value for all.
   *
   * @param query [batch, queries, in]
   * @param value [batch, keys, in']
   * @param layer its options
   * @return what comes out
   */
  public Value attention(Value query, Value value, Attention layer) {
    return add(mine -> Native.nnAttention(mine, Value.id(query, "query"), Value.id(value, "value"), given(layer, "layer").packet().bytes()));
  }

  // ---- more convolutions; the numbers are those of native/layers.c ----

  /**
   * A convolution over the steps of x[batch, steps, in]: kernel[width, in, filters]. As tf.keras.layers.Conv1D, channels last.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value conv1d(Value x, Conv layer) {
    return conv(0, x, layer);
  }

  /**
   * A convolution of x[batch, depth, height, width, in]. As tf.keras.layers.Conv3D, channels last.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value conv3d(Value x, Conv layer) {
    return conv(1, x, layer);
  }

  /**
   * What the gradient of a convolution does, as a layer: x[batch, height, width, in] becomes size * stride pixels high and wide, with
   * {@link Padding#VALID} kernel - stride more where that is positive. Dilations other than 1 are {@link DtgException.Unimplemented}. As
   * tf.keras.layers.Conv2DTranspose, channels last.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value conv2dTranspose(Value x, Conv layer) {
    return conv(2, x, layer);
  }

  /**
   * Each channel of x[batch, height, width, in] by itself: [..., in * multiplier]. Both strides are equal. As
   * tf.keras.layers.DepthwiseConv2D, channels last.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value depthwiseConv2d(Value x, Conv layer) {
    return conv(3, x, layer);
  }

  /**
   * The same, then a product over the channels: "depthwise_kernel" and "pointwise_kernel". As tf.keras.layers.SeparableConv2D, channels last.
   *
   * @param x what goes in
   * @param layer its options
   * @return what comes out
   */
  public Value separableConv2d(Value x, Conv layer) {
    return conv(4, x, layer);
  }

  private Value conv(int which, Value x, Conv layer) {
    return add(mine -> Native.nnConv(mine, which, Value.id(x, "x"), given(layer, "layer").packet().bytes()));
  }

  // ---- places, bags, chance ----

  /**
   * The cache of places of a sequence, for attention step by step: in a loop of the graph that is {@link Graph#whileLoop} with the cache among
   * what it carries, and steps by {@link Model#inside} of its body. The example {@code Models} writes so, by beam search.
   *
   * @param value [batch, places, in]
   * @param layer heads and widths; give it the weightsOf of the layer that was trained
   * @param longest places that there is room for in all; 0: those only, as for an encoder's
   * @return the cache
   */
  public AttentionCache attentionCache(Value value, Attention layer, long longest) {
    return build(mine -> AttentionCache.of(graph, Native.nnAttentionCache(mine, Value.id(value, "value"), given(layer, "layer").packet().bytes(), longest), 0));
  }

  /**
   * What attention gives for the next places, with their keys and values written into the cache, and each seeing all up to its own. Places
   * that do not fit are an error of the run. A loop that decodes calls it on {@link Model#inside} of its body.
   *
   * @param query [batch, places, in]
   * @param layer heads and widths, with weightsOf
   * @param cache what was there before
   * @return the output, and the cache as it is then
   */
  public AttentionStep attentionStep(Value query, Attention layer, AttentionCache cache) {
    return build(mine -> {
      long[] made =
          Native.nnAttentionStep(mine, Value.id(query, "query"), given(layer, "layer").packet().bytes(), given(cache, "cache").ids());
      return new AttentionStep(Value.orNull(graph, made[0]), AttentionCache.of(graph, made, 1));
    });
  }

  /**
   * x[batch, steps, width] plus the vector of each step's place. As keras_hub's SinePositionEncoding and PositionEmbedding.
   *
   * @param x what goes in
   * @param layer its options; null: a sine
   * @return what comes out
   */
  public Value positionEmbedding(Value x, PositionEmbedding layer) {
    byte[] options = (layer == null ? new PositionEmbedding() : layer).packet().bytes();
    return add(mine -> Native.nnPositionEmbedding(mine, Value.id(x, "x"), options));
  }

  /**
   * One row [batch, width] per bag of ids. Beyond a bag's length nothing is looked up, and no row gets a gradient; an empty bag gives zeros.
   *
   * @param ids int32 or int64 [batch, places]
   * @param layer its options
   * @return what comes out
   */
  public Value embeddingBag(Value ids, EmbeddingBag layer) {
    return add(mine -> Native.nnEmbeddingBag(mine, Value.id(ids, "ids"), given(layer, "layer").packet().bytes()));
  }

  /**
   * The bin of each element of x, of any shape: strings, or integers up to int64.
   *
   * @param x what goes in
   * @param layer its options
   * @return int64 like x, or rows of float32
   */
  public Value hashing(Value x, Hashing layer) {
    Tensor mask = given(layer, "layer").maskValue;
    long held = hold(mask);
    try {
      return add(mine -> Native.nnHashing(mine, Value.id(x, "x"), layer.packet(held).bytes()));
    } finally {
      drop(mask);
    }
  }

  /**
   * The number of each element of x, of any shape; inverted, the token of each number.
   *
   * @param x strings or integers, as the vocabulary is; inverted, integers
   * @param layer its options
   * @return int64 like x, or rows of float32; inverted, tokens
   */
  public Value lookup(Value x, Lookup layer) {
    Handle[] tensors = {given(given(layer, "layer").vocabulary, "vocabulary"), layer.maskToken, layer.oovToken};
    long[] held = hold(tensors);
    try {
      return add(mine -> Native.nnLookup(mine, Value.id(x, "x"), layer.packet(held).bytes()));
    } finally {
      drop(tensors);
    }
  }

  /**
   * x with noise, decided anew for each step, so that a run can be repeated.
   *
   * @param x what goes in
   * @param kind what is drawn
   * @param amount the share, in [0, 1), or the deviation
   * @param step an int64 scalar
   * @param training a bool scalar, false lets x through; null: always true
   * @return what comes out
   */
  public Value noise(Value x, Noise kind, double amount, Value step, Value training) {
    int which = given(kind, "kind").ordinal();
    return add(mine -> Native.nnNoise(mine, Value.id(x, "x"), which, amount, Value.id(step, "step"), Value.id(training)));
  }

  // ---- smaller and larger ----

  /**
   * The mean of each channel over all that lies between: [batch, channels]. As tf.keras.layers.GlobalAveragePooling1D, 2D, 3D.
   *
   * @param x x[batch, ..., channels], floating-point, of rank 3 to 5
   * @param keepDims with dimensions of 1 in place of those that go
   * @return what comes out
   */
  public Value globalAvgPool(Value x, boolean keepDims) {
    return add(mine -> Native.nnGlobalPool(mine, Value.id(x, "x"), keepDims, false));
  }

  /**
   * The greatest of each channel, likewise; equally great ones share the gradient. As tf.keras.layers.GlobalMaxPooling1D, 2D, 3D.
   *
   * @param x x[batch, ..., channels], floating-point, of rank 3 to 5
   * @param keepDims with dimensions of 1 in place of those that go
   * @return what comes out
   */
  public Value globalMaxPool(Value x, boolean keepDims) {
    return add(mine -> Native.nnGlobalPool(mine, Value.id(x, "x"), keepDims, true));
  }

  /**
   * So many entries along each dimension between, each the mean of its share of them. As tf.keras.layers.AdaptiveAveragePooling1D, 2D, 3D.
   *
   * @param x x[batch, ..., channels] of known dimensions, rank 3 to 5
   * @param sizes entries along each dimension between
   * @return what comes out
   */
  public Value adaptiveAvgPool(Value x, long... sizes) {
    return add(mine -> Native.nnAdaptivePool(mine, Value.id(x, "x"), given(sizes, "sizes"), false));
  }

  /**
   * The greatest, likewise; equally great ones share the gradient.
   *
   * @param x x[batch, ..., channels] of known dimensions, rank 3 to 5
   * @param sizes entries along each dimension between
   * @return what comes out
   */
  public Value adaptiveMaxPool(Value x, long... sizes) {
    return add(mine -> Native.nnAdaptivePool(mine, Value.id(x, "x"), given(sizes, "sizes"), true));
  }

  /**
   * Larger images: each pixel repeated, or mixed from its neighbours by distance of their centres. As tf.keras.layers.UpSampling2D.
   *
   * @param x x[batch, height, width, channels]
   * @param high times as high, at least 1
   * @param wide times as wide, at least 1
   * @param bilinear whether pixels are mixed
   * @return what comes out
   */
  public Value upSampling2d(Value x, long high, long wide, boolean bilinear) {
    return add(mine -> Native.nnUpSampling2d(mine, Value.id(x, "x"), high, wide, bilinear));
  }

  // ---- losses and metrics ----

  /**
   * A loss: a scalar, but with EACH one value for each example. Labels have the shape of the predictions and any type of number; of
   * SPARSE_CATEGORICAL_CROSSENTROPY they are integers.
   *
   * @param labels what is right
   * @param predictions what the model says
   * @param loss which; null: the mean squared error
   * @return the loss
   */
  public Value loss(Value labels, Value predictions, Loss loss) {
    Loss what = loss == null ? new Loss(Loss.Kind.MEAN_SQUARED_ERROR) : loss;
    byte[] packet = what.packet().bytes();
    long weights = Value.id(what.sampleWeights);
    return add(mine -> Native.nnLoss(mine, Value.id(labels, "labels"), Value.id(predictions, "predictions"), weights, packet));
  }

  /**
   * The mean of max(|a - p|^2 - |a - n|^2 + margin, 0), distances over the last dimension.
   *
   * @param anchor a
   * @param positive p, of the anchor's kind
   * @param negative n, of another
   * @param margin 0: 1
   * @return a scalar
   */
  public Value tripletLoss(Value anchor, Value positive, Value negative, double margin) {
    return add(
        mine -> Native.nnTripletLoss(mine, Value.id(anchor, "anchor"), Value.id(positive, "positive"), Value.id(negative, "negative"), margin));
  }

  /**
   * A loss + the sum of l1 |v| + l2 v^2 over variables.
   *
   * @param loss a floating-point scalar
   * @param l1 not negative
   * @param l2 not negative
   * @param variables which; none: every trainable one of rank 2 or more
   * @return a scalar
   */
  public Value regularize(Value loss, double l1, double l2, Variable... variables) {
    long[] handles = new long[variables.length];
    for (int i = 0; i < handles.length; ++i) handles[i] = Value.id(given(variables[i], "variable").handle(), "handle");
    return add(mine -> Native.nnRegularize(mine, Value.id(loss, "loss"), handles, l1, l2));
  }

  /**
   * The loss of x[batch, width] over classes that are sampled in each step. Gradients are rows.
   *
   * @param labels true classes [batch] or [batch, trues], int32 or int64
   * @param x what goes in, float32
   * @param loss its options
   * @return the loss
   */
  public Value sampledLoss(Value labels, Value x, SampledLoss loss) {
    byte[] packet = given(loss, "loss").packet().bytes();
    return add(mine -> Native.nnSampledLoss(mine, Value.id(labels, "labels"), Value.id(x, "x"), packet));
  }

  /**
   * A metric over as many batches as one likes. Run reset (or the model's init) first and update with each batch. State is sums in float64, so
   * that batches, towers and workers add up exactly.
   *
   * @param labels what is right; null for MEAN and SUM
   * @param predictions what the model says
   * @param metric which
   * @return what was added
   */
  public MetricValues metric(Value labels, Value predictions, Metric metric) {
    byte[] packet = given(metric, "metric").packet().bytes();
    byte[] loss = metric.loss == null ? null : metric.loss.packet().bytes();
    long[] values = {Value.id(labels), Value.id(predictions, "predictions"), Value.id(metric.sampleWeights)};
    return build(mine -> MetricValues.of(graph, Native.nnMetric(mine, values, packet, loss)));
  }
}
