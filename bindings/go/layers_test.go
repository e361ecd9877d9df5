// Normalizations, layers over sequences and the further convolutions: a small network of them learns, every one of them is made with the
// shape that it should have, and what does not fit is refused in the words of the library.

package dtg_test

import (
	"fmt"
	"slices"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// A convolution that looks back, batch normalization with a switch, a recurrent layer both ways, attention, layer normalization: whether
// the last step of a sequence is greater than the first.
func TestSequences(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(3))
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 6, 4})
	labels := g.Placeholder("labels", dtg.Int64, dtg.Shape{-1})
	training := g.Placeholder("training", dtg.Bool, dtg.Shape{})
	y := model.Conv1D(x, dtg.Conv{Filters: 6, Causal: true})
	y = model.BatchNorm(y, dtg.BatchNorm{Momentum: 0.5, Training: training})
	steps := model.Recurrent(y, dtg.Recurrent{Kind: dtg.GRU, Direction: dtg.DirectionBoth, Units: 5})
	if steps.Cell.Valid() {
		t.Error("a GRU with a cell")
	}
	equal(t, get(g.ValueShape(steps.Outputs))(t), []int64{-1, 6, 10})
	equal(t, get(g.ValueShape(steps.Hidden))(t), []int64{-1, 10})
	y = model.Attention(steps.Outputs, steps.Outputs, dtg.Attention{Heads: 2, KeyWidth: 2})
	y = model.GlobalAvgPool(model.LayerNorm(y, dtg.Norm{}), false)
	loss := model.SparseSoftmaxCrossEntropy(labels, model.Dense(y, dtg.Dense{Units: 2}))
	train := model.Minimize(loss, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.02}).Train
	init := model.Init()
	want(t, model.Err())
	mean := get(model.FindVariable("batch_normalization/moving_mean"))(t)
	if mean.Trainable {
		t.Error("a moving mean that is trained")
	}
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))

	numbers, classes := make([]float32, 16*6*4), make([]int64, 16)
	state := uint32(1)
	for i := range numbers {
		state = state*1664525 + 1013904223
		numbers[i] = float32(state>>8)/(1<<24) - 0.5
	}
	for i := range classes {
		if numbers[i*24+20] > numbers[i*24] {
			classes[i] = 1
		}
	}
	run := func(mode bool, args ...dtg.Arg) {
		t.Helper()
		want(t, s.Run(background, append(args, dtg.FeedSlice(x, numbers, 16, 6, 4), dtg.FeedSlice(labels, classes),
			dtg.Feed(training, closing(t, get(dtg.ScalarTensor(mode))(t))))...))
	}
	moving := func() (out []float32) {
		t.Helper()
		run(false, dtg.FetchSlice(mean.Read, &out))
		return out
	}
	var first, last float32
	run(true, dtg.Fetch(loss, &first))
	equal(t, moving(), make([]float32, 6)) // that was no step
	run(true, dtg.Target(train))
	moved := moving()
	if slices.Equal(moved, make([]float32, 6)) {
		t.Error("a step left the moving mean where it was")
	}
	run(false, dtg.Target(train))
	equal(t, moving(), moved) // that was no training
	for range 60 {
		run(true, dtg.Target(train))
	}
	run(false, dtg.Fetch(loss, &last))
	if !(last < first/2) {
		t.Errorf("loss %g, then %g", first, last)
	}
}

func count(model *dtg.Model) (variables int) {
	for range model.Variables() {
		variables++
	}
	return variables
}

