// Misuse: what was closed, what is nil, what does not exist; and ten thousand of everything, which must leave nothing behind.

package dtg_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// everything is one object of each type, and calls on it that must be refused when it is closed.
func everything(t *testing.T) (objects []io.Closer, calls map[string]func() error) {
	t.Helper()
	ctx := background
	r := get(dtg.NewRuntime())(t)
	g := dtg.NewGraph()
	model := g.NewModel(1)
	w := model.Variable("w", 1)
	init := model.Init()
	s := get(dtg.Connect(ctx, "local", g))(t)
	want(t, s.Run(ctx, dtg.Target(init)))
	call := get(s.Prepare(dtg.Signature{Fetches: []dtg.Value{w.Read}}))(t)
	tensor := get(dtg.NewTensor([]float32{1}))(t)
	cluster := get(dtg.ParseCluster("worker=unix:" + filepath.Join(private(t), "w")))(t)
	server := get(dtg.StartServer(cluster))(t)
	data := dtg.DatasetRange(0, 3, 1)
	weights := get(dtg.NewWeights())(t)
	events := get(dtg.OpenEventWriter(t.TempDir()))(t)
	function := g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value { return []dtg.Value{b.ConstF32(1)} })
	y := g.Placeholder("y", dtg.Float32, dtg.Shape{-1})
	trainer := get(model.NewTrainer(dtg.TrainerOptions{Feeds: []dtg.Value{y}, Loss: model.MeanSquaredError(y, w.Read)}))(t)
	fetched := []*dtg.Tensor{nil}
	two := func(_ any, err error) error { return err }
	return []io.Closer{r, g, model, s, call, tensor, cluster, server, data, weights, events, function, trainer}, map[string]func() error{
		"runtime: r.Metrics":                 func() error { return two(r.Metrics()) },
		"runtime: r.StartTrace":              func() error { return r.StartTrace() },
		"runtime: r.NewGraph":                func() error { return r.NewGraph().Err() },
		"runtime: r.StartServer":             func() error { return two(r.StartServer(closing(t, dtg.Must(dtg.ParseCluster("a=b:1"))))) },
		"runtime: r.LoadWeights":             func() error { return two(r.LoadWeights("x")) },
		"runtime: r.DatasetRange":            func() error { return r.DatasetRange(0, 1, 1).Err() },
		"graph: Find":                        func() error { return two(g.Find("w")) },
		"graph: ValueName":                   func() error { return two(g.ValueName(init)) },
		"graph: ValueShape":                  func() error { return two(g.ValueShape(init)) },
		"graph: ValueDType":                  func() error { return two(g.ValueDType(init)) },
		"graph: Serialize":                   func() error { return two(g.Serialize()) },
		"graph: Connect":                     func() error { return two(dtg.Connect(ctx, "local", g)) },
		"graph: nil":                         func() error { return two(dtg.Connect(ctx, "local", nil)) },
		"model: FindVariable":                func() error { return two(model.FindVariable("w")) },
		"session: Save":                      func() error { return closing(t, graph(t).NewModel(1)).Save(s, "x") },
		"session: Run":                       func() error { return s.Run(ctx, dtg.Target(init)) },
		"session: RunAsync":                  func() error { return two(s.RunAsync(dtg.Target(init))) },
		"session: RunRepeatedly":             func() error { return two(s.RunRepeatedly(init)) },
		"session: Prepare":                   func() error { return two(s.Prepare(dtg.Signature{})) },
		"session: Reset":                     func() error { return s.Reset() },
		"session: EndJob":                    func() error { return s.EndJob(ctx) },
		"session: EndJobNow":                 func() error { return s.EndJobNow(ctx) },
		"session: Barrier":                   func() error { return s.Barrier(ctx, "b") },
		"session: Outcome":                   func() error { return two(s.Outcome(ctx, 1)) },
		"session: ClusterStatus":             func() error { return two(s.ClusterStatus(ctx)) },
		"session: Restore":                   func() error { return closing(t, graph(t).NewModel(1)).Restore(s, "x") },
		"function: Captures":                 func() error { return two(function.Captures()) },
		"callable: Run":                      func() error { return call.Run(ctx, nil, fetched) },
		"tensor: View":                       func() error { return two(dtg.View[float32](tensor)) },
		"tensor: Copy":                       func() error { return two(dtg.Copy[float32](tensor)) },
		"tensor: Feed":                       func() error { return s.Run(ctx, dtg.Feed(w.Read, tensor), dtg.Target(init)) },
		"tensor: FetchTensor":                func() error { return s.Run(ctx, dtg.FetchTensor(w.Read, &tensor)) },
		"tensor: Weights.Set":                func() error { return weights.Set("x", tensor) },
		"tensor: DatasetTensors":             func() error { return dtg.DatasetTensors(tensor).Err() },
		"cluster: JSON":                      func() error { return two(cluster.JSON()) },
		"cluster: Target":                    func() error { return two(cluster.Target(dtg.Task{})) },
		"cluster: StartServer":               func() error { return two(dtg.StartServer(cluster)) },
		"server: Join":                       func() error { return server.Join(ctx) },
		"server: Stop":                       func() error { return server.Stop(0) },
		"server: Status":                     func() error { return two(server.Status()) },
		"dataset: Next":                      func() error { return two(data.Next()) },
		"dataset: Restart":                   func() error { return data.Restart() },
		"weight set: Get":                    func() error { return two(weights.Get("x")) },
		"weight set: Save":                   func() error { return weights.Save("x") },
		"weight set: SetMetadata":            func() error { return weights.SetMetadata("x", "y") },
		"event writer: Scalar":               func() error { return events.Scalar("x", 1, 1) },
		"event writer: Flush":                func() error { return events.Flush() },
		"event writer: Text":                 func() error { return events.Text("x", 1, "y") },
		"event writer: Histogram":            func() error { return events.Histogram("x", 1, closing(t, dtg.Must(dtg.ScalarTensor(float32(1))))) },
		"trainer: TrainStep":                 func() error { return two(trainer.TrainStep(ctx)) },
		"trainer: Summary":                   func() error { return two(trainer.Summary()) },
		"trainer: Evaluate":                  func() error { return two(trainer.Evaluate(ctx, closing(t, dtg.DatasetRange(0, 1, 1)), 0)) },
		"trainer: Predict":                   func() error { return two(trainer.Predict(ctx, closing(t, dtg.DatasetRange(0, 1, 1)))) },
		"trainer: Fit":                       func() error { return trainer.Fit(ctx, closing(t, dtg.DatasetRange(0, 1, 1)), nil, dtg.Fit{}) },
		"graph: AddOp, which makes it stick": func() error { g.NoOp(); return g.Err() },
	}
}

