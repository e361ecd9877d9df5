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
 * Equal seeds give equal orders on every machine. Single: one thread at a time uses a data set. A transform that is refused for a handle, a
 * component, a type or a text changes nothing; one that fails otherwise (a batch of 0, no memory) leaves the data set unusable: every later
 * call answers with that error. An element that failed for lack of memory may be left out by who asks for the next one: begin the epoch
 * anew, or go to a position that was told before; where it stands is not told until then.
 */
#ifndef DTG_DATA_H
#define DTG_DATA_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

typedef struct dtg_dataset dtg_dataset;

/* ---- sources. `runtime` (NULL: the default one) lends its memory limit and is kept alive. Files are regular ones, or links to such: a
 * pipe or a device, which may have no end, is FAILED_PRECONDITION; write what comes out of it to a file, or hand it over by a source of
 * your own (dtg/map.h) ---- */

/* Slices of in-memory tensors along their first dimension, which all must share: element i is {tensors[0][i], ...}. The
 * tensors are shared, not copied. Errors: INVALID_ARGUMENT. Since 0.1. Semantics: Dataset.from_tensor_slices. */
DTG_ERR dtg_dataset_tensors(dtg_runtime *runtime, const dtg_tensor *const *tensors, size_t num_tensors, dtg_dataset **out) DTG_NOEXCEPT;

/* int64 scalars start, start + step, ... up to, not including, stop; step may be negative, not 0. Errors:
 * INVALID_ARGUMENT. Since 0.1. Semantics: Dataset.range. */
DTG_ERR dtg_dataset_range(dtg_runtime *runtime, int64_t start, int64_t stop, int64_t step, dtg_dataset **out) DTG_NOEXCEPT;

/* IDX files, the format of MNIST and its family, plain or gzip: one component per file, with equal numbers of rows. Paths
 * end with NUL. Errors: NOT_FOUND, DATA_LOSS (not IDX, cut), INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_dataset_idx(dtg_runtime *runtime, const char *const *paths, size_t num_paths, dtg_dataset **out) DTG_NOEXCEPT;

/* NumPy's .npy files, plain or gzip: one component per file, with equal numbers of rows (first dimensions). All types of a fixed size that
 * tensors have, in both orders of memory (Fortran's is turned); a tensor has the type of its array. Paths end with NUL. Errors: NOT_FOUND,
 * DATA_LOSS (not NumPy's, cut, longer than announced), UNIMPLEMENTED (big-endian numbers, Python objects, texts, dates, structures: the
 * message names the type), INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. Semantics: numpy.load without pickles. */
DTG_ERR dtg_dataset_npy(dtg_runtime *runtime, const char *const *paths, size_t num_paths, dtg_dataset **out) DTG_NOEXCEPT;

/* Arrays of a .npz file, as numpy.savez and numpy.savez_compressed write it: one component per name, in that order, with equal numbers of
 * rows; NULL with num_names 0: all arrays, in the order of the file. Names end with NUL. Checksums are verified. Errors: those of
 * dtg_dataset_npy, and NOT_FOUND for a name that is not there, with those that are. Since 0.1. Semantics: numpy.load. */
DTG_ERR dtg_dataset_npz(dtg_runtime *runtime, const char *path, size_t path_len, const char *const *names, size_t num_names,
                        dtg_dataset **out) DTG_NOEXCEPT;

/* The tf.Example messages of TFRecord files, plain or gzip, in the order of the files: one component per feature that `features` names, as
 * JSON:
 *
 *   [{"name": "image", "dtype": "uint8", "shape": [28, 28]}, {"name": "label", "dtype": "int64", "default": -1},
 *    {"name": "words", "dtype": "int64", "variable": true}]
 *
 * float32 is read from a float_list, int64 from an int64_list, uint8 from the one string of a bytes_list. A feature has as many values as
 * its shape (none said: one); what lacks it has "default" in all of them, or is an error. One of variable length has any number of its
 * shape, and none where it is lacking: a tensor [n, shape...], for dtg_dataset_padded_batch. Files are read as they are needed, so errors
 * of theirs are those of dtg_dataset_next: NOT_FOUND, DATA_LOSS (a bad checksum or a torn file, with record and byte; a feature that is
 * lacking or other than said). For several workers give each its own files, or dtg_dataset_shard. Errors: INVALID_ARGUMENT. Since 0.1.
 * Semantics: TFRecordDataset, parse_single_example with FixedLenFeature and FixedLenSequenceFeature. */
