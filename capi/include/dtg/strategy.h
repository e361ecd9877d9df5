/* dtg/strategy.h: one model trained on several devices, or by several workers, behind one interface. The words are those of tf.distribute.
 *
 * There are two nouns. A strategy belongs to a model and says where its variables stand, how often its computation is built and how the
 * results meet. A per-replica value is one value of the graph for each replica. Everything here adds nodes to the model's graph, and
 * nothing else: what comes of it is run by any session that has the devices, with any other nodes of the graph around it.
 *
 *   dtg_strategy_create(model, &options, &strategy);
 *   dtg_strategy_enter(strategy);                            variables that are made from here on are the strategy's
 *   dtg_strategy_split(strategy, images, &x);                a share of the batch for each replica
 *   dtg_strategy_run(strategy, build, NULL, &x, 1, &loss, 1);    build() adds layers and a loss, once per replica
 *   dtg_strategy_minimize(strategy, loss, DTG_REDUCE_MEAN, &optimizer, &training);
 *   dtg_strategy_reduce(strategy, DTG_REDUCE_MEAN, loss, DTG_NO_AXIS, &mean);
 *   dtg_strategy_exit(strategy);
 *
 *   kind                              replicas        a variable has        gradients
 *   DTG_STRATEGY_ONE_DEVICE           one             one copy, there       applied
 *   DTG_STRATEGY_MIRRORED             one per device  a copy per device     reduced, applied to each copy alike: copies stay bit-equal
 *   DTG_STRATEGY_CENTRAL_STORAGE      one per device  one copy, in between  reduced, applied once
 *   DTG_STRATEGY_PARAMETER_SERVER     one a process   one copy, on a ps     dtg/replicas.h: async, strict or sync-replicas
 *   DTG_STRATEGY_CUSTOM               one per device  as its hooks say      as its hooks say
 *   DTG_STRATEGY_MULTI_WORKER_MIRRORED  one per device of every worker, a copy of each variable per device, gradients reduced over all
 *
 * Contexts. Outside of everything is the default context; from dtg_strategy_enter to dtg_strategy_exit it is the cross-replica context;
 * while the function of a run builds, it is the replica context of one replica, in which its device scope is open and variables are that
 * replica's copies. Each function says where it belongs; elsewhere it is FAILED_PRECONDITION. What is made in the default
 * context enters the scope for as long as it takes. One scope may be open on a model at a time.
 *
 * Variables. A mirrored variable is one variable of the model: one name, one entry in checkpoints, one first value for all
 * copies, and restoring gives it to all of them. What follows the batches (the moving statistics of a batch normalization) goes to the mean
 * over the replicas. Layers that replica 0 makes, the others make again over the same variables: the same ones, in the same order.
 * Layers of a later run have variables of their own unless they say `weights_of`.
 *
 * Bits. With DTG_REDUCE_TO_ONE_DEVICE gradients are added up in the order of the replicas: Mirrored, CentralStorage and OneDevice's towers
 * (dtg_nn_minimize_towers) give the same bits for the same shares of a batch. DTG_REDUCE_HIERARCHICAL adds up two halves first: as
 * repeatable, in another order.
 *
 * Workers. MultiWorkerMirrored is for tasks of a group (dtg/group.h), each a process that builds the same graph from the same calls and
 * feeds it batches of its own; replicas are numbered through, those of rank 0 first.
 *
 *   dtg_cluster_from_tf_config(NULL, 0, &cluster, &task);    dtg_server_start(NULL, cluster, &here, &server);
 *   dtg_group_join(server, NULL, &group);                    options.group = group;
 *   ...                                                      the rest as above, in a session at dtg_server_target(server)
 *
 * Whatever makes one value of all replicas' (dtg_strategy_reduce and gather, reading what is synchronised on read, the result of a metric,
 * a step of training, the target of dtg_model_init) is then a collective: all workers run it, the same ones in one run. The target of
 * dtg_model_init ends with what dtg_strategy_level does, so first values are those of rank 0, whatever the seeds. Calls in
 * another order, or of other shapes, end with an error that names the task. A
 * strategy is for the number of workers that the group has when it is made; their ranks may be others in a later epoch. Workers that made
 * other strategies of the group than the others, or more of them, wait for calls that do not come: the error that ends this says so.
 *   With one device per worker, and with DTG_REDUCE_TO_ONE_DEVICE for any number, the bits are those of Mirrored with as many replicas and
 * of dtg_nn_minimize_towers over the same shares of the batch. Layers that draw (dtg_nn_dropout and its kin) do so by the seed of their
 * worker's model, the layer, the replica's number among those of all workers, and the step: for these bits give all models one seed. With
 * several devices, that has every worker gather the gradients of all replicas; DTG_REDUCE_HIERARCHICAL adds up each worker's own first and
 * sends only the sum. A worker that is lost ends the step of the others with UNAVAILABLE and its name, and none of them has applied half a
 * step. They call dtg_group_reform, which waits for it to be started again, and run the target of dtg_strategy_level, while the new process
 * joins the group and runs that of dtg_model_init: all go on from the step of the one that had made the most.
 *
 * Losses. DTG_REDUCE_MEAN is right for losses that are means over equal shares. Where shares differ, let each replica give the sum over its
 * rows divided by the rows of the whole batch, and ask for DTG_REDUCE_SUM: gradients are then those of the mean over the batch.
 *
 * Single: one thread at a time uses a strategy, the one that builds its model's graph. Functions and hooks of the host are called on
 * that thread, inside the call that builds, and may use the strategy, the model and the graph. They return NULL, or an error, which they
 * give away: it ends the call and comes out of it, and a run that
 * failed leaves the model as it was. A function leaves the scopes of the graph that it opened, also when it fails. Errors of all functions:
 * INVALID_ARGUMENT (a closed handle; a value of another graph or strategy, or one that is not per replica), FAILED_PRECONDITION
 * (the wrong context, mixed strategies) and RESOURCE_EXHAUSTED. Semantics: tf.distribute.Strategy, StrategyExtended, ReplicaContext.
 */
