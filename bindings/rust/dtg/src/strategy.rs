//! Strategies: one model trained on several devices, or by several workers, behind one interface. A strategy borrows its model, so the thread
//! that builds the model uses it; closures given to [`Strategy::run`] are called there, once per replica.

use std::fmt;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::time::Duration;

use dtg_sys as sys;

use crate::error::{Result, built, check, placed};
use crate::graph::Value;
use crate::group::{Group, Reduction};
use crate::handle::{Handle, Texts, c_string, or_default};
use crate::hooks::Hooks;
use crate::model::{Model, Variable};
use crate::replicas::{Replicated, Replication};
use crate::training::{Optimizer, Training};

/// What a strategy does with variables and gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StrategyKind {
    /// One replica, variables there.
    #[default]
    OneDevice,
    /// A replica per device, each with copies of the variables, which stay equal to the bit.
    Mirrored,
    /// A replica per device, one copy of each variable in between.
    CentralStorage,
    /// One replica in a process, variables on parameter servers; [`StrategyOptions::replication`] says how.
    ParameterServer,
    /// [`StrategyKind::Mirrored`] over the devices of all tasks of [`StrategyOptions::group`], each of which builds the same graph. Reduce,
    /// gather, a step and the target of [`Model::init`] are then collectives, which all of them run.
    MultiWorkerMirrored,
}

/// How sums of workers travel; the bits are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ReduceAlgorithm {
    /// By number of workers and bytes.
    #[default]
    Auto,
    /// Everybody sends everything to everybody.
    Direct,
    /// Every worker adds its share of the elements: the fewest bytes.
    Shared,
    /// Every worker talks to two others only.
    Ring,
}

/// The order in which a sum over replicas is made, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CrossDevice {
    /// In the order of the replicas, on the device of the variable's first copy.
    #[default]
    ReduceToOneDevice,
    /// Two halves of neighbours, each on its first device, then both; each worker's, then the workers'.
    Hierarchical,
}

/// A strategy to make; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, Default)]
pub struct StrategyOptions<'a> {
    /// What it is.
    pub kind: StrategyKind,
    /// How sums are made.
    pub cross_device: CrossDevice,
    /// Of the replicas: `"/device:EMU:0"`. [`StrategyKind::ParameterServer`] may leave it out.
    pub devices: &'a [&'a str],
    /// [`StrategyKind::CentralStorage`]: default: the device if there is one, else `/device:CPU:0`.
    pub variable_device: Option<&'a str>,
    /// [`StrategyKind::ParameterServer`]: this worker's place.
    pub replication: Option<&'a Replication>,
    /// [`StrategyKind::MultiWorkerMirrored`]: its workers, kept as long as the strategy. Devices are then those of this worker; none: one
    /// replica at its task.
    pub group: Option<&'a Group>,
    /// [`StrategyKind::MultiWorkerMirrored`]: how sums travel.
    pub algorithm: ReduceAlgorithm,
    /// [`StrategyKind::MultiWorkerMirrored`]: smaller gradients travel together, so many bytes at most. Default: 4 MiB.
    pub pack_bytes: Option<i64>,
    /// [`StrategyKind::MultiWorkerMirrored`]: of a collective. Default: the group's.
    pub timeout: Option<Duration>,
}

/// A strategy of one's own to make; write `..Default::default()` for what is not said. Its steps are [`Hooks`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CustomOptions<'a> {
    /// Of the replicas: `"/device:EMU:0"`.
    pub devices: &'a [&'a str],
    /// Where the one copy of each variable stands. Default: each replica has its own.
    pub variable_device: Option<&'a str>,
    /// Replicas of all processes; 0: those here.
    pub replicas_in_sync: i32,
    /// Each process builds a graph of its own.
    pub between_graph: bool,
    /// Another process gives the variables their first values.
    pub not_init: bool,
    /// Another process saves.
    pub not_checkpoint: bool,
    /// Another process writes what is plotted.
    pub not_summary: bool,
}

