// Structs on their way to C: 8-byte words in native order; native/dtg_jni.h says how, native/packet.c reads them. One thread.

package org.dtg;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

final class Packet {
  private ByteBuffer words = ByteBuffer.allocate(256).order(ByteOrder.nativeOrder());

  private void room(int bytes) {
    if (words.remaining() >= bytes) return;
    int size = Math.max(2 * words.capacity(), words.position() + bytes);
    words = ByteBuffer.allocate(size).order(ByteOrder.nativeOrder()).put(words.flip());
  }

  Packet integer(long value) {
    room(8);
    words.putLong(value);
    return this;
  }

  Packet bool(boolean value) {
    return integer(value ? 1 : 0);
  }

  Packet real(double value) {
    room(8);
    words.putDouble(value);
    return this;
  }

  Packet duration(Duration value) {
    return integer(nanos(value));
  }

  /** Nanoseconds as C takes them: 0 for null, which is the default, 1 for none at all. What is too long for them is as long as they can say. */
  static long nanos(Duration value) {
    if (value == null) return 0;
    if (value.isZero()) return 1;
    try {
      return value.toNanos();
    } catch (ArithmeticException e) { // three centuries are for ever
      return value.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
  }

  Packet text(String value) {
    if (value == null) return integer(-1);
    byte[] bytes = Native.utf8(value);
    integer(bytes.length);
    int padded = (bytes.length / 8 + 1) * 8;
    room(padded);
    words.put(bytes).put(new byte[padded - bytes.length]);
    return this;
  }

  Packet integers(long[] values) {
    if (values == null) return integer(-1);
    integer(values.length);
    for (long value : values) integer(value);
    return this;
  }

  Packet reals(double[] values) {
    integer(values.length);
    for (double value : values) real(value);
    return this;
  }

  Packet values(List<Value> values) {
    return integers(Value.ids(values));
  }

  /** A text that C reads up to its NUL. */
  Packet plain(String value) {
    return text(Native.plain(value));
  }

  /** Texts that C reads up to their NULs. */
  Packet plain(List<String> values) {
    if (values != null) values.forEach(Native::plain);
    return texts(values);
  }

  Packet texts(List<String> values) {
    if (values == null) return integer(-1);
    integer(values.size());
    for (String value : values) text(value);
    return this;
  }

  Packet initializer(Initializer value) {
    return integer(value.kind().ordinal()).real(value.a()).real(value.b());
  }

  /** What another packet holds, behind what this one does. */
  Packet append(Packet other) {
    byte[] all = other.bytes();
    room(all.length);
    words.put(all);
    return this;
  }

  byte[] bytes() {
    return Arrays.copyOf(words.array(), words.position());
  }
}
