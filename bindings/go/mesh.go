// Meshes: models that are larger than a device. One goroutine, the one that builds the model, uses a mesh; the function given to Build is
// called on it, once for each step.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

var meshKind = &kind{"mesh", "Model.NewMesh", func(p unsafe.Pointer) { C.dtg_mesh_release((*C.dtg_mesh)(p)) }}

// Zero says where what an optimizer keeps of a variable stands, and who makes its update, on the ranks of the data axis.
type Zero int32

// The places.
const (
	ZeroNone      Zero = 0 // on each rank beside its copy
	ZeroStates    Zero = 1 // each variable's on one rank, which gives the others what the variable became (ZeRO-1)
	ZeroGradients Zero = 2 // and gradients are added up there and go nowhere else (ZeRO-2)
)

// MeshOptions is a grid of devices with three named axes. Zero is the default of every field.
type MeshOptions struct {
	Data, Model, Pipe int64    // lengths of the axes; 0: 1
	Devices           []string // of (d, m, p): number (d * Model + m) * Pipe + p
	Zero              Zero
}

// MeshStep is what to build next.
type MeshStep struct {
	Stage int64 // 0 to Pipe - 1
	Data  int64 // the rank of the data axis
	Micro int64 // the micro-batch
	Batch []Value
	// What the stage before gave for it; of stage 0 nothing.
	Inputs []Value
}

// Mesh is one model over a grid of devices: layers cut over the model axis, stages one behind the other on the pipe axis, a share of the batch
// for each rank of the data axis. The first error sticks in the graph, as with everything that builds: see Graph.Err.
type Mesh struct {
	handle
	m     *Model
	model int64
}

// NewMesh is a mesh for m. Errors, which stick: InvalidArgument (an axis that is no length, another number of devices, a device twice).
func (m *Model) NewMesh(options MeshOptions) *Mesh {
	s := &Mesh{m: m, model: max(options.Model, 1)}
	m.build(func(p *C.dtg_model) *C.dtg_error {
		c := (*C.dtg_mesh_options)(C.calloc(1, C.sizeof_dtg_mesh_options))
		defer C.free(unsafe.Pointer(c))
		names, free := cStrings(options.Devices)
		defer free()
		c.struct_size = C.sizeof_dtg_mesh_options
		c.data, c.model, c.pipe = C.int64_t(options.Data), C.int64_t(options.Model), C.int64_t(options.Pipe)
		c.devices, c.num_devices = names, C.size_t(len(options.Devices))
		c.zero = C.dtg_mesh_zero(options.Zero)
		var out *C.dtg_mesh
		failed := C.dtg_mesh_create(p, c, &out)
		if failed == nil {
			s.open(meshKind, unsafe.Pointer(out))
		}
		return failed
	})
	return s
}

// Close drops the mesh; what it added stays. Closing twice is fine.
func (s *Mesh) Close() error {
	if s != nil {
		s.close(meshKind)
	}
	return nil
}

// grid is the model of s, nil where s is nil.
func (s *Mesh) grid() *Model {
	if s == nil {
		return nil
	}
	return s.m
}

func (s *Mesh) build(call func(*C.dtg_mesh) *C.dtg_error) bool {
	if s == nil {
		return false
	}
	g := s.m.Graph()
	if g.Err() != nil {
		return false
	}
	p, err := s.get(meshKind)
	if g.fail(err) {
		return false
	}
	err = failure(call((*C.dtg_mesh)(p)))
	runtime.KeepAlive(s)
	runtime.KeepAlive(s.m)
	return !g.fail(err)
}

func (s *Mesh) value(call func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error) (v Value) {
	s.build(func(p *C.dtg_mesh) *C.dtg_error { return call(p, v.out()) })
	return v
}

func copied(from *C.dtg_value, count C.size_t) []Value {
	return append([]Value(nil), unsafe.Slice((*Value)(unsafe.Pointer(from)), int(count))...)
}

