// char_lstm: a recurrent network learns six words, letter by letter, in sequences of different lengths, and then writes them from their
// first letter; capi/examples/char_lstm.c in Go. Alone it trains in this process; as the worker of a job (TF_CONFIG) it keeps its variables
// on the ps, with the same losses. -device places everything else, and -cell the steps of the network, inside the loops.
//
//	char_lstm [-device /device:EMU:0 [-cell /device:EMU:1]]
//	dtg run --local --ps 1 --workers 1 -- char_lstm
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

const (
	letters, embedding, hidden, sequences = 27, 8, 16, 3 // letter 0 ends a word
	steps, longest                        = 60, 12
)

var words = [2][sequences]string{{"if", "loop", "case"}, {"graph", "tensor", "variable"}}

type values = []dtg.Value

type network struct {
	g                                        *dtg.Graph
	letterRows, kernel, bias, output, offset dtg.Value
	cellDevice                               string // "": as what is around it
}

func (n *network) build(m *dtg.Model) {
	variable := func(name string, kind dtg.InitializerKind, shape ...int64) dtg.Value {
		return m.AddVariable(dtg.VariableSpec{Name: name, Shape: shape, Initializer: dtg.Initializer{Kind: kind}}).Read
	}
	n.letterRows = variable("embedding", dtg.InitGlorotUniform, letters, embedding)
	n.kernel = variable("kernel", dtg.InitGlorotUniform, embedding+hidden, 4*hidden)
	n.bias = variable("bias", dtg.InitZeros, 4*hidden)
	n.output = variable("output", dtg.InitGlorotUniform, hidden, letters)
	n.offset = variable("offset", dtg.InitZeros, letters)
}

func i32(g *dtg.Graph, value int32) dtg.Value { return dtg.ConstScalar(g, value) }

// cell is one step of an LSTM: letter is a vector, one element per sequence.
func (n *network) cell(b *dtg.Graph, letter, h, c dtg.Value) (newH, newC dtg.Value) {
	b.Device(n.cellDevice, func() {
		x := b.GatherV2(n.letterRows, letter, i32(b, 0))
		z := b.BiasAdd(b.MatMul(b.ConcatV2(values{x, h}, i32(b, 1)), n.kernel), n.bias)
		gates := b.Split(i32(b, 1), z, 4) // input, forget, candidate, output
		forget := b.Sigmoid(b.AddV2(gates[1], b.ConstF32(1)))
		newC = b.AddV2(b.Mul(forget, c), b.Mul(b.Sigmoid(gates[0]), b.Tanh(gates[2])))
		newH = b.Mul(b.Sigmoid(gates[3]), b.Tanh(newC))
	})
	return newH, newC
}

func (n *network) logits(b *dtg.Graph, h dtg.Value) dtg.Value {
	return b.BiasAdd(b.MatMul(h, n.output), n.offset)
}

// loss runs over time as long as the longest of the sequences, which are the columns of text. While all of them go on the new state is
// taken as it is; afterwards those that have ended keep theirs.
func (n *network) loss(text, lengths dtg.Value) dtg.Value {
	g := n.g
	zeros := dtg.Const(g, make([]float32, sequences*hidden), sequences, hidden)
	shape := g.ConstI32s(sequences, hidden)
	longest, shortest := g.Max(lengths, i32(g, 0)), g.Min(lengths, i32(g, 0))
	states := g.EmptyTensorList(shape, i32(g, -1), dtg.Float32)
	end := g.While(values{i32(g, 0), zeros, zeros, states},
		func(b *dtg.Graph, v []dtg.Value) dtg.Value { return b.Less(v[0], longest) },
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			t, h, c := v[0], v[1], v[2]
			newH, newC := n.cell(b, b.GatherV2(text, t, i32(b, 0)), h, c)
			next := b.If(b.Less(t, shortest), func(*dtg.Graph) []dtg.Value { return values{newH, newC} },
				func(b *dtg.Graph) []dtg.Value {
					running := b.ExpandDims(b.Less(t, lengths), i32(b, 1))
					return values{b.SelectV2(running, newH, h), b.SelectV2(running, newC, c)}
				})
			return values{b.AddV2(t, i32(b, 1)), next[0], next[1], b.TensorListPushBack(v[3], next[0])}
		})
	all := g.Reshape(g.TensorListStack(end[3], shape, dtg.Float32), g.ConstI32s(-1, hidden))
	wanted := g.Reshape(g.Slice(text, g.ConstI32s(1, 0), g.ConstI32s(-1, -1)), g.ConstI32s(-1))
	each, _ := g.SparseSoftmaxCrossEntropyWithLogits(n.logits(g, all), wanted)
	time := g.ExpandDims(g.Range(i32(g, 0), longest, i32(g, 1)), i32(g, 1))
	counts := g.Reshape(g.Cast(g.Less(time, lengths), dtg.Float32), g.ConstI32s(-1))
	return g.RealDiv(g.Sum(g.Mul(each, counts), i32(g, 0)), g.Sum(counts, i32(g, 0)))
}