/// One value for each replica of one strategy.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct PerReplica(pub(crate) sys::dtg_per_replica);

/// How a value changes a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Assign {
    /// It takes its place.
    Set,
    /// It is added.
    Add,
    /// It is subtracted.
    Sub,
}

/// One model's strategy. What it adds stays in the model when it is dropped.
///
/// ```
/// use dtg::{Dense, DType, Graph, Model, Optimizer, Reduction, Strategy, StrategyKind, StrategyOptions};
///
/// let model = Model::new(Graph::new()?, 1)?;
/// let x = model.placeholder("x", DType::F32, Some(&[-1, 4]))?;
/// let options = StrategyOptions { kind: StrategyKind::Mirrored, devices: &["CPU:0", "CPU:1"], ..Default::default() };
/// let strategy = Strategy::new(&model, &options)?;
/// let training = strategy.scope(|| {
///     let shares = strategy.split(x)?;
///     let loss = strategy.run(&[shares], |_, inputs| {
///         let y = model.dense(inputs[0], &Dense { units: 4, ..Default::default() })?;
///         Ok([model.mean_squared_error(inputs[0], y)?])
///     })?;
///     strategy.minimize(loss[0], Reduction::Mean, &Optimizer::sgd(0.1))
/// })?;
/// assert_eq!(model.variable_count(), 3); // kernel, bias and the step: each copy of a variable is the same variable
/// # let _ = training;
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Strategy<'m> {
    handle: Handle<sys::dtg_strategy>,
    model: &'m Model,
    /// What C calls as long as the strategy is there: dropped behind the handle, where it stays whatever moves.
    _hooks: Option<Rc<Hooks<'m>>>,
}

/// The workers of a strategy, for [`TrainerOptions::workers`](crate::TrainerOptions::workers): they stay when the [`Strategy`] goes, so that a
/// trainer may have the model.
pub struct StrategyWorkers(Handle<sys::dtg_strategy>);

impl StrategyWorkers {
    pub(crate) fn raw(&self) -> *mut sys::dtg_strategy {
        self.0.raw()
    }
}

impl fmt::Debug for StrategyWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StrategyWorkers")
    }
}

impl<'m> Strategy<'m> {
    /// Its workers, which fit together. None in a forked child.
    pub fn workers(&self) -> Option<StrategyWorkers> {
        // SAFETY: an open strategy, to which this is one reference more.
        unsafe { Handle::adopt(sys::dtg_strategy_retain(self.handle.raw())) }.map(StrategyWorkers)
    }

    /// A strategy for a model. Errors: `InvalidArgument` (a device that is none, a device twice, a number that does not fit the kind).
    #[track_caller]
    pub fn new(model: &'m Model, options: &StrategyOptions<'_>) -> Result<Self> {
        let devices = placed(Texts::new(options.devices, "a device"))?;
        let variables = placed(options.variable_device.map(|device| c_string(device, "the device of variables")).transpose())?;
        let replication = options.replication.map(Replication::raw);
        let raw = sys::dtg_strategy_options {
            kind: match options.kind {
                StrategyKind::OneDevice => sys::DTG_STRATEGY_ONE_DEVICE,
                StrategyKind::Mirrored => sys::DTG_STRATEGY_MIRRORED,
                StrategyKind::CentralStorage => sys::DTG_STRATEGY_CENTRAL_STORAGE,
                StrategyKind::ParameterServer => sys::DTG_STRATEGY_PARAMETER_SERVER,
                StrategyKind::MultiWorkerMirrored => sys::DTG_STRATEGY_MULTI_WORKER_MIRRORED,
            },
            cross_device: match options.cross_device {
                CrossDevice::ReduceToOneDevice => sys::DTG_REDUCE_TO_ONE_DEVICE,
                CrossDevice::Hierarchical => sys::DTG_REDUCE_HIERARCHICAL,
            },
            devices: devices.as_ptr(),
            num_devices: devices.len(),
            variable_device: variables.as_ref().map_or(null(), |name| name.as_ptr()),
            replication: replication.as_ref().map_or(null(), |given| given),
            group: options.group.map_or(null_mut(), Group::raw),
            algorithm: match options.algorithm {
                ReduceAlgorithm::Auto => sys::DTG_ALGORITHM_AUTO,
                ReduceAlgorithm::Direct => sys::DTG_ALGORITHM_DIRECT,
                ReduceAlgorithm::Shared => sys::DTG_ALGORITHM_SHARED,
                ReduceAlgorithm::Ring => sys::DTG_ALGORITHM_RING,
            },
            pack_bytes: options.pack_bytes.unwrap_or(0),
            timeout_ns: or_default(options.timeout),
            ..sys::dtg_strategy_options::INIT
        };
        // SAFETY: an open model; what the options point to outlives the call.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_strategy_create(model.raw(), &raw, out)) })?;
        Ok(Self { handle, model, _hooks: None })
    }

