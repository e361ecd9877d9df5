// nil and zero: what is not there is refused with the library's error, never by a panic, and getters answer that there is nothing.

package dtg_test

import (
	"context"
	"slices"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// misuse is one call on something that is not there, and words of the error that it gives.
type misuse struct {
	name, words string
	call        func() error
}

func second[T any](_ T, err error) error { return err }

// nilArguments are calls on s, x and y, which are a doubler's, with nil where something is needed.
func nilArguments(s *dtg.Session, x, y dtg.Value) []misuse {
	var none context.Context
	var to float32
	ctx := background
	return []misuse{
		{"an argument", "argument 1 of the run is nil", func() error { return s.Run(ctx, dtg.FeedScalar(x, float32(1)), nil) }},
		{"an argument, later", "argument 0 of the run is nil", func() error { return second(s.RunAsync(nil)) }},
		{"feed: too few", `feed number 1, "x": the shape [3 4] of float32 has 12 elements, but 8 were given`, func() error {
			return s.Run(ctx, dtg.FeedScalar(y, float32(1)), dtg.FeedSlice(x, make([]float32, 8), 3, 4), dtg.Fetch(y, &to))
		}},
		{"feed: too few, later", `feed number 0, "x": the shape`, func() error { return second(s.RunAsync(dtg.FeedSlice(x, []float32{}, 1))) }},
		{"feed: too many to copy", `feed number 0, "x": the shape`, func() error { return s.Run(ctx, dtg.FeedSlice(x, make([]float32, 1<<15), 1)) }},
		{"feed: no slice", `feed number 0, "x": the shape`, func() error { return s.Run(ctx, dtg.FeedSlice[float32](x, nil, 2)) }},
		{"feed: no shape", `feed number 0, "x": `, func() error { return s.Run(ctx, dtg.FeedSlice(x, make([]float32, 4), -2, -2)) }},
		{"feed: no tensor", `feed number 0, "x": the tensor is nil`, func() error { return s.Run(ctx, dtg.Feed(x, nil)) }},
		{"feed: no value", `feed number 0: the tensor is nil`, func() error { return s.Run(ctx, dtg.Feed(dtg.Value{}, nil)) }},
		{"context: Run", "the context is nil", func() error { return s.Run(none, dtg.Fetch(y, &to)) }},
		{"context: Connect", "the context is nil", func() error { return second(dtg.Connect(none, "local", nil)) }},
		{"context: Shutdown", "the context is nil", func() error { return s.Shutdown(none) }},
		{"context: Barrier", "the context is nil", func() error { return s.Barrier(none, "b") }},
		{"context: EndJob", "the context is nil", func() error { return s.EndJob(none) }},
		{"context: EndJobNow", "the context is nil", func() error { return s.EndJobNow(none) }},
		{"context: Outcome", "the context is nil", func() error { return second(s.Outcome(none, 1)) }},
		{"context: ClusterStatus", "the context is nil", func() error { return second(s.ClusterStatus(none)) }},
		{"context: dtg.ClusterStatus", "the context is nil", func() error { return second(dtg.ClusterStatus(none, "x")) }},
		{"context: Run.Wait", "the context is nil", func() error { return (&dtg.Run{}).Wait(none) }},
		{"context: Callable.Run", "the context is nil", func() error { return (&dtg.Callable{}).Run(none, nil, nil) }},
		{"context: Server.Join", "the context is nil", func() error { return (&dtg.Server{}).Join(none) }},
		{"context: Checkpoint.Save", "the context is nil", func() error { return (&dtg.Checkpoint{}).Save(none, 1) }},
		{"context: Checkpoint.Wait", "the context is nil", func() error { return (&dtg.Checkpoint{}).Wait(none) }},
		{"context: WaitReady", "the context is nil", func() error { return (&dtg.Model{}).WaitReady(none, s) }},
		{"context: TrainStep", "the context is nil", func() error { return second((&dtg.Trainer{}).TrainStep(none)) }},
		{"context: Fit", "the context is nil", func() error { return (&dtg.Trainer{}).Fit(none, nil, nil, dtg.Fit{}) }},
	}
}

// absent is calls on objects that are not there: of, which is nil or zero, answers each with words.
func absent[T any](what string, calls map[string]func(of *T) error) (list []misuse) {
	for name, call := range calls {
		list = append(list,
			misuse{"nil " + what + ": " + name, "the " + what + " is nil; make one first", func() error { return call(nil) }},
			misuse{"zero " + what + ": " + name, "this is not an open " + what + ": it was never opened; make one with ", func() error { return call(new(T)) }})
	}
	return list
}

// absentObjects are those that constructors that failed have given, and those that no constructor made.
func absentObjects() []misuse {
	ctx := background
	return slices.Concat(
		absent("run", map[string]func(*dtg.Run) error{
			"Wait": func(r *dtg.Run) error {
				soon, cancel := context.WithTimeout(ctx, time.Minute) // it would wait for it, and then go on
				defer cancel()
				r.Cancel()
				<-r.Done()
				return r.Wait(soon)
			}}),
		absent("callable", map[string]func(*dtg.Callable) error{
			"Run": func(c *dtg.Callable) error { return c.Run(ctx, nil, nil) }}),
		absent("checkpoint", map[string]func(*dtg.Checkpoint) error{
			"Resume":  func(k *dtg.Checkpoint) error { return second(k.Resume()) },
			"Reached": func(k *dtg.Checkpoint) error { return second(k.Reached(1)) },
			"Save":    func(k *dtg.Checkpoint) error { return k.Save(ctx, 1) },
			"Status":  func(k *dtg.Checkpoint) error { return second(k.Status()) }}),
		absent("group", map[string]func(*dtg.Group) error{
			"AllReduce": func(g *dtg.Group) error { return second(g.AllReduce(nil, dtg.Sum)) },
			"Barrier":   func(g *dtg.Group) error { return g.Barrier(0) },
			"Leave":     func(g *dtg.Group) error { return g.Leave() }}),
		absent("trainer", map[string]func(*dtg.Trainer) error{
			"TrainStep": func(t *dtg.Trainer) error { return second(t.TrainStep(ctx)) },
			"Summary":   func(t *dtg.Trainer) error { return second(t.Summary()) },
			"Export":    func(t *dtg.Trainer) error { return t.Export("x") }}),
		absent("event writer", map[string]func(*dtg.EventWriter) error{
			"Flush": func(w *dtg.EventWriter) error { return w.Flush() }}),
		absent("weight set", map[string]func(*dtg.Weights) error{
			"Get":  func(w *dtg.Weights) error { return second(w.Get("x")) },
			"Save": func(w *dtg.Weights) error { return w.Save("x") }}),
		absent("tensor", map[string]func(*dtg.Tensor) error{
			"View":   func(t *dtg.Tensor) error { return second(dtg.View[float32](t)) },
			"Retain": func(t *dtg.Tensor) error { return second(t.Retain()) }}),
		absent("graph", map[string]func(*dtg.Graph) error{
			"Neg":       func(g *dtg.Graph) error { g.Neg(dtg.Value{}); return g.Err() },
			"With":      func(g *dtg.Graph) error { return g.With(dtg.Node{Name: "x"}).Err() },
			"Const":     func(g *dtg.Graph) error { g.ConstF32(1); return g.Err() },
			"Unstack":   func(g *dtg.Graph) error { g.Unpack(dtg.Value{}, 2); return g.Err() },
			"If":        func(g *dtg.Graph) error { g.If(dtg.Value{}, noValues, noValues); return g.Err() },
			"NameScope": func(g *dtg.Graph) error { g.NameScope("x", func() {}); return g.Err() },
			"Gradients": func(g *dtg.Graph) error { g.Gradients(nil, nil, nil); return g.Err() },
			"Find":      func(g *dtg.Graph) error { return second(g.Find("x")) },
			"Serialize": func(g *dtg.Graph) error { return second(g.Serialize()) },
			"Import":    func(g *dtg.Graph) error { return g.Import(nil) },
			"Connect":   func(g *dtg.Graph) error { return second(dtg.Connect(ctx, "local", g)) },
			"NewModel":  func(g *dtg.Graph) error { m := g.NewModel(1); m.Init(); return m.Err() }}),
		absent("model", map[string]func(*dtg.Model) error{
			"Init":  func(m *dtg.Model) error { m.Init(); return m.Err() },
			"Dense": func(m *dtg.Model) error { m.Dense(dtg.Value{}, dtg.Dense{Units: 1}); return m.Err() },
			"Inside": func(m *dtg.Model) error {
				g := dtg.NewGraph()
				defer g.Close()
				g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value { m.Inside(b); return nil })
				return g.Err()
			},
			"Minimize": func(m *dtg.Model) error { m.Minimize(dtg.Value{}, dtg.Optimizer{}); return m.Err() },
			"ApplyGradients": func(m *dtg.Model) error {
				m.ApplyGradients(dtg.Optimizer{}, nil, make([]dtg.Gradient, 1))
				return m.Err()
			},
			"Endpoint":        func(m *dtg.Model) error { return second(m.Endpoint("x")) },
			"FindVariable":    func(m *dtg.Model) error { return second(m.FindVariable("x")) },
			"SetMetadata":     func(m *dtg.Model) error { return m.SetMetadata("x", "y") },
			"NewTrainer":      func(m *dtg.Model) error { return second(m.NewTrainer(dtg.TrainerOptions{})) },
			"of its strategy": func(m *dtg.Model) error { m.NewStrategy(dtg.StrategyOptions{}).Scope(func() {}); return m.Err() },
			"of its mesh":     func(m *dtg.Model) error { m.NewMesh(dtg.MeshOptions{}).Minimize(dtg.Optimizer{}); return m.Err() }}),
	)
}

