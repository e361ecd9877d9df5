/* dtg/tensor.h: values: element type, shape and plain row-major memory. Counted and shared. The library reads a
 * tensor while a run that was given it is under way and never writes into one, except where a run is told to put its
 * result there; the host keeps its own writes away from those times.
 *
 *   const int64_t dims[] = {2, 3};
 *   dtg_tensor_create(DTG_F32, dims, 2, floats, 24, NULL, NULL, &tensor);       2 rows of 3, copied
 *
 * Strings (DTG_STRING) have no plain memory: they come in by dtg_tensor_create_strings and are read by dtg_tensor_string.
 *
 * A tensor has up to 8 dimensions, the last one changes fastest; a scalar has none and one element. Type and shape never change. */
#ifndef DTG_TENSOR_H
#define DTG_TENSOR_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* Called once, from any thread, when borrowed memory is not needed any more. Must not call back into the library. */
typedef void (*dtg_free_fn)(void *data, size_t nbytes, void *user);

/* A tensor of `rank` dimensions `dims` (NULL when rank is 0) around `data`, which holds `nbytes` bytes, exactly the
 * size of the elements. free_fn NULL: the bytes are copied now. Otherwise they are borrowed until free_fn(data, nbytes,
 * user) is called; `data` must be aligned to the element size. On failure free_fn is not called.
 * Errors: INVALID_ARGUMENT (unknown type, rank above 8, negative dimension, wrong nbytes, NULL data with nbytes > 0),
 * UNIMPLEMENTED (types without plain memory), RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_tensor_create(dtg_dtype dtype, const int64_t *dims, size_t rank, void *data, size_t nbytes, dtg_free_fn free_fn, void *user,
                          dtg_tensor **out) DTG_NOEXCEPT;

/* A tensor with memory of its own, aligned to 64 bytes and zero-filled; write it through dtg_tensor_mutable_data
 * before others see it. Errors as above. Since 0.1. */
DTG_ERR dtg_tensor_allocate(dtg_dtype dtype, const int64_t *dims, size_t rank, dtg_tensor **out) DTG_NOEXCEPT;

/* A tensor of strings (DTG_STRING): any bytes, zeros too, in the order of the elements. strings[i] has lengths[i] bytes, up to its NUL
 * where that is SIZE_MAX; `lengths` NULL: all end at their NUL. Everything is copied, and the tensor never changes. `strings` may be
 * NULL when the tensor has no elements.
 * Errors: INVALID_ARGUMENT (rank above 8, negative dimension, a NULL string that is not empty), RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_tensor_create_strings(const int64_t *dims, size_t rank, const char *const *strings, const size_t *lengths,
                                  dtg_tensor **out) DTG_NOEXCEPT;

/* The same from one block of `nbytes` bytes, in which the strings lie one after the other: the i-th has lengths[i] bytes, and together
 * they have nbytes. For hosts that cannot hand out pointers into their own strings. Errors as above, and INVALID_ARGUMENT where the
 * lengths do not add up. Since 0.1. */
DTG_ERR dtg_tensor_create_packed_strings(const int64_t *dims, size_t rank, const void *bytes, size_t nbytes, const size_t *lengths,
                                         dtg_tensor **out) DTG_NOEXCEPT;

/* String i of a tensor of strings; `nbytes` (may be NULL) receives its size. Borrowed from the tensor, and not ended by a NUL. NULL and
 * 0 for a bad handle, another type or an i that is out of range; an empty string may give a pointer that must not be read. Since 0.1. */
DTG_API const char *dtg_tensor_string(const dtg_tensor *tensor, size_t i, size_t *nbytes) DTG_NOEXCEPT;

/* The elements; `nbytes` (may be NULL) receives their size. Borrowed from the tensor. NULL and 0 for a bad handle and for
 * strings (dtg_tensor_string); an empty tensor may give a pointer that must not be read. Since 0.1. */
DTG_API const void *dtg_tensor_data(const dtg_tensor *tensor, size_t *nbytes) DTG_NOEXCEPT;

/* The same memory for writing; NULL where it came in read-only (dtg/dlpack.h), and for strings. The caller makes sure that no run reads it
 * meanwhile. Since 0.1. */
DTG_API void *dtg_tensor_mutable_data(dtg_tensor *tensor) DTG_NOEXCEPT;

/* Element type; 0 for a bad handle. Since 0.1. */
DTG_API dtg_dtype dtg_tensor_dtype(const dtg_tensor *tensor) DTG_NOEXCEPT;

/* Number of dimensions; 0 for a bad handle. Since 0.1. */
DTG_API size_t dtg_tensor_rank(const dtg_tensor *tensor) DTG_NOEXCEPT;

/* Size of dimension `i`; -1 when i is out of range or the handle is bad. Since 0.1. */
DTG_API int64_t dtg_tensor_dim(const dtg_tensor *tensor, size_t i) DTG_NOEXCEPT;

/* Number of elements; 0 for a bad handle. Since 0.1. */
DTG_API int64_t dtg_tensor_count(const dtg_tensor *tensor) DTG_NOEXCEPT;

/* Adds a reference and returns the tensor; NULL for NULL. Since 0.1. */
DTG_API dtg_tensor *dtg_tensor_retain(dtg_tensor *tensor) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. Since 0.1. */
DTG_API void dtg_tensor_release(dtg_tensor *tensor) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_TENSOR_H */
