//! Coordinators: one program that trains with workers that are plain servers. Shared: any thread.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::null_mut;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dtg_sys as sys;

use crate::dtype::DType;
use crate::error::{Result, check};
use crate::graph::Value;
use crate::handle::{Handle, name_of, nanoseconds, or_default, string};
use crate::outputs::Outputs;
use crate::pump::{self, End};
use crate::session::Session;
use crate::tensor::Tensor;

/// The settings of a coordinator.
///
/// ```
/// let options = dtg::CoordinatorOptions::new().job("worker").queue_capacity(1000);
/// assert!(format!("{options:?}").contains("1000"));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CoordinatorOptions {
    job: Option<String>,
    queue_capacity: i64,
    closure_timeout: Option<Duration>,
    worker_timeout: Option<Duration>,
    server_timeout: Option<Duration>,
    closure_losses: i64,
}

impl CoordinatorOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whose tasks are the workers. Default: "worker".
    pub fn job(mut self, job: &str) -> Self {
        self.job = Some(job.into());
        self
    }

    /// Closures that may wait before [`Coordinator::schedule`] does. Default: 262,144.
    pub fn queue_capacity(mut self, closures: i64) -> Self {
        self.queue_capacity = closures;
        self
    }

    /// The deadline of one attempt at a closure. Default: the session's.
    pub fn closure_timeout(mut self, time: Duration) -> Self {
        self.closure_timeout = Some(time);
        self
    }

    /// How long a lost worker is looked for, where no other is left. Default: 1 hour.
    pub fn worker_timeout(mut self, time: Duration) -> Self {
        self.worker_timeout = Some(time);
        self
    }

    /// How long a task that is no worker is looked for. Default: 30 s.
    pub fn server_timeout(mut self, time: Duration) -> Self {
        self.server_timeout = Some(time);
        self
    }

    /// How many workers may be lost at one closure, one after the other, before it is taken to be the cause. Default: 3.
    pub fn closure_losses(mut self, workers: i64) -> Self {
        self.closure_losses = workers;
        self
    }
}

/// Gives closures out to the workers of a session's cluster, one at a time to each. A worker that is lost gives its closure back, another
/// one takes it, and what it changes on parameter servers counts once. Cloning gives another reference; the last one that is dropped ends
/// what was scheduled with `Cancelled`.
///
/// ```
/// use dtg::{Cluster, DType, Graph, Server, ServerOptions, Session, Tensor, ops};
///
/// # let folder = std::env::temp_dir().join(format!("dtg-coordinator-{}", std::process::id()));
/// # std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&folder).unwrap();
/// # let at = folder.display();
/// let cluster = Cluster::parse(&format!("chief=unix:{at}/chief;worker=unix:{at}/w0"))?;
/// let chief = ServerOptions::new().task("chief", 0).start(&cluster)?;
/// let worker = ServerOptions::new().task("worker", 0).start(&cluster)?; // in life: `dtg server`, elsewhere
/// let graph = Graph::new()?;
/// let x = graph.placeholder("x", DType::F32, Some(&[]))?;
/// let y = ops::square(&graph, x).build()?;
/// let session = Session::connect(chief.target(), &graph)?;
/// let coordinator = session.coordinator()?;
/// let square = coordinator.prepare(&[x], &[y], &[], None)?;
/// let value = coordinator.schedule(&square, &[&Tensor::scalar(3.0f32)?])?;
/// coordinator.join()?;
/// assert_eq!(value.fetch()?.scalar::<f32>(0)?, 9.0); // or, in a task: value.await?
/// # drop((coordinator, session, worker, chief));
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Coordinator(Handle<sys::dtg_coordinator>);

/// A part of the graph that a worker is to run. It belongs to its coordinator.
#[derive(Clone)]
pub struct Closure {
    handle: Handle<sys::dtg_closure>,
    fetches: usize,
}

/// A closure that was scheduled. It is a future of what it fetches; dropping it does not end the closure.
#[must_use = "a future does nothing unless it is awaited; `fetch` waits on this thread"]
pub struct RemoteValue {
    handle: Handle<sys::dtg_remote_value>,
    end: Arc<End>,
    fetches: usize,
}

