// MultiWorkerMirrored: two workers with a server each in this process, a goroutine for each, against towers in one graph.

package dtg_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

var halves = []float32{1, 2, 3, -1, 0, 1, 0.5, 0.5, 0, 2, -2, 1}

// worker trains on its half of the batch for three steps, by hand or by a fit of all workers, and gives the kernel.
func worker(server *dtg.Server, rank int, fits bool) (values []float32, err error) {
	group, err := server.JoinGroup(dtg.GroupOptions{Timeout: 20 * time.Second})
	if err != nil {
		return nil, err
	}
	defer group.Close()
	g := dtg.NewGraph()
	defer g.Close()
	model := g.NewModel(uint64(5 + rank)) // the first one's values are everybody's
	defer model.Close()
	strategy := model.NewStrategy(dtg.StrategyOptions{Kind: dtg.MultiWorkerMirrored, Group: group, Algorithm: dtg.AlgorithmRing,
		PackBytes: 1 << 10, Timeout: 20 * time.Second})
	defer strategy.Close()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{2, 3})
	var training dtg.Training
	var level, mean dtg.Value
	strategy.Scope(func() {
		losses := strategy.Run(func(_ int, in []dtg.Value) []dtg.Value {
			y := model.Dense(in[0], dtg.Dense{Units: 2, Activation: dtg.Tanh})
			return []dtg.Value{model.MeanSquaredError(g.ZerosLike(y), y)}
		}, strategy.Split(x))
		model.GlobalStep() // behind the layers, so that they draw the first values of those in towers
		training = strategy.Minimize(losses[0], dtg.Mean, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.1})
		level, mean = strategy.Level(), strategy.Reduce(dtg.Mean, losses[0], dtg.NoAxis)
	})
	init := model.Init()
	if local, all := strategy.Replicas(); local != 1 || all != 2 {
		return nil, fmt.Errorf("%d of %d replicas", local, all)
	}
	if g.Err() != nil {
		return nil, g.Err()
	}
	s, err := dtg.Connect(background, server.Target(), g)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var errs []error
	if fits {
		errs = append(errs, fitOfOne(model, dtg.TrainerOptions{Session: s, Feeds: []dtg.Value{x}, Loss: mean, Train: training.Train, Strategy: strategy}, rank))
	} else {
		errs = append(errs, s.Run(background, dtg.Target(init)))
		for range 3 {
			errs = append(errs, s.Run(background, dtg.FeedSlice(x, halves[6*rank:6*rank+6], 2, 3), dtg.Target(training.Train)))
		}
	}
	kernel, err := model.FindVariable("dense/kernel")
	if err != nil {
		return nil, err
	}
	errs = append(errs, s.Run(background, dtg.Target(level)), s.Run(background, dtg.FetchSlice(kernel.Read, &values)), group.Barrier(0))
	return values, errors.Join(errs...)
}

// fitOfOne is one worker's part of a fit of three steps.
func fitOfOne(model *dtg.Model, options dtg.TrainerOptions, rank int) error {
	trainer, err := model.NewTrainer(options)
	if err != nil {
		return err
	}
	defer trainer.Close()
	half, err := dtg.NewTensor(halves[6*rank:6*rank+6], 2, 3)
	if err != nil {
		return err
	}
	defer half.Close()
	data := dtg.DatasetTensors(half).Batch(2, true)
	defer data.Close()
	return trainer.Fit(background, data, nil, dtg.Fit{Epochs: 3})
}

func TestWorkers(t *testing.T) {
	leaves(t)
	towers := shares(t, func(g *dtg.Graph, model *dtg.Model, x dtg.Value, loss func(dtg.Value) dtg.Value) dtg.Training {
		halves := g.Split(dtg.ConstScalar(g, int32(0)), x, 2)
		first := loss(halves[0])
		model.NextTower()
		return model.MinimizeTowers([]dtg.Value{first, loss(halves[1])}, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.1})
	})
	folder := private(t)
	for _, fits := range []bool{false, true} {
		// Servers of its own: variables belong to the tasks.
		sockets := fmt.Sprintf("%s/%v", folder, fits)
		cluster := closing(t, get(dtg.ParseCluster(fmt.Sprintf("worker=unix:%s0,unix:%s1", sockets, sockets)))(t))
		var all sync.WaitGroup
		for rank := range 2 {
			server := closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Task: rank}))(t))
			all.Add(1)
			go func() {
				defer all.Done()
				if got, err := worker(server, rank, fits); err != nil || !slices.Equal(got, towers) {
					t.Errorf("rank %d, fits %v: %v, %v, wanted %v", rank, fits, got, err, towers)
				}
			}()
		}
		all.Wait()
	}
}
