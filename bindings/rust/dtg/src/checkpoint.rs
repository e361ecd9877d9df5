//! Checkpoints of training: sets of what it has come to, saved while it goes on, and going on from them. One thread at a time.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use dtg_sys as sys;

use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result, check};
use crate::handle::{Handle, given, or_default, said, string};
use crate::model::Model;
use crate::serving::names_json;
use crate::session::Session;

/// When to save and what to keep; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointOptions<'a> {
    /// How many sets to keep, the newest ones. 0: 3.
    pub keep: i32,
    /// Files per set. 0: as many as make none larger than 1 GiB, about.
    pub shards: i32,
    /// [`Checkpoint::reached`] saves at each multiple of that, or, while the save before is still written, at the first step after it. 0: not by
    /// steps.
    pub every_steps: i64,
    /// And when so much time has passed since the last save.
    pub every: Option<Duration>,
    /// A restore takes what fits and tells the rest; otherwise whatever does not fit is an error.
    pub partial: bool,
    /// What restored variables are called in the sets, as in [`RestoreOptions`](crate::RestoreOptions).
    pub names: &'a [(&'a str, &'a str)],
}

/// What became of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// How far training is, 0 for a start.
    pub step: i64,
    /// JSON: outcome, path, step, variables, passed_over, missing, extra, reshaped, notes. `report.parse::<RestoreReport>()` has them as fields.
    pub report: String,
}

/// The values of a model's variables in a session, kept as sets in a directory, together with where data sets stand. Those are inside:
/// [`Checkpoint::data`] lends them for reading.
///
/// ```no_run
/// # use dtg::{Checkpoint, CheckpointOptions, Dataset, Graph, Model, Session};
/// # fn train(model: &Model, session: &Session, data: Dataset) -> dtg::Result<()> {
/// let options = CheckpointOptions { every_steps: 500, ..Default::default() };
/// let mut sets = Checkpoint::open(model, session, "run/checkpoints", &options)?;
/// sets.add_data("train", data)?;
/// let mut step = sets.resume(model)?.step; // start, or go on
/// while let Some(batch) = sets.data("train")?.next_element()? {
///     // ... train on the batch ...
///     # drop(batch);
///     step += 1;
///     sets.reached(model, step)?;
/// }
/// # Ok(()) }
/// ```
pub struct Checkpoint {
    handle: Handle<sys::dtg_checkpoint>,
    /// Whose variables C looks at, by address: the calls borrow the model, so that no other thread can be building it.
    model: usize,
    /// With the address that C knows each by: `&mut Dataset` could be used to swap it for another.
    data: Vec<(String, Dataset, usize)>,
}

impl Checkpoint {
    /// Checkpoints of a model as it is in a session. Touches no file. Errors: `InvalidArgument`.
    pub fn open(model: &Model, session: &Session, directory: impl AsRef<Path>, options: &CheckpointOptions<'_>) -> Result<Self> {
        let bytes = directory.as_ref().as_os_str().as_bytes();
        let (directory, directory_len) = said(Some(bytes).filter(|bytes| !bytes.is_empty()));
        let names = names_json(options.names);
        let raw = sys::dtg_checkpoint_options {
            directory,
            directory_len,
            keep: options.keep,
            shards: options.shards,
            every_steps: options.every_steps,
            every_ns: or_default(options.every),
            partial: options.partial.into(),
            names: given(names.as_bytes()).0,
            names_len: names.len(),
            ..sys::dtg_checkpoint_options::INIT
        };
        let of = model.raw();
        // SAFETY: an open model and session, options whose text outlives the call.
        let handle = unsafe { Handle::create(|out| sys::dtg_checkpoint_open(of, session.raw(), &raw, out)) }?;
        Ok(Self { handle, model: of as usize, data: Vec::new() })
    }

    /// The handle for a call that uses model and data sets: only where they are those that C knows.
    fn raw(&self, model: &Model) -> Result<*mut sys::dtg_checkpoint> {
        let same = self.data.iter().all(|(_, data, home)| data.raw() as usize == *home);
        if model.raw() as usize == self.model && same {
            return Ok(self.handle.raw());
        }
        Err(Error::found(
            ErrorKind::FailedPrecondition,
            "a checkpoint was given another model than it was opened with, or one of its data sets was swapped for another",
        ))
    }

    /// Takes a data set, of which each set holds from now on where it stands, and a restore brings it there. It must have the stages, seeds
    /// and sources it had. Errors: `InvalidArgument`, `AlreadyExists`.
    pub fn add_data(&mut self, name: &str, data: Dataset) -> Result<()> {
        // SAFETY: an open checkpoint, borrowed mutably, a text with its length, an open data set, owned.
        unsafe { check(sys::dtg_checkpoint_add_data(self.handle.raw(), name.as_ptr().cast(), name.len(), data.raw())) }?;
        let home = data.raw() as usize;
        self.data.push((name.into(), data, home));
        Ok(())
    }

