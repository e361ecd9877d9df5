/* dtg/server.h: the tasks of a cluster, and what a session can do with them. A server is one task of a cluster
 * (dtg/cluster.h) in this process. A session that is connected to a server's target can place ops on every task of the
 * cluster. There is no master and no parameter server as such: a parameter server is a server that holds variables.
 *
 *   options.job = self.type; options.task = self.index; dtg_server_start(NULL, cluster, &options, &server);   which one this is
 *   dtg_server_join(server, DTG_INFINITE);                              a ps: until the chief ends the job
 *   dtg_session_connect(NULL, dtg_server_target(server), DTG_STRLEN, graph, NULL, &session);    a worker
 */
#ifndef DTG_SERVER_H
#define DTG_SERVER_H

#include <dtg/cluster.h>
#include <dtg/session.h>

DTG_BEGIN_DECLS

/* One task of a cluster, with its devices, variables and queues. Shared: any thread. */
typedef struct dtg_server dtg_server;

/* ---- keys ---- */

/* Makes a new job key (256 random bits) in a new file that only its owner can read, mode 0600: what tasks and sessions take as
 * `key_file`. Every task of the job needs the same. Errors: INVALID_ARGUMENT, ALREADY_EXISTS (it is never overwritten),
 * FAILED_PRECONDITION (what the file system says). Since 0.1. */
DTG_ERR dtg_keygen(const char *path, size_t path_len) DTG_NOEXCEPT;

/* ---- servers ---- */

/* What becomes of a task's variables when its process dies.
 *   MEMORY  they die with it.
 *   REPLAY  not built in yet: UNIMPLEMENTED.
 *   WAL     every update is in a log before it takes place, and on the disk before whoever asked for it is told. Started anew on its
 *           address with the same state_dir, the task goes on with all of them; sessions wait for it within the deadlines of their runs,
 *           which are repeated and take effect once (dtg/replicas.h: and strict training goes on). Costs the bandwidth of the disk, and a
 *           wait for it per run that updates.
 *   WAL_ASYNC  the same, but nobody waits for the disk: the death of the process loses nothing, that of the machine what came in
 *           its last second. */
/* clang-format off */
typedef int32_t dtg_durability;
enum {
  DTG_DURABILITY_DEFAULT = 0, /* WAL where there is a state_dir, else MEMORY */
  DTG_DURABILITY_MEMORY = 1,
  DTG_DURABILITY_REPLAY = 2,
  DTG_DURABILITY_WAL = 3,
  DTG_DURABILITY_WAL_ASYNC = 4
};
/* clang-format on */

/* Which task a server is, and how it is reached. Strings are copied. */
/* clang-format off */
typedef struct dtg_server_options {
  size_t struct_size;
  const char *job;             /* NULL: the only job of the cluster */
  size_t job_len;
  int32_t task;                /* index within the job */
  int32_t cpu_devices;         /* virtual CPU devices of the task; 0: 1 */
  const char *key_file;        /* the job key, needed for TCP; must belong to the user, mode 0600. NULL: the file that
                                  DTG_KEY_FILE of the environment names; without it, on loopback, a key of the user's own is
                                  made and found by itself */
  size_t key_file_len;
  dtg_security security;
  int32_t no_shared_memory;    /* 1: large values go through the socket also between processes of one host and user; other numbers
                                  but 0 are refused. 0: they go through shared memory there, over unix: addresses */
  const char *const *device_filters;  /* sessions of this server see only tasks that match one of these, such as
                                         "/job:ps" and "/job:worker/task:1"; none: all. Its own task always matches */
  size_t num_device_filters;
  int64_t heartbeat_ns;        /* 0: 1 s */
  int64_t dead_ns;             /* silence after which a peer counts as dead, at least two heartbeats; 0: 5 s */
  const char *state_dir;       /* where the task keeps its variables, for itself alone; made where it is not there. NULL: nowhere; for a
                                  task of the job "ps" without a durability what DTG_STATE_DIR and DTG_DURABILITY of the environment
                                  say, as `dtg run --state` sets them */
  size_t state_dir_len;
  dtg_durability durability;
  int32_t emu_devices;         /* emulated accelerators of the task, as in dtg_session_options; not with a state_dir. 0: none */
  int64_t emu_memory_bytes;    /* what each of them has of its own; 0: 256 MiB */
} dtg_server_options;
#define DTG_SERVER_OPTIONS_INIT {sizeof(dtg_server_options), NULL, DTG_STRLEN, 0, 0, NULL, DTG_STRLEN, 0, 0, NULL, 0, 0, 0, NULL, DTG_STRLEN, 0, 0, 0}
/* clang-format on */

