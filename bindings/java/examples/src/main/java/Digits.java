// Digits.java: a small network learns handwritten digits through a server of this process. The same in C: capi/examples/digits.c.
import java.math.BigDecimal;
import java.math.RoundingMode;
import org.dtg.*;

class Digits {
  public static void main(String[] args) {
    String path = args.length > 0 ? args[0] : "tests/data/digits.csv.gz";
    try (Dataset data = Dataset.csv(path, new CsvOptions().label("c64")); Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      data.scale(0, 16).shuffle(0, 1).repeat(-1).batch(64, true);
      Value x = graph.placeholder("x", DType.F32, -1, 64), y = graph.placeholder("y", DType.I64, -1);
      Value hidden = model.dense(x, new Dense(32).activation(Activation.RELU));
      Value loss = model.sparseSoftmaxCrossEntropy(y, model.dense(hidden, new Dense(10)));
      Training training = model.minimize(loss, Optimizer.sgd().rate(0.1));
      try (Cluster cluster = Cluster.parse("worker=127.0.0.1:0"); Server server = Server.start(cluster, null);
          Session session = Session.connect(server.target(), graph)) {
        session.run(model.init());
        for (int step = 1; step <= 200; step++) {
          try (Results batch = data.next()) {
            float last = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(training.train()).callFloat();
            if (step % 40 == 0) System.out.println("step " + step + ": loss " + new BigDecimal(last).setScale(6, RoundingMode.HALF_EVEN));
          }
        }
      }
    }
  }
}
