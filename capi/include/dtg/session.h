/* dtg/session.h: running graphs. A session finds or makes the plan for what a run asks, and runs it; any number of
 * runs may be under way at once, from any threads. Shared: sessions, callables, runs and queues alike.
 *
 * Three ways to run the same:
 *   dtg_session_run        on the calling thread; says in every call what is fed and fetched
 *   dtg_callable_run       the same for what dtg_session_prepare was told once: well under a microsecond of its own
 *   dtg_session_run_async  by the runtime's threads; the end is announced in a completion queue. To a run of a few microseconds that
 *                          adds some hundred; dtg_session_run_if_brief makes such a run at once
 *
 * Every run has a deadline, and can be ended before: an asynchronous one by dtg_run_cancel, one that a thread waits for by a
 * cancellation that it was given. Either way the run ends soon: what waits hears of it at once, and a long computation (a product, a
 * convolution) is left between its shards, some ten milliseconds later at most; only a decomposition of a single matrix, and what runs
 * on a device, come to their end first. Nothing is left half written: an op that changes a variable runs to its end or does not begin.
 * A run with several such ops, ended in between, has made the earlier ones' changes and not the later ones'.
 *
 *   dtg_cq_create(&queue);
 *   dtg_session_run_async(session, &args, queue, 7, &run);
 *   dtg_cq_next(queue, &done, 0, 1, DTG_INFINITE, &count);      done.tag is 7, done.error NULL or why the run failed
 *   dtg_run_take_result(run, 0, &tensor);  dtg_run_release(run);
 *
 * Planning happens once for each combination of fetches, targets, feeds and types and shapes of what is fed. Within a run a
 * variable is read before or after a write as data and control edges say, and where they do not, in the order in which their nodes
 * were made: a read sees the writes made before it and none made after. Errors of all functions: INVALID_ARGUMENT for a closed
 * handle, RESOURCE_EXHAUSTED without memory; others stand with the function. */
#ifndef DTG_SESSION_H
#define DTG_SESSION_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* How frames travel over TCP. Unix sockets need neither: the other process's user is checked. Both ends must say the same, or the
 * connection is refused with FAILED_PRECONDITION. */
typedef int32_t dtg_security;
enum {
  DTG_SECURITY_TLS = 0,         /* TLS 1.3 with keys derived from the job key */
  DTG_SECURITY_CLEAR_FRAMES = 1 /* the handshake is authenticated, frames then travel in the clear; both ends must ask */
};

/* Settings of a session, fixed when it is made. Those of devices count for local sessions, those of a cluster (connect_timeout_ns,
 * key_file, security) for the others. Strings are copied. */
/* clang-format off */
typedef struct dtg_session_options {
  size_t struct_size;
  int32_t cpu_devices;         /* local sessions: virtual CPU devices, "/device:CPU:0" and up; 0: 1 */
  int32_t soft_placement;      /* non-zero: a device that is absent drops its type and id, never its job and task */
  int32_t disable_fusion;      /* non-zero: every op runs by itself, for tests and debugging */
  int32_t reserved0;
  int64_t default_timeout_ns;  /* of runs and other calls that name none, brief runs and callables too; 0: 10 minutes */
  int64_t connect_timeout_ns;  /* of a cluster: how long to look for its tasks; 0: 30 s */
  const char *key_file;        /* the job key, for targets with a port; not needed for a target of this process, whose server
                                  has it. NULL: the file that DTG_KEY_FILE of the environment names; without it, on loopback,
                                  the user's own key */
  size_t key_file_len;
  dtg_security security;       /* as the servers have it */
  int32_t emu_devices;         /* local sessions: emulated accelerators for tests, "/device:EMU:0" and up; 0: none */
  int64_t emu_memory_bytes;    /* what each of them has of its own; 0: 256 MiB */
} dtg_session_options;
#define DTG_SESSION_OPTIONS_INIT {sizeof(dtg_session_options), 0, 0, 0, 0, 0, 0, NULL, DTG_STRLEN, DTG_SECURITY_TLS, 0, 0}
/* clang-format on */

/* Connects `graph` to the devices behind `target`: NULL or "local" for a session of this process alone, whose
 * variables live and die with it; or the address of a task (dtg_server_target; "unix:PATH", "host:port"), which tells the
 * session of the rest of its cluster, whose variables outlive it. At the target of a server of this process the session
 * speaks for that task, elsewhere it is a client that is no task. What that lets it do at other tasks: the chief (the job
 * "chief" or "master", else worker 0, else a client) everything; workers, and clients where there is a chief, make and initialise
 * variables, read, update, put and take, and only get PERMISSION_DENIED for what would undo or end the work of others (a new value
 * for a variable that has one, other entries for a table that has some, taking entries out of it, closing, destroying, reset); a ps only
 * reads. At its own task a session may do everything.
 * `options` may be NULL. The session keeps runtime and graph alive; the graph may grow afterwards. Tasks that cannot be reached are tried
 * again, after longer and longer pauses, as long as the connect timeout has room for another attempt. Errors: INVALID_ARGUMENT (an empty
 * target, too); UNAVAILABLE, DEADLINE_EXCEEDED (which tasks are missing, where they should be, and the last error of each);
 * UNAUTHENTICATED (a wrong key); FAILED_PRECONDITION (another cluster, version or security at the other end). Since 0.1. */
