// first_hour: what one types in the first hour: data in two parts, a model, training, a test, and the trained model served from one file.
// FIRST_HOUR.md goes through it; capi/examples/first_hour.c in Go.
package main

import (
	"context"
	"fmt"
	"os"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func main() {
	ctx := context.Background()
	path, file := append(os.Args, "tests/data/digits.csv.gz")[1], append(os.Args[min(2, len(os.Args)):], "digits.dtg")[0]

	// Data: one file in two parts. What is fitted is fitted on the training part.
	data := dtg.DatasetCSV(path, dtg.CSVOptions{Label: "c64"}) // the last column; all others together are the features
	train, test := data.Split(dtg.Split{Fraction: 0.2, Seed: 1, Stratify: true, Classes: 1})
	numbers := dtg.Must(train.FitNormalization(0, dtg.NormalizeStandard))
	train.Shuffle(0, 1).Batch(32, true)
	test.Batch(1000, false)

	// A model: what is fed, layers, a loss, an optimizer.
	g := dtg.NewGraph()
	model := g.NewModel(1)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64})
	y := g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	hidden := model.Dense(model.Normalize(x, numbers), dtg.Dense{Units: 32, Activation: dtg.ReLU})
	logits := model.Dense(hidden, dtg.Dense{Units: 10})
	loss := model.SparseSoftmaxCrossEntropy(y, logits)
	accuracy := model.Accuracy(y, logits)
	training := model.Minimize(loss, dtg.Optimizer{Kind: dtg.AdamW, Rate: 0.003})
	init := model.Init()

	// Training: one run per step.
	session := dtg.Must(dtg.Connect(ctx, "local", g))
	defer dtg.Close(session, model, g, test, train, data)
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	var now float32
	for epoch := 1; epoch <= 5; epoch++ {
		for batch, err := range train.Elements() {
			dtg.Check(err)
			dtg.Check(session.Run(ctx, dtg.Feed(x, batch[0]), dtg.Feed(y, batch[1]), dtg.Fetch(loss, &now), dtg.Target(training.Train)))
		}
		fmt.Printf("epoch %d: loss %.4f\n", epoch, now)
	}

	// A test with what it has never seen.
	seen := dtg.Must(test.Next())
	defer dtg.Close(seen[0], seen[1])
	var right float32
	dtg.Check(session.Run(ctx, dtg.Feed(x, seen[0]), dtg.Feed(y, seen[1]), dtg.Fetch(accuracy, &right)))
	fmt.Printf("right: %.4f\n", right)

	// The trained model as one file, served without what built it.
	digit := g.ArgMax(logits, dtg.ConstScalar(g, int32(1)))
	dtg.Check(model.Export(session, file, dtg.Export{
		Inputs: map[string]dtg.Value{"pixels": x}, Outputs: map[string]dtg.Value{"digit": digit}}))
	served, server, err := dtg.LoadModel(file)
	dtg.Check(err)
	defer dtg.Close(server, served, served.Graph())
	var found []int64
	in, out := dtg.Must(served.Endpoint("pixels")), dtg.Must(served.Endpoint("digit"))
	dtg.Check(server.Run(ctx, dtg.Feed(in, seen[0]), dtg.FetchSlice(out, &found)))
	for i, label := range dtg.Must(dtg.Copy[int64](seen[1]))[:5] {
		fmt.Printf("a %d, taken for a %d\n", label, found[i])
	}
}
