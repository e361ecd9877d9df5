//! Layers of places, bags and chance, and attention step by step. They add to a model's graph.

use dtg_sys as sys;

use crate::error::{Result, built};
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::{Initializer, Model};
use crate::sequence::Attention;

/// How the places of a sequence are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PositionKind {
    /// sin and cos by turns, no variables.
    #[default]
    Sine,
    /// `embeddings[longest, width]`.
    Learned,
}

/// Tells attention in which order places stand; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PositionEmbedding<'a> {
    /// Of a learned one; default: `position_embedding`.
    pub name: Option<&'a str>,
    /// How they are told.
    pub kind: PositionKind,
    /// Of a sine, the longest; 0: 10000.
    pub wavelength: f64,
    /// Of a learned one: places that it has rows for.
    pub longest: i64,
    /// int32 or int64 scalar: the place of the first step, in decoding; None: 0.
    pub start: Option<Value>,
    /// Default: Glorot uniform.
    pub table: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// What one row is made of the rows of a bag, w being their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Combiner {
    /// `sum(w row) / sum(w)`.
    #[default]
    Mean,
    /// `sum(w row)`.
    Sum,
    /// `sum(w row) / sqrt(sum(w²))`.
    SqrtN,
}

/// A table whose rows are combined; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EmbeddingBag<'a> {
    /// Default: `embedding_bag`.
    pub name: Option<&'a str>,
    /// How many vectors.
    pub rows: i64,
    /// How long each is.
    pub width: i64,
    /// What becomes of a bag's rows.
    pub combiner: Combiner,
    /// int32 or int64 `[batch]`: how many ids of each bag count; None: all.
    pub lengths: Option<Value>,
    /// float32 `[batch, places]`; None: 1 each.
    pub weights: Option<Value>,
    /// Default: uniform in [-0.05, 0.05).
    pub table: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
}

/// What is drawn in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Noise {
    /// Whole channels of `x[batch, ..., channels]` become 0, the rest is divided by 1 - amount.
    SpatialDropout,
    /// `x + amount * n`, n normal.
    Gaussian,
    /// `x * (1 + sqrt(amount / (1 - amount)) * n)`.
    GaussianDropout,
    /// For networks of SELU, whose mean and variance it keeps.
    AlphaDropout,
}

/// What decoding keeps: the keys and values of the places before, `[batch, longest, heads, width]`. Fetch them and feed them to the next run,
/// or carry them from round to round of a [`Graph::while_loop`](crate::Graph::while_loop) whose body decodes with the layers of
/// [`Model::inside`]; `dtg/examples/models/decode.rs` does so, with beams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionCache {
    /// Keys as the heads see them.
    pub keys: Value,
    /// Values, likewise.
    pub values: Value,
    /// How many places are there, an int32 scalar; None: all, and none is added.
    pub position: Option<Value>,
}

impl AttentionCache {
    fn raw(&self) -> sys::dtg_attention_cache {
        sys::dtg_attention_cache {
            keys: self.keys.0,
            values: self.values.0,
            position: Value::or_none(self.position),
            ..sys::dtg_attention_cache::INIT
        }
    }
    fn of(raw: &sys::dtg_attention_cache) -> Self {
        Self { keys: Value(raw.keys), values: Value(raw.values), position: Value::some(raw.position) }
    }
}

