// Graph: a dataflow graph under construction. One goroutine builds it; any number may run what is there meanwhile.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

var graphKind = &kind{"graph", "NewGraph", func(p unsafe.Pointer) { C.dtg_graph_release((*C.dtg_graph)(p)) }}

// Value is one output of one node of one graph; it also names the node where a node is asked for (targets, controls). The zero
// Value is invalid: it stands for what was not given.
type Value struct{ id uint64 }

// Valid says whether v is not the zero Value.
func (v Value) Valid() bool { return v.id != 0 }

// Graph holds nodes that are added and never changed. The first error sticks, with the place in the program where it
// happened: later calls do nothing and give invalid values, and Connect returns it. See Err.
type Graph struct {
	graphState *graphState
	node       Node
}

type graphState struct {
	handle
	err    error
	inside []*Model // of a body: what is closed with it
}

// Node is what may be said of any node: see Graph.With.
type Node struct {
	Name     string  // "": made from the op's type
	Device   string  // "": from the device scope
	Controls []Value // nodes that run before it
	Colocate []Value // nodes whose device it shares
}

// NewGraph is an empty graph over the default runtime.
func NewGraph() *Graph { return (*Runtime)(nil).NewGraph() }

// NewGraph is an empty graph over the ops of r.
func (r *Runtime) NewGraph() *Graph {
	g := &Graph{graphState: &graphState{}}
	if g.fail(loaded()) {
		return g
	}
	home, err := r.c()
	if g.fail(err) {
		return g
	}
	var out *C.dtg_graph
	err = failure(C.dtg_graph_create(home, &out))
	runtime.KeepAlive(r)
	if !g.fail(err) {
		g.graphState.open(graphKind, unsafe.Pointer(out))
	}
	return g
}

// Err is the first error of the graph, of a model of it, or nil. Of a Graph that is nil or zero it is that, and nothing sticks to it.
func (g *Graph) Err() error { return g.state().err }

// state is what g shares with all that With made of it; where g is nil or zero one of its own, in which that stuck.
func (g *Graph) state() *graphState {
	switch {
	case g == nil:
		return &graphState{err: invalid("the graph is nil; make one first")}
	case g.graphState == nil:
		return &graphState{err: graphKind.absent()}
	}
	return g.graphState
}

func (g *Graph) fail(err error) bool { return g.state().fail(err) }

func (g *Graph) c() (*C.dtg_graph, bool) { return g.state().c() }

// Close drops the graph; sessions keep what they need. Closing twice is fine.
func (g *Graph) Close() error {
	if g != nil && g.graphState != nil {
		g.graphState.close(graphKind)
	}
	return nil
}

// With is the same graph, where every node that is added gets what node says:
//
//	g.With(dtg.Node{Name: "logits", Device: "/device:CPU:1"}).MatMul(x, w)
func (g *Graph) With(node Node) *Graph { return &Graph{graphState: g.state(), node: node} }

// fail makes err stick, and says whether there is one.
func (g *graphState) fail(err error) bool {
	if err == nil {
		return g.err != nil
	}
	if g.err == nil {
		g.err = placed(err)
	}
	return true
}

// c is the handle for a call that builds; false once the graph has an error.
func (g *graphState) c() (*C.dtg_graph, bool) {
	if g.err != nil {
		return nil, false
	}
	p, err := g.get(graphKind)
	return (*C.dtg_graph)(p), !g.fail(err)
}

// peek is the handle as it is, nil for a graph that is closed or not known: for what can do without.
func (g *graphState) peek() *C.dtg_graph {
	if g == nil {
		return nil
	}
	p, _ := g.get(graphKind)
	return (*C.dtg_graph)(p)
}

// reading is the handle for a call that only reads.
func (g *Graph) reading() (*C.dtg_graph, error) {
	if g == nil {
		return nil, invalid("the graph is nil; make one first")
	}
	if g.graphState == nil {
		return nil, g.Err()
	}
	p, err := g.graphState.get(graphKind)
	return (*C.dtg_graph)(p), err
}

// OpSpec is a node to add.
type OpSpec struct {
	Type     string // "MatMul"
	Inputs   []Value
	Attrs    []Attr // those that neither the inputs nor a default decide
	Name     string // "": made from the type
	Device   string
	Controls []Value
	Colocate []Value
}

