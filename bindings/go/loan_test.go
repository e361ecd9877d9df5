// Loans, from inside the package: none stays out when its run has ended.

package dtg

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestLoansComeBack(t *testing.T) {
	g := NewGraph()
	x := g.Placeholder("x", Float32, Shape{-1})
	y := g.Neg(x)
	s := Must(Connect(context.Background(), "local", g))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	data := make([]float32, lendAbove)
	r := &request{}
	Check(FeedSlice(x, data)(r))
	if len(r.loans) != 1 || len(r.made) != 0 {
		t.Fatalf("%d loans, %d copies", len(r.loans), len(r.made))
	}
	r.end()
	for range 100 {
		Check(s.Run(context.Background(), FeedSlice(x, data), Target(y)))
		Check(s.Run(ctx, FeedSlice(x, data), Target(y)))
	}
	Check(Close(s, g))
	// The last one may come back a moment after the end of its run was announced.
	for deadline := time.Now().Add(30 * time.Second); out() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d loans are still out", out())
		}
	}
}

// out is how many loans are out.
func out() int {
	collectOverdue()
	overdue.Lock()
	defer overdue.Unlock()
	return len(overdue.loans)
}
