// Tensors. Any thread; who writes sees to it that no run reads meanwhile.

package org.dtg;

import java.lang.ref.Cleaner;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A value: element type, shape, and row-major memory outside of Java's heap.
 *
 * <p>The library reads a tensor while a run that was given it is under way, and writes only into those that a run is told to write its
 * results into. Elements go in and out by copying arrays ({@link #write(float[])}, {@link #toFloats()}), one by one ({@link #getFloat},
 * {@link #setFloat}), or without a copy: {@link #view()} shows the memory as a buffer, {@link #borrow} makes a tensor around a direct buffer.
 */
public final class Tensor extends Handle {
  private static final Cleaner VIEWS = Cleaner.create();

  private DType dtype;
  private long[] shape;
  private long bytes;
  private volatile ByteBuffer elements; // of this object alone; used only while it is held

  Tensor(long address) {
    super(Kind.TENSOR, address);
  }

  private static Tensor make(DType dtype, long address) {
    Tensor out = new Tensor(address);
    out.dtype = dtype;
    return out;
  }

  /**
   * A tensor of zeros, with memory of its own.
   *
   * @param dtype the type of its elements
   * @param shape its dimensions; none: a scalar
   * @return the tensor
   */
  public static Tensor allocate(DType dtype, long... shape) {
    return make(dtype, Native.tensorAllocate(given(dtype, "dtype").number(), given(shape, "shape")));
  }

  /**
   * A tensor around the memory of a direct buffer, from its position to its limit, without a copy. The tensor keeps the buffer alive, and so
   * does whatever the library keeps of the tensor. The buffer must be aligned to the element size, and in the machine's order of bytes where
   * elements have more than one: {@code ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())}. A slice or a duplicate begins with
   * Java's order again, which is another one on most machines.
   *
   * @param dtype the type of the elements
   * @param buffer a direct buffer
   * @param shape the dimensions
   * @return the tensor
   * @throws DtgException.InvalidArgument when the buffer is not direct, is read-only or of an arena that can be closed, or its size or its
   *     order of bytes does not fit
   */
  public static Tensor borrow(DType dtype, ByteBuffer buffer, long... shape) {
    given(dtype, "dtype");
    given(shape, "shape");
    if (!given(buffer, "buffer").isDirect()) {
      throw new DtgException.InvalidArgument("borrow a buffer: it lies in Java's heap; take ByteBuffer.allocateDirect, or copy by Tensor.of");
    }
    if (buffer.isReadOnly()) {
      throw new DtgException.InvalidArgument("borrow a buffer: it is read-only, and tensors can be written; copy by Tensor.of");
    }
    if (Arenas.mayClose(buffer)) {
      throw new DtgException.InvalidArgument("borrow a buffer: its arena can be closed while the library still reads it; take "
          + "ByteBuffer.allocateDirect or Arena.ofAuto(), or copy by Tensor.of");
    }
    counted(dtype, shape, buffer.remaining());
    if (dtype.size() > 1 && buffer.order() != ByteOrder.nativeOrder()) {
      throw new DtgException.InvalidArgument("borrow a buffer as a tensor of " + dtype.label() + ": its order of bytes is " + buffer.order()
          + ", this machine's is " + ByteOrder.nativeOrder() + ", so elements would be read wrong; call .order(ByteOrder.nativeOrder()) on the "
          + "buffer before anything is put into it, and on each slice or duplicate");
    }
    long number = Events.lend(buffer);
    try {
      long address = Native.bufferAddress(buffer) + buffer.position();
      return make(dtype, Native.tensorBorrow(dtype.number(), shape, address, buffer.remaining(), number));
    } catch (RuntimeException e) {
      Events.takeBack(number);
      throw e;
    }
  }

  /** Whether a buffer of so many bytes holds the elements of such a tensor. C looks again; here it is said in elements. */
  private static void counted(DType dtype, long[] shape, long bytes) {
    long size = dtype.size();
    if (size <= 0 || Arrays.stream(shape).anyMatch(dim -> dim < 0)) return; // C says what is wrong with it
    BigInteger count = Arrays.stream(shape).mapToObj(BigInteger::valueOf).reduce(BigInteger.ONE, BigInteger::multiply);
    if (count.multiply(BigInteger.valueOf(size)).equals(BigInteger.valueOf(bytes))) return;
    String left = bytes % size == 0 ? "" : " and " + bytes % size + " bytes";
    throw new DtgException.InvalidArgument("borrow a buffer as a tensor of " + dtype.label() + ", shape " + Arrays.toString(shape) + ": it has "
        + count + " elements, the buffer has " + bytes / size + left + " between its position and its limit");
  }

  private static long[] orVector(long[] shape, int length) {
    return given(shape, "shape").length == 0 ? new long[] {length} : shape;
  }

  /**
   * A float32 tensor of these elements.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(float[] values, long... shape) {
    return fill(allocate(DType.F32, orVector(shape, given(values, "values").length)), values, values.length, 'F');
  }

  /**
   * A float64 tensor of these elements.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(double[] values, long... shape) {
    return fill(allocate(DType.F64, orVector(shape, given(values, "values").length)), values, values.length, 'D');
  }

  /**
   * An int32 tensor of these elements.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(int[] values, long... shape) {
    return fill(allocate(DType.I32, orVector(shape, given(values, "values").length)), values, values.length, 'I');
  }

  /**
   * An int64 tensor of these elements.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(long[] values, long... shape) {
    return fill(allocate(DType.I64, orVector(shape, given(values, "values").length)), values, values.length, 'J');
  }

  /**
   * A bool tensor of these elements.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(boolean[] values, long... shape) {
    return fill(allocate(DType.BOOL, orVector(shape, given(values, "values").length)), values, values.length, 'Z');
  }

  private static byte[] bytes(String value) {
    return Native.whole(value, "ofStrings takes any bytes").getBytes(StandardCharsets.UTF_8);
  }

  /**
   * A tensor of strings, in UTF-8. It never changes.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(String[] values, long... shape) {
    byte[][] raw = new byte[given(values, "values").length][];
    for (int i = 0; i < values.length; i++) raw[i] = bytes(given(values[i], "values[" + i + "]"));
    return ofStrings(raw, shape);
  }

  /**
   * A tensor of strings of any bytes. It never changes.
   *
   * @param values the elements, row by row; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor ofStrings(byte[][] values, long... shape) {
    long[] lengths = new long[given(values, "values").length];
    long total = 0;
    for (int i = 0; i < values.length; i++) total += lengths[i] = given(values[i], "values[" + i + "]").length;
    byte[] all = new byte[fitting(total)];
    int at = 0;
    for (byte[] value : values) {
      System.arraycopy(value, 0, all, at, value.length);
      at += value.length;
    }
    long[] dims = orVector(shape, values.length);
    long count = 1;
    for (long dim : dims) count *= dim;
    if (count != values.length) {
      throw new DtgException.InvalidArgument("a tensor of strings, shape " + Arrays.toString(dims) + ": it has " + count + " elements, " + values.length + " were given");
    }
    return make(DType.STRING, Native.tensorStrings(dims, all, lengths));
  }

  /**
   * A scalar string, in UTF-8.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(String value) {
    byte[] raw = bytes(given(value, "value"));
    return make(DType.STRING, Native.tensorStrings(new long[0], raw, new long[] {raw.length}));
  }

  /**
   * A tensor of any plain type from its bytes.
   *
   * @param dtype the type of the elements
   * @param raw their bytes in native order; copied
   * @param shape the dimensions; none: a vector
   * @return the tensor
   */
  public static Tensor of(DType dtype, byte[] raw, long... shape) {
    long size = Math.max(given(dtype, "dtype").size(), 1);
    return fill(allocate(dtype, orVector(shape, (int) (given(raw, "raw").length / size))), raw, raw.length, 'B');
  }

  /**
   * A float32 scalar.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(float value) {
    return fill(allocate(DType.F32), new float[] {value}, 1, 'F');
  }

  /**
   * A float64 scalar.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(double value) {
    return fill(allocate(DType.F64), new double[] {value}, 1, 'D');
  }

  /**
   * An int32 scalar.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(int value) {
    return fill(allocate(DType.I32), new int[] {value}, 1, 'I');
  }

  /**
   * An int64 scalar.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(long value) {
    return fill(allocate(DType.I64), new long[] {value}, 1, 'J');
  }

  /**
   * A bool scalar.
   *
   * @param value its element
   * @return the tensor
   */
  public static Tensor scalar(boolean value) {
    return fill(allocate(DType.BOOL), new boolean[] {value}, 1, 'Z');
  }

  private static Tensor fill(Tensor to, Object array, int length, char kind) {
    try {
      to.copy(array, length, kind, true);
      return to;
    } catch (RuntimeException e) {
      to.close();
      throw e;
    }
  }

  private synchronized void describe() {
    mustBeOpen();
    if (shape != null) return;
    long mine = hold();
    try {
      long[] all = Native.tensorDescribe(mine);
      dtype = DType.find((int) all[0]);
      bytes = all[2];
      shape = Arrays.copyOfRange(all, 3, all.length);
    } finally {
      drop();
    }
  }

  /**
   * The type of the elements.
   *
   * @return the type
   */
  public DType dtype() {
    if (dtype == null) describe();
    mustBeOpen();
    return dtype;
  }

  /**
   * The dimensions.
   *
   * @return a new array; empty for a scalar
   */
  public long[] shape() {
    describe();
    return shape.clone();
  }

  /**
   * The number of elements.
   *
   * @return 1 for a scalar
   */
  public long count() {
    describe();
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  /**
   * The bytes of all elements.
   *
   * @return their number
   */
  public long byteSize() {
    describe();
    return bytes;
  }

  // ---- arrays ----

  /** The type that arrays of a kind are of. */
  private static String element(char kind) {
    return switch (kind) {
      case 'F' -> "float32";
      case 'D' -> "float64";
      case 'I' -> "int32";
      case 'J' -> "int64";
      case 'S' -> "16-bit elements";
      default -> "bool";
    };
  }

  /** What to do where a type is another than that of the tensor. */
  static String other(DType has, boolean in) {
    String how = switch (has) {
      case F32 -> "toFloats";
      case F64 -> "toDoubles";
      case I32, U32 -> "toInts";
      case I64, U64 -> "toLongs";
      case I16, U16, F16, BF16 -> "toShorts";
      case BOOL -> "toBooleans";
      case STRING -> "toStrings";
      default -> "toBytes";
    };
    if (in) return "; give an array of that type, or make a tensor of the type that the array has";
    return "; ask for that type (" + how + "), or add a cast to the graph and fetch that";
  }

  private void copy(Object array, int length, char kind, boolean in) {
    describe();
    boolean fits = switch (kind) {
      case 'F' -> dtype == DType.F32;
      case 'D' -> dtype == DType.F64;
      case 'I' -> dtype == DType.I32 || dtype == DType.U32;
      case 'J' -> dtype == DType.I64 || dtype == DType.U64;
      case 'S' -> dtype == DType.I16 || dtype == DType.U16 || dtype == DType.F16 || dtype == DType.BF16;
      case 'Z' -> dtype == DType.BOOL;
      default -> true;
    };
    long expected = kind == 'B' ? bytes : count();
    if (!fits || length != expected) {
      throw new DtgException.InvalidArgument((in ? "write " : "read ") + array.getClass().getSimpleName() + " of " + length + (in ? " into" : " from")
          + " a tensor of " + dtype().label() + ", shape " + Arrays.toString(shape) + ": "
          + (fits ? "it has " + expected + (kind == 'B' ? " bytes" : " elements") : "its elements are " + dtype().label()
          + (in ? ", and the array's " : ", and asked for as ") + element(kind) + other(dtype(), in)));
    }
    long mine = hold();
    try {
      Native.tensorCopy(mine, 0, array, kind, length, in);
    } finally {
      drop();
    }
  }

  /**
   * Writes all elements of a float32 tensor.
   *
   * @param values the elements
   * @return this
   */
  public Tensor write(float[] values) {
    copy(given(values, "values"), values.length, 'F', true);
    return this;
  }

  /**
   * Writes all elements of a float64 tensor.
   *
   * @param values the elements
   * @return this
   */
  public Tensor write(double[] values) {
    copy(given(values, "values"), values.length, 'D', true);
    return this;
  }

  /**
   * Writes all elements of an int32 or uint32 tensor.
   *
   * @param values the elements
   * @return this
   */
  public Tensor write(int[] values) {
    copy(given(values, "values"), values.length, 'I', true);
    return this;
  }

  /**
   * Writes all elements of an int64 or uint64 tensor.
   *
   * @param values the elements
   * @return this
   */
  public Tensor write(long[] values) {
    copy(given(values, "values"), values.length, 'J', true);
    return this;
  }

  /**
   * Writes all elements of a tensor of 16-bit elements.
   *
   * @param values the elements, or their bits
   * @return this
   */
  public Tensor write(short[] values) {
    copy(given(values, "values"), values.length, 'S', true);
    return this;
  }

  /**
   * Writes all elements of a bool tensor.
   *
   * @param values the elements
   * @return this
   */
  public Tensor write(boolean[] values) {
    copy(given(values, "values"), values.length, 'Z', true);
    return this;
  }

  /**
   * Writes all bytes of a tensor of any type.
   *
   * @param raw the bytes, in native order
   * @return this
   */
  public Tensor write(byte[] raw) {
    copy(given(raw, "raw"), raw.length, 'B', true);
    return this;
  }

  /**
   * Copies all elements of a float32 tensor into an array of just their number.
   *
   * @param into receives them
   */
  public void read(float[] into) {
    copy(given(into, "into"), into.length, 'F', false);
  }

  /**
   * The elements of a float32 tensor.
   *
   * @return a new array
   */
  public float[] toFloats() {
    float[] out = new float[length()];
    copy(out, out.length, 'F', false);
    return out;
  }

  /**
   * The elements of a float64 tensor.
   *
   * @return a new array
   */
  public double[] toDoubles() {
    double[] out = new double[length()];
    copy(out, out.length, 'D', false);
    return out;
  }

  /**
   * The elements of an int32 or uint32 tensor.
   *
   * @return a new array
   */
  public int[] toInts() {
    int[] out = new int[length()];
    copy(out, out.length, 'I', false);
    return out;
  }

  /**
   * The elements of an int64 or uint64 tensor.
   *
   * @return a new array
   */
  public long[] toLongs() {
    long[] out = new long[length()];
    copy(out, out.length, 'J', false);
    return out;
  }

  /**
   * The elements of a tensor of 16-bit elements, or their bits.
   *
   * @return a new array
   */
  public short[] toShorts() {
    short[] out = new short[length()];
    copy(out, out.length, 'S', false);
    return out;
  }

  /**
   * The elements of a bool tensor.
   *
   * @return a new array
   */
  public boolean[] toBooleans() {
    boolean[] out = new boolean[length()];
    copy(out, out.length, 'Z', false);
    return out;
  }

  /**
   * The bytes of a tensor of any type, in native order.
   *
   * @return a new array
   */
  public byte[] toBytes() {
    byte[] out = new byte[fitting(byteSize())];
    copy(out, out.length, 'B', false);
    return out;
  }

  /**
   * The elements of a tensor of strings, read as UTF-8; bytes that are none become U+FFFD.
   *
   * @return a new array
   */
  public String[] toStrings() {
    String[] out = new String[length()];
    for (int i = 0; i < out.length; i++) out[i] = new String(stringBytes(i), StandardCharsets.UTF_8);
    return out;
  }

  /**
   * The bytes of one string.
   *
   * @param index which element, row by row
   * @return a new array
   */
  public byte[] stringBytes(long index) {
    if (dtype() != DType.STRING) {
      throw new DtgException.InvalidArgument("a string of a tensor of " + dtype().label() + " is asked for" + other(dtype(), false));
    }
    if (index < 0 || index >= count()) throw new DtgException.OutOfRange("string " + index + " of " + count());
    long mine = hold();
    try {
      return Native.tensorString(mine, index);
    } finally {
      drop();
    }
  }

  private int length() {
    return fitting(count());
  }

  private static int fitting(long size) {
    if (size > Integer.MAX_VALUE - 8) throw new DtgException.OutOfRange("an array of " + size + " elements is more than Java has; take view(offset, bytes)");
    return (int) size;
  }

  // ---- single elements, without a crossing ----

  private ByteBuffer elements(DType expected) {
    if (dtype() != expected) {
      throw new DtgException.InvalidArgument("an element of a tensor of " + dtype().label() + " is asked for as " + expected.label() + other(dtype(), false));
    }
    ByteBuffer mine = elements;
    return mine != null ? mine : map();
  }

  private static int offset(ByteBuffer elements, int index, int size) {
    long at = (long) index * size;
    if (index >= 0 && at + size <= elements.limit()) return (int) at;
    throw new IndexOutOfBoundsException("element " + index + " of a tensor of " + elements.limit() / size
        + (elements.limit() > Integer.MAX_VALUE - 8 ? " that single elements reach; take view(offset, bytes)" : ""));
  }

  private synchronized ByteBuffer map() {
    describe();
    long mine = hold();
    try {
      elements = Native.tensorView(mine, 0, Math.min(bytes, Integer.MAX_VALUE)).order(ByteOrder.nativeOrder());
      return elements;
    } finally {
      drop();
    }
  }

  /**
   * One element of a float32 tensor.
   *
   * @param index counted row by row
   * @return the element
   */
  public float getFloat(int index) {
    hold();
    try {
      ByteBuffer from = elements(DType.F32);
      return from.getFloat(offset(from, index, 4));
    } finally {
      drop();
    }
  }

  /**
   * Changes one element of a float32 tensor.
   *
   * @param index counted row by row
   * @param value the element
   */
  public void setFloat(int index, float value) {
    hold();
    try {
      ByteBuffer to = elements(DType.F32);
      to.putFloat(offset(to, index, 4), value);
    } finally {
      drop();
    }
  }

  /**
   * One element of an int64 tensor.
   *
   * @param index counted row by row
   * @return the element
   */
  public long getLong(int index) {
    hold();
    try {
      ByteBuffer from = elements(DType.I64);
      return from.getLong(offset(from, index, 8));
    } finally {
      drop();
    }
  }

  /**
   * Changes one element of an int64 tensor.
   *
   * @param index counted row by row
   * @param value the element
   */
  public void setLong(int index, long value) {
    hold();
    try {
      ByteBuffer to = elements(DType.I64);
      to.putLong(offset(to, index, 8), value);
    } finally {
      drop();
    }
  }

  // ---- views ----

  /**
   * The memory of the tensor, read-only, in native order, without a copy.
   *
   * <p>A view holds the tensor's memory by itself: it stays readable, and what it shows stays what it was, when the tensor is closed; the
   * memory is freed when the garbage collector has found that neither the view nor anything made from it (slices, {@code asFloatBuffer}) is
   * reachable. So a view can never read freed memory; what is large and short-lived is better copied out.
   *
   * @return the view
   */
  public ByteBuffer view() {
    return view(0, fitting(byteSize())).asReadOnlyBuffer().order(ByteOrder.nativeOrder());
  }

  /**
   * As {@link #view()}, to be written through while no run uses the tensor.
   *
   * @return the view
   */
  public ByteBuffer mutableView() {
    return view(0, fitting(byteSize()));
  }

  /**
   * Part of the memory, for tensors of more than 2 GiB; writable.
   *
   * @param offset where it begins, in bytes
   * @param size how many bytes
   * @return the view
   */
  public ByteBuffer view(long offset, int size) {
    if (offset < 0 || size < 0 || offset > byteSize() - size) {
      throw new DtgException.OutOfRange("view " + size + " bytes at " + offset + " of a tensor of " + byteSize());
    }
    long mine = hold();
    try {
      ByteBuffer out = Native.tensorView(mine, offset, size);
      long held = Native.tensorRetain(mine);
      VIEWS.register(out, () -> Native.release(Kind.TENSOR.ordinal(), held));
      return out.order(ByteOrder.nativeOrder());
    } finally {
      drop();
    }
  }

  // ---- looking ----

  private static final int SHOWN = 6;

  private String first() {
    int shown = (int) Math.min(count(), SHOWN);
    StringBuilder out = new StringBuilder();
    long mine = hold();
    try {
      ByteBuffer all = Native.tensorView(mine, 0, shown * Math.max(dtype().size(), 0)).order(ByteOrder.nativeOrder());
      for (int i = 0; i < shown; i++) {
        String element = switch (dtype) {
          case F32 -> Float.toString(all.getFloat(4 * i));
          case F64 -> Double.toString(all.getDouble(8 * i));
          case I8 -> Byte.toString(all.get(i));
          case U8 -> Integer.toString(all.get(i) & 0xff);
          case I16 -> Short.toString(all.getShort(2 * i));
          case U16 -> Integer.toString(all.getShort(2 * i) & 0xffff);
          case I32 -> Integer.toString(all.getInt(4 * i));
          case U32 -> Integer.toUnsignedString(all.getInt(4 * i));
          case I64 -> Long.toString(all.getLong(8 * i));
          case U64 -> Long.toUnsignedString(all.getLong(8 * i));
          case BOOL -> Boolean.toString(all.get(i) != 0);
          default -> null;
        };
        if (element == null) return "";
        out.append(i == 0 ? " [" : ", ").append(element);
      }
    } finally {
      drop();
    }
    return out.append(shown == 0 ? " []" : count() > shown ? ", ...]" : "]").toString();
  }

  /** Type, shape and first elements: {@code float32[2, 3] [1.0, 2.0, ...]}. */
  @Override
  public String toString() {
    if (isClosed()) return "Tensor(closed)";
    try {
      return dtype().label() + Arrays.toString(shape()) + first();
    } catch (IllegalStateException e) { // closed meanwhile
      return "Tensor(closed)";
    }
  }
}
