// cancelling ties a call that waits inside the library to a context. It belongs to the goroutine that makes the call.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"time"
)

// cancelling is a cancellation of the library that the end of a context uses. One for each call: nothing that comes late can meet the next.
type cancelling struct {
	pointer *C.dtg_cancellation
	stop    func() bool
	told    sync.WaitGroup
}

// given refuses the context that is nil, which most methods would panic on.
func given(ctx context.Context) error {
	if ctx == nil {
		return invalid("the context is nil; give one")
	}
	return nil
}

// begun is why a call must not begin: there is no context, or it has ended.
func begun(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return err
	}
	return tooLate(ctx)
}

// cancelledBy begins to watch ctx. The caller closes what it gets when the call is over.
func cancelledBy(ctx context.Context) (*cancelling, error) {
	c := &cancelling{}
	if err := failure(C.dtg_cancellation_create(&c.pointer)); err != nil {
		return nil, err
	}
	c.told.Add(1)
	c.stop = context.AfterFunc(ctx, func() {
		C.dtg_cancellation_cancel(c.pointer)
		c.told.Done()
	})
	return c, nil
}

// close stops watching. Where the context has ended it waits until the library was told of it: no call of ours is under way any more.
func (c *cancelling) close() {
	if !c.stop() {
		c.told.Wait()
	}
	C.dtg_cancellation_release(c.pointer)
}

// until makes a call that the end of ctx cancels; timeout becomes what is left of ctx, where that is less.
func until(ctx context.Context, timeout time.Duration, call func(C.int64_t, *C.dtg_cancellation) error) error {
	if err := begun(ctx); err != nil {
		return err
	}
	deadline := boundBy(ctx, &timeout)
	watch, err := cancelledBy(ctx)
	if err != nil {
		return err
	}
	defer watch.close()
	return ended(ctx, call(nanoseconds(timeout), watch.pointer), deadline)
}
