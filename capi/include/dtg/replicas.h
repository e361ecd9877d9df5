/* dtg/replicas.h: training one model by many workers.
 *
 * Between-graph: every worker is a program of its own that builds the same model, with its variables on parameter servers,
 * and then asks for its share of the training. What that share is decides `mode`:
 *
 *   DTG_SYNC_ASYNC     a step applies its gradients at once and waits for nobody.
 *   DTG_SYNC_STRICT    one contribution per worker and step, added up in the order of the workers: equal runs give equal bits,
 *                      whoever is first, and the bits of dtg_nn_minimize_towers over the same shares of the batch. A
 *                      contribution from variables of an older step is dropped. A worker that was restarted may send its
 *                      step again: until the update takes one, the last counts. Layers that draw (dtg_nn_dropout, dtg_nn_noise,
 *                      sampled losses) do so by the seed of the model, the layer and the step: workers of one seed draw alike,
 *                      where towers, whose layers are others, do not. Give each worker's model a seed of its own, as the first
 *                      values are the chief's; the bits of such a training are its own, not those of towers.
 *   DTG_SYNC_REPLICAS  TensorFlow's SyncReplicasOptimizer: the mean of all gradients that are there once R arrived, tokens
 *                      that any worker may take, gradients of an older step dropped.
 *   DTG_SYNC_SSP       Stale synchronous parallel: as DTG_SYNC_ASYNC, but a worker is at most `staleness` steps ahead of the
 *                      slowest that is there. A step ends when its worker may begin the next one, whose variables then hold
 *                      every update of the others but, at most, their last `staleness`. 0: nobody begins a step before all
 *                      have made the one before. A worker that is gone (for a second, or silent for T_dead and that second)
 *                      is not waited for; one that comes, or comes back, begins where the slowest is. `leave` is for one that
 *                      makes no more steps. A deadline that passes meanwhile names who was waited for.
 *   DTG_SYNC_ELASTIC   as DTG_SYNC_STRICT, but a step is made with the workers that are there: `total` of them at most, which may
 *                      come and go, `min_workers` at least. See below.
 *
 *   chief (worker 0):  dtg_model_init's target, then chief_init once, then `update` over and over in an asynchronous run
 *   every worker:      dtg_model_wait_ready, then local_init once, then `train` every step
 *
 * chief_init comes before any worker's first step, and local_init after it. A worker that restarts runs local_init, never an
 * initialisation of the model. In DTG_SYNC_SSP a step that failed while it waited for others may have been applied: run local_init
 * (dtg_model_recover does), which waits on, before the next `train`. When an update failed or the chief was restarted, the chief runs
 * `resume` and goes on with updates; workers that wait get a token of the step that has to be repeated: their next_step is their local_step
 * then. Where runs must be equal to the bit whatever is restarted, let local_step decide which batch a step takes. dtg_model_recover does
 * what is needed after a loss, for the chief and for the others.
 *
 * In DTG_SYNC_STRICT little is left to do when a task is lost that keeps its variables (dtg_server_options.state_dir) and comes back at its
 * address, or when a connection breaks; so it is in DTG_SYNC_ELASTIC. A `train` waits for it, up to half a minute, and is made once more
 * from its beginning, as is one whose token asks for the same step again: it ends when its step was made, and no step is made twice. What
 * it fetches is then of the last attempt. So it is where the run, but for what dtg_nn_minimize_replicated added, changes nothing: one that
 * also takes from a queue or an iterator of the graph fails with UNAVAILABLE (then dtg_model_recover), or ends with next_step = local_step.
 * `update` in dtg_session_run_repeatedly, in DTG_SYNC_REPLICAS too, does what `resume` is for and goes on.
 *
 * DTG_SYNC_ELASTIC. A worker takes part from the first step on that it contributes to in time, and as long as its session is connected to
 * the task of the global step: the update waits for its contribution, however slow it is, until it was without a connection for a
 * second, or silent for T_dead (dtg_server_options.dead_ns) and that second, or has run `leave`. Who has not come yet is not waited for.
 * The mean is that of the contributions that make the step (`members`), added in the order of the workers: equal members in each step
 * give equal bits, and those of dtg_nn_minimize_towers over their shares. A step of N workers is made from N shares of a batch, so its
 * batch is smaller when fewer are there; the learning rate is not changed by that. A worker whose contribution came too late, as the step
 * was made without it, ends its `train` all the same, with next_step the step that it contributes to next; nothing of it was applied.
 * Sessions have to be connected where others may be missing: give the servers of workers device_filters {"/job:ps"}. Every worker calls
 * dtg_session_end_job at its end, which runs `leave` and waits for those who have come; dtg_session_barrier waits for all workers of the
 * cluster, those too that never came. Every step is applied once, on all tasks or on none, whoever is lost, as in DTG_SYNC_STRICT, and in
 * the same commit counted in the model's variable "sync/contributions" (float64 [total]: by worker, how many of its contributions were
 * applied). What is not kept is who takes part: an update that was cut short before any task had applied it is made anew, from
 * contributions that are asked for once more, and may have other members then. While the task of the global step has just been started
 * anew, an update waits for T_dead and a second, unless all `total` workers are back before, so that nobody is left out. Where a worker is
 * restarted between its contribution and the update, tasks may hold contributions of its two lives: give the same batch for the same
 * local_step and worker, and they are the same. A loss that is no finite number fails `train` of that worker alone; the others wait for its
 * next contribution, or until it leaves.
 *
 * Data under DTG_SYNC_ELASTIC. Where workers come and go, a fixed shard for each would leave out the records of who is gone. So the
 * elements (batches) of an epoch are dealt: every worker makes the same data set, with the same seeds and without a shard, says in
 * dtg_replication.elements how many elements it has (dtg_dataset_cardinality), and calls dtg_dataset_deal, when it is connected and before
 * it reads. From then on dtg_dataset_next hands out what is dealt to this worker, each to be trained with by one `train`:
 *
 *   every worker:  dtg_dataset_next, then `train` with what it gave; where `more` is 0, dtg_dataset_restart, or the end
 *
 * Each element is in exactly one update of each epoch, whoever comes, leaves or is killed: which elements an update is made of is entered
 * in its own commit into a ledger, the model's variable "sync/dealt" (float64 [elements]: in how many updates each has been), so the place
 * in the data comes back with the weights, after a loss and from a checkpoint. What a worker had that is gone, or has run `leave`, is dealt
 * to others; a worker whose contribution made no step, as it came too late or the step failed, gets the same element again from
 * dtg_dataset_next, also after dtg_model_recover. Near the end of an epoch dtg_dataset_next waits while the last elements are with others,
 * and no step waits for who waits there, nor does `min_workers`; the epoch ends for all at once (`more` 0), when every element is in an
 * update. Weights that are restored while workers train bring their ledger into effect with dtg_model_recover of the chief, or chief_init.
 * So an epoch has as many steps as its elements need with who was there, and each of a step's elements counts the same, also a
 * short last batch.
 *
 * In-graph: one program, one graph, N towers that compute the same over the same variables.
 *
 *   build the layers and loss[0];  dtg_model_next_tower(model);  build the same layers and loss[1]; ...
 *   dtg_nn_minimize_towers(model, loss, N, &optimizer, &training);
 */
