// Runs: what is fed and fetched, asynchronous ones, callables, and how a run ends before it is done.

package dtg_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// blocked is a graph with a dequeue from an empty queue, which waits, and an enqueue that ends the wait.
func blocked(t *testing.T) (s *dtg.Session, wait, release dtg.Value) {
	t.Helper()
	g := graph(t)
	queue := g.FIFOQueueV2([]dtg.DType{dtg.Float32}, dtg.FIFOQueueV2Attrs{SharedName: "empty"})
	wait = g.QueueDequeueV2(queue, []dtg.DType{dtg.Float32})[0]
	release = g.QueueEnqueueV2(queue, []dtg.Value{g.ConstF32(5)})
	return connect(t, g), wait, release
}

// doubler is y = 2 x for a float32 vector.
func doubler(t *testing.T) (s *dtg.Session, x, y dtg.Value) {
	t.Helper()
	g := graph(t)
	x = g.Placeholder("x", dtg.Float32, dtg.Shape{-1})
	y = g.Mul(x, g.ConstF32(2))
	return connect(t, g), x, y
}

// contexts are one that never ends and one that can be cancelled, which take different ways.
func contexts(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Run("endless", func(t *testing.T) { test(t, background) })
	t.Run("cancellable", func(t *testing.T) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		test(t, ctx)
	})
}

func TestRunFeedsAndFetches(t *testing.T) {
	contexts(t, func(t *testing.T, ctx context.Context) {
		leaves(t)
		s, x, y := doubler(t)
		var slice []float32
		want(t, s.Run(ctx, dtg.FeedSlice(x, []float32{1, 2}), dtg.FetchSlice(y, &slice)))
		equal(t, slice, []float32{2, 4})
		kept := slice[:1]
		want(t, s.Run(ctx, dtg.Feed(x, vector(t, 3)), dtg.FetchSlice(y, &slice)))
		equal(t, kept, []float32{6}) // its memory was used again
		var tensor *dtg.Tensor
		want(t, s.Run(ctx, dtg.FeedSlice(x, []float32{4}), dtg.FetchTensor(y, &tensor)))
		closing(t, tensor)
		equal(t, tensor.Float32s(), []float32{8})
		given := tensor
		want(t, s.Run(ctx, dtg.FeedSlice(x, []float32{5}), dtg.FetchTensor(y, &tensor)))
		if tensor != given {
			t.Error("a new tensor, where one was given")
		}
		equal(t, tensor.Float32s(), []float32{10})
		refused(t, s.Run(ctx, dtg.FeedSlice(x, []float32{5, 6}), dtg.FetchTensor(y, &tensor)), dtg.InvalidArgument)
		var scalar float32
		refused(t, s.Run(ctx, dtg.FeedSlice(x, []float32{5, 6}), dtg.Fetch(y, &scalar)), dtg.InvalidArgument,
			`fetch number 0, "Mul": it is float32 [2] and is to be written to one float32: take FetchSlice; the run was made`)
		var other int64
		var again []float32
		refused(t, s.Run(ctx, dtg.FeedSlice(x, []float32{5}), dtg.Fetch(y, &other), dtg.FetchSlice(x, &again)), dtg.InvalidArgument)
	})
}

// What is long is lent to the run and not copied; the end of the run is the end of the loan.
func TestLargeFeeds(t *testing.T) {
	contexts(t, func(t *testing.T, ctx context.Context) {
		leaves(t)
		s, x, y := doubler(t)
		data := make([]float32, 1<<18)
		var out []float32
		for round := range 20 {
			for i := range data {
				data[i] = float32(i + round)
			}
			want(t, s.Run(ctx, dtg.FeedSlice(x, data), dtg.FetchSlice(y, &out)))
			for i := range data {
				if out[i] != 2*data[i] {
					t.Fatalf("round %d: element %d is %g", round, i, out[i])
				}
			}
		}
		refused(t, s.Run(ctx, dtg.FeedSlice(x, data, 2, 2), dtg.FetchSlice(y, &out)), dtg.InvalidArgument, "262144 were given")
	})
}

