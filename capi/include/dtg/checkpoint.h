/* dtg/checkpoint.h: looking into sets of checkpoints, holding them to what was saved, and writing them again in another number of
 * shards. A set is a directory, step-<12 digits>-<16 hex digits>, with one safetensors file per shard and a manifest.json that has
 * the hash of each of them and of itself. Nothing in a set is trusted: whatever is not what was saved is DATA_LOSS.
 *
 * `path` names a directory of sets, or one set in it. These functions read files and may take long; they block, and no run waits
 * for them. Any thread. `runtime` may be NULL: the default one; its memory limit holds. */
#ifndef DTG_CHECKPOINT_H
#define DTG_CHECKPOINT_H

#include <dtg/base.h>

DTG_BEGIN_DECLS

/* The sets of a directory as JSON, newest first: {"directory", "sets": [{"name", "step", "valid", "problem", "bytes", "shards",
 * "tensors"}]}. A set is valid when its manifest holds and its shards are there in their sizes; their bytes are not read.
 * `*out` is owned by the caller. Errors: those of the disk, NOT_FOUND. Since 0.1. */
DTG_ERR dtg_checkpoint_list(dtg_runtime *runtime, const char *path, size_t path_len, dtg_string **out) DTG_NOEXCEPT;

/* What is in one set (of a directory: in the newest valid one) as JSON: {"path", "name", "step", "bytes", "shards": [{"file",
 * "bytes", "sha256"}], "tensors": [{"name", "dtype", "shape", "shard", "role", "of", "slot"}], "rows", "metadata"}. Reads the
 * manifest only. `*out` is owned by the caller. Errors: NOT_FOUND, DATA_LOSS, UNIMPLEMENTED (a set of a later release).
 * Since 0.1. */
DTG_ERR dtg_checkpoint_describe(dtg_runtime *runtime, const char *path, size_t path_len, dtg_string **out) DTG_NOEXCEPT;

/* Reads every byte of one set (of a directory: of each set), and says what is not as it was saved: {"sets": [{"path", "name", "step",
 * "valid", "bytes", "problems": [{"file", "problem"}], "strangers": [...]}]}. Damage is an answer and no error; an error says that
 * the sets could not be read. `*out` is owned by the caller. Errors: NOT_FOUND, those of the disk, RESOURCE_EXHAUSTED.
 * Since 0.1. */
DTG_ERR dtg_checkpoint_verify(dtg_runtime *runtime, const char *path, size_t path_len, dtg_string **out) DTG_NOEXCEPT;

/* Writes one set (of a directory: the newest valid one) again into the directory `into`, which may be the same, in `shards` files
 * of like size: under the same step, with the same tensors, as a later attempt, so that it becomes the newest of its step. The
 * source stays. Holds one new shard in memory. `*out` is the new set's path, owned by the caller. Errors: NOT_FOUND, DATA_LOSS,
 * INVALID_ARGUMENT, RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_checkpoint_reshard(dtg_runtime *runtime, const char *path, size_t path_len, const char *into, size_t into_len, int32_t shards,
                               dtg_string **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_CHECKPOINT_H */
