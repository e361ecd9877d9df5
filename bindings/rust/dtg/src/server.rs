//! Servers: the tasks of a cluster in this process, and the keys they prove themselves with. Shared: any thread.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dtg_sys as sys;

use crate::cluster::Cluster;
use crate::error::{Result, borrowed, check};
use crate::handle::{Handle, agreed, c_string, name_of, nanoseconds, or_default, said, string};
use crate::runtime::Runtime;

/// How frames travel over TCP. Unix sockets need neither: the other process's user is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Security {
    /// TLS 1.3 with keys derived from the job key.
    #[default]
    Tls,
    /// The handshake is authenticated, frames then travel in the clear; both ends must ask.
    ClearFrames,
}

impl Security {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Tls => sys::DTG_SECURITY_TLS,
            Self::ClearFrames => sys::DTG_SECURITY_CLEAR_FRAMES,
        }
    }
}

/// Makes a new job key (256 random bits) in a new file that only its owner can read: what tasks and sessions take as key file. Every
/// task of the job needs the same. Errors: `AlreadyExists` (it is never overwritten), `InvalidArgument`, `FailedPrecondition`.
pub fn keygen(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref().as_os_str().as_bytes();
    agreed()?;
    // SAFETY: a text with its length.
    unsafe { check(sys::dtg_keygen(path.as_ptr().cast(), path.len())) }
}

/// A path for C, which is valid as long as the path; NULL for none.
pub(crate) fn path_of(path: &Option<PathBuf>) -> (*const std::ffi::c_char, usize) {
    said(path.as_ref().map(|path| path.as_os_str().as_bytes()))
}

/// The settings of a [`Server`]; what is not set keeps its default.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ServerOptions {
    runtime: Runtime,
    job: Option<String>,
    task: i32,
    cpu_devices: i32,
    emu_devices: i32,
    emu_memory_bytes: i64,
    key_file: Option<PathBuf>,
    security: Security,
    device_filters: Vec<String>,
    heartbeat: Option<Duration>,
    dead: Option<Duration>,
    state_dir: Option<PathBuf>,
    no_shared_memory: bool,
}

impl ServerOptions {
    /// All defaults: task 0 of the only job of the cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// The threads that the server computes on. Default: the default runtime.
    pub fn runtime(mut self, runtime: &Runtime) -> Self {
        self.runtime = runtime.clone();
        self
    }

    /// Which task of the cluster this is.
    pub fn task(mut self, job: &str, index: i32) -> Self {
        self.job = Some(job.into());
        self.task = index;
        self
    }

    /// Virtual CPU devices of the task. Default: 1.
    pub fn cpu_devices(mut self, count: i32) -> Self {
        self.cpu_devices = count;
        self
    }

    /// Emulated accelerators of the task, for tests; not with a state directory, `/device:EMU:0` and up. Default: none.
    pub fn emu_devices(mut self, count: i32) -> Self {
        self.emu_devices = count;
        self
    }

    /// The memory of each emulated accelerator. Default: 256 MiB.
    pub fn emu_memory_bytes(mut self, bytes: i64) -> Self {
        self.emu_memory_bytes = bytes;
        self
    }

    /// The job key, needed for TCP beyond loopback; must belong to the user, mode 0600. Default: that of `DTG_KEY_FILE` in the environment.
    pub fn key_file(mut self, path: impl AsRef<Path>) -> Self {
        self.key_file = Some(path.as_ref().into());
        self
    }

    /// How frames travel over TCP.
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Sessions of this server see only tasks that match one of these, such as `/job:ps` and `/job:worker/task:1`, and its own.
    pub fn device_filters(mut self, filters: &[&str]) -> Self {
        self.device_filters = filters.iter().map(|filter| (*filter).into()).collect();
        self
    }

    /// How often peers are asked whether they are there. Default: 1 s.
    pub fn heartbeat(mut self, time: Duration) -> Self {
        self.heartbeat = Some(time);
        self
    }

    /// Silence after which a peer counts as dead. Default: 5 s.
    pub fn dead(mut self, time: Duration) -> Self {
        self.dead = Some(time);
        self
    }

