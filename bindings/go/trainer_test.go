// Trainers: a fit with validation, a metric and early stopping; a fit that was given up goes on to the same bits; what it tells and refuses.

package dtg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

const rowsOfLab, batchOfLab, batchesOfLab = 10, 4, 3

// lab is a small net with dropout, its metric, two data sets, and a trainer of it.
type lab struct {
	t                 *testing.T
	g                 *dtg.Graph
	model             *dtg.Model
	train, test       *dtg.Dataset
	x, y, logits      dtg.Value
	trainer           *dtg.Trainer
	options           dtg.TrainerOptions
	features, classes *dtg.Tensor
}

// labRows is rows of three numbers, and a class that hangs on them.
func labRows(t *testing.T, seed uint64) (features, classes *dtg.Tensor) {
	t.Helper()
	var x []float32
	var y []int64
	for i := range rowsOfLab * 3 {
		seed = seed*6364136223846793005 + 1442695040888963407
		x = append(x, float32(seed>>40)/(1<<24)-0.5)
		if i%3 == 2 {
			class := int64(0)
			if x[i] > x[i-1] {
				class = 1
			}
			y = append(y, class)
		}
	}
	return closing(t, get(dtg.NewTensor(x, rowsOfLab, 3))(t)), closing(t, get(dtg.NewTensor(y))(t))
}

func newLab(t *testing.T) *lab {
	t.Helper()
	g := graph(t)
	l := &lab{t: t, g: g, model: closing(t, g.NewModel(3))}
	l.features, l.classes = labRows(t, 7)
	l.train = closing(t, dtg.DatasetTensors(l.features, l.classes).Shuffle(0, 5).Batch(batchOfLab, false))
	x, y := labRows(t, 1007)
	l.test = closing(t, dtg.DatasetTensors(x, y).Batch(batchOfLab, false))
	l.x, l.y = g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 3}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	training := g.Placeholder("training", dtg.Bool, dtg.Shape{})
	hidden := l.model.Dense(l.x, dtg.Dense{Units: 6, Activation: dtg.ReLU})
	l.logits = l.model.Dense(l.model.Dropout(hidden, 0.3, l.model.GlobalStep().Read, training), dtg.Dense{Units: 2})
	loss := l.model.SparseSoftmaxCrossEntropy(l.y, l.logits)
	accuracy := l.model.Metric(l.y, l.logits, dtg.Metric{Kind: dtg.MetricSparseCategoricalAccuracy})
	want(t, l.model.Err())
	l.options = dtg.TrainerOptions{Feeds: []dtg.Value{l.x, l.y}, Outputs: []dtg.Value{l.logits}, Loss: loss, Training: training,
		Optimizer: dtg.Optimizer{Kind: dtg.Adam, Rate: 0.05}, Metrics: map[string]dtg.MetricValues{"accuracy": accuracy}}
	l.trainer = closing(t, get(l.model.NewTrainer(l.options))(t))
	return l
}

// weights are the values of the model's variables, a metric's left out: an evaluation may have come last.
func (l *lab) weights() (out []string) {
	l.t.Helper()
	for _, v := range l.model.Variables() {
		if dtype, err := l.g.ValueDType(v.Read); err != nil || dtype != dtg.Float32 {
			continue // counts of steps and of metrics
		}
		var value []float32
		want(l.t, l.trainer.Session().Run(background, dtg.FetchSlice(v.Read, &value)))
		out = append(out, fmt.Sprintf("%s %x", v.Name, value))
	}
	return out
}

func value(t *testing.T, values dtg.FitValues, name string) float64 {
	t.Helper()
	found, ok := values.Get(name)
	if !ok {
		t.Fatalf("%s is not among %v", name, values)
	}
	return found
}

