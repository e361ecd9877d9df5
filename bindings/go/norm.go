// Normalizations, with the names, formulas and defaults of tf.keras. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// BatchNorm is batch normalization. Its variables go over the channels: "gamma" (first ones), "beta" (zeros), and "moving_mean" (zeros)
// and "moving_variance" (ones), which are not trained. Of a 16-bit input they are float32.
type BatchNorm struct {
	Name     string  // "": "batch_normalization"
	Momentum float64 // share of the moving statistics that a step leaves; 0: 0.99
	Epsilon  float64 // 0: 0.001
	NoCenter bool    // without beta
	NoScale  bool    // without gamma
	Training Value   // a bool scalar, such as a placeholder; the zero Value: always true
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

// BatchNorm is gamma * (x - mean) / sqrt(variance + epsilon) + beta for each channel of x[batch, ..., channels], rank 2 to 8: while
// Training, with mean and variance of the batch over all dimensions but the last; otherwise with the moving ones. Each step of Minimize
// and its kin moves those by 1 - momentum of the way to the batch's, whatever the optimizer; with several workers or towers, to the mean
// of theirs. A step that is run with Training false leaves them as they are. Semantics: tf.keras.layers.BatchNormalization (variance of
// the batch, not of the sample), per replica where there are several.
func (m *Model) BatchNorm(x Value, layer BatchNorm) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_batch_norm{struct_size: C.sizeof_dtg_batch_norm, momentum: C.double(layer.Momentum), epsilon: C.double(layer.Epsilon),
			no_center: flag(layer.NoCenter), no_scale: flag(layer.NoScale), training: layer.Training.c()}
		c.name, c.name_len = held.text(layer.Name)
		c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
		return C.dtg_nn_batch_norm(p, x.c(), c, out)
	})
}

// Norm is what normalizes each example by itself. Its variables: "gamma" and "beta" over the channels; of RMS normalization "scale" alone.
type Norm struct {
	Name     string  // "": "layer_normalization", "rms_normalization", "group_normalization"
	Epsilon  float64 // 0: 0.001; RMS 0.000001
	Groups   int64   // of group normalization; 0: 32
	NoCenter bool    // without beta
	NoScale  bool    // without gamma, or scale
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

func (l *Norm) c(held *pins) *C.dtg_norm {
	c := &C.dtg_norm{struct_size: C.sizeof_dtg_norm, epsilon: C.double(l.Epsilon), groups: C.int64_t(l.Groups),
		no_center: flag(l.NoCenter), no_scale: flag(l.NoScale)}
	c.name, c.name_len = held.text(l.Name)
	c.weights_of, c.weights_of_len = held.text(l.WeightsOf)
	return c
}

// LayerNorm is gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each vector along the last dimension of x,
// rank 1 to 8. Semantics: tf.keras.layers.LayerNormalization.
func (m *Model) LayerNorm(x Value, layer Norm) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_layer_norm(p, x.c(), layer.c(&held), out)
	})
}

// RMSNorm is scale * x / sqrt(mean of x² + epsilon), likewise. Semantics: tf.keras.layers.RMSNormalization.
func (m *Model) RMSNorm(x Value, layer Norm) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_rms_norm(p, x.c(), layer.c(&held), out)
	})
}

// GroupNorm is LayerNorm with mean and variance of each example and each of Groups equal groups of channels of x[batch, ..., channels],
// rank 2 to 8; as many groups as channels is instance normalization. Errors: InvalidArgument also where the channels cannot be cut so.
// Semantics: tf.keras.layers.GroupNormalization.
func (m *Model) GroupNorm(x Value, layer Norm) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_group_norm(p, x.c(), layer.c(&held), out)
	})
}
