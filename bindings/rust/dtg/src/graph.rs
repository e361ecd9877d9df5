//! Dataflow graphs. A graph only grows, so building and reading both take `&`, and values stay valid: calls that build may stand inside
//! one another. Any number of threads may read a graph or run sessions over it; one at a time adds to it, and a second one is refused.

use std::ffi::c_char;
use std::fmt;
use std::panic::Location;

use dtg_sys as sys;

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, built, check, placed};
use crate::handle::{Handle, bytes};
use crate::node::{Attr, Node};
use crate::runtime::Runtime;
use crate::tensor::Tensor;

/// One output of one node of one graph; it also names the node itself where a node is asked for (targets, control inputs). A value of
/// another graph is recognised and refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Value(pub(crate) sys::dtg_value);

impl Value {
    pub(crate) const NONE: sys::dtg_value = sys::dtg_value { id: 0 };

    /// A value that C gave, None for the invalid one.
    pub(crate) fn some(raw: sys::dtg_value) -> Option<Self> {
        (raw.id != 0).then_some(Self(raw))
    }

    /// The value for C, the invalid one for None.
    pub(crate) fn or_none(value: Option<Self>) -> sys::dtg_value {
        value.map_or(Self::NONE, |value| value.0)
    }

    /// Several values as C has them; null: none.
    pub(crate) fn raw(values: &[Self]) -> *const sys::dtg_value {
        if values.is_empty() { std::ptr::null() } else { values.as_ptr().cast() } // the same layout: repr(transparent)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({:#x})", self.0.id)
    }
}

/// What is known of a shape before a run: None where even the number of dimensions is open, -1 for a dimension that is.
pub type PartialShape = Option<Vec<i64>>;

/// An append-only graph of ops. Nodes never change and never go; sessions keep their graph alive.
///
/// ```
/// use dtg::{DType, Graph, ops};
///
/// let graph = Graph::new()?;
/// let x = graph.placeholder("x", DType::F32, Some(&[-1, 3]))?;
/// let two = graph.scalar(2.0f32)?;
/// let y = ops::mul(&graph, x, two).name("y").build()?;
/// assert_eq!(graph.name(y)?, "y");
/// assert_eq!(graph.shape(y)?, Some(vec![-1, 3]));
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Graph(Handle<sys::dtg_graph>);

impl Graph {
    /// An empty graph over the ops of the default runtime.
    pub fn new() -> Result<Self> {
        Self::new_in(&Runtime::default())
    }

    /// An empty graph over the ops of a runtime, on which its sessions run.
    pub fn new_in(runtime: &Runtime) -> Result<Self> {
        // SAFETY: an open runtime or NULL.
        unsafe { Handle::create(|out| sys::dtg_graph_create(runtime.raw(), out)) }.map(Self)
    }

