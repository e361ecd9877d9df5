/* dtg/checkpoint.h: sets of checkpoints: saving what training has come to while it goes on, going on from there, looking into sets,
 * holding them to what was saved, and writing them again in another number of shards.
 *
 *   dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
 *   options.directory = "run/checkpoints";
 *   options.every_steps = 500;
 *   dtg_checkpoint_open(model, session, &options, &checkpoint);
 *   dtg_checkpoint_add_data(checkpoint, "train", DTG_STRLEN, data);
 *   dtg_checkpoint_resume(checkpoint, &step, NULL);          start, or go on
 *   while (step < steps) { ... train ...; dtg_checkpoint_reached(checkpoint, ++step, NULL); }
 *   dtg_checkpoint_save(checkpoint, step, 0);
 *
 * A set is a directory, step-<12 digits>-<16 hex digits>, with one safetensors file per shard and a manifest.json that has
 * the hash of each of them and of itself. It appears by one rename when all of it is on the disk, so whenever a process or machine
 * stops, the newest set is whole. Nothing in a set is trusted: whatever is not what was saved is DATA_LOSS. */
#ifndef DTG_CHECKPOINT_H
#define DTG_CHECKPOINT_H

#include <dtg/base.h>
#include <dtg/data.h>
#include <dtg/nn.h>
#include <dtg/session.h>

DTG_BEGIN_DECLS

/* ---- training ----
 *
 * What a set holds: every variable of the model, weights and what optimizers keep and the count of steps, as it is in the session; where
 * the data sets stand that were added; and the model's seed, which together with the count of steps is all that its layers draw by. So
 * training that goes on from a set makes the same steps, to the last bit, as if it had not stopped, where it is deterministic without.
 * Ops that keep a state of their own are not part of a set: RandomStandardNormal and its kind begin their draws anew in a new session (and
 * without seeds draw others each time). dtg_nn_noise draws by the step.
 *
 * In a cluster the chief saves and restores, and a client where there is no chief; for others these functions are PERMISSION_DENIED. It
 * fetches what parameter servers hold and writes all of it into its own directory, so another number of them can go on from a set.
 * The values are those between two steps of the thread that saves; where other workers apply updates at that time (asynchronous training),
 * each variable is whole by itself.
 *
 * Single: one thread at a time uses a checkpoint, the one that uses its model and data sets. These calls are inside of all of them: of the
 * model and the data sets while values are taken or put back, of the checkpoint until they return. Whoever is inside of one of them
 * in another thread meanwhile, in dtg_dataset_next for instance, or comes in then, is refused with FAILED_PRECONDITION; so is a restore of
 * the place of a data set that a fit reads. dtg_checkpoint_wait and dtg_checkpoint_status may come from any thread at any time. */

typedef struct dtg_checkpoint dtg_checkpoint;

/* Where to save, and when. Read during the call only. */
/* clang-format off */
typedef struct dtg_checkpoint_options {
  size_t struct_size;
  const char *directory;   /* of sets; made by the first save where it is not there. One training run saves there at a time */
  size_t directory_len;
  int32_t keep;            /* how many sets to keep, the newest ones; 0: 3 */
  int32_t shards;          /* files per set; 0: as many as make none larger than 1 GiB, about */
  int64_t every_steps;     /* dtg_checkpoint_reached saves at each multiple of that, or, while the save before is written, right after; 0: never */
  int64_t every_ns;        /* and when so much time has passed since the last save; 0: not by time */
  int32_t partial;         /* not 0: a restore takes what fits, and its report names the rest; 0: whatever does not fit is an error */
  int32_t reserved0;
  const char *names;       /* what restored variables are called in the sets, as in dtg_restore (dtg/nn.h); NULL: as in the model */
  size_t names_len;
} dtg_checkpoint_options;
#define DTG_CHECKPOINT_OPTIONS_INIT {sizeof(dtg_checkpoint_options), NULL, DTG_STRLEN, 0, 0, 0, 0, 0, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* Checkpoints of `model` as it is in `session`, which must be one of the model's graph; both are kept. Touches no file. `*out` is
 * owned by the caller. Errors: INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_checkpoint_open(dtg_model *model, dtg_session *session, const dtg_checkpoint_options *options,
                            dtg_checkpoint **out) DTG_NOEXCEPT;

/* Adds a reference and returns the checkpoint; NULL for NULL. Any thread. Since 0.1. */
DTG_API dtg_checkpoint *dtg_checkpoint_retain(dtg_checkpoint *checkpoint) DTG_NOEXCEPT;

/* Drops a reference. A save that is under way goes on; dtg_checkpoint_wait before tells what became of it. NULL is fine. Since 0.1. */
DTG_API void dtg_checkpoint_release(dtg_checkpoint *checkpoint) DTG_NOEXCEPT;

/* From now on each set holds where this data set stands, under `name` (1 to 64 letters, digits or ._-/), and a restore brings it there.
 * The data set is kept; it must have the stages, seeds and sources it had, and get no more transforms. A set keeps its dtg_dataset_schema
 * too, and a restore to data of other columns or names is FAILED_PRECONDITION, which says what differs, unless it is partial. Errors:
 * INVALID_ARGUMENT, ALREADY_EXISTS, FAILED_PRECONDITION (its elements are dealt, or a fit reads it). Since 0.1. */
