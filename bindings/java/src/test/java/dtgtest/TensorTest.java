// Tensors: in and out by copies, views and borrowed buffers.

package dtgtest;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.List;
import org.dtg.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class TensorTest {
  @AfterEach
  void nothingLives() throws InterruptedException {
    World.assertNothingLives();
  }

  @Test
  void arraysOfEveryTypeComeBack() {
    try (Tensor f = Tensor.of(new float[] {1, 2, 3, 4}, 2, 2); Tensor d = Tensor.of(new double[] {1, 2}); Tensor i = Tensor.of(new int[] {3});
        Tensor l = Tensor.of(new long[] {Long.MIN_VALUE, 7}); Tensor b = Tensor.of(new boolean[] {true, false});
        Tensor u = Tensor.of(DType.U8, new byte[] {1, -1}); Tensor h = Tensor.of(DType.F16, new byte[] {0, 60, 0, 64})) {
      assertArrayEquals(new long[] {2, 2}, f.shape());
      assertArrayEquals(new float[] {1, 2, 3, 4}, f.toFloats());
      assertArrayEquals(new double[] {1, 2}, d.toDoubles());
      assertArrayEquals(new int[] {3}, i.toInts());
      assertArrayEquals(new long[] {Long.MIN_VALUE, 7}, l.toLongs());
      assertArrayEquals(new boolean[] {true, false}, b.toBooleans());
      assertArrayEquals(new byte[] {1, -1}, u.toBytes());
      assertArrayEquals(new short[] {0x3c00, 0x4000}, h.toShorts());
      assertEquals(DType.F16, h.dtype());
      assertEquals(4, h.byteSize());
      assertEquals(4, f.count());
    }
  }

  @Test
  void stringsComeBack() {
    String[] words = {"one", "", "a\0b", "\u00e9"};
    try (Tensor s = Tensor.of(words, 2, 2); Tensor one = Tensor.scalar("x"); Tensor raw = Tensor.ofStrings(new byte[][] {{-1, 0}});
        Tensor f = Tensor.scalar(1f)) {
      assertEquals(DType.STRING, s.dtype());
      assertArrayEquals(new long[] {2, 2}, s.shape());
      assertArrayEquals(words, s.toStrings());
      assertArrayEquals(new String[] {"x"}, one.toStrings());
      assertArrayEquals(new byte[] {-1, 0}, raw.stringBytes(0));
      assertThrows(DtgException.InvalidArgument.class, f::toStrings);
      assertThrows(DtgException.OutOfRange.class, () -> raw.stringBytes(1));
      assertThrows(DtgException.InvalidArgument.class, () -> Tensor.of(words, 3));
    }
  }

  @Test
  void scalarsAndElements() {
    try (Tensor f = Tensor.scalar(2.5f); Tensor l = Tensor.scalar(7L); Tensor i = Tensor.scalar(3); Tensor d = Tensor.scalar(0.5);
        Tensor b = Tensor.scalar(true); Tensor many = Tensor.allocate(DType.F32, 3); Tensor none = Tensor.allocate(DType.F32, 0)) {
      assertEquals(2.5f, f.getFloat(0));
      l.setLong(0, l.getLong(0) + 1);
      assertEquals(8, l.getLong(0));
      assertEquals(3, i.toInts()[0]);
      assertEquals(0.5, d.toDoubles()[0]);
      assertTrue(b.toBooleans()[0]);
      many.setFloat(2, 9);
      assertArrayEquals(new float[] {0, 0, 9}, many.toFloats());
      assertThrows(IndexOutOfBoundsException.class, () -> many.getFloat(3));
      assertEquals(0, none.toFloats().length);
      assertEquals(0, none.view().remaining());
      many.write(new float[] {4, 5, 6});
      float[] into = new float[3];
      many.read(into);
      assertArrayEquals(new float[] {4, 5, 6}, into);
    }
  }

  @Test
  void aViewOutlivesItsTensor() {
    Tensor tensor = Tensor.of(new float[] {1, 2, 3});
    ByteBuffer view = tensor.view();
    tensor.mutableView().putFloat(0, 10);
    assertThrows(ReadOnlyBufferException.class, () -> view.putFloat(0, 1));
    tensor.close();
    assertEquals(10, view.getFloat(0));
    assertEquals(3, view.asFloatBuffer().get(2));
  }

  @Test
  void aBorrowedBufferIsSharedAndKept() throws InterruptedException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    WeakReference<ByteBuffer> seen = new WeakReference<>(buffer);
    try (Graph graph = new Graph(); Session session = Session.connect("local", graph)) {
      try (Tensor tensor = Tensor.borrow(DType.F32, buffer, 2, 2)) {
        buffer.putFloat(4, 6);
        assertEquals(6, tensor.getFloat(1));
        Value constant = graph.constant(tensor);
        buffer = null;
        System.gc();
        assertNotNull(seen.get(), "the tensor keeps the buffer");
        try (Results out = session.run().fetch(graph.neg(constant)).call()) {
          assertArrayEquals(new float[] {-0f, -6, -0f, -0f}, out.get(0).toFloats());
        }
      }
      System.gc();
      assertNotNull(seen.get(), "the graph keeps the tensor, and so the buffer");
    }
    for (int i = 0; i < 200 && seen.get() != null; i++) {
      System.gc();
      Thread.onSpinWait();
      new java.util.concurrent.CountDownLatch(1).await(20, java.util.concurrent.TimeUnit.MILLISECONDS);
    }
    assertNull(seen.get(), "the buffer is given back");
  }

  @Test
  void whatDoesNotFitIsRefused() {
    ByteBuffer heap = ByteBuffer.allocate(4);
    ByteBuffer direct = ByteBuffer.allocateDirect(9);
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(DType.F32, heap, 1), "Java's heap");
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(DType.F32, direct, 1));
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(DType.F32, direct.slice(1, 4).order(ByteOrder.nativeOrder()), 1), "align");
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.of(new float[] {1, 2}, 3), "3 elements");
    World.fails(DtgException.InvalidArgument.class, () -> Tensor.allocate(DType.F32, -1));
    World.fails(DtgException.Unimplemented.class, () -> Tensor.allocate(DType.STRING, 1));
    try (Tensor tensor = Tensor.scalar(1f)) {
      World.fails(DtgException.InvalidArgument.class, tensor::toLongs, "float32");
      World.fails(DtgException.InvalidArgument.class, () -> tensor.getLong(0), "float32", "int64");
      World.fails(DtgException.OutOfRange.class, () -> tensor.view(2, 4));
    }
  }

  /** Java's own order of bytes, which a new buffer has and a slice has again, is not this machine's. */
  @Test
  void aBufferInAnotherOrderIsRefused() {
    ByteOrder other = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    for (DType type : List.of(DType.F32, DType.F64, DType.I16, DType.I64, DType.BF16)) {
      ByteBuffer buffer = ByteBuffer.allocateDirect((int) type.size()).order(other);
      World.fails(DtgException.InvalidArgument.class, () -> Tensor.borrow(type, buffer, 1), other.toString(), ".order(ByteOrder.nativeOrder())");
      Tensor.borrow(type, buffer.order(ByteOrder.nativeOrder()), 1).close();
    }
    Tensor.borrow(DType.U8, ByteBuffer.allocateDirect(3).order(other), 3).close(); // a byte has no order
  }

  @Test
  void useAfterClose() {
    Tensor tensor = Tensor.scalar(1f);
    tensor.close();
    tensor.close();
    assertTrue(tensor.isClosed());
    World.isClosed(tensor::view, "tensor");
    World.isClosed(() -> tensor.getFloat(0), "tensor");
    World.isClosed(tensor::toFloats, "tensor");
    for (Executable known : List.<Executable>of(tensor::dtype, tensor::shape, tensor::count, tensor::byteSize)) World.isClosed(known, "tensor");
    Tensor described = Tensor.scalar(1f);
    assertEquals(4, described.byteSize() * described.count() * (1 + described.shape().length));
    described.close();
    for (Executable known : List.<Executable>of(described::dtype, described::shape, described::count, described::byteSize)) World.isClosed(known, "tensor");
  }

  @Test
  void types() {
    assertEquals(DType.F32, DType.fromName("float"));
    assertEquals("bfloat16", DType.BF16.label());
    assertEquals(8, DType.C64.size());
    for (DType type : DType.values()) assertEquals(type, DType.fromName(type.label()));
    World.fails(DtgException.NotFound.class, () -> DType.fromName("float33"), "float33");
  }
}
