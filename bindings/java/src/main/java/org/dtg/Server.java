// Servers: tasks of a cluster in this process. Any thread.

package org.dtg;

import java.time.Duration;

/**
 * One task of a cluster. A session that is connected to its target can place ops on every task of the cluster; a parameter server is a
 * server that holds variables. Closing the last reference stops it.
 */
public final class Server extends Handle {
  private static final long FOR_EVER = -1; // DTG_INFINITE

  private Server(long address) {
    super(Kind.SERVER, address);
  }

  /**
   * As {@link #keygen(String)}.
   *
   * @param path the new file
   */
  public static void keygen(java.nio.file.Path path) {
    keygen(Native.path(path, "path"));
  }

  /**
   * Makes a new job key in a new file that only its owner can read.
   *
   * @param path the file; never overwritten
   * @throws DtgException.AlreadyExists when there is one
   */
  public static void keygen(String path) {
    Native.keygen(Native.utf8(path));
  }

  /**
   * Starts the server of one task; it listens when this returns.
   *
   * @param cluster the tasks; not null, which {@link Cluster#fromTfConfig()} has where nobody said a cluster
   * @param options which one this is; null: the only one
   * @return the server
   * @throws DtgException.InvalidArgument without a cluster, or when it does not have that task
   * @throws DtgException.FailedPrecondition for an address that others can reach, without a key
   * @throws DtgException.Unavailable when the address is taken
   */
  public static Server start(Cluster cluster, ServerOptions options) {
    return start(null, cluster, options);
  }

  /**
   * The same in a runtime.
   *
   * @param runtime null: the default one
   * @param cluster the tasks
   * @param options which one this is; null: the only one
   * @return the server
   */
  public static Server start(DtgRuntime runtime, Cluster cluster, ServerOptions options) {
    long at = hold(runtime);
    try {
      long it = hold(cluster, "cluster");
      try {
        return new Server(Native.serverStart(at, it, (options == null ? new ServerOptions() : options).packet().bytes()));
      } finally {
        cluster.drop();
      }
    } finally {
      drop(runtime);
    }
  }

  /**
   * What a session connects to. Inside this process such a session shares the server's devices and variables without a socket.
   *
   * @return the address, with the port that the system chose
   */
  public String target() {
    long mine = hold();
    try {
      return Native.text(Native.serverTarget(mine));
    } finally {
      drop();
    }
  }

  /**
   * Waits until the server has stopped: by {@link #stop}, or because the chief ended the job.
   *
   * @param timeout how long; null: for ever; zero only looks
   * @throws DtgException.DeadlineExceeded when it still runs
   */
  public void join(Duration timeout) {
    long mine = hold();
    try {
      Native.serverJoin(mine, timeout == null ? FOR_EVER : timeout.isZero() ? 0 : Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * Takes no more connections, ends those there are, waits for their runs.
   *
   * @param timeout how long; null: 5 s; zero: no time at all
   * @throws DtgException.DeadlineExceeded when some have not ended yet
   */
  public void stop(Duration timeout) {
    long mine = hold();
    try {
      Native.serverStop(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * What the server is doing.
   *
   * @return JSON: task, incarnation, address, devices, sessions, variables
   */
  public String status() {
    long mine = hold();
    try {
      return Native.text(Native.serverStatus(mine));
    } finally {
      drop();
    }
  }
}
