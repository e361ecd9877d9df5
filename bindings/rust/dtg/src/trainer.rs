//! Trainers: a model with its loss, optimizer and metrics, trained over epochs of a data set. One thread at a time uses a trainer; it
//! may move; only a stopper asks from others.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use dtg_sys as sys;

use crate::cancellation::Cancellation;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result, built, check, placed};
use crate::fit::{Fit, FitEvent, Fitting, Scores};
use crate::graph::Value;
use crate::handle::{Handle, Texts, string};
use crate::keras::MetricValues;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::session::Session;
use crate::strategy::StrategyWorkers;
use crate::tensor::Tensor;
use crate::training::Optimizer;

/// What a [`Trainer`] trains: `TrainerOptions { optimizer: Optimizer::adam(0.01), ..TrainerOptions::new(&[x, labels], loss) }`. There is no
/// default, as a trainer needs feeds and a loss.
#[derive(Debug, Clone)]
pub struct TrainerOptions<'a> {
    /// Of the model's graph, local or the chief's. Default: a local one of the trainer's own.
    pub session: Option<&'a Session>,
    /// What the components of an element of data are fed to, in their order: inputs, then labels and weights.
    pub feeds: Vec<Value>,
    /// How many of them [`Trainer::predict`] feeds. 0: 1.
    pub inputs: usize,
    /// What [`Trainer::predict`] gives; may be none.
    pub outputs: &'a [Value],
    /// A float32 or float64 scalar.
    pub loss: Value,
    /// Not looked at where `train` is given.
    pub optimizer: Optimizer,
    /// Steps update these, and epochs and evaluations tell their results, which must be scalars, under these names ("accuracy"; 1 to 64
    /// characters without spaces, commas and quotes) and "val_" before them.
    pub metrics: &'a [(&'a str, MetricValues)],
    /// The target of a step that was made before, as by a strategy. Default: [`Model::minimize`] makes it.
    pub train: Option<Value>,
    /// A bool scalar placeholder, true in steps of training and false elsewhere, for dropout and norms.
    pub training: Option<Value>,
    /// Of the inputs in `model.dtg`, all or none. None: the names of their nodes.
    pub input_names: &'a [&'a str],
    /// Of the outputs there. None: "output", "output_1" and so on.
    pub output_names: &'a [&'a str],
    /// Those of a [`StrategyKind::MultiWorkerMirrored`](crate::StrategyKind), which all fit together: each is a program that builds the same
    /// model, and gives its trainer `train` of [`Strategy::minimize`](crate::Strategy::minimize), as `loss` the mean of
    /// [`Strategy::reduce`](crate::Strategy::reduce), and data of its own ([`Dataset::shard`]). The fit gives the variables their values; do
    /// not run [`Model::init`]. A worker that is lost is waited for, a minute at most, and all go on from where the furthest is. The first
    /// worker alone writes the directory. None: this program alone.
    pub workers: Option<&'a StrategyWorkers>,
}

impl TrainerOptions<'_> {
    /// Gradient descent with a rate of 0.01, no metrics, no outputs.
    pub fn new(feeds: &[Value], loss: Value) -> Self {
        let (feeds, optimizer) = (feeds.to_vec(), Optimizer::default());
        let (session, outputs, metrics, train, training) = (None, &[][..], &[][..], None, None);
        let (input_names, output_names) = (&[][..], &[][..]);
        let workers = None;
        Self { session, feeds, inputs: 0, outputs, loss, optimizer, metrics, train, training, input_names, output_names, workers }
    }
}

