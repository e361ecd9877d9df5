// Error: what went wrong, copied out of the library's error, which is released at once. Immutable; any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Error is what a failed call returns. Code and Message are those of the C ABI.
type Error struct {
	Code    Code
	Message string // what was attempted, on what, what was found and what to try
	Node    string // the graph node that failed, or ""
	Task    string // the task that found the failure, "/job:ps/task:0", or ""
	Peer    string // the other end of the connection that failed, or the first of those waited for; or ""
	Phase   string // "build", "place", "prepare", "feed", "run", "connect", "listen", "recover", "form" (a group), or ""
}

// Error is the name of the code and the message.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Is holds for the Code of the error, so that errors.Is(err, ErrNotFound) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// failure copies an error of the library and releases it; nil for NULL.
func failure(failed *C.dtg_error) error {
	if failed == nil {
		return nil
	}
	var f C.dtg_go_failure
	C.dtg_go_read_error(failed, &f)
	e := &Error{
		Code:    Code(f.code),
		Message: inGo(C.GoStringN(f.message, C.int(f.message_len))),
		Node:    C.GoString(f.node),
		Task:    C.GoString(f.task),
		Peer:    C.GoString(f.peer),
		Phase:   C.GoString(f.phase),
	}
	C.dtg_error_release(failed)
	return e
}

// invalid is an error that the binding itself finds.
func invalid(format string, args ...any) error {
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// ended turns the end of a run that was cancelled because its context ended into that context's error, which stays around
// the library's.
func ended(ctx context.Context, err error, deadlineOfContext bool) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, ErrCancelled):
		// The library was told to stop, and not why.
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, late(err))
	case ctx.Err() != nil && (errors.Is(err, ErrCancelled) || errors.Is(err, ErrDeadlineExceeded)):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case deadlineOfContext && errors.Is(err, ErrDeadlineExceeded):
		// The library's clock was a little ahead of the context's timer.
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// late is the same error, as one whose time is over.
func late(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	over := *e
	over.Code = DeadlineExceeded
	return &over
}

// text copies a string of the library and releases it.
func text(s *C.dtg_string) string {
	var length C.size_t
	data := C.dtg_string_data(s, &length)
	out := string(unsafe.Slice((*byte)(unsafe.Pointer(data)), int(length)))
	C.dtg_string_release(s)
	return out
}

// place is where the caller of this package stands, "train.go:42": the first frame that is not of this package.
func place() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if !isOurs(frame.Function) {
			return fmt.Sprintf("%s:%d", base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

const ours = "github.com/dtg-project/dtg/bindings/go."

func isOurs(function string) bool { return len(function) > len(ours) && function[:len(ours)] == ours }

func base(file string) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' {
			return file[i+1:]
		}
	}
	return file
}