func TestFit(t *testing.T) {
	leaves(t)
	l := newLab(t)
	var kinds []dtg.FitEventKind
	var last dtg.FitEvent
	how := dtg.Fit{Epochs: 100, EarlyStopping: &dtg.EarlyStopping{Monitor: "val_accuracy", HasBaseline: true, Baseline: 2, MinDelta: 1, Patience: 2},
		Plateau: &dtg.Plateau{Monitor: "loss", Patience: 1, MinDelta: 100, Factor: 0.5, MinRate: 0.001}}
	for event, err := range l.trainer.Events(background, l.train, l.test, how) {
		want(t, err)
		kinds = append(kinds, event.Kind)
		switch event.Kind {
		case dtg.FitStep:
			if event.Batches != batchesOfLab || event.Step != (event.Epoch-1)*batchesOfLab+event.Batch || value(t, event.Values, "loss") != event.Loss {
				t.Errorf("%+v", event)
			}
		case dtg.FitEpochEnd:
			last = event
			var names []string
			for _, v := range event.Values {
				names = append(names, v.Name)
			}
			equal(t, names, []string{"loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"})
		case dtg.FitStopped:
			equal(t, []string{event.Text}, []string{"val_accuracy has not improved"})
		}
	}
	// Nothing gets better by 1, or is better than the baseline, so it ends after two epochs; the rate falls after the second one.
	step, end := []dtg.FitEventKind{2, 2, 2}, []dtg.FitEventKind{3, 5}
	equal(t, kinds, slices.Concat([]dtg.FitEventKind{0, 1}, step, end, []dtg.FitEventKind{1}, step, []dtg.FitEventKind{3, 4, 5, 7, 8}))
	summary := get(l.trainer.Summary())(t)
	if summary.Outcome != "stopped" || summary.Epochs != 2 || summary.Steps != 2*batchesOfLab || summary.Resumed || len(summary.History) != 2 {
		t.Errorf("%+v", summary)
	}
	equal(t, []float64{summary.History[1]["val_loss"], summary.History[1]["epoch"]}, []float64{value(t, last.Values, "val_loss"), 2})
	// The validation is what Evaluate tells.
	values := get(l.trainer.Evaluate(background, l.test, 0))(t)
	equal(t, []float64{value(t, values, "loss"), value(t, values, "accuracy")},
		[]float64{value(t, last.Values, "val_loss"), value(t, last.Values, "val_accuracy")})
	if last.LearningRate == 0 || last.Loss != value(t, last.Values, "loss") || last.Kind.String() != "epoch end" {
		t.Errorf("%+v", last)
	}
}

func TestFitGoesOn(t *testing.T) {
	leaves(t)
	how := dtg.Fit{Epochs: 3, CheckpointSteps: 4, CheckpointEpochs: 100, Best: "val_loss",
		EarlyStopping: &dtg.EarlyStopping{Patience: 10, RestoreBest: true}}
	straight := newLab(t)
	how.Directory = filepath.Join(t.TempDir(), "straight")
	want(t, straight.trainer.Fit(background, straight.train, straight.test, how))
	first, second := newLab(t), newLab(t)
	how.Directory = filepath.Join(t.TempDir(), "broken")
	for event, err := range first.trainer.Events(background, first.train, first.test, how) {
		want(t, err)
		if event.Step == 5 {
			break // one step after a checkpoint
		}
	}
	if summary := get(first.trainer.Summary())(t); summary.Outcome != "failed" || summary.Steps != 5 {
		t.Errorf("%+v", summary)
	}
	// Directory and data are free at once.
	get(first.trainer.Evaluate(background, first.test, 0))(t)
	var said string
	callbacks := dtg.FitCallbacks{Begin: func(event dtg.FitEvent) error { said = event.Text; return nil }}
	want(t, second.trainer.Fit(background, second.train, second.test, how, callbacks))
	equal(t, []string{said}, []string{"goes on after step 4"})
	equal(t, second.weights(), straight.weights())
	equal(t, []string{fmt.Sprint(get(second.trainer.Summary())(t).History)}, []string{fmt.Sprint(get(straight.trainer.Summary())(t).History)})
	served(t, second, filepath.Join(how.Directory, "model.dtg"))
	curves, _ := filepath.Glob(filepath.Join(how.Directory, "tensorboard", "*", "*tfevents*"))
	if len(curves) != 4 { // of two processes, train and validation
		t.Errorf("%q", curves)
	}
	for _, name := range []string{"metrics.csv", "metrics.jsonl", "best.safetensors", "model.safetensors", "summary.json"} {
		if _, err := os.Stat(filepath.Join(how.Directory, name)); err != nil {
			t.Error(err)
		}
	}
	how.Fresh = true
	refused(t, second.trainer.Fit(background, second.train, second.test, how), dtg.AlreadyExists)
}