#ifndef DTG_STRATEGY_H
#define DTG_STRATEGY_H

#include <dtg/base.h>
#include <dtg/graph.h>
#include <dtg/group.h>
#include <dtg/nn.h>
#include <dtg/replicas.h>

DTG_BEGIN_DECLS

typedef struct dtg_strategy dtg_strategy;

/* One value for each replica of one strategy. A plain number: copied freely, owned by nobody, good for as long as its strategy; 0 is none.
 */
typedef struct dtg_per_replica {
  uint64_t id;
} dtg_per_replica;

/* What a strategy is; the table at the head of this file says how they differ. */
typedef int32_t dtg_strategy_kind;
enum {
  DTG_STRATEGY_ONE_DEVICE = 0,
  DTG_STRATEGY_MIRRORED = 1,
  DTG_STRATEGY_CENTRAL_STORAGE = 2,
  DTG_STRATEGY_PARAMETER_SERVER = 3,
  DTG_STRATEGY_CUSTOM = 4,
  DTG_STRATEGY_MULTI_WORKER_MIRRORED = 5
};

/* In which order a sum over replicas is made, and where. */
typedef int32_t dtg_cross_device;
enum {
  DTG_REDUCE_TO_ONE_DEVICE = 0, /* in the order of the replicas, on the device of the variable's first copy */
  DTG_REDUCE_HIERARCHICAL = 1   /* two halves of neighbours, each on its first device, then both: less crosses between the halves;
                                   MultiWorkerMirrored: each worker's replicas, then the workers */
};

/* Adds the results of the function that it was given to: inputs[k] is this replica's value of the run's input k, results[k] receives its
 * result k, a value of the graph. NULL on success; an error is the caller's. */
typedef dtg_error *(*dtg_replica_fn)(void *user, dtg_strategy *strategy, int32_t replica, const dtg_value *inputs, size_t num_inputs,
                                     dtg_value *results, size_t num_results);

