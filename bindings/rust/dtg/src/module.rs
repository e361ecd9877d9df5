//! Layers as things that one puts together: what has a way from one value to another, rows of such, and types of one's own. They hold
//! numbers only, the weights are the model's; one thread at a time adds to a model.

use std::fmt;

use crate::error::{Result, placed};
use crate::graph::Value;
use crate::layers::{Activation, Conv2D, Dense, Embedding, Pool2D};
use crate::model::Model;

/// What makes one value of another in a model. The layers of this crate are modules, a row of modules is one, and so is whatever a program
/// makes one.
///
/// ```
/// use dtg::{Activation, DType, Dense, Graph, Model, Module, Result, Value};
///
/// /// A block with a way around it.
/// struct Residual {
///     units: i64,
/// }
///
/// impl Module for Residual {
///     fn forward(&self, model: &Model, x: Value) -> Result<Value> {
///         let inner = model.forward(x, &Dense { units: self.units, activation: Activation::Relu, ..Default::default() })?;
///         (model.expr(inner) + x).value()
///     }
/// }
///
/// let model = Model::new(Graph::new()?, 1)?;
/// let x = model.placeholder("x", DType::F32, Some(&[-1, 8]))?;
/// let network: [&dyn Module; 3] = [&Residual { units: 8 }, &Residual { units: 8 }, &Dense { units: 2, ..Default::default() }];
/// let logits = model.forward(x, &network)?;
/// assert_eq!(model.shape(logits)?, Some(vec![-1, 2]));
/// assert_eq!(model.variable_count(), 6);
/// # Ok::<(), dtg::Error>(())
/// ```
pub trait Module {
    /// Adds what leads from x to the output, with new variables each time it is called (but for layers that say `weights_of`). Errors of a
    /// row of modules that is given to [`Model::forward`] name that line, and of a module of the program's own the line inside it.
    fn forward(&self, model: &Model, x: Value) -> Result<Value>;
}

impl Model {
    /// x through a module.
    #[track_caller]
    pub fn forward(&self, x: Value, module: &(impl Module + ?Sized)) -> Result<Value> {
        placed(module.forward(self, x))
    }
}

/// Pooling by the greatest element, as a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MaxPool2D<'a>(pub Pool2D<'a>);

/// Pooling by the mean, as a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AvgPool2D<'a>(pub Pool2D<'a>);

/// `[batch, everything else]`, as a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flatten;

/// [`Model::dropout`] as a module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share in [0, 1) that becomes zero.
    pub rate: f64,
    /// An int64 scalar; which elements is decided anew for each value.
    pub step: Value,
    /// A bool scalar; None: always true.
    pub training: Option<Value>,
}

/// A closure as a module.
#[derive(Clone, Copy)]
pub struct Lambda<F>(pub F);

impl<F> fmt::Debug for Lambda<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lambda")
    }
}

macro_rules! modules {
    ($($type:ty => |$module:ident, $model:ident, $x:ident| $forward:expr;)*) => {$(
        impl Module for $type {
            #[track_caller]
            fn forward(&self, $model: &Model, $x: Value) -> Result<Value> {
                let $module = self;
                $forward
            }
        }
    )*};
}

modules! {
    Dense<'_> => |layer, model, x| model.dense(x, layer);
    Conv2D<'_> => |layer, model, x| model.conv2d(x, layer);
    Embedding<'_> => |layer, model, x| model.embedding(x, layer);
    MaxPool2D<'_> => |layer, model, x| model.max_pool2d(x, &layer.0);
    AvgPool2D<'_> => |layer, model, x| model.avg_pool2d(x, &layer.0);
    Flatten => |_layer, model, x| model.flatten(x);
    Dropout => |layer, model, x| model.dropout(x, layer.rate, layer.step, layer.training);
    Activation => |layer, model, x| model.activation(x, *layer);
}

impl<F: Fn(&Model, Value) -> Result<Value>> Module for Lambda<F> {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        placed((self.0)(model, x))
    }
}

impl<M: Module + ?Sized> Module for &M {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        (**self).forward(model, x)
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        (**self).forward(model, x)
    }
}

impl<M: Module> Module for [M] {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        placed(self.iter().try_fold(x, |x, module| module.forward(model, x)))
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        self.as_slice().forward(model, x)
    }
}

impl<M: Module> Module for Vec<M> {
    #[track_caller]
    fn forward(&self, model: &Model, x: Value) -> Result<Value> {
        self.as_slice().forward(model, x)
    }
}