func TestUseAfterClose(t *testing.T) {
	leaves(t)
	objects, calls := everything(t)
	for _, object := range objects {
		want(t, object.Close())
		want(t, object.Close())
	}
	for name, call := range calls {
		if name == "graph: AddOp, which makes it stick" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, ":")
			wanted := fmt.Sprintf("this is not an open %s: it was closed", kind)
			if strings.HasSuffix(name, "nil") {
				wanted = "the graph is nil; make one first"
			}
			err := call()
			if strings.Contains(name, "tensor: Fe") {
				wanted = "this is not an open"
			}
			refused(t, err, dtg.InvalidArgument, wanted)
		})
	}
	refused(t, calls["graph: AddOp, which makes it stick"](), dtg.InvalidArgument, "this is not an open graph")
}

// What a constructor that failed has given may be closed.
func TestCloseOfNil(t *testing.T) {
	want(t, dtg.Close((*dtg.Runtime)(nil), (*dtg.Graph)(nil), (*dtg.Model)(nil), (*dtg.Session)(nil), (*dtg.Callable)(nil), (*dtg.Tensor)(nil),
		(*dtg.Cluster)(nil), (*dtg.Server)(nil), (*dtg.Dataset)(nil), (*dtg.Weights)(nil), (*dtg.EventWriter)(nil), (*dtg.Run)(nil), (*dtg.Function)(nil), (*dtg.Trainer)(nil)))
	refused(t, (*dtg.Session)(nil).Run(background), dtg.InvalidArgument, "the session is nil")
}

