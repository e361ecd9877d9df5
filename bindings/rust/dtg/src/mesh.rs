//! Meshes: models that are larger than a device. A mesh borrows its model, so the thread that builds the model uses it; the closure given to
//! [`Mesh::build`] is called there, once for each step.

use std::fmt;

use dtg_sys as sys;

use crate::error::{Result, built, placed};
use crate::graph::Value;
use crate::handle::{Handle, Texts};
use crate::layers::{Dense, Embedding};
use crate::model::Model;
use crate::sequence::Attention;
use crate::training::{Optimizer, Training};

/// Where what an optimizer keeps of a variable stands, and who makes its update, on the ranks of the data axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Zero {
    /// On each rank beside its copy.
    #[default]
    None,
    /// Each variable's on one rank, which gives the others what the variable became (ZeRO-1).
    States,
    /// And gradients are added up there and go nowhere else (ZeRO-2).
    Gradients,
}

/// How the table of an embedding is cut over the model axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TableCut {
    /// Each id is looked up on the device that has its row.
    #[default]
    Rows,
    /// Each device has a piece of every row.
    Columns,
}

/// A grid of devices with three named axes.
#[derive(Debug, Clone, Copy)]
pub struct MeshOptions<'a> {
    /// Length of the data axis: each rank trains on a share of the batch.
    pub data: i64,
    /// Length of the model axis: layers are cut over it.
    pub model: i64,
    /// Length of the pipe axis: stages one behind the other.
    pub pipe: i64,
    /// Of (d, m, p): number `(d * model + m) * pipe + p`.
    pub devices: &'a [&'a str],
    /// Where states of optimizers stand.
    pub zero: Zero,
}

impl Default for MeshOptions<'_> {
    fn default() -> Self {
        Self { data: 1, model: 1, pipe: 1, devices: &[], zero: Zero::None }
    }
}

/// What to build next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeshStep {
    /// 0 to `pipe - 1`.
    pub stage: i64,
    /// The rank of the data axis.
    pub data: i64,
    /// The micro-batch.
    pub micro: i64,
    /// This micro-batch's rows of each value of the batch.
    pub batch: Vec<Value>,
    /// What the stage before gave for it; of stage 0 nothing.
    pub inputs: Vec<Value>,
}

/// One model over a grid of devices: layers cut over the model axis, stages one behind the other on the pipe axis, a share of the batch for
/// each rank of the data axis. What it adds stays in the model when it is dropped.
///
/// ```
/// use dtg::{Activation, Dense, DType, Graph, Mesh, MeshOptions, Model, Optimizer};
///
/// let model = Model::new(Graph::new()?, 1)?;
/// let x = model.placeholder("x", DType::F32, Some(&[8, 4]))?;
/// let mesh = Mesh::new(&model, &MeshOptions { model: 2, devices: &["CPU:0", "CPU:1"], ..Default::default() })?;
/// mesh.build(&[x], 2, false, |step| {
///     let wide = Dense { units: 6, activation: Activation::Relu, ..Default::default() };
///     let parts = mesh.column_dense(step.batch[0], &wide)?;
///     let y = mesh.row_dense(&parts, &Dense { units: 4, ..Default::default() })?;
///     Ok(vec![model.mean_squared_error(step.batch[0], y)?])
/// })?;
/// let training = mesh.minimize(&Optimizer::sgd(0.1))?;
/// # let _ = training;
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Mesh<'m> {
    handle: Handle<sys::dtg_mesh>,
    model: &'m Model,
    ranks: usize,
}

fn copied(from: *const sys::dtg_value, count: usize) -> Vec<Value> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the mesh's, until its next call.
    unsafe { std::slice::from_raw_parts(from, count) }.iter().map(|&value| Value(value)).collect()
}

// SAFETY of all calls below: an open mesh, and structs, arrays and names that outlive the call.
impl<'m> Mesh<'m> {
    /// A mesh for a model. Errors: `InvalidArgument` (an axis that is no length, another number of devices, a device twice).
    #[track_caller]
    pub fn new(model: &'m Model, options: &MeshOptions<'_>) -> Result<Self> {
        let devices = placed(Texts::new(options.devices, "a device"))?;
        // Zero is the default in C, and no length here.
        let length = |length: i64| if length == 0 { -1 } else { length };
        let raw = sys::dtg_mesh_options {
            data: length(options.data),
            model: length(options.model),
            pipe: length(options.pipe),
            devices: devices.as_ptr(),
            num_devices: devices.len(),
            zero: match options.zero {
                Zero::None => sys::DTG_ZERO_NONE,
                Zero::States => sys::DTG_ZERO_STATES,
                Zero::Gradients => sys::DTG_ZERO_GRADIENTS,
            },
            ..sys::dtg_mesh_options::INIT
        };
        // SAFETY: see above.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_mesh_create(model.raw(), &raw, out)) })?;
        Ok(Self { handle, model, ranks: options.model.max(1) as usize })
    }

