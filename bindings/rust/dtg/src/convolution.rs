//! The convolutions beyond [`Model::conv2d`], and what makes images smaller to a point or larger, as in tf.keras. They add to a model's graph,
//! so they take `&mut`.

use dtg_sys as sys;

use crate::error::Result;
use crate::graph::Value;
use crate::handle::name_of;
use crate::layers::{Activation, Padding};
use crate::model::{Initializer, Model};

/// A layer of filters; write `..Default::default()` for what is not said. Kernels slide along one, two or three dimensions, which is how
/// many entries of `kernel_size`, `strides` and `dilations` count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Conv<'a> {
    /// Default: after the function, such as `conv1d`.
    pub name: Option<&'a str>,
    /// Channels of the output, at least 1; depthwise: not looked at.
    pub filters: i64,
    /// Depthwise and separable: outputs of each channel; 0: 1.
    pub multiplier: i64,
    /// 0: the first 3, the others like the one before.
    pub kernel_size: [i64; 3],
    /// 0: the first 1, the others like the one before.
    pub strides: [i64; 3],
    /// Likewise.
    pub dilations: [i64; 3],
    /// Default: valid.
    pub padding: Padding,
    /// [`Model::conv1d`]: zeros before the first step only, so that no output sees a later input; `padding` does not count.
    pub causal: bool,
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

impl Conv<'_> {
    fn raw(&self) -> sys::dtg_conv {
        let (name, name_len) = name_of(self.name);
        let (weights_of, weights_of_len) = name_of(self.weights_of);
        sys::dtg_conv {
            name,
            name_len,
            filters: self.filters,
            multiplier: self.multiplier,
            kernel: self.kernel_size,
            stride: self.strides,
            dilation: self.dilations,
            padding: self.padding.number(),
            causal: self.causal.into(),
            activation: self.activation.number(),
            no_bias: self.no_bias.into(),
            kernel_init: self.kernel.raw(),
            bias_init: self.bias.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_conv::INIT
        }
    }
}

// SAFETY of all calls below: node_of gives an open model and a place for one value; structs and the names in them
// outlive the call.
impl Model {
    /// Slides `kernel[width, in, filters]` over the steps of `x[batch, steps, in]`.
    #[track_caller]
    pub fn conv1d(&self, x: Value, layer: &Conv<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_conv1d(model, x.0, &raw, out) })
    }

    /// Slides `kernel[., ., ., in, filters]` over `x[batch, depth, height, width, in]`.
    #[track_caller]
    pub fn conv3d(&self, x: Value, layer: &Conv<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_conv3d(model, x.0, &raw, out) })
    }

    /// What the gradient of a convolution does, as a layer: `x[batch, height, width, in]` becomes size * stride pixels high and wide, with
    /// [`Padding::Valid`] kernel - stride more where that is positive; `kernel[., ., filters, in]`. Errors: `Unimplemented` for dilations
    /// other than 1.
    #[track_caller]
    pub fn conv2d_transpose(&self, x: Value, layer: &Conv<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_conv2d_transpose(model, x.0, &raw, out) })
    }

    /// Each channel of `x[batch, height, width, in]` by itself: `kernel[., ., in, multiplier]`, the answer `[..., in * multiplier]`. Both
    /// strides are equal.
    #[track_caller]
    pub fn depthwise_conv2d(&self, x: Value, layer: &Conv<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_depthwise_conv2d(model, x.0, &raw, out) })
    }

    /// The same, then a product over the channels: `depthwise_kernel[., ., in, multiplier]`,
    /// `pointwise_kernel[1, 1, in * multiplier, filters]`.
    #[track_caller]
    pub fn separable_conv2d(&self, x: Value, layer: &Conv<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_separable_conv2d(model, x.0, &raw, out) })
    }

    /// The mean of each channel of `x[batch, ..., channels]`, floating-point, of rank 3 to 5, over all that lies between:
    /// `[batch, channels]`; with `keep_dims`, dimensions of 1 in its place.
    #[track_caller]
    pub fn global_avg_pool(&self, x: Value, keep_dims: bool) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_global_avg_pool(model, x.0, keep_dims.into(), out) })
    }

    /// The greatest, likewise; equally great ones share the gradient.
    #[track_caller]
    pub fn global_max_pool(&self, x: Value, keep_dims: bool) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_global_max_pool(model, x.0, keep_dims.into(), out) })
    }

    /// `x[batch, height, width, channels]`, `high` times as high and `wide` times as wide, both at least 1: each pixel repeated, or with
    /// `bilinear` mixed from its neighbours by distance of their centres.
    #[track_caller]
    pub fn up_sampling2d(&self, x: Value, high: i64, wide: i64, bilinear: bool) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_up_sampling2d(model, x.0, high, wide, bilinear.into(), out) })
    }
}