DTG_ERR dtg_dataset_tfrecord(dtg_runtime *runtime, const char *const *paths, size_t num_paths, const char *features, size_t features_len,
                             dtg_dataset **out) DTG_NOEXCEPT;

/* How a CSV file is read. Read during the call only. */
/* clang-format off */
typedef struct dtg_csv_options {
  size_t struct_size;
  const char *label;         /* name of the column to predict. Then elements are {all other columns as a float32 vector,
                                label}; NULL: one scalar per column */
  size_t label_len;
  const char *const *columns; /* those to read, in this order, each ending with NUL, the label also where it is not among them; NULL: all */
  size_t num_columns;
  int32_t header;            /* 0: found out; 1: the first line names the columns; 2: it does not, they are c0, c1, ... Found out: it names
                                them where a later line has a number and it has none, or where it has a name that is asked for. Of words
                                alone nobody can tell: they are values, with a warning */
  int32_t missing;           /* a DTG_MISSING_ constant, for columns of which the schema says nothing else */
  int32_t delimiter;         /* 0: ',' */
  int32_t reserved0;
  const char *schema;        /* what is known of the columns, as JSON; NULL: nothing. With that of another file, which tells the
                                label too, elements of a file without the label's column are {features}: those to predict, where
                                `label` is left out. So of JSON lines and of Arrow streams */
  size_t schema_len;
} dtg_csv_options;
#define DTG_CSV_OPTIONS_INIT {sizeof(dtg_csv_options), NULL, DTG_STRLEN, NULL, 0, 0, 0, 0, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* What happens where a CSV file lacks a value: where a field is empty, or NA, N/A, NaN, nan, null, NULL, None or ?. */
enum {
  DTG_MISSING_DEFAULT = 0, /* as DTG_MISSING_REFUSE */
  DTG_MISSING_DROP = 1,    /* such rows are dropped, and counted, see dtg_dataset_bad_rows */
  DTG_MISSING_REFUSE = 2,  /* DATA_LOSS, which names line and column */
  DTG_MISSING_KEEP = 3,    /* NaN in columns of numbers, which makes losses NaN; -1 in columns of names */
  DTG_MISSING_MEAN = 4     /* the mean of the column, of all rows, also of those that a split holds out later: where that matters, read
                              files of your own for training, and the others with their schema. An error in columns of names that lack
                              some, and for the label, of which only a schema can say so */
};

/* A schema is {"label": NAME, "columns": [RULE, ...], "rules": [RULE, ...]}, all optional. "columns" are those to read, in that order;
 * "rules" are of columns that are read anyway. A rule is
 *
 *   {"name": "species", "kind": "names", "names": ["cat", "dog"], "missing": "drop"}
 *   {"name": "weight", "kind": "real", "missing": "constant", "value": 0}
 *   {"name": "pixels", "kind": "real", "shape": [8, 8]}
 *
 * and only its "name" must be there. Kinds are "whole", "real" and "names"; "shape" is that of the lists of a column of JSON lines or of an
 * Arrow stream, whose rows must have it then; "missing" is "refuse", "drop", "keep", "mean" (with a "value":
 * that one, as of the training data) or "constant". The number of a name is its place among "names", and a name that is not among them is
 * INVALID_ARGUMENT. What `label` and `columns` of the options say goes before. */

/* The rows of a CSV file, plain or gzip. Types are found by looking at whole columns: whole numbers are int64, other
 * numbers float32, anything else names, numbered in sorted order. A column of which nine of ten cells are numbers (three of four, where
 * they are fewer than 20) is refused with the line and the text of the first that is none, unless a schema gives the column a kind;
 * so are numbers with a comma, and numbers beyond float32, and two columns of one name, unless neither is among those to read. Two files
 * may number one name differently, so the second should be read with the first one's dtg_dataset_schema. Among the features beside a label
 * names are measured by their numbers: a warning says which columns that became of, unless the schema gives them the kind "names". One
 * column for each name is better as a rule (the op OneHot; RECIPES.md). Whole numbers beyond 2^24 that float32 rounds, as features or in a
 * column of other numbers, are a warning, once for each column, with line and number: days as 20240101, seconds and ids are others then.
 * There are no dates: write them as numbers. Rows whose label is kept as missing are a warning, too. Text is UTF-8, with or without its
 * mark. `options` may be NULL. Errors: NOT_FOUND, DATA_LOSS (also where no row is left), INVALID_ARGUMENT (also text that is no UTF-8, with
 * line, column and byte; a label without any other column; a column asked for twice), RESOURCE_EXHAUSTED; no such column is NOT_FOUND.
 * Since 0.1. */