    /// A strategy of one's own: whatever is not said by a hook is done as by [`StrategyKind::Mirrored`], or as by
    /// [`StrategyKind::CentralStorage`] where a device of variables is given. Errors: as of [`Strategy::new`].
    #[track_caller]
    pub fn custom(model: &'m Model, options: &CustomOptions<'_>, hooks: Hooks<'m>) -> Result<Self> {
        let devices = placed(Texts::new(options.devices, "a device"))?;
        let variables = placed(options.variable_device.map(|device| c_string(device, "the device of variables")).transpose())?;
        let hooks = Rc::new(hooks);
        let called = hooks.raw();
        let raw = sys::dtg_strategy_options {
            kind: sys::DTG_STRATEGY_CUSTOM,
            devices: devices.as_ptr(),
            num_devices: devices.len(),
            variable_device: variables.as_ref().map_or(null(), |name| name.as_ptr()),
            hooks: &called,
            user: Rc::as_ptr(&hooks).cast_mut().cast(),
            replicas_in_sync: options.replicas_in_sync,
            between_graph: options.between_graph.into(),
            not_init: options.not_init.into(),
            not_checkpoint: options.not_checkpoint.into(),
            not_summary: options.not_summary.into(),
            ..sys::dtg_strategy_options::INIT
        };
        // SAFETY: an open model; what the options point to outlives the call, and the hooks the strategy.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_strategy_create(model.raw(), &raw, out)) })?;
        Ok(Self { handle, model, _hooks: Some(hooks) })
    }

