// With whom gradients are averaged. One thread.

package org.dtg;

import java.time.Duration;

/** The group of a training by all-reduce; every member says the same. */
public final class AllReduce {
  int groupSize;
  int groupKey;
  int firstInstance;
  long packBytes;
  Duration timeout;

  /**
   * A group.
   *
   * @param groupSize its members, at least 1
   */
  public AllReduce(int groupSize) {
    this.groupSize = groupSize;
  }

  /**
   * Which group of those that the session's server has joined.
   *
   * @param groupKey the group's key; 0: 1
   * @return this
   */
  public AllReduce groupKey(int groupKey) {
    this.groupKey = groupKey;
    return this;
  }

  /**
   * Calls are told apart by numbers from here on: two trainings in one group need different ones.
   *
   * @param firstInstance the first number; 0: 1
   * @return this
   */
  public AllReduce firstInstance(int firstInstance) {
    this.firstInstance = firstInstance;
    return this;
  }

  /**
   * Small gradients travel together.
   *
   * @param packBytes so many bytes at most; 0: 4 MiB
   * @return this
   */
  public AllReduce packBytes(long packBytes) {
    this.packBytes = packBytes;
    return this;
  }

  /**
   * How long a call may take.
   *
   * @param timeout null: what the group has
   * @return this
   */
  public AllReduce timeout(Duration timeout) {
    this.timeout = timeout;
    return this;
  }

  Packet packet() {
    return new Packet().integer(groupKey).integer(groupSize).integer(firstInstance).integer(packBytes).duration(timeout);
  }
}
