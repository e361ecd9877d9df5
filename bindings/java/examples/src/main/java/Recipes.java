// Recipes.java: ten tasks, each as short as it goes; RECIPES.md shows them one by one. All use the digits of tests/data, images of 8 x 8 and
// what they show. The same in C: capi/examples/recipes.c.
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.ToDoubleFunction;
import org.dtg.*;

class Recipes {
  /** What every recipe has: data, a graph with its inputs, a model. */
  record Work(Dataset data, Graph graph, Model model, Value x, Value y, String file) implements AutoCloseable {
    static Work begin(String path, String label, String file) {
      Graph graph = new Graph();
      return new Work(Dataset.csv(path, new CsvOptions().label(label)).scale(0, 16).shuffle(0, 1).batch(32, true), graph, new Model(graph, 1),
          graph.placeholder("x", DType.F32, -1, 64), graph.placeholder("y", DType.I64, -1), file);
    }

    /** One epoch with Adam; the loss of its last step. */
    float train(Value loss) {
      Training training = model.minimize(loss, Optimizer.adam().rate(0.01).lazy(true)); // of an embedding only the rows that were used move
      try (Session session = Session.connect("local", graph)) {
        session.run(model.init());
        float last = 0;
        for (Results batch : data) {
          last = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(training.train()).callFloat();
        }
        return last;
      }
    }

    Value constant(long... numbers) {
      try (Tensor tensor = Tensor.of(numbers, numbers.length)) {
        return graph.constant(tensor);
      }
    }

    /** The labels as numbers in a column, [batch, 1]. */
    Value column() {
      return graph.reshape(graph.cast(y, DType.F32), constant(-1, 1));
    }

    @Override
    public void close() {
      model.close();
      graph.close();
      data.close();
    }
  }

  /** Regression: a number for each row. Here it is the number that the image shows. */
  static double regression(Work t) {
    Value hidden = t.model().dense(t.x(), new Dense(32).activation(Activation.RELU));
    Value number = t.model().dense(hidden, new Dense(1));
    return t.train(t.model().meanSquaredError(t.column(), number));
  }

  /** An image classifier: convolutions over [batch, height, width, channels]. */
  static double images(Work t) {
    Value image = t.graph().reshape(t.x(), t.constant(-1, 8, 8, 1));
    Value convolved = t.model().conv2d(image, new Conv2D(8).padding(Padding.SAME).activation(Activation.RELU));
    Value logits = t.model().dense(t.model().flatten(t.model().maxPool2d(convolved, new Pool2D())), new Dense(10));
    return t.train(t.model().sparseSoftmaxCrossEntropy(t.y(), logits));
  }

  /** Embeddings: a vector per number, learned. Here one for each digit, from which its image is to be drawn. */
  static double embeddings(Work t) {
    Value vector = t.model().embedding(t.y(), new Embedding(10, 4));
    Value drawn = t.model().dense(vector, new Dense(64).activation(Activation.SIGMOID));
    return t.train(t.model().meanSquaredError(t.x(), drawn));
  }

  /** Texts that are fed: a vocabulary gives them numbers, row 0 of the table is for all that it does not know. Here the names of digits. */
  static double texts(Work t) {
    String[] words = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
    try (Tensor vocabulary = Tensor.of(words, 10)) {
      // Instead of this a program has a placeholder of DType.STRING.
      Value fed = t.model().lookup(t.y(), new Lookup(vocabulary).invert(true).noOov(true));
      Value numbers = t.model().lookup(fed, new Lookup(vocabulary));
      Value vector = t.model().embedding(numbers, new Embedding(11, 4));
      Value drawn = t.model().dense(vector, new Dense(64).activation(Activation.SIGMOID));
      return t.train(t.model().meanSquaredError(t.x(), drawn));
    }
  }

  /** One-hot: a column whose numbers stand for names becomes as many columns of 0 and 1. Here pixel 20, as if its 17 shades were names. */
  static double oneHot(Work t) {
    Graph graph = t.graph();
    Value axis = graph.constant(1);
    List<Value> parts = graph.splitV(t.x(), t.constant(20, 1, 43), axis, 3);
    Value names = graph.cast(graph.mul(parts.get(1), graph.constant(16f)), DType.I64); // all columns were divided by that
    Value columns = graph.reshape(graph.oneHot(names, graph.constant(17), graph.constant(1f), graph.constant(0f)), t.constant(-1, 17));
    Value all = graph.concatV2(List.of(parts.get(0), columns, parts.get(2)), axis);
    return t.train(t.model().sparseSoftmaxCrossEntropy(t.y(), t.model().dense(all, new Dense(10))));
  }

  /** Several outputs: one trunk, two heads, one loss that is the sum of theirs. */
  static double outputs(Work t) {
    Value hidden = t.model().dense(t.x(), new Dense(32).activation(Activation.RELU));
    Value logits = t.model().dense(hidden, new Dense(10));
    Value number = t.model().dense(hidden, new Dense(1));
    Value first = t.model().sparseSoftmaxCrossEntropy(t.y(), logits);
    Value second = t.model().meanSquaredError(t.column(), number);
    return t.train(t.graph().addV2(first, second));
  }

