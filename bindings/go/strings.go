// Tensors of strings: Go strings, of any bytes, in and out by copies. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"strings"
	"unsafe"
)

// StringTensor copies values into a tensor of that shape; without one it is a vector. It never changes.
func StringTensor(values []string, shape ...int64) (*Tensor, error) {
	if shape == nil {
		shape = Shape{int64(len(values))}
	}
	return stringTensor(values, shape)
}

// ScalarString is a tensor of one string, without dimensions.
func ScalarString(value string) (*Tensor, error) { return stringTensor([]string{value}, Shape{}) }

func stringTensor(values []string, shape Shape) (*Tensor, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	if shape.Count() != int64(len(values)) {
		return nil, invalid("a tensor of strings of shape %v: %d were given", shape, len(values))
	}
	all := strings.Join(values, "")
	lengths := make([]C.size_t, len(values))
	for i, value := range values {
		lengths[i] = C.size_t(len(value))
	}
	var out *C.dtg_tensor
	err := failure(C.dtg_tensor_create_packed_strings((*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)),
		unsafe.Pointer(unsafe.StringData(all)), C.size_t(len(all)), unsafe.SliceData(lengths), &out))
	if err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// Strings is the elements of a tensor of strings. Errors: InvalidArgument for another type, or a closed tensor.
func (t *Tensor) Strings() ([]string, error) { return t.strings(t.Len()) }

// strings is the first n elements, or all where there are fewer.
func (t *Tensor) strings(n int) ([]string, error) {
	p, err := t.c()
	if err != nil {
		return nil, err
	}
	if t.dtype != String {
		return nil, invalid("the strings of a tensor: its elements are %v", t.dtype)
	}
	out := make([]string, min(n, t.count))
	for i := range out {
		var n C.size_t
		data := C.dtg_tensor_string(p, C.size_t(i), &n)
		out[i] = string(unsafe.Slice((*byte)(unsafe.Pointer(data)), int(n)))
	}
	runtime.KeepAlive(t)
	return out, nil
}
