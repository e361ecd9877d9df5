// Model: layers, losses and optimizers over a graph, and the variables they make. One goroutine, the one that builds the graph.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"time"
	"unsafe"
)

var modelKind = &kind{"model", "Graph.NewModel or LoadModel", func(p unsafe.Pointer) { C.dtg_model_release((*C.dtg_model)(p)) }}

// Model keeps the variables that its layers make: names, handles, values and first values. Everything else is nodes of its graph,
// where other nodes may be mixed in at any point. The first error sticks in the graph: see Graph.Err.
type Model struct {
	handle
	g *Graph
}

// NewModel is a model without variables, adding to g. Weights are functions of (seed, order of creation, shape).
func (g *Graph) NewModel(seed uint64) *Model {
	m := g.model()
	graph, ok := g.c()
	if !ok {
		return m
	}
	var out *C.dtg_model
	err := failure(C.dtg_model_create(graph, C.uint64_t(seed), &out))
	runtime.KeepAlive(g)
	if !g.fail(err) {
		m.open(modelKind, unsafe.Pointer(out))
	}
	return m
}

// Inside is the model inside of b, the body of a function (a loop's, a branch's): layers and losses of it are added to b, where they may
// use values from around. With WeightsOf they have the weights of a layer that was made before; others make variables outside of all
// functions, named after the function, which m has from then on. It is closed with b, and takes layers, losses and variables only. Errors,
// which stick: InvalidArgument (b is no body in the model's graph), Unimplemented from layers that follow their batches there.
func (m *Model) Inside(b *Graph) *Model {
	in := b.model()
	body, ok := in.g.c()
	if !ok {
		return in
	}
	var out *C.dtg_model
	if m.build(func(p *C.dtg_model) *C.dtg_error { return C.dtg_model_inside(p, body, &out) }) {
		in.open(modelKind, unsafe.Pointer(out))
		in.g.graphState.inside = append(in.g.graphState.inside, in)
	} else {
		in.g.fail(m.Err())
	}
	runtime.KeepAlive(b)
	return in
}

// model is a model of g that is not open yet; of a graph that is nil or zero, with the error of that.
func (g *Graph) model() *Model {
	if g == nil || g.graphState == nil {
		g = g.With(Node{})
	}
	return &Model{g: g}
}

// Graph is the graph of the model; nil for a nil or zero Model.
func (m *Model) Graph() *Graph {
	if m == nil {
		return nil
	}
	return m.g
}

// Err is the first error of the model or its graph, or nil. Of a Model that is nil or zero it is that.
func (m *Model) Err() error {
	switch {
	case m == nil:
		return invalid("the model is nil; make one first")
	case m.g == nil:
		return modelKind.absent()
	}
	return m.g.Err()
}

// fail makes err stick in the graph, where there is one, and says whether there is an error.
func (m *Model) fail(err error) bool { return m.Graph().fail(err) }

// Close drops the model; the graph keeps its nodes. Closing twice is fine.
func (m *Model) Close() error {
	if m != nil {
		m.close(modelKind)
	}
	return nil
}

// build is a call that adds to the model; false after an error, which sticks.
func (m *Model) build(add func(*C.dtg_model) *C.dtg_error) bool {
	if m.Err() != nil {
		return false
	}
	p, err := m.get(modelKind)
	if m.fail(err) {
		return false
	}
	err = failure(add((*C.dtg_model)(p)))
	runtime.KeepAlive(m)
	return !m.fail(err)
}

// read is a call that builds nothing. What stuck in the graph is no matter of what is there already, so that weights can be saved also
// where something that was built later is wrong.
func (m *Model) read(call func(*C.dtg_model) *C.dtg_error) error {
	if m == nil || m.g == nil {
		return m.Err()
	}
	if m.pointer.Load() == nil && m.Err() != nil {
		return m.Err() // why there is none
	}
	return m.call(call)
}

// use is a call on a complete model, for which what stuck is an error too.
func (m *Model) use(call func(*C.dtg_model) *C.dtg_error) error {
	if err := m.Err(); err != nil {
		return err
	}
	return m.call(call)
}

func (m *Model) call(call func(*C.dtg_model) *C.dtg_error) error {
	p, err := m.get(modelKind)
	if err != nil {
		return err
	}
	err = failure(call((*C.dtg_model)(p)))
	runtime.KeepAlive(m)
	return err
}

// value is a call that adds one value.
func (m *Model) value(add func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error) (out Value) {
	m.build(func(p *C.dtg_model) *C.dtg_error { return add(p, out.out()) })
	return out
}

// Init is the target that gives every variable so far its first value. Ask when the model is complete.
func (m *Model) Init() Value {
	return m.value(func(p *C.dtg_model, out *C.dtg_value) *C.dtg_error { return C.dtg_model_init(p, out) })
}

// SetMetadata keeps a text with the model: Save writes it with the weights, Restore brings it back. Under "schema" it is the Schema of the
// training data, which has the names of Classes too; a fit keeps it by itself. Errors: InvalidArgument (an empty key, or one that begins with
// "dtg.").
func (m *Model) SetMetadata(key, value string) error {
	return m.read(func(p *C.dtg_model) *C.dtg_error {
		k, keyLength := chars(key)
		v, valueLength := chars(value)
		return C.dtg_model_set_metadata(p, k, keyLength, v, valueLength)
	})
}

