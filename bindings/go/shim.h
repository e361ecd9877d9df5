/* shim.h: what stands between Go and the C ABI. Go may not hand over a struct that points to Go memory unless it is pinned, so the
 * calls of a step take their arrays one by one and the struct is made here, on the C stack; and one crossing does what would
 * take several. Nothing here keeps anything. Any thread. */
#ifndef DTG_GO_SHIM_H
#define DTG_GO_SHIM_H

#include <dtg/dtg.h>
#include <stdlib.h>
#include <string.h>

#if DTG_VERSION_MAJOR != 0 || !DTG_VERSION_AT_LEAST(0, 1)
#error "this Go package is for the headers of libdtg 0.1 and up to, not including, 1.0: install that version of libdtg"
#endif

/* The log sink of log.go. */
extern void dtgGoLog(uintptr_t user, int32_t level, char *component, char *message);
extern void dtgGoLogFree(uintptr_t user);

/* The functions of data sets of map.go. */
extern dtg_error *dtgGoMap(uintptr_t user, dtg_tensor **arguments, size_t count, dtg_tensor **results, size_t room);
extern dtg_error *dtgGoFilter(uintptr_t user, dtg_tensor **arguments, size_t count, int32_t *keep);
extern dtg_error *dtgGoSourceRestart(uintptr_t user, int64_t epoch);
extern dtg_error *dtgGoSourceNext(uintptr_t user, dtg_tensor **results, size_t room, int32_t *more);
extern void dtgGoUserFree(uintptr_t user);

/* ---- errors ---- */

typedef struct {
  dtg_code code;
  const char *message, *node, *task, *peer, *phase;
  size_t message_len;
} dtg_go_failure;

static inline void dtg_go_read_error(const dtg_error *error, dtg_go_failure *out) {
  out->code = dtg_error_code(error);
  out->message = dtg_error_message(error, &out->message_len);
  out->node = dtg_error_node(error);
  out->task = dtg_error_task(error);
  out->peer = dtg_error_peer(error);
  out->phase = dtg_error_phase(error);
}

/* ---- the runtime ---- */

static inline void dtg_go_log(void *user, dtg_log_level level, const char *component, const char *message) {
  dtgGoLog((uintptr_t)user, level, (char *)component, (char *)message);
}

static inline void dtg_go_log_free(void *user) { dtgGoLogFree((uintptr_t)user); }

/* `log`: the cgo.Handle of the Go sink; 0: none. */
static inline dtg_error *dtg_go_runtime_create(dtg_runtime_options *options, uintptr_t log, dtg_runtime **out) {
  options->struct_size = sizeof *options;
  if (log) {
    options->log = dtg_go_log;
    options->log_user = (void *)log;
    options->log_user_free = dtg_go_log_free;
  }
  return dtg_runtime_create(options, out);
}

/* ---- data sets; `user` is a cgo.Handle ---- */

static inline void dtg_go_user_free(void *user) { dtgGoUserFree((uintptr_t)user); }

static inline dtg_error *dtg_go_map_one(void *user, dtg_tensor *const *arguments, size_t count, dtg_tensor **results, size_t room) {
  return dtgGoMap((uintptr_t)user, (dtg_tensor **)arguments, count, results, room);
}

static inline dtg_error *dtg_go_filter_one(void *user, dtg_tensor *const *arguments, size_t count, int32_t *keep) {
  return dtgGoFilter((uintptr_t)user, (dtg_tensor **)arguments, count, keep);
}

static inline dtg_error *dtg_go_source_next(void *user, dtg_tensor **tensors, size_t count, int32_t *more) {
  return dtgGoSourceNext((uintptr_t)user, tensors, count, more);
}

static inline dtg_error *dtg_go_source_restart(void *user, int64_t epoch) { return dtgGoSourceRestart((uintptr_t)user, epoch); }

