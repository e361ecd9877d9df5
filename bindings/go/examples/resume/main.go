// resume: training that can be stopped at any time; capi/examples/resume.c in Go. resume DIGITS DIR STEPS
package main

import "context"
import "fmt"
import "os"
import "strconv"
import dtg "github.com/dtg-project/dtg/bindings/go"

func main() {
	ctx, g, steps := context.Background(), dtg.NewGraph(), dtg.Must(strconv.ParseInt(os.Args[3], 10, 64))
	data := dtg.DatasetCSV(os.Args[1], dtg.CSVOptions{Label: "c64"}).Scale(0, 16).Shuffle(0, 1).Repeat(-1).Batch(64, true)
	model := g.NewModel(1)
	x, y := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	logits := model.Dense(model.Dense(x, dtg.Dense{Units: 32, Activation: dtg.ReLU}), dtg.Dense{Units: 10})
	loss := model.SparseSoftmaxCrossEntropy(y, logits)
	training := model.Minimize(loss, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.002})
	session := dtg.Must(dtg.Connect(ctx, "local", g))
	sets := dtg.Must(model.Checkpoint(session, os.Args[2], dtg.CheckpointOptions{EverySteps: 50}))
	defer dtg.Close(sets, session, model, g, data)
	dtg.Check(sets.AddData("train", data))
	at := dtg.Must(sets.Resume())
	fmt.Printf("from step %d\n", at.Step)
	last, step := float32(0), at.Step
	for step < steps {
		batch := dtg.Must(data.Next())
		dtg.Check(session.Run(ctx, dtg.Feed(x, batch[0]), dtg.Feed(y, batch[1]), dtg.Fetch(loss, &last), dtg.Target(training.Train)))
		dtg.Close(batch[0], batch[1])
		step++
		dtg.Must(sets.Reached(step))
	}
	dtg.Check(sets.Save(ctx, step))
	fmt.Printf("step %d: loss %.6f\n", step, last)
}