    /// The data set of that name, to read from. Errors: `NotFound`.
    pub fn data(&mut self, name: &str) -> Result<&mut Dataset> {
        let found = self.data.iter_mut().find(|(known, ..)| known == name).map(|(_, data, _)| data);
        found.ok_or_else(|| {
            Error::found(ErrorKind::NotFound, format!("the checkpoint has no data set {name:?}; add_data gives it one"))
        })
    }

    /// Start, or go on: restores the newest valid set; where there is none, gives the variables their first values. What the session has
    /// already stays where it is as far by its count of steps. A damaged set is passed over with a warning. Errors: `FailedPrecondition`
    /// (the variables that do not fit, by name; another process saves there), `DataLoss` (no set is whole), `PermissionDenied` (not the
    /// chief).
    pub fn resume(&mut self, model: &Model) -> Result<Restored> {
        let sets = self.raw(model)?;
        // SAFETY: an open checkpoint and its model, both borrowed mutably.
        restored(|step, report| unsafe { sys::dtg_checkpoint_resume(sets, step, report) })
    }

    /// Restores the set of that name (`step-...`), or with "" the newest valid one, whatever values there are. Errors: `NotFound`, and as
    /// in [`Checkpoint::resume`].
    pub fn restore(&mut self, model: &Model, set: &str) -> Result<Restored> {
        let sets = self.raw(model)?;
        // SAFETY: an open checkpoint, borrowed mutably, its model, a text with its length.
        restored(|step, report| unsafe { sys::dtg_checkpoint_restore(sets, set.as_ptr().cast(), set.len(), step, report) })
    }

    /// Tells that training is at a step; call it after each. Where the model counts its steps itself
    /// ([`Model::global_step`](crate::Model::global_step), which optimizers make), a set is named by that count, and [`Checkpoint::resume`]
    /// gives it, here and in [`Checkpoint::save`] and [`Checkpoint::begin_save`]; `step` only says whether a save is due by `every_steps`. True: a save was due, its values are taken, and it is being written. What the
    /// disk refuses is no error here: [`Checkpoint::wait`] and [`Checkpoint::status`] tell it.
    pub fn reached(&mut self, model: &Model, step: i64) -> Result<bool> {
        let mut began = 0;
        // SAFETY: an open checkpoint, borrowed mutably, and its model.
        unsafe { check(sys::dtg_checkpoint_reached(self.raw(model)?, step, &mut began)) }?;
        Ok(began != 0)
    }

    /// Saves now and waits until the set is on the disk. The model's own count of steps, where it has one, goes before `step`, as in
    /// [`Checkpoint::reached`]. None: 10 minutes. Errors: `ResourceExhausted` (how much is needed, how much is
    /// free), `FailedPrecondition`, those of the disk; the sets that are there stay as they were.
    pub fn save(&mut self, model: &Model, step: i64, timeout: impl Into<Option<Duration>>) -> Result<()> {
        // SAFETY: an open checkpoint, borrowed mutably, and its model.
        unsafe { check(sys::dtg_checkpoint_save(self.raw(model)?, step, or_default(timeout.into()))) }
    }

    /// The same, but returns as soon as the values are taken; waits only for a save before that is still being written.
    pub fn begin_save(&mut self, model: &Model, step: i64, timeout: impl Into<Option<Duration>>) -> Result<()> {
        // SAFETY: an open checkpoint, borrowed mutably, and its model.
        unsafe { check(sys::dtg_checkpoint_begin_save(self.raw(model)?, step, or_default(timeout.into()))) }
    }

    /// Waits until nothing is being written, and gives what came of the last save. None: 10 minutes.
    pub fn wait(&self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        // SAFETY: an open checkpoint; any thread may wait.
        unsafe { check(sys::dtg_checkpoint_wait(self.handle.raw(), or_default(timeout.into()))) }
    }

    /// What this object has saved, as JSON: directory, writing, saves, failures, step, path, failure.
    pub fn status(&self) -> Result<String> {
        // SAFETY: an open checkpoint; any thread may ask.
        unsafe { string(|out| sys::dtg_checkpoint_status(self.handle.raw(), out)) }
    }
}

fn restored(call: impl FnOnce(*mut i64, *mut *mut sys::dtg_string) -> *mut sys::dtg_error) -> Result<Restored> {
    let mut step = 0;
    // SAFETY: the answer of a function of the ABI, which has written a text of ours.
    let report = unsafe { string(|out| call(&mut step, out)) }?;
    Ok(Restored { step, report })
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpoint({} data sets)", self.data.len())
    }
}
