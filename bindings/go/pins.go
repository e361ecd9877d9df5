// pins: Go memory that a struct for the library points to, held in place for the length of a call. One goroutine.

package dtg

// #include "shim.h"
import "C"

import (
	"math"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// pins holds what one call borrows; unpin ends it.
type pins struct {
	runtime.Pinner
	err error // a text that must end with NUL holds one
}

// text is the bytes of s; NULL for "", which the ABI takes for "not given" wherever this is used.
func (p *pins) text(s string) (*C.char, C.size_t) {
	if s == "" {
		return nil, 0
	}
	data := unsafe.StringData(s)
	p.Pin(data)
	return (*C.char)(unsafe.Pointer(data)), C.size_t(len(s))
}

// cstring is a copy of s that ends with NUL; NULL for "".
func (p *pins) cstring(s string) *C.char {
	if s == "" {
		return nil
	}
	return p.terminated(s)
}

func (p *pins) terminated(s string) *C.char {
	if p.err == nil && hasNUL(s) {
		p.err = invalid("%q holds a NUL byte, which the library takes for its end", s)
	}
	return p.bytes(s)
}

// bytes is a copy of s for where a length goes with it; never NULL.
func (p *pins) bytes(s string) *C.char {
	data := append([]byte(s), 0)
	p.Pin(&data[0])
	return (*C.char)(unsafe.Pointer(&data[0]))
}

// cstrings are copies that end with NUL.
func (p *pins) cstrings(list []string) (**C.char, C.size_t) {
	if len(list) == 0 {
		return nil, 0
	}
	out := make([]*C.char, len(list))
	for i, s := range list {
		out[i] = p.terminated(s)
	}
	p.Pin(&out[0])
	return &out[0], C.size_t(len(list))
}

// columns are the names of those columns that are to be read; nil: all. A list without a name is not all of them: it was filled and nothing
// came of it.
func (p *pins) columns(list []string) (**C.char, C.size_t) {
	if list != nil && len(list) == 0 && p.err == nil {
		p.err = invalid("Columns is an empty list, which names no column to read; name some, or give nil for all of them")
	}
	return p.cstrings(list)
}

// hasNUL says of a name that the library would take it for a shorter one.
func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// pinned is the address of a slice's elements.
func pinned[T any](p *pins, list []T) (unsafe.Pointer, C.size_t) {
	if len(list) == 0 {
		return nil, 0
	}
	p.Pin(&list[0])
	return unsafe.Pointer(&list[0]), C.size_t(len(list))
}

func (p *pins) values(list []Value) (*C.dtg_value, C.size_t) {
	data, count := pinned(p, list)
	return (*C.dtg_value)(data), count
}

func (p *pins) ints(list []int64) (*C.int64_t, C.size_t) {
	data, count := pinned(p, list)
	return (*C.int64_t)(data), count
}

// chars are the bytes of s for a call that copies them or looks at them before it returns. Never NULL.
func chars(s string) (*C.char, C.size_t) {
	if s == "" {
		return &nothing, 0
	}
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s))
}

var nothing C.char

func valuesOf(list []Value) (*C.dtg_value, C.size_t) {
	return (*C.dtg_value)(unsafe.Pointer(unsafe.SliceData(list))), C.size_t(len(list))
}

func nanoseconds(d time.Duration) C.int64_t { return C.int64_t(d.Nanoseconds()) }

// int32 is a number that the ABI has 32 bits for.
func (p *pins) int32(n int, what string) C.int32_t {
	if int(int32(n)) != n && p.err == nil {
		p.err = invalid("%s is %d; it must fit into 32 bits", what, n)
	}
	return C.int32_t(n)
}

// clamped is a number that the library looks at: one that does not fit into 32 bits becomes one that it refuses.
func clamped(n int) C.int32_t { return C.int32_t(max(math.MinInt32, min(n, math.MaxInt32))) }

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// only is the options of a call that has at most one set of them: of two, one would be dropped without a word.
func only[T any](options []T) (out T, err error) {
	switch len(options) {
	case 0:
		return out, nil
	case 1:
		return options[0], nil
	}
	return out, invalid("%d of %T were given; give one, with all that is to be said, or none", len(options), out)
}

// pinnedOnly is only, whose error waits in p.
func pinnedOnly[T any](p *pins, options []T) T {
	o, err := only(options)
	if err != nil && p.err == nil {
		p.err = err
	}
	return o
}

// onlyOf is the optional attributes of an op, where more than one set sticks in g.
func onlyOf[T any](g *Graph, attrs []T) T {
	given, err := only(attrs)
	if err != nil {
		g.fail(err)
	}
	return given
}
