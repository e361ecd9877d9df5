//! Errors: what C reports, copied out and released at once. Immutable values; any thread.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::panic::Location;

use dtg_sys as sys;

use crate::words::WORDS_OF_C;

/// What every fallible call of this crate gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:ident,)*) => {
        /// Why a call failed: the codes that TensorFlow, Abseil and gRPC share. Code that meets a kind it does not know treats it
        /// as [`ErrorKind::Unknown`]; the number itself is in [`Error::code`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $name,)* }

        impl ErrorKind {
            /// The number of the code.
            pub fn code(self) -> i32 {
                match self { $(Self::$name => sys::$number,)* }
            }

            fn of(code: i32) -> Self {
                match code { $(sys::$number => Self::$name,)* _ => Self::Unknown }
            }
        }
    };
}

kinds! {
    /// The run was cancelled, or the session closed under it.
    Cancelled = DTG_CANCELLED,
    /// A code that this crate does not know.
    Unknown = DTG_UNKNOWN,
    /// An argument is wrong whatever the state: a type, a shape, a name, a closed handle.
    InvalidArgument = DTG_INVALID_ARGUMENT,
    /// The time that was given is over.
    DeadlineExceeded = DTG_DEADLINE_EXCEEDED,
    /// No op, node, file or variable of that name.
    NotFound = DTG_NOT_FOUND,
    /// It is there already, and is not overwritten.
    AlreadyExists = DTG_ALREADY_EXISTS,
    /// Not for this caller.
    PermissionDenied = DTG_PERMISSION_DENIED,
    /// Memory, descriptors, or a bound of the library.
    ResourceExhausted = DTG_RESOURCE_EXHAUSTED,
    /// Right at another time: a variable without value, a closed session.
    FailedPrecondition = DTG_FAILED_PRECONDITION,
    /// Broken off by a failure elsewhere; may be tried again.
    Aborted = DTG_ABORTED,
    /// Past the end.
    OutOfRange = DTG_OUT_OF_RANGE,
    /// Not in this library; the message says what there is.
    Unimplemented = DTG_UNIMPLEMENTED,
    /// A bug in the library.
    Internal = DTG_INTERNAL,
    /// The peer is not there now; may be tried again.
    Unavailable = DTG_UNAVAILABLE,
    /// A file or message that is cut or damaged.
    DataLoss = DTG_DATA_LOSS,
    /// A wrong key.
    Unauthenticated = DTG_UNAUTHENTICATED,
}

impl ErrorKind {
    /// `"INVALID_ARGUMENT"` and so on.
    pub fn name(self) -> &'static str {
        name_of(self.code())
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What went wrong: a kind to decide by, a line to read, and where it happened as far as the library knows.
///
/// ```
/// use dtg::{ErrorKind, Graph};
///
/// let graph = Graph::new()?;
/// let error = graph.node("MatMull").build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.message().contains("MatMul"), "{error}"); // it suggests the closest name
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    code: i32,
    message: String,
    node: String,
    task: String,
    peer: String,
    phase: String,
    placed: bool, // the message names a place in the program, or is the program's own
}

