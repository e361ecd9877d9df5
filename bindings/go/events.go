// EventWriter: training curves for TensorBoard. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

var writerKind = &kind{"event writer", "OpenEventWriter", func(p unsafe.Pointer) { C.dtg_event_writer_release((*C.dtg_event_writer)(p)) }}

// EventWriterOptions are those of OpenEventWriter. Zero is the default of every field.
type EventWriterOptions struct {
	FlushEvery    time.Duration // how long records may wait in memory; 0: 2 s
	ResumedAtStep int64         // of a run that continues: readers drop what older files say about this step and later ones
}

// EventWriter writes one event file.
type EventWriter struct{ handle }

// OpenEventWriter begins a new event file in a directory, which is made if need be. TensorBoard takes a directory for a run, so
// writers of different roles need different ones.
func OpenEventWriter(directory string, options ...EventWriterOptions) (*EventWriter, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	o, err := only(options)
	if err != nil {
		return nil, err
	}
	c := &C.dtg_event_writer_options{struct_size: C.sizeof_dtg_event_writer_options, flush_every_ns: nanoseconds(o.FlushEvery),
		resumed_at_step: C.int64_t(o.ResumedAtStep)}
	data, length := chars(directory)
	var out *C.dtg_event_writer
	if err := failure(C.dtg_event_writer_open(data, length, c, &out)); err != nil {
		return nil, err
	}
	w := &EventWriter{}
	w.open(writerKind, unsafe.Pointer(out))
	return w, nil
}

// c is the handle for a call.
func (w *EventWriter) c() (*C.dtg_event_writer, error) {
	if w == nil {
		return nil, invalid("the event writer is nil; make one first")
	}
	p, err := w.get(writerKind)
	return (*C.dtg_event_writer)(p), err
}

func (w *EventWriter) use(call func(*C.dtg_event_writer) *C.dtg_error) error {
	p, err := w.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(w)
	return failure(call(p))
}

// Scalar is one point of the curve tag. After a failed write this and every later call answers with that error.
func (w *EventWriter) Scalar(tag string, step int64, value float64) error {
	return w.use(func(p *C.dtg_event_writer) *C.dtg_error {
		data, length := chars(tag)
		return C.dtg_event_writer_scalar(p, data, length, C.int64_t(step), C.double(value))
	})
}

// Histogram is the distribution of the finite elements of a float32 tensor, in 30 equal buckets.
func (w *EventWriter) Histogram(tag string, step int64, t *Tensor) error {
	tensor, err := t.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	return w.use(func(p *C.dtg_event_writer) *C.dtg_error {
		data, length := chars(tag)
		return C.dtg_event_writer_histogram(p, data, length, C.int64_t(step), tensor)
	})
}

// Text is a text in Markdown.
func (w *EventWriter) Text(tag string, step int64, markdown string) error {
	return w.use(func(p *C.dtg_event_writer) *C.dtg_error {
		data, length := chars(tag)
		words, wordsLength := chars(markdown)
		return C.dtg_event_writer_text(p, data, length, C.int64_t(step), words, wordsLength)
	})
}

// Flush hands what waits in memory to the system.
func (w *EventWriter) Flush() error {
	return w.use(func(p *C.dtg_event_writer) *C.dtg_error { return C.dtg_event_writer_flush(p) })
}

// Close flushes and closes the file, and says whether that worked. Closing twice is fine.
func (w *EventWriter) Close() error {
	if w == nil || w.pointer.Load() == nil {
		return nil
	}
	err := w.use(func(p *C.dtg_event_writer) *C.dtg_error { return C.dtg_event_writer_close(p) })
	w.close(writerKind)
	return err
}