func TestRunsFromManyGoroutines(t *testing.T) {
	contexts(t, func(t *testing.T, ctx context.Context) {
		leaves(t)
		s, x, y := doubler(t)
		var group sync.WaitGroup
		for worker := range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				var out []float32
				for i := range 50 {
					in := []float32{float32(worker), float32(i)}
					if err := s.Run(ctx, dtg.FeedSlice(x, in), dtg.FetchSlice(y, &out)); err != nil || out[0] != 2*in[0] || out[1] != 2*in[1] {
						t.Errorf("%v: %v of %v", err, out, in)
						return
					}
				}
			}()
		}
		group.Wait()
	})
}

func TestCancel(t *testing.T) {
	leaves(t)
	s, wait, _ := blocked(t)
	ctx, cancel := context.WithCancel(background)
	run := get(s.RunAsync(dtg.Target(wait)))(t)
	answer := make(chan error)
	go func() { answer <- run.Wait(ctx) }()
	select {
	case err := <-answer:
		t.Fatalf("a dequeue from an empty queue ended: %v", err)
	case <-run.Done():
		t.Fatal("a dequeue from an empty queue ended")
	default:
		cancel()
	}
	err := <-answer
	refused(t, err, dtg.Cancelled)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, dtg.ErrCancelled) {
		t.Errorf("not the context's error: %v", err)
	}
	if again := run.Wait(background); again != err {
		t.Errorf("another answer for another context: %v", again)
	}
	if err := s.Run(ctx, dtg.Target(wait)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := dtg.Connect(ctx, "local", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	leaves(t)
	s, wait, _ := blocked(t)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	err := s.Run(ctx, dtg.Target(wait))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not the context's error: %v", err)
	}
	var e *dtg.Error
	if !errors.As(err, &e) || e.Code != dtg.DeadlineExceeded || !errors.Is(err, dtg.ErrDeadlineExceeded) || errors.Is(err, dtg.ErrCancelled) {
		t.Errorf("not the library's error: %v", err)
	}
	// A timeout is the library's, whatever the context.
	contexts(t, func(t *testing.T, ctx context.Context) {
		err := s.Run(ctx, dtg.Target(wait), dtg.Timeout(5*time.Millisecond))
		refused(t, err, dtg.DeadlineExceeded)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context's error: %v", err)
		}
	})
	refused(t, s.Run(background, dtg.Target(wait), dtg.Timeout(-1)), dtg.InvalidArgument)
}

func TestAsynchronousRuns(t *testing.T) {
	leaves(t)
	s, wait, release := blocked(t)
	var value float32
	run := get(s.RunAsync(dtg.Fetch(wait, &value)))(t)
	want(t, s.Run(background, dtg.Target(release)))
	want(t, run.Wait(background))
	want(t, run.Wait(background))
	if value != 5 {
		t.Errorf("dequeued %g", value)
	}
	run.Cancel() // too late
	want(t, run.Close())
	dropped := get(s.RunAsync(dtg.Target(wait)))(t)
	want(t, dropped.Close())
	want(t, dropped.Close())
	want(t, s.Run(background, dtg.Target(release)))
	<-dropped.Done()
	_, err := s.RunAsync()
	refused(t, err, dtg.InvalidArgument)
}

func TestRunRepeatedly(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 0)
	more := g.AssignAddVariableOp(w.Handle, g.ConstF32(1))
	init := model.Init()
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	run := get(s.RunRepeatedly(more))(t)
	for value := float32(0); value < 100; {
		want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	}
	run.Cancel()
	refused(t, run.Wait(background), dtg.Cancelled)
	_, err := s.RunRepeatedly(dtg.Value{})
	refused(t, err, dtg.InvalidArgument)
}

// Runs that are cancelled at any time, before, during and after: each ends once, and nothing is left.
func TestCancelStorm(t *testing.T) {
	leaves(t)
	s, wait, release := blocked(t)
	quick, x, y := doubler(t)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 200 {
				ctx, cancel := context.WithTimeout(background, time.Duration(i*(worker+1))*time.Microsecond)
				var value float32
				var out []float32
				if err := s.Run(ctx, dtg.Fetch(wait, &value)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a dequeue from an empty queue: %v, %g", err, value)
				}
				cancel()
				ctx, cancel = context.WithTimeout(background, time.Duration(i)*time.Microsecond)
				if err := quick.Run(ctx, dtg.FeedSlice(x, []float32{1}), dtg.FetchSlice(y, &out)); err == nil && out[0] != 2 {
					t.Errorf("%v", out)
				} else if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		}()
	}
	group.Wait()
	want(t, s.Run(background, dtg.Target(release)))
	var value float32
	want(t, s.Run(background, dtg.Fetch(wait, &value)))
	if value != 5 {
		t.Errorf("a cancelled dequeue took an element: %g", value)
	}
}

