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

// How often 3 is halved until it is less than a hundredth, and what it is then, with its sign turned where that took an odd number.
func ExampleGraph_While() {
	g := dtg.NewGraph()
	defer g.Close()
	small := g.ConstF32(0.01)
	out := g.While([]dtg.Value{dtg.ConstScalar(g, int32(0)), g.ConstF32(3)},
		func(b *dtg.Graph, v []dtg.Value) dtg.Value { return b.Greater(v[1], small) },
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			return []dtg.Value{b.AddV2(v[0], dtg.ConstScalar(b, int32(1))), b.Mul(v[1], b.ConstF32(0.5))}
		})
	odd := g.FloorMod(out[0], dtg.ConstScalar(g, int32(2)))
	sign := g.If(odd, func(b *dtg.Graph) []dtg.Value { return []dtg.Value{b.Neg(out[1])} },
		func(*dtg.Graph) []dtg.Value { return []dtg.Value{out[1]} })
	session, err := dtg.Connect(context.Background(), "local", g)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	var halvings int32
	var last float32
	if err := session.Run(context.Background(), dtg.Fetch(out[0], &halvings), dtg.Fetch(sign[0], &last)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(halvings, last)
	// Output: 9 -0.005859375
}

// A server of this process, and a session that speaks for its task.
func ExampleStartServer() {
	cluster := dtg.Must(dtg.ParseCluster("worker=127.0.0.1:0")) // port 0: the system chooses
	server := dtg.Must(dtg.StartServer(cluster))
	g := dtg.NewGraph()
	y := g.Add(g.ConstF32(1), g.ConstF32(2))
	session := dtg.Must(dtg.Connect(context.Background(), server.Target(), g))
	defer dtg.Close(session, g, server, cluster)
	var value float32
	dtg.Check(session.Run(context.Background(), dtg.Fetch(y, &value)))
	for _, device := range session.Devices() {
		fmt.Println(device)
	}
	fmt.Println(value)
	// Output:
	// /job:worker/replica:0/task:0/device:CPU:0
	// 3
}

func ExampleGraph_Gradients() {
	g := dtg.NewGraph()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	y := g.Mul(g.Mul(x, x), x)
	gradients := g.Gradients([]dtg.Value{y}, []dtg.Value{x}, nil)
	session := dtg.Must(dtg.Connect(context.Background(), "local", g))
	defer dtg.Close(session, g)
	var slope float32
	dtg.Check(session.Run(context.Background(), dtg.FeedScalar(x, float32(2)), dtg.Fetch(gradients[0].Dense, &slope)))
	fmt.Println(slope)
	// Output: 12
}

func ExampleError() {
	_, err := dtg.LoadWeights("nowhere.safetensors")
	var e *dtg.Error
	fmt.Println(errors.Is(err, dtg.ErrNotFound), errors.As(err, &e) && e.Code == dtg.NotFound)
	// Output: true true
}

func ExampleSession_RunAsync() {
	g := dtg.NewGraph()
	queue := g.FIFOQueueV2([]dtg.DType{dtg.Float32})
	get, put := g.QueueDequeueV2(queue, []dtg.DType{dtg.Float32})[0], g.QueueEnqueueV2(queue, []dtg.Value{g.ConstF32(7)})
	session := dtg.Must(dtg.Connect(context.Background(), "local", g))
	defer dtg.Close(session, g)
	var value float32
	run := dtg.Must(session.RunAsync(dtg.Fetch(get, &value))) // waits in the queue; no thread waits
	dtg.Check(session.Run(context.Background(), dtg.Target(put)))
	dtg.Check(run.Wait(context.Background()))
	fmt.Println(value)
	// Output: 7
}

func ExampleGraph_NameScope() {
	g := dtg.NewGraph()
	defer g.Close()
	var v dtg.Value
	g.NameScope("layer", func() {
		g.Device("/device:CPU:0", func() { v = g.With(dtg.Node{Name: "bias"}).ConstF32(1) })
	})
	fmt.Println(dtg.Must(g.ValueName(v)), dtg.Must(g.ValueDevice(v)))
	// Output: layer/bias /device:CPU:0
}

// The w for which (w - 3)² is least, in epochs of a data set, and what the trainer says of it.
func ExampleTrainer() {
	ctx, g := context.Background(), dtg.NewGraph()
	model := g.NewModel(1)
	y := g.Placeholder("y", dtg.Float32, dtg.Shape{-1})
	w := model.Variable("w", 0)
	trainer := dtg.Must(model.NewTrainer(dtg.TrainerOptions{Feeds: []dtg.Value{y}, Loss: model.MeanSquaredError(y, w.Read),
		Optimizer: dtg.Optimizer{Rate: 0.25}}))
	threes := dtg.Must(dtg.NewTensor([]float32{3, 3, 3, 3}))
	data := dtg.DatasetTensors(threes).Batch(2, false)
	defer dtg.Close(trainer, data, threes, model, g)
	dtg.Check(trainer.Fit(ctx, data, nil, dtg.Fit{Epochs: 3}, dtg.FitCallbacks{EpochEnd: func(e dtg.FitEvent) error {
		fmt.Printf("epoch %d of 3, step %d: loss %.4f\n", e.Epoch, e.Step, e.Loss)
		return nil
	}}))
	fmt.Println(dtg.Must(trainer.Evaluate(ctx, data, 0)))
	// Output:
	// epoch 1 of 3, step 2: loss 5.6250
	// epoch 2 of 3, step 4: loss 0.3516
	// epoch 3 of 3, step 6: loss 0.0220
	// loss 0.0022
}
