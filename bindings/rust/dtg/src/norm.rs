//! Normalizations, with the names, formulas and defaults of tf.keras. They add to a model's graph, so they take `&mut`.

use dtg_sys as sys;

use crate::error::Result;
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::Model;

/// Batch normalization; write `..Default::default()` for what is not said. Its variables go over the channels: `gamma` (first ones), `beta`
/// (zeros), and `moving_mean` (zeros) and `moving_variance` (ones), which are not trained. Of a 16-bit input they are float32.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BatchNorm<'a> {
    /// Default: `batch_normalization`.
    pub name: Option<&'a str>,
    /// Share of the moving statistics that a step leaves; 0: 0.99.
    pub momentum: f64,
    /// 0: 0.001.
    pub epsilon: f64,
    /// Without beta.
    pub no_center: bool,
    /// Without gamma.
    pub no_scale: bool,
    /// A bool scalar, such as a placeholder; None: always true.
    pub training: Option<Value>,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// What normalizes each example by itself; write `..Default::default()` for what is not said. Its variables: `gamma` and `beta` over the
/// channels; of RMS normalization `scale` alone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Norm<'a> {
    /// Default: `layer_normalization`, `rms_normalization`, `group_normalization`.
    pub name: Option<&'a str>,
    /// 0: 0.001; of RMS normalization 0.000001.
    pub epsilon: f64,
    /// Of group normalization; 0: 32.
    pub groups: i64,
    /// Without beta.
    pub no_center: bool,
    /// Without gamma, or scale.
    pub no_scale: bool,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

impl Norm<'_> {
    fn raw(&self) -> sys::dtg_norm {
        let (name, name_len) = name_of(self.name);
        let (weights_of, weights_of_len) = name_of(self.weights_of);
        sys::dtg_norm {
            name,
            name_len,
            epsilon: self.epsilon,
            groups: self.groups,
            no_center: self.no_center.into(),
            no_scale: self.no_scale.into(),
            weights_of,
            weights_of_len,
            ..sys::dtg_norm::INIT
        }
    }
}

// SAFETY of all calls below: node_of gives an open model and a place for one value; structs and the names in them
// outlive the call.
impl Model {
    /// `gamma * (x - mean) / sqrt(variance + epsilon) + beta` for each channel of `x[batch, ..., channels]`, rank 2 to 8: while `training`,
    /// with mean and variance of the batch over all dimensions but the last; otherwise with the moving ones. Each step of
    /// [`Model::minimize`] and its kin moves those by 1 - momentum of the way to the batch's, whatever the optimizer; with several workers
    /// or towers, to the mean of theirs. A step that is run with `training` false leaves them as they are.
    #[track_caller]
    pub fn batch_norm(&self, x: Value, layer: &BatchNorm<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let (weights_of, weights_of_len) = name_of(layer.weights_of);
        let raw = sys::dtg_batch_norm {
            name,
            name_len,
            momentum: layer.momentum,
            epsilon: layer.epsilon,
            no_center: layer.no_center.into(),
            no_scale: layer.no_scale.into(),
            training: Value::or_none(layer.training),
            weights_of,
            weights_of_len,
            ..sys::dtg_batch_norm::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_batch_norm(model, x.0, &raw, out) })
    }

    /// `gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with mean and variance of each vector along the last dimension of x, rank 1
    /// to 8.
    #[track_caller]
    pub fn layer_norm(&self, x: Value, layer: &Norm<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_layer_norm(model, x.0, &raw, out) })
    }

    /// `scale * x / sqrt(mean of x² + epsilon)`, likewise.
    #[track_caller]
    pub fn rms_norm(&self, x: Value, layer: &Norm<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_rms_norm(model, x.0, &raw, out) })
    }

    /// As layer normalization, with mean and variance of each example and each of `groups` equal groups of channels of
    /// `x[batch, ..., channels]`, rank 2 to 8; as many groups as channels is instance normalization. Errors: `InvalidArgument` also where
    /// the channels cannot be cut so.
    #[track_caller]
    pub fn group_norm(&self, x: Value, layer: &Norm<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_group_norm(model, x.0, &raw, out) })
    }
}
