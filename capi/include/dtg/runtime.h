/* dtg/runtime.h: the compute threads, the op table and the settings that sessions share. Shared: any thread.
 *
 * Wherever a `dtg_runtime *` is asked for, NULL means the default runtime of the process, made at its first use with
 * default options. Several runtimes may live side by side; they share nothing. Most programs need none of this header: make a
 * runtime to bound threads or memory, or to take the log.
 */
#ifndef DTG_RUNTIME_H
#define DTG_RUNTIME_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* How much a line of the log matters. OFF is for options only: nothing is handed out. */
typedef int32_t dtg_log_level;
enum { DTG_LOG_DEBUG = 0, DTG_LOG_INFO = 1, DTG_LOG_WARN = 2, DTG_LOG_ERROR = 3, DTG_LOG_OFF = 4 };

/* One line of the log: servers that start and stop, sessions that come and go and why (INFO), frames that travel in the clear (WARN),
 * a connection that does not come about for a second and a half and is tried again (WARN, with why and for how long). What fails is not
 * logged but returned to whoever called. `component` and `message` are UTF-8, end with NUL and are valid for this call only. Called on one
 * thread of the library that does nothing else (all signals blocked), line after line in the order in which they were said and with nothing
 * locked: it may take its time and locks of the host's. It hears of a thing a moment after it happened, and of everything before
 * `log_user_free` is called; where it is 1,024 lines behind, lines are dropped and a line says how many. Must not release the last
 * reference to the runtime. */
typedef void (*dtg_log_fn)(void *user, dtg_log_level level, const char *component, const char *message);
/* Called once when the library will not use `user` any more. */
typedef void (*dtg_user_free_fn)(void *user);

/* Settings of a runtime, fixed when it is made. The number of threads changes the speed of a run, never the bits of its results. */
typedef struct dtg_runtime_options {
  size_t struct_size;
  int32_t compute_threads;    /* 0: what DTG_THREADS says (1 to 1024), as dtg run sets it for each task; else one per
                                 CPU that this process may use */
  int32_t pin_threads;        /* non-zero: thread i stays on the i-th of those CPUs */
  int64_t spin_ns;            /* how long an idle thread polls before it sleeps; 0: 50 us */
  int64_t memory_limit_bytes; /* for sizes that come from outside; 0: half of the machine's or the cgroup's memory */
  dtg_log_fn log;             /* NULL: warnings and errors, one line each, to stderr */
  void *log_user;
  dtg_user_free_fn log_user_free; /* may be NULL */
  int32_t log_level;              /* smallest level handed to `log` */
  int32_t reserved0;
} dtg_runtime_options;
#define DTG_RUNTIME_OPTIONS_INIT \
  { sizeof(dtg_runtime_options), 0, 0, 0, 0, NULL, NULL, NULL, DTG_LOG_WARN, 0 }

/* Makes a runtime. `options` may be NULL. Threads start when they are first needed. On failure `log_user_free` is not
 * called. Errors: INVALID_ARGUMENT for values out of range. Since 0.1. */
DTG_ERR dtg_runtime_create(const dtg_runtime_options *options, dtg_runtime **out) DTG_NOEXCEPT;

/* Compute threads of the runtime (NULL: the default one), the caller of a synchronous run included; 0 for a bad handle.
 * Since 0.1. */
DTG_API int32_t dtg_runtime_threads(dtg_runtime *runtime) DTG_NOEXCEPT;

/* Adds a reference and returns the runtime; NULL for NULL. Since 0.1. */
DTG_API dtg_runtime *dtg_runtime_retain(dtg_runtime *runtime) DTG_NOEXCEPT;

/* Drops a reference; the threads end when the last session of the runtime is gone too. NULL is fine. Since 0.1. */
DTG_API void dtg_runtime_release(dtg_runtime *runtime) DTG_NOEXCEPT;

/* Gives the system what lies idle: the blocks that runs worked in, and freed tensors. Without it 64 MiB of the former may stay for the next
 * run, and of the latter 16 MiB, or 64 MiB of small ones per thread. For hosts that pause for long. Any time. Since 0.1. */
DTG_ERR dtg_runtime_trim(dtg_runtime *runtime) DTG_NOEXCEPT;

/* The op table as JSON: a list of {name, doc, inputs, outputs, attributes, stateful, differentiable, kernels}. Inputs and outputs
 * are {name, type, number, list}: `type` is an element type, or the attribute that tells it; `number` the attribute that says
 * how many there are; `list` is true where `type` names a list of types. Attributes are {name, kind, has_default, default, types,
 * strings}. `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_ops_json(dtg_runtime *runtime, dtg_string **out) DTG_NOEXCEPT;

/* The runtime's numbers (runs, failures, plans, wakes, memory) in Prometheus' text format 0.0.4, to be served under
 * "text/plain; version=0.0.4; charset=utf-8". `*out` is owned by the caller. Since 0.1. */
DTG_ERR dtg_runtime_metrics(dtg_runtime *runtime, dtg_string **out) DTG_NOEXCEPT;

/* Begins to record what each thread executes, for all sessions of the runtime; each thread keeps its latest 16,384 entries. While
 * nothing is recorded it costs one branch per op. NULL: the default runtime, as everywhere here. Since 0.1. */
DTG_ERR dtg_runtime_trace_start(dtg_runtime *runtime) DTG_NOEXCEPT;

/* Stops recording and gives what was recorded as Chrome trace JSON, which Perfetto and chrome://tracing open. `*out` is
 * owned by the caller. Since 0.1. */
DTG_ERR dtg_runtime_trace_stop(dtg_runtime *runtime, dtg_string **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_RUNTIME_H */
