// Variables in shards: tables that are too large for one machine, or that several are to serve. They are built like layers, by the goroutine
// that builds the model.

package dtg

// #include "shim.h"
import "C"

// Sharded is a variable in shards: one variable for people and files, and several, "name/part_0" and so on, for the graph. Every optimizer
// trains the shards as it trains other variables; checkpoints hold one tensor, which a model with another number of shards restores.
type Sharded struct {
	Name   string // of the whole, scopes included
	DType  DType
	Shape  Shape // of the whole
	Axis   int   // that it is cut along
	Shards int64
}

func shardedOf(c *C.dtg_sharded) Sharded {
	s := Sharded{Name: C.GoStringN(c.name, C.int(c.name_len)), DType: DType(c.dtype), Axis: int(c.axis), Shards: int64(c.shards),
		Shape: make(Shape, c.rank)}
	for i := range s.Shape {
		s.Shape[i] = int64(c.dims[i])
	}
	return s
}

func (p Partitioner) c() *C.dtg_partitioner {
	return &C.dtg_partitioner{struct_size: C.sizeof_dtg_partitioner, kind: C.dtg_partitioner_kind(p.Kind), axis: clamped(p.Axis),
		num_shards: C.int64_t(p.NumShards), shard_bytes: C.int64_t(p.ShardBytes), max_shards: C.int64_t(p.MaxShards),
		bytes_per_string: C.int64_t(p.BytesPerString)}
}

// AddShardedVariable adds a variable in as many shards as the partitioner says; under a device setter they stand on one parameter server
// after the other. First values are those of the whole, however it is cut. Semantics: tf.distribute.ParameterServerStrategy's
// variable_partitioner.
func (m *Model) AddShardedVariable(spec VariableSpec, partitioner Partitioner) (s Sharded) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		out := C.dtg_sharded{struct_size: C.sizeof_dtg_sharded}
		failed := C.dtg_model_add_sharded_variable(p, spec.c(&held), partitioner.c(), &out)
		if failed == nil {
			s = shardedOf(&out)
		}
		return failed
	})
	return s
}

// FindShardedVariable is the variable in shards of that name. Errors: NotFound.
func (m *Model) FindShardedVariable(name string) (s Sharded, err error) {
	err = m.read(func(p *C.dtg_model) *C.dtg_error {
		text, length := chars(name)
		out := C.dtg_sharded{struct_size: C.sizeof_dtg_sharded}
		failed := C.dtg_model_find_sharded_variable(p, text, length, &out)
		if failed == nil {
			s = shardedOf(&out)
		}
		return failed
	})
	return s, err
}

// Shard is shard i of a variable in shards. Errors: NotFound, OutOfRange.
func (m *Model) Shard(name string, i int64) (v Variable, err error) {
	err = m.read(func(p *C.dtg_model) *C.dtg_error {
		text, length := chars(name)
		out := C.dtg_variable{struct_size: C.sizeof_dtg_variable}
		failed := C.dtg_sharded_shard(p, text, length, C.int64_t(i), &out)
		if failed == nil {
			v = variableOf(&out)
		}
		return failed
	})
	return v, err
}

// ShardedValue is all of a variable in shards as one value; each run that uses it moves all of them.
func (m *Model) ShardedValue(name string) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		text, length := chars(name)
		return C.dtg_nn_sharded_value(p, text, length, out)
	})
}

// ShardedLookup is row ids[...] of a variable in shards, looked up where the shards stand. Gradients are rows. Semantics:
// tf.nn.embedding_lookup with the partition strategy "div".
func (m *Model) ShardedLookup(name string, ids Value) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		text, length := chars(name)
		return C.dtg_nn_sharded_lookup(p, text, length, ids.c(), out)
	})
}

// ShardedEmbedding is Embedding with its table in shards.
func (m *Model) ShardedEmbedding(ids Value, layer Embedding, partitioner Partitioner) Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_nn_sharded_embedding(p, ids.c(), layer.c(&held), partitioner.c(), out)
	})
}