DTG_ERR dtg_session_connect(dtg_runtime *runtime, const char *target, size_t target_len, dtg_graph *graph,
                            const dtg_session_options *options, dtg_session **out) DTG_NOEXCEPT;

/* One run. Any value may be fed, which cuts what would compute it; fetches are returned, targets only run, and nothing runs that none
 * of them needs. Read during the call only, but for the tensors that
 * are fed: an asynchronous run shares them until its end. Semantics: the arguments of TensorFlow's Session::Run. */
/* clang-format off */
typedef struct dtg_run_args {
  size_t struct_size;
  const dtg_value *feeds;
  const dtg_tensor *const *feed_tensors; /* one per feed; borrowed until the run ends */
  size_t num_feeds;
  const dtg_value *fetches;
  dtg_tensor **fetched;                  /* one per fetch. NULL on entry: receives a new tensor owned by the caller. Not
                                            NULL: the value is written into that tensor, whose type and shape must fit.
                                            dtg_session_run_async takes no `fetched`: see dtg_run_take_result */
  size_t num_fetches;
  const dtg_value *targets;
  size_t num_targets;
  int64_t timeout_ns;                    /* 0: the session's default */
  dtg_cancellation *cancellation;        /* dtg_session_run: ends the run when another thread cancels it; NULL: nobody does.
                                            dtg_session_run_async takes none: see dtg_run_cancel */
  uint64_t *write;                       /* NULL, or receives the number by which the cluster knows what the run updates, also where the
                                            run fails. Not 0 on entry: the run repeats that earlier one of the session, and what took
                                            place of it is not made again; see dtg_session_outcome */
} dtg_run_args;
#define DTG_RUN_ARGS_INIT {sizeof(dtg_run_args), NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 0, NULL, NULL}
/* clang-format on */

/* A wish that calls end, for calls that wait on one thread while another one decides: a request that its client gave up, a program that
 * is told to stop. Give it to any number of calls, at the same time or one after the other; it is used at most once, and every call that
 * is given it afterwards is refused with CANCELLED before anything has run. Make one per request: that takes less than a microsecond.
 * `*out` is owned by the caller. Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_cancellation_create(dtg_cancellation **out) DTG_NOEXCEPT;
/* Ends the calls that were given it: each answers CANCELLED soon, unless it ends by itself first. Does not wait for them. Any thread, any
 * time, any number of times; NULL is fine. Not from a signal handler. Since 0.1. */
DTG_API void dtg_cancellation_cancel(dtg_cancellation *cancellation) DTG_NOEXCEPT;
/* Adds a reference and returns the cancellation; NULL for NULL. Since 0.1. */
DTG_API dtg_cancellation *dtg_cancellation_retain(dtg_cancellation *cancellation) DTG_NOEXCEPT;
/* Drops a reference; calls under way keep one of their own. NULL is fine. Since 0.1. */
DTG_API void dtg_cancellation_release(dtg_cancellation *cancellation) DTG_NOEXCEPT;

/* Runs on the calling thread, with the runtime's threads helping, and returns when everything has ended. On failure no
 * entry of `fetched` changes, but a tensor that was given to be written may hold anything.
 * Errors: INVALID_ARGUMENT (nothing asked for, an unfed placeholder, wrong type or shape, a value fed twice or both fed
 * and fetched), UNIMPLEMENTED (no kernel; the message tells which there are), FAILED_PRECONDITION (a variable without
 * value, a closed session), UNAVAILABLE (a task of the cluster is gone, and did not come back within 30 s, or a
 * second where it keeps no state), DEADLINE_EXCEEDED, CANCELLED,
 * OUT_OF_RANGE (end of a queue), or what the op that failed says; the error names the node. Since 0.1. Semantics: TensorFlow's
 * Session::Run. */
DTG_ERR dtg_session_run(dtg_session *session, const dtg_run_args *args) DTG_NOEXCEPT;

