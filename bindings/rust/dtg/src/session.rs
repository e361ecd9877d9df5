//! Sessions: running a graph on the devices behind a target. Shared: any number of runs may be under way, from any threads.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dtg_sys as sys;

use crate::callable::Callable;
use crate::error::{Result, borrowed, check};
use crate::graph::{Graph, Value};
use crate::handle::{Handle, Texts, nanoseconds, or_default, string};
use crate::request::Request;
use crate::run::Run;
use crate::server::{Security, path_of};

/// The settings of a [`Session`]; what is not set keeps its default.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct SessionOptions {
    cpu_devices: i32,
    emu_devices: i32,
    emu_memory_bytes: i64,
    soft_placement: bool,
    disable_fusion: bool,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    key_file: Option<PathBuf>,
    security: Security,
}

impl SessionOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Local sessions: virtual CPU devices, `/device:CPU:0` and up. Default: 1.
    pub fn cpu_devices(mut self, count: i32) -> Self {
        self.cpu_devices = count;
        self
    }

    /// Local sessions: emulated accelerators for tests, `/device:EMU:0` and up. Default: none.
    pub fn emu_devices(mut self, count: i32) -> Self {
        self.emu_devices = count;
        self
    }

    /// The memory of each emulated accelerator. Default: 256 MiB.
    pub fn emu_memory_bytes(mut self, bytes: i64) -> Self {
        self.emu_memory_bytes = bytes;
        self
    }

    /// A device that is absent drops its type and id, never its job and task.
    pub fn soft_placement(mut self, soft: bool) -> Self {
        self.soft_placement = soft;
        self
    }

    /// Every op runs by itself, for tests and debugging.
    pub fn disable_fusion(mut self, disable: bool) -> Self {
        self.disable_fusion = disable;
        self
    }

    /// The deadline of runs that name none, brief and prepared ones too. Default: 10 minutes; zero is no time at all, so that every
    /// run has to name its own.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// How long to look for the tasks of a cluster. Default: 30 s.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = Some(time);
        self
    }

    /// The job key, for targets with a port. Default: that of `DTG_KEY_FILE` in the environment; without it, on loopback,
    /// the user's own.
    pub fn key_file(mut self, path: impl AsRef<Path>) -> Self {
        self.key_file = Some(path.as_ref().into());
        self
    }

    /// How frames travel over TCP; as the servers have it.
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// The options for C, pointing into these.
    fn raw(&self) -> sys::dtg_session_options {
        let (key_file, key_file_len) = path_of(&self.key_file);
        sys::dtg_session_options {
            cpu_devices: self.cpu_devices,
            emu_devices: self.emu_devices,
            emu_memory_bytes: self.emu_memory_bytes,
            soft_placement: self.soft_placement.into(),
            disable_fusion: self.disable_fusion.into(),
            default_timeout_ns: or_default(self.timeout),
            connect_timeout_ns: or_default(self.connect_timeout),
            key_file,
            key_file_len,
            security: self.security.number(),
            ..sys::dtg_session_options::INIT
        }
    }

    /// What each task of the cluster that the task at `target` belongs to is doing, asked over the network without a session, as a JSON
    /// list: tasks may be missing, only that one must answer. Of the options, key file, security and connect timeout count; the
    /// last bounds the whole call. Errors: `Unavailable`, `DeadlineExceeded` (nobody answers there), and those of
    /// [`Session::connect`].
    pub fn cluster_status(&self, target: &str) -> Result<String> {
        let raw = self.raw();
        // SAFETY: NULL for the default runtime, texts with their lengths, options that outlive the call.
        unsafe { string(|out| sys::dtg_cluster_status(std::ptr::null_mut(), target.as_ptr().cast(), target.len(), &raw, out)) }
    }

    /// Connects a graph to the devices behind a target; see [`Session::connect`].
    pub fn connect(&self, target: &str, graph: &Graph) -> Result<Session> {
        let raw = self.raw();
        // SAFETY: an open graph, whose runtime NULL stands for; texts with their lengths; options that outlive the call.
        unsafe {
            Handle::create(|out| {
                sys::dtg_session_connect(std::ptr::null_mut(), target.as_ptr().cast(), target.len(), graph.raw(), &raw, out)
            })
        }
        .map(Session)
    }
}

