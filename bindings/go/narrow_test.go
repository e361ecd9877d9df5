// What the library would cut: numbers beyond 32 bits, texts with a NUL, results behind one that fails.

package dtg_test

import (
	"context"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestNumbersFitOrAreRefused(t *testing.T) {
	leaves(t)
	c := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:1,127.0.0.1:2"))(t))
	if a := c.Address("worker", 1<<32+1); a != "" {
		t.Errorf("task %d is at %s", 1<<32+1, a)
	}
	_, err := c.Target(dtg.Task{Type: "worker", Index: 1<<32 + 1})
	refused(t, err, dtg.InvalidArgument)
	_, err = dtg.StartServer(c, dtg.ServerOptions{Task: 1 << 32})
	refused(t, err, dtg.InvalidArgument)
	_, err = dtg.NewRuntime(dtg.RuntimeOptions{ComputeThreads: 1<<32 + 2})
	refused(t, err, dtg.InvalidArgument)
	g := closing(t, dtg.NewGraph())
	_, err = dtg.Connect(t.Context(), "local", g, dtg.SessionOptions{CPUDevices: 1<<32 + 1})
	refused(t, err, dtg.InvalidArgument)
}

// Those that say how files are kept and how much is done at once: cut to 32 bits they were 0, which is a default, or another number.
func TestSettingsFitOrAreRefused(t *testing.T) {
	leaves(t)
	l := newLab(t)
	for name, options := range map[string]dtg.CheckpointOptions{"Keep is": {Keep: 1 << 32}, "Shards is": {Shards: 1<<32 + 2}} {
		_, err := l.model.Checkpoint(l.trainer.Session(), t.TempDir(), options)
		refused(t, err, dtg.InvalidArgument, name)
	}
	refused(t, l.trainer.Fit(background, l.train, nil, dtg.Fit{Keep: 1 << 32}), dtg.InvalidArgument, "Keep is")
	same := func(_ *dtg.Graph, x []dtg.Value) []dtg.Value { return x }
	for _, parallel := range []int{1 << 32, 1<<32 + 2} {
		data := closing(t, dtg.DatasetRange(0, 4, 1).Map(same, dtg.MapOptions{Parallel: parallel}))
		refused(t, data.Err(), dtg.InvalidArgument)
	}
	for name, how := range map[string]dtg.AllReduce{
		"GroupKey is":      {GroupSize: 1, GroupKey: 1 << 32},
		"GroupSize is":     {GroupSize: 1<<32 + 1},
		"FirstInstance is": {GroupSize: 1, FirstInstance: 1 << 32},
	} {
		g := graph(t)
		model := closing(t, g.NewModel(1))
		model.MinimizeAllReduce(model.AddVariable(dtg.VariableSpec{Name: "w"}).Read, dtg.Optimizer{Rate: 1}, how)
		refused(t, model.Err(), dtg.InvalidArgument, name)
	}
	g := closing(t, dtg.NewGraph())
	g.SetDevices(dtg.DeviceSetter{PSTasks: 1<<32 + 1}, func() { g.ConstF32(1) })
	refused(t, g.Err(), dtg.InvalidArgument, "PSTasks is")
}

func TestTextsAreNotCutAtNUL(t *testing.T) {
	leaves(t)
	c := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:1,127.0.0.1:2"))(t))
	if a, n := c.Address("worker\x00x", 0), c.TaskCount("worker\x00x"); a != "" || n != 0 {
		t.Error(a, n)
	}
	for i, a := range c.Tasks("worker\x00x") {
		t.Error(i, a)
	}
	_, err := c.Target(dtg.Task{Type: "worker\x00x"})
	refused(t, err, dtg.InvalidArgument)
	refused(t, dtg.DatasetCSV("data_test.go\x00.csv").Err(), dtg.InvalidArgument)
	_, err = dtg.LoadWeights("data_test.go\x00.safetensors")
	refused(t, err, dtg.InvalidArgument)
}

func TestAFailedDeliveryKeepsNothing(t *testing.T) {
	leaves(t)
	g := closing(t, dtg.NewGraph())
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1})
	y := g.Square(x)
	s := closing(t, get(dtg.Connect(t.Context(), "local", g))(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrong := closing(t, get(dtg.AllocateTensor(dtg.Float32, 3))(t))
	before := dtg.LiveHandles()
	for range 5 {
		var out []float32
		refused(t, s.Run(ctx, dtg.FeedSlice(x, []float32{1, 2, 3, 4}), dtg.FetchSlice(y, &out), dtg.FetchTensor(y, &wrong)), dtg.InvalidArgument)
	}
	if now := dtg.LiveHandles(); now != before {
		t.Errorf("%d objects more", now-before)
	}
	one := closing(t, get(dtg.AllocateTensor(dtg.Float32, 4))(t))
	same := one
	refused(t, s.Run(ctx, dtg.FeedSlice(x, []float32{1, 2, 3, 4}), dtg.FetchTensor(y, &one), dtg.FetchTensor(x, &same)), dtg.InvalidArgument)
}
