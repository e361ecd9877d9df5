/* dtg/map.h: what a program itself does to the elements of a data set, and elements that it makes. Three ways in:
 *
 *   a function of a graph   maps or filters elements by the library's own ops, several at once;
 *   a function of the host  maps or filters elements by any code of the program;
 *   a source of the host    gives elements, such as the rows of a queue, a data base or another library.
 *
 *   dtg_graph *body;                                             images turned from bytes into numbers between 0 and 1
 *   dtg_value x[2], y[2];
 *   dtg_function *scale;
 *   dtg_function_begin(graph, "scale", DTG_STRLEN, &body);
 *   dtg_dataset_add_arguments(data, body, x, 2);                 an argument for each component
 *   ...y[0] of x[0] by ops on `body`, y[1] = x[1]...
 *   dtg_function_end(body, y, 2, NULL, 0, &scale);
 *   dtg_dataset_map(data, scale, NULL);
 *
 * Elements come in the order of the source, however many are worked on at once, so that equal seeds still give equal orders. Places are
 * kept and found again as by all transforms (dtg_dataset_position, checkpoints); what stands behind the functions must then give the same
 * for the same element: functions of graphs do, and those of the host have to. Elements are numbers and bools; strings are UNIMPLEMENTED.
 *
 * Functions of the host are called by whoever asks for an element: in dtg_dataset_next and in dtg_trainer_next, or on the thread of a
 * dtg_dataset_prefetch behind them; one call at a time for each, and with no lock of the library held. They may call the library, but not
 * the data set that asks, nor what reads it: that is FAILED_PRECONDITION. An error that they return, which the library then owns, is that
 * of the element, with its code and message; dtg_error_create makes one. What they throw is INTERNAL; they must not end their thread. A
 * data set that is released while its prefetch waits for one of them does not wait: `user_free` is called when that call has returned.
 * Transforms that fail for their arguments leave the data set as it was.
 */
#ifndef DTG_MAP_H
#define DTG_MAP_H

#include <dtg/data.h>
#include <dtg/function.h>
#include <dtg/runtime.h>

DTG_BEGIN_DECLS

/* ---- functions of a graph ---- */

/* How elements are given to a function. Read during the call only. */
/* clang-format off */
typedef struct dtg_map_options {
  size_t struct_size;
  int32_t parallel;     /* elements worked on at once, on the compute threads, up to 1,024; 1: one, by whoever asks for it;
                           0: as many as there are compute threads */
  int32_t reserved0;
  dtg_session *session; /* tells, now, the values from around that the function uses, also those of variables that it read outside;
                           NULL: it may use small constants only */
} dtg_map_options;
#define DTG_MAP_OPTIONS_INIT {sizeof(dtg_map_options), 1, 0, NULL}
/* clang-format on */

/* Adds an argument to a body for every component of the elements, of its type and as much of its shape as is known. `num_arguments` is the
 * number of components, or one more: the last one is then the seed, int64 [2]: the numbers of the epoch and of the element in it, for the
 * stateless random ops, such as those that change pictures at random. Errors: INVALID_ARGUMENT (another number),
 * FAILED_PRECONDITION (the function was ended), RESOURCE_EXHAUSTED, after which the body may have some of them: begin it anew. Since 0.1.
 */
DTG_ERR dtg_dataset_add_arguments(const dtg_dataset *dataset, dtg_graph *body, dtg_value *arguments, size_t num_arguments) DTG_NOEXCEPT;

/* Elements become what the function gives for them. Its arguments are the components, and the seed if it takes one more; it may be called
 * before batch or behind it, which is faster. It is copied: graph, function and session may go. `options` may be NULL. Errors:
 * INVALID_ARGUMENT (other arguments; an op that is more than a function of its inputs, such as a random one with a state, which is named;
 * it gives nothing), FAILED_PRECONDITION (it uses a value from around, and there is no session), UNIMPLEMENTED (strings),
 * RESOURCE_EXHAUSTED; what a run of it fails with is the error of dtg_dataset_next. Since 0.1. Semantics: Dataset.map, deterministic. */
DTG_ERR dtg_dataset_map(dtg_dataset *dataset, const dtg_function *function, const dtg_map_options *options) DTG_NOEXCEPT;

/* Keeps the elements for which the function, which gives one bool, gives true. Else as dtg_dataset_map. Of data
 * that are repeated without end and of which it has kept none in ten whole passes, dtg_dataset_next is FAILED_PRECONDITION; where the
 * passes are behind a prefetch, or several data sets are made one of, it does not return. Since 0.1. Semantics: Dataset.filter. */
DTG_ERR dtg_dataset_filter(dtg_dataset *dataset, const dtg_function *function, const dtg_map_options *options) DTG_NOEXCEPT;

