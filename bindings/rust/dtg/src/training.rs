//! Optimizers, schedules, and the step that trains a model. They add to its graph, one thread at a time.

use std::ptr::null;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, built, check, placed};
use crate::graph::{Gradient, Value};
use crate::handle::given;
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
    /// v -= rate * weight_decay * v, then Adam
    AdamW,
    /// Steps as long as those before, by the squares of both.
    Adadelta,
    /// Adam with the greatest gradient in place of the mean square.
    Adamax,
    /// Adam with Nesterov's momentum.
    Nadam,
    /// Follow the regularized leader, with `l1`, `l2`, `l2_shrinkage`.
    Ftrl,
    /// v -= rate * sign(beta1 * m + (1 - beta1) * g)
    Lion,
    /// Adam's step times |v| / |step|.
    Lamb,
    /// Momentum with a rate by |v| / |g|.
    Lars,
    /// Squares of gradients by rows and columns only.
    Adafactor,
}

/// How gradients become updates; `Optimizer::sgd(0.1)` or a struct with `..Default::default()`. Zero takes the default of a number.
/// dtg/optimizers.h has all formulas, and the names of what each kind keeps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimizer {
    /// The formula.
    pub kind: OptimizerKind,
    /// Of [`OptimizerKind::Momentum`].
    pub nesterov: bool,
    /// A floating-point scalar, such as a placeholder or a schedule, in place of `rate`, which says nothing then; None: `rate`.
    pub learning_rate: Option<Value>,
    /// Default: 0.01.
    pub rate: f64,
    /// Of [`OptimizerKind::Momentum`], [`OptimizerKind::RmsProp`] and [`OptimizerKind::Lars`].
    pub momentum: f64,
    /// Default: 0.9.
    pub beta1: f64,
    /// Default: 0.999; of Lion 0.99.
    pub beta2: f64,
    /// Default: 1e-8; of kinds from Adadelta on 1e-7, of Adafactor 1e-30.
    pub epsilon: f64,
    /// Default: 0.9; of Adadelta 0.95, of Adafactor -0.8 (below 0).
    pub decay: f64,
    /// Of [`OptimizerKind::Adagrad`] and [`OptimizerKind::Ftrl`]; default: 0.1.
    pub initial_accumulator: f64,
    /// Gradients whose norm over all variables is greater are scaled down to it; 0: never.
    pub clip_norm: f64,
    /// A step whose loss is no finite number fails with `InvalidArgument`, names the step, the worker or tower and the first value that is
    /// not finite, and changes nothing, unless this is set.
    pub unchecked_loss: bool,
    /// Adam and AdamW, for gradients that are rows: only the rows that were used move and decay.
    pub lazy: bool,
    /// Share of each variable, times the rate, that goes each step; default: none, of [`OptimizerKind::AdamW`] 0.004.
    pub weight_decay: f64,
    /// Adam and AdamW: the largest mean square so far divides.
    pub amsgrad: bool,
    /// RmsProp: the variance of the gradient divides.
    pub centered: bool,
    /// Of [`OptimizerKind::Ftrl`].
    pub l1: f64,
    /// Of [`OptimizerKind::Ftrl`].
    pub l2: f64,
    /// Of [`OptimizerKind::Ftrl`].
    pub l2_shrinkage: f64,
    /// Of [`OptimizerKind::Ftrl`].
    pub ftrl_beta: f64,
    /// Of [`OptimizerKind::Ftrl`], below 0; default: -0.5.
    pub rate_power: f64,
    /// Of [`OptimizerKind::Lars`]; default: 0.001.
    pub trust: f64,
    /// Of [`OptimizerKind::Adafactor`]; default: 0.001.
    pub epsilon2: f64,
    /// Of [`OptimizerKind::Adafactor`]; default: 1.
    pub clip_threshold: f64,
    /// Each element of a gradient is cut to it, up and down; 0: never.
    pub clip_value: f64,
    /// Each gradient whose norm is greater is scaled down to it; 0: never.
    pub clip_each_norm: f64,
    /// Words with commas between them: variables whose names contain one are exempt from weight decay. Each is of
    /// some variable.
    pub undecayed_names: String,
    /// Handles of variables that are exempt from weight decay too.
    pub undecayed: Vec<Value>,
    /// Handles of the variables to train; empty: every trainable one.
    pub variables: Vec<Value>,
    /// Keeps a moving mean of each variable v, "v/ExponentialMovingAverage".
    pub ema: bool,
    /// Of `ema`; default: 0.99.
    pub ema_momentum: f64,
    /// Steps after which v becomes its mean; 0: never.
    pub ema_overwrite_every: i64,
    /// 2 or more: each so manyth step applies the mean of the gradients since.
    pub accumulation_steps: i64,
    /// 1 or more: steps after which v goes back to its slow copy "v/Slow", which follows it.
    pub lookahead_steps: i64,
    /// Of `lookahead_steps`; default: 0.5.
    pub lookahead_share: f64,
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

    /// Adam with decoupled weight decay.
    pub fn adam_w(rate: f64, weight_decay: f64) -> Self {
        Self { kind: OptimizerKind::AdamW, rate, weight_decay, ..Self::default() }
    }

    /// Its pointers are into `self`.
    pub(crate) fn raw(&self) -> sys::dtg_optimizer {
        sys::dtg_optimizer {
            kind: match self.kind {
                OptimizerKind::Sgd => sys::DTG_OPT_SGD,
                OptimizerKind::Momentum => sys::DTG_OPT_MOMENTUM,
                OptimizerKind::Adam => sys::DTG_OPT_ADAM,
                OptimizerKind::Adagrad => sys::DTG_OPT_ADAGRAD,
                OptimizerKind::RmsProp => sys::DTG_OPT_RMSPROP,
                OptimizerKind::AdamW => sys::DTG_OPT_ADAMW,
                OptimizerKind::Adadelta => sys::DTG_OPT_ADADELTA,
                OptimizerKind::Adamax => sys::DTG_OPT_ADAMAX,
                OptimizerKind::Nadam => sys::DTG_OPT_NADAM,
                OptimizerKind::Ftrl => sys::DTG_OPT_FTRL,
                OptimizerKind::Lion => sys::DTG_OPT_LION,
                OptimizerKind::Lamb => sys::DTG_OPT_LAMB,
                OptimizerKind::Lars => sys::DTG_OPT_LARS,
                OptimizerKind::Adafactor => sys::DTG_OPT_ADAFACTOR,
            },
            nesterov: self.nesterov.into(),
            learning_rate: Value::or_none(self.learning_rate),
            // A constructor asks for a rate; a schedule takes its place.
            rate: if self.learning_rate.is_some() { 0.0 } else { self.rate },
            momentum: self.momentum,
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            decay: self.decay,
            initial_accumulator: self.initial_accumulator,
            clip_norm: self.clip_norm,
            unchecked_loss: self.unchecked_loss.into(),
            lazy: self.lazy.into(),
            weight_decay: self.weight_decay,
            amsgrad: self.amsgrad.into(),
            centered: self.centered.into(),
            l1: self.l1,
            l2: self.l2,
            l2_shrinkage: self.l2_shrinkage,
            ftrl_beta: self.ftrl_beta,
            rate_power: self.rate_power,
            trust: self.trust,
            epsilon2: self.epsilon2,
            clip_threshold: self.clip_threshold,
            clip_value: self.clip_value,
            clip_each_norm: self.clip_each_norm,
            undecayed_names: given(self.undecayed_names.as_bytes()).0,
            undecayed_names_len: self.undecayed_names.len(),
            undecayed: Value::raw(&self.undecayed),
            num_undecayed: self.undecayed.len(),
            variables: Value::raw(&self.variables),
            num_variables: self.variables.len(),
            use_ema: self.ema.into(),
            ema_momentum: self.ema_momentum,
            ema_overwrite_every: self.ema_overwrite_every,
            accumulation_steps: self.accumulation_steps,
            lookahead_steps: self.lookahead_steps,
            lookahead_share: self.lookahead_share,
            ..sys::dtg_optimizer::INIT
        }
    }
}

