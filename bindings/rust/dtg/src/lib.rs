//! Train models inside your own program: libdtg does the job of distributed TensorFlow, and this crate is its safe face in Rust.
//!
//! A [`Graph`] is built of ops ([`ops`] has one function per op) or of the layers of a [`Model`]; a [`Session`] runs it on the devices
//! of this process or of a cluster; [`Dataset`]s feed it, and a [`Trainer`] trains over them. The nouns are those of the C ABI, whose
//! headers tell every detail.
//!
//! ```
//! use dtg::{Graph, Model, Optimizer, Session, VariableSpec};
//!
//! let model = Model::new(Graph::new()?, 1)?;
//! let w = model.add_variable(&VariableSpec::new("w"))?;
//! let three = model.scalar(3.0f32)?;
//! let loss = model.mean_squared_error(three, w.read)?;
//! let training = model.minimize(loss, &Optimizer::sgd(0.25))?;
//! let init = model.init()?;
//! let session = Session::connect("local", &model)?;
//! session.run_target(init)?;
//! for step in 0..5 {
//!     let out = session.run().fetch(loss).target(training.train).call()?;
//!     println!("step {step}: loss {}", out.scalar::<f32>(0)?);
//! }
//! # Ok::<(), dtg::Error>(())
//! ```
//!
//! # Timeouts
//! A timeout of zero is no time at all: `DeadlineExceeded` where anything has to be waited for, and of a run in any case. The default is what
//! you get by not asking for one, or by `None`.
//!
//! # Threads
//! The thread table of the headers is the types' Send and Sync. Everything may move to another thread. [`Runtime`], [`Session`],
//! [`Callable`], [`Server`], [`Cluster`] and [`Tensor`] are shared: used from any number of threads at once, and cheap to clone.
//! [`Graph`] is read by many and added to by one at a time: a second one gets `FailedPrecondition`; [`Model`], [`Trainer`], [`Dataset`], [`Checkpoint`], [`Weights`] and [`EventWriter`]
//! are used by one thread at a time.
//!
//! # Lifetime
//! Objects hold what they need, so the order in which they are dropped does not matter, and dropping never blocks. What has an end of its
//! own that can fail is closed by name: [`Session::close`], [`Server::stop`], [`EventWriter::close`]; calling them again is fine, and using
//! the object afterwards is an error that says so.
//!
//! # Errors
//! Everything that can fail gives a [`Result`]; nothing panics on what the library reports. [`ErrorKind`] is for programs, the message for
//! people: it says what was attempted, on what, what was found and what to do.
//!
//! # Features
//! `half`: `half::f16` and `half::bf16` as elements. `ndarray` and `ndarray_016`: tensors from and as arrays of ndarray 0.17 and 0.16.
#![deny(missing_docs)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "ndarray", feature = "ndarray_016"))]
mod arrays;
mod callable;
mod cancellation;
mod categories;
mod checkpoint;
mod cluster;
mod control;
mod convolution;
mod coordinator;
mod dataset;
mod dlpack;
mod dtype;
mod error;
mod events;
mod expr;
mod fit;
mod graph;
mod group;
mod handle;
mod hooks;
mod keras;
mod layers;
mod map;
mod mesh;
mod model;
mod module;
mod node;
mod norm;
mod outputs;
mod places;
mod pump;
mod replicas;
mod report;
mod request;
mod run;
mod runtime;
mod scope;
mod sequence;
mod server;
mod serving;
mod session;
mod sharded;
mod strategy;
mod tensor;
mod trainer;
mod training;
mod weights;
mod words;

#[rustfmt::skip]
mod methods;
#[rustfmt::skip]
pub mod ops;

/// The C ABI itself, for what this crate leaves out.
pub use dtg_sys as sys;

pub use callable::Callable;
pub use cancellation::Cancellation;
pub use categories::{Hashing, Lookup, OutputMode};
pub use checkpoint::{Checkpoint, CheckpointOptions, Restored};
pub use cluster::{Cluster, Task};
pub use control::{Argument, Function, Values};
pub use convolution::Conv;
pub use coordinator::{Closure, Coordinator, CoordinatorOptions, Partitioner, RemoteValue, shard_rows};
pub use dataset::{Arrow, Csv, Dataset, Feature, Header, JsonLines, Missing, NormalizationKind, Split};
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use events::{EventWriter, EventWriterOptions};
pub use expr::{Expr, Operand, Place};
pub use fit::{Better, EarlyStopping, Fit, FitEvent, FitEventKind, Fitting, Plateau, Progress, Scores};
pub use graph::{Gradient, Graph, PartialShape, Value};
pub use group::{Group, GroupOptions, Reduction};
pub use hooks::{Hooks, VariablePlace};
pub use keras::{
    Average, Curve, Loss, LossKind, LossReduction, Metric, MetricKind, MetricValues, SampledKind, SampledLoss, Summation,
};
pub use layers::{Activation, Conv2D, Dense, Embedding, Padding, Pool2D};
pub use map::{Component, MapOptions};
pub use mesh::{Mesh, MeshOptions, MeshStep, TableCut, Zero};
pub use model::{Aggregation, Initializer, Model, Variable, VariableSpec};
pub use module::{AvgPool2D, Dropout, Flatten, Lambda, MaxPool2D, Module};
pub use node::{Attr, Node};
pub use norm::{BatchNorm, Norm};
pub use outputs::Outputs;
pub use places::{AttentionCache, Combiner, EmbeddingBag, Noise, PositionEmbedding, PositionKind};
pub use replicas::{AllReduce, Replicated, Replication, SyncMode};
pub use report::RestoreReport;
pub use request::Request;
pub use run::Run;
pub use runtime::{LogLevel, Runtime, RuntimeOptions, abi_version, has_feature, live_handles, version};
pub use scope::{DeviceSetter, Scope, SetterStrategy};
pub use sequence::{Attention, Direction, Recurrent, RecurrentKind, RecurrentResult};
pub use server::{Security, Server, ServerOptions, keygen};
pub use serving::{Export, RestoreOptions};
pub use session::{Outcome, Session, SessionOptions};
pub use sharded::Sharded;
pub use strategy::{
    Assign, CrossDevice, CustomOptions, PerReplica, ReduceAlgorithm, Strategy, StrategyKind, StrategyOptions, StrategyWorkers,
};
pub use tensor::Tensor;
pub use trainer::{Stopper, Trainer, TrainerOptions};
pub use training::{Optimizer, OptimizerKind, Schedule, Training, batch_sizes};
pub use weights::Weights;

/// The crate `half`, whose `f16` and `bf16` are elements of tensors.
#[cfg(feature = "half")]
pub use half;
/// The crate `ndarray` 0.17, whose arrays tensors come from and become.
#[cfg(feature = "ndarray")]
pub use ndarray;
/// The crate `ndarray` 0.16, for programs that are not yet at 0.17.
#[cfg(feature = "ndarray_016")]
pub use ndarray_016;

/// The examples of the README are compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
