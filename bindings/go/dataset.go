// Dataset: a pipeline that hands out elements, one by one. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"io"
	"iter"
	"runtime"
	"unsafe"
)

var datasetKind = &kind{"dataset", "DatasetCSV or another source", func(p unsafe.Pointer) { C.dtg_dataset_release((*C.dtg_dataset)(p)) }}

// Dataset begins with a source; each transform is added to what is there, in the order of the calls, and gives the data set
// itself. The first error sticks, with the line of the program that met it: Err tells it, and so does Next.
//
//	data := dtg.DatasetCSV("digits.csv.gz", dtg.CSVOptions{Label: "label"}).Shuffle(0, 1).Batch(32, true)
//
// Equal seeds give equal orders on every machine.
type Dataset struct {
	handle
	err   error
	begun bool // an element was handed out, or the end told, since the epoch began
}

// DatasetTensors is slices of tensors along their first dimension, which all must share. The tensors are shared, not copied.
// Semantics: Dataset.from_tensor_slices.
func DatasetTensors(tensors ...*Tensor) *Dataset { return (*Runtime)(nil).DatasetTensors(tensors...) }

// DatasetTensors is the same with the memory limit of r.
func (r *Runtime) DatasetTensors(tensors ...*Tensor) *Dataset {
	pointers, err := pointersOf(nil, tensors, false)
	defer runtime.KeepAlive(tensors)
	return r.dataset(err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_tensors(home, unsafe.SliceData(pointers), C.size_t(len(pointers)), out)
	})
}

// DatasetRange is int64 scalars start, start + step, ... up to, not including, stop. Semantics: Dataset.range.
func DatasetRange(start, stop, step int64) *Dataset {
	return (*Runtime)(nil).DatasetRange(start, stop, step)
}

// DatasetRange is the same with the memory limit of r.
func (r *Runtime) DatasetRange(start, stop, step int64) *Dataset {
	return r.dataset(nil, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_range(home, C.int64_t(start), C.int64_t(stop), C.int64_t(step), out)
	})
}

// DatasetIDX reads IDX files, the format of MNIST and its family, plain or gzip: one component per file, with equal numbers of
// rows. Errors: NotFound, DataLoss (not IDX, cut), InvalidArgument, ResourceExhausted.
func DatasetIDX(paths ...string) *Dataset { return (*Runtime)(nil).DatasetIDX(paths...) }

// DatasetIDX is the same with the memory limit of r.
func (r *Runtime) DatasetIDX(paths ...string) *Dataset {
	var p pins
	defer p.Unpin()
	names, count := p.cstrings(paths)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_idx(home, names, count, out)
	})
}

// Header says whether a CSV file begins with names.
type Header int32

// The headers.
const (
	HeaderFound   Header = 0 // found out
	HeaderPresent Header = 1 // the first line names the columns
	HeaderAbsent  Header = 2 // it does not, they are c0, c1, ...
)

// Missing says what becomes of fields of a CSV file that are empty, or NA, N/A, NaN, nan, null, NULL, None or ?.
type Missing int32

// What becomes of them.
const (
	MissingRefused Missing = 0 // DataLoss, which names line and column
	MissingDropped Missing = 1 // such rows are dropped
	MissingKept    Missing = 3 // NaN, which makes losses NaN, or -1 in columns of names
	// The mean of the column, of all rows, also of those that Split holds out later: where that matters, read a file of its own for training,
	// and the others with its Schema. An error in columns of names that lack some, and in Label, if no Schema says so.
	MissingMean Missing = 4
)

// CSVOptions are those of DatasetCSV. Zero is the default of every field.
type CSVOptions struct {
	Label     string   // the column to predict: elements are {all other columns as a float32 vector, label}; "": one scalar per column
	Columns   []string // those to read, in this order, and Label; nil: all
	Header    Header
	Missing   Missing
	Delimiter byte // 0: ','
	// What is known of the columns, as JSON: the Schema of another data set, or rules of the program's own, as dtg/data.h tells:
	// {"rules": [{"name": "age", "missing": "mean"}, {"name": "kind", "names": ["cat", "dog"]}]}
	Schema string
}

// DatasetCSV is the rows of a CSV file, plain or gzip. Whole numbers are int64, other numbers float32, anything else names,
// numbered in sorted order. Errors: NotFound (the file, a column), DataLoss, InvalidArgument, ResourceExhausted.
func DatasetCSV(path string, options ...CSVOptions) *Dataset {
	return (*Runtime)(nil).DatasetCSV(path, options...)
}

// DatasetCSV is the same with the memory limit of r.
func (r *Runtime) DatasetCSV(path string, options ...CSVOptions) *Dataset {
	var p pins
	defer p.Unpin()
	o := pinnedOnly(&p, options)
	c := &C.dtg_csv_options{struct_size: C.sizeof_dtg_csv_options, header: C.int32_t(o.Header), missing: C.int32_t(o.Missing),
		delimiter: C.int32_t(o.Delimiter)}
	c.label, c.label_len = p.text(o.Label)
	c.columns, c.num_columns = p.columns(o.Columns)
	c.schema, c.schema_len = p.text(o.Schema)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_dataset_csv(home, data, length, c, out)
	})
}

func (r *Runtime) dataset(err error, begin func(*C.dtg_runtime, **C.dtg_dataset) *C.dtg_error) *Dataset {
	d := &Dataset{err: err}
	if d.err == nil {
		d.err = loaded()
	}
	var home *C.dtg_runtime
	if d.err == nil {
		home, d.err = r.c()
	}
	if d.err != nil {
		d.err = placed(d.err)
		return d
	}
	var out *C.dtg_dataset
	d.err = placed(failure(begin(home, &out)))
	runtime.KeepAlive(r)
	if d.err == nil {
		d.open(datasetKind, unsafe.Pointer(out))
	}
	return d
}

