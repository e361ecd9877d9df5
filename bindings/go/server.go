// Server: one task of a cluster in this process. Any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

var serverKind = &kind{"server", "StartServer", func(p unsafe.Pointer) { C.dtg_server_release((*C.dtg_server)(p)) }}

// Keygen makes a new job key in a new file that only its owner can read. Every task of a job needs the same. Errors:
// InvalidArgument, AlreadyExists (it is never overwritten), FailedPrecondition (what the file system says).
func Keygen(path string) error {
	if err := loaded(); err != nil {
		return err
	}
	data, length := chars(path)
	return failure(C.dtg_keygen(data, length))
}

// ServerOptions are those of StartServer. Zero is the default of every field.
type ServerOptions struct {
	Job            string // "": the only job of the cluster
	Task           int    // index within the job
	CPUDevices     int    // virtual CPU devices of the task; 0: 1
	EmuDevices     int    // emulated accelerators of the task, for tests, "/device:EMU:0" and up; not with a StateDir
	EmuMemoryBytes int64  // what each of them has of its own; 0: 256 MiB
	KeyFile        string // the job key, needed for TCP. "": that of DTG_KEY_FILE; without it, on loopback, one of the user's own
	Security       Security
	DeviceFilters  []string      // sessions of this server see only tasks that match one of these; none: all
	Heartbeat      time.Duration // 0: 1 s
	Dead           time.Duration // silence after which a peer counts as dead; 0: 5 s
	// StateDir is where the task keeps its variables, for itself alone: every update is there before whoever asked for it is told, and a
	// server that is started anew on its address with the same StateDir goes on with them. "": they die with the process.
	StateDir string
	// NoSharedMemory sends large values through the socket also between processes of one host and user, where they go through shared
	// memory otherwise.
	NoSharedMemory bool
}

// Server is one task of a cluster. A session connected to its target can place ops on every task of the cluster; a parameter
// server is a server that holds variables.
type Server struct{ handle }

// StartServer starts the server of one task; it listens when this returns. A "host:0" address lets the system choose the port,
// which Target tells. Errors: InvalidArgument (no such task), FailedPrecondition (an address that others can reach, without a
// key; the message has the line that mends it), Unavailable (the address is taken).
func StartServer(cluster *Cluster, options ...ServerOptions) (*Server, error) {
	return (*Runtime)(nil).StartServer(cluster, options...)
}

// StartServer starts a server that computes with the threads of r.
func (r *Runtime) StartServer(cluster *Cluster, options ...ServerOptions) (*Server, error) {
	spec, err := cluster.c()
	if err != nil {
		return nil, err
	}
	home, err := r.c()
	if err != nil {
		return nil, err
	}
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	var p pins
	defer p.Unpin()
	c := &C.dtg_server_options{struct_size: C.sizeof_dtg_server_options, task: p.int32(o.Task, "Task"), cpu_devices: p.int32(o.CPUDevices, "CPUDevices"),
		emu_devices: p.int32(o.EmuDevices, "EmuDevices"), emu_memory_bytes: C.int64_t(o.EmuMemoryBytes),
		security: C.dtg_security(o.Security), heartbeat_ns: nanoseconds(o.Heartbeat), dead_ns: nanoseconds(o.Dead),
		no_shared_memory: flag(o.NoSharedMemory)}
	c.job, c.job_len = p.text(o.Job)
	c.key_file, c.key_file_len = p.text(o.KeyFile)
	c.state_dir, c.state_dir_len = p.text(o.StateDir)
	c.device_filters, c.num_device_filters = p.cstrings(o.DeviceFilters)
	if p.err != nil {
		return nil, p.err
	}
	var out *C.dtg_server
	err = failure(C.dtg_server_start(home, spec, c, &out))
	runtime.KeepAlive(cluster)
	runtime.KeepAlive(r)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.open(serverKind, unsafe.Pointer(out))
	return s, nil
}

func (s *Server) c() (*C.dtg_server, error) {
	if s == nil {
		return nil, invalid("the server is nil; make one first")
	}
	p, err := s.get(serverKind)
	return (*C.dtg_server)(p), err
}

// Target is what Connect takes, "unix:/run/j/ps0" or "10.0.0.1:2222"; "" for a closed server. Inside this process a session at
// this target shares the server's devices and variables without a socket.
func (s *Server) Target() string {
	p, err := s.c()
	if err != nil {
		return ""
	}
	defer runtime.KeepAlive(s)
	return C.GoString(C.dtg_server_target(p))
}

// Join waits until the server has stopped: by Stop, or because the chief ended the job (Session.EndJob); or until ctx ends.
func (s *Server) Join(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return s.wait(-1, func(p *C.dtg_server, timeout C.int64_t) *C.dtg_error { return C.dtg_server_join(p, timeout) })
	}
	return waiting(ctx, 0, look, func(turn time.Duration) error {
		return s.wait(turn, func(p *C.dtg_server, timeout C.int64_t) *C.dtg_error { return C.dtg_server_join(p, timeout) })
	})
}

// Stopped says whether the server has stopped.
func (s *Server) Stopped() bool {
	return s.wait(0, func(p *C.dtg_server, timeout C.int64_t) *C.dtg_error { return C.dtg_server_join(p, timeout) }) == nil
}

// Stop takes no more connections, ends those there are with Unavailable, and waits up to timeout (0: 5 s) for their runs. May be
// called again. Variables go with Close. Errors: DeadlineExceeded.
func (s *Server) Stop(timeout time.Duration) error {
	return s.wait(timeout, func(p *C.dtg_server, timeout C.int64_t) *C.dtg_error { return C.dtg_server_stop(p, timeout) })
}

func (s *Server) wait(timeout time.Duration, call func(*C.dtg_server, C.int64_t) *C.dtg_error) error {
	p, err := s.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(s)
	return failure(call(p, nanoseconds(timeout)))
}

// Status is what the server is doing, as JSON: task, incarnation, address, devices, sessions, variables.
func (s *Server) Status() (string, error) {
	var out *C.dtg_string
	err := s.wait(0, func(p *C.dtg_server, _ C.int64_t) *C.dtg_error { return C.dtg_server_status(p, &out) })
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// Close drops the server, which stops it unless others still hold it, without a wait. Closing twice is fine.
func (s *Server) Close() error {
	if s != nil {
		s.close(serverKind)
	}
	return nil
}
