/* dtg/base.h: what every header of the C ABI stands on: export marks, strings, codes, element types, values.
 *
 * Conventions of the whole ABI
 * 1. A call that can fail returns `dtg_error *`: NULL means success, anything else is owned by the caller and
 *    freed with dtg_error_release. Out-parameters come last and are written only on success.
 * 2. Handles are opaque and counted. `create`, `connect` and `start` give one reference, `retain` adds one,
 *    `release` drops one; it takes NULL, never blocks and never fails (only the last one of a server whose groups nobody has left
 *    waits for their members to have what was sent, 2 s at most: leave them, or stop the server, before). What an object needs it holds
 *    itself, so the order of releases does not matter. A handle that was released, or is of another type, is reported as
 *    DTG_INVALID_ARGUMENT and never dereferenced (as long as fewer than 4,096 handles were released since).
 * 3. Strings are UTF-8 with a length; DTG_STRLEN means "ends with NUL". The library copies what it keeps. In a struct NULL, or "" that ends
 *    with NUL, is a string that is not given; one that is not NULL and has the length 0 is refused as DTG_INVALID_ARGUMENT, as its length
 *    was forgotten, and so is one with a NUL in it. (The strings of attributes, dtg_attr's `s`, are values and may be empty.)
 * 4. Structs begin with `struct_size` and grow only at their end. Use the _INIT macros: they set lengths to DTG_STRLEN, and a few other
 *    fields; zero is the default of the rest. A size below release 0.1's, or a non-zero tail that this library does not know, is refused.
 * 5. Threads: "shared" objects may be used from any thread at any time; "single" objects by one thread at a time. No
 *    lock is held while a function of the host runs, and none runs inside a call but the ones documented there.
 *      shared: dtg_runtime, dtg_session, dtg_callable, dtg_cancellation, dtg_run, dtg_cq, dtg_error, dtg_string, dtg_cluster, dtg_server,
 *              dtg_coordinator, dtg_closure, dtg_remote_value,
 *              dtg_group, dtg_collective, dtg_tensor (contents read-only while runs use them), dtg_graph for reading and for running
 *      single: dtg_graph while nodes are added or scopes change, dtg_model, dtg_strategy, dtg_mesh, dtg_dataset, dtg_weights,
 *              dtg_event_writer, dtg_checkpoint but for wait and status,
 *              dtg_trainer but for stop and summary
 *    A thread that comes into a single object while another is inside gets DTG_FAILED_PRECONDITION with the names of both.
 * 6. The library never aborts or exits, installs no signal handler, writes nothing to stdout, throws nothing through
 *    the ABI. In a forked child every call answers DTG_FAILED_PRECONDITION and every release does nothing.
 * 7. Times are relative nanoseconds. 0 means "the default"; negative values are refused except where DTG_INFINITE is
 *    allowed by name.
 * 8. "Since" tells the release that brought a function, "Semantics" whose rules it follows where a rule is not written out.
 *
 * A call and its errors, in full:
 *
 *   dtg_error *error = dtg_graph_create(NULL, &graph);
 *   if (error != NULL) {
 *     fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(error)), dtg_error_message(error, NULL));
 *     dtg_error_release(error);
 *   }
 */
#ifndef DTG_BASE_H
#define DTG_BASE_H

#include <stddef.h>
#include <stdint.h>

/* What lets one header serve C11 and C++: C linkage, and the promise that nothing is thrown. */
#ifdef __cplusplus
#define DTG_NOEXCEPT noexcept
#define DTG_BEGIN_DECLS extern "C" {
#define DTG_END_DECLS }
#else
#define DTG_NOEXCEPT
#define DTG_BEGIN_DECLS
#define DTG_END_DECLS
#endif

/* A function of the ABI. */
#define DTG_API __attribute__((visibility("default")))
/* A function of the ABI that can fail: the result must be looked at and released. */
#define DTG_ERR __attribute__((warn_unused_result, visibility("default"))) struct dtg_error *

