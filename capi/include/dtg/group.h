/* dtg/group.h: collectives between the tasks of a cluster: all-reduce, all-gather, reduce-scatter, broadcast, all-to-all, barrier, on
 * tensors of the host, for programs that want only that. Members are tasks with servers (dtg/server.h), linked by the same
 * connections, keys and rights as everything else; each sends straight to each.
 *
 *   dtg_group_join(server, NULL, &group);                         returns when all workers have
 *   dtg_group_all_reduce(group, gradient, NULL, &gradient);       in place: the sum over all ranks, the same bits on all of them
 *
 * All members make the same calls in the same order. Who makes another call, or the same with another type or shape, is named in the
 * error that all of them get, INVALID_ARGUMENT. So is a member that is lost, in UNAVAILABLE. Either ends the *epoch*: everything under way
 * and everything that comes after fails with that error, until the members agree on the next epoch with dtg_group_reform. The same
 * goes for a call that is cancelled or runs out of time, since the others count on it. A call that is refused at once, for its arguments or
 * because too many are under way, counts like any other: a member that makes it ends the epoch with that error and the name of the
 * one that refused it; where all refuse it, all go on. What was under way is done on all members,
 * some, or none: a host that must know reduces a counter with it.
 *
 * Sums are added in the order of the ranks, left to right, whatever the timing: the bits are those of AddN
 * over the same tensors on one task, of dtg_nn_minimize_towers and of strict parameter servers. Only who names an algorithm that takes
 * any order gets another one (dtg_reduce_algorithm).
 *
 * Graphs have the same calls as ops (CollectiveReduceV2 and its kin), which find the group by its key in sessions that are connected to
 * the member's server; dtg_nn_minimize_all_reduce is made of them. Several devices of each member may make such a call together, as many of
 * each: then group_size is that of all devices, and ranks count them member by member, with the bits of as many devices of one process.
 * A run counts in the epoch in which it began, and in no other (ABORTED, with what that epoch ended by). One that fails or is cancelled
 * before all its collectives have ended, or that cannot begin at all, ends the epoch too, with the name of its task.
 */
#ifndef DTG_GROUP_H
#define DTG_GROUP_H

#include <dtg/server.h>
#include <dtg/session.h>
#include <dtg/tensor.h>

DTG_BEGIN_DECLS

/* One member's place in a group. Shared: any thread; calls are numbered as they come in, so threads of one member that call at once
 * must not care for the order. */
typedef struct dtg_group dtg_group;
/* A collective that was started and that no thread waits for. Shared: any thread. */
typedef struct dtg_collective dtg_collective;

/* ---- joining ---- */

/* Which group, and who is in it. Every member says the same. Strings are copied. */
/* clang-format off */
typedef struct dtg_group_options {
  size_t struct_size;
  const char *name;                /* up to 64 characters; NULL: "default" */
  size_t name_len;
  const char *const *members;      /* tasks in the order of their ranks, such as "/job:worker/task:0"; none: all tasks of the
                                      server's job */
  size_t num_members;
  int64_t join_timeout_ns;         /* how long dtg_group_join waits for the others; 0: 60 s */
  int64_t default_timeout_ns;      /* of a collective that says none; 0: 10 min */
  int32_t key;                     /* by which graph ops of the task's sessions name the group (group_key); 0: 1 */
  int32_t reserved;
} dtg_group_options;
#define DTG_GROUP_OPTIONS_INIT {sizeof(dtg_group_options), NULL, DTG_STRLEN, NULL, 0, 0, 0, 0, 0}
/* clang-format on */

/* Takes part in a group as the task of `server`, and returns when all members do. `options` may be NULL. The group keeps the server.
 * Errors: INVALID_ARGUMENT (a member that is no task of the cluster, or named twice; this task is not among them), ALREADY_EXISTS (this
 * task is in that group), DEADLINE_EXCEEDED (which members are missing, and the last error of each: not there yet, a wrong key,
 * another list of members), UNAVAILABLE (the server is stopping). Since 0.1. */
DTG_ERR dtg_group_join(dtg_server *server, const dtg_group_options *options, dtg_group **out) DTG_NOEXCEPT;

/* Agrees on a next epoch with the members that are there, which all have to call this, and numbers their calls from 1 again. Ranks are
 * those of the members that are left, in the old order. `least`: how many there must be; 0: all that joined, so that a member that was
 * lost is waited for until its process is started again and joins. With fewer, who is not there 0.3 s after the last loss is
 * left out, as long as more than half of the last epoch's members are there, or half with its rank 0: two parts of a group that do not see
 * each other never both go on. The last epoch is the last that anybody there has heard of, and what was promised and may have come to be
 * counts like one; a member whose process was started anew, or that has left and joined, does not count until it has been in an epoch
 * again. All members together may always go on. Whoever was left out comes back with a later dtg_group_reform (its
 * dtg_group_join waits for that). `timeout_ns` 0: 60 s. Errors: DEADLINE_EXCEEDED (who is missing, and why), FAILED_PRECONDITION
 * (another thread is in here), INVALID_ARGUMENT (`least` beyond the members), CANCELLED (it has left). Since 0.1. */
