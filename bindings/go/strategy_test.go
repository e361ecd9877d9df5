// Strategies: a mirrored model on emulated accelerators against towers, per-replica values, aggregated writes, and misuse.

package dtg_test

import (
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// shares builds y = dense(x) against zero on two halves of a batch of 4, and gives what training changed after three steps.
func shares(t *testing.T, train func(g *dtg.Graph, model *dtg.Model, x dtg.Value, loss func(dtg.Value) dtg.Value) dtg.Training) []float32 {
	t.Helper()
	g := graph(t)
	model := closing(t, g.NewModel(5))
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{4, 3})
	training := train(g, model, x, func(half dtg.Value) dtg.Value {
		y := model.Dense(half, dtg.Dense{Units: 2, Activation: dtg.Tanh})
		return model.MeanSquaredError(g.ZerosLike(y), y)
	})
	init := model.Init()
	want(t, g.Err())
	s := connect(t, g, dtg.SessionOptions{EmuDevices: 2})
	want(t, s.Run(background, dtg.Target(init)))
	for range 3 {
		batch := []float32{1, 2, 3, -1, 0, 1, 0.5, 0.5, 0, 2, -2, 1}
		want(t, s.Run(background, dtg.FeedSlice(x, batch, 4, 3), dtg.Target(training.Train)))
	}
	kernel := get(model.FindVariable("dense/kernel"))(t)
	var values []float32
	want(t, s.Run(background, dtg.FetchSlice(kernel.Read, &values)))
	return values
}

func TestStrategies(t *testing.T) {
	leaves(t)
	optimizer := dtg.Optimizer{Kind: dtg.Adam, Rate: 0.1}
	towers := shares(t, func(g *dtg.Graph, model *dtg.Model, x dtg.Value, loss func(dtg.Value) dtg.Value) dtg.Training {
		halves := g.Split(dtg.ConstScalar(g, int32(0)), x, 2)
		first := loss(halves[0])
		model.NextTower()
		return model.MinimizeTowers([]dtg.Value{first, loss(halves[1])}, optimizer)
	})
	for _, kind := range []dtg.StrategyKind{dtg.Mirrored, dtg.CentralStorage} {
		got := shares(t, func(_ *dtg.Graph, model *dtg.Model, x dtg.Value, loss func(dtg.Value) dtg.Value) (training dtg.Training) {
			strategy := closing(t, model.NewStrategy(dtg.StrategyOptions{Kind: kind, Devices: []string{"/device:EMU:0", "/device:EMU:1"}}))
			strategy.Scope(func() {
				losses := strategy.Run(func(_ int, in []dtg.Value) []dtg.Value { return []dtg.Value{loss(in[0])} }, strategy.Split(x))
				training = strategy.Minimize(losses[0], dtg.Mean, optimizer)
			})
			return training
		})
		equal(t, got, towers)
	}
}

func TestStrategyValues(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	strategy := closing(t, model.NewStrategy(dtg.StrategyOptions{Kind: dtg.Mirrored, Devices: []string{"/device:EMU:0", "/device:EMU:1"}}))
	var seen dtg.Variable
	var numbers []dtg.PerReplica
	strategy.Scope(func() {
		seen = model.AddVariable(dtg.VariableSpec{Name: "seen", NotTrainable: true, Sync: dtg.VariableOnRead, Aggregation: dtg.AggregationSum})
		numbers = strategy.Run(func(replica int, _ []dtg.Value) []dtg.Value {
			own := dtg.ConstScalar(g, float32(replica+1))
			strategy.Assign(seen, dtg.AssignAdd, own)
			return []dtg.Value{own}
		})
	})
	updates := strategy.Updates()
	sum, mean := strategy.Reduce(dtg.Sum, numbers[0], dtg.NoAxis), strategy.Reduce(dtg.Mean, numbers[0], dtg.NoAxis)
	locals := strategy.LocalResults(numbers[0])
	row := g.ExpandDims(locals[1], dtg.ConstScalar(g, int32(0)))
	other := g.ExpandDims(locals[0], dtg.ConstScalar(g, int32(0)))
	both := strategy.Gather(strategy.Distribute([]dtg.Value{row, other}), 0)
	same := strategy.LocalResults(strategy.Broadcast(sum))
	init := model.Init()
	want(t, g.Err())
	local, inSync := strategy.Replicas()
	equal(t, []int{local, inSync, len(locals), len(same)}, []int{2, 2, 2, 2})
	s := connect(t, g, dtg.SessionOptions{EmuDevices: 2})
	want(t, s.Run(background, dtg.Target(init)))
	want(t, s.Run(background, dtg.Target(updates)))
	var a, b, c float32
	var gathered []float32
	want(t, s.Run(background, dtg.Fetch(sum, &a), dtg.Fetch(mean, &b), dtg.Fetch(seen.Read, &c), dtg.FetchSlice(both, &gathered)))
	equal(t, []float32{a, b, c, gathered[0], gathered[1]}, []float32{3, 1.5, 3, 2, 1})
}

func TestStrategyMisuse(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	strategy := closing(t, model.NewStrategy(dtg.StrategyOptions{Kind: dtg.CentralStorage, Devices: []string{"CPU:0", "CPU:1"}}))
	strategy.Run(func(int, []dtg.Value) []dtg.Value {
		strategy.Reduce(dtg.Sum, dtg.PerReplica{}, dtg.NoAxis)
		return nil
	})
	refused(t, g.Err(), dtg.FailedPrecondition)
	other := graph(t)
	closing(t, closing(t, other.NewModel(1)).NewStrategy(dtg.StrategyOptions{Kind: dtg.OneDevice}))
	refused(t, other.Err(), dtg.InvalidArgument)
	worker := graph(t)
	ps := closing(t, closing(t, worker.NewModel(1)).NewStrategy(dtg.StrategyOptions{Kind: dtg.ParameterServer, Replication: &dtg.Replication{}}))
	ps.Replicated()
	refused(t, worker.Err(), dtg.FailedPrecondition)
}
