// Data in two parts, numbers fitted on one of them, layers called twice, and models that are served without their builder.

package dtg_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestSplitNormalizeTrainExportServe(t *testing.T) {
	leaves(t)
	ctx := context.Background()
	x := closing(t, dtg.Must(dtg.NewTensor([]float32{0, 10, 1, 20, 2, 30, 3, 40, 4, 50, 5, 60}, 6, 2)))
	labels := closing(t, dtg.Must(dtg.NewTensor([]int64{0, 1, 0, 1, 0, 1})))
	all := closing(t, dtg.DatasetTensors(x, labels))
	train, test := all.Split(dtg.Split{Fraction: 0.34, Seed: 1, Stratify: true, Classes: 1})
	defer dtg.Close(train, test)
	if train.Cardinality() != 4 || test.Cardinality() != 2 {
		t.Fatalf("%d and %d rows: %v", train.Cardinality(), test.Cardinality(), train.Err())
	}
	numbers, err := train.FitNormalization(0, dtg.NormalizeStandard)
	if err != nil {
		t.Fatal(err)
	}
	test.Normalize(0, numbers).ShuffleOnce(0, 3)
	first, err := test.Next()
	if err != nil {
		t.Fatal(err)
	}
	dtg.Close(first[0], first[1])
	if bad, _ := all.Split(dtg.Split{Fraction: 2}); !errors.Is(bad.Err(), dtg.ErrInvalidArgument) {
		t.Errorf("a fraction of 2: %v", bad.Err())
	}
	if bad, _ := all.Split(dtg.Split{Folds: 2, Fraction: 0.2}); !errors.Is(bad.Err(), dtg.ErrInvalidArgument) {
		t.Errorf("folds and a fraction: %v", bad.Err())
	}

	g := graph(t)
	model := closing(t, g.NewModel(1))
	in := g.Placeholder("in", dtg.Float32, dtg.Shape{-1, 2})
	y := model.Dense(model.Normalize(in, numbers), dtg.Dense{Name: "only", Units: 1})
	again := model.Dense(in, dtg.Dense{Units: 1, WeightsOf: "only"})
	training := model.Minimize(g.Mean(g.Square(g.Sub(y, again)), dtg.Const(g, []int64{0, 1}, 2)), dtg.Optimizer{Kind: dtg.AdamW, Lazy: true, WeightDecay: 0.1})
	init := model.Init()
	session := closing(t, dtg.Must(dtg.Connect(ctx, "local", g)))
	dtg.Check(session.Run(ctx, dtg.Target(init)))
	dtg.Check(session.Run(ctx, dtg.Feed(in, x), dtg.Target(training.Train)))
	var want, got []float32
	dtg.Check(session.Run(ctx, dtg.Feed(in, x), dtg.FetchSlice(y, &want)))
	dtg.Check(model.SetClasses("y", "good"))
	if err := model.SetClasses("", "a", "a"); !errors.Is(err, dtg.ErrInvalidArgument) {
		t.Errorf("a name twice: %v", err)
	}
	if err := model.SetClasses("", "a\x00"); !errors.Is(err, dtg.ErrInvalidArgument) {
		t.Errorf("a name with a NUL: %v", err)
	}
	path := filepath.Join(t.TempDir(), "model.dtg")
	for _, freeze := range []bool{false, true} {
		what := dtg.Export{Inputs: map[string]dtg.Value{"x": in}, Outputs: map[string]dtg.Value{"y": y}, Freeze: freeze}
		if err := model.Export(session, path, what); err != nil {
			t.Fatal(err)
		}
		served, alone, err := dtg.LoadModel(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := served.Endpoint("z"); !errors.Is(err, dtg.ErrNotFound) || served.Err() != nil {
			t.Errorf("an output that is none: %v, which the model keeps as %v", err, served.Err())
		}
		in, out := dtg.Must(served.Endpoint("x")), dtg.Must(served.Endpoint("y"))
		dtg.Check(alone.Run(ctx, dtg.Feed(in, x), dtg.FetchSlice(out, &got)))
		if !slices.Equal(want, got) {
			t.Errorf("served %v, trained %v", got, want)
		}
		inputs, outputs, err := served.Endpoints()
		if err != nil || len(inputs) != 1 || len(outputs) != 1 || outputs[0].Name != "y" || !slices.Equal(outputs[0].Shape, []int64{-1, 1}) {
			t.Errorf("endpoints %v %v %v", inputs, outputs, err)
		}
		if names, err := served.Classes("y"); err != nil || !slices.Equal(names, []string{"good"}) {
			t.Errorf("classes %q, %v", names, err)
		}
		if _, err := served.Classes(""); !errors.Is(err, dtg.ErrNotFound) {
			t.Errorf("names of all: %v", err)
		}
		dtg.Close(alone, served, served.Graph())
	}
	if _, _, err := dtg.LoadModel(path + ".none"); !errors.Is(err, dtg.ErrNotFound) {
		t.Errorf("no file: %v", err)
	}
}

// A fit keeps the names of its classes, whoever loads the model has them, and reads by its schema what has no label.
func TestClassesOfAFit(t *testing.T) {
	leaves(t)
	ctx := context.Background()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		dtg.Check(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	data := closing(t, dtg.DatasetJSONLines(write("train.jsonl", "{\"size\": 1, \"kind\": \"dog\"}\n{\"size\": 2, \"kind\": \"cat\"}\n"),
		dtg.JSONLinesOptions{Label: "kind"})).Batch(2, false)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x, y := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 1}), g.Placeholder("y", dtg.Int64, dtg.Shape{-1})
	scores := model.Dense(x, dtg.Dense{Units: 2})
	trainer := closing(t, get(model.NewTrainer(dtg.TrainerOptions{Feeds: []dtg.Value{x, y}, Outputs: []dtg.Value{scores},
		Loss: model.SparseSoftmaxCrossEntropy(y, scores)}))(t))
	dtg.Check(trainer.Fit(ctx, data, nil, dtg.Fit{Directory: filepath.Join(folder, "run")}))
	served, session, err := dtg.LoadModel(filepath.Join(folder, "run", "model.dtg"))
	dtg.Check(err)
	defer dtg.Close(session, served, served.Graph())
	equal(t, get(served.Classes("output"))(t), []string{"cat", "dog"})
	if _, err := served.Classes("outptu"); !errors.Is(err, dtg.ErrNotFound) {
		t.Errorf("no such output: %v", err)
	}
	fresh := closing(t, dtg.DatasetJSONLines(write("new.jsonl", "{\"size\": 3}\n"), dtg.JSONLinesOptions{Schema: get(served.Metadata("schema"))(t)}))
	row := get(fresh.Next())(t)
	defer dtg.Close(row[0])
	if len(row) != 1 {
		t.Errorf("%d components without a label", len(row))
	}
	_, err = dtg.Connect(ctx, "", g)
	refused(t, err, dtg.InvalidArgument, "the target is empty", "\"local\"")
}

