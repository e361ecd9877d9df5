// Building graphs: nodes, scopes, gradients, bytes, and errors that stick.

package dtg_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestNodesAndValues(t *testing.T) {
	leaves(t)
	g := graph(t)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{-1, 4})
	parts := g.Split(dtg.ConstScalar(g, int32(1)), x, 4)
	many := g.Unpack(g.ConstF32(0), 0, dtg.UnpackAttrs{}) // a scalar has no slices
	if len(many) != 0 {
		t.Error("slices of a scalar")
	}
	refused(t, g.Err(), dtg.InvalidArgument, "Unpack", "graph_test.go:")
	if len(parts) != 4 || !parts[3].Valid() {
		t.Fatalf("parts %v", parts)
	}
	name, op, device := get(g.ValueName(x))(t), get(g.ValueOp(x))(t), get(g.ValueDevice(x))(t)
	equal(t, []string{name, op, device}, []string{"x", "Placeholder", ""})
	if get(g.Find("Split:2"))(t) != parts[2] || get(g.ValueOutput(parts[0], 1))(t) != parts[1] {
		t.Error("not the same values")
	}
	if get(g.ValueNumOutputs(parts[1]))(t) != 4 || get(g.ValueDType(x))(t) != dtg.Float32 {
		t.Error("not what was added")
	}
	equal(t, get(g.ValueShape(parts[1]))(t), []int64{-1, 1})
	var outputs []dtg.Value
	for _, v := range g.Outputs(x) {
		outputs = append(outputs, v)
	}
	for _, v := range g.Outputs(parts[2]) {
		outputs = append(outputs, v)
	}
	equal(t, outputs, append([]dtg.Value{x}, parts...))
	var names []string
	for i, v := range g.Nodes() {
		names = append(names, fmt.Sprint(i, get(g.ValueName(v))(t)))
	}
	if len(names) != g.NodeCount() || names[0] != "0x" {
		t.Errorf("nodes %v", names)
	}
	_, err := g.Find("nobody")
	refused(t, err, dtg.NotFound)
	_, err = g.NodeAt(99)
	refused(t, err, dtg.OutOfRange)
	_, err = g.ValueName(dtg.Value{})
	refused(t, err, dtg.InvalidArgument)
	if (dtg.Value{}).Valid() {
		t.Error("the zero Value")
	}
}

func TestManyOutputs(t *testing.T) {
	leaves(t)
	g := graph(t)
	parts := g.Unpack(dtg.Const(g, make([]float32, 40)), 40)
	want(t, g.Err())
	if len(parts) != 40 || get(g.Find("Unpack:39"))(t) != parts[39] {
		t.Errorf("%d parts", len(parts))
	}
	unknown := g.Placeholder("unknown", dtg.Float32, nil)
	if shape := get(g.ValueShape(unknown))(t); shape.Known() {
		t.Errorf("shape %v", shape)
	}
}

func TestScopes(t *testing.T) {
	leaves(t)
	g := graph(t)
	var inner, outer, free, placed, beside dtg.Value
	g.NameScope("outer", func() {
		outer = g.ConstF32(1)
		g.NameScope("inner", func() { inner = g.ConstF32(2) })
		g.NameScope("", func() { free = g.With(dtg.Node{Name: "free"}).NoOp() })
	})
	g.Device("/job:ps", func() {
		g.Device("/device:CPU:1", func() {
			placed = g.ConstF32(3)
			g.NoDevice(func() { beside = g.ConstF32(4) })
		})
	})
	with := g.With(dtg.Node{Name: "told", Device: "/device:CPU:2", Controls: []dtg.Value{outer}, Colocate: nil}).Neg(inner)
	want(t, g.Err())
	for value, wanted := range map[dtg.Value]string{outer: "outer/Const", inner: "outer/inner/Const", free: "free", with: "told"} {
		if name := get(g.ValueName(value))(t); name != wanted {
			t.Errorf("%q, not %q", name, wanted)
		}
	}
	for value, wanted := range map[dtg.Value]string{placed: "/job:ps/device:CPU:1", beside: "", with: "/device:CPU:2"} {
		if device := get(g.ValueDevice(value))(t); device != wanted {
			t.Errorf("%q, not %q", device, wanted)
		}
	}
	var colocated dtg.Value
	g.Colocation(placed, func() { colocated = g.ConstF32(5) })
	want(t, g.Err())
	if device := get(g.ValueDevice(colocated))(t); device != "/job:ps/device:CPU:1" {
		t.Errorf("colocated on %q", device)
	}
}

func TestControls(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 1)
	add := g.AssignAddVariableOp(w.Handle, g.ConstF32(1))
	var after dtg.Value
	g.Controls([]dtg.Value{add}, func() { after = g.ReadVariableOp(w.Handle, dtg.Float32) })
	init := model.Init()
	s := connect(t, g)
	want(t, s.Run(background, dtg.Target(init)))
	var value float32
	want(t, s.Run(background, dtg.Fetch(after, &value)))
	if value != 2 {
		t.Errorf("read %g before the update", value)
	}
}

