// recipes: ten tasks, each as short as it goes; RECIPES.md shows them one by one. All use the digits of tests/data, images of 8 x 8 and what
// they show. capi/examples/recipes.c in Go.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

var ctx = context.Background()

// task is what every recipe has: data, a graph with its inputs, a model.
type task struct {
	*dtg.Graph
	model *dtg.Model
	data  *dtg.Dataset
	x, y  dtg.Value
	file  string // for what is served
}

func begin(path, label, file string) *task {
	g := dtg.NewGraph()
	return &task{g, g.NewModel(1), dtg.DatasetCSV(path, dtg.CSVOptions{Label: label}).Scale(0, 16).Shuffle(0, 1).Batch(32, true),
		g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 64}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1}), file}
}

// train is one epoch with Adam; the loss of its last step.
func (t *task) train(loss dtg.Value) (last float32) {
	training := t.model.Minimize(loss, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.01, Lazy: true}) // of an embedding only the rows that were used move
	init := t.model.Init()
	session := dtg.Must(dtg.Connect(ctx, "local", t.Graph))
	defer session.Close()
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	for batch, err := range t.data.Elements() {
		dtg.Check(err)
		dtg.Check(session.Run(ctx, dtg.Feed(t.x, batch[0]), dtg.Feed(t.y, batch[1]), dtg.Fetch(loss, &last), dtg.Target(training.Train)))
	}
	return last
}

// column is the labels as numbers in a column, [batch, 1].
func (t *task) column() dtg.Value {
	return t.Reshape(t.Cast(t.y, dtg.Float32), dtg.Const(t.Graph, []int64{-1, 1}, 2))
}

// regression: a number for each row. Here it is the number that the image shows.
func (t *task) regression() float32 {
	hidden := t.model.Dense(t.x, dtg.Dense{Units: 32, Activation: dtg.ReLU})
	number := t.model.Dense(hidden, dtg.Dense{Units: 1})
	return t.train(t.model.MeanSquaredError(t.column(), number))
}

// images: a classifier with convolutions over [batch, height, width, channels].
func (t *task) images() float32 {
	image := t.Reshape(t.x, dtg.Const(t.Graph, []int64{-1, 8, 8, 1}, 4))
	convolved := t.model.Conv2D(image, dtg.Conv2D{Filters: 8, Padding: dtg.PaddingSame, Activation: dtg.ReLU})
	logits := t.model.Dense(t.model.Flatten(t.model.MaxPool2D(convolved, dtg.Pool2D{})), dtg.Dense{Units: 10})
	return t.train(t.model.SparseSoftmaxCrossEntropy(t.y, logits))
}

// embeddings: a vector per number, learned. Here one for each digit, from which its image is to be drawn.
func (t *task) embeddings() float32 {
	vector := t.model.Embedding(t.y, dtg.Embedding{Rows: 10, Width: 4})
	drawn := t.model.Dense(vector, dtg.Dense{Units: 64, Activation: dtg.Sigmoid})
	return t.train(t.model.MeanSquaredError(t.x, drawn))
}

// texts: a vocabulary gives texts that are fed numbers, row 0 of the table is for all that it does not know. Here the names of digits.
func (t *task) texts() float32 {
	words := []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
	vocabulary := dtg.Must(dtg.StringTensor(words))
	defer vocabulary.Close()
	// Instead of this a program has a placeholder of dtg.String.
	fed := t.model.Lookup(t.y, dtg.Lookup{Vocabulary: vocabulary, Invert: true, NoOOV: true})
	numbers := t.model.Lookup(fed, dtg.Lookup{Vocabulary: vocabulary})
	vector := t.model.Embedding(numbers, dtg.Embedding{Rows: 11, Width: 4})
	drawn := t.model.Dense(vector, dtg.Dense{Units: 64, Activation: dtg.Sigmoid})
	return t.train(t.model.MeanSquaredError(t.x, drawn))
}

// oneHot: a column whose numbers stand for names becomes as many columns of 0 and 1. Here pixel 20, as if its 17 shades were names.
func (t *task) oneHot() float32 {
	axis := dtg.ConstScalar(t.Graph, int32(1))
	parts := t.SplitV(t.x, t.ConstI64s(20, 1, 43), axis, 3)
	names := t.Cast(t.Mul(parts[1], dtg.ConstScalar(t.Graph, float32(16))), dtg.Int64) // all columns were divided by that
	depth, on, off := dtg.ConstScalar(t.Graph, int32(17)), dtg.ConstScalar(t.Graph, float32(1)), dtg.ConstScalar(t.Graph, float32(0))
	parts[1] = t.Reshape(t.OneHot(names, depth, on, off), t.ConstI64s(-1, 17))
	logits := t.model.Dense(t.ConcatV2(parts, axis), dtg.Dense{Units: 10})
	return t.train(t.model.SparseSoftmaxCrossEntropy(t.y, logits))
}

// outputs: one trunk, two heads, one loss that is the sum of theirs.
func (t *task) outputs() float32 {
	hidden := t.model.Dense(t.x, dtg.Dense{Units: 32, Activation: dtg.ReLU})
	logits := t.model.Dense(hidden, dtg.Dense{Units: 10})
	number := t.model.Dense(hidden, dtg.Dense{Units: 1})
	first := t.model.SparseSoftmaxCrossEntropy(t.y, logits)
	second := t.model.MeanSquaredError(t.column(), number)
	return t.train(t.AddV2(first, second))
}

