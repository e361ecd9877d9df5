// Meshes and variables in shards: the numbers of plain layers, whatever the grid or the number of shards, and misuse.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MeshTest {
  private static final int STEPS = 4;

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static Dense wide() {
    return new Dense(6).activation(Activation.TANH);
  }

  private static Attention heads() {
    return new Attention(3, 2).causal(true);
  }

  /** A model, and what it is fed. */
  private record Job(Graph graph, Model model, Value ids) {}

  private record Built(Value loss, Training training) {}

  private static float[] losses(int devices, Function<Job, Built> build) {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5)) {
      Value ids = graph.placeholder("ids", DType.I32, 4, 3);
      Built built = build.apply(new Job(graph, model, ids));
      Value init = model.init();
      float[] out = new float[STEPS];
      try (Session session = Session.connect(null, "local", graph, new SessionOptions().emuDevices(devices))) {
        session.run(init);
        for (int step = 0; step < STEPS; step++) {
          int now = step;
          int[] batch = IntStream.range(0, 12).map(i -> (i * 5 + now) % 7).toArray();
          try (Tensor fed = Tensor.of(batch, 4, 3);
              Results read = session.run().feed(ids, fed).fetch(built.loss()).targets(built.training().train()).call()) {
            out[step] = read.get(0).getFloat(0);
          }
        }
      }
      return out;
    }
  }

  private static Built behind(Job job, Value x) {
    Value seen = job.model().attention(x, x, heads());
    Value y = job.model().dense(job.model().dense(seen, wide()), new Dense(4));
    Value loss = job.model().meanSquaredError(job.graph().zerosLike(y), y);
    return new Built(loss, job.model().minimize(loss, Optimizer.adam().rate(0.05)));
  }

  private static float[] plain() {
    return losses(1, job -> behind(job, job.model().embedding(job.ids(), new Embedding(7, 4))));
  }

  @Test
  void aMeshTrainsLikeOneDevice() {
    float[] wanted = plain();
    List<String> devices = IntStream.range(0, 8).mapToObj(i -> "/device:EMU:" + i).toList();
    for (Mesh.Zero zero : Mesh.Zero.values()) {
      float[] got = losses(8, job -> {
        try (Mesh mesh = new Mesh(job.model(), 2, 2, 2, zero, devices)) {
          mesh.build(List.of(job.ids()), 2, false, step -> {
            if (step.stage() == 0) {
              Value x = mesh.embedding(step.batch().get(0), new Embedding(7, 4), Mesh.TableCut.ROWS);
              return List.of(mesh.attention(x, x, heads()));
            }
            Value y = mesh.rowDense(mesh.columnDense(step.inputs().get(0), wide()), new Dense(4));
            return List.of(job.model().meanSquaredError(job.graph().zerosLike(y), y));
          });
          return new Built(mesh.result(0), mesh.minimize(Optimizer.adam().rate(0.05)));
        }
      });
      assertArrayEquals(wanted, got, 1e-5f);
    }
  }

  @Test
  void whatAMeshRefuses() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 1)) {
      assertThrows(DtgException.InvalidArgument.class, () -> new Mesh(model, 2, 1, 1, Mesh.Zero.NONE, List.of("/device:CPU:0")));
      Value x = graph.placeholder("x", DType.F32, 4, 2);
      try (Mesh mesh = new Mesh(model, 1, 1, 1, Mesh.Zero.NONE, List.of("/device:CPU:0"))) {
        assertThrows(DtgException.FailedPrecondition.class, () -> mesh.result(0));
        for (int i = 0; i < 2; i++) {
          assertThrows(IllegalStateException.class, () -> mesh.build(List.of(x), 1, false, step -> {
            throw new IllegalStateException("of the host");
          }));
        }
      }
    }
  }

  @Test
  void shardsTrainLikeOnePiece() {
    float[] wanted = plain();
    for (long shards : new long[] {1, 3, 7}) {
      float[] got = losses(1, job -> {
        Value x = job.model().shardedEmbedding(job.ids(), new Embedding(7, 4), Partitioner.fixedShards(shards));
        Sharded found = job.model().shardedVariable("embedding/embeddings");
        assertEquals(shards, found.shards());
        assertArrayEquals(new long[] {7, 4}, found.shape());
        assertEquals(found.name() + "/part_0", job.model().shard(found.name(), 0).name());
        assertThrows(DtgException.OutOfRange.class, () -> job.model().shard(found.name(), shards));
        return behind(job, x);
      });
      assertArrayEquals(wanted, got, 1e-5f);
    }
  }

  @Test
  void aVariableInShards() {
    try (Graph graph = new Graph(); Model model = new Model(graph, 5)) {
      VariableSpec spec = new VariableSpec("w", 5, 2).initializer(Initializer.uniform(-1, 1));
      Sharded cut = model.addShardedVariable(spec, Partitioner.fixedShards(2));
      Value all = model.shardedValue(cut.name());
      Value row = model.shardedLookup(cut.name(), graph.constant(new int[] {3}));
      Value init = model.init();
      try (Session session = Session.connect(null, "local", graph, new SessionOptions())) {
        session.run(init);
        try (Results read = session.run().fetch(all).fetch(row).call()) {
          assertEquals(read.get(0).getFloat(6), read.get(1).getFloat(0));
          assertEquals(read.get(0).getFloat(7), read.get(1).getFloat(1));
        }
      }
    }
  }
}
