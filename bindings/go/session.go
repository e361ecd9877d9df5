// Session: runs graphs. Any goroutine; any number of runs may be under way at once.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"
	"unsafe"
)

var sessionKind = &kind{"session", "Connect", func(p unsafe.Pointer) { C.dtg_session_release((*C.dtg_session)(p)) }}

// Security is how frames travel over TCP. Unix sockets need neither: the other process's user is checked.
type Security int32

// The ways.
const (
	TLS         Security = 0 // TLS 1.3 with keys derived from the job key
	ClearFrames Security = 1 // the handshake is authenticated, frames then travel in the clear; both ends must ask
)

// SessionOptions are those of Connect. Zero is the default of every field.
type SessionOptions struct {
	CPUDevices     int           // local sessions: virtual CPU devices; 0: 1
	EmuDevices     int           // local sessions: emulated accelerators, for tests, "/device:EMU:0" and up
	EmuMemoryBytes int64         // what each of them has of its own; 0: 256 MiB
	SoftPlacement  bool          // a device that is absent drops its type and id, never its job and task
	DisableFusion  bool          // every op runs by itself, for tests and debugging
	DefaultTimeout time.Duration // of runs that name none, prepared ones too; 0: 10 minutes
	ConnectTimeout time.Duration // of a cluster: how long to look for its tasks; 0: 30 s
	KeyFile        string        // the job key, for targets with a port; "": that of DTG_KEY_FILE; without it, on loopback, the user's own
	Security       Security      // as the servers have it
}

// Session connects a graph to the devices that run it.
type Session struct {
	handle
	graph *graphState // what it runs; nil: not known
}

// Connect connects g to the devices behind target: "local" for this process alone, or the address of a task
// (Server.Target, "unix:PATH", "host:port"). The session keeps what it needs of g, which may grow afterwards. A graph
// that was built with an error gives that error. Errors: InvalidArgument (an empty target, too); Unavailable, DeadlineExceeded (which tasks are
// missing, and the last error of each); Unauthenticated (a wrong key); FailedPrecondition (another cluster, version or
// security at the other end). When ctx ends, Connect returns at once; the attempt then ends by itself, within its timeout.
func Connect(ctx context.Context, target string, g *Graph, options ...SessionOptions) (*Session, error) {
	if err := given(ctx); err != nil {
		return nil, err
	}
	if g != nil && g.Err() != nil {
		return nil, g.Err()
	}
	if err := tooLate(ctx); err != nil {
		return nil, fmt.Errorf("connect to %q: %w", target, err)
	}
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	deadline := boundBy(ctx, &o.ConnectTimeout)
	if ctx.Done() == nil {
		return connect(target, g, &o)
	}
	type answer struct {
		session *Session
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		s, err := connect(target, g, &o)
		done <- answer{s, err}
	}()
	select {
	case a := <-done:
		return a.session, ended(ctx, a.err, deadline)
	case <-ctx.Done():
		go func() {
			if a := <-done; a.session != nil {
				a.session.Close()
			}
		}()
		return nil, fmt.Errorf("connect to %q: %w", target, ended(ctx, &Error{Code: Cancelled, Message: "the wait was given up"}, false))
	}
}

func connect(target string, g *Graph, o *SessionOptions) (*Session, error) {
	graph, err := g.reading()
	if err != nil {
		return nil, err
	}
	var p pins
	defer p.Unpin()
	c := o.c(&p)
	if p.err != nil {
		return nil, p.err
	}
	address, length := chars(target)
	var out *C.dtg_session
	err = failure(C.dtg_session_connect(nil, address, length, graph, c, &out))
	runtime.KeepAlive(g)
	if err != nil {
		return nil, err
	}
	s := &Session{graph: g.graphState}
	s.open(sessionKind, unsafe.Pointer(out))
	return s, nil
}

func (o *SessionOptions) c(p *pins) *C.dtg_session_options {
	c := &C.dtg_session_options{
		struct_size:        C.sizeof_dtg_session_options,
		cpu_devices:        p.int32(o.CPUDevices, "CPUDevices"),
		emu_devices:        p.int32(o.EmuDevices, "EmuDevices"),
		emu_memory_bytes:   C.int64_t(o.EmuMemoryBytes),
		soft_placement:     flag(o.SoftPlacement),
		disable_fusion:     flag(o.DisableFusion),
		default_timeout_ns: nanoseconds(o.DefaultTimeout),
		connect_timeout_ns: nanoseconds(o.ConnectTimeout),
		security:           C.dtg_security(o.Security),
	}
	c.key_file, c.key_file_len = p.text(o.KeyFile)
	return c
}

