/* dtg/coordinator.h: one program that trains with many workers, none of which has a program of its own: workers and parameter servers are
 * plain servers (`dtg server`, dtg_server_start), and the coordinator gives them work. Variables stand on parameter servers, updates are
 * asynchronous. TensorFlow's words for it are ParameterServerStrategy (2) and ClusterCoordinator.
 *
 *   dtg_session_connect(NULL, target, DTG_STRLEN, graph, NULL, &session);      a cluster with jobs "ps" and "worker"
 *   dtg_coordinator_create(session, NULL, &coordinator);
 *   dtg_coordinator_prepare(coordinator, &step, none, &closure);                  what a worker is to do: feeds, fetches, targets
 *   for (...) dtg_coordinator_schedule(coordinator, closure, batch, 2, &how, &value);
 *   dtg_coordinator_join(coordinator, 0, NULL);
 *
 * Closures. What is scheduled is a part of the session's graph and tensors, never code of the host. Every closure is one run of the
 * session, at one worker: nodes that ask for no task, and those that ask for the job "worker" without a task (the device scope
 * "/job:worker"), are done at the worker that takes it; all others where they are placed, and variables that name no job where the
 * session has them. Any free worker takes the next closure, one at a time; there is no choice of worker and no priority. What is fetched
 * comes back to this process when the closure ends, as a remote value. A remote value cannot be fed to another closure: fetch it first.
 *
 * Exactly once. A worker that is lost, or cannot be reached, gives its closure back, and the next free worker takes it, before all others
 * in the queue. The coordinator is the writer of its updates, and they keep their number whichever worker computes them: of what the lost
 * attempt had changed on parameter servers nothing is changed again, and what it had not changed is changed now. So every closure counts
 * once, where TensorFlow's count at least once. That holds for variables; a closure that takes from a queue or puts into one is not made
 * again, and its error says so. A closure at which `closure_losses` workers were lost, one after the other, is taken to be the cause: it
 * is given to nobody else, and is UNAVAILABLE with their names. What a worker keeps for itself (its own variables) goes with it.
 *
 * Losses. A lost worker is looked for, and when it is back it is given its own resources anew (dtg_coordinator_create_per_worker) and then
 * closures. While a parameter server is away nothing is given out; one that comes back with what it held (a state_dir) is no error,
 * however it was lost. One that comes back empty, or not in time, is UNAVAILABLE with the names of the variables that are lost:
 * initialise or restore them, and schedule again.
 *
 * Errors. The first closure that fails ends all others, those that wait and those that run, with CANCELLED. Its error comes
 * out of the next dtg_coordinator_schedule, join or done, once, when nothing runs any more; then the coordinator can be used again.
 * Nothing waits for ever: each attempt at a closure has a deadline, and so has each call here; what was over time names who is missing.
 *
 * The end. Workers are plain servers and never say that they are done: dtg_session_end_job_now ends the job, where dtg_session_end_job
 * would wait for them until its deadline.
 *
 * To be the chief, which may give variables new values, let the coordinator's process be a task of the job "chief" and connect at the
 * target of its server; a client that is no task is the chief only of a cluster without workers, and may otherwise give variables their
 * first values and update them (dtg_session_connect).
 *
 * Shared: coordinators, closures and remote values may be used from any threads. Errors of all functions: INVALID_ARGUMENT (a closed
 * handle), RESOURCE_EXHAUSTED. Semantics: tf.distribute.coordinator.ClusterCoordinator. */
#ifndef DTG_COORDINATOR_H
#define DTG_COORDINATOR_H

#include <dtg/base.h>
#include <dtg/session.h>

DTG_BEGIN_DECLS

/* Gives closures out to the workers of a session's cluster. */
typedef struct dtg_coordinator dtg_coordinator;
/* What a worker can be given, but for the tensors. Belongs to its coordinator. */
typedef struct dtg_closure dtg_closure;
/* A closure that was scheduled, and what comes of it. */
typedef struct dtg_remote_value dtg_remote_value;

/* Settings of a coordinator. Zero is the default of every field. Strings are copied. */
/* clang-format off */
typedef struct dtg_coordinator_options {
  size_t struct_size;
  const char *job;             /* whose tasks are the workers; NULL: "worker" */
  size_t job_len;
  int64_t queue_capacity;      /* closures that may wait before dtg_coordinator_schedule does; 0: 262,144 */
  int64_t closure_timeout_ns;  /* of one attempt at a closure; 0: the session's default */
  int64_t worker_timeout_ns;   /* how long a lost worker is looked for, where no other is left; 0: 1 hour */
  int64_t server_timeout_ns;   /* how long a task that is no worker is looked for; 0: 30 s */
  int64_t closure_losses;      /* so many workers may be lost at one closure; 0: 3 */
} dtg_coordinator_options;
#define DTG_COORDINATOR_OPTIONS_INIT {sizeof(dtg_coordinator_options), NULL, DTG_STRLEN, 0, 0, 0, 0, 0}
/* clang-format on */