DTG_ERR dtg_group_reform(dtg_group *group, size_t least, int64_t timeout_ns) DTG_NOEXCEPT;

/* Ends this member's part: what is under way fails with CANCELLED, here and where others need this member for it. What the others
 * can end without it they do; so it returns when they have had what calls that ended here have sent to them, or after 2 s, when
 * somebody does not read. So does the end of the server. May be called again. Since 0.1. */
DTG_ERR dtg_group_leave(dtg_group *group) DTG_NOEXCEPT;

/* This member's rank in the present epoch; -1 for a bad handle. Since 0.1. */
DTG_API int32_t dtg_group_rank(const dtg_group *group) DTG_NOEXCEPT;
/* How many members the present epoch has; 0 for a bad handle. Since 0.1. */
DTG_API int32_t dtg_group_size(const dtg_group *group) DTG_NOEXCEPT;
/* The number of the present epoch, from 1; it grows with each, maybe by more than 1. 0 for a bad handle. Since 0.1. */
DTG_API uint64_t dtg_group_epoch(const dtg_group *group) DTG_NOEXCEPT;
/* Name of the task with that rank in the present epoch, valid as long as the group; NULL when out of range. Since 0.1. */
DTG_API const char *dtg_group_member(const dtg_group *group, int32_t rank) DTG_NOEXCEPT;

/* Adds a reference and returns the group; NULL for NULL or a bad handle. Since 0.1. */
DTG_API dtg_group *dtg_group_retain(dtg_group *group) DTG_NOEXCEPT;
/* Drops a reference; the last one leaves. NULL is fine. Since 0.1. */
DTG_API void dtg_group_release(dtg_group *group) DTG_NOEXCEPT;

/* ---- collectives ---- */

/* What is made of the ranks' elements. The mean divides the sum: whole numbers towards zero. */
typedef int32_t dtg_reduction;
enum { DTG_REDUCE_SUM = 0, DTG_REDUCE_MEAN = 1, DTG_REDUCE_MIN = 2, DTG_REDUCE_MAX = 3, DTG_REDUCE_PRODUCT = 4 };

/* How an all-reduce moves its bytes. With the first four the result is the same to the bit:
 *   AUTO    by number of ranks and bytes
 *   DIRECT  everybody sends everything to everybody: the shortest way, for small tensors and two ranks
 *   SHARED  every rank adds its share of the elements and sends the sums to the others: the fewest bytes
 *   RING    sums go from rank to rank and the results back: every rank talks to two others only
 * Whoever names one of the others takes additions in any order: all ranks get the same bits, and the same in each run with the same ranks,
 * but not those of a sum in the order of the ranks.
 *   ANY       by number of ranks, bytes, and hosts as the addresses of the tasks tell them
 *   HALVING   pairs of ranks add halves of what they have, then halves of that, and bring the sums back: few bytes in few rounds
 *   DOUBLING  pairs of ranks add all that they have: the fewest rounds, for small tensors and many ranks
 *   TREE      sums go up a binary tree of ranks and the results down again
 *   HIERARCHY inside each host to one rank, between those up and down a tree: the fewest bytes between hosts
 * Ops take the same names in small letters as communication_hint ("auto", "ring", "any", "halving" ...). Several devices of one member
 * that make a call together can name AUTO, DIRECT, SHARED and ANY (the others: UNIMPLEMENTED). */
typedef int32_t dtg_reduce_algorithm;
enum {
  DTG_ALGORITHM_AUTO = 0,
  DTG_ALGORITHM_DIRECT = 1,
  DTG_ALGORITHM_SHARED = 2,
  DTG_ALGORITHM_RING = 3,
  DTG_ALGORITHM_ANY = 4,
  DTG_ALGORITHM_HALVING = 5,
  DTG_ALGORITHM_DOUBLING = 6,
  DTG_ALGORITHM_TREE = 7,
  DTG_ALGORITHM_HIERARCHY = 8
};

/* What goes beyond the tensor. Every member says the same, but for the timeout and the splits. Read during the call only. */
/* clang-format off */
typedef struct dtg_collective_args {
  size_t struct_size;
  dtg_reduction reduction;         /* all-reduce, reduce-scatter */
  int32_t root;                    /* broadcast: the rank whose tensor all get */
  uint32_t bucket;                 /* reductions: the order of additions begins at rank bucket % size and goes on around the end;
                                      0: at rank 0. Different numbers spread the work of a ring */
  dtg_reduce_algorithm algorithm;  /* all-reduce */
  int64_t timeout_ns;              /* 0: the group's default */
  const int64_t *splits;           /* all-to-all: rows for each rank; NULL: as many for each */
  size_t num_splits;
} dtg_collective_args;
#define DTG_COLLECTIVE_ARGS_INIT {sizeof(dtg_collective_args), 0, 0, 0, 0, 0, NULL, 0}
/* clang-format on */

