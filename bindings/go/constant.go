// Constants and placeholders. One goroutine builds a graph.

package dtg

// Const is a constant of these elements; without a shape it is a vector.
func Const[T Element](g *Graph, data []T, shape ...int64) Value {
	return constOf(g, func() (*Tensor, error) { return NewTensor(data, shape...) })
}

// ConstScalar is a constant without dimensions: dtg.ConstScalar(g, int32(0)).
func ConstScalar[T Element](g *Graph, value T) Value {
	return constOf(g, func() (*Tensor, error) { return ScalarTensor(value) })
}

// ConstF32 is a float32 scalar.
func (g *Graph) ConstF32(value float32) Value { return ConstScalar(g, value) }

// ConstI32s is an int32 vector.
func (g *Graph) ConstI32s(values ...int32) Value { return Const(g, values) }

// ConstI64s is an int64 vector, as shapes and axes are.
func (g *Graph) ConstI64s(values ...int64) Value { return Const(g, values) }

// Const is a constant; the tensor is shared, not copied.
func (g *Graph) Const(t *Tensor) Value {
	if _, err := t.c(); g.fail(err) {
		return Value{}
	}
	return g.add1("Const", nil, TensorAttr("value", t), TypeAttr("dtype", t.dtype))
}

func constOf(g *Graph, make func() (*Tensor, error)) Value {
	if g.Err() != nil {
		return Value{}
	}
	t, err := make()
	if g.fail(err) {
		return Value{}
	}
	defer t.Close()
	return g.Const(t)
}

// Placeholder is a value that every run that needs it must feed. -1 leaves a dimension open, a nil shape all of them.
func (g *Graph) Placeholder(name string, dtype DType, shape Shape) Value {
	spec := g.op("Placeholder", nil, []Attr{TypeAttr("dtype", dtype), ShapeAttr("shape", shape)})
	spec.Name = name
	var outs [1]Value
	g.add(spec, outs[:])
	return outs[0]
}
