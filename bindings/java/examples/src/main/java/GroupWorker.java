// GroupWorker.java: one worker of a job that trains by all-reduce, without a parameter server; capi/examples/group.c in Java, and one job
// may mix the languages. When a worker is lost the others go on with what they have, from the step that the furthest of them has made.
//
//   dtg run --local --ps 0 --workers 4 -- java ... GroupWorker 100

import java.util.Arrays;
import org.dtg.*;

class GroupWorker {
  static final int WIDTH = 20000; // more than a frame: on one host it travels through shared memory
  static final int ROWS = 8;
  static final int STEPS = WIDTH + ROWS; // where the model keeps how many steps it has made

  final Group group;
  float[] model = new float[STEPS + 1]; // weights, rows and steps: the same on every worker

  GroupWorker(Group group) {
    this.group = group;
  }

  public static void main(String[] args) throws InterruptedException {
    if (args.length == 0) {
      System.err.println("usage: GroupWorker STEPS [PAUSE_US], as a task of a job (TF_CONFIG)");
      System.exit(2);
    }
    try (Cluster.Place place = Cluster.fromTfConfig()) {
      if (place.cluster() == null) {
        System.err.println("TF_CONFIG names no cluster; start this with dtg run");
        System.exit(1);
      }
      ServerOptions self = new ServerOptions().job(place.task().type()).task(place.task().index());
      try (Server server = Server.start(place.cluster(), self); Group group = Group.join(server, null)) {
        System.out.printf("joined: rank %d of %d%n", group.rank(), group.size());
        GroupWorker worker = new GroupWorker(group);
        worker.train(Float.parseFloat(args[0]), args.length > 1 ? Integer.parseInt(args[1]) : 0);
        group.barrier(null);
        float[] model = worker.model;
        System.out.printf("done: %.0f steps, weight %.0f, row %.0f%n", model[STEPS], model[0], model[WIDTH]);
      }
    } catch (DtgException e) {
      System.err.println(e.code() + ": " + e.getMessage());
      System.exit(1);
    }
  }

  void train(float steps, int pauseUs) throws InterruptedException {
    for (boolean anew = true; model[STEPS] < steps; Thread.sleep(pauseUs / 1000, pauseUs % 1000 * 1000)) {
      try {
        if (anew) agree();
        else step();
        anew = false;
      } catch (DtgException.Unavailable | DtgException.Aborted lost) {
        // Who is lost is named in the message; the others go on without it.
        System.out.println("lost: " + lost.getMessage());
        long began = System.nanoTime();
        group.reform(1, null);
        double took = (System.nanoTime() - began) * 1e-9;
        System.out.printf("re-formed in %.3f s: rank %d of %d, epoch %d%n", took, group.rank(), group.size(), group.epoch());
        anew = true;
      }
    }
  }

  /** Changes the model only when everything of the step is there. */
  void step() {
    float[] next = model.clone();
    float[] ours = new float[WIDTH];
    Arrays.fill(ours, next[STEPS] + 1);
    float[] gradient = reduce(ours, Reduction.MEAN);
    // Rows by their index, of which every rank has others: gathered, then added where they belong, in the order of the ranks.
    int rank = group.rank();
    long[] mine = Arrays.copyOf(new long[] {rank % ROWS, 0}, 1 + rank % 2);
    float[] ones = new float[mine.length];
    Arrays.fill(ones, 1);
    try (Tensor index = Tensor.of(mine);
        Tensor value = Tensor.of(ones);
        Tensor indices = group.allGather(index);
        Tensor values = group.allGather(value)) {
      long[] at = indices.toLongs();
      float[] add = values.toFloats();
      for (int i = 0; i < at.length; i++) next[WIDTH + (int) at[i]] += add[i];
    }
    for (int i = 0; i < WIDTH; i++) next[i] += gradient[i];
    next[STEPS]++;
    model = next;
  }

  /** Everybody gets what the furthest has: after a loss, and at the start. */
  void agree() {
    float furthest = reduce(new float[] {model[STEPS]}, Reduction.MAX)[0];
    float root = reduce(new float[] {model[STEPS] == furthest ? group.rank() : 1e9f}, Reduction.MIN)[0];
    try (Tensor mine = Tensor.of(model);
        Tensor whole = group.broadcast(mine, (int) root)) {
      model = whole.toFloats();
    }
  }

  float[] reduce(float[] values, Reduction how) {
    try (Tensor mine = Tensor.of(values);
        Tensor all = group.allReduce(mine, how)) {
      return all.toFloats();
    }
  }
}
