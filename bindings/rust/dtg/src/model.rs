//! Models: the variables that layers make. A model owns the graph that it adds to; one thread at a time has it.

use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, built, check, placed, text};
use crate::graph::{Graph, Value};
use crate::handle::{Handle, nanoseconds, string};
use crate::scope::{self, Scope, Scoped};
use crate::session::Session;

/// Where the first value of a variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Initializer {
    /// What the layer would take: Glorot uniform for kernels, zeros for biases and variables.
    #[default]
    Default,
    /// 0.
    Zeros,
    /// 1.
    Ones,
    /// This value.
    Constant(f64),
    /// In [low, high).
    Uniform(f64, f64),
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// The same, cut at two deviations.
    TruncatedNormal(f64, f64),
    /// ±sqrt(6 / (inputs + outputs)).
    GlorotUniform,
    /// Truncated, variance 2 / (inputs + outputs).
    GlorotNormal,
    /// ±sqrt(6 / inputs).
    HeUniform,
    /// Truncated, variance 2 / inputs.
    HeNormal,
    /// Rank 2 or more: rows (all dimensions but the last) or columns, the fewer of them, of length 1 and at right angles.
    Orthogonal,
}

impl Initializer {
    pub(crate) fn raw(self) -> sys::dtg_initializer {
        let (kind, a, b) = match self {
            Self::Default => (sys::DTG_INIT_DEFAULT, 0.0, 0.0),
            Self::Zeros => (sys::DTG_INIT_ZEROS, 0.0, 0.0),
            Self::Ones => (sys::DTG_INIT_ONES, 0.0, 0.0),
            Self::Constant(a) => (sys::DTG_INIT_CONSTANT, a, 0.0),
            Self::Uniform(a, b) => (sys::DTG_INIT_UNIFORM, a, b),
            Self::Normal(a, b) => (sys::DTG_INIT_NORMAL, a, b),
            Self::TruncatedNormal(a, b) => (sys::DTG_INIT_TRUNCATED_NORMAL, a, b),
            Self::GlorotUniform => (sys::DTG_INIT_GLOROT_UNIFORM, 0.0, 0.0),
            Self::GlorotNormal => (sys::DTG_INIT_GLOROT_NORMAL, 0.0, 0.0),
            Self::HeUniform => (sys::DTG_INIT_HE_UNIFORM, 0.0, 0.0),
            Self::HeNormal => (sys::DTG_INIT_HE_NORMAL, 0.0, 0.0),
            Self::Orthogonal => (sys::DTG_INIT_ORTHOGONAL, 0.0, 0.0),
        };
        sys::dtg_initializer { kind, reserved0: 0, a, b }
    }
}

/// A variable to add by hand: `VariableSpec::new("w")`, or `VariableSpec { dims: &[2, 3], ..VariableSpec::new("w") }` where more is to be
/// said. There is no default, as a variable needs a name.
#[derive(Debug, Clone, Copy)]
pub struct VariableSpec<'a> {
    /// Also its name in checkpoints. One that is taken gets a number; it may not be empty.
    pub name: &'a str,
    /// Default: float32.
    pub dtype: Option<DType>,
    /// Not touched by optimizers.
    pub not_trainable: bool,
    /// The shape; empty for a scalar.
    pub dims: &'a [i64],
    /// Default: zeros.
    pub initializer: Initializer,
    /// Of a [`crate::Strategy`]: each replica writes its own, and who reads it from outside gets them combined; not trainable, and with an
    /// aggregation.
    pub on_read: bool,
    /// Of a [`crate::Strategy`]: how what the replicas give becomes one value.
    pub aggregation: Aggregation,
}

/// How values of several replicas become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Aggregation {
    /// Not at all: for variables that no replica assigns to by itself, such as weights.
    #[default]
    None,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// What replica 0 says.
    OnlyFirstReplica,
}

impl Aggregation {
    pub(crate) fn of(number: i32) -> Self {
        match number {
            sys::DTG_AGGREGATION_SUM => Self::Sum,
            sys::DTG_AGGREGATION_MEAN => Self::Mean,
            sys::DTG_AGGREGATION_ONLY_FIRST_REPLICA => Self::OnlyFirstReplica,
            _ => Self::None,
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Self::None => sys::DTG_AGGREGATION_NONE,
            Self::Sum => sys::DTG_AGGREGATION_SUM,
            Self::Mean => sys::DTG_AGGREGATION_MEAN,
            Self::OnlyFirstReplica => sys::DTG_AGGREGATION_ONLY_FIRST_REPLICA,
        }
    }
}

