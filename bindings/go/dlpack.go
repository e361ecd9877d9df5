// Tensors from and to other libraries of the process, without a copy, by DLPack. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// FromDLPack is a tensor around the memory of a DLManagedTensorVersioned (DLPack 1), which the library takes over: its deleter is
// called once, from any thread, as soon as neither the tensor nor a run needs the memory, and must not call back into the library, nor
// into Go while it does. On failure managed stays the caller's. Errors: InvalidArgument (strides of another order, no or misaligned
// data), Unimplemented (another major version, another device, element types that are not there).
func FromDLPack(managed unsafe.Pointer) (*Tensor, error) {
	return fromDLPack(func(out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_tensor_from_dlpack((*C.DLManagedTensorVersioned)(managed), out)
	})
}

// FromDLPackUnversioned is the same for a DLManagedTensor, the form before versions.
func FromDLPackUnversioned(managed unsafe.Pointer) (*Tensor, error) {
	return fromDLPack(func(out **C.dtg_tensor) *C.dtg_error {
		return C.dtg_tensor_from_dlpack_unversioned((*C.DLManagedTensor)(managed), out)
	})
}

func fromDLPack(take func(**C.dtg_tensor) *C.dtg_error) (*Tensor, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	var out *C.dtg_tensor
	if err := failure(take(&out)); err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// DLPack is the tensor's memory as a DLManagedTensorVersioned for another library, which calls its deleter once. It holds a reference
// until then, also when t is closed. Without writable the memory is marked read-only. Errors: Unimplemented (element types that
// DLPack has no code for), FailedPrecondition (writable, for a ReadOnly tensor).
func (t *Tensor) DLPack(writable bool) (unsafe.Pointer, error) {
	p, err := t.c()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(t)
	var out *C.DLManagedTensorVersioned
	if err := failure(C.dtg_tensor_to_dlpack(p, flag(writable), &out)); err != nil {
		return nil, err
	}
	return unsafe.Pointer(out), nil
}

// DLPackUnversioned is the same as a DLManagedTensor, which cannot say read-only.
func (t *Tensor) DLPackUnversioned() (unsafe.Pointer, error) {
	p, err := t.c()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(t)
	var out *C.DLManagedTensor
	if err := failure(C.dtg_tensor_to_dlpack_unversioned(p, &out)); err != nil {
		return nil, err
	}
	return unsafe.Pointer(out), nil
}