impl Coordinator {
    /// A coordinator for the workers of the session's cluster. Errors: `FailedPrecondition` (a local session; nobody to work).
    pub fn new(session: &Session, options: &CoordinatorOptions) -> Result<Self> {
        let (job, job_len) = name_of(options.job.as_deref());
        let raw = sys::dtg_coordinator_options {
            job,
            job_len,
            queue_capacity: options.queue_capacity,
            closure_timeout_ns: or_default(options.closure_timeout),
            worker_timeout_ns: or_default(options.worker_timeout),
            server_timeout_ns: or_default(options.server_timeout),
            closure_losses: options.closure_losses,
            ..sys::dtg_coordinator_options::INIT
        };
        // SAFETY: an open session, options whose text outlives the call.
        unsafe { Handle::create(|out| sys::dtg_coordinator_create(session.raw(), &raw, out)) }.map(Self)
    }

    /// Says what a closure does. `worker` is an int64 scalar that is fed with the number of the worker that takes it.
    pub fn prepare(&self, feeds: &[Value], fetches: &[Value], targets: &[Value], worker: Option<Value>) -> Result<Closure> {
        let args = sys::dtg_run_args {
            feeds: Value::raw(feeds),
            num_feeds: feeds.len(),
            fetches: Value::raw(fetches),
            num_fetches: fetches.len(),
            targets: Value::raw(targets),
            num_targets: targets.len(),
            ..sys::dtg_run_args::INIT
        };
        let worker = Value::or_none(worker);
        // SAFETY: an open coordinator, arrays with their lengths.
        let handle = unsafe { Handle::create(|out| sys::dtg_coordinator_prepare(self.0.raw(), &args, worker, out)) }?;
        Ok(Closure { handle, fetches: fetches.len() })
    }

    /// Runs a closure on every worker before its next one, and again on a worker that was started anew. Does not wait.
    pub fn create_per_worker(&self, closure: &Closure, feeds: &[&Tensor]) -> Result<()> {
        let feeds: Vec<_> = feeds.iter().map(|tensor| tensor.raw().cast_const()).collect();
        // SAFETY: open handles, an array with its length.
        unsafe { check(sys::dtg_coordinator_create_per_worker(self.0.raw(), closure.handle.raw(), feeds.as_ptr(), feeds.len())) }
    }

    /// Puts a closure into the queue, with one tensor per feed; waits while the queue is full. Errors: `InvalidArgument`,
    /// `DeadlineExceeded`, and once that of a closure that failed before.
    pub fn schedule(&self, closure: &Closure, feeds: &[&Tensor]) -> Result<RemoteValue> {
        let feeds: Vec<_> = feeds.iter().map(|tensor| tensor.raw().cast_const()).collect();
        let (handle, end) = pump::announce(|cq, tag| {
            let options = sys::dtg_schedule_options { cq, tag, ..sys::dtg_schedule_options::INIT };
            // SAFETY: open handles, an array with its length, a new remote value of ours on success.
            unsafe {
                Handle::create(|out| {
                    sys::dtg_coordinator_schedule(self.0.raw(), closure.handle.raw(), feeds.as_ptr(), feeds.len(), &options, out)
                })
            }
        })?;
        Ok(RemoteValue { handle, end, fetches: closure.fetches })
    }

    /// Waits until all that was scheduled has ended, up to the session's default time. Errors: that of the first closure that failed,
    /// once; the others have ended with `Cancelled` then, and the coordinator can be used on. `DeadlineExceeded`.
    pub fn join(&self) -> Result<()> {
        self.join_within(Duration::ZERO)
    }

    /// The same for at most so long; zero: the session's default.
    pub fn join_within(&self, time: Duration) -> Result<()> {
        let time_ns = if time.is_zero() { 0 } else { nanoseconds(time) };
        // SAFETY: an open coordinator.
        unsafe { check(sys::dtg_coordinator_join(self.0.raw(), time_ns, null_mut())) }
    }

    /// Whether all that was scheduled has ended. Errors as [`Coordinator::join`].
    pub fn done(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: an open coordinator, room for the answer.
        unsafe { check(sys::dtg_coordinator_done(self.0.raw(), &mut done)) }?;
        Ok(done != 0)
    }