    /// A graph that C gave.
    pub(crate) fn adopt(handle: Handle<sys::dtg_graph>) -> Self {
        Self(handle)
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_graph {
        self.0.raw()
    }

    // ---- nodes ----

    /// Begins a node of that op type; see [`Node`]. Errors of the node name this call's place in the program. [`crate::ops`] has a
    /// function per op that knows its inputs and attributes.
    #[track_caller]
    pub fn node(&self, op: &'static str) -> Node<'_> {
        Node::begin(self, op, Location::caller())
    }

    /// A constant; the tensor is shared with the graph.
    #[track_caller]
    pub fn constant(&self, tensor: &Tensor) -> Result<Value> {
        let dtype = tensor.dtype();
        self.node("Const").attr("value", Attr::tensor(tensor)).attr("dtype", dtype).build()
    }

    /// A constant without dimensions.
    #[track_caller]
    pub fn scalar<T: Element>(&self, value: T) -> Result<Value> {
        self.constant(&Tensor::scalar(value)?)
    }

    /// A constant with one dimension, as shapes and axes are.
    #[track_caller]
    pub fn vector<T: Element>(&self, values: &[T]) -> Result<Value> {
        self.constant(&Tensor::from_slice(&[values.len()], values)?)
    }

    /// A value that every run must feed. -1 leaves a dimension open, None the whole shape.
    #[track_caller]
    pub fn placeholder(&self, name: &str, dtype: DType, shape: Option<&[i64]>) -> Result<Value> {
        self.node("Placeholder").name(name).attr("dtype", dtype).attr("shape", Attr::Shape(shape.map(<[i64]>::to_vec))).build()
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        // SAFETY: an open graph.
        unsafe { sys::dtg_graph_node_count(self.raw()) }
    }

    /// The node that was added as number `index`, from 0. Errors: `OutOfRange`.
    pub fn node_at(&self, index: usize) -> Result<Value> {
        // SAFETY: an open graph.
        self.value(|out| unsafe { sys::dtg_graph_node_at(self.raw(), index, out) })
    }

    /// The value of that name: `"node"` (its first output, or the node itself) or `"node:1"`. Errors: `NotFound`.
    #[track_caller]
    pub fn find(&self, name: &str) -> Result<Value> {
        // SAFETY: an open graph, and a text with its length.
        self.value(|out| unsafe { sys::dtg_graph_find(self.raw(), name.as_ptr().cast(), name.len(), out) })
    }

    // ---- what is known of a value ----

    /// The name of a value's node. Errors: `InvalidArgument` for a value of another graph, here and below.
    pub fn name(&self, value: Value) -> Result<&str> {
        self.text(value, sys::dtg_value_name)
    }

    /// The op type of a value's node.
    pub fn op(&self, value: Value) -> Result<&str> {
        self.text(value, sys::dtg_value_op)
    }

    /// The device that was asked for; "" when none was.
    pub fn device(&self, value: Value) -> Result<&str> {
        self.text(value, sys::dtg_value_device)
    }

    /// The number of outputs of a value's node.
    pub fn num_outputs(&self, value: Value) -> Result<usize> {
        let mut count = 0;
        // SAFETY: an open graph.
        unsafe { check(sys::dtg_value_num_outputs(self.raw(), value.0, &mut count)) }?;
        Ok(count)
    }

    /// Output `i` of a value's node. Errors: `OutOfRange`.
    pub fn output(&self, value: Value, i: usize) -> Result<Value> {
        // SAFETY: an open graph.
        self.value(|out| unsafe { sys::dtg_value_output(self.raw(), value.0, i, out) })
    }

    /// The element type of a value. Errors: `InvalidArgument`, also for a node without outputs.
    pub fn dtype(&self, value: Value) -> Result<DType> {
        let mut dtype = 0;
        // SAFETY: an open graph.
        unsafe { check(sys::dtg_value_dtype(self.raw(), value.0, &mut dtype)) }?;
        Ok(DType(dtype))
    }

    /// What is known of a value's shape.
    pub fn shape(&self, value: Value) -> Result<PartialShape> {
        partial_shape(|dims, cap, rank| {
            // SAFETY: an open graph; up to `cap` dimensions are written.
            unsafe { check(sys::dtg_value_shape(self.raw(), value.0, dims, cap, rank)) }
        })
    }

    #[track_caller]
    fn value(&self, ask: impl FnOnce(*mut sys::dtg_value) -> *mut sys::dtg_error) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: the answer of a function of the ABI.
        unsafe { built(ask(&mut out)) }?;
        Ok(Value(out))
    }

    fn text(
        &self,
        value: Value,
        ask: unsafe extern "C" fn(*const sys::dtg_graph, sys::dtg_value, *mut *const c_char, *mut usize) -> *mut sys::dtg_error,
    ) -> Result<&str> {
        let (mut text, mut length) = (std::ptr::null(), 0);
        // SAFETY: an open graph; the text is valid as long as the graph, which the borrow keeps.
        let bytes = unsafe {
            check(ask(self.raw(), value.0, &mut text, &mut length))?;
            std::slice::from_raw_parts(text.cast::<u8>(), length)
        };
        // Names of nodes are ASCII (graph.h); should that change, an empty name is better than a panic.
        Ok(std::str::from_utf8(bytes).unwrap_or_default())
    }

    // ---- gradients ----

    /// Adds the nodes that compute d(sum of the ys)/d(x) for each x. `grad_ys` weights the ys: one value per y, or none at all for
    /// ones. Errors: `InvalidArgument` (a y that is not floating-point, foreign values), `Unimplemented` (an op on the path has no
    /// gradient), `FailedPrecondition` (a PreventGradient is in the way).
    #[track_caller]
    pub fn add_gradients(&self, ys: &[Value], xs: &[Value], grad_ys: Option<&[Value]>) -> Result<Vec<Gradient>> {
        if let Some(weights) = grad_ys.filter(|weights| weights.len() != ys.len()) {
            let text =
                format!("add_gradients: {} values in grad_ys for {} in ys; give one per y, or None", weights.len(), ys.len());
            return placed(Err(Error::found(ErrorKind::InvalidArgument, text)));
        }
        let none = sys::dtg_gradient { dense: Value::NONE, values: Value::NONE, indices: Value::NONE, dense_shape: Value::NONE };
        let mut out = vec![none; xs.len()];
        let weights = grad_ys.map_or(std::ptr::null(), Value::raw);
        // SAFETY: an open graph, arrays with their lengths, one entry of `out` per x.
        unsafe {
            built(sys::dtg_graph_add_gradients(
                self.raw(),
                Value::raw(ys),
                ys.len(),
                Value::raw(xs),
                xs.len(),
                weights,
                out.as_mut_ptr(),
            ))
        }?;
        Ok(out.iter().map(Gradient::of).collect())
    }

    /// The dense form of a gradient that came as rows; the value itself when it is dense already. Errors: `InvalidArgument` when it
    /// is neither.
    #[track_caller]
    pub fn densify(&self, gradient: &Gradient) -> Result<Value> {
        let raw = gradient.raw();
        // SAFETY: an open graph.
        self.value(|out| unsafe { sys::dtg_graph_densify(self.raw(), &raw, out) })
    }

    // ---- graphs as bytes ----

    /// The whole graph as bytes that [`Graph::import`] of this and later versions reads.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        // SAFETY: an open graph.
        let string = unsafe { Handle::create(|out| sys::dtg_graph_serialize(self.raw(), out)) }?;
        Ok(bytes(&string).to_vec())
    }