impl<'a> VariableSpec<'a> {
    /// A trainable float32 scalar that begins at 0.
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            dtype: None,
            not_trainable: false,
            dims: &[],
            initializer: Initializer::Default,
            on_read: false,
            aggregation: Aggregation::None,
        }
    }
}

/// A variable of a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Also its name in checkpoints.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// False: counters and what optimizers keep.
    pub trainable: bool,
    /// The resource, for ops such as AssignVariableOp.
    pub handle: Value,
    /// Its value; fetch it, or use it as an input.
    pub read: Value,
    /// A target that gives it its first value.
    pub assign: Value,
    /// Its shape.
    pub dims: Vec<i64>,
}

/// Layers, losses, metrics and optimizers over one graph, and the variables that they make. Names, formulas and defaults are those of
/// tf.keras (layers, initializers) and of TensorFlow's optimizers. Weights are functions of (seed, order of creation, shape).
///
/// The graph is inside: a model is used wherever a [`Graph`] is, to add nodes of one's own and to connect sessions.
///
/// ```
/// use dtg::{Activation, DType, Dense, Graph, Model, Optimizer, Session};
///
/// let model = Model::new(Graph::new()?, 1)?;
/// let x = model.placeholder("x", DType::F32, Some(&[-1, 4]))?;
/// let labels = model.placeholder("labels", DType::I64, Some(&[-1]))?;
/// let hidden = model.dense(x, &Dense { units: 8, activation: Activation::Relu, ..Default::default() })?;
/// let logits = model.dense(hidden, &Dense { units: 3, ..Default::default() })?;
/// let loss = model.sparse_softmax_cross_entropy(labels, logits)?;
/// let training = model.minimize(loss, &Optimizer::adam(1e-3))?;
/// let init = model.init()?; // ask when the model is complete
/// let session = Session::connect("local", &model)?;
/// session.run_target(init)?;
/// # let _ = training;
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Model {
    handle: Handle<sys::dtg_model>,
    graph: Graph,
}

impl VariableSpec<'_> {
    // Name and dimensions are lent.
    pub(crate) fn raw(&self) -> Result<sys::dtg_variable_spec> {
        if self.name.is_empty() {
            return Err(Error::found(ErrorKind::InvalidArgument, "a variable needs a name: VariableSpec::new(\"w\")"));
        }
        Ok(sys::dtg_variable_spec {
            name: self.name.as_ptr().cast(),
            name_len: self.name.len(),
            dtype: self.dtype.map_or(0, |dtype| dtype.0),
            not_trainable: self.not_trainable.into(),
            dims: self.dims.as_ptr(),
            rank: self.dims.len(),
            initializer: self.initializer.raw(),
            synchronization: if self.on_read { sys::DTG_VARIABLE_ON_READ } else { sys::DTG_VARIABLE_ON_WRITE },
            aggregation: self.aggregation.number(),
            ..sys::dtg_variable_spec::INIT
        })
    }
}

impl Model {
    /// A model without variables, adding to a graph, which may have nodes.
    #[track_caller]
    pub fn new(graph: Graph, seed: u64) -> Result<Self> {
        // SAFETY: an open graph.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_model_create(graph.raw(), seed, out)) })?;
        Ok(Self { handle, graph })
    }

    /// A model that C gave, over a graph of its own.
    pub(crate) fn adopt(handle: Handle<sys::dtg_model>) -> Result<Self> {
        // SAFETY: an open model.
        let graph = Graph::adopt(unsafe { Handle::create(|out| sys::dtg_model_graph(handle.raw(), out)) }?);
        Ok(Self { handle, graph })
    }

    /// A model of the variables that a graph has already: after [`Graph::import`], or built by hand. Those of floating-point numbers are
    /// trainable, but for what is named like an optimizer's slots.
    #[track_caller]
    pub fn import(graph: Graph, seed: u64) -> Result<Self> {
        // SAFETY: an open graph.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_model_import(graph.raw(), seed, out)) })?;
        Ok(Self { handle, graph })
    }

