// Fit.java: a small network learns handwritten digits by Trainer.fit: epochs, validation, early stopping, a checkpoint after each epoch. Killed
// and started again it goes on where it was. Fit [DIGITS [DIRECTORY [EPOCHS]]]: what comes of it is in DIRECTORY. The same in C: capi/examples/fit.c.
import java.util.Locale;
import org.dtg.*;

class Fit {
  /** One line an epoch; a program with a terminal may draw a bar from the events of steps. */
  static void tell(FitEvent event) {
    System.out.printf(Locale.ROOT, "epoch %d:", event.epoch());
    event.values().forEach((name, value) -> System.out.printf(Locale.ROOT, " %s %.4f", name, value));
    System.out.println();
  }

  public static void main(String[] args) {
    String path = args.length > 0 ? args[0] : "tests/data/digits.csv.gz", directory = args.length > 1 ? args[1] : null;
    try (Dataset rows = Dataset.csv(path, new CsvOptions().label("c64")); Dataset.Parts parts = rows.split(new Split());
        Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      Dataset train = parts.train().scale(0, 16).shuffle(0, 1).batch(32, false);
      Dataset test = parts.heldOut().scale(0, 16).batch(100, false);
      Value x = graph.placeholder("x", DType.F32, -1, 64), y = graph.placeholder("y", DType.I64, -1);
      Value logits = model.dense(model.dense(x, new Dense(32).activation(Activation.RELU)), new Dense(10));
      Value loss = model.sparseSoftmaxCrossEntropy(y, logits);
      MetricValues accuracy = model.metric(y, logits, new Metric(Metric.Kind.SPARSE_CATEGORICAL_ACCURACY));
      TrainerOptions what = new TrainerOptions().feeds(x, y).outputs(logits).loss(loss).optimizer(Optimizer.adam().rate(0.003));
      try (Trainer trainer = new Trainer(model, what.metric("accuracy", accuracy))) {
        FitOptions how = new FitOptions().epochs(args.length > 2 ? Long.parseLong(args[2]) : 5).validation(test).directory(directory);
        how.earlyStopping(new EarlyStopping().patience(3).restoreBest(true)).on(FitEvent.Kind.EPOCH_END, Fit::tell);
        trainer.fit(train, how);
      }
    }
  }
}