/// How a learning rate follows n, the count of steps from 0: the formulas of tf.keras.optimizers.schedules.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Schedule {
    /// `rate * decay_rate^(n / steps)`; with `staircase` the exponent is rounded down.
    ExponentialDecay {
        /// At first.
        rate: f64,
        /// Until its end or its factor, without the warm-up.
        steps: f64,
        /// What it goes by.
        decay_rate: f64,
        /// Whether n / steps is rounded down.
        staircase: bool,
    },
    /// `rate / (1 + decay_rate * n / steps)`; with `staircase` n / steps is rounded down.
    InverseTimeDecay {
        /// At first.
        rate: f64,
        /// Until its end or its factor, without the warm-up.
        steps: f64,
        /// What it goes by.
        decay_rate: f64,
        /// Whether n / steps is rounded down.
        staircase: bool,
    },
    /// `(rate - end_rate) * (1 - n / steps)^power + end_rate`; with `cycle` again and again.
    PolynomialDecay {
        /// At first.
        rate: f64,
        /// Until its end or its factor, without the warm-up.
        steps: f64,
        /// The rate at the end.
        end_rate: f64,
        /// 0: 1.
        power: f64,
        /// Whether it begins again and again.
        cycle: bool,
    },
    /// `values[i]` while n is up to `boundaries[i]`, the last one after that.
    PiecewiseConstant {
        /// Rising.
        boundaries: Vec<i64>,
        /// One more than boundaries.
        values: Vec<f64>,
    },
    /// Down to `alpha` of the rate along half a cosine over `steps`; with `warmup` (the target and its steps) up there first.
    CosineDecay {
        /// At first.
        rate: f64,
        /// Until its end or its factor, without the warm-up.
        steps: f64,
        /// The share of the rate that remains.
        alpha: f64,
        /// The target of the warm-up and its steps.
        warmup: Option<(f64, f64)>,
    },
    /// The same again and again, each `t_mul` times as long, from `m_mul` times the rate.
    CosineDecayRestarts {
        /// At first.
        rate: f64,
        /// Until its end or its factor, without the warm-up.
        steps: f64,
        /// 0: 2.
        t_mul: f64,
        /// 0: 1.
        m_mul: f64,
        /// The share of the rate that remains.
        alpha: f64,
    },
}

