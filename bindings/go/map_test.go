// Functions and sources of the program's own over data sets.

package dtg_test

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

var number = []dtg.Component{{DType: dtg.Int64}}

func scalar(n int64) *dtg.Tensor { return dtg.Must(dtg.ScalarTensor(n)) }

func TestMapByGraph(t *testing.T) {
	leaves(t)
	square := func(b *dtg.Graph, x []dtg.Value) []dtg.Value { return []dtg.Value{b.Mul(x[0], x[0])} }
	for _, parallel := range []int{0, 3, -1} {
		o := dtg.MapOptions{Parallel: parallel}
		data := closing(t, dtg.DatasetRange(0, 6, 1)).Map(square, o).Filter(func(b *dtg.Graph, x []dtg.Value) []dtg.Value {
			return []dtg.Value{b.Less(x[0], dtg.ConstScalar(b, int64(20)))}
		}, o)
		equal(t, firsts(t, data), []int64{0, 1, 4, 9, 16})
	}
	seeds := closing(t, dtg.DatasetRange(5, 8, 1)).Map(func(_ *dtg.Graph, x []dtg.Value) []dtg.Value { return x[1:] },
		dtg.MapOptions{Seed: true})
	equal(t, firsts(t, seeds), []int64{0, 0, 0, 1, 0, 2})
	equal(t, firsts(t, seeds), []int64{1, 0, 1, 1, 1, 2})
	random := closing(t, dtg.DatasetRange(0, 3, 1)).Map(func(b *dtg.Graph, _ []dtg.Value) []dtg.Value {
		return []dtg.Value{b.RandomUniform(b.ConstI32s(2), dtg.Float32)}
	})
	refused(t, random.Err(), dtg.InvalidArgument)
}

func TestMapByGo(t *testing.T) {
	leaves(t)
	data := closing(t, dtg.DatasetRange(0, 5, 1)).MapFunc([]dtg.Component{{DType: dtg.Int64}, {DType: dtg.Float32, Shape: dtg.Shape{2}}},
		func(x []*dtg.Tensor) ([]*dtg.Tensor, error) {
			return []*dtg.Tensor{x[0], dtg.Must(dtg.NewTensor([]float32{1, 2}))}, nil
		}).FilterFunc(func(x []*dtg.Tensor) (bool, error) { return x[0].Int64s()[0] != 2, nil }).Prefetch(2)
	equal(t, firsts(t, data), []int64{0, 1, 3, 4})
	equal(t, firsts(t, data), []int64{0, 1, 3, 4})

	fails := func(code dtg.Code, says string, fn func([]*dtg.Tensor) ([]*dtg.Tensor, error)) {
		t.Helper()
		_, err := closing(t, dtg.DatasetRange(0, 1, 1)).MapFunc(number, fn).Next()
		refused(t, err, code)
		if err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	fails(dtg.Unknown, "the well is dry", func([]*dtg.Tensor) ([]*dtg.Tensor, error) { return nil, errors.New("the well is dry") })
	fails(dtg.DataLoss, "row 7", func([]*dtg.Tensor) ([]*dtg.Tensor, error) {
		return nil, fmt.Errorf("row 7: %w", &dtg.Error{Code: dtg.DataLoss, Message: "torn"})
	})
	fails(dtg.Internal, "out of the wall", func([]*dtg.Tensor) ([]*dtg.Tensor, error) { panic("out of the wall") })
	fails(dtg.InvalidArgument, "0 tensors", func([]*dtg.Tensor) ([]*dtg.Tensor, error) { return nil, nil })
	fails(dtg.InvalidArgument, "announced", func([]*dtg.Tensor) ([]*dtg.Tensor, error) {
		return []*dtg.Tensor{dtg.Must(dtg.ScalarTensor(float32(1)))}, nil
	})
	refused(t, closing(t, dtg.DatasetRange(0, 1, 1)).MapFunc(nil, nil).Err(), dtg.InvalidArgument)
}

// torn is an error of a program's own.
type torn struct{ row int64 }

func (e *torn) Error() string { return fmt.Sprintf("row %d is torn", e.row) }

// What a function of the program fails with comes back as it is, wherever the element was asked for.
func TestOwnErrorsComeBack(t *testing.T) {
	leaves(t)
	mine := errors.New("the well is dry")
	found := func(what string, err error) {
		t.Helper()
		var code *dtg.Error
		if !errors.Is(err, mine) || !errors.As(err, &code) || code.Code != dtg.Unknown {
			t.Errorf("%s: %v is not the program's", what, err)
		}
	}
	fails := func([]*dtg.Tensor) ([]*dtg.Tensor, error) { return nil, mine }
	_, err := closing(t, dtg.DatasetRange(0, 9, 1)).MapFunc(number, fails).Next()
	found("map", err)
	data := closing(t, dtg.DatasetRange(0, 9, 1)).FilterFunc(func([]*dtg.Tensor) (bool, error) { return false, mine }).Batch(2, false).Prefetch(2)
	_, err = data.Next()
	found("filter, behind a prefetch", err)
	_, err = closing(t, dtg.DatasetFunc(number, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) { yield(nil, mine) }
	})).Next()
	found("source", err)

	_, err = closing(t, dtg.DatasetRange(0, 9, 1)).MapFunc(number, func(x []*dtg.Tensor) ([]*dtg.Tensor, error) {
		if n := x[0].Int64s()[0]; n == 3 {
			return nil, &torn{n}
		}
		return x, nil
	}).Batch(9, false).Next()
	var row *torn
	if !errors.As(err, &row) || row.row != 3 {
		t.Errorf("%v is no torn row", err)
	}
	_, err = closing(t, dtg.DatasetRange(0, 1, 1)).MapFunc(number, func([]*dtg.Tensor) ([]*dtg.Tensor, error) { panic(mine) }).Next()
	refused(t, err, dtg.Internal)
	if !errors.Is(err, mine) || !strings.Contains(err.Error(), fmt.Sprintf("map_test.go:%d", lineOf()-2)) {
		t.Errorf("%v does not say what panicked, and where", err)
	}
	// One of the library's has nobody's error in it.
	_, err = closing(t, dtg.DatasetRange(0, 1, 1)).MapFunc(number, func([]*dtg.Tensor) ([]*dtg.Tensor, error) { return nil, nil }).Next()
	if refused(t, err, dtg.InvalidArgument); errors.Is(err, mine) || errors.As(err, &row) {
		t.Errorf("%v", err)
	}
}

