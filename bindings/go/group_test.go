// Groups of servers in this process, a goroutine for each member.

package dtg_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestGroup(t *testing.T) {
	leaves(t)
	folder := private(t)
	cluster := closing(t, get(dtg.ParseCluster(fmt.Sprintf("worker=unix:%s/w0,unix:%s/w1,unix:%s/w2", folder, folder, folder)))(t))
	var all sync.WaitGroup
	for rank := range 3 {
		server := closing(t, get(dtg.StartServer(cluster, dtg.ServerOptions{Task: rank}))(t))
		all.Add(1)
		go func() {
			defer all.Done()
			group, err := server.JoinGroup(dtg.GroupOptions{Name: "go", Timeout: 20 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			defer group.Close()
			if err := member(group, rank); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		}()
	}
	all.Wait()
}

// expect holds a tensor of a collective against its values, and closes it.
func expect[T dtg.Element](what string, out *dtg.Tensor, err error, values ...T) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer out.Close()
	if got, err := dtg.Copy[T](out); err != nil || !slices.Equal(got, values) {
		return fmt.Errorf("%s: %v, %v", what, got, err)
	}
	return nil
}

func member(g *dtg.Group, rank int) error {
	in, err := dtg.NewTensor([]float32{float32(rank), 1, 2}, 3)
	if err != nil {
		return err
	}
	defer in.Close()
	sum, err := g.AllReduce(in, dtg.Sum)
	failed := []error{expect[float32]("sum", sum, err, 3, 3, 6)}
	most, err := g.AllReduce(in, dtg.Max)
	failed = append(failed, expect[float32]("max", most, err, 2, 1, 2))
	rows, err := g.AllGather(in)
	failed = append(failed, expect[float32]("gather", rows, err, 0, 1, 2, 1, 1, 2, 2, 1, 2))
	mine, err := g.ReduceScatter(in, dtg.Mean)
	failed = append(failed, expect("scatter", mine, err, float32(max(1, rank))))
	var given *dtg.Tensor
	if rank == 1 {
		given = in
	}
	same, err := g.Broadcast(given, 1)
	failed = append(failed, expect[float32]("broadcast", same, err, 1, 1, 2))
	turned, err := g.AllToAll(in)
	failed = append(failed, expect("all to all", turned, err, []float32{0, 1, 2, 1, 1, 1, 2, 2, 2}[rank*3:rank*3+3]...))
	cut, err := g.AllToAll(in, []int64{0, 1, 2}...)
	failed = append(failed, expect("all to all, by splits", cut, err, [][]float32{{}, {0, 1, 2}, {1, 2, 1, 2, 1, 2}}[rank]...))
	failed = append(failed, g.Barrier(0))
	if g.Rank() != rank || g.Size() != 3 || g.Epoch() != 1 || g.Member(2) != "/job:worker/replica:0/task:2" || g.Member(3) != "" {
		failed = append(failed, fmt.Errorf("rank %d of %d, epoch %d, %q", g.Rank(), g.Size(), g.Epoch(), g.Member(2)))
	}
	// One goes, the others hear its name and go on.
	if rank == 2 {
		return errors.Join(append(failed, g.Leave())...)
	}
	if err := g.Barrier(0); !errors.Is(err, dtg.ErrUnavailable) {
		failed = append(failed, fmt.Errorf("after a loss: %v", err))
	}
	failed = append(failed, g.Reform(2, 0), g.Barrier(0))
	if g.Size() != 2 {
		failed = append(failed, fmt.Errorf("%d are left", g.Size()))
	}
	return errors.Join(failed...)
}