static inline dtg_error *dtg_go_map(dtg_dataset *data, uintptr_t user, const dtg_component *components, size_t count) {
  return dtg_dataset_map_host(data, dtg_go_map_one, (void *)user, dtg_go_user_free, components, count);
}

static inline dtg_error *dtg_go_filter(dtg_dataset *data, uintptr_t user) {
  return dtg_dataset_filter_host(data, dtg_go_filter_one, (void *)user, dtg_go_user_free);
}

static inline dtg_error *dtg_go_source(dtg_runtime *home, uintptr_t user, const dtg_component *components, size_t count,
                                       int64_t cardinality, const char *name, size_t name_len, dtg_dataset **out) {
  dtg_host_source source = DTG_HOST_SOURCE_INIT;
  source.user = (void *)user;
  source.user_free = dtg_go_user_free;
  source.components = components;
  source.num_components = count;
  source.next = dtg_go_source_next;
  source.restart = dtg_go_source_restart;
  source.cardinality = cardinality;
  source.name = name;
  source.name_len = name_len;
  return dtg_dataset_host(home, &source, out);
}

/* ---- tensors ---- */

typedef struct {
  void *data;
  size_t nbytes;
  size_t rank;
  int64_t dims[8];
  int64_t count;
  dtg_dtype dtype;
  int32_t read_only;
} dtg_go_layout;

static inline void dtg_go_tensor_layout(dtg_tensor *tensor, dtg_go_layout *out) {
  size_t i;
  out->data = (void *)dtg_tensor_data(tensor, &out->nbytes);
  out->read_only = dtg_tensor_mutable_data(tensor) == NULL;
  out->rank = dtg_tensor_rank(tensor);
  out->count = dtg_tensor_count(tensor);
  out->dtype = dtg_tensor_dtype(tensor);
  for (i = 0; i < out->rank && i < 8; i++) out->dims[i] = dtg_tensor_dim(tensor, i);
}

static inline dtg_error *dtg_go_tensor_copy(dtg_dtype dtype, const int64_t *dims, size_t rank, void *data, size_t nbytes,
                                            dtg_tensor **out) {
  return dtg_tensor_create(dtype, dims, rank, data, nbytes, NULL, NULL, out);
}

/* The end of a loan: says so where Go looks for it. */
static inline void dtg_go_returned(void *data, size_t nbytes, void *user) {
  (void)data;
  (void)nbytes;
  __atomic_store_n((int32_t *)user, 1, __ATOMIC_RELEASE);
}

static inline int32_t dtg_go_is_returned(const int32_t *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

/* Around pinned Go memory; *flag becomes 1 when the library does not need it any more. */
static inline dtg_error *dtg_go_tensor_lend(dtg_dtype dtype, const int64_t *dims, size_t rank, void *data, size_t nbytes, int32_t *flag,
                                            dtg_tensor **out) {
  return dtg_tensor_create(dtype, dims, rank, data, nbytes, dtg_go_returned, flag, out);
}

/* ---- graphs ---- */

/* Adds a node and gives up to `cap` of its outputs; *count says how many it has, at least 1. */
static inline dtg_error *dtg_go_add_op(dtg_graph *graph, dtg_op_spec *spec, dtg_value *outs, size_t cap, size_t *count) {
  size_t i;
  dtg_error *error;
  spec->struct_size = sizeof *spec;
  spec->attr_stride = sizeof(dtg_attr);
  error = dtg_graph_add_op(graph, spec, outs, 1);
  if (error) return error;
  error = dtg_value_num_outputs(graph, outs[0], count);
  if (!error && *count == 0) *count = 1;
  for (i = 1; !error && i < *count && i < cap; i++) error = dtg_value_output(graph, outs[0], i, &outs[i]);
  return error;
}

/* ---- runs ---- */

static inline dtg_run_args dtg_go_args(const dtg_value *feeds, dtg_tensor *const *tensors, size_t num_feeds, const dtg_value *fetches,
                                       dtg_tensor **fetched, size_t num_fetches, const dtg_value *targets, size_t num_targets,
                                       int64_t timeout_ns) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = feeds;
  args.feed_tensors = (const dtg_tensor *const *)tensors;
  args.num_feeds = num_feeds;
  args.fetches = fetches;
  args.fetched = fetched;
  args.num_fetches = num_fetches;
  args.targets = targets;
  args.num_targets = num_targets;
  args.timeout_ns = timeout_ns;
  return args;
}

