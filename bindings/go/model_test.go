// Models: layers, losses, optimizers, checkpoints, towers and replicas.

package dtg_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestLayers(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(3))
	image := g.Placeholder("image", dtg.Float32, dtg.Shape{-1, 8, 8, 1})
	labels := g.Placeholder("labels", dtg.Int64, dtg.Shape{-1})
	ids := g.Placeholder("ids", dtg.Int32, dtg.Shape{-1})
	step := model.GlobalStep()
	x := model.Conv2D(image, dtg.Conv2D{Name: "first", Filters: 4, KernelHeight: 3, Padding: dtg.PaddingSame, Activation: dtg.ReLU, NoBias: true})
	x = model.MaxPool2D(x, dtg.Pool2D{})
	x = model.AvgPool2D(x, dtg.Pool2D{Name: "mean", WindowHeight: 2, StrideHeight: 2})
	x = model.Dropout(model.Flatten(x), 0.5, step.Read, g.LogicalNot(dtg.ConstScalar(g, true)))
	row := model.Embedding(ids, dtg.Embedding{Rows: 5, Width: 16, Table: dtg.Initializer{Kind: dtg.InitNormal, B: 0.1}})
	logits := model.Dense(g.AddV2(x, row), dtg.Dense{Name: "last", Units: 3, Bias: dtg.Initializer{Kind: dtg.InitConstant, A: 0.5}})
	soft := model.Activation(logits, dtg.Softmax)
	losses := []dtg.Value{model.SparseSoftmaxCrossEntropy(labels, logits), model.SoftmaxCrossEntropy(soft, logits),
		model.SigmoidCrossEntropy(soft, logits), model.MeanSquaredError(soft, logits), model.Accuracy(labels, logits)}
	correct := model.CorrectCount(labels, logits)
	training := model.Minimize(losses[0], dtg.Optimizer{Kind: dtg.Adam, LearningRate: model.CosineDecay(step.Read, 0.1, 100, 0.1, 0), ClipNorm: 1})
	init := model.Init()
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	picture := make([]float32, 2*64)
	for i := range picture {
		picture[i] = float32(i%7) / 7
	}
	feed := func(args ...dtg.Arg) []dtg.Arg {
		return append(args, dtg.FeedSlice(image, picture, 2, 8, 8, 1), dtg.FeedSlice(labels, []int64{0, 2}), dtg.FeedSlice(ids, []int32{1, 4}))
	}
	var first, last, norm, accuracy float32
	var count int64
	want(t, s.Run(background, feed(dtg.Fetch(losses[0], &first))...))
	for range 30 {
		want(t, s.Run(background, feed(dtg.Fetch(training.GradientNorm, &norm), dtg.Target(training.Train))...))
	}
	want(t, s.Run(background, feed(dtg.Fetch(losses[0], &last), dtg.Fetch(losses[4], &accuracy), dtg.Fetch(correct, &count), dtg.Target(losses...))...))
	if !(last < first/2) || norm <= 0 || float32(count)/2 != accuracy {
		t.Errorf("loss %g, then %g; norm %g, %d correct, accuracy %g", first, last, norm, count, accuracy)
	}
	want(t, s.Run(background, dtg.Fetch(training.GlobalStep, &count)))
	if count != 30 {
		t.Errorf("global step %d", count)
	}
	var names []string
	for i, v := range model.Variables() {
		if again := get(model.VariableAt(i))(t); again.Name != v.Name || again.Handle != v.Handle {
			t.Errorf("variable %d", i)
		}
		if v.Trainable {
			names = append(names, fmt.Sprintf("%s %v %v", v.Name, v.Shape, v.DType))
		}
	}
	equal(t, names, []string{"first/kernel [3 3 1 4] float32", "embedding/embeddings [5 16] float32", "last/kernel [16 3] float32", "last/bias [3] float32"})
	_, err := model.FindVariable("nobody")
	refused(t, err, dtg.NotFound)
	_, err = model.VariableAt(99)
	refused(t, err, dtg.OutOfRange)
}

