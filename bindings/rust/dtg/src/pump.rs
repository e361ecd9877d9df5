//! The ends of asynchronous runs: one completion queue for all of them, and one thread that takes ends out of it and wakes who waits.
//! Both are there only while there are runs: the queue goes with the last one, the thread a little later. Any thread may call in; no
//! lock is held while the library waits or a task is woken.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, check, contained};
use crate::handle::Handle;

type Queue = Handle<sys::dtg_cq>;

/// How long the thread stays when there is nothing to do.
const LINGER: Duration = Duration::from_secs(5);
/// Ends that are taken out at once.
const BATCH: usize = 32;

/// The end of one run, for its future.
#[derive(Default)]
pub(crate) struct End(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Open,
    Awaited(Waker),
    There(Result<()>),
    Taken,
}

impl End {
    pub(crate) fn is_there(&self) -> bool {
        matches!(*lock(&self.0), State::There(_) | State::Taken)
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, State::Taken) {
            State::There(end) => Poll::Ready(end),
            State::Taken => Poll::Ready(Err(Error::found(ErrorKind::FailedPrecondition, "the end of a run was asked for twice"))),
            State::Awaited(waker) if waker.will_wake(context.waker()) => {
                *state = State::Awaited(waker);
                Poll::Pending
            }
            State::Open | State::Awaited(_) => {
                *state = State::Awaited(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The end has come; whom to wake.
    fn arrive(&self, end: Result<()>) -> Option<Waker> {
        match std::mem::replace(&mut *lock(&self.0), State::There(end)) {
            State::Awaited(waker) => Some(waker),
            _ => None,
        }
    }
}

/// All runs that have not ended.
struct Pump {
    queue: Option<Arc<Queue>>,
    runs: Option<HashMap<u64, Arc<End>>>,
    next_tag: u64,
    /// Runs that were started, less ends that were taken. For a moment below zero, where an end is taken before its start is counted.
    open: i64,
    thread: bool,
}

static PUMP: Mutex<Pump> = Mutex::new(Pump { queue: None, runs: None, next_tag: 0, open: 0, thread: false });
static WORK: Condvar = Condvar::new();

/// A panic elsewhere leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pump {
    /// The queue goes when nobody is waited for. What is given back is to be dropped with nothing locked.
    fn rest(&mut self) -> Option<Arc<Queue>> {
        let idle = self.open == 0 && self.runs.as_ref().is_none_or(HashMap::is_empty);
        if idle { self.queue.take() } else { None }
    }
}

/// Starts a run with a queue and a tag to announce its end, and gives what `start` made and the end to come.
pub(crate) fn announce<T>(start: impl FnOnce(*mut sys::dtg_cq, u64) -> Result<T>) -> Result<(T, Arc<End>)> {
    let end = Arc::new(End::default());
    let (queue, tag) = enter(&end)?;
    let started = start(queue.raw(), tag);
    drop(queue);
    let mut pump = lock(&PUMP);
    match started {
        Ok(started) => {
            pump.open += 1;
            let idle = pump.rest(); // its end may have been taken already
            drop(pump);
            drop(idle);
            WORK.notify_one();
            Ok((started, end))
        }
        Err(error) => {
            pump.runs.get_or_insert_default().remove(&tag);
            let queue = pump.rest();
            drop(pump);
            drop(queue);
            Err(error)
        }
    }
}

/// Registers a run before it starts, for its end may come at once.
fn enter(end: &Arc<End>) -> Result<(Arc<Queue>, u64)> {
    let mut pump = lock(&PUMP);
    let queue = match &pump.queue {
        Some(queue) => queue.clone(),
        None => {
            // SAFETY: writes a queue that is ours on success. It waits for nothing, so the lock may be held.
            let queue = Arc::new(unsafe { Handle::create(|out| sys::dtg_cq_create(out)) }?);
            pump.queue.insert(queue).clone()
        }
    };
    if !pump.thread {
        let thread = thread::Builder::new().name("dtg-pump".into()).spawn(work);
        if let Err(error) = thread {
            let idle = pump.rest();
            drop(pump);
            drop((queue, idle));
            return Err(Error::found(
                ErrorKind::ResourceExhausted,
                format!("start the thread that waits for the ends of runs: {error}"),
            ));
        }
        pump.thread = true;
    }
    let tag = pump.next_tag;
    pump.next_tag += 1;
    pump.runs.get_or_insert_default().insert(tag, end.clone());
    Ok((queue, tag))
}

/// The thread.
fn work() {
    loop {
        let mut pump = lock(&PUMP);
        while pump.open <= 0 {
            let (next, waited) = WORK.wait_timeout(pump, LINGER).unwrap_or_else(PoisonError::into_inner);
            pump = next;
            // Nobody between enter() and the count of its start relies on this thread then.
            if waited.timed_out() && pump.open == 0 && pump.runs.as_ref().is_none_or(HashMap::is_empty) {
                pump.thread = false;
                return;
            }
        }
        let Some(queue) = pump.queue.clone() else { continue };
        drop(pump);
        take(queue);
    }
}

/// Waits for ends, and wakes those who wait for them.
fn take(queue: Arc<Queue>) {
    let mut events = [sys::dtg_completion { tag: 0, error: std::ptr::null_mut() }; BATCH];
    let mut count = 0;
    // SAFETY: an open queue, and room for BATCH events of this size.
    let waited = unsafe {
        check(sys::dtg_cq_next(
            queue.raw(),
            events.as_mut_ptr(),
            size_of::<sys::dtg_completion>(),
            BATCH,
            sys::DTG_INFINITE,
            &mut count,
        ))
    };
    // Only in a forked child does this fail, and there this thread does not exist.
    if waited.is_err() {
        return;
    }
    // SAFETY: the error of a completion belongs to who receives it.
    let ends: Vec<_> = events.iter().take(count).map(|event| (event.tag, unsafe { check(event.error) })).collect();
    let mut pump = lock(&PUMP);
    let mut arrived = Vec::with_capacity(ends.len());
    for (tag, result) in ends {
        pump.open -= 1;
        if let Some(end) = pump.runs.get_or_insert_default().remove(&tag) {
            arrived.push((end, result));
        }
    }
    let idle = pump.rest();
    drop(pump);
    // Before anyone is woken: who waited for the last run finds nothing left behind.
    drop((queue, idle));
    for (end, result) in arrived {
        if let Some(waker) = end.arrive(result) {
            // An executor that panics must not take the ends of other runs with it.
            contained(|| waker.wake());
        }
    }
}
