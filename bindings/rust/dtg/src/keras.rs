//! Losses of tf.keras, losses over sampled classes, and metrics that go on over batches. They add to a model's graph, one thread at a time.

use std::ptr::null;

use dtg_sys as sys;

use crate::error::{Result, built};
use crate::graph::Value;
use crate::handle::name_of;
use crate::model::{Initializer, Model};

/// Which loss of labels y and predictions p, as tf.keras.losses has it under this name. Means and sums go over the last dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LossKind {
    /// Mean (y - p)².
    #[default]
    MeanSquaredError,
    /// Mean |y - p|.
    MeanAbsoluteError,
    /// 100 mean |y - p| / |y|.
    MeanAbsolutePercentageError,
    /// Mean (log(1 + p) - log(1 + y))².
    MeanSquaredLogarithmicError,
    /// Squared up to Delta, straight beyond.
    Huber,
    /// Mean log cosh(p - y).
    LogCosh,
    /// -1 for equal directions.
    CosineSimilarity,
    /// Sum y log(y / p).
    KlDivergence,
    /// Mean p - y log p.
    Poisson,
    /// Mean max(1 - y p, 0).
    Hinge,
    /// Mean max(1 - y p, 0)².
    SquaredHinge,
    /// How far the best wrong class is from one below the right one.
    CategoricalHinge,
    /// Mean -y log p - (1 - y) log(1 - p).
    BinaryCrossentropy,
    /// The same, less for what is right.
    BinaryFocalCrossentropy,
    /// -sum y log p.
    CategoricalCrossentropy,
    /// The same, less for what is right.
    CategoricalFocalCrossentropy,
    /// -log p`[y]`; labels are numbers of classes.
    SparseCategoricalCrossentropy,
    /// Labels`[batch, length]` with zeros at the end, logits`[batch, steps, classes]`, class 0 the blank.
    Ctc,
    /// 1 - 2 sum y p / (sum y + sum p).
    Dice,
    /// With alpha for what is missed and beta for what is invented.
    Tversky,
    /// Of distances p, y 1 for pairs of a kind.
    Contrastive,
}

impl LossKind {
    fn number(self) -> i32 {
        match self {
            Self::MeanSquaredError => sys::DTG_LOSS_MEAN_SQUARED_ERROR,
            Self::MeanAbsoluteError => sys::DTG_LOSS_MEAN_ABSOLUTE_ERROR,
            Self::MeanAbsolutePercentageError => sys::DTG_LOSS_MEAN_ABSOLUTE_PERCENTAGE_ERROR,
            Self::MeanSquaredLogarithmicError => sys::DTG_LOSS_MEAN_SQUARED_LOGARITHMIC_ERROR,
            Self::Huber => sys::DTG_LOSS_HUBER,
            Self::LogCosh => sys::DTG_LOSS_LOG_COSH,
            Self::CosineSimilarity => sys::DTG_LOSS_COSINE_SIMILARITY,
            Self::KlDivergence => sys::DTG_LOSS_KL_DIVERGENCE,
            Self::Poisson => sys::DTG_LOSS_POISSON,
            Self::Hinge => sys::DTG_LOSS_HINGE,
            Self::SquaredHinge => sys::DTG_LOSS_SQUARED_HINGE,
            Self::CategoricalHinge => sys::DTG_LOSS_CATEGORICAL_HINGE,
            Self::BinaryCrossentropy => sys::DTG_LOSS_BINARY_CROSSENTROPY,
            Self::BinaryFocalCrossentropy => sys::DTG_LOSS_BINARY_FOCAL_CROSSENTROPY,
            Self::CategoricalCrossentropy => sys::DTG_LOSS_CATEGORICAL_CROSSENTROPY,
            Self::CategoricalFocalCrossentropy => sys::DTG_LOSS_CATEGORICAL_FOCAL_CROSSENTROPY,
            Self::SparseCategoricalCrossentropy => sys::DTG_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
            Self::Ctc => sys::DTG_LOSS_CTC,
            Self::Dice => sys::DTG_LOSS_DICE,
            Self::Tversky => sys::DTG_LOSS_TVERSKY,
            Self::Contrastive => sys::DTG_LOSS_CONTRASTIVE,
        }
    }
}

