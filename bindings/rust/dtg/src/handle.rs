//! Handles of the C ABI: who releases them, and which threads may use them. The whole thread table of `dtg/base.h` stands here, once
//! per type; the public types get Send and Sync from their handle by themselves.

use std::ffi::c_char;
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, check};

/// A counted object of the C ABI.
///
/// # Safety
/// `release` drops one reference to an object of this very type.
pub(crate) unsafe trait Object {
    /// Drops the reference that the caller gives up.
    unsafe fn release(object: *mut Self);
}

/// An object that several owners may hold at once.
///
/// # Safety
/// `retain` adds one reference to an object of this very type, which is shared between threads.
pub(crate) unsafe trait Shared: Object {
    /// Adds a reference for the caller.
    unsafe fn retain(object: *mut Self);
}

/// One reference to an object, dropped with it.
pub(crate) struct Handle<T: Object>(NonNull<T>);

impl<T: Object> Handle<T> {
    /// Makes an object by a function of the ABI that writes it to its last argument.
    ///
    /// # Safety
    /// When `make` answers NULL it has written an object that the caller owns.
    pub(crate) unsafe fn create(make: impl FnOnce(*mut *mut T) -> *mut sys::dtg_error) -> Result<Self> {
        agreed()?;
        let mut object = null_mut();
        // SAFETY: the answer of a function of the ABI.
        unsafe { check(make(&mut object)) }?;
        // SAFETY: `make` has written an object that is ours.
        unsafe { Self::adopt(object) }
            .ok_or_else(|| Error::found(ErrorKind::Internal, "libdtg reported success and gave no object; please report it"))
    }

    /// Takes over a reference; None for NULL.
    ///
    /// # Safety
    /// `object` is NULL or a reference that the caller gives away.
    pub(crate) unsafe fn adopt(object: *mut T) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours and nobody uses it after this.
        unsafe { T::release(self.raw()) }
    }
}

impl<T: Shared> Clone for Handle<T> {
    fn clone(&self) -> Self {
        // SAFETY: the object is alive, for we hold a reference. Only in a forked child is nothing added; there nothing is released either.
        unsafe { T::retain(self.raw()) };
        Self(self.0)
    }
}

/// Whether the library that is loaded speaks the ABI of the headers that this crate was made from. While the major version is 0, only
/// the same minor version does; afterwards every later one.
fn speaks(loaded: u32) -> bool {
    let (major, minor) = (loaded >> 16, loaded & 0xffff);
    let minor_fits = if major == 0 { minor == sys::DTG_VERSION_MINOR } else { minor >= sys::DTG_VERSION_MINOR };
    major == sys::DTG_VERSION_MAJOR && minor_fits
}

/// Looks at the version of the library once, at the first object.
pub(crate) fn agreed() -> Result<()> {
    static LOADED: OnceLock<u32> = OnceLock::new();
    // SAFETY: takes nothing, touches nothing.
    let loaded = *LOADED.get_or_init(|| unsafe { sys::dtg_abi_version() });
    if speaks(loaded) {
        return Ok(());
    }
    Err(Error::found(
        ErrorKind::FailedPrecondition,
        format!(
            "the libdtg that is loaded has version {}.{} of the C ABI, this program was built for {}.{}; install that one or rebuild",
            loaded >> 16,
            loaded & 0xffff,
            sys::DTG_VERSION_MAJOR,
            sys::DTG_VERSION_MINOR
        ),
    ))
}

macro_rules! objects {
    ($($object:ident: $release:ident,)*) => {$(
        // SAFETY: the release function of this type.
        unsafe impl Object for sys::$object {
            unsafe fn release(object: *mut Self) {
                // SAFETY: the caller gives a reference away.
                unsafe { sys::$release(object) }
            }
        }
    )*};
}

macro_rules! shared_objects {
    ($($object:ident: $retain:ident,)*) => {$(
        // SAFETY: the retain function of this type, which the thread table calls shared.
        unsafe impl Shared for sys::$object {
            unsafe fn retain(object: *mut Self) {
                // SAFETY: the caller holds a reference.
                unsafe { sys::$retain(object) };
            }
        }
    )*};
}

objects! {
    dtg_callable: dtg_callable_release,
    dtg_cancellation: dtg_cancellation_release,
    dtg_checkpoint: dtg_checkpoint_release,
    dtg_closure: dtg_closure_release,
    dtg_cluster: dtg_cluster_release,
    dtg_coordinator: dtg_coordinator_release,
    dtg_cq: dtg_cq_release,
    dtg_dataset: dtg_dataset_release,
    dtg_event_writer: dtg_event_writer_release,
    dtg_function: dtg_function_release,
    dtg_graph: dtg_graph_release,
    dtg_group: dtg_group_release,
    dtg_model: dtg_model_release,
    dtg_remote_value: dtg_remote_value_release,
    dtg_run: dtg_run_release,
    dtg_runtime: dtg_runtime_release,
    dtg_server: dtg_server_release,
    dtg_session: dtg_session_release,
    dtg_mesh: dtg_mesh_release,
    dtg_strategy: dtg_strategy_release,
    dtg_string: dtg_string_release,
    dtg_tensor: dtg_tensor_release,
    dtg_trainer: dtg_trainer_release,
    dtg_weights: dtg_weights_release,
}

