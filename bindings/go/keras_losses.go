// Losses of tf.keras, and metrics that go on over batches. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// LossKind is a loss of labels y and predictions p, as tf.keras.losses has it under this name.
type LossKind int32

// The losses. Means and sums go over the last dimension.
const (
	LossMeanSquaredError              LossKind = 0  // mean (y - p)²
	LossMeanAbsoluteError             LossKind = 1  // mean |y - p|
	LossMeanAbsolutePercentageError   LossKind = 2  // 100 mean |y - p| / |y|
	LossMeanSquaredLogarithmicError   LossKind = 3  // mean (log(1 + p) - log(1 + y))²
	LossHuber                         LossKind = 4  // squared up to Delta, straight beyond
	LossLogCosh                       LossKind = 5  // mean log cosh(p - y)
	LossCosineSimilarity              LossKind = 6  // -1 for equal directions
	LossKLDivergence                  LossKind = 7  // sum y log(y / p)
	LossPoisson                       LossKind = 8  // mean p - y log p
	LossHinge                         LossKind = 9  // mean max(1 - y p, 0)
	LossSquaredHinge                  LossKind = 10 // mean max(1 - y p, 0)²
	LossCategoricalHinge              LossKind = 11 // how far the best wrong class is from one below the right one
	LossBinaryCrossentropy            LossKind = 12 // mean -y log p - (1 - y) log(1 - p)
	LossBinaryFocalCrossentropy       LossKind = 13 // the same, less for what is right
	LossCategoricalCrossentropy       LossKind = 14 // -sum y log p
	LossCategoricalFocalCrossentropy  LossKind = 15 // the same, less for what is right
	LossSparseCategoricalCrossentropy LossKind = 16 // -log p[y]; labels are numbers of classes
	LossCTC                           LossKind = 17 // labels[batch, length] with zeros at the end, logits[batch, steps, classes], class 0 the blank
	LossDice                          LossKind = 18 // 1 - 2 sum y p / (sum y + sum p)
	LossTversky                       LossKind = 19 // with alpha for what is missed and beta for what is invented
	LossContrastive                   LossKind = 20 // of distances p, y 1 for pairs of a kind
)

// LossReduction is what becomes of the losses of the examples, times their weights.
type LossReduction int32

// The reductions.
const (
	LossMean          LossReduction = 0 // their sum over their number, weights of 0 counted
	LossSum           LossReduction = 1
	LossEach          LossReduction = 2 // themselves
	LossMeanByWeights LossReduction = 3 // their sum over that of the weights
)

// Loss is a loss and its settings; zero: the mean squared error.
type Loss struct {
	Name           string // "": the name of the kind in tf.keras
	Kind           LossKind
	Reduction      LossReduction
	FromLogits     bool    // of cross entropies: predictions are logits. Nothing overflows, so prefer them
	ClassBalancing bool    // of binary focal: weights by Alpha
	PerExample     bool    // of dice and tversky
	IgnoresClass   bool    // of sparse: labels of IgnoreClass have no loss
	IgnoreClass    int64   // may be none of the classes
	Axis           int64   // of the classes; 0: the last
	LabelSmoothing float64 // of cross entropies with distributions
	Delta          float64 // of huber; 0: 1
	Alpha          float64 // of focal losses; 0: 0.25. Of tversky; 0: 0.5
	Beta           float64 // of tversky; 0: 0.5
	Gamma          float64 // of focal losses; 0: 2
	Margin         float64 // of contrastive; 0: 1
	ClassWeights   Value   // [classes]: what an example of each counts; the zero Value: all alike
	Lengths        Value   // of CTC: steps of each example that count; the zero Value: all
	SampleWeights  Value   // what each example counts; the zero Value: all alike. Of metrics, give those of Metric
}