DTG_ERR dtg_checkpoint_add_data(dtg_checkpoint *checkpoint, const char *name, size_t name_len, dtg_dataset *dataset) DTG_NOEXCEPT;

/* Start, or go on: restores the newest valid set; where there is none, gives the variables their first values. What the session has
 * already stays where it is as far as the newest set, by the model's count of steps: a chief that was started again finds its cluster
 * so. The data sets then go to their places in the newest set, and on from there over what the steps since took, where the set tells that
 * each step before it took as many elements and the data set was never begun anew: "notes" says so, or that elements come again, and of how
 * many steps. Where no set tells a place they stay where they are, which is noted too.
 * The directory is this handle's from here on, until it is released.
 * `step` (NULL: not told) receives how far training is, 0 for a start. `report` (NULL: none) receives JSON, owned by the caller:
 * {"outcome": "started", "kept" or "restored", "path", "step", "variables", "passed_over", "missing", "extra", "reshaped", "notes"}.
 * All of a set is read and verified before anything is assigned. A damaged one is passed over with a warning that names the file, and put
 * aside under "damaged-..." by the next save; a set that does not fit the model is an error and no older one is tried.
 * Errors: FAILED_PRECONDITION (the variables that do not fit, by name; another process saves there), DATA_LOSS (there are sets, and
 * none is whole), PERMISSION_DENIED (not the chief), RESOURCE_EXHAUSTED, those of the disk and of dtg_session_run. Since 0.1. */
DTG_ERR dtg_checkpoint_resume(dtg_checkpoint *checkpoint, int64_t *step, dtg_string **report) DTG_NOEXCEPT;

/* Restores the set of that name ("step-..."), or with `set` NULL or empty the newest valid one, whatever values there are. Does not take
 * the directory, so one may evaluate what another process saves. `step` and `report` as in dtg_checkpoint_resume. Errors: NOT_FOUND (no
 * set), INVALID_ARGUMENT (not the name of one), and as above. Since 0.1. */
DTG_ERR dtg_checkpoint_restore(dtg_checkpoint *checkpoint, const char *set, size_t set_len, int64_t *step,
                               dtg_string **report) DTG_NOEXCEPT;

/* Tells that training is at `step`; call it after each step. Where a save is due by the options it takes the values, in one run, and
 * returns; a thread of the library's own writes them while training goes on. Due while the one before is still being written, it is
 * made up for by a later call. `began` (NULL: not told) receives 1 if a save has begun. A set is named by the model's count of steps where
 * it has one, else by `step`. A step below the one told before, or below the one that was restored, begins a new count, which saves follow;
 * the log has a warning. What the disk refuses does not end training: it is logged, and dtg_checkpoint_wait and
 * dtg_checkpoint_status tell it. Errors: INVALID_ARGUMENT, PERMISSION_DENIED, those of dtg_session_run. Since 0.1. */
DTG_ERR dtg_checkpoint_reached(dtg_checkpoint *checkpoint, int64_t step, int32_t *began) DTG_NOEXCEPT;

/* Saves now, and waits until the set is on the disk; `step` counts where the model does not, as above. `timeout_ns` 0: 10 minutes. Errors:
 * RESOURCE_EXHAUSTED (how much is needed, how much is free), FAILED_PRECONDITION (a variable without value; a later set is there),
 * DEADLINE_EXCEEDED (it goes on), those of the disk; the sets that are there stay as they were. Since 0.1. */
DTG_ERR dtg_checkpoint_save(dtg_checkpoint *checkpoint, int64_t step, int64_t timeout_ns) DTG_NOEXCEPT;

/* The same, but returns as soon as the values are taken; waits only for a save before that is still being written. Since 0.1. */
DTG_ERR dtg_checkpoint_begin_save(dtg_checkpoint *checkpoint, int64_t step, int64_t timeout_ns) DTG_NOEXCEPT;

/* Waits until nothing is being written, and tells what came of the last save; NULL where there was none. `timeout_ns` 0: 10 minutes.
 * Any thread. Errors: those of the save, DEADLINE_EXCEEDED, INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_checkpoint_wait(dtg_checkpoint *checkpoint, int64_t timeout_ns) DTG_NOEXCEPT;

/* {"directory", "writing", "saves", "failures", "step", "path", "failure"}: counts of this handle, step and path of its last set (-1 and
 * "" where there is none), and why the last save failed, if it did. `*out` is owned by the caller. Any thread. Since 0.1. */
DTG_ERR dtg_checkpoint_status(const dtg_checkpoint *checkpoint, dtg_string **out) DTG_NOEXCEPT;

/* ---- sets that are there ----
 *
 * `path` names a directory of sets, or one set in it. These functions read files and may take long; they block, and no run waits
 * for them. Any thread. `runtime` may be NULL: the default one; its memory limit holds. */

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
