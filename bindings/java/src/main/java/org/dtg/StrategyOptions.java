// What a strategy is to be. One thread.

package org.dtg;

import java.time.Duration;
import java.util.List;

/** A strategy to make. */
public final class StrategyOptions {
  /** What a strategy does with variables and gradients; in the order of C's numbers. */
  public enum Kind {
    /** One replica, variables there. */
    ONE_DEVICE,
    /** A replica per device, each with copies of the variables, which stay equal to the bit. */
    MIRRORED,
    /** A replica per device, one copy of each variable in between. */
    CENTRAL_STORAGE,
    /** One replica in a process, variables on parameter servers. */
    PARAMETER_SERVER,
    /** {@link #MIRRORED} over the devices of all tasks of a {@link #group}, each of which builds the same graph; what makes one value of all is run by all. */
    MULTI_WORKER_MIRRORED
  }

  /** How sums of workers travel; the bits are the same. In the order of C's numbers. */
  public enum Algorithm {
    /** By number of workers and bytes. */
    AUTO,
    /** Everybody sends everything to everybody. */
    DIRECT,
    /** Every worker adds its share of the elements: the fewest bytes. */
    SHARED,
    /** Every worker talks to two others only. */
    RING
  }

  // MULTI_WORKER_MIRRORED is 5 in C, whose 4 is for strategies that are written there.
  private static final int NUMBER_OF_WORKERS = 5;

  final Kind kind;
  final List<String> devices;
  boolean hierarchical;
  String variableDevice;
  Replication replication;
  Group group;
  private Algorithm algorithm = Algorithm.AUTO;
  private long packBytes;
  private Duration timeout;

  /**
   * A strategy of this kind.
   *
   * @param kind what it does
   * @param devices of the replicas: "/device:EMU:0"; PARAMETER_SERVER may leave them out
   */
  public StrategyOptions(Kind kind, String... devices) {
    this.kind = Handle.given(kind, "kind");
    this.devices = Handle.all(devices, "devices");
  }

  /**
   * Adds up two halves of neighbours, each on its first device, then both; without it all in order, on the device of the variable's first copy.
   *
   * @return this
   */
  public StrategyOptions hierarchical() {
    this.hierarchical = true;
    return this;
  }

  /**
   * CENTRAL_STORAGE: where variables stand.
   *
   * @param device default: the device if there is one, else "/device:CPU:0"
   * @return this
   */
  public StrategyOptions variableDevice(String device) {
    this.variableDevice = device;
    return this;
  }

  /**
   * PARAMETER_SERVER: this worker's place.
   *
   * @param replication which share
   * @return this
   */
  public StrategyOptions replication(Replication replication) {
    this.replication = replication;
    return this;
  }

  /**
   * MULTI_WORKER_MIRRORED: its workers, kept as long as the strategy. Devices are then those of this worker; none: one replica at its task.
   *
   * @param group which this process has joined
   * @return this
   */
  public StrategyOptions group(Group group) {
    this.group = group;
    return this;
  }

  /**
   * MULTI_WORKER_MIRRORED: how sums travel.
   *
   * @param algorithm default AUTO
   * @return this
   */
  public StrategyOptions algorithm(Algorithm algorithm) {
    this.algorithm = Handle.given(algorithm, "algorithm");
    return this;
  }

  /**
   * MULTI_WORKER_MIRRORED: smaller gradients travel together.
   *
   * @param bytes at most; default 4 MiB
   * @return this
   */
  public StrategyOptions packBytes(long bytes) {
    this.packBytes = bytes;
    return this;
  }

  /**
   * MULTI_WORKER_MIRRORED: how long a collective may take.
   *
   * @param timeout default: the group's
   * @return this
   */
  public StrategyOptions timeout(Duration timeout) {
    this.timeout = timeout;
    return this;
  }

  Packet packet() {
    int number = kind == Kind.MULTI_WORKER_MIRRORED ? NUMBER_OF_WORKERS : kind.ordinal();
    Packet to = new Packet().integer(number).integer(algorithm.ordinal()).integer(packBytes).duration(timeout);
    to.bool(hierarchical).plain(devices).plain(variableDevice).bool(replication != null);
    return replication == null ? to : to.append(replication.packet());
  }
}