/* Makes a coordinator for the workers that the session's cluster has, which it keeps alive. One process drives a job so; several
 * coordinators of one session share its workers. `options` may be NULL. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION (a local session; no
 * task of that job but the session's own). Since 0.1. */
DTG_ERR dtg_coordinator_create(dtg_session *session, const dtg_coordinator_options *options, dtg_coordinator **out) DTG_NOEXCEPT;

/* Adds a reference and returns the coordinator; NULL for NULL. Since 0.1. */
DTG_API dtg_coordinator *dtg_coordinator_retain(dtg_coordinator *coordinator) DTG_NOEXCEPT;
/* Drops a reference; the last one ends what was scheduled with CANCELLED. NULL is fine. Since 0.1. */
DTG_API void dtg_coordinator_release(dtg_coordinator *coordinator) DTG_NOEXCEPT;

/* Says what a closure does: feeds, fetches and targets of `args`, whose other fields are not used. `worker`, unless its id is 0, is
 * an int64 scalar of the graph that is fed with the number of the worker that takes the closure (its task index): which share of the data
 * is its own. Plans are made once for each worker and for types and shapes of what is fed. Errors: INVALID_ARGUMENT (nothing asked for, a
 * value of another graph, `worker` of another type). Since 0.1. */
DTG_ERR dtg_coordinator_prepare(dtg_coordinator *coordinator, const dtg_run_args *args, dtg_value worker, dtg_closure **out) DTG_NOEXCEPT;

/* Adds a reference and returns the closure; NULL for NULL. Since 0.1. */
DTG_API dtg_closure *dtg_closure_retain(dtg_closure *closure) DTG_NOEXCEPT;
/* Drops a reference; what was scheduled goes on. NULL is fine. Since 0.1. */
DTG_API void dtg_closure_release(dtg_closure *closure) DTG_NOEXCEPT;

/* What each worker is to have of its own, before its next closure and again after it was started anew: runs `closure` with these tensors
 * (one per feed, shared until the coordinator ends) on every worker, in the order of such calls. It typically assigns variables under
 * "/job:worker", which are another one on each worker, such as a data set or its share of one. Does not wait; an error is that of a
 * closure. Errors: INVALID_ARGUMENT (number or types of the tensors), CANCELLED (the coordinator has ended). Since 0.1.
 * Semantics: ClusterCoordinator.create_per_worker_dataset and create_per_worker_resource. */
DTG_ERR dtg_coordinator_create_per_worker(dtg_coordinator *coordinator, dtg_closure *closure, const dtg_tensor *const *feed_tensors,
                                          size_t num_feeds) DTG_NOEXCEPT;

/* How to schedule a closure. Zero is the default of every field. */
/* clang-format off */
typedef struct dtg_schedule_options {
  size_t struct_size;
  int64_t timeout_ns;              /* of the call, which waits while the queue is full; 0: the session's default */
  dtg_cancellation *cancellation;  /* ends the wait, not the closure; NULL: nobody does */
  dtg_cq *cq;                      /* where the end of the closure is announced; NULL: nowhere */
  uint64_t tag;                    /* with which tag */
} dtg_schedule_options;
#define DTG_SCHEDULE_OPTIONS_INIT {sizeof(dtg_schedule_options), 0, NULL, NULL, 0}
/* clang-format on */

/* Puts a closure into the queue, with one tensor per feed, which are shared until it ends (do not write to them). `options` and `out` may
 * be NULL. Errors: INVALID_ARGUMENT (number or types of the tensors; a closure of another coordinator), DEADLINE_EXCEEDED (the
 * queue stayed full), CANCELLED, and the error of an earlier closure, in which case this one is not scheduled. Since 0.1. */
DTG_ERR dtg_coordinator_schedule(dtg_coordinator *coordinator, dtg_closure *closure, const dtg_tensor *const *feed_tensors,
                                 size_t num_feeds, const dtg_schedule_options *options, dtg_remote_value **out) DTG_NOEXCEPT;

/* Waits until all that was scheduled has ended, for at most `timeout_ns` (0: the session's default) or until `cancellation` (may be NULL)
 * is used. Errors: that of the first closure that failed, at /job:worker/task:N as the error's peer; DEADLINE_EXCEEDED (the message says
 * how many wait, who works and who is missing), CANCELLED. Since 0.1. */
DTG_ERR dtg_coordinator_join(dtg_coordinator *coordinator, int64_t timeout_ns, dtg_cancellation *cancellation) DTG_NOEXCEPT;

