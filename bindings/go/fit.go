// Fit: how long a training goes on, what it watches and keeps, and the events that it comes to. One goroutine at a time, the trainer's.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// Better is which way a value gets better.
type Better int32

// The ways.
const (
	BetterByName  Better = 0 // greater where the name has acc, auc, precision, recall, f1, r2 or iou in it, else less
	BetterLess    Better = 1
	BetterGreater Better = 2
)

// EarlyStopping ends a fit when a value has not got better for Patience epochs. Semantics: keras.callbacks.EarlyStopping.
type EarlyStopping struct {
	Monitor        string // "loss", "val_loss", or a metric, with or without "val_"; "": "val_loss" where there is validation, else "loss"
	Better         Better
	HasBaseline    bool // patience begins anew only with values that are better than Baseline too
	Baseline       float64
	MinDelta       float64 // by how much a value must be better to count
	Patience       int64   // epochs without progress; 0 is as 1
	StartFromEpoch int64   // so many epochs pass before it looks
	RestoreBest    bool    // when the fit ends, but by no error, the weights are those of the best epoch
}

// Plateau lowers the learning rate when a value has not got better for Patience epochs: rate = max(rate * Factor, MinRate). Semantics:
// keras.callbacks.ReduceLROnPlateau.
type Plateau struct {
	Monitor  string // as in EarlyStopping
	Better   Better
	Factor   float64 // between 0 and 1; 0: 0.1
	MinDelta float64 // 0: 0.0001; below 0: none
	MinRate  float64
	Patience int64 // 0: 10
	Cooldown int64 // epochs after a fall in which none are counted
}

// Fit is how long a fit goes on, what it watches and what it keeps. Zero is the default of every field; one that would do nothing, such as
// CheckpointSteps without a Directory, is InvalidArgument.
//
// With a Directory, a fit that was killed at any moment and is begun again by the same program goes on with the step that comes after its
// last checkpoint, and ends with the same weights to the last bit, where training is deterministic. In it are checkpoints, metrics.csv and
// metrics.jsonl with a row per epoch, best.safetensors (Best), and at the end model.safetensors (for Model.RestoreFrom), model.dtg (for
// LoadModel, where the trainer has outputs) and summary.json.
type Fit struct {
	Epochs           int64         // in all, those before it went on too; 0: 1
	StepsPerEpoch    int64         // 0: until the data ends. Otherwise an epoch goes on in the data where the one before has ended
	ValidationEvery  int64         // epochs; 0: 1
	ValidationSteps  int64         // 0: all of the data
	TimeLimit        time.Duration // the fit ends in good order before the first step after that; 0: no limit
	Directory        string        // of this run; made where it is not there. "": nothing is kept
	CheckpointSteps  int64         // a checkpoint at each multiple of that, exactly: it waits for the one before; 0: not by steps
	CheckpointEvery  time.Duration // and when so much time has passed since the last one; 0: not by time
	CheckpointEpochs int64         // and after so many epochs; 0: 1. One is made at the end in any case
	Keep             int           // how many checkpoints; 0: 3
	Fresh            bool          // where the directory has a training already, that is AlreadyExists; otherwise the fit goes on with it
	Best             string        // a value: best.safetensors is written after each epoch in which it was the best so far; "": never
	BestBetter       Better
	EarlyStopping    *EarlyStopping // nil: none
	Plateau          *Plateau       // nil: none
	NoTensorBoard    bool           // no curves for TensorBoard, which a Directory has otherwise, in tensorboard/
	TensorBoardSteps int64          // curves have the loss of each multiple of that too; 0: values of epochs only
	HistogramEpochs  int64          // and histograms of the weights after so many epochs; 0: none
	Progress         Progress
}

// Progress is where a fit shows how far it is; never on stdout.
type Progress int32

