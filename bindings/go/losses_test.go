// Losses and metrics: a value that is known, weights, rows of sampled classes that learn, a metric over batches, and what is refused.

package dtg_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func near(t *testing.T, got float32, expected float64) {
	t.Helper()
	if math.Abs(float64(got)-expected) > 1e-5 {
		t.Errorf("%v, and %v was expected", got, expected)
	}
}

func TestLosses(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(3))
	logits := g.Placeholder("logits", dtg.Float32, dtg.Shape{-1, 3})
	labels := g.Placeholder("labels", dtg.Int32, dtg.Shape{-1})
	weights := g.Placeholder("weights", dtg.Float32, dtg.Shape{-1})
	sparse := dtg.Loss{Kind: dtg.LossSparseCategoricalCrossentropy, FromLogits: true, SampleWeights: weights}
	mean := model.Loss(labels, logits, sparse)
	sparse.Reduction = dtg.LossSum
	sum := model.Loss(labels, logits, sparse)
	ignoring := model.Loss(labels, logits, dtg.Loss{Kind: sparse.Kind, FromLogits: true, IgnoresClass: true, IgnoreClass: 2})
	triplet := model.TripletLoss(logits, logits, logits, 0.25)
	words := model.SampledLoss(labels, logits, dtg.SampledLoss{Classes: 50, Samples: 6, Kind: dtg.SampledSoftmax})
	table := get(model.FindVariable("sampled_softmax/weights"))(t)
	total := model.Regularize(model.Regularize(words, 0, 1e-4), 0, 1e-4, table)
	train := model.Minimize(total, dtg.Optimizer{Rate: 0.5}).Train
	metric := model.Metric(labels, logits, dtg.Metric{Kind: dtg.MetricLoss,
		Loss: &dtg.Loss{Name: "of", Kind: sparse.Kind, FromLogits: true}, SampleWeights: weights})
	init := model.Init()
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	feed := func(args ...dtg.Arg) {
		t.Helper()
		want(t, s.Run(background, append(args, dtg.FeedSlice(logits, make([]float32, 12), 4, 3), dtg.FeedSlice(labels, []int32{0, 1, 2, 1}),
			dtg.FeedSlice(weights, []float32{1, 1, 2, 0}))...))
	}
	var a, b, c, d, first, last, e float32
	feed(dtg.Fetch(mean, &a), dtg.Fetch(sum, &b), dtg.Fetch(ignoring, &c), dtg.Fetch(triplet, &d), dtg.Fetch(total, &first))
	near(t, a, math.Log(3))
	near(t, b, 4*math.Log(3))
	near(t, c, math.Log(3))
	near(t, d, 0.25)
	for range 30 {
		feed(dtg.Target(train))
	}
	feed(dtg.Fetch(total, &last), dtg.Fetch(metric.Result, &e), dtg.Target(metric.Update))
	if !(last < first) {
		t.Errorf("%v, then %v", first, last)
	}
	near(t, e, math.Log(3))

	model.Loss(logits, labels, sparse)
	if err := model.Err(); err == nil || !strings.Contains(err.Error(), "labels and logits look swapped") {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(3))
	scores := g.Placeholder("scores", dtg.Float32, dtg.Shape{-1})
	labels := g.Placeholder("labels", dtg.Float32, dtg.Shape{-1})
	area := model.Metric(labels, scores, dtg.Metric{Kind: dtg.MetricAUC})
	precision := model.Metric(labels, scores, dtg.Metric{Kind: dtg.MetricPrecision, Threshold: 0.25})
	mean := model.Metric(dtg.Value{}, scores, dtg.Metric{})
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(area.Reset, precision.Reset, mean.Reset)))
	add := func(p, y []float32) {
		t.Helper()
		want(t, s.Run(background, dtg.FeedSlice(scores, p), dtg.FeedSlice(labels, y), dtg.Target(area.Update, precision.Update, mean.Update)))
	}
	add([]float32{0.1, 0.8, 0.3}, []float32{0, 1, 0})
	add([]float32{0.9}, []float32{1})
	var a, b, c float32
	want(t, s.Run(background, dtg.Fetch(area.Result, &a), dtg.Fetch(precision.Result, &b), dtg.Fetch(mean.Result, &c)))
	near(t, a, 1)
	near(t, b, 2.0/3)
	near(t, c, 2.1/4)
}

// Two workers with graphs of their own add to the same state on a ps, and each sees its own batch in a run that adds it.
func TestMetricsOfWorkers(t *testing.T) {
	leaves(t)
	folder := private(t)
	cluster := closing(t, get(dtg.ParseCluster(fmt.Sprintf("ps=unix:%[1]s/ps;worker=unix:%[1]s/w0,unix:%[1]s/w1", folder)))(t))
	closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "ps"}))(t))
	var sessions []*dtg.Session
	var scores, labels []dtg.Value
	var areas []dtg.MetricValues
	var servers []*dtg.Server
	for task := range 2 {
		servers = append(servers, closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "worker", Task: task}))(t)))
	}
	for task, server := range servers {
		g := graph(t)
		model := closing(t, g.NewModel(3))
		g.SetDevices(dtg.DeviceSetter{PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task)}, func() {
			scores = append(scores, g.Placeholder("scores", dtg.Float32, dtg.Shape{-1}))
			labels = append(labels, g.Placeholder("labels", dtg.Float32, dtg.Shape{-1}))
			areas = append(areas, model.Metric(labels[task], scores[task], dtg.Metric{Kind: dtg.MetricAUC, Thresholds: 5}))
		})
		want(t, model.Err())
		sessions = append(sessions, closing(t, get(dtg.Connect(background, server.Target(), g))(t)))
	}
	want(t, sessions[0].Run(background, dtg.Target(areas[0].Reset)))
	var area float32
	add := func(task int, p, y []float32) {
		t.Helper()
		want(t, sessions[task].Run(background, dtg.FeedSlice(scores[task], p), dtg.FeedSlice(labels[task], y), dtg.Target(areas[task].Update),
			dtg.Fetch(areas[task].Result, &area)))
	}
	add(0, []float32{0.1, 0.9}, []float32{0, 1})
	near(t, area, 1)
	add(1, []float32{0.95, 0.2}, []float32{0, 1})
	near(t, area, 0.5) // true positives 2 1 1 1 0 and as many false ones at the five thresholds
	add(0, []float32{}, []float32{})
	near(t, area, 0.5)
}
