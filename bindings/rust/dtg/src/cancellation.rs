//! Ending calls from another thread. Shared: any thread.

use std::fmt;

use dtg_sys as sys;

use crate::error::Result;
use crate::handle::Handle;

/// The wish that calls end, for calls that wait on one thread while another one decides. Clone it, give it to any number of calls
/// ([`crate::Request::cancelled_by`], [`crate::Callable::cancelled_by`]), and [`Cancellation::cancel`] ends them with `Cancelled`. It is
/// used once: calls that are given it afterwards are refused, so make one per request. Futures need none: dropping a [`crate::Run`]
/// cancels it.
///
/// ```
/// use dtg::{Cancellation, ErrorKind, Graph, Session};
///
/// let graph = Graph::new()?;
/// let value = graph.scalar(2.0f32)?;
/// let session = Session::connect("local", &graph)?;
/// let cancellation = Cancellation::new()?;
/// let other = cancellation.clone();
/// std::thread::spawn(move || other.cancel()).join().unwrap();
/// let refused = session.run().fetch(value).cancelled_by(&cancellation).call().unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Cancelled);
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Clone)]
pub struct Cancellation(Handle<sys::dtg_cancellation>);

impl Cancellation {
    /// One that was not used yet. Errors: `ResourceExhausted`.
    pub fn new() -> Result<Self> {
        // SAFETY: writes a cancellation that is ours on success.
        unsafe { Handle::create(|out| sys::dtg_cancellation_create(out)) }.map(Self)
    }

    /// Ends the calls that were given it, soon, unless they end by themselves first. Does not wait for them. Any number of times.
    pub fn cancel(&self) {
        // SAFETY: an open cancellation.
        unsafe { sys::dtg_cancellation_cancel(self.raw()) }
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_cancellation {
        self.0.raw()
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancellation")
    }
}
