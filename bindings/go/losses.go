// Losses and metrics: scalars. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// SparseSoftmaxCrossEntropy is the mean over the batch of -log softmax(logits)[label]; logits[batch, classes], labels int32 or
// int64 [batch].
func (m *Model) SparseSoftmaxCrossEntropy(labels, logits Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_sparse_softmax_cross_entropy(p, labels.c(), logits.c(), out)
	})
}

// SoftmaxCrossEntropy is the same with labels[batch, classes] as distributions.
func (m *Model) SoftmaxCrossEntropy(labels, logits Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_softmax_cross_entropy(p, labels.c(), logits.c(), out)
	})
}

// SigmoidCrossEntropy is the mean over all elements of the cross entropy of labels in [0, 1] under sigmoid(logits).
func (m *Model) SigmoidCrossEntropy(labels, logits Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_sigmoid_cross_entropy(p, labels.c(), logits.c(), out)
	})
}

// MeanSquaredError is the mean over all elements of (labels - predictions)².
func (m *Model) MeanSquaredError(labels, predictions Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_mean_squared_error(p, labels.c(), predictions.c(), out)
	})
}

// Accuracy is the share of rows whose greatest logit is the label's: float32 in [0, 1]. Labels int32 or int64 [batch].
func (m *Model) Accuracy(labels, logits Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_accuracy(p, labels.c(), logits.c(), out)
	})
}

// CorrectCount is how many rows that are: int64, for accuracy over many batches.
func (m *Model) CorrectCount(labels, logits Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_correct_count(p, labels.c(), logits.c(), out)
	})
}
