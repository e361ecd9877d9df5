// loan: Go memory that a run reads where it lies. It stays pinned until the library has said that it does not need it any
// more, which is nearly always before the run's end is known. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// What is longer than this is lent, not copied: copying 64 KiB costs some 4 µs, pinning less than one.
const lendAbove = 64 << 10

type loan struct {
	pinner   runtime.Pinner
	returned *C.int32_t // in C's memory; 1: the library does not need it any more
	tensor   *C.dtg_tensor
}

// overdue are loans that had not come back when their run ended; they are looked at again at the next loan.
var overdue struct {
	sync.Mutex
	loans []*loan
}

func (r *request) lend(v Value, dtype DType, shape Shape, data unsafe.Pointer, nbytes int) error {
	collectOverdue()
	l := &loan{returned: (*C.int32_t)(C.calloc(1, C.sizeof_int32_t))}
	l.pinner.Pin(data)
	err := failure(C.dtg_go_tensor_lend(C.dtg_dtype(dtype), (*C.int64_t)(unsafe.SliceData(shape)), C.size_t(len(shape)), data,
		C.size_t(nbytes), l.returned, &l.tensor))
	if err != nil {
		l.settle()
		return r.ofFeed(v, err)
	}
	r.loans = append(r.loans, l)
	r.feeds, r.tensors = append(r.feeds, v), append(r.tensors, l.tensor)
	return nil
}

// end drops the tensor and, where the library has let go of the memory too, the pin.
func (l *loan) end() {
	C.dtg_tensor_release(l.tensor)
	if C.dtg_go_is_returned(l.returned) != 0 {
		l.settle()
		return
	}
	overdue.Lock()
	overdue.loans = append(overdue.loans, l)
	overdue.Unlock()
}

func (l *loan) settle() {
	l.pinner.Unpin()
	C.free(unsafe.Pointer(l.returned))
}

func collectOverdue() {
	overdue.Lock()
	defer overdue.Unlock()
	kept := overdue.loans[:0]
	for _, l := range overdue.loans {
		if C.dtg_go_is_returned(l.returned) != 0 {
			l.settle()
		} else {
			kept = append(kept, l)
		}
	}
	clear(overdue.loans[len(kept):])
	overdue.loans = kept
}
