// Checkpoints: saving when it is due, going on to the bit, and what does not fit.

package dtg_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// learner is w moving towards a stream of numbers, by Adam.
type learner struct {
	t     *testing.T
	s     *dtg.Session
	model *dtg.Model
	data  *dtg.Dataset
	sets  *dtg.Checkpoint
	x     dtg.Value
	w     dtg.Value
	train dtg.Value
}

func newLearner(t *testing.T, directory string, size int64, options ...dtg.CheckpointOptions) *learner {
	g := graph(t)
	l := &learner{t: t, model: closing(t, g.NewModel(1))}
	l.x = g.Placeholder("x", dtg.Float32, dtg.Shape{2})
	w := l.model.AddVariable(dtg.VariableSpec{Name: "w", Shape: dtg.Shape{size}})
	l.w = w.Read
	loss := l.model.MeanSquaredError(g.Mean(l.x, dtg.Const(g, []int32{0})), g.Mean(w.Read, dtg.Const(g, []int32{0})))
	l.train = l.model.Minimize(loss, dtg.Optimizer{Kind: dtg.Adam, Rate: 0.1}).Train
	want(t, l.model.Err())
	l.s = connect(t, g)
	l.data = closing(t, dtg.DatasetRange(0, 10, 1).Cast(0, dtg.Float32).Shuffle(0, 7).Repeat(-1).Batch(2, true))
	l.sets = closing(t, dtg.Must(l.model.Checkpoint(l.s, directory, options...)))
	want(t, l.sets.AddData("train", l.data))
	return l
}

func (l *learner) step() {
	batch := dtg.Must(l.data.Next())
	defer batch[0].Close()
	want(l.t, l.s.Run(background, dtg.Feed(l.x, batch[0]), dtg.Target(l.train)))
}

func (l *learner) value() (out []float32) {
	want(l.t, l.s.Run(background, dtg.FetchSlice(l.w, &out)))
	return out
}

func TestCheckpointGoesOn(t *testing.T) {
	leaves(t)
	directory := filepath.Join(t.TempDir(), "sets")
	first := newLearner(t, directory, 3, dtg.CheckpointOptions{EverySteps: 2, Keep: 2, Shards: 2, Every: time.Hour})
	if at := dtg.Must(first.sets.Resume()); at.Outcome != "started" || at.Step != 0 {
		t.Errorf("resumed at %+v", at)
	}
	for step := int64(1); step <= 7; step++ {
		first.step()
		if began := dtg.Must(first.sets.Reached(step)); began != (step%2 == 0) {
			t.Errorf("step %d: a save began: %t", step, began)
		}
		want(t, first.sets.Wait(background))
	}
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	want(t, first.sets.Save(ctx, 7))
	want(t, first.sets.BeginSave(7))
	want(t, first.sets.Wait(ctx))
	if status := dtg.Must(first.sets.Status()); status.Saves != 5 || status.Failures != 0 || status.Step != 7 || status.Writing {
		t.Errorf("status %+v", status)
	}
	want(t, first.sets.Close())
	second := newLearner(t, directory, 3)
	if at := dtg.Must(second.sets.Resume()); at.Outcome != "restored" || at.Step != 7 || at.Variables != 6 || len(at.PassedOver) != 0 {
		t.Errorf("resumed at %+v", at)
	}
	for range 5 {
		first.step()
		second.step()
		if a, b := first.value(), second.value(); a[0] != b[0] || a[2] != b[2] {
			t.Fatalf("%v went on as %v", a, b)
		}
	}
	want(t, second.data.MoveTo(dtg.Must(first.data.Position())))
	if _, err := second.sets.Restore("step-000000000001-0000000000000001"); !errors.Is(err, dtg.ErrNotFound) {
		t.Errorf("a set that is not there: %v", err)
	}
}

func TestCheckpointNamesWhatDoesNotFit(t *testing.T) {
	leaves(t)
	directory := filepath.Join(t.TempDir(), "sets")
	first := newLearner(t, directory, 3)
	dtg.Must(first.sets.Resume())
	want(t, first.sets.Save(background, 0))
	want(t, first.sets.Close())
	other := newLearner(t, directory, 4)
	_, err := other.sets.Restore("")
	if !errors.Is(err, dtg.ErrFailedPrecondition) || !strings.Contains(err.Error(), `"w" is float32[3] there and float32[4] here`) {
		t.Errorf("another shape: %v", err)
	}
	partial := newLearner(t, directory, 4, dtg.CheckpointOptions{Partial: true})
	if at := dtg.Must(partial.sets.Restore("")); at.Variables != 3 || len(at.Reshaped) != 3 {
		t.Errorf("restored %+v", at)
	}
	if err := other.sets.AddData("train", other.data); !errors.Is(err, dtg.ErrAlreadyExists) {
		t.Errorf("a name twice: %v", err)
	}
	if _, err := other.model.Checkpoint(other.s, ""); !errors.Is(err, dtg.ErrInvalidArgument) {
		t.Errorf("no directory: %v", err)
	}
}

// clash has two goroutines do the one and the other until the library refuses one of them; whatever else fails is a failure of the test.
func clash(t *testing.T, noun string, one, other func() error) {
	t.Helper()
	var both sync.WaitGroup
	var over atomic.Bool
	for _, call := range []func() error{one, other} {
		both.Add(1)
		go func() {
			defer both.Done()
			for end := time.Now().Add(time.Minute); !over.Load() && time.Now().Before(end); {
				err := call()
				if err == nil {
					continue
				}
				if over.Swap(true); !errors.Is(err, dtg.FailedPrecondition) || !strings.Contains(err.Error(), noun) {
					t.Errorf("two goroutines in one %s: %v", noun, err)
				}
			}
		}()
	}
	both.Wait()
	if !over.Load() {
		t.Errorf("nobody was refused who came second into a %s", noun)
	}
}

func TestCheckpointOfTwoGoroutines(t *testing.T) {
	leaves(t)
	l := newLearner(t, filepath.Join(t.TempDir(), "sets"), 3)
	dtg.Must(l.sets.Resume())
	want(t, l.sets.Save(background, 0))
	save := func() error { return l.sets.BeginSave(0) }
	restore := func() error { _, err := l.sets.Restore(""); return err }
	next := func() error {
		batch, err := l.data.Next()
		if err == nil {
			err = batch[0].Close()
		}
		return err
	}
	clash(t, "checkpoint", save, save)
	clash(t, "checkpoint", restore, save)
	clash(t, "data set", next, restore)
	clash(t, "data set", next, save)
	clash(t, "model", restore, func() error { _, err := l.model.FindVariable("w"); return err })
	events := closing(t, dtg.Must(dtg.OpenEventWriter(t.TempDir())))
	scalar := func() error { return events.Scalar("loss", 1, 1) }
	clash(t, "event writer", scalar, scalar)
	// All of them go on serving.
	want(t, l.sets.Wait(background))
	l.step()
	want(t, l.sets.Save(background, 1))
	if at := dtg.Must(l.sets.Restore("")); at.Step != 1 {
		t.Errorf("restored %+v", at)
	}
	l.step()
}