/* Starts the server of one task; it listens when this returns. A "host:0" address lets the system choose the port, which
 * dtg_server_target tells. Where a session's run makes a value on this task for another one, the server connects there itself, at
 * the address that the cluster has for it and with the key and security of these options; where that fails, the log says so and
 * the value passes through the session's task. Errors: INVALID_ARGUMENT (no such task), NOT_FOUND (no such key file),
 * PERMISSION_DENIED (a socket's folder or a key file that others may use), FAILED_PRECONDITION (an address that others can reach,
 * without a key; the message has the line that mends it), ALREADY_EXISTS (another process listens there, or uses the state_dir),
 * DATA_LOSS (the state_dir is damaged), UNIMPLEMENTED (DTG_DURABILITY_REPLAY).
 *
 * Sessions and tasks that reach this one over a unix: address are processes of one user on one host. With those, large values (32 KiB and
 * more) go through memory that both have in common (memfds, sealed; nothing in the file system): up to 8 MiB for each direction of a
 * connection, out of the runtime's memory budget, given back when a connection has not needed it for a heartbeat. Where there is no memory
 * or no descriptor for it, and with releases that do not know it, they go through the socket.
 *
 * With a state_dir the task first goes on with what an earlier one has left there, then listens. It keeps variables, and of each
 * session which of its updates took place. It does not keep queues: they are empty then. Accumulators, the destruction of variables,
 * dtg_session_reset and sessions in the process of the server itself are UNIMPLEMENTED there. A disk that fails ends the updates of the
 * task, with its error, until it is started anew. Since 0.1. */
DTG_ERR dtg_server_start(dtg_runtime *runtime, const dtg_cluster *cluster, const dtg_server_options *options,
                         dtg_server **out) DTG_NOEXCEPT;

/* What a session connects to, "unix:/run/j/ps0" or "10.0.0.1:2222"; valid as long as the server, NULL for a bad handle.
 * Inside this process a session at this target shares the server's devices and variables without a socket. Since 0.1. */
DTG_API const char *dtg_server_target(const dtg_server *server) DTG_NOEXCEPT;

/* Waits until the server has stopped: by dtg_server_stop, or because the chief ended the job (dtg_session_end_job).
 * `timeout_ns`: DTG_INFINITE is allowed, 0 only looks. Errors: DEADLINE_EXCEEDED (it still runs). Since 0.1. */
DTG_ERR dtg_server_join(dtg_server *server, int64_t timeout_ns) DTG_NOEXCEPT;

/* Takes no more connections, ends those there are with UNAVAILABLE, waits up to `timeout_ns` (0: 5 s) for their runs. May
 * be called again. Variables go with the last reference. Errors: DEADLINE_EXCEEDED. Since 0.1. */
DTG_ERR dtg_server_stop(dtg_server *server, int64_t timeout_ns) DTG_NOEXCEPT;

/* What the server is doing, as JSON: task, incarnation, address, devices, sessions [{peer, task, channel, security,
 * shared_bytes, parts, runs}] with channel "shared memory" (a unix socket, beside which large values go through memory that both processes
 * have in common: shared_bytes of them so far), "unix", "tcp" or "memory",
 * variables {count, bytes}, attendance (null but at the first ps, or the chief without one) {workers [{task, presence: there, awaited,
 * lost or left, done, and of who is gone seconds and reason}], barriers [{name, arrived}]}, commits {repetitions, writers, rows,
 * durability; with a state_dir also number, on_disk, sets, bytes, failure}. writers: sessions that are connected, or went without a word
 * and wrote before, of whose updates it knows rows; a session that was closed is none. A task that brings values for somebody's session is
 * among the sessions, with the peer "values for session N". `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_server_status(const dtg_server *server, dtg_string **out) DTG_NOEXCEPT;

/* Adds a reference and returns the server; NULL for NULL. Since 0.1. */
DTG_API dtg_server *dtg_server_retain(dtg_server *server) DTG_NOEXCEPT;
/* Drops a reference; the last one stops the server. NULL is fine. Since 0.1. */
DTG_API void dtg_server_release(dtg_server *server) DTG_NOEXCEPT;

/* ---- what a session can do with its cluster ---- */

/* Waits until all workers of the job (the tasks of the jobs "chief", "master" and "worker") wait at the barrier `name`, of 1 to 200
 * bytes, for at most `timeout_ns` (0: the session's default). The same name may be used again when all were let through. Every worker
 * is a program with a server of its own; a local session is the only worker there is and is let through at once. One session of a worker
 * stands for all of that worker; an arrival that failed, or whose process died, does not count and may be made again.
 *
 * The first ps keeps who is there (where there is none: the chief's task). A worker whose connection to it ended, and that is not back in
 * six times the dead_ns of that task's server (30 s), counts as gone. What is waited for longer than some seconds is in the log (INFO).
 * Errors: INVALID_ARGUMENT (the name), UNAVAILABLE (a worker is gone: the message names it and says why; or the task that keeps
 * who is there cannot be reached), DEADLINE_EXCEEDED (the message names those that have not come), PERMISSION_DENIED and
 * FAILED_PRECONDITION (the session speaks for no worker; device filters hide that task), ABORTED (another arrival of this worker took the
 * place of this one, or that task has lost its state). Since 0.1. */
DTG_ERR dtg_session_barrier(dtg_session *session, const char *name, size_t name_len, int64_t timeout_ns) DTG_NOEXCEPT;

