// Clusters, servers, and sessions to them.

package dtg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// private is a directory that only this user can enter, with a short name, as unix sockets ask.
func private(t *testing.T) string {
	t.Helper()
	folder := get(os.MkdirTemp("", "dtg-go-"))(t)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// pair starts a ps and a worker that meet on unix sockets.
func pair(t *testing.T) (ps, worker *dtg.Server) {
	t.Helper()
	folder := private(t)
	cluster := closing(t, get(dtg.ParseCluster(fmt.Sprintf("ps=unix:%s/ps;worker=unix:%s/worker", folder, folder)))(t))
	ps = closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "ps", Heartbeat: 100 * time.Millisecond, Dead: time.Second}))(t))
	worker = closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "worker"}))(t))
	return ps, worker
}

// counter is a variable on the ps, and the target that adds one to it.
func counter(t *testing.T) (g *dtg.Graph, model *dtg.Model, w dtg.Variable, add, init dtg.Value) {
	t.Helper()
	g = graph(t)
	model = closing(t, g.NewModel(1))
	var one dtg.Value
	g.Device("/job:worker/task:0", func() { one = g.ConstF32(1) })
	g.Device("/job:ps/task:0", func() {
		w = model.Variable("w", 1)
		add = g.AssignAddVariableOp(w.Handle, one)
	})
	init = model.Init()
	return g, model, w, add, init
}

func TestClusters(t *testing.T) {
	leaves(t)
	c := closing(t, get(dtg.ParseCluster("ps=unix:/run/j/ps0;worker=10.0.0.1:2222,10.0.0.2:2222;evaluator=3@10.0.0.4:1"))(t))
	var all []string
	for _, job := range c.Jobs() {
		for index, address := range c.Tasks(job) {
			all = append(all, fmt.Sprint(job, index, "=", address))
			if c.Address(job, index) != address {
				t.Error(address)
			}
		}
	}
	equal(t, all, []string{"ps0=unix:/run/j/ps0", "worker0=10.0.0.1:2222", "worker1=10.0.0.2:2222", "evaluator3=10.0.0.4:1"})
	if c.TaskCount("worker") != 2 || c.TaskCount("nobody") != 0 || c.Address("worker", 7) != "" {
		t.Error("tasks that are not there")
	}
	again := closing(t, get(dtg.ParseCluster(get(c.JSON())(t)))(t))
	if get(again.JSON())(t) != get(c.JSON())(t) {
		t.Error("not the same")
	}
	if target := get(c.Target(dtg.Task{Type: "worker", Index: 1, RPCLayer: "grpc"}))(t); target != "grpc://10.0.0.2:2222" {
		t.Error(target)
	}
	if target := get((*dtg.Cluster)(nil).Target(dtg.Task{}))(t); target != "" {
		t.Error(target)
	}
	_, err := c.Target(dtg.Task{Type: "worker", Index: 9})
	refused(t, err, dtg.InvalidArgument)
	_, err = c.Target(dtg.Task{Type: strings.Repeat("x", 64)})
	refused(t, err, dtg.InvalidArgument, "too long")
	_, err = dtg.ParseCluster("ps")
	refused(t, err, dtg.InvalidArgument)
}

func TestTFConfig(t *testing.T) {
	leaves(t)
	config := `{"cluster": {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"}`
	c, self, err := dtg.ParseTFConfig(config)
	want(t, err)
	closing(t, c)
	if (self != dtg.Task{Type: "worker", Index: 1, ID: 1, NumWorkers: 2, NumPS: 1, RPCLayer: "grpc"}) {
		t.Errorf("%+v", self)
	}
	t.Setenv("TF_CONFIG", config)
	same, task, err := dtg.ClusterFromTFConfig()
	want(t, err)
	closing(t, same)
	if task != self {
		t.Errorf("%+v", task)
	}
	alone, self, err := dtg.ParseTFConfig("{}")
	if alone != nil || !self.IsChief || err != nil {
		t.Error(alone, self, err)
	}
	_, _, err = dtg.ParseTFConfig("")
	refused(t, err, dtg.InvalidArgument)
	want(t, alone.Close())
}

