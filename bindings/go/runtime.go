// Runtime: compute threads, the op table and settings that sessions share. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"log/slog"
	"runtime"
	"runtime/cgo"
	"time"
	"unsafe"
)

var runtimeKind = &kind{"runtime", "NewRuntime", func(p unsafe.Pointer) { C.dtg_runtime_release((*C.dtg_runtime)(p)) }}

// Runtime is the compute threads and settings that sessions share. A nil *Runtime is the default runtime of the process;
// functions of the package that have a method of the same name on Runtime use that one.
type Runtime struct{ handle }

// RuntimeOptions are those of a Runtime. Zero is the default of every field.
type RuntimeOptions struct {
	ComputeThreads int           // 0: one per CPU that this process may use
	PinThreads     bool          // thread i stays on the i-th of those CPUs
	Spin           time.Duration // how long an idle thread polls before it sleeps; 0: 50 µs
	MemoryLimit    int64         // bytes, for sizes that come from outside; 0: half of the machine's or the cgroup's memory
	Log            slog.Handler  // nil: warnings and errors to stderr, by the library itself
	LogLevel       slog.Level    // smallest level handed to Log
}

// NewRuntime makes a runtime. Threads start when they are first needed. Errors: InvalidArgument for values out of range.
func NewRuntime(options ...RuntimeOptions) (*Runtime, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	c := &C.dtg_runtime_options{
		compute_threads:    clamped(o.ComputeThreads),
		pin_threads:        flag(o.PinThreads),
		spin_ns:            nanoseconds(o.Spin),
		memory_limit_bytes: C.int64_t(o.MemoryLimit),
		log_level:          C.DTG_LOG_WARN,
	}
	var sink cgo.Handle
	if o.Log != nil {
		c.log_level = C.int32_t(logLevel(o.LogLevel))
		sink = cgo.NewHandle(o.Log)
	}
	var out *C.dtg_runtime
	if err := failure(C.dtg_go_runtime_create(c, C.uintptr_t(sink), &out)); err != nil {
		if sink != 0 {
			sink.Delete()
		}
		return nil, err
	}
	r := &Runtime{}
	r.open(runtimeKind, unsafe.Pointer(out))
	return r, nil
}

// c is the handle for a call: NULL for the default runtime.
func (r *Runtime) c() (*C.dtg_runtime, error) {
	if r == nil {
		return nil, nil
	}
	p, err := r.get(runtimeKind)
	return (*C.dtg_runtime)(p), err
}

// Close drops the runtime; its threads end when its last session is gone too. Closing twice is fine.
func (r *Runtime) Close() error {
	if r != nil {
		r.close(runtimeKind)
	}
	return nil
}

// Threads is the number of compute threads, the caller of a run included; 0 for a closed one, and for nil.
func (r *Runtime) Threads() int {
	p, err := r.c()
	if err != nil {
		return 0
	}
	defer runtime.KeepAlive(r)
	return int(C.dtg_runtime_threads(p))
}

// OpsJSON is the op table: a list of {name, doc, inputs, outputs, attributes, stateful, differentiable, kernels}.
func (r *Runtime) OpsJSON() (string, error) {
	return r.text(func(p *C.dtg_runtime, out **C.dtg_string) *C.dtg_error { return C.dtg_ops_json(p, out) })
}

// Metrics is the runtime's numbers in Prometheus' text format 0.0.4.
func (r *Runtime) Metrics() (string, error) {
	return r.text(func(p *C.dtg_runtime, out **C.dtg_string) *C.dtg_error { return C.dtg_runtime_metrics(p, out) })
}

// Trim gives the system what lies idle: the blocks that runs worked in, and freed tensors. For programs that pause for long.
func (r *Runtime) Trim() error {
	p, err := r.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(r)
	return failure(C.dtg_runtime_trim(p))
}

// StartTrace begins to record what each thread executes; each keeps its latest 16,384 entries.
func (r *Runtime) StartTrace() error {
	p, err := r.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(r)
	return failure(C.dtg_runtime_trace_start(p))
}

// StopTrace stops recording and gives what was recorded as Chrome trace JSON, which Perfetto opens.
func (r *Runtime) StopTrace() (string, error) {
	return r.text(func(p *C.dtg_runtime, out **C.dtg_string) *C.dtg_error { return C.dtg_runtime_trace_stop(p, out) })
}

func (r *Runtime) text(read func(*C.dtg_runtime, **C.dtg_string) *C.dtg_error) (string, error) {
	p, err := r.c()
	if err != nil {
		return "", err
	}
	var out *C.dtg_string
	err = failure(read(p, &out))
	runtime.KeepAlive(r)
	if err != nil {
		return "", err
	}
	return text(out), nil
}
