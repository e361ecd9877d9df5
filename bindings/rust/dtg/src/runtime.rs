//! Runtimes: the compute threads, the op table and the log that sessions share. Shared: any thread.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::time::Duration;

use dtg_sys as sys;

use crate::error::{Result, check, contained, in_rust};
use crate::handle::{Handle, nanoseconds, string};

/// How much a line of the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// For those who look for a bug in dtg.
    Debug,
    /// What happens.
    Info,
    /// What may go wrong later.
    Warn,
    /// What went wrong and is told nowhere else.
    Error,
    /// Nothing at all, as a limit.
    Off,
}

impl LogLevel {
    fn number(self) -> i32 {
        match self {
            Self::Debug => sys::DTG_LOG_DEBUG,
            Self::Info => sys::DTG_LOG_INFO,
            Self::Warn => sys::DTG_LOG_WARN,
            Self::Error => sys::DTG_LOG_ERROR,
            Self::Off => sys::DTG_LOG_OFF,
        }
    }

    fn of(number: i32) -> Self {
        match number {
            sys::DTG_LOG_DEBUG => Self::Debug,
            sys::DTG_LOG_INFO => Self::Info,
            sys::DTG_LOG_WARN => Self::Warn,
            _ => Self::Error,
        }
    }
}

type Sink = Box<dyn Fn(LogLevel, &str, &str) + Send + Sync>;

/// The settings of a [`Runtime`]; what is not set keeps its default.
///
/// ```
/// use dtg::{Graph, LogLevel, RuntimeOptions};
///
/// let runtime = RuntimeOptions::new()
///     .compute_threads(2)
///     .log(LogLevel::Info, |level, component, message| eprintln!("{level:?} {component}: {message}"))
///     .create()?;
/// assert_eq!(runtime.threads(), 2);
/// let graph = Graph::new_in(&runtime)?; // its sessions run on these threads
/// # Ok::<(), dtg::Error>(())
/// ```
#[must_use]
pub struct RuntimeOptions {
    raw: sys::dtg_runtime_options,
    sink: Option<Sink>,
}

impl RuntimeOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self { raw: sys::dtg_runtime_options::INIT, sink: None }
    }

    /// Compute threads, the caller of a run included. Default: one per CPU that this process may use.
    pub fn compute_threads(mut self, count: i32) -> Self {
        self.raw.compute_threads = count;
        self
    }

    /// Thread i stays on the i-th of those CPUs.
    pub fn pin_threads(mut self, pin: bool) -> Self {
        self.raw.pin_threads = pin.into();
        self
    }

    /// How long an idle thread polls before it sleeps. Default: 50 µs.
    pub fn spin(mut self, time: Duration) -> Self {
        self.raw.spin_ns = nanoseconds(time);
        self
    }

    /// A limit in bytes for sizes that come from outside. Default: half of the machine's or the cgroup's memory.
    pub fn memory_limit(mut self, bytes: i64) -> Self {
        self.raw.memory_limit_bytes = bytes;
        self
    }

    /// Gives lines of the log (level, component, message) to a function instead of stderr. It is called on one thread of the
    /// library, line after line, may take its time, and may call the library, but not give up the last reference to the runtime. A panic in it
    /// is caught and goes no further.
    pub fn log(mut self, level: LogLevel, sink: impl Fn(LogLevel, &str, &str) + Send + Sync + 'static) -> Self {
        self.raw.log_level = level.number();
        self.sink = Some(Box::new(sink));
        self
    }

    /// Makes the runtime. Threads start when they are first needed. Errors: `InvalidArgument` for values out of range.
    pub fn create(self) -> Result<Runtime> {
        let mut raw = self.raw;
        let user = self.sink.map(|sink| Box::into_raw(Box::new(sink)));
        if let Some(user) = user {
            raw.log = Some(pass_on);
            raw.log_user = user.cast();
            raw.log_user_free = Some(forget);
        }
        // SAFETY: the options outlive the call; `user` is a Sink until `forget` is called with it.
        let made = unsafe { Handle::create(|out| sys::dtg_runtime_create(&raw, out)) };
        if let (Err(_), Some(user)) = (&made, user) {
            // SAFETY: on failure log_user_free is not called (dtg/runtime.h), so the sink is still ours.
            drop(unsafe { Box::from_raw(user) });
        }
        made.map(|handle| Runtime(Some(handle)))
    }
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeOptions").field("options", &self.raw).field("log", &self.sink.is_some()).finish()
    }
}

/// One line from C to the sink. Nothing may unwind into C.
unsafe extern "C" fn pass_on(user: *mut c_void, level: i32, component: *const c_char, message: *const c_char) {
    let line = || {
        // SAFETY: `user` is the Sink of RuntimeOptions::create; the texts end with NUL and live for this call.
        let (sink, component, message) = unsafe { (&*user.cast::<Sink>(), CStr::from_ptr(component), CStr::from_ptr(message)) };
        sink(LogLevel::of(level), &component.to_string_lossy(), &in_rust(&message.to_string_lossy()));
    };
    contained(line);
}