/* In the cross-replica context: makes per-replica results of per-replica values. NULL on success. */
typedef dtg_error *(*dtg_merge_fn)(void *user, dtg_strategy *strategy, const dtg_per_replica *values, size_t num_values,
                                   dtg_per_replica *results, size_t num_results);

/* Adds a write to one copy of a variable, from that replica's values; `out` receives the node that makes it. NULL on success. */
typedef dtg_error *(*dtg_update_fn)(void *user, dtg_strategy *strategy, int32_t copy, const dtg_variable *variable, const dtg_value *values,
                                    size_t num_values, dtg_value *out);

/* Where a custom strategy wants a variable; see create_variable. Written by the hook; it may change what stands there already. */
typedef struct dtg_variable_place {
  size_t struct_size;
  const char *name; /* full name as asked for, without scopes; ends with NUL; the library's */
  dtg_dtype dtype;
  int32_t trainable;
  const int64_t *dims;
  size_t rank;
  dtg_variable_sync synchronization;    /* the hook may change it */
  dtg_variable_aggregation aggregation; /* the hook may change it */
  const char *const *devices;           /* the hook's, until the next call of a hook: where the copies stand; each ends with NUL */
  size_t num_devices;                   /* 0: as the options say; 1: one copy that all replicas share; else one per replica */
} dtg_variable_place;

/* The types of hooks; what each is for, and which values it has, stands beside its field of dtg_strategy_hooks. All return NULL, or an
 * error. */
typedef dtg_error *(*dtg_create_variable_fn)(void *user, dtg_strategy *strategy, dtg_variable_place *place);
typedef dtg_error *(*dtg_around_replica_fn)(void *user, dtg_strategy *strategy, int32_t replica);
typedef dtg_error *(*dtg_reduce_fn)(void *user, dtg_strategy *strategy, dtg_reduction op, const dtg_value *parts, size_t num_parts,
                                    dtg_value *out);
typedef dtg_error *(*dtg_batch_reduce_fn)(void *user, dtg_strategy *strategy, dtg_reduction op, const dtg_value *parts,
                                          size_t num_variables, size_t num_parts, dtg_value *outs);
typedef dtg_error *(*dtg_spread_fn)(void *user, dtg_strategy *strategy, dtg_value value, dtg_value *outs, size_t num_outs);
typedef dtg_error *(*dtg_read_variable_fn)(void *user, dtg_strategy *strategy, const char *name, const dtg_value *reads, size_t num_reads,
                                           dtg_value *out);
typedef dtg_error *(*dtg_around_update_fn)(void *user, dtg_strategy *strategy, const char *name, int32_t copy);
typedef dtg_error *(*dtg_gather_fn)(void *user, dtg_strategy *strategy, const dtg_value *parts, size_t num_parts, int32_t axis,
                                    dtg_value *out);
typedef dtg_error *(*dtg_local_results_fn)(void *user, dtg_strategy *strategy, const dtg_value *values, size_t num_values, dtg_value *outs,
                                           size_t *num_outs);

/* What a custom strategy does in its own way. Each may be NULL: then it is done as by Mirrored, or CentralStorage where
 * `variable_device` is given. `user` is that of the options. Hooks may add nodes and call every function that its context allows.
 * Semantics: the overridables of tf.distribute.StrategyExtended; those that are plain facts (worker and parameter devices, replicas in
 * sync, between-graph, should-init, should-checkpoint, should-save-summary) are fields of dtg_strategy_options. What an optimizer keeps has
 * as many copies as its variable, beside them (update_non_slot). */