/* In place of a length: the string ends with NUL. In place of a rank (dtg/graph.h): the rank is not known. */
#define DTG_STRLEN SIZE_MAX
/* No deadline; accepted only by dtg_cq_next. */
#define DTG_INFINITE INT64_C(-1)

/* Version of these headers; that of the library which is loaded is told by dtg_abi_version and dtg_version. Until 1.0 another
 * minor version may be another ABI, and the SONAME (libdtg.so.0.1) says so. DTG_VERSION_AT_LEAST is for #if. */
#define DTG_VERSION_MAJOR 0
#define DTG_VERSION_MINOR 1
#define DTG_VERSION_PATCH 0
#define DTG_VERSION_AT_LEAST(major, minor) (DTG_VERSION_MAJOR > (major) || (DTG_VERSION_MAJOR == (major) && DTG_VERSION_MINOR >= (minor)))

DTG_BEGIN_DECLS

/* Why a call failed: dtg/error.h. */
typedef struct dtg_error dtg_error;
/* Bytes that the library hands out: dtg/error.h. */
typedef struct dtg_string dtg_string;
/* Compute threads, the op table, the memory limit and the log: dtg/runtime.h. */
typedef struct dtg_runtime dtg_runtime;
/* A value outside of graphs: element type, shape, memory: dtg/tensor.h. */
typedef struct dtg_tensor dtg_tensor;
typedef struct dtg_function dtg_function;
/* Nodes and what connects them: dtg/graph.h. */
typedef struct dtg_graph dtg_graph;
/* Runs of one graph on the devices of one target: dtg/session.h. */
typedef struct dtg_session dtg_session;
/* A run with its feeds, fetches and targets fixed: dtg/session.h. */
typedef struct dtg_callable dtg_callable;
/* The wish that calls end, told by another thread: dtg/session.h. */
typedef struct dtg_cancellation dtg_cancellation;
/* A run under way that no thread waits for: dtg/session.h. */
typedef struct dtg_run dtg_run;
/* A queue in which the ends of such runs are announced: dtg/session.h. */
typedef struct dtg_cq dtg_cq;

/* One output of one node of one graph; also names the node itself where a node is asked for (targets, control
 * inputs). A plain number: copied and compared freely, owned by nobody, good for as long as its graph. 0 is invalid, and stands
 * for "none" where a value may be left out. A value of another graph is recognised and refused. */
typedef struct dtg_value {
  uint64_t id;
} dtg_value;

/* Why a call failed. The numbers are those of TensorFlow, Abseil and gRPC. New codes may come: treat one that is not listed as
 * DTG_UNKNOWN. Which calls answer what, and why, stands with each function; in general:
 *   CANCELLED            the host asked for it: dtg_run_cancel, dtg_cancellation_cancel, or a session that was closed
 *   INVALID_ARGUMENT     the call is wrong, whatever the state: a closed handle, a bad shape, a value of another graph
 *   DEADLINE_EXCEEDED    the time was up; what was begun is cancelled
 *   NOT_FOUND            no such op, name, file or column
 *   ALREADY_EXISTS       what would be made is there: a key file, a listener at the address
 *   PERMISSION_DENIED    the file system or the other task forbids it
 *   RESOURCE_EXHAUSTED   memory, the memory limit, descriptors or threads ran out
 *   FAILED_PRECONDITION  right call, wrong state: a variable without value, a closed session, a forked child
 *   ABORTED              the run lost against another one; trying it again is sensible
 *   OUT_OF_RANGE         an index beyond the end, or the end of a queue or data set in a run
 *   UNIMPLEMENTED        TensorFlow has it, this release has not
 *   INTERNAL             a defect of the library; please report it
 *   UNAVAILABLE          a task of the cluster cannot be reached, or was lost; it may come back
 *   DATA_LOSS            bytes that are cut, damaged or not of the format
 *   UNAUTHENTICATED      the other end has another key */