#ifndef DTG_REPLICAS_H
#define DTG_REPLICAS_H

#include <dtg/base.h>
#include <dtg/data.h>
#include <dtg/graph.h>
#include <dtg/nn.h>

DTG_BEGIN_DECLS

/* How the workers' gradients meet; see the head of this file. All workers of a job use the same. */
typedef int32_t dtg_sync_mode;
enum { DTG_SYNC_ASYNC = 0, DTG_SYNC_STRICT = 1, DTG_SYNC_REPLICAS = 2, DTG_SYNC_SSP = 3, DTG_SYNC_ELASTIC = 4 };

/* The place of one worker among all. Every worker says the same but for `worker`. */
typedef struct dtg_replication {
  size_t struct_size;
  dtg_sync_mode mode;
  int32_t worker;       /* which replica this graph is, from 0; 0 is the chief. Of each worker another */
  int32_t total;        /* replicas; 0: 1 */
  int32_t to_aggregate; /* DTG_SYNC_REPLICAS: R, gradients per update; 0: total. Otherwise 0 */
  int32_t staleness;    /* DTG_SYNC_SSP: steps that a worker may be ahead of the slowest. Otherwise 0 */
  int32_t min_workers;  /* DTG_SYNC_ELASTIC: workers without whom no step is made; 0: 1. Otherwise 0 */
  int64_t elements;     /* DTG_SYNC_ELASTIC: elements of an epoch of data, which are dealt (dtg_dataset_deal), up to 4194304; 0: none are.
                           Otherwise 0. An update takes time in proportion to it. Since 0.1 */
} dtg_replication;
#define DTG_REPLICATION_INIT \
  { sizeof(dtg_replication), DTG_SYNC_ASYNC, 0, 0, 0, 0, 0, 0 }