/* As dtg_session_run, where the run is brief: it waits for no queue, no other task and no device, calls no function, touches less than a
 * quarter of a megabyte, and such runs of late took no more than some ten microseconds. Then it is made on the calling thread and `*ran`
 * is 1. Otherwise `*ran` is 0 and nothing has run: start it with dtg_session_run_async, as you would have. For whoever offers runs that
 * nobody waits for, so that those that would end sooner than a thread wakes up cost no more than a call; the futures of the Rust and Java
 * bindings begin so. The first call for a combination of feeds makes the plan, in a local session. The deadline holds as for any run: one
 * that has passed when the run would begin is DEADLINE_EXCEEDED, and nothing has run. Errors: with `*ran` 0 those found
 * before the run starts, with `*ran` 1 those of dtg_session_run. Since 0.1. */
DTG_ERR dtg_session_run_if_brief(dtg_session *session, const dtg_run_args *args, int32_t *ran) DTG_NOEXCEPT;

/* Starts a run that no thread waits for and returns at once; only where a thousand runs of the session that were cancelled or late
 * have not come to their end does it wait for some of them. Feeds are shared (do not write to them until the end);
 * `args->fetched` must be NULL. The end is announced once in `cq` with `tag`; results are then taken from the run's handle
 * (dtg_run_take_result). Where a loss was no finite number, the end comes when the first value that was not is found; no thread waits
 * for that. `out` may be NULL when nobody will cancel or take. Errors: those found before the run starts. Since 0.1. */
DTG_ERR dtg_session_run_async(dtg_session *session, const dtg_run_args *args, dtg_cq *cq, uint64_t tag, dtg_run **out) DTG_NOEXCEPT;

/* A run with feeds, fetches and targets fixed, for calling many times with as little in between as possible. Values and
 * counts are read from `args`; its tensors and its timeout are not used. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_session_prepare(dtg_session *session, const dtg_run_args *args, dtg_callable **out) DTG_NOEXCEPT;

/* Runs a callable: one tensor per prepared feed, one entry of `fetched` per prepared fetch, in their order and as in
 * dtg_session_run; `timeout_ns` 0: the session's default, however brief the run is. Several threads may run the same callable at once. The
 * first call for a combination of types and shapes makes a plan; later ones allocate nothing where `fetched` has tensors to write
 * into. Errors as dtg_session_run. Since 0.1. Semantics: TensorFlow's Session::RunCallable. */
DTG_ERR dtg_callable_run(dtg_callable *callable, const dtg_tensor *const *feed_tensors, size_t num_feeds, dtg_tensor **fetched,
                         size_t num_fetches, int64_t timeout_ns) DTG_NOEXCEPT;

/* The same until `cancellation` is used: as dtg_callable_run where it is NULL, and some 50 ns more otherwise. Errors as dtg_session_run,
 * CANCELLED among them. Since 0.1. */
DTG_ERR dtg_callable_run_cancellable(dtg_callable *callable, const dtg_tensor *const *feed_tensors, size_t num_feeds, dtg_tensor **fetched,
                                     size_t num_fetches, int64_t timeout_ns, dtg_cancellation *cancellation) DTG_NOEXCEPT;

/* What a run would ask, without its values: for dtg_session_plan_text. Read during the call only. */
/* clang-format off */
typedef struct dtg_plan_args {
  size_t struct_size;
  const dtg_value *feeds;
  const dtg_dtype *feed_dtypes;       /* one per feed: what the fed tensor would be */
  const int64_t *const *feed_dims;    /* one per feed: its dimensions, all known; an entry may be NULL where the rank is 0 */
  const size_t *feed_ranks;           /* one per feed */
  size_t num_feeds;
  const dtg_value *fetches;
  size_t num_fetches;
  const dtg_value *targets;
  size_t num_targets;
  const char *pass;                   /* which page to give; see below */
  size_t pass_len;
  int64_t timeout_ns;                 /* 0: the session's default */
} dtg_plan_args;
#define DTG_PLAN_ARGS_INIT {sizeof(dtg_plan_args), NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, DTG_STRLEN, 0}
/* clang-format on */

/* How the session would plan such a run, as text for people: what `dtg graph FILE --plan` shows. Nothing is run or kept, no variable is
 * made, and no other task hears of it. With neither fetches nor targets the run is all that the graph is for: every value that nobody
 * reads is fetched, every other node that nobody waits for is a target.
 * There is a page for each pass of the planner, in their order (one line per node that is left: its values, op, operands and place), and
 * one for what came of it. In a local session that is "program": its segments and instructions, the bytes of the frame that a run works
 * in, and where each value lives: in the frame at an offset, as a constant or handle, with who feeds or fetches it, in a variable, or in
 * memory that is leased while the run goes on. In a session of a cluster it is "parts": the nodes that each task would get, and the edges
 * between them. `pass` names one page; NULL gives the last pass and what came of it; "all" gives all pages. Where a text may have several
 * pages, a line "== NAME" stands before each. The form of the lines may change from release to release. `*out` is owned by the caller.
 * Errors: INVALID_ARGUMENT (no such pass; the message lists them), and those that dtg_session_run finds before anything runs. Since 0.1. */
