// Layers over sequences: recurrent ones and attention, as in tf.keras. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// RecurrentKind is the cell of a recurrent layer.
type RecurrentKind int32

// The cells.
const (
	LSTM      RecurrentKind = 0 // Float32 and Float16
	GRU       RecurrentKind = 1 // the reset gate after the product (reset_after of Keras)
	SimpleRNN RecurrentKind = 2 // h' = tanh(x kernel + h recurrent_kernel + bias)
)

// Direction is which way a recurrent layer goes over the steps.
type Direction int32

// The directions.
const (
	DirectionForward  Direction = 0
	DirectionBackward Direction = 1 // from the last step to the first
	// One layer each way, with weights of its own, under the scopes "forward" and "backward"; outputs side by side.
	DirectionBoth Direction = 2
)

// Recurrent is a recurrent layer; zero but for Units: an LSTM, forward. Its variables: "kernel" [in, gates * units], first value Glorot
// uniform; "recurrent_kernel" [units, gates * units], orthogonal; "bias" [gates * units], of a GRU [2, gates * units], zeros. The gates
// are those of Keras in its order: LSTM input, forget, candidate, output; GRU update, reset, candidate.
type Recurrent struct {
	Name         string // "": "lstm", "gru", "simple_rnn"; "bidirectional"
	Kind         RecurrentKind
	Direction    Direction
	Units        int64 // at least 1
	NoBias       bool
	NoForgetBias bool // false: the bias of an LSTM's forget gate begins at 1
	Kernel       Initializer
	Recurrent    Initializer
	Bias         Initializer
	// Int32 or Int64 [batch]: steps of each example that count, 0 to all; the zero Value: all. More is an error of the run.
	Lengths Value
	Hidden  Value // first state [batch, units]; the zero Value: zeros. Not with DirectionBoth
	Cell    Value // of an LSTM, likewise
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

// RecurrentResult is what a recurrent layer gives. With DirectionBoth every last dimension is 2 * units, forward first.
type RecurrentResult struct {
	// [batch, steps, units], in the order of the input. Beyond an example's length: forward its last output, else zeros.
	Outputs Value
	Hidden  Value // [batch, units], after each example's last step (backward: its first)
	Cell    Value // of an LSTM, likewise; the zero Value of others
}

// Recurrent runs over the steps of x[batch, steps, in]. An LSTM is one node; the others are a loop, whose products with x are made before
// it for all steps at once. Semantics: tf.keras.layers.LSTM, GRU, SimpleRNN and Bidirectional, with a mask that ends where it began.
func (m *Model) Recurrent(x Value, layer Recurrent) (r RecurrentResult) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_recurrent{struct_size: C.sizeof_dtg_recurrent, kind: C.dtg_recurrent_kind(layer.Kind),
			direction: C.dtg_direction(layer.Direction), units: C.int64_t(layer.Units), no_bias: flag(layer.NoBias),
			no_forget_bias: flag(layer.NoForgetBias), kernel: layer.Kernel.c(), recurrent: layer.Recurrent.c(), bias: layer.Bias.c(),
			lengths: layer.Lengths.c(), hidden: layer.Hidden.c(), cell: layer.Cell.c()}
		c.name, c.name_len = held.text(layer.Name)
		c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
		out := C.dtg_recurrent_result{struct_size: C.sizeof_dtg_recurrent_result}
		failed := C.dtg_nn_recurrent(p, x.c(), c, &out)
		if failed == nil {
			r = RecurrentResult{Value{uint64(out.outputs.id)}, Value{uint64(out.hidden.id)}, Value{uint64(out.cell.id)}}
		}
		return failed
	})
	return r
}

// Attention is attention with several heads. Its variables: "query/kernel" and "key/kernel" [in, heads, key width], "value/kernel"
// [in, heads, value width], "attention_output/kernel" [heads, value width, output width], and a "bias" beside each.
type Attention struct {
	Name        string // "": "multi_head_attention"
	Heads       int64  // at least 1
	KeyWidth    int64  // of each head, at least 1
	ValueWidth  int64  // of each head; 0: like the key
	OutputWidth int64  // 0: that of the query
	NoBias      bool
	Causal      bool  // place i of the query sees keys 0 to i only
	Key         Value // [batch, keys, in]; the zero Value: the value
	// Bool [batch, queries, keys], or dimensions of 1 for what is the same for all: what may be seen; the zero Value: all.
	Mask    Value
	Lengths Value // Int32 or Int64 [batch]: how many keys of each example count; the zero Value: all
	Kernel  Initializer
	Bias    Initializer
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

// Attention is, for each head, softmax(q k' / sqrt(key width)) v with projections q of query[batch, queries, in], k of the key and v of
// value[batch, keys, in'], the heads side by side projected to [batch, queries, output width]. What the mask, the lengths or Causal hide
// has no weight. Query, key and value are of one floating-point type; self-attention gives the same value for all. Semantics:
// tf.keras.layers.MultiHeadAttention.
func (m *Model) Attention(query, value Value, layer Attention) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_attention(p, query.c(), value.c(), layer.c(&held), out)
	})
}

func (l *Attention) c(held *pins) *C.dtg_attention {
	c := &C.dtg_attention{struct_size: C.sizeof_dtg_attention, heads: C.int64_t(l.Heads), key_width: C.int64_t(l.KeyWidth),
		value_width: C.int64_t(l.ValueWidth), output_width: C.int64_t(l.OutputWidth), no_bias: flag(l.NoBias), causal: flag(l.Causal),
		key: l.Key.c(), mask: l.Mask.c(), lengths: l.Lengths.c(), kernel: l.Kernel.c(), bias: l.Bias.c()}
	c.name, c.name_len = held.text(l.Name)
	c.weights_of, c.weights_of_len = held.text(l.WeightsOf)
	return c
}