/* What became of a run that failed with an error after which nobody knows (DEADLINE_EXCEEDED, UNAVAILABLE, CANCELLED, ABORTED). */
typedef int32_t dtg_outcome;
enum {
  DTG_OUTCOME_NOTHING = 0,  /* it has changed nothing on any other task, no variable, queue or accumulator, and will not */
  DTG_OUTCOME_UPDATED = 1,  /* it has, on one task at least: all of it, or up to where it was cut short */
  DTG_OUTCOME_FORGOTTEN = 2 /* so long ago that a task does not know any more */
};
/* Asks the tasks of the cluster, for at most `timeout_ns` (0: the session's default), what took place of a run of this session, by the
 * number that dtg_run_args.write received. A task knows the last 16,384 commits of a session's runs, or fewer where the session has not
 * been connected to it for long and many others went without closing theirs. To have all of it done, whatever the answer is, run the same
 * once more with that number: what took place is not made again, and a run that was cut short goes on where it was. That is so for runs
 * which update variables of other tasks and nothing of their own; those that put into queues or accumulators, or fetch what an update
 * gives, can only be asked about. A task that keeps no state and was started anew has forgotten its variables, and with them what was done
 * to them; queues and accumulators come back empty where it keeps its state, too, and what was done to those is forgotten with them.
 * Errors: INVALID_ARGUMENT (the session has made no run of that number), UNAVAILABLE (a task is gone, or the run is still under way
 * there), DEADLINE_EXCEEDED, UNIMPLEMENTED (a task runs an earlier release). Since 0.1. */
DTG_ERR dtg_session_outcome(dtg_session *session, uint64_t write, int64_t timeout_ns, dtg_outcome *out) DTG_NOEXCEPT;

/* The end of a job, for all workers: what this one had to do is done. Waits until that is so of every worker, then the chief (where the
 * cluster has none: a client that is no task) tells every task but its own to stop, and those that wait in dtg_server_join return. A
 * worker that is gone, as in dtg_session_barrier, is not waited for; the chief's log names it (WARN). Where the chief is gone, or the
 * time is over, nothing was ended. Tasks that have stopped already are no error. A ps does not call it.
 * Under DTG_SYNC_SSP and DTG_SYNC_ELASTIC it runs `leave` of the session's graph first, so that nobody waits for a step of this worker;
 * where it fails after that, run `local_init` before another `train`. Under DTG_SYNC_ELASTIC workers that never came, or
 * have closed their sessions, are not waited for, and those that are lost for dead_ns and a second only: the task that keeps who is there
 * has to be up for so long.
 * Errors: DEADLINE_EXCEEDED (the message names those that work on), UNAVAILABLE (the chief is gone), and the others of
 * dtg_session_barrier; FAILED_PRECONDITION (a local session). Since 0.1. */
DTG_ERR dtg_session_end_job(dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

/* The end of a job at once, whatever the workers are at: their runs end with CANCELLED or UNAVAILABLE. The chief's alone, others get
 * PERMISSION_DENIED. Errors: DEADLINE_EXCEEDED, FAILED_PRECONDITION (a local session). Since 0.1. */
DTG_ERR dtg_session_end_job_now(dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

/* What dtg_server_status says of each other task of the session's cluster, asked over the network: a JSON list; a task that
 * does not answer has "error". `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_session_cluster_status(dtg_session *session, int64_t timeout_ns, dtg_string **out) DTG_NOEXCEPT;

/* The same of every task of the cluster that the task at `target` belongs to, without a session: tasks may be missing, only
 * that one must answer. Of `options` (may be NULL) key_file, security and connect_timeout_ns count; the last bounds the whole
 * call. Errors: UNAVAILABLE, DEADLINE_EXCEEDED (nobody answers at `target`), and those of dtg_session_connect. `*out` is owned
 * by the caller. Since 0.1. */
DTG_ERR dtg_cluster_status(dtg_runtime *runtime, const char *target, size_t target_len, const dtg_session_options *options,
                           dtg_string **out) DTG_NOEXCEPT;

/* Runs `targets` again and again, one run after the other and without a thread that waits, until a run fails, it is
 * cancelled or the session is closed: TensorFlow's queue runner. The end is announced in `cq` with `tag` (NULL: nobody is
 * told) and is never ok: CANCELLED is the good one. No deadline bounds the single run. `out` may be NULL.
 * The `update` of a replicated training (dtg/replicas.h), alone, also goes on after the loss of a task: when that is back, however long it
 * takes where it keeps its variables (dtg_server_options.state_dir), else for a second. Where it ends nevertheless, but not by
 * dtg_run_cancel and not with its session or job, a warning says so. Run repeatedly once more, it takes the place of the first, which ends
 * with ABORTED.
 * Errors: those found before the first run starts. Since 0.1. */
DTG_ERR dtg_session_run_repeatedly(dtg_session *session, const dtg_value *targets, size_t num_targets, dtg_cq *cq, uint64_t tag,
                                   dtg_run **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_SERVER_H */
