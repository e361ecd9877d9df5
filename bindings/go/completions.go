// completions: the one queue of the process in which asynchronous runs announce their ends, and the goroutine that empties it.
// It is made by the first such run and stays. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"log/slog"
	"sync"
	"unsafe"
)

var completions completionQueue

type completionQueue struct {
	sync.Mutex
	queue   *C.dtg_cq
	next    uint64
	pending map[uint64]*Op
}

// expect enters an op before its run starts: the end may come before the start has returned.
func (q *completionQueue) expect(o *Op) (*C.dtg_cq, uint64, error) {
	q.Lock()
	defer q.Unlock()
	if q.queue == nil {
		if err := failure(C.dtg_cq_create(&q.queue)); err != nil {
			return nil, 0, err
		}
		q.pending = map[uint64]*Op{}
		go q.drain()
	}
	q.next++
	q.pending[q.next] = o
	return q.queue, q.next, nil
}

// forget takes out an op whose run did not start.
func (q *completionQueue) forget(tag uint64) *Op {
	q.Lock()
	defer q.Unlock()
	o := q.pending[tag]
	delete(q.pending, tag)
	return o
}

// drain waits for completions for as long as the process lives.
func (q *completionQueue) drain() {
	var batch [64]C.dtg_completion
	for {
		var count C.size_t
		err := failure(C.dtg_cq_next(q.queue, &batch[0], C.size_t(unsafe.Sizeof(batch[0])), C.size_t(len(batch)), C.DTG_INFINITE, &count))
		if err != nil {
			slog.Error("dtg: the completion queue failed; asynchronous runs will not be seen to end", "error", err)
			return
		}
		for i := range batch[:count] {
			if o := q.forget(uint64(batch[i].tag)); o != nil {
				o.finish(failure(batch[i].error))
			} else {
				C.dtg_error_release(batch[i].error)
			}
			batch[i] = C.dtg_completion{}
		}
	}
}

// finish tells who waits that the run has ended.
func (o *Op) finish(err error) {
	o.failed = err
	o.request.end()
	close(o.done)
}