func TestOwnErrorsComeBackFromTraining(t *testing.T) {
	leaves(t)
	l := newLab(t)
	mine := errors.New("the disk of the pictures is gone")
	ill := func() *dtg.Dataset {
		return closing(t, dtg.DatasetRange(0, 9, 1)).MapFunc([]dtg.Component{{DType: dtg.Float32, Shape: dtg.Shape{3}}, {DType: dtg.Int64}},
			func([]*dtg.Tensor) ([]*dtg.Tensor, error) { return nil, mine }).Batch(2, false)
	}
	if err := l.trainer.Fit(background, ill(), nil, dtg.Fit{Epochs: 1}); !errors.Is(err, mine) {
		t.Errorf("fit: %v", err)
	}
	if _, err := l.trainer.Evaluate(background, ill(), 0); !errors.Is(err, mine) {
		t.Errorf("evaluate: %v", err)
	}
	if _, err := l.trainer.Predict(background, ill()); !errors.Is(err, mine) {
		t.Errorf("predict: %v", err)
	}
}

func TestSourceInGo(t *testing.T) {
	leaves(t)
	counting := func(number int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) {
			for i := range int64(4) {
				if !yield([]*dtg.Tensor{scalar(10*number + i)}, nil) {
					return
				}
			}
		}
	}
	data := closing(t, dtg.DatasetFunc(number, counting, dtg.SourceOptions{Cardinality: 4, Name: "counting"})).Batch(3, false)
	equal(t, firsts(t, data), []int64{0, 1, 2, 3})
	want(t, data.Restart())
	element, err := data.Next()
	want(t, err)
	element[0].Close()
	place, err := data.Position()
	want(t, err)
	again := closing(t, dtg.DatasetFunc(number, counting, dtg.SourceOptions{Cardinality: 4, Name: "counting"})).Batch(3, false)
	want(t, again.MoveTo(place))
	element, err = again.Next()
	want(t, err)
	equal(t, element[0].Int64s(), []int64{13})
	element[0].Close()

	_, err = closing(t, dtg.DatasetFunc(number, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) { panic("the rows are gone") }
	})).Next()
	refused(t, err, dtg.Internal)
	if !strings.Contains(err.Error(), fmt.Sprintf("map_test.go:%d", lineOf()-3)) {
		t.Errorf("%v does not say where it panicked", err)
	}
	_, err = closing(t, dtg.DatasetFunc(number, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) { runtime.Goexit() }
	})).Next()
	refused(t, err, dtg.Unknown)

	rows := make(chan []*dtg.Tensor, 3)
	for i := range int64(3) {
		rows <- []*dtg.Tensor{scalar(i)}
	}
	close(rows)
	channel := closing(t, dtg.DatasetFunc(number, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) {
			for row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}))
	equal(t, firsts(t, channel), []int64{0, 1, 2})
	refused(t, dtg.DatasetArrow(nil).Err(), dtg.InvalidArgument)
	short := closing(t, dtg.DatasetFunc(number, counting, dtg.SourceOptions{Cardinality: 5})).Skip(4)
	_, err = short.Next()
	refused(t, err, dtg.DataLoss)
}

// A sequence goes on whatever thread asks, and ends on any: goroutines that hold their threads, and in turns.
func TestSourceOnManyThreads(t *testing.T) {
	leaves(t)
	ended := 0
	data := dtg.DatasetFunc(number, func(int64) iter.Seq2[[]*dtg.Tensor, error] {
		return func(yield func([]*dtg.Tensor, error) bool) {
			defer func() { ended++ }()
			for i := int64(0); yield([]*dtg.Tensor{scalar(i)}, nil); i++ {
			}
		}
	})
	apart := func(fn func()) {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread goes with the goroutine
			defer close(done)
			fn()
		}()
		<-done
	}
	for range 3 {
		for i := range int64(20) {
			apart(func() {
				element, err := data.Next()
				want(t, err)
				equal(t, element[0].Int64s(), []int64{i})
				element[0].Close()
			})
		}
		apart(func() { want(t, data.Restart()) })
	}
	apart(func() { data.Close() })
	if ended != 3 {
		t.Errorf("%d sequences have returned, of 3", ended)
	}
}