// EndJobNow ends the job at once, whatever the workers are at. The chief alone may do that, others get PermissionDenied. The deadline of
// ctx bounds it.
func (s *Session) EndJobNow(ctx context.Context) error {
	return s.within(ctx, func(p *C.dtg_session, timeout C.int64_t) *C.dtg_error { return C.dtg_session_end_job_now(p, timeout) })
}

// ClusterStatus is what Server.Status says of every task of the cluster that the task at target belongs to, without a session: a JSON
// list; tasks may be missing, only that one must answer. Of the options KeyFile, Security and ConnectTimeout count; the last bounds
// the whole call, and so does the deadline of ctx. Errors: Unavailable, DeadlineExceeded (nobody answers at target), and those of
// Connect.
func ClusterStatus(ctx context.Context, target string, options ...SessionOptions) (string, error) {
	return (*Runtime)(nil).ClusterStatus(ctx, target, options...)
}

// ClusterStatus is the same with the loop of r.
func (r *Runtime) ClusterStatus(ctx context.Context, target string, options ...SessionOptions) (string, error) {
	if err := begun(ctx); err != nil {
		return "", err
	}
	if err := loaded(); err != nil {
		return "", err
	}
	home, err := r.c()
	if err != nil {
		return "", err
	}
	o, err := only(options)
	if err != nil {
		return "", err
	}
	deadline := boundBy(ctx, &o.ConnectTimeout)
	var p pins
	defer p.Unpin()
	address, length := chars(target)
	var out *C.dtg_string
	c := o.c(&p)
	if p.err != nil {
		return "", p.err
	}
	err = failure(C.dtg_cluster_status(home, address, length, c, &out))
	runtime.KeepAlive(r)
	if err != nil {
		return "", ended(ctx, err, deadline)
	}
	return text(out), nil
}

// boundBy lowers a timeout to what is left of ctx, and says whether it did. The context has not ended.
func boundBy(ctx context.Context, timeout *time.Duration) bool {
	at, ok := ctx.Deadline()
	if !ok {
		return false
	}
	left := max(time.Until(at), 1)
	if *timeout != 0 && *timeout <= left {
		return false
	}
	*timeout = left
	return true
}

func (s *Session) c() (*C.dtg_session, error) {
	if s == nil {
		return nil, invalid("the session is nil; make one first")
	}
	p, err := s.get(sessionKind)
	return (*C.dtg_session)(p), err
}

// Close refuses new runs, cancels those under way, waits for their end up to the session's default timeout, and drops the
// session. Closing twice is fine. Errors: DeadlineExceeded when runs have not ended yet; they end by themselves.
func (s *Session) Close() error { return s.closeWithin(0) }

// Shutdown is Close that waits until the deadline of ctx, if it has one.
func (s *Session) Shutdown(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return err
	}
	var timeout time.Duration
	deadline := boundBy(ctx, &timeout)
	return ended(ctx, s.closeWithin(timeout), deadline)
}

func (s *Session) closeWithin(timeout time.Duration) error {
	p, err := s.c()
	if err != nil {
		return nil // closed already
	}
	err = failure(C.dtg_session_close(p, nanoseconds(timeout)))
	s.close(sessionKind)
	return err
}

// Devices is the full names of the session's devices, "/job:localhost/replica:0/task:0/device:CPU:0".
func (s *Session) Devices() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		p, err := s.c()
		if err != nil {
			return
		}
		defer runtime.KeepAlive(s)
		for i := range int(C.dtg_session_device_count(p)) {
			name := C.dtg_session_device_name(p, C.size_t(i))
			if name == nil || !yield(i, C.GoString(name)) {
				return
			}
		}
	}
}

// Reset drops variables, queues and accumulators in the named containers; with none named, those in the default container.
// Who waits for them fails.
func (s *Session) Reset(containers ...string) error {
	p, err := s.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(s)
	var held pins
	defer held.Unpin()
	names, count := held.cstrings(containers)
	if held.err != nil {
		return held.err
	}
	return failure(C.dtg_session_reset(p, names, count))
}

