// What one run feeds, fetches and runs, and its synchronous form. Any goroutine.

package dtg

// #cgo noescape dtg_go_run
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// Arg is a part of what a run is asked: Feed, FeedSlice, FeedScalar, Fetch, FetchSlice, FetchTensor, Target, Timeout,
// Write.
type Arg func(*request) error

// request is one run. It belongs to the goroutine that makes it, and then to its Run.
type request struct {
	graph   *graphState // for names; nil: not known
	feeds   []Value
	tensors []*C.dtg_tensor // one per feed
	given   []*Tensor       // those of the caller, kept alive
	made    []*Tensor       // those of this run, closed at its end
	loans   []*loan
	fetches []Value
	into    []*Tensor   // one per fetch: where the value goes; nil: into a new tensor
	wanted  []C.int32_t // one per fetch: its type, C.DTG_GO_SCALAR added for one element; 0: any
	take    []func(*Tensor) error
	targets []Value
	timeout time.Duration
	write   *uint64 // nil: nobody asks
}

// Feed gives v the value t during the run, which cuts what would compute it. Nobody may write to t meanwhile.
func Feed(v Value, t *Tensor) Arg {
	return func(r *request) error {
		p, err := t.c()
		if err != nil {
			return r.ofFeed(v, err)
		}
		r.feeds, r.tensors, r.given = append(r.feeds, v), append(r.tensors, p), append(r.given, t)
		return nil
	}
}

// FeedSlice gives v these elements; without a shape they are a vector. Up to 64 KiB are copied; more is used where it lies, so nobody
// may write to data until the run has ended.
func FeedSlice[T Element](v Value, data []T, shape ...int64) Arg {
	return func(r *request) error {
		if shape == nil {
			shape = Shape{int64(len(data))}
		}
		if err := fits[T](len(data), shape); err != nil {
			return r.ofFeed(v, err)
		}
		if unsafe.Sizeof(data[0])*uintptr(len(data)) > lendAbove {
			return r.lend(v, DTypeOf[T](), shape, unsafe.Pointer(&data[0]), len(data)*int(unsafe.Sizeof(data[0])))
		}
		return r.feedCopy(v, func() (*Tensor, error) { return tensorOf(data, shape) })
	}
}

// FeedScalar gives v a value without dimensions.
func FeedScalar[T Element](v Value, value T) Arg {
	return func(r *request) error {
		return r.feedCopy(v, func() (*Tensor, error) { return ScalarTensor(value) })
	}
}

func (r *request) feedCopy(v Value, make func() (*Tensor, error)) error {
	t, err := make()
	if err != nil {
		return r.ofFeed(v, err)
	}
	r.made = append(r.made, t)
	r.feeds, r.tensors = append(r.feeds, v), append(r.tensors, (*C.dtg_tensor)(unsafe.Pointer(t.pointer.Load())))
	return nil
}

// ofFeed is err, which a feed has before the run begins, with the name of the value that was to be fed.
func (r *request) ofFeed(v Value, err error) error {
	return r.of(fmt.Sprintf("feed number %d", len(r.feeds)), v, err)
}

// of is err, which what, the number of v, has, with the name of v.
func (r *request) of(what string, v Value, err error) error {
	name := r.graph.nameOf(v)
	if name != "" {
		what += fmt.Sprintf(", %q", name)
	}
	found, ok := err.(*Error)
	if !ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	of := *found
	of.Message = what + ": " + of.Message
	if of.Node == "" {
		of.Node, _, _ = strings.Cut(name, ":")
	}
	return &of
}

// refuse is an argument that no run takes.
func refuse(why string) Arg {
	return func(*request) error { return invalid("%s", why) }
}