/* clang-format off */
typedef struct dtg_strategy_hooks {
  size_t struct_size;
  dtg_create_variable_fn create_variable; /* before a variable is made: where its copies stand */
  dtg_around_replica_fn begin_replica;    /* around the function of each replica (call_for_each_replica): for scopes of its own, which */
  dtg_around_replica_fn end_replica;      /* end_replica leaves again */
  dtg_reduce_fn reduce_to;                /* one value of `parts`, one per replica; also for dense gradients, unless batch_reduce_to is there */
  dtg_batch_reduce_fn batch_reduce_to;    /* the dense gradients of all variables at once: parts[v * num_parts + r] is that of variable v in
                                             replica r, outs[v] receives what is applied to all its copies. Gradients that are rows are
                                             joined by the library and stay rows */
  dtg_spread_fn broadcast_to;             /* `value` for each replica; `outs` holds the value itself */
  dtg_read_variable_fn read_variable;     /* what is read from outside of a variable that is synchronised on read, of the copies' reads */
  dtg_around_update_fn begin_update;      /* around each write to a copy of a variable by dtg_strategy_assign and dtg_strategy_update */
  dtg_around_update_fn end_update;        /* (update) */
  dtg_gather_fn gather;                   /* all parts, one behind the other along `axis` */
  dtg_spread_fn split;                    /* a share of the batch `value` for each replica (the distribution of data) */
  dtg_local_results_fn local_results;     /* which of `values` this process has: writes them to `outs`, which has room for all, and their
                                             number to `num_outs` */
} dtg_strategy_hooks;
/* clang-format on */
/* clang-format off */
#define DTG_STRATEGY_HOOKS_INIT {sizeof(dtg_strategy_hooks), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
/* clang-format on */

/* A strategy to create. Zero is the default of every field; read during the call only, but for `user`, which hooks are given. */
typedef struct dtg_strategy_options {
  size_t struct_size;
  dtg_strategy_kind kind;
  dtg_cross_device cross_device;
  const char *const *devices; /* of the replicas, each ends with NUL: "/device:EMU:0", "CPU:1"; no two equal. ParameterServer may leave
                                 it out: the open device scopes decide (dtg_graph_push_device_setter). MultiWorkerMirrored: those of
                                 this worker, as many as each of the others names; none: one replica at its task */
  size_t num_devices;
  const char *variable_device; /* CentralStorage and Custom: where the one copy of each variable stands. NULL: CentralStorage takes the
                                  device if there is one, else "/device:CPU:0"; Custom mirrors */
  const dtg_replication *replication; /* ParameterServer: this worker's place */
  const dtg_strategy_hooks *hooks;    /* Custom */
  void *user;                         /* what the hooks are given; the host's, alive as long as the strategy */
  int32_t replicas_in_sync;           /* Custom: replicas of all processes; 0: those here */
  int32_t between_graph;              /* Custom: not 0 where each process builds a graph of its own */
  int32_t not_init;                   /* Custom: not 0 where another process gives the variables their first values */
  int32_t not_checkpoint;             /* Custom: not 0 where another process saves */
  int32_t not_summary;                /* Custom: not 0 where another process writes what is plotted */
  dtg_reduce_algorithm algorithm;     /* MultiWorkerMirrored: how sums of the workers travel; the bits are the same */
  dtg_group *group;                   /* MultiWorkerMirrored: the workers; kept as long as the strategy */
  int64_t pack_bytes;                 /* MultiWorkerMirrored: smaller gradients travel together, so many bytes at most; 0: 4 MiB */
  int64_t timeout_ns;                 /* MultiWorkerMirrored: of a collective; 0: the group's */
} dtg_strategy_options;
#define DTG_STRATEGY_OPTIONS_INIT \
  { sizeof(dtg_strategy_options), 0, 0, NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, 0, 0 }

