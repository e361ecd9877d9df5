// What a graph tells about its nodes and values. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"fmt"
	"iter"
	"runtime"
)

// NodeCount is the number of nodes; 0 for a closed graph.
func (g *Graph) NodeCount() int {
	graph, err := g.reading()
	if err != nil {
		return 0
	}
	defer runtime.KeepAlive(g)
	return int(C.dtg_graph_node_count(graph))
}

// Nodes is the values that name the nodes, in the order in which they were added.
func (g *Graph) Nodes() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i := range g.NodeCount() {
			if v, err := g.NodeAt(i); err != nil || !yield(i, v) {
				return
			}
		}
	}
}

// NodeAt is the value that names the node added as number i. Errors: OutOfRange.
func (g *Graph) NodeAt(i int) (Value, error) {
	return readValue(g, func(graph *C.dtg_graph, out *C.dtg_value) *C.dtg_error {
		return C.dtg_graph_node_at(graph, C.size_t(i), out)
	})
}

// Find is the value of that name: "node" (its first output, or the node itself) or "node:1". Errors: NotFound, InvalidArgument.
func (g *Graph) Find(name string) (Value, error) {
	data, length := chars(name)
	return readValue(g, func(graph *C.dtg_graph, out *C.dtg_value) *C.dtg_error {
		return C.dtg_graph_find(graph, data, length, out)
	})
}

// ValueOutput is output i of the node that v belongs to. Errors: OutOfRange, InvalidArgument.
func (g *Graph) ValueOutput(v Value, i int) (Value, error) {
	return readValue(g, func(graph *C.dtg_graph, out *C.dtg_value) *C.dtg_error {
		return C.dtg_value_output(graph, v.c(), C.size_t(i), out)
	})
}

// Outputs is the outputs of the node that v belongs to.
func (g *Graph) Outputs(v Value) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		n, err := g.ValueNumOutputs(v)
		if err != nil {
			return
		}
		for i := range n {
			if out, err := g.ValueOutput(v, i); err != nil || !yield(i, out) {
				return
			}
		}
	}
}

func readValue(g *Graph, read func(*C.dtg_graph, *C.dtg_value) *C.dtg_error) (out Value, err error) {
	graph, err := g.reading()
	if err != nil {
		return Value{}, err
	}
	err = failure(read(graph, out.out()))
	runtime.KeepAlive(g)
	return out, err
}

// ValueName is the name of a value's node.
func (g *Graph) ValueName(v Value) (string, error) {
	return readText(g, func(graph *C.dtg_graph, out **C.char, length *C.size_t) *C.dtg_error {
		return C.dtg_value_name(graph, v.c(), out, length)
	})
}

// nameOf is the name of a value for messages, "split:1", or "node" where its node has one output; "" where nothing is known.
func (g *graphState) nameOf(v Value) string {
	graph := &Graph{graphState: g}
	name, err := graph.ValueName(v)
	if err != nil {
		return ""
	}
	if n, err := graph.ValueNumOutputs(v); err != nil || n < 2 {
		return name
	}
	for i, out := range graph.Outputs(v) {
		if out == v {
			return fmt.Sprintf("%s:%d", name, i)
		}
	}
	return name
}

// ValueOp is the type of a value's node, "MatMul".
func (g *Graph) ValueOp(v Value) (string, error) {
	return readText(g, func(graph *C.dtg_graph, out **C.char, length *C.size_t) *C.dtg_error {
		return C.dtg_value_op(graph, v.c(), out, length)
	})
}

// ValueDevice is the device that was asked for a value's node; "" when none was.
func (g *Graph) ValueDevice(v Value) (string, error) {
	return readText(g, func(graph *C.dtg_graph, out **C.char, length *C.size_t) *C.dtg_error {
		return C.dtg_value_device(graph, v.c(), out, length)
	})
}

func readText(g *Graph, read func(*C.dtg_graph, **C.char, *C.size_t) *C.dtg_error) (string, error) {
	graph, err := g.reading()
	if err != nil {
		return "", err
	}
	var out *C.char
	var length C.size_t
	if err := failure(read(graph, &out, &length)); err != nil {
		return "", err
	}
	s := C.GoStringN(out, C.int(length))
	runtime.KeepAlive(g)
	return s, nil
}

// ValueNumOutputs is the number of outputs of a value's node.
func (g *Graph) ValueNumOutputs(v Value) (int, error) {
	graph, err := g.reading()
	if err != nil {
		return 0, err
	}
	var n C.size_t
	err = failure(C.dtg_value_num_outputs(graph, v.c(), &n))
	runtime.KeepAlive(g)
	return int(n), err
}

// ValueDType is the element type of a value. Errors: InvalidArgument, also for a node without outputs.
func (g *Graph) ValueDType(v Value) (DType, error) {
	graph, err := g.reading()
	if err != nil {
		return 0, err
	}
	var dtype C.dtg_dtype
	err = failure(C.dtg_value_dtype(graph, v.c(), &dtype))
	runtime.KeepAlive(g)
	return DType(dtype), err
}

// ValueShape is what is known of a value's shape: nil when not even its rank is.
func (g *Graph) ValueShape(v Value) (Shape, error) {
	graph, err := g.reading()
	if err != nil {
		return nil, err
	}
	return readShape(func(dims *C.int64_t, room C.size_t, rank *C.int32_t) *C.dtg_error {
		defer runtime.KeepAlive(g)
		return C.dtg_value_shape(graph, v.c(), dims, room, rank)
	})
}

func readShape(read func(*C.int64_t, C.size_t, *C.int32_t) *C.dtg_error) (Shape, error) {
	var dims [8]C.int64_t
	var rank C.int32_t
	if err := failure(read(&dims[0], C.size_t(len(dims)), &rank)); err != nil || rank < 0 {
		return nil, err
	}
	shape := make(Shape, rank)
	for i := range shape {
		shape[i] = int64(dims[i])
	}
	return shape, nil
}