// The places.
const (
	// ProgressBest is stderr where that is a terminal and the program takes no log: one line with a bar, the time left, the mean loss and
	// examples/s, and a line that stays for each epoch. Elsewhere as ProgressLines.
	ProgressBest  Progress = 0
	ProgressLines Progress = 1 // a line per epoch to the program's log, at level Info; without one nothing
	ProgressOff   Progress = 2
)

func (f *Fit) c(held *pins) *C.dtg_fit {
	c := &C.dtg_fit{struct_size: C.sizeof_dtg_fit, epochs: C.int64_t(f.Epochs), steps_per_epoch: C.int64_t(f.StepsPerEpoch),
		validation_every: C.int64_t(f.ValidationEvery), validation_steps: C.int64_t(f.ValidationSteps),
		time_limit_ns: nanoseconds(f.TimeLimit), checkpoint_steps: C.int64_t(f.CheckpointSteps),
		checkpoint_ns: nanoseconds(f.CheckpointEvery), checkpoint_epochs: C.int64_t(f.CheckpointEpochs), keep: held.int32(f.Keep, "Keep"),
		fresh: flag(f.Fresh), best_better: C.dtg_better(f.BestBetter), no_tensorboard: flag(f.NoTensorBoard),
		tensorboard_steps: C.int64_t(f.TensorBoardSteps), histogram_epochs: C.int64_t(f.HistogramEpochs),
		progress: C.dtg_progress(f.Progress)}
	c.directory, c.directory_len = held.text(f.Directory)
	c.best, c.best_len = held.text(f.Best)
	if e := f.EarlyStopping; e != nil {
		stopping := &C.dtg_early_stopping{struct_size: C.sizeof_dtg_early_stopping, better: C.dtg_better(e.Better),
			has_baseline: flag(e.HasBaseline), baseline: C.double(e.Baseline), min_delta: C.double(e.MinDelta),
			patience: C.int64_t(e.Patience), start_from_epoch: C.int64_t(e.StartFromEpoch), restore_best: flag(e.RestoreBest)}
		stopping.monitor, stopping.monitor_len = held.text(e.Monitor)
		held.Pin(stopping)
		c.early_stopping = stopping
	}
	if l := f.Plateau; l != nil {
		plateau := &C.dtg_plateau{struct_size: C.sizeof_dtg_plateau, better: C.dtg_better(l.Better), factor: C.double(l.Factor),
			min_delta: C.double(l.MinDelta), min_rate: C.double(l.MinRate), patience: C.int64_t(l.Patience),
			cooldown: C.int64_t(l.Cooldown)}
		plateau.monitor, plateau.monitor_len = held.text(l.Monitor)
		held.Pin(plateau)
		c.plateau = plateau
	}
	return c
}

// FitEventKind is what a fit has come to. Of an epoch the events come in this order; FitValidation, FitRate and FitCheckpoint, which comes
// between steps too, only where there is cause.
type FitEventKind int32

// The kinds.
const (
	FitBegin      FitEventKind = 0 // Text: whether it starts or goes on
	FitEpochBegin FitEventKind = 1 // comes again for an epoch that a resumed fit goes on with
	FitStep       FitEventKind = 2 // Values: "loss", that of this step
	FitValidation FitEventKind = 3 // Values: the epoch's so far, "val_loss" and "val_" metrics among them
	FitRate       FitEventKind = 4 // a plateau has lowered the learning rate; Text
	FitEpochEnd   FitEventKind = 5 // Values: "loss", the mean over the epoch's examples; metrics; those of the validation; "learning_rate"
	FitCheckpoint FitEventKind = 6 // the values of a checkpoint are taken, and are being written; Text: where
	FitStopped    FitEventKind = 7 // the fit ends early; Text: why
	FitDone       FitEventKind = 8 // the last event: everything is on the disk
)

var fitEventNames = []string{"begin", "epoch begin", "step", "validation", "rate", "epoch end", "checkpoint", "stopped", "done"}