// AddOp adds a node and gives its outputs; a node without outputs gives one value that names it. On failure the error sticks
// and the answer is nil. Errors: NotFound (no such op), InvalidArgument (everything else that is wrong).
func (g *Graph) AddOp(spec OpSpec) []Value {
	outs := make([]Value, 8)
	count := g.add(&spec, outs)
	if count > len(outs) {
		first := outs[0]
		outs = make([]Value, count)
		for i := range outs {
			outs[i] = g.output(first, i)
		}
	}
	return outs[:count:count]
}

// add adds a node, writes as many of its outputs as fit, and says how many it has; 0 after an error.
func (g *Graph) add(spec *OpSpec, outs []Value) int {
	graph, ok := g.c()
	if !ok {
		return 0
	}
	var p pins
	defer p.Unpin()
	c := &C.dtg_op_spec{}
	attrs := make([]C.dtg_attr, 0, len(spec.Attrs))
	for i := range spec.Attrs {
		if spec.Attrs[i].name == "" {
			continue
		}
		attrs = append(attrs, C.dtg_attr{})
		if g.fail(spec.Attrs[i].write(&p, &attrs[len(attrs)-1])) {
			return 0
		}
	}
	data, numAttrs := pinned(&p, attrs)
	c.attrs, c.num_attrs = (*C.dtg_attr)(data), numAttrs
	c._type, c.type_len = p.text(spec.Type)
	c.name, c.name_len = p.text(spec.Name)
	c.device, c.device_len = p.text(spec.Device)
	c.inputs, c.num_inputs = p.values(spec.Inputs)
	c.controls, c.num_controls = p.values(spec.Controls)
	c.colocate, c.num_colocate = p.values(spec.Colocate)
	c.location, c.location_len = p.text(place())
	var count C.size_t
	err := failure(C.dtg_go_add_op(graph, c, (*C.dtg_value)(unsafe.Pointer(&outs[0])), C.size_t(len(outs)), &count))
	runtime.KeepAlive(g)
	runtime.KeepAlive(spec)
	if g.fail(err) {
		return 0
	}
	return int(count)
}

// op is add for the generated wrappers, with what With said.
func (g *Graph) op(name string, inputs []Value, attrs []Attr) *OpSpec {
	var n Node
	if g != nil {
		n = g.node
	}
	return &OpSpec{Type: name, Inputs: inputs, Attrs: attrs, Name: n.Name, Device: n.Device, Controls: n.Controls, Colocate: n.Colocate}
}

// add1 gives the first output, or what names the node.
func (g *Graph) add1(name string, inputs []Value, attrs ...Attr) Value {
	var outs [1]Value
	g.add(g.op(name, inputs, attrs), outs[:])
	return outs[0]
}

// addN gives n outputs, invalid ones after an error: who takes them apart should not have to ask. No node has 2^16.
func (g *Graph) addN(n int, name string, inputs []Value, attrs ...Attr) []Value {
	outs := g.AddOp(*g.op(name, inputs, attrs))
	for len(outs) < min(n, 1<<16) {
		outs = append(outs, Value{})
	}
	return outs
}

func (g *Graph) output(v Value, i int) (out Value) {
	graph, ok := g.c()
	if !ok {
		return Value{}
	}
	g.fail(failure(C.dtg_value_output(graph, v.c(), C.size_t(i), out.out())))
	runtime.KeepAlive(g)
	return out
}

func (v Value) c() C.dtg_value { return C.dtg_value{id: C.uint64_t(v.id)} }

func (v *Value) out() *C.dtg_value { return (*C.dtg_value)(unsafe.Pointer(v)) }

// Serialize is the whole graph as bytes that Import of this and later versions reads.
func (g *Graph) Serialize() ([]byte, error) {
	if err := g.Err(); err != nil {
		return nil, err
	}
	graph, err := g.reading()
	if err != nil {
		return nil, err
	}
	var out *C.dtg_string
	err = failure(C.dtg_graph_serialize(graph, &out))
	runtime.KeepAlive(g)
	if err != nil {
		return nil, err
	}
	return []byte(text(out)), nil
}

// Import adds the nodes of a serialised graph to an empty graph, under their names. Errors, which stick: DataLoss (not a graph,
// cut, or damaged), InvalidArgument (a node that does not hold), FailedPrecondition (the graph has nodes).
func (g *Graph) Import(bytes []byte) error {
	graph, ok := g.c()
	if !ok {
		return g.Err()
	}
	data := unsafe.Pointer(&nothing) // no bytes are no graph: for the library to say
	if len(bytes) > 0 {
		data = unsafe.Pointer(&bytes[0])
	}
	g.fail(failure(C.dtg_graph_import(graph, data, C.size_t(len(bytes)))))
	runtime.KeepAlive(g)
	return g.Err()
}