func TestDeviceSetter(t *testing.T) {
	leaves(t)
	cluster := closing(t, get(dtg.ParseCluster("ps=a:1,b:1;worker=c:1"))(t))
	g := graph(t)
	model := closing(t, g.NewModel(1))
	var a, b dtg.Variable
	var c dtg.Value
	g.SetDevices(dtg.DeviceSetter{Cluster: cluster, WorkerDevice: "/job:worker/task:0", PSOps: []string{"VarHandleOp"}}, func() {
		a, b = model.Variable("a", 0), model.Variable("b", 0)
		c = g.ConstF32(1)
	})
	want(t, g.Err())
	devices := []string{get(g.ValueDevice(a.Handle))(t), get(g.ValueDevice(b.Handle))(t), get(g.ValueDevice(c))(t)}
	equal(t, devices, []string{"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"})
	g.SetDevices(dtg.DeviceSetter{PSTasks: 2, Strategy: dtg.GreedyBytes, PSDevice: "no device", KeepExplicit: true}, func() { c = g.ConstF32(1) })
	refused(t, g.Err(), dtg.InvalidArgument)
}

func TestErrorsStick(t *testing.T) {
	leaves(t)
	g := graph(t)
	a := dtg.Const(g, []float32{1, 2})
	first := g.MatMul(a, a) // rank 1
	err := g.Err()
	refused(t, err, dtg.InvalidArgument, "MatMul", "graph_test.go:")
	if strings.Count(err.Error(), "graph_test.go") != 1 {
		t.Errorf("the place is not told once: %v", err)
	}
	nodes := g.NodeCount()
	g.Neg(first)
	g.NameScope("scope", func() { g.ConstF32(1) })
	model := closing(t, g.NewModel(1))
	model.Dense(a, dtg.Dense{Units: 3})
	model.Variable("w", 1)
	g.Gradients([]dtg.Value{first}, []dtg.Value{a}, nil)
	if g.Err() != err || model.Err() != err || g.NodeCount() != nodes {
		t.Errorf("%v; %d nodes, %d before", g.Err(), g.NodeCount(), nodes)
	}
	_, failed := dtg.Connect(background, "local", g)
	if failed != err {
		t.Errorf("connect: %v", failed)
	}
	if _, failed = g.Serialize(); failed != err {
		t.Errorf("serialize: %v", failed)
	}
	if failed = g.Import(nil); failed != err {
		t.Errorf("import: %v", failed)
	}
}

func TestModelErrorsTellThePlace(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	model.Dense(g.ConstF32(1), dtg.Dense{Units: 3})
	refused(t, g.Err(), dtg.InvalidArgument, "at graph_test.go:")
}

func TestScopeIsLeftAfterAPanic(t *testing.T) {
	leaves(t)
	g := graph(t)
	func() {
		defer func() { _ = recover() }()
		g.NameScope("lost", func() { panic("in the middle") })
	}()
	if name := get(g.ValueName(g.ConstF32(1)))(t); name != "Const" {
		t.Errorf("still in the scope: %q", name)
	}
}

func TestGradients(t *testing.T) {
	leaves(t)
	g := graph(t)
	table := g.Placeholder("table", dtg.Float32, dtg.Shape{3, 2})
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{2})
	rows := g.GatherV2(table, dtg.Const(g, []int32{2, 0, 2}), dtg.ConstScalar(g, int32(0)))
	y := g.Mul(x, x)
	of := g.Gradients([]dtg.Value{y, rows}, []dtg.Value{x, table, g.ConstF32(0)}, []dtg.Value{dtg.Const(g, []float32{1, 10}), {}})
	if len(of) != 3 || !of[0].Dense.Valid() || of[1].Dense.Valid() || !of[1].Indices.Valid() || of[2] != (dtg.Gradient{}) {
		t.Fatalf("gradients %+v, %v", of, g.Err())
	}
	dense, same := g.Densify(of[1]), g.Densify(of[0])
	want(t, g.Err())
	if same != of[0].Dense {
		t.Error("a dense gradient was made dense")
	}
	s := connect(t, g)
	var dx, dtable []float32
	want(t, s.Run(background, dtg.FeedSlice(x, []float32{3, 4}), dtg.FeedSlice(table, make([]float32, 6), 3, 2),
		dtg.FetchSlice(of[0].Dense, &dx), dtg.FetchSlice(dense, &dtable)))
	equal(t, dx, []float32{6, 80})
	equal(t, dtable, []float32{1, 1, 0, 0, 2, 2})
	g.Gradients([]dtg.Value{y}, []dtg.Value{x}, []dtg.Value{{}, {}})
	refused(t, g.Err(), dtg.InvalidArgument, "1 ys, but 2")
}