/// A model with what trains it. [`Trainer::fit`] trains over epochs of a data set, with validation, early stopping, and a directory whose
/// checkpoints a training goes on from; [`Trainer::evaluate`] and [`Trainer::predict`] look at what it has learned. The model is inside;
/// a step is one run of its session, the same as one by hand.
///
/// ```
/// use dtg::*;
///
/// let model = Model::new(Graph::new()?, 1)?;
/// let x = model.placeholder("x", DType::F32, Some(&[-1, 1]))?;
/// let y = model.placeholder("y", DType::F32, Some(&[-1, 1]))?;
/// let line = model.dense(x, &Dense { units: 1, ..Default::default() })?;
/// let loss = model.mean_squared_error(y, line)?;
/// let what = TrainerOptions { optimizer: Optimizer::sgd(0.2), outputs: &[line], ..TrainerOptions::new(&[x, y], loss) };
/// let mut trainer = Trainer::new(model, &what)?;
///
/// let (a, b) = (Tensor::from_slice(&[4, 1], &[0.0f32, 0.5, 1.0, 1.5])?, Tensor::from_slice(&[4, 1], &[1.0f32, 2.0, 3.0, 4.0])?);
/// let mut data = Dataset::tensors(&[&a, &b])?.batch(4, false)?;
/// trainer.fit(&mut data, None, &Fit { epochs: 200, ..Default::default() }, |_, event| {
///     if event.kind == FitEventKind::EpochEnd && event.epoch % 50 == 0 {
///         println!("epoch {}: {:.6}", event.epoch, event.values);
///     }
///     Ok(())
/// })?;
/// assert!(trainer.evaluate(&mut data, 0)?.get("loss").unwrap() < 1e-4);
/// let found = trainer.predict(&mut data)?;
/// assert!((found.slice::<f32>(0)?[3] - 4.0).abs() < 0.1);
/// # Ok::<(), dtg::Error>(())
/// ```
pub struct Trainer {
    handle: Open, // before the model, so that it goes first
    outputs: usize,
    cancellation: Option<Cancellation>,
    model: Model,
}

impl Trainer {
    /// A trainer of a model. Adds the training to the graph, with a learning rate that a plateau may lower where the optimizer has a number for
    /// it; the model gets the optimizer's variables. Errors: those of [`Model::minimize`], `AlreadyExists` (two metrics of one name),
    /// `Unimplemented` (a session that is not the chief's).
    #[track_caller]
    pub fn new(model: Model, options: &TrainerOptions<'_>) -> Result<Self> {
        let optimizer = options.optimizer.raw();
        let inputs = placed(names_of(options.input_names, options.inputs.max(1), "input"))?;
        let outputs = placed(names_of(options.output_names, options.outputs.len(), "output"))?;
        let raw = sys::dtg_trainer_options {
            session: options.session.map_or(null_mut(), Session::raw),
            feeds: Value::raw(&options.feeds),
            num_feeds: options.feeds.len(),
            num_inputs: options.inputs,
            outputs: Value::raw(options.outputs),
            num_outputs: options.outputs.len(),
            loss: options.loss.0,
            optimizer: &optimizer,
            train: Value::or_none(options.train),
            training: Value::or_none(options.training),
            input_names: inputs.or_null(),
            output_names: outputs.or_null(),
            strategy: options.workers.map_or(null_mut(), StrategyWorkers::raw),
            ..sys::dtg_trainer_options::INIT
        };
        // SAFETY: an open model; structs and arrays, with their lengths, that outlive the call.
        let handle = placed(unsafe { Handle::create(|out| sys::dtg_trainer_create(model.raw(), &raw, out)) })?;
        for (name, metric) in options.metrics {
            let raw = sys::dtg_metric_values {
                update: metric.update.0,
                reset: metric.reset.0,
                result: metric.result.0,
                ..sys::dtg_metric_values::INIT
            };
            // SAFETY: an open trainer, a text with its length, a struct that outlives the call.
            unsafe { built(sys::dtg_trainer_add_metric(handle.raw(), name.as_ptr().cast(), name.len(), &raw)) }?;
        }
        Ok(Self { handle: Open::new(handle), outputs: options.outputs.len(), cancellation: None, model })
    }

    /// Trains: [`Trainer::begin`], then all events, each handed to `each` between two steps. There the trainer may predict, and evaluate
    /// between epochs. An error of `each` ends the fit with it, and a panic gives it up. Errors: those of [`Trainer::begin`] and [`Fitting::next_event`]. Semantics:
    /// keras.Model.fit.
    pub fn fit(
        &mut self,
        data: &mut Dataset,
        validation: Option<&mut Dataset>,
        how: &Fit<'_>,
        mut each: impl FnMut(&Trainer, &FitEvent) -> Result<()>,
    ) -> Result<()> {
        let mut fit = self.begin(data, validation, how)?;
        while fit.next_event()?.is_some() {
            let (trainer, event) = fit.parts();
            each(trainer, event)?;
        }
        Ok(())
    }

