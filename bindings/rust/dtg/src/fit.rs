//! What a fit is told and what it tells: its options and rules, its events, and a fit that is pulled. A fit belongs to the thread that
//! has its trainer; options and events are plain values.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Duration;

use dtg_sys as sys;

use crate::cancellation::Cancellation;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result, borrowed, check};
use crate::handle::{name_of, or_default, said};
use crate::trainer::Trainer;

/// Which way a watched value gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Better {
    /// Greater where the name has acc, auc, precision, recall, f1, r2 or iou in it, else less.
    #[default]
    ByName,
    /// Less.
    Less,
    /// Greater.
    Greater,
}

impl Better {
    fn number(self) -> sys::dtg_better {
        match self {
            Self::ByName => sys::DTG_BETTER_BY_NAME,
            Self::Less => sys::DTG_BETTER_LESS,
            Self::Greater => sys::DTG_BETTER_GREATER,
        }
    }
}

/// Ends a fit when a value has not got better for `patience` epochs; write `..Default::default()` for what is not said. Values are those of
/// [`FitEventKind::EpochEnd`]: "loss", "val_loss", and metrics with or without "val_". Semantics: keras.callbacks.EarlyStopping.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EarlyStopping<'a> {
    /// Which value. Default: "val_loss" where the fit has data to validate with, else "loss".
    pub monitor: Option<&'a str>,
    /// Which way it gets better.
    pub better: Better,
    /// Patience begins anew only with values that are better than this too.
    pub baseline: Option<f64>,
    /// By how much a value must be better to count.
    pub min_delta: f64,
    /// Epochs without progress; 0 is as 1.
    pub patience: i64,
    /// So many epochs pass before it looks.
    pub start_from_epoch: i64,
    /// When the fit ends, early or not, but by no error, the weights are those of the best epoch.
    pub restore_best: bool,
}

impl EarlyStopping<'_> {
    /// Its pointers are into what `self` borrows.
    fn raw(&self) -> sys::dtg_early_stopping {
        let (monitor, monitor_len) = name_of(self.monitor);
        sys::dtg_early_stopping {
            monitor,
            monitor_len,
            better: self.better.number(),
            has_baseline: self.baseline.is_some().into(),
            baseline: self.baseline.unwrap_or_default(),
            min_delta: self.min_delta,
            patience: self.patience,
            start_from_epoch: self.start_from_epoch,
            restore_best: self.restore_best.into(),
            ..sys::dtg_early_stopping::INIT
        }
    }
}

/// Lowers the learning rate when a value has not got better for `patience` epochs: `max(rate * factor, min_rate)`; write
/// `..Default::default()` for what is not said. Semantics: keras.callbacks.ReduceLROnPlateau.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Plateau<'a> {
    /// Which value, as in [`EarlyStopping`].
    pub monitor: Option<&'a str>,
    /// Which way it gets better.
    pub better: Better,
    /// Between 0 and 1; 0: 0.1.
    pub factor: f64,
    /// By how much a value must be better to count; 0: 0.0001; below 0: none.
    pub min_delta: f64,
    /// The rate falls no further.
    pub min_rate: f64,
    /// Epochs without progress; 0: 10.
    pub patience: i64,
    /// Epochs after a fall in which none are counted.
    pub cooldown: i64,
}

impl Plateau<'_> {
    /// Its pointers are into what `self` borrows.
    fn raw(&self) -> sys::dtg_plateau {
        let (monitor, monitor_len) = name_of(self.monitor);
        sys::dtg_plateau {
            monitor,
            monitor_len,
            better: self.better.number(),
            factor: self.factor,
            min_delta: self.min_delta,
            min_rate: self.min_rate,
            patience: self.patience,
            cooldown: self.cooldown,
            ..sys::dtg_plateau::INIT
        }
    }
}