    /// The model inside of the body of a function (a loop's, a branch's): its layers and losses are added to the body, where they may use
    /// values from around. With `weights_of` they have the weights of a layer that was made before; others make variables outside of all
    /// functions, named after the function (`body/dense/kernel` in a loop, `then` and `else` in branches), which this model has from then on.
    /// It takes layers, losses and variables only. Errors: `InvalidArgument` (no body in the model's graph), `FailedPrecondition` (the
    /// function was ended, or what it is given to wants the model itself); `Unimplemented` from layers that follow their batches there.
    ///
    /// ```
    /// use dtg::{Dense, Graph, Model, Session, Tensor};
    ///
    /// let model = Model::new(Graph::new()?, 1)?;
    /// let start = model.constant(&Tensor::from_slice(&[1, 2], &[1.0f32, 2.0])?)?;
    /// let once = model.dense(start, &Dense { name: Some("mix"), units: 2, ..Default::default() })?;
    /// let again = Dense { units: 2, weights_of: Some("mix"), ..Default::default() };
    /// let [_, last] = model.while_loop(
    ///     [model.scalar(1i32)?, once],
    ///     |body, [i, _]| body.expr(i).less(3).value(),
    ///     |body, [i, x]| Ok([(body.expr(i) + 1).value()?, model.inside(body)?.dense(x, &again)?]),
    /// )?;
    /// let thrice = model.dense(model.dense(once, &again)?, &again)?;
    /// let session = Session::connect("local", &model)?;
    /// session.run_target(model.init()?)?;
    /// let out = session.run().fetch(last).fetch(thrice).call()?;
    /// assert_eq!(out.slice::<f32>(0)?, out.slice::<f32>(1)?);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn inside(&self, body: &Graph) -> Result<Self> {
        // SAFETY: an open model and an open graph.
        Self::adopt(placed(unsafe { Handle::create(|out| sys::dtg_model_inside(self.raw(), body.raw(), out)) })?)
    }

    /// The graph, for those who need no more layers. The variables stay in it.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_model {
        self.handle.raw()
    }

    /// Builds inside a scope of the graph, which is left at the end, also when building fails.
    #[track_caller]
    pub fn within<R>(&self, scope: Scope<'_>, build: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        scope::within(self, scope, build)
    }

    /// Adds a variable; its handle is made on the device of the open device scope, its first value beside it. Errors: `InvalidArgument`
    /// (a name that is empty or that no node can have, dimensions below 0).
    #[track_caller]
    pub fn add_variable(&self, spec: &VariableSpec<'_>) -> Result<Variable> {
        let raw = placed(spec.raw())?;
        let model = self.raw();
        // SAFETY: an open model; the spec outlives the call.
        variable(|out| unsafe { sys::dtg_model_add_variable(model, &raw, out) })
    }

    /// The number of variables, in order of creation: those of layers, then those of optimizers.
    pub fn variable_count(&self) -> usize {
        // SAFETY: an open model.
        unsafe { sys::dtg_model_variable_count(self.raw()) }
    }

    /// Variable `i`. Errors: `OutOfRange`.
    #[track_caller]
    pub fn variable(&self, i: usize) -> Result<Variable> {
        let model = self.raw();
        // SAFETY: an open model.
        variable(|out| unsafe { sys::dtg_model_variable(model, i, out) })
    }

    /// All variables, in order of creation.
    pub fn variables(&self) -> Result<Vec<Variable>> {
        (0..self.variable_count()).map(|i| self.variable(i)).collect()
    }

    /// The variable of that name. Errors: `NotFound`.
    #[track_caller]
    pub fn find_variable(&self, name: &str) -> Result<Variable> {
        let model = self.raw();
        // SAFETY: an open model, a text with its length.
        variable(|out| unsafe { sys::dtg_model_find_variable(model, name.as_ptr().cast(), name.len(), out) })
    }

    /// The int64 scalar variable that counts training steps; made when first asked for.
    #[track_caller]
    pub fn global_step(&self) -> Result<Variable> {
        let model = self.raw();
        // SAFETY: an open model.
        variable(|out| unsafe { sys::dtg_model_global_step(model, out) })
    }

    /// The target that gives every variable so far its first value. Ask when the model is complete: variables that come later are
    /// not covered.
    #[track_caller]
    pub fn init(&self) -> Result<Value> {
        // SAFETY: an open model.
        self.node_of(|model, out| unsafe { sys::dtg_model_init(model, out) })
    }

    /// Keeps a text with the model: [`Model::save`] writes it with the weights, [`Model::restore`] brings it back. Under `"schema"` it is the
    /// [`Dataset::schema`](crate::Dataset::schema) of the training data, which has the names of [`Model::classes`] too; a fit keeps it by
    /// itself. Errors: `InvalidArgument` (an empty key, or one that begins with "dtg.").
    pub fn set_metadata(&self, key: &str, value: &str) -> Result<()> {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: an open model, texts with their lengths.
        unsafe { check(sys::dtg_model_set_metadata(self.raw(), k, key.len(), v, value.len())) }
    }

    /// A text that is kept with the model. Errors: `NotFound`.
    pub fn metadata(&self, key: &str) -> Result<String> {
        let model = self.raw();
        // SAFETY: an open model, a text with its length.
        unsafe { string(|out| sys::dtg_model_metadata(model, key.as_ptr().cast(), key.len(), out)) }
    }

    /// Writes the values that the model's variables have in a session to a safetensors file, under their names, atomically. Errors:
    /// `FailedPrecondition` (a variable without value), and those of the disk.
    pub fn save(&self, session: &Session, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: an open model and session, a text with its length.
        unsafe { check(sys::dtg_model_save(self.raw(), session.raw(), path.as_ptr().cast(), path.len())) }
    }

    /// Gives every variable of the model its value from such a file. Nothing is assigned on failure. Errors: `NotFound` (no file, or a
    /// variable is not in it), `InvalidArgument` (another type or shape), `DataLoss` (cut or damaged).
    pub fn restore(&self, session: &Session, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: an open model and session, a text with its length.
        unsafe { check(sys::dtg_model_restore(self.raw(), session.raw(), path.as_ptr().cast(), path.len())) }
    }

    /// Waits until every variable that the model has so far has a value in the session. Errors: `DeadlineExceeded`, which names
    /// those that have none, and those of a run.
    pub fn wait_ready(&self, session: &Session, timeout: Duration) -> Result<()> {
        // SAFETY: an open model, and an open session.
        unsafe { check(sys::dtg_model_wait_ready(self.raw(), session.raw(), nanoseconds(timeout))) }
    }

    /// Brings this worker to where it can go on, after `train` or `update` failed because a task was lost (`Unavailable`, `Aborted`) or when
    /// this process is a later life of a worker: waits until every variable has a value, completes on every task the update that one of
    /// them has applied (the chief, `SyncMode::Strict`), runs `resume` (the chief, with no `update` under way) and `local_init`. The next
    /// `train` is the step that `global_step` says: where that is the step that failed, give it the same batch again. Errors:
    /// `FailedPrecondition` (no replicated training), `DeadlineExceeded`, `Unavailable` (still, at the end of the time), `DataLoss` (a task
    /// is further behind than what it keeps can mend).
    pub fn recover(&self, session: &Session, timeout: Duration) -> Result<()> {
        // SAFETY: an open model, and an open session.
        unsafe { check(sys::dtg_model_recover(self.raw(), session.raw(), nanoseconds(timeout))) }
    }

    /// From here on layers and [`Model::add_variable`] answer the variables that the model has, from the first, in their order, until
    /// all have been asked for. Errors later: asking for another name, type or shape is `FailedPrecondition`.
    #[track_caller]
    pub fn next_tower(&self) -> Result<()> {
        // SAFETY: an open model.
        unsafe { built(sys::dtg_model_next_tower(self.raw())) }
    }

    /// The value that a function of the ABI adds to the model.
    #[track_caller]
    pub(crate) fn node_of(
        &self,
        add: impl FnOnce(*mut sys::dtg_model, *mut sys::dtg_value) -> *mut sys::dtg_error,
    ) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(add(self.raw(), &mut out)) }?;
        Ok(Value(out))
    }
}

impl Deref for Model {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl Scoped for Model {
    fn scoped_graph(&self) -> &Graph {
        &self.graph
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({} variables, {} nodes)", self.variable_count(), self.graph.node_count())
    }
}

#[track_caller]
pub(crate) fn variable(ask: impl FnOnce(*mut sys::dtg_variable) -> *mut sys::dtg_error) -> Result<Variable> {
    let mut out = sys::dtg_variable::INIT;
    // SAFETY: the answer of a function of the ABI; the name ends with NUL and lives as long as the graph.
    unsafe {
        built(ask(&mut out))?;
        Ok(Variable {
            name: text(out.name),
            dtype: DType(out.dtype),
            trainable: out.trainable != 0,
            handle: Value(out.handle),
            read: Value(out.read),
            assign: Value(out.assign),
            dims: out.dims.iter().copied().take(out.rank).collect(),
        })
    }
}