/// What becomes of the losses of the examples, times their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LossReduction {
    /// Their sum over their number, weights of 0 counted.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Themselves.
    Each,
    /// Their sum over that of the weights.
    MeanByWeights,
}

impl LossReduction {
    fn number(self) -> i32 {
        match self {
            Self::Mean => sys::DTG_LOSS_MEAN,
            Self::Sum => sys::DTG_LOSS_SUM,
            Self::Each => sys::DTG_LOSS_EACH,
            Self::MeanByWeights => sys::DTG_LOSS_MEAN_BY_WEIGHTS,
        }
    }
}

/// A loss and its settings; write `..Default::default()` for what is not said. Numbers of 0 take their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loss<'a> {
    /// Default: the name of the kind in tf.keras.
    pub name: Option<&'a str>,
    /// Default: the mean squared error.
    pub kind: LossKind,
    /// Default: the mean.
    pub reduction: LossReduction,
    /// Of cross entropies: predictions are logits. Nothing overflows, so prefer them.
    pub from_logits: bool,
    /// Of binary focal: weights by alpha.
    pub class_balancing: bool,
    /// Of dice and tversky: of each example by itself.
    pub per_example: bool,
    /// Of sparse: labels of this class have no loss; it may be none of the classes.
    pub ignore_class: Option<i64>,
    /// Of the classes; 0: the last.
    pub axis: i64,
    /// Of cross entropies with distributions: this share of each label goes to all classes alike.
    pub label_smoothing: f64,
    /// Of huber; 0: 1.
    pub delta: f64,
    /// Of focal losses; 0: 0.25. Of tversky; 0: 0.5.
    pub alpha: f64,
    /// Of tversky; 0: 0.5.
    pub beta: f64,
    /// Of focal losses; 0: 2.
    pub gamma: f64,
    /// Of contrastive; 0: 1.
    pub margin: f64,
    /// `[classes]`: what an example of each counts; None: all alike.
    pub class_weights: Option<Value>,
    /// Of CTC: steps of each example that count; None: all.
    pub lengths: Option<Value>,
    /// What each example counts; None: all alike. Of metrics, give those of [`Metric`].
    pub sample_weights: Option<Value>,
}

impl Loss<'_> {
    fn raw(&self) -> sys::dtg_loss {
        let (name, name_len) = name_of(self.name);
        sys::dtg_loss {
            name,
            name_len,
            kind: self.kind.number(),
            reduction: self.reduction.number(),
            from_logits: self.from_logits.into(),
            class_balancing: self.class_balancing.into(),
            per_example: self.per_example.into(),
            ignores_class: self.ignore_class.is_some().into(),
            ignore_class: self.ignore_class.unwrap_or(0),
            axis: self.axis,
            label_smoothing: self.label_smoothing,
            delta: self.delta,
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            margin: self.margin,
            class_weights: Value::or_none(self.class_weights),
            lengths: Value::or_none(self.lengths),
            ..sys::dtg_loss::INIT
        }
    }
}

/// A loss over sampled classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SampledKind {
    /// Each class by itself, with the sigmoid.
    #[default]
    Nce,
    /// Over the true and the sampled classes.
    SampledSoftmax,
}

impl SampledKind {
    fn number(self) -> i32 {
        match self {
            Self::Nce => sys::DTG_NCE,
            Self::SampledSoftmax => sys::DTG_SAMPLED_SOFTMAX,
        }
    }
}

