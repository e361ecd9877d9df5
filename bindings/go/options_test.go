// Options: what is said twice, or said and empty, or said with a NUL inside, is refused; nothing of it is dropped without a word.

package dtg_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestOneSetOfOptions(t *testing.T) {
	leaves(t)
	ctx := background
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 1)
	s := connect(t, g)
	table := filepath.Join(t.TempDir(), "a.csv")
	want(t, os.WriteFile(table, []byte("a,b\n1,2\n"), 0o600))
	cluster := closing(t, get(dtg.ParseCluster("worker=127.0.0.1:0"))(t))
	body := func(_ *dtg.Graph, x []dtg.Value) []dtg.Value { return x }
	for name, call := range map[string]func() error{
		"DatasetCSV":       func() error { return dtg.DatasetCSV(table, dtg.CSVOptions{Label: "b"}, dtg.CSVOptions{}).Err() },
		"DatasetJSONLines": func() error { return dtg.DatasetJSONLines(table, dtg.JSONLinesOptions{}, dtg.JSONLinesOptions{}).Err() },
		"Map": func() error {
			d := closing(t, dtg.DatasetRange(0, 3, 1))
			return d.Map(body, dtg.MapOptions{}, dtg.MapOptions{}).Err()
		},
		"Connect":     func() error { return second(dtg.Connect(ctx, "local", g, dtg.SessionOptions{}, dtg.SessionOptions{})) },
		"StartServer": func() error { return second(dtg.StartServer(cluster, dtg.ServerOptions{}, dtg.ServerOptions{})) },
		"NewRuntime":  func() error { return second(dtg.NewRuntime(dtg.RuntimeOptions{}, dtg.RuntimeOptions{})) },
		"Checkpoint": func() error {
			return second(model.Checkpoint(s, "x", dtg.CheckpointOptions{}, dtg.CheckpointOptions{}))
		},
		"FitCallbacks": func() error {
			return (&dtg.Trainer{}).Fit(ctx, nil, nil, dtg.Fit{}, dtg.FitCallbacks{}, dtg.FitCallbacks{})
		},
		"Events": func() error {
			for _, err := range (&dtg.Trainer{}).Events(ctx, nil, nil, dtg.Fit{}, dtg.Fit{}) {
				return err
			}
			return nil
		},
		"an op": func() error {
			of := graph(t)
			x := of.Placeholder("x", dtg.Float32, dtg.Shape{2, 2})
			of.MatMul(x, x, dtg.MatMulAttrs{TransposeA: true}, dtg.MatMulAttrs{TransposeB: true})
			return of.Err()
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, call(), dtg.InvalidArgument, "2 of dtg.", "give one") })
	}
	_ = w
}

// A list of columns that names none was filled, and nothing came of it: it does not mean all of them.
func TestNoColumns(t *testing.T) {
	leaves(t)
	table := filepath.Join(t.TempDir(), "a.csv")
	want(t, os.WriteFile(table, []byte("a,b\n1,2\n"), 0o600))
	refused(t, dtg.DatasetCSV(table, dtg.CSVOptions{Columns: []string{}}).Err(), dtg.InvalidArgument, "Columns is an empty list")
	refused(t, dtg.DatasetJSONLines(table, dtg.JSONLinesOptions{Columns: []string{}}).Err(), dtg.InvalidArgument, "Columns is an empty list")
	equal(t, []int{closing(t, dtg.DatasetCSV(table)).ComponentCount()}, []int{2})
}