// Barrier waits until all workers of the job (the tasks of the jobs "chief", "master" and "worker") wait at the barrier of that name, which
// may be used again when all were let through. The deadline of ctx bounds it. A worker that is gone is named by Unavailable, those that
// have not come in time by DeadlineExceeded. A local session is let through at once. Whoever stops waiting because ctx was cancelled has
// come all the same.
func (s *Session) Barrier(ctx context.Context, name string) error {
	return s.waitWithin(ctx, func(p *C.dtg_session, timeout C.int64_t) *C.dtg_error {
		text, length := chars(name)
		return C.dtg_session_barrier(p, text, length, timeout)
	})
}

// EndJob says that the work of this worker is done, and waits until that is so of every worker; then the chief (where the cluster has
// none: a client that is no task) tells every task but its own to stop, and those that wait in Server.Join return. A worker whose
// connection has ended may be back: it is waited for, for half a minute (six times the Dead of the first parameter server's options), and then
// no more; the chief's log names it. So give ctx more time than that. Where the deadline of ctx passes before, nothing was ended, and
// DeadlineExceeded names those that work on, or how long they have been lost. So every worker should call it before it exits, not the chief
// alone: one that exits without it is taken for lost, and makes the chief wait for that half minute.
//
// A ctx that is cancelled ends the waiting, but this worker has said that it is done.
func (s *Session) EndJob(ctx context.Context) error {
	return s.waitWithin(ctx, func(p *C.dtg_session, timeout C.int64_t) *C.dtg_error { return C.dtg_session_end_job(p, timeout) })
}

// Outcome is what became of a run that failed with an error after which nobody knows: DeadlineExceeded, Unavailable, Cancelled, Aborted.
type Outcome int32

// The outcomes.
const (
	OutcomeNothing   Outcome = 0 // it has updated nothing on any other task, and will not
	OutcomeUpdated   Outcome = 1 // it has, on one task at least: all of it, or up to where it was cut short
	OutcomeForgotten Outcome = 2 // so many runs ago that a task does not know any more
)

// Outcome asks the tasks of the cluster what took place of a run of this session, by the number that Write gave. To have all of it done,
// whatever the answer is, run the same once more with that number. The deadline of ctx bounds it. Errors: InvalidArgument (the session
// has made no run of that number), Unavailable (a task is gone, or the run is still under way there), DeadlineExceeded, Unimplemented (a
// task runs an earlier release).
func (s *Session) Outcome(ctx context.Context, write uint64) (Outcome, error) {
	var out C.dtg_outcome
	err := s.within(ctx, func(p *C.dtg_session, timeout C.int64_t) *C.dtg_error {
		return C.dtg_session_outcome(p, C.uint64_t(write), timeout, &out)
	})
	return Outcome(out), err
}

// ClusterStatus is what Server.Status says of each other task of the session's cluster, asked over the network: a JSON list; a
// task that does not answer has "error". The deadline of ctx bounds it.
func (s *Session) ClusterStatus(ctx context.Context) (string, error) {
	var out *C.dtg_string
	err := s.within(ctx, func(p *C.dtg_session, timeout C.int64_t) *C.dtg_error {
		return C.dtg_session_cluster_status(p, timeout, &out)
	})
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// waitWithin is within for calls that wait for others. Nothing takes back that this worker has come, so where ctx is cancelled the call goes
// on without its caller, until its deadline or the end of the session.
func (s *Session) waitWithin(ctx context.Context, call func(*C.dtg_session, C.int64_t) *C.dtg_error) error {
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return s.within(ctx, call)
	}
	over := make(chan error, 1)
	go func() { over <- s.within(ctx, call) }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return <-over // it has the same deadline, and names who is missing
		}
		return ended(ctx, &Error{Code: Cancelled, Message: "the wait was given up"}, false)
	}
}

func (s *Session) within(ctx context.Context, call func(*C.dtg_session, C.int64_t) *C.dtg_error) error {
	if err := begun(ctx); err != nil {
		return err
	}
	p, err := s.c()
	if err != nil {
		return err
	}
	var timeout time.Duration
	deadline := boundBy(ctx, &timeout)
	err = failure(call(p, nanoseconds(timeout)))
	runtime.KeepAlive(s)
	return ended(ctx, err, deadline)
}
