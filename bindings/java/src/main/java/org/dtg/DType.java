// Element types. Immutable.

package org.dtg;

/** The type of a tensor's elements, with TensorFlow's numbers. */
public enum DType {
  /** float32. */
  F32(1),
  /** float64. */
  F64(2),
  /** int32. */
  I32(3),
  /** uint8. */
  U8(4),
  /** int16. */
  I16(5),
  /** int8. */
  I8(6),
  /** string. */
  STRING(7),
  /** complex64. */
  C64(8),
  /** int64. */
  I64(9),
  /** bool. */
  BOOL(10),
  /** qint8. */
  QI8(11),
  /** quint8. */
  QU8(12),
  /** qint32. */
  QI32(13),
  /** bfloat16. */
  BF16(14),
  /** qint16. */
  QI16(15),
  /** quint16. */
  QU16(16),
  /** uint16. */
  U16(17),
  /** complex128. */
  C128(18),
  /** float16. */
  F16(19),
  /** resource. */
  RESOURCE(20),
  /** variant. */
  VARIANT(21),
  /** uint32. */
  U32(22),
  /** uint64. */
  U64(23),
  /** float8_e5m2. */
  F8_E5M2(24),
  /** float8_e4m3fn. */
  F8_E4M3FN(25),
  /** int4. */
  I4(29),
  /** uint4. */
  U4(30);

  private final int number;

  DType(int number) {
    this.number = number;
  }

  /**
   * The number in C and in serialised graphs.
   *
   * @return the number
   */
  public int number() {
    return number;
  }

  /**
   * Bytes of one element.
   *
   * @return the size; 0 for types without a fixed plain size
   */
  public long size() {
    return Native.dtypeSize(number);
  }

  /**
   * The name, such as {@code float32}.
   *
   * @return the name
   */
  public String label() {
    return Native.text(Native.dtypeName(number));
  }

  /**
   * The type of a name.
   *
   * @param name such as "float32", or "float" as the op registry writes it
   * @return the type
   * @throws DtgException.NotFound when there is none
   */
  public static DType fromName(String name) {
    DType found = find(Native.dtypeFromName(Native.utf8(Native.plain(name))));
    if (found == null) throw new DtgException.NotFound("there is no element type \"" + name + "\"; float32 and int64 are two");
    return found;
  }

  /** Null for numbers that are no type. */
  static DType find(int number) {
    for (DType type : values()) {
      if (type.number == number) return type;
    }
    return null;
  }
}
