// Sources of data sets: NumPy's files, JSON lines, TFRecord.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SourcesTest {
  // One example, {"y": 7, "x": [0.5, 2]}, as TensorFlow frames it.
  private static final String EXAMPLE = "2100000000000000017becf60a1f0a0a0a017912051a030a01070a110a0178120c120a0a080000003f00000040ad7fc379";

  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void arraysOfNumPy(@TempDir Path folder) throws Exception {
    byte[] head = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }".getBytes(StandardCharsets.US_ASCII);
    ByteBuffer array = ByteBuffer.allocate(10 + head.length + 24).order(ByteOrder.LITTLE_ENDIAN);
    array.put((byte) 0x93).put("NUMPY".getBytes(StandardCharsets.US_ASCII)).put((byte) 1).put((byte) 0).putShort((short) head.length);
    array.put(head).putLong(5).putLong(6).putLong(7);
    Path path = Files.write(folder.resolve("a.npy"), array.array());
    for (boolean text : new boolean[] {true, false}) {
      try (Dataset rows = (text ? Dataset.npy(path.toString(), path.toString()) : Dataset.npy(path, path)).batch(3, true); Results all = rows.next()) {
        assertArrayEquals(new long[] {5, 6, 7}, all.get(1).toLongs());
      }
    }
    World.fails(DtgException.DataLoss.class, () -> Dataset.npz(path.toString(), "a"), "zip");
    World.fails(DtgException.DataLoss.class, () -> Dataset.npz(path, "a"), "zip");
  }

  @Test
  void rowsOfJson(@TempDir Path folder) throws Exception {
    Path lines = Files.writeString(folder.resolve("a.jsonl"), "{\"a\": 4, \"b\": \"x\"}\n{\"a\": {}}\n{\"a\": 5, \"b\": \"w\"}\n");
    World.fails(DtgException.DataLoss.class, () -> Dataset.jsonLines(lines.toString(), null), "line 2");
    JsonLinesOptions options = new JsonLinesOptions().columns("b", "a").skipBadRows(true).missing(CsvOptions.Missing.KEPT);
    World.fails(DtgException.DataLoss.class, () -> Dataset.jsonLines(lines, null), "line 2");
    try (Dataset rows = Dataset.jsonLines(lines, options).batch(2, true); Results all = rows.next()) {
      assertArrayEquals(new long[] {1, 0}, all.get(0).toLongs());
      assertEquals(1, rows.badRows());
      assertTrue(rows.whyBad().contains("line 2"), rows.whyBad());
      assertTrue(rows.schema().contains("\"w\""), rows.schema());
    }
  }

  private static long[] all(Dataset data) {
    try (data) {
      long[] out = {};
      for (;;) {
        try (Results element = data.next()) {
          if (element == null) return out;
          long[] more = element.get(0).toLongs();
          int before = out.length;
          out = Arrays.copyOf(out, before + more.length);
          System.arraycopy(more, 0, out, before, more.length);
        }
      }
    }
  }

  @Test
  void severalAsOne() {
    try (Dataset a = Dataset.range(10, 13, 1); Dataset b = Dataset.range(20, 21, 1); Dataset c = Dataset.range(5, 7, 1)) {
      try (Dataset zipped = Dataset.range(0, 5, 1).zip(a)) {
        assertEquals(2, zipped.componentCount());
        assertEquals(3, zipped.cardinality());
      }
      World.fails(DtgException.FailedPrecondition.class, a::next, "part of another");
      assertArrayEquals(new long[] {0, 1, 20}, all(Dataset.range(0, 2, 1).concatenate(b)));
      assertArrayEquals(new long[] {0, 5, 1, 6, 2}, all(Dataset.range(0, 3, 1).interleave(1, c)));
    }
    assertArrayEquals(new long[] {0, 2, 2, 4}, all(Dataset.range(0, 5, 1).window(2, 2, 2, true)));
    assertArrayEquals(new long[] {0, 1, 1, 2, 2, -1}, all(Dataset.range(0, 3, 1).window(2, 1, 1, false).paddedBatch(3, false, -1)));
    long[] edges = {2};
    long[] sizes = {5, 2};
    assertArrayEquals(new long[] {0, 1, 1, 2, 2}, all(Dataset.range(0, 3, 1).window(2, 1, 1, false).bucketBatch(0, edges, sizes, false, 0)));
    assertArrayEquals(new long[] {0, 1, 2}, all(Dataset.range(0, 3, 1).cache()));
  }

  @Test
  void examplesByName(@TempDir Path folder) throws Exception {
    byte[] bytes = HexFormat.of().parseHex(EXAMPLE);
    Feature[] features = {
      new Feature("y", DType.I64), new Feature("x", DType.F32).variable(), new Feature("a \"name\"", DType.F32, 2).fallback(7.5)
    };
    String whole = Files.write(folder.resolve("a"), bytes).toString();
    try (Dataset rows = Dataset.tfrecord(List.of(whole), features); Results one = rows.next()) {
      assertArrayEquals(new long[] {7}, one.get(0).toLongs());
      assertArrayEquals(new float[] {0.5f, 2}, one.get(1).toFloats());
      assertArrayEquals(new float[] {7.5f, 7.5f}, one.get(2).toFloats());
    }
    Path[] torn = {Files.write(folder.resolve("b"), Arrays.copyOf(bytes, 40))};
    try (Dataset rows = Dataset.tfrecord(torn, features)) {
      World.fails(DtgException.DataLoss.class, rows::next, "byte 40");
    }
  }
}