DTG_ERR dtg_dataset_csv(dtg_runtime *runtime, const char *path, size_t path_len, const dtg_csv_options *options,
                        dtg_dataset **out) DTG_NOEXCEPT;

/* How JSON lines are read. Read during the call only. */
/* clang-format off */
typedef struct dtg_json_lines_options {
  size_t struct_size;
  const char *label;         /* name of the column to predict. Then elements are {all other columns as a float32 vector, lists one
                                number after the other, label}; NULL: one component per column */
  size_t label_len;
  const char *const *columns; /* those to read, in this order, each ending with NUL; NULL: all, in order of appearance */
  size_t num_columns;
  int32_t missing;           /* a DTG_MISSING_ constant, for columns of which the schema says nothing else */
  int32_t skip_bad_rows;     /* 0: a bad row is an error; 1: it is passed over and counted, see dtg_dataset_bad_rows */
  const char *schema;        /* what is known of the columns, as for CSV files; NULL: nothing */
  size_t schema_len;
} dtg_json_lines_options;
#define DTG_JSON_LINES_OPTIONS_INIT {sizeof(dtg_json_lines_options), NULL, DTG_STRLEN, NULL, 0, 0, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* The rows of a file of JSON lines, one object per line, plain or gzip; the members of the objects are the columns. Whole numbers, true (1)
 * and false (0) are int64, other numbers float32, texts names, numbered in sorted order; lists of numbers, nested or not, are components
 * of that shape, which is the same in all rows, and in other files that are read by the schema. A member that is null or not there is
 * missing. A row is bad where it is no JSON object, has a member twice, lacks what may not be missing, or has something else in a column
 * than rows before or the schema; the error, or dtg_dataset_bad_rows, tells file, line, column and what stands there. Texts among features
 * are told as those of CSV files are, and so are digits that float32 has no room for. Blank lines are nothing. `options` may be NULL.
 * dtg_dataset_schema tells what was found. Errors: NOT_FOUND (no file, no such column), DATA_LOSS (a bad row; no row is left),
 * INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_dataset_json_lines(dtg_runtime *runtime, const char *path, size_t path_len, const dtg_json_lines_options *options,
                               dtg_dataset **out) DTG_NOEXCEPT;

/* How many rows its source left out: passed over as bad, or dropped because they lack a value (DTG_MISSING_DROP); 0 for sources that leave
 * none out. And why, for the first ten of them, a line of text each; `why` may be NULL, and `*why` is owned by the caller. Since 0.1. */
DTG_ERR dtg_dataset_bad_rows(const dtg_dataset *dataset, int64_t *count, dtg_string **why) DTG_NOEXCEPT;

/* What was found out about the columns of a CSV file, of JSON lines or of an Arrow stream, as a schema: give it to the reading of other
 * files, so that names have the same numbers and missing values the same means there; keep it with the weights by dtg_model_set_metadata.
 * `*out` is owned by the caller. Errors: FAILED_PRECONDITION (from none of them). Since 0.1. */
DTG_ERR dtg_dataset_schema(const dtg_dataset *dataset, dtg_string **out) DTG_NOEXCEPT;

/* Adds a reference and returns the data set; NULL for NULL. Since 0.1. */
DTG_API dtg_dataset *dtg_dataset_retain(dtg_dataset *dataset) DTG_NOEXCEPT;
/* Drops a reference; tensors handed out stay valid. NULL is fine. Since 0.1. */
DTG_API void dtg_dataset_release(dtg_dataset *dataset) DTG_NOEXCEPT;