unsafe extern "C" fn forget(user: *mut c_void) {
    // SAFETY: called once, with the Sink of RuntimeOptions::create. What it captured may panic when dropped.
    contained(|| drop(unsafe { Box::from_raw(user.cast::<Sink>()) }));
}

/// Compute threads, op table and log. `Runtime::default()` is the default runtime of the process; others stand beside it and share
/// nothing with it. Cloning gives another reference.
#[derive(Clone, Default)]
pub struct Runtime(Option<Handle<sys::dtg_runtime>>);

impl Runtime {
    pub(crate) fn raw(&self) -> *mut sys::dtg_runtime {
        self.0.as_ref().map_or(null_mut(), Handle::raw)
    }

    /// Compute threads, the caller of a synchronous run included; 0 for the default runtime, of which the library does not tell it.
    pub fn threads(&self) -> i32 {
        // SAFETY: an open runtime or NULL.
        unsafe { sys::dtg_runtime_threads(self.raw()) }
    }

    /// The op table as JSON.
    pub fn ops_json(&self) -> Result<String> {
        // SAFETY: an open runtime or NULL.
        unsafe { string(|out| sys::dtg_ops_json(self.raw(), out)) }
    }

    /// The runtime's numbers in Prometheus' text format 0.0.4.
    pub fn metrics(&self) -> Result<String> {
        // SAFETY: an open runtime or NULL.
        unsafe { string(|out| sys::dtg_runtime_metrics(self.raw(), out)) }
    }

    /// Gives the system what lies idle: the blocks that runs worked in, and freed tensors. For programs that pause for long.
    pub fn trim(&self) -> Result<()> {
        // SAFETY: an open runtime or NULL.
        unsafe { check(sys::dtg_runtime_trim(self.raw())) }
    }

    /// Begins to record what each thread executes.
    pub fn trace_start(&self) -> Result<()> {
        // SAFETY: an open runtime or NULL.
        unsafe { check(sys::dtg_runtime_trace_start(self.raw())) }
    }

    /// Stops recording and gives it as Chrome trace JSON, which Perfetto opens.
    pub fn trace_stop(&self) -> Result<String> {
        // SAFETY: an open runtime or NULL.
        unsafe { string(|out| sys::dtg_runtime_trace_stop(self.raw(), out)) }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Runtime" } else { "Runtime(default)" })
    }
}

/// The version of the library that is loaded, `"0.1.0"`.
pub fn version() -> &'static str {
    // SAFETY: a static text.
    unsafe { CStr::from_ptr(sys::dtg_version()) }.to_str().unwrap_or_default()
}

/// The version of the C ABI that is loaded: major and minor.
#[inline]
pub fn abi_version() -> (u32, u32) {
    // SAFETY: takes nothing, touches nothing.
    let version = unsafe { sys::dtg_abi_version() };
    (version >> 16, version & 0xffff)
}

/// Whether the library was built with a feature: `"cpu"`, `"cuda"`, `"tls"`.
pub fn has_feature(name: &str) -> bool {
    // SAFETY: a text that ends with NUL.
    std::ffi::CString::new(name).is_ok_and(|name| unsafe { sys::dtg_has_feature(name.as_ptr()) } == 1)
}

/// Objects of the library that are alive in this process, for leak checks in tests.
pub fn live_handles() -> usize {
    // SAFETY: takes nothing.
    unsafe { sys::dtg_live_handles() }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::sync::{Arc, Mutex};

    use super::{LogLevel, Sink, forget, pass_on};

    /// As C calls it: a line goes to the sink, a panic goes no further, and what the sink holds is freed.
    #[test]
    fn a_line_goes_to_the_sink_and_a_panic_no_further() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let sink: Sink = Box::new(move |level, component, message| {
            assert_ne!(message, "worse");
            if let Ok(mut lines) = kept.lock() {
                lines.push(format!("{level:?} {component}: {message}"));
            }
        });
        let user: *mut c_void = Box::into_raw(Box::new(sink)).cast();
        // SAFETY: a Sink as RuntimeOptions::create makes it, texts that end with NUL; given back once.
        unsafe {
            pass_on(user, LogLevel::Warn.number(), c"net".as_ptr(), c"gone".as_ptr());
            pass_on(user, LogLevel::Error.number(), c"net".as_ptr(), c"worse".as_ptr());
            pass_on(user, 77, c"net".as_ptr(), c"back".as_ptr());
            forget(user);
        }
        assert_eq!(
            lines.lock().ok().map(|lines| lines.clone()),
            Some(vec!["Warn net: gone".to_owned(), "Error net: back".to_owned()])
        );
        assert_eq!(Arc::strong_count(&lines), 1, "the sink was not freed");
    }
}