    fn raw(&self) -> *mut sys::dtg_strategy {
        self.handle.raw()
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    fn info(&self) -> Result<sys::dtg_strategy_info> {
        let mut out = sys::dtg_strategy_info::INIT;
        // SAFETY: an open strategy; a struct of this size.
        unsafe { check(sys::dtg_strategy_describe(self.raw(), &mut out)) }?;
        Ok(out)
    }

    /// How many replicas this process builds.
    pub fn replicas(&self) -> Result<usize> {
        self.info().map(|info| info.num_replicas as usize)
    }

    /// How many replicas make one update together: to divide a global batch, or a loss, by.
    pub fn replicas_in_sync(&self) -> Result<usize> {
        self.info().map(|info| info.num_replicas_in_sync as usize)
    }

    /// Builds in the scope: variables that are made inside, by whatever layer, are the strategy's. Errors: `FailedPrecondition` (the scope
    /// of another strategy is open on the model).
    #[track_caller]
    pub fn scope<R>(&self, build: impl FnOnce() -> Result<R>) -> Result<R> {
        struct Inside(*mut sys::dtg_strategy);
        impl Drop for Inside {
            fn drop(&mut self) {
                // SAFETY: open as long as the strategy is borrowed. It fails only where a run was not ended, which `run` sees to.
                unsafe { sys::dtg_error_release(sys::dtg_strategy_exit(self.0)) }
            }
        }
        // SAFETY: an open strategy.
        unsafe { built(sys::dtg_strategy_enter(self.raw())) }?;
        let _inside = Inside(self.raw());
        build()
    }

    /// Calls `build` once per replica, in order, each time in its replica context, with the replica's values of `inputs`, and gives its results
    /// as per-replica values. It runs nothing: sessions do. When it fails the model is as before.
    #[track_caller]
    pub fn run<const N: usize>(
        &self,
        inputs: &[PerReplica],
        mut build: impl FnMut(usize, &[Value]) -> Result<[Value; N]>,
    ) -> Result<[PerReplica; N]> {
        struct Under(*mut sys::dtg_strategy);
        impl Drop for Under {
            fn drop(&mut self) {
                // SAFETY: open as long as the strategy is borrowed; nothing happens where the run is over.
                unsafe { sys::dtg_error_release(sys::dtg_strategy_abandon_run(self.0)) }
            }
        }
        let replicas = self.replicas()?;
        let mut made = [PerReplica(sys::dtg_per_replica { id: 0 }); N];
        for replica in 0..replicas {
            // SAFETY: an open strategy.
            unsafe { built(sys::dtg_strategy_begin_replica(self.raw(), replica as i32)) }?;
            let under = Under(self.raw());
            let own = placed(inputs.iter().map(|input| self.local(*input)).collect::<Result<Vec<_>>>())?;
            let results = build(replica, &own)?;
            std::mem::forget(under);
            // SAFETY: an open strategy; two arrays of that length.
            unsafe { built(sys::dtg_strategy_end_replica(self.raw(), Value::raw(&results), N, made.as_mut_ptr().cast())) }?;
        }
        Ok(made)
    }

    #[track_caller]
    fn value(&self, ask: impl FnOnce(*mut sys::dtg_strategy, *mut sys::dtg_value) -> *mut sys::dtg_error) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(ask(self.raw(), &mut out)) }?;
        Ok(Value(out))
    }

    #[track_caller]
    fn per_replica(
        &self,
        ask: impl FnOnce(*mut sys::dtg_strategy, *mut sys::dtg_per_replica) -> *mut sys::dtg_error,
    ) -> Result<PerReplica> {
        let mut out = sys::dtg_per_replica { id: 0 };
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(ask(self.raw(), &mut out)) }?;
        Ok(PerReplica(out))
    }

    #[track_caller]
    fn local(&self, value: PerReplica) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe { sys::dtg_strategy_local(strategy, value.0, out) })
    }

    /// The sum or the mean over replicas.
    #[track_caller]
    pub fn reduce(&self, reduction: Reduction, value: PerReplica) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe {
            sys::dtg_strategy_reduce(strategy, reduction.number(), value.0, sys::DTG_NO_AXIS, out)
        })
    }

    /// The same, each added up along an axis as well; the mean is over all elements, so shares of different size weigh what they are.
    #[track_caller]
    pub fn reduce_axis(&self, reduction: Reduction, value: PerReplica, axis: i32) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe { sys::dtg_strategy_reduce(strategy, reduction.number(), value.0, axis, out) })
    }

    /// The replicas' values one behind the other along an axis.
    #[track_caller]
    pub fn gather(&self, value: PerReplica, axis: i32) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe { sys::dtg_strategy_gather(strategy, value.0, axis, out) })
    }

    /// `values[r]` for replica r.
    #[track_caller]
    pub fn distribute(&self, values: &[Value]) -> Result<PerReplica> {
        // SAFETY: an open strategy; an array with its length.
        self.per_replica(|strategy, out| unsafe { sys::dtg_strategy_distribute(strategy, Value::raw(values), values.len(), out) })
    }

    /// The same value for every replica.
    #[track_caller]
    pub fn broadcast(&self, value: Value) -> Result<PerReplica> {
        // SAFETY: an open strategy.
        self.per_replica(|strategy, out| unsafe { sys::dtg_strategy_broadcast(strategy, value.0, out) })
    }

    /// A batch cut along its first axis as evenly as can be: the first replicas have a row more.
    #[track_caller]
    pub fn split(&self, batch: Value) -> Result<PerReplica> {
        // SAFETY: an open strategy.
        self.per_replica(|strategy, out| unsafe { sys::dtg_strategy_split(strategy, batch.0, out) })
    }

    /// The values of all replicas of this process.
    #[track_caller]
    pub fn local_results(&self, value: PerReplica) -> Result<Vec<Value>> {
        let mut count = 0;
        // SAFETY: an open strategy; no room, then as much as was asked for.
        unsafe { built(sys::dtg_strategy_local_results(self.raw(), value.0, null_mut(), 0, &mut count)) }?;
        let mut values = vec![Value(Value::NONE); count];
        // SAFETY: as before; Value has the layout of a dtg_value.
        unsafe { built(sys::dtg_strategy_local_results(self.raw(), value.0, values.as_mut_ptr().cast(), count, &mut count)) }?;
        Ok(values)
    }

    /// Adds the gradients of each replica's loss, reduces them and applies the result to every copy of the variables. The mean is right for
    /// losses that are means over equal shares; where shares differ, let losses be sums divided by the rows of the whole batch, and add them up.
    /// Errors as of [`Model::minimize`]; `FailedPrecondition` (a weight that was made outside of the scope).
    #[track_caller]
    pub fn minimize(&self, losses: PerReplica, reduction: Reduction, optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: an open strategy; structs of these sizes.
        unsafe { built(sys::dtg_strategy_minimize(self.raw(), losses.0, reduction.number(), &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// [`StrategyKind::ParameterServer`]: the targets that the last [`Strategy::minimize`] added.
    #[track_caller]
    pub fn replicated(&self) -> Result<Replicated> {
        let mut out = sys::dtg_replicated::INIT;
        // SAFETY: an open strategy; a struct of this size.
        unsafe { built(sys::dtg_strategy_replicated(self.raw(), &mut out)) }?;
        Ok(Replicated::of(&out))
    }

    /// Writes to a variable. Outside of a run: to all copies, and the answer is the target. In a run: what the replicas give is combined by the
    /// variable's aggregation and written to all copies (on read: to the replica's own, at once), and [`Strategy::updates`] is the target.
    #[track_caller]
    pub fn assign(&self, variable: &Variable, how: Assign, value: Value) -> Result<Option<Value>> {
        let how = match how {
            Assign::Set => sys::DTG_ASSIGN_SET,
            Assign::Add => sys::DTG_ASSIGN_ADD,
            Assign::Sub => sys::DTG_ASSIGN_SUB,
        };
        // SAFETY: an open strategy.
        let target =
            self.value(|strategy, out| unsafe { sys::dtg_strategy_assign(strategy, variable.handle.0, how, value.0, out) })?;
        Ok(Value::some(target.0))
    }

    /// The target of everything that the last run assigned in its replicas.
    #[track_caller]
    pub fn updates(&self) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe { sys::dtg_strategy_updates(strategy, out) })
    }

    /// The target that gives every worker what the one has that has made the most steps: after [`Group::reform`], and when one of them has
    /// restored what it saved. A process that begins runs that of [`Model::init`] meanwhile. Other kinds: a target that does nothing.
    #[track_caller]
    pub fn level(&self) -> Result<Value> {
        // SAFETY: an open strategy.
        self.value(|strategy, out| unsafe { sys::dtg_strategy_level(strategy, out) })
    }
}

impl fmt::Debug for Strategy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strategy({} replicas)", self.replicas().unwrap_or(0))
    }
}