/* ---- transforms. Errors: INVALID_ARGUMENT for arguments out of range, all since 0.1 ---- */

/* Draws at random from a buffer of that many elements; 0: from the whole epoch. Every epoch has an order of its own,
 * decided by (seed, number of the epoch). Since 0.1. Semantics: Dataset.shuffle. */
DTG_ERR dtg_dataset_shuffle(dtg_dataset *dataset, int64_t buffer, uint64_t seed) DTG_NOEXCEPT;
/* The same order in every epoch, decided by `seed` alone: for measurements that must not hang on the order, and for epochs to be
 * compared. Since 0.1. Semantics: Dataset.shuffle with reshuffle_each_iteration=False. */
DTG_ERR dtg_dataset_shuffle_once(dtg_dataset *dataset, int64_t buffer, uint64_t seed) DTG_NOEXCEPT;
/* Stacks `size` elements along a new first dimension; a shorter last batch is handed out, or dropped with a non-zero
 * `drop_remainder`. Where that drops all of the data, its end is a warning in the log. Since 0.1. Semantics: Dataset.batch. */
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
/* Makes `dataset` one of itself and the others: elements have the components of all, side by side, and end with the first that ends. The
 * others are a part of it from then on: every later call on them is FAILED_PRECONDITION, and their handles are still the caller's to
 * release. No element may have been taken from any since its last restart. Errors: INVALID_ARGUMENT (also one given twice),
 * FAILED_PRECONDITION; then, unless the transform itself failed, all are as they were. Since 0.1. Semantics: Dataset.zip. */
DTG_ERR dtg_dataset_zip(dtg_dataset *dataset, dtg_dataset *const *others, size_t num_others) DTG_NOEXCEPT;
/* The elements of the others after its own, in that order; components must be of equal number and types. Tables whose names have other
 * numbers, or whose columns are others, stand in another order, or hold names in one and numbers in the other, are INVALID_ARGUMENT: read
 * the second with the schema of the first (dtg_dataset_schema). Behind a dtg_dataset_map, which may have made them the same, that is a
 * warning. What becomes of the others, and errors, as for dtg_dataset_zip. Since 0.1. Semantics: Dataset.concatenate. */
DTG_ERR dtg_dataset_concatenate(dtg_dataset *dataset, dtg_dataset *const *others, size_t num_others) DTG_NOEXCEPT;
/* `block` elements of each in turn, itself first; who has ended is left out, so that all elements of all come. Components must be of equal
 * number and types, and tables mean the same, as for dtg_dataset_concatenate. What becomes of the others, and errors, as for
 * dtg_dataset_zip. Since 0.1. Semantics: Dataset.interleave over as many data sets as its cycle_length, deterministic. */
DTG_ERR dtg_dataset_interleave(dtg_dataset *dataset, dtg_dataset *const *others, size_t num_others, int64_t block) DTG_NOEXCEPT;
/* Keeps the elements of the first epoch in memory, where that one gets to them, and hands them out again in every epoch: what stands before
 * is read once, and a shuffle before it shuffles once. Rows of tensors and of files take no memory twice; other elements count towards the
 * memory limit of the runtime, and the tensors handed out are the kept ones, which must not be written to. Going to a position
 * (dtg_dataset_move_to) reads what stands before anew. Errors: INVALID_ARGUMENT (an endless data set); at dtg_dataset_next
 * RESOURCE_EXHAUSTED. Since 0.1. Semantics: Dataset.cache in memory. */
DTG_ERR dtg_dataset_cache(dtg_dataset *dataset) DTG_NOEXCEPT;
/* Windows: number k is the elements k * shift, k * shift + stride, ..., `size` of them, stacked along a new first dimension. Those at the
 * end of the data that are not whole are handed out, or dropped with a non-zero `drop_remainder`. Elements of one window must be alike.
 * Since 0.1. Semantics: Dataset.window, each window batched. */
DTG_ERR dtg_dataset_window(dtg_dataset *dataset, int64_t size, int64_t shift, int64_t stride, int32_t drop_remainder) DTG_NOEXCEPT;
/* As dtg_dataset_batch for elements of different sizes: along every dimension each is made as long as the longest of its batch, with
 * `padding`, which every component must be able to hold (0 always can be). Since 0.1. Semantics: Dataset.padded_batch. */