// Metadata is a text that is kept with the model. Errors: NotFound.
func (m *Model) Metadata(key string) (string, error) {
	var out *C.dtg_string
	err := m.read(func(p *C.dtg_model) *C.dtg_error {
		k, length := chars(key)
		return C.dtg_model_metadata(p, k, length, &out)
	})
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// Save writes the values that the model's variables have in s to a safetensors file, under their names, atomically. Errors:
// FailedPrecondition (a variable without value), and those of the disk.
func (m *Model) Save(s *Session, path string) error {
	return m.withSession(s, func(p *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_model_save(p, session, data, length)
	})
}

// Restore gives every variable of the model its value from such a file. Types and shapes must be equal; nothing is assigned on
// failure. Errors: NotFound (no file, or a variable is not in it), InvalidArgument, DataLoss (cut or damaged).
func (m *Model) Restore(s *Session, path string) error {
	return m.withSession(s, func(p *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_model_restore(p, session, data, length)
	})
}

func (m *Model) withSession(s *Session, call func(*C.dtg_model, *C.dtg_session) *C.dtg_error) error {
	session, err := s.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(s)
	return m.read(func(p *C.dtg_model) *C.dtg_error { return call(p, session) })
}

// How often a wait that the library bounds by time only looks whether its context has ended.
const look = 100 * time.Millisecond

// How rarely, where a look has to ask other tasks, which may be slow to answer.
const longestLook = 2 * time.Second

// WaitReady waits until every variable that the model has so far has a value in the session, until ctx ends, or for 10 minutes.
// Errors: DeadlineExceeded, which names those that have none, and those of a run.
func (m *Model) WaitReady(ctx context.Context, s *Session) error {
	if err := given(ctx); err != nil {
		return err
	}
	ready := func(timeout time.Duration) error {
		return m.withSession(s, func(p *C.dtg_model, session *C.dtg_session) *C.dtg_error {
			return C.dtg_model_wait_ready(p, session, nanoseconds(timeout))
		})
	}
	if ctx.Done() == nil {
		return ready(0)
	}
	return waiting(ctx, 10*time.Minute, longestLook, ready)
}

// Recover brings this worker to where it can go on, after Train or Update failed because a task was lost ([Unavailable], [Aborted]) or
// when this process is a later life of a worker: it waits for up to timeout (0: 10 minutes) until every variable has a value, completes on
// every task the update that one of them has applied (the chief, [SyncStrict]), runs Resume (the chief, with no Update under way) and
// LocalInit. The next Train is the step that GlobalStep says: where that is the step that failed, give it the same batch again.
// Errors: FailedPrecondition (no replicated training), DeadlineExceeded, Unavailable (still, at the end), DataLoss (a task is further
// behind than what it keeps can mend).
func (m *Model) Recover(s *Session, timeout time.Duration) error {
	return m.withSession(s, func(p *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		return C.dtg_model_recover(p, session, nanoseconds(timeout))
	})
}

// waiting calls wait, for ever longer up to longest, until it does not say DeadlineExceeded, ctx ends, or the limit (0: none) has
// passed.
func waiting(ctx context.Context, limit, longest time.Duration, wait func(time.Duration) error) error {
	begin := time.Now()
	for next := look; ; next = min(2*next, longest) {
		if err := ctx.Err(); err != nil {
			return ended(ctx, &Error{Code: Cancelled, Message: "the wait was given up"}, false)
		}
		turn := next
		deadline := boundBy(ctx, &turn)
		err := wait(turn)
		if !errors.Is(err, ErrDeadlineExceeded) {
			return err
		}
		if deadline || ctx.Err() != nil || limit > 0 && time.Since(begin) > limit {
			return ended(ctx, err, deadline)
		}
	}
}

// Variables is the model's variables in order of creation: those of layers, then those of optimizers.
func (m *Model) Variables() iter.Seq2[int, Variable] {
	return func(yield func(int, Variable) bool) {
		for i := range m.VariableCount() {
			if v, err := m.VariableAt(i); err != nil || !yield(i, v) {
				return
			}
		}
	}
}

// VariableCount is the number of variables; 0 for a closed model.
func (m *Model) VariableCount() (n int) {
	if m == nil {
		return 0
	}
	p, err := m.get(modelKind)
	if err == nil {
		n = int(C.dtg_model_variable_count((*C.dtg_model)(p)))
	}
	runtime.KeepAlive(m)
	return n
}

// VariableAt is variable i. Errors: OutOfRange.
func (m *Model) VariableAt(i int) (Variable, error) {
	return m.lookUp(func(p *C.dtg_model, out *C.dtg_variable) *C.dtg_error {
		return C.dtg_model_variable(p, C.size_t(i), out)
	})
}

// FindVariable is the variable of that name. Errors: NotFound.
func (m *Model) FindVariable(name string) (Variable, error) {
	return m.lookUp(func(p *C.dtg_model, out *C.dtg_variable) *C.dtg_error {
		data, length := chars(name)
		return C.dtg_model_find_variable(p, data, length, out)
	})
}

func (m *Model) lookUp(read func(*C.dtg_model, *C.dtg_variable) *C.dtg_error) (v Variable, err error) {
	err = m.read(func(p *C.dtg_model) *C.dtg_error {
		c := C.dtg_variable{struct_size: C.sizeof_dtg_variable}
		failed := read(p, &c)
		if failed == nil {
			v = variableOf(&c)
		}
		return failed
	})
	return v, err
}
