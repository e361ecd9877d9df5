// crossing_go: what a call into the library costs from Go; the twin of crossing.c. Prints, as a JSON line each, the median
// nanoseconds of ABIVersion ("crossing") and of a prepared run of a tiny graph ("warm_step"), also with
// a context that can be cancelled ("cancellable"). One goroutine.
//
//	go run ../../tests/bench/compare/crossing_go       from bindings/go
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

const samples, crossings, steps = 51, 200000, 20000

func say(name string, times []float64) {
	slices.Sort(times)
	fmt.Printf("{\"name\": \"%s\", \"ns\": %.2f}\n", name, times[len(times)/2])
}

// measure calls f count times a sample; the first samples warm up.
func measure(name string, count int, f func()) {
	var times []float64
	for i := -5; i < samples; i++ {
		start := time.Now()
		for range count {
			f()
		}
		if i >= 0 {
			times = append(times, float64(time.Since(start).Nanoseconds())/float64(count))
		}
	}
	say(name, times)
}

func main() {
	ctx := context.Background()
	sum := uint32(0)
	measure("crossing", crossings, func() { sum += dtg.ABIVersion() })
	if sum == 1 {
		fmt.Println() // the sum is used
	}
	r := dtg.Must(dtg.NewRuntime(dtg.RuntimeOptions{ComputeThreads: 1}))
	g := r.NewGraph()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	y := g.AddV2(x, x)
	session := dtg.Must(dtg.Connect(ctx, "local", g))
	call := dtg.Must(session.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{y}}))
	in, out := dtg.Must(dtg.AllocateTensor(dtg.Float32)), dtg.Must(dtg.AllocateTensor(dtg.Float32))
	defer dtg.Close(in, out, call, session, g, r)
	feeds, fetched := []*dtg.Tensor{in}, []*dtg.Tensor{out}
	measure("warm_step", steps, func() { dtg.Check(call.Run(ctx, feeds, fetched)) })
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	measure("cancellable", steps, func() { dtg.Check(call.Run(cancellable, feeds, fetched)) })
}
