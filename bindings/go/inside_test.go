// Model.Inside: layers in the bodies of loops and functions give what the same layers give beside each other in the graph around, and their
// variables are the model's.

package dtg_test

import (
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// again is a dense layer as wide as what it is given, so that it can go on with what it gave; "": with weights of its own.
func again(m *dtg.Model, x dtg.Value, weightsOf string) dtg.Value {
	return m.Dense(x, dtg.Dense{Units: 3, Activation: dtg.Tanh, WeightsOf: weightsOf})
}

// looping is a loop that calls such a layer as often as count says.
func looping(m *dtg.Model, count int32, x dtg.Value, weightsOf string) dtg.Value {
	g := m.Graph()
	return counted(g, dtg.ConstScalar(g, count), values{x}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
		return values{again(m.Inside(b), v[0], weightsOf)}
	})[1]
}

// begun is a session in which the model's variables have their first values.
func begun(t *testing.T, m *dtg.Model) *dtg.Session {
	init := m.Init()
	s := connect(t, m.Graph())
	want(t, s.Run(background, dtg.Target(init)))
	return s
}

func TestALoopUsesALayerThatWasMadeOutside(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := dtg.Const(g, []float32{1, -2, 0.5, 0.25, 3, -1}, 2, 3)
	y := again(model, x, "")
	for range 4 {
		y = again(model, y, "dense")
	}
	count := model.VariableCount()
	looped := looping(model, 5, x, "dense")
	equal(t, []int{model.VariableCount()}, []int{count})
	s := begun(t, model)
	var unrolled, found []float32
	want(t, s.Run(background, dtg.FetchSlice(y, &unrolled), dtg.FetchSlice(looped, &found)))
	equal(t, found, unrolled)
	if found[0] == 0 {
		t.Error("nothing was computed")
	}
}

func TestALayerOfABodyLearns(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := dtg.Const(g, []float32{1, -2, 0.5, 0.25, 3, -1}, 2, 3)
	looped := looping(model, 4, x, "")
	kernel := get(model.FindVariable("body/dense/kernel"))(t)
	if !kernel.Trainable {
		t.Errorf("%+v", kernel)
	}
	equal(t, kernel.Shape, []int64{3, 3})
	y := x // the same beside each other, with the weights of the loop's layer
	for range 4 {
		y = again(model, y, "body/dense")
	}
	loss := model.MeanSquaredError(g.ZerosLike(x), looped)
	training := model.Minimize(loss, dtg.Optimizer{Rate: 0.5})
	s := begun(t, model)
	var before, after float32
	var unrolled, found, old, trained []float32
	want(t, s.Run(background, dtg.FetchSlice(y, &unrolled), dtg.FetchSlice(looped, &found), dtg.Fetch(loss, &before), dtg.FetchSlice(kernel.Read, &old)))
	equal(t, found, unrolled)
	for range 20 {
		want(t, s.Run(background, dtg.Target(training.Train)))
	}
	want(t, s.Run(background, dtg.Fetch(loss, &after), dtg.FetchSlice(kernel.Read, &trained)))
	if !(after < before/2) || trained[0] == old[0] {
		t.Errorf("loss %g, then %g; the kernel was %v, is %v", before, after, old, trained)
	}
}

// A body in a body: the model inside of one has a model inside of the other.
func TestInsideOfABodyInABody(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := dtg.Const(g, []float32{1, -2, 0.5}, 1, 3)
	y := again(model, again(model, x, ""), "dense")
	nested := counted(g, dtg.ConstScalar(g, int32(2)), values{x}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
		return b.If(dtg.ConstScalar(b, true), func(c *dtg.Graph) []dtg.Value {
			return values{again(model.Inside(b).Inside(c), v[0], "dense")}
		}, func(*dtg.Graph) []dtg.Value { return v })
	})[1]
	s := begun(t, model)
	var beside, found []float32
	want(t, s.Run(background, dtg.FetchSlice(y, &beside), dtg.FetchSlice(nested, &found)))
	equal(t, found, beside)
}