func TestRestoreByOtherNames(t *testing.T) {
	leaves(t)
	ctx := context.Background()
	build := func(name string) (*dtg.Model, *dtg.Session) {
		g := graph(t)
		model := closing(t, g.NewModel(1))
		model.Dense(g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 2}), dtg.Dense{Name: name, Units: 3})
		init := model.Init()
		session := closing(t, dtg.Must(dtg.Connect(ctx, "local", g)))
		dtg.Check(session.Run(ctx, dtg.Target(init)))
		return model, session
	}
	old, at := build("old")
	path := filepath.Join(t.TempDir(), "old.safetensors")
	dtg.Check(old.Save(at, path))
	fresh, here := build("new")
	if _, err := fresh.RestoreFrom(here, path, dtg.RestoreOptions{}); !errors.Is(err, dtg.ErrFailedPrecondition) {
		t.Errorf("other names: %v", err)
	}
	report, err := fresh.RestoreFrom(here, path, dtg.RestoreOptions{Names: map[string]string{"new/kernel": "old/kernel"}, Partial: true})
	if err != nil || report.Variables != 1 || len(report.Missing) != 1 || len(report.Extra) != 1 {
		t.Errorf("%+v %v", report, err)
	}
	sets := closing(t, dtg.Must(fresh.Checkpoint(here, t.TempDir(), dtg.CheckpointOptions{Names: map[string]string{"new/": "old/"}})))
	if _, err := sets.Restore(""); !errors.Is(err, dtg.ErrNotFound) {
		t.Errorf("no sets: %v", err)
	}
	bytes := dtg.Must(old.Graph().Serialize())
	other := graph(t)
	dtg.Check(other.Import(bytes))
	if found := closing(t, other.ImportModel(1)); found.VariableCount() != 2 {
		t.Errorf("%d variables in the imported graph: %v", found.VariableCount(), other.Err())
	}
}
