//go:build !dtg_static

// How a program finds the library: as a shared one, through pkg-config. The tag dtg_static takes link_static.go instead.

package dtg

// #cgo pkg-config: dtg
import "C"