    /// Begins a fit that is pulled, or goes on with the one of the directory. Variables without a value get their first one; those that have
    /// values, as restored weights, keep them, unless a checkpoint of the directory says otherwise. Elements of both data sets have as many
    /// components as there are feeds, of the same types. Errors: `InvalidArgument` (numbers out of range, data that does not fit, a
    /// watched value that nobody tells), `FailedPrecondition` (another process trains in the directory, or a checkpoint does not
    /// fit the model), `AlreadyExists`, `DataLoss`, those of the disk and of a run.
    ///
    /// ```no_run
    /// # use dtg::*;
    /// # fn train(trainer: &mut Trainer, data: &mut Dataset, test: &mut Dataset) -> dtg::Result<()> {
    /// let how = Fit { epochs: 10, directory: Some("run".as_ref()), ..Default::default() };
    /// let mut fit = trainer.begin(data, Some(test), &how)?;
    /// while let Some(event) = fit.next_event()? {
    ///     match event.kind {
    ///         FitEventKind::Step if event.step % 100 == 0 => println!("step {}: loss {}", event.step, event.loss),
    ///         FitEventKind::EpochEnd => println!("epoch {}: {:.4}", event.epoch, event.values),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn begin<'a>(
        &'a mut self,
        data: &'a mut Dataset,
        validation: Option<&'a mut Dataset>,
        how: &Fit<'_>,
    ) -> Result<Fitting<'a>> {
        Fitting::begin(self, data, validation, how)
    }

    /// One step of training with these tensors, one per feed; its loss, before the step. Metrics are updated; an evaluation and a fit begin
    /// them anew. Errors: those of a run, `InvalidArgument` (more or fewer tensors), `FailedPrecondition` (a fit is in the middle of an
    /// epoch). Semantics: keras.Model.train_on_batch.
    pub fn train_step(&self, tensors: &[&Tensor]) -> Result<f64> {
        let raw: Vec<_> = tensors.iter().map(|tensor| tensor.raw().cast_const()).collect();
        let mut loss = 0.0;
        // SAFETY: an open trainer, open tensors and their number.
        unsafe { check(sys::dtg_trainer_train_step(self.raw(), raw.as_ptr(), raw.len(), self.cancellation(), &mut loss)) }?;
        Ok(loss)
    }

    /// Loss, the mean over examples, and metrics over a data set from its beginning, or over so many elements of it; 0: all. Errors: those
    /// of a run, `FailedPrecondition` (no elements; a fit is in the middle of an epoch). Semantics: keras.Model.evaluate.
    pub fn evaluate(&self, data: &mut Dataset, steps: i64) -> Result<Scores> {
        let (mut raw, mut scores) = (sys::dtg_fit_event::INIT, Scores::default());
        // SAFETY: an open trainer and data set; what the event lends is copied before the next call.
        unsafe {
            check(sys::dtg_trainer_evaluate(self.raw(), data.lend(), steps, self.cancellation(), &mut raw))?;
            scores.refill(&raw);
        }
        Ok(scores)
    }

    /// The outputs for a data set from its beginning, a tensor each, with one row per example. Elements may have the inputs only, or labels
    /// too. Errors: those of a run, `FailedPrecondition` (no elements, or no outputs). Semantics: keras.Model.predict.
    pub fn predict(&self, data: &mut Dataset) -> Result<Outputs> {
        let mut tensors = vec![null_mut(); self.outputs];
        // SAFETY: an open trainer and data set, a place for each output.
        unsafe {
            check(sys::dtg_trainer_predict(self.raw(), data.lend(), self.cancellation(), tensors.as_mut_ptr(), tensors.len()))?;
        }
        // SAFETY: the call succeeded, so every entry holds a tensor that is ours.
        Ok(Outputs::new(tensors.into_iter().filter_map(|tensor| unsafe { Handle::adopt(tensor) }).map(Tensor::adopt).collect()))
    }

    /// Writes the model as [`Trainer::predict`] runs it to a file of its own, for [`Model::load`]: graph, weights, and the names, types and
    /// shapes of inputs and outputs; a fit with a directory leaves one as `model.dtg`. Any number of threads may run what is loaded. Errors:
    /// those of [`Model::export`]; `FailedPrecondition` (no outputs); `Unimplemented` (variables with copies on several devices).
    pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: an open trainer, a text with its length.
        unsafe { check(sys::dtg_trainer_export(self.raw(), path.as_ptr().cast(), path.len())) }
    }

    /// Asks a fit to end in good order before its next step: with [`crate::FitEventKind::Stopped`], a last checkpoint, and
    /// [`crate::FitEventKind::Done`]. Does not wait. One that is begun afterwards is not meant. Semantics: stop_training of Keras.
    pub fn stop(&self) {
        // SAFETY: an open trainer.
        unsafe { sys::dtg_trainer_stop(self.raw()) }
    }

    /// The same wish for other threads.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.handle.living.clone())
    }

    /// What ends `train_step`, `evaluate`, `predict` and fits that name none themselves, with `Cancelled`, when another thread cancels it. A
    /// cancellation is used once, so give another one, or None, afterwards.
    pub fn set_cancellation(&mut self, cancellation: Option<&Cancellation>) {
        self.cancellation = cancellation.cloned();
    }

    /// Of the fit that was begun last, as JSON: outcome ("running", "done", "stopped" or "failed"), why, epochs, steps, resumed, directory,
    /// best_epoch, best, history. Errors: `FailedPrecondition` (none was begun).
    pub fn summary(&self) -> Result<String> {
        // SAFETY: an open trainer.
        unsafe { string(|out| sys::dtg_trainer_summary(self.raw(), out)) }
    }

    /// The session in which it runs.
    pub fn session(&self) -> Result<Session> {
        // SAFETY: an open trainer.
        unsafe { Handle::create(|out| sys::dtg_trainer_session(self.raw(), out)) }.map(Session::adopt)
    }

    /// The model, to save and export it.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model, for those who train no more.
    pub fn into_model(self) -> Model {
        self.model
    }

    pub(crate) fn raw(&self) -> *mut sys::dtg_trainer {
        self.handle.handle.raw()
    }

    pub(crate) fn cancellation(&self) -> *mut sys::dtg_cancellation {
        self.cancellation.as_ref().map_or(null_mut(), Cancellation::raw)
    }
}