// served is what l's trainer predicts, from a file, by several goroutines.
func served(t *testing.T, l *lab, path string) {
	t.Helper()
	predicted := get(l.trainer.Predict(background, l.test))(t)
	defer predicted[0].Close()
	wanted := predicted[0].Float32s()
	near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 } // of one batch and of three
	features, _ := labRows(t, 1007)
	model, session, err := dtg.LoadModel(path)
	want(t, err)
	defer dtg.Close(session, model, model.Graph())
	x, y := dtg.Must(model.Endpoint("x")), dtg.Must(model.Endpoint("output"))
	want(t, model.Err())
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				var found []float32
				err := session.Run(background, dtg.Feed(x, features), dtg.FetchSlice(y, &found))
				if err != nil || !slices.EqualFunc(found, wanted, near) {
					t.Errorf("%v: %v, not %v", err, found, wanted)
					return
				}
			}
		}()
	}
	all.Wait()
	options := l.options
	options.Metrics, options.OutputNames = nil, []string{"a", "b"}
	_, err = l.model.NewTrainer(options)
	refused(t, err, dtg.InvalidArgument)
	again := filepath.Join(t.TempDir(), "again.dtg")
	want(t, l.trainer.Export(again))
	if a, b := get(os.ReadFile(again))(t), get(os.ReadFile(path))(t); !slices.Equal(a, b) {
		t.Error("an export is another file than the fit's")
	}
}

func TestFitEnds(t *testing.T) {
	leaves(t)
	l := newLab(t)
	endless := dtg.Fit{Epochs: 1 << 40}
	outcome := func(wanted string) {
		t.Helper()
		equal(t, []string{get(l.trainer.Summary())(t).Outcome}, []string{wanted})
	}
	// Stopped from another goroutine: in good order.
	begun, kinds, told := make(chan struct{}), "", make(chan struct{})
	go func() {
		defer close(told)
		<-begun
		l.trainer.Stop()
	}()
	add := func(letter string) func(dtg.FitEvent) error {
		return func(dtg.FitEvent) error { kinds += letter; return nil }
	}
	want(t, l.trainer.Fit(background, l.train, nil, endless, dtg.FitCallbacks{
		Begin: func(dtg.FitEvent) error { close(begun); return nil }, Stopped: add("s"), Done: add("d")}))
	<-told
	equal(t, []string{kinds}, []string{"sd"})
	outcome("stopped")
	// Cancelled: an error.
	ctx, cancel := context.WithCancel(background)
	err := l.trainer.Fit(ctx, l.train, nil, endless, dtg.FitCallbacks{Step: func(dtg.FitEvent) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, dtg.ErrCancelled) {
		t.Errorf("a fit that is cancelled: %v", err)
	}
	outcome("failed")
	for _, err := range l.trainer.Events(ctx, l.train, nil, endless) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	}
	// A callback's error ends it, and what comes afterwards is free to go.
	enough := errors.New("enough")
	err = l.trainer.Fit(background, l.train, l.test, endless, dtg.FitCallbacks{Step: func(e dtg.FitEvent) error {
		_, err := l.trainer.Evaluate(background, l.test, 0)
		refused(t, err, dtg.FailedPrecondition, "in the middle of an epoch")
		return enough
	}})
	if err != enough {
		t.Errorf("a callback's error: %v", err)
	}
	outcome("failed")
	get(l.trainer.Evaluate(background, l.test, 0))(t)
	// So does a panic, which goes on through it; the fit is given up.
	thrown := func() (found any) {
		defer func() { found = recover() }()
		return l.trainer.Fit(background, l.train, l.test, endless, dtg.FitCallbacks{Step: func(dtg.FitEvent) error { panic("the program's own") }})
	}()
	if thrown != "the program's own" {
		t.Errorf("a callback's panic: %v", thrown)
	}
	outcome("failed")
	get(l.trainer.Evaluate(background, l.test, 0))(t)
	// Time's up before the first step.
	want(t, l.trainer.Fit(background, l.train, nil, dtg.Fit{Epochs: 1 << 40, TimeLimit: 1}, dtg.FitCallbacks{
		Stopped: func(e dtg.FitEvent) error { equal(t, []string{e.Text}, []string{"the time limit"}); return nil }}))
	outcome("stopped")
}

