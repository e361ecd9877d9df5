// The convolutions beyond Conv2D, and what makes images smaller to a point or larger, as in tf.keras. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// Conv is a layer of filters for Conv1D, Conv3D, Conv2DTranspose, DepthwiseConv2D and SeparableConv2D. Kernels slide along one, two or
// three dimensions, which is how many entries of KernelSize, Stride and Dilation count.
type Conv struct {
	Name       string   // "": after the method, such as "conv1d"
	Filters    int64    // at least 1; depthwise: not looked at
	Multiplier int64    // depthwise and separable: outputs of each channel; 0: 1
	KernelSize [3]int64 // 0: the first 3, the others like the one before
	Stride     [3]int64 // 0: the first 1, the others like the one before
	Dilation   [3]int64 // likewise
	Padding    Padding
	// Conv1D: zeros before the first step only, so that no output sees a later input; Padding does not count.
	Causal     bool
	Activation Activation
	NoBias     bool
	Kernel     Initializer
	Bias       Initializer
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

func (l *Conv) c(held *pins) *C.dtg_conv {
	c := &C.dtg_conv{struct_size: C.sizeof_dtg_conv, filters: C.int64_t(l.Filters), multiplier: C.int64_t(l.Multiplier),
		padding: C.dtg_padding(l.Padding), causal: flag(l.Causal), activation: C.dtg_activation(l.Activation), no_bias: flag(l.NoBias),
		kernel_init: l.Kernel.c(), bias_init: l.Bias.c()}
	for i := range c.kernel {
		c.kernel[i], c.stride[i], c.dilation[i] = C.int64_t(l.KernelSize[i]), C.int64_t(l.Stride[i]), C.int64_t(l.Dilation[i])
	}
	c.name, c.name_len = held.text(l.Name)
	c.weights_of, c.weights_of_len = held.text(l.WeightsOf)
	return c
}

// Conv1D slides kernel[width, in, filters] over the steps of x[batch, steps, in]. Semantics: tf.keras.layers.Conv1D, channels last.
func (m *Model) Conv1D(x Value, layer Conv) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_conv1d(p, x.c(), layer.c(&held), out)
	})
}

// Conv3D slides kernel[., ., ., in, filters] over x[batch, depth, height, width, in]. Semantics: tf.keras.layers.Conv3D, channels last.
func (m *Model) Conv3D(x Value, layer Conv) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_conv3d(p, x.c(), layer.c(&held), out)
	})
}

// Conv2DTranspose is what the gradient of a convolution does, as a layer: x[batch, height, width, in] becomes size * stride pixels high
// and wide, with PaddingValid kernel - stride more where that is positive; kernel[., ., filters, in]. Errors: Unimplemented for dilations
// other than 1. Semantics: tf.keras.layers.Conv2DTranspose, channels last.
func (m *Model) Conv2DTranspose(x Value, layer Conv) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_conv2d_transpose(p, x.c(), layer.c(&held), out)
	})
}

// DepthwiseConv2D convolves each channel of x[batch, height, width, in] by itself: kernel[., ., in, multiplier], the answer
// [..., in * multiplier]. Both strides are equal. Semantics: tf.keras.layers.DepthwiseConv2D, channels last.
func (m *Model) DepthwiseConv2D(x Value, layer Conv) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_depthwise_conv2d(p, x.c(), layer.c(&held), out)
	})
}

// SeparableConv2D is the same, then a product over the channels: "depthwise_kernel" [., ., in, multiplier], "pointwise_kernel"
// [1, 1, in * multiplier, filters]. Semantics: tf.keras.layers.SeparableConv2D, channels last.
func (m *Model) SeparableConv2D(x Value, layer Conv) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_separable_conv2d(p, x.c(), layer.c(&held), out)
	})
}

// GlobalAvgPool is the mean of each channel of x[batch, ..., channels], floating-point, of rank 3 to 5, over all that lies between:
// [batch, channels]; with keepDims, dimensions of 1 in its place. Semantics: tf.keras.layers.GlobalAveragePooling1D, 2D, 3D.
func (m *Model) GlobalAvgPool(x Value, keepDims bool) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_global_avg_pool(p, x.c(), flag(keepDims), out)
	})
}

// GlobalMaxPool is the greatest, likewise; equally great ones share the gradient. Semantics: tf.keras.layers.GlobalMaxPooling1D, 2D, 3D.
func (m *Model) GlobalMaxPool(x Value, keepDims bool) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_global_max_pool(p, x.c(), flag(keepDims), out)
	})
}

// UpSampling2D is x[batch, height, width, channels], high times as high and wide times as wide, both at least 1: each pixel repeated, or
// with bilinear mixed from its neighbours by distance of their centres. Semantics: tf.keras.layers.UpSampling2D.
func (m *Model) UpSampling2D(x Value, high, wide int64, bilinear bool) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_up_sampling2d(p, x.c(), C.int64_t(high), C.int64_t(wide), flag(bilinear), out)
	})
}
