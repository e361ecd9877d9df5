// Transforms of data sets. One goroutine at a time.

package dtg

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

func (d *Dataset) transform(add func(*C.dtg_dataset) *C.dtg_error) *Dataset {
	if d == nil || d.err != nil {
		return d
	}
	p, err := d.c()
	if err == nil {
		err = failure(add(p))
	}
	d.err = placed(err)
	runtime.KeepAlive(d)
	return d
}

// Shuffle draws at random from a buffer of that many elements; 0: from the whole epoch. Every epoch has an order of its own,
// decided by (seed, number of the epoch). Semantics: Dataset.shuffle.
func (d *Dataset) Shuffle(buffer int64, seed uint64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_shuffle(p, C.int64_t(buffer), C.uint64_t(seed))
	})
}

// ShuffleOnce is Shuffle with the same order in every epoch. Semantics: Dataset.shuffle with reshuffle_each_iteration=False.
func (d *Dataset) ShuffleOnce(buffer int64, seed uint64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_shuffle_once(p, C.int64_t(buffer), C.uint64_t(seed))
	})
}

// Normalize makes a component float32, (x - shift) / scale for each feature along its last dimension, by the text that FitNormalization
// found: fit on what is trained on, apply to that and to everything else.
func (d *Dataset) Normalize(component int, normalization string) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		data, length := chars(normalization)
		return C.dtg_dataset_normalize(p, C.size_t(component), data, length)
	})
}

// Batch stacks size elements along a new first dimension; a shorter last batch is handed out, or dropped. Semantics:
// Dataset.batch.
func (d *Dataset) Batch(size int64, dropRemainder bool) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_batch(p, C.int64_t(size), flag(dropRemainder))
	})
}

// Shard keeps elements index, index + count, ...: what one of count workers trains on. Semantics: Dataset.shard.
func (d *Dataset) Shard(count, index int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_shard(p, C.int64_t(count), C.int64_t(index))
	})
}

// AutoShard is Shard for the batches of one job: where there are fewer elements than workers, a worker that finds one reports
// InvalidArgument at its first Next, instead of training alone. Semantics: distribute with AutoShardPolicy.DATA.
func (d *Dataset) AutoShard(count, index int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_auto_shard(p, C.int64_t(count), C.int64_t(index))
	})
}

// Rebatch cuts every batch along the first dimension into parts batches of ceil(rows / parts) rows.
func (d *Dataset) Rebatch(parts int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_rebatch(p, C.int64_t(parts)) })
}

// Repeat is count epochs as one; negative: for ever. Semantics: Dataset.repeat.
func (d *Dataset) Repeat(count int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_repeat(p, C.int64_t(count)) })
}

// Take is the first count elements. Semantics: Dataset.take.
func (d *Dataset) Take(count int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_take(p, C.int64_t(count)) })
}

// Skip is all but the first count elements. Semantics: Dataset.skip.
func (d *Dataset) Skip(count int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_skip(p, C.int64_t(count)) })
}

// Scale makes a component float32, divided by divisor (255 for pixels).
func (d *Dataset) Scale(component int, divisor float64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_scale(p, C.size_t(component), C.double(divisor))
	})
}

// Cast makes a component Float32, Float64, Int32 or Int64.
func (d *Dataset) Cast(component int, dtype DType) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_cast(p, C.size_t(component), C.dtg_dtype(dtype))
	})
}

// Prefetch keeps up to count elements ready, made by a thread of the data set's own. Semantics: Dataset.prefetch.
func (d *Dataset) Prefetch(count int64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_prefetch(p, C.int64_t(count)) })
}

// BatchSizes is how a worker batches so that all workers together use globalBatch elements a step, also where that does not
// divide: the sizes of its successive batches, numWorkers * replicasPerWorker of them and then over again, replicasPerWorker
// a step. Semantics: batch_sizes_for_worker.
func BatchSizes(globalBatch, numWorkers, replicasPerWorker, worker int64) ([]int64, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	ask := func(room []int64) (int, error) {
		var count C.size_t
		err := failure(C.dtg_batch_sizes(C.int64_t(globalBatch), C.int64_t(numWorkers), C.int64_t(replicasPerWorker), C.int64_t(worker),
			(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(room))), C.size_t(len(room)), &count))
		return int(count), err
	}
	count, err := ask(nil)
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, count)
	_, err = ask(sizes)
	return sizes, err
}

