// Weights: named tensors, in memory and in safetensors files. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"iter"
	"runtime"
	"unsafe"
)

var weightsKind = &kind{"weight set", "NewWeights or LoadWeights", func(p unsafe.Pointer) { C.dtg_weights_release((*C.dtg_weights)(p)) }}

// Weights is a set of named tensors. Format: https://github.com/huggingface/safetensors
type Weights struct{ handle }

// NewWeights is an empty set.
func NewWeights() (*Weights, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	var out *C.dtg_weights
	return wrapWeights(&out, failure(C.dtg_weights_create(&out)))
}

// LoadWeights is everything in a safetensors file. Nothing in the file is trusted. Errors: NotFound, DataLoss (cut, damaged, not
// safetensors), Unimplemented (an element type that is not there), ResourceExhausted.
func LoadWeights(path string) (*Weights, error) { return (*Runtime)(nil).LoadWeights(path) }

// LoadWeights is the same with the memory limit of r.
func (r *Runtime) LoadWeights(path string) (*Weights, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	home, err := r.c()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(r)
	data, length := chars(path)
	var out *C.dtg_weights
	return wrapWeights(&out, failure(C.dtg_weights_load(home, data, length, &out)))
}

func wrapWeights(out **C.dtg_weights, err error) (*Weights, error) {
	if err != nil {
		return nil, err
	}
	w := &Weights{}
	w.open(weightsKind, unsafe.Pointer(*out))
	return w, nil
}

// c is the handle for a call.
func (w *Weights) c() (*C.dtg_weights, error) {
	if w == nil {
		return nil, invalid("the weight set is nil; make one first")
	}
	p, err := w.get(weightsKind)
	return (*C.dtg_weights)(p), err
}

func (w *Weights) use(call func(*C.dtg_weights) *C.dtg_error) error {
	p, err := w.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(w)
	return failure(call(p))
}

// Close drops the set. Closing twice is fine.
func (w *Weights) Close() error {
	if w != nil {
		w.close(weightsKind)
	}
	return nil
}

// Save writes the set to a file, atomically: readers find the old file or the new one, whole.
func (w *Weights) Save(path string) error {
	return w.use(func(p *C.dtg_weights) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_weights_save(p, data, length)
	})
}

// Set adds a tensor, or replaces the one of that name. It is shared, not copied: write to it only after saving.
func (w *Weights) Set(name string, t *Tensor) error {
	tensor, err := t.c()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(t)
	return w.use(func(p *C.dtg_weights) *C.dtg_error {
		data, length := chars(name)
		return C.dtg_weights_set(p, data, length, tensor)
	})
}

// Get is the tensor of that name, which the caller closes. Errors: NotFound.
func (w *Weights) Get(name string) (*Tensor, error) {
	var out *C.dtg_tensor
	err := w.use(func(p *C.dtg_weights) *C.dtg_error {
		data, length := chars(name)
		return C.dtg_weights_get(p, data, length, &out)
	})
	if err != nil {
		return nil, err
	}
	return wrapTensor(out), nil
}

// Len is the number of tensors; 0 for a closed set.
func (w *Weights) Len() (n int) {
	_ = w.use(func(p *C.dtg_weights) *C.dtg_error {
		n = int(C.dtg_weights_count(p))
		return nil
	})
	return n
}

// Names is the names of the tensors, in order of name after loading, of adding otherwise. The set must not change meanwhile.
func (w *Weights) Names() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		_ = w.use(func(p *C.dtg_weights) *C.dtg_error {
			for i := range int(C.dtg_weights_count(p)) {
				if name := C.dtg_weights_name(p, C.size_t(i)); name == nil || !yield(i, C.GoString(name)) {
					break
				}
			}
			return nil
		})
	}
}

// All is names and tensors, which are closed when the loop goes on: Retain what should live longer.
func (w *Weights) All() iter.Seq2[string, *Tensor] {
	return func(yield func(string, *Tensor) bool) {
		for _, name := range w.Names() {
			t, err := w.Get(name)
			if err != nil {
				return
			}
			goesOn := yield(name, t)
			t.Close()
			if !goesOn {
				return
			}
		}
	}
}

// SetMetadata sets a text of the file's metadata.
func (w *Weights) SetMetadata(key, value string) error {
	return w.use(func(p *C.dtg_weights) *C.dtg_error {
		k, keyLength := chars(key)
		v, valueLength := chars(value)
		return C.dtg_weights_set_metadata(p, k, keyLength, v, valueLength)
	})
}

// Metadata is a text of the metadata, and whether it is there.
func (w *Weights) Metadata(key string) (value string, ok bool) {
	_ = w.use(func(p *C.dtg_weights) *C.dtg_error {
		data, length := chars(key)
		if found := C.dtg_weights_metadata(p, data, length); found != nil {
			value, ok = C.GoString(found), true
		}
		return nil
	})
	return value, ok
}