func TestCloseCancelsRuns(t *testing.T) {
	leaves(t)
	s, wait, _ := blocked(t)
	run := get(s.RunAsync(dtg.Target(wait)))(t)
	want(t, s.Shutdown(background))
	refused(t, run.Wait(background), dtg.Cancelled)
}

func TestCallable(t *testing.T) {
	contexts(t, func(t *testing.T, ctx context.Context) {
		leaves(t)
		s, x, y := doubler(t)
		call := closing(t, get(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))(t))
		in := vector(t, 1, 2)
		out := []*dtg.Tensor{nil}
		want(t, call.Run(ctx, []*dtg.Tensor{in}, out))
		closing(t, out[0])
		equal(t, out[0].Float32s(), []float32{2, 4})
		in.Float32s()[1] = 7
		before := out[0]
		want(t, call.Run(ctx, []*dtg.Tensor{in}, out))
		if out[0] != before {
			t.Error("a new tensor, where one was given")
		}
		equal(t, out[0].Float32s(), []float32{2, 14})
		refused(t, call.Run(ctx, nil, out), dtg.InvalidArgument, "prepared with 1 feeds and 1 fetches, called with 0 and 1")
		refused(t, call.Run(ctx, []*dtg.Tensor{vector(t, 1)}, out), dtg.InvalidArgument)
		refused(t, call.Run(ctx, []*dtg.Tensor{nil}, out), dtg.InvalidArgument, "the tensor is nil")
	})
}

func TestCallableOfManyFeeds(t *testing.T) {
	leaves(t)
	g := graph(t)
	var feeds []dtg.Value
	var tensors []*dtg.Tensor
	for i := range 20 {
		feeds = append(feeds, g.Placeholder(fmt.Sprint("x", i), dtg.Float32, dtg.Shape{1}))
		tensors = append(tensors, vector(t, float32(i)))
	}
	sum := g.AddN(feeds)
	s := connect(t, g)
	call := closing(t, get(s.Prepare(dtg.Signature{Feeds: feeds, Fetches: append([]dtg.Value{sum}, feeds[:0]...)}))(t))
	out := []*dtg.Tensor{nil}
	want(t, call.Run(background, tensors, out))
	equal(t, closing(t, out[0]).Float32s(), []float32{190})
}

func TestDevicesAndReset(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 3)
	init := model.Init()
	s := connect(t, g, dtg.SessionOptions{CPUDevices: 2, DefaultTimeout: time.Minute, SoftPlacement: true, DisableFusion: true})
	var names []string
	for _, name := range s.Devices() {
		names = append(names, name)
	}
	if len(names) != 2 || !strings.HasSuffix(names[1], "/task:0/device:CPU:1") {
		t.Errorf("devices %v", names)
	}
	var value float32
	want(t, s.Run(background, dtg.Target(init)))
	want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	want(t, s.Reset("nobody's"))
	want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
	want(t, s.Reset())
	refused(t, s.Run(background, dtg.Fetch(w.Read, &value)), dtg.FailedPrecondition, "w")
	refused(t, s.EndJob(background), dtg.FailedPrecondition)
	refused(t, s.EndJobNow(background), dtg.FailedPrecondition)
	want(t, s.Barrier(background, "alone"))
	refused(t, s.Barrier(background, ""), dtg.InvalidArgument)
	_, err := dtg.Connect(background, "local", g, dtg.SessionOptions{CPUDevices: -1})
	refused(t, err, dtg.InvalidArgument)
}

