// Tensor: an element type, a shape and plain row-major memory, which is the library's. Any goroutine, as long as nobody writes to
// the elements while a run uses them.

package dtg

// #cgo noescape dtg_go_tensor_layout
// #cgo nocallback dtg_go_tensor_layout
// #cgo noescape dtg_go_tensor_copy
// #cgo noescape dtg_tensor_allocate
// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"
)

var tensorKind = &kind{"tensor", "NewTensor", func(p unsafe.Pointer) { C.dtg_tensor_release((*C.dtg_tensor)(p)) }}

// Tensor is a value. It must be closed; its memory goes with the last reference, of which a run or a data set may hold others.
type Tensor struct {
	handle
	dtype    DType
	shape    Shape
	count    int
	data     unsafe.Pointer
	nbytes   int
	readOnly bool
}

// NewTensor copies data into a new tensor of that shape, row by row, the last dimension first: there are as many elements as the shape has.
// Without a shape it is a vector. The type of the elements is that of the slice: []float64 makes a Float64 tensor, which is not what a Float32
// placeholder takes. A scalar is ScalarTensor's, strings are StringTensor's, and zeros to be filled in place AllocateTensor's. Errors:
// InvalidArgument (another number of elements than the shape has, a size below 0).
//
//	x, err := dtg.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3) // two rows of three
func NewTensor[T Element](data []T, shape ...int64) (*Tensor, error) {
	if shape == nil {
		shape = Shape{int64(len(data))}
	}
	return tensorOf(data, shape)
}

// ScalarTensor is a tensor without dimensions.
func ScalarTensor[T Element](value T) (*Tensor, error) { return tensorOf([]T{value}, Shape{}) }

// fits refuses elements that are more or fewer than the shape has. A shape that is none is for the library to refuse.
func fits[T Element](given int, shape Shape) error {
	room := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && room > math.MaxInt64/d {
			return nil
		}
		room *= d
	}
	if room == int64(given) {
		return nil
	}
	return invalid("the shape %v of %v has %d elements, but %d were given", shape, DTypeOf[T](), room, given)
}

func tensorOf[T Element](data []T, shape Shape) (*Tensor, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	if err := fits[T](len(data), shape); err != nil {
		return nil, err
	}
	var zero T
	var out *C.dtg_tensor
	err := failure(C.dtg_go_tensor_copy(C.dtg_dtype(DTypeOf[T]()), (*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)),
		unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data))*C.size_t(unsafe.Sizeof(zero)), &out))
	if err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// AllocateTensor is a tensor of zeros, to be written through View before others see it.
func AllocateTensor(dtype DType, shape ...int64) (*Tensor, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	var out *C.dtg_tensor
	err := failure(C.dtg_tensor_allocate(C.dtg_dtype(dtype), (*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)), &out))
	if err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// wrapTensor takes over a reference.
func wrapTensor(pointer *C.dtg_tensor) *Tensor {
	var l C.dtg_go_layout
	C.dtg_go_tensor_layout(pointer, &l)
	t := &Tensor{dtype: DType(l.dtype), count: int(l.count), data: l.data, nbytes: int(l.nbytes), shape: make(Shape, l.rank),
		readOnly: l.read_only != 0 && l.nbytes > 0}
	for i := range t.shape {
		t.shape[i] = int64(l.dims[i])
	}
	t.openMade(tensorKind, unsafe.Pointer(pointer), madeNow())
	return t
}

// made counts the tensors of the process.
var made atomic.Uint64

// madeNow is where a tensor is made. To note that takes as long as to make a small one; who forgets to close tensors of a loop forgets many, and
// so, after the first 1,024, one in 16 is enough to find the place.
func madeNow() *stack {
	if n := made.Add(1); n > 1024 && n%16 != 0 {
		return nil
	}
	now := here(3)
	return &now
}

// c is the handle for a call.
func (t *Tensor) c() (*C.dtg_tensor, error) {
	if t == nil {
		return nil, invalid("the tensor is nil; make one first")
	}
	p, err := t.get(tensorKind)
	return (*C.dtg_tensor)(p), err
}

// Close drops the tensor. Views of it must not be used any more. Closing twice is fine.
func (t *Tensor) Close() error {
	if t != nil {
		t.close(tensorKind)
	}
	return nil
}

// Retain is a second Tensor for the same memory, to be closed by itself.
func (t *Tensor) Retain() (*Tensor, error) {
	p, err := t.c()
	if err != nil {
		return nil, err
	}
	again := C.dtg_tensor_retain(p)
	runtime.KeepAlive(t)
	if again == nil {
		return nil, invalid("this is not an open tensor: it was closed")
	}
	return wrapTensor(again), nil
}

// layout is what the getters tell of: of a nil Tensor, that it has nothing.
func (t *Tensor) layout() *Tensor {
	if t == nil {
		return &Tensor{}
	}
	return t
}

