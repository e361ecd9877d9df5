//! Layers of categories: hashing, and numbers by a vocabulary. They add to a model's graph.

use std::ptr;

use dtg_sys as sys;

use crate::error::Result;
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::Model;
use crate::tensor::Tensor;

/// How the numbers of categories come out. In rows there is a place for each category, `depth` in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OutputMode {
    /// int64, shaped like x: what an embedding looks up.
    #[default]
    Int,
    /// float32 `[..., depth]`: 1 at the number's place; of an x whose last dimension is 1, in place of that.
    OneHot,
    /// float32 `[depth]` of `x[places]`, `[batch, depth]` of `x[batch, places]`: 1 for each number that is there.
    MultiHot,
    /// Likewise, how often it is there.
    Count,
}

impl OutputMode {
    fn raw(self) -> sys::dtg_output_mode {
        match self {
            OutputMode::Int => sys::DTG_OUTPUT_INT,
            OutputMode::OneHot => sys::DTG_OUTPUT_ONE_HOT,
            OutputMode::MultiHot => sys::DTG_OUTPUT_MULTI_HOT,
            OutputMode::Count => sys::DTG_OUTPUT_COUNT,
        }
    }
}

/// Gives each text or integer a bin by its hash, always the same one, here and in TensorFlow; write `..Default::default()` for what is not
/// said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hashing<'a> {
    /// Default: `hashing`.
    pub name: Option<&'a str>,
    /// At least 1.
    pub num_bins: i64,
    /// A scalar, string or (of integers) int64: it has bin 0, and no other value has.
    pub mask_value: Option<&'a Tensor>,
    /// Who does not know it cannot aim at a bin; one number of Keras is twice the same here.
    pub salt: Option<[u64; 2]>,
    /// How the bins come out.
    pub output_mode: OutputMode,
}

/// Gives categories numbers by a vocabulary; write `..Default::default()` for what is not said.
///
/// Numbers are given out in this order: 0 to the mask token, where there is one and the mode is [`OutputMode::Int`]; then `num_oov_indices`
/// to what is not in the vocabulary, such as a category that training did not know; then one to each token. So an embedding needs 1 row for
/// the mask token, where there is one, `num_oov_indices` and one for each token. The vocabulary becomes part of the graph, and is exported
/// and loaded with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lookup<'a> {
    /// Default: `string_lookup` or `integer_lookup`, after the vocabulary.
    pub name: Option<&'a str>,
    /// Strings or int64 `[tokens]`, at least 1, each once; copied.
    pub vocabulary: Option<&'a Tensor>,
    /// A scalar of the same type, which is not in the vocabulary.
    pub mask_token: Option<&'a Tensor>,
    /// Likewise: what numbers become that no token has, where the layer is inverted; default: `"[UNK]"` or -1.
    pub oov_token: Option<&'a Tensor>,
    /// 0: 1. More: texts are spread over them by FarmHash, integers by their remainder.
    pub num_oov_indices: i64,
    /// None: a run with what is not in the vocabulary is `InvalidArgument` and names it.
    pub no_oov: bool,
    /// From numbers to tokens.
    pub invert: bool,
    /// How the numbers come out.
    pub output_mode: OutputMode,
}

fn or_null(tensor: Option<&Tensor>) -> *const sys::dtg_tensor {
    tensor.map_or(ptr::null(), |tensor| tensor.raw().cast_const())
}

impl Model {
    /// The bin in `[0, num_bins)` of each element of x, of any shape: strings, or integers up to int64. Semantics: tf.keras.layers.Hashing;
    /// rows are float32.
    #[track_caller]
    pub fn hashing(&self, x: Value, layer: &Hashing<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let raw = sys::dtg_hashing {
            name,
            name_len,
            num_bins: layer.num_bins,
            mask_value: or_null(layer.mask_value),
            salted: i32::from(layer.salt.is_some()),
            output_mode: layer.output_mode.raw(),
            salt: layer.salt.unwrap_or_default(),
            ..sys::dtg_hashing::INIT
        };
        // SAFETY: an open model, a struct whose texts and tensors outlive the call.
        self.node_of(|model, out| unsafe { sys::dtg_nn_hashing(model, x.0, &raw, out) })
    }

    /// The number of each element of x, strings or integers as the vocabulary is, of any shape; inverted, the token of each number.
    /// Semantics: tf.keras.layers.StringLookup and IntegerLookup; rows are float32.
    ///
    /// ```
    /// use dtg::{DType, Graph, Lookup, Model, Session, Tensor};
    ///
    /// let model = Model::new(Graph::new()?, 1)?;
    /// let city = model.placeholder("city", DType::STRING, Some(&[-1]))?;
    /// let cities = Tensor::from_strings(&[3], &["Berlin", "Lyon", "Porto"])?;
    /// let number = model.lookup(city, &Lookup { vocabulary: Some(&cities), ..Default::default() })?;
    /// let session = Session::connect("local", &model)?;
    /// let asked = Tensor::from_strings(&[2], &["Porto", "Oslo"])?;
    /// assert_eq!(session.run().feed(city, &asked).fetch(number).call()?.slice::<i64>(0)?, [3, 0]);
    /// # Ok::<(), dtg::Error>(())
    /// ```
    #[track_caller]
    pub fn lookup(&self, x: Value, layer: &Lookup<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let raw = sys::dtg_lookup {
            name,
            name_len,
            vocabulary: or_null(layer.vocabulary),
            mask_token: or_null(layer.mask_token),
            oov_token: or_null(layer.oov_token),
            num_oov_indices: layer.num_oov_indices,
            no_oov: i32::from(layer.no_oov),
            invert: i32::from(layer.invert),
            output_mode: layer.output_mode.raw(),
            ..sys::dtg_lookup::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_lookup(model, x.0, &raw, out) })
    }
}