/* The following wait for the result. `args` may be NULL. `*out`: NULL on entry receives a new tensor that the caller owns; otherwise the
 * result is written into that tensor, whose type and shape must be the result's, and nobody else may use it meanwhile. Elements of any
 * type with a fixed size travel, from none to as many as the memory budget has; those that a reduction is not defined for are refused
 * (INVALID_ARGUMENT), strings too. Other errors: those of the epoch, see the head of this file; DEADLINE_EXCEEDED (who has not
 * come; where an algorithm hears of its neighbours only, which of those it waits for); RESOURCE_EXHAUSTED (memory; more than 4,096 calls
 * under way). */

/* The ranks' tensors of one shape, reduced element by element; every rank gets the result. `*out` may be `in`: then it is
 * reduced in place. Since 0.1. */
DTG_ERR dtg_group_all_reduce(dtg_group *group, const dtg_tensor *in, const dtg_collective_args *args, dtg_tensor **out) DTG_NOEXCEPT;

/* The ranks' tensors one behind the other along dimension 0, in the order of the ranks. They may have different numbers of rows, and
 * none; the other dimensions are the same everywhere. Since 0.1. */
DTG_ERR dtg_group_all_gather(dtg_group *group, const dtg_tensor *in, const dtg_collective_args *args, dtg_tensor **out) DTG_NOEXCEPT;

/* As an all-reduce, but every rank gets only its share of the rows (dimension 0): rows / size, and one more for the first
 * rows % size ranks. Since 0.1. */
DTG_ERR dtg_group_reduce_scatter(dtg_group *group, const dtg_tensor *in, const dtg_collective_args *args, dtg_tensor **out) DTG_NOEXCEPT;

/* The tensor of args->root on every rank. The others give NULL for `in`, and need not know the shape. Since 0.1. */
DTG_ERR dtg_group_broadcast(dtg_group *group, const dtg_tensor *in, const dtg_collective_args *args, dtg_tensor **out) DTG_NOEXCEPT;

/* Every rank sends some of its rows to every rank, args->splits[r] of them to rank r, and gets what was for it one behind the
 * other, in the order of the ranks. Without splits the rows must be a multiple of the size. Since 0.1. */
DTG_ERR dtg_group_all_to_all(dtg_group *group, const dtg_tensor *in, const dtg_collective_args *args, dtg_tensor **out) DTG_NOEXCEPT;

/* Returns when all ranks have called it. Since 0.1. */
DTG_ERR dtg_group_barrier(dtg_group *group, int64_t timeout_ns) DTG_NOEXCEPT;

/* ---- without a thread that waits ---- */

/* Which collective. */
typedef int32_t dtg_collective_kind;
enum { DTG_ALL_REDUCE = 0, DTG_ALL_GATHER = 1, DTG_REDUCE_SCATTER = 2, DTG_BROADCAST = 3, DTG_ALL_TO_ALL = 4, DTG_BARRIER = 5 };

/* Starts a collective and returns at once; it ends in `cq` with `tag`, once. `in` is shared until then: do not write to it. `into` may be
 * NULL; otherwise the result is written there, as above, and must not be used until the end. Many may be under way at once; they
 * count in the order in which they were started. `out` may be NULL when nobody will cancel or take. Errors: those of bad arguments;
 * all others are told in `cq`. Since 0.1. */
DTG_ERR dtg_group_start(dtg_group *group, dtg_collective_kind kind, const dtg_tensor *in, dtg_tensor *into, const dtg_collective_args *args,
                        dtg_cq *cq, uint64_t tag, dtg_collective **out) DTG_NOEXCEPT;

/* Gives the collective up, which ends the epoch: it and everything that is under way ends with CANCELLED, on all members. Does nothing
 * when it has ended. Since 0.1. */
DTG_API void dtg_collective_cancel(dtg_collective *collective) DTG_NOEXCEPT;

/* The result of one that has ended well, owned by the caller; once. Errors: FAILED_PRECONDITION (it has not ended, was taken
 * already, has none), or why it failed. Since 0.1. */
DTG_ERR dtg_collective_take_result(dtg_collective *collective, dtg_tensor **out) DTG_NOEXCEPT;

/* Adds a reference and returns the collective; NULL for NULL or a bad handle. Since 0.1. */
DTG_API dtg_collective *dtg_collective_retain(dtg_collective *collective) DTG_NOEXCEPT;
/* Drops a reference; it goes on to its end without one. NULL is fine. Since 0.1. */
DTG_API void dtg_collective_release(dtg_collective *collective) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_GROUP_H */
