/* dtg/sharded.h: variables in shards: tables that are too large for one machine, or that several are to serve.
 *
 *   dtg_partitioner partitioner = DTG_PARTITIONER_INIT;
 *   partitioner.num_shards = 4;
 *   dtg_embedding layer = DTG_EMBEDDING_INIT;
 *   layer.rows = 1000000; layer.width = 64;
 *   dtg_nn_sharded_embedding(model, ids, &layer, &partitioner, &vectors);      under dtg_graph_push_device_setter: one ps after the other
 *
 * A variable in shards is one variable for people and files, and several for the graph: "table" is made of "table/part_0", "table/part_1"
 * and so on, also where there is one shard only. Each shard is a variable of the model like any other (dtg_model_variable), so every
 * optimizer, replicas in every mode, parameter servers and coordinators train them; where only some rows had a part in a step, only
 * these move. Sizes of norms that an optimizer takes of each variable (LAMB, LARS, Adafactor, clip_each_norm) are then those of shards, as
 * in TensorFlow; all other optimizers make of shards, to the bit, what they make of the whole.
 *
 * First values are those of the whole, however many shards there are. dtg_model_save and checkpoints (dtg/checkpoint.h) write one tensor
 * of the whole's name, and what an optimizer keeps of the shards as one of the whole's; a model with another number of shards, or with the
 * variable in one piece, restores it.
 *
 * Single: one thread at a time builds a model. */
#ifndef DTG_SHARDED_H
#define DTG_SHARDED_H

#include <dtg/base.h>
#include <dtg/coordinator.h>
#include <dtg/nn.h>

DTG_BEGIN_DECLS

/* A variable in shards, as the library tells it; the host sets struct_size (DTG_SHARDED_INIT) and nothing else. */
typedef struct dtg_sharded {
  size_t struct_size;
  const char *name; /* of the whole, borrowed from the graph; name_len bytes, and no NUL behind them */
  size_t name_len;
  dtg_dtype dtype;
  int32_t axis;   /* that it is cut along */
  int64_t shards; /* how many; dtg_sharded_shard tells each */
  size_t rank;
  int64_t dims[8]; /* of the whole */
} dtg_sharded;
/* clang-format off */
#define DTG_SHARDED_INIT {sizeof(dtg_sharded), NULL, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}}
/* clang-format on */

/* Adds the variable that `spec` asks for, in as many shards as `partitioner` says; the first ones have a row more where they do not
 * divide (dtg_shard_rows). Each shard's handle is made on the device of the open scopes, so under a device setter, or in the scope of a
 * strategy of parameter servers, they go to one task after the other. `out` may be NULL. Errors: INVALID_ARGUMENT (as of
 * dtg_model_add_variable and dtg_partitioner_shards; more than 4,096 shards, or none), FAILED_PRECONDITION (a tower asks for another
 * variable). Since 0.1. Semantics: tf.distribute.ParameterServerStrategy's variable_partitioner. */
DTG_ERR dtg_model_add_sharded_variable(dtg_model *model, const dtg_variable_spec *spec, const dtg_partitioner *partitioner,
                                       dtg_sharded *out) DTG_NOEXCEPT;

/* The variable in shards of that full name, scopes included. Errors: NOT_FOUND (also for one that is in one piece), INVALID_ARGUMENT.
 * Since 0.1. */
DTG_ERR dtg_model_find_sharded_variable(const dtg_model *model, const char *name, size_t name_len, dtg_sharded *out) DTG_NOEXCEPT;

/* Shard number `i` of it, counted from 0 along the axis. Errors: NOT_FOUND, OUT_OF_RANGE, INVALID_ARGUMENT. Since 0.1. */
DTG_ERR dtg_sharded_shard(const dtg_model *model, const char *name, size_t name_len, int64_t i, dtg_variable *out) DTG_NOEXCEPT;

/* All of it as one value: shards put one behind the other. Each run that uses it moves all of them, which is what shards were to
 * avoid; for small ones. Errors: NOT_FOUND. Since 0.1. Semantics: the conversion of a ShardedVariable to a tensor. */
DTG_ERR dtg_nn_sharded_value(dtg_model *model, const char *name, size_t name_len, dtg_value *out) DTG_NOEXCEPT;

/* out[..., rest] = variable[ids[...], rest]; ids int32 or int64 of any shape, also without elements. Each id is looked up where its
 * shard stands, and only the rows travel; gradients are rows of the shards. An id that is no row is INVALID_ARGUMENT in the run. Errors:
 * NOT_FOUND, INVALID_ARGUMENT (other ids, a variable that is not cut along its first axis). Since 0.1.
 * Semantics: tf.nn.embedding_lookup of a ShardedVariable, with the partition strategy "div". */
DTG_ERR dtg_nn_sharded_lookup(dtg_model *model, const char *name, size_t name_len, dtg_value ids, dtg_value *out) DTG_NOEXCEPT;

/* dtg_nn_embedding with its table in shards. Variable: "embeddings", float32 of [rows, width], in shards. With `weights_of` its table
 * is that of such a layer, and the partitioner decides nothing. Errors: as above. Since 0.1. */
DTG_ERR dtg_nn_sharded_embedding(dtg_model *model, dtg_value ids, const dtg_embedding *layer, const dtg_partitioner *partitioner,
                                 dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_SHARDED_H */
