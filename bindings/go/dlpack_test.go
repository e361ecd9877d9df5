// DLPack: out and in again, by both forms.

package dtg_test

import (
	"context"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestDLPack(t *testing.T) {
	leaves(t)
	tensor := get(dtg.NewTensor([]float32{1, 2, 3, 4}))(t)
	managed := get(tensor.DLPack(false))(t)
	again := closing(t, get(dtg.FromDLPack(managed))(t))
	old := get(tensor.DLPackUnversioned())(t)
	same := closing(t, get(dtg.FromDLPackUnversioned(old))(t))
	tensor.Float32s()[3] = 5
	want(t, tensor.Close())
	equal(t, get(dtg.Copy[float32](again))(t), []float32{1, 2, 3, 5})
	equal(t, same.Float32s(), []float32{1, 2, 3, 5})
	equal(t, again.Shape(), []int64{4})
	if !again.ReadOnly() || same.ReadOnly() {
		t.Errorf("read-only: %v, and without a version %v", again.ReadOnly(), same.ReadOnly())
	}
	_, err := again.DLPack(true)
	refused(t, err, dtg.FailedPrecondition)
	_, err = again.DLPackUnversioned()
	refused(t, err, dtg.FailedPrecondition)
	_, err = tensor.DLPack(false)
	refused(t, err, dtg.InvalidArgument, "not an open tensor")
	_, err = dtg.FromDLPack(nil)
	refused(t, err, dtg.InvalidArgument)
	contexts(t, func(t *testing.T, ctx context.Context) {
		s, x, y := doubler(t)
		var out []float32
		want(t, s.Run(ctx, dtg.Feed(x, again), dtg.FetchSlice(y, &out)))
		equal(t, out, []float32{2, 4, 6, 10})
		refused(t, s.Run(ctx, dtg.Feed(x, same), dtg.FetchTensor(y, &again)), dtg.InvalidArgument, "read-only")
	})
}
