// Layers of places, bags and chance, and attention step by step. One goroutine builds a model.

package dtg

// #include "shim.h"
import "C"

// PositionKind is how the places of a sequence are told.
type PositionKind int32

// The kinds.
const (
	PositionSine    PositionKind = 0 // sin and cos by turns, no variables
	PositionLearned PositionKind = 1 // "embeddings" [longest, width]
)

// PositionEmbedding tells attention in which order places stand.
type PositionEmbedding struct {
	Name       string // of a learned one; "": "position_embedding"
	Kind       PositionKind
	Wavelength float64 // of a sine, the longest; 0: 10000
	Longest    int64   // of a learned one: places that it has rows for
	Start      Value   // Int32 or Int64 scalar: the place of the first step, in decoding; the zero Value: 0
	Table      Initializer
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

// PositionEmbedding is x[batch, steps, width] plus the vector of each step's place. Semantics: keras_hub's SinePositionEncoding and
// PositionEmbedding, added to x.
func (m *Model) PositionEmbedding(x Value, layer PositionEmbedding) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_position{struct_size: C.sizeof_dtg_position, kind: C.dtg_position_kind(layer.Kind), wavelength: C.double(layer.Wavelength),
			longest: C.int64_t(layer.Longest), start: layer.Start.c(), table: layer.Table.c()}
		c.name, c.name_len = held.text(layer.Name)
		c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
		return C.dtg_nn_position_embedding(p, x.c(), c, out)
	})
}

// Combiner is what one row is made of the rows of a bag, w being their weights.
type Combiner int32

// The combiners.
const (
	CombineMean  Combiner = 0 // sum(w row) / sum(w)
	CombineSum   Combiner = 1 // sum(w row)
	CombineSqrtN Combiner = 2 // sum(w row) / sqrt(sum(w^2))
)

// EmbeddingBag is a table whose rows are combined. Variable: "embeddings" [Rows, Width].
type EmbeddingBag struct {
	Name        string // "": "embedding_bag"
	Rows, Width int64
	Combiner    Combiner
	Lengths     Value       // Int32 or Int64 [batch]: how many ids of each bag count; the zero Value: all
	Weights     Value       // Float32 [batch, places]; the zero Value: 1 each
	Table       Initializer // default: uniform in [-0.05, 0.05)
	// Full name of a layer made before, scopes included: its variables are used, and no new ones made.
	WeightsOf string
}

// EmbeddingBag is one row [batch, width] per bag of ids[batch, places]. Beyond a bag's length nothing is looked up, and no row gets a
// gradient; an empty bag gives zeros. Semantics: tf.nn.safe_embedding_lookup_sparse, with a bag per row.
func (m *Model) EmbeddingBag(ids Value, layer EmbeddingBag) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := &C.dtg_embedding_bag{struct_size: C.sizeof_dtg_embedding_bag, rows: C.int64_t(layer.Rows), width: C.int64_t(layer.Width),
			combiner: C.dtg_combiner(layer.Combiner), lengths: layer.Lengths.c(), weights: layer.Weights.c(), table: layer.Table.c()}
		c.name, c.name_len = held.text(layer.Name)
		c.weights_of, c.weights_of_len = held.text(layer.WeightsOf)
		return C.dtg_nn_embedding_bag(p, ids.c(), c, out)
	})
}

// NoiseKind is what is drawn in training.
type NoiseKind int32

// The kinds.
const (
	SpatialDropout  NoiseKind = 0 // whole channels of x[batch, ..., channels] become 0, the rest is divided by 1 - amount
	GaussianNoise   NoiseKind = 1 // x + amount * n, n normal
	GaussianDropout NoiseKind = 2 // x * (1 + sqrt(amount / (1 - amount)) * n)
	AlphaDropout    NoiseKind = 3 // for networks of SELU, whose mean and variance it keeps
)

// Noise is x with that noise, the share or deviation being amount. Step and training are as in Dropout. Semantics:
// tf.keras.layers.SpatialDropout1D, 2D, 3D, GaussianNoise, GaussianDropout and AlphaDropout.
func (m *Model) Noise(x Value, kind NoiseKind, amount float64, step, training Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		return C.dtg_nn_noise(p, x.c(), C.dtg_noise_kind(kind), C.double(amount), step.c(), training.c(), out)
	})
}

// AdaptiveAvgPool is x[batch, ..., channels] with sizes entries along the dimensions between, each the mean of its share of them. The
// dimensions of x must be known. Semantics: tf.keras.layers.AdaptiveAveragePooling1D, 2D, 3D.
func (m *Model) AdaptiveAvgPool(x Value, sizes ...int64) Value {
	return m.adaptivePool(x, sizes, false)
}

// AdaptiveMaxPool is the greatest, likewise.
func (m *Model) AdaptiveMaxPool(x Value, sizes ...int64) Value { return m.adaptivePool(x, sizes, true) }

func (m *Model) adaptivePool(x Value, sizes []int64, greatest bool) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var first *C.int64_t
		if len(sizes) > 0 {
			first = (*C.int64_t)(&sizes[0])
		}
		return C.dtg_nn_adaptive_pool(p, x.c(), first, C.size_t(len(sizes)), flag(greatest), out)
	})
}

// AttentionCache is what decoding keeps: the keys and values of the places before, [batch, longest, heads, width], and how many are there.
// Without a Position (the zero Value) all are, and none is added: those of an encoder.
// Fetch it and feed it to the next run, or carry it from round to round of a loop, whose layers are those of Model.Inside.
type AttentionCache struct {
	Keys, Values, Position Value
}

// AttentionCache is the cache of the places of value[batch, places, in], with room for longest in all; 0: for those only. Give the layer the
// WeightsOf of the one that was trained.
func (m *Model) AttentionCache(value Value, layer Attention, longest int64) (cache AttentionCache) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := C.dtg_attention_cache{struct_size: C.sizeof_dtg_attention_cache}
		failed := C.dtg_nn_attention_cache(p, value.c(), layer.c(&held), C.int64_t(longest), &c)
		if failed == nil {
			cache = cacheOf(&c)
		}
		return failed
	})
	return cache
}

// AttentionStep is what Attention gives for the next places, query[batch, places, in], with their keys and values written into the cache, and
// each seeing all up to its own; and the cache as it is then. Places that do not fit are an error of the run.
func (m *Model) AttentionStep(query Value, layer Attention, cache AttentionCache) (out Value, after AttentionCache) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		c := C.dtg_attention_cache{struct_size: C.sizeof_dtg_attention_cache, keys: cache.Keys.c(), values: cache.Values.c(),
			position: cache.Position.c()}
		failed := C.dtg_nn_attention_step(p, query.c(), layer.c(&held), &c, out.out())
		if failed == nil {
			after = cacheOf(&c)
		}
		return failed
	})
	return out, after
}

func cacheOf(c *C.dtg_attention_cache) AttentionCache {
	return AttentionCache{Value{uint64(c.keys.id)}, Value{uint64(c.values.id)}, Value{uint64(c.position.id)}}
}