/* What programs ask a strategy; written by the library. */
typedef struct dtg_strategy_info {
  size_t struct_size;
  int32_t num_replicas;         /* that this process builds */
  int32_t num_replicas_in_sync; /* whose gradients make one update; to divide a global batch, or a loss, by. Semantics: the same */
  int32_t context;              /* 0: default, 1: cross-replica, 2: replica */
  int32_t replica;              /* in a replica context: which, from 0; else -1 */
  int32_t between_graph;
  int32_t should_init;
  int32_t should_checkpoint;
  int32_t should_save_summary;
} dtg_strategy_info;
/* clang-format off */
#define DTG_STRATEGY_INFO_INIT {sizeof(dtg_strategy_info), 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* A strategy for a model, which it keeps alive. A model may have several, with one scope open at a time and with variables of their own.
 * `*out` is owned by the caller. MultiWorkerMirrored: the workers make the same strategies of a group in the same order. Errors:
 * INVALID_ARGUMENT (a kind, device or number that is none, a device twice or of another worker, MultiWorkerMirrored without a group, or
 * with a device that the worker's server does not have; those of other kinds are the session's, whose runs say so), FAILED_PRECONDITION
 * (the group is in no epoch, or its epoch has ended). Since 0.1. Semantics: tf.distribute.OneDeviceStrategy, MirroredStrategy,
 * CentralStorageStrategy, ParameterServerStrategyV1, MultiWorkerMirroredStrategy, StrategyExtended. */
DTG_ERR dtg_strategy_create(dtg_model *model, const dtg_strategy_options *options, dtg_strategy **out) DTG_NOEXCEPT;

/* Adds a reference and returns the strategy; NULL for NULL. Since 0.1. */
DTG_API dtg_strategy *dtg_strategy_retain(dtg_strategy *strategy) DTG_NOEXCEPT;

/* Drops a reference. NULL is fine. What it added stays in the graph and the model; a scope that is open is left. Since 0.1. */
DTG_API void dtg_strategy_release(dtg_strategy *strategy) DTG_NOEXCEPT;

/* Numbers of replicas, the context, who does what. Any context. Since 0.1. */
DTG_ERR dtg_strategy_describe(const dtg_strategy *strategy, dtg_strategy_info *out) DTG_NOEXCEPT;

/* Opens the scope: variables that are made until dtg_strategy_exit, by whatever layer, are the strategy's. Default context. Errors:
 * FAILED_PRECONDITION (it is open, or that of another strategy is). Since 0.1. Semantics: tf.distribute.Strategy.scope. */
DTG_ERR dtg_strategy_enter(dtg_strategy *strategy) DTG_NOEXCEPT;

/* Leaves it. Cross-replica context. Since 0.1. */
DTG_ERR dtg_strategy_exit(dtg_strategy *strategy) DTG_NOEXCEPT;

/* ---- runs ---- */

/* Calls `fn` once per replica, in order, each time in its replica context, and gives what it makes of the per-replica `inputs` as
 * `num_results` per-replica values. Runs nothing: sessions do that, with what comes of it. Default or cross-replica context.
 * Errors: FAILED_PRECONDITION (replicas that build different layers), what `fn` returns. Since 0.1.
 * Semantics: tf.distribute.Strategy.run. */
DTG_ERR dtg_strategy_run(dtg_strategy *strategy, dtg_replica_fn fn, void *user, const dtg_per_replica *inputs, size_t num_inputs,
                         dtg_per_replica *results, size_t num_results) DTG_NOEXCEPT;

/* The same, one replica after the other, for programs whose functions cannot be called from C: begins replica 0, 1, ...; the caller then
 * builds, with the inputs that dtg_strategy_local gives, and ends it. Since 0.1. */
DTG_ERR dtg_strategy_begin_replica(dtg_strategy *strategy, int32_t replica) DTG_NOEXCEPT;

/* Ends the replica that was begun, with its results. The end of the last one is that of the run: `out` (room for num_results) receives
 * the per-replica values, and is untouched before. Replica context. After an error the run is over and the model as before it. Since 0.1.
 */
DTG_ERR dtg_strategy_end_replica(dtg_strategy *strategy, const dtg_value *results, size_t num_results, dtg_per_replica *out) DTG_NOEXCEPT;

/* Gives up the run that is being built, if there is one: scopes are left, the model is as before it. Any context; but FAILED_PRECONDITION
 * in a function of a merge call and in a hook, on which the run waits: these return an error instead. Since 0.1. */
DTG_ERR dtg_strategy_abandon_run(dtg_strategy *strategy) DTG_NOEXCEPT;