// Getters without an error answer with nothing.
func TestGettersAfterClose(t *testing.T) {
	leaves(t)
	objects, _ := everything(t)
	want(t, dtg.Close(objects...))
	for _, object := range objects {
		switch o := object.(type) {
		case *dtg.Runtime:
			equal(t, []int{o.Threads()}, []int{0})
		case *dtg.Graph:
			equal(t, []int{o.NodeCount()}, []int{0})
		case *dtg.Model:
			equal(t, []int{o.VariableCount()}, []int{0})
		case *dtg.Server:
			equal(t, []string{o.Target()}, []string{""})
		case *dtg.Dataset:
			equal(t, []int64{o.Cardinality(), int64(o.ComponentCount())}, []int64{-2, 0})
		case *dtg.Weights:
			equal(t, []int{o.Len()}, []int{0})
		case *dtg.Tensor:
			equal(t, o.Float32s(), nil)
		case *dtg.Cluster:
			equal(t, []int{o.TaskCount("worker")}, []int{0})
		case *dtg.Session:
			for range o.Devices() {
				t.Error("a device")
			}
		}
	}
}

// What the binding says of a closed object is what the library says of a released handle.
func TestClosedInTheWordsOfTheLibrary(t *testing.T) {
	leaves(t)
	s, x, y := doubler(t)
	tensor := get(dtg.NewTensor([]float32{1}))(t)
	feed := dtg.Feed(x, tensor) // asks for the handle when the run begins
	var out []float32
	want(t, tensor.Close())
	refused(t, s.Run(background, feed, dtg.FetchSlice(y, &out)), dtg.InvalidArgument, "not an open tensor")
	refused(t, s.Run(background), dtg.InvalidArgument)
}

func TestWrongFeedsAndFetches(t *testing.T) {
	contexts(t, func(t *testing.T, ctx context.Context) {
		leaves(t)
		s, x, y := doubler(t)
		other, wait, _ := blocked(t)
		var out []float32
		for name, args := range map[string][]dtg.Arg{
			"a placeholder that is not fed":   {dtg.FetchSlice(y, &out)},
			"another type":                    {dtg.FeedSlice(x, []int64{1}), dtg.FetchSlice(y, &out)},
			"another shape":                   {dtg.FeedSlice(x, []float32{1}, 1, 1), dtg.FetchSlice(y, &out)},
			"fed twice":                       {dtg.FeedSlice(x, []float32{1}), dtg.FeedSlice(x, []float32{1}), dtg.FetchSlice(y, &out)},
			"fed and fetched":                 {dtg.FeedSlice(x, []float32{1}), dtg.FetchSlice(x, &out)},
			"a value of another graph":        {dtg.FetchSlice(wait, &out)},
			"no value":                        {dtg.Target(dtg.Value{})},
			"nothing asked for":               nil,
			"a tensor that is nil":            {dtg.Feed(x, nil), dtg.FetchSlice(y, &out)},
			"another type to be fetched":      {dtg.FeedSlice(x, []float32{1}), dtg.FetchSlice(y, &[]int64{})},
			"no place for a number":           {dtg.FeedSlice(x, []float32{1}), dtg.Fetch[float32](y, nil)},
			"no place for elements":           {dtg.FeedSlice(x, []float32{1}), dtg.FetchSlice[float32](y, nil)},
			"no place for a tensor":           {dtg.FeedSlice(x, []float32{1}), dtg.FetchTensor(y, nil)},
			"too many elements for the shape": {dtg.FeedSlice(x, []float32{1, 2}, 3), dtg.FetchSlice(y, &out)},
		} {
			t.Run(name, func(t *testing.T) { refused(t, s.Run(ctx, args...), dtg.InvalidArgument) })
		}
		refused(t, other.Run(ctx, dtg.Target(y)), dtg.InvalidArgument)
		_, err := s.Prepare(dtg.Signature{Fetches: []dtg.Value{wait}})
		refused(t, err, dtg.InvalidArgument)
		// A node without outputs can be a target, but not be fed.
		g := graph(t)
		nothing := g.NoOp()
		bare := connect(t, g)
		want(t, bare.Run(ctx, dtg.Target(nothing)))
		refused(t, bare.Run(ctx, dtg.FeedScalar(nothing, float32(1)), dtg.Target(nothing)), dtg.InvalidArgument)
		refused(t, bare.Run(ctx, dtg.FetchSlice(nothing, &out)), dtg.InvalidArgument)
	})
}

