// Run: an asynchronous run. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

var runKind = &kind{"run", "Session.RunAsync", func(p unsafe.Pointer) { C.dtg_run_release((*C.dtg_run)(p)) }}

// Run is a run that no thread waits for. Wait for it, or Close it: the run then goes on and its results are dropped.
type Run struct {
	handle
	session *Session
	request *request
	done    chan struct{}
	failed  error // valid when done is closed
	once    sync.Once
	result  error // of taking the results, and of the context that cancelled the run
	ender   atomic.Pointer[context.Context]
}

// RunAsync starts a run and returns at once. What the args fetch is there when Wait has returned nil. Errors: those found before
// the run starts.
func (s *Session) RunAsync(args ...Arg) (*Run, error) {
	r := &request{}
	if s != nil {
		r.graph = s.graph
	}
	if err := r.read(args); err != nil {
		r.end()
		return nil, err
	}
	if err := r.check(s); err != nil {
		r.end()
		return nil, err
	}
	return s.launch(r, func(p *C.dtg_session, queue *C.dtg_cq, tag C.uint64_t, out **C.dtg_run) *C.dtg_error {
		feeds, numFeeds := valuesOf(r.feeds)
		fetches, numFetches := valuesOf(r.fetches)
		targets, numTargets := valuesOf(r.targets)
		return C.dtg_go_run_async(p, feeds, unsafe.SliceData(r.tensors), numFeeds, fetches, numFetches, targets, numTargets,
			nanoseconds(r.timeout), (*C.uint64_t)(r.write), queue, tag, out)
	})
}

// RunRepeatedly runs the targets again and again, one run after the other and without a thread that waits, until a run fails, it
// is cancelled or the session is closed: TensorFlow's queue runner. Its end is never nil: Cancelled is the good one.
func (s *Session) RunRepeatedly(targets ...Value) (*Run, error) {
	return s.launch(&request{}, func(p *C.dtg_session, queue *C.dtg_cq, tag C.uint64_t, out **C.dtg_run) *C.dtg_error {
		data, count := valuesOf(targets)
		return C.dtg_session_run_repeatedly(p, data, count, queue, tag, out)
	})
}

func (s *Session) launch(r *request, begin func(*C.dtg_session, *C.dtg_cq, C.uint64_t, **C.dtg_run) *C.dtg_error) (*Run, error) {
	p, err := s.c()
	if err != nil {
		r.end()
		return nil, err
	}
	run := &Run{session: s, request: r, done: make(chan struct{})}
	queue, tag, err := completions.expect(run)
	if err != nil {
		r.end()
		return nil, err
	}
	var out *C.dtg_run
	err = failure(begin(p, queue, C.uint64_t(tag), &out))
	runtime.KeepAlive(s)
	runtime.KeepAlive(r)
	if err != nil {
		completions.forget(tag)
		r.end()
		return nil, err
	}
	run.open(runKind, unsafe.Pointer(out))
	return run, nil
}

// Cancel ends the run soon with Cancelled, unless it ends by itself first. Any number of times.
func (r *Run) Cancel() {
	if p, err := r.c(); err == nil {
		C.dtg_run_cancel(p)
	}
	runtime.KeepAlive(r)
}

// c is the handle for a call.
func (r *Run) c() (*C.dtg_run, error) {
	if r == nil {
		return nil, invalid("the run is nil; make one first")
	}
	p, err := r.get(runKind)
	return (*C.dtg_run)(p), err
}

// over is what Done gives where there is no run to wait for.
var over = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// Done is closed when the run has ended; of a nil or zero Run it is closed already, and Wait says why.
func (r *Run) Done() <-chan struct{} {
	if r == nil || r.done == nil {
		return over
	}
	return r.done
}

// Wait waits for the end of the run and delivers what it fetched. The end of ctx cancels the run; Wait then still waits for the
// run's end, which is soon, and the error is ctx.Err() around the library's. May be called again, with another context too: it answers the
// same.
func (r *Run) Wait(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return err
	}
	if r == nil || r.done == nil { // nothing would ever end it
		_, err := r.c()
		return err
	}
	if ctx.Done() != nil {
		cancelled := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(cancelled)
			select {
			case <-r.done: // too late to end it
			default:
				r.ender.CompareAndSwap(nil, &ctx)
				r.Cancel()
			}
		})
		// Whoever got the answer may count open objects: no call of ours is under way any more.
		defer func() {
			if !stop() {
				<-cancelled
			}
		}()
	}
	<-r.done
	r.once.Do(func() {
		if by := r.ender.Load(); by != nil {
			ctx = *by
		}
		r.result = ended(ctx, r.collect(), false)
	})
	return r.result
}

// collect takes the results and drops the handle.
func (r *Run) collect() error {
	defer r.close(runKind)
	if r.failed != nil {
		return r.failed
	}
	asked := r.request
	p, err := r.c()
	if err != nil {
		return err
	}
	results := make([]*C.dtg_tensor, len(asked.fetches))
	err = failure(C.dtg_go_take(p, unsafe.SliceData(results), C.size_t(len(results))))
	if err != nil {
		return err
	}
	for i, into := range asked.into {
		if into == nil {
			continue
		}
		err = into.overwrite(wrapTensor(results[i]))
		results[i] = nil
		if err != nil {
			for _, rest := range results { // those before it too: nobody gets any
				if rest != nil {
					C.dtg_tensor_release(rest)
				}
			}
			return err
		}
	}
	return asked.deliver(results)
}

// overwrite copies the elements of from, which it closes: what a synchronous run does where a tensor is given.
func (t *Tensor) overwrite(from *Tensor) error {
	defer from.Close()
	if _, err := t.c(); err != nil {
		return err
	}
	if t.readOnly {
		return invalid("fetch into a tensor: its memory came in read-only")
	}
	if t.dtype != from.dtype || t.nbytes != from.nbytes || len(t.shape) != len(from.shape) {
		return invalid("fetch into a tensor of %v %v: the value is %v %v", t.dtype, t.shape, from.dtype, from.shape)
	}
	for i, d := range t.shape {
		if d != from.shape[i] {
			return invalid("fetch into a tensor of %v %v: the value is %v %v", t.dtype, t.shape, from.dtype, from.shape)
		}
	}
	copy(t.bytes(), from.bytes())
	runtime.KeepAlive(t)
	return nil
}

// Close drops the handle; a run under way goes on. Closing twice, and after Wait, is fine.
func (r *Run) Close() error {
	if r != nil {
		r.close(runKind)
	}
	return nil
}
