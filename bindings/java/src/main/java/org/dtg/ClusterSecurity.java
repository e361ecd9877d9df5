// ClusterSecurity. Immutable.

package org.dtg;

/** How frames travel over TCP, in C's order. Unix sockets need neither: the other process's user is checked. */
public enum ClusterSecurity {
  /** TLS 1.3 with keys derived from the job key. */
  TLS,
  /** The handshake is authenticated, frames then travel in the clear; both ends must ask. */
  CLEAR_FRAMES
}