shared_objects! {
    dtg_callable: dtg_callable_retain,
    dtg_cancellation: dtg_cancellation_retain,
    dtg_closure: dtg_closure_retain,
    dtg_cluster: dtg_cluster_retain,
    dtg_coordinator: dtg_coordinator_retain,
    dtg_cq: dtg_cq_retain,
    dtg_function: dtg_function_retain,
    dtg_group: dtg_group_retain,
    dtg_run: dtg_run_retain,
    dtg_runtime: dtg_runtime_retain,
    dtg_server: dtg_server_retain,
    dtg_session: dtg_session_retain,
    dtg_tensor: dtg_tensor_retain,
}

// ---- the thread table of dtg/base.h, convention 5 ----

// SAFETY: dtg/base.h lists dtg_callable as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_callable> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_callable> {}

// SAFETY: dtg/base.h lists dtg_cancellation as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_cancellation> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_cancellation> {}

// SAFETY: dtg/base.h lists dtg_coordinator as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_coordinator> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_coordinator> {}

// SAFETY: dtg/base.h lists dtg_closure as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_closure> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_closure> {}

// SAFETY: dtg/base.h lists dtg_remote_value as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_remote_value> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_remote_value> {}

// SAFETY: dtg/cluster.h: an immutable value, shared.
unsafe impl Send for Handle<sys::dtg_cluster> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_cluster> {}

// SAFETY: dtg/base.h lists dtg_cq as shared; dtg/session.h: several threads may wait.
unsafe impl Send for Handle<sys::dtg_cq> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_cq> {}

// SAFETY: dtg/function.h: a function that was ended does not change.
unsafe impl Send for Handle<sys::dtg_function> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_function> {}

// SAFETY: dtg/group.h: shared, any thread.
unsafe impl Send for Handle<sys::dtg_group> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_group> {}

// SAFETY: dtg/base.h lists dtg_run as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_run> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_run> {}

// SAFETY: dtg/base.h lists dtg_runtime as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_runtime> {}
// SAFETY: as above. The log sink that it holds is Send and Sync itself (runtime.rs asks for that).
unsafe impl Sync for Handle<sys::dtg_runtime> {}

// SAFETY: dtg/server.h uses servers from any thread: join on one while another stops it. Counted like all shared objects.
unsafe impl Send for Handle<sys::dtg_server> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_server> {}

// SAFETY: dtg/base.h lists dtg_session as shared: any thread, any time.
unsafe impl Send for Handle<sys::dtg_session> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_session> {}

// SAFETY: dtg/base.h lists dtg_string as shared, and it is immutable.
unsafe impl Send for Handle<sys::dtg_string> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_string> {}

// SAFETY: dtg/base.h lists dtg_tensor as shared, its contents read-only while runs use them; tensor.rs lends them for writing only to
// the one owner of a tensor that nobody else was given.
unsafe impl Send for Handle<sys::dtg_tensor> {}
// SAFETY: as above.
unsafe impl Sync for Handle<sys::dtg_tensor> {}

// SAFETY: dtg/base.h: dtg_graph is shared for reading and for running.
unsafe impl Send for Handle<sys::dtg_graph> {}
// SAFETY: as above. It is single while nodes are added or scopes change: graph.rs asks for &mut there, and there is one owner.
unsafe impl Sync for Handle<sys::dtg_graph> {}

// SAFETY: dtg/base.h lists dtg_model as single: one thread at a time, so it may move. Not Sync.
unsafe impl Send for Handle<sys::dtg_model> {}

// SAFETY: dtg/base.h lists dtg_dataset as single: one thread at a time, so it may move. Not Sync.
unsafe impl Send for Handle<sys::dtg_dataset> {}

// SAFETY: dtg/checkpoint.h: single, so it may move. Not Sync.
unsafe impl Send for Handle<sys::dtg_checkpoint> {}

// SAFETY: dtg/trainer.h: single, so it may move, with the model and the data sets that only its owner reaches. Not Sync.
unsafe impl Send for Handle<sys::dtg_trainer> {}

// SAFETY: dtg/base.h lists dtg_weights as single: one thread at a time, so it may move. Not Sync.
unsafe impl Send for Handle<sys::dtg_weights> {}

