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
	pending map[uint64]*Run
}

// expect enters a run before it starts: the end may come before the start has returned.
func (q *completionQueue) expect(r *Run) (*C.dtg_cq, uint64, error) {
	q.Lock()
	defer q.Unlock()
	if q.queue == nil {
		if err := failure(C.dtg_cq_create(&q.queue)); err != nil {
			return nil, 0, err
		}
		q.pending = map[uint64]*Run{}
		go q.drain()
	}
	q.next++
	q.pending[q.next] = r
	return q.queue, q.next, nil
}

// forget takes out a run that did not start.
func (q *completionQueue) forget(tag uint64) *Run {
	q.Lock()
	defer q.Unlock()
	run := q.pending[tag]
	delete(q.pending, tag)
	return run
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
			if run := q.forget(uint64(batch[i].tag)); run != nil {
				run.finish(failure(batch[i].error))
			} else {
				C.dtg_error_release(batch[i].error)
			}
			batch[i] = C.dtg_completion{}
		}
	}
}

// finish tells who waits that the run has ended.
func (r *Run) finish(err error) {
	r.failed = err
	r.request.end()
	close(r.done)
}
