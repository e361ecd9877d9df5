// Tensors: what goes in comes out, for every type; what does not fit is refused.

package dtg_test

import (
	"fmt"
	"math"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func roundTrip[T dtg.Element](t *testing.T, dtype dtg.DType, elements ...T) {
	t.Helper()
	tensor := closing(t, get(dtg.NewTensor(elements, 1, int64(len(elements))))(t))
	if tensor.DType() != dtype || dtg.DTypeOf[T]() != dtype || dtg.DTypeFromName(dtype.String()) != dtype {
		t.Fatalf("%v is not %v", tensor.DType(), dtype)
	}
	if tensor.Len() != len(elements) || len(tensor.Shape()) != 2 || tensor.Shape().Count() != int64(len(elements)) {
		t.Fatalf("%v of %d elements", tensor.Shape(), tensor.Len())
	}
	equal(t, get(dtg.Copy[T](tensor))(t), elements)
	view := get(dtg.View[T](tensor))(t)
	view[0] = elements[1]
	equal(t, get(dtg.Copy[T](tensor))(t), append([]T{elements[1]}, elements[1:]...))
	scalar := closing(t, get(dtg.ScalarTensor(elements[1]))(t))
	equal(t, []T{get(dtg.Scalar[T](scalar))(t)}, elements[1:2])
}

func TestTensorsOfEveryType(t *testing.T) {
	leaves(t)
	roundTrip[float32](t, dtg.Float32, 1, -2.5)
	roundTrip[float64](t, dtg.Float64, 1, math.Inf(1))
	roundTrip[int8](t, dtg.Int8, 1, -128)
	roundTrip[int16](t, dtg.Int16, 1, math.MinInt16)
	roundTrip[int32](t, dtg.Int32, 1, math.MinInt32)
	roundTrip[int64](t, dtg.Int64, 1, math.MinInt64)
	roundTrip[uint8](t, dtg.Uint8, 1, 255)
	roundTrip[uint16](t, dtg.Uint16, 1, math.MaxUint16)
	roundTrip[uint32](t, dtg.Uint32, 1, math.MaxUint32)
	roundTrip[uint64](t, dtg.Uint64, 1, math.MaxUint64)
	roundTrip(t, dtg.Bool, false, true)
	roundTrip[complex64](t, dtg.Complex64, 1, 2+3i)
	roundTrip[complex128](t, dtg.Complex128, 1, 2-3i)
	roundTrip(t, dtg.BFloat16Type, dtg.ToBFloat16(1), dtg.ToBFloat16(-3))
	roundTrip(t, dtg.Float16Type, dtg.ToFloat16(1), dtg.ToFloat16(-3))
}

func TestTensorShapesThatDoNotFit(t *testing.T) {
	leaves(t)
	_, err := dtg.NewTensor([]float32{1, 2, 3}, 2, 2)
	refused(t, err, dtg.InvalidArgument, "has 4 elements, but")
	_, err = dtg.NewTensor([]float32{1}, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	refused(t, err, dtg.InvalidArgument, "rank")
	_, err = dtg.AllocateTensor(dtg.String, 2)
	refused(t, err, dtg.Unimplemented)
	_, err = dtg.AllocateTensor(dtg.Float32, -1)
	refused(t, err, dtg.InvalidArgument)
}

func TestTensorOfAnotherType(t *testing.T) {
	leaves(t)
	tensor := vector(t, 1, 2)
	_, err := dtg.View[int64](tensor)
	refused(t, err, dtg.InvalidArgument, "float32", "int64")
	_, err = dtg.Scalar[float32](tensor)
	refused(t, err, dtg.InvalidArgument, "2 elements")
	if tensor.Int64s() != nil {
		t.Error("an int64 view of a float32 tensor")
	}
	if f := tensor.Float32s(); len(f) != 2 || f[1] != 2 {
		t.Errorf("view %v", f)
	}
}

func TestEmptyTensor(t *testing.T) {
	leaves(t)
	tensor := closing(t, get(dtg.NewTensor([]float32{}))(t))
	if view := get(dtg.View[float32](tensor))(t); len(view) != 0 || tensor.Len() != 0 {
		t.Errorf("%d elements", len(view))
	}
}

func TestTensorRetain(t *testing.T) {
	leaves(t)
	first := get(dtg.NewTensor([]float32{1}))(t)
	second := closing(t, get(first.Retain())(t))
	want(t, first.Close())
	equal(t, second.Float32s(), []float32{1})
	_, err := first.Retain()
	refused(t, err, dtg.InvalidArgument)
}

func TestTensorAllocate(t *testing.T) {
	leaves(t)
	tensor := closing(t, get(dtg.AllocateTensor(dtg.Int64, 2, 3))(t))
	equal(t, tensor.Int64s(), []int64{0, 0, 0, 0, 0, 0})
}

// Every number of 16 bits, there and back.
func TestHalfTypes(t *testing.T) {
	for bits := range 1 << 16 {
		h := dtg.Float16(bits)
		if f := h.Float32(); f == f && dtg.ToFloat16(f) != h {
			t.Fatalf("float16 %#04x is %g is %#04x", bits, f, dtg.ToFloat16(f))
		} else if f != f && dtg.ToFloat16(f).Float32() == dtg.ToFloat16(f).Float32() {
			t.Fatalf("float16 %#04x is no number any more", bits)
		}
		b := dtg.BFloat16(bits)
		if f := b.Float32(); f == f && dtg.ToBFloat16(f) != b {
			t.Fatalf("bfloat16 %#04x is %g is %#04x", bits, f, dtg.ToBFloat16(f))
		}
	}
	for _, c := range []struct {
		from   float32
		f16    dtg.Float16
		bf16   dtg.BFloat16
		reason string
	}{
		{1, 0x3c00, 0x3f80, "exact"},
		{1 + 1.0/2048, 0x3c00, 0x3f80, "a tie goes to even"},
		{1 + 3.0/2048, 0x3c02, 0x3f80, "a tie goes to even, upwards"},
		{65520, 0x7c00, 0x4780, "too great for float16"},
		{65519, 0x7bff, 0x4780, "just not too great"},
		{float32(math.Ldexp(1, -25)), 0, 0x3300, "half the smallest"},
		{float32(math.Ldexp(3, -26)), 1, 0x3340, "more than half the smallest"},
		{-2, 0xc000, 0xc000, "negative"},
		{float32(math.Inf(-1)), 0xfc00, 0xff80, "infinite"},
	} {
		if h, b := dtg.ToFloat16(c.from), dtg.ToBFloat16(c.from); h != c.f16 || b != c.bf16 {
			t.Errorf("%g (%s): %#04x and %#04x, not %#04x and %#04x", c.from, c.reason, h, b, c.f16, c.bf16)
		}
	}
}

func TestDTypes(t *testing.T) {
	if dtg.Float32.Size() != 4 || dtg.String.Size() != 0 || dtg.DType(99).String() != "invalid" || dtg.DTypeFromName("float") != dtg.Float32 {
		t.Error("a type is not what it was")
	}
	if s := fmt.Sprint(dtg.BFloat16Type, dtg.QUint8, dtg.Float8E4M3FN); s != "bfloat16 quint8 float8_e4m3fn" {
		t.Error(s)
	}
	if dtg.Shape(nil).Known() || dtg.Shape(nil).Count() != -1 || (dtg.Shape{2, -1}).Count() != -1 || (dtg.Shape{}).Count() != 1 {
		t.Error("shapes")
	}
}

func ExampleNewTensor() {
	t, err := dtg.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	view, _ := dtg.View[float32](t) // where the elements lie, until Close
	view[0] = 7
	elements, _ := dtg.Copy[float32](t) // in memory of Go's own
	fmt.Println(t.DType(), t.Shape(), elements)
	// Output: float32 [2 3] [7 2 3 4 5 6]
}

// What fmt prints of a tensor is for people.
func TestTensorSays(t *testing.T) {
	leaves(t)
	says := func(tensor *dtg.Tensor, err error) func(string) {
		t.Helper()
		want(t, err)
		closing(t, tensor)
		return func(expected string) {
			t.Helper()
			if told := fmt.Sprint(tensor); told != expected {
				t.Errorf("%s, expected %s", told, expected)
			}
		}
	}
	says(dtg.NewTensor([]float32{1, 2.5, 3, 4, 5, 6}, 2, 3))("float32[2 3] [1 2.5 3 4 5 6]")
	says(dtg.NewTensor([]int64{0, 1, 2, 3, 4, 5, 6}))("int64[7] [0 1 2 3 4 5 ...]")
	says(dtg.ScalarTensor(true))("bool[] [true]")
	says(dtg.ScalarTensor(dtg.ToBFloat16(1.5)))("bfloat16[] [1.5]")
	says(dtg.ScalarTensor(dtg.ToFloat16(-2)))("float16[] [-2]")
	says(dtg.ScalarTensor(complex64(1 + 2i)))("complex64[] [(1+2i)]")
	says(dtg.ScalarTensor(uint8(200)))("uint8[] [200]")
	says(dtg.AllocateTensor(dtg.Float64, 0, 4))("float64[0 4] []")
	says(dtg.StringTensor([]string{"a b", "", "c", "d", "e", "f", "g"}))(`string[7] ["a b" "" "c" "d" "e" "f" ...]`)
	if closed := dtg.Must(dtg.ScalarTensor(int32(1))); closed.Close() != nil || fmt.Sprint(closed) != "Tensor(closed)" {
		t.Error(closed)
	}
	if none := (*dtg.Tensor)(nil); none.String() != "Tensor(nil)" {
		t.Error(none)
	}
}
