// Scopes: what everything added inside gets. One goroutine builds a graph.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// NameScope prefixes the names of what build adds, "outer/inner/"; a name used before gets a number. "" goes back to the root.
func (g *Graph) NameScope(name string, build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error {
		data, length := chars(name)
		return C.dtg_graph_push_name_scope(graph, data, length)
	}, func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_pop_name_scope(graph) })
}

// Device gives what build adds a device, merged over the outer ones field by field: "/job:ps" then "/device:CPU:1". "" changes
// nothing.
func (g *Graph) Device(device string, build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error {
		data, length := chars(device)
		return C.dtg_graph_push_device(graph, data, length)
	}, popDevice)
}

// NoDevice leaves all device scopes, device setters included, while build runs.
func (g *Graph) NoDevice(build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_push_device(graph, nil, 0) }, popDevice)
}

func popDevice(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_pop_device(graph) }

// Controls makes the nodes of values run before everything that build adds.
func (g *Graph) Controls(values []Value, build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error {
		data, count := valuesOf(values)
		return C.dtg_graph_push_controls(graph, data, count)
	}, func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_pop_controls(graph) })
}

// Colocation gives what build adds the device of the node of value.
func (g *Graph) Colocation(value Value, build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_push_colocation(graph, value.c()) },
		func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_pop_colocation(graph) })
}

// Recompute makes gradients compute what build adds once more, when they get there, instead of keeping it until then: less memory for about
// the time of its forward pass. The values are the same to the bit. Such scopes do not nest. Semantics: tf.recompute_grad.
func (g *Graph) Recompute(build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_push_recompute(graph) },
		func(graph *C.dtg_graph) *C.dtg_error { return C.dtg_graph_pop_recompute(graph) })
}

// SetterStrategy is how a device setter chooses the task for a variable.
type SetterStrategy int32

// The strategies.
const (
	RoundRobin  SetterStrategy = 0 // task after task, in the order in which variables are made
	GreedyBytes SetterStrategy = 1 // the task with the fewest bytes so far; needs known shapes
)

// DeviceSetter says who goes where in between-graph replication. Zero is the default of every field.
type DeviceSetter struct {
	Cluster      *Cluster // takes the ps tasks from the cluster's job of that name, or
	PSTasks      int      // without a cluster: how many there are
	Strategy     SetterStrategy
	PSDevice     string   // "": "/job:ps"
	WorkerDevice string   // "": "/job:worker", which leaves the task open
	PSOps        []string // ops that go to the ps; nil: TensorFlow's list of ops that hold variables and tables
	KeepExplicit bool     // a node that asks for any device keeps just that
}

// SetDevices places what build adds as TensorFlow's replica_device_setter: variables on the ps tasks by turns, or by bytes, all
// else on the worker. Without ps tasks it changes nothing.
func (g *Graph) SetDevices(setter DeviceSetter, build func()) {
	g.scope(build, func(graph *C.dtg_graph) *C.dtg_error {
		var p pins
		defer p.Unpin()
		s := &C.dtg_device_setter{struct_size: C.sizeof_dtg_device_setter}
		if setter.Cluster != nil {
			cluster, err := setter.Cluster.c()
			if g.fail(err) {
				return nil
			}
			s.cluster = cluster
		}
		s.ps_tasks, s.strategy, s.keep_explicit = p.int32(setter.PSTasks, "PSTasks"), C.dtg_setter_strategy(setter.Strategy), flag(setter.KeepExplicit)
		s.ps_device, s.worker_device = p.cstring(setter.PSDevice), p.cstring(setter.WorkerDevice)
		s.ps_ops, s.num_ps_ops = p.cstrings(setter.PSOps)
		if g.fail(p.err) {
			return nil
		}
		defer runtime.KeepAlive(setter.Cluster)
		return C.dtg_graph_push_device_setter(graph, s)
	}, popDevice)
}

// scope runs build between push and pop; it is left also when build panics.
func (g *Graph) scope(build func(), push, pop func(*C.dtg_graph) *C.dtg_error) {
	if build == nil {
		g.fail(invalid("what a scope is to build is nil; give a function"))
		return
	}
	graph, ok := g.c()
	if !ok || g.fail(failure(push(graph))) {
		build()
		return
	}
	defer func() {
		// The scope is left whatever stuck in between, unless the graph was closed.
		if p, err := g.graphState.get(graphKind); err == nil {
			g.fail(failure(pop((*C.dtg_graph)(unsafe.Pointer(p)))))
		}
		runtime.KeepAlive(g)
	}()
	build()
}
