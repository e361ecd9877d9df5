// Weight sets. One thread at a time.

package org.dtg;

import java.util.ArrayList;
import java.util.List;

/** Named tensors, in memory and in safetensors files. */
public final class Weights extends Handle {
  /** An empty set. */
  public Weights() {
    super(Kind.WEIGHTS, Native.weightsCreate());
  }

  private Weights(long address) {
    super(Kind.WEIGHTS, address);
  }

  /**
   * Everything in a safetensors file. Nothing in the file is trusted.
   *
   * @param path the file
   * @return the set
   * @throws DtgException.NotFound when there is none
   * @throws DtgException.DataLoss when it is cut, damaged or no safetensors file
   */
  public static Weights load(java.nio.file.Path path) {
    return load(Native.path(path, "path"));
  }

  /**
   * As {@link #load(java.nio.file.Path)}.
   *
   * @param path the file
   * @return the set
   */
  public static Weights load(String path) {
    return load(null, path);
  }

  /**
   * As {@link #load(DtgRuntime, String)}.
   *
   * @param runtime null: the default one
   * @param path the file
   * @return the weights
   */
  public static Weights load(DtgRuntime runtime, java.nio.file.Path path) {
    return load(runtime, Native.path(path, "path"));
  }

  /**
   * The same under the memory limit of a runtime.
   *
   * @param runtime null: the default one
   * @param path the file
   * @return the set
   */
  public static Weights load(DtgRuntime runtime, String path) {
    long it = hold(runtime);
    try {
      return new Weights(Native.weightsLoad(it, Native.utf8(path)));
    } finally {
      drop(runtime);
    }
  }

  /**
   * Writes the set to a file, atomically.
   *
   * @param path the file
   */
  public void save(java.nio.file.Path path) {
    save(Native.path(path, "path"));
  }

  /**
   * As {@link #save(java.nio.file.Path)}.
   *
   * @param path the file
   */
  public void save(String path) {
    long mine = hold();
    try {
      Native.weightsSave(mine, Native.utf8(path));
    } finally {
      drop();
    }
  }

  /**
   * Adds a tensor, or replaces the one of that name. It is shared, not copied.
   *
   * @param name its name
   * @param tensor it; may be closed afterwards
   */
  public void set(String name, Tensor tensor) {
    long mine = hold();
    try {
      long it = hold(tensor, "tensor");
      try {
        Native.weightsSet(mine, Native.utf8(name), it);
      } finally {
        tensor.drop();
      }
    } finally {
      drop();
    }
  }

  /**
   * The tensor of a name.
   *
   * @param name its name
   * @return the tensor, to be closed
   * @throws DtgException.NotFound when there is none
   */
  public Tensor get(String name) {
    long mine = hold();
    try {
      return new Tensor(Native.weightsGet(mine, Native.utf8(name)));
    } finally {
      drop();
    }
  }

  /**
   * The names, in order of name after loading, of adding otherwise.
   *
   * @return a new list
   */
  public List<String> names() {
    long mine = hold();
    try {
      List<String> out = new ArrayList<>();
      long count = Native.weightsCount(mine);
      for (long i = 0; i < count; i++) out.add(Native.text(Native.weightsName(mine, i)));
      return out;
    } finally {
      drop();
    }
  }

  /**
   * Sets a text of the file's metadata.
   *
   * @param key its name
   * @param value the text
   */
  public void setMetadata(String key, String value) {
    long mine = hold();
    try {
      Native.weightsSetMetadata(mine, Native.utf8(key), Native.utf8(value));
    } finally {
      drop();
    }
  }

  /**
   * A text of the metadata.
   *
   * @param key its name
   * @return the text; null when there is none
   */
  public String metadata(String key) {
    long mine = hold();
    try {
      return Native.text(Native.weightsMetadata(mine, Native.utf8(key)));
    } finally {
      drop();
    }
  }
}
