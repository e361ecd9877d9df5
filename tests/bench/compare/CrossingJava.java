// CrossingJava.java: what a call costs from Java, the twin of crossing.c: the same graph and the same lines of JSON. Main thread.

import java.util.Arrays;
import java.util.List;
import org.dtg.*;

class CrossingJava {
  private static final int SAMPLES = 51;
  private static final int CROSSINGS = 200_000;
  private static final int STEPS = 20_000;

  private interface Loop {
    void run();
  }

  private static void measure(String name, int calls, Loop loop) {
    double[] samples = new double[SAMPLES];
    for (int i = -20; i < SAMPLES; i++) { // the first ones warm up
      long start = System.nanoTime();
      loop.run();
      if (i >= 0) samples[i] = (System.nanoTime() - start) / (double) calls;
    }
    Arrays.sort(samples);
    System.out.println("{\"name\": \"" + name + "\", \"ns\": " + samples[SAMPLES / 2] + "}");
  }

  private static int sum;

  public static void main(String[] args) {
    measure("crossing", CROSSINGS, () -> {
      for (int k = 0; k < CROSSINGS; k++) sum += Dtg.abiVersion();
    });
    try (DtgRuntime runtime = new DtgRuntime(new RuntimeOptions().computeThreads(1)); Graph graph = new Graph(runtime);
        Session session = Session.connect(runtime, "local", graph, new SessionOptions()); Tensor in = Tensor.scalar(0f); Tensor out = Tensor.scalar(0f)) {
      Value x = graph.placeholder("x", DType.F32);
      Value y = graph.addV2(x, x);
      try (PreparedRun call = session.prepare(List.of(x), List.of(y), List.of())) {
        measure("warm_step", STEPS, () -> {
          for (int k = 0; k < STEPS; k++) call.step(in, out);
        });
      }
      measure("future", STEPS / 10, () -> {
        for (int k = 0; k < STEPS / 10; k++) session.run().feed(x, in).fetch(y).start().join().close();
      });
    }
  }
}