/// How long a fit goes on, what it watches and what it keeps; write `..Default::default()` for what is not said. What would do nothing, such as
/// `checkpoint_steps` without a directory, is `InvalidArgument`.
///
/// In the directory are `checkpoints/`; `metrics.csv` and `metrics.jsonl`, an epoch a row; `best.safetensors`, the weights of the best epoch,
/// with `best`; and at the end `model.safetensors`, `model.dtg` for [`Model::load`](crate::Model::load) where the trainer has outputs, and
/// `summary.json`. [`Model::restore_from`](crate::Model::restore_from) reads weights,
/// `partial` where the model has an optimizer.
///
/// A fit that was killed at any moment, and is begun again by the same program, goes on with the step after its last checkpoint, and ends
/// with the same weights to the last bit where training is deterministic.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fit<'a> {
    /// In all, those before it went on too. 0: 1.
    pub epochs: i64,
    /// 0: until the data ends; the next epoch begins it anew. Otherwise epochs go on in the data where the one before has ended.
    pub steps_per_epoch: i64,
    /// Epochs from one validation to the next. 0: 1.
    pub validation_every: i64,
    /// 0: all of the data.
    pub validation_steps: i64,
    /// The fit ends in good order before the first step after that.
    pub time_limit: Option<Duration>,
    /// Of this run; made where it is not there. None: nothing is kept; an empty one is `InvalidArgument`.
    pub directory: Option<&'a Path>,
    /// A checkpoint at each multiple of that, exactly: it waits for the one before. 0: not by steps.
    pub checkpoint_steps: i64,
    /// And when so much time has passed since the last one.
    pub checkpoint_every: Option<Duration>,
    /// And after so many epochs. 0: 1. One is made at the end in any case.
    pub checkpoint_epochs: i64,
    /// How many checkpoints. 0: 3.
    pub keep: i32,
    /// Where the directory has a training already, that is `AlreadyExists`; otherwise the fit goes on with it.
    pub fresh: bool,
    /// `best.safetensors` is written after each epoch in which this value was the best so far.
    pub best: Option<&'a str>,
    /// Which way that value gets better.
    pub best_better: Better,
    /// When to end early.
    pub early_stopping: Option<EarlyStopping<'a>>,
    /// When to lower the learning rate.
    pub plateau: Option<Plateau<'a>>,
    /// Ends the fit with `Cancelled`, in the middle of a step too. Default: that of the trainer, if it has one.
    pub cancellation: Option<&'a Cancellation>,
    /// No curves for TensorBoard, which the directory has otherwise, in `tensorboard/`.
    pub no_tensorboard: bool,
    /// Curves have the loss of each multiple of that too. 0: values of epochs only.
    pub tensorboard_steps: i64,
    /// And histograms of the weights after so many epochs. 0: none.
    pub histogram_epochs: i64,
    /// Where it shows how far it is.
    pub progress: Progress,
}

/// Where a fit shows how far it is; never on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Progress {
    /// stderr where that is a terminal and the program takes no log: one line with a bar, the time left, the mean loss and examples/s, and a
    /// line that stays for each epoch. Elsewhere as `Lines`.
    #[default]
    Best,
    /// A line per epoch to the program's log, at level Info; without one nothing.
    Lines,
    /// Nowhere.
    Off,
}

impl Progress {
    fn number(self) -> sys::dtg_progress {
        match self {
            Self::Best => sys::DTG_PROGRESS_BEST,
            Self::Lines => sys::DTG_PROGRESS_LINES,
            Self::Off => sys::DTG_PROGRESS_OFF,
        }
    }
}

/// What a fit has come to. Of an epoch the events come in this order: `EpochBegin`, `Step` for each step, `Validation`, `Rate`, `EpochEnd`,
/// `Checkpoint`; those in the middle, and `Checkpoint` between steps, only where there is cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum FitEventKind {
    /// Before the first step; the text says whether the fit starts or goes on.
    #[default]
    Begin,
    /// Before the first step of an epoch; comes again for one that a fit goes on with.
    EpochBegin,
    /// After a step, with its "loss".
    Step,
    /// After a validation: the epoch's values so far, "val_loss" and "val_" metrics among them.
    Validation,
    /// A plateau has lowered the learning rate; the text tells.
    Rate,
    /// After an epoch: "loss", the mean over its examples; metrics; those of the validation; "learning_rate".
    EpochEnd,
    /// The values of a checkpoint are taken, and are being written; the text says where.
    Checkpoint,
    /// The fit ends early; the text says why: a rule, the time limit, a stop.
    Stopped,
    /// The last event: everything is on the disk.
    Done,
}

