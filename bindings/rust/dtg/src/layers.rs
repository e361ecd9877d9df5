//! Layers, losses and metrics of a model. They add to its graph, one thread at a time.

use dtg_sys as sys;

use crate::error::Result;
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::{Initializer, Model};

/// What a layer's output goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    /// x, or e^x - 1 below 0.
    Elu,
    /// Self-normalising Elu.
    Selu,
    /// log(1 + e^x).
    Softplus,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// Over the last dimension.
    Softmax,
    /// With erf.
    Gelu,
}

impl Activation {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::None => sys::DTG_ACT_NONE,
            Self::Relu => sys::DTG_ACT_RELU,
            Self::Relu6 => sys::DTG_ACT_RELU6,
            Self::Elu => sys::DTG_ACT_ELU,
            Self::Selu => sys::DTG_ACT_SELU,
            Self::Softplus => sys::DTG_ACT_SOFTPLUS,
            Self::Sigmoid => sys::DTG_ACT_SIGMOID,
            Self::Tanh => sys::DTG_ACT_TANH,
            Self::Softmax => sys::DTG_ACT_SOFTMAX,
            Self::Gelu => sys::DTG_ACT_GELU,
        }
    }
}

/// What happens at the border of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Padding {
    /// Only windows that lie inside.
    #[default]
    Valid,
    /// Output ceil(input / stride), the image surrounded by zeros.
    Same,
}

impl Padding {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Valid => sys::DTG_PADDING_VALID,
            Self::Same => sys::DTG_PADDING_SAME,
        }
    }
}

/// A fully connected layer; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dense<'a> {
    /// Default: `dense`; a second one becomes `dense_1`.
    pub name: Option<&'a str>,
    /// The size of the output's last dimension.
    pub units: i64,
    /// Default: none.
    pub activation: Activation,
    /// Without a bias.
    pub no_bias: bool,
    /// Default: Glorot uniform.
    pub kernel: Initializer,
    /// Default: zeros.
    pub bias: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// A convolution; write `..Default::default()` for what is not said. Sizes of 0 take their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Conv2D<'a> {
    /// Default: `conv2d`.
    pub name: Option<&'a str>,
    /// Channels of the output.
    pub filters: i64,
    /// Height and width; default: 3, and like the height.
    pub kernel_size: (i64, i64),
    /// Default: 1, and like the height.
    pub strides: (i64, i64),
    /// Default: 1, and like the height.
    pub dilations: (i64, i64),
    /// Default: valid.
    pub padding: Padding,
    /// Default: none.
    pub activation: Activation,
    /// Without a bias.
    pub no_bias: bool,
    /// Default: Glorot uniform.
    pub kernel: Initializer,
    /// Default: zeros.
    pub bias: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// Pooling; `Pool2D::default()` has windows of 2 x 2 side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pool2D<'a> {
    /// Default: `max_pool2d` or `avg_pool2d`.
    pub name: Option<&'a str>,
    /// Height and width; default: 2, and like the height.
    pub window: (i64, i64),
    /// Default: like the window.
    pub strides: (i64, i64),
    /// Default: valid.
    pub padding: Padding,
}

impl Pool2D<'_> {
    fn raw(&self) -> sys::dtg_pool2d {
        let (name, name_len) = name_of(self.name);
        sys::dtg_pool2d {
            name,
            name_len,
            window_height: self.window.0,
            window_width: self.window.1,
            stride_height: self.strides.0,
            stride_width: self.strides.1,
            padding: self.padding.number(),
            ..sys::dtg_pool2d::INIT
        }
    }
}

/// A table of vectors; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Embedding<'a> {
    /// Default: `embedding`.
    pub name: Option<&'a str>,
    /// How many vectors.
    pub rows: i64,
    /// How long each is.
    pub width: i64,
    /// Default: uniform in [-0.05, 0.05).
    pub table: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

impl Dense<'_> {
    // Names are lent.
    pub(crate) fn raw(&self) -> sys::dtg_dense {
        let (name, name_len) = name_of(self.name);
        let (weights_of, weights_of_len) = name_of(self.weights_of);
        sys::dtg_dense {
            name,
            name_len,
            units: self.units,
            activation: self.activation.number(),
            no_bias: self.no_bias.into(),
            kernel: self.kernel.raw(),
            bias: self.bias.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_dense::INIT
        }
    }
}

impl Embedding<'_> {
    // Names are lent.
    pub(crate) fn raw(&self) -> sys::dtg_embedding {
        let (name, name_len) = name_of(self.name);
        let (weights_of, weights_of_len) = name_of(self.weights_of);
        sys::dtg_embedding {
            name,
            name_len,
            rows: self.rows,
            width: self.width,
            table: self.table.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_embedding::INIT
        }
    }
}