// ownLoss: any nodes that end in a scalar. Here log(cosh(error)), which outliers pull less.
func (t *task) ownLoss() float32 {
	number := t.model.Dense(t.x, dtg.Dense{Units: 1})
	distance := t.Log(t.Cosh(t.Sub(number, t.column())))
	return t.train(t.Mean(distance, dtg.Const(t.Graph, []int64{0, 1}, 2)))
}

// sequences: an image read row by row, 8 steps of 8 numbers, by an LSTM. Steps beyond the last row with ink do not count.
func (t *task) sequences() float32 {
	steps := t.Reshape(t.x, t.ConstI64s(-1, 8, 8))
	ink := t.Sign(t.Sum(steps, t.ConstI64s(2)))
	last := t.Max(t.Mul(ink, dtg.Const(t.Graph, []float32{1, 2, 3, 4, 5, 6, 7, 8})), t.ConstI64s(1))
	read := t.model.Recurrent(steps, dtg.Recurrent{Kind: dtg.LSTM, Units: 32, Lengths: t.Cast(last, dtg.Int64)})
	logits := t.model.Dense(read.Hidden, dtg.Dense{Units: 10})
	return t.train(t.model.SparseSoftmaxCrossEntropy(t.y, logits))
}

// switched: dropout and batch normalization do their work in training only. Their switch is off unless a run feeds it, so who serves need not
// know.
func (t *task) switched() float32 {
	training := t.PlaceholderWithDefault(dtg.ConstScalar(t.Graph, false), dtg.Shape{})
	hidden := t.model.Dense(t.x, dtg.Dense{Units: 32, Activation: dtg.ReLU})
	normal := t.model.BatchNorm(hidden, dtg.BatchNorm{Training: training})
	dropped := t.model.Dropout(normal, 0.2, t.model.GlobalStep().Read, training)
	logits := t.model.Dense(dropped, dtg.Dense{Units: 10})
	loss := t.model.SparseSoftmaxCrossEntropy(t.y, logits)
	train := t.model.Minimize(loss, dtg.Optimizer{}).Train
	init := t.model.Init()
	session := dtg.Must(dtg.Connect(ctx, "local", t.Graph))
	defer session.Close()
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	var pixels []float32 // of the last batch
	for batch, err := range t.data.Elements() {
		dtg.Check(err)
		dtg.Check(session.Run(ctx, dtg.Feed(t.x, batch[0]), dtg.Feed(t.y, batch[1]), dtg.FeedScalar(training, true), dtg.Target(train)))
		pixels = dtg.Must(dtg.Copy[float32](batch[0]))
	}
	// Served from a file; the last batch once more, with the switch off.
	dtg.Check(t.model.Export(session, t.file, dtg.Export{
		Inputs: map[string]dtg.Value{"pixels": t.x}, Outputs: map[string]dtg.Value{"scores": logits}}))
	served, server, err := dtg.LoadModel(t.file)
	dtg.Check(err)
	defer dtg.Close(server, served, served.Graph())
	var scores []float32
	in, out := dtg.Must(served.Endpoint("pixels")), dtg.Must(served.Endpoint("scores"))
	dtg.Check(server.Run(ctx, dtg.FeedSlice(in, pixels, 32, 64), dtg.FetchSlice(out, &scores)))
	return scores[0]
}

// serving: one callable, prepared once, called by many goroutines at once.
func (t *task) serving() (sum float32) {
	chances := t.model.Dense(t.x, dtg.Dense{Units: 10, Activation: dtg.Softmax})
	init := t.model.Init()
	session := dtg.Must(dtg.Connect(ctx, "local", t.Graph))
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	ask := dtg.Must(session.Prepare(dtg.Signature{Feeds: []dtg.Value{t.x}, Fetches: []dtg.Value{chances}}))
	batch := dtg.Must(t.data.Next())
	defer dtg.Close(batch[0], batch[1], ask, session)
	var sums [4]float32
	var clients sync.WaitGroup
	for i := range sums {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for range 100 {
				answer := []*dtg.Tensor{nil}
				dtg.Check(ask.Run(ctx, batch[:1], answer))
				sums[i] += dtg.Must(dtg.Copy[float32](answer[0]))[0]
				answer[0].Close()
			}
		}()
	}
	clients.Wait()
	return sums[0] + sums[1] + sums[2] + sums[3]
}

func main() {
	path, file := "tests/data/digits.csv.gz", "recipe.dtg"
	for i, argument := range os.Args[1:min(len(os.Args), 3)] {
		*[]*string{&path, &file}[i] = argument
	}
	for _, recipe := range []struct {
		name string
		cook func(*task) float32
	}{{"regression", (*task).regression}, {"images", (*task).images}, {"embeddings", (*task).embeddings},
		{"texts", (*task).texts},
		{"one-hot", (*task).oneHot}, {"outputs", (*task).outputs}, {"own loss", (*task).ownLoss},
		{"sequences", (*task).sequences}, {"a switch", (*task).switched}, {"serving", (*task).serving}} {
		t := begin(path, "c64", file)
		fmt.Printf("%s: %.4f\n", recipe.name, recipe.cook(t))
		dtg.Close(t.model, t.Graph, t.data)
	}
}
