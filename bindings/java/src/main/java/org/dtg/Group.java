// Groups: collectives between the tasks of a cluster. Any thread.

package org.dtg;

import java.time.Duration;

/**
 * One member's place in a group. All members make the same calls in the same order. The first member that is lost ({@link
 * DtgException.Unavailable}), or makes another call than the others ({@link DtgException.InvalidArgument}), is named in the error that
 * everything under way and everything after it gets on all members, until they have called {@link #reform}. Closing leaves.
 */
public final class Group extends Handle {
  private static final int ALL_REDUCE = 0;
  private static final int ALL_GATHER = 1;
  private static final int REDUCE_SCATTER = 2;
  private static final int BROADCAST = 3;
  private static final int ALL_TO_ALL = 4;

  private Group(long address) {
    super(Kind.GROUP, address);
  }

  /**
   * Takes part in a group as the task of a server; returns when all members do.
   *
   * @param server the task
   * @param options null: all tasks of its job
   * @return the group
   * @throws DtgException.DeadlineExceeded which members are missing, and why
   */
  public static Group join(Server server, GroupOptions options) {
    long it = hold(server, "server");
    try {
      return new Group(Native.groupJoin(it, (options == null ? new GroupOptions() : options).packet().bytes()));
    } finally {
      server.drop();
    }
  }

  private Tensor collect(int kind, Tensor in, Reduction reduction, int root, long... splits) {
    long mine = hold();
    try {
      long given = hold(in);
      try {
        return new Tensor(Native.groupCollect(mine, kind, given, reduction.ordinal(), root, splits));
      } finally {
        drop(in);
      }
    } finally {
      drop();
    }
  }

  /**
   * Reduces the ranks' tensors, which have one shape, element by element; every rank gets the result, with the same bits.
   *
   * @param in this rank's
   * @param reduction how
   * @return a new tensor
   */
  public Tensor allReduce(Tensor in, Reduction reduction) {
    return collect(ALL_REDUCE, in, reduction, 0);
  }

  /**
   * Puts the ranks' rows one behind the other, in the order of the ranks. They may have different numbers of rows.
   *
   * @param in this rank's
   * @return a new tensor
   */
  public Tensor allGather(Tensor in) {
    return collect(ALL_GATHER, in, Reduction.SUM, 0);
  }

  /**
   * Reduces like {@link #allReduce}, but every rank gets its share of the rows only.
   *
   * @param in this rank's
   * @param reduction how
   * @return a new tensor
   */
  public Tensor reduceScatter(Tensor in, Reduction reduction) {
    return collect(REDUCE_SCATTER, in, reduction, 0);
  }

  /**
   * Gives every rank the tensor of one.
   *
   * @param in null on the other ranks
   * @param root the rank
   * @return a new tensor
   */
  public Tensor broadcast(Tensor in, int root) {
    return collect(BROADCAST, in, Reduction.SUM, root);
  }

  /**
   * Sends rank r its part of the rows, and puts what came one behind the other, in the order of the ranks.
   *
   * @param in this rank's
   * @param splits how many rows are for rank r; none: as many for each
   * @return a new tensor
   */
  public Tensor allToAll(Tensor in, long... splits) {
    return collect(ALL_TO_ALL, in, Reduction.SUM, 0, given(splits, "splits"));
  }

  /**
   * Returns when all ranks have called it.
   *
   * @param timeout null: the group's; zero: no time at all
   */
  public void barrier(Duration timeout) {
    long mine = hold();
    try {
      Native.groupBarrier(mine, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /**
   * Agrees on a next epoch with the members that are there, which all have to call it.
   *
   * @param least how many there must be; 0: all that joined
   * @param timeout null: 60 s; zero: no time at all
   * @throws DtgException.DeadlineExceeded which members are missing, and why
   */
  public void reform(int least, Duration timeout) {
    long mine = hold();
    try {
      Native.groupReform(mine, least, Packet.nanos(timeout));
    } finally {
      drop();
    }
  }

  /** Ends this member's part. What the others can end without it they do. */
  public void leave() {
    long mine = hold();
    try {
      Native.groupLeave(mine);
    } finally {
      drop();
    }
  }

  /**
   * This member's rank.
   *
   * @return that in the present epoch
   */
  public int rank() {
    long mine = hold();
    try {
      return Native.groupRank(mine);
    } finally {
      drop();
    }
  }

  /**
   * How many members there are.
   *
   * @return that in the present epoch
   */
  public int size() {
    long mine = hold();
    try {
      return Native.groupSize(mine);
    } finally {
      drop();
    }
  }

  /**
   * The number of the present epoch.
   *
   * @return from 1
   */
  public long epoch() {
    long mine = hold();
    try {
      return Native.groupEpoch(mine);
    } finally {
      drop();
    }
  }

  /**
   * Who has a rank.
   *
   * @param rank in the present epoch
   * @return the task's name; null when out of range
   */
  public String member(int rank) {
    long mine = hold();
    try {
      return Native.text(Native.groupMember(mine, rank));
    } finally {
      drop();
    }
  }
}