typedef int32_t dtg_code;
enum {
  DTG_OK = 0,
  DTG_CANCELLED = 1,
  DTG_UNKNOWN = 2,
  DTG_INVALID_ARGUMENT = 3,
  DTG_DEADLINE_EXCEEDED = 4,
  DTG_NOT_FOUND = 5,
  DTG_ALREADY_EXISTS = 6,
  DTG_PERMISSION_DENIED = 7,
  DTG_RESOURCE_EXHAUSTED = 8,
  DTG_FAILED_PRECONDITION = 9,
  DTG_ABORTED = 10,
  DTG_OUT_OF_RANGE = 11,
  DTG_UNIMPLEMENTED = 12,
  DTG_INTERNAL = 13,
  DTG_UNAVAILABLE = 14,
  DTG_DATA_LOSS = 15,
  DTG_UNAUTHENTICATED = 16
};

/* Element types, with TensorFlow's numbers. Every type is named; which ops compute on which types is told by
 * dtg_ops_json and by the error of a call that asks for one that is missing. F, I, U and C are floating-point, signed, unsigned
 * and complex numbers, with their bits; BF16 is the upper half of an F32, F8 the two forms of OCP's 8 bits; the Qs are the plain
 * integers of quantized models. BOOL is one byte, 0 or 1. STRING has no plain memory; tensors of it are made and read by functions of
 * their own (dtg_tensor_create_strings). RESOURCE (what stands for a variable or a queue), VARIANT and the 4-bit types have none either,
 * and tensors of them are refused as UNIMPLEMENTED. */
typedef int32_t dtg_dtype;
enum {
  DTG_F32 = 1,
  DTG_F64 = 2,
  DTG_I32 = 3,
  DTG_U8 = 4,
  DTG_I16 = 5,
  DTG_I8 = 6,
  DTG_STRING = 7,
  DTG_C64 = 8,
  DTG_I64 = 9,
  DTG_BOOL = 10,
  DTG_QI8 = 11,
  DTG_QU8 = 12,
  DTG_QI32 = 13,
  DTG_BF16 = 14,
  DTG_QI16 = 15,
  DTG_QU16 = 16,
  DTG_U16 = 17,
  DTG_C128 = 18,
  DTG_F16 = 19,
  DTG_RESOURCE = 20,
  DTG_VARIANT = 21,
  DTG_U32 = 22,
  DTG_U64 = 23,
  DTG_F8_E5M2 = 24,
  DTG_F8_E4M3FN = 25,
  DTG_I4 = 29,
  DTG_U4 = 30
};

/* Version of the library that is loaded: major << 16 | minor. Compare with DTG_VERSION_MAJOR and _MINOR where the library is
 * loaded by name (dlopen). Never fails; any thread. Since 0.1. */
DTG_API uint32_t dtg_abi_version(void) DTG_NOEXCEPT;

/* "0.1.0": static, never freed. Any thread. Since 0.1. */
DTG_API const char *dtg_version(void) DTG_NOEXCEPT;

/* 1 if the library was built with the feature ("cpu", "cuda", "tls"), else 0; 0 for names it does not know, NULL
 * included. Any thread. Since 0.1. */
DTG_API int32_t dtg_has_feature(const char *name) DTG_NOEXCEPT;

/* Bytes of one element; 0 for types without a fixed plain size (string, resource, variant, 4-bit) and for unknown
 * numbers. Any thread. Since 0.1. */
DTG_API size_t dtg_dtype_size(dtg_dtype dtype) DTG_NOEXCEPT;

/* "float32", "int64", "bool", ...: static; "invalid" for unknown numbers. Any thread. Since 0.1. */
DTG_API const char *dtg_dtype_name(dtg_dtype dtype) DTG_NOEXCEPT;

/* The type of that name ("float32", or "float" as the op registry writes it); 0 if there is none or name is NULL. Any
 * thread. Since 0.1. */
DTG_API dtg_dtype dtg_dtype_from_name(const char *name) DTG_NOEXCEPT;

/* Handles of all types that are alive in this process and were not released, errors and strings included: 0 at the end of a
 * test that leaks nothing. Counts handles, not references. Any thread. Since 0.1. */
DTG_API size_t dtg_live_handles(void) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_BASE_H */