DTG_ERR dtg_dataset_padded_batch(dtg_dataset *dataset, int64_t size, int32_t drop_remainder, double padding) DTG_NOEXCEPT;
/* Padded batches of elements of like length, which is the first dimension of component `component`, so that little is padding: the
 * rising `boundaries` make num_boundaries + 1 buckets, of lengths below the first, from the first up to and not including the second, and
 * so on; a bucket with sizes[i] elements is handed out as a batch at once. What is left at the end of the data comes in the order of the
 * buckets, or is dropped. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such component). Since 0.1. Semantics:
 * Dataset.bucket_by_sequence_length. */
DTG_ERR dtg_dataset_bucket_batch(dtg_dataset *dataset, size_t component, const int64_t *boundaries, size_t num_boundaries,
                                 const int64_t *sizes, size_t num_sizes, int32_t drop_remainder, double padding) DTG_NOEXCEPT;
/* Component `component` as float32, divided by `divisor` (255 for pixels), which is a float32 other than 0. Since 0.1. */
DTG_ERR dtg_dataset_scale(dtg_dataset *dataset, size_t component, double divisor) DTG_NOEXCEPT;
/* Component `component` as DTG_F32, DTG_F64, DTG_I32 or DTG_I64; fractions are cut off. Errors: INVALID_ARGUMENT (NaN, or a value beyond
 * the range, to whole numbers; here, or where an element is read). Since 0.1. */
DTG_ERR dtg_dataset_cast(dtg_dataset *dataset, size_t component, dtg_dtype dtype) DTG_NOEXCEPT;
/* Component `component` as float32, (x - shift) / scale for each feature along its last dimension, by the numbers that
 * dtg_dataset_fit_normalization found, on this data set or on another one: fit on what is trained on, apply to that and to everything else.
 * A normalization of one feature is for components of any shape. Errors: INVALID_ARGUMENT (not such a text, another number of features).
 * Since 0.1. Semantics: tf.keras.layers.Normalization, but for a deviation of 0, which divides by 1. */
DTG_ERR dtg_dataset_normalize(dtg_dataset *dataset, size_t component, const char *normalization, size_t normalization_len) DTG_NOEXCEPT;
/* Keeps up to `count` elements ready, made by a thread of the data set's own. Since 0.1. Semantics: Dataset.prefetch. */
DTG_ERR dtg_dataset_prefetch(dtg_dataset *dataset, int64_t count) DTG_NOEXCEPT;

/* ---- parts, and what is found out about data ----
 *
 * These walk through one epoch of the data set and leave it where it stood (so they need one of which that can be told, see
 * dtg_dataset_position); it must not be endless. */

/* How a data set is cut in two. Read during the call only. */
/* clang-format off */
typedef struct dtg_split {
  size_t struct_size;
  double fraction;   /* the share of rows that is held out, between 0 and 1; 0: 0.2, or folds: there are not both */
  uint64_t seed;
  int32_t folds;     /* 0: none; k from 2 up: the rows are dealt out to k folds of like size, and one of them is held out */
  int32_t fold;      /* which one, from 0. All k calls with one seed have the same folds */
  int32_t stratify;  /* not 0: each class is cut alike, to a row; the classes are in component `classes` */
  int32_t reserved0;
  size_t classes;    /* a component of one whole number or bool per row */
} dtg_split;
#define DTG_SPLIT_INIT {sizeof(dtg_split), 0.0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* Two data sets without a row in common: one to train on, and one that is held out to test with. Which row goes where is chosen at random,
 * by the seed alone; the order within both is that of `dataset`, so shuffle `train` afterwards. Its elements must be rows of tensors or of
 * files, each at most once, so split before batch, prefetch and repeat, and before dtg_dataset_normalize, that nothing of what is held out
 * goes into the training. The rows are shared, not copied; `dataset` stays as it was. `split` may be NULL; both answers are owned by the
 * caller, and have the dtg_dataset_schema of `dataset`. Errors: INVALID_ARGUMENT (numbers out of range, no such rows or classes, a part
 * without rows). Since 0.1. Semantics: sklearn.model_selection.train_test_split, StratifiedKFold. */