// Err is the error that made the data set unusable, or nil.
func (d *Dataset) Err() error {
	if d == nil {
		return invalid("the data set is nil; make one first")
	}
	return d.err
}

// Close drops the data set; tensors that were handed out stay valid. Closing twice is fine.
func (d *Dataset) Close() error {
	if d != nil {
		d.close(datasetKind)
	}
	return nil
}

func (d *Dataset) c() (*C.dtg_dataset, error) {
	if d == nil {
		return nil, invalid("the data set is nil; make one first")
	}
	if d.err != nil {
		return nil, d.err
	}
	p, err := d.get(datasetKind)
	return (*C.dtg_dataset)(p), err
}

// Next is the components of the next element, which the caller closes; io.EOF at the end of the data, and until Restart, of which the log
// tells whoever asks again, once.
func (d *Dataset) Next() ([]*Tensor, error) {
	p, err := d.c()
	if err != nil {
		return nil, err
	}
	pointers := make([]*C.dtg_tensor, C.dtg_dataset_component_count(p))
	var more C.int32_t
	d.begun = true
	err = failure(C.dtg_dataset_next(p, unsafe.SliceData(pointers), C.size_t(len(pointers)), &more))
	runtime.KeepAlive(d)
	if err != nil {
		return nil, err
	}
	if more == 0 {
		return nil, io.EOF
	}
	tensors := make([]*Tensor, len(pointers))
	for i, pointer := range pointers {
		tensors[i] = wrapTensor(pointer)
	}
	return tensors, nil
}

// Elements is an epoch, from its start: where one was begun, by Elements or by Next, it is given up and the next one begins. The
// tensors are closed when the loop goes on: Retain what should live longer. An error comes as the last pair.
//
//	for epoch := range 10 {
//		for batch, err := range data.Elements() { ... }
//	}
func (d *Dataset) Elements() iter.Seq2[[]*Tensor, error] {
	return func(yield func([]*Tensor, error) bool) {
		if d != nil && d.begun {
			if err := d.Restart(); err != nil {
				yield(nil, err)
				return
			}
		}
		for {
			tensors, err := d.Next()
			if err == io.EOF {
				return
			}
			goesOn := yield(tensors, err)
			for _, t := range tensors {
				t.Close()
			}
			if !goesOn || err != nil {
				return
			}
		}
	}
}

// Restart begins the next epoch, wherever this one stands.
func (d *Dataset) Restart() error {
	p, err := d.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(d)
	d.begun = false
	return failure(C.dtg_dataset_restart(p))
}

// Position is where the data set stands: elements since its last restart, then the epoch of each stage. Checkpoints keep it. Errors:
// FailedPrecondition (a transform was added after elements had been taken).
func (d *Dataset) Position() ([]int64, error) {
	p, err := d.c()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(d)
	var count C.size_t
	if err := failure(C.dtg_dataset_position(p, nil, 0, &count)); err != nil {
		return nil, err
	}
	numbers := make([]int64, count)
	err = failure(C.dtg_dataset_position(p, (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(numbers))), count, &count))
	return numbers, err
}

// MoveTo goes to a position of a data set with the same stages, seeds and sources: what comes next, also in Elements, is what came next
// there. Errors: InvalidArgument (no such position; nothing has changed), DataLoss (there are fewer elements now).
func (d *Dataset) MoveTo(position []int64) error {
	p, err := d.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(d)
	d.begun = false
	return failure(C.dtg_dataset_move_to(p, (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(position))), C.size_t(len(position))))
}

// Schema is what was found out about the columns of a CSV file or of JSON lines, as JSON: give it to the reading of other files (CSVOptions.Schema), so
// that names have the same numbers and missing values the same means there; keep it with the weights by Model.SetMetadata. Errors:
// FailedPrecondition (from neither of them).
func (d *Dataset) Schema() (string, error) {
	p, err := d.c()
	if err != nil {
		return "", err
	}
	defer runtime.KeepAlive(d)
	var out *C.dtg_string
	if err := failure(C.dtg_dataset_schema(p, &out)); err != nil {
		return "", err
	}
	return text(out), nil
}

// Cardinality is the elements (batches, after Batch) per epoch; -1: endless, -2: not known before they are read.
func (d *Dataset) Cardinality() int64 {
	p, err := d.c()
	if err != nil {
		return -2
	}
	defer runtime.KeepAlive(d)
	return int64(C.dtg_dataset_cardinality(p))
}

// ComponentCount is the number of tensors per element.
func (d *Dataset) ComponentCount() int {
	p, err := d.c()
	if err != nil {
		return 0
	}
	defer runtime.KeepAlive(d)
	return int(C.dtg_dataset_component_count(p))
}

// Component is type and shape of component i of every element; -1: a size that is not the same for all, nil: not known. Errors:
// OutOfRange.
func (d *Dataset) Component(i int) (DType, Shape, error) {
	p, err := d.c()
	if err != nil {
		return 0, nil, err
	}
	defer runtime.KeepAlive(d)
	var dtype C.dtg_dtype
	shape, err := readShape(func(dims *C.int64_t, room C.size_t, rank *C.int32_t) *C.dtg_error {
		return C.dtg_dataset_component(p, C.size_t(i), &dtype, dims, room, rank)
	})
	return DType(dtype), shape, err
}
