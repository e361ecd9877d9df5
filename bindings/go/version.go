// What the library says of itself. Any goroutine.

package dtg

// #cgo noescape dtg_abi_version
// #cgo nocallback dtg_abi_version
// #include "shim.h"
import "C"

import "unsafe"

// Version is that of the library that is loaded, "0.1.0".
func Version() string { return C.GoString(C.dtg_version()) }

// ABIVersion is the version of the library's ABI: major << 16 | minor.
func ABIVersion() uint32 { return uint32(C.dtg_abi_version()) }

// HasFeature says whether the library was built with a feature: "cpu", "cuda", "tls".
func HasFeature(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.dtg_has_feature(s) != 0
}

// LiveHandles is the number of objects of the library that are open in this process, for leak checks in tests. The completion
// queue of this package, which lives as long as the process, is not counted.
func LiveHandles() int {
	completions.Lock()
	defer completions.Unlock()
	n := int(C.dtg_live_handles())
	if completions.queue != nil {
		n--
	}
	return n
}