func TestOptimizers(t *testing.T) {
	for _, optimizer := range []dtg.Optimizer{{Rate: 0.1}, {Kind: dtg.Momentum, Rate: 0.05, Momentum: 0.5, Nesterov: true}, {Kind: dtg.Adam, Rate: 0.3},
		{Kind: dtg.Adagrad, Rate: 1, InitialAccumulator: 0.2}, {Kind: dtg.RMSProp, Rate: 0.1, Decay: 0.8, Epsilon: 1e-6},
		{Kind: dtg.RMSProp, Rate: 0.05, Centered: true, Epsilon: 1e-3}, {Kind: dtg.Adam, Rate: 0.3, Amsgrad: true}, {Kind: dtg.Adadelta, Rate: 5, Epsilon: 1e-3},
		{Kind: dtg.Adamax, Rate: 0.3}, {Kind: dtg.Nadam, Rate: 0.3}, {Kind: dtg.FTRL, Rate: 2, L1: 0.001, L2: 0.001, L2Shrinkage: 0.001, FtrlBeta: 0.1},
		{Kind: dtg.Lion, Rate: 0.05, Beta1: 0.5, Beta2: 0.5}, {Kind: dtg.LARS, Rate: 0.1, WeightDecay: 0.001, Trust: 0.1, UndecayedNames: []string{"w"}},
		{Rate: 0.2, LookaheadSteps: 4}, {Rate: 0.3, EMA: true, EMAMomentum: 0.5, EMAOverwriteEvery: 10},
		{Rate: 0.2, AccumulationSteps: 2}, {Rate: 0.1, ClipValue: 1}, {Rate: 0.1, ClipEachNorm: 1}} {
		t.Run(fmt.Sprint(optimizer.Kind), func(t *testing.T) {
			leaves(t)
			g := graph(t)
			model := closing(t, g.NewModel(1))
			w := model.Variable("w", 0)
			loss := model.MeanSquaredError(g.ConstF32(3), w.Read)
			training := model.Minimize(loss, optimizer)
			init := model.Init()
			s := connect(t, g)
			want(t, s.Run(background, dtg.Target(init)))
			var value, rate float32
			for range 100 {
				want(t, s.Run(background, dtg.Target(training.Train)))
			}
			want(t, s.Run(background, dtg.Fetch(w.Read, &value), dtg.Fetch(training.LearningRate, &rate)))
			if math.Abs(float64(value)-3) > 0.2 || rate != float32(optimizer.Rate) {
				t.Errorf("w = %g, rate %g", value, rate)
			}
		})
	}
}

// A generator and its critic: two optimizers in one model, each with variables of its own.
func TestVariableLists(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	a, b := model.Variable("a", 1), model.Variable("b", 2)
	loss := g.Mul(a.Read, b.Read)
	ofA := model.Minimize(loss, dtg.Optimizer{Rate: 0.25, Variables: []dtg.Variable{a}})
	ofB := model.Minimize(loss, dtg.Optimizer{Kind: dtg.LAMB, Rate: 0.5, Variables: []dtg.Variable{b}, EMA: true, Undecayed: []dtg.Variable{b}})
	init := model.Init()
	mean, err := model.FindVariable("b/ExponentialMovingAverage")
	want(t, err)
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	var x, y, average float32
	want(t, s.Run(background, dtg.Target(ofA.Train)))
	want(t, s.Run(background, dtg.Fetch(a.Read, &x), dtg.Fetch(b.Read, &y)))
	equal(t, []float32{x, y}, []float32{0.5, 2})
	want(t, s.Run(background, dtg.Target(ofB.Train)))
	want(t, s.Run(background, dtg.Fetch(a.Read, &x), dtg.Fetch(b.Read, &y), dtg.Fetch(mean.Read, &average)))
	if x != 0.5 || math.Abs(float64(y)-1) > 1e-5 || average != y {
		t.Errorf("a = %g, b = %g, mean %g", x, y, average)
	}
}

func TestSchedules(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	step := g.Placeholder("step", dtg.Int64, dtg.Shape{})
	at := []dtg.Schedule{
		{Kind: dtg.ExponentialDecay, Rate: 1, Steps: 4, DecayRate: 0.5, Staircase: true},
		{Kind: dtg.InverseTimeDecay, Rate: 1, Steps: 2, DecayRate: 1},
		{Kind: dtg.PolynomialDecay, Rate: 1, Steps: 8, EndRate: 0.5},
		{Kind: dtg.PiecewiseConstant, Boundaries: []int64{3, 5}, Values: []float64{3, 2, 1}},
		{Kind: dtg.CosineDecay, Rate: 0, Steps: 8, WarmsUp: true, WarmupTarget: 2, WarmupSteps: 2, Alpha: 0.5},
		{Kind: dtg.CosineDecayRestarts, Rate: 1, Steps: 2, TMul: 1, MMul: 0.5},
	}
	wanted := []float64{0.5, 1 / 3.5, 0.6875, 2, 1.5 + 0.5*math.Cos(math.Pi*3/8), 0.125}
	s := connect(t, g)
	for i, schedule := range at {
		rate := model.Schedule(step, schedule)
		want(t, g.Err())
		var found float32
		want(t, s.Run(background, dtg.FeedScalar(step, int64(5)), dtg.Fetch(rate, &found)))
		if math.Abs(float64(found)-wanted[i]) > 1e-5 {
			t.Errorf("schedule %d: %g, not %g", i, found, wanted[i])
		}
	}
	model.Schedule(step, dtg.Schedule{Kind: dtg.PiecewiseConstant, Boundaries: []int64{1}})
	refused(t, g.Err(), dtg.InvalidArgument, "1 boundaries need 2 values")
}

