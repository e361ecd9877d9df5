// What of a model is saved for those who do not know how it was built. One thread.

package org.dtg;

import java.util.ArrayList;
import java.util.List;

/** Named inputs and outputs of {@link Model#export}; {@code new Export().input("x", x).output("y", y)}. */
public final class Export {
  private final List<String> inputNames = new ArrayList<>();
  private final List<Value> inputs = new ArrayList<>();
  private final List<String> outputNames = new ArrayList<>();
  private final List<Value> outputs = new ArrayList<>();
  private boolean freeze;

  /** Nothing yet. */
  public Export() {}

  /**
   * What is fed, such as a placeholder; any value will do, the graph is cut off there.
   *
   * @param name what it will be called
   * @param value the value
   * @return this
   */
  public Export input(String name, Value value) {
    inputNames.add(name);
    inputs.add(value);
    return this;
  }

  /**
   * What is fetched, or a target such as {@link Training#train}, for a model that is to be trained on.
   *
   * @param name what it will be called
   * @param value the value
   * @return this
   */
  public Export output(String name, Value value) {
    outputNames.add(name);
    outputs.add(value);
    return this;
  }

  /**
   * Whether variables become constants, for serving only.
   *
   * @param freeze true for that
   * @return this
   */
  public Export freeze(boolean freeze) {
    this.freeze = freeze;
    return this;
  }

  Packet packet(String path) {
    return new Packet().text(path).plain(inputNames).values(inputs).plain(outputNames).values(outputs).bool(freeze);
  }
}
