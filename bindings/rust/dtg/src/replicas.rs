//! Training one model by many workers, each a program of its own that builds the same model with its variables on parameter servers.
//! They add to a graph, one thread at a time.

use std::time::Duration;

use dtg_sys as sys;

use crate::dataset::Dataset;
use crate::error::{Result, built, check};
use crate::graph::{Gradient, Value};
use crate::handle::or_default;
use crate::model::Model;
use crate::session::Session;
use crate::training::{Optimizer, Training, split};

/// What a worker's share of the training is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SyncMode {
    /// A step applies its gradients at once and waits for nobody.
    #[default]
    Async,
    /// One contribution per worker and step, added up in the order of the workers: equal runs give equal bits, whoever is first.
    Strict,
    /// TensorFlow's SyncReplicasOptimizer: the mean of all gradients that are there once enough arrived.
    Replicas,
    /// Stale synchronous parallel: as `Async`, but nobody is more than `staleness` steps ahead of the slowest that is there.
    Ssp,
    /// As `Strict`, but with whoever is there: workers may come and go, `min_workers` at least.
    Elastic,
}

/// Which of the workers this graph is; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Replication {
    /// How the workers work together.
    pub mode: SyncMode,
    /// Which replica this graph is, from 0; 0 is the chief.
    pub worker: i32,
    /// Replicas; 0: 1.
    pub total: i32,
    /// [`SyncMode::Replicas`]: gradients per update; 0: `total`. Otherwise 0.
    pub to_aggregate: i32,
    /// [`SyncMode::Ssp`]: steps that a worker may be ahead of the slowest. Otherwise 0.
    pub staleness: i32,
    /// [`SyncMode::Elastic`]: workers without whom no step is made; 0: 1. Otherwise 0.
    pub min_workers: i32,
    /// [`SyncMode::Elastic`]: elements of an epoch of data, which are dealt ([`Dataset::deal`]); 0: none are. Otherwise 0.
    pub elements: i64,
}

/// With whom [`Model::minimize_all_reduce`] averages gradients. Every member says the same; write `..Default::default()` for what is
/// not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AllReduce {
    /// The key of the group that the session's server has joined; 0: 1.
    pub group_key: i32,
    /// Members, at least 1.
    pub group_size: i32,
    /// Calls are told apart by numbers from here on: two trainings in one group need different ones. 0: 1.
    pub first_instance: i32,
    /// Small gradients travel together, so many bytes at most; 0: 4 MiB.
    pub pack_bytes: i64,
    /// Of a call; None: what the group has.
    pub timeout: Option<Duration>,
}

impl Model {
    /// Training without parameter servers: every member of a group builds the same model with variables of its own, computes the
    /// gradients of its share of the batch, and applies the mean over the members, which all have to the bit: that of
    /// [`Model::minimize_towers`] over the same losses in the order of the ranks. Join the group before the first step
    /// ([`crate::Group::join`]), and connect the session to the member's server.
    #[track_caller]
    pub fn minimize_all_reduce(&self, loss: Value, optimizer: &Optimizer, how: &AllReduce) -> Result<Training> {
        let raw = sys::dtg_all_reduce {
            group_key: how.group_key,
            group_size: how.group_size,
            first_instance: how.first_instance,
            pack_bytes: how.pack_bytes,
            timeout_ns: or_default(how.timeout),
            ..sys::dtg_all_reduce::INIT
        };
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open model; structs of these sizes.
        unsafe { built(sys::dtg_nn_minimize_all_reduce(self.raw(), loss.0, &optimizer.raw(), &raw, &mut out)) }?;
        Ok(Training::of(&out))
    }
}

/// One worker's share. Targets that this worker does not have are None. The chief runs the target of [`Model::init`], then
/// `chief_init` once, then `update` over and over ([`crate::Session::run_repeatedly`]); every worker [`Model::wait_ready`], then
/// `local_init` once, then `train` every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Replicated {
    /// Target: one step; push, then wait for the token.
    pub train: Value,
    /// Target: once, when the variables have values.
    pub local_init: Option<Value>,
    /// Target: the chief, once, before any worker's first step.
    pub chief_init: Option<Value>,
    /// Target: the chief, in place of `chief_init`, before updates go on.
    pub resume: Option<Value>,
    /// Target: the chief, over and over.
    pub update: Option<Value>,
    /// int64 scalar as it is now; fetch it in a run of its own.
    pub global_step: Value,
    /// int64 scalar: the step whose variables the gradients of a run are computed from.
    pub local_step: Value,
    /// int64 scalar, part of `train`: with [`SyncMode::Async`] and [`SyncMode::Ssp`] the count right after its own update, otherwise the step of its token.
    pub next_step: Value,
    /// Floating-point scalar.
    pub learning_rate: Value,
    /// float32: of this worker's own gradients. Computed only if fetched.
    pub gradient_norm: Value,
    /// Target: [`SyncMode::Ssp`] and [`SyncMode::Elastic`], a worker that makes no more steps but stays connected.
    pub leave: Option<Value>,
    /// int64 scalar, part of `train`: [`SyncMode::Ssp`], the worker's clock.
    pub clock: Option<Value>,
    /// bool by worker, part of `update`: [`SyncMode::Elastic`], whose contributions made the step.
    pub members: Option<Value>,
}