    /// Where the task keeps its variables, for itself alone: every update is there before whoever asked for it is told, and a server
    /// that is started anew on its address with the same directory goes on with them. Default: they die with the process.
    pub fn state_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.state_dir = Some(directory.as_ref().into());
        self
    }

    /// Large values go through the socket also between processes of one host and user. Default: through shared memory there.
    pub fn no_shared_memory(mut self, yes: bool) -> Self {
        self.no_shared_memory = yes;
        self
    }

    /// Starts the server; it listens when this returns. An address `host:0` lets the system choose the port, which
    /// [`Server::target`] tells. Errors: `InvalidArgument` (no such task), `FailedPrecondition` (an address that others can reach,
    /// without a key), `AlreadyExists` (the address is taken), `PermissionDenied` (a socket where others may enter).
    pub fn start(&self, cluster: &Cluster) -> Result<Server> {
        let (job, job_len) = name_of(self.job.as_deref());
        let (key_file, key_file_len) = path_of(&self.key_file);
        let (state_dir, state_dir_len) = path_of(&self.state_dir);
        let filters = self.device_filters.iter().map(|filter| c_string(filter, "the device filter")).collect::<Result<Vec<_>>>()?;
        let filters: (Vec<_>, Vec<_>) = filters.into_iter().map(|filter| (filter.as_ptr(), filter)).unzip();
        let raw = sys::dtg_server_options {
            job,
            job_len,
            task: self.task,
            cpu_devices: self.cpu_devices,
            emu_devices: self.emu_devices,
            emu_memory_bytes: self.emu_memory_bytes,
            key_file,
            key_file_len,
            security: self.security.number(),
            no_shared_memory: self.no_shared_memory.into(),
            device_filters: filters.0.as_ptr(),
            num_device_filters: filters.0.len(),
            heartbeat_ns: or_default(self.heartbeat),
            dead_ns: or_default(self.dead),
            state_dir,
            state_dir_len,
            ..sys::dtg_server_options::INIT
        };
        // SAFETY: an open runtime or NULL, an open cluster, options whose texts outlive the call (a CString's bytes do not move with it).
        unsafe { Handle::create(|out| sys::dtg_server_start(self.runtime.raw(), cluster.raw(), &raw, out)) }.map(Server)
    }
}

/// One task of a cluster in this process. Cloning gives another reference; the last one that is dropped stops the server, and its
/// variables go with it.
///
/// ```
/// use dtg::{Cluster, Graph, Server, Session};
/// use std::time::Duration;
///
/// let server = Server::start(&Cluster::parse("worker=127.0.0.1:0")?)?;
/// let graph = Graph::new()?;
/// let two = graph.scalar(2.0f32)?;
/// let session = Session::connect(server.target(), &graph)?;
/// assert_eq!(session.run().fetch(two).call()?.scalar::<f32>(0)?, 2.0);
/// server.stop(Duration::from_secs(5))?;
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Server(Handle<sys::dtg_server>);

impl Server {
    /// Starts task 0 of the only job of a cluster, with default options.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        ServerOptions::new().start(cluster)
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_server {
        self.0.raw()
    }

    /// What a session connects to, `unix:/run/j/ps0` or `10.0.0.1:2222`. A session of this process shares the server's devices and
    /// variables without a socket.
    pub fn target(&self) -> &str {
        // SAFETY: an open server; the text lives as long, which the borrow keeps.
        unsafe { borrowed(sys::dtg_server_target(self.raw())) }.and_then(|target| target.to_str().ok()).unwrap_or_default()
    }

    /// Waits until the server has stopped: by [`Server::stop`], or because the chief ended the job. None waits for ever, zero only
    /// looks. Errors: `DeadlineExceeded` (it still runs).
    pub fn join(&self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        let timeout = timeout.into().map_or(sys::DTG_INFINITE, |time| if time.is_zero() { 0 } else { nanoseconds(time) });
        // SAFETY: an open server.
        unsafe { check(sys::dtg_server_join(self.raw(), timeout)) }
    }

    /// Takes no more connections, ends those there are with `Unavailable`, waits for their runs, for so long; zero: not at all. May be called again. Errors:
    /// `DeadlineExceeded`.
    pub fn stop(&self, timeout: Duration) -> Result<()> {
        // SAFETY: an open server.
        unsafe { check(sys::dtg_server_stop(self.raw(), nanoseconds(timeout))) }
    }

    /// What the server is doing, as JSON: task, incarnation, address, devices, sessions, variables.
    pub fn status(&self) -> Result<String> {
        // SAFETY: an open server.
        unsafe { string(|out| sys::dtg_server_status(self.raw(), out)) }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.target())
    }
}