func TestSessionToServers(t *testing.T) {
	leaves(t)
	ps, worker := pair(t)
	g, model, w, add, init := counter(t)
	s := closing(t, get(dtg.Connect(background, worker.Target(), g))(t))
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if err := model.WaitReady(ctx, s); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "w") {
		t.Errorf("a variable without value: %v", err)
	}
	want(t, s.Run(background, dtg.Target(init)))
	long, end := context.WithTimeout(background, time.Minute)
	defer end()
	want(t, model.WaitReady(long, s))
	var value float32
	for range 3 {
		want(t, s.Run(long, dtg.Target(add)))
	}
	want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	if value != 4 {
		t.Errorf("w = %g", value)
	}
	var status map[string]any
	want(t, json.Unmarshal([]byte(get(ps.Status())(t)), &status))
	var tasks []map[string]any
	want(t, json.Unmarshal([]byte(get(s.ClusterStatus(long))(t)), &tasks))
	if len(tasks) != 1 || status["task"] == nil {
		t.Errorf("%v %v", status, tasks)
	}
	want(t, json.Unmarshal([]byte(get(dtg.ClusterStatus(long, worker.Target()))(t)), &tasks))
	if len(tasks) != 2 {
		t.Errorf("%v", tasks)
	}
	_, failed := dtg.ClusterStatus(background, "unix:"+filepath.Join(private(t), "nobody"), dtg.SessionOptions{ConnectTimeout: 20 * time.Millisecond})
	refused(t, failed, dtg.Unavailable)
	short, stop := context.WithTimeout(background, 10*time.Millisecond)
	defer stop()
	if err := ps.Join(short); !errors.Is(err, context.DeadlineExceeded) || ps.Stopped() {
		t.Errorf("a server that runs: %v", err)
	}
	want(t, s.Barrier(long, "the only worker"))
	want(t, s.EndJob(long))
	want(t, ps.Join(background))
	want(t, ps.Join(long))
	if !ps.Stopped() {
		t.Error("the job has ended, the ps has not")
	}
}

// A run is known by its number: what took place can be asked for, and is not made again.
func TestOutcome(t *testing.T) {
	leaves(t)
	_, worker := pair(t)
	g, model, w, add, init := counter(t)
	var step, cut dtg.Value
	g.Device("/job:ps/task:0", func() {
		queue := g.FIFOQueueV2([]dtg.DType{dtg.Int32}) // nothing is ever put into it
		wait := func() dtg.Value { return g.QueueDequeueV2(queue, []dtg.DType{dtg.Int32})[0] }
		g.Controls([]dtg.Value{wait()}, func() { step = g.AssignAddVariableOp(w.Handle, w.Read) })
		g.Controls([]dtg.Value{add}, func() { cut = wait() })
	})
	s := closing(t, get(dtg.Connect(background, worker.Target(), g))(t))
	want(t, s.Run(background, dtg.Target(init)))
	want(t, model.WaitReady(background, s))
	count := func(wanted float32) {
		t.Helper()
		var value float32
		want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
		if value != wanted {
			t.Errorf("w = %g, not %g", value, wanted)
		}
	}
	outcome := func(number uint64, wanted dtg.Outcome) {
		t.Helper()
		if found := get(s.Outcome(background, number))(t); found != wanted {
			t.Errorf("the outcome of %d is %d, not %d", number, found, wanted)
		}
	}
	var first, second uint64
	for range 3 {
		want(t, s.Run(background, dtg.Target(add), dtg.Write(&first)))
	}
	count(2)
	outcome(first, dtg.OutcomeUpdated)
	started := get(s.RunAsync(dtg.Target(add), dtg.Write(&second)))(t)
	if first == 0 || second == 0 || second == first {
		t.Errorf("numbers %d and %d", first, second)
	}
	want(t, started.Wait(background))
	want(t, get(s.RunAsync(dtg.Target(add), dtg.Write(&second)))(t).Wait(background))
	count(3)
	// Before its update, and after it.
	var before, after uint64
	late := func(target dtg.Value, number *uint64) error {
		return s.Run(background, dtg.Target(target), dtg.Write(number), dtg.Timeout(200*time.Millisecond))
	}
	refused(t, late(step, &before), dtg.DeadlineExceeded, "its outcome is unknown: write ")
	outcome(before, dtg.OutcomeNothing)
	err := late(cut, &after)
	refused(t, err, dtg.DeadlineExceeded, fmt.Sprintf("its outcome is unknown: write %d", after))
	outcome(after, dtg.OutcomeUpdated)
	refused(t, late(cut, &after), dtg.FailedPrecondition, "queues")
	count(4)
	// Nobody's.
	_, err = s.Outcome(background, 1<<30)
	refused(t, err, dtg.InvalidArgument, "no such run")
	nobodys := uint64(1 << 30)
	refused(t, s.Run(background, dtg.Target(add), dtg.Write(&nobodys)), dtg.InvalidArgument, "no such run")
	refused(t, s.Run(background, dtg.Target(add), dtg.Write(nil)), dtg.InvalidArgument, "is nil")
	count(4)
}

