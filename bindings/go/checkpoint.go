// Checkpoint: sets of what training has come to, saved while it goes on, and going on from them. One goroutine at a time, the one that uses
// the model and the data sets; Wait and Status may come from others.

package dtg

// #include "shim.h"
import "C"

import (
	"context"
	"encoding/json"
	"runtime"
	"time"
	"unsafe"
)

var checkpointKind = &kind{"checkpoint", "Model.Checkpoint", func(p unsafe.Pointer) { C.dtg_checkpoint_release((*C.dtg_checkpoint)(p)) }}

// CheckpointOptions are those of Model.Checkpoint. Zero is the default of every field.
type CheckpointOptions struct {
	Keep       int               // how many sets to keep, the newest ones; 0: 3
	Shards     int               // files per set; 0: as many as make none larger than 1 GiB, about
	EverySteps int64             // Reached saves at each multiple of that, or, while the save before is still written, at the first step after it; 0: not by steps
	Every      time.Duration     // and when so much time has passed since the last save; 0: not by time
	Partial    bool              // a restore takes what fits and tells the rest; otherwise whatever does not fit is an error
	Names      map[string]string // what restored variables are called in the sets, as in RestoreOptions
}

// Checkpoint keeps the values of a model's variables, in a session, as sets in a directory.
//
//	sets, err := model.Checkpoint(session, "run/checkpoints", dtg.CheckpointOptions{EverySteps: 500})
//	err = sets.AddData("train", data)
//	at, err := sets.Resume() // start, or go on
//	for step := at.Step; step < steps; {
//		... train ...
//		step++
//		_, err = sets.Reached(step)
//	}
type Checkpoint struct {
	handle
	// What C would use without holding it open.
	model *Model
	data  []*Dataset
}

// Restored is what became of a Resume or Restore.
type Restored struct {
	Outcome    string   `json:"outcome"` // "started", "kept" or "restored"
	Path       string   `json:"path"`    // of the set
	Step       int64    `json:"step"`    // how far training is
	Variables  int      `json:"variables"`
	PassedOver []string `json:"passed_over"` // why newer sets were not taken
	Missing    []string `json:"missing"`     // with Partial: variables that are not in the set
	Extra      []string `json:"extra"`       // and those that are not in the model
	Reshaped   []string `json:"reshaped"`    // and those of another type or shape
	Notes      []string `json:"notes"`
}

// CheckpointStatus is what Status tells of this object's saves.
type CheckpointStatus struct {
	Directory string `json:"directory"`
	Writing   bool   `json:"writing"`
	Saves     int64  `json:"saves"`
	Failures  int64  `json:"failures"`
	Step      int64  `json:"step"` // of the last set; -1: none
	Path      string `json:"path"`
	Failure   string `json:"failure"` // why the last save failed, if it did
}

// Checkpoint opens checkpoints of m as it is in s, in a directory of sets. Touches no file. Errors: InvalidArgument.
func (m *Model) Checkpoint(s *Session, directory string, options ...CheckpointOptions) (*Checkpoint, error) {
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	var p pins
	defer p.Unpin()
	c := &C.dtg_checkpoint_options{struct_size: C.sizeof_dtg_checkpoint_options, keep: p.int32(o.Keep, "Keep"), shards: p.int32(o.Shards, "Shards"),
		every_steps: C.int64_t(o.EverySteps), every_ns: nanoseconds(o.Every), partial: flag(o.Partial)}
	c.directory, c.directory_len = p.text(directory)
	c.names, c.names_len = p.text(namesJSON(o.Names))
	if p.err != nil {
		return nil, p.err
	}
	var out *C.dtg_checkpoint
	err = m.withSession(s, func(model *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		return C.dtg_checkpoint_open(model, session, c, &out)
	})
	if err != nil {
		return nil, err
	}
	k := &Checkpoint{model: m}
	k.open(checkpointKind, unsafe.Pointer(out))
	return k, nil
}

// c is the handle for a call.
func (k *Checkpoint) c() (*C.dtg_checkpoint, error) {
	if k == nil {
		return nil, invalid("the checkpoint is nil; make one first")
	}
	p, err := k.get(checkpointKind)
	return (*C.dtg_checkpoint)(p), err
}

