// A server's options. One thread.

package org.dtg;

import java.time.Duration;
import java.util.List;

/** Which task a server is, and how; what is not said has the library's default. */
public final class ServerOptions {
  String job;
  int task;
  int cpuDevices;
  int emuDevices;
  long emuMemoryBytes;
  String keyFile;
  ClusterSecurity security = ClusterSecurity.TLS;
  List<String> deviceFilters = List.of();
  Duration heartbeat;
  Duration dead;
  String stateDir;
  boolean noSharedMemory;

  /** All defaults. */
  public ServerOptions() {}

  /**
   * Its job.
   *
   * @param job null: the only job of the cluster
   * @return this
   */
  public ServerOptions job(String job) {
    this.job = job;
    return this;
  }

  /**
   * Its index within the job.
   *
   * @param task from 0
   * @return this
   */
  public ServerOptions task(int task) {
    this.task = task;
    return this;
  }

  /**
   * Virtual CPU devices of the task.
   *
   * @param cpuDevices 0: 1
   * @return this
   */
  public ServerOptions cpuDevices(int cpuDevices) {
    this.cpuDevices = cpuDevices;
    return this;
  }

  /**
   * Emulated accelerators of the task, for tests: "/device:EMU:0" and up.
   *
   * @param emuDevices 0: none
   * @return this
   */
  public ServerOptions emuDevices(int emuDevices) {
    this.emuDevices = emuDevices;
    return this;
  }

  /**
   * What each emulated accelerator has of its own.
   *
   * @param emuMemoryBytes 0: 256 MiB
   * @return this
   */
  public ServerOptions emuMemoryBytes(long emuMemoryBytes) {
    this.emuMemoryBytes = emuMemoryBytes;
    return this;
  }

  /**
   * As {@link #keyFile(String)}.
   *
   * @param keyFile the file
   * @return this
   */
  public ServerOptions keyFile(java.nio.file.Path keyFile) {
    return keyFile(Native.path(keyFile, "keyFile"));
  }

  /**
   * The job key, needed for TCP.
   *
   * @param keyFile null: that of DTG_KEY_FILE in the environment; without it, on loopback, one of the user's own
   * @return this
   */
  public ServerOptions keyFile(String keyFile) {
    this.keyFile = Native.notEmpty(keyFile, "keyFile");
    return this;
  }

  /**
   * How frames travel.
   *
   * @param security all tasks alike
   * @return this
   */
  public ServerOptions security(ClusterSecurity security) {
    this.security = Handle.given(security, "security");
    return this;
  }

  /**
   * Which tasks the sessions of this server see.
   *
   * @param deviceFilters such as "/job:ps"; none: all
   * @return this
   */
  public ServerOptions deviceFilters(String... deviceFilters) {
    this.deviceFilters = Handle.all(deviceFilters, "deviceFilters");
    return this;
  }

  /**
   * Whether large values go through the socket also between processes of one host and user, where they go through shared memory
   * otherwise.
   *
   * @param noSharedMemory true: through the socket
   * @return this
   */
  public ServerOptions noSharedMemory(boolean noSharedMemory) {
    this.noSharedMemory = noSharedMemory;
    return this;
  }

  /**
   * Time between two signs of life.
   *
   * @param heartbeat null: 1 s
   * @return this
   */
  public ServerOptions heartbeat(Duration heartbeat) {
    this.heartbeat = heartbeat;
    return this;
  }

  /**
   * Silence after which a peer counts as dead.
   *
   * @param dead null: 5 s
   * @return this
   */
  public ServerOptions dead(Duration dead) {
    this.dead = dead;
    return this;
  }

  /**
   * As {@link #stateDir(String)}.
   *
   * @param stateDir the folder
   * @return this
   */
  public ServerOptions stateDir(java.nio.file.Path stateDir) {
    return stateDir(Native.path(stateDir, "stateDir"));
  }

  /**
   * Where the task keeps its variables, for itself alone: every update is there before whoever asked for it is told, and a server that
   * is started anew on its address with the same directory goes on with them.
   *
   * @param stateDir null: the variables die with the process
   * @return this
   */
  public ServerOptions stateDir(String stateDir) {
    this.stateDir = Native.notEmpty(stateDir, "stateDir");
    return this;
  }

  Packet packet() {
    return new Packet().text(job).integer(task).integer(cpuDevices).text(keyFile).integer(security.ordinal()).plain(deviceFilters)
        .duration(heartbeat).duration(dead).text(stateDir).integer(emuDevices).integer(emuMemoryBytes)
        .integer(noSharedMemory ? 1 : 0);
  }
}
