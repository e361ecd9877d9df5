// Coordinators: one program that trains with workers that are plain servers. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

var (
	coordinatorKind = &kind{"coordinator", "Session.NewCoordinator", func(p unsafe.Pointer) { C.dtg_coordinator_release((*C.dtg_coordinator)(p)) }}
	closureKind     = &kind{"closure", "Coordinator.Prepare", func(p unsafe.Pointer) { C.dtg_closure_release((*C.dtg_closure)(p)) }}
	remoteValueKind = &kind{"remote value", "Coordinator.Schedule", func(p unsafe.Pointer) { C.dtg_remote_value_release((*C.dtg_remote_value)(p)) }}
)

// CoordinatorOptions are the settings of a coordinator; zero is the default of each.
type CoordinatorOptions struct {
	Job            string        // whose tasks are the workers: "worker"
	QueueCapacity  int64         // closures that may wait before Schedule does: 262,144
	ClosureTimeout time.Duration // of one attempt at a closure: the session's
	WorkerTimeout  time.Duration // how long a lost worker is looked for, where no other is left: 1 hour
	ServerTimeout  time.Duration // how long a task that is no worker is looked for: 30 s
	ClosureLosses  int           // so many workers may be lost at one closure: 3
}

// Coordinator gives closures out to the workers of a session's cluster, one at a time to each. A worker that is lost gives its closure
// back, another one takes it, and what it changes on parameter servers counts once.
type Coordinator struct{ handle }

// Closure is a part of the graph that a worker is to run. It belongs to its coordinator.
type Closure struct {
	handle
	fetches int
}

// RemoteValue is a closure that was scheduled, and what comes of it.
type RemoteValue struct {
	handle
	fetches int
}

// NewCoordinator makes a coordinator for the workers of the session's cluster; options may be nil. Errors: FailedPrecondition (a local
// session; nobody to work).
func (s *Session) NewCoordinator(options *CoordinatorOptions) (*Coordinator, error) {
	session, err := s.c()
	if err != nil {
		return nil, err
	}
	var p pins
	defer p.Unpin()
	o := C.dtg_coordinator_options{struct_size: C.sizeof_dtg_coordinator_options}
	if options != nil {
		o.job, o.job_len = p.text(options.Job)
		o.queue_capacity = C.int64_t(options.QueueCapacity)
		o.closure_timeout_ns = nanoseconds(options.ClosureTimeout)
		o.worker_timeout_ns = nanoseconds(options.WorkerTimeout)
		o.server_timeout_ns = nanoseconds(options.ServerTimeout)
		o.closure_losses = C.int64_t(options.ClosureLosses)
	}
	var out *C.dtg_coordinator
	err = failure(C.dtg_coordinator_create(session, &o, &out))
	runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{}
	c.open(coordinatorKind, unsafe.Pointer(out))
	return c, nil
}

func (c *Coordinator) c() (*C.dtg_coordinator, error) {
	if c == nil {
		return nil, invalid("the coordinator is nil; make one first")
	}
	p, err := c.get(coordinatorKind)
	return (*C.dtg_coordinator)(p), err
}

// Close ends what was scheduled with Cancelled, and drops the coordinator. Closing twice is fine.
func (c *Coordinator) Close() error {
	if c != nil {
		c.close(coordinatorKind)
	}
	return nil
}

// Prepare says what a closure does. Worker, unless it is the zero Value, is an int64 scalar that is fed with the number of the worker that
// takes it.
func (c *Coordinator) Prepare(what Signature, worker Value) (*Closure, error) {
	p, err := c.c()
	if err != nil {
		return nil, err
	}
	feeds, numFeeds := valuesOf(what.Feeds)
	fetches, numFetches := valuesOf(what.Fetches)
	targets, numTargets := valuesOf(what.Targets)
	var out *C.dtg_closure
	err = failure(C.dtg_go_closure(p, feeds, numFeeds, fetches, numFetches, targets, numTargets, *(*C.dtg_value)(unsafe.Pointer(&worker)), &out))
	runtime.KeepAlive(c)
	if err != nil {
		return nil, err
	}
	closure := &Closure{fetches: len(what.Fetches)}
	closure.open(closureKind, unsafe.Pointer(out))
	return closure, nil
}

func (c *Closure) c() (*C.dtg_closure, error) {
	if c == nil {
		return nil, invalid("the closure is nil; make one first")
	}
	p, err := c.get(closureKind)
	return (*C.dtg_closure)(p), err
}

// Close drops the closure; what was scheduled goes on. Closing twice is fine.
func (c *Closure) Close() error {
	if c != nil {
		c.close(closureKind)
	}
	return nil
}

// CreatePerWorker runs a closure on every worker before its next one, and again on a worker that was started anew. It does not wait.
func (c *Coordinator) CreatePerWorker(closure *Closure, feeds ...*Tensor) error {
	p, err := c.c()
	if err != nil {
		return err
	}
	what, err := closure.c()
	if err != nil {
		return err
	}
	in, err := pointersOf(make([]*C.dtg_tensor, 0, len(feeds)), feeds, false)
	if err != nil {
		return err
	}
	err = failure(C.dtg_go_per_worker(p, what, unsafe.SliceData(in), C.size_t(len(in))))
	runtime.KeepAlive(c)
	runtime.KeepAlive(closure)
	runtime.KeepAlive(feeds)
	return err
}

