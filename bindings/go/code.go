// Code: why a call failed, in the words that TensorFlow, Abseil and gRPC share. Constants; any goroutine.

package dtg

// #include "shim.h"
import "C"

// Code says why a call failed. It is an error itself, so that errors.Is(err, dtg.ErrUnavailable) asks for it.
type Code int32

// The codes, with the numbers of TensorFlow and gRPC.
const (
	OK                 Code = 0  // not an error
	Cancelled          Code = 1  // the run was cancelled, or its session closed
	Unknown            Code = 2  // nothing better is known
	InvalidArgument    Code = 3  // the call makes no sense, whatever the state
	DeadlineExceeded   Code = 4  // the time was up
	NotFound           Code = 5  // no such op, file, variable
	AlreadyExists      Code = 6  // it is there and is not overwritten
	PermissionDenied   Code = 7  // this task may not do that
	ResourceExhausted  Code = 8  // no memory, no descriptor
	FailedPrecondition Code = 9  // not in this state
	Aborted            Code = 10 // somebody else came first; try again
	OutOfRange         Code = 11 // past the end, of a queue for example
	Unimplemented      Code = 12 // not there
	Internal           Code = 13 // a fault of the library
	Unavailable        Code = 14 // the peer is not there; try again
	DataLoss           Code = 15 // cut or damaged
	Unauthenticated    Code = 16 // the wrong key
)

// What errors.Is asks for. errors.Is(err, ErrUnavailable) holds for every *Error with that code.
var (
	ErrCancelled          error = Cancelled
	ErrUnknown            error = Unknown
	ErrInvalidArgument    error = InvalidArgument
	ErrDeadlineExceeded   error = DeadlineExceeded
	ErrNotFound           error = NotFound
	ErrAlreadyExists      error = AlreadyExists
	ErrPermissionDenied   error = PermissionDenied
	ErrResourceExhausted  error = ResourceExhausted
	ErrFailedPrecondition error = FailedPrecondition
	ErrAborted            error = Aborted
	ErrOutOfRange         error = OutOfRange
	ErrUnimplemented      error = Unimplemented
	ErrInternal           error = Internal
	ErrUnavailable        error = Unavailable
	ErrDataLoss           error = DataLoss
	ErrUnauthenticated    error = Unauthenticated
)

// String is the name of the code, "INVALID_ARGUMENT".
func (c Code) String() string { return C.GoString(C.dtg_code_name(C.dtg_code(c))) }

// Error is String: a Code is what errors.Is compares with.
func (c Code) Error() string { return c.String() }