func TestUnknownOp(t *testing.T) {
	leaves(t)
	g := graph(t)
	g.AddOp(dtg.OpSpec{Type: "MatMull"})
	refused(t, g.Err(), dtg.NotFound, "MatMul")
}

// Texts that the library reads up to a NUL are not cut in silence.
func TestNulInTexts(t *testing.T) {
	leaves(t)
	const cut = "in\x00two"
	refused(t, dtg.DatasetIDX(cut).Err(), dtg.InvalidArgument, "NUL")
	refused(t, dtg.DatasetCSV("x", dtg.CSVOptions{Columns: []string{cut}}).Err(), dtg.InvalidArgument, "NUL")
	g := graph(t)
	g.NoOp()
	s := connect(t, g)
	refused(t, s.Reset(cut), dtg.InvalidArgument, "NUL")
	g.SetDevices(dtg.DeviceSetter{PSTasks: 1, PSDevice: cut}, func() {})
	refused(t, g.Err(), dtg.InvalidArgument, "NUL")
	cluster := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:0"))(t))
	_, err := dtg.StartServer(cluster, dtg.ServerOptions{DeviceFilters: []string{cut}})
	refused(t, err, dtg.InvalidArgument, "NUL")
}

// Closing while others use the object: every call is carried out or refused.
func TestCloseWhileRunning(t *testing.T) {
	leaves(t)
	for range 50 {
		g := dtg.NewGraph()
		x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
		y := g.Neg(x)
		s := get(dtg.Connect(background, "local", g))(t)
		call := get(s.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))(t)
		var group sync.WaitGroup
		for range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				in := dtg.Must(dtg.ScalarTensor(float32(1)))
				defer in.Close()
				for range 20 {
					out := []*dtg.Tensor{nil}
					if call.Run(background, []*dtg.Tensor{in}, out) == nil {
						out[0].Close()
					}
					_ = s.Run(background, dtg.Feed(x, in), dtg.Target(y))
				}
			}()
		}
		want(t, dtg.Close(call, s, g))
		group.Wait()
	}
}

// Who forgets to close is told, and what was forgotten is released.
func TestForgotten(t *testing.T) {
	leaves(t)
	var told lines
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&told, nil)))
	defer slog.SetDefault(before)
	open := dtg.LiveHandles()
	first := lineOf()
	func() {
		g := dtg.NewGraph()
		g.ConstF32(1)
		for range 16 { // of many tensors one in 16 has its place noted
			dtg.Must(dtg.ScalarTensor(float32(1)))
		}
	}()
	until(t, func() bool { return dtg.LiveHandles() == open })
	for _, words := range []string{"never closed", fmt.Sprintf("object=graph made=misuse_test.go:%d", first+2),
		fmt.Sprintf("object=tensor made=misuse_test.go:%d", first+5)} {
		if !strings.Contains(told.String(), words) {
			t.Errorf("%q was not told: %s", words, told.String())
		}
	}
}

// lineOf is the line of its caller.
func lineOf() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

type lines struct {
	sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.Lock()
	defer l.Unlock()
	return l.text.String()
}