// The others, by their shapes and variables.
func TestLayerShapes(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	sequence := g.Placeholder("sequence", dtg.Float32, dtg.Shape{2, 5, 4})
	image := g.Placeholder("image", dtg.Float32, dtg.Shape{2, 8, 6, 4})
	volume := g.Placeholder("volume", dtg.Float32, dtg.Shape{2, 5, 8, 6, 4})
	lengths := g.Placeholder("lengths", dtg.Int32, dtg.Shape{2})
	state := g.Placeholder("state", dtg.Float32, dtg.Shape{2, 3})
	mask := g.Placeholder("mask", dtg.Bool, dtg.Shape{2, 5, 5})
	orthogonal := dtg.Initializer{Kind: dtg.InitOrthogonal}
	lstm := model.Recurrent(sequence, dtg.Recurrent{Name: "memory", Units: 3, Direction: dtg.DirectionBackward, Lengths: lengths, Hidden: state,
		Cell: state, Kernel: orthogonal, NoForgetBias: true})
	variables := count(model)
	again := model.Recurrent(sequence, dtg.Recurrent{Units: 3, WeightsOf: "memory"})
	if count(model) != variables {
		t.Error("weights of their own")
	}
	looked := model.Attention(sequence, sequence, dtg.Attention{Name: "look", Heads: 2, KeyWidth: 3, ValueWidth: 2, OutputWidth: 7, Causal: true,
		Mask: mask, Lengths: lengths, Key: sequence})
	for name, made := range map[string]struct {
		value dtg.Value
		shape []int64
	}{
		"rms norm":        {model.RMSNorm(sequence, dtg.Norm{Name: "root"}), []int64{2, 5, 4}},
		"group norm":      {model.GroupNorm(image, dtg.Norm{Groups: 2, NoScale: true}), []int64{2, 8, 6, 4}},
		"layer norm":      {model.LayerNorm(image, dtg.Norm{NoCenter: true}), []int64{2, 8, 6, 4}},
		"batch norm":      {model.BatchNorm(image, dtg.BatchNorm{Name: "batch", NoCenter: true, NoScale: true}), []int64{2, 8, 6, 4}},
		"outputs":         {lstm.Outputs, []int64{2, 5, 3}},
		"hidden":          {lstm.Hidden, []int64{2, 3}},
		"cell":            {lstm.Cell, []int64{2, 3}},
		"shared":          {again.Outputs, []int64{2, 5, 3}},
		"simple":          {model.Recurrent(sequence, dtg.Recurrent{Kind: dtg.SimpleRNN, Units: 6, NoBias: true}).Outputs, []int64{2, 5, 6}},
		"attention":       {looked, []int64{2, 5, 7}},
		"conv1d":          {model.Conv1D(sequence, dtg.Conv{Filters: 3, KernelSize: [3]int64{2}, Dilation: [3]int64{2}}), []int64{2, 3, 3}},
		"conv3d":          {model.Conv3D(volume, dtg.Conv{Filters: 3, KernelSize: [3]int64{2, 3, 4}, Stride: [3]int64{1, 2, 1}}), []int64{2, 4, 3, 3, 3}},
		"transpose":       {model.Conv2DTranspose(image, dtg.Conv{Filters: 3, Stride: [3]int64{2}, Padding: dtg.PaddingSame}), []int64{2, 16, 12, 3}},
		"depthwise":       {model.DepthwiseConv2D(image, dtg.Conv{Multiplier: 2, Activation: dtg.ReLU}), []int64{2, 6, 4, 8}},
		"separable":       {model.SeparableConv2D(image, dtg.Conv{Filters: 5, NoBias: true}), []int64{2, 6, 4, 5}},
		"average":         {model.GlobalAvgPool(image, true), []int64{2, 1, 1, 4}},
		"maximum":         {model.GlobalMaxPool(volume, false), []int64{2, 4}},
		"repeated pixels": {model.UpSampling2D(image, 2, 3, false), []int64{2, 16, 18, 4}},
		"mixed pixels":    {model.UpSampling2D(image, 3, 1, true), []int64{2, 24, 6, 4}},
	} {
		want(t, model.Err())
		t.Run(name, func(t *testing.T) { equal(t, get(g.ValueShape(made.value))(t), made.shape) })
	}
	names := map[string]string{}
	for _, v := range model.Variables() {
		names[v.Name] = fmt.Sprint(v.Shape)
	}
	for name, shape := range map[string]string{"memory/recurrent_kernel": "[3 12]", "root/scale": "[4]", "conv3d/kernel": "[2 3 4 4 3]",
		"look/attention_output/kernel": "[2 2 7]", "separable_conv2d/pointwise_kernel": "[1 1 4 5]"} {
		if names[name] != shape {
			t.Errorf("%s is %q, not %s, of %v", name, names[name], shape, names)
		}
	}
	if _, there := names["batch/gamma"]; there {
		t.Error("a scale that was not asked for")
	}
}