// combine makes the data set one of itself and the others, which are a part of it from then on.
func (d *Dataset) combine(others []*Dataset, add func(*C.dtg_dataset, **C.dtg_dataset, C.size_t) *C.dtg_error) *Dataset {
	all := make([]*C.dtg_dataset, len(others))
	for i, other := range others {
		p, err := other.c()
		if err != nil {
			if d != nil && d.err == nil {
				d.err = placed(err)
			}
			return d
		}
		all[i] = p
	}
	defer runtime.KeepAlive(others)
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return add(p, unsafe.SliceData(all), C.size_t(len(all))) })
}

// Zip adds the components of the others to those of the data set, side by side; it ends with the first that ends. The others are a part of
// it from then on: every later call on them fails, but Close. No element may have been taken from any since its last restart. Semantics:
// Dataset.zip.
func (d *Dataset) Zip(others ...*Dataset) *Dataset {
	return d.combine(others, func(p *C.dtg_dataset, all **C.dtg_dataset, count C.size_t) *C.dtg_error {
		return C.dtg_dataset_zip(p, all, count)
	})
}

// Concatenate is the elements of the others after its own; components must be of equal number and types, and tables mean the
// same by their names and columns: read the second by the Schema of the first. The others become a part, as in Zip. Semantics: Dataset.concatenate.
func (d *Dataset) Concatenate(others ...*Dataset) *Dataset {
	return d.combine(others, func(p *C.dtg_dataset, all **C.dtg_dataset, count C.size_t) *C.dtg_error {
		return C.dtg_dataset_concatenate(p, all, count)
	})
}

// Interleave is block elements of each in turn, itself first, without those that have ended. The others become a part, as in Zip.
// Semantics: Dataset.interleave over as many data sets as its cycle_length.
func (d *Dataset) Interleave(block int64, others ...*Dataset) *Dataset {
	return d.combine(others, func(p *C.dtg_dataset, all **C.dtg_dataset, count C.size_t) *C.dtg_error {
		return C.dtg_dataset_interleave(p, all, count, C.int64_t(block))
	})
}

// Cache keeps the elements of the first epoch in memory and hands them out again in every epoch; a shuffle before it shuffles once. Its
// tensors must not be written to. Semantics: Dataset.cache.
func (d *Dataset) Cache() *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error { return C.dtg_dataset_cache(p) })
}

// Window stacks the elements k * shift, k * shift + stride, ..., size of them, for every k; windows at the end that are not whole are
// handed out, or dropped. Semantics: Dataset.window, each window batched.
func (d *Dataset) Window(size, shift, stride int64, dropRemainder bool) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_window(p, C.int64_t(size), C.int64_t(shift), C.int64_t(stride), flag(dropRemainder))
	})
}

// PaddedBatch is Batch for elements of different sizes: each is made as long as the longest of its batch, with padding. Semantics:
// Dataset.padded_batch.
func (d *Dataset) PaddedBatch(size int64, dropRemainder bool, padding float64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_padded_batch(p, C.int64_t(size), flag(dropRemainder), C.double(padding))
	})
}

// BucketBatch is PaddedBatch of elements of like length, the first dimension of a component: rising boundaries make a bucket more than there
// are of them, each with a size of its batches. Semantics: Dataset.bucket_by_sequence_length.
func (d *Dataset) BucketBatch(component int, boundaries, sizes []int64, dropRemainder bool, padding float64) *Dataset {
	return d.transform(func(p *C.dtg_dataset) *C.dtg_error {
		return C.dtg_dataset_bucket_batch(p, C.size_t(component), (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(boundaries))),
			C.size_t(len(boundaries)), (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(sizes))), C.size_t(len(sizes)), flag(dropRemainder),
			C.double(padding))
	})
}