impl Replication {
    pub(crate) fn raw(&self) -> sys::dtg_replication {
        sys::dtg_replication {
            mode: match self.mode {
                SyncMode::Async => sys::DTG_SYNC_ASYNC,
                SyncMode::Strict => sys::DTG_SYNC_STRICT,
                SyncMode::Replicas => sys::DTG_SYNC_REPLICAS,
                SyncMode::Ssp => sys::DTG_SYNC_SSP,
                SyncMode::Elastic => sys::DTG_SYNC_ELASTIC,
            },
            worker: self.worker,
            total: self.total,
            to_aggregate: self.to_aggregate,
            staleness: self.staleness,
            min_workers: self.min_workers,
            elements: self.elements,
            ..sys::dtg_replication::INIT
        }
    }
}

impl Replicated {
    pub(crate) fn of(raw: &sys::dtg_replicated) -> Self {
        Self {
            train: Value(raw.train),
            local_init: Value::some(raw.local_init),
            chief_init: Value::some(raw.chief_init),
            resume: Value::some(raw.resume),
            update: Value::some(raw.update),
            global_step: Value(raw.global_step),
            local_step: Value(raw.local_step),
            next_step: Value(raw.next_step),
            learning_rate: Value(raw.learning_rate),
            gradient_norm: Value(raw.gradient_norm),
            leave: Value::some(raw.leave),
            clock: Value::some(raw.clock),
            members: Value::some(raw.members),
        }
    }
}

impl Model {
    /// Adds one worker's share of training on `loss`: gradients with respect to every trainable variable so far, and what the mode does
    /// with them. Ask [`Model::init`] afterwards. Errors: `InvalidArgument`, `FailedPrecondition` (no trainable variable).
    #[track_caller]
    pub fn minimize_replicated(&self, loss: Value, optimizer: &Optimizer, replication: &Replication) -> Result<Replicated> {
        let mut out = sys::dtg_replicated::INIT;
        // SAFETY: an open model; structs of these sizes.
        unsafe { built(sys::dtg_nn_minimize_replicated(self.raw(), loss.0, &optimizer.raw(), &replication.raw(), &mut out)) }?;
        Ok(Replicated::of(&out))
    }

    /// The same for gradients of one's own: pairs of a variable's handle and its gradient.
    #[track_caller]
    pub fn apply_replicated(
        &self,
        gradients: &[(Value, Gradient)],
        optimizer: &Optimizer,
        replication: &Replication,
    ) -> Result<Replicated> {
        let (handles, gradients) = split(gradients);
        let mut out = sys::dtg_replicated::INIT;
        // SAFETY: an open model; structs of these sizes, arrays of one length.
        unsafe {
            let (handles, count) = (Value::raw(&handles), gradients.len());
            built(sys::dtg_nn_apply_replicated(
                self.raw(),
                handles,
                gradients.as_ptr(),
                count,
                &optimizer.raw(),
                &replication.raw(),
                &mut out,
            ))
        }?;
        Ok(Replicated::of(&out))
    }
}

impl Dataset {
    /// From now on hands out what is dealt to this worker of an epoch that all workers have in common ([`SyncMode::Elastic`]): each element
    /// (batch) is in exactly one update of each epoch, whoever comes, leaves or is killed. Every worker makes the same data set, with the
    /// same seeds and without a shard, says in [`Replication::elements`] how many elements it has ([`Dataset::cardinality`]), and calls this
    /// when it is connected and before it reads; then it runs `train` once with each element. [`Dataset::next_element`] waits near the end
    /// of an epoch while others have its last elements, for up to `timeout` (None: 10 minutes), and says None when the epoch is over for
    /// all; where nothing was trained with an element, it comes again. [`Dataset::restart`] is for the next epoch. Nothing else can be done
    /// with the data set from then on. Errors: `InvalidArgument` (another number of elements), `FailedPrecondition` (the training deals
    /// none; elements have been taken).
    pub fn deal(&mut self, model: &Model, session: &Session, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: an open data set, borrowed mutably, an open model and session.
        unsafe { check(sys::dtg_dataset_deal(self.raw(), model.raw(), session.raw(), or_default(timeout))) }
    }

    /// The element that was handed out last: its epoch and its number in that, from 0. Where the epoch is over the number is -1, and the
    /// epoch the one that is now; before the first element both are -1. Errors: `FailedPrecondition` (the data set is not dealt).
    pub fn dealt(&self) -> Result<(i64, i64)> {
        let (mut epoch, mut element) = (-1, -1);
        // SAFETY: an open data set, places for the answers.
        unsafe { check(sys::dtg_dataset_dealt(self.raw(), &mut epoch, &mut element)) }?;
        Ok((epoch, element))
    }
}
