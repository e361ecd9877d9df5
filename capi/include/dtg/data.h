/* dtg/data.h: data sets: pipelines that hand out elements (one or more tensors each), one by one. A data set begins with
 * a source; each transform is added to what is there, in the order of the calls:
 *
 *   dtg_dataset_idx(NULL, files, 2, &data);        images and labels
 *   dtg_dataset_scale(data, 0, 255.0);             component 0 as float32 in [0, 1]
 *   dtg_dataset_shuffle(data, 0, seed);
 *   dtg_dataset_batch(data, 128, 1);
 *   for (;;) { dtg_dataset_next(data, tensors, 2, &more); if (!more) break; ... }
 *   dtg_dataset_restart(data);                     next epoch
 *
 * Equal seeds give equal orders on every machine. Single: one thread at a time uses a data set. A transform that fails
 * leaves the data set unusable: every later call answers with that error.
 */
#ifndef DTG_DATA_H
#define DTG_DATA_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

typedef struct dtg_dataset dtg_dataset;

/* ---- sources. `runtime` (NULL: the default one) lends its memory limit and is kept alive ---- */

/* Slices of in-memory tensors along their first dimension, which all must share: element i is {tensors[0][i], ...}. The
 * tensors are shared, not copied. Errors: INVALID_ARGUMENT. Since 0.1. Semantics: Dataset.from_tensor_slices. */
DTG_ERR dtg_dataset_tensors(dtg_runtime *runtime, const dtg_tensor *const *tensors, size_t num_tensors, dtg_dataset **out) DTG_NOEXCEPT;

/* int64 scalars start, start + step, ... up to, not including, stop; step may be negative, not 0. Errors:
 * INVALID_ARGUMENT. Since 0.1. Semantics: Dataset.range. */
DTG_ERR dtg_dataset_range(dtg_runtime *runtime, int64_t start, int64_t stop, int64_t step, dtg_dataset **out) DTG_NOEXCEPT;

/* IDX files, the format of MNIST and its family, plain or gzip: one component per file, with equal numbers of rows. Paths
 * end with NUL. Errors: NOT_FOUND, DATA_LOSS (not IDX, cut), INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_dataset_idx(dtg_runtime *runtime, const char *const *paths, size_t num_paths, dtg_dataset **out) DTG_NOEXCEPT;

/* How a CSV file is read. Read during the call only. */
/* clang-format off */
typedef struct dtg_csv_options {
  size_t struct_size;
  const char *label;         /* name of the column to predict. Then elements are {all other columns as a float32 vector,
                                label}; NULL: one scalar per column */
  size_t label_len;
  const char *const *columns; /* those to read, in this order, each ending with NUL; NULL: all */
  size_t num_columns;
  int32_t header;            /* 0: found out; 1: the first line names the columns; 2: it does not, they are c0, c1, ... */
  int32_t missing;           /* 0: kept (NaN, or -1 in columns of names); 1: such rows are dropped; 2: DATA_LOSS */
  int32_t delimiter;         /* 0: ',' */
  int32_t reserved0;
} dtg_csv_options;
#define DTG_CSV_OPTIONS_INIT {sizeof(dtg_csv_options), NULL, DTG_STRLEN, NULL, 0, 0, 0, 0, 0}
/* clang-format on */

/* The rows of a CSV file, plain or gzip. Types are found by looking at whole columns: whole numbers are int64, other
 * numbers float32, anything else names, numbered in sorted order. `options` may be NULL. Errors: NOT_FOUND, DATA_LOSS,
 * INVALID_ARGUMENT, RESOURCE_EXHAUSTED; no such column is NOT_FOUND. Since 0.1. */
DTG_ERR dtg_dataset_csv(dtg_runtime *runtime, const char *path, size_t path_len, const dtg_csv_options *options,
                        dtg_dataset **out) DTG_NOEXCEPT;

/* Adds a reference and returns the data set; NULL for NULL. Since 0.1. */
DTG_API dtg_dataset *dtg_dataset_retain(dtg_dataset *dataset) DTG_NOEXCEPT;
/* Drops a reference; tensors handed out stay valid. NULL is fine. Since 0.1. */
DTG_API void dtg_dataset_release(dtg_dataset *dataset) DTG_NOEXCEPT;

/* ---- transforms. Errors: INVALID_ARGUMENT for arguments out of range, all since 0.1 ---- */

/* Draws at random from a buffer of that many elements; 0: from the whole epoch. Every epoch has an order of its own,
 * decided by (seed, number of the epoch). Since 0.1. Semantics: Dataset.shuffle. */
DTG_ERR dtg_dataset_shuffle(dtg_dataset *dataset, int64_t buffer, uint64_t seed) DTG_NOEXCEPT;
/* Stacks `size` elements along a new first dimension; a shorter last batch is handed out, or dropped with a non-zero
 * `drop_remainder`. Since 0.1. Semantics: Dataset.batch. */
