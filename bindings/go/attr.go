// Attr: an attribute of a node to be added. Values; any goroutine.

package dtg

// #include "shim.h"
import "C"

// Attr is a named attribute of an OpSpec; made by IntAttr and its kin. The zero Attr is left out.
type Attr struct {
	name    string
	kind    C.dtg_attr_kind
	i       int64
	f       float64
	s       string
	ints    []int64
	floats  []float64
	strings []string
	shapes  []Shape
	tensor  *Tensor
	funcs   []*Function
}

// IntAttr is an integer.
func IntAttr(name string, value int64) Attr { return Attr{name: name, kind: C.DTG_ATTR_INT, i: value} }

// FloatAttr is a number.
func FloatAttr(name string, value float64) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_FLOAT, f: value}
}

// BoolAttr is a truth value.
func BoolAttr(name string, value bool) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_BOOL, i: int64(flag(value))}
}

// TypeAttr is an element type.
func TypeAttr(name string, value DType) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_TYPE, i: int64(value)}
}

// ShapeAttr is a shape, nil for one of unknown rank.
func ShapeAttr(name string, value Shape) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_SHAPE, shapes: []Shape{value}}
}

// StringAttr is a text.
func StringAttr(name, value string) Attr { return Attr{name: name, kind: C.DTG_ATTR_STRING, s: value} }

// TensorAttr is a tensor, which is shared and not copied.
func TensorAttr(name string, value *Tensor) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_TENSOR, tensor: value}
}

// IntsAttr is a list of integers.
func IntsAttr(name string, value ...int64) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_LIST_INT, ints: value}
}

// FloatsAttr is a list of numbers.
func FloatsAttr(name string, value ...float64) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_LIST_FLOAT, floats: value}
}

// BoolsAttr is a list of truth values.
func BoolsAttr(name string, value ...bool) Attr {
	ints := make([]int64, len(value))
	for i, b := range value {
		ints[i] = int64(flag(b))
	}
	return Attr{name: name, kind: C.DTG_ATTR_LIST_BOOL, ints: ints}
}

// TypesAttr is a list of element types.
func TypesAttr(name string, value ...DType) Attr {
	ints := make([]int64, len(value))
	for i, d := range value {
		ints[i] = int64(d)
	}
	return Attr{name: name, kind: C.DTG_ATTR_LIST_TYPE, ints: ints}
}

// ShapesAttr is a list of shapes.
func ShapesAttr(name string, value ...Shape) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_LIST_SHAPE, shapes: value}
}

// StringsAttr is a list of texts.
func StringsAttr(name string, value ...string) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_LIST_STRING, strings: value}
}

// FuncAttr is a function, which is shared. What it captured is given to the node as inputs: see Function.Captures.
func FuncAttr(name string, value *Function) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_FUNC, funcs: []*Function{value}}
}

// FuncsAttr is a list of functions.
func FuncsAttr(name string, value ...*Function) Attr {
	return Attr{name: name, kind: C.DTG_ATTR_LIST_FUNC, funcs: value}
}

const unknownRank = ^C.size_t(0)

// write fills in what the library reads; what it points to is held by p.
func (a *Attr) write(p *pins, out *C.dtg_attr) error {
	out.struct_size = C.sizeof_dtg_attr
	out.name, out.name_len = p.text(a.name)
	out.kind, out.i, out.f = a.kind, C.int64_t(a.i), C.double(a.f)
	switch a.kind {
	case C.DTG_ATTR_STRING:
		out.s, out.s_len = p.bytes(a.s), C.size_t(len(a.s))
	case C.DTG_ATTR_TENSOR:
		tensor, err := a.tensor.c()
		if err != nil {
			return err
		}
		out.tensor = tensor
	case C.DTG_ATTR_FUNC, C.DTG_ATTR_LIST_FUNC:
		functions, err := functionsOf(a.funcs)
		if err != nil {
			return err
		}
		data, count := pinned(p, functions)
		out.functions, out.count = (**C.dtg_function)(data), count
	case C.DTG_ATTR_SHAPE:
		out.ints, out.count = p.ints(a.shapes[0])
		if !a.shapes[0].Known() {
			out.count = unknownRank
		}
	case C.DTG_ATTR_LIST_SHAPE:
		a.writeShapes(p, out)
	case C.DTG_ATTR_LIST_STRING:
		texts, lens := make([]*C.char, len(a.strings)), make([]C.size_t, len(a.strings))
		for i, s := range a.strings {
			texts[i], lens[i] = p.bytes(s), C.size_t(len(s))
		}
		data, count := pinned(p, texts)
		out.strings, out.count = (**C.char)(data), count
		data, _ = pinned(p, lens)
		out.lens = (*C.size_t)(data)
	case C.DTG_ATTR_LIST_FLOAT:
		data, count := pinned(p, a.floats)
		out.floats, out.count = (*C.double)(data), count
	default:
		out.ints, out.count = p.ints(a.ints)
	}
	return nil
}

func (a *Attr) writeShapes(p *pins, out *C.dtg_attr) {
	var dims []int64
	lens := make([]C.size_t, len(a.shapes))
	for i, shape := range a.shapes {
		dims = append(dims, shape...)
		lens[i] = C.size_t(len(shape))
		if !shape.Known() {
			lens[i] = unknownRank
		}
	}
	out.ints, _ = p.ints(dims)
	data, count := pinned(p, lens)
	out.lens, out.count = (*C.size_t)(data), count
}

// Set is the address of a value, for optional attributes of which 0 or false is not the default:
// dtg.MaxPoolAttrs{...}, dtg.FIFOQueueV2Attrs{Capacity: dtg.Set(int64(0))}.
func Set[T any](value T) *T { return &value }

// What follows makes optional attributes of the generated wrappers: the zero value is the default, which is left out.

func optional[T comparable](name string, value T, make func(string, T) Attr) Attr {
	var zero T
	if value == zero {
		return Attr{}
	}
	return make(name, value)
}

func optionalSet[T any](name string, value *T, make func(string, T) Attr) Attr {
	if value == nil {
		return Attr{}
	}
	return make(name, *value)
}

func optionalList[T any](name string, value []T, make func(string, ...T) Attr) Attr {
	if value == nil {
		return Attr{}
	}
	return make(name, value...)
}

func optionalShape(name string, value Shape) Attr {
	if value == nil {
		return Attr{}
	}
	return ShapeAttr(name, value)
}