func TestSerialize(t *testing.T) {
	leaves(t)
	g := graph(t)
	g.With(dtg.Node{Name: "y"}).Add(g.ConstF32(1), g.Placeholder("x", dtg.Float32, dtg.Shape{}))
	bytes := get(g.Serialize())(t)
	again := graph(t)
	want(t, again.Import(bytes))
	s := connect(t, again)
	var y float32
	want(t, s.Run(background, dtg.FeedScalar(get(again.Find("x"))(t), float32(2)), dtg.Fetch(get(again.Find("y"))(t), &y)))
	if y != 3 {
		t.Errorf("y = %g", y)
	}
	refused(t, graph(t).Import(bytes[:len(bytes)/2]), dtg.DataLoss)
	refused(t, again.Import(bytes), dtg.FailedPrecondition)
	refused(t, graph(t).Import(nil), dtg.DataLoss)
}

// Every kind of attribute that the ops have, against a run.
func TestAttributes(t *testing.T) {
	leaves(t)
	g := graph(t)
	a := dtg.Const(g, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	product := g.MatMul(a, a, dtg.MatMulAttrs{TransposeB: true})
	image := g.Reshape(a, g.ConstI64s(1, 2, 3, 1))
	filtered := g.Conv2D(image, dtg.Const(g, []float32{1, 1}, 1, 2, 1, 1), []int64{1, 1, 1, 1}, "VALID",
		dtg.Conv2DAttrs{UseCudnnOnGpu: dtg.Set(false), DataFormat: "NHWC", Dilations: []int64{1, 1, 1, 1}})
	leaky := g.LeakyRelu(dtg.Const(g, []float32{-1, 1}), dtg.LeakyReluAttrs{Alpha: dtg.Set(0.5)})
	filled := g.PlaceholderWithDefault(dtg.Const(g, []float32{7}), dtg.Shape{-1})
	cast := g.Cast(leaky, dtg.Int32, dtg.CastAttrs{Truncate: true})
	values, indices := g.Unique(dtg.Const(g, []int64{5, 5, 6}), dtg.UniqueAttrs{OutIdx: dtg.Int64})
	joined := g.ConcatV2([]dtg.Value{a, a}, dtg.ConstScalar(g, int32(0)))
	want(t, g.Err())
	s := connect(t, g)
	var p, f, l, d, j []float32
	var c []int32
	var u, i []int64
	want(t, s.Run(background, dtg.FetchSlice(product, &p), dtg.FetchSlice(filtered, &f), dtg.FetchSlice(leaky, &l), dtg.FetchSlice(filled, &d),
		dtg.FetchSlice(cast, &c), dtg.FetchSlice(values, &u), dtg.FetchSlice(indices, &i), dtg.FetchSlice(joined, &j)))
	equal(t, p, []float32{14, 32, 32, 77})
	equal(t, f, []float32{3, 5, 9, 11})
	equal(t, l, []float32{-0.5, 1})
	equal(t, d, []float32{7})
	equal(t, c, []int32{0, 1})
	equal(t, u, []int64{5, 6})
	equal(t, i, []int64{0, 0, 1})
	equal(t, j, slices.Concat([]float32{1, 2, 3, 4, 5, 6}, []float32{1, 2, 3, 4, 5, 6}))
}

func TestListAttributes(t *testing.T) {
	leaves(t)
	g := graph(t)
	queue := g.FIFOQueueV2([]dtg.DType{dtg.Float32, dtg.Int64},
		dtg.FIFOQueueV2Attrs{Shapes: []dtg.Shape{{2}, {}}, Capacity: dtg.Set(int64(3)), SharedName: "q"})
	put := g.QueueEnqueueV2(queue, []dtg.Value{dtg.Const(g, []float32{1, 2}), dtg.ConstScalar(g, int64(3))})
	got := g.QueueDequeueV2(queue, []dtg.DType{dtg.Float32, dtg.Int64})
	handle := g.VarHandleOp(dtg.Float32, dtg.Shape{}, dtg.VarHandleOpAttrs{AllowedDevices: []string{"/device:CPU:0"}})
	want(t, g.Err())
	if name := get(g.ValueName(handle))(t); name != "VarHandleOp" {
		t.Error(name)
	}
	equal(t, get(g.ValueShape(got[0]))(t), []int64{})
	s := connect(t, g)
	var floats []float32
	var number int64
	want(t, s.Run(background, dtg.Target(put)))
	want(t, s.Run(background, dtg.FetchSlice(got[0], &floats), dtg.Fetch(got[1], &number)))
	equal(t, floats, []float32{1, 2})
	if number != 3 {
		t.Error(number)
	}
	attrs := []dtg.Attr{dtg.IntAttr("i", 1), dtg.FloatAttr("f", 1), dtg.BoolAttr("b", true), dtg.StringAttr("s", "x"), dtg.BoolsAttr("bs", true),
		dtg.FloatsAttr("fs", 1), dtg.StringsAttr("ss", "", "y"), dtg.ShapesAttr("shapes", nil, dtg.Shape{1}), dtg.TypesAttr("ts", dtg.Bool),
		dtg.ShapeAttr("shape", nil), dtg.IntsAttr("is")}
	for _, attr := range attrs {
		bad := graph(t)
		bad.AddOp(dtg.OpSpec{Type: "NoOp", Attrs: []dtg.Attr{attr, {}}})
		refused(t, bad.Err(), dtg.InvalidArgument, "NoOp")
	}
}