func (k *Checkpoint) call(call func(*C.dtg_checkpoint) *C.dtg_error) error {
	p, err := k.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(k)
	return failure(call(p))
}

// AddData has each set hold where the data set stands, under name, and each restore bring it there. It must have the stages, seeds and
// sources it had, and get no more transforms. Errors: InvalidArgument, AlreadyExists.
func (k *Checkpoint) AddData(name string, d *Dataset) error {
	data, err := d.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(d)
	err = k.call(func(p *C.dtg_checkpoint) *C.dtg_error {
		text, length := chars(name)
		return C.dtg_checkpoint_add_data(p, text, length, data)
	})
	if err == nil {
		k.data = append(k.data, d)
	}
	return err
}

// Resume restores the newest valid set, or where there is none gives the variables their first values: start, or go on. What the session
// has already stays where it is as far by its count of steps. A damaged set is passed over with a warning. Errors: FailedPrecondition (the
// variables that do not fit, by name; another process saves there), DataLoss (no set is whole), PermissionDenied (not the chief).
func (k *Checkpoint) Resume() (Restored, error) {
	return k.restored(func(p *C.dtg_checkpoint, report **C.dtg_string) *C.dtg_error {
		return C.dtg_checkpoint_resume(p, nil, report)
	})
}

// Restore takes the set of that name ("step-..."), or with "" the newest valid one, whatever values there are. Errors: NotFound, and as
// in Resume.
func (k *Checkpoint) Restore(set string) (Restored, error) {
	return k.restored(func(p *C.dtg_checkpoint, report **C.dtg_string) *C.dtg_error {
		text, length := chars(set)
		return C.dtg_checkpoint_restore(p, text, length, nil, report)
	})
}

func (k *Checkpoint) restored(call func(*C.dtg_checkpoint, **C.dtg_string) *C.dtg_error) (at Restored, err error) {
	var report *C.dtg_string
	if err = k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return call(p, &report) }); err == nil {
		err = json.Unmarshal([]byte(text(report)), &at)
	}
	return at, err
}

// Reached tells that training is at step; call it after each. Where the model counts its steps itself (GlobalStep, which optimizers make),
// a set is named by that count, and Resume gives it, here and in Save and BeginSave; step only says whether a save is due by EverySteps. True: a save was due, its values are taken, and it is being written. What the
// disk refuses is no error here: Wait and Status tell it.
func (k *Checkpoint) Reached(step int64) (bool, error) {
	var began C.int32_t
	err := k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return C.dtg_checkpoint_reached(p, C.int64_t(step), &began) })
	return began != 0, err
}

// Save saves now and waits until the set is on the disk, or ctx ends; then it goes on. The model's own count of steps, where it has one, goes
// before step, as in Reached. Errors: ResourceExhausted (how much is needed, how
// much is free), FailedPrecondition, those of the disk; the sets that are there stay as they were.
func (k *Checkpoint) Save(ctx context.Context, step int64) error {
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return C.dtg_checkpoint_save(p, C.int64_t(step), 0) })
	}
	if err := k.BeginSave(step); err != nil {
		return err
	}
	return k.Wait(ctx)
}

// BeginSave is Save that returns as soon as the values are taken.
func (k *Checkpoint) BeginSave(step int64) error {
	return k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return C.dtg_checkpoint_begin_save(p, C.int64_t(step), 0) })
}

// Wait waits until nothing is being written, and gives what came of the last save.
func (k *Checkpoint) Wait(ctx context.Context) error {
	wait := func(timeout time.Duration) error {
		return k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return C.dtg_checkpoint_wait(p, nanoseconds(timeout)) })
	}
	if err := given(ctx); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return wait(0)
	}
	return waiting(ctx, 0, look, wait)
}

// Status tells of this object's saves.
func (k *Checkpoint) Status() (status CheckpointStatus, err error) {
	var out *C.dtg_string
	if err = k.call(func(p *C.dtg_checkpoint) *C.dtg_error { return C.dtg_checkpoint_status(p, &out) }); err == nil {
		err = json.Unmarshal([]byte(text(out)), &status)
	}
	return status, err
}

// Close drops the object; a save under way goes on. Closing twice is fine.
func (k *Checkpoint) Close() error {
	if k != nil {
		k.close(checkpointKind)
	}
	return nil
}