// String is the kind in words.
func (k FitEventKind) String() string {
	if k >= 0 && int(k) < len(fitEventNames) {
		return fitEventNames[k]
	}
	return fmt.Sprintf("FitEventKind(%d)", int32(k))
}

// FitValue is a value that a fit tells.
type FitValue struct {
	Name  string
	Value float64
}

// FitValues are values by name: losses first, then metrics.
type FitValues []FitValue

// Get is the value of that name, and whether there is one.
func (v FitValues) Get(name string) (float64, bool) {
	for _, value := range v {
		if value.Name == name {
			return value.Value, true
		}
	}
	return 0, false
}

// String is "loss 0.1234 accuracy 0.9000".
func (v FitValues) String() string {
	parts := make([]string, len(v))
	for i, value := range v {
		parts[i] = fmt.Sprintf("%s %.4f", value.Name, value.Value)
	}
	return strings.Join(parts, " ")
}

// FitEvent is one event. It is Go's own and may be kept.
type FitEvent struct {
	Kind              FitEventKind
	Epoch             int64   // from 1; where none is under way, how many are over
	Batch             int64   // steps made in this epoch
	Batches           int64   // steps of an epoch; -1 where that is not known
	Step              int64   // steps made in all, before the fit went on too
	Examples          int64   // of this epoch, so far
	Loss              float64 // FitStep: of this step; else the mean of this epoch so far
	LearningRate      float64 // of the steps that it tells of; FitRate: from here on; 0: a schedule's, or not the trainer's
	ExamplesPerSecond float64 // in this epoch
	Elapsed           time.Duration
	Values            FitValues
	Text              string // what there is to say, or ""
}

// What an event points at is the thread's that was given it, so whoever copies it stays on that.
func fitValuesOf(c *C.dtg_fit_event) FitValues {
	names, values := unsafe.Slice(c.names, c.num_values), unsafe.Slice(c.values, c.num_values)
	out := make(FitValues, c.num_values)
	for i := range out {
		out[i] = FitValue{C.GoString(names[i]), float64(values[i])}
	}
	return out
}

func fitEventOf(c *C.dtg_fit_event) FitEvent {
	return FitEvent{Kind: FitEventKind(c.kind), Epoch: int64(c.epoch), Batch: int64(c.batch), Batches: int64(c.batches),
		Step: int64(c.step), Examples: int64(c.examples), Loss: float64(c.loss), LearningRate: float64(c.learning_rate),
		ExamplesPerSecond: float64(c.examples_per_s), Elapsed: time.Duration(float64(c.seconds) * float64(time.Second)),
		Values: fitValuesOf(c), Text: C.GoString(c.text)}
}

// Events begins a fit, or goes on with the one of the directory, and is its events, the last one FitDone; one event is no more than one
// step. Variables without a value get their first one; those that have values keep them, unless a checkpoint says otherwise. validation may
// be nil. Both data sets belong to the fit until it is over; they are two, with as many components as there are feeds.
//
// An error comes as the last pair. The end of ctx cancels the fit, in the middle of a step too: the error is ctx.Err() around the
// library's. Whoever leaves the loop, by a panic too, gives the fit up before its next step, without a checkpoint; Stop, and going on with the loop, ends it
// in good order. In the body, the trainer may evaluate and predict between epochs, over other data sets.
//
// Errors: InvalidArgument (data that does not fit the feeds, a value to watch that no epoch tells, a loss that is no finite number),
// AlreadyExists, FailedPrecondition (another process trains in the directory; a checkpoint that does not fit), DataLoss, those of the disk
// and of Session.Run.
func (t *Trainer) Events(ctx context.Context, data, validation *Dataset, options ...Fit) iter.Seq2[FitEvent, error] {
	return func(yield func(FitEvent, error) bool) {
		how, err := only(options)
		var watch *cancelling
		if err == nil {
			watch, err = t.begin(ctx, data, validation, how)
		}
		if err != nil {
			if given(ctx) == nil {
				err = ended(ctx, err, false)
			}
			yield(FitEvent{}, err)
			return
		}
		defer watch.close()
		// Whoever leaves the loop, by a panic too, gives it up. Refused where the loop's body has closed the trainer, and with that the fit;
		// nothing where it is over.
		defer func() { _ = t.call(func(p *C.dtg_trainer) *C.dtg_error { return C.dtg_trainer_give_up(p) }) }()
		for {
			event, err := t.next()
			if err != nil {
				yield(FitEvent{}, ended(ctx, err, false))
				return
			}
			if !yield(event, nil) || event.Kind == FitDone {
				return
			}
		}
	}
}

