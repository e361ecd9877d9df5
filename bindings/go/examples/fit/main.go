// fit: a small network learns handwritten digits in epochs, with validation and early stopping; capi/examples/fit.c in Go. Killed and
// started again it goes on where it was. fit DIGITS [DIRECTORY [EPOCHS]]: what comes of it is in DIRECTORY.
package main

import "context"
import "fmt"
import "os"
import "strconv"
import dtg "github.com/dtg-project/dtg/bindings/go"

func main() {
	ctx, given := context.Background(), append(os.Args, []string{"tests/data/digits.csv.gz", "", "5"}[min(3, len(os.Args)-1):]...)
	rows := dtg.DatasetCSV(given[1], dtg.CSVOptions{Label: "c64"})
	train, test := rows.Split(dtg.Split{})
	train.Scale(0, 16).Shuffle(0, 1).Batch(32, false)
	test.Scale(0, 16).Batch(100, false)
	g := dtg.NewGraph()
	model := g.NewModel(1)
	x, y := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	logits := model.Dense(model.Dense(x, dtg.Dense{Units: 32, Activation: dtg.ReLU}), dtg.Dense{Units: 10})
	loss := model.SparseSoftmaxCrossEntropy(y, logits)
	accuracy := model.Metric(y, logits, dtg.Metric{Kind: dtg.MetricSparseCategoricalAccuracy})
	trainer := dtg.Must(model.NewTrainer(dtg.TrainerOptions{Feeds: []dtg.Value{x, y}, Loss: loss,
		Optimizer: dtg.Optimizer{Kind: dtg.Adam, Rate: 0.003}, Metrics: map[string]dtg.MetricValues{"accuracy": accuracy}}))
	defer dtg.Close(trainer, model, g, test, train, rows)
	how := dtg.Fit{Directory: given[2], Epochs: dtg.Must(strconv.ParseInt(given[3], 10, 64)),
		EarlyStopping: &dtg.EarlyStopping{Patience: 3, RestoreBest: true}}
	for event, err := range trainer.Events(ctx, train, test, how) {
		dtg.Check(err)
		if event.Kind == dtg.FitEpochEnd {
			fmt.Printf("epoch %d: %v\n", event.Epoch, event.Values)
		}
	}
}