    /// Ends all that was scheduled with `Cancelled`; what it changed stays. Does not wait.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: an open coordinator.
        unsafe { check(sys::dtg_coordinator_cancel(self.0.raw())) }
    }

    /// What the coordinator is at, as JSON.
    pub fn status(&self) -> Result<String> {
        // SAFETY: an open coordinator.
        unsafe { string(|out| sys::dtg_coordinator_status(self.0.raw(), out)) }
    }
}

impl RemoteValue {
    /// Waits for the end of the closure on this thread, up to the session's default time, and gives what it fetched. Errors: that of the
    /// closure, `DeadlineExceeded`.
    pub fn fetch(&self) -> Result<Outputs> {
        let mut fetched = vec![null_mut(); self.fetches];
        // SAFETY: an open remote value, room for its fetches.
        unsafe { check(sys::dtg_remote_value_fetch(self.handle.raw(), fetched.as_mut_ptr(), fetched.len(), 0, null_mut())) }?;
        // SAFETY: the call succeeded, so every entry holds a tensor that is ours.
        Ok(Outputs::new(fetched.into_iter().filter_map(|tensor| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt).collect()))
    }

    /// Whether the closure has ended, well or not.
    pub fn is_ended(&self) -> bool {
        self.end.is_there()
    }
}

impl Future for RemoteValue {
    type Output = Result<Outputs>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(ended) = self.end.poll(context) else { return Poll::Pending };
        Poll::Ready(ended.and_then(|()| self.fetch()))
    }
}

/// Into how many shards a variable is cut, by the rules of `tf.distribute.experimental.partitioners`.
///
/// ```
/// use dtg::{DType, Partitioner, shard_rows};
///
/// let shards = Partitioner::FixedShards(3).shards(DType::F32, 0, &[8, 4])?;
/// assert_eq!((shards, shard_rows(8, shards, 2)?), (3, (6, 2)));
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// So many, and never more than there are rows.
    FixedShards(i64),
    /// As many as there are whole or begun pieces of so many bytes, at most so many.
    MinSize {
        /// 256 KiB in TensorFlow.
        bytes: i64,
        /// 1 in TensorFlow.
        max_shards: i64,
    },
    /// So that none has more bytes, but at least a row.
    MaxSize {
        /// Of each shard.
        bytes: i64,
        /// None: any number.
        max_shards: Option<i64>,
    },
}

impl Partitioner {
    pub(crate) fn raw(self, axis: i32) -> sys::dtg_partitioner {
        let mut raw = sys::dtg_partitioner { axis, ..sys::dtg_partitioner::INIT };
        // Zero is the default in C, and no size here.
        let size = |size: i64| if size == 0 { -1 } else { size };
        match self {
            Self::FixedShards(count) => raw.num_shards = count,
            Self::MinSize { bytes, max_shards } => {
                raw.kind = sys::DTG_PARTITIONER_MIN_SIZE;
                (raw.shard_bytes, raw.max_shards) = (size(bytes), size(max_shards));
            }
            Self::MaxSize { bytes, max_shards } => {
                raw.kind = sys::DTG_PARTITIONER_MAX_SIZE;
                (raw.shard_bytes, raw.max_shards) = (size(bytes), max_shards.map_or(0, size));
            }
        }
        raw
    }

    /// The number of shards of a variable of that type and shape along an axis. Errors: `InvalidArgument`.
    pub fn shards(self, dtype: DType, axis: i32, dims: &[i64]) -> Result<i64> {
        let raw = self.raw(axis);
        let mut shards = 0;
        // SAFETY: dimensions with their number, room for the answer.
        unsafe { check(sys::dtg_partitioner_shards(&raw, dtype.number(), dims.as_ptr(), dims.len(), &mut shards)) }?;
        Ok(shards)
    }
}

/// The first row of one of so many shards, and how many it has. Errors: `InvalidArgument`.
pub fn shard_rows(rows: i64, shards: i64, shard: i64) -> Result<(i64, i64)> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: room for the answers.
    unsafe { check(sys::dtg_shard_rows(rows, shards, shard, &mut first, &mut count)) }?;
    Ok((first, count))
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coordinator")
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Closure({} fetches)", self.fetches)
    }
}

impl fmt::Debug for RemoteValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ended() { "RemoteValue(ended)" } else { "RemoteValue(under way)" })
    }
}
