/* dtg/error.h: errors and strings that the library hands out. Both are immutable and shared: any thread. Who receives one owns it;
 * what the functions here point at lives as long as the error or string, and is never NULL. An error tells its code for programs, a
 * message for people, and, where they are known, the node, the task, the connection and the phase for tools. DTG_DEADLINE_EXCEEDED,
 * DTG_ABORTED and DTG_UNAVAILABLE from the library always tell a phase, and a task, a peer or both, so that a program knows where to look.
 */
#ifndef DTG_ERROR_H
#define DTG_ERROR_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* The code of an error; DTG_OK for NULL. A handle that is no error answers DTG_INTERNAL. Since 0.1. */
DTG_API dtg_code dtg_error_code(const dtg_error *error) DTG_NOEXCEPT;

/* What was attempted, on what, what was found and what to try, as one UTF-8 line that ends with NUL. `length` (may be
 * NULL) receives its bytes. Borrowed from the error; "" for NULL. Since 0.1. */
DTG_API const char *dtg_error_message(const dtg_error *error, size_t *length) DTG_NOEXCEPT;

/* Full name of the graph node that failed, as dtg_graph_find takes it; "" when none is to blame. UTF-8, ends with NUL. Borrowed.
 * Since 0.1. */
DTG_API const char *dtg_error_node(const dtg_error *error) DTG_NOEXCEPT;

/* The task that found the failure, "/job:ps/replica:0/task:0"; of a local session "/job:localhost/replica:0/task:0", of one that is no task
 * of its cluster "/job:session/replica:0/task:0"; or "". Borrowed. Since 0.1. */
DTG_API const char *dtg_error_task(const dtg_error *error) DTG_NOEXCEPT;

/* The other end of the connection that failed, or the first of those that were waited for; or "". Borrowed. Since 0.1. */
DTG_API const char *dtg_error_peer(const dtg_error *error) DTG_NOEXCEPT;

/* When it failed; "" where that is not known. Borrowed. New ones may come:
 *   "build"     a node was added to a graph
 *   "place"     a device was chosen for a node
 *   "prepare"   a run was planned, or its parts were given to the tasks
 *   "feed"      what a run is fed with was looked at
 *   "run"       a run, or a collective of a group, was under way or about to begin
 *   "connect"   a task was looked for and greeted
 *   "listen"    a server took its address
 *   "recover"   a server read the state that it had kept, or training after a loss was brought to where it goes on
 *   "wait"      values of a model's variables were waited for (dtg_model_wait_ready)
 *   "meet"      workers waited for each other at a barrier
 *   "form"      a group was formed
 *   "schedule"  a coordinator had closures to give out, or their ends were waited for
 *   "save"      a checkpoint was being written
 *   "restore"   one was read
 *   "ask"       tasks were asked something: their status, what became of a run, to drop what a container holds
 *   "end"       a session, a server or the job was brought to its end
 * Since 0.1. */
DTG_API const char *dtg_error_phase(const dtg_error *error) DTG_NOEXCEPT;

/* "INVALID_ARGUMENT" and so on: static; "UNKNOWN" for numbers that are no code. Since 0.1. */
DTG_API const char *dtg_code_name(dtg_code code) DTG_NOEXCEPT;

/* An error of the host's own, for functions of the host that the library calls (dtg/strategy.h): DTG_OK and unknown numbers count as
 * DTG_UNKNOWN, `message` is UTF-8 and may be NULL. Owned by the caller, who mostly gives it away by returning it. NULL never. Any thread.
 * Since 0.1. */
DTG_API dtg_error *dtg_error_create(dtg_code code, const char *message, size_t message_len) DTG_NOEXCEPT;

/* Adds a reference and returns the error; NULL for NULL. Needed only where two owners keep the same error. Since 0.1. */
DTG_API dtg_error *dtg_error_retain(dtg_error *error) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_error_release(dtg_error *error) DTG_NOEXCEPT;

/* Bytes of a string, followed by a NUL that `length` (may be NULL) does not count. May hold any byte (a serialised
 * graph does). Borrowed; "" for NULL or a handle that is no string. Since 0.1. */
DTG_API const char *dtg_string_data(const dtg_string *string, size_t *length) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_string_release(dtg_string *string) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_ERROR_H */