// SAFETY: dtg/base.h lists dtg_event_writer as single: one thread at a time, so it may move. Not Sync.
unsafe impl Send for Handle<sys::dtg_event_writer> {}

// ---- small things that all nouns need ----

/// The bytes of a string object.
pub(crate) fn bytes(string: &Handle<sys::dtg_string>) -> &[u8] {
    let mut length = 0;
    // SAFETY: the string is alive as long as the borrow, and immutable.
    unsafe {
        let data = sys::dtg_string_data(string.raw(), &mut length);
        std::slice::from_raw_parts(data.cast(), length)
    }
}

/// The text that a function of the ABI makes.
///
/// # Safety
/// As for [`Handle::create`].
pub(crate) unsafe fn string(make: impl FnOnce(*mut *mut sys::dtg_string) -> *mut sys::dtg_error) -> Result<String> {
    // SAFETY: the caller says so.
    let string = unsafe { Handle::create(make) }?;
    Ok(String::from_utf8_lossy(bytes(&string)).into_owned())
}

/// A time for C: nanoseconds, at least one (0 would mean the default), at most what fits.
pub(crate) fn nanoseconds(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).max(1)
}

/// A time for C, where None means the default.
pub(crate) fn or_default(time: Option<std::time::Duration>) -> i64 {
    time.map_or(0, nanoseconds)
}

/// A text for the few places where C wants one that ends with NUL.
pub(crate) fn c_string(text: impl AsRef<[u8]>, what: &str) -> Result<std::ffi::CString> {
    std::ffi::CString::new(text.as_ref()).map_err(|error| {
        let shown = String::from_utf8_lossy(text.as_ref());
        Error::found(
            ErrorKind::InvalidArgument,
            format!("{what} {shown:?} holds a NUL byte at {}; leave it out", error.nul_position()),
        )
    })
}

/// Several of them, as C takes them: pointers and their number, which hold as long as this lives.
#[derive(Default)]
pub(crate) struct Texts {
    _kept: Vec<std::ffi::CString>,
    pointers: Vec<*const std::ffi::c_char>,
}

impl Texts {
    pub(crate) fn new<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>, what: &str) -> Result<Self> {
        let kept = texts.into_iter().map(|text| c_string(text, what)).collect::<Result<Vec<_>>>()?;
        let pointers = kept.iter().map(|text| text.as_ptr()).collect();
        Ok(Self { _kept: kept, pointers })
    }

    pub(crate) fn as_ptr(&self) -> *const *const std::ffi::c_char {
        self.pointers.as_ptr()
    }

    /// NULL for none.
    pub(crate) fn or_null(&self) -> *const *const std::ffi::c_char {
        if self.pointers.is_empty() { null() } else { self.as_ptr() }
    }

    pub(crate) fn len(&self) -> usize {
        self.pointers.len()
    }
}

/// A text as the structs of C take it, with its length. An empty one is none, which is NULL: C refuses a text whose length is 0.
pub(crate) fn given(text: &[u8]) -> (*const c_char, usize) {
    if text.is_empty() { (null(), 0) } else { (text.as_ptr().cast(), text.len()) }
}

/// A text that may be left out. One that is said and empty was meant, and what should be in it forgotten, as by a variable of the environment
/// that is not set: it goes to C with its length of 0, which C refuses by the name of the field.
pub(crate) fn said(text: Option<&[u8]>) -> (*const c_char, usize) {
    text.map_or((null(), 0), |text| (text.as_ptr().cast(), text.len()))
}

/// The same of a name.
pub(crate) fn name_of(name: Option<&str>) -> (*const c_char, usize) {
    said(name.map(str::as_bytes))
}

/// The columns of a table that are to be read. A list without one is not all of them: it was filled, and nothing came of it.
pub(crate) fn columns(names: Option<&[&str]>) -> Result<Texts> {
    if names.is_some_and(<[_]>::is_empty) {
        let text = "columns is an empty list, which names no column to read; name some, or give None for all of them";
        return Err(Error::found(ErrorKind::InvalidArgument, text));
    }
    Texts::new(names.unwrap_or_default(), "the column")
}

#[cfg(test)]
mod tests {
    use super::{nanoseconds, speaks};

    #[test]
    fn only_the_same_minor_version_speaks_while_the_major_is_zero() {
        assert!(speaks(1)); // 0.1
        assert!(!speaks(0));
        assert!(!speaks(2));
        assert!(!speaks(1 << 16 | 1));
    }

    #[test]
    fn times_neither_vanish_nor_overflow() {
        assert_eq!(nanoseconds(std::time::Duration::ZERO), 1);
        assert_eq!(nanoseconds(std::time::Duration::MAX), i64::MAX);
        assert_eq!(nanoseconds(std::time::Duration::from_millis(2)), 2_000_000);
    }
}
