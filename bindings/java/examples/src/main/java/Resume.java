// Resume.java: training that can be stopped at any time. The same in C: capi/examples/resume.c. Resume DIGITS DIR STEPS
import java.math.BigDecimal;
import java.math.RoundingMode;
import org.dtg.*;

class Resume {
  public static void main(String[] args) {
    long steps = Long.parseLong(args[2]);
    try (Dataset data = Dataset.csv(args[0], new CsvOptions().label("c64")); Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      data.scale(0, 16).shuffle(0, 1).repeat(-1).batch(64, true);
      Value x = graph.placeholder("x", DType.F32, -1, 64), y = graph.placeholder("y", DType.I64, -1);
      Value hidden = model.dense(x, new Dense(32).activation(Activation.RELU));
      Value loss = model.sparseSoftmaxCrossEntropy(y, model.dense(hidden, new Dense(10)));
      Training training = model.minimize(loss, Optimizer.adam().rate(0.002));
      CheckpointOptions options = new CheckpointOptions().every(50);
      try (Session session = Session.connect("local", graph); Checkpoint sets = new Checkpoint(model, session, args[1], options)) {
        sets.addData("train", data);
        long step = sets.resume().step();
        float last = 0;
        System.out.println("from step " + step);
        while (step < steps) {
          try (Results batch = data.next()) {
            last = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(training.train()).callFloat();
          }
          sets.reached(++step);
        }
        sets.save(step, null);
        System.out.println("step " + step + ": loss " + new BigDecimal(last).setScale(6, RoundingMode.HALF_EVEN));
      }
    }
  }
}
