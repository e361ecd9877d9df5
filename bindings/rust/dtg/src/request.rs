//! One run being put together: what is fed, fetched and done. Then it is called, which takes one crossing into the library, or
//! started, which gives a future.

use std::ptr::{null, null_mut};
use std::time::Duration;

use dtg_sys as sys;

use crate::cancellation::Cancellation;
use crate::error::{Error, ErrorKind, Result, check};
use crate::graph::Value;
use crate::handle::{Handle, or_default};
use crate::outputs::Outputs;
use crate::run::Run;
use crate::session::Session;
use crate::tensor::Tensor;

/// A run to be: `session.run().feed(x, &tensor).fetch(loss).target(train).call()`.
#[derive(Debug)]
#[must_use = "a run happens by call() or start()"]
pub struct Request<'a> {
    session: &'a Session,
    feeds: Vec<Value>,
    tensors: Vec<&'a Tensor>,
    fetches: Vec<Value>,
    into: Vec<Option<&'a mut Tensor>>,
    targets: Vec<Value>,
    timeout: Option<Duration>,
    cancellation: Option<&'a Cancellation>,
    write: Option<&'a mut u64>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(session: &'a Session) -> Self {
        Self {
            session,
            feeds: Vec::new(),
            tensors: Vec::new(),
            fetches: Vec::new(),
            into: Vec::new(),
            targets: Vec::new(),
            timeout: None,
            cancellation: None,
            write: None,
        }
    }

    /// Feeds a value. Any value may be fed, which cuts what would compute it.
    pub fn feed(mut self, value: Value, tensor: &'a Tensor) -> Self {
        self.feeds.push(value);
        self.tensors.push(tensor);
        self
    }

    /// Fetches a value into a new tensor, the next of the [`Outputs`].
    pub fn fetch(mut self, value: Value) -> Self {
        self.fetches.push(value);
        self.into.push(None);
        self
    }

    /// Fetches a value into a tensor that is there, whose type and shape must fit; it is not among the [`Outputs`]. Only for `call`. When
    /// the run fails, the tensor may hold anything.
    pub fn fetch_into(mut self, value: Value, tensor: &'a mut Tensor) -> Self {
        self.fetches.push(value);
        self.into.push(Some(tensor));
        self
    }

    /// Runs a node whose outputs are not wanted, such as a training step.
    pub fn target(mut self, node: Value) -> Self {
        self.targets.push(node);
        self
    }

    /// The deadline of this run. Default: the session's. With zero no time is left: nothing runs, and that is `DeadlineExceeded`.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// What ends this run when another thread cancels it. Only for `call`; a run that was started is cancelled by itself.
    pub fn cancelled_by(mut self, cancellation: &'a Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Gives `number` the number by which the cluster knows what this run updates, also where the run fails: [`Session::outcome`] asks by it
    /// what took place. Where it is not 0, this run repeats that earlier one of the session, and what took place of it is not made again.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use dtg::{ErrorKind, Session, Value};
    /// # fn step(session: &Session, train: Value) -> dtg::Result<()> {
    /// let mut number = 0;
    /// let mut made = session.run().target(train).write(&mut number).call();
    /// while made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
    ///     std::thread::sleep(Duration::from_secs(1));
    ///     made = session.run().target(train).write(&mut number).call(); // has its updates made once, however often it is repeated
    /// }
    /// made.map(drop)
    /// # }
    /// ```
    ///
    /// Only runs that update variables of other tasks, and nothing of their own, can be repeated; one that puts into a queue or an accumulator,
    /// or fetches what an update gives, is then refused with `FailedPrecondition`. A number that this session has not made is
    /// `InvalidArgument`.
    pub fn write(mut self, number: &'a mut u64) -> Self {
        self.write = Some(number);
        self
    }

    /// A brief run can end before anybody looks at the clock; without any time it does not begin.
    fn in_time(&self) -> Result<()> {
        if self.timeout.is_some_and(|time| time.is_zero()) { Err(late()) } else { Ok(()) }
    }

    fn args(&mut self, tensors: &[*const sys::dtg_tensor]) -> sys::dtg_run_args {
        sys::dtg_run_args {
            feeds: Value::raw(&self.feeds),
            feed_tensors: tensors.as_ptr(),
            num_feeds: self.feeds.len(),
            fetches: Value::raw(&self.fetches),
            num_fetches: self.fetches.len(),
            targets: Value::raw(&self.targets),
            num_targets: self.targets.len(),
            timeout_ns: or_default(self.timeout),
            cancellation: self.cancellation.map_or(null_mut(), Cancellation::raw),
            write: self.write.as_deref_mut().map_or(null_mut(), std::ptr::from_mut),
            ..sys::dtg_run_args::INIT
        }
    }

    /// Runs on the calling thread, with the runtime's threads helping, and returns when everything has ended. Errors: `InvalidArgument`
    /// (nothing asked for, an unfed placeholder, wrong type or shape, a value fed twice or both fed and fetched), `Unimplemented` (no
    /// kernel), `FailedPrecondition` (a variable without value, a closed session), `DeadlineExceeded`, `Cancelled`, `OutOfRange` (end of
    /// a queue), or what the op that failed says; the error names the node.
    pub fn call(mut self) -> Result<Outputs> {
        self.in_time()?;
        let mut fetched = Vec::with_capacity(self.into.len());
        for tensor in &mut self.into {
            fetched.push(match tensor {
                Some(tensor) => {
                    tensor.require_writable("fetch into")?;
                    tensor.raw()
                }
                None => null_mut(),
            });
        }
        let tensors: Vec<_> = self.tensors.iter().map(|tensor| tensor.raw().cast_const()).collect();
        let args = sys::dtg_run_args { fetched: fetched.as_mut_ptr(), ..self.args(&tensors) };
        // SAFETY: an open session; arrays of open handles with their lengths, borrowed until the run has ended, which it has when the
        // call returns; the tensors that are written belong to this request alone.
        unsafe { check(sys::dtg_session_run(self.session.raw(), &args)) }?;
        let new = fetched.into_iter().zip(&self.into).filter(|(_, into)| into.is_none());
        // SAFETY: the run succeeded, so every entry that was NULL holds a tensor that is ours.
        Ok(Outputs::new(new.filter_map(|(tensor, _)| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt).collect()))
    }

    /// Starts a run that no thread waits for; see [`Run`]. A run that waits for nobody and takes no more than some ten microseconds, as
    /// such runs did before, is made at once on this thread, and the future is ready when it is first polled: to hand it over and to be
    /// woken again would take ten times as long. Others go to the runtime's threads, and this returns at once; the tensors that are fed
    /// are shared with them and cannot be written any more. Errors: those found before the run starts.
    pub fn start(mut self) -> Result<Run> {
        if self.into.iter().any(Option::is_some) {
            return Err(Error::found(
                ErrorKind::InvalidArgument,
                "start a run with fetch_into: it could end after the tensor is gone; use fetch, or call() instead of start()",
            ));
        }
        if self.cancellation.is_some() {
            return Err(Error::found(
                ErrorKind::InvalidArgument,
                "start a run with a cancellation: only call() takes one; cancel the run itself, or drop it",
            ));
        }
        self.in_time()?;
        if let Some(run) = self.make_if_brief()? {
            return Ok(run);
        }
        let tensors: Vec<_> = self.tensors.iter().map(|tensor| tensor.share().cast_const()).collect();
        let args = self.args(&tensors);
        debug_assert!(args.fetched == null::<*mut sys::dtg_tensor>().cast_mut());
        Run::start(self.fetches.len(), |cq, tag, out| {
            // SAFETY: an open session and queue; arrays of open handles with their lengths. The library holds the tensors itself.
            unsafe { sys::dtg_session_run_async(self.session.raw(), &args, cq, tag, out) }
        })
    }

    /// The run, over, where it is so brief that it was made; an error of its own is the run's, any other one this function's.
    fn make_if_brief(&mut self) -> Result<Option<Run>> {
        let mut fetched = vec![null_mut(); self.fetches.len()];
        let tensors: Vec<_> = self.tensors.iter().map(|tensor| tensor.raw().cast_const()).collect();
        let args = sys::dtg_run_args { fetched: fetched.as_mut_ptr(), ..self.args(&tensors) };
        let mut ran = 0;
        // SAFETY: as in call().
        let made = unsafe { check(sys::dtg_session_run_if_brief(self.session.raw(), &args, &mut ran)) };
        if ran == 0 {
            return made.map(|()| None);
        }
        // SAFETY: the run succeeded, so every entry holds a tensor that is ours.
        let tensors = || fetched.into_iter().filter_map(|tensor| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt);
        Ok(Some(Run::over(made.map(|()| Outputs::new(tensors().collect())))))
    }
}

pub(crate) fn late() -> Error {
    Error::found(ErrorKind::DeadlineExceeded, "run: its timeout is zero, so no time is left; nothing has run".to_owned())
}