// Places, bags and chance have their shapes; attention step by step gives what it gives at once; gradients in a recompute scope are the same.
func TestPlacesBagsAndChance(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	sequence := g.Placeholder("sequence", dtg.Float32, dtg.Shape{2, 5, 4})
	image := g.Placeholder("image", dtg.Float32, dtg.Shape{2, 8, 6, 4})
	ids, lengths := g.Placeholder("ids", dtg.Int64, dtg.Shape{2, 3}), g.Placeholder("lengths", dtg.Int32, dtg.Shape{2})
	step := dtg.ConstScalar(g, int64(3))
	equal(t, get(g.ValueShape(model.PositionEmbedding(sequence, dtg.PositionEmbedding{})))(t), []int64{2, 5, 4})
	equal(t, get(g.ValueShape(model.PositionEmbedding(sequence, dtg.PositionEmbedding{Kind: dtg.PositionLearned, Longest: 9})))(t), []int64{2, 5, 4})
	bag := model.EmbeddingBag(ids, dtg.EmbeddingBag{Rows: 7, Width: 6, Combiner: dtg.CombineSqrtN, Lengths: lengths})
	equal(t, get(g.ValueShape(bag))(t), []int64{2, 6})
	for _, kind := range []dtg.NoiseKind{dtg.SpatialDropout, dtg.GaussianNoise, dtg.GaussianDropout, dtg.AlphaDropout} {
		equal(t, get(g.ValueShape(model.Noise(sequence, kind, 0.5, step, dtg.Value{})))(t), []int64{2, 5, 4})
	}
	equal(t, get(g.ValueShape(model.AdaptiveAvgPool(image, 3, 4)))(t), []int64{2, 3, 4, 4})
	equal(t, get(g.ValueShape(model.AdaptiveMaxPool(sequence, 2)))(t), []int64{2, 2, 4})

	layer := dtg.Attention{Name: "look", Heads: 2, KeyWidth: 3, Causal: true}
	whole := model.Attention(sequence, sequence, layer)
	layer.WeightsOf = "look"
	first := g.Slice(sequence, g.ConstI32s(0, 0, 0), g.ConstI32s(2, 4, 4))
	last := g.Slice(sequence, g.ConstI32s(0, 4, 0), g.ConstI32s(2, 1, 4))
	cache := model.AttentionCache(first, layer, 5)
	out, after := model.AttentionStep(last, layer, cache)
	equal(t, get(g.ValueShape(out))(t), []int64{2, 1, 4})
	equal(t, get(g.ValueShape(after.Keys))(t), []int64{2, 5, 2, 3})
	var inside dtg.Value
	g.Recompute(func() { inside = g.Tanh(model.Dense(whole, dtg.Dense{Units: 3})) })
	slope := g.Gradients([]dtg.Value{inside}, []dtg.Value{sequence}, nil)[0].Dense
	init := model.Init()
	want(t, model.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	numbers := make([]float32, 2*5*4)
	for i := range numbers {
		numbers[i] = float32(i%7) - 3
	}
	var all, step4, slopes []float32
	want(t, s.Run(background, dtg.FeedSlice(sequence, numbers, 2, 5, 4), dtg.FetchSlice(whole, &all), dtg.FetchSlice(out, &step4), dtg.FetchSlice(slope, &slopes)))
	for b := range 2 {
		for i := range 4 {
			if d := all[(b*5+4)*4+i] - step4[b*4+i]; d > 1e-5 || d < -1e-5 {
				t.Errorf("element %d of example %d is off by %v", i, b, d)
			}
		}
	}
	if len(slopes) != len(numbers) {
		t.Errorf("%d slopes", len(slopes))
	}
	if model.Noise(image, dtg.GaussianDropout, 1, step, dtg.Value{}); model.Err() == nil {
		t.Error("a share of 1")
	}
}

// Rows of length 1 and at right angles.
func TestOrthogonal(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.AddVariable(dtg.VariableSpec{Name: "w", Shape: dtg.Shape{3, 5}, Initializer: dtg.Initializer{Kind: dtg.InitOrthogonal}})
	square := g.MatMul(w.Read, w.Read, dtg.MatMulAttrs{TransposeB: true})
	want(t, g.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(w.Assign)))
	var values []float32
	want(t, s.Run(background, dtg.FetchSlice(square, &values)))
	for i, value := range values {
		wanted := float32(0)
		if i%4 == 0 {
			wanted = 1
		}
		if value < wanted-1e-4 || value > wanted+1e-4 {
			t.Fatalf("w w' = %v", values)
		}
	}
}