// Ten thousand of each, in slices, and on until two slices in a row add next to nothing (a leak of 128 bytes a round is seen): what leaks
// never comes to rest, memory pools do.
func TestTenThousand(t *testing.T) {
	leaves(t)
	g := graph(t)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1})
	y := g.Neg(x)
	want(t, g.Err())
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	cluster := closing(t, get(dtg.ParseCluster("worker=unix:"+filepath.Join(private(t), "w")))(t))
	data := make([]float32, 256)
	long := make([]float32, 1<<15)
	shared := connect(t, g)
	for name, once := range map[string]func() error{
		"sessions": func() error {
			s, err := dtg.Connect(background, "local", g)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.Run(background, dtg.FeedSlice(x, data), dtg.Target(y))
		},
		"tensors": func() error {
			tensor, err := dtg.NewTensor(data)
			if err != nil {
				return err
			}
			return tensor.Close()
		},
		"servers": func() error {
			server, err := dtg.StartServer(cluster)
			if err != nil {
				return err
			}
			return server.Close()
		},
		"asynchronous runs": func() error { return shared.Run(ctx, dtg.FeedSlice(x, data), dtg.FetchSlice(y, &[]float32{})) },
		"loans":             func() error { return shared.Run(background, dtg.FeedSlice(x, long), dtg.Target(y)) },
		"errors":            func() error { _, _ = g.Find("nobody"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var grown []int64
			for quiet := 0; quiet < 2 || len(grown) <= rounds/slice; {
				before := rss(t)
				for range slice {
					want(t, once())
				}
				grown = append(grown, (rss(t)-before)>>10)
				if quiet++; grown[len(grown)-1] >= 256 {
					quiet = 0
				}
				if len(grown) > 5*rounds/slice {
					t.Fatalf("%d after the other add KiB without end: %v", slice, grown)
				}
			}
			t.Logf("%d times %d, KiB more each time: %v", len(grown), slice, grown)
		})
	}
}

// A fetch into the wrong type is refused before anything runs, wherever the graph knows the type.
func TestFetchesAreCheckedBeforeTheRun(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 1)
	open := g.Placeholder("x", dtg.Float32, dtg.Shape{-1})
	step := g.AssignAddVariableOp(w.Handle, g.ConstF32(1))
	pair := dtg.Const(g, []float32{1, 2})
	halves := g.With(dtg.Node{Name: "halves"}).Split(dtg.ConstScalar(g, int32(0)), dtg.Const(g, []float32{1, 2, 3, 4}), 2)
	s := closing(t, get(dtg.Connect(background, "local", g))(t))
	want(t, s.Run(background, dtg.Target(model.Init())))
	var whole int64
	var one float32
	var wholes []int32
	type asked map[string]struct {
		fetch dtg.Arg
		says  []string
	}
	x := dtg.FeedSlice(open, []float32{1, 2})
	for name, c := range (asked{
		"another type":             {dtg.Fetch(w.Read, &whole), []string{"float32", "int64", "Cast"}},
		"a slice of another type":  {dtg.FetchSlice(pair, &wholes), []string{"float32", "int32"}},
		"two elements":             {dtg.Fetch(pair, &one), []string{"[2]", "FetchSlice"}},
		"one of many outputs":      {dtg.Fetch(halves[1], &one), []string{`fetch number 0, "halves:1", is float32 [2]`, "FetchSlice"}},
		"another type, open shape": {dtg.FetchSlice(open, &wholes), []string{"float32", "int32"}},
	}) {
		for way, run := range map[string]func() error{
			"Run":      func() error { return s.Run(background, x, c.fetch, dtg.Target(step)) },
			"RunAsync": func() error { _, err := s.RunAsync(x, c.fetch, dtg.Target(step)); return err },
		} {
			err := run()
			for _, words := range append(c.says, "nothing has run") {
				refused(t, err, dtg.InvalidArgument, words)
			}
			var value float32
			want(t, s.Run(background, dtg.Fetch(w.Read, &value)))
			equal(t, []float32{value}, []float32{1})
			_, _ = name, way
		}
	}
	// What only the run shows: it was made.
	refused(t, s.Run(background, x, dtg.Fetch(g.Neg(open), &one), dtg.Target(step)), dtg.InvalidArgument,
		`fetch number 0, "Neg": it is float32 [2]`, "take FetchSlice; the run was made")
	want(t, s.Run(background, dtg.Fetch(w.Read, &one)))
	equal(t, []float32{one}, []float32{2})
	// A graph that was closed cannot be asked.
	want(t, g.Close())
	refused(t, s.Run(background, dtg.Fetch(w.Read, &whole)), dtg.InvalidArgument, "not int64")
}
