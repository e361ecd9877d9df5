// models: five models that people train, in Go: LeNet, word2vec (skip-grams with sampled softmax), language models with an LSTM and a GRU, and
// a transformer that learns to write rows of digits backwards, and then writes some; capi/examples/models in Go, with the same losses.
//
//	models                            the names of all
//	models lenet [-steps 200]         trains, and prints the loss now and then
//	models lenet -save FILE           trains, and keeps the weights
//	models lenet -reference 50        the losses of the first steps in full, for whoever holds them to another library's
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// dice is a stream of numbers by chance, the same on every machine: SplitMix64.
type dice struct{ state uint64 }

func diceOf(model, step uint64) *dice {
	d := &dice{model}
	d.state = d.draw() ^ step
	d.state = d.draw()
	return d
}

func (d *dice) draw() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func (d *dice) below(limit int64) int64 { return int64(d.draw()>>33) % limit }
func (d *dice) unit() float32           { return float32(d.draw()>>40) / (1 << 24) }

// work is a model in work: its graph, what it feeds, and how a batch is made.
type work struct {
	*dtg.Model
	g         *dtg.Graph
	reference bool // nothing is by chance but what dice say, and learning is slow
	calm      float64
	loss      dtg.Value
	train     dtg.Value
	fill      func(step int64) []dtg.Arg
	show      func(session *dtg.Session) error // prints what it has learned; nil: nothing more than the loss
}

func (w *work) feed(name string, dtype dtg.DType, dims ...int64) dtg.Value {
	return w.g.Placeholder(name, dtype, append(dtg.Shape{-1}, dims...))
}

func (w *work) trainOn(loss dtg.Value, how dtg.Optimizer) {
	if w.reference {
		how.Rate *= w.calm
	}
	w.loss, w.train = loss, w.Minimize(loss, how).Train
}

// ---- LeNet ----

const side, textures = 28, 10

func lenet(w *work) {
	const batch = 32
	w.calm = 0.1
	images, labels := w.feed("images", dtg.Float32, side, side, 1), w.feed("labels", dtg.Int32)
	x := w.Conv2D(images, dtg.Conv2D{Filters: 6, KernelHeight: 5, Padding: dtg.PaddingSame, Activation: dtg.ReLU})
	x = w.MaxPool2D(x, dtg.Pool2D{})
	x = w.Conv2D(x, dtg.Conv2D{Filters: 16, KernelHeight: 5, Activation: dtg.ReLU})
	x = w.Flatten(w.MaxPool2D(x, dtg.Pool2D{}))
	x = w.Dense(x, dtg.Dense{Units: 120, Activation: dtg.ReLU})
	x = w.Dense(x, dtg.Dense{Units: 84, Activation: dtg.ReLU})
	x = w.Dense(x, dtg.Dense{Units: textures})
	w.trainOn(w.SparseSoftmaxCrossEntropy(labels, x), dtg.Optimizer{Kind: dtg.Momentum, Momentum: 0.9, Rate: 0.02})
	pixels, classes := make([]float32, batch*side*side), make([]int32, batch)
	w.fill = func(step int64) []dtg.Arg {
		d := diceOf(1, uint64(step))
		for i := range classes {
			classes[i] = int32(d.below(textures))
			textured(d, uint64(classes[i]), pixels[i*side*side:])
		}
		return []dtg.Arg{dtg.FeedSlice(images, pixels, batch, side, side, 1), dtg.FeedSlice(labels, classes)}
	}
}

// textured writes blocks of four pixels that are bright or dark as the class says, moved a little, with noise over all.
func textured(d *dice, class uint64, image []float32) {
	down, right := d.below(4), d.below(4)
	for i := range int64(side) {
		for j := range int64(side) {
			bright := diceOf(class, uint64((i+down)/4*64+(j+right)/4))
			value := float32(-0.5)
			if bright.draw()&1 != 0 {
				value = 0.5
			}
			image[i*side+j] = value + 2*(d.unit()-0.5)
		}
	}
}