func TestTrainerByHand(t *testing.T) {
	leaves(t)
	contexts(t, func(t *testing.T, ctx context.Context) {
		l := newLab(t)
		s := l.trainer.Session()
		// Without training, so that what is predicted is what a run fetches.
		predicted := get(l.trainer.Predict(ctx, l.test))(t)
		closing(t, predicted[0])
		var found []float32
		for batch, err := range l.test.Elements() {
			want(t, err)
			var logits []float32
			want(t, s.Run(ctx, dtg.Feed(l.x, batch[0]), dtg.FeedScalar(l.options.Training, false), dtg.FetchSlice(l.logits, &logits)))
			found = append(found, logits...)
		}
		equal(t, predicted[0].Shape(), dtg.Shape{rowsOfLab, 2})
		equal(t, predicted[0].Float32s(), found)
		var before, after float64
		for step := range 40 {
			loss := get(l.trainer.TrainStep(ctx, l.features, l.classes))(t)
			if step == 0 {
				before = loss
			}
			after = loss
		}
		if !(after < before/2) {
			t.Errorf("the loss went from %g to %g", before, after)
		}
		one, all := get(l.trainer.Evaluate(ctx, l.test, 1))(t), get(l.trainer.Evaluate(ctx, l.test, 0))(t)
		if len(all) != 2 || one[0] == all[0] {
			t.Errorf("one batch: %v; all: %v", one, all)
		}
	})
}

