// Replicas: between-graph replication. Every worker builds its own graph of the same model, variables live on
// parameter servers, and this file adds what one worker's step and the chief's update consist of.
//
// async       A step reads, computes and applies at once; nobody waits.
// strict      One contribution per worker and step. Worker w leaves its gradients in accumulators of its own, stamped
//             with the step whose variables it read; the update takes one from each, on every device that holds
//             variables, and only when all are there adds them in the order of the workers, divides, applies, counts
//             the step and puts a token into each worker's own queue. An accumulator drops a contribution whose stamp is
//             behind it, and it moves on when its contribution is taken: what a worker computed from older variables, or
//             sends once more after that, is never added. (Twice before that, the last one counts.) The order of arrival
//             decides nothing, so equal runs give equal bits, and the bits of minimize_towers over the same shards.
// replicas    TensorFlow's SyncReplicasOptimizer: shared accumulators, the mean of all that is there once R arrived,
//             anonymous tokens, gradients of an older step dropped.
// ssp         Stale synchronous parallel: as async, but no worker is more than `staleness` steps ahead of the slowest that is there. Each
//             has a clock, the steps that it has made, in a variable beside the global step that counts in the step's own commit. A step
//             applies its gradients, counts, and ends when the worker may begin the next one: when every other clock is at most
//             `staleness` behind. Its reads are then of values in which all updates of clocks below that are. A step whose wait was cut
//             short is made up for before the next one is applied. Workers that are gone for a second (or silent for T_dead and that
//             second) are not waited for; one that comes, or comes back, begins where the slowest is (exec/step_clocks.h).
// elastic     As strict, but a step is made with who is there: of every worker that has contributed to a step since it came, and is
// connected,
//             the update waits for the contribution, and of nobody else. When it has them, and `min_workers` at least, it decides who
//             contributes (exec/step_members.h), takes just theirs from the accumulators of all tasks, adds them in the order of the
//             workers and divides by how many they are: bits are those of a replay with the same members in each step. A worker leaves its
//             gradients first and arrives behind that, at the task of the global step; it ends its step when that is made, with or
//             without it. What it contributed too late is dropped. A worker that is gone for a second (or silent for T_dead and that
//             second) is not waited for any more.
//             Where the elements of the workers' data are dealt, a worker asks for one before each step, and the update enters those that
//             it is made of into a ledger, in its own commit (exec/deal.h): so each is in one update of its epoch.
//
// Targets and their order: the chief gives the variables their values, runs chief_init once, then update again and
// again; each worker waits for the variables, runs local_init once, then train again and again. A worker that restarts
// runs local_init, nothing else. After an update that failed, or when the chief restarted, the chief runs `resume`
// before it goes on with updates: what was taken and not applied is then asked for once more. What was applied on one task and not on
// another is completed before that (strategy/staging.h, session/recover.h). What of that sessions do by themselves is noted beside train
// and update (strategy/remedy.h). Functions over a model; the thread that builds.
#pragma once

#include "strategy/staging.h"

namespace dtg {

enum class SyncMode : int32_t { async, strict, replicas, ssp, elastic };

struct Replication {
  SyncMode mode = SyncMode::async;
  int32_t worker = 0;        // which replica this graph is; 0 is the chief
  int32_t total = 1;         // replicas
  int32_t to_aggregate = 0;  // SyncMode::replicas: gradients per update; 0: total
  int32_t staleness = 0;     // SyncMode::ssp: steps that a worker may be ahead of the slowest
  int32_t min_workers = 0;   // SyncMode::elastic: without whom no step is made; 0: 1
  int64_t elements = 0;      // SyncMode::elastic: of an epoch of data, which are dealt to the workers; 0: none are
};

struct Replicated {
  NodeId train = kNoNode;       // a worker's step
  NodeId local_init = kNoNode;  // every worker, once, when the variables have values
  NodeId chief_init = kNoNode;  // the chief, once, before the first update; none where there is no update
  NodeId resume = kNoNode;      // the chief, instead of chief_init, when updates go on after a failure
  NodeId update = kNoNode;      // the chief, over and over; none for others and for async and ssp
  NodeId leave = kNoNode;       // ssp and elastic: a worker that makes no more steps, so that nobody waits for it
  Value global_step;            // int64, as it is now: fetch it in a run of its own
  // int64: the step whose variables the gradients of this run are computed from, and what it knows at its end: async and ssp,
  // the count right after its own update, so that next_step - 1 - local_step is its staleness; otherwise its token.
  Value local_step, next_step;
  Value members;                  // elastic, the chief: bool by worker, part of `update`: whose contributions made the step
  NodeId deal = kNoNode;          // elastic, where elements are dealt: before a step, waits for the one that it is made of
  int64_t elements = 0;           // that are dealt
  Value epoch_to_deal;            // int64, fed to that: of which epoch; -1: whichever is now
  Value dealt;                    // int64[2], part of `deal`: epoch and number; the number is -1 where the epoch that was asked for is over
  Value clock;                    // ssp: int64, the worker's own at the end of the step
  Value learning_rate;            // float scalar
  Value gradient_norm;            // float32, of this worker's own gradients; costs nothing unless fetched
  std::vector<UpdateUnit> units;  // the chief, strict, variables on several tasks: what an update consists of
  NodeId begin_units = kNoNode;   // what chief_init does for them
};

// One worker's share of a model, from its loss. State of the worker stands where its loss stands.
Result<Replicated> minimize_replicated(Model& model, Value loss, const Optimizer& optimizer, const Replication& replication);
// The same for gradients of one's own; the worker's state stands where the first of them stands.
Result<Replicated> apply_replicated(Model& model, std::span<const VariableGradient> gradients, const Optimizer& optimizer,
                                    const Replication& replication);

// One bool per variable so far: whether it has a value.
Result<std::vector<Value>> ready_flags(Model& model);

}  // namespace dtg