    /// Adds the nodes of a serialised graph to this one, which must be empty. The bytes need not be trusted. Errors: `DataLoss`,
    /// `InvalidArgument`, `FailedPrecondition` (the graph has nodes), `ResourceExhausted`. On failure the graph may hold the nodes
    /// before the bad one.
    pub fn import(&self, bytes: &[u8]) -> Result<()> {
        // SAFETY: an open graph, and bytes with their length.
        unsafe { check(sys::dtg_graph_import(self.raw(), bytes.as_ptr().cast(), bytes.len())) }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes)", self.node_count())
    }
}

/// Asks for a shape as C tells it: rank or -1, and up to `cap` dimensions.
pub(crate) fn partial_shape(mut ask: impl FnMut(*mut i64, usize, *mut i32) -> Result<()>) -> Result<PartialShape> {
    let mut dims = vec![0i64; 8];
    loop {
        let mut rank = 0;
        ask(dims.as_mut_ptr(), dims.len(), &mut rank)?;
        let Ok(rank) = usize::try_from(rank) else { return Ok(None) };
        let enough = rank <= dims.len();
        dims.resize(rank, 0);
        if enough {
            return Ok(Some(dims));
        }
    }
}

/// The gradient with respect to one x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gradient {
    /// No path leads from x to any y.
    None,
    /// One value of x's shape.
    Dense(Value),
    /// `values[i]` is the gradient of row `indices[i]`; rows that are not listed have none, and equal indices add up.
    Rows {
        /// The gradients of the rows that are listed.
        values: Value,
        /// Which rows these are.
        indices: Value,
        /// The shape that the dense gradient would have.
        dense_shape: Value,
    },
}

impl Gradient {
    fn of(raw: &sys::dtg_gradient) -> Self {
        if let Some(dense) = Value::some(raw.dense) {
            return Self::Dense(dense);
        }
        match (Value::some(raw.values), Value::some(raw.indices), Value::some(raw.dense_shape)) {
            (Some(values), Some(indices), Some(dense_shape)) => Self::Rows { values, indices, dense_shape },
            _ => Self::None,
        }
    }

    pub(crate) fn raw(&self) -> sys::dtg_gradient {
        let none = sys::dtg_gradient { dense: Value::NONE, values: Value::NONE, indices: Value::NONE, dense_shape: Value::NONE };
        match *self {
            Self::None => none,
            Self::Dense(dense) => sys::dtg_gradient { dense: dense.0, ..none },
            Self::Rows { values, indices, dense_shape } => {
                sys::dtg_gradient { values: values.0, indices: indices.0, dense_shape: dense_shape.0, ..none }
            }
        }
    }
}