// ---- word2vec ----

func word2vec(w *work) {
	const batch, words, topics, width, samples = 128, 200, 10, 16, 20
	w.calm = 1
	x, context := w.feed("words", dtg.Int32), w.feed("context", dtg.Int32)
	head := dtg.SampledLoss{Kind: dtg.SampledSoftmax, Classes: words, Samples: samples}
	if w.reference { // what is drawn, and how likely it was, comes from us
		head.Sampled = w.feed("sampled", dtg.Int64)
		head.TrueExpected, head.SampledExpected = w.feed("true_expected", dtg.Float32, 1), w.feed("sampled_expected", dtg.Float32)
	}
	rows := w.Embedding(x, dtg.Embedding{Rows: words, Width: width})
	w.trainOn(w.SampledLoss(context, rows, head), dtg.Optimizer{Kind: dtg.Adagrad, Rate: 0.2})
	word := func(d *dice) int32 { // frequent words have low numbers
		u := d.unit()
		return int32(u * u * words)
	}
	w.fill = func(step int64) []dtg.Arg {
		d := diceOf(7, uint64(step))
		from, to := make([]int32, batch), make([]int32, batch)
		for i := range from {
			here, there := word(d), word(d)
			if d.below(5) != 0 { // four neighbours of five are of the topic, which is the number's last digit
				there += here%topics - there%topics
			}
			from[i], to[i] = here, there
		}
		args := []dtg.Arg{dtg.FeedSlice(x, from), dtg.FeedSlice(context, to)}
		if !w.reference {
			return args
		}
		sampled, expected, each := make([]int64, samples), make([]float32, samples), make([]float32, batch)
		for i := range sampled {
			sampled[i] = int64(i)*(words/samples) + d.below(words/samples)
			expected[i] = float32(samples) / words
		}
		for i := range each {
			each[i] = float32(samples) / words
		}
		return append(args, dtg.FeedSlice(head.Sampled, sampled), dtg.FeedSlice(head.TrueExpected, each, batch, 1),
			dtg.FeedSlice(head.SampledExpected, expected))
	}
}

// ---- language models ----

// Lewis Carroll, Alice's Adventures in Wonderland.
var sentences = []string{
	"alice was beginning to get very tired", "of sitting by her sister on the bank", "and of having nothing to do",
	"once or twice she had peeped into the book", "her sister was reading", "but it had no pictures", "or conversations in it",
	"and what is the use of a book", "thought alice", "without pictures or conversations", "so she was considering in her own mind",
	"whether the pleasure of making a daisy chain", "would be worth the trouble of getting up", "and picking the daisies",
	"when suddenly a white rabbit", "with pink eyes ran close by her", "there was nothing so very remarkable in that",
	"oh dear, oh dear, i shall be late",
}

func number(letter byte) int32 {
	switch {
	case letter >= 'a' && letter <= 'z':
		return int32(letter-'a') + 1
	case letter == ' ':
		return 27
	}
	return 28
}

