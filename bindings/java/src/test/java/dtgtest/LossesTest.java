// Losses and metrics: a value that is known, weights, rows of sampled classes that learn, a metric over batches, and what is refused.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LossesTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static Loss sparse() {
    return new Loss(Loss.Kind.SPARSE_CATEGORICAL_CROSSENTROPY).fromLogits(true);
  }

  @Test
  void lossesAreWhatTheySay() {
    try (Graph graph = new Graph();
        Model model = new Model(graph, 3);
        Tensor zeros = Tensor.of(new float[12], 4, 3);
        Tensor classes = Tensor.of(new int[] {0, 1, 2, 1});
        Tensor counts = Tensor.of(new float[] {1, 1, 2, 0})) {
      Value logits = graph.placeholder("logits", DType.F32, -1, 3);
      Value labels = graph.placeholder("labels", DType.I32, -1);
      Value weights = graph.placeholder("weights", DType.F32, -1);
      Value mean = model.loss(labels, logits, sparse().sampleWeights(weights));
      Value sum = model.loss(labels, logits, sparse().sampleWeights(weights).reduction(Loss.Reduction.SUM));
      Value ignoring = model.loss(labels, logits, sparse().ignoreClass(2L));
      Value triplet = model.tripletLoss(logits, logits, logits, 0.25);
      Value words = model.sampledLoss(labels, logits, new SampledLoss(SampledLoss.Kind.SAMPLED_SOFTMAX, 50, 6));
      Value total = model.regularize(model.regularize(words, 0, 1e-4), 0, 1e-4, model.variable("sampled_softmax/weights"));
      Value train = model.minimize(total, Optimizer.sgd().rate(0.5)).train();
      MetricValues metric = model.metric(labels, logits, new Metric(Metric.Kind.LOSS).loss(sparse()).sampleWeights(weights));
      Value init = model.init();
      try (Session session = Session.connect("local", graph)) {
        session.run(init);
        double log3 = Math.log(3);
        assertEquals(log3, run(session, logits, zeros, labels, classes, weights, counts).fetch(mean).callFloat(), 1e-5);
        assertEquals(4 * log3, run(session, logits, zeros, labels, classes, weights, counts).fetch(sum).callFloat(), 1e-5);
        assertEquals(log3, run(session, logits, zeros, labels, classes, weights, counts).fetch(ignoring).callFloat(), 1e-5);
        assertEquals(0.25, run(session, logits, zeros, labels, classes, weights, counts).fetch(triplet).callFloat(), 1e-5);
        float first = run(session, logits, zeros, labels, classes, weights, counts).fetch(total).callFloat();
        for (int i = 0; i < 30; i++) run(session, logits, zeros, labels, classes, weights, counts).targets(train).call().close();
        assertTrue(run(session, logits, zeros, labels, classes, weights, counts).fetch(total).callFloat() < first);
        Run last = run(session, logits, zeros, labels, classes, weights, counts).targets(metric.update());
        assertEquals(log3, last.fetch(metric.result()).callFloat(), 1e-5);
      }
      DtgException swapped = assertThrows(DtgException.class, () -> model.loss(logits, labels, sparse()));
      assertTrue(swapped.getMessage().contains("labels and logits look swapped"), swapped.getMessage());
    }
  }

  private static Run run(Session session, Value a, Tensor x, Value b, Tensor y, Value c, Tensor z) {
    return session.run().feed(a, x).feed(b, y).feed(c, z);
  }

  @Test
  void metricsGoOnOverBatches() {
    try (Graph graph = new Graph();
        Model model = new Model(graph, 3)) {
      Value scores = graph.placeholder("scores", DType.F32, -1);
      Value labels = graph.placeholder("labels", DType.F32, -1);
      MetricValues area = model.metric(labels, scores, new Metric(Metric.Kind.AUC));
      MetricValues precision = model.metric(labels, scores, new Metric(Metric.Kind.PRECISION).threshold(0.25));
      MetricValues mean = model.metric(null, scores, new Metric(Metric.Kind.MEAN));
      try (Session session = Session.connect("local", graph)) {
        for (MetricValues each : new MetricValues[] {area, precision, mean}) session.run(each.reset());
        float[][][] batches = {{{0.1f, 0.8f, 0.3f}, {0, 1, 0}}, {{0.9f}, {1}}};
        for (float[][] batch : batches) {
          try (Tensor p = Tensor.of(batch[0]);
              Tensor y = Tensor.of(batch[1])) {
            session.run().feed(scores, p).feed(labels, y).targets(area.update(), precision.update(), mean.update()).call().close();
          }
        }
        assertEquals(1, session.run().fetch(area.result()).callFloat(), 1e-6);
        assertEquals(2.0 / 3, session.run().fetch(precision.result()).callFloat(), 1e-6);
        assertEquals(2.1 / 4, session.run().fetch(mean.result()).callFloat(), 1e-6);
      }
    }
  }
}