/// What became of a run that failed with an error after which nobody knows: `DeadlineExceeded`, `Unavailable`, `Cancelled`, `Aborted`.
/// [`Session::outcome`] tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It has updated nothing on any other task, and will not.
    Nothing,
    /// It has, on one task at least: all of it, or up to where it was cut short.
    Updated,
    /// So many runs ago that a task does not know any more. What a newer library may add is this too: nobody knows.
    Forgotten,
}

impl Outcome {
    fn of(number: sys::dtg_outcome) -> Self {
        match number {
            sys::DTG_OUTCOME_NOTHING => Self::Nothing,
            sys::DTG_OUTCOME_UPDATED => Self::Updated,
            _ => Self::Forgotten,
        }
    }
}

/// A graph connected to devices. Cloning gives another reference to the same session. It keeps the graph alive, which may go on
/// growing; dropping it releases it, and [`Session::close`] ends its runs too.
///
/// ```
/// use dtg::{Graph, Session, Tensor, DType, ops};
///
/// let graph = Graph::new()?;
/// let x = graph.placeholder("x", DType::F32, Some(&[]))?;
/// let y = ops::square(&graph, x).build()?;
/// let session = Session::connect("local", &graph)?;
/// let out = session.run().feed(x, &Tensor::scalar(3.0f32)?).fetch(y).call()?;
/// assert_eq!(out.scalar::<f32>(0)?, 9.0);
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Session(Handle<sys::dtg_session>);

impl Session {
    /// Connects a graph to the devices behind a target with default options: `"local"` for a session of this process alone,
    /// whose variables live and die with it; or the address of a task ([`crate::Server::target`], `unix:PATH`, `host:port`), which
    /// tells the session of the rest of its cluster, whose variables outlive it. Errors: `InvalidArgument` (an empty target, too); `Unavailable`,
    /// `DeadlineExceeded` (which tasks are missing); `Unauthenticated` (a wrong key); `FailedPrecondition` (another cluster, version or
    /// security at the other end).
    pub fn connect(target: &str, graph: &Graph) -> Result<Self> {
        SessionOptions::new().connect(target, graph)
    }

    /// A session that C gave.
    pub(crate) fn adopt(handle: Handle<sys::dtg_session>) -> Self {
        Self(handle)
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_session {
        self.0.raw()
    }

    /// Begins a run: feeds, fetches and targets are added, then it is called or started.
    pub fn run(&self) -> Request<'_> {
        Request::new(self)
    }

    /// Runs one target, such as an initialisation, and waits for its end.
    pub fn run_target(&self, target: Value) -> Result<()> {
        self.run().target(target).call().map(drop)
    }

    /// A coordinator with default options, which gives closures out to the workers of the session's cluster.
    pub fn coordinator(&self) -> Result<crate::Coordinator> {
        crate::Coordinator::new(self, &crate::CoordinatorOptions::new())
    }

    /// A run with feeds, fetches and targets fixed, for calling many times with as little in between as possible.
    pub fn prepare(&self, feeds: &[Value], fetches: &[Value], targets: &[Value]) -> Result<Callable> {
        Callable::prepare(self, feeds, fetches, targets)
    }

    /// Runs targets again and again, one run after the other and without a thread that waits, until a run fails, the run is
    /// cancelled or dropped, or the session is closed: TensorFlow's queue runner. Its end is always an error; `Cancelled` is the good
    /// one.
    pub fn run_repeatedly(&self, targets: &[Value]) -> Result<Run> {
        Run::start(0, |cq, tag, out| {
            // SAFETY: an open session and queue, an array with its length.
            unsafe { sys::dtg_session_run_repeatedly(self.raw(), Value::raw(targets), targets.len(), cq, tag, out) }
        })
    }