/* ---- functions of the host ---- */

/* What one tensor of every element is. */
typedef struct dtg_component {
  dtg_dtype dtype;
  int32_t rank;        /* -1: not known */
  const int64_t *dims; /* `rank` of them; -1: not the same for all. NULL with a rank of 0 or -1 */
} dtg_component;

/* Makes one element of another. `arguments` are lent for the call, and must not be written to; retain what should live longer.
 * `results` has room for what was announced, all NULL: tensors that the library then owns, also after an error, and which must be of the
 * announced types and shapes. The arguments may be among them, retained. NULL on success. */
typedef dtg_error *(*dtg_element_fn)(void *user, dtg_tensor *const *arguments, size_t num_arguments, dtg_tensor **results,
                                     size_t num_results);
/* Whether an element stays: `*keep` is 0, as on entry, or not. `arguments` as for dtg_element_fn. NULL on success. */
typedef dtg_error *(*dtg_predicate_fn)(void *user, dtg_tensor *const *arguments, size_t num_arguments, int32_t *keep);

/* Elements become what `fn` makes of them: tensors as `components` says, in that order. Once this has succeeded, `user_free` (may be NULL)
 * is called with `user`, once, when the library will not call `fn` any more; after an error never. Errors: INVALID_ARGUMENT (`fn` is NULL,
 * no components, or such as cannot be), UNIMPLEMENTED (strings). Since 0.1. Semantics: Dataset.map of a py_function. */
DTG_ERR dtg_dataset_map_host(dtg_dataset *dataset, dtg_element_fn fn, void *user, dtg_user_free_fn user_free,
                             const dtg_component *components, size_t num_components) DTG_NOEXCEPT;
/* Keeps the elements that `fn` wants. `user`, `user_free` and errors as for dtg_dataset_map_host. Since 0.1. Semantics: Dataset.filter of a
 * py_function. */
DTG_ERR dtg_dataset_filter_host(dtg_dataset *dataset, dtg_predicate_fn fn, void *user, dtg_user_free_fn user_free) DTG_NOEXCEPT;

/* ---- a source of the host ---- */

/* The next element: `tensors` has room for num_tensors of them, all NULL; the library owns what is there afterwards, also after an error.
 * `*more` is 1 on entry; 0 says that the epoch has ended, and `tensors` is not looked at. NULL on success. */
typedef dtg_error *(*dtg_source_next_fn)(void *user, dtg_tensor **tensors, size_t num_tensors, int32_t *more);
/* Goes to the beginning of epoch number `epoch`, from 0, from which an order may be made. Called before the first element of every epoch
 * is asked for; as a place that is gone to may be in any epoch, numbers may be left out and come again. NULL on success. */
typedef dtg_error *(*dtg_source_restart_fn)(void *user, int64_t epoch);
/* Passes over up to `count` elements, and says how many there were. NULL on success. */
typedef dtg_error *(*dtg_source_skip_fn)(void *user, int64_t count, int64_t *passed);

/* How a program gives elements: a table of functions. Read during the call only; what it points to need not outlive it. */
/* clang-format off */
typedef struct dtg_host_source {
  size_t struct_size;
  void *user;                 /* handed to the functions */
  dtg_user_free_fn user_free; /* called once, as for dtg_dataset_map_host; may be NULL */
  const dtg_component *components; /* what elements are */
  size_t num_components;
  dtg_source_next_fn next;    /* must be there */
  dtg_source_restart_fn restart; /* NULL: there is one epoch, and a restart after it began is FAILED_PRECONDITION */
  dtg_source_skip_fn skip;    /* NULL: elements are asked for and dropped */
  int64_t cardinality;        /* elements per epoch, which is then held to it; -1: endless, -2: not known */
  const char *name;           /* what it is, for the text by which checkpoints know their data; NULL: "host" */
  size_t name_len;
} dtg_host_source;
#define DTG_HOST_SOURCE_INIT {sizeof(dtg_host_source), NULL, NULL, NULL, 0, NULL, NULL, NULL, -2, NULL, DTG_STRLEN}
/* clang-format on */

/* A data set of the elements that a program gives. Errors: INVALID_ARGUMENT (`next` is NULL, no components, or such as cannot be; at
 * dtg_dataset_next: a tensor that was not announced), UNIMPLEMENTED (strings), at dtg_dataset_next DATA_LOSS (other than `cardinality`
 * elements) and what the functions return. Since 0.1. Semantics: Dataset.from_generator. */
DTG_ERR dtg_dataset_host(dtg_runtime *runtime, const dtg_host_source *source, dtg_dataset **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_MAP_H */