DTG_ERR dtg_dataset_split(const dtg_dataset *dataset, const dtg_split *split, dtg_dataset **train, dtg_dataset **held_out) DTG_NOEXCEPT;

/* What a normalization does to each feature. */
enum {
  DTG_NORMALIZE_STANDARD = 0, /* to mean 0 and deviation 1 */
  DTG_NORMALIZE_RANGE = 1     /* to 0 at the least and 1 at the greatest */
};

/* The numbers for dtg_dataset_normalize and dtg_nn_normalize, found by one look at all of component `component`, as JSON: {"normalization",
 * "shift": [...], "scale": [...]}, one of each per feature along its last dimension. After batch that of a batch of numbers is no feature,
 * and a remainder that is dropped is not looked at: ask before batch to have all rows. Split first, and ask what is trained on: the numbers
 * of all rows would tell the training of what is held out. A feature that is the same everywhere gets the scale 1. Keep the text with the
 * weights by dtg_model_set_metadata, as a schema. `*out` is owned by the caller. Errors: INVALID_ARGUMENT (no elements, or one that is NaN
 * or infinite, which is named), OUT_OF_RANGE (no such component), UNIMPLEMENTED (a type of which there are no means). Since 0.1. */
DTG_ERR dtg_dataset_fit_normalization(const dtg_dataset *dataset, size_t component, int32_t kind, dtg_string **out) DTG_NOEXCEPT;

/* ---- reading ---- */

/* The next element. `*more` is 1 and `tensors` receives its num_tensors components, owned by the caller; or `*more` is 0
 * at the end of the data, which is not an error, and `tensors` is untouched. It stays 0 until dtg_dataset_restart; whoever asks again
 * before, also behind a fit that has come to the end, is told by a warning in the log, once. num_tensors must be the number of
 * components. Errors: INVALID_ARGUMENT, and those of the source. Since 0.1. */
DTG_ERR dtg_dataset_next(dtg_dataset *dataset, dtg_tensor **tensors, size_t num_tensors, int32_t *more) DTG_NOEXCEPT;
/* Begins the next epoch, wherever this one stands. Since 0.1. */
DTG_ERR dtg_dataset_restart(dtg_dataset *dataset) DTG_NOEXCEPT;
/* Where the data set stands: the number of elements it has handed out since its last restart, then the number of the epoch of each
 * stage, the last one first. Up to `cap` of these numbers are written to `numbers` (NULL with a cap of 0), and `*count` says how many
 * there are. Checkpoints keep them (dtg_checkpoint_add_data). Errors: FAILED_PRECONDITION (a transform was added after elements had been
 * taken). Since 0.1. */
DTG_ERR dtg_dataset_position(const dtg_dataset *dataset, int64_t *numbers, size_t cap, size_t *count) DTG_NOEXCEPT;
/* Goes to a position that dtg_dataset_position told of a data set with the same stages, seeds and sources, wherever this one stands: what
 * comes next is what came next there. No element is made on the way where they are rows of files or tensors. Errors: INVALID_ARGUMENT
 * (not a position of such a data set; nothing has changed), DATA_LOSS (there are fewer elements now). Since 0.1. */
DTG_ERR dtg_dataset_move_to(dtg_dataset *dataset, const int64_t *numbers, size_t count) DTG_NOEXCEPT;
/* Elements (batches, after batch) per epoch; -1: endless, -2: not known before they are read, also for a bad handle.
 * Since 0.1. */
DTG_API int64_t dtg_dataset_cardinality(const dtg_dataset *dataset) DTG_NOEXCEPT;
/* Number of tensors per element; 0 for a bad handle. Any thread, also while another one uses the data set. Since 0.1. */
DTG_API size_t dtg_dataset_component_count(const dtg_dataset *dataset) DTG_NOEXCEPT;
/* Type and shape of component `i` of every element: `rank` receives the number of dimensions, or -1 when unknown; up to
 * `cap` of them are written to `dims` (-1: not the same for all). `dtype` may be NULL. Errors: OUT_OF_RANGE. Since 0.1. */
DTG_ERR dtg_dataset_component(const dtg_dataset *dataset, size_t i, dtg_dtype *dtype, int64_t *dims, size_t cap,
                              int32_t *rank) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_DATA_H */