func TestOwnGradients(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.AddVariable(dtg.VariableSpec{Name: "w", DType: dtg.Float64, Shape: dtg.Shape{2}, Initializer: dtg.Initializer{Kind: dtg.InitOnes}})
	still := model.AddVariable(dtg.VariableSpec{Name: "still", NotTrainable: true})
	gradients := g.Gradients([]dtg.Value{g.Square(w.Read)}, []dtg.Value{w.Read}, nil)
	rate := model.ExponentialDecay(model.GlobalStep().Read, 0.5, 1, 0.5, true)
	train := model.ApplyGradients(dtg.Optimizer{LearningRate: g.Cast(rate, dtg.Float64)}, []dtg.Variable{w, still}, []dtg.Gradient{gradients[0], {}})
	init := model.Init()
	want(t, g.Err())
	if still.Trainable || !w.Trainable || w.DType != dtg.Float64 || len(w.Shape) != 1 {
		t.Errorf("%+v %+v", still, w)
	}
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	var values []float64
	want(t, s.Run(background, dtg.Target(train)))
	want(t, s.Run(background, dtg.FetchSlice(w.Read, &values)))
	equal(t, values, []float64{0, 0})
	want(t, s.Run(background, dtg.Target(w.Assign)))
	want(t, s.Run(background, dtg.FetchSlice(w.Read, &values)))
	equal(t, values, []float64{1, 1})
	model.ApplyGradients(dtg.Optimizer{}, []dtg.Variable{w}, nil)
	refused(t, g.Err(), dtg.InvalidArgument, "1 variables, but 0 gradients")
}

func TestSaveAndRestore(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 3)
	add := g.AssignAddVariableOp(w.Handle, g.ConstF32(1))
	init := model.Init()
	s := connect(t, g)
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	refused(t, model.Save(s, path), dtg.FailedPrecondition, "w")
	want(t, s.Run(background, dtg.Target(init)))
	want(t, model.WaitReady(background, s))
	want(t, model.Save(s, path))
	want(t, s.Run(background, dtg.Target(add)))
	want(t, model.Restore(s, path))
	var value float32
	want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	if value != 3 {
		t.Errorf("restored %g", value)
	}
	refused(t, model.Restore(s, path+"x"), dtg.NotFound)
	refused(t, model.Restore(nil, path), dtg.InvalidArgument)
}

// Two towers in one graph give the bits of one over the whole batch's mean.
func TestTowers(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	tower := func(target float32) dtg.Value {
		w := model.AddVariable(dtg.VariableSpec{Name: "w"})
		return model.MeanSquaredError(g.ConstF32(target), w.Read)
	}
	losses := []dtg.Value{tower(1)}
	model.NextTower()
	losses = append(losses, tower(3))
	training := model.MinimizeTowers(losses, dtg.Optimizer{Rate: 0.5})
	init := model.Init()
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	want(t, s.Run(background, dtg.Target(training.Train)))
	var value float32
	want(t, s.Run(background, dtg.Fetch(get(model.FindVariable("w"))(t).Read, &value)))
	if value != 2 {
		t.Errorf("w = %g after one step towards the mean of 1 and 3", value)
	}
	model.NextTower()
	model.AddVariable(dtg.VariableSpec{Name: "another"})
	refused(t, model.Err(), dtg.FailedPrecondition)
}

// A member that is alone averages its own gradients.
func TestAllReduce(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.AddVariable(dtg.VariableSpec{Name: "w"})
	training := model.MinimizeAllReduce(model.MeanSquaredError(g.ConstF32(3), w.Read), dtg.Optimizer{Rate: 0.25}, dtg.AllReduce{GroupSize: 1})
	init := model.Init()
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	want(t, s.Run(background, dtg.Target(training.Train)))
	var value float32
	want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	if value != 1.5 {
		t.Errorf("w = %g after one step towards 3", value)
	}
	model.MinimizeAllReduce(w.Read, dtg.Optimizer{}, dtg.AllReduce{})
	refused(t, model.Err(), dtg.InvalidArgument)
}

