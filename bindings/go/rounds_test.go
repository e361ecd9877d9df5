//go:build !race

// How often the loops go round.

package dtg_test

const rounds = 10000
