// What a strategy is to be. One thread.

package org.dtg;

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
    PARAMETER_SERVER
  }

  final Kind kind;
  final List<String> devices;
  boolean hierarchical;
  String variableDevice;
  Replication replication;

  /**
   * A strategy of this kind.
   *
   * @param kind what it does
   * @param devices of the replicas: "/device:EMU:0"; PARAMETER_SERVER may leave them out
   */
  public StrategyOptions(Kind kind, String... devices) {
    this.kind = kind;
    this.devices = List.of(devices);
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

  Packet packet() {
    Packet to = new Packet().integer(kind.ordinal()).bool(hierarchical).plain(devices).plain(variableDevice).bool(replication != null);
    return replication == null ? to : to.append(replication.packet());
  }
}