func TestErrorsTellWhatFailed(t *testing.T) {
	leaves(t)
	g := graph(t)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1})
	y := g.With(dtg.Node{Name: "down"}).Reshape(x, g.ConstI64s(2, 2))
	s := connect(t, g)
	err := s.Run(background, dtg.FeedSlice(x, []float32{1, 2, 3}), dtg.Target(y))
	refused(t, err, dtg.InvalidArgument, "down", "session_test.go:")
	var e *dtg.Error
	if errors.As(err, &e); e.Node != "down" || e.Phase == "" || e.Error() != "INVALID_ARGUMENT: "+e.Message {
		t.Errorf("%+v", e)
	}
	if errors.Is(err, dtg.ErrNotFound) || !errors.Is(err, dtg.ErrInvalidArgument) {
		t.Error("errors.Is")
	}
}

func TestOneValueFetchedManyTimes(t *testing.T) {
	leaves(t)
	s, x, y := doubler(t)
	var all [9][]float32
	args := []dtg.Arg{dtg.FeedSlice(x, []float32{1})}
	for i := range all {
		args = append(args, dtg.FetchSlice(y, &all[i]))
	}
	want(t, s.Run(background, args...))
	if !slices.EqualFunc(all[:], make([]int, len(all)), func(got []float32, _ int) bool { return len(got) == 1 && got[0] == 2 }) {
		t.Errorf("fetched nine times: %v", all)
	}
}

// A prepared call: one crossing a step, and nothing allocated where tensors are given.
func ExampleCallable() {
	g := dtg.NewGraph()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	y := g.Mul(x, x)
	session := dtg.Must(dtg.Connect(context.Background(), "local", g))
	call := dtg.Must(session.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))
	in, out := dtg.Must(dtg.ScalarTensor(float32(0))), dtg.Must(dtg.ScalarTensor(float32(0)))
	defer dtg.Close(call, session, g, in, out)
	feeds, fetched := []*dtg.Tensor{in}, []*dtg.Tensor{out}
	for i := range 3 {
		in.Float32s()[0] = float32(i)
		dtg.Check(call.Run(context.Background(), feeds, fetched))
		fmt.Println(out.Float32s()[0])
	}
	// Output:
	// 0
	// 1
	// 4
}

// A run ends with its context.
func ExampleSession_Run_cancelled() {
	g := dtg.NewGraph()
	queue := g.FIFOQueueV2([]dtg.DType{dtg.Float32})
	value := g.QueueDequeueV2(queue, []dtg.DType{dtg.Float32})[0] // nobody will put anything in
	session := dtg.Must(dtg.Connect(context.Background(), "local", g))
	defer dtg.Close(session, g)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := session.Run(ctx, dtg.Target(value))
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// A prepared call where tensors are given: nothing for the collector to do.
func TestPreparedCallAllocatesNothing(t *testing.T) {
	leaves(t)
	s, x, y := doubler(t)
	call := closing(t, get(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))(t))
	feeds, fetched := []*dtg.Tensor{vector(t, 1)}, []*dtg.Tensor{vector(t, 0)}
	if n := testing.AllocsPerRun(100, func() { dtg.Check(call.Run(background, feeds, fetched)) }); n != 0 {
		t.Errorf("%g allocations a call", n)
	}
}

// slow is a session whose run takes seconds, but for an early end.
func slow(t *testing.T) (*dtg.Session, dtg.Value, dtg.Value, func(int64) *dtg.Tensor) {
	t.Helper()
	g := graph(t)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, -1})
	product := g.MatMul(x, x)
	return connect(t, g), x, product, func(n int64) *dtg.Tensor {
		return closing(t, get(dtg.AllocateTensor(dtg.Float32, n, n))(t))
	}
}

// What a context ends in the midst of a product is over long before the product would have been, which a small one tells.
func TestContextsEndLongRuns(t *testing.T) {
	leaves(t)
	s, x, product, zeros := slow(t)
	c := get(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{product}}))(t)
	defer c.Close()
	small, large := zeros(512), zeros(5120)
	least := time.Hour
	for range 5 {
		out := []*dtg.Tensor{nil}
		began := time.Now()
		want(t, c.Run(background, []*dtg.Tensor{small}, out))
		least = min(least, time.Since(began))
		out[0].Close()
	}
	whole := 1000 * least
	for _, timed := range []bool{false, true} {
		ctx, cancel := context.WithCancel(background)
		reason := context.Canceled
		if timed {
			reason = context.DeadlineExceeded
			ctx, cancel = context.WithTimeout(background, whole/50)
		} else {
			time.AfterFunc(whole/50, cancel)
		}
		began := time.Now()
		err := c.Run(ctx, []*dtg.Tensor{large}, []*dtg.Tensor{nil})
		if took := time.Since(began); took > whole/2 {
			t.Errorf("a run of %v that was ended after %v took %v", whole, whole/50, took)
		}
		if !errors.Is(err, reason) {
			t.Errorf("not the context's error: %v", err)
		}
		cancel()
	}
}