/* Leaves the replica contexts for something that needs all replicas' values: when the function of the last replica has returned, `merge`
 * is called once, in the cross-replica context, with num_values per-replica values, and gives `num_merged` more; then each replica goes
 * on with `then`, in its context again, whose inputs are its values of those, and whose results are the replica's in place of those of the
 * function that called this. What would stand behind a merge_call of TensorFlow's stands in `then`, which may make another one. Every
 * replica makes the same merge calls, one in a function; `merge` and `merge_user` of replica 0 count. `merge_user` and `then_user` must
 * live until the run ends. Replica context. Errors, also of the end of the run: FAILED_PRECONDITION (a second one, or not in all replicas).
 * Since 0.1. Semantics: tf.distribute.ReplicaContext.merge_call. */
DTG_ERR dtg_strategy_merge_call(dtg_strategy *strategy, const dtg_value *values, size_t num_values, dtg_merge_fn merge, void *merge_user,
                                size_t num_merged, dtg_replica_fn then, void *then_user) DTG_NOEXCEPT;

/* ---- values ---- */

/* For `axis` of dtg_strategy_reduce: only over replicas. */
#define DTG_NO_AXIS INT32_MIN

/* The sum or mean of the replicas' values, on the first replica's device: of numbers, and whole ones wrap around; bool has no sum. With an
 * `axis` (negative: from behind) each is added up along it as well, and the mean is over all elements, so that shares of different size
 * weigh what they are. A mean needs floating-point values; that along an axis of integers is float64, of those of 8 and 16 bits float32.
 * Default or cross-replica context. Since 0.1. Semantics: tf.distribute.Strategy.reduce. */
DTG_ERR dtg_strategy_reduce(dtg_strategy *strategy, dtg_reduction op, dtg_per_replica value, int32_t axis, dtg_value *out) DTG_NOEXCEPT;

/* The replicas' values one behind the other along `axis`; they have the same rank, and may differ in that dimension. Default or
 * cross-replica context. Since 0.1. Semantics: tf.distribute.Strategy.gather. */
DTG_ERR dtg_strategy_gather(dtg_strategy *strategy, dtg_per_replica value, int32_t axis, dtg_value *out) DTG_NOEXCEPT;

/* values[r] for replica r, num_values of them, one per replica: such as placeholders that data sets feed. Default or cross-replica context.
 * Since 0.1. Semantics: tf.distribute.Strategy.experimental_distribute_values_from_function. */
DTG_ERR dtg_strategy_distribute(dtg_strategy *strategy, const dtg_value *values, size_t num_values, dtg_per_replica *out) DTG_NOEXCEPT;

/* The same value for every replica, such as the result of a merge. Default or cross-replica context. Since 0.1.
 * Semantics: tf.distribute.StrategyExtended.broadcast_to. */
DTG_ERR dtg_strategy_broadcast(dtg_strategy *strategy, dtg_value value, dtg_per_replica *out) DTG_NOEXCEPT;

/* A batch cut along its first axis, as evenly as can be: of b rows replica r of n has floor(b / n), and one more where r < b mod n. Known
 * or open shapes. A batch of fewer rows than replicas is INVALID_ARGUMENT where the graph shows its rows; where they are
 * open it leaves some replicas none, over which there is no mean. Default or cross-replica
 * context. Since 0.1. Semantics: the per-replica batches of tf.distribute.Strategy.experimental_distribute_dataset. */
DTG_ERR dtg_strategy_split(dtg_strategy *strategy, dtg_value batch, dtg_per_replica *out) DTG_NOEXCEPT;

/* This replica's value. Replica context. Since 0.1. */
DTG_ERR dtg_strategy_local(dtg_strategy *strategy, dtg_per_replica value, dtg_value *out) DTG_NOEXCEPT;

/* The values of all replicas of this process: up to `cap` to `outs`, their number to `count`. Default or cross-replica context. Since 0.1.
 * Semantics: tf.distribute.Strategy.experimental_local_results. */
DTG_ERR dtg_strategy_local_results(dtg_strategy *strategy, dtg_per_replica value, dtg_value *outs, size_t cap, size_t *count) DTG_NOEXCEPT;

/* ---- training and variables ---- */

