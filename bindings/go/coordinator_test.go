package dtg_test

import (
	"context"
	"errors"
	"os"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// Two workers that are plain servers, and a coordinator that is the chief, all in this process.
func TestCoordinator(t *testing.T) {
	folder, err := os.MkdirTemp("", "dtg")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	at := "unix:" + folder
	cluster, err := dtg.ParseCluster("chief=" + at + "/c;worker=" + at + "/w0," + at + "/w1")
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var chief *dtg.Server
	for _, task := range []struct {
		job   string
		index int
	}{{"chief", 0}, {"worker", 0}, {"worker", 1}} {
		server, err := dtg.StartServer(cluster, dtg.ServerOptions{Job: task.job, Task: task.index})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if chief == nil {
			chief = server
		}
	}
	g := dtg.NewGraph()
	defer g.Close()
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	square := g.Mul(x, x)
	session, err := dtg.Connect(context.Background(), chief.Target(), g)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	coordinator, err := session.NewCoordinator(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer coordinator.Close()
	closure, err := coordinator.Prepare(dtg.Signature{Feeds: []dtg.Value{x}, Fetches: []dtg.Value{square}}, dtg.Value{})
	if err != nil {
		t.Fatal(err)
	}
	defer closure.Close()
	ctx := context.Background()
	for i := range 20 {
		in, err := dtg.ScalarTensor(float32(i))
		if err != nil {
			t.Fatal(err)
		}
		value, err := coordinator.Schedule(ctx, closure, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := value.Fetch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := dtg.Scalar[float32](out[0]); err != nil || got != float32(i*i) {
			t.Fatalf("%d squared is %g", i, got)
		}
		out[0].Close()
		value.Close()
		in.Close()
	}
	if err := coordinator.Join(ctx); err != nil {
		t.Fatal(err)
	}
	if done, err := coordinator.Done(); !done || err != nil {
		t.Fatal(done, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := coordinator.Join(over); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := coordinator.Schedule(ctx, closure); err == nil {
		t.Fatal("a closure without its tensor was taken")
	}
	if n, err := (dtg.Partitioner{Kind: dtg.FixedShards, NumShards: 3}).Shards(dtg.Float32, dtg.Shape{8, 4}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if first, count, err := dtg.ShardRows(8, 3, 2); first != 6 || count != 2 || err != nil {
		t.Fatal(first, count, err)
	}
}