  /** A loss of one's own: any nodes that end in a scalar. Here log(cosh(error)), which outliers pull less. */
  static double ownLoss(Work t) {
    Value number = t.model().dense(t.x(), new Dense(1));
    Value distance = t.graph().log(t.graph().cosh(t.graph().sub(number, t.column())));
    return t.train(t.graph().mean(distance, t.constant(0, 1)));
  }

  /** A sequence: an image read row by row, 8 steps of 8 numbers, by an LSTM. Steps beyond the last row with ink do not count. */
  static double sequences(Work t) {
    Graph graph = t.graph();
    Value steps = graph.reshape(t.x(), t.constant(-1, 8, 8));
    Value ink = graph.sign(graph.sum(steps, t.constant(2)));
    Value last = graph.max(graph.mul(ink, graph.constant(new float[] {1, 2, 3, 4, 5, 6, 7, 8})), t.constant(1));
    RecurrentResult read = t.model().recurrent(steps, Recurrent.lstm(32).lengths(graph.cast(last, DType.I64)));
    Value logits = t.model().dense(read.hidden(), new Dense(10));
    return t.train(t.model().sparseSoftmaxCrossEntropy(t.y(), logits));
  }

  /** A switch: dropout and batch normalization do their work in training only. It is off unless a run feeds it, so who serves need not know. */
  static double switched(Work t) {
    Model model = t.model();
    Value training = t.graph().placeholderWithDefault(t.graph().constant(false), new long[0]);
    Value hidden = model.dense(t.x(), new Dense(32).activation(Activation.RELU));
    Value normal = model.batchNorm(hidden, new BatchNorm().training(training));
    Value dropped = model.dropout(normal, 0.2, model.globalStep().read(), training);
    Value logits = model.dense(dropped, new Dense(10));
    Value train = model.minimize(model.sparseSoftmaxCrossEntropy(t.y(), logits), null).train();
    try (Session session = Session.connect("local", t.graph()); Tensor yes = Tensor.scalar(true)) {
      session.run(model.init());
      Results last = null;
      for (Results batch; (batch = t.data().next()) != null; last = batch) {
        if (last != null) last.close();
        session.run().feed(t.x(), batch.get(0)).feed(t.y(), batch.get(1)).feed(training, yes).targets(train).call().close();
      }
      // Served from a file; the last batch once more, with the switch off.
      model.export(session, t.file(), new Export().input("pixels", t.x()).output("scores", logits));
      try (Model.Loaded served = Model.load(t.file()); Results seen = last;
          Results found = served.session().run().feed(served.model().endpoint("pixels"), seen.get(0))
              .fetch(served.model().endpoint("scores")).call()) {
        return found.get(0).getFloat(0);
      }
    }
  }

  /** Serving from many threads: one prepared run, called by all of them at once. */
  static double serving(Work t) {
    Value chances = t.model().dense(t.x(), new Dense(10).activation(Activation.SOFTMAX));
    ExecutorService clients = Executors.newFixedThreadPool(4);
    try (Session session = Session.connect("local", t.graph())) {
      session.run(t.model().init());
      try (PreparedRun ask = session.prepare(List.of(t.x()), List.of(chances), List.of()); Results batch = t.data().next()) {
        List<Future<Float>> sums = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          sums.add(clients.submit(() -> {
            float sum = 0;
            for (int k = 0; k < 100; k++) {
              try (Results answer = ask.run(batch.get(0))) {
                sum += answer.get(0).getFloat(0);
              }
            }
            return sum;
          }));
        }
        float all = 0;
        for (Future<Float> sum : sums) all += sum.get();
        return all;
      }
    } catch (java.util.concurrent.ExecutionException | InterruptedException e) {
      throw new IllegalStateException(e);
    } finally {
      clients.shutdown();
    }
  }

  public static void main(String[] args) {
    String path = args.length > 0 ? args[0] : "tests/data/digits.csv.gz";
    String file = args.length > 1 ? args[1] : "recipe.dtg";
    List<String> names = List.of("regression", "images", "embeddings", "texts", "one-hot", "outputs", "own loss", "sequences", "a switch", "serving");
    List<ToDoubleFunction<Work>> recipes =
        List.of(Recipes::regression, Recipes::images, Recipes::embeddings, Recipes::texts, Recipes::oneHot, Recipes::outputs, Recipes::ownLoss, Recipes::sequences,
            Recipes::switched, Recipes::serving);
    for (int i = 0; i < names.size(); i++) {
      try (Work t = Work.begin(path, "c64", file)) {
        System.out.printf(Locale.ROOT, "%s: %.4f%n", names.get(i), recipes.get(i).applyAsDouble(t));
      }
    }
  }
}