// What is wrong is an error of the graph around, as everything in a body; a model that could not be made has it too, and its layers do nothing.
func TestMisuseOfInside(t *testing.T) {
	for name, c := range map[string]struct {
		inside func(m *dtg.Model, b *dtg.Graph) *dtg.Model
		code   dtg.Code
		words  string
	}{
		"a nil model":  {func(_ *dtg.Model, b *dtg.Graph) *dtg.Model { return (*dtg.Model)(nil).Inside(b) }, dtg.InvalidArgument, "the model is nil"},
		"a zero model": {func(_ *dtg.Model, b *dtg.Graph) *dtg.Model { return new(dtg.Model).Inside(b) }, dtg.InvalidArgument, "not an open model"},
		"a closed model": {func(m *dtg.Model, b *dtg.Graph) *dtg.Model { _ = m.Close(); return m.Inside(b) }, dtg.InvalidArgument,
			"not an open model"},
		"a graph that is no body": {func(m *dtg.Model, _ *dtg.Graph) *dtg.Model { return m.Inside(m.Graph()) }, dtg.InvalidArgument,
			"the graph is no body"},
		"the body that it is in": {func(m *dtg.Model, b *dtg.Graph) *dtg.Model { return m.Inside(b).Inside(b) }, dtg.InvalidArgument,
			"inside of that body already"},
		"training": {func(m *dtg.Model, b *dtg.Graph) *dtg.Model {
			in := m.Inside(b)
			in.Minimize(b.ConstF32(1), dtg.Optimizer{})
			return in
		}, dtg.FailedPrecondition, "layers and losses"},
		"first values": {func(m *dtg.Model, b *dtg.Graph) *dtg.Model { in := m.Inside(b); in.Init(); return in }, dtg.FailedPrecondition,
			"layers and losses"},
		"a layer that nobody made": {func(m *dtg.Model, b *dtg.Graph) *dtg.Model {
			in := m.Inside(b)
			again(in, dtg.Const(b, make([]float32, 3), 1, 3), "nobody")
			return in
		}, dtg.NotFound, "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			leaves(t)
			g := graph(t)
			model := closing(t, g.NewModel(1))
			g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value {
				in := c.inside(model, b)
				refused(t, in.Err(), c.code, c.words)
				if again(in, dtg.Const(b, make([]float32, 3), 1, 3), "").Valid() {
					t.Error("a value of a model that has an error")
				}
				return nil
			})
			refused(t, g.Err(), c.code, c.words)
		})
	}
}

// A body of a graph that the model is not in: both graphs have the error.
func TestInsideOfAStrangeBody(t *testing.T) {
	leaves(t)
	g, strange := graph(t), graph(t)
	model := closing(t, g.NewModel(1))
	strange.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value {
		refused(t, model.Inside(b).Err(), dtg.InvalidArgument, "the graph is no body")
		return nil
	})
	refused(t, g.Err(), dtg.InvalidArgument, "the graph is no body")
	refused(t, strange.Err(), dtg.InvalidArgument, "the graph is no body")
}

// What a body has left behind is of no use, and does no harm to the graph around.
func TestInsideOfABodyThatWasEnded(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := dtg.Const(g, []float32{1, -2, 0.5}, 1, 3)
	var body *dtg.Graph
	var kept *dtg.Model
	f := closing(t, g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value {
		body, kept = b, model.Inside(b)
		return values{again(kept, x, "")}
	}))
	want(t, g.Err())
	count := model.VariableCount()
	if again(kept, x, "").Valid() || again(model.Inside(body), x, "").Valid() {
		t.Error("a value of an ended body")
	}
	refused(t, kept.Err(), dtg.FailedPrecondition, "ended")
	refused(t, model.Inside(body).Err(), dtg.FailedPrecondition, "ended")
	for _, none := range []*dtg.Graph{nil, {}} {
		refused(t, model.Inside(none).Err(), dtg.InvalidArgument)
	}
	equal(t, []int{model.VariableCount(), kept.VariableCount()}, []int{count, 0})
	want(t, dtg.Close(kept))
	out := g.Call(f)
	s := begun(t, model)
	want(t, s.Run(background, dtg.Target(out...)))
}
