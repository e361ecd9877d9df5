// elastic: one worker of a job whose workers come and go while it trains; capi/examples/elastic.c in Go, which ELASTIC.md shows piece by
// piece. Each batch of an epoch is in exactly one update, whoever is there.
//
//	dtg run --local --ps 1 --workers 1..4 --start 2 --restart on-failure -- elastic tests/data/digits.csv.gz
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

const epochs = 3

type worker struct {
	self    dtg.Task
	cluster *dtg.Cluster
	server  *dtg.Server
	graph   *dtg.Graph
	model   *dtg.Model
	x, y    dtg.Value
	loss    dtg.Value
	init    dtg.Value
	steps   dtg.Replicated
	data    *dtg.Dataset
	session *dtg.Session
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s DATA, as a task of a job (TF_CONFIG)\n", os.Args[0])
		os.Exit(2)
	}
	w := &worker{}
	err := w.work(context.Background(), os.Args[1])
	w.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *worker) work(ctx context.Context, data string) error {
	if err := w.takePlace(); err != nil {
		return err
	}
	if w.self.Type == "ps" {
		return w.server.Join(ctx)
	}
	w.openData(data)
	w.build()
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.train(ctx); err != nil {
		return err
	}
	if w.self.IsChief {
		if err := w.count(ctx); err != nil {
			return err
		}
	}
	limit, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	return w.session.EndJob(limit) // every worker calls it: the chief waits for those that have not
}

// takePlace starts a server that sees the parameter servers alone: that another worker is gone, or never came, is then none of its business.
func (w *worker) takePlace() (err error) {
	if w.cluster, w.self, err = dtg.ClusterFromTFConfig(); err != nil {
		return err
	}
	place := dtg.ServerOptions{Job: w.self.Type, Task: w.self.Index}
	if w.self.Type != "ps" {
		place.DeviceFilters = []string{"/job:ps"}
	}
	w.server, err = dtg.StartServer(w.cluster, place)
	return err
}

// openData is the same in every worker: the same seed, no shard, no repeat, and a last batch that may be short, as no record is to be left out.
func (w *worker) openData(path string) {
	w.data = dtg.DatasetCSV(path, dtg.CSVOptions{Label: "c64"}).Scale(0, 16).Shuffle(0, 3).Batch(30, false)
}

// build adds the same layers in every worker: variables on the ps, everything else here. The first error sticks; Connect tells it.
func (w *worker) build() {
	least, _ := strconv.Atoi(os.Getenv("DTG_MIN_WORKERS")) // dtg run --workers 2..8 sets it
	w.graph = dtg.NewGraph()
	here := fmt.Sprintf("/job:%s/task:%d", w.self.Type, w.self.Index)
	w.graph.SetDevices(dtg.DeviceSetter{Cluster: w.cluster, WorkerDevice: here}, func() {
		w.model = w.graph.NewModel(7)
		w.x = w.graph.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64})
		w.y = w.graph.Placeholder("y", dtg.Int64, dtg.Shape{-1})
		layer := w.model.Dense(w.x, dtg.Dense{Units: 32, Activation: dtg.ReLU})
		logits := w.model.Dense(layer, dtg.Dense{Units: 10})
		w.loss = w.model.SparseSoftmaxCrossEntropy(w.y, logits)
		w.steps = w.model.MinimizeReplicated(w.loss, dtg.Optimizer{Kind: dtg.Momentum, Rate: 0.05, Momentum: 0.9},
			dtg.Replication{Mode: dtg.SyncElastic, Worker: w.self.ID, Total: w.self.NumWorkers, // so many at most
				MinWorkers: least, Elements: int(w.data.Cardinality())}) // and no step with fewer
		if w.self.IsChief {
			w.init = w.model.Init()
		}
	})
}

// begin: the chief gives the variables their first values and keeps the updates going; the others wait until that is done.
func (w *worker) begin(ctx context.Context) (err error) {
	if w.session, err = dtg.Connect(ctx, w.server.Target(), w.graph); err != nil {
		return err
	}
	if w.self.IsChief {
		if err := w.session.Run(ctx, dtg.Target(w.init)); err != nil {
			return err
		}
	}
	patience, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	if err := w.model.WaitReady(patience, w.session); err != nil {
		return err
	}
	if w.self.IsChief {
		if err := w.session.Run(ctx, dtg.Target(w.steps.ChiefInit)); err != nil {
			return err
		}
		updates, err := w.session.RunRepeatedly(w.steps.Update)
		if err != nil {
			return err
		}
		defer updates.Close() // they go on until the session is closed
	}
	if err := w.session.Run(ctx, dtg.Target(w.steps.LocalInit)); err != nil {
		return err
	}
	return w.data.Deal(w.model, w.session, 0) // from here on the data set hands out what is dealt to this worker
}

// train is one Train with each batch that is dealt here. Whoever comes late joins the epoch that is now, and an epoch ends for all at once.
func (w *worker) train(ctx context.Context) error {
	for epoch := int64(0); epoch < epochs; {
		for batch, err := range w.data.Elements() {
			if err != nil {
				return err
			}
			if epoch, _, err = w.data.Dealt(); err != nil {
				return err
			}
			if epoch >= epochs {
				break
			}
			err = w.session.Run(ctx, dtg.Feed(w.x, batch[0]), dtg.Feed(w.y, batch[1]), dtg.Target(w.steps.Train))
			if errors.Is(err, dtg.ErrUnavailable) || errors.Is(err, dtg.ErrAborted) { // a task was lost: the batch comes again
				err = w.model.Recover(w.session, 0)
			}
			if err != nil {
				return err
			}
		}
		var err error
		if epoch, _, err = w.data.Dealt(); err != nil {
			return err
		}
	}
	return w.session.Run(ctx, dtg.Target(w.steps.Leave)) // nobody waits for another step of this worker
}

// count: in how many updates each batch was is a variable of the model, so it comes back with the weights, too.
func (w *worker) count(ctx context.Context) error {
	dealt, err := w.model.FindVariable("sync/dealt")
	if err != nil {
		return err
	}
	var times []float64
	if err := w.session.Run(ctx, dtg.FetchSlice(dealt.Read, &times)); err != nil {
		return err
	}
	right := 0
	for _, n := range times {
		if n == epochs {
			right++
		}
	}
	fmt.Printf("%d of %d batches were in %d updates each\n", right, len(times), epochs)
	return nil
}

func (w *worker) close() {
	if w.session != nil {
		w.session.Close()
	}
	if w.data != nil {
		w.data.Close()
	}
	if w.graph != nil {
		w.model.Close()
		w.graph.Close()
	}
	if w.server != nil {
		w.server.Close()
	}
	w.cluster.Close()
}