// SAFETY of all calls below: node_of gives an open model, and a place for one value; structs and the names in them
// outlive the call.
impl Model {
    /// `activation(x * kernel + bias)` over the last dimension of x, which must be known.
    #[track_caller]
    pub fn dense(&self, x: Value, layer: &Dense<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_dense(model, x.0, &raw, out) })
    }

    /// Slides `kernel[height, width, in, filters]` over `x[batch, height, width, in]` and adds a bias.
    #[track_caller]
    pub fn conv2d(&self, x: Value, layer: &Conv2D<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let (weights_of, weights_of_len) = name_of(layer.weights_of);
        let raw = sys::dtg_conv2d {
            name,
            name_len,
            filters: layer.filters,
            kernel_height: layer.kernel_size.0,
            kernel_width: layer.kernel_size.1,
            stride_height: layer.strides.0,
            stride_width: layer.strides.1,
            dilation_height: layer.dilations.0,
            dilation_width: layer.dilations.1,
            padding: layer.padding.number(),
            activation: layer.activation.number(),
            no_bias: layer.no_bias.into(),
            kernel: layer.kernel.raw(),
            bias: layer.bias.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_conv2d::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_conv2d(model, x.0, &raw, out) })
    }

    /// The greatest element of each window of `x[batch, height, width, channels]`.
    #[track_caller]
    pub fn max_pool2d(&self, x: Value, layer: &Pool2D<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_max_pool2d(model, x.0, &raw, out) })
    }

    /// The mean of each window, padding not counted.
    #[track_caller]
    pub fn avg_pool2d(&self, x: Value, layer: &Pool2D<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_avg_pool2d(model, x.0, &raw, out) })
    }

    /// x as `[batch, everything else]`.
    #[track_caller]
    pub fn flatten(&self, x: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_flatten(model, x.0, out) })
    }

    /// Sets a share `rate` in [0, 1) of the elements to zero and divides the rest by 1 - rate; which ones is decided anew for each
    /// value of `step`, an int64 scalar. `training`, a bool scalar, lets x through unchanged where it is false; None: always true.
    #[track_caller]
    pub fn dropout(&self, x: Value, rate: f64, step: Value, training: Option<Value>) -> Result<Value> {
        let training = Value::or_none(training);
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_dropout(model, x.0, rate, step.0, training, out) })
    }

    /// `out[..., width] = table[ids[...]]`; ids int32 or int64 in [0, rows).
    #[track_caller]
    pub fn embedding(&self, ids: Value, layer: &Embedding<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_embedding(model, ids.0, &raw, out) })
    }

    /// x as float32, (x - shift) / scale for each feature along its last dimension, by the text of
    /// [`Dataset::fit_normalization`](crate::Dataset::fit_normalization). In the graph it is part of what is exported and served.
    #[track_caller]
    pub fn normalize(&self, x: Value, normalization: &str) -> Result<Value> {
        let (text, length) = (normalization.as_ptr().cast(), normalization.len());
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_normalize(model, x.0, text, length, out) })
    }

    /// x through an activation.
    #[track_caller]
    pub fn activation(&self, x: Value, activation: Activation) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_activation(model, x.0, activation.number(), out) })
    }

    /// Mean over the batch of `-log softmax(logits)[label]`; `logits[batch, classes]`, labels int32 or int64 `[batch]`.
    #[track_caller]
    pub fn sparse_softmax_cross_entropy(&self, labels: Value, logits: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sparse_softmax_cross_entropy(model, labels.0, logits.0, out) })
    }

    /// The same with `labels[batch, classes]` as distributions.
    #[track_caller]
    pub fn softmax_cross_entropy(&self, labels: Value, logits: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_softmax_cross_entropy(model, labels.0, logits.0, out) })
    }

    /// Mean over all elements of the cross entropy of labels in [0, 1] under sigmoid(logits).
    #[track_caller]
    pub fn sigmoid_cross_entropy(&self, labels: Value, logits: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sigmoid_cross_entropy(model, labels.0, logits.0, out) })
    }

    /// Mean over all elements of (labels - predictions)².
    #[track_caller]
    pub fn mean_squared_error(&self, labels: Value, predictions: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_mean_squared_error(model, labels.0, predictions.0, out) })
    }

    /// Share of rows whose greatest logit is the label's: float32 in [0, 1].
    #[track_caller]
    pub fn accuracy(&self, labels: Value, logits: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_accuracy(model, labels.0, logits.0, out) })
    }

    /// How many rows that are: int64, for accuracy over many batches.
    #[track_caller]
    pub fn correct_count(&self, labels: Value, logits: Value) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_correct_count(model, labels.0, logits.0, out) })
    }
}