func language(kind dtg.RecurrentKind) func(w *work) {
	return func(w *work) {
		const batch, letters, longest = 8, 29, 48
		w.calm = 1
		x, next, mask := w.feed("letters", dtg.Int32, longest), w.feed("next", dtg.Int32, longest), w.feed("mask", dtg.Float32, longest)
		lengths := w.feed("lengths", dtg.Int32)
		rows := w.Embedding(x, dtg.Embedding{Rows: letters, Width: 16})
		y := w.Recurrent(rows, dtg.Recurrent{Kind: kind, Units: 64, Lengths: lengths}).Outputs
		y = w.Dense(y, dtg.Dense{Units: letters})
		w.trainOn(w.byToken(next, y, mask), dtg.Optimizer{Kind: dtg.Adam, Rate: 0.005})
		w.fill = func(step int64) []dtg.Arg {
			d := diceOf(8, uint64(step))
			in, out, counts, ends := make([]int32, batch*longest), make([]int32, batch*longest), make([]float32, batch*longest), make([]int32, batch)
			for i := range ends {
				sentence := sentences[d.below(int64(len(sentences)))]
				for t := range sentence {
					in[i*longest+t+1] = number(sentence[t])
					out[i*longest+t] = number(sentence[t])
				}
				for t := range len(sentence) + 1 {
					counts[i*longest+t] = 1
				}
				ends[i] = int32(len(sentence)) + 1
			}
			return []dtg.Arg{dtg.FeedSlice(x, in, batch, longest), dtg.FeedSlice(next, out, batch, longest),
				dtg.FeedSlice(mask, counts, batch, longest), dtg.FeedSlice(lengths, ends)}
		}
	}
}

// byToken is the mean cross entropy over the tokens that the mask counts.
func (w *work) byToken(next, logits, mask dtg.Value) dtg.Value {
	return w.Loss(next, logits, dtg.Loss{Kind: dtg.LossSparseCategoricalCrossentropy, FromLogits: true, Reduction: dtg.LossMeanByWeights,
		SampleWeights: mask})
}

// ---- a transformer ----

const longest, tokens, width, heads, start, first = 8, 12, 32, 2, 1, 2

func (w *work) embed(x dtg.Value) dtg.Value {
	rows := w.Embedding(x, dtg.Embedding{Rows: tokens, Width: width})
	return w.g.AddV2(rows, w.Embedding(places(w.g), dtg.Embedding{Rows: longest, Width: width}))
}

// attend looks at itself where value is the zero Value.
func (w *work) attend(x, value, lengths dtg.Value, causal bool) dtg.Value {
	y := w.LayerNorm(x, dtg.Norm{})
	if !value.Valid() {
		value = y
	}
	return w.g.AddV2(x, w.Attention(y, value, dtg.Attention{Heads: heads, KeyWidth: width / heads, Causal: causal, Lengths: lengths}))
}

func (w *work) think(x dtg.Value) dtg.Value {
	y := w.Dense(w.LayerNorm(x, dtg.Norm{}), dtg.Dense{Units: 2 * width, Activation: dtg.GELU})
	return w.g.AddV2(x, w.Dense(y, dtg.Dense{Units: width}))
}

func transformer(w *work) {
	const batch = 16
	w.calm = 0.1
	source, written, next := w.feed("source", dtg.Int32, longest), w.feed("written", dtg.Int32, longest), w.feed("next", dtg.Int32, longest)
	mask, lengths := w.feed("mask", dtg.Float32, longest), w.feed("lengths", dtg.Int32)
	none := dtg.Value{}
	x := w.think(w.attend(w.embed(source), none, lengths, false))
	x = w.LayerNorm(x, dtg.Norm{})
	y := w.attend(w.embed(written), none, none, true)
	y = w.think(w.attend(y, x, lengths, false))
	logits := w.Dense(w.LayerNorm(y, dtg.Norm{}), dtg.Dense{Units: tokens})
	w.trainOn(w.byToken(next, logits, mask), dtg.Optimizer{Kind: dtg.Adam, Rate: 0.003})
	writers := []writer{w.writer(batch, 1, x, lengths), w.writer(batch, 4, x, lengths)}
	feeds := func(l *lesson) []dtg.Arg {
		return []dtg.Arg{dtg.FeedSlice(source, l.source, batch, longest), dtg.FeedSlice(written, l.written, batch, longest),
			dtg.FeedSlice(next, l.next, batch, longest), dtg.FeedSlice(mask, l.mask, batch, longest), dtg.FeedSlice(lengths, l.lengths)}
	}
	w.fill = func(step int64) []dtg.Arg { return feeds(lessonOf(step, batch)) }
	w.show = func(session *dtg.Session) error {
		l := lessonOf(-100, batch) // rows that nobody trained on
		for _, each := range writers {
			if err := each.show(session, l, feeds(l)); err != nil {
				return err
			}
		}
		return nil
	}
}

