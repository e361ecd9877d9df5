// Which group, and who is in it. One thread.

package org.dtg;

import java.time.Duration;
import java.util.List;

/** Which {@link Group}, and who is in it; every member says the same. What is not set keeps its default. */
public final class GroupOptions {
  private String name = "default";
  private List<String> members = List.of();
  private Duration joinTimeout;
  private Duration timeout;
  private int key;

  /** All tasks of the server's job. */
  public GroupOptions() {}

  /**
   * What the members call it.
   *
   * @param name up to 64 characters
   * @return this
   */
  public GroupOptions name(String name) {
    this.name = name;
    return this;
  }

  /**
   * Who is in it.
   *
   * @param members tasks in the order of their ranks, such as "/job:worker/task:0"
   * @return this
   */
  public GroupOptions members(String... members) {
    this.members = Handle.all(members, "members");
    return this;
  }

  /**
   * How long the others are waited for.
   *
   * @param joinTimeout null: 60 s; zero: no time at all
   * @return this
   */
  public GroupOptions joinTimeout(Duration joinTimeout) {
    this.joinTimeout = joinTimeout;
    return this;
  }

  /**
   * How long a collective may take.
   *
   * @param timeout null: 10 min; zero: no time at all
   * @return this
   */
  public GroupOptions timeout(Duration timeout) {
    this.timeout = timeout;
    return this;
  }

  /**
   * Kept for graph ops that will name a group by it; nothing reads it yet.
   *
   * @param key 0: 1
   * @return this
   */
  public GroupOptions key(int key) {
    this.key = key;
    return this;
  }

  Packet packet() {
    return new Packet().text(name).plain(members).duration(joinTimeout).duration(timeout).integer(key);
  }
}
