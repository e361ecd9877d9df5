// Trainer: a model with its loss, optimizer and metrics, for fits, steps, evaluation and prediction. One goroutine at a time, the one that
// uses the model and the data sets of the call; Stop comes from any.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"unsafe"
)

var trainerKind = &kind{"trainer", "Model.NewTrainer", func(p unsafe.Pointer) { C.dtg_trainer_release((*C.dtg_trainer)(p)) }}

// TrainerOptions are what a Trainer trains.
type TrainerOptions struct {
	Session   *Session                // of the model's graph, local or the chief's; nil: a local one of the trainer's own
	Feeds     []Value                 // what the components of an element of data are fed to: inputs, then labels and weights
	Inputs    int                     // how many of them Predict feeds, the first ones; 0: 1
	Outputs   []Value                 // what Predict gives; may be none
	Loss      Value                   // a Float32 or Float64 scalar
	Optimizer Optimizer               // not looked at where Train is given
	Train     Value                   // the target of a step that was made before, as by a strategy; the zero Value: NewTrainer makes it
	Training  Value                   // a Bool scalar placeholder, true in steps of training (dropout, norms); the zero Value: none
	Metrics   map[string]MetricValues // told under these names, in alphabetical order, and with "val_" before them; scalars

	InputNames  []string // of the inputs in model.dtg, all or none; nil: the names of their nodes
	OutputNames []string // of the outputs; nil: "output", "output_1" and so on

	// Strategy is a MultiWorkerMirrored one, whose workers all fit together: each is a program that builds the same model, gives its
	// trainer the strategy, the Train of its Minimize, and as Loss the mean of its Reduce, and reads data of its own (Dataset.Shard). The
	// fit gives the variables their values; do not run Model.Init. A worker that is lost is waited for, a minute at most, and all go on
	// from where the furthest is. The first worker alone writes the directory. nil, or another kind: this program alone.
	Strategy *Strategy
}

// Trainer trains a model over epochs of a data set, with validation, checkpoints that a training goes on from, early stopping, and a
// learning rate that falls on a plateau.
//
//	trainer, err := model.NewTrainer(dtg.TrainerOptions{Feeds: []dtg.Value{x, y}, Loss: loss, Optimizer: dtg.Optimizer{Kind: dtg.Adam},
//		Metrics: map[string]dtg.MetricValues{"accuracy": accuracy}})
//	for event, err := range trainer.Events(ctx, train, test, dtg.Fit{Epochs: 10, Directory: "run"}) {
//		if err != nil {
//			return err
//		}
//		if event.Kind == dtg.FitEpochEnd {
//			fmt.Println("epoch", event.Epoch, event.Values)
//		}
//	}
//
// Nothing happens between two events, and a step is one run: a fit makes the same steps, to the last bit, as a loop by hand.
type Trainer struct {
	handle
	session *Session
	own     bool // the session is the trainer's
	outputs int
}