DTG_ERR dtg_dataset_batch(dtg_dataset *dataset, int64_t size, int32_t drop_remainder) DTG_NOEXCEPT;
/* Keeps elements index, index + count, ...: what one of `count` workers trains on. Since 0.1. Semantics: Dataset.shard. */
DTG_ERR dtg_dataset_shard(dtg_dataset *dataset, int64_t count, int64_t index) DTG_NOEXCEPT;
/* The same for the batches of one job: where there are fewer elements than workers, a worker that finds one reports
 * INVALID_ARGUMENT at its first dtg_dataset_next, instead of training alone. Since 0.1.
 * Semantics: distribute with AutoShardPolicy.DATA. */
DTG_ERR dtg_dataset_auto_shard(dtg_dataset *dataset, int64_t count, int64_t index) DTG_NOEXCEPT;
/* Cuts every batch along the first dimension into `parts` batches of ceil(rows / parts) rows; the last ones of a short
 * batch may be short or empty. Components must be numbers. Since 0.1. Semantics: the rebatching of distributed data sets. */
DTG_ERR dtg_dataset_rebatch(dtg_dataset *dataset, int64_t parts) DTG_NOEXCEPT;
/* How a worker batches so that all workers together use `global_batch` elements a step, also where that does not divide: the
 * sizes of its successive batches, num_workers * replicas_per_worker of them and then over again, `replicas_per_worker` a step.
 * As many as fit are written to `sizes` (NULL with `cap` 0), and `*count` says how many there are. Errors:
 * INVALID_ARGUMENT. Since 0.1. Semantics: batch_sizes_for_worker. */
DTG_ERR dtg_batch_sizes(int64_t global_batch, int64_t num_workers, int64_t replicas_per_worker, int64_t worker, int64_t *sizes, size_t cap,
                        size_t *count) DTG_NOEXCEPT;
/* `count` epochs as one; negative: for ever. Since 0.1. Semantics: Dataset.repeat. */
DTG_ERR dtg_dataset_repeat(dtg_dataset *dataset, int64_t count) DTG_NOEXCEPT;
/* The first `count` elements. Since 0.1. Semantics: Dataset.take. */
DTG_ERR dtg_dataset_take(dtg_dataset *dataset, int64_t count) DTG_NOEXCEPT;
/* All but the first `count` elements. Since 0.1. Semantics: Dataset.skip. */
DTG_ERR dtg_dataset_skip(dtg_dataset *dataset, int64_t count) DTG_NOEXCEPT;
/* Component `component` as float32, divided by `divisor` (255 for pixels). Since 0.1. */
DTG_ERR dtg_dataset_scale(dtg_dataset *dataset, size_t component, double divisor) DTG_NOEXCEPT;
/* Component `component` as DTG_F32, DTG_F64, DTG_I32 or DTG_I64. Since 0.1. */
DTG_ERR dtg_dataset_cast(dtg_dataset *dataset, size_t component, dtg_dtype dtype) DTG_NOEXCEPT;
/* Keeps up to `count` elements ready, made by a thread of the data set's own. Since 0.1. Semantics: Dataset.prefetch. */
DTG_ERR dtg_dataset_prefetch(dtg_dataset *dataset, int64_t count) DTG_NOEXCEPT;

/* ---- reading ---- */

/* The next element. `*more` is 1 and `tensors` receives its num_tensors components, owned by the caller; or `*more` is 0
 * at the end of the data, which is not an error, and `tensors` is untouched. num_tensors must be the number of
 * components. Errors: INVALID_ARGUMENT, and those of the source. Since 0.1. */
DTG_ERR dtg_dataset_next(dtg_dataset *dataset, dtg_tensor **tensors, size_t num_tensors, int32_t *more) DTG_NOEXCEPT;
/* Begins the next epoch, wherever this one stands. Since 0.1. */
DTG_ERR dtg_dataset_restart(dtg_dataset *dataset) DTG_NOEXCEPT;
/* Elements (batches, after batch) per epoch; -1: endless, -2: not known before they are read, also for a bad handle.
 * Since 0.1. */
DTG_API int64_t dtg_dataset_cardinality(const dtg_dataset *dataset) DTG_NOEXCEPT;
/* Number of tensors per element; 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_dataset_component_count(const dtg_dataset *dataset) DTG_NOEXCEPT;
/* Type and shape of component `i` of every element: `rank` receives the number of dimensions, or -1 when unknown; up to
 * `cap` of them are written to `dims` (-1: not the same for all). `dtype` may be NULL. Errors: OUT_OF_RANGE. Since 0.1. */
DTG_ERR dtg_dataset_component(const dtg_dataset *dataset, size_t i, dtg_dtype *dtype, int64_t *dims, size_t cap,
                              int32_t *rank) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_DATA_H */
