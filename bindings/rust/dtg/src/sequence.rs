//! Layers over sequences: recurrent ones and attention, as in tf.keras. One thread at a time adds to a model.

use dtg_sys as sys;

use crate::error::{Result, built};
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::{Initializer, Model};

/// The cell of a recurrent layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RecurrentKind {
    /// For float32 and float16.
    #[default]
    Lstm,
    /// With the reset gate after the product: `reset_after` of Keras, its default.
    Gru,
    /// `h' = tanh(x kernel + h recurrent_kernel + bias)`.
    Simple,
}

impl RecurrentKind {
    fn number(self) -> i32 {
        match self {
            Self::Lstm => sys::DTG_LSTM,
            Self::Gru => sys::DTG_GRU,
            Self::Simple => sys::DTG_SIMPLE_RNN,
        }
    }
}

/// Which way a recurrent layer goes over the steps. Outputs stand in the order of the input in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Direction {
    /// From the first step to the last.
    #[default]
    Forward,
    /// From the last step to the first.
    Backward,
    /// One layer each way, with weights of its own, under the scopes `forward` and `backward`; outputs side by side.
    Both,
}

impl Direction {
    fn number(self) -> i32 {
        match self {
            Self::Forward => sys::DTG_FORWARD,
            Self::Backward => sys::DTG_BACKWARD,
            Self::Both => sys::DTG_BOTH,
        }
    }
}

/// A recurrent layer; write `..Default::default()` for what is not said. Its variables: `kernel[in, gates * units]`, first value Glorot
/// uniform; `recurrent_kernel[units, gates * units]`, orthogonal; `bias[gates * units]`, of a GRU `[2, gates * units]`, zeros. The gates are
/// those of Keras in its order: LSTM input, forget, candidate, output; GRU update, reset, candidate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Recurrent<'a> {
    /// Default: `lstm`, `gru`, `simple_rnn`; `bidirectional`.
    pub name: Option<&'a str>,
    /// Default: an LSTM.
    pub kind: RecurrentKind,
    /// Default: forward.
    pub direction: Direction,
    /// The size of the state, at least 1.
    pub units: i64,
    /// Without a bias.
    pub no_bias: bool,
    /// The bias of an LSTM's forget gate begins like the others; without this at 1.
    pub no_forget_bias: bool,
    /// Default: Glorot uniform.
    pub kernel: Initializer,
    /// Default: orthogonal.
    pub recurrent: Initializer,
    /// Default: zeros.
    pub bias: Initializer,
    /// int32 or int64 `[batch]`: steps of each example that count, 0 to all; None: all. More is an error of the run.
    pub lengths: Option<Value>,
    /// First state `[batch, units]`; None: zeros. Not with [`Direction::Both`].
    pub hidden: Option<Value>,
    /// Of an LSTM, likewise.
    pub cell: Option<Value>,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// What a recurrent layer gives. With [`Direction::Both`] every last dimension is 2 * units, forward first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecurrentResult {
    /// `[batch, steps, units]`, in the order of the input. Beyond an example's length: forward its last output, else zeros.
    pub outputs: Value,
    /// `[batch, units]`, after each example's last step (backward: its first).
    pub hidden: Value,
    /// Of an LSTM, likewise.
    pub cell: Option<Value>,
}

/// Attention with several heads; write `..Default::default()` for what is not said. Its variables: `query/kernel` and `key/kernel`
/// `[in, heads, key_width]`, `value/kernel[in, heads, value_width]`, `attention_output/kernel[heads, value_width, output_width]`, and a
/// `bias` beside each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Attention<'a> {
    /// Default: `multi_head_attention`.
    pub name: Option<&'a str>,
    /// At least 1.
    pub heads: i64,
    /// Of each head, at least 1.
    pub key_width: i64,
    /// Of each head; 0: like the key.
    pub value_width: i64,
    /// 0: that of the query.
    pub output_width: i64,
    /// Without biases.
    pub no_bias: bool,
    /// Place i of the query sees keys 0 to i only.
    pub causal: bool,
    /// `[batch, keys, in]`; None: the value.
    pub key: Option<Value>,
    /// bool `[batch, queries, keys]`, or dimensions of 1 for what is the same for all: what may be seen; None: all.
    pub mask: Option<Value>,
    /// int32 or int64 `[batch]`: how many keys of each example count; None: all.
    pub lengths: Option<Value>,
    /// Default: Glorot uniform.
    pub kernel: Initializer,
    /// Default: zeros.
    pub bias: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

impl Attention<'_> {
    /// For C, while the names live.
    pub(crate) fn raw(&self) -> sys::dtg_attention {
        let (name, name_len) = name_of(self.name);
        let (weights_of, weights_of_len) = name_of(self.weights_of);
        sys::dtg_attention {
            name,
            name_len,
            heads: self.heads,
            key_width: self.key_width,
            value_width: self.value_width,
            output_width: self.output_width,
            no_bias: self.no_bias.into(),
            causal: self.causal.into(),
            key: Value::or_none(self.key),
            mask: Value::or_none(self.mask),
            lengths: Value::or_none(self.lengths),
            kernel: self.kernel.raw(),
            bias: self.bias.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_attention::INIT
        }
    }
}

impl Model {
    /// Runs over the steps of `x[batch, steps, in]`. An LSTM is one node; the others are a loop, whose products with x are made before it
    /// for all steps at once.
    #[track_caller]
    pub fn recurrent(&self, x: Value, layer: &Recurrent<'_>) -> Result<RecurrentResult> {
        let (name, name_len) = name_of(layer.name);
        let (weights_of, weights_of_len) = name_of(layer.weights_of);
        let raw = sys::dtg_recurrent {
            name,
            name_len,
            kind: layer.kind.number(),
            direction: layer.direction.number(),
            units: layer.units,
            no_bias: layer.no_bias.into(),
            no_forget_bias: layer.no_forget_bias.into(),
            kernel: layer.kernel.raw(),
            recurrent: layer.recurrent.raw(),
            bias: layer.bias.raw(),
            lengths: Value::or_none(layer.lengths),
            hidden: Value::or_none(layer.hidden),
            cell: Value::or_none(layer.cell),
            weights_of,
            weights_of_len,
            ..sys::dtg_recurrent::INIT
        };
        let mut out = sys::dtg_recurrent_result::INIT;
        // SAFETY: an open model; the struct and the names in it outlive the call.
        unsafe { built(sys::dtg_nn_recurrent(self.raw(), x.0, &raw, &mut out)) }?;
        Ok(RecurrentResult { outputs: Value(out.outputs), hidden: Value(out.hidden), cell: Value::some(out.cell) })
    }

    /// For each head `softmax(q k' / sqrt(key_width)) v` with projections q of `query[batch, queries, in]`, k of the key and v of
    /// `value[batch, keys, in']`, the heads side by side projected to `[batch, queries, output_width]`. What the mask, the lengths or
    /// `causal` hide has no weight. Query, key and value are of one floating-point type; self-attention gives the same value for all.
    #[track_caller]
    pub fn attention(&self, query: Value, value: Value, layer: &Attention<'_>) -> Result<Value> {
        let raw = layer.raw();
        // SAFETY: an open model; the struct and the names in it outlive the call.
        self.node_of(|model, out| unsafe { sys::dtg_nn_attention(model, query.0, value.0, &raw, out) })
    }
}
