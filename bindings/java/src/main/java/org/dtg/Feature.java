// One component that is read of each tf.Example. A value.

package org.dtg;

import java.util.Arrays;

/** One component that {@link Dataset#tfrecord} reads of each tf.Example. */
public final class Feature {
  private final String name;
  private final DType dtype;
  private final long[] shape;
  private Double fallback;
  private boolean variable;

  /**
   * A feature that every example has.
   *
   * @param name its name
   * @param dtype F32 of a float_list, I64 of an int64_list, U8 of the one string of a bytes_list
   * @param shape none: one value
   */
  public Feature(String name, DType dtype, long... shape) {
    this.name = Handle.given(name, "name");
    this.dtype = Handle.given(dtype, "dtype");
    this.shape = Handle.given(shape, "shape").clone();
  }

  /**
   * What stands in all of its values where an example lacks it.
   *
   * @param value it
   * @return this
   */
  public Feature fallback(double value) {
    fallback = value;
    return this;
  }

  /**
   * Any number of its shape, [n, shape...], and none where an example lacks it.
   *
   * @return this
   */
  public Feature variable() {
    variable = true;
    return this;
  }

  // In TensorFlow's words; what cannot be read is refused by the library under its name here.
  private static String name(DType dtype) {
    return switch (dtype) {
      case F32 -> "float32";
      case F64 -> "float64";
      case I64 -> "int64";
      case I32 -> "int32";
      case U8 -> "uint8";
      default -> dtype.toString();
    };
  }

  static String words(Feature... features) {
    StringBuilder out = new StringBuilder("[");
    for (Feature feature : Handle.all(features, "features")) {
      if (out.length() > 1) out.append(", ");
      out.append("{\"name\": \"");
      for (char c : feature.name.toCharArray()) {
        if (c == '"' || c == '\\') out.append('\\').append(c);
        else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
        else out.append(c);
      }
      out.append("\", \"dtype\": \"").append(name(feature.dtype)).append("\", \"shape\": ").append(Arrays.toString(feature.shape));
      out.append(", \"variable\": ").append(feature.variable);
      if (feature.fallback != null) out.append(", \"default\": ").append(feature.fallback);
      out.append('}');
    }
    return out.append(']').toString();
  }
}