// DType is the type of the elements; 0 for a nil Tensor.
func (t *Tensor) DType() DType { return t.layout().dtype }

// Shape is the sizes of the dimensions, not to be changed; nil for a nil Tensor.
func (t *Tensor) Shape() Shape { return t.layout().shape }

// Len is the number of elements; 0 for a nil Tensor.
func (t *Tensor) Len() int { return t.layout().count }

// ReadOnly says whether the elements must not be written: memory of another library that came in as such (FromDLPack).
func (t *Tensor) ReadOnly() bool { return t.layout().readOnly }

// shown is how many elements String shows.
const shown = 6

// String is type, shape and the first elements: "float32[2 3] [1 2 3 4 5 6]", "int64[1000] [0 1 2 3 4 5 ...]"; it is for reading, and what fmt
// prints. Elements that Go has no type for are left out.
func (t *Tensor) String() string {
	if t == nil {
		return "Tensor(nil)"
	}
	if _, err := t.c(); err != nil {
		return "Tensor(closed)"
	}
	defer runtime.KeepAlive(t)
	list, more := t.first(shown), ""
	if list == "" {
		return fmt.Sprintf("%v%v", t.dtype, []int64(t.shape))
	}
	if t.count > shown {
		more = " ...]"
		list = strings.TrimSuffix(list, "]")
	}
	return fmt.Sprintf("%v%v %s%s", t.dtype, []int64(t.shape), list, more)
}

// first is the first n elements, as fmt has a slice of them; "" for types that Go does not have.
func (t *Tensor) first(n int) string {
	switch t.dtype {
	case Float32:
		return head[float32](t, n)
	case Float64:
		return head[float64](t, n)
	case Int8:
		return head[int8](t, n)
	case Int16:
		return head[int16](t, n)
	case Int32:
		return head[int32](t, n)
	case Int64:
		return head[int64](t, n)
	case Uint8:
		return head[uint8](t, n)
	case Uint16:
		return head[uint16](t, n)
	case Uint32:
		return head[uint32](t, n)
	case Uint64:
		return head[uint64](t, n)
	case Bool:
		return head[bool](t, n)
	case Complex64:
		return head[complex64](t, n)
	case Complex128:
		return head[complex128](t, n)
	case BFloat16Type:
		return headOf(t, n, BFloat16.Float32)
	case Float16Type:
		return headOf(t, n, Float16.Float32)
	case String:
		all, _ := t.strings(n)
		return fmt.Sprintf("%q", all)
	}
	return ""
}

func head[T Element](t *Tensor, n int) string {
	view, _ := View[T](t)
	return fmt.Sprint(view[:min(n, len(view))])
}

func headOf[T Element](t *Tensor, n int, number func(T) float32) string {
	view, _ := View[T](t)
	numbers := make([]float32, min(n, len(view)))
	for i := range numbers {
		numbers[i] = number(view[i])
	}
	return fmt.Sprint(numbers)
}

// View is the elements where they lie, for reading and, unless t is ReadOnly, for writing: valid until t is closed, so keep t for as
// long as that. Errors: InvalidArgument for another type, or a closed tensor.
func View[T Element](t *Tensor) ([]T, error) {
	if _, err := t.c(); err != nil {
		return nil, err
	}
	if want := DTypeOf[T](); want != t.dtype {
		return nil, invalid("view a tensor: its elements are %v, not %v", t.dtype, want)
	}
	if t.count == 0 {
		return []T{}, nil
	}
	return unsafe.Slice((*T)(t.data), t.count), nil
}

// Copy is the elements in memory of Go's own. Errors: as View.
func Copy[T Element](t *Tensor) ([]T, error) {
	view, err := View[T](t)
	if err != nil {
		return nil, err
	}
	out := append(make([]T, 0, len(view)), view...)
	runtime.KeepAlive(t)
	return out, nil
}

// Scalar is the only element. Errors: as View, and InvalidArgument when there is not exactly one.
func Scalar[T Element](t *Tensor) (out T, err error) {
	view, err := View[T](t)
	if err != nil {
		return out, err
	}
	if len(view) != 1 {
		return out, invalid("take the scalar of a tensor of %v %v: it has %d elements; View gives them all", t.dtype, t.shape, len(view))
	}
	out = view[0]
	runtime.KeepAlive(t)
	return out, nil
}

// Float32s is View for float32: valid until Close; nil when t is closed or of another type.
func (t *Tensor) Float32s() []float32 {
	view, _ := View[float32](t)
	return view
}

// Int64s is View for int64: valid until Close; nil when t is closed or of another type.
func (t *Tensor) Int64s() []int64 {
	view, _ := View[int64](t)
	return view
}

// bytes is the elements as bytes.
func (t *Tensor) bytes() []byte { return unsafe.Slice((*byte)(t.data), t.nbytes) }
