// Function: a body that was ended, and how one is built from a Go closure. One goroutine, the one that builds the graph.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

var functionKind = &kind{"function", "Graph.Function", func(p unsafe.Pointer) { C.dtg_function_release((*C.dtg_function)(p)) }}

// Body builds what a function does: b is a graph of its own, v the function's arguments, and the answer its results. Values of the
// graphs around may be used as they are. b is closed when the body returns; errors of b become errors of the graph around.
type Body func(b *Graph, v []Value) []Value

// Function may be called any number of times, from the graph that it was made in.
type Function struct {
	handle
	results int
}

// Argument is what a Function takes from whoever calls it. In a loop its shape holds in every round.
type Argument struct {
	Like  Value // of the type and shape of that value, also a list or the handle of a variable; or
	DType DType
	Shape Shape // nil: not even the rank is known; -1: that dimension is open
}

// Function builds a function from body. name ("": "function") is for errors and traces. Close it when it has been called for the last
// time; nodes keep what they call. Errors, which stick: those of body, Unimplemented (it makes a variable or a queue of its own),
// ResourceExhausted (more than 64 levels of functions).
func (g *Graph) Function(name string, arguments []Argument, body Body) *Function {
	return g.function(name, func(b *Graph) []Value { return b.arguments(arguments) }, body)
}

// function is the same with arguments that whoever calls adds.
func (g *Graph) function(name string, arguments func(b *Graph) []Value, body Body) *Function {
	f := &Function{}
	if body == nil {
		g.fail(invalid("the body of the function %q is nil; give one", name))
		return f
	}
	b := g.begin(name)
	defer b.end()
	results := body(b, arguments(b))
	f.results = len(results)
	if g.fail(b.Err()) {
		return f
	}
	p, ok := b.c()
	if !ok {
		g.fail(b.Err())
		return f
	}
	var out *C.dtg_function
	data, count := valuesOf(results)
	err := failure(C.dtg_function_end(p, data, count, nil, 0, &out))
	runtime.KeepAlive(b)
	if !g.fail(err) {
		f.open(functionKind, unsafe.Pointer(out))
	}
	return f
}

// begin is a body. After an error it is there and invalid, so that whoever adds to it need not ask.
func (g *Graph) begin(name string) *Graph {
	b := &Graph{graphState: &graphState{}}
	outer, ok := g.c()
	if !ok {
		b.graphState.err = g.Err()
		return b
	}
	var out *C.dtg_graph
	data, length := chars(name)
	err := failure(C.dtg_function_begin(outer, data, length, &out))
	runtime.KeepAlive(g)
	if !b.fail(err) {
		b.graphState.open(graphKind, unsafe.Pointer(out))
	}
	return b
}

// arguments are as many values, invalid after an error.
func (g *Graph) arguments(list []Argument) []Value {
	v := make([]Value, len(list))
	for i := range list {
		v[i] = g.argument(&list[i])
	}
	return v
}

// end gives a body up: what is added to it afterwards sticks to it alone.
func (g *Graph) end() {
	for _, m := range g.graphState.inside {
		_ = m.Close()
	}
	g.graphState.inside = nil
	g.graphState.close(graphKind)
	if g.graphState.err == nil {
		g.graphState.err = &Error{Code: FailedPrecondition, Message: "the function's body was ended when the closure that builds it returned; " +
			"nothing can be added to it any more"}
	}
}

func (g *Graph) argument(a *Argument) (out Value) {
	body, ok := g.c()
	if !ok {
		return Value{}
	}
	if a.Like.Valid() {
		g.fail(failure(C.dtg_function_add_argument_like(body, a.Like.c(), out.out())))
	} else {
		dims, rank := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(a.Shape))), C.size_t(len(a.Shape))
		if a.Shape == nil {
			rank = C.DTG_STRLEN
		}
		g.fail(failure(C.dtg_function_add_argument(body, C.dtg_dtype(a.DType), dims, rank, out.out())))
	}
	runtime.KeepAlive(g)
	return out
}

// Close drops the function; nodes keep what they call. Closing twice is fine.
func (f *Function) Close() error {
	if f != nil {
		f.close(functionKind)
	}
	return nil
}

// Captures is what the function took from around, in the order of the arguments that stand for it, which come after those asked for.
// It is for nodes that are added with AddOp and FuncAttr, which must be given these values as inputs; Call sees to that itself.
func (f *Function) Captures() ([]Value, error) {
	p, err := f.c()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(f)
	var count C.size_t
	if err := failure(C.dtg_function_captures(p, nil, 0, &count)); err != nil || count == 0 {
		return nil, err
	}
	out := make([]Value, count)
	data, room := valuesOf(out)
	return out, failure(C.dtg_function_captures(p, data, room, &count))
}

func (f *Function) c() (*C.dtg_function, error) {
	if f == nil {
		return nil, invalid("the function is nil; make one first")
	}
	p, err := f.get(functionKind)
	return (*C.dtg_function)(p), err
}

func functionsOf(functions []*Function) ([]*C.dtg_function, error) {
	pointers := make([]*C.dtg_function, len(functions))
	for i, f := range functions {
		p, err := f.c()
		if err != nil {
			return nil, err
		}
		pointers[i] = p
	}
	return pointers, nil
}