impl FitEventKind {
    fn of(number: sys::dtg_fit_event_kind) -> Result<Self> {
        Ok(match number {
            sys::DTG_FIT_BEGIN => Self::Begin,
            sys::DTG_FIT_EPOCH_BEGIN => Self::EpochBegin,
            sys::DTG_FIT_STEP => Self::Step,
            sys::DTG_FIT_VALIDATION => Self::Validation,
            sys::DTG_FIT_RATE => Self::Rate,
            sys::DTG_FIT_EPOCH_END => Self::EpochEnd,
            sys::DTG_FIT_CHECKPOINT => Self::Checkpoint,
            sys::DTG_FIT_STOPPED => Self::Stopped,
            sys::DTG_FIT_DONE => Self::Done,
            _ => {
                let text = format!("libdtg tells of an event of kind {number}, which this crate does not know; please report it");
                return Err(Error::found(ErrorKind::Internal, text));
            }
        })
    }
}

/// Loss and metrics by their names, in their order. Displayed as `loss 0.25 accuracy 0.5`; a precision, `{:.4}`, is that of the numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores(Vec<(String, f64)>);

impl Scores {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, as in events that tell none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copies what C lends. Names that have not changed, as from step to step, cost no allocation.
    ///
    /// # Safety
    /// `raw` was written by the library, and what it lends is still valid.
    pub(crate) unsafe fn refill(&mut self, raw: &sys::dtg_fit_event) {
        self.0.truncate(raw.num_values);
        for i in 0..raw.num_values {
            // SAFETY: num_values of both are there, and the names end with NUL.
            let (name, value) = unsafe { (borrowed(*raw.names.add(i)).unwrap_or_default(), *raw.values.add(i)) };
            match self.0.get_mut(i) {
                Some(slot) => {
                    refill(&mut slot.0, name);
                    slot.1 = value;
                }
                None => self.0.push((name.to_string_lossy().into_owned(), value)),
            }
        }
    }
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name} ", if i == 0 { "" } else { " " })?;
            fmt::Display::fmt(&value, f)?;
        }
        Ok(())
    }
}

/// One event of a fit.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct FitEvent {
    /// What it tells of.
    pub kind: FitEventKind,
    /// From 1; where none is under way, how many are over.
    pub epoch: i64,
    /// Steps made in this epoch.
    pub batch: i64,
    /// Steps of an epoch; None where that is not known.
    pub batches: Option<i64>,
    /// Steps made in all, before the fit went on too.
    pub step: i64,
    /// Examples of this epoch, so far.
    pub examples: i64,
    /// Of a step: its loss; else the mean of this epoch so far.
    pub loss: f64,
    /// Of the steps that it tells of; of `Rate`, from here on. None where it is a schedule, or not the trainer's.
    pub learning_rate: Option<f64>,
    /// In this epoch.
    pub examples_per_second: f64,
    /// Since the fit began, in this process.
    pub elapsed: Duration,
    /// The values that this kind of event tells.
    pub values: Scores,
    /// What there is to say, or "".
    pub text: String,
}

impl FitEvent {
    /// Copies what C lends.
    ///
    /// # Safety
    /// As for [`Scores::refill`].
    unsafe fn refill(&mut self, raw: &sys::dtg_fit_event) -> Result<()> {
        self.kind = FitEventKind::of(raw.kind)?;
        (self.epoch, self.batch, self.step, self.examples) = (raw.epoch, raw.batch, raw.step, raw.examples);
        self.batches = (raw.batches >= 0).then_some(raw.batches);
        self.loss = raw.loss;
        self.learning_rate = (raw.learning_rate != 0.0).then_some(raw.learning_rate);
        self.examples_per_second = raw.examples_per_s;
        self.elapsed = Duration::try_from_secs_f64(raw.seconds).unwrap_or_default();
        // SAFETY: the caller says so; the text ends with NUL.
        unsafe {
            self.values.refill(raw);
            refill(&mut self.text, borrowed(raw.text).unwrap_or_default());
        }
        Ok(())
    }
}