// SAFETY of all calls below: node_of gives an open model, and a place for one value; structs and the names in them
// outlive the call.
impl Model {
    /// `x[batch, steps, width]` plus the vector of each step's place.
    #[track_caller]
    pub fn position_embedding(&self, x: Value, layer: &PositionEmbedding<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let (weights_of, weights_of_len) = name_of(layer.weights_of);
        let raw = sys::dtg_position {
            name,
            name_len,
            kind: match layer.kind {
                PositionKind::Sine => sys::DTG_POSITION_SINE,
                PositionKind::Learned => sys::DTG_POSITION_LEARNED,
            },
            wavelength: layer.wavelength,
            longest: layer.longest,
            start: Value::or_none(layer.start),
            table: layer.table.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_position::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_position_embedding(model, x.0, &raw, out) })
    }

    /// One row `[batch, width]` per bag of `ids[batch, places]`. Beyond a bag's length nothing is looked up, and no row gets a gradient; an
    /// empty bag gives zeros.
    #[track_caller]
    pub fn embedding_bag(&self, ids: Value, layer: &EmbeddingBag<'_>) -> Result<Value> {
        let (name, name_len) = name_of(layer.name);
        let (weights_of, weights_of_len) = name_of(layer.weights_of);
        let raw = sys::dtg_embedding_bag {
            name,
            name_len,
            rows: layer.rows,
            width: layer.width,
            combiner: match layer.combiner {
                Combiner::Mean => sys::DTG_COMBINE_MEAN,
                Combiner::Sum => sys::DTG_COMBINE_SUM,
                Combiner::SqrtN => sys::DTG_COMBINE_SQRTN,
            },
            lengths: Value::or_none(layer.lengths),
            weights: Value::or_none(layer.weights),
            table: layer.table.raw(),
            weights_of,
            weights_of_len,
            ..sys::dtg_embedding_bag::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_embedding_bag(model, ids.0, &raw, out) })
    }

    /// x with that noise, the share or deviation being `amount`; `step` and `training` as in [`Model::dropout`].
    #[track_caller]
    pub fn noise(&self, x: Value, kind: Noise, amount: f64, step: Value, training: Option<Value>) -> Result<Value> {
        let training = Value::or_none(training);
        let kind = match kind {
            Noise::SpatialDropout => sys::DTG_SPATIAL_DROPOUT,
            Noise::Gaussian => sys::DTG_GAUSSIAN_NOISE,
            Noise::GaussianDropout => sys::DTG_GAUSSIAN_DROPOUT,
            Noise::AlphaDropout => sys::DTG_ALPHA_DROPOUT,
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_noise(model, x.0, kind, amount, step.0, training, out) })
    }

    /// `x[batch, ..., channels]` with `sizes` entries along the dimensions between, each the mean of its share of them. The dimensions of x
    /// must be known.
    #[track_caller]
    pub fn adaptive_avg_pool(&self, x: Value, sizes: &[i64]) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_adaptive_pool(model, x.0, sizes.as_ptr(), sizes.len(), 0, out) })
    }

    /// The greatest, likewise.
    #[track_caller]
    pub fn adaptive_max_pool(&self, x: Value, sizes: &[i64]) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_adaptive_pool(model, x.0, sizes.as_ptr(), sizes.len(), 1, out) })
    }

    /// The cache of the places of `value[batch, places, in]`, with room for `longest` in all; 0: for those only. Give the layer the
    /// `weights_of` of the one that was trained.
    #[track_caller]
    pub fn attention_cache(&self, value: Value, layer: &Attention<'_>, longest: i64) -> Result<AttentionCache> {
        let raw = layer.raw();
        let mut cache = sys::dtg_attention_cache::INIT;
        // SAFETY: see above.
        unsafe { built(sys::dtg_nn_attention_cache(self.raw(), value.0, &raw, longest, &mut cache)) }?;
        Ok(AttentionCache::of(&cache))
    }

    /// What [`Model::attention`] gives for the next places, `query[batch, places, in]`, with their keys and values written into the cache,
    /// and each seeing all up to its own; and the cache as it is then. In the body of a loop ask the [`Model::inside`] of it. Places that do not
    /// fit are an error of the run.
    #[track_caller]
    pub fn attention_step(&self, query: Value, layer: &Attention<'_>, cache: &AttentionCache) -> Result<(Value, AttentionCache)> {
        let raw = layer.raw();
        let mut after = cache.raw();
        // SAFETY: see above.
        let out = self.node_of(|model, out| unsafe { sys::dtg_nn_attention_step(model, query.0, &raw, &mut after, out) })?;
        Ok((out, AttentionCache::of(&after)))
    }
}
