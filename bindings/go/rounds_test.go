//go:build !race

// How often the loops go round.

package dtg_test

const rounds, slice = 10_000, 2_000