func TestTrainerMisuse(t *testing.T) {
	leaves(t)
	l := newLab(t)
	made := func(change func(*dtg.TrainerOptions)) error {
		options := l.options
		options.Metrics = nil
		change(&options)
		_, err := l.model.NewTrainer(options)
		return err
	}
	fit := func(how dtg.Fit) error { return l.trainer.Fit(background, l.train, l.test, how) }
	_, few := l.trainer.TrainStep(background, l.features)
	_, none := l.trainer.TrainStep(background, l.features, nil)
	numbers := closing(t, dtg.DatasetRange(0, 4, 1))
	_, foreign := l.trainer.Evaluate(background, numbers, 0)
	_, negative := l.trainer.Evaluate(background, l.test, -1)
	_, missing := l.trainer.Evaluate(background, nil, 0)
	for name, c := range map[string]struct {
		err  error
		word string
	}{
		"no feeds":       {made(func(o *dtg.TrainerOptions) { o.Feeds = nil }), "no feeds"},
		"no loss":        {made(func(o *dtg.TrainerOptions) { o.Loss = dtg.Value{} }), "no loss is given"},
		"inputs below 0": {made(func(o *dtg.TrainerOptions) { o.Inputs = -1 }), "Inputs is -1"},
		"more inputs":    {made(func(o *dtg.TrainerOptions) { o.Inputs = 3 }), "3 inputs, of 2 feeds"},
		"a name of a metric": {made(func(o *dtg.TrainerOptions) {
			o.Train, o.Metrics = l.g.NoOp(), map[string]dtg.MetricValues{"a b": l.options.Metrics["accuracy"]}
		}), "a b"},
		"a tensor too few":    {few, "1 tensors for 2 feeds"},
		"a tensor of nil":     {none, "the tensor is nil"},
		"other data":          {foreign, "1 components, and 2 values are fed"},
		"steps below 0":       {negative, "-1 steps"},
		"no data":             {missing, "the data set is nil"},
		"no data to fit":      {l.trainer.Fit(background, nil, nil, dtg.Fit{}), "the data set is nil"},
		"the same data":       {l.trainer.Fit(background, l.train, l.train, dtg.Fit{}), "make a second one"},
		"epochs below 0":      {fit(dtg.Fit{Epochs: -1}), "epochs may not be negative"},
		"what nobody tells":   {fit(dtg.Fit{EarlyStopping: &dtg.EarlyStopping{Monitor: "f1"}}), "f1"},
		"a factor":            {fit(dtg.Fit{Plateau: &dtg.Plateau{Factor: 2}}), "Plateau: factor 2"},
		"patience below 0":    {fit(dtg.Fit{EarlyStopping: &dtg.EarlyStopping{Patience: -1}}), "EarlyStopping: `min_delta`"},
		"best and nowhere":    {fit(dtg.Fit{Best: "loss"}), "Fit: `best`"},
		"a way to be better":  {fit(dtg.Fit{Plateau: &dtg.Plateau{Better: 7}}), "7"},
		"data of other types": {l.trainer.Fit(background, numbers, nil, dtg.Fit{}), "1 components"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.err, dtg.InvalidArgument, c.word) })
	}
	_, err := l.trainer.Summary()
	refused(t, err, dtg.FailedPrecondition)
	want(t, l.trainer.Close())
	closed := func(err error) {
		t.Helper()
		refused(t, err, dtg.InvalidArgument, "this is not an open trainer: it was closed")
	}
	_, err = l.trainer.TrainStep(background, l.features, l.classes)
	closed(err)
	_, err = l.trainer.Evaluate(background, l.test, 0)
	closed(err)
	_, err = l.trainer.Predict(background, l.test)
	closed(err)
	_, err = l.trainer.Summary()
	closed(err)
	closed(fit(dtg.Fit{}))
	l.trainer.Stop()
	want(t, (*dtg.Trainer)(nil).Close())
}

// Beside a fit of another goroutine, which is against the words of a Trainer: an error, or the right values, and never the end of the process.
func TestTrainerBetweenGoroutines(t *testing.T) {
	leaves(t)
	l := newLab(t)
	sets := []*dtg.Dataset{l.train, l.test}
	var expected []float64
	for _, data := range sets {
		expected = append(expected, value(t, get(l.trainer.Evaluate(background, data, 0))(t), "loss"))
	}
	if math.Abs(expected[0]-expected[1]) < 1e-3 {
		t.Fatalf("the losses are too much alike: %v", expected)
	}
	var both sync.WaitGroup
	for i, data := range sets {
		both.Add(1)
		go func() {
			defer both.Done()
			for range 500 {
				values, err := l.trainer.Evaluate(background, data, 0)
				if err != nil && !errors.Is(err, dtg.FailedPrecondition) {
					t.Errorf("evaluate: %v", err)
				} else if found, _ := values.Get("loss"); err == nil && math.Abs(found-expected[i]) > 1e-5 { // in another order
					t.Errorf("the loss is %v, and %v of this data", found, expected[i])
				}
			}
		}()
	}
	both.Wait()
	for i := range 60 {
		trainer := get(l.model.NewTrainer(dtg.TrainerOptions{Feeds: l.options.Feeds, Loss: l.options.Loss, Training: l.options.Training,
			Train: l.g.NoOp()}))(t)
		done := make(chan error)
		go func() {
			done <- trainer.Fit(background, l.train, nil, dtg.Fit{Epochs: 50, Progress: dtg.ProgressOff})
		}()
		time.Sleep(time.Duration(i) * 20 * time.Microsecond)
		want(t, trainer.Close())
		<-done // whatever it says
	}
}
