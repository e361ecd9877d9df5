//! Optimizers, schedules, and the step that trains a model. They add to its graph, so they take `&mut`.

use std::ptr::null;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, check};
use crate::graph::{Gradient, Value};
use crate::model::Model;

/// Which formula an [`Optimizer`] uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OptimizerKind {
    /// v -= rate * g
    #[default]
    Sgd,
    /// a = momentum * a + g; v -= rate * a, with nesterov v -= rate * (g + momentum * a)
    Momentum,
    /// Moving means m of g and s of g²; v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(s) + epsilon)
    Adam,
    /// a += g²; v -= rate * g / sqrt(a)
    Adagrad,
    /// s = decay * s + (1 - decay) * g²; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a
    RmsProp,
}

/// How gradients become updates; `Optimizer::sgd(0.1)` or a struct with `..Default::default()`. Zero takes the default of a number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Optimizer {
    /// The formula.
    pub kind: OptimizerKind,
    /// Of [`OptimizerKind::Momentum`].
    pub nesterov: bool,
    /// A floating-point scalar, such as a placeholder or a schedule; None: `rate`.
    pub learning_rate: Option<Value>,
    /// Default: 0.01.
    pub rate: f64,
    /// Of [`OptimizerKind::Momentum`] and [`OptimizerKind::RmsProp`].
    pub momentum: f64,
    /// Default: 0.9.
    pub beta1: f64,
    /// Default: 0.999.
    pub beta2: f64,
    /// Default: 1e-8.
    pub epsilon: f64,
    /// Default: 0.9.
    pub decay: f64,
    /// Of [`OptimizerKind::Adagrad`]; default: 0.1.
    pub initial_accumulator: f64,
    /// Gradients whose norm over all variables is greater are scaled down to it; 0: never.
    pub clip_norm: f64,
}

impl Optimizer {
    /// Gradient descent.
    pub fn sgd(rate: f64) -> Self {
        Self { rate, ..Self::default() }
    }

    /// Gradient descent with momentum.
    pub fn momentum(rate: f64, momentum: f64) -> Self {
        Self { kind: OptimizerKind::Momentum, rate, momentum, ..Self::default() }
    }

    /// Adam.
    pub fn adam(rate: f64) -> Self {
        Self { kind: OptimizerKind::Adam, rate, ..Self::default() }
    }

    pub(crate) fn raw(&self) -> sys::dtg_optimizer {
        sys::dtg_optimizer {
            kind: match self.kind {
                OptimizerKind::Sgd => sys::DTG_OPT_SGD,
                OptimizerKind::Momentum => sys::DTG_OPT_MOMENTUM,
                OptimizerKind::Adam => sys::DTG_OPT_ADAM,
                OptimizerKind::Adagrad => sys::DTG_OPT_ADAGRAD,
                OptimizerKind::RmsProp => sys::DTG_OPT_RMSPROP,
            },
            nesterov: self.nesterov.into(),
            learning_rate: self.learning_rate.map_or(Value::NONE, |value| value.0),
            rate: self.rate,
            momentum: self.momentum,
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            decay: self.decay,
            initial_accumulator: self.initial_accumulator,
            clip_norm: self.clip_norm,
            ..sys::dtg_optimizer::INIT
        }
    }
}

/// What [`Model::minimize`] adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Training {
    /// The target that makes one step: all updates, then global_step + 1.
    pub train: Value,
    /// int64 scalar. Within a step it is read before or after the count, so fetch it by itself.
    pub global_step: Value,
    /// Floating-point scalar.
    pub learning_rate: Value,
    /// float32: the norm over all variables, before clipping. Computed only if fetched or clipped by.
    pub gradient_norm: Value,
}

impl Training {
    fn of(raw: &sys::dtg_training) -> Self {
        Self {
            train: Value(raw.train),
            global_step: Value(raw.global_step),
            learning_rate: Value(raw.learning_rate),
            gradient_norm: Value(raw.gradient_norm),
        }
    }
}