/* One worker's share, as values of its graph; written by the library. Targets that this worker does not have are {0}. */
typedef struct dtg_replicated {
  size_t struct_size;
  dtg_value train;         /* target: one step; push, then wait for the token */
  dtg_value local_init;    /* target: once, when the variables have values */
  dtg_value chief_init;    /* target: the chief, once, before any worker's first step */
  dtg_value resume;        /* target: the chief, in place of chief_init, before updates go on */
  dtg_value update;        /* target: the chief, over and over */
  dtg_value global_step;   /* int64 scalar as it is now; fetch it in a run of its own */
  dtg_value local_step;    /* int64 scalar: the step whose variables the gradients of a run are computed from */
  dtg_value next_step;     /* int64 scalar, part of `train`: DTG_SYNC_ASYNC and DTG_SYNC_SSP the count right after its own update, so
                              that next_step - 1 - local_step is the staleness; otherwise the step of its token */
  dtg_value learning_rate; /* floating-point scalar */
  dtg_value gradient_norm; /* float32: of this worker's own gradients. Computed only if fetched */
  dtg_value leave;         /* target: DTG_SYNC_SSP and DTG_SYNC_ELASTIC, a worker that makes no more steps but stays connected */
  dtg_value clock;         /* int64 scalar, part of `train`: DTG_SYNC_SSP, the worker's clock: the steps that it has made, counted
                              from where it began. Otherwise {0} */
  dtg_value members;       /* bool[total], part of `update`: DTG_SYNC_ELASTIC, whose contributions made the step. Otherwise {0} */
} dtg_replicated;
/* clang-format off */
#define DTG_REPLICATED_INIT {sizeof(dtg_replicated), {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}}
/* clang-format on */

/* Adds one worker's share of training on `loss`: gradients with respect to every trainable variable so far, and what `mode`
 * does with them. Gradients are averaged over the replicas; clip_norm is applied to the mean, or to each step's own gradients
 * in DTG_SYNC_ASYNC and DTG_SYNC_SSP. `optimizer` may be NULL: SGD. State of the worker stands where its loss stands, everything that
 * belongs to a variable stands on the variable's device. What an optimizer keeps is added to the chief's model (DTG_SYNC_ASYNC,
 * DTG_SYNC_SSP: to all), so ask dtg_model_init afterwards. The learning rate must not need feeding unless `update` is run by hand. A loss
 * that is no finite number (unless optimizer->unchecked_loss says otherwise) fails `train` with INVALID_ARGUMENT, which names the worker
 * and the step, and reaches no variable. DTG_SYNC_STRICT: `train` fails so on all workers, as they wait for each other; each may then give
 * another batch, or run `local_init` first where several losses were no numbers at once. Otherwise only that worker's fails. Errors:
 * INVALID_ARGUMENT, FAILED_PRECONDITION (no trainable variable). Since 0.1. */
DTG_ERR dtg_nn_minimize_replicated(dtg_model *model, dtg_value loss, const dtg_optimizer *optimizer, const dtg_replication *replication,
                                   dtg_replicated *out) DTG_NOEXCEPT;

/* The same for gradients of one's own, as in dtg_nn_apply_gradients; the worker's state stands where the first of them
 * stands. Since 0.1. Semantics: tf.compat.v1.train.SyncReplicasOptimizer.apply_gradients. */
DTG_ERR dtg_nn_apply_replicated(dtg_model *model, const dtg_value *handles, const dtg_gradient *gradients, size_t num_gradients,
                                const dtg_optimizer *optimizer, const dtg_replication *replication, dtg_replicated *out) DTG_NOEXCEPT;

/* From now on `dataset` hands out what is dealt to this worker of an epoch that all workers have in common; see the head of this file.
 * `model` has elastic training that deals (dtg_replication.elements, the same number as dtg_dataset_cardinality of this data set),
 * `session` is connected and of the model's graph; both are kept. Epoch 0 of the deal is the one that the data set is to hand out next, so
 * all workers deal it as they have made it, after every transform: none may be added afterwards, a prefetch below reads what others get,
 * too, and the data set may then only be read and restarted. dtg_dataset_next asks in a run of `session`, and waits up to `timeout_ns` (0:
 * 10 minutes) for an element: then it fails with DEADLINE_EXCEEDED, which says who has the last ones, and may be called again. Where
 * nothing was trained with the element before, it hands that out again. A worker that begins while others train joins the epoch that is
 * now. dtg_dataset_restart wants elements of the next epoch, where an element was asked for since the last restart; an epoch that is over
 * by then ends at once. One thread at a time, as all of a data set. Errors: INVALID_ARGUMENT (another number of elements),
 * FAILED_PRECONDITION (the training deals none; elements have been taken). Since 0.1. Semantics: the elastic samplers of the field, which
 * forget with the process what was committed; here the ledger is part of the model. */