func (l *Loss) c(held *pins) *C.dtg_loss {
	c := &C.dtg_loss{struct_size: C.sizeof_dtg_loss, kind: C.dtg_loss_kind(l.Kind), reduction: C.dtg_loss_reduction(l.Reduction),
		from_logits: flag(l.FromLogits), class_balancing: flag(l.ClassBalancing), per_example: flag(l.PerExample),
		ignores_class: flag(l.IgnoresClass), ignore_class: C.int64_t(l.IgnoreClass), axis: C.int64_t(l.Axis),
		label_smoothing: C.double(l.LabelSmoothing), delta: C.double(l.Delta), alpha: C.double(l.Alpha), beta: C.double(l.Beta),
		gamma: C.double(l.Gamma), margin: C.double(l.Margin), class_weights: l.ClassWeights.c(), lengths: l.Lengths.c()}
	c.name, c.name_len = held.text(l.Name)
	return c
}

// Loss is a scalar, but with LossEach one value for each example. Labels have the shape of the predictions and any type of number; of
// LossSparseCategoricalCrossentropy they are integers. Semantics: tf.keras.losses of Keras 3.
func (m *Model) Loss(labels, predictions Value, loss Loss) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_loss(p, loss.c(&held), labels.c(), predictions.c(), loss.SampleWeights.c(), out)
	})
}

// TripletLoss is the mean of max(|a - p|² - |a - n|² + margin, 0), distances over the last dimension; a margin of 0 is 1.
func (m *Model) TripletLoss(anchor, positive, negative Value, margin float64) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_triplet_loss(p, anchor.c(), positive.c(), negative.c(), C.double(margin), out)
	})
}

// Regularize is loss + the sum of l1 |v| + l2 v² over variables: those named, or without any every trainable one of rank 2 or more.
// Semantics: tf.keras.regularizers.L1L2.
func (m *Model) Regularize(loss Value, l1, l2 float64, variables ...Variable) Value {
	handles := make([]Value, len(variables))
	for i, v := range variables {
		handles[i] = v.Handle
	}
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		data, count := valuesOf(handles)
		return C.dtg_nn_regularize(p, loss.c(), data, count, C.double(l1), C.double(l2), out)
	})
}

// SampledKind is a loss over sampled classes.
type SampledKind int32

// The two.
const (
	NCE            SampledKind = 0 // each class by itself, with the sigmoid
	SampledSoftmax SampledKind = 1 // over the true and the sampled classes
)

// SampledLoss is a last layer for very many classes with its loss: variables "weights" [classes, width] and "biases" [classes].
type SampledLoss struct {
	Name            string // "": "nce" or "sampled_softmax"
	Kind            SampledKind
	Reduction       LossReduction // LossMean, LossSum, LossEach
	Classes         int64
	Samples         int64 // sampled per step, at most Classes
	Uniform         bool  // all classes alike; false: the first ones are the most frequent
	KeepHits        bool  // sampled classes that are true ones count against the example all the same
	Weights         Initializer
	Biases          Initializer
	WeightsOf       string
	Sampled         Value // classes of one's own, Int64[samples]; the zero Value: drawn. With them the next two
	TrueExpected    Value // Float32[batch, trues]
	SampledExpected Value // Float32[samples]
}

// SampledLoss is the loss of x[batch, width] for true classes labels[batch] or [batch, trues]. Gradients are rows. Semantics:
// tf.nn.nce_loss, tf.nn.sampled_softmax_loss.
func (m *Model) SampledLoss(labels, x Value, loss SampledLoss) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_sampled_loss{struct_size: C.sizeof_dtg_sampled_loss, kind: C.dtg_sampled_kind(loss.Kind),
			reduction: C.dtg_loss_reduction(loss.Reduction), classes: C.int64_t(loss.Classes), samples: C.int64_t(loss.Samples),
			candidates: C.dtg_candidates(flag(loss.Uniform)), keep_hits: flag(loss.KeepHits), weights: loss.Weights.c(),
			biases: loss.Biases.c(), sampled: loss.Sampled.c(), true_expected: loss.TrueExpected.c(),
			sampled_expected: loss.SampledExpected.c()}
		c.name, c.name_len = held.text(loss.Name)
		c.weights_of, c.weights_of_len = held.text(loss.WeightsOf)
		return C.dtg_nn_sampled_loss(p, c, labels.c(), x.c(), out)
	})
}