func TestDeadPeer(t *testing.T) {
	leaves(t)
	open := dtg.LiveHandles()
	nobody := "unix:" + filepath.Join(private(t), "nobody")
	g := graph(t)
	g.NoOp()
	_, err := dtg.Connect(background, nobody, g, dtg.SessionOptions{ConnectTimeout: 50 * time.Millisecond})
	refused(t, err, dtg.Unavailable, "nobody")
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(5*time.Millisecond, cancel)
	if _, err = dtg.Connect(ctx, nobody, g, dtg.SessionOptions{ConnectTimeout: time.Second}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while nobody listens: %v", err)
	}
	// A cluster of which one task is missing is looked for until the context's deadline.
	missing := closing(t, get(dtg.ParseCluster("ps="+nobody+";worker=unix:"+filepath.Join(private(t), "w")))(t))
	worker := closing(t, get(dtg.StartServer(missing, dtg.ServerOptions{Job: "worker"}))(t))
	ctx, end := context.WithTimeout(background, 50*time.Millisecond)
	defer end()
	if _, err = dtg.Connect(ctx, worker.Target(), g); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, dtg.ErrUnavailable) {
		t.Errorf("a task is missing: %v", err)
	}
	ctx, stop := context.WithCancel(background)
	stop()
	if _, err = dtg.Connect(ctx, nobody, g); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	// Attempts that were given up end by themselves, and leave nothing.
	want(t, dtg.Close(g, worker, missing))
	until(t, func() bool { return dtg.LiveHandles() == open })
}

func TestServerThatStopsUnderASession(t *testing.T) {
	leaves(t)
	ps, worker := pair(t)
	g, _, w, add, init := counter(t)
	s := closing(t, get(dtg.Connect(background, worker.Target(), g))(t))
	want(t, s.Run(background, dtg.Target(init), dtg.Timeout(10*time.Second)))
	want(t, ps.Stop(0))
	var value float32
	err := s.Run(background, dtg.Fetch(w.Read, &value), dtg.Target(add), dtg.Timeout(2*time.Second))
	if !errors.Is(err, dtg.ErrUnavailable) && !errors.Is(err, dtg.ErrDeadlineExceeded) {
		t.Errorf("the ps is gone: %v", err)
	}
	var e *dtg.Error
	if !errors.As(err, &e) || !strings.Contains(e.Peer, "/job:ps") {
		t.Errorf("the error does not name the ps: %+v", e)
	}
	tellsWhere(t, e)
}

func TestKeys(t *testing.T) {
	leaves(t)
	folder := t.TempDir()
	right, wrong := filepath.Join(folder, "right"), filepath.Join(folder, "wrong")
	want(t, dtg.Keygen(right))
	want(t, dtg.Keygen(wrong))
	refused(t, dtg.Keygen(right), dtg.AlreadyExists)
	cluster := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:0"))(t))
	r := closing(t, get(dtg.NewRuntime())(t))
	server := closing(t, get(r.StartServer(cluster, dtg.ServerOptions{KeyFile: right, DeviceFilters: []string{"/job:worker"}, CPUDevices: 2}))(t))
	if server.Target() == "127.0.0.1:0" || !strings.HasPrefix(server.Target(), "127.0.0.1:") {
		t.Error(server.Target())
	}
	_, err := dtg.StartServer(cluster, dtg.ServerOptions{Task: 5})
	refused(t, err, dtg.InvalidArgument)
	_, err = dtg.StartServer(nil)
	refused(t, err, dtg.InvalidArgument)
	taken := closing(t, get(dtg.ParseCluster("worker="+server.Target()))(t))
	_, err = dtg.StartServer(taken)
	refused(t, err, dtg.AlreadyExists)
}

// useTheKeyOfTheEnvironment is a session and a server that were told no key: they take the one that the environment names.
func useTheKeyOfTheEnvironment(t *testing.T, target string) {
	g := graph(t)
	two := g.ConstF32(2)
	s := closing(t, get(dtg.Connect(background, target, g))(t))
	var value float32
	want(t, s.Run(background, dtg.Fetch(two, &value)))
	if value != 2 {
		t.Error(value)
	}
	// An address that others can reach asks for a key.
	open := closing(t, get(dtg.ParseCluster("worker=0.0.0.0:0"))(t))
	closing(t, get(dtg.StartServer(open))(t))
}

