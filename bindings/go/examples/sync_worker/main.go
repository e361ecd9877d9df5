// sync_worker: one worker of a job that trains one model strictly synchronously; capi/examples/sync_worker.c in Go. The job's tasks
// and this one's place come from TF_CONFIG, and a ps is any server: dtg server.
//
//	dtg run --local --ps 1 --workers 4 -- sync_worker tests/data/digits.csv.gz weights.safetensors
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

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
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s DATA WEIGHTS, as a task of a job (TF_CONFIG)\n", os.Args[0])
		os.Exit(2)
	}
	w := &worker{}
	err := w.work(context.Background(), os.Args[1], os.Args[2])
	w.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *worker) work(ctx context.Context, data, weights string) (err error) {
	if w.cluster, w.self, err = dtg.ClusterFromTFConfig(); err != nil {
		return err
	}
	if w.server, err = dtg.StartServer(w.cluster, dtg.ServerOptions{Job: w.self.Type, Task: w.self.Index}); err != nil {
		return err
	}
	if w.self.Type == "ps" {
		return w.server.Join(ctx)
	}
	w.build()
	if w.session, err = dtg.Connect(ctx, w.server.Target(), w.graph); err != nil {
		return err
	}
	if err = w.begin(ctx); err != nil {
		return err
	}
	w.openData(data)
	if err = w.train(ctx, 100); err != nil {
		return err
	}
	if w.self.IsChief {
		if err = w.model.Save(w.session, weights); err != nil {
			return err
		}
	}
	limit, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	return w.session.EndJob(limit) // waits until all workers are through
}

// build adds the same layers in every worker: variables on the ps, everything else here. The first error sticks; Connect tells it.
func (w *worker) build() {
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
			dtg.Replication{Mode: dtg.SyncStrict, Worker: w.self.ID, Total: w.self.NumWorkers})
		if w.self.IsChief {
			w.init = w.model.Init()
		}
	})
}

// begin: the chief gives the variables their first values and keeps the updates going; the others wait until that is done.
func (w *worker) begin(ctx context.Context) error {
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
	return w.session.Run(ctx, dtg.Target(w.steps.LocalInit))
}

// openData takes this worker's share of every batch of 60.
func (w *worker) openData(path string) {
	share := int64(w.self.NumWorkers)
	w.data = dtg.DatasetCSV(path, dtg.CSVOptions{Label: "c64"}).Scale(0, 16).Shuffle(0, 3).Repeat(-1).
		Shard(share, int64(w.self.ID)).Batch(60/share, true)
}

func (w *worker) train(ctx context.Context, steps int) error {
	step := 0
	for batch, err := range w.data.Elements() {
		if err != nil || step == steps {
			return err
		}
		step++
		var loss float32
		err = w.session.Run(ctx, dtg.Feed(w.x, batch[0]), dtg.Feed(w.y, batch[1]), dtg.Fetch(w.loss, &loss), dtg.Target(w.steps.Train))
		if err != nil {
			return err
		}
		if step%20 == 0 {
			fmt.Printf("step %d: loss %.6f\n", step, loss)
		}
	}
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
