// SyncWorker.java: one worker of a job that trains one model strictly synchronously; the job's tasks and this one's place come from
// TF_CONFIG. The same in C: capi/examples/sync_worker.c; one job may mix the languages.
//
//   dtg run --local --ps 1 --workers 4 -- java ... SyncWorker tests/data/digits.csv.gz weights.safetensors

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.dtg.*;

class SyncWorker {
  public static void main(String[] args) {
    if (args.length != 2) {
      System.err.println("usage: SyncWorker DATA WEIGHTS, as a task of a job (TF_CONFIG)");
      System.exit(2);
    }
    try (Cluster.Place place = Cluster.fromTfConfig()) {
      if (place.cluster() == null) {
        System.err.println("TF_CONFIG names no cluster; start this with dtg run");
        System.exit(1);
      }
      run(place, args[0], args[1]);
    } catch (DtgException e) {
      System.err.println(e.code() + ": " + e.getMessage());
      System.exit(1);
    }
  }

  /** This task, until the job ends. */
  static void run(Cluster.Place place, String path, String weights) {
    ServerOptions self = new ServerOptions().job(place.task().type()).task(place.task().index());
    try (Server server = Server.start(place.cluster(), self)) {
      if (place.task().type().equals("ps")) server.join(null);
      else work(place, server, path, weights);
    }
  }

  /** The same layers in every worker: variables on the ps, everything else here. */
  static void work(Cluster.Place place, Server server, String path, String weights) {
    Task self = place.task();
    try (Graph graph = new Graph(); Model model = new Model(graph, 7); Dataset data = Dataset.csv(path, new CsvOptions().label("c64"))) {
      graph.device(new DeviceSetter().cluster(place.cluster()).workerDevice("/job:" + self.type() + "/task:" + self.index()));
      Value x = graph.placeholder("x", DType.F32, -1, 64);
      Value y = graph.placeholder("y", DType.I64, -1);
      Value hidden = model.dense(x, new Dense(32).activation(Activation.RELU));
      Value loss = model.sparseSoftmaxCrossEntropy(y, model.dense(hidden, new Dense(10)));
      Optimizer momentum = Optimizer.momentum(0.9).rate(0.05);
      Replicated steps = model.minimizeReplicated(loss, momentum, new Replication(SyncMode.STRICT, self.id(), self.numWorkers()));
      // This worker's share of every batch of 60.
      data.scale(0, 16).shuffle(0, 3).repeat(-1).shard(self.numWorkers(), self.id()).batch(60 / self.numWorkers(), true);
      try (Session session = Session.connect(server.target(), graph)) {
        CompletableFuture<Void> updates = begin(self, model, session, steps);
        for (int step = 1; step <= 100; step++) {
          look(updates);
          try (Results batch = data.next()) {
            float last = session.run().feed(x, batch.get(0)).feed(y, batch.get(1)).fetch(loss).targets(steps.train()).callFloat();
            if (step % 20 == 0) System.out.println("step " + step + ": loss " + new BigDecimal(last).setScale(6, RoundingMode.HALF_EVEN));
          }
        }
        if (self.isChief()) model.save(session, weights);
        session.endJob(Duration.ofSeconds(60)); // waits until all workers are through
      }
    }
  }

  /** The chief gives the variables their first values and keeps the updates going; the others wait until that is done. */
  static CompletableFuture<Void> begin(Task self, Model model, Session session, Replicated steps) {
    CompletableFuture<Void> updates = null;
    if (self.isChief()) session.run(model.init());
    model.waitReady(session, Duration.ofSeconds(60));
    if (self.isChief()) {
      session.run(steps.chiefInit());
      updates = session.runRepeatedly(steps.update());
    }
    session.run(steps.localInit());
    return updates;
  }

  /** The updates go on by themselves; what they died of is told before the steps wait for them in vain. */
  static void look(CompletableFuture<Void> updates) {
    if (updates == null || !updates.isDone()) return;
    try {
      updates.join();
    } catch (CompletionException e) {
      throw e.getCause() instanceof DtgException cause ? cause : e;
    }
  }
}
