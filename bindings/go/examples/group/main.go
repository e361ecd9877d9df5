// group: one worker of a job that trains by all-reduce, without a parameter server; capi/examples/group.c in Go, and one job may mix the
// languages. When a worker is lost the others go on with what they have, from the step that the furthest of them has made.
//
//	dtg run --local --ps 0 --workers 4 -- group 100
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

const (
	width = 20000 // more than a frame: on one host it travels through shared memory
	rows  = 8
	steps = width + rows // where the model keeps how many steps it has made
)

type worker struct {
	group *dtg.Group
	model []float32 // weights, rows and steps: the same on every worker
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: %s STEPS [PAUSE_US], as a task of a job (TF_CONFIG)\n", os.Args[0])
		os.Exit(2)
	}
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(args []string) error {
	total, err := strconv.Atoi(args[0])
	pause := 0
	if err == nil && len(args) > 1 {
		pause, err = strconv.Atoi(args[1])
	}
	if err != nil {
		return err
	}
	cluster, self, err := dtg.ClusterFromTFConfig()
	if err != nil {
		return err
	}
	if cluster == nil {
		return errors.New("TF_CONFIG names no cluster; start this with dtg run")
	}
	defer cluster.Close()
	server, err := dtg.StartServer(cluster, dtg.ServerOptions{Job: self.Type, Task: self.Index})
	if err != nil {
		return err
	}
	defer server.Close()
	w := worker{model: make([]float32, steps+1)}
	if w.group, err = server.JoinGroup(); err != nil {
		return err
	}
	defer w.group.Close()
	fmt.Printf("joined: rank %d of %d\n", w.group.Rank(), w.group.Size())
	if err = w.train(float32(total), time.Duration(pause)*time.Microsecond); err != nil {
		return err
	}
	if err = w.group.Barrier(0); err != nil {
		return err
	}
	fmt.Printf("done: %g steps, weight %g, row %g\n", w.model[steps], w.model[0], w.model[width])
	return nil
}

func (w *worker) train(total float32, pause time.Duration) error {
	for next := w.agree; w.model[steps] < total; time.Sleep(pause) {
		err := next()
		next = w.step
		if err == nil {
			continue
		}
		// Who is lost is named in the message; the others go on without it.
		fmt.Println("lost:", err)
		if !errors.Is(err, dtg.ErrUnavailable) && !errors.Is(err, dtg.ErrAborted) {
			return err
		}
		began := time.Now()
		if err = w.group.Reform(1, 0); err != nil {
			return err
		}
		fmt.Printf("re-formed in %.3f s: rank %d of %d, epoch %d\n", time.Since(began).Seconds(), w.group.Rank(), w.group.Size(), w.group.Epoch())
		next = w.agree
	}
	return nil
}

// step changes the model only when everything of the step is there.
func (w *worker) step() error {
	gradient := make([]float32, width)
	for i := range gradient {
		gradient[i] = w.model[steps] + 1
	}
	gradient, err := collect(gradient, func(in *dtg.Tensor) (*dtg.Tensor, error) { return w.group.AllReduce(in, dtg.Mean) })
	if err != nil {
		return err
	}
	// Rows by their index, of which every rank has others: gathered, then added where they belong, in the order of the ranks.
	rank := w.group.Rank()
	mine := []int64{int64(rank % rows), 0}[:1+rank%2]
	indices, err := collect(mine, w.group.AllGather)
	if err != nil {
		return err
	}
	values, err := collect([]float32{1, 1}[:len(mine)], w.group.AllGather)
	if err != nil {
		return err
	}
	for i, value := range gradient {
		w.model[i] += value
	}
	for i, index := range indices {
		w.model[width+index] += values[i]
	}
	w.model[steps]++
	return nil
}

// agree gives everybody what the furthest has: after a loss, and at the start.
func (w *worker) agree() error {
	one := func(value float32, how dtg.Reduction) (float32, error) {
		all, err := collect([]float32{value}, func(in *dtg.Tensor) (*dtg.Tensor, error) { return w.group.AllReduce(in, how) })
		if err != nil {
			return 0, err
		}
		return all[0], nil
	}
	furthest, err := one(w.model[steps], dtg.Max)
	if err != nil {
		return err
	}
	root := float32(1e9)
	if w.model[steps] == furthest {
		root = float32(w.group.Rank())
	}
	if root, err = one(root, dtg.Min); err != nil {
		return err
	}
	model, err := collect(w.model, func(in *dtg.Tensor) (*dtg.Tensor, error) { return w.group.Broadcast(in, int(root)) })
	if err == nil {
		w.model = model
	}
	return err
}

// collect makes a tensor of a slice for one collective, and a slice of what comes.
func collect[T dtg.Element](values []T, call func(*dtg.Tensor) (*dtg.Tensor, error)) ([]T, error) {
	in, err := dtg.NewTensor(values, int64(len(values)))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := call(in)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	return dtg.Copy[T](out)
}