DTG_ERR dtg_session_plan_text(dtg_session *session, const dtg_plan_args *args, dtg_string **out) DTG_NOEXCEPT;

/* Adds a reference and returns the callable; NULL for NULL. Since 0.1. */
DTG_API dtg_callable *dtg_callable_retain(dtg_callable *callable) DTG_NOEXCEPT;
/* Drops a reference; calls under way go on. NULL is fine. Since 0.1. */
DTG_API void dtg_callable_release(dtg_callable *callable) DTG_NOEXCEPT;

/* Number of devices that a run of the session may use, those of all tasks of a cluster; 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_session_device_count(const dtg_session *session) DTG_NOEXCEPT;
/* Full name of device `i`, "/job:localhost/replica:0/task:0/device:CPU:0", valid as long as the session; NULL when i is
 * out of range. Since 0.1. */
DTG_API const char *dtg_session_device_name(const dtg_session *session, size_t i) DTG_NOEXCEPT;

/* Drops variables, queues, accumulators and tables in the named containers; with none named, those in the default container, and what
 * random ops and samplers with a state go on from, which then begin anew. (At a server that state is found by the name, the op and the
 * seeds of a node: sessions go on where others stopped, and it stays until a reset. In a local session it lives as long as that.) Who waits
 * for them fails. Errors: INVALID_ARGUMENT, PERMISSION_DENIED (some task of the cluster would refuse it; then none is reset). Since 0.1. */
DTG_ERR dtg_session_reset(dtg_session *session, const char *const *containers, size_t num_containers) DTG_NOEXCEPT;

/* Refuses new runs, cancels those under way and waits up to `timeout_ns` (0: the session's default) for their end. May be
 * called again. Errors: DEADLINE_EXCEEDED when runs have not ended yet. Since 0.1. */
DTG_ERR dtg_session_close(dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

/* Adds a reference and returns the session; NULL for NULL. Since 0.1. */
DTG_API dtg_session *dtg_session_retain(dtg_session *session) DTG_NOEXCEPT;
/* Drops a reference. NULL is fine. Runs under way go on to their end. Since 0.1. */
DTG_API void dtg_session_release(dtg_session *session) DTG_NOEXCEPT;

/* Cancels a run: it ends soon with CANCELLED, unless it ends by itself first. Any thread, any time, any number of
 * times; NULL is fine. Since 0.1. */
DTG_API void dtg_run_cancel(dtg_run *run) DTG_NOEXCEPT;

/* Result `i` of a run that has ended well, once; owned by the caller from then on. Errors: FAILED_PRECONDITION (not
 * ended, or taken already), INVALID_ARGUMENT, or the run's own error. Since 0.1. */
DTG_ERR dtg_run_take_result(dtg_run *run, size_t i, dtg_tensor **out) DTG_NOEXCEPT;

/* Adds a reference and returns the run; NULL for NULL. Since 0.1. */
DTG_API dtg_run *dtg_run_retain(dtg_run *run) DTG_NOEXCEPT;
/* Drops a reference; the run goes on, its end is announced all the same, and results that nobody took are dropped. NULL is fine.
 * Since 0.1. */
DTG_API void dtg_run_release(dtg_run *run) DTG_NOEXCEPT;

/* The end of an asynchronous run: comes once for each that was started, whether its handle is still held or not. */
typedef struct dtg_completion {
  uint64_t tag;
  dtg_error *error; /* NULL: it ended well; owned by the receiver */
} dtg_completion;

/* A queue of completions, for any number of runs of any sessions; a run keeps its queue alive. `*out` is owned by the caller. Errors:
 * RESOURCE_EXHAUSTED (no file descriptor left). Since 0.1. */
DTG_ERR dtg_cq_create(dtg_cq **out) DTG_NOEXCEPT;

/* Waits until a completion is there or `timeout_ns` has passed (0: does not wait; DTG_INFINITE: for ever), then takes up
 * to `cap` of them into `events`, `stride` bytes apart (0: sizeof(dtg_completion)). `count` receives how many; 0 is not
 * an error. Several threads may wait. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_cq_next(dtg_cq *cq, dtg_completion *events, size_t stride, size_t cap, int64_t timeout_ns, size_t *count) DTG_NOEXCEPT;

/* A descriptor that is readable while completions wait, for poll and its kin; never read, write or close it. -1 for a
 * bad handle. Since 0.1. */
DTG_API int32_t dtg_cq_fd(const dtg_cq *cq) DTG_NOEXCEPT;

/* Adds a reference and returns the queue; NULL for NULL. Since 0.1. */
DTG_API dtg_cq *dtg_cq_retain(dtg_cq *cq) DTG_NOEXCEPT;
/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_cq_release(dtg_cq *cq) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_SESSION_H */