/// A last layer for very many classes with its loss: variables `weights[classes, width]` and `biases[classes]`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SampledLoss<'a> {
    /// Default: `nce` or `sampled_softmax`.
    pub name: Option<&'a str>,
    /// Default: NCE.
    pub kind: SampledKind,
    /// Default: the mean.
    pub reduction: LossReduction,
    /// How many there are.
    pub classes: i64,
    /// How many are sampled per step, at most `classes`.
    pub samples: i64,
    /// All classes alike; without it the first ones are the most frequent.
    pub uniform: bool,
    /// Sampled classes that are true ones count against the example all the same.
    pub keep_hits: bool,
    /// Default: Glorot uniform.
    pub weights: Initializer,
    /// Default: zeros.
    pub biases: Initializer,
    /// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
    pub weights_of: Option<&'a str>,
    /// Classes of one's own, int64 `[samples]`, with how often each true class `[batch, trues]` and each of them was to be expected.
    pub sampled: Option<(Value, Value, Value)>,
}

/// Which metric of labels y and predictions p, as tf.keras.metrics has it under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MetricKind {
    /// Of values, without labels.
    #[default]
    Mean,
    /// Of values, without labels.
    Sum,
    /// The mean of a loss.
    Loss,
    /// Mean (y - p)².
    MeanSquaredError,
    /// Mean |y - p|.
    MeanAbsoluteError,
    /// The root of the mean of (y - p)².
    RootMeanSquaredError,
    /// Of `[batch, outputs]`.
    R2Score,
    /// Binary cross entropy.
    LogLoss,
    /// How often p is y.
    Accuracy,
    /// How often (p > threshold) is y.
    BinaryAccuracy,
    /// How often the greatest p is where the greatest y is.
    CategoricalAccuracy,
    /// How often it is at y.
    SparseCategoricalAccuracy,
    /// How often that is among the k greatest.
    TopKCategoricalAccuracy,
    /// Likewise, y a number of a class.
    SparseTopKCategoricalAccuracy,
    /// The area under a curve.
    Auc,
    /// True / (true + false positives).
    Precision,
    /// True positives / all that are there.
    Recall,
    /// How many.
    TruePositives,
    /// How many.
    FalsePositives,
    /// How many.
    TrueNegatives,
    /// How many.
    FalseNegatives,
    /// Of `[batch, classes]`.
    F1Score,
    /// Of numbers of classes, or scores.
    MeanIou,
    /// Rows: what is right; columns: what was said.
    ConfusionMatrix,
}

impl MetricKind {
    fn number(self) -> i32 {
        match self {
            Self::Mean => sys::DTG_METRIC_MEAN,
            Self::Sum => sys::DTG_METRIC_SUM,
            Self::Loss => sys::DTG_METRIC_LOSS,
            Self::MeanSquaredError => sys::DTG_METRIC_MEAN_SQUARED_ERROR,
            Self::MeanAbsoluteError => sys::DTG_METRIC_MEAN_ABSOLUTE_ERROR,
            Self::RootMeanSquaredError => sys::DTG_METRIC_ROOT_MEAN_SQUARED_ERROR,
            Self::R2Score => sys::DTG_METRIC_R2_SCORE,
            Self::LogLoss => sys::DTG_METRIC_LOG_LOSS,
            Self::Accuracy => sys::DTG_METRIC_ACCURACY,
            Self::BinaryAccuracy => sys::DTG_METRIC_BINARY_ACCURACY,
            Self::CategoricalAccuracy => sys::DTG_METRIC_CATEGORICAL_ACCURACY,
            Self::SparseCategoricalAccuracy => sys::DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY,
            Self::TopKCategoricalAccuracy => sys::DTG_METRIC_TOP_K_CATEGORICAL_ACCURACY,
            Self::SparseTopKCategoricalAccuracy => sys::DTG_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY,
            Self::Auc => sys::DTG_METRIC_AUC,
            Self::Precision => sys::DTG_METRIC_PRECISION,
            Self::Recall => sys::DTG_METRIC_RECALL,
            Self::TruePositives => sys::DTG_METRIC_TRUE_POSITIVES,
            Self::FalsePositives => sys::DTG_METRIC_FALSE_POSITIVES,
            Self::TrueNegatives => sys::DTG_METRIC_TRUE_NEGATIVES,
            Self::FalseNegatives => sys::DTG_METRIC_FALSE_NEGATIVES,
            Self::F1Score => sys::DTG_METRIC_F1_SCORE,
            Self::MeanIou => sys::DTG_METRIC_MEAN_IOU,
            Self::ConfusionMatrix => sys::DTG_METRIC_CONFUSION_MATRIX,
        }
    }
}

