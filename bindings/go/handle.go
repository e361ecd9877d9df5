// handle: what every object of the library is in Go: a pointer that is given up once, and a net under those that nobody closed.
// Any goroutine; closing while another goroutine uses the object ends as the C ABI says: the call goes on, or is refused.

package dtg

// #include "shim.h"
import "C"

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// kind is a type of object: its name, as in the library's messages, what makes one, and how a reference is dropped.
type kind struct {
	name    string
	maker   string
	release func(unsafe.Pointer)
}

// absent is the error of a zero object, which nobody has opened.
func (k *kind) absent() error {
	return invalid("this is not an open %s: it was never opened; make one with %s", k.name, k.maker)
}

// handle holds one reference of an object of the library. Zero: never opened.
type handle struct {
	pointer atomic.Pointer[byte]
	opened  atomic.Bool
	net     runtime.Cleanup
}

// leak is what remains to be done for an object that was never closed.
type leak struct {
	kind    *kind
	pointer unsafe.Pointer
	made    *stack // nil: not noted
}

// open takes over a reference. The net below it is no way to close things: when it catches something, it says so.
// Where the object was made is noted, and looked up only then.
func (h *handle) open(k *kind, pointer unsafe.Pointer) {
	made := here(2)
	h.openMade(k, pointer, &made)
}

func (h *handle) openMade(k *kind, pointer unsafe.Pointer, made *stack) {
	h.opened.Store(true)
	h.pointer.Store((*byte)(pointer))
	h.net = runtime.AddCleanup(h, caught, leak{k, pointer, made})
}

func caught(l leak) {
	made := "not noted for this one"
	if l.made != nil {
		_, made = caller(*l.made)
	}
	slog.Warn("dtg: an object was never closed; it is released now", "object", l.kind.name, "made", made)
	l.kind.release(l.pointer)
}

// get is the pointer, or the error of a closed object, in the library's words. The caller keeps the object alive during the call.
func (h *handle) get(k *kind) (unsafe.Pointer, error) {
	if h == nil {
		return nil, invalid("the %s is nil; make one first", k.name)
	}
	if pointer := h.pointer.Load(); pointer != nil {
		return unsafe.Pointer(pointer), nil
	}
	if !h.opened.Load() {
		return nil, k.absent()
	}
	return nil, invalid("this is not an open %s: it was closed", k.name)
}

// close drops the reference, once.
func (h *handle) close(k *kind) {
	if pointer := h.pointer.Swap(nil); pointer != nil {
		h.net.Stop()
		k.release(unsafe.Pointer(pointer))
	}
	runtime.KeepAlive(h)
}

// loaded says, once, whether the library that was loaded is one that this package was written for.
var loaded = sync.OnceValue(func() error {
	version := uint32(C.dtg_abi_version())
	if version>>16 == C.DTG_VERSION_MAJOR && version&0xffff >= C.DTG_VERSION_MINOR {
		return nil
	}
	return &Error{Code: FailedPrecondition, Message: "the libdtg.so that was loaded is version " + Version() +
		", which is older than the headers that this program was built with, or of another major version; install a newer one"}
})
