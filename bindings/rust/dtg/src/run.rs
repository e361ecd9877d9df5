//! Runs under way, as futures of any executor. A run belongs to one task at a time and may move between threads.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::outputs::Outputs;
use crate::pump::{self, End};
use crate::tensor::Tensor;

/// A run that no thread waits for. It is a future: `session.run().fetch(loss).start()?.await?`. Dropping it cancels the run and does
/// not wait for its end. [`Run::wait`] is for programs without an executor.
///
/// ```
/// use dtg::{Graph, Session};
///
/// async fn step(session: &Session, value: dtg::Value) -> dtg::Result<f32> {
///     session.run().fetch(value).start()?.await?.scalar(0)
/// }
///
/// let graph = Graph::new()?;
/// let value = graph.scalar(2.0f32)?;
/// let session = Session::connect("local", &graph)?;
/// let run = session.run().fetch(value).start()?; // or: executor.block_on(step(&session, value))
/// assert_eq!(run.wait()?.scalar::<f32>(0)?, 2.0);
/// # drop(step(&session, value));
/// # Ok::<(), dtg::Error>(())
/// ```
#[must_use = "a run that is dropped is cancelled"]
pub struct Run(Way);

enum Way {
    /// It has ended before anybody could ask; None once that was told.
    Over(Option<Result<Outputs>>),
    UnderWay {
        handle: Handle<sys::dtg_run>,
        end: Arc<End>,
        fetches: usize,
        taken: bool,
    },
}

impl Run {
    /// Starts a run by a function of the ABI that announces its end in a queue.
    pub(crate) fn start(
        fetches: usize,
        begin: impl FnOnce(*mut sys::dtg_cq, u64, *mut *mut sys::dtg_run) -> *mut sys::dtg_error,
    ) -> Result<Self> {
        // SAFETY: `begin` answers NULL only when it has written a handle that is ours.
        let (handle, end) = pump::announce(|cq, tag| unsafe { Handle::create(|out| begin(cq, tag, out)) })?;
        Ok(Self(Way::UnderWay { handle, end, fetches, taken: false }))
    }

    /// One that has ended so.
    pub(crate) fn over(result: Result<Outputs>) -> Self {
        Self(Way::Over(Some(result)))
    }

    /// Cancels the run: it ends soon with `Cancelled`, unless it ends by itself first. Any number of times.
    pub fn cancel(&self) {
        if let Way::UnderWay { handle, .. } = &self.0 {
            // SAFETY: an open run.
            unsafe { sys::dtg_run_cancel(handle.raw()) }
        }
    }

    /// Whether the run has ended, well or not.
    pub fn is_ended(&self) -> bool {
        match &self.0 {
            Way::Over(_) => true,
            Way::UnderWay { end, .. } => end.is_there(),
        }
    }

    /// Waits for the end on this thread.
    pub fn wait(self) -> Result<Outputs> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut run = self;
        loop {
            match Pin::new(&mut run).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }
}

/// The results of a run that has ended well.
fn take(run: &Handle<sys::dtg_run>, fetches: usize) -> Result<Outputs> {
    let mut tensors = Vec::with_capacity(fetches);
    for i in 0..fetches {
        // SAFETY: an open run, and a new tensor of ours on success.
        tensors.push(Tensor::adopt(unsafe { Handle::create(|out| sys::dtg_run_take_result(run.raw(), i, out)) }?));
    }
    Ok(Outputs::new(tensors))
}

impl Future for Run {
    type Output = Result<Outputs>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let again = || Error::found(ErrorKind::FailedPrecondition, "a run was polled again after it gave its result");
        match &mut self.0 {
            Way::Over(result) => Poll::Ready(result.take().unwrap_or_else(|| Err(again()))),
            Way::UnderWay { taken: true, .. } => Poll::Ready(Err(again())),
            Way::UnderWay { handle, end, fetches, taken } => {
                let Poll::Ready(ended) = end.poll(context) else { return Poll::Pending };
                *taken = true;
                Poll::Ready(ended.and_then(|()| take(handle, *fetches)))
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel(); // does nothing where the run has ended
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ended() { "Run(ended)" } else { "Run(under way)" })
    }
}