// write goes on from a letter, with the likeliest one each time, until a word ends.
func (n *network) write(first dtg.Value) dtg.Value {
	g := n.g
	zeros, none := dtg.Const(g, make([]float32, hidden), 1, hidden), g.ConstI32s()
	end := g.While(values{i32(g, 0), first, zeros, zeros, g.EmptyTensorList(none, i32(g, -1), dtg.Int32)},
		func(b *dtg.Graph, v []dtg.Value) dtg.Value {
			return b.LogicalAnd(b.Less(v[0], i32(b, longest)), b.Greater(v[1], i32(b, 0)))
		},
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			h, c := n.cell(b, b.ExpandDims(v[1], i32(b, 0)), v[2], v[3])
			best := b.ArgMax(n.logits(b, h), i32(b, 1), dtg.ArgMaxAttrs{OutputType: dtg.Int32})
			return values{b.AddV2(v[0], i32(b, 1)), b.Reshape(best, b.ConstI32s()), h, c, b.TensorListPushBack(v[4], v[1])}
		})
	return g.TensorListStack(end[4], none, dtg.Int32)
}

// batch is a column per word, a row more than the longest has letters.
func batch(of [sequences]string) (text []int32, lengths []int32) {
	rows := 0
	for _, word := range of {
		lengths, rows = append(lengths, int32(len(word))), max(rows, len(word)+1)
	}
	text = make([]int32, rows*sequences)
	for k, word := range of {
		for t, letter := range word {
			text[t*sequences+k] = letter - 'a' + 1
		}
	}
	return text, lengths
}

func train(ctx context.Context, target string, setter dtg.DeviceSetter, device, cell string) error {
	n := &network{g: dtg.NewGraph(), cellDevice: cell}
	var text, lengths, first, loss, written, init dtg.Value
	var training dtg.Training
	var model *dtg.Model
	place := func() {
		model = n.g.NewModel(7)
		n.build(model)
		text = n.g.Placeholder("text", dtg.Int32, dtg.Shape{-1, sequences})
		lengths = n.g.Placeholder("lengths", dtg.Int32, dtg.Shape{sequences})
		first = n.g.Placeholder("first", dtg.Int32, dtg.Shape{})
		loss, written = n.loss(text, lengths), n.write(first)
		training = model.Minimize(loss, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.05})
		init = model.Init()
	}
	if device != "" {
		inner := place
		place = func() { n.g.Device(device, inner) }
	}
	if setter.Cluster != nil {
		n.g.SetDevices(setter, place)
	} else {
		place()
	}
	var options dtg.SessionOptions
	if strings.Contains(device, "EMU") {
		options.EmuDevices = 2
	}
	session, err := dtg.Connect(ctx, target, n.g, options)
	defer dtg.Close(model, n.g)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Run(ctx, dtg.Target(init)); err != nil {
		return err
	}
	for step := 1; step <= steps; step++ {
		columns, sizes := batch(words[step%2])
		var last float32
		err := session.Run(ctx, dtg.FeedSlice(text, columns, int64(len(columns)/sequences), sequences), dtg.FeedSlice(lengths, sizes),
			dtg.Fetch(loss, &last), dtg.Target(training.Train))
		if err != nil {
			return err
		}
		fmt.Printf("{\"step\": %d, \"loss\": %.6f, \"bits\": \"%08x\"}\n", step, last, math.Float32bits(last))
	}
	for _, word := range append(words[0][:], words[1][:]...) {
		var out []int32
		if err := session.Run(ctx, dtg.FeedScalar(first, int32(word[0]-'a'+1)), dtg.FetchSlice(written, &out)); err != nil {
			return err
		}
		var spelled []byte
		for _, letter := range out {
			spelled = append(spelled, byte(letter-1+'a'))
		}
		fmt.Printf("{\"first\": \"%c\", \"word\": \"%s\"}\n", word[0], spelled)
	}
	if setter.Cluster != nil {
		return session.EndJob(ctx)
	}
	return nil
}

func run(ctx context.Context, device, cell string) error {
	cluster, self, err := dtg.ClusterFromTFConfig()
	if err != nil {
		return err
	}
	if cluster == nil {
		return train(ctx, "local", dtg.DeviceSetter{}, device, cell)
	}
	defer cluster.Close()
	server, err := dtg.StartServer(cluster, dtg.ServerOptions{Job: self.Type, Task: self.Index})
	if err != nil {
		return err
	}
	defer server.Close()
	if self.Type == "ps" {
		return server.Join(ctx)
	}
	here := fmt.Sprintf("/job:%s/task:%d", self.Type, self.Index)
	return train(ctx, server.Target(), dtg.DeviceSetter{Cluster: cluster, WorkerDevice: here + device}, "", cell)
}

func main() {
	device := flag.String("device", "", "where everything but the variables of a ps goes")
	cell := flag.String("cell", "", "where the steps of the network go, inside the loops")
	flag.Parse()
	if err := run(context.Background(), *device, *cell); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