    /// The names of the session's devices, `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub fn devices(&self) -> Vec<&str> {
        // SAFETY: an open session.
        let count = unsafe { sys::dtg_session_device_count(self.raw()) };
        // SAFETY: the names end with NUL and are valid as long as the session, which the borrow keeps.
        let names = (0..count).map(|i| unsafe { borrowed(sys::dtg_session_device_name(self.raw(), i)) });
        names.map(|name| name.and_then(|name| name.to_str().ok()).unwrap_or_default()).collect()
    }

    /// Drops variables, queues and accumulators in the named containers; with none named, those in the default container. Who waits
    /// for them fails.
    pub fn reset(&self, containers: &[&str]) -> Result<()> {
        let names = Texts::new(containers, "the container")?;
        // SAFETY: an open session, texts that end with NUL and their number.
        unsafe { check(sys::dtg_session_reset(self.raw(), names.as_ptr(), names.len())) }
    }

    /// Refuses new runs, cancels those under way and waits for their end, for so long; zero: not at all; None: the session's default. May be
    /// called again. Errors: `DeadlineExceeded` when runs have not ended yet.
    pub fn close(&self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        // SAFETY: an open session.
        unsafe { check(sys::dtg_session_close(self.raw(), or_default(timeout.into()))) }
    }

    /// Waits until all workers of the job (the tasks of the jobs "chief", "master" and "worker") wait at the barrier of that name, which
    /// may be used again when all were let through. A local session is let through at once. Errors: `Unavailable`, which names a worker
    /// that is gone, `DeadlineExceeded`, which names those that have not come.
    pub fn barrier(&self, name: &str, timeout: Duration) -> Result<()> {
        // SAFETY: an open session, a text and its length.
        unsafe { check(sys::dtg_session_barrier(self.raw(), name.as_ptr().cast(), name.len(), nanoseconds(timeout))) }
    }

    /// The work of this worker is done: waits until that is so of every worker; then the chief (where the cluster has none: a client
    /// that is no task) tells every task but its own to stop, and those that wait in [`crate::Server::join`] return. A worker whose
    /// connection has ended may be back: it is waited for, for half a minute (six times the `dead` of the first parameter server's
    /// options), and then no more; the chief's log names it. So give a `timeout` of more than that, and call it in
    /// every worker before it exits, not in the chief alone: one that exits without it is taken for lost, and makes the chief wait for that
    /// half minute. Errors: `DeadlineExceeded`, which names
    /// those that work on, or how long they have been lost; nothing was ended then.
    pub fn end_job(&self, timeout: Duration) -> Result<()> {
        // SAFETY: an open session.
        unsafe { check(sys::dtg_session_end_job(self.raw(), nanoseconds(timeout))) }
    }

    /// Ends the job at once, whatever the workers are at. The chief alone may do that, others get `PermissionDenied`.
    pub fn end_job_now(&self, timeout: Duration) -> Result<()> {
        // SAFETY: an open session.
        unsafe { check(sys::dtg_session_end_job_now(self.raw(), nanoseconds(timeout))) }
    }

    /// Asks the tasks of the cluster what took place of a run of this session, by the number that [`Request::write`] gave. To have all of it
    /// done, whatever the answer is, run the same once more with that number. Errors: `InvalidArgument` (the session has made no run of that
    /// number), `Unavailable` (a task is gone, or the run is still under way there), `DeadlineExceeded`, `Unimplemented` (a task runs an
    /// earlier release).
    pub fn outcome(&self, write: u64, timeout: Duration) -> Result<Outcome> {
        let mut out = 0;
        // SAFETY: an open session, a place for the answer.
        unsafe { check(sys::dtg_session_outcome(self.raw(), write, nanoseconds(timeout), &mut out)) }?;
        Ok(Outcome::of(out))
    }

    /// What each task of the session's cluster is doing, asked over the network, as a JSON list; a task that does not answer has
    /// "error".
    pub fn cluster_status(&self, timeout: Duration) -> Result<String> {
        // SAFETY: an open session.
        unsafe { string(|out| sys::dtg_session_cluster_status(self.raw(), nanoseconds(timeout), out)) }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.devices()).finish()
    }
}