// Fetch writes the value of v, a scalar, to *into when the run has ended well. Where the graph knows v to be no T, or no scalar, nothing
// runs; where only the run shows how many elements there are, the run was made, its targets too.
func Fetch[T Element](v Value, into *T) Arg {
	if into == nil {
		return refuse("Fetch: the place for the value is nil")
	}
	return fetch(v, nil, C.int32_t(DTypeOf[T]())|C.DTG_GO_SCALAR, func(t *Tensor) (err error) {
		defer t.Close()
		if t.DType() == DTypeOf[T]() && t.Len() != 1 {
			return invalid("it is %v %v and is to be written to one %v: take FetchSlice; the run was made", t.DType(), t.Shape(), DTypeOf[T]())
		}
		*into, err = Scalar[T](t)
		return err
	})
}

// FetchSlice writes a copy of the elements of v to *into, reusing its memory where that is enough. Where v is no T nothing runs.
func FetchSlice[T Element](v Value, into *[]T) Arg {
	if into == nil {
		return refuse("FetchSlice: the place for the elements is nil")
	}
	return fetch(v, nil, C.int32_t(DTypeOf[T]()), func(t *Tensor) error {
		defer t.Close()
		view, err := View[T](t)
		if err == nil {
			*into = append((*into)[:0], view...)
		}
		return err
	})
}

// FetchTensor gives the value of v as a tensor: a new one, which the caller closes, where *into is nil. Otherwise the value is
// written into that tensor, whose type and shape must fit; after a failed run it may hold anything.
func FetchTensor(v Value, into **Tensor) Arg {
	if into == nil {
		return refuse("FetchTensor: the place for the tensor is nil")
	}
	return func(r *request) error {
		given := *into
		if given != nil {
			if _, err := given.c(); err != nil {
				return err
			}
		}
		return fetch(v, given, 0, func(t *Tensor) error {
			*into = t
			return nil
		})(r)
	}
}

func fetch(v Value, into *Tensor, wanted C.int32_t, take func(*Tensor) error) Arg {
	return func(r *request) error {
		if into != nil && slices.Contains(r.into, into) {
			return invalid("fetch two values into one tensor: each needs its own")
		}
		r.fetches, r.into, r.take = append(r.fetches, v), append(r.into, into), append(r.take, take)
		r.wanted = append(r.wanted, wanted)
		return nil
	}
}

// Target runs the nodes of these values.
func Target(values ...Value) Arg {
	return func(r *request) error {
		r.targets = append(r.targets, values...)
		return nil
	}
}

// Timeout bounds the run, as a deadline of its context does. 0: the session's default.
func Timeout(d time.Duration) Arg {
	return func(r *request) error {
		r.timeout = d
		return nil
	}
}

// Write gives *number the number by which the cluster knows what the run updates, also where the run fails: Session.Outcome asks by it what
// took place. Of RunAsync it is there when that returns. Where *number is not 0, the run repeats that earlier one of the session, and what
// took place of it is not made again:
//
//	var number uint64
//	err := s.Run(ctx, dtg.Target(train), dtg.Write(&number))
//	for errors.Is(err, dtg.ErrUnavailable) { // the step is made once, however often it is tried
//		time.Sleep(time.Second)
//		err = s.Run(ctx, dtg.Target(train), dtg.Write(&number))
//	}
//
// Only runs that update variables of other tasks, and nothing of their own, can be repeated; one that puts into a queue or an accumulator, or
// fetches what an update gives, is then refused with FailedPrecondition. A number that the session has not made is InvalidArgument.
func Write(number *uint64) Arg {
	if number == nil {
		return refuse("Write: the place for the number is nil")
	}
	return func(r *request) error {
		r.write = number
		return nil
	}
}

// Run runs what args say and returns when everything has ended. The end of ctx cancels the run; the error is then
// ctx.Err() around the library's. The run is one call on this thread; to watch a context that can end costs about a microsecond more.
// Errors: InvalidArgument (nothing asked for, an unfed placeholder, a wrong type or shape), Unimplemented,
// FailedPrecondition (a variable without value, a closed session), DeadlineExceeded, Cancelled, OutOfRange (the end of a
// queue), or what the op that failed says; Error.Node names it.
func (s *Session) Run(ctx context.Context, args ...Arg) error {
	if err := begun(ctx); err != nil {
		return err
	}
	r := &request{}
	if s != nil {
		r.graph = s.graph
	}
	defer r.end()
	if err := r.read(args); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return s.run(r, nanoseconds(r.timeout), nil)
	}
	return until(ctx, r.timeout, func(timeout C.int64_t, cancellation *C.dtg_cancellation) error {
		return s.run(r, timeout, cancellation)
	})
}