// The share of a worker that is alone, by either way.
func TestReplicas(t *testing.T) {
	for _, mode := range []dtg.SyncMode{dtg.SyncAsync, dtg.SyncStrict, dtg.SyncReplicas, dtg.SyncSSP, dtg.SyncElastic} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, own), func(t *testing.T) { replica(t, dtg.Replication{Mode: mode, Total: 1}, own) })
		}
	}
}

func replica(t *testing.T, share dtg.Replication, own bool) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 0)
	loss := model.MeanSquaredError(g.ConstF32(3), w.Read)
	var steps dtg.Replicated
	if own {
		gradients := g.Gradients([]dtg.Value{loss}, []dtg.Value{w.Read}, nil)
		steps = model.ApplyReplicated([]dtg.Variable{w}, gradients, dtg.Optimizer{Rate: 0.25}, share)
	} else {
		steps = model.MinimizeReplicated(loss, dtg.Optimizer{Rate: 0.25}, share)
	}
	init := model.Init()
	s := closing(t, get(dtg.Connect(background, "local", g))(t))
	want(t, s.Run(background, dtg.Target(init)))
	want(t, model.WaitReady(background, s))
	if share.Mode != dtg.SyncAsync && share.Mode != dtg.SyncSSP {
		want(t, s.Run(background, dtg.Target(steps.ChiefInit)))
		updates := get(s.RunRepeatedly(steps.Update))(t)
		defer func() {
			updates.Cancel()
			if err := updates.Wait(background); !errors.Is(err, dtg.ErrCancelled) {
				t.Errorf("updates: %v", err)
			}
		}()
	} else if steps.Update.Valid() {
		t.Error("updates in asynchronous training")
	}
	if elastic := share.Mode == dtg.SyncElastic; elastic != steps.Members.Valid() || (elastic && !steps.Leave.Valid()) {
		t.Error("only elastic training has members, and who leaves them")
	}
	if steps.LocalInit.Valid() {
		want(t, s.Run(background, dtg.Target(steps.LocalInit)))
	}
	for range 3 {
		want(t, s.Run(background, dtg.Target(steps.Train)))
	}
	var value float32
	var step int64
	want(t, s.Run(background, dtg.Fetch(w.Read, &value), dtg.Fetch(steps.GlobalStep, &step)))
	// A step of SyncReplicas may run ahead of its update by a token, and then be dropped.
	if share.Mode == dtg.SyncReplicas && value >= 1.5 && step >= 1 {
		return
	}
	if value != 3*(1-0.125) || step != 3 {
		t.Errorf("w = %g after step %d", value, step)
	}
}

// A worker that is alone is dealt each element once in an epoch.
func TestDeal(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 0)
	x := g.Placeholder("record", dtg.Int64, dtg.Shape{})
	loss := model.MeanSquaredError(g.Cast(x, dtg.Float32), w.Read)
	steps := model.MinimizeReplicated(loss, dtg.Optimizer{}, dtg.Replication{Mode: dtg.SyncElastic, Elements: 5})
	init := model.Init()
	s := closing(t, get(dtg.Connect(background, "local", g))(t))
	for _, target := range []dtg.Value{init, steps.ChiefInit, steps.LocalInit} {
		want(t, s.Run(background, dtg.Target(target)))
	}
	data := closing(t, dtg.DatasetRange(0, 5, 1).Shuffle(0, 1))
	want(t, data.Deal(model, s, 0))
	for epoch := range int64(2) {
		seen := map[int64]int{}
		for batch, err := range data.Elements() {
			want(t, err)
			want(t, s.Run(background, dtg.Feed(x, batch[0]), dtg.Target(steps.Update), dtg.Target(steps.Train)))
			seen[get(dtg.Copy[int64](batch[0]))(t)[0]]++
			at, _, err := data.Dealt()
			want(t, err)
			if at != epoch {
				t.Errorf("epoch %d, not %d", at, epoch)
			}
		}
		if len(seen) != 5 {
			t.Errorf("epoch %d: %v", epoch, seen)
		}
	}
	refused(t, data.Take(1).Err(), dtg.FailedPrecondition)
}

func TestReplicasOfTooFewGradients(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	model.ApplyReplicated([]dtg.Variable{model.Variable("w", 0)}, nil, dtg.Optimizer{}, dtg.Replication{})
	refused(t, g.Err(), dtg.InvalidArgument, "1 variables, but 0 gradients")
}
