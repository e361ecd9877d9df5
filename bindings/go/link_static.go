//go:build dtg_static

// How a program takes the library into itself: the archive, with everything that stands behind it. An archive has no
// version of its own at load, so shim.h holds the headers against the version that this package was written for.

package dtg

// #cgo pkg-config: --static dtg
// #cgo LDFLAGS: -Wl,-Bstatic -ldtg -Wl,-Bdynamic -lstdc++
import "C"