// NewTrainer is a trainer of m; it adds the training to the graph. Errors: InvalidArgument (values of another graph or type, names of
// metrics), those of Minimize, Unimplemented (a session that is not the chief's). Semantics: keras.Model.compile.
func (m *Model) NewTrainer(options TrainerOptions) (*Trainer, error) {
	t := &Trainer{session: options.Session, outputs: len(options.Outputs)}
	var p pins
	defer p.Unpin()
	if options.Inputs < 0 {
		return nil, invalid("make a trainer: Inputs is %d; give how many of the feeds are inputs, or 0 for one", options.Inputs)
	}
	optimizer := options.Optimizer.c(&p)
	p.Pin(optimizer)
	c := &C.dtg_trainer_options{struct_size: C.sizeof_dtg_trainer_options, num_inputs: C.size_t(options.Inputs), loss: options.Loss.c(),
		optimizer: optimizer, train: options.Train.c(), training: options.Training.c()}
	c.feeds, c.num_feeds = p.values(options.Feeds)
	c.outputs, c.num_outputs = p.values(options.Outputs)
	if options.Session != nil {
		session, err := options.Session.c()
		if err != nil {
			return nil, err
		}
		c.session = session
	}
	if options.Strategy != nil {
		strategy, err := options.Strategy.get(strategyKind)
		if err != nil {
			return nil, err
		}
		c.strategy = (*C.dtg_strategy)(strategy)
	}
	if err := options.names(c, &p); err != nil {
		return nil, err
	}
	var out *C.dtg_trainer
	err := m.use(func(model *C.dtg_model) *C.dtg_error { return C.dtg_trainer_create(model, c, &out) })
	runtime.KeepAlive(options.Session)
	runtime.KeepAlive(options.Strategy)
	if err != nil {
		return nil, err
	}
	t.open(trainerKind, unsafe.Pointer(out))
	if err := t.complete(m, options.Metrics); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// names are those of a model that is exported; C takes as many as there are inputs and outputs.
func (o TrainerOptions) names(c *C.dtg_trainer_options, p *pins) error {
	inputs := max(o.Inputs, 1)
	if n := len(o.InputNames); n > 0 && n != inputs {
		return invalid("make a trainer: InputNames has %d names for %d inputs; name all of them or none", n, inputs)
	}
	if n := len(o.OutputNames); n > 0 && n != len(o.Outputs) {
		return invalid("make a trainer: OutputNames has %d names for %d outputs; name all of them or none", n, len(o.Outputs))
	}
	c.input_names, _ = p.cstrings(o.InputNames)
	c.output_names, _ = p.cstrings(o.OutputNames)
	return p.err
}

// complete adds the metrics, and finds out the session where there was none.
func (t *Trainer) complete(m *Model, metrics map[string]MetricValues) error {
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		values := metrics[name]
		c := &C.dtg_metric_values{struct_size: C.sizeof_dtg_metric_values, update: values.Update.c(), reset: values.Reset.c(),
			result: values.Result.c()}
		err := t.call(func(p *C.dtg_trainer) *C.dtg_error {
			data, length := chars(name)
			return C.dtg_trainer_add_metric(p, data, length, c)
		})
		if err != nil {
			return err
		}
	}
	if t.session != nil {
		return nil
	}
	var out *C.dtg_session
	if err := t.call(func(p *C.dtg_trainer) *C.dtg_error { return C.dtg_trainer_session(p, &out) }); err != nil {
		return err
	}
	t.session, t.own = &Session{graph: m.g.graphState}, true
	t.session.open(sessionKind, unsafe.Pointer(out))
	return nil
}

// c is the handle for a call.
func (t *Trainer) c() (*C.dtg_trainer, error) {
	if t == nil {
		return nil, invalid("the trainer is nil; make one first")
	}
	p, err := t.get(trainerKind)
	return (*C.dtg_trainer)(p), err
}

func (t *Trainer) call(call func(*C.dtg_trainer) *C.dtg_error) error {
	p, err := t.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	return failure(call(p))
}

// within is a call that the end of ctx cancels.
func (t *Trainer) within(ctx context.Context, call func(*C.dtg_trainer, *C.dtg_cancellation) *C.dtg_error) error {
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return t.call(func(p *C.dtg_trainer) *C.dtg_error { return call(p, nil) })
	}
	if err := tooLate(ctx); err != nil {
		return err
	}
	watch, err := cancelledBy(ctx)
	if err != nil {
		return err
	}
	defer watch.close()
	return ended(ctx, t.call(func(p *C.dtg_trainer) *C.dtg_error { return call(p, watch.pointer) }), false)
}

// Session is the one in which t runs: that of the options, or its own, which is closed with t; nil for a nil Trainer.
func (t *Trainer) Session() *Session {
	if t == nil {
		return nil
	}
	return t.session
}

// TrainStep is one step of training with these tensors, one per feed, and gives its loss, as it was before the step. Metrics are updated;
// Evaluate and a fit begin them anew. Errors: those of Session.Run, FailedPrecondition (in the middle of an epoch of a fit). Semantics:
// keras.Model.train_on_batch.
func (t *Trainer) TrainStep(ctx context.Context, tensors ...*Tensor) (float64, error) {
	pointers, err := pointersOf(make([]*C.dtg_tensor, 0, len(tensors)), tensors, false)
	if err != nil {
		return 0, err
	}
	var loss C.double
	err = t.within(ctx, func(p *C.dtg_trainer, cancellation *C.dtg_cancellation) *C.dtg_error {
		return C.dtg_trainer_train_step(p, unsafe.SliceData(pointers), C.size_t(len(pointers)), cancellation, &loss)
	})
	runtime.KeepAlive(tensors)
	return float64(loss), err
}