// read gathers the args.
func (r *request) read(args []Arg) error {
	for i, arg := range args {
		if arg == nil {
			return invalid("argument %d of the run is nil; give one", i)
		}
		if err := arg(r); err != nil {
			return err
		}
	}
	return nil
}

// run is one crossing.
func (s *Session) run(r *request, timeout C.int64_t, cancellation *C.dtg_cancellation) error {
	p, err := s.c()
	if err != nil {
		return err
	}
	fetched := make([]*C.dtg_tensor, len(r.fetches))
	for i, t := range r.into {
		if t == nil {
			continue
		}
		if fetched[i], err = t.c(); err != nil {
			return err
		}
	}
	feeds, numFeeds := valuesOf(r.feeds)
	fetches, numFetches := valuesOf(r.fetches)
	targets, numTargets := valuesOf(r.targets)
	var found C.dtg_go_mismatch
	err = failure(C.dtg_go_run(p, feeds, unsafe.SliceData(r.tensors), numFeeds, fetches, unsafe.SliceData(fetched), numFetches, targets,
		numTargets, timeout, (*C.uint64_t)(r.write), cancellation, s.graph.peek(), unsafe.SliceData(r.wanted), &found))
	runtime.KeepAlive(s)
	runtime.KeepAlive(r)
	if err == nil && found.at >= 0 {
		err = r.mismatch(s, &found)
	}
	if err != nil {
		return err
	}
	return r.deliver(fetched)
}

// check refuses what a run of s would refuse before it begins, for runs that begin elsewhere.
func (r *request) check(s *Session) error {
	if s == nil {
		return nil // the run says so
	}
	var found C.dtg_go_mismatch
	fetches, numFetches := valuesOf(r.fetches)
	ok := C.dtg_go_are_wanted(s.graph.peek(), fetches, unsafe.SliceData(r.wanted), numFetches, &found) != 0
	runtime.KeepAlive(s)
	if ok {
		return nil
	}
	return r.mismatch(s, &found)
}

// mismatch is the error of a fetch that the graph knows to be something else than what it is to be written to.
func (r *request) mismatch(s *Session, found *C.dtg_go_mismatch) error {
	wanted, dtype := DType(r.wanted[found.at]&^C.DTG_GO_SCALAR), DType(found.dtype)
	name := s.graph.nameOf(r.fetches[found.at])
	shape := Shape(nil)
	for i := range min(int(found.rank), len(found.dims)) {
		shape = append(shape, int64(found.dims[i]))
	}
	what := fmt.Sprintf("fetch number %d, %q, is %v %v", found.at, name, dtype, shape)
	if dtype != wanted {
		return invalid("%s and is to be written to %v: fetch it as %v, or add a Cast; nothing has run", what, wanted, dtype)
	}
	return invalid("%s and is to be written to one %v: take FetchSlice; nothing has run", what, wanted)
}

// deliver hands fetched tensors to who asked for them; all are taken, whatever fails.
func (r *request) deliver(fetched []*C.dtg_tensor) (err error) {
	for i, pointer := range fetched {
		t := r.into[i]
		if t == nil {
			t = wrapTensor(pointer)
		}
		if failed := r.take[i](t); failed != nil && err == nil {
			err = r.of(fmt.Sprintf("fetch number %d", i), r.fetches[i], failed)
		}
	}
	return err
}

// end gives back what the run has borrowed and made.
func (r *request) end() {
	for _, t := range r.made {
		t.Close()
	}
	r.made, r.given = nil, nil
	for _, l := range r.loans {
		l.end()
	}
	r.loans = nil
}
