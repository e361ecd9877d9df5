// Error: what went wrong, copied out of the library's error, which is released at once. Immutable; any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"runtime"
	"strings"
	"unsafe"
)

// Error is what a failed call returns. Code and Message are those of the C ABI. DeadlineExceeded, Aborted and Unavailable from the library
// always have a Phase, and a Task, a Peer or both.
//
// Phases are "build" (a node was added), "place" (a device was chosen), "prepare" (a run was planned), "feed", "run" (also a collective),
// "connect" (a task was looked for), "listen" (a server took its address), "recover" (state or training after a loss), "wait"
// (Model.WaitReady), "meet" (a barrier), "form" (a group), "schedule" (closures of a coordinator), "save" and "restore" (checkpoints), "ask"
// (a status, an outcome, a reset) and "end" (of a session, a server or the job); new ones may come.
type Error struct {
	Code    Code
	Message string // what was attempted, on what, what was found and what to try
	Node    string // the graph node that failed, or ""
	Task    string // the task that found the failure, "/job:ps/replica:0/task:0", or ""
	Peer    string // the other end of the connection that failed, or the first of those waited for; or ""
	Phase   string // when it failed, one of the words below, or ""
	cause   error  // what a function of the program gave, or nil
}

// Error is the name of the code and the message.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Is holds for the Code of the error, so that errors.Is(err, ErrNotFound) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap is the error that a function of the program gave (MapFunc, FilterFunc, DatasetFunc), or panicked with, where e tells of one: so
// errors.Is and errors.As find it in what Next, Fit or Evaluate return. nil for all others.
func (e *Error) Unwrap() error { return e.cause }

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
	e.cause = causeOf(e.Code, e.Message)
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
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // says so already
		return err
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

// late is the same error, as one whose time is over: nobody has cancelled the run but the clock.
func late(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	over := *e
	over.Code = DeadlineExceeded
	over.Message = strings.Replace(over.Message, "was cancelled by its caller", "was ended at the deadline of its context", 1)
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

// tooLate is the error of a call that did not begin because ctx, if it did end, had ended: as that of one that was under way, it is ctx.Err()
// around one of the library's kind. It names the call.
func tooLate(ctx context.Context) error {
	reason := ctx.Err()
	if reason == nil {
		return nil
	}
	code, how := Cancelled, "cancelled"
	if errors.Is(reason, context.DeadlineExceeded) {
		code, how = DeadlineExceeded, "past its deadline"
	}
	call, where := caller(here(2))
	return fmt.Errorf("%w: %w", reason, &Error{Code: code,
		Message: fmt.Sprintf("%s (%s): the context was %s before the call, which did nothing; give one that has not ended", call, where, how)})
}

// stack is where a goroutine stands, as cheaply as that can be noted: who calls this package is within reach.
type stack [16]uintptr

// here is the stack without its skip innermost frames.
func here(skip int) (s stack) {
	runtime.Callers(skip+1, s[:])
	return s
}

// caller is where the caller of this package stands, "train.go:42": the first frame that is not of this package; and what it called,
// "Session.Run".
func caller(s stack) (call, where string) {
	depth := 0
	for depth < len(s) && s[depth] != 0 {
		depth++
	}
	if depth == 0 {
		return "", ""
	}
	frames := runtime.CallersFrames(s[:depth])
	for {
		frame, more := frames.Next()
		switch {
		case isOurs(frame):
			call = method(frame.Function)
		case !isMachinery(frame.Function):
			return call, fmt.Sprintf("%s:%d", base(frame.File), frame.Line)
		}
		if !more {
			return call, ""
		}
	}
}

// method is the name as the documentation has it: ".../go.(*Session).Run.func1" is Session.Run, and so is a part of it that the compiler has
// moved into its caller, "main.main.(*Session).Run.func2".
func method(function string) string {
	name := strings.TrimPrefix(function, ours)
	if at := strings.LastIndex(name, "(*"); at >= 0 {
		name = name[at:]
	}
	parts := strings.Split(strings.NewReplacer("(*", "", ")", "").Replace(name), ".")
	for len(parts) > 1 && !token.IsExported(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}

// place is where the caller of this package stands.
func place() string {
	_, where := caller(here(2))
	return where
}

// placed is err with where the caller of this package stands, unless that is told already.
func placed(err error) error {
	if err == nil {
		return nil
	}
	if where := place(); where != "" && !strings.HasPrefix(err.Error(), "at ") && !strings.Contains(err.Error(), where) {
		return fmt.Errorf("at %s: %w", where, err)
	}
	return err
}

const ours = "github.com/dtg-project/dtg/bindings/go."

// folder is where the sources of this package were when it was built.
var folder = func() string {
	_, file, _, _ := runtime.Caller(0)
	return file[:len(file)-len(base(file))]
}()

// isOurs says whether a frame is of this package: by its name, or, for a closure that was moved into its caller and is named after that, by
// its file.
func isOurs(frame runtime.Frame) bool {
	return strings.HasPrefix(frame.Function, ours) || strings.HasPrefix(frame.File, folder) && base(frame.File) == frame.File[len(folder):] &&
		!strings.HasSuffix(frame.File, "_test.go")
}

// isMachinery says whether a frame is of the language's own: what stands between a panic and the function it came from.
func isMachinery(function string) bool { return strings.HasPrefix(function, "runtime.") }

func base(file string) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' {
			return file[i+1:]
		}
	}
	return file
}