func TestTheKeyOfTheEnvironment(t *testing.T) {
	leaves(t)
	if target := os.Getenv("DTG_TEST_TARGET"); target != "" {
		useTheKeyOfTheEnvironment(t, target)
		return
	}
	folder := t.TempDir()
	right, wrong := filepath.Join(folder, "right"), filepath.Join(folder, "wrong")
	want(t, dtg.Keygen(right))
	want(t, dtg.Keygen(wrong))
	cluster := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:0"))(t))
	server := closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{KeyFile: right}))(t))
	with := func(key string) (string, error) {
		child := exec.Command(os.Args[0], "-test.run=^TestTheKeyOfTheEnvironment$")
		child.Env = append(os.Environ(), "DTG_KEY_FILE="+key, "DTG_TEST_TARGET="+server.Target())
		said, err := child.CombinedOutput()
		return string(said), err
	}
	if said, err := with(right); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	for key, word := range map[string]string{wrong: "the same job key", filepath.Join(folder, "none"): "none"} {
		if said, err := with(key); err == nil || !strings.Contains(said, word) {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// Nobody else comes: whoever waits stops when its context is cancelled, not at the deadline.
func TestBarrierIsLeftWhenCancelled(t *testing.T) {
	leaves(t)
	// The calls that were left end with the session; the errors that they then give are objects too, while they are read.
	t.Cleanup(func() {
		stacks := make([]byte, 1<<20)
		until(t, func() bool { return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ".waitWithin") })
	})
	folder := private(t)
	cluster := closing(t, get(dtg.ParseCluster("ps=unix:"+filepath.Join(folder, "ps")+";worker=unix:"+filepath.Join(folder, "w0")+",unix:"+filepath.Join(folder, "w1")))(t))
	closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "ps"}))(t))
	worker := closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "worker"}))(t))
	closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "worker", Task: 1}))(t))
	g, _, _, _, _ := counter(t)
	s := closing(t, get(dtg.Connect(background, worker.Target(), g))(t))
	for name, wait := range map[string]func(context.Context) error{
		"Barrier": func(ctx context.Context) error { return s.Barrier(ctx, "alone") },
		"EndJob":  s.EndJob,
	} {
		long, end := context.WithTimeout(background, time.Minute)
		ctx, cancel := context.WithCancel(long)
		time.AfterFunc(50*time.Millisecond, cancel)
		began := time.Now()
		if err := wait(ctx); !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
		end()
	}
}

// asyncAdam is one worker's program: 50 steps of asynchronous training by Adam, whose slots and powers all workers write.
func asyncAdam(t *testing.T, cluster *dtg.Cluster, server *dtg.Server, index int, ready *sync.WaitGroup) error {
	g := graph(t)
	var model *dtg.Model
	var steps dtg.Replicated
	g.SetDevices(dtg.DeviceSetter{Cluster: cluster, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", index)}, func() {
		model = closing(t, g.NewModel(1))
		w := model.Variable("w", 0)
		steps = model.MinimizeReplicated(model.MeanSquaredError(g.ConstF32(3), w.Read), dtg.Optimizer{Kind: dtg.Adam},
			dtg.Replication{Mode: dtg.SyncAsync, Worker: index, Total: 2})
	})
	init := model.Init()
	s, err := dtg.Connect(background, server.Target(), g)
	if err != nil {
		return err
	}
	defer s.Close()
	if index == 0 {
		if err := s.Run(background, dtg.Target(init)); err != nil {
			return err
		}
	}
	if err := model.WaitReady(background, s); err != nil {
		return err
	}
	ready.Done()
	ready.Wait()
	for range 50 {
		if err := s.Run(background, dtg.Target(steps.Train)); err != nil {
			return fmt.Errorf("worker %d: %w", index, err)
		}
	}
	return nil
}

func TestAsyncAdamOfAllWorkers(t *testing.T) {
	leaves(t)
	folder := private(t)
	cluster := closing(t, get(dtg.ParseCluster(fmt.Sprintf("ps=unix:%s/ps;worker=unix:%s/a,unix:%s/b", folder, folder, folder)))(t))
	closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "ps"}))(t))
	var ready sync.WaitGroup
	ready.Add(2)
	ends := make(chan error)
	for index := range 2 {
		server := closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Job: "worker", Task: index}))(t))
		go func() { ends <- asyncAdam(t, cluster, server, index, &ready) }()
	}
	for range 2 {
		want(t, <-ends)
	}
}