/* What a fetch is wanted as: an element type, DTG_GO_SCALAR added where it is to be one element; 0: whatever it is. */
#define DTG_GO_SCALAR 0x10000

/* The first fetch that the graph knows to be something else. `at` -1: none. */
typedef struct {
  int64_t at;
  dtg_dtype dtype;
  int32_t rank; /* -1: unknown */
  int64_t dims[8];
} dtg_go_mismatch;

static inline int dtg_go_is_wanted(const dtg_graph *graph, dtg_value value, int32_t wanted, dtg_go_mismatch *found) {
  int32_t i;
  int64_t count = 1;
  dtg_error *error = dtg_value_dtype(graph, value, &found->dtype);
  if (!error) error = dtg_value_shape(graph, value, found->dims, 8, &found->rank);
  if (error) { /* a closed graph, or no such value: the run says what is wrong */
    dtg_error_release(error);
    return 1;
  }
  if (found->dtype != (wanted & ~DTG_GO_SCALAR)) return 0;
  if (!(wanted & DTG_GO_SCALAR) || found->rank < 0 || found->rank > 8) return 1;
  for (i = 0; i < found->rank; i++) {
    if (found->dims[i] < 0) return 1;
    count *= found->dims[i];
  }
  return count == 1;
}

static inline int dtg_go_are_wanted(const dtg_graph *graph, const dtg_value *fetches, const int32_t *wanted, size_t num_fetches,
                                    dtg_go_mismatch *found) {
  size_t i;
  found->at = -1;
  for (i = 0; graph && i < num_fetches; i++) {
    if (wanted[i] && !dtg_go_is_wanted(graph, fetches[i], wanted[i], found)) return found->at = (int64_t)i, 0;
  }
  return 1;
}

/* Where a fetch is known to be something else than wanted, nothing runs, and `found` says which. */
static inline dtg_error *dtg_go_run(dtg_session *session, const dtg_value *feeds, dtg_tensor *const *tensors, size_t num_feeds,
                                    const dtg_value *fetches, dtg_tensor **fetched, size_t num_fetches, const dtg_value *targets,
                                    size_t num_targets, int64_t timeout_ns, uint64_t *write, dtg_cancellation *cancellation,
                                    const dtg_graph *graph, const int32_t *wanted, dtg_go_mismatch *found) {
  dtg_run_args args = dtg_go_args(feeds, tensors, num_feeds, fetches, fetched, num_fetches, targets, num_targets, timeout_ns);
  args.write = write;
  args.cancellation = cancellation;
  if (!dtg_go_are_wanted(graph, fetches, wanted, num_fetches, found)) return NULL;
  return dtg_session_run(session, &args);
}

static inline dtg_error *dtg_go_run_async(dtg_session *session, const dtg_value *feeds, dtg_tensor *const *tensors, size_t num_feeds,
                                          const dtg_value *fetches, size_t num_fetches, const dtg_value *targets, size_t num_targets,
                                          int64_t timeout_ns, uint64_t *write, dtg_cq *cq, uint64_t tag, dtg_run **out) {
  dtg_run_args args = dtg_go_args(feeds, tensors, num_feeds, fetches, NULL, num_fetches, targets, num_targets, timeout_ns);
  args.write = write;
  return dtg_session_run_async(session, &args, cq, tag, out);
}

static inline dtg_error *dtg_go_prepare(dtg_session *session, const dtg_value *feeds, size_t num_feeds, const dtg_value *fetches,
                                        size_t num_fetches, const dtg_value *targets, size_t num_targets, dtg_callable **out) {
  const dtg_run_args args = dtg_go_args(feeds, NULL, num_feeds, fetches, NULL, num_fetches, targets, num_targets, 0);
  return dtg_session_prepare(session, &args, out);
}

