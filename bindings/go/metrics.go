// Metrics over as many batches as one likes. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// MetricKind is a metric of labels y and predictions p, as tf.keras.metrics has it under this name.
type MetricKind int32

// The metrics.
const (
	MetricMean                          MetricKind = 0  // of values, without labels
	MetricSum                           MetricKind = 1  // of values, without labels
	MetricLoss                          MetricKind = 2  // the mean of a loss
	MetricMeanSquaredError              MetricKind = 3  // mean (y - p)²
	MetricMeanAbsoluteError             MetricKind = 4  // mean |y - p|
	MetricRootMeanSquaredError          MetricKind = 5  // the root of the mean of (y - p)²
	MetricR2Score                       MetricKind = 6  // of [batch, outputs]
	MetricLogLoss                       MetricKind = 7  // binary cross entropy
	MetricAccuracy                      MetricKind = 8  // how often p is y
	MetricBinaryAccuracy                MetricKind = 9  // how often (p > threshold) is y
	MetricCategoricalAccuracy           MetricKind = 10 // how often the greatest p is where the greatest y is
	MetricSparseCategoricalAccuracy     MetricKind = 11 // how often it is at y
	MetricTopKCategoricalAccuracy       MetricKind = 12 // how often that is among the k greatest
	MetricSparseTopKCategoricalAccuracy MetricKind = 13 // likewise, y a number of a class
	MetricAUC                           MetricKind = 14 // the area under a curve
	MetricPrecision                     MetricKind = 15 // true / (true + false positives)
	MetricRecall                        MetricKind = 16 // true positives / all that are there
	MetricTruePositives                 MetricKind = 17 // how many
	MetricFalsePositives                MetricKind = 18 // how many
	MetricTrueNegatives                 MetricKind = 19 // how many
	MetricFalseNegatives                MetricKind = 20 // how many
	MetricF1Score                       MetricKind = 21 // of [batch, classes]
	MetricMeanIoU                       MetricKind = 22 // of numbers of classes, or scores
	MetricConfusionMatrix               MetricKind = 23 // rows: what is right; columns: what was said
)

// Curve is what MetricAUC is the area under.
type Curve int32

// The curves.
const (
	CurveROC Curve = 0
	CurvePR  Curve = 1 // precision over recall
)

// Summation is how the area between two thresholds is taken.
type Summation int32

// The ways.
const (
	SummationInterpolation Summation = 0
	SummationMinoring      Summation = 1
	SummationMajoring      Summation = 2
)

// Average is what becomes of one number per class or output.
type Average int32

// The averages.
const (
	AverageDefault  Average = 0 // that of Keras: none of F1, uniform of R2
	AverageNone     Average = 1
	AverageUniform  Average = 2 // the mean, "macro"
	AverageWeighted Average = 3 // by how many there are, of R2 by variance
	AverageMicro    Average = 4 // of F1: all classes as one
)

// Metric is a metric and its settings; zero: a mean.
type Metric struct {
	Name          string // "": the name of the kind in tf.keras
	Kind          MetricKind
	FromLogits    bool    // of AUC, log loss and kinds with a threshold: predictions are logits
	Threshold     float64 // of probabilities, also with FromLogits; 0: 0.5; of F1: none
	K             int64   // of top k; 0: 5
	Classes       int64   // of IoU and the confusion matrix
	Thresholds    int64   // of AUC; 0: 200
	Curve         Curve
	Summation     Summation
	Average       Average
	IgnoresClass  bool // of IoU and the confusion matrix: labels of IgnoreClass do not count
	IgnoreClass   int64
	Loss          *Loss // of MetricLoss
	SampleWeights Value // what each example counts; the zero Value: all alike
}

// MetricValues is what a metric adds: run Reset (or Model.Init) first and Update with each batch. A run with Update as a target and Result as
// a fetch sees its own batch.
type MetricValues struct {
	Update Value // the target that adds a batch
	Reset  Value // the target that begins anew
	Result Value // Float32: a scalar, a vector over classes or outputs, or a matrix
}

// Metric adds a metric; labels are the zero Value for a mean or a sum. State is sums in float64, so that batches, towers and workers add up
// exactly. Semantics: tf.keras.metrics of Keras 3.
func (m *Model) Metric(labels, predictions Value, metric Metric) (r MetricValues) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_metric{struct_size: C.sizeof_dtg_metric, kind: C.dtg_metric_kind(metric.Kind), from_logits: flag(metric.FromLogits),
			threshold: C.double(metric.Threshold), k: C.int64_t(metric.K), classes: C.int64_t(metric.Classes),
			thresholds: C.int64_t(metric.Thresholds), curve: C.dtg_metric_curve(metric.Curve),
			summation: C.dtg_metric_summation(metric.Summation), average: C.dtg_metric_average(metric.Average),
			ignores_class: flag(metric.IgnoresClass), ignore_class: C.int64_t(metric.IgnoreClass)}
		c.name, c.name_len = held.text(metric.Name)
		if metric.Loss != nil {
			loss := metric.Loss.c(&held)
			held.Pin(loss)
			c.loss = loss
		}
		out := C.dtg_metric_values{struct_size: C.sizeof_dtg_metric_values}
		failed := C.dtg_nn_metric(p, c, labels.c(), predictions.c(), metric.SampleWeights.c(), &out)
		if failed == nil {
			r = MetricValues{Value{uint64(out.update.id)}, Value{uint64(out.reset.id)}, Value{uint64(out.result.id)}}
		}
		return failed
	})
	return r
}