// A name is not cut at a NUL.
func TestNulInNames(t *testing.T) {
	leaves(t)
	const cut = "loss\x00x"
	l := newLab(t)
	fit := func(how dtg.Fit) error { return l.trainer.Fit(background, l.train, nil, how) }
	refused(t, fit(dtg.Fit{EarlyStopping: &dtg.EarlyStopping{Monitor: cut}}), dtg.InvalidArgument, `monitor is "loss\0x"`, "NUL")
	refused(t, fit(dtg.Fit{Directory: t.TempDir(), Best: cut}), dtg.InvalidArgument, `best is "loss\0x"`)
	refused(t, fit(dtg.Fit{Directory: "a\x00b"}), dtg.InvalidArgument, `directory is "a\0b"`)
	refused(t, dtg.DatasetCSV("x.csv", dtg.CSVOptions{Label: cut}).Err(), dtg.InvalidArgument, `label is "loss\0x"`)
	refused(t, dtg.DatasetJSONLines("x", dtg.JSONLinesOptions{Label: cut}).Err(), dtg.InvalidArgument, `label is "loss\0x"`)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	refused(t, model.SetMetadata(cut, "x"), dtg.InvalidArgument, `key is "loss\0x"`)
	refused(t, second(model.FindVariable(cut)), dtg.InvalidArgument, `name is "loss\0x"`)
	refused(t, second(g.Find(cut)), dtg.InvalidArgument, `name is "loss\0x"`)
	refused(t, model.SetClasses(cut, "a", "b"), dtg.InvalidArgument, `output is "loss\0x"`)
	weights := closing(t, get(dtg.NewWeights())(t))
	refused(t, weights.Set(cut, vector(t, 1)), dtg.InvalidArgument, `name is "loss\0x"`)
	g.With(dtg.Node{Name: cut}).NoOp()
	refused(t, g.Err(), dtg.InvalidArgument, `name is "loss\0x"`)
}

// What is fed twice is told as that.
func TestAFeedTwice(t *testing.T) {
	leaves(t)
	l := newLab(t)
	l.options.Feeds = []dtg.Value{l.x, l.x}
	_, err := l.model.NewTrainer(l.options)
	refused(t, err, dtg.InvalidArgument, `feeds 0 and 1 are both "x:0"`)
}

// Weights are saved also where something that was built later is wrong.
func TestSaveAfterABuildError(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	model.Variable("w", 1)
	init := model.Init()
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	g.MatMul(init, init)
	if model.Err() == nil {
		t.Fatal("no error")
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	want(t, model.Save(s, path))
	want(t, model.Restore(s, path))
	_, err := model.FindVariable("w")
	want(t, err)
	if err := model.Export(s, path+".dtg", dtg.Export{}); err == nil || !strings.Contains(err.Error(), "MatMul") {
		t.Errorf("exported: %v", err)
	}
}

// Wait answers the second time what it has answered the first, whatever context it is given.
func TestWaitTwice(t *testing.T) {
	leaves(t)
	s, wait, _ := blocked(t)
	run := get(s.RunAsync(dtg.Target(wait)))(t)
	soon, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	first := run.Wait(soon)
	if !errors.Is(first, context.DeadlineExceeded) || !errors.Is(first, dtg.ErrDeadlineExceeded) {
		t.Fatal(first)
	}
	if text := first.Error(); strings.Contains(text, "by its caller") || !strings.Contains(text, "the deadline of its context") {
		t.Error(text)
	}
	for _, ctx := range []context.Context{background, soon} {
		if again := run.Wait(ctx); again != first {
			t.Errorf("again: %v; first: %v", again, first)
		}
	}
}

// Names for an output that there is not are told.
func TestClassesOfNoOutput(t *testing.T) {
	leaves(t)
	var out bytes.Buffer
	r := closing(t, get(dtg.NewRuntime(dtg.RuntimeOptions{Log: slog.NewTextHandler(&out, nil), LogLevel: slog.LevelWarn}))(t))
	g := closing(t, r.NewGraph())
	model := closing(t, g.NewModel(1))
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 1})
	y := model.Dense(x, dtg.Dense{Units: 2})
	init := model.Init()
	s := closing(t, get(dtg.Connect(background, "local", g))(t))
	want(t, s.Run(background, dtg.Target(init)))
	want(t, model.SetClasses("kindd", "cat", "dog"))
	path := filepath.Join(t.TempDir(), "model.dtg")
	want(t, model.Export(s, path, dtg.Export{Inputs: map[string]dtg.Value{"x": x}, Outputs: map[string]dtg.Value{"kind": y}}))
	if told := out.String(); !strings.Contains(told, "kindd") || !strings.Contains(told, "did you mean") {
		t.Errorf("the log: %q", told)
	}
	served, session, err := dtg.LoadModel(path)
	want(t, err)
	defer dtg.Close(session, served, served.Graph())
	refused(t, second(served.Classes("kind")), dtg.NotFound, `"kindd"`)
}