/* Coordinators (coordinator.go). */
static inline dtg_error *dtg_go_closure(dtg_coordinator *coordinator, const dtg_value *feeds, size_t num_feeds, const dtg_value *fetches,
                                        size_t num_fetches, const dtg_value *targets, size_t num_targets, dtg_value worker,
                                        dtg_closure **out) {
  const dtg_run_args args = dtg_go_args(feeds, NULL, num_feeds, fetches, NULL, num_fetches, targets, num_targets, 0);
  return dtg_coordinator_prepare(coordinator, &args, worker, out);
}
static inline dtg_error *dtg_go_per_worker(dtg_coordinator *coordinator, dtg_closure *closure, dtg_tensor **feeds, size_t num_feeds) {
  return dtg_coordinator_create_per_worker(coordinator, closure, (const dtg_tensor *const *)feeds, num_feeds);
}
static inline dtg_error *dtg_go_schedule(dtg_coordinator *coordinator, dtg_closure *closure, dtg_tensor **feeds, size_t num_feeds,
                                         int64_t timeout_ns, dtg_cancellation *cancellation, dtg_remote_value **out) {
  dtg_schedule_options options = DTG_SCHEDULE_OPTIONS_INIT;
  options.timeout_ns = timeout_ns;
  options.cancellation = cancellation;
  return dtg_coordinator_schedule(coordinator, closure, (const dtg_tensor *const *)feeds, num_feeds, &options, out);
}
static inline dtg_error *dtg_go_remote_fetch(dtg_remote_value *value, dtg_tensor **fetched, size_t num_fetches, int64_t timeout_ns,
                                             dtg_cancellation *cancellation) {
  return dtg_remote_value_fetch(value, fetched, num_fetches, timeout_ns, cancellation);
}

static inline dtg_error *dtg_go_call(dtg_callable *callable, dtg_tensor *const *tensors, size_t num_feeds, dtg_tensor **fetched,
                                     size_t num_fetches, int64_t timeout_ns, dtg_cancellation *cancellation) {
  return dtg_callable_run_cancellable(callable, (const dtg_tensor *const *)tensors, num_feeds, fetched, num_fetches, timeout_ns,
                                      cancellation);
}

/* The same for up to four of each, all of which are given: handles travel as numbers, so that Go has nothing to check and nothing to put
 * on its heap. */
static inline dtg_error *dtg_go_call_few(uintptr_t callable, size_t num_feeds, uintptr_t in0, uintptr_t in1, uintptr_t in2, uintptr_t in3,
                                         size_t num_fetches, uintptr_t out0, uintptr_t out1, uintptr_t out2, uintptr_t out3,
                                         int64_t timeout_ns, uintptr_t cancellation) {
  const dtg_tensor *const feeds[4] = {(const dtg_tensor *)in0, (const dtg_tensor *)in1, (const dtg_tensor *)in2, (const dtg_tensor *)in3};
  dtg_tensor *fetched[4] = {(dtg_tensor *)out0, (dtg_tensor *)out1, (dtg_tensor *)out2, (dtg_tensor *)out3};
  return dtg_callable_run_cancellable((dtg_callable *)callable, feeds, num_feeds, fetched, num_fetches, timeout_ns,
                                      (dtg_cancellation *)cancellation);
}

/* All results of a run that has ended well. */
static inline dtg_error *dtg_go_take(dtg_run *run, dtg_tensor **results, size_t count) {
  size_t i;
  for (i = 0; i < count; i++) {
    dtg_error *const error = dtg_run_take_result(run, i, &results[i]);
    if (error) {
      while (i > 0) {
        dtg_tensor_release(results[--i]);
        results[i] = NULL;
      }
      return error;
    }
  }
  return NULL;
}

#endif /* DTG_GO_SHIM_H */
