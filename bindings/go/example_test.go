// The examples of the documentation, run by go test.

package dtg_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// The w for which (w - 3)² is least.
func Example() {
	ctx := context.Background()
	g := dtg.NewGraph()
	defer g.Close()
	model := g.NewModel(1)
	defer model.Close()
	w := model.Variable("w", 0)
	loss := model.MeanSquaredError(g.ConstF32(3), w.Read)
	training := model.Minimize(loss, dtg.Optimizer{Rate: 0.25})
	init := model.Init()
	session, err := dtg.Connect(ctx, "local", g)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	if err := session.Run(ctx, dtg.Target(init)); err != nil {
		log.Fatal(err)
	}
	for step := range 5 {
		var value float32
		if err := session.Run(ctx, dtg.Fetch(loss, &value), dtg.Target(training.Train)); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("step %d: loss %g\n", step, value)
	}
	// Output:
	// step 0: loss 9
	// step 1: loss 2.25
	// step 2: loss 0.5625
	// step 3: loss 0.140625
	// step 4: loss 0.03515625
}

// The first error of building sticks; Connect returns it.
func ExampleGraph_Err() {
	g := dtg.NewGraph()
	defer g.Close()
	y := g.AddOp(dtg.OpSpec{Type: "MatMull"})
	g.AddOp(dtg.OpSpec{Type: "Neg", Inputs: y}) // does nothing any more
	_, err := dtg.Connect(context.Background(), "local", g)
	fmt.Println(errors.Is(err, dtg.ErrNotFound), errors.Is(g.Err(), dtg.ErrNotFound), g.NodeCount())
	// Output: true true 0
}
