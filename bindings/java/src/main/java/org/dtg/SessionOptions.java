// A session's options. One thread.

package org.dtg;

import java.time.Duration;

/** How a session connects; what is not said has the library's default. */
public final class SessionOptions {
  int cpuDevices;
  int emuDevices;
  long emuMemoryBytes;
  boolean softPlacement;
  boolean disableFusion;
  Duration defaultTimeout;
  Duration connectTimeout;
  String keyFile;
  ClusterSecurity security = ClusterSecurity.TLS;

  /** All defaults. */
  public SessionOptions() {}

  /**
   * Virtual CPU devices of a local session.
   *
   * @param cpuDevices 0: 1
   * @return this
   */
  public SessionOptions cpuDevices(int cpuDevices) {
    this.cpuDevices = cpuDevices;
    return this;
  }

  /**
   * Emulated accelerators of a local session, for tests: "/device:EMU:0" and up.
   *
   * @param emuDevices 0: none
   * @return this
   */
  public SessionOptions emuDevices(int emuDevices) {
    this.emuDevices = emuDevices;
    return this;
  }

  /**
   * What each emulated accelerator has of its own.
   *
   * @param emuMemoryBytes 0: 256 MiB
   * @return this
   */
  public SessionOptions emuMemoryBytes(long emuMemoryBytes) {
    this.emuMemoryBytes = emuMemoryBytes;
    return this;
  }

  /**
   * Whether devices may be missing.
   *
   * @param softPlacement true: a device that is absent drops its type and id
   * @return this
   */
  public SessionOptions softPlacement(boolean softPlacement) {
    this.softPlacement = softPlacement;
    return this;
  }

  /**
   * Whether ops are left alone.
   *
   * @param disableFusion true: every op runs by itself, for tests and debugging
   * @return this
   */
  public SessionOptions disableFusion(boolean disableFusion) {
    this.disableFusion = disableFusion;
    return this;
  }

  /**
   * The deadline of runs that name none, brief and prepared ones too.
   *
   * @param defaultTimeout null: 10 minutes; zero: no time at all, so that every run has to name its own
   * @return this
   */
  public SessionOptions defaultTimeout(Duration defaultTimeout) {
    this.defaultTimeout = defaultTimeout;
    return this;
  }

  /**
   * How long to look for the tasks of a cluster.
   *
   * @param connectTimeout null: 30 s; zero: no time at all
   * @return this
   */
  public SessionOptions connectTimeout(Duration connectTimeout) {
    this.connectTimeout = connectTimeout;
    return this;
  }

  /**
   * As {@link #keyFile(String)}.
   *
   * @param keyFile the file
   * @return this
   */
  public SessionOptions keyFile(java.nio.file.Path keyFile) {
    return keyFile(Native.path(keyFile, "keyFile"));
  }

  /**
   * The job key, for targets with a port.
   *
   * @param keyFile null: that of DTG_KEY_FILE in the environment; without it, on loopback, the user's own
   * @return this
   */
  public SessionOptions keyFile(String keyFile) {
    this.keyFile = Native.notEmpty(keyFile, "keyFile");
    return this;
  }

  /**
   * How frames travel.
   *
   * @param security as the servers have it
   * @return this
   */
  public SessionOptions security(ClusterSecurity security) {
    this.security = Handle.given(security, "security");
    return this;
  }

  Packet packet() {
    return new Packet().integer(cpuDevices).bool(softPlacement).bool(disableFusion).duration(defaultTimeout).duration(connectTimeout)
        .text(keyFile).integer(security.ordinal()).integer(emuDevices).integer(emuMemoryBytes);
  }
}
