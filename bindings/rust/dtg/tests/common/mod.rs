//! What the tests share: one test at a time in a process (the counter of live handles is the process's), no handle left behind, a
//! folder of the test's own, a small executor.
#![allow(dead_code)] // not every test needs everything

use std::future::Future;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use dtg::{Error, ErrorKind, Result};

/// A test's turn. At its end every handle must be gone.
pub struct World(#[allow(dead_code)] MutexGuard<'static, ()>);

pub fn world() -> World {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(dtg::live_handles(), 0, "an earlier test left handles behind");
    World(turn)
}

impl Drop for World {
    fn drop(&mut self) {
        // A run that was dropped holds the queue of ends until its own has come, which nobody waits for.
        let late = Instant::now() + Duration::from_secs(10);
        while dtg::live_handles() > 0 && Instant::now() < late && !thread::panicking() {
            thread::yield_now();
        }
        if !thread::panicking() {
            assert_eq!(dtg::live_handles(), 0, "handles left behind");
        }
    }
}

/// An empty folder, removed with this.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dtg-rust-{}-{name}", std::process::id()));
        // Sockets are only put where nobody else may enter.
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The error of a call that must fail with this kind, say something, and hold these words.
#[track_caller]
pub fn refused<T>(result: Result<T>, kind: ErrorKind, words: &str) -> Error {
    let Err(error) = result else { panic!("was accepted, but {kind} was expected") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().len() > 12, "{error}");
    assert!(error.message().contains(words), "{words:?} is not in: {error}");
    tells_where(&error);
    error
}

/// What others or the clock have caused tells a phase, and a task, a peer or both; but for what this crate refuses by itself.
pub fn tells_where(error: &Error) {
    if error.message().contains("its timeout is zero") {
        return;
    }
    if matches!(error.kind(), ErrorKind::DeadlineExceeded | ErrorKind::Aborted | ErrorKind::Unavailable) {
        assert!(error.phase().is_some() && (error.task().is_some() || error.peer().is_some()), "{error:#?}");
    }
}

/// The smallest executor: polls on this thread, parks in between.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls once.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
