// Sources of data sets beside those of dataset.go: NumPy's files, JSON lines, TFRecord. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"encoding/json"
	"runtime"
	"unsafe"
)

// DatasetNPY reads NumPy's .npy files, plain or gzip: one component per file, with equal numbers of rows. A tensor has the type of its
// array. Errors: NotFound, DataLoss (not NumPy's, cut), Unimplemented (big-endian numbers, Python objects, texts, dates, structures),
// InvalidArgument, ResourceExhausted.
func DatasetNPY(paths ...string) *Dataset { return (*Runtime)(nil).DatasetNPY(paths...) }

// DatasetNPY is the same with the memory limit of r.
func (r *Runtime) DatasetNPY(paths ...string) *Dataset {
	var p pins
	defer p.Unpin()
	all, count := p.cstrings(paths)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_npy(home, all, count, out)
	})
}

// DatasetNPZ reads arrays of a .npz file, one component per name, in that order; without names all of them. Errors: those of DatasetNPY,
// and NotFound for a name that is not there, with those that are.
func DatasetNPZ(path string, names ...string) *Dataset {
	return (*Runtime)(nil).DatasetNPZ(path, names...)
}

// DatasetNPZ is the same with the memory limit of r.
func (r *Runtime) DatasetNPZ(path string, names ...string) *Dataset {
	var p pins
	defer p.Unpin()
	all, count := p.cstrings(names)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_dataset_npz(home, data, length, all, count, out)
	})
}

// Feature is one component that DatasetTFRecord reads of each tf.Example.
type Feature struct {
	Name    string
	DType   DType    // Float32 of a float_list, Int64 of an int64_list, Uint8 of the one string of a bytes_list
	Shape   []int64  // nil: one value
	Default *float64 // what stands in all of its values where an example lacks it; nil: that is an error
	// Any number of Shape, [n, Shape...], and none where an example lacks it.
	Variable bool
}

// DatasetTFRecord reads the tf.Example messages of TFRecord files, plain or gzip, in the order of the files. They are read as they are
// needed, so errors of theirs are those of Next: NotFound, DataLoss (a bad checksum or a torn file, with record and byte; a feature that
// is lacking or other than said). Semantics: TFRecordDataset, parse_single_example.
func DatasetTFRecord(paths []string, features ...Feature) *Dataset {
	return (*Runtime)(nil).DatasetTFRecord(paths, features...)
}

// DatasetTFRecord is the same with the memory limit of r.
func (r *Runtime) DatasetTFRecord(paths []string, features ...Feature) *Dataset {
	var p pins
	defer p.Unpin()
	all, count := p.cstrings(paths)
	words, err := featureWords(features)
	if p.err != nil {
		err = p.err
	}
	return r.dataset(err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		data, length := chars(words)
		return C.dtg_dataset_tfrecord(home, all, count, data, length, out)
	})
}

// As C takes them.
func featureWords(features []Feature) (string, error) {
	all := make([]map[string]any, len(features))
	for i, feature := range features {
		one := map[string]any{"name": feature.Name, "dtype": feature.DType.String(), "variable": feature.Variable}
		if feature.Shape != nil {
			one["shape"] = feature.Shape
		}
		if feature.Default != nil {
			one["default"] = *feature.Default
		}
		all[i] = one
	}
	words, err := json.Marshal(all)
	if err != nil {
		return "", invalid("the default of a feature is no number: %v", err)
	}
	return string(words), nil
}

// JSONLinesOptions are those of DatasetJSONLines. Zero is the default of every field.
type JSONLinesOptions struct {
	Label       string   // the column to predict: elements are {all other columns as a float32 vector, label}; "": one component per column
	Columns     []string // those to read, in this order; nil: all
	Missing     Missing
	SkipBadRows bool // bad rows are passed over and counted, see BadRows; otherwise they are an error
	// What is known of the columns, as JSON: the Schema of another data set, or rules of the program's own; see CSVOptions.
	Schema string
}

// DatasetJSONLines is the rows of a file of JSON lines, one object per line, plain or gzip. Whole numbers and bools are int64, other
// numbers float32, texts names, numbered in sorted order, lists of numbers components of that shape. Errors: NotFound, DataLoss (a bad row,
// with file, line and column), InvalidArgument, ResourceExhausted.
func DatasetJSONLines(path string, options ...JSONLinesOptions) *Dataset {
	return (*Runtime)(nil).DatasetJSONLines(path, options...)
}

// DatasetJSONLines is the same with the memory limit of r.
func (r *Runtime) DatasetJSONLines(path string, options ...JSONLinesOptions) *Dataset {
	var p pins
	defer p.Unpin()
	o := pinnedOnly(&p, options)
	c := &C.dtg_json_lines_options{struct_size: C.sizeof_dtg_json_lines_options, missing: C.int32_t(o.Missing),
		skip_bad_rows: flag(o.SkipBadRows)}
	c.label, c.label_len = p.text(o.Label)
	c.columns, c.num_columns = p.columns(o.Columns)
	c.schema, c.schema_len = p.text(o.Schema)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_dataset_json_lines(home, data, length, c, out)
	})
}

// BadRows is how many rows the source passed over as bad, and why, for the first ten of them, a line each.
func (d *Dataset) BadRows() (count int64, why string, err error) {
	p, err := d.c()
	if err != nil {
		return 0, "", err
	}
	defer runtime.KeepAlive(d)
	var out *C.dtg_string
	var rows C.int64_t
	if err := failure(C.dtg_dataset_bad_rows(p, &rows, &out)); err != nil {
		return 0, "", err
	}
	return int64(rows), text(out), nil
}

// ArrowOptions are those of DatasetArrow. Zero is the default of every field.
type ArrowOptions struct {
	Label   string   // the column to predict: elements are {all other columns as a float32 vector, label}; "": one component per column
	Columns []string // those to read, in this order; nil: all
	Missing Missing
	// What is known of the columns, as JSON: the Schema of another data set, or rules of the program's own; see CSVOptions.
	Schema string
}

// DatasetArrow is the rows of a stream of tables through the Arrow C data interface: stream points to a struct ArrowArrayStream, as
// *cdata.CArrowArrayStream of arrow-go does once cdata.ExportRecordReader has filled it. It is taken over, also where this fails. Numbers and
// bools keep their type, fixed-size lists of them are components of that shape, texts and dictionaries of texts are numbered in sorted order;
// a column that comes in one piece without missing values is not copied. Errors: NotFound, DataLoss (a missing value, with row and column; the
// stream's own errors), InvalidArgument, Unimplemented (other types, by name), ResourceExhausted.
func DatasetArrow(stream unsafe.Pointer, options ...ArrowOptions) *Dataset {
	return (*Runtime)(nil).DatasetArrow(stream, options...)
}

// DatasetArrow is the same with the memory limit of r.
func (r *Runtime) DatasetArrow(stream unsafe.Pointer, options ...ArrowOptions) *Dataset {
	var p pins
	defer p.Unpin()
	o := pinnedOnly(&p, options)
	c := &C.dtg_arrow_options{struct_size: C.sizeof_dtg_arrow_options, missing: C.int32_t(o.Missing)}
	c.label, c.label_len = p.text(o.Label)
	c.columns, c.num_columns = p.columns(o.Columns)
	c.schema, c.schema_len = p.text(o.Schema)
	return r.dataset(p.err, func(home *C.dtg_runtime, out **C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_arrow(home, (*C.ArrowArrayStream)(stream), c, out)
	})
}
