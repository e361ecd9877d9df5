// Callable: a run with feeds, fetches and targets fixed. Any goroutine.

package dtg

// #cgo noescape dtg_go_call
// #cgo noescape dtg_go_call_few
// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

var callableKind = &kind{"callable", "Session.Prepare", func(p unsafe.Pointer) { C.dtg_callable_release((*C.dtg_callable)(p)) }}

// Signature is what a Callable is asked every time.
type Signature struct {
	Feeds   []Value
	Fetches []Value
	Targets []Value
}

// Callable is a run for calling many times with as little in between as possible.
type Callable struct{ handle }

// Prepare makes a callable. It keeps what it needs of the session.
func (s *Session) Prepare(what Signature) (*Callable, error) {
	p, err := s.c()
	if err != nil {
		return nil, err
	}
	feeds, numFeeds := valuesOf(what.Feeds)
	fetches, numFetches := valuesOf(what.Fetches)
	targets, numTargets := valuesOf(what.Targets)
	var out *C.dtg_callable
	err = failure(C.dtg_go_prepare(p, feeds, numFeeds, fetches, numFetches, targets, numTargets, &out))
	runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	c := &Callable{}
	c.open(callableKind, unsafe.Pointer(out))
	return c, nil
}

// Close drops the callable. Closing twice is fine.
func (c *Callable) Close() error {
	if c != nil {
		c.close(callableKind)
	}
	return nil
}

// Run runs the callable with one tensor per prepared feed and one entry of fetched per prepared fetch: nil receives a new
// tensor, which the caller closes; a tensor is written into, its type and shape must fit. It is one crossing on this thread; with a context
// that can end, some more to watch it, about a microsecond. The end of ctx cancels the run, and the error is then ctx.Err() around the
// library's. Errors: as Session.Run.
func (c *Callable) Run(ctx context.Context, feeds, fetched []*Tensor) error {
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return c.call(feeds, fetched, 0, nil)
	}
	return until(ctx, 0, func(timeout C.int64_t, cancellation *C.dtg_cancellation) error {
		return c.call(feeds, fetched, timeout, cancellation)
	})
}

// c is the handle for a call.
func (c *Callable) c() (*C.dtg_callable, error) {
	if c == nil {
		return nil, invalid("the callable is nil; make one first")
	}
	p, err := c.get(callableKind)
	return (*C.dtg_callable)(p), err
}

func (c *Callable) call(feeds, fetched []*Tensor, timeout C.int64_t, cancellation *C.dtg_cancellation) error {
	p, err := c.c()
	if err != nil {
		return err
	}
	in, fewIn, err := fewHandles(feeds)
	if err != nil {
		return err
	}
	out, fewOut, err := fewHandles(fetched)
	if err != nil {
		return err
	}
	if !fewIn || !fewOut {
		return c.callMany(p, feeds, fetched, timeout, cancellation)
	}
	failed := C.dtg_go_call_few(C.uintptr_t(uintptr(unsafe.Pointer(p))), C.size_t(len(feeds)), in[0], in[1], in[2], in[3],
		C.size_t(len(fetched)), out[0], out[1], out[2], out[3], timeout, C.uintptr_t(uintptr(unsafe.Pointer(cancellation))))
	runtime.KeepAlive(c)
	runtime.KeepAlive(feeds)
	runtime.KeepAlive(fetched)
	if failed != nil {
		return failure(failed)
	}
	return nil
}

// fewHandles is the handles of up to four tensors; false when there are more, or one is nil.
func fewHandles(tensors []*Tensor) (out [4]C.uintptr_t, few bool, err error) {
	if len(tensors) > len(out) {
		return out, false, nil
	}
	for i, t := range tensors {
		if t == nil {
			return out, false, nil
		}
		p, err := t.get(tensorKind)
		if err != nil {
			return out, false, err
		}
		out[i] = C.uintptr_t(uintptr(p))
	}
	return out, true, nil
}

// callMany is call for any number of tensors, and for results that make new ones.
func (c *Callable) callMany(p *C.dtg_callable, feeds, fetched []*Tensor, timeout C.int64_t, cancellation *C.dtg_cancellation) error {
	in, err := pointersOf(make([]*C.dtg_tensor, 0, len(feeds)), feeds, false)
	if err != nil {
		return err
	}
	out, err := pointersOf(make([]*C.dtg_tensor, 0, len(fetched)), fetched, true)
	if err != nil {
		return err
	}
	failed := C.dtg_go_call(p, unsafe.SliceData(in), C.size_t(len(in)), unsafe.SliceData(out), C.size_t(len(out)), timeout,
		cancellation)
	runtime.KeepAlive(c)
	runtime.KeepAlive(feeds)
	runtime.KeepAlive(fetched)
	if failed != nil {
		return failure(failed)
	}
	for i, t := range fetched {
		if t == nil {
			fetched[i] = wrapTensor(out[i])
		}
	}
	return nil
}

// pointersOf appends the handles of tensors; nil ones become NULL where that is allowed.
func pointersOf(to []*C.dtg_tensor, tensors []*Tensor, mayBeNil bool) ([]*C.dtg_tensor, error) {
	for _, t := range tensors {
		if t == nil && mayBeNil {
			to = append(to, nil)
			continue
		}
		p, err := t.c()
		if err != nil {
			return nil, err
		}
		to = append(to, p)
	}
	return to, nil
}