// begin begins a fit that what it gives cancels.
func (t *Trainer) begin(ctx context.Context, data, validation *Dataset, options Fit) (*cancelling, error) {
	if err := begun(ctx); err != nil {
		return nil, err
	}
	train, err := data.c()
	if err != nil {
		return nil, err
	}
	var test *C.dtg_dataset
	if validation != nil {
		if test, err = validation.c(); err != nil {
			return nil, err
		}
		validation.begun = true
	}
	data.begun = true
	watch, err := cancelledBy(ctx)
	if err != nil {
		return nil, err
	}
	var held pins
	defer held.Unpin()
	how := options.c(&held)
	how.cancellation = watch.pointer
	if err = held.err; err == nil {
		err = t.call(func(p *C.dtg_trainer) *C.dtg_error { return C.dtg_trainer_begin(p, train, test, how) })
	}
	runtime.KeepAlive(data)
	runtime.KeepAlive(validation)
	if err != nil {
		watch.close()
		return nil, err
	}
	return watch, nil
}

func (t *Trainer) next() (event FitEvent, err error) {
	err = t.call(func(p *C.dtg_trainer) *C.dtg_error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c := C.dtg_fit_event{struct_size: C.sizeof_dtg_fit_event}
		failed := C.dtg_trainer_next(p, &c)
		if failed == nil {
			event = fitEventOf(&c)
		}
		return failed
	})
	return event, err
}

// FitCallbacks are functions of the program, one for each kind of event; nil: none. They run on the goroutine of Trainer.Fit, between two
// steps. An error ends the fit with it, and so does a panic, which goes on through Fit.
type FitCallbacks struct {
	Begin      func(FitEvent) error // once, before the first step: whether the fit starts or goes on
	EpochBegin func(FitEvent) error // before the first step of each epoch
	Step       func(FitEvent) error // after each step: Loss is its loss
	Validation func(FitEvent) error // after a validation, with its values
	Rate       func(FitEvent) error // when the learning rate has fallen
	EpochEnd   func(FitEvent) error // after each epoch, with all of its values
	Checkpoint func(FitEvent) error // when the values of a checkpoint have been taken
	Stopped    func(FitEvent) error // when the fit ends early
	Done       func(FitEvent) error // at last, when everything is on the disk
}

func (c *FitCallbacks) tell(event FitEvent) error {
	listeners := [...]func(FitEvent) error{c.Begin, c.EpochBegin, c.Step, c.Validation, c.Rate, c.EpochEnd, c.Checkpoint, c.Stopped, c.Done}
	if int(event.Kind) >= len(listeners) || listeners[event.Kind] == nil {
		return nil
	}
	return listeners[event.Kind](event)
}

// Fit is the loop over Events, with a call of the program for each. Errors: those of Events, and of the callbacks. Semantics:
// keras.Model.fit.
func (t *Trainer) Fit(ctx context.Context, data, validation *Dataset, options Fit, callbacks ...FitCallbacks) error {
	told, err := only(callbacks)
	if err != nil {
		return err
	}
	for event, err := range t.Events(ctx, data, validation, options) {
		if err == nil {
			err = told.tell(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