// A context that ends at any moment ends its own call and no other one.
func TestContextsThatEndAtAnyMoment(t *testing.T) {
	leaves(t)
	s, x, y := doubler(t)
	c := get(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))(t)
	defer c.Close()
	in, out := get(dtg.NewTensor([]float32{1, 2}))(t), get(dtg.NewTensor([]float32{0, 0}))(t)
	defer in.Close()
	defer out.Close()
	var group sync.WaitGroup
	defer group.Wait()
	for i := range 2000 {
		ctx, cancel := context.WithCancel(background)
		group.Add(1)
		go func() {
			defer group.Done()
			for range i % 50 {
				runtime.Gosched()
			}
			cancel()
		}()
		if err := c.Run(ctx, []*dtg.Tensor{in}, []*dtg.Tensor{out}); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		// Nobody ends this one.
		other, stop := context.WithCancel(background)
		want(t, c.Run(other, []*dtg.Tensor{in}, []*dtg.Tensor{out}))
		stop()
	}
}

func BenchmarkCallable(b *testing.B) {
	g := dtg.NewGraph()
	defer g.Close()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{4})
	y := g.Square(x)
	s := dtg.Must(dtg.Connect(background, "local", g))
	defer s.Close()
	c := dtg.Must(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))
	defer c.Close()
	in, out := dtg.Must(dtg.NewTensor([]float32{1, 2, 3, 4})), dtg.Must(dtg.NewTensor([]float32{1, 2, 3, 4}))
	defer in.Close()
	defer out.Close()
	cancellable, cancel := context.WithCancel(background)
	defer cancel()
	timed, cancelTimed := context.WithTimeout(background, time.Hour)
	defer cancelTimed()
	for name, ctx := range map[string]context.Context{"plain": background, "cancellable": cancellable, "deadline": timed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := c.Run(ctx, []*dtg.Tensor{in}, []*dtg.Tensor{out}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A context that has ended already is told as one that ends during the call, with the call that did not begin.
func TestCallTooLate(t *testing.T) {
	leaves(t)
	l := newLab(t)
	s, none := l.trainer.Session(), closing(t, dtg.DatasetRange(0, 1, 1))
	cancelled, cancel := context.WithCancel(background)
	cancel()
	late, stop := context.WithDeadline(background, time.Unix(1, 0))
	defer stop()
	call := closing(t, get(s.Prepare(dtg.Signature{Fetches: []dtg.Value{l.model.GlobalStep().Read}}))(t))
	for name, begin := range map[string]func(context.Context) error{
		"Session.Run":       func(ctx context.Context) error { return s.Run(ctx) },
		"Callable.Run":      func(ctx context.Context) error { return call.Run(ctx, nil, nil) },
		"Connect":           func(ctx context.Context) error { _, err := dtg.Connect(ctx, "local", nil); return err },
		"Trainer.Fit":       func(ctx context.Context) error { return l.trainer.Fit(ctx, l.train, nil, dtg.Fit{Epochs: 1}) },
		"Trainer.Evaluate":  func(ctx context.Context) error { _, err := l.trainer.Evaluate(ctx, none, 0); return err },
		"Trainer.TrainStep": func(ctx context.Context) error { _, err := l.trainer.TrainStep(ctx); return err },
		"Trainer.Events": func(ctx context.Context) error {
			for _, err := range l.trainer.Events(ctx, l.train, nil) {
				return err
			}
			return nil
		},
	} {
		for _, one := range []struct {
			ctx      context.Context
			is, code error
		}{{cancelled, context.Canceled, dtg.ErrCancelled}, {late, context.DeadlineExceeded, dtg.ErrDeadlineExceeded}} {
			err := begin(one.ctx)
			if !errors.Is(err, one.is) || !errors.Is(err, one.code) || !strings.Contains(err.Error(), name+" (session_test.go:") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
