// A layer's options. One thread.

package org.dtg;

/** Windows of an image, as tf.keras.layers.MaxPool2D and AveragePooling2D. */
public final class Pool2D {
  String name;
  long windowHeight;
  long windowWidth;
  long strideHeight;
  long strideWidth;
  Padding padding = Padding.VALID;

  /** All defaults. */
  public Pool2D() {}

  /**
   * Its name.
   *
   * @param name null: "max_pool2d" or "avg_pool2d"
   * @return this
   */
  public Pool2D name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Height of a window.
   *
   * @param windowHeight 0: 2
   * @return this
   */
  public Pool2D windowHeight(long windowHeight) {
    this.windowHeight = windowHeight;
    return this;
  }

  /**
   * Width of a window.
   *
   * @param windowWidth 0: like the height
   * @return this
   */
  public Pool2D windowWidth(long windowWidth) {
    this.windowWidth = windowWidth;
    return this;
  }

  /**
   * Vertical step.
   *
   * @param strideHeight 0: like the window
   * @return this
   */
  public Pool2D strideHeight(long strideHeight) {
    this.strideHeight = strideHeight;
    return this;
  }

  /**
   * Horizontal step.
   *
   * @param strideWidth 0: like the window
   * @return this
   */
  public Pool2D strideWidth(long strideWidth) {
    this.strideWidth = strideWidth;
    return this;
  }

  /**
   * What happens at the border.
   *
   * @param padding how
   * @return this
   */
  public Pool2D padding(Padding padding) {
    this.padding = Handle.given(padding, "padding");
    return this;
  }

  Packet packet() {
    return new Packet().text(name).integer(windowHeight).integer(windowWidth).integer(strideHeight).integer(strideWidth).integer(padding.ordinal());
  }
}