func TestLayersRefused(t *testing.T) {
	leaves(t)
	cases := map[string]struct {
		make func(m *dtg.Model, sequence, image, flag dtg.Value)
		code dtg.Code
		word string
	}{
		"float switch":    {func(m *dtg.Model, _, x, flag dtg.Value) { m.BatchNorm(x, dtg.BatchNorm{Training: flag}) }, dtg.InvalidArgument, "bool scalar"},
		"momentum of 2":   {func(m *dtg.Model, _, x, _ dtg.Value) { m.BatchNorm(x, dtg.BatchNorm{Momentum: 2}) }, dtg.InvalidArgument, "[0, 1]"},
		"6 into 4":        {func(m *dtg.Model, _, x, _ dtg.Value) { m.GroupNorm(x, dtg.Norm{Groups: 4}) }, dtg.InvalidArgument, "equal groups"},
		"no units":        {func(m *dtg.Model, x, _, _ dtg.Value) { m.Recurrent(x, dtg.Recurrent{}) }, dtg.InvalidArgument, "at least 1"},
		"no such kind":    {func(m *dtg.Model, x, _, _ dtg.Value) { m.Recurrent(x, dtg.Recurrent{Kind: 7, Units: 1}) }, dtg.InvalidArgument, "kind"},
		"steps of images": {func(m *dtg.Model, _, x, _ dtg.Value) { m.Recurrent(x, dtg.Recurrent{Units: 1}) }, dtg.InvalidArgument, "rank"},
		"no heads":        {func(m *dtg.Model, x, _, _ dtg.Value) { m.Attention(x, x, dtg.Attention{}) }, dtg.InvalidArgument, "at least 1"},
		"nobody": {func(m *dtg.Model, x, _, _ dtg.Value) {
			m.Attention(x, x, dtg.Attention{Heads: 1, KeyWidth: 1, WeightsOf: "nobody"})
		}, dtg.NotFound, "nobody"},
		"no filters": {func(m *dtg.Model, x, _, _ dtg.Value) { m.Conv1D(x, dtg.Conv{}) }, dtg.InvalidArgument, "filters"},
		"dilated": {func(m *dtg.Model, _, x, _ dtg.Value) {
			m.Conv2DTranspose(x, dtg.Conv{Filters: 1, Dilation: [3]int64{2}})
		}, dtg.Unimplemented, "dilation"},
		"two strides":      {func(m *dtg.Model, _, x, _ dtg.Value) { m.DepthwiseConv2D(x, dtg.Conv{Stride: [3]int64{1, 2}}) }, dtg.InvalidArgument, "equal"},
		"no times as high": {func(m *dtg.Model, _, x, _ dtg.Value) { m.UpSampling2D(x, 0, 1, false) }, dtg.InvalidArgument, "at least 1"},
		"no value":         {func(m *dtg.Model, _, _, _ dtg.Value) { m.GlobalMaxPool(dtg.Value{}, false) }, dtg.InvalidArgument, ""},
	}
	for name, wrong := range cases {
		t.Run(name, func(t *testing.T) {
			g := graph(t)
			model := closing(t, g.NewModel(1))
			wrong.make(model, g.Placeholder("s", dtg.Float32, dtg.Shape{2, 3, 4}), g.Placeholder("i", dtg.Float32, dtg.Shape{2, 8, 8, 6}),
				g.Placeholder("f", dtg.Float32, dtg.Shape{}))
			refused(t, model.Err(), wrong.code, wrong.word, "layers_test.go:")
			if count(model) != 0 {
				t.Error("what was refused left variables")
			}
		})
	}
}