impl Schedule {
    /// Its pointers are into `self`.
    fn raw(&self) -> Result<sys::dtg_schedule> {
        let mut raw = sys::dtg_schedule::INIT;
        match *self {
            Self::ExponentialDecay { rate, steps, decay_rate, staircase } => {
                (raw.kind, raw.rate, raw.steps, raw.decay_rate) = (sys::DTG_SCHEDULE_EXPONENTIAL_DECAY, rate, steps, decay_rate);
                raw.staircase = staircase.into();
            }
            Self::InverseTimeDecay { rate, steps, decay_rate, staircase } => {
                (raw.kind, raw.rate, raw.steps, raw.decay_rate) = (sys::DTG_SCHEDULE_INVERSE_TIME_DECAY, rate, steps, decay_rate);
                raw.staircase = staircase.into();
            }
            Self::PolynomialDecay { rate, steps, end_rate, power, cycle } => {
                (raw.kind, raw.rate, raw.steps, raw.end_rate) = (sys::DTG_SCHEDULE_POLYNOMIAL_DECAY, rate, steps, end_rate);
                (raw.power, raw.cycle) = (power, cycle.into());
            }
            Self::PiecewiseConstant { ref boundaries, ref values } => {
                if values.len() != boundaries.len() + 1 {
                    let text = format!("schedule: {} boundaries need one value more, not {}", boundaries.len(), values.len());
                    return Err(Error::found(ErrorKind::InvalidArgument, text));
                }
                raw.kind = sys::DTG_SCHEDULE_PIECEWISE_CONSTANT;
                (raw.boundaries, raw.num_boundaries, raw.values) = (boundaries.as_ptr(), boundaries.len(), values.as_ptr());
            }
            Self::CosineDecay { rate, steps, alpha, warmup } => {
                (raw.kind, raw.rate, raw.steps, raw.alpha) = (sys::DTG_SCHEDULE_COSINE_DECAY, rate, steps, alpha);
                raw.warms_up = warmup.is_some().into();
                (raw.warmup_target, raw.warmup_steps) = warmup.unwrap_or_default();
            }
            Self::CosineDecayRestarts { rate, steps, t_mul, m_mul, alpha } => {
                (raw.kind, raw.rate, raw.steps, raw.alpha) = (sys::DTG_SCHEDULE_COSINE_DECAY_RESTARTS, rate, steps, alpha);
                (raw.t_mul, raw.m_mul) = (t_mul, m_mul);
            }
        }
        Ok(raw)
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
    pub(crate) fn of(raw: &sys::dtg_training) -> Self {
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
    /// Adds the gradients of `loss`, one number, with respect to every trainable variable so far, and the updates of the optimizer. The
    /// model gets new variables, so ask [`Model::init`] afterwards. Errors: `InvalidArgument` (a loss of many numbers, which takes a mean
    /// first; or one that depends on no variable), `FailedPrecondition` (no trainable variable), `Unimplemented` (an op without gradient).
    #[track_caller]
    pub fn minimize(&self, loss: Value, optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open model; structs of these sizes.
        unsafe { built(sys::dtg_nn_minimize(self.raw(), loss.0, &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// As [`Model::minimize`] over the mean of the losses of several towers ([`Model::next_tower`]). Gradients are added up in the
    /// order of `losses`.
    #[track_caller]
    pub fn minimize_towers(&self, losses: &[Value], optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open model; structs of these sizes, an array with its length.
        unsafe { built(sys::dtg_nn_minimize_towers(self.raw(), Value::raw(losses), losses.len(), &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// The second half of [`Model::minimize`], for gradients of one's own: pairs of a variable's handle and its gradient.
    /// They come from [`Graph::add_gradients`](crate::Graph::add_gradients) of the loss with respect to what is read of the variables
    /// ([`Variable::read`](crate::Variable)), changed as one likes by ops of the graph; a variable that the loss does not depend on has
    /// [`Gradient::None`] there and is left out here. `clip_norm` is not applied. Gives the target that makes one step. Errors: `InvalidArgument` (no gradients, a handle that is no
    /// variable's, a gradient of another type or shape).
    ///
    /// ```
    /// # use dtg::{Gradient, Graph, Model, Optimizer, VariableSpec, ops};
    /// # let model = Model::new(Graph::new()?, 1)?;
    /// # let w = model.add_variable(&VariableSpec::new("w"))?;
    /// # let loss = ops::square(&model, w.read).build()?;
    /// let slopes = model.add_gradients(&[loss], &[w.read], None)?;
    /// let halved = ops::mul(&model, model.densify(&slopes[0])?, model.scalar(0.5f32)?).build()?;
    /// let step = model.apply_gradients(&Optimizer::sgd(0.1), &[(w.handle, Gradient::Dense(halved))])?;
    /// # let _ = step;
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn apply_gradients(&self, optimizer: &Optimizer, gradients: &[(Value, Gradient)]) -> Result<Value> {
        let (handles, gradients) = split(gradients);
        let raw = optimizer.raw();
        // SAFETY: node_of gives an open model; arrays of one length.
        self.node_of(|model, out| unsafe {
            sys::dtg_nn_apply_gradients(model, &raw, Value::raw(&handles), gradients.as_ptr(), gradients.len(), out)
        })
    }

    /// A learning rate that follows `step`, an integer scalar. f32 scalar.
    #[track_caller]
    pub fn schedule(&self, step: Value, schedule: &Schedule) -> Result<Value> {
        let raw = placed(schedule.raw())?;
        // SAFETY: node_of gives an open model; the struct points into `schedule`.
        self.node_of(|model, out| unsafe { sys::dtg_nn_schedule(model, step.0, &raw, out) })
    }

    /// `rate * factor^(step / every)`, the exponent rounded down with `staircase`; step an int64 scalar.
    #[track_caller]
    pub fn exponential_decay(&self, step: Value, rate: f64, every: f64, factor: f64, staircase: bool) -> Result<Value> {
        // SAFETY: node_of gives an open model.
        self.node_of(|model, out| unsafe {
            sys::dtg_nn_exponential_decay(model, step.0, rate, every, factor, staircase.into(), out)
        })
    }

    /// From 0 up to `rate` over the first `warmup` steps, then down to `rate * floor` along half a cosine until step `steps`, then
    /// constant.
    #[track_caller]
    pub fn cosine_decay(&self, step: Value, rate: f64, steps: f64, floor: f64, warmup: f64) -> Result<Value> {
        // SAFETY: node_of gives an open model.
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
            return Err(Error::found(ErrorKind::ResourceExhausted, format!("batch_sizes: {count} sizes are too many to list")));
        }
        sizes.resize(count, 0);
    }
}