/// What the area of [`MetricKind::Auc`] is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Curve {
    /// True positives' rate over false positives'.
    #[default]
    Roc,
    /// Precision over recall.
    Pr,
}

impl Curve {
    fn number(self) -> i32 {
        match self {
            Self::Roc => sys::DTG_CURVE_ROC,
            Self::Pr => sys::DTG_CURVE_PR,
        }
    }
}

/// How the area between two thresholds is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Summation {
    /// Trapezoids.
    #[default]
    Interpolation,
    /// The lesser side.
    Minoring,
    /// The greater side.
    Majoring,
}

impl Summation {
    fn number(self) -> i32 {
        match self {
            Self::Interpolation => sys::DTG_SUMMATION_INTERPOLATION,
            Self::Minoring => sys::DTG_SUMMATION_MINORING,
            Self::Majoring => sys::DTG_SUMMATION_MAJORING,
        }
    }
}

/// What becomes of one number per class or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Average {
    /// That of Keras: none of F1, uniform of R2.
    #[default]
    Default,
    /// The numbers themselves.
    None,
    /// Their mean.
    Uniform,
    /// By how many there are, of R2 by variance.
    Weighted,
    /// Of F1: all classes as one.
    Micro,
}

impl Average {
    fn number(self) -> i32 {
        match self {
            Self::Default => sys::DTG_AVERAGE_DEFAULT,
            Self::None => sys::DTG_AVERAGE_NONE,
            Self::Uniform => sys::DTG_AVERAGE_UNIFORM,
            Self::Weighted => sys::DTG_AVERAGE_WEIGHTED,
            Self::Micro => sys::DTG_AVERAGE_MICRO,
        }
    }
}

/// A metric and its settings; write `..Default::default()` for what is not said. Numbers of 0 take their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metric<'a> {
    /// Default: the name of the kind in tf.keras.
    pub name: Option<&'a str>,
    /// Default: a mean.
    pub kind: MetricKind,
    /// Of AUC, log loss and kinds with a threshold: predictions are logits.
    pub from_logits: bool,
    /// Of probabilities, also with `from_logits`. 0: 0.5; of F1: none.
    pub threshold: f64,
    /// Of top k; 0: 5.
    pub k: i64,
    /// Of IoU and the confusion matrix.
    pub classes: i64,
    /// Of AUC; 0: 200.
    pub thresholds: i64,
    /// Default: ROC.
    pub curve: Curve,
    /// Default: interpolation.
    pub summation: Summation,
    /// Default: that of Keras.
    pub average: Average,
    /// Of IoU and the confusion matrix: labels of this class do not count.
    pub ignore_class: Option<i64>,
    /// Of [`MetricKind::Loss`].
    pub loss: Option<&'a Loss<'a>>,
    /// What each example counts; None: all alike.
    pub sample_weights: Option<Value>,
}

/// What a metric adds. A run with `update` as a target and `result` as a fetch sees its own batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MetricValues {
    /// The target that adds a batch.
    pub update: Value,
    /// The target that begins anew.
    pub reset: Value,
    /// float32: a scalar, a vector over classes or outputs, or a matrix.
    pub result: Value,
}

