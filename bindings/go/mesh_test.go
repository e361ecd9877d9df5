// Meshes and variables in shards: the numbers of plain layers, whatever the grid or the number of shards, and misuse.

package dtg_test

import (
	"math"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// losses are those of four steps of a model that build makes from the ids of rows, with as many emulated devices.
func losses(t *testing.T, devices int, build func(g *dtg.Graph, model *dtg.Model, ids dtg.Value) (loss dtg.Value, training dtg.Training)) []float32 {
	t.Helper()
	g := graph(t)
	model := closing(t, g.NewModel(5))
	ids := g.Placeholder("ids", dtg.Int32, dtg.Shape{4, 3})
	loss, training := build(g, model, ids)
	init := model.Init()
	want(t, g.Err())
	s := connect(t, g, dtg.SessionOptions{EmuDevices: devices})
	want(t, s.Run(background, dtg.Target(init)))
	var out []float32
	for step := range 4 {
		batch := make([]int32, 12)
		for i := range batch {
			batch[i] = int32((i*5 + step) % 7)
		}
		var now float32
		want(t, s.Run(background, dtg.FeedSlice(ids, batch, 4, 3), dtg.Fetch(loss, &now), dtg.Target(training.Train)))
		out = append(out, now)
	}
	return out
}

func allNear(t *testing.T, got, wanted []float32) {
	t.Helper()
	if len(got) != len(wanted) {
		t.Fatalf("got %v, want %v", got, wanted)
	}
	for i := range got {
		if math.Abs(float64(got[i]-wanted[i])) > 1e-5 {
			t.Fatalf("got %v, want %v", got, wanted)
		}
	}
}

var (
	meshTable  = dtg.Embedding{Rows: 7, Width: 4}
	meshWide   = dtg.Dense{Units: 6, Activation: dtg.Tanh}
	meshNarrow = dtg.Dense{Units: 4}
	meshHeads  = dtg.Attention{Heads: 3, KeyWidth: 2, Causal: true}
	meshAdam   = dtg.Optimizer{Kind: dtg.Adam, Rate: 0.05}
)

func plainLosses(t *testing.T) []float32 {
	return losses(t, 1, func(g *dtg.Graph, model *dtg.Model, ids dtg.Value) (dtg.Value, dtg.Training) {
		x := model.Embedding(ids, meshTable)
		x = model.Attention(x, x, meshHeads)
		x = model.Dense(model.Dense(x, meshWide), meshNarrow)
		loss := model.MeanSquaredError(g.ZerosLike(x), x)
		return loss, model.Minimize(loss, meshAdam)
	})
}

func TestMesh(t *testing.T) {
	leaves(t)
	wanted := plainLosses(t)
	for _, zero := range []dtg.Zero{dtg.ZeroNone, dtg.ZeroStates, dtg.ZeroGradients} {
		got := losses(t, 8, func(g *dtg.Graph, model *dtg.Model, ids dtg.Value) (dtg.Value, dtg.Training) {
			devices := make([]string, 8)
			for i := range devices {
				devices[i] = "/device:EMU:" + string(rune('0'+i))
			}
			mesh := closing(t, model.NewMesh(dtg.MeshOptions{Data: 2, Model: 2, Pipe: 2, Devices: devices, Zero: zero}))
			mesh.Build([]dtg.Value{ids}, 2, false, func(step dtg.MeshStep) []dtg.Value {
				if step.Stage == 0 {
					x := mesh.Embedding(step.Batch[0], meshTable, dtg.CutRows)
					return []dtg.Value{mesh.Attention(x, x, meshHeads)}
				}
				x := mesh.RowDense(mesh.ColumnDense(step.Inputs[0], meshWide), meshNarrow)
				return []dtg.Value{model.MeanSquaredError(g.ZerosLike(x), x)}
			})
			return mesh.Result(0), mesh.Minimize(meshAdam)
		})
		allNear(t, got, wanted)
	}
}

func TestMeshMisuse(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	closing(t, model.NewMesh(dtg.MeshOptions{Data: 2, Devices: []string{"/device:CPU:0"}}))
	refused(t, g.Err(), dtg.InvalidArgument, "2 devices")
}

func TestSharded(t *testing.T) {
	leaves(t)
	wanted := plainLosses(t)
	for _, shards := range []int64{1, 3, 7} {
		got := losses(t, 1, func(g *dtg.Graph, model *dtg.Model, ids dtg.Value) (dtg.Value, dtg.Training) {
			x := model.ShardedEmbedding(ids, meshTable, dtg.Partitioner{NumShards: shards})
			found := get(model.FindShardedVariable("embedding/embeddings"))(t)
			if found.Shards != shards || found.Shape[0] != 7 || found.Name != "embedding/embeddings" {
				t.Errorf("found %v", found)
			}
			last := get(model.Shard(found.Name, shards-1))(t)
			if last.Name != found.Name+"/part_"+string(rune('0'+shards-1)) {
				t.Errorf("the last shard is %q", last.Name)
			}
			_, err := model.Shard(found.Name, shards)
			refused(t, err, dtg.OutOfRange, "it has")
			x = model.Attention(x, x, meshHeads)
			x = model.Dense(model.Dense(x, meshWide), meshNarrow)
			loss := model.MeanSquaredError(g.ZerosLike(x), x)
			return loss, model.Minimize(loss, meshAdam)
		})
		allNear(t, got, wanted)
	}
}

func TestShardedVariable(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(5))
	whole := model.AddVariable(dtg.VariableSpec{Name: "w", Shape: dtg.Shape{5, 2}, Initializer: dtg.Initializer{Kind: dtg.InitNormal, B: 1}})
	other := closing(t, g.NewModel(5))
	cut := other.AddShardedVariable(dtg.VariableSpec{Name: "v", Shape: dtg.Shape{5, 2}, Initializer: dtg.Initializer{Kind: dtg.InitNormal, B: 1}},
		dtg.Partitioner{NumShards: 2})
	all, rows := other.ShardedValue(cut.Name), other.ShardedLookup(cut.Name, dtg.ConstScalar(g, int32(3)))
	inits := []dtg.Value{model.Init(), other.Init()}
	want(t, g.Err())
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(inits[0]), dtg.Target(inits[1])))
	var a, b, c []float32
	want(t, s.Run(background, dtg.FetchSlice(whole.Read, &a), dtg.FetchSlice(all, &b), dtg.FetchSlice(rows, &c)))
	equal(t, b, a)
	equal(t, c, a[6:8])
}
