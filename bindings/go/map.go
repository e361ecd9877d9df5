// What a program does to the elements of a data set: functions of a graph, functions in Go, and sources in Go. One goroutine at a time; the
// functions in Go are called by whoever asks for an element, or on the thread of a Prefetch behind them.

package dtg

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// MapOptions are those of Map and Filter. Zero is the default of every field.
type MapOptions struct {
	// Elements worked on at once, on the compute threads, up to 1,024; 0: one, by whoever asks for it; -1: as many as there are compute
	// threads. They come in the order of the source anyway.
	Parallel int
	// The body gets one argument more, its last: int64 [2], the numbers of the epoch and of the element in it, for the stateless random ops.
	Seed bool
	// The graph that the body is built in, whose values it may use, and the session that tells, now, what they are, also what was read of
	// variables. nil: a graph of its own.
	Graph   *Graph
	Session *Session
}

// Map makes elements what body gives for them: its arguments are the components. It may stand before Batch or behind it, which is faster.
// Errors: InvalidArgument (an op that is more than a function of its inputs, which is named; no results), FailedPrecondition (a value from
// around without a session), Unimplemented (strings); they leave the pipeline as it was, but stick. Semantics: Dataset.map, deterministic.
//
//	data.Map(func(b *dtg.Graph, x []dtg.Value) []dtg.Value { return []dtg.Value{b.Mul(x[0], x[0]), x[1]} }, dtg.MapOptions{Parallel: -1})
func (d *Dataset) Map(body Body, options ...MapOptions) *Dataset {
	return d.apply("map", body, options, func(p *C.dtg_dataset, f *C.dtg_function, o *C.dtg_map_options) *C.dtg_error {
		return C.dtg_dataset_map(p, f, o)
	})
}

// Filter keeps the elements for which body, which gives one bool, gives true. Else as Map. Semantics: Dataset.filter.
func (d *Dataset) Filter(body Body, options ...MapOptions) *Dataset {
	return d.apply("filter", body, options, func(p *C.dtg_dataset, f *C.dtg_function, o *C.dtg_map_options) *C.dtg_error {
		return C.dtg_dataset_filter(p, f, o)
	})
}

func (d *Dataset) apply(name string, body Body, options []MapOptions,
	add func(*C.dtg_dataset, *C.dtg_function, *C.dtg_map_options) *C.dtg_error) *Dataset {
	p, err := d.c()
	var o MapOptions
	if err == nil {
		o, err = only(options)
	}
	if err != nil {
		if d != nil {
			d.err = placed(err)
		}
		return d
	}
	g := o.Graph
	if g == nil {
		g = NewGraph()
		defer g.Close()
	}
	f := g.functionOf(p, name, o.Seed, body)
	defer f.Close()
	if err := g.Err(); err != nil {
		d.err = placed(err)
		return d
	}
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		c := &C.dtg_map_options{struct_size: C.sizeof_dtg_map_options, parallel: clamped(max(o.Parallel, 1))}
		if o.Parallel < 0 {
			c.parallel = 0
		}
		if o.Session != nil {
			if c.session, err = o.Session.c(); err != nil {
				return errorOf(err)
			}
		}
		function, err := f.c()
		if err != nil {
			return errorOf(err)
		}
		defer runtime.KeepAlive(o.Session)
		defer runtime.KeepAlive(f)
		return add(p, function, c)
	})
}

// functionOf is a function whose arguments are the components of a data set.
func (g *Graph) functionOf(data *C.dtg_dataset, name string, seed bool, body Body) *Function {
	return g.function(name, func(b *Graph) []Value {
		v := make([]Value, int(C.dtg_dataset_component_count(data)))
		if seed {
			v = append(v, Value{})
		}
		if p, ok := b.c(); ok {
			out, count := valuesOf(v)
			b.fail(failure(C.dtg_dataset_add_arguments(data, p, out, count)))
			runtime.KeepAlive(b)
		}
		return v
	}, body)
}

// Component is what one tensor of every element is.
type Component struct {
	DType DType
	Shape Shape // nil: a scalar; -1: not the same for all
}

