// FirstHour.java: what one types in the first hour: data in two parts, a model, training, a test, and the trained model served from one file.
// FIRST_HOUR.md goes through it; the same in C: capi/examples/first_hour.c.
import java.util.Locale;
import org.dtg.*;

class FirstHour {
  public static void main(String[] args) {
    String path = args.length > 0 ? args[0] : "tests/data/digits.csv.gz", file = args.length > 1 ? args[1] : "digits.dtg";

    // Data: one file in two parts. What is fitted is fitted on the training part.
    try (Dataset data = Dataset.csv(path, new CsvOptions().label("c64")); // the last column; all others together are the features
        Dataset.Parts parts = data.split(new Split().fraction(0.2).seed(1).stratify(1));
        Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      String numbers = parts.train().fitNormalization(0, Dataset.Normalization.STANDARD);
      Dataset train = parts.train().shuffle(0, 1).batch(32, true);
      Dataset test = parts.heldOut().batch(1000, false);

      // A model: what is fed, layers, a loss, an optimizer.
      Value x = graph.placeholder("x", DType.F32, -1, 64);
      Value y = graph.placeholder("y", DType.I64, -1);
      Value hidden = model.dense(model.normalize(x, numbers), new Dense(32).activation(Activation.RELU));
      Value logits = model.dense(hidden, new Dense(10));
      Value loss = model.sparseSoftmaxCrossEntropy(y, logits);
      Value accuracy = model.accuracy(y, logits);
      Training training = model.minimize(loss, Optimizer.adamW(0).rate(0.003));

      // Training: one run per step.
      try (Session session = Session.connect("local", graph)) {
        session.run(model.init());
        for (int epoch = 1; epoch <= 5; epoch++) {
          float now = 0;
          for (Results batch : train) {
            now = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(training.train()).callFloat();
          }
          System.out.printf(Locale.ROOT, "epoch %d: loss %.4f%n", epoch, now);
        }

        // A test with what it has never seen.
        try (Results seen = test.next()) {
          float right = session.run().feed(x, seen.get(0)).feed(y, seen.get(1)).fetch(accuracy).callFloat();
          System.out.printf(Locale.ROOT, "right: %.4f%n", right);

          // The trained model as one file, served without what built it.
          Value digit = graph.argMax(logits, graph.constant(1));
          model.export(session, file, new Export().input("pixels", x).output("digit", digit));
          try (Model.Loaded served = Model.load(file);
              Results found = served.session().run().feed(served.model().endpoint("pixels"), seen.get(0))
                  .fetch(served.model().endpoint("digit")).call()) {
            for (int i = 0; i < 5; i++) {
              System.out.println("a " + seen.get(1).getLong(i) + ", taken for a " + found.get(0).getLong(i));
            }
          }
        }
      }
    }
  }
}