/// Handles and gradients as C has them.
pub(crate) fn split(gradients: &[(Value, Gradient)]) -> (Vec<Value>, Vec<sys::dtg_gradient>) {
    gradients.iter().map(|(handle, gradient)| (*handle, gradient.raw())).unzip()
}

impl Model {
    /// Adds the gradients of `loss` with respect to every trainable variable so far, and the updates of the optimizer. The model gets
    /// new variables, so ask [`Model::init`] afterwards.
    pub fn minimize(&mut self, loss: Value, optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open model, borrowed mutably; structs of these sizes.
        unsafe { check(sys::dtg_nn_minimize(self.raw()?, loss.0, &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// As [`Model::minimize`] over the mean of the losses of several towers ([`Model::next_tower`]). Gradients are added up in the
    /// order of `losses`.
    pub fn minimize_towers(&mut self, losses: &[Value], optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open model, borrowed mutably; structs of these sizes, an array with its length.
        unsafe { check(sys::dtg_nn_minimize_towers(self.raw()?, Value::raw(losses), losses.len(), &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// The second half of [`Model::minimize`], for gradients of one's own: pairs of a variable's handle and its gradient.
    /// `clip_norm` is not applied. Gives the target that makes one step.
    pub fn apply_gradients(&mut self, optimizer: &Optimizer, gradients: &[(Value, Gradient)]) -> Result<Value> {
        let (handles, gradients) = split(gradients);
        let raw = optimizer.raw();
        // SAFETY: node_of gives an open model, borrowed mutably; arrays of one length.
        self.node_of(|model, out| unsafe {
            sys::dtg_nn_apply_gradients(model, &raw, Value::raw(&handles), gradients.as_ptr(), gradients.len(), out)
        })
    }

    /// `rate * factor^(step / every)`, the exponent rounded down with `staircase`; step an int64 scalar.
    pub fn exponential_decay(&mut self, step: Value, rate: f64, every: f64, factor: f64, staircase: bool) -> Result<Value> {
        // SAFETY: node_of gives an open model, borrowed mutably.
        self.node_of(|model, out| unsafe {
            sys::dtg_nn_exponential_decay(model, step.0, rate, every, factor, staircase.into(), out)
        })
    }

    /// From 0 up to `rate` over the first `warmup` steps, then down to `rate * floor` along half a cosine until step `steps`, then
    /// constant.
    pub fn cosine_decay(&mut self, step: Value, rate: f64, steps: f64, floor: f64, warmup: f64) -> Result<Value> {
        // SAFETY: node_of gives an open model, borrowed mutably.
        self.node_of(|model, out| unsafe { sys::dtg_nn_cosine_decay(model, step.0, rate, steps, floor, warmup, out) })
    }
}

/// The sizes of the successive batches of a worker, so that all workers together use `global_batch` elements a step also where that
/// does not divide; over and over again, `replicas_per_worker` a step. Errors: `InvalidArgument`.
pub fn batch_sizes(global_batch: i64, num_workers: i64, replicas_per_worker: i64, worker: i64) -> Result<Vec<i64>> {
    crate::handle::agreed()?;
    let mut sizes = Vec::new();
    loop {
        let mut count = 0;
        let room = if sizes.is_empty() { null::<i64>().cast_mut() } else { sizes.as_mut_ptr() };
        // SAFETY: room for as many as `sizes` has.
        unsafe {
            check(sys::dtg_batch_sizes(global_batch, num_workers, replicas_per_worker, worker, room, sizes.len(), &mut count))
        }?;
        if count <= sizes.len() {
            sizes.truncate(count);
            return Ok(sizes);
        }
        if i32::try_from(count).is_err() {
            return Err(Error::new(ErrorKind::ResourceExhausted, format!("batch_sizes: {count} sizes are too many to list")));
        }
        sizes.resize(count, 0);
    }
}