    fn raw(&self) -> *mut sys::dtg_mesh {
        self.handle.raw()
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    #[track_caller]
    fn value(&self, add: impl FnOnce(*mut sys::dtg_value) -> *mut sys::dtg_error) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(add(&mut out)) }?;
        Ok(Value(out))
    }

    /// Cuts each value of the batch into `data * micro_batches` equal parts and calls `stage` for every stage, data rank and micro-batch, in
    /// the order of the pipeline; it answers what the next stage takes, of the last stage its loss first. `forward_only` is for evaluation:
    /// no ways back. A later build is over the variables that the first one made. When it fails the model is as before.
    #[track_caller]
    pub fn build(
        &self,
        batch: &[Value],
        micro_batches: i64,
        forward_only: bool,
        mut stage: impl FnMut(&MeshStep) -> Result<Vec<Value>>,
    ) -> Result<()> {
        struct Open(*mut sys::dtg_mesh);
        impl Drop for Open {
            fn drop(&mut self) {
                // SAFETY: open as long as the mesh is borrowed. Nothing is abandoned where all is built.
                unsafe { sys::dtg_error_release(sys::dtg_mesh_abandon(self.0)) }
            }
        }
        // SAFETY: see above.
        unsafe { built(sys::dtg_mesh_begin(self.raw(), Value::raw(batch), batch.len(), micro_batches, forward_only.into())) }?;
        let open = Open(self.raw());
        loop {
            let (mut raw, mut more) = (sys::dtg_mesh_step::INIT, 0);
            // SAFETY: see above.
            unsafe { built(sys::dtg_mesh_next(self.raw(), &mut raw, &mut more)) }?;
            if more == 0 {
                std::mem::forget(open);
                return Ok(());
            }
            let step = MeshStep {
                stage: raw.stage,
                data: raw.data,
                micro: raw.micro,
                batch: copied(raw.batch, raw.num_batch),
                inputs: copied(raw.inputs, raw.num_inputs),
            };
            let outputs = stage(&step)?;
            // SAFETY: see above.
            unsafe { built(sys::dtg_mesh_give(self.raw(), Value::raw(&outputs), outputs.len())) }?;
        }
    }

    /// What the last stage gave as number `k`, of all micro-batches: the mean of a floating-point scalar, rows one behind the other of
    /// anything else. Errors: `FailedPrecondition` (nothing is built), `OutOfRange`.
    #[track_caller]
    pub fn result(&self, k: usize) -> Result<Value> {
        // SAFETY: see above.
        self.value(|out| unsafe { sys::dtg_mesh_result(self.raw(), k, out) })
    }

    /// Adds a step of training over the mean of all losses.
    #[track_caller]
    pub fn minimize(&self, optimizer: &Optimizer) -> Result<Training> {
        let mut out = sys::dtg_training::INIT;
        // SAFETY: see above.
        unsafe { built(sys::dtg_mesh_minimize(self.raw(), &optimizer.raw(), &mut out)) }?;
        Ok(Training::of(&out))
    }

    /// [`Model::dense`] by columns: each device of the model axis has some columns of the kernel and makes as many of the product, which stay
    /// there; one value for each device. Between this and [`Mesh::row_dense`] only what is element by element belongs.
    #[track_caller]
    pub fn column_dense(&self, x: Value, layer: &Dense<'_>) -> Result<Vec<Value>> {
        let mut parts = vec![Value::NONE; self.ranks];
        // SAFETY: see above.
        unsafe { built(sys::dtg_mesh_column_dense(self.raw(), x.0, &layer.raw(), parts.as_mut_ptr(), parts.len())) }?;
        Ok(parts.into_iter().map(Value).collect())
    }

    /// [`Model::dense`] by rows: each device has the rows of the kernel that go with its part of the input; the products are added up.
    #[track_caller]
    pub fn row_dense(&self, parts: &[Value], layer: &Dense<'_>) -> Result<Value> {
        // SAFETY: see above.
        self.value(|out| unsafe { sys::dtg_mesh_row_dense(self.raw(), Value::raw(parts), parts.len(), &layer.raw(), out) })
    }

    /// The parts of all devices one behind the other along an axis (negative: from the last).
    #[track_caller]
    pub fn together(&self, parts: &[Value], axis: i32) -> Result<Value> {
        // SAFETY: see above.
        self.value(|out| unsafe { sys::dtg_mesh_together(self.raw(), Value::raw(parts), parts.len(), axis, out) })
    }

    /// [`Model::embedding`] with its table cut over the model axis.
    #[track_caller]
    pub fn embedding(&self, ids: Value, layer: &Embedding<'_>, by: TableCut) -> Result<Value> {
        let by = match by {
            TableCut::Rows => sys::DTG_CUT_ROWS,
            TableCut::Columns => sys::DTG_CUT_COLUMNS,
        };
        // SAFETY: see above.
        self.value(|out| unsafe { sys::dtg_mesh_embedding(self.raw(), ids.0, &layer.raw(), by, out) })
    }

    /// [`Model::attention`] with its heads shared out over the model axis.
    #[track_caller]
    pub fn attention(&self, query: Value, value: Value, layer: &Attention<'_>) -> Result<Value> {
        // SAFETY: see above.
        self.value(|out| unsafe { sys::dtg_mesh_attention(self.raw(), query.0, value.0, &layer.raw(), out) })
    }
}

impl fmt::Debug for Mesh<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mesh")
    }
}
