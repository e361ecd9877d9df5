//go:build race

// How often the loops go round under the race detector, which makes them many times slower and counts no memory.

package dtg_test

const rounds, slice = 200, 40
