// Cluster: which jobs there are and where their tasks listen. Immutable; any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"iter"
	"runtime"
	"unsafe"
)

var clusterKind = &kind{"cluster", "ParseCluster or ClusterFromTFConfig", func(p unsafe.Pointer) { C.dtg_cluster_release((*C.dtg_cluster)(p)) }}

// Cluster says which jobs there are and where their tasks listen.
type Cluster struct{ handle }

// Task is the place of a process in its cluster, as a launcher told it.
type Task struct {
	Type       string // "chief", "worker", "ps", "evaluator", ...; "" when not said
	Index      int    // -1 when not said
	IsChief    bool   // of the chief, the master, worker 0 where there is neither, and a process without a cluster
	ID         int    // chief 0, worker i: i + number of chiefs; others: their index; 0 when not said
	NumWorkers int    // chief and workers; at least 1
	NumPS      int
	RPCLayer   string // "" when not said
}

// ParseCluster reads a cluster in either of two forms:
//
//	{"ps": ["unix:/run/j/ps0"], "worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}    sparse: {"worker": {"3": "10.0.0.4:2222"}}
//	ps=unix:/run/j/ps0;worker=10.0.0.1:2222,10.0.0.2:2222                        sparse: worker=3@10.0.0.4:2222
//
// Errors: InvalidArgument (which says where), ResourceExhausted (over 4,096 tasks).
func ParseCluster(spec string) (*Cluster, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	data, length := chars(spec)
	var out *C.dtg_cluster
	if err := failure(C.dtg_cluster_parse(data, length, &out)); err != nil {
		return nil, err
	}
	return wrapCluster(out), nil
}

// ClusterFromTFConfig reads the environment variable TF_CONFIG, like TensorFlow's TFConfigClusterResolver. The cluster is nil
// when none is said: the program trains alone. Errors: InvalidArgument, ResourceExhausted.
func ClusterFromTFConfig() (*Cluster, Task, error) { return clusterFrom(nil, 0) }

// ParseTFConfig is ClusterFromTFConfig for a text.
func ParseTFConfig(json string) (*Cluster, Task, error) {
	data, length := chars(json)
	return clusterFrom(data, length)
}

func clusterFrom(json *C.char, length C.size_t) (*Cluster, Task, error) {
	if err := loaded(); err != nil {
		return nil, Task{}, err
	}
	var out *C.dtg_cluster
	self := C.dtg_task{struct_size: C.sizeof_dtg_task}
	if err := failure(C.dtg_cluster_from_tf_config(json, length, &out, &self)); err != nil {
		return nil, Task{}, err
	}
	task := Task{Type: C.GoString(&self._type[0]), Index: int(self.index), IsChief: self.is_chief != 0, ID: int(self.id),
		NumWorkers: int(self.num_workers), NumPS: int(self.num_ps), RPCLayer: C.GoString(&self.rpc_layer[0])}
	if out == nil {
		return nil, task, nil
	}
	return wrapCluster(out), task, nil
}

func wrapCluster(pointer *C.dtg_cluster) *Cluster {
	c := &Cluster{}
	c.open(clusterKind, unsafe.Pointer(pointer))
	return c
}

func (c *Cluster) c() (*C.dtg_cluster, error) {
	if c == nil {
		return nil, invalid("the cluster is nil, as where TF_CONFIG names none; start the program with dtg run, set TF_CONFIG, or make one")
	}
	p, err := c.get(clusterKind)
	return (*C.dtg_cluster)(p), err
}

// Close drops the cluster. Closing twice is fine.
func (c *Cluster) Close() error {
	if c != nil {
		c.close(clusterKind)
	}
	return nil
}

// Target is what TensorFlow's resolver calls the master of a task: its address, after "LAYER://" where the task has an RPCLayer;
// "" where the cluster has at most one task, or is nil. Errors: InvalidArgument (the cluster has no such task).
func (c *Cluster) Target(task Task) (string, error) {
	var p *C.dtg_cluster
	if c != nil {
		var err error
		if p, err = c.c(); err != nil {
			return "", err
		}
	}
	t := C.dtg_task{struct_size: C.sizeof_dtg_task, index: clamped(task.Index), is_chief: flag(task.IsChief), id: clamped(task.ID),
		num_workers: clamped(task.NumWorkers), num_ps: clamped(task.NumPS)}
	if hasNUL(task.Type) || hasNUL(task.RPCLayer) {
		return "", invalid("the target of a task: its type %q or its RPC layer %q holds a NUL byte", task.Type, task.RPCLayer)
	}
	if len(task.Type) >= len(t._type) || len(task.RPCLayer) >= len(t.rpc_layer) {
		return "", invalid("the target of a task: its type %q or its RPC layer %q is too long", task.Type, task.RPCLayer)
	}
	for i := range len(task.Type) {
		t._type[i] = C.char(task.Type[i])
	}
	for i := range len(task.RPCLayer) {
		t.rpc_layer[i] = C.char(task.RPCLayer[i])
	}
	var out *C.dtg_string
	err := failure(C.dtg_cluster_target(p, &t, &out))
	runtime.KeepAlive(c)
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// JSON is the cluster in a form that ParseCluster reads: dense jobs as lists, others as objects.
func (c *Cluster) JSON() (string, error) {
	p, err := c.c()
	if err != nil {
		return "", err
	}
	var out *C.dtg_string
	err = failure(C.dtg_cluster_json(p, &out))
	runtime.KeepAlive(c)
	if err != nil {
		return "", err
	}
	return text(out), nil
}

// Jobs is the names of the jobs, in the order in which they were given.
func (c *Cluster) Jobs() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		p, err := c.c()
		if err != nil {
			return
		}
		defer runtime.KeepAlive(c)
		for i := range int(C.dtg_cluster_job_count(p)) {
			name := C.dtg_cluster_job(p, C.size_t(i))
			if name == nil || !yield(i, C.GoString(name)) {
				return
			}
		}
	}
}

// TaskCount is the number of tasks of a job; 0 when there is no such job.
func (c *Cluster) TaskCount(job string) int {
	p, err := c.c()
	if err != nil || hasNUL(job) {
		return 0
	}
	defer runtime.KeepAlive(c)
	name := C.CString(job)
	defer C.free(unsafe.Pointer(name))
	return int(C.dtg_cluster_task_count(p, name))
}

// Tasks is the indices and addresses of the tasks of a job.
func (c *Cluster) Tasks(job string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		p, err := c.c()
		if err != nil || hasNUL(job) {
			return
		}
		defer runtime.KeepAlive(c)
		name := C.CString(job)
		defer C.free(unsafe.Pointer(name))
		for i := range int(C.dtg_cluster_task_count(p, name)) {
			index := C.dtg_cluster_task_index(p, name, C.size_t(i))
			address := C.dtg_cluster_address(p, name, index)
			if address == nil || !yield(int(index), C.GoString(address)) {
				return
			}
		}
	}
}

// Address is that of the task with this index; "" when there is none.
func (c *Cluster) Address(job string, index int) string {
	p, err := c.c()
	if err != nil || hasNUL(job) {
		return ""
	}
	defer runtime.KeepAlive(c)
	name := C.CString(job)
	defer C.free(unsafe.Pointer(name))
	return C.GoString(C.dtg_cluster_address(p, name, clamped(index)))
}
