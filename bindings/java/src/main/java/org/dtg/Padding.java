// Paddings. Immutable.

package org.dtg;

/** What happens at the border of an image, in C's order. */
public enum Padding {
  /** Only windows that lie inside. */
  VALID,
  /** Output ceil(input / stride), the image surrounded by zeros. */
  SAME
}
