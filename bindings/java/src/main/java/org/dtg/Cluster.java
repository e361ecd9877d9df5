// Clusters. Immutable values; any thread.

package org.dtg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Which jobs there are and where their tasks listen. */
public final class Cluster extends Handle {
  private Cluster(long address) {
    super(Kind.CLUSTER, address);
  }

  /**
   * Reads a cluster.
   *
   * @param text as JSON, {@code {"ps": ["unix:/run/j/ps0"]}}, or short, {@code "ps=unix:/run/j/ps0;worker=10.0.0.1:2222"}
   * @return the cluster
   * @throws DtgException.InvalidArgument which says where
   */
  public static Cluster parse(String text) {
    return new Cluster(Native.clusterParse(Native.utf8(text)));
  }

  /**
   * What a launcher said: who this process is, and who else is there.
   *
   * @param cluster the cluster, to be closed; null when none is said: the program trains alone
   * @param task the place of this process
   */
  public record Place(Cluster cluster, Task task) implements AutoCloseable {
    /** Closes the cluster. */
    @Override
    public void close() {
      if (cluster != null) cluster.close();
    }
  }

  /**
   * Reads the environment variable TF_CONFIG.
   *
   * @return what it says
   * @throws DtgException.InvalidArgument when it cannot be read
   */
  public static Place fromTfConfig() {
    return fromTfConfig(null);
  }

  /**
   * Reads a TF_CONFIG.
   *
   * @param json its text; null: the environment variable
   * @return what it says
   * @throws DtgException.InvalidArgument when it cannot be read
   */
  public static Place fromTfConfig(String json) {
    long[] numbers = new long[5];
    byte[][] texts = new byte[2][];
    long address = Native.clusterFromTfConfig(Native.utf8(json), numbers, texts);
    Task task = new Task(Native.text(texts[0]), (int) numbers[0], numbers[1] != 0, (int) numbers[2], (int) numbers[3], (int) numbers[4],
        Native.text(texts[1]));
    return new Place(address == 0 ? null : new Cluster(address), task);
  }

  /**
   * What TensorFlow's resolver calls the master of a task.
   *
   * @param cluster null for none
   * @param task the task
   * @return its address; "" where the cluster has at most one task
   */
  public static String target(Cluster cluster, Task task) {
    given(task, "task");
    long it = hold(cluster);
    try {
      byte[] packet = new Packet().plain(task.type()).integer(task.index()).plain(task.rpcLayer()).bytes();
      return Native.text(Native.clusterTarget(it, packet));
    } finally {
      drop(cluster);
    }
  }

  /**
   * What each task of a cluster is doing, asked over the network without a session; tasks may be missing, only one must answer.
   *
   * @param target that task's address
   * @param options of which the key file, the security and the connect timeout count; null: the defaults
   * @return a JSON list; a task that does not answer has "error"
   * @throws DtgException.Unavailable when nobody answers at the target
   */
  public static String status(String target, SessionOptions options) {
    return Native.text(Native.clusterStatus(0, Native.utf8(target), (options == null ? new SessionOptions() : options).packet().bytes()));
  }

  /**
   * The cluster as JSON that {@link #parse} reads.
   *
   * @return the text
   */
  public String json() {
    long mine = hold();
    try {
      return Native.text(Native.clusterJson(mine));
    } finally {
      drop();
    }
  }

  /**
   * The jobs, in the order in which they were given.
   *
   * @return a new list
   */
  public List<String> jobs() {
    long mine = hold();
    try {
      List<String> out = new ArrayList<>();
      long count = Native.clusterJobCount(mine);
      for (long i = 0; i < count; i++) out.add(Native.text(Native.clusterJob(mine, i)));
      return out;
    } finally {
      drop();
    }
  }

  /**
   * The indices of the tasks of a job.
   *
   * @param job its name
   * @return a new list; empty when there is no such job
   */
  public List<Integer> tasks(String job) {
    long mine = hold();
    try {
      return Arrays.stream(Native.clusterTasks(mine, Native.utf8(Native.plain(job)))).mapToObj(index -> (int) index).toList();
    } finally {
      drop();
    }
  }

  /**
   * The address of a task.
   *
   * @param job its job
   * @param index its index
   * @return the address; null when there is no such task
   */
  public String address(String job, int index) {
    long mine = hold();
    try {
      return Native.text(Native.clusterAddress(mine, Native.utf8(Native.plain(job)), index));
    } finally {
      drop();
    }
  }
}
