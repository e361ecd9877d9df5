//! Scopes of a graph under construction: names, devices, order, colocation. They change what is added from then on, by whatever name the graph is
//! reached; a closure keeps them in their order.

use std::ptr::null;

use dtg_sys as sys;

use crate::cluster::Cluster;
use crate::error::{Result, built};
use crate::graph::{Graph, Value};
use crate::handle::{Texts, c_string};

/// What everything added inside gets.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Scope<'a> {
    /// Prefixes names; a name that was used before gets a number. "" goes back to the root.
    Name(&'a str),
    /// A device, merged over the outer ones field by field: `"/job:ps"`, then `"/device:CPU:1"`. "" changes nothing.
    Device(&'a str),
    /// Leaves all outer devices, device setters included.
    NoDevice,
    /// Variables on parameter servers, all else on the worker.
    Setter(&'a DeviceSetter<'a>),
    /// These nodes run before everything inside.
    Controls(&'a [Value]),
    /// The device of that node.
    Colocate(Value),
    /// Gradients compute what is added inside once more, when they get there, instead of keeping it until then: less memory for about the
    /// time of its forward pass, and the same values to the bit. Such scopes do not nest.
    Recompute,
}

/// How a [`DeviceSetter`] chooses the task for a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SetterStrategy {
    /// Task after task, in the order in which variables are made.
    #[default]
    RoundRobin,
    /// The task with the fewest bytes so far; needs known shapes.
    GreedyBytes,
}

/// Who goes where in between-graph replication: TensorFlow's replica_device_setter. What a node and the scopes inside ask for goes
/// before it.
///
/// ```
/// use dtg::{Cluster, DeviceSetter, Graph, Scope};
///
/// let cluster = Cluster::parse("ps=unix:/run/j/ps0;worker=unix:/run/j/w0,unix:/run/j/w1")?;
/// let setter = DeviceSetter { cluster: Some(&cluster), worker_device: Some("/job:worker/task:1"), ..Default::default() };
/// let graph = Graph::new()?;
/// let one = graph.within(Scope::Setter(&setter), |graph| graph.scalar(1.0f32))?;
/// assert_eq!(graph.device(one)?, "/job:worker/task:1");
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceSetter<'a> {
    /// Takes the ps tasks from the cluster's job of that name, or
    pub cluster: Option<&'a Cluster>,
    /// without a cluster: how many there are.
    pub ps_tasks: i32,
    /// How the task for a variable is chosen.
    pub strategy: SetterStrategy,
    /// Default: `/job:ps`.
    pub ps_device: Option<&'a str>,
    /// Default: `/job:worker`, which leaves the task open.
    pub worker_device: Option<&'a str>,
    /// Ops that go to the ps. Default: TensorFlow's list of ops that hold variables and tables.
    pub ps_ops: Option<&'a [&'a str]>,
    /// A node that asks for any device keeps just that.
    pub keep_explicit: bool,
}

/// Something that adds to a graph, and so has scopes: [`Graph`] and [`crate::Model`].
pub trait Scoped: Sized {
    /// The graph that is added to.
    fn scoped_graph(&self) -> &Graph;
}

impl Scoped for Graph {
    fn scoped_graph(&self) -> &Graph {
        self
    }
}

/// Builds inside a scope and leaves it, whatever happens.
#[track_caller]
pub(crate) fn within<T: Scoped, R>(owner: &T, scope: Scope<'_>, build: impl FnOnce(&T) -> Result<R>) -> Result<R> {
    struct Inside<'a, 's, T: Scoped>(&'a T, Scope<'s>);
    impl<T: Scoped> Drop for Inside<'_, '_, T> {
        fn drop(&mut self) {
            // The scope is there, unless `build` has popped it by hand; that mistake has no better place to be told.
            drop(self.0.scoped_graph().pop(self.1));
        }
    }
    owner.scoped_graph().push(scope)?;
    let inside = Inside(owner, scope);
    build(inside.0)
}

impl Graph {
    /// Builds inside a scope, which is left at the end, also when building fails.
    #[track_caller]
    pub fn within<R>(&self, scope: Scope<'_>, build: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        within(self, scope, build)
    }

    /// Enters a scope until the matching [`Graph::pop`]. Errors: `InvalidArgument` for a name that cannot be read.
    #[track_caller]
    pub fn push(&self, scope: Scope<'_>) -> Result<()> {
        let raw = self.raw();
        // SAFETY: an open graph; texts and arrays with their lengths.
        unsafe {
            match scope {
                Scope::Name(name) => built(sys::dtg_graph_push_name_scope(raw, name.as_ptr().cast(), name.len())),
                Scope::Device(device) => built(sys::dtg_graph_push_device(raw, device.as_ptr().cast(), device.len())),
                Scope::NoDevice => built(sys::dtg_graph_push_device(raw, null(), 0)),
                Scope::Setter(setter) => push_setter(raw, setter),
                Scope::Controls(values) => built(sys::dtg_graph_push_controls(raw, Value::raw(values), values.len())),
                Scope::Colocate(value) => built(sys::dtg_graph_push_colocation(raw, value.0)),
                Scope::Recompute => built(sys::dtg_graph_push_recompute(raw)),
            }
        }
    }

    /// Leaves the innermost scope of the same sort (what it holds does not matter). Errors: `FailedPrecondition` when there is none.
    #[track_caller]
    pub fn pop(&self, scope: Scope<'_>) -> Result<()> {
        // SAFETY: an open graph.
        unsafe {
            built(match scope {
                Scope::Name(_) => sys::dtg_graph_pop_name_scope(self.raw()),
                Scope::Device(_) | Scope::NoDevice | Scope::Setter(_) => sys::dtg_graph_pop_device(self.raw()),
                Scope::Controls(_) => sys::dtg_graph_pop_controls(self.raw()),
                Scope::Colocate(_) => sys::dtg_graph_pop_colocation(self.raw()),
                Scope::Recompute => sys::dtg_graph_pop_recompute(self.raw()),
            })
        }
    }
}

/// # Safety
/// `graph` is open and used by this thread alone.
#[track_caller]
unsafe fn push_setter(graph: *mut sys::dtg_graph, setter: &DeviceSetter<'_>) -> Result<()> {
    let ps_device = setter.ps_device.map(|device| c_string(device, "the ps device")).transpose()?;
    let worker_device = setter.worker_device.map(|device| c_string(device, "the worker device")).transpose()?;
    let names = Texts::new(setter.ps_ops.unwrap_or_default(), "the op")?;
    let raw = sys::dtg_device_setter {
        cluster: setter.cluster.map_or(null(), |cluster| cluster.raw().cast_const()),
        ps_tasks: setter.ps_tasks,
        strategy: match setter.strategy {
            SetterStrategy::RoundRobin => sys::DTG_SETTER_ROUND_ROBIN,
            SetterStrategy::GreedyBytes => sys::DTG_SETTER_GREEDY_BYTES,
        },
        ps_device: ps_device.as_ref().map_or(null(), |device| device.as_ptr()),
        worker_device: worker_device.as_ref().map_or(null(), |device| device.as_ptr()),
        ps_ops: if setter.ps_ops.is_some() { names.as_ptr() } else { null() },
        num_ps_ops: names.len(),
        keep_explicit: setter.keep_explicit.into(),
        ..sys::dtg_device_setter::INIT
    };
    // SAFETY: the caller says so; everything that the setter names outlives the call.
    unsafe { built(sys::dtg_graph_push_device_setter(graph, &raw)) }
}
