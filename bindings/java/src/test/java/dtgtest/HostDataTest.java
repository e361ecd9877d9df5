// Functions and sources of the program's own over data sets.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.LongStream;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class HostDataTest {
  private static final List<Dataset.Component> NUMBER = List.of(new Dataset.Component(DType.I64, new long[0]));

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  private static long[] epoch(Dataset data) {
    List<Long> out = new ArrayList<>();
    for (;;) {
      try (Results element = data.next()) {
        if (element == null) break;
        Arrays.stream(element.get(0).toLongs()).forEach(out::add);
      }
    }
    data.restart();
    return out.stream().mapToLong(Long::longValue).toArray();
  }

  private static List<Tensor> one(long value) {
    return List.of(Tensor.scalar(value));
  }

  @Test
  void functionsOfGraphs() {
    for (int parallel : new int[] {1, 3, 0}) {
      MapOptions options = new MapOptions().parallel(parallel);
      try (Dataset data = Dataset.range(0, 6, 1)) {
        data.map(options, (body, x) -> List.of(body.mul(x.get(0), x.get(0)))).filter(options, (body, x) -> List.of(body.less(x.get(0), body.constant(20L))));
        assertArrayEquals(new long[] {0, 1, 4, 9, 16}, epoch(data));
      }
    }
    try (Dataset seeds = Dataset.range(5, 7, 1).map(new MapOptions().seed(), (body, x) -> List.of(x.get(1)))) {
      assertArrayEquals(new long[] {0, 0, 0, 1}, epoch(seeds));
      assertArrayEquals(new long[] {1, 0, 1, 1}, epoch(seeds));
    }
    try (Graph graph = new Graph(); Dataset data = Dataset.range(0, 3, 1)) {
      Value nine = graph.square(graph.constant(3L));
      try (Session session = Session.connect("local", graph)) {
        data.map(new MapOptions().around(graph, session), (body, x) -> List.of(body.mul(x.get(0), nine)));
      }
      assertArrayEquals(new long[] {0, 9, 18}, epoch(data));
    }
  }

  @Test
  void functionsOfJava() {
    try (Dataset data = Dataset.range(0, 5, 1)) {
      data.mapElements(NUMBER, x -> one(100 + x.get(0).toLongs()[0])).filterElements(x -> x.get(0).toLongs()[0] != 102).prefetch(2);
      assertArrayEquals(new long[] {100, 101, 103, 104}, epoch(data));
      assertArrayEquals(new long[] {100, 101, 103, 104}, epoch(data));
    }
    try (Dataset same = Dataset.range(3, 4, 1).mapElements(NUMBER, x -> x)) {
      assertArrayEquals(new long[] {3}, epoch(same));
    }
    fails(DtgException.Unknown.class, "the well is dry", x -> {
      throw new java.io.IOException("the well is dry");
    });
    fails(DtgException.InvalidArgument.class, "the step is 0", x -> {
      Dataset.range(0, 1, 0);
      return x;
    });
    fails(DtgException.Internal.class, "StackOverflow", HostDataTest::deeper);
    fails(DtgException.InvalidArgument.class, "0 tensors", x -> List.of());
    fails(DtgException.InvalidArgument.class, "null", x -> null);
    fails(DtgException.InvalidArgument.class, "announced", x -> List.of(Tensor.scalar(1.0f)));
    try (Dataset data = Dataset.range(0, 1, 1)) {
      World.fails(DtgException.InvalidArgument.class, () -> data.mapElements(List.of(), x -> x), "component");
      World.fails(DtgException.InvalidArgument.class, () -> data.filterElements(null), "null");
    }
  }

  /** The very object, also where it was thrown ahead of who reads, or in a fit; nobody else's error has it. */
  @Test
  void whatIsThrownIsTheCause() {
    IllegalStateException mine = new IllegalStateException("the well is dry");
    IllegalStateException silent = new IllegalStateException();
    StackOverflowError deep = new StackOverflowError();
    for (Throwable thrown : List.of(mine, silent, deep, World.fails(DtgException.InvalidArgument.class, () -> Dataset.range(0, 1, 0)))) {
      HostData.Change throwing = x -> {
        if (thrown instanceof Error error) throw error;
        throw (Exception) thrown;
      };
      for (int ahead : new int[] {0, 2}) {
        try (Dataset data = Dataset.range(0, 1, 1).mapElements(NUMBER, throwing); Dataset other = Dataset.range(0, 1, 1).mapElements(NUMBER, x -> null)) {
          if (ahead > 0) data.prefetch(ahead);
          assertNull(World.fails(DtgException.InvalidArgument.class, other::next).getCause().getCause());
          assertSame(thrown, World.fails(DtgException.class, data::next).getCause());
          assertNull(World.fails(DtgException.InvalidArgument.class, () -> data.take(-2)).getCause());
        }
      }
    }
    for (boolean begun : new boolean[] {false, true}) {
      Iterator<List<Tensor>> broken = new Iterator<>() {
        @Override
        public boolean hasNext() {
          throw mine;
        }

        @Override
        public List<Tensor> next() {
          return null;
        }
      };
      try (Dataset data = Dataset.of(NUMBER, -1, number -> {
             if (begun) return broken;
             throw mine;
           })) {
        assertSame(mine, World.fails(DtgException.Unknown.class, data::next, "the well is dry").getCause());
      }
    }
    try (Dataset data = Dataset.of(NUMBER, -1, number -> null)) {
      World.fails(DtgException.InvalidArgument.class, data::next, "null for epoch 0");
    }
  }

  private static List<Tensor> deeper(List<Tensor> x) {
    return deeper(x);
  }

  private static <T extends DtgException> void fails(Class<T> type, String says, HostData.Change function) {
    try (Dataset data = Dataset.range(0, 1, 1).mapElements(NUMBER, function)) {
      World.fails(type, data::next, says);
    }
  }

  @Test
  void sourcesInJava() {
    try (Dataset data = counting(); Dataset again = counting()) {
      assertArrayEquals(new long[] {0, 1, 2, 3}, epoch(data));
      data.next().close();
      again.moveTo(data.position());
      try (Results element = again.next()) {
        assertArrayEquals(new long[] {13}, element.get(0).toLongs());
      }
    }
    try (Dataset data = Dataset.of(NUMBER, 5, number -> List.of(one(1)).iterator())) {
      data.next().close();
      World.fails(DtgException.DataLoss.class, data::next, "announced 5");
    }
  }

  @Test
  void noStreamOfArrow() {
    World.fails(DtgException.InvalidArgument.class, () -> Dataset.arrow(0, new ArrowOptions().label("y").columns("x", "y")), "stream");
  }

  private static Dataset counting() {
    return Dataset.of(NUMBER, 4, number -> LongStream.range(0, 4).mapToObj(i -> one(10 * number + i)).iterator()).batch(3, false);
  }
}