/* Adds the gradients of each replica's loss with respect to its copies of the trainable variables, reduces them, and applies the result
 * to every copy: `optimizer` (NULL: SGD) and `out` as in dtg_nn_minimize. A loss that is no finite number names its replica as a tower.
 * ParameterServer: DTG_REDUCE_MEAN only; this worker's share as by dtg_nn_minimize_replicated, `out->train` being its step, and the other
 * targets with dtg_strategy_replicated. Default or cross-replica context. Errors: those of dtg_nn_minimize; FAILED_PRECONDITION (a
 * trainable variable that was made outside of the scope, or by another strategy). Since 0.1. */
DTG_ERR dtg_strategy_minimize(dtg_strategy *strategy, dtg_per_replica losses, dtg_reduction op, const dtg_optimizer *optimizer,
                              dtg_training *out) DTG_NOEXCEPT;

/* ParameterServer: what the last dtg_strategy_minimize added; dtg_model_recover knows it too. Errors: FAILED_PRECONDITION (another kind, or
 * nothing was minimized yet). Since 0.1. */
DTG_ERR dtg_strategy_replicated(const dtg_strategy *strategy, dtg_replicated *out) DTG_NOEXCEPT;

/* How a value changes a variable. */
typedef int32_t dtg_assign_op;
enum { DTG_ASSIGN_SET = 0, DTG_ASSIGN_ADD = 1, DTG_ASSIGN_SUB = 2 };

/* Writes to a variable, named by the handle of any of its copies.
 *   cross-replica  all copies, the same value; `target` receives the node to run. DTG_VARIABLE_ON_READ with DTG_AGGREGATION_SUM: set only,
 * and the first copy gets the value, the others zero. replica        DTG_VARIABLE_ON_READ: this replica's copy, at once. Else the variable
 * needs an aggregation: the replicas' values are combined by it when the last one has come here, and written to all copies; every replica
 * does the same, in the same order. `target` receives {0} where others are still to come; dtg_strategy_updates has all of them. `target`
 * may be NULL. Errors: FAILED_PRECONDITION (no aggregation; not in all replicas; not the strategy's variable). Since 0.1. Semantics:
 * tf.Variable.assign, assign_add and assign_sub under a strategy; but the shares of a sum, which TensorFlow makes equal. */
DTG_ERR dtg_strategy_assign(dtg_strategy *strategy, dtg_value handle, dtg_assign_op op, dtg_value value, dtg_value *target) DTG_NOEXCEPT;

/* The target that makes everything that the last run assigned in its replicas. Default or cross-replica context. Errors:
 * FAILED_PRECONDITION (nothing). Since 0.1. */
DTG_ERR dtg_strategy_updates(dtg_strategy *strategy, dtg_value *out) DTG_NOEXCEPT;

/* Calls `fn` for each copy of a variable, with its handle and reading in `variable` and that replica's values, colocated with it; `out`
 * receives the target of all that it answers. A variable of one copy: once, with the first replica's values. Default or cross-replica
 * context. Since 0.1. Semantics: tf.distribute.StrategyExtended.update. */
DTG_ERR dtg_strategy_update(dtg_strategy *strategy, dtg_value handle, dtg_update_fn fn, void *user, const dtg_per_replica *values,
                            size_t num_values, dtg_value *out) DTG_NOEXCEPT;

/* MultiWorkerMirrored: the target that gives every worker what the one has that has made the most steps (global_step; of several, the one
 * with the lowest rank): all variables and what optimizers keep, but not what is synchronised on read. All workers run it, after
 * dtg_group_reform and whenever one of them has restored what it saved; a process that begins runs the target of dtg_model_init
 * meanwhile, which does the same behind its first values. Asked for when the model is complete, and dtg_model_init likewise, since
 * variables are counted. Variables of strings are UNIMPLEMENTED. Other kinds: a target that does nothing. Default or cross-replica context.
 * Since 0.1. */
DTG_ERR dtg_strategy_level(dtg_strategy *strategy, dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_STRATEGY_H */
