// Rules for devices. One thread.

package org.dtg;

import java.util.List;

/** Who goes where in between-graph replication, as tf.train.replica_device_setter. */
public final class DeviceSetter {
  Cluster cluster;
  int psTasks;
  boolean greedyBytes;
  String psDevice;
  String workerDevice;
  List<String> psOps;
  boolean keepExplicit;

  /** All defaults. */
  public DeviceSetter() {}

  /**
   * Where the ps tasks are told.
   *
   * @param cluster the tasks of its job of the ps's name; must stay open until the scope is opened
   * @return this
   */
  public DeviceSetter cluster(Cluster cluster) {
    this.cluster = cluster;
    return this;
  }

  /**
   * The ps tasks.
   *
   * @param psTasks how many, without a cluster
   * @return this
   */
  public DeviceSetter psTasks(int psTasks) {
    this.psTasks = psTasks;
    return this;
  }

  /**
   * How a variable's task is chosen.
   *
   * @param greedyBytes true: the task with the fewest bytes so far; false: task after task
   * @return this
   */
  public DeviceSetter greedyBytes(boolean greedyBytes) {
    this.greedyBytes = greedyBytes;
    return this;
  }

  /**
   * Where variables go.
   *
   * @param psDevice null: "/job:ps"
   * @return this
   */
  public DeviceSetter psDevice(String psDevice) {
    this.psDevice = psDevice;
    return this;
  }

  /**
   * Where all else goes.
   *
   * @param workerDevice null: "/job:worker"
   * @return this
   */
  public DeviceSetter workerDevice(String workerDevice) {
    this.workerDevice = workerDevice;
    return this;
  }

  /**
   * Which ops go to the ps.
   *
   * @param psOps their types; never called: TensorFlow's list
   * @return this
   */
  public DeviceSetter psOps(String... psOps) {
    this.psOps = Handle.all(psOps, "psOps");
    return this;
  }

  /**
   * Whether devices are merged.
   *
   * @param keepExplicit true: a node that asks for any device keeps just that
   * @return this
   */
  public DeviceSetter keepExplicit(boolean keepExplicit) {
    this.keepExplicit = keepExplicit;
    return this;
  }

  Packet packet() {
    return new Packet().integer(psTasks).bool(greedyBytes).plain(psDevice).plain(workerDevice).plain(psOps).bool(keepExplicit);
  }
}
