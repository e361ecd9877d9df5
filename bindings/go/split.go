// Parts of data sets, and what is found out about data. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Split is how a data set is cut in two.
type Split struct {
	Fraction float64 // the share of rows that is held out, between 0 and 1; 0: 0.2, or Folds: there are not both
	Seed     uint64
	Folds    int  // 0: none; k from 2 up: the rows are dealt out to k folds of like size, and one of them is held out
	Fold     int  // which one, from 0
	Stratify bool // each class is cut alike, to a row; the classes are in component Classes
	Classes  int  // a component of one whole number or bool per row
}

// Split is two data sets without a row in common: one to train on, one that is held out to test with. Which row goes where is decided by
// the seed alone, and the order within both is that of d, which stays as it was. The elements must be rows of tensors or files, so split
// before Batch, Prefetch and Repeat, and before Normalize. Errors are those of both answers: InvalidArgument (numbers out of range, no such
// rows or classes, a part without rows). Semantics: sklearn's train_test_split and StratifiedKFold.
func (d *Dataset) Split(how Split) (train, heldOut *Dataset) {
	train, heldOut = &Dataset{}, &Dataset{}
	p, err := d.c()
	var held pins
	c := C.dtg_split{struct_size: C.sizeof_dtg_split, fraction: C.double(how.Fraction), seed: C.uint64_t(how.Seed),
		folds: held.int32(how.Folds, "Folds"), fold: held.int32(how.Fold, "Fold"), stratify: flag(how.Stratify), classes: C.size_t(how.Classes)}
	if err == nil {
		err = held.err
	}
	var first, second *C.dtg_dataset
	if err == nil {
		err = failure(C.dtg_dataset_split(p, &c, &first, &second))
		runtime.KeepAlive(d)
	}
	if err != nil {
		err = placed(err)
		train.err, heldOut.err = err, err
		return train, heldOut
	}
	train.open(datasetKind, unsafe.Pointer(first))
	heldOut.open(datasetKind, unsafe.Pointer(second))
	return train, heldOut
}

// NormalizationKind is what a normalization does to each feature.
type NormalizationKind int32

// The kinds.
const (
	NormalizeStandard NormalizationKind = 0 // to mean 0 and deviation 1
	NormalizeRange    NormalizationKind = 1 // to 0 at the least and 1 at the greatest
)

// FitNormalization is the numbers for Dataset.Normalize and Model.Normalize, as JSON, found by one look at all of a component; d stays where
// it stood. Ask before Batch, and after Split what is trained on: the numbers of all rows would tell the training of what is held out. Keep the
// text with the weights by Model.SetMetadata. Errors: InvalidArgument (no elements, or one that is NaN or infinite), OutOfRange.
func (d *Dataset) FitNormalization(component int, kind NormalizationKind) (string, error) {
	p, err := d.c()
	if err != nil {
		return "", err
	}
	defer runtime.KeepAlive(d)
	var out *C.dtg_string
	if err := failure(C.dtg_dataset_fit_normalization(p, C.size_t(component), C.int32_t(kind), &out)); err != nil {
		return "", err
	}
	return text(out), nil
}
