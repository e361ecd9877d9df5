// Variable: what a model knows of one of its variables, and how one is added. Values; the model belongs to one goroutine.

package dtg

// #include "shim.h"
import "C"

import "unsafe"

// Variable is a variable of a model.
type Variable struct {
	Name      string // also its name in checkpoints
	DType     DType
	Shape     Shape
	Trainable bool  // false: counters and what optimizers keep
	Handle    Value // the resource, for ops such as AssignVariableOp
	Read      Value // its value; fetch it, or use it as an input
	Assign    Value // a target that gives it its first value
}

func variableOf(c *C.dtg_variable) Variable {
	v := Variable{
		Name:      C.GoStringN(c.name, C.int(c.name_len)),
		DType:     DType(c.dtype),
		Trainable: c.trainable != 0,
		Handle:    Value{uint64(c.handle.id)},
		Read:      Value{uint64(c.read.id)},
		Assign:    Value{uint64(c.assign.id)},
		Shape:     make(Shape, c.rank),
	}
	for i := range v.Shape {
		v.Shape[i] = int64(c.dims[i])
	}
	return v
}

// InitializerKind is a way to make the first value of a variable.
type InitializerKind int32

// The ways.
const (
	InitDefault         InitializerKind = 0  // what the layer would take: Glorot uniform for kernels, zeros for biases
	InitZeros           InitializerKind = 1  // 0
	InitOnes            InitializerKind = 2  // 1
	InitConstant        InitializerKind = 3  // A
	InitUniform         InitializerKind = 4  // in [A, B)
	InitNormal          InitializerKind = 5  // mean A, standard deviation B
	InitTruncatedNormal InitializerKind = 6  // the same, cut at two deviations
	InitGlorotUniform   InitializerKind = 7  // ±sqrt(6 / (inputs + outputs))
	InitGlorotNormal    InitializerKind = 8  // truncated, variance 2 / (inputs + outputs)
	InitHeUniform       InitializerKind = 9  // ±sqrt(6 / inputs)
	InitHeNormal        InitializerKind = 10 // truncated, variance 2 / inputs
	// Rank 2 or more: rows (all dimensions but the last) or columns, the fewer of them, of length 1 and at right angles.
	InitOrthogonal InitializerKind = 11
)

// Initializer is where the first value of a variable comes from. Zero: the default of its place.
type Initializer struct {
	Kind InitializerKind
	A, B float64
}

func (i Initializer) c() C.dtg_initializer {
	return C.dtg_initializer{kind: C.dtg_initializer_kind(i.Kind), a: C.double(i.A), b: C.double(i.B)}
}

// VariableSpec is a variable to add by hand.
type VariableSpec struct {
	Name         string // one that is taken gets a number
	DType        DType  // 0: Float32
	NotTrainable bool
	Shape        Shape       // nil: a scalar
	Initializer  Initializer // default: zeros
	// Of a strategy: VariableOnRead needs NotTrainable and an Aggregation.
	Sync        VariableSync
	Aggregation Aggregation
}

// VariableSync is when the copies that the replicas of a strategy have of a variable are brought together.
type VariableSync int32

// The times.
const (
	VariableOnWrite VariableSync = 0 // all copies are equal: a write goes to all of them
	VariableOnRead  VariableSync = 1 // each replica has its own; who reads it from outside gets them combined
)

// Aggregation is how the values of several replicas become one.
type Aggregation int32

// The ways.
const (
	AggregationNone      Aggregation = 0 // for variables that no replica assigns to by itself, such as weights
	AggregationSum       Aggregation = 1
	AggregationMean      Aggregation = 2
	AggregationOnlyFirst Aggregation = 3 // what replica 0 says
)

// AddVariable adds a variable; its handle is made on the device of the open device scope, its first value beside it.
func (m *Model) AddVariable(spec VariableSpec) (v Variable) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		var held pins
		defer held.Unpin()
		out := C.dtg_variable{struct_size: C.sizeof_dtg_variable}
		failed := C.dtg_model_add_variable(p, spec.c(&held), &out)
		if failed == nil {
			v = variableOf(&out)
		}
		return failed
	})
	return v
}

// Variable adds a trainable float32 scalar with this first value.
func (m *Model) Variable(name string, first float64) Variable {
	return m.AddVariable(VariableSpec{Name: name, Initializer: Initializer{Kind: InitConstant, A: first}})
}

// GlobalStep is the int64 scalar variable that counts training steps, "global_step"; made when first asked for.
func (m *Model) GlobalStep() (v Variable) {
	m.build(func(p *C.dtg_model) *C.dtg_error {
		out := C.dtg_variable{struct_size: C.sizeof_dtg_variable}
		failed := C.dtg_model_global_step(p, &out)
		if failed == nil {
			v = variableOf(&out)
		}
		return failed
	})
	return v
}

// handlesOf are the handles of variables, as the library takes them.
func handlesOf(list []Variable) []Value {
	out := make([]Value, len(list))
	for i := range list {
		out[i] = list[i].Handle
	}
	return out
}

var _ = [1]struct{}{}[unsafe.Sizeof(Value{})-unsafe.Sizeof(C.dtg_value{})] // a Value is a dtg_value

func (spec VariableSpec) c(held *pins) *C.dtg_variable_spec {
	c := &C.dtg_variable_spec{
		struct_size:   C.sizeof_dtg_variable_spec,
		dtype:         C.dtg_dtype(spec.DType),
		not_trainable: flag(spec.NotTrainable),
		initializer:   spec.Initializer.c(),

		synchronization: C.dtg_variable_sync(spec.Sync),
		aggregation:     C.dtg_variable_aggregation(spec.Aggregation),
	}
	c.name, c.name_len = held.text(spec.Name)
	c.dims, c.rank = held.ints(spec.Shape)
	return c
}