func noValues(*dtg.Graph) []dtg.Value { return nil }

// nilFunctions are calls without the function that builds.
func nilFunctions() (list []misuse) {
	for name, build := range map[string]func(g *dtg.Graph){
		"If":    func(g *dtg.Graph) { g.If(dtg.ConstScalar(g, true), nil, nil) },
		"Case":  func(g *dtg.Graph) { g.Case(dtg.ConstScalar(g, int32(0)), noValues, nil) },
		"While": func(g *dtg.Graph) { g.While(nil, nil, nil) },
		"While, 1": func(g *dtg.Graph) {
			g.While([]dtg.Value{g.ConstF32(1)}, nil, func(_ *dtg.Graph, v []dtg.Value) []dtg.Value { return v })
		},
		"Function":  func(g *dtg.Graph) { g.Function("f", nil, nil) },
		"NameScope": func(g *dtg.Graph) { g.NameScope("x", nil) },
		"Strategy": func(g *dtg.Graph) {
			m := g.NewModel(1)
			strategy := m.NewStrategy(dtg.StrategyOptions{Devices: []string{"/device:CPU:0"}})
			strategy.Run(nil)
			dtg.Check(dtg.Close(strategy, m))
		},
		"Strategy.Scope": func(g *dtg.Graph) {
			m := g.NewModel(1)
			strategy := m.NewStrategy(dtg.StrategyOptions{Devices: []string{"/device:CPU:0"}})
			strategy.Scope(nil)
			dtg.Check(dtg.Close(strategy, m))
		},
		"Mesh": func(g *dtg.Graph) {
			m := g.NewModel(1)
			mesh := m.NewMesh(dtg.MeshOptions{Devices: []string{"/device:CPU:0"}})
			mesh.Build(nil, 1, false, nil)
			dtg.Check(dtg.Close(mesh, m))
		},
	} {
		list = append(list, misuse{"function: " + name, "is nil; give", func() error {
			g := dtg.NewGraph()
			defer g.Close()
			build(g)
			return g.Err()
		}})
	}
	return list
}