// lesson is rows of digits, and what the decoder is to write for them: the same backwards. Rows are filled up to longest with 0.
type lesson struct {
	source, written, next []int32
	mask                  []float32 // 1 where a token counts
	lengths               []int32
}

func lessonOf(step, batch int64) *lesson {
	d := diceOf(9, uint64(step))
	l := &lesson{make([]int32, batch*longest), make([]int32, batch*longest), make([]int32, batch*longest), make([]float32, batch*longest),
		make([]int32, batch)}
	for i := range batch {
		length := int(3 + d.below(longest-2))
		row, in, out := l.source[i*longest:][:longest], l.written[i*longest:][:longest], l.next[i*longest:][:longest]
		for t := range length {
			row[t] = first + int32(d.below(tokens-first))
		}
		for t := range length {
			out[t] = row[length-1-t]
			l.mask[int(i)*longest+t] = 1
		}
		in[0] = start
		copy(in[1:], out)
		l.lengths[i] = int32(length)
	}
	return l
}

// ---- training ----

var models = []struct {
	name  string
	build func(w *work)
}{{"lenet", lenet}, {"word2vec_softmax", word2vec}, {"lstm", language(dtg.LSTM)}, {"gru", language(dtg.GRU)}, {"transformer", transformer}}

// options is what the command line says.
type options struct {
	steps, reference int
	save, device     string
}

func run(build func(w *work), o options) error {
	g := dtg.NewGraph()
	defer g.Close()
	w := &work{Model: g.NewModel(2015), g: g, reference: o.reference > 0}
	defer w.Model.Close()
	var init dtg.Value
	g.Device(o.device, func() {
		build(w)
		init = w.Init()
	})
	if err := w.Model.Err(); err != nil {
		return err
	}
	session, err := dtg.Connect(context.Background(), "local", g, dtg.SessionOptions{EmuDevices: min(len(o.device), 1)})
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Run(context.Background(), dtg.Target(init)); err != nil {
		return err
	}
	if w.reference {
		return w.steps(session, o.reference)
	}
	if err := w.steps(session, o.steps); err != nil {
		return err
	}
	if o.save != "" {
		if err := w.Save(session, o.save); err != nil {
			return err
		}
	}
	if w.show == nil {
		return nil
	}
	return w.show(session)
}

func (w *work) steps(session *dtg.Session, count int) error {
	for step := range count {
		var loss float32
		args := append(w.fill(int64(step)), dtg.Fetch(w.loss, &loss), dtg.Target(w.train))
		if err := session.Run(context.Background(), args...); err != nil {
			return err
		}
		if w.reference {
			fmt.Printf("[%.9g]\n", loss)
		} else if step%20 == 19 {
			fmt.Printf("step %5d   loss %8.5g\n", step+1, loss)
		}
	}
	return nil
}

func main() {
	flags := flag.NewFlagSet("models", flag.ExitOnError)
	var o options
	flags.IntVar(&o.steps, "steps", 200, "how many to train")
	flags.IntVar(&o.reference, "reference", 0, "losses of so many first steps, in full")
	flags.StringVar(&o.save, "save", "", "a file for the weights that were trained")
	flags.StringVar(&o.device, "device", "", "where the model is")
	if len(os.Args) < 2 {
		for _, each := range models {
			fmt.Println(each.name, "steps loss")
		}
		return
	}
	_ = flags.Parse(os.Args[2:])
	for _, each := range models {
		if each.name != os.Args[1] {
			continue
		}
		if err := run(each.build, o); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", each.name, err)
			os.Exit(1)
		}
		return
	}
	fmt.Fprintln(os.Stderr, "no model is called", os.Args[1])
	os.Exit(2)
}