// SAFETY of all calls below: node_of gives an open model, and a place for one value; structs and the names in them outlive the call.
impl Model {
    /// A scalar, but with [`LossReduction::Each`] one value for each example. Labels have the shape of the predictions and any type of
    /// number; of [`LossKind::SparseCategoricalCrossentropy`] they are integers. Semantics: tf.keras.losses of Keras 3.
    #[track_caller]
    pub fn loss(&self, labels: Value, predictions: Value, loss: &Loss<'_>) -> Result<Value> {
        let (raw, weights) = (loss.raw(), Value::or_none(loss.sample_weights));
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_loss(model, &raw, labels.0, predictions.0, weights, out) })
    }

    /// The mean of `max(|a - p|² - |a - n|² + margin, 0)`, distances over the last dimension; a margin of 0 is 1.
    #[track_caller]
    pub fn triplet_loss(&self, anchor: Value, positive: Value, negative: Value, margin: f64) -> Result<Value> {
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_triplet_loss(model, anchor.0, positive.0, negative.0, margin, out) })
    }

    /// `loss` + the sum of `l1 |v| + l2 v²` over the variables with these handles; of none: over every trainable one of rank 2 or more.
    /// Semantics: tf.keras.regularizers.L1L2.
    #[track_caller]
    pub fn regularize(&self, loss: Value, handles: &[Value], l1: f64, l2: f64) -> Result<Value> {
        let (data, count) = (Value::raw(handles), handles.len());
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_regularize(model, loss.0, data, count, l1, l2, out) })
    }

    /// The loss of `x[batch, width]` for true classes `labels[batch]` or `[batch, trues]`. Gradients are rows. Semantics: tf.nn.nce_loss,
    /// tf.nn.sampled_softmax_loss.
    #[track_caller]
    pub fn sampled_loss(&self, labels: Value, x: Value, loss: &SampledLoss<'_>) -> Result<Value> {
        let (name, name_len) = name_of(loss.name);
        let (weights_of, weights_of_len) = name_of(loss.weights_of);
        let raw = sys::dtg_sampled_loss {
            name,
            name_len,
            kind: loss.kind.number(),
            reduction: loss.reduction.number(),
            classes: loss.classes,
            samples: loss.samples,
            candidates: if loss.uniform { sys::DTG_UNIFORM } else { sys::DTG_LOG_UNIFORM },
            keep_hits: loss.keep_hits.into(),
            weights: loss.weights.raw(),
            biases: loss.biases.raw(),
            weights_of,
            weights_of_len,
            sampled: Value::or_none(loss.sampled.map(|all| all.0)),
            true_expected: Value::or_none(loss.sampled.map(|all| all.1)),
            sampled_expected: Value::or_none(loss.sampled.map(|all| all.2)),
            ..sys::dtg_sampled_loss::INIT
        };
        // SAFETY: see above.
        self.node_of(|model, out| unsafe { sys::dtg_nn_sampled_loss(model, &raw, labels.0, x.0, out) })
    }

    /// A metric; labels are None for a mean or a sum. Run `reset` (or the model's init) first and `update` with each batch. State is sums in
    /// float64, so that batches, towers and workers add up exactly. Semantics: tf.keras.metrics of Keras 3.
    #[track_caller]
    pub fn metric(&self, labels: Option<Value>, predictions: Value, metric: &Metric<'_>) -> Result<MetricValues> {
        let (name, name_len) = name_of(metric.name);
        let loss = metric.loss.map(Loss::raw);
        let raw = sys::dtg_metric {
            name,
            name_len,
            kind: metric.kind.number(),
            from_logits: metric.from_logits.into(),
            threshold: metric.threshold,
            k: metric.k,
            classes: metric.classes,
            thresholds: metric.thresholds,
            curve: metric.curve.number(),
            summation: metric.summation.number(),
            average: metric.average.number(),
            ignores_class: metric.ignore_class.is_some().into(),
            ignore_class: metric.ignore_class.unwrap_or(0),
            loss: loss.as_ref().map_or(null(), std::ptr::from_ref),
            ..sys::dtg_metric::INIT
        };
        let (labels, weights) = (Value::or_none(labels), Value::or_none(metric.sample_weights));
        let mut out = sys::dtg_metric_values::INIT;
        // SAFETY: an open model; the structs and the names in them outlive the call.
        unsafe { built(sys::dtg_nn_metric(self.raw(), &raw, labels, predictions.0, weights, &mut out)) }?;
        Ok(MetricValues { update: Value(out.update), reset: Value(out.reset), result: Value(out.result) })
    }
}
