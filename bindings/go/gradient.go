// Gradients. One goroutine builds a graph.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Gradient is the gradient with respect to one x. Exactly one form is valid: Dense; or rows: Values[i] is the gradient of row
// Indices[i], rows that are not listed have none, and equal indices add up. All invalid: no path leads from x to any y.
type Gradient struct {
	Dense      Value
	Values     Value
	Indices    Value
	DenseShape Value
}

func (d *Gradient) c() *C.dtg_gradient { return (*C.dtg_gradient)(unsafe.Pointer(d)) }

func gradientsOf(list []Gradient) (*C.dtg_gradient, C.size_t) {
	return (*C.dtg_gradient)(unsafe.Pointer(unsafe.SliceData(list))), C.size_t(len(list))
}

// Gradients adds the nodes that compute d(sum of the ys)/d(x) for each x. gradYs weights the ys: nil for ones, otherwise one value
// per y (an invalid one: ones). Errors, which stick: InvalidArgument, Unimplemented (an op on the path has no gradient),
// FailedPrecondition (a PreventGradient is in the way). After an error the gradients are invalid.
func (g *Graph) Gradients(ys, xs, gradYs []Value) []Gradient {
	out := make([]Gradient, len(xs))
	if gradYs != nil && len(gradYs) != len(ys) {
		g.fail(invalid("add gradients: %d ys, but %d values that weight them", len(ys), len(gradYs)))
	}
	graph, ok := g.c()
	if !ok {
		return out
	}
	y, numYs := valuesOf(ys)
	x, numXs := valuesOf(xs)
	weights, _ := valuesOf(gradYs)
	data, _ := gradientsOf(out)
	g.fail(failure(C.dtg_graph_add_gradients(graph, y, numYs, x, numXs, weights, data)))
	runtime.KeepAlive(g)
	return out
}

// Densify is the dense form of a gradient that came as rows; Dense itself when it is dense already.
func (g *Graph) Densify(gradient Gradient) (out Value) {
	graph, ok := g.c()
	if !ok {
		return Value{}
	}
	g.fail(failure(C.dtg_graph_densify(graph, gradient.c(), out.out())))
	runtime.KeepAlive(g)
	return out
}