/// A fit under way, pulled event by event: nothing happens between two pulls. It lends its trainer, to predict at any event and to evaluate
/// between epochs, and has the data sets until it is dropped.
///
/// Dropped before [`FitEventKind::Done`] it is given up where it stands, to go on from its last checkpoint. One that is being written gets
/// written, and is waited for; the data sets and the directory are free then. One that was forgotten keeps them until the trainer's next fit.
#[must_use = "a fit makes its steps when it is pulled"]
pub struct Fitting<'a> {
    trainer: &'a mut Trainer,
    data: PhantomData<&'a mut Dataset>,
    event: FitEvent,
    over: bool,
}

impl<'a> Fitting<'a> {
    pub(crate) fn begin(
        trainer: &'a mut Trainer,
        data: &'a mut Dataset,
        validation: Option<&'a mut Dataset>,
        how: &Fit<'_>,
    ) -> Result<Self> {
        let (directory, directory_len) = said(how.directory.map(|path| path.as_os_str().as_bytes()));
        let (best, best_len) = name_of(how.best);
        let (stopping, plateau) = (how.early_stopping.map(|rule| rule.raw()), how.plateau.map(|rule| rule.raw()));
        let raw = sys::dtg_fit {
            epochs: how.epochs,
            steps_per_epoch: how.steps_per_epoch,
            validation_every: how.validation_every,
            validation_steps: how.validation_steps,
            time_limit_ns: or_default(how.time_limit),
            directory,
            directory_len,
            checkpoint_steps: how.checkpoint_steps,
            checkpoint_ns: or_default(how.checkpoint_every),
            checkpoint_epochs: how.checkpoint_epochs,
            keep: how.keep,
            fresh: how.fresh.into(),
            best,
            best_len,
            best_better: how.best_better.number(),
            early_stopping: stopping.as_ref().map_or(null(), std::ptr::from_ref),
            plateau: plateau.as_ref().map_or(null(), std::ptr::from_ref),
            cancellation: how.cancellation.map_or(trainer.cancellation(), Cancellation::raw),
            no_tensorboard: how.no_tensorboard.into(),
            tensorboard_steps: how.tensorboard_steps,
            histogram_epochs: how.histogram_epochs,
            progress: how.progress.number(),
            ..sys::dtg_fit::INIT
        };
        let validation = validation.map_or(null_mut(), Dataset::lend);
        // SAFETY: an open trainer and open data sets, borrowed mutably for as long as it reads them; structs and texts outlive the call.
        unsafe { check(sys::dtg_trainer_begin(trainer.raw(), data.lend(), validation, &raw)) }?;
        Ok(Self { trainer, data: PhantomData, event: FitEvent::default(), over: false })
    }

    /// Goes on to the next event, by one step at most; None after [`FitEventKind::Done`]. After an error the fit is over: calls repeat it.
    /// Errors: those of a run (a loss that is no finite number is `InvalidArgument` and names the first value that was not finite), of the
    /// data and of the disk; `Cancelled`; `FailedPrecondition` (data without elements).
    pub fn next_event(&mut self) -> Result<Option<&FitEvent>> {
        if self.over {
            return Ok(None);
        }
        let mut raw = sys::dtg_fit_event::INIT;
        // SAFETY: an open trainer, borrowed mutably; what the event lends is copied before the next call.
        unsafe {
            check(sys::dtg_trainer_next(self.trainer.raw(), &mut raw))?;
            self.event.refill(&raw)?;
        }
        self.over = self.event.kind == FitEventKind::Done;
        Ok(Some(&self.event))
    }

    /// The trainer, and the event that was pulled last.
    pub(crate) fn parts(&self) -> (&Trainer, &FitEvent) {
        (self.trainer, &self.event)
    }
}

impl Drop for Fitting<'_> {
    fn drop(&mut self) {
        if !self.over {
            // SAFETY: an open trainer, borrowed mutably. It is refused inside of another call only, which the borrow rules out.
            let _ = unsafe { check(sys::dtg_trainer_give_up(self.trainer.raw())) };
        }
    }
}

impl Deref for Fitting<'_> {
    type Target = Trainer;

    fn deref(&self) -> &Trainer {
        self.trainer
    }
}

impl fmt::Debug for Fitting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fitting").field(&self.event).finish()
    }
}

/// Writes a text of C over one of ours, if it is another.
fn refill(ours: &mut String, theirs: &CStr) {
    if ours.as_bytes() != theirs.to_bytes() {
        ours.clear();
        ours.push_str(&theirs.to_string_lossy());
    }
}