// Build cuts each value of the batch into Data x microBatches equal parts and calls stage for every stage, data rank and micro-batch, in the
// order of the pipeline; stage answers what the next one takes, of the last stage its loss first. forwardOnly is for evaluation: no ways back.
// A later build is over the variables that the first one made. A failure, also one that stuck while stage built, abandons the build.
func (s *Mesh) Build(batch []Value, microBatches int64, forwardOnly bool, stage func(MeshStep) []Value) {
	if stage == nil {
		s.grid().fail(invalid("what a stage is to build is nil; give a function"))
		return
	}
	begun := s.build(func(p *C.dtg_mesh) *C.dtg_error {
		data, count := valuesOf(batch)
		return C.dtg_mesh_begin(p, data, count, C.int64_t(microBatches), flag(forwardOnly))
	})
	if !begun {
		return
	}
	over := false
	defer func() {
		if p, err := s.get(meshKind); err == nil && !over {
			C.dtg_error_release(C.dtg_mesh_abandon((*C.dtg_mesh)(p)))
		}
	}()
	for {
		var step MeshStep
		var more C.int32_t
		told := s.build(func(p *C.dtg_mesh) *C.dtg_error {
			c := C.dtg_mesh_step{struct_size: C.sizeof_dtg_mesh_step}
			failed := C.dtg_mesh_next(p, &c, &more)
			if failed == nil && more != 0 {
				step = MeshStep{int64(c.stage), int64(c.data), int64(c.micro), copied(c.batch, c.num_batch), copied(c.inputs, c.num_inputs)}
			}
			return failed
		})
		if !told || more == 0 {
			over = told
			return
		}
		outputs := stage(step)
		given := s.build(func(p *C.dtg_mesh) *C.dtg_error {
			data, count := valuesOf(outputs)
			return C.dtg_mesh_give(p, data, count)
		})
		if !given {
			return
		}
	}
}

// Result is what the last stage gave as number k, of all micro-batches: the mean of a floating-point scalar, rows one behind the other of
// anything else.
func (s *Mesh) Result(k int) Value {
	return s.value(func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error {
		if k < 0 {
			k = 1 << 30
		}
		return C.dtg_mesh_result(p, C.size_t(k), out)
	})
}

// Minimize adds a step of training over the mean of all losses.
func (s *Mesh) Minimize(optimizer Optimizer) Training {
	return s.grid().training(func(_ *C.dtg_model, out *C.dtg_training) *C.dtg_error {
		p, err := s.get(meshKind)
		if s.m.fail(err) {
			return nil
		}
		defer runtime.KeepAlive(s)
		var held pins
		defer held.Unpin()
		return C.dtg_mesh_minimize((*C.dtg_mesh)(p), optimizer.c(&held), out)
	})
}

// ColumnDense is Dense by columns: each device of the model axis has some columns of the kernel and makes as many of the product, which stay
// there; one value for each device. Between this and RowDense only what is element by element belongs.
func (s *Mesh) ColumnDense(x Value, layer Dense) []Value {
	parts := make([]Value, s.model)
	s.build(func(p *C.dtg_mesh) *C.dtg_error {
		var held pins
		defer held.Unpin()
		data, count := valuesOf(parts)
		return C.dtg_mesh_column_dense(p, x.c(), layer.c(&held), data, count)
	})
	return parts
}

// RowDense is Dense by rows: each device has the rows of the kernel that go with its part of the input; the products are added up.
func (s *Mesh) RowDense(parts []Value, layer Dense) Value {
	return s.value(func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		data, count := valuesOf(parts)
		return C.dtg_mesh_row_dense(p, data, count, layer.c(&held), out)
	})
}

// Together is the parts of all devices one behind the other along an axis (negative: from the last).
func (s *Mesh) Together(parts []Value, axis int) Value {
	return s.value(func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error {
		data, count := valuesOf(parts)
		return C.dtg_mesh_together(p, data, count, clamped(axis), out)
	})
}

// TableCut is how the table of an embedding is cut over the model axis.
type TableCut int32

// The ways.
const (
	CutRows    TableCut = 0 // each id is looked up on the device that has its row
	CutColumns TableCut = 1 // each device has a piece of every row
)

// Embedding is Model.Embedding with its table cut over the model axis.
func (s *Mesh) Embedding(ids Value, layer Embedding, by TableCut) Value {
	return s.value(func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_mesh_embedding(p, ids.c(), layer.c(&held), C.dtg_table_cut(by), out)
	})
}

// Attention is Model.Attention with its heads shared out over the model axis.
func (s *Mesh) Attention(query, value Value, layer Attention) Value {
	return s.value(func(p *C.dtg_mesh, out *C.dtg_value) *C.dtg_error {
		var held pins
		defer held.Unpin()
		return C.dtg_mesh_attention(p, query.c(), value.c(), layer.c(&held), out)
	})
}