// MapFunc makes elements what fn makes of them: tensors as components says. Its arguments are closed when it returns, and so are its
// results, which may be arguments: Retain what should live longer. An error of fn is that of the element, with its message, and its code
// where it is an *Error, and errors.Is and errors.As find it again in what Next, Fit and the others return; a panic is Internal. fn must not use the data set. Semantics: Dataset.map of a py_function.
func (d *Dataset) MapFunc(components []Component, fn func(x []*Tensor) ([]*Tensor, error)) *Dataset {
	var p pins
	defer p.Unpin()
	user := cgo.NewHandle(fn)
	d.transform(func(it *C.dtg_dataset) *C.dtg_error {
		c, count := p.components(components)
		return C.dtg_go_map(it, C.uintptr_t(user), c, count)
	})
	if d == nil || d.err != nil {
		user.Delete()
	}
	return d
}

// FilterFunc keeps the elements that fn wants. Else as MapFunc.
func (d *Dataset) FilterFunc(fn func(x []*Tensor) (bool, error)) *Dataset {
	user := cgo.NewHandle(fn)
	d.transform(func(it *C.dtg_dataset) *C.dtg_error { return C.dtg_go_filter(it, C.uintptr_t(user)) })
	if d == nil || d.err != nil {
		user.Delete()
	}
	return d
}

// SourceOptions are those of DatasetFunc. Zero is the default of every field.
type SourceOptions struct {
	Name        string // by which checkpoints know their data; "": "host"
	Cardinality int64  // elements per epoch, which is then held to it; 0: not known, -1: endless
}

// DatasetFunc is a data set of the elements that a program gives: epoch begins an epoch, by its number, from which an order may be made, and
// ranges over its elements; their tensors are closed when they have been taken. A place that is gone to is in any epoch, which is then ranged
// over from its beginning. An error that is yielded is that of the element, as in MapFunc. For a channel:
//
//	data := dtg.DatasetFunc(components, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
//		return func(yield func([]*dtg.Tensor, error) bool) {
//			for row := range rows {
//				if !yield(row, nil) {
//					return
//				}
//			}
//		}
//	})
//
// Semantics: Dataset.from_generator.
func DatasetFunc(components []Component, epoch func(number int64) iter.Seq2[[]*Tensor, error], options ...SourceOptions) *Dataset {
	return (*Runtime)(nil).DatasetFunc(components, epoch, options...)
}

// DatasetFunc is the same with the memory limit of r.
func (r *Runtime) DatasetFunc(components []Component, epoch func(number int64) iter.Seq2[[]*Tensor, error],
	options ...SourceOptions) *Dataset {
	var p pins
	defer p.Unpin()
	o := pinnedOnly(&p, options)
	c, count := p.components(components)
	name, length := p.text(o.Name)
	if o.Cardinality == 0 {
		o.Cardinality = -2
	}
	user := cgo.NewHandle(&source{epoch: epoch})
	d := r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_go_source(home, C.uintptr_t(user), c, count, C.int64_t(o.Cardinality), name, length, out)
	})
	if d.err != nil {
		user.Delete()
	}
	return d
}

// source is an epoch that is under way.
type source struct {
	epoch func(int64) iter.Seq2[[]*Tensor, error]
	now   *pulled
}

func (s *source) end() {
	if s.now != nil {
		s.now.stop()
	}
	s.now = nil
}

func (p *pins) components(list []Component) (*C.dtg_component, C.size_t) {
	if len(list) == 0 {
		return nil, 0
	}
	all := make([]C.dtg_component, len(list))
	for i, one := range list {
		all[i].dtype = C.dtg_dtype(one.DType)
		all[i].rank = C.int32_t(len(one.Shape))
		if len(one.Shape) > 0 {
			all[i].dims, _ = p.ints(one.Shape)
		}
	}
	p.Pin(&all[0])
	return &all[0], C.size_t(len(all))
}

// wordsOf is code and message of an error. One of the library keeps its code.
func wordsOf(err error) (Code, string) {
	code, message := Unknown, err.Error()
	var ours *Error
	if errors.As(err, &ours) {
		code = ours.Code
		if err == error(ours) {
			message = ours.Message
		}
	}
	return code, message
}