/// Names, as many as there are values, or none.
fn names_of(names: &[&str], count: usize, of: &str) -> Result<Texts> {
    if !names.is_empty() && names.len() != count {
        let text = format!("make a trainer: {of}_names has {} names for {count} {of}s; name all of them or none", names.len());
        return Err(Error::found(ErrorKind::InvalidArgument, text));
    }
    Texts::new(names, "the name")
}

impl fmt::Debug for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trainer({:?})", self.model)
    }
}

/// Ends a fit of its [`Trainer`] from another thread, in good order: see [`Trainer::stop`]. Once the trainer is gone it does nothing.
#[derive(Clone)]
pub struct Stopper(Arc<Mutex<Living>>);

impl Stopper {
    /// Asks; does not wait.
    pub fn stop(&self) {
        let living = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: NULL, or a trainer that cannot go while the lock is held; any thread may ask it to stop.
        unsafe { sys::dtg_trainer_stop(living.0) }
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopper")
    }
}

/// A trainer as stoppers know it; NULL when it is gone. They hold no reference: the end of a trainer is that of its directory's lock.
struct Living(*mut sys::dtg_trainer);

// SAFETY: it is only asked to stop, which dtg/trainer.h allows from any thread.
unsafe impl Send for Living {}

/// The reference, which takes itself from the stoppers before it goes.
struct Open {
    handle: Handle<sys::dtg_trainer>,
    living: Arc<Mutex<Living>>,
}

impl Open {
    fn new(handle: Handle<sys::dtg_trainer>) -> Self {
        let living = Arc::new(Mutex::new(Living(handle.raw())));
        Self { handle, living }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.living.lock().unwrap_or_else(PoisonError::into_inner).0 = null_mut();
    }
}