func TestNilAndZero(t *testing.T) {
	leaves(t)
	s, x, y := doubler(t)
	for _, m := range slices.Concat(nilArguments(s, x, y), nilFunctions(), absentObjects()) {
		t.Run(m.name, func(t *testing.T) { refused(t, m.call(), dtg.InvalidArgument, m.words) })
	}
}

// What gives no error answers with nothing.
func TestGettersOfNilAndZero(t *testing.T) {
	leaves(t)
	for _, tensor := range []*dtg.Tensor{nil, {}} {
		equal(t, []int{len(tensor.Shape()), tensor.Len(), int(tensor.DType()), len(tensor.Float32s())}, []int{0, 0, 0, 0})
		equal(t, []bool{tensor.ReadOnly()}, []bool{false})
	}
	for _, group := range []*dtg.Group{nil, {}} {
		equal(t, []int{group.Rank(), group.Size(), int(group.Epoch()), len(group.Member(0))}, []int{-1, 0, 0, 0})
	}
	for _, graph := range []*dtg.Graph{nil, {}} {
		equal(t, []int{graph.NodeCount()}, []int{0})
	}
	for _, model := range []*dtg.Model{nil, {}} {
		equal(t, []int{model.VariableCount(), model.Graph().NodeCount()}, []int{0, 0})
	}
	for _, strategy := range []*dtg.Strategy{nil, {}} {
		local, all := strategy.Replicas()
		equal(t, []int{local, all}, []int{0, 0})
		strategy.Scope(func() { t.Error("a scope") })
		strategy.Replicated()
	}
	for _, mesh := range []*dtg.Mesh{nil, {}} {
		mesh.Minimize(dtg.Optimizer{})
	}
	for _, trainer := range []*dtg.Trainer{nil, {}} {
		trainer.Stop()
		equal(t, []*dtg.Session{trainer.Session()}, []*dtg.Session{nil})
	}
	for _, weights := range []*dtg.Weights{nil, {}} {
		equal(t, []int{weights.Len()}, []int{0})
		for range weights.Names() {
			t.Error("a name")
		}
	}
	want(t, dtg.Close(nil, &dtg.Run{}, &dtg.Callable{}, &dtg.Checkpoint{}, &dtg.Group{}, &dtg.Trainer{}, &dtg.Tensor{}, &dtg.Session{},
		&dtg.EventWriter{}, &dtg.Weights{}, &dtg.Graph{}, &dtg.Model{},
		&dtg.Strategy{}, &dtg.Mesh{}, (*dtg.Group)(nil), (*dtg.Checkpoint)(nil)))
}
