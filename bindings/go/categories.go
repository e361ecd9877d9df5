// Layers of categories: hashing, and numbers by a vocabulary. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

import "runtime"

// OutputMode is how the numbers of categories come out.
type OutputMode int32

// The modes. In rows there is a place for each category, depth in all.
const (
	OutputInt      OutputMode = 0 // Int64, shaped like x: what an embedding looks up
	OutputOneHot   OutputMode = 1 // Float32 [..., depth]: 1 at the number's place; of an x whose last dimension is 1, in place of that
	OutputMultiHot OutputMode = 2 // Float32 [depth] of x[places], [batch, depth] of x[batch, places]: 1 for each number that is there
	OutputCount    OutputMode = 3 // likewise, how often it is there
)

// Hashing gives each text or integer a bin by its hash, always the same one, here and in TensorFlow.
type Hashing struct {
	Name       string     // "": "hashing"
	NumBins    int64      // at least 1
	MaskValue  *Tensor    // a scalar, String or (of integers) Int64: it has bin 0, and no other value has; nil: none
	Salt       *[2]uint64 // who does not know it cannot aim at a bin; one number of Keras is twice the same here; nil: none
	OutputMode OutputMode
}

// Hashing is the bin in [0, NumBins) of each element of x, of any shape: strings, or integers up to Int64. Semantics:
// tf.keras.layers.Hashing; rows are Float32.
func (m *Model) Hashing(x Value, layer Hashing) Value {
	mask, ok := m.special(layer.MaskValue)
	if !ok {
		return Value{}
	}
	defer runtime.KeepAlive(layer.MaskValue)
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_hashing{struct_size: C.sizeof_dtg_hashing, num_bins: C.int64_t(layer.NumBins), mask_value: mask,
			output_mode: C.dtg_output_mode(layer.OutputMode)}
		c.name, c.name_len = held.text(layer.Name)
		if layer.Salt != nil {
			c.salted, c.salt = 1, [2]C.uint64_t{C.uint64_t(layer.Salt[0]), C.uint64_t(layer.Salt[1])}
		}
		return C.dtg_nn_hashing(p, x.c(), c, out)
	})
}

// Lookup gives categories numbers by a vocabulary, in this order: 0 to the mask token, where there is one and the mode is OutputInt; then
// NumOOVIndices to what is not in the vocabulary, such as a category that training did not know; then one to each token. So an embedding
// needs 1 row for the mask token, where there is one, NumOOVIndices and one for each token. The vocabulary becomes part of the graph, and
// is exported and loaded with it.
type Lookup struct {
	Name          string  // "": "string_lookup" or "integer_lookup", after the vocabulary
	Vocabulary    *Tensor // String or Int64 [tokens], at least 1, each once; copied
	MaskToken     *Tensor // a scalar of the same type, which is not in the vocabulary; nil: none
	OOVToken      *Tensor // likewise: what numbers become that no token has, where the layer is inverted; nil: "[UNK]" or -1
	NumOOVIndices int64   // 0: 1. More: texts are spread over them by FarmHash, integers by their remainder
	NoOOV         bool    // none: a run with what is not in the vocabulary is InvalidArgument and names it
	Invert        bool    // from numbers to tokens
	OutputMode    OutputMode
}

// Lookup is the number of each element of x, strings or integers as the vocabulary is, of any shape; inverted, the token of each number.
// Semantics: tf.keras.layers.StringLookup and IntegerLookup; rows are Float32.
func (m *Model) Lookup(x Value, layer Lookup) Value {
	vocabulary, ok := m.special(layer.Vocabulary)
	mask, maskOK := m.special(layer.MaskToken)
	oov, oovOK := m.special(layer.OOVToken)
	if !ok || !maskOK || !oovOK {
		return Value{}
	}
	defer runtime.KeepAlive(layer)
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_lookup{struct_size: C.sizeof_dtg_lookup, vocabulary: vocabulary, mask_token: mask, oov_token: oov,
			num_oov_indices: C.int64_t(layer.NumOOVIndices), no_oov: flag(layer.NoOOV), invert: flag(layer.Invert),
			output_mode: C.dtg_output_mode(layer.OutputMode)}
		c.name, c.name_len = held.text(layer.Name)
		return C.dtg_nn_lookup(p, x.c(), c, out)
	})
}

// special is a tensor that may be left out; false where it is closed, which sticks.
func (m *Model) special(t *Tensor) (*C.dtg_tensor, bool) {
	if t == nil {
		return nil, true
	}
	p, err := t.c()
	return p, !m.fail(err)
}
