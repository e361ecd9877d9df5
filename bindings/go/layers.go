// Layers, with the names, formulas and defaults of tf.keras. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// Activation is an element-wise function; softmax goes over the last dimension.
type Activation int32

// The activations.
const (
	NoActivation Activation = 0
	ReLU         Activation = 1
	ReLU6        Activation = 2
	ELU          Activation = 3
	SELU         Activation = 4
	Softplus     Activation = 5
	Sigmoid      Activation = 6
	Tanh         Activation = 7
	Softmax      Activation = 8
	GELU         Activation = 9 // with erf
)

// Padding says what happens at the border of an image.
type Padding int32

// The paddings.
const (
	PaddingValid Padding = 0 // only windows that lie inside
	PaddingSame  Padding = 1 // output ceil(input / stride), the image surrounded by zeros
)

// Dense is a fully connected layer.
type Dense struct {
	Name       string // "": "dense"; a second one becomes "dense_1"
	Units      int64
	Activation Activation
	NoBias     bool
	Kernel     Initializer
	Bias       Initializer
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made. Siamese nets and unrolled cells
	// call one layer several times so.
	WeightsOf string
}

// Dense is activation(x[..., in] * kernel[in, units] + bias[units]); x floating-point, of rank 2 or more, with a known last
// dimension. Semantics: tf.keras.layers.Dense.
func (m *Model) Dense(x Value, layer Dense) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_dense(p, x.c(), layer.c(&held), out)
	})
}

func (layer Dense) c(held *pins) *C.dtg_dense {
	c := &C.dtg_dense{struct_size: C.sizeof_dtg_dense, units: C.int64_t(layer.Units), activation: C.dtg_activation(layer.Activation),
		no_bias: flag(layer.NoBias), kernel: layer.Kernel.c(), bias: layer.Bias.c()}
	c.name, c.name_len = held.text(layer.Name)
	c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
	return c
}

// Conv2D is a convolutional layer.
type Conv2D struct {
	Name           string // "": "conv2d"
	Filters        int64
	KernelHeight   int64 // 0: 3
	KernelWidth    int64 // 0: like the height
	StrideHeight   int64 // 0: 1
	StrideWidth    int64 // 0: like the height
	DilationHeight int64 // 0: 1
	DilationWidth  int64 // 0: like the height
	Padding        Padding
	Activation     Activation
	NoBias         bool
	Kernel         Initializer
	Bias           Initializer
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made. Siamese nets and unrolled cells
	// call one layer several times so.
	WeightsOf string
}

// Conv2D slides kernel[height, width, in, filters] over x[batch, height, width, in] (cross-correlation) and adds bias[filters].
// The channels of x must be known. Semantics: tf.keras.layers.Conv2D, channels last.
func (m *Model) Conv2D(x Value, layer Conv2D) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_conv2d{struct_size: C.sizeof_dtg_conv2d, filters: C.int64_t(layer.Filters),
			kernel_height: C.int64_t(layer.KernelHeight), kernel_width: C.int64_t(layer.KernelWidth),
			stride_height: C.int64_t(layer.StrideHeight), stride_width: C.int64_t(layer.StrideWidth),
			dilation_height: C.int64_t(layer.DilationHeight), dilation_width: C.int64_t(layer.DilationWidth),
			padding: C.dtg_padding(layer.Padding), activation: C.dtg_activation(layer.Activation), no_bias: flag(layer.NoBias),
			kernel: layer.Kernel.c(), bias: layer.Bias.c()}
		c.name, c.name_len = held.text(layer.Name)
		c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
		return C.dtg_nn_conv2d(p, x.c(), c, out)
	})
}

// Pool2D is a pooling layer. Zero: windows of 2 x 2.
type Pool2D struct {
	Name         string // "": "max_pool2d" or "avg_pool2d"
	WindowHeight int64  // 0: 2
	WindowWidth  int64  // 0: like the height
	StrideHeight int64  // 0: like the window
	StrideWidth  int64  // 0: like the window
	Padding      Padding
}

func (l *Pool2D) c(held *pins) *C.dtg_pool2d {
	c := &C.dtg_pool2d{struct_size: C.sizeof_dtg_pool2d, window_height: C.int64_t(l.WindowHeight), window_width: C.int64_t(l.WindowWidth),
		stride_height: C.int64_t(l.StrideHeight), stride_width: C.int64_t(l.StrideWidth), padding: C.dtg_padding(l.Padding)}
	c.name, c.name_len = held.text(l.Name)
	return c
}

// MaxPool2D is the greatest element of each window of x[batch, height, width, channels]. Semantics: tf.keras.layers.MaxPool2D.
func (m *Model) MaxPool2D(x Value, layer Pool2D) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_max_pool2d(p, x.c(), layer.c(&held), out)
	})
}

// AvgPool2D is the mean of each window, padding not counted. Semantics: tf.keras.layers.AveragePooling2D.
func (m *Model) AvgPool2D(x Value, layer Pool2D) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_avg_pool2d(p, x.c(), layer.c(&held), out)
	})
}

// Flatten is x as [batch, everything else]; all dimensions but the first must be known.
func (m *Model) Flatten(x Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error { return C.dtg_nn_flatten(p, x.c(), out) })
}

// Dropout sets a share rate in [0, 1) of the elements to zero and divides the rest by 1 - rate; which ones is decided anew for
// each value of step, an int64 scalar. training, a bool scalar, lets x through unchanged where it is false; the zero Value
// means always true. Semantics: tf.keras.layers.Dropout.
func (m *Model) Dropout(x Value, rate float64, step, training Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_dropout(p, x.c(), C.double(rate), step.c(), training.c(), out)
	})
}

// Embedding is a table of rows.
type Embedding struct {
	Name  string // "": "embedding"
	Rows  int64
	Width int64
	Table Initializer // default: uniform in [-0.05, 0.05)
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made. Siamese nets and unrolled cells
	// call one layer several times so.
	WeightsOf string
}

// Embedding is table[ids[...]], ids int32 or int64 in [0, rows). Its gradient is rows, and optimizers touch only the rows that were
// used (Adam excepted, as in TensorFlow). Semantics: tf.keras.layers.Embedding.
func (m *Model) Embedding(ids Value, layer Embedding) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_embedding(p, ids.c(), layer.c(&held), out)
	})
}

func (layer Embedding) c(held *pins) *C.dtg_embedding {
	c := &C.dtg_embedding{struct_size: C.sizeof_dtg_embedding, rows: C.int64_t(layer.Rows), width: C.int64_t(layer.Width),
		table: layer.Table.c()}
	c.name, c.name_len = held.text(layer.Name)
	c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
	return c
}

// Normalize is x as float32, (x - shift) / scale for each feature along its last dimension, by the text of Dataset.FitNormalization: the bits
// of Dataset.Normalize. In the graph it is part of what is exported and served.
func (m *Model) Normalize(x Value, normalization string) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		data, length := chars(normalization)
		return C.dtg_nn_normalize(p, x.c(), data, length, out)
	})
}

// Activation is x through an activation.
func (m *Model) Activation(x Value, activation Activation) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_activation(p, x.c(), C.dtg_activation(activation), out)
	})
}
