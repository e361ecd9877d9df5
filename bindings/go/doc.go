// Package dtg trains models inside a Go program: dataflow graphs with gradients, variables, sessions, and the cluster of
// tasks that train one model together. It is a thin client of libdtg.so; names, errors and semantics are those of its C ABI.
//
//	g := dtg.NewGraph()
//	defer g.Close()
//	model := g.NewModel(1)
//	defer model.Close()
//	w := model.Variable("w", 0)
//	loss := model.MeanSquaredError(g.ConstF32(3), w.Read)
//	training := model.Minimize(loss, dtg.Optimizer{Rate: 0.25})
//	init := model.Init()
//	session, err := dtg.Connect(ctx, "local", g)
//
// # Errors
//
// A failed call returns an *Error with the code and the message of the C ABI; errors.Is(err, dtg.ErrUnavailable) asks for
// the code. While a graph or a model is built the first error sticks, with the place in the program where it happened:
// Connect returns it, and Graph.Err tells it earlier.
//
// # Lifetime
//
// Everything with a Close method must be closed; the order does not matter and closing twice is fine. What is used after
// Close answers with an InvalidArgument error. Objects that become garbage unclosed are released too, with a warning in
// slog's default logger.
//
// # Goroutines
//
// Runtime, Session, Callable, Run, Server, Cluster and Tensor may be used by any goroutines at any time; nobody writes to a
// tensor while a run uses it. A Graph and its Model, a Dataset, a Checkpoint (but Wait and Status), a Trainer (but Stop),
// Weights and an EventWriter are used by one goroutine at a time; a graph may be run by others while one adds to it. A
// Checkpoint is inside of its model and data sets, too.
//
// # Memory
//
// Tensors live in the library's memory. View gives their elements where they lie, until Close; Copy gives Go's own.
package dtg
