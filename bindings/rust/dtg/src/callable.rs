//! Prepared runs. Shared: any thread, any number of calls at once.

use std::ptr::{null, null_mut};
use std::time::Duration;

use dtg_sys as sys;

use crate::cancellation::Cancellation;
use crate::error::{Result, check};
use crate::graph::Value;
use crate::handle::{Handle, nanoseconds};
use crate::outputs::Outputs;
use crate::request::late;
use crate::session::Session;
use crate::tensor::Tensor;

/// Lists of handles up to this length are made on the stack.
const FEW: usize = 8;

/// What a timeout of zero becomes, as zero means the session's default to C.
const NO_TIME: i64 = 1;

/// A run with feeds, fetches and targets fixed: one crossing into the library per call, and with [`Callable::run_into`] no allocation.
/// Cloning gives another reference.
///
/// ```
/// use dtg::{Graph, Session, Tensor, DType, ops};
///
/// let graph = Graph::new()?;
/// let x = graph.placeholder("x", DType::F32, Some(&[]))?;
/// let y = ops::square(&graph, x).build()?;
/// let session = Session::connect("local", &graph)?;
/// let square = session.prepare(&[x], &[y], &[])?;
/// let mut input = Tensor::scalar(0.0f32)?;
/// let mut output = [Tensor::scalar(0.0f32)?];
/// for i in 1..4u8 {
///     input.as_mut_slice::<f32>()?[0] = f32::from(i);
///     square.run_into(&[&input], &mut output)?;
///     assert_eq!(output[0].to_scalar::<f32>()?, f32::from(i * i));
/// }
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Callable {
    handle: Handle<sys::dtg_callable>,
    fetches: usize,
    timeout_ns: i64,
    cancellation: Option<Cancellation>,
}

impl Callable {
    pub(crate) fn prepare(session: &Session, feeds: &[Value], fetches: &[Value], targets: &[Value]) -> Result<Self> {
        let args = sys::dtg_run_args {
            feeds: Value::raw(feeds),
            num_feeds: feeds.len(),
            fetches: Value::raw(fetches),
            num_fetches: fetches.len(),
            targets: Value::raw(targets),
            num_targets: targets.len(),
            ..sys::dtg_run_args::INIT
        };
        // SAFETY: an open session, arrays with their lengths.
        let handle = unsafe { Handle::create(|out| sys::dtg_session_prepare(session.raw(), &args, out)) }?;
        Ok(Self { handle, fetches: fetches.len(), timeout_ns: 0, cancellation: None })
    }

    /// The deadline of each call through this reference. Default: the session's. With zero no time is left: nothing runs, and that is
    /// `DeadlineExceeded`.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout_ns = nanoseconds(time);
        self
    }

    /// What ends the calls through this reference when another thread cancels it: clone the callable, one for each request.
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: &Cancellation) -> Self {
        self.cancellation = Some(cancellation.clone());
        self
    }

    /// Calls it: one tensor per feed. Gives one new tensor per fetch. Errors as [`crate::Request::call`].
    pub fn run(&self, feeds: &[&Tensor]) -> Result<Outputs> {
        let mut fetched = vec![null_mut(); self.fetches];
        self.cross(feeds, &mut fetched)?;
        // SAFETY: the run succeeded, so every entry holds a tensor that is ours.
        Ok(Outputs::new(fetched.into_iter().filter_map(|tensor| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt).collect()))
    }

    /// Calls it and writes what is fetched into tensors that are there: one per fetch, whose types and shapes must fit. When the run
    /// fails they may hold anything. Errors as [`crate::Request::call`], and `FailedPrecondition` for a tensor that others read.
    #[inline]
    pub fn run_into(&self, feeds: &[&Tensor], fetches: &mut [Tensor]) -> Result<()> {
        let mut few = [null_mut(); FEW];
        let mut many = Vec::new();
        let fetched = match few.get_mut(..fetches.len()) {
            Some(few) => few,
            None => {
                many.resize(fetches.len(), null_mut());
                &mut many[..]
            }
        };
        for (slot, tensor) in fetched.iter_mut().zip(fetches) {
            tensor.require_writable("fetch into")?;
            *slot = tensor.raw();
        }
        self.cross(feeds, fetched)
    }

    #[inline]
    fn cross(&self, feeds: &[&Tensor], fetched: &mut [*mut sys::dtg_tensor]) -> Result<()> {
        if self.timeout_ns == NO_TIME {
            return Err(late());
        }
        let mut few = [null(); FEW];
        let mut many = Vec::new();
        let tensors = match few.get_mut(..feeds.len()) {
            Some(few) => few,
            None => {
                many.resize(feeds.len(), null());
                &mut many[..]
            }
        };
        for (slot, tensor) in tensors.iter_mut().zip(feeds) {
            *slot = tensor.raw().cast_const();
        }
        // SAFETY: an open callable, arrays of open handles with their lengths (which it compares with what was prepared); the tensors
        // that are written are borrowed mutably by the caller.
        unsafe {
            check(sys::dtg_callable_run_cancellable(
                self.handle.raw(),
                tensors.as_ptr(),
                tensors.len(),
                fetched.as_mut_ptr(),
                fetched.len(),
                self.timeout_ns,
                self.cancellation.as_ref().map_or(null_mut(), Cancellation::raw),
            ))
        }
    }
}

impl std::fmt::Debug for Callable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Callable({} fetches)", self.fetches)
    }
}