// Evaluate is loss and metrics over a data set from its beginning, or over steps elements of it (0: all): "loss", the mean over examples,
// and the metrics. Errors: those of Session.Run, FailedPrecondition (no elements; in the middle of an epoch of a fit). Semantics:
// keras.Model.evaluate.
func (t *Trainer) Evaluate(ctx context.Context, data *Dataset, steps int64) (values FitValues, err error) {
	d, err := data.c()
	if err != nil {
		return nil, err
	}
	data.begun = true
	err = t.within(ctx, func(p *C.dtg_trainer, cancellation *C.dtg_cancellation) *C.dtg_error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		event := C.dtg_fit_event{struct_size: C.sizeof_dtg_fit_event}
		failed := C.dtg_trainer_evaluate(p, d, C.int64_t(steps), cancellation, &event)
		if failed == nil {
			values = fitValuesOf(&event)
		}
		return failed
	})
	runtime.KeepAlive(data)
	return values, err
}

// Predict is the trainer's outputs for a data set from its beginning, one row per example, all batches one below the other; the caller
// closes them. Elements may have the inputs only, or labels too. Errors: those of Session.Run, FailedPrecondition (no elements, or no
// outputs). Semantics: keras.Model.predict.
func (t *Trainer) Predict(ctx context.Context, data *Dataset) ([]*Tensor, error) {
	d, err := data.c()
	if err != nil {
		return nil, err
	}
	data.begun = true
	var out []*C.dtg_tensor
	err = t.within(ctx, func(p *C.dtg_trainer, cancellation *C.dtg_cancellation) *C.dtg_error {
		out = make([]*C.dtg_tensor, t.outputs)
		return C.dtg_trainer_predict(p, d, cancellation, unsafe.SliceData(out), C.size_t(len(out)))
	})
	runtime.KeepAlive(data)
	if err != nil {
		return nil, err
	}
	tensors := make([]*Tensor, len(out))
	for i, pointer := range out {
		tensors[i] = wrapTensor(pointer)
	}
	return tensors, nil
}

// Export writes the model as Predict runs it to a file of its own, for LoadModel: graph, weights, and the names, types and shapes of inputs
// and outputs; a fit with a directory leaves one as model.dtg. Any number of goroutines may run what LoadModel gives. Errors: those of
// Model.Export; FailedPrecondition (no outputs); Unimplemented (variables with copies on several devices).
func (t *Trainer) Export(path string) error {
	return t.call(func(p *C.dtg_trainer) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_trainer_export(p, data, length)
	})
}

// Stop asks a fit to end in good order before its next step: with FitStopped, a last checkpoint, FitDone. Does not wait; a fit that is begun
// afterwards is not meant. Any goroutine, also from within the loop. Semantics: stop_training of Keras.
func (t *Trainer) Stop() {
	if p, err := t.c(); err == nil {
		C.dtg_trainer_stop(p)
	}
	runtime.KeepAlive(t)
}

// FitSummary is what came of a fit.
type FitSummary struct {
	Outcome   string               `json:"outcome"` // "running", "done", "stopped" or "failed"
	Why       string               `json:"why"`
	Epochs    int64                `json:"epochs"` // that are over
	Steps     int64                `json:"steps"`
	Resumed   bool                 `json:"resumed"`
	Directory string               `json:"directory"`
	BestEpoch int64                `json:"best_epoch"` // 0: none was looked for
	Best      float64              `json:"best"`
	History   []map[string]float64 `json:"-"` // a row per epoch; what an epoch does not tell, or is no number, is not in it
}

// Summary tells of the fit that was begun last, from any goroutine: while that fit is under way, as of its next event, or, where
// none comes within a second, as of one before.
// Errors: FailedPrecondition (none was begun).
func (t *Trainer) Summary() (summary FitSummary, err error) {
	var out *C.dtg_string
	if err = t.call(func(p *C.dtg_trainer) *C.dtg_error { return C.dtg_trainer_summary(p, &out) }); err != nil {
		return summary, err
	}
	told := []byte(text(out))
	var rows struct {
		History []map[string]*float64 `json:"history"`
	}
	if err = json.Unmarshal(told, &summary); err == nil {
		err = json.Unmarshal(told, &rows)
	}
	for _, row := range rows.History {
		known := map[string]float64{}
		for name, value := range row {
			if value != nil {
				known[name] = *value
			}
		}
		summary.History = append(summary.History, known)
	}
	return summary, err
}

// Close drops the trainer; a fit under way is given up where it stands, and a checkpoint that is being written gets written. Closing twice
// is fine.
func (t *Trainer) Close() error {
	if t != nil {
		t.close(trainerKind)
		if t.own {
			t.session.close(sessionKind)
		}
	}
	return nil
}
