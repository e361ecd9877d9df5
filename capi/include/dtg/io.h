/* dtg/io.h: files for other people's tools: weights as safetensors, training curves as TensorBoard event files. */
#ifndef DTG_IO_H
#define DTG_IO_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* ---- weight sets: named tensors, in memory and in safetensors files. Single. ----
 * Format: https://github.com/huggingface/safetensors */

/* Keeps the tensors it was given alive. Names are UTF-8 and unlike each other; a set may be as large as memory. */
typedef struct dtg_weights dtg_weights;

/* An empty set. Since 0.1. */
DTG_ERR dtg_weights_create(dtg_weights **out) DTG_NOEXCEPT;

/* Everything in a safetensors file. Nothing in the file is trusted: lengths are held against the file and against the
 * memory limit of `runtime` (NULL: the default one), and the checksum that dtg writes is verified where there is one.
 * Errors: NOT_FOUND, FAILED_PRECONDITION (a pipe or a device stands there), DATA_LOSS (cut, damaged, not safetensors), UNIMPLEMENTED (an
 * element type that dtg does not have), RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_weights_load(dtg_runtime *runtime, const char *path, size_t path_len, dtg_weights **out) DTG_NOEXCEPT;

/* Writes the set to a file, atomically: readers find the old file or the new one, whole, however many save there. A link is followed,
 * and the mode of a file that is replaced is kept. Errors: those of the disk, FAILED_PRECONDITION (a pipe, a device or a folder stands
 * there), UNIMPLEMENTED (a type that the format does not have). Since 0.1. */
DTG_ERR dtg_weights_save(const dtg_weights *weights, const char *path, size_t path_len) DTG_NOEXCEPT;

/* Adds a tensor, or replaces the one of that name. It is shared, not copied: write to it only after saving.
 * Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_weights_set(dtg_weights *weights, const char *name, size_t name_len, const dtg_tensor *tensor) DTG_NOEXCEPT;

/* The tensor of that name, owned by the caller. Errors: NOT_FOUND. Since 0.1. */
DTG_ERR dtg_weights_get(const dtg_weights *weights, const char *name, size_t name_len, dtg_tensor **out) DTG_NOEXCEPT;

/* Number of tensors; 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_weights_count(const dtg_weights *weights) DTG_NOEXCEPT;

/* Name of tensor `i`, in order of name after loading, of adding otherwise: ends with NUL, valid until the set changes;
 * NULL when i is out of range. Since 0.1. */
DTG_API const char *dtg_weights_name(const dtg_weights *weights, size_t i) DTG_NOEXCEPT;

/* Sets a text of the file's metadata. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_weights_set_metadata(dtg_weights *weights, const char *key, size_t key_len, const char *value, size_t value_len) DTG_NOEXCEPT;

/* A text of the metadata, ends with NUL, valid until the set changes; NULL if there is none. Since 0.1. */
DTG_API const char *dtg_weights_metadata(const dtg_weights *weights, const char *key, size_t key_len) DTG_NOEXCEPT;

/* Adds a reference and returns the set; NULL for NULL. Since 0.1. */
DTG_API dtg_weights *dtg_weights_retain(dtg_weights *weights) DTG_NOEXCEPT;
/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_weights_release(dtg_weights *weights) DTG_NOEXCEPT;

/* ---- event writers: files that TensorBoard reads. Single. ---- */

/* One event file that grows. What is written waits in memory for a while; dtg_event_writer_close tells whether all of it arrived. */
typedef struct dtg_event_writer dtg_event_writer;

/* Settings of a writer, fixed when it is opened. */
typedef struct dtg_event_writer_options {
  size_t struct_size;
  int64_t flush_every_ns;  /* how long records may wait in memory; 0: 2 s */
  int64_t resumed_at_step; /* of a run that continues from a checkpoint: what older files of the directory say about this
                              step and later ones is dropped by readers; 0: a new run */
} dtg_event_writer_options;
#define DTG_EVENT_WRITER_OPTIONS_INIT \
  { sizeof(dtg_event_writer_options), 0, 0 }

/* A new event file in `directory`, which is made if need be. TensorBoard takes a directory for a run, so writers of
 * different roles need different ones. `options` may be NULL. Errors: those of the disk. Since 0.1. */
DTG_ERR dtg_event_writer_open(const char *directory, size_t directory_len, const dtg_event_writer_options *options,
                              dtg_event_writer **out) DTG_NOEXCEPT;

/* One point of the curve `tag`. After a failed write this and every later call answers with that error. Since 0.1. */
DTG_ERR dtg_event_writer_scalar(dtg_event_writer *writer, const char *tag, size_t tag_len, int64_t step, double value) DTG_NOEXCEPT;

/* The distribution of the finite elements of a float32 tensor, in 30 equal buckets. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_event_writer_histogram(dtg_event_writer *writer, const char *tag, size_t tag_len, int64_t step,
                                   const dtg_tensor *tensor) DTG_NOEXCEPT;

/* A text in Markdown. Since 0.1. */
DTG_ERR dtg_event_writer_text(dtg_event_writer *writer, const char *tag, size_t tag_len, int64_t step, const char *markdown,
                              size_t markdown_len) DTG_NOEXCEPT;

/* Hands what waits in memory to the system. Since 0.1. */
DTG_ERR dtg_event_writer_flush(dtg_event_writer *writer) DTG_NOEXCEPT;

/* Flushes and closes; later calls fail. A release without it flushes too, but cannot say whether that worked. Since 0.1. */
DTG_ERR dtg_event_writer_close(dtg_event_writer *writer) DTG_NOEXCEPT;

/* Adds a reference and returns the writer; NULL for NULL. Since 0.1. */
DTG_API dtg_event_writer *dtg_event_writer_retain(dtg_event_writer *writer) DTG_NOEXCEPT;
/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_event_writer_release(dtg_event_writer *writer) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_IO_H */
