// DType: element types, and which of them are Go types. Constants; any goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"math"
	"unsafe"
)

// DType is an element type, with TensorFlow's number. Which ops compute on which types is told by OpsJSON.
type DType int32

// The element types.
const (
	Float32      DType = 1
	Float64      DType = 2
	Int32        DType = 3
	Uint8        DType = 4
	Int16        DType = 5
	Int8         DType = 6
	String       DType = 7
	Complex64    DType = 8
	Int64        DType = 9
	Bool         DType = 10
	QInt8        DType = 11
	QUint8       DType = 12
	QInt32       DType = 13
	BFloat16Type DType = 14
	QInt16       DType = 15
	QUint16      DType = 16
	Uint16       DType = 17
	Complex128   DType = 18
	Float16Type  DType = 19
	Resource     DType = 20
	Variant      DType = 21
	Uint32       DType = 22
	Uint64       DType = 23
	Float8E5M2   DType = 24
	Float8E4M3FN DType = 25
	Int4         DType = 29
	Uint4        DType = 30
)

// String is the name of the type, "float32"; "invalid" for unknown numbers.
func (d DType) String() string { return C.GoString(C.dtg_dtype_name(C.dtg_dtype(d))) }

// Size is the number of bytes of an element; 0 for types without a fixed plain size and for unknown numbers.
func (d DType) Size() int { return int(C.dtg_dtype_size(C.dtg_dtype(d))) }

// DTypeFromName is the type of that name, "float32" or "float"; 0 if there is none.
func DTypeFromName(name string) DType {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return DType(C.dtg_dtype_from_name(s))
}

// BFloat16 is the upper half of a float32.
type BFloat16 uint16

// Float32 is the same number.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBFloat16 rounds to the nearest, ties to even.
func ToBFloat16(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return BFloat16(bits>>16 | 0x40)
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float16 is a number of IEEE 754's binary16.
type Float16 uint16

// Float32 is the same number.
func (h Float16) Float32() float32 {
	sign, exponent, fraction := uint32(h)>>15<<31, uint32(h)>>10&31, uint32(h)&1023
	switch exponent {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	case 0:
		small := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(small))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ToFloat16 rounds to the nearest, ties to even; what is too great becomes an infinity.
func ToFloat16(f float32) Float16 {
	bits := math.Float32bits(f)
	sign, rest := Float16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case rest > 0x7f800000:
		return sign | 0x7e00
	case rest >= 0x477ff000: // rounds to 2^16
		return sign | 0x7c00
	case rest < 0x38800000: // below the smallest normal number: a multiple of 2^-24
		return sign | Float16(math.RoundToEven(float64(math.Float32frombits(rest))*(1<<24)))
	}
	return sign | Float16((rest-112<<23+0xfff+rest>>13&1)>>13)
}

// Element is the Go types that are element types.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool | complex64 | complex128 |
		BFloat16 | Float16
}

// DTypeOf is the element type of a Go type.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case bool:
		return Bool
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case BFloat16:
		return BFloat16Type
	default:
		return Float16Type
	}
}

// Shape is the sizes of the dimensions. nil: not even their number is known; Shape{}: a scalar; -1: a size that is open.
type Shape []int64

// Known says whether the number of dimensions is known.
func (s Shape) Known() bool { return s != nil }

// Count is the number of elements; -1 when that is open.
func (s Shape) Count() int64 {
	if s == nil {
		return -1
	}
	n := int64(1)
	for _, d := range s {
		if d < 0 {
			return -1
		}
		n *= d
	}
	return n
}