impl Error {
    /// An error of the program's own, for closures that the library calls; it comes out again where their call ends.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut own = Self::found(kind, message);
        own.0.placed = true;
        own
    }

    /// An error that this crate finds by itself.
    pub(crate) fn found(kind: ErrorKind, message: impl Into<String>) -> Self {
        let empty = String::new;
        Self(Box::new(Parts {
            code: kind.code(),
            message: message.into(),
            node: empty(),
            task: empty(),
            peer: empty(),
            phase: empty(),
            placed: false,
        }))
    }

    /// Copies what C says and releases it.
    ///
    /// # Safety
    /// `raw` is a dtg_error that the caller owns.
    pub(crate) unsafe fn take(raw: *mut sys::dtg_error) -> Self {
        // SAFETY: the error is alive until it is released below, and so are the texts that it lends; the caller gave it away.
        unsafe {
            let parts = Parts {
                code: sys::dtg_error_code(raw),
                message: in_rust(&text(sys::dtg_error_message(raw, std::ptr::null_mut()))),
                node: text(sys::dtg_error_node(raw)),
                task: text(sys::dtg_error_task(raw)),
                peer: text(sys::dtg_error_peer(raw)),
                phase: text(sys::dtg_error_phase(raw)),
                placed: false,
            };
            sys::dtg_error_release(raw);
            Self(Box::new(parts))
        }
    }

    /// The same failure, seen from one place further out.
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The same failure, with where in the program the call stands that it is of, and `what` it did there; unless that is known already, or
    /// the place is one of this crate's: then whoever called knows better.
    pub(crate) fn at(mut self, what: &str, location: &Location<'_>) -> Self {
        if self.0.placed || is_ours(location) {
            return self;
        }
        self.0.placed = true;
        let place = format!("at {}:{}", location.file(), location.line());
        if self.0.message.contains(&place) {
            return self;
        }
        self.within(format!("{what} {place}").trim_start())
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::of(self.0.code)
    }

    /// The number of the code, also where [`ErrorKind`] has no name for it.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// What was attempted, on what, what was found and what to try, in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The graph node that failed.
    pub fn node(&self) -> Option<&str> {
        some(&self.0.node)
    }

    /// The task that found the failure, `/job:ps/replica:0/task:0`.
    pub fn task(&self) -> Option<&str> {
        some(&self.0.task)
    }

    /// The other end of the connection that failed, or the first of those that were waited for.
    pub fn peer(&self) -> Option<&str> {
        some(&self.0.peer)
    }

    /// When it failed: `build` (a node was added), `place` (a device was chosen), `prepare` (a run was planned), `feed`, `run` (also a
    /// collective), `connect` (a task was looked for), `listen` (a server took its address), `recover` (state or training after a loss),
    /// `wait` ([`Model::wait_ready`](crate::Model::wait_ready)), `meet` (a barrier), `form` (a group), `schedule` (closures of a
    /// coordinator), `save` and `restore` (checkpoints), `ask` (a status, an outcome, a reset) or `end` (of a session, a server or the job).
    /// New ones may come. `DeadlineExceeded`, `Aborted` and `Unavailable` from the library always have one, and a task, a peer or both.
    pub fn phase(&self) -> Option<&str> {
        some(&self.0.phase)
    }
}

/// A message of the library without the words of C. What stands between quotes is the program's own and stays.
pub(crate) fn in_rust(message: &str) -> String {
    let ours = |part: &str| WORDS_OF_C.iter().fold(part.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours));
    let parts: Vec<_> =
        message.split('"').enumerate().map(|(i, part)| if i % 2 == 0 { ours(part) } else { part.to_owned() }).collect();
    parts.join("\"")
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", name_of(self.0.code), self.0.message)
    }
}

// What `main` prints of an error that it returns is this: the same line for a reader. `{:#?}` shows the parts.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind()).field("message", &self.0.message);
        for (name, value) in [("node", self.node()), ("task", self.task()), ("peer", self.peer()), ("phase", self.phase())] {
            if let Some(value) = value {
                out.field(name, &value);
            }
        }
        out.finish()
    }
}

impl std::error::Error for Error {}

/// The name of a code.
fn name_of(code: i32) -> &'static str {
    // SAFETY: takes any number and answers with a static text.
    unsafe { CStr::from_ptr(sys::dtg_code_name(code)) }.to_str().unwrap_or("UNKNOWN")
}

/// A copy of a text that C lends; bytes that are no UTF-8 are replaced, NULL is "".
///
/// # Safety
/// `text` is NULL or ends with NUL.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller says so.
    unsafe { borrowed(text) }.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A text that C lends.
///
/// # Safety
/// `text` is NULL or ends with NUL, and lives for 'a.
pub(crate) unsafe fn borrowed<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller says so.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// The end of a call that can fail.
///
/// # Safety
/// `raw` is what such a call answered.
pub(crate) unsafe fn check(raw: *mut sys::dtg_error) -> Result<()> {
    if raw.is_null() {
        Ok(())
    } else {
        // SAFETY: not NULL, so it is an error that the caller owns.
        Err(unsafe { Error::take(raw) })
    }
}

/// The end of a call that builds: as [`check`], but an error names the line that called. Functions from here out to the one that the program
/// calls are `#[track_caller]`; closures cannot be, and what comes out of one goes through [`placed`].
///
/// # Safety
/// As for [`check`].
#[track_caller]
pub(crate) unsafe fn built(raw: *mut sys::dtg_error) -> Result<()> {
    // SAFETY: the caller says so.
    placed(unsafe { check(raw) })
}

/// The same with what was made.
#[track_caller]
pub(crate) fn placed<T>(made: Result<T>) -> Result<T> {
    let location = Location::caller();
    made.map_err(|error| error.at("", location))
}

/// Whether a place is in the sources of this crate.
fn is_ours(location: &Location<'_>) -> bool {
    let folder = file!().trim_end_matches("error.rs");
    location.file().strip_prefix(folder).is_some_and(|file| !file.contains('/'))
}

/// Calls what belongs to the program from a place that has nobody to hand a panic to. The panic hook has told about it. What was thrown
/// is not dropped: that could panic too.
pub(crate) fn contained(f: impl FnOnce()) {
    if let Err(thrown) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        std::mem::forget(thrown);
    }
}