DTG_ERR dtg_dataset_deal(dtg_dataset *dataset, dtg_model *model, dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

/* Which element dtg_dataset_next handed out last: `*epoch` from 0 and `*element`, its number in that epoch, from 0. Where it has said that
 * the epoch is over, `*element` is -1 and `*epoch` the epoch that is now; before the first call both are -1. Either may be NULL.
 * Errors: FAILED_PRECONDITION (the data set is not dealt). Since 0.1. */
DTG_ERR dtg_dataset_dealt(const dtg_dataset *dataset, int64_t *epoch, int64_t *element) DTG_NOEXCEPT;

/* From here on layers and dtg_model_add_variable answer the variables that the model has, from the first, in their order,
 * until all have been asked for; then they make new ones again. Device scopes place the computation of the tower, variables
 * stay where they are. Asking for another name, type or shape is FAILED_PRECONDITION. Since 0.1. */
DTG_ERR dtg_model_next_tower(dtg_model *model) DTG_NOEXCEPT;

/* As dtg_nn_minimize over the mean of the losses of several towers. Gradients are added up in the order of `losses`, so that
 * the result is, bit for bit, that of as many workers under DTG_SYNC_STRICT. Since 0.1. */
DTG_ERR dtg_nn_minimize_towers(dtg_model *model, const dtg_value *losses, size_t num_losses, const dtg_optimizer *optimizer,
                               dtg_training *out) DTG_NOEXCEPT;

/* With whom gradients are averaged by dtg_nn_minimize_all_reduce. Every member says the same. */
typedef struct dtg_all_reduce {
  size_t struct_size;
  int32_t group_key;      /* dtg_group_options.key of the group that the server of the session has joined; 0: 1 */
  int32_t group_size;     /* members, at least 1. A run whose group has another number of them fails */
  int32_t first_instance; /* calls are told apart by numbers from here on; two trainings in one group need different ones. 0: 1 */
  int32_t reserved;
  int64_t pack_bytes; /* small gradients travel together, so many bytes at most; 0: 4 MiB */
  int64_t timeout_ns; /* of a call; 0: what the group has (dtg_group_options.default_timeout_ns) */
} dtg_all_reduce;
#define DTG_ALL_REDUCE_INIT \
  { sizeof(dtg_all_reduce), 0, 0, 0, 0, 0, 0 }

/* Training without parameter servers: every member of a group builds the same model with variables of its own, computes the gradients
 * of its share of the batch, and applies the mean over the members, which all have to the bit. Variables stay equal where they began so:
 * build with the same seed, or restore the same values. The result is, bit for bit, that of dtg_nn_minimize_towers over the same losses
 * in the order of the ranks. Gradients that are rows travel as rows. The group is found when the first step is planned: join it before
 * (dtg_group_join), and connect the session to the member's server. Each member runs `out->train` once per step; how the group's
 * epochs end, and how it goes on, is said in dtg/group.h. A member's step that fails or is cancelled before its gradients have left, a
 * loss that is no finite number for instance, ends the epoch with an error that names it, on all members, and no variable is changed by
 * that step. `optimizer` may be NULL: SGD; clip_norm is applied to the mean.
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (no trainable variable). Since 0.1. Semantics: tf.distribute.MultiWorkerMirroredStrategy.
 */
DTG_ERR dtg_nn_minimize_all_reduce(dtg_model *model, dtg_value loss, const dtg_optimizer *optimizer, const dtg_all_reduce *how,
                                   dtg_training *out) DTG_NOEXCEPT;

/* Waits up to `timeout_ns` (0: 10 minutes) until every variable that the model has so far has a
 * value in the session. Errors: INVALID_ARGUMENT, DEADLINE_EXCEEDED, which names those that have none, and those of a run. Since 0.1. */
DTG_ERR dtg_model_wait_ready(dtg_model *model, dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

/* Brings this worker to where it can go on, after `train` or `update` failed because a task was lost (UNAVAILABLE, ABORTED) or when
 * this process is a later life of a worker: waits up to `timeout_ns` (0: 10 minutes) until every variable has a value, completes on
 * every task the update that one of them has applied (the chief, DTG_SYNC_STRICT and DTG_SYNC_ELASTIC), runs `resume` (the chief, with no
 * `update` under way; updates that dtg_session_run_repeatedly has under way are led through the same) and `local_init`. Losses in between
 * are waited for. The next `train` is the step that `global_step` says: where that is the step that failed, give it the same batch again.
 * In DTG_SYNC_STRICT the variables are then, to the bit, what they are without a loss, if the tasks that hold them kept them
 * (dtg_server_options.durability) or were not lost.
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (no replicated training), DEADLINE_EXCEEDED, UNAVAILABLE (still, at the end of the
 * time), DATA_LOSS (a task is further behind than what it keeps can mend). Since 0.1. */
DTG_ERR dtg_model_recover(dtg_model *model, dtg_session *session, int64_t timeout_ns) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_REPLICAS_H */
