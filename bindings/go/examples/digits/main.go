// digits: a small network learns handwritten digits through a server of this process; capi/examples/digits.c in Go.
package main

import "context"
import "fmt"
import "os"
import dtg "github.com/dtg-project/dtg/bindings/go"

func main() {
	ctx, g, cluster := context.Background(), dtg.NewGraph(), dtg.Must(dtg.ParseCluster("worker=127.0.0.1:0"))
	data := dtg.DatasetCSV(append(os.Args, "tests/data/digits.csv.gz")[1], dtg.CSVOptions{Label: "c64"})
	data.Scale(0, 16).Shuffle(0, 1).Repeat(-1).Batch(64, true).Take(200)
	model := g.NewModel(1)
	x, y := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	logits := model.Dense(model.Dense(x, dtg.Dense{Units: 32, Activation: dtg.ReLU}), dtg.Dense{Units: 10})
	loss := model.SparseSoftmaxCrossEntropy(y, logits)
	training, init := model.Minimize(loss, dtg.Optimizer{Rate: 0.1}), model.Init()
	server := dtg.Must(dtg.StartServer(cluster))
	session := dtg.Must(dtg.Connect(ctx, server.Target(), g))
	defer dtg.Close(session, server, cluster, model, g, data)
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	last, step := float32(0), 1
	for batch, err := range data.Elements() {
		dtg.Check(err)
		dtg.Check(session.Run(ctx, dtg.Feed(x, batch[0]), dtg.Feed(y, batch[1]), dtg.Fetch(loss, &last), dtg.Target(training.Train)))
		if step++; step%40 == 1 {
			fmt.Printf("step %d: loss %.6f\n", step-1, last)
		}
	}
}
