// Conditions, loops and calls, their bodies built by closures. One goroutine builds a graph.

package dtg

// #include "shim.h"
import "C"

import "runtime"

// If runs then where condition is true (a number that is not 0, a tensor that is not empty), else otherwise; both give as many values of
// the same types. Only the branch that is taken runs. Semantics: tf.cond.
func (g *Graph) If(condition Value, then, otherwise func(b *Graph) []Value) []Value {
	yes := g.branch("then", then)
	defer yes.Close()
	no := g.branch("else", otherwise)
	defer no.Close()
	outs := make([]Value, yes.results)
	g.calling([]*Function{yes, no}, func(graph *C.dtg_graph, f []*C.dtg_function) *C.dtg_error {
		data, count := valuesOf(outs)
		return C.dtg_graph_add_if(graph, condition.c(), f[0], f[1], data, count)
	})
	return outs
}

// Case runs the branch number index (an int32, counted from 0; the last one for every other number). Semantics: tf.switch_case.
func (g *Graph) Case(index Value, branches ...func(b *Graph) []Value) []Value {
	functions := make([]*Function, len(branches))
	results := 0
	for i, branch := range branches {
		functions[i] = g.branch("case", branch)
		defer functions[i].Close()
		results = functions[i].results
	}
	outs := make([]Value, results)
	g.calling(functions, func(graph *C.dtg_graph, f []*C.dtg_function) *C.dtg_error {
		var p pins
		defer p.Unpin()
		data, count := valuesOf(outs)
		list, branches := pinned(&p, f)
		return C.dtg_graph_add_case(graph, index.c(), (**C.dtg_function)(list), branches, data, count)
	})
	return outs
}

// WhileOptions is what a loop may be told. Zero is the default of every field.
type WhileOptions struct {
	Shapes map[int]Shape // what holds in every round for the variable of that number, where it is less than its start's shape
}

// While calls body on what it gave the last time, first on start, for as long as condition gives true: both take as many values as there
// are in start, the body gives as many of the same types. The answer is those of the end. A shape must stay what it is at the start,
// unless options.Shapes says less. A loop that does not end is ended by the run's context. Semantics: tf.while_loop.
func (g *Graph) While(start []Value, condition func(b *Graph, v []Value) Value, body Body, options ...WhileOptions) []Value {
	outs, arguments := make([]Value, len(start)), make([]Argument, len(start))
	for i, v := range start {
		arguments[i].Like = v
		if !v.Valid() {
			g.fail(invalid("a loop: number %d of the values it starts with is not a value", i))
		}
	}
	for _, o := range options {
		g.shapes(start, arguments, o.Shapes)
	}
	var conditions Body
	if condition != nil {
		conditions = func(b *Graph, v []Value) []Value { return []Value{condition(b, v)} }
	}
	test := g.Function("condition", arguments, conditions)
	defer test.Close()
	round := g.Function("body", arguments, body)
	defer round.Close()
	g.calling([]*Function{test, round}, func(graph *C.dtg_graph, f []*C.dtg_function) *C.dtg_error {
		data, count := valuesOf(start)
		out, _ := valuesOf(outs)
		return C.dtg_graph_add_while(graph, data, count, f[0], f[1], out)
	})
	return outs
}

func (g *Graph) shapes(start []Value, arguments []Argument, shapes map[int]Shape) {
	for i, shape := range shapes {
		if i < 0 || i >= len(start) {
			g.fail(invalid("a loop: a shape for variable %d, but there are %d", i, len(start)))
			return
		}
		dtype, err := g.ValueDType(start[i])
		g.fail(err)
		arguments[i] = Argument{DType: dtype, Shape: shape}
	}
}

// Call calls a function. Semantics: tf.function.
func (g *Graph) Call(f *Function, arguments ...Value) []Value {
	if f == nil {
		g.fail(invalid("the function is nil; make one first"))
		return nil
	}
	outs := make([]Value, f.results)
	g.calling([]*Function{f}, func(graph *C.dtg_graph, p []*C.dtg_function) *C.dtg_error {
		data, count := valuesOf(arguments)
		out, room := valuesOf(outs)
		return C.dtg_graph_add_call(graph, p[0], data, count, out, room)
	})
	return outs
}

func (g *Graph) branch(name string, build func(b *Graph) []Value) *Function {
	var body Body
	if build != nil {
		body = func(b *Graph, _ []Value) []Value { return build(b) }
	}
	return g.Function(name, nil, body)
}

// calling adds a node that calls functions; an error sticks.
func (g *Graph) calling(functions []*Function, add func(*C.dtg_graph, []*C.dtg_function) *C.dtg_error) {
	graph, ok := g.c()
	if !ok {
		return
	}
	pointers, err := functionsOf(functions)
	if g.fail(err) {
		return
	}
	g.fail(failure(add(graph, pointers)))
	runtime.KeepAlive(g)
	runtime.KeepAlive(functions)
}