// errorOf is an error as C takes it.
func errorOf(err error) *C.dtg_error {
	if err == nil {
		return nil
	}
	code, message := wordsOf(err)
	data, length := chars(message)
	return C.dtg_error_create(C.dtg_code(code), data, length)
}

// guarded calls fn, and remembers its error for those who will be told of it; a panic ends here, for there is no Go frame above it that
// could take it.
func guarded(fn func() error) (out *C.dtg_error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			_, where := caller(here(2))
			if other, ok := thrown.(*elsewhere); ok {
				thrown, where = other.value, other.where
			}
			out = told(&Error{Code: Internal, Message: fmt.Sprintf("a function of the program panicked (%s): %v", where, thrown)}, thrown)
		}
	}()
	err := fn()
	return told(err, err)
}

// told is err as C takes it. cause is what the program is to find again, if it is an error.
func told(err error, cause any) *C.dtg_error {
	if err == nil {
		return nil
	}
	code, message := wordsOf(err)
	if theirs, ok := cause.(error); ok {
		remember(code, inGo(message), theirs)
	}
	return errorOf(err)
}

// lent wraps tensors for the length of fn.
func lent(arguments **C.dtg_tensor, count C.size_t, fn func([]*Tensor) error) error {
	tensors := make([]*Tensor, 0, int(count))
	defer closeAll(&tensors)
	for _, pointer := range unsafe.Slice(arguments, int(count)) {
		tensors = append(tensors, wrapTensor(C.dtg_tensor_retain(pointer)))
	}
	return fn(tensors)
}

func closeAll(tensors *[]*Tensor) {
	for _, t := range *tensors {
		t.Close()
	}
}

// give hands the library references of its own, and closes the program's.
func give(made []*Tensor, results **C.dtg_tensor, room C.size_t) error {
	defer closeAll(&made)
	if len(made) != int(room) {
		return invalid("the function gave %d tensors, announced were %d", len(made), int(room))
	}
	to := unsafe.Slice(results, int(room))
	for i, t := range made {
		p, err := t.c()
		if err != nil {
			return err
		}
		to[i] = C.dtg_tensor_retain(p)
		runtime.KeepAlive(t)
	}
	return nil
}

//export dtgGoMap
func dtgGoMap(user C.uintptr_t, arguments **C.dtg_tensor, count C.size_t, results **C.dtg_tensor, room C.size_t) *C.dtg_error {
	return guarded(func() error {
		fn := cgo.Handle(user).Value().(func([]*Tensor) ([]*Tensor, error))
		return lent(arguments, count, func(x []*Tensor) error {
			made, err := fn(x)
			if err != nil {
				closeAll(&made)
				return err
			}
			return give(made, results, room)
		})
	})
}

//export dtgGoFilter
func dtgGoFilter(user C.uintptr_t, arguments **C.dtg_tensor, count C.size_t, keep *C.int32_t) *C.dtg_error {
	return guarded(func() error {
		fn := cgo.Handle(user).Value().(func([]*Tensor) (bool, error))
		return lent(arguments, count, func(x []*Tensor) error {
			wanted, err := fn(x)
			*keep = flag(wanted)
			return err
		})
	})
}

//export dtgGoSourceRestart
func dtgGoSourceRestart(user C.uintptr_t, epoch C.int64_t) *C.dtg_error {
	return guarded(func() error {
		s := cgo.Handle(user).Value().(*source)
		s.end()
		s.now = pull(s.epoch(int64(epoch)))
		return nil
	})
}

//export dtgGoSourceNext
func dtgGoSourceNext(user C.uintptr_t, results **C.dtg_tensor, room C.size_t, more *C.int32_t) *C.dtg_error {
	return guarded(func() error {
		s := cgo.Handle(user).Value().(*source)
		made, err, ok := s.now.next()
		*more = flag(ok)
		if !ok || err != nil {
			closeAll(&made)
			return err
		}
		return give(made, results, room)
	})
}

//export dtgGoUserFree
func dtgGoUserFree(user C.uintptr_t) {
	defer func() { _ = recover() }()
	held := cgo.Handle(user)
	if s, ok := held.Value().(*source); ok {
		defer held.Delete()
		s.end()
		return
	}
	held.Delete()
}