// Schedule puts a closure into the queue, with one tensor per feed, which nobody may write to until it has ended; while the queue is full
// it waits, until ctx ends. Errors: InvalidArgument, and once that of a closure that failed before.
func (c *Coordinator) Schedule(ctx context.Context, closure *Closure, feeds ...*Tensor) (*RemoteValue, error) {
	p, err := c.c()
	if err != nil {
		return nil, err
	}
	what, err := closure.c()
	if err != nil {
		return nil, err
	}
	in, err := pointersOf(make([]*C.dtg_tensor, 0, len(feeds)), feeds, false)
	if err != nil {
		return nil, err
	}
	var out *C.dtg_remote_value
	err = until(ctx, 0, func(timeout C.int64_t, cancellation *C.dtg_cancellation) error {
		return failure(C.dtg_go_schedule(p, what, unsafe.SliceData(in), C.size_t(len(in)), timeout, cancellation, &out))
	})
	runtime.KeepAlive(c)
	runtime.KeepAlive(closure)
	runtime.KeepAlive(feeds)
	if err != nil {
		return nil, err
	}
	v := &RemoteValue{fetches: closure.fetches}
	v.open(remoteValueKind, unsafe.Pointer(out))
	return v, nil
}

// Join waits until all that was scheduled has ended, or ctx has. Errors: that of the first closure that failed, once; the others have ended
// with Cancelled then, and the coordinator can be used on.
func (c *Coordinator) Join(ctx context.Context) error {
	p, err := c.c()
	if err != nil {
		return err
	}
	err = until(ctx, 0, func(timeout C.int64_t, cancellation *C.dtg_cancellation) error {
		return failure(C.dtg_coordinator_join(p, timeout, cancellation))
	})
	runtime.KeepAlive(c)
	return err
}

// Done says whether all that was scheduled has ended. Errors as Join.
func (c *Coordinator) Done() (bool, error) {
	p, err := c.c()
	if err != nil {
		return false, err
	}
	var done C.int32_t
	err = failure(C.dtg_coordinator_done(p, &done))
	runtime.KeepAlive(c)
	return done != 0, err
}

// Cancel ends all that was scheduled with Cancelled; what it changed stays. It does not wait.
func (c *Coordinator) Cancel() error {
	p, err := c.c()
	if err != nil {
		return err
	}
	err = failure(C.dtg_coordinator_cancel(p))
	runtime.KeepAlive(c)
	return err
}

// Status is what the coordinator is at, as JSON.
func (c *Coordinator) Status() (string, error) {
	p, err := c.c()
	if err != nil {
		return "", err
	}
	var out *C.dtg_string
	err = failure(C.dtg_coordinator_status(p, &out))
	runtime.KeepAlive(c)
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// Fetch waits for the end of the closure, or of ctx, and gives what it fetched; the caller closes the tensors. Errors: that of the closure.
func (v *RemoteValue) Fetch(ctx context.Context) ([]*Tensor, error) {
	if v == nil {
		return nil, invalid("the remote value is nil; make one first")
	}
	p, err := v.get(remoteValueKind)
	if err != nil {
		return nil, err
	}
	out := make([]*C.dtg_tensor, v.fetches)
	err = until(ctx, 0, func(timeout C.int64_t, cancellation *C.dtg_cancellation) error {
		return failure(C.dtg_go_remote_fetch((*C.dtg_remote_value)(p), unsafe.SliceData(out), C.size_t(len(out)), timeout, cancellation))
	})
	runtime.KeepAlive(v)
	if err != nil {
		return nil, err
	}
	tensors := make([]*Tensor, len(out))
	for i, each := range out {
		tensors[i] = wrapTensor(each)
	}
	return tensors, nil
}

// Close drops the remote value; its closure goes on. Closing twice is fine.
func (v *RemoteValue) Close() error {
	if v != nil {
		v.close(remoteValueKind)
	}
	return nil
}

// PartitionerKind is how the number of a variable's shards is found.
type PartitionerKind int32

// The kinds.
const (
	FixedShards PartitionerKind = 0 // as many as NumShards says, never more than there are rows
	MinSize     PartitionerKind = 1 // as many as there are whole or begun pieces of ShardBytes, at most MaxShards
	MaxSize     PartitionerKind = 2 // so that none has more than ShardBytes, but at least a row
)

// Partitioner says into how many shards a variable is cut, by the rules of tf.distribute.experimental.partitioners.
type Partitioner struct {
	Kind           PartitionerKind
	Axis           int   // which dimension is cut
	NumShards      int64 // FixedShards
	ShardBytes     int64 // MinSize: 0 is 256 KiB; MaxSize
	MaxShards      int64 // MinSize: 0 is 1; MaxSize: 0 is any number
	BytesPerString int64 // what an element of strings counts; 0: 16
}

// Shards is the number of shards of a variable of that type and shape.
func (p Partitioner) Shards(dtype DType, shape Shape) (int64, error) {
	var shards C.int64_t
	err := failure(C.dtg_partitioner_shards(p.c(), C.dtg_dtype(dtype), (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(shape))), C.size_t(len(shape)), &shards))
	return int64(shards), err
}

// ShardRows is the first row of one of so many shards, and how many it has.
func ShardRows(rows, shards, shard int64) (first, count int64, err error) {
	var f, n C.int64_t
	err = failure(C.dtg_shard_rows(C.int64_t(rows), C.int64_t(shards), C.int64_t(shard), &f, &n))
	return int64(f), int64(n), err
}