/* Whether all that was scheduled has ended: `*done` is 1 or 0. Does not wait. Errors: those of closures, as in join. Since 0.1. */
DTG_ERR dtg_coordinator_done(dtg_coordinator *coordinator, int32_t *done) DTG_NOEXCEPT;

/* Ends all that was scheduled, what waits at once and what runs soon, with CANCELLED; what it changed stays. That is no error of join, and
 * the coordinator can be used on. Does not wait. Errors: none of its own. Since 0.1. */
DTG_ERR dtg_coordinator_cancel(dtg_coordinator *coordinator) DTG_NOEXCEPT;

/* What it is at, as JSON: waiting, workers [{task, state: idle, busy or lost, closures, losses}], servers [{task, state: there or lost}].
 * A worker's losses are how often it was gone, or came in a new life; one that is lost again before it is met counts once.
 * `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_coordinator_status(dtg_coordinator *coordinator, dtg_string **out) DTG_NOEXCEPT;

/* Waits for the end of the closure and gives its fetches, as many as it has: each of `fetched` must be NULL and receives a
 * tensor owned by the caller. Calls that follow give the same memory again. `timeout_ns` 0: the session's default; `cancellation` may be
 * NULL and ends the wait only. Errors: that of the closure, CANCELLED where another one failed; DEADLINE_EXCEEDED; INVALID_ARGUMENT
 * (another number of fetches). Since 0.1. Semantics: RemoteValue.fetch. */
DTG_ERR dtg_remote_value_fetch(dtg_remote_value *value, dtg_tensor **fetched, size_t num_fetches, int64_t timeout_ns,
                               dtg_cancellation *cancellation) DTG_NOEXCEPT;

/* Adds a reference and returns the remote value; NULL for NULL. Since 0.1. */
DTG_API dtg_remote_value *dtg_remote_value_retain(dtg_remote_value *value) DTG_NOEXCEPT;
/* Drops a reference; the closure goes on. NULL is fine. Since 0.1. */
DTG_API void dtg_remote_value_release(dtg_remote_value *value) DTG_NOEXCEPT;

/* ---- shards of a variable ---- */

/* Into how many shards a variable is cut.
 *   FIXED_SHARDS  so many as `num_shards` says, and never more than there are rows
 *   MIN_SIZE      as many as there are whole or begun pieces of `shard_bytes`, at most `max_shards`: the last may be smaller
 *   MAX_SIZE      so that no shard has more than `shard_bytes`, but at least one row; at most `max_shards`, where that is not 0 */
typedef int32_t dtg_partitioner_kind;
enum { DTG_PARTITIONER_FIXED_SHARDS = 0, DTG_PARTITIONER_MIN_SIZE = 1, DTG_PARTITIONER_MAX_SIZE = 2 };

/* Zero is the default of every field but num_shards. */
/* clang-format off */
typedef struct dtg_partitioner {
  size_t struct_size;
  dtg_partitioner_kind kind;
  int32_t axis;              /* which dimension is cut; tf.distribute's partitioners know 0 only, TensorFlow 1's any */
  int64_t num_shards;        /* FIXED_SHARDS */
  int64_t shard_bytes;       /* MIN_SIZE: 0 is 256 KiB; MAX_SIZE: must be given */
  int64_t max_shards;        /* MIN_SIZE: 0 is 1; MAX_SIZE: 0 is any number */
  int64_t bytes_per_string;  /* what an element of strings counts; 0: 16 */
} dtg_partitioner;
#define DTG_PARTITIONER_INIT {sizeof(dtg_partitioner), DTG_PARTITIONER_FIXED_SHARDS, 0, 0, 0, 0, 0}
/* clang-format on */

/* The number of shards for a variable of that type and shape. Errors: INVALID_ARGUMENT (a scalar, an axis that is not there, a
 * size that is not positive, MAX_SIZE of nothing). Since 0.1. Semantics: FixedShardsPartitioner, MinSizePartitioner and MaxSizePartitioner
 * of tf.distribute.experimental.partitioners, and the partitioners of TensorFlow 1 behind them. */
DTG_ERR dtg_partitioner_shards(const dtg_partitioner *partitioner, dtg_dtype dtype, const int64_t *dims, size_t rank,
                               int64_t *shards) DTG_NOEXCEPT;

/* The first row of shard `shard` of `shards`, and how many it has: of `rows` rows each has floor(rows / shards), the first rows mod shards
 * one more. The way in which the rows of a partitioned variable, and the keys of an embedding lookup with the strategy "div", are dealt
 * out. Errors: INVALID_ARGUMENT (a shard that is not there). Since 0.1. */
DTG_ERR dtg_shard_rows(int64_t rows, int64_t shards, int64_t shard, int64_t *first, int64_t *count) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_COORDINATOR_H */
