// Functions, conditions and loops: what closures build, and that what goes wrong in one is an error of the graph around it.

package dtg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

type values = []dtg.Value

// counted is a loop that turns as often as n says: body gets the variables behind the counter.
func counted(g *dtg.Graph, n dtg.Value, start values, body dtg.Body, options ...dtg.WhileOptions) values {
	return g.While(append(values{dtg.ConstScalar(g, int32(0))}, start...),
		func(b *dtg.Graph, v []dtg.Value) dtg.Value { return b.Less(v[0], n) },
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			return append(values{b.AddV2(v[0], dtg.ConstScalar(b, int32(1)))}, body(b, v[1:])...)
		}, options...)
}

func TestIfAndCase(t *testing.T) {
	leaves(t)
	g := graph(t)
	p, i := g.Placeholder("p", dtg.Bool, dtg.Shape{}), g.Placeholder("i", dtg.Int32, dtg.Shape{})
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	either := g.If(p, func(b *dtg.Graph) []dtg.Value { return values{b.Square(x), x} },
		func(b *dtg.Graph) []dtg.Value { return values{b.Neg(x), b.AddV2(x, x)} })
	var branches []func(*dtg.Graph) []dtg.Value
	for k := range 3 {
		branches = append(branches, func(b *dtg.Graph) []dtg.Value { return values{b.Mul(x, b.ConstF32(float32(k)))} })
	}
	one := g.Case(i, branches...)
	dx := g.Gradients(values{either[0]}, values{x}, nil)[0].Dense
	s := connect(t, g)
	for _, yes := range []bool{true, false} {
		var a, b, d float32
		want(t, s.Run(background, dtg.FeedScalar(p, yes), dtg.FeedScalar(x, float32(3)), dtg.Fetch(either[0], &a), dtg.Fetch(either[1], &b), dtg.Fetch(dx, &d)))
		if yes {
			equal(t, []float32{a, b, d}, []float32{9, 3, 6})
		} else {
			equal(t, []float32{a, b, d}, []float32{-3, 6, -1})
		}
	}
	for k, wanted := range map[int32]float32{0: 0, 1: 3, 2: 6, -1: 6, 9: 6} {
		var got float32
		want(t, s.Run(background, dtg.FeedScalar(i, k), dtg.FeedScalar(x, float32(3)), dtg.Fetch(one[0], &got)))
		equal(t, []float32{got}, []float32{wanted})
	}
}

func TestWhileWithAList(t *testing.T) {
	leaves(t)
	g := graph(t)
	n, x := g.Placeholder("n", dtg.Int32, dtg.Shape{}), g.Placeholder("x", dtg.Float32, dtg.Shape{})
	none := g.ConstI32s()
	out := counted(g, n, values{x, g.EmptyTensorList(none, dtg.ConstScalar(g, int32(-1)), dtg.Float32)}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
		return values{b.AddV2(v[0], v[0]), b.TensorListPushBack(v[1], v[0])}
	})
	all := g.TensorListStack(out[2], none, dtg.Float32)
	open := counted(g, n, values{g.ConstI32s(7)}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
		return values{b.ConcatV2(values{v[0], v[0]}, dtg.ConstScalar(b, int32(0)))}
	}, dtg.WhileOptions{Shapes: map[int]dtg.Shape{1: {-1}}})
	s := connect(t, g)
	var got []float32
	var grown []int32
	want(t, s.Run(background, dtg.FeedScalar(n, int32(3)), dtg.FeedScalar(x, float32(1)), dtg.FetchSlice(all, &got), dtg.FetchSlice(open[1], &grown)))
	equal(t, got, []float32{1, 2, 4})
	equal(t, grown, []int32{7, 7, 7, 7, 7, 7, 7, 7})
}

func TestFunctionsAreCalledOften(t *testing.T) {
	leaves(t)
	g := graph(t)
	x := g.Placeholder("x", dtg.Float32, dtg.Shape{})
	f := closing(t, g.Function("affine", []dtg.Argument{{DType: dtg.Float32, Shape: dtg.Shape{}}, {Like: x}}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
		return values{b.AddV2(b.Mul(v[0], x), v[1])}
	}))
	twice := g.Call(f, g.Call(f, x, x)[0], x)
	captured := get(f.Captures())(t)
	equal(t, captured, values{x})
	by := g.AddOp(dtg.OpSpec{Type: "PartitionedCall", Inputs: values{x, x, captured[0]}, Attrs: []dtg.Attr{dtg.TypesAttr("Tout", dtg.Float32), dtg.FuncAttr("f", f)}})
	want(t, g.Err())
	s := connect(t, g)
	var a, b float32
	want(t, s.Run(background, dtg.FeedScalar(x, float32(2)), dtg.Fetch(twice[0], &a), dtg.Fetch(by[0], &b)))
	equal(t, []float32{a, b}, []float32{14, 6})
}

func TestLoopsEndWithTheirContext(t *testing.T) {
	leaves(t)
	g := graph(t)
	out := g.While(values{dtg.ConstScalar(g, int32(0))}, func(b *dtg.Graph, _ []dtg.Value) dtg.Value { return dtg.ConstScalar(b, true) },
		func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
			return values{b.AddV2(v[0], dtg.ConstScalar(b, int32(1)))}
		})
	s := connect(t, g)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx, dtg.Target(out[0])); !errors.Is(err, dtg.DeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// What is wrong in a body sticks to the graph around, with the place in the program; nobody who takes results apart meets a panic.
func TestMisuseOfBodies(t *testing.T) {
	foreign := graph(t)
	elsewhere := foreign.ConstF32(1)
	one := func(b *dtg.Graph) []dtg.Value { return values{b.ConstF32(1)} }
	for name, c := range map[string]struct {
		build func(g *dtg.Graph)
		code  dtg.Code
		words []string
	}{
		"an unknown op in a branch": {func(g *dtg.Graph) {
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { b.AddOp(dtg.OpSpec{Type: "MatMull"}); return values{{}} }, one)
		}, dtg.NotFound, []string{"MatMul", "control_test.go:"}},
		"branches of different types": {func(g *dtg.Graph) {
			g.If(dtg.ConstScalar(g, true), one, func(b *dtg.Graph) []dtg.Value { return values{dtg.ConstScalar(b, int32(1))} })
		}, dtg.InvalidArgument, []string{"int32"}},
		"a value of another graph": {func(g *dtg.Graph) {
			g.If(dtg.ConstScalar(g, true), one, func(b *dtg.Graph) []dtg.Value { return values{elsewhere} })
		}, dtg.InvalidArgument, nil},
		"a value of a body, used around it": {func(g *dtg.Graph) {
			var kept dtg.Value
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { kept = b.ConstF32(1); return values{kept} }, one)
			g.Neg(kept)
		}, dtg.InvalidArgument, nil},
		"a value of one branch in the other": {func(g *dtg.Graph) {
			var kept dtg.Value
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { kept = b.ConstF32(1); return values{kept} },
				func(b *dtg.Graph) []dtg.Value { return values{b.Neg(kept)} })
		}, dtg.InvalidArgument, nil},
		"a body closed by hand": {func(g *dtg.Graph) {
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { v := b.ConstF32(1); b.Close(); return values{v} }, one)
		}, dtg.InvalidArgument, []string{"not an open graph"}},
		"too few results of a round": {func(g *dtg.Graph) {
			counted(g, dtg.ConstScalar(g, int32(3)), values{g.ConstF32(1)}, func(*dtg.Graph, []dtg.Value) []dtg.Value { return nil })
		}, dtg.InvalidArgument, nil},
		"a start that is no value": {func(g *dtg.Graph) {
			counted(g, dtg.ConstScalar(g, int32(3)), values{{}}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value { return values{b.Neg(v[0])} })
		}, dtg.InvalidArgument, []string{"number 1"}},
		"a shape that does not stay": {func(g *dtg.Graph) {
			counted(g, dtg.ConstScalar(g, int32(3)), values{g.ConstI32s(7)}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
				return values{b.ConcatV2(values{v[0], v[0]}, dtg.ConstScalar(b, int32(0)))}
			})
		}, dtg.InvalidArgument, []string{"declare a wider one"}},
		"a shape for nobody": {func(g *dtg.Graph) {
			counted(g, dtg.ConstScalar(g, int32(3)), nil, func(*dtg.Graph, []dtg.Value) []dtg.Value { return nil }, dtg.WhileOptions{Shapes: map[int]dtg.Shape{4: nil}})
		}, dtg.InvalidArgument, []string{"variable 4"}},
		"no branches": {func(g *dtg.Graph) { g.Case(dtg.ConstScalar(g, int32(0))) }, dtg.InvalidArgument, nil},
		"no function": {func(g *dtg.Graph) { g.Call(nil) }, dtg.InvalidArgument, []string{"function is nil"}},
		"a closed function": {func(g *dtg.Graph) {
			f := g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value { return one(b) })
			f.Close()
			g.Call(f)
		}, dtg.InvalidArgument, []string{"not an open function"}},
		"a closed function as an attribute": {func(g *dtg.Graph) {
			f := g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value { return one(b) })
			f.Close()
			g.AddOp(dtg.OpSpec{Type: "PartitionedCall", Attrs: []dtg.Attr{dtg.FuncAttr("f", f)}})
		}, dtg.InvalidArgument, []string{"not an open function"}},
		"a function of the graph around": {func(g *dtg.Graph) {
			f := g.Function("f", nil, func(b *dtg.Graph, _ []dtg.Value) []dtg.Value { return one(b) })
			defer f.Close()
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { return b.Call(f) }, one)
		}, dtg.InvalidArgument, []string{"called only from that one"}},
		"too few arguments": {func(g *dtg.Graph) {
			f := g.Function("f", []dtg.Argument{{DType: dtg.Float32}}, func(_ *dtg.Graph, v []dtg.Value) []dtg.Value { return v })
			defer f.Close()
			g.Call(f)
		}, dtg.InvalidArgument, nil},
		"a type that is none": {func(g *dtg.Graph) {
			g.Function("f", []dtg.Argument{{}}, func(_ *dtg.Graph, v []dtg.Value) []dtg.Value { return v })
		}, dtg.InvalidArgument, []string{"element type"}},
		"a variable of its own": {func(g *dtg.Graph) {
			g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value {
				m := b.NewModel(1)
				defer m.Close()
				return values{m.Variable("w", 1).Read}
			}, one)
		}, dtg.Unimplemented, nil},
	} {
		t.Run(name, func(t *testing.T) {
			leaves(t)
			g := graph(t)
			c.build(g)
			refused(t, g.Err(), c.code, c.words...)
			// After the error nothing happens any more, and there is still as much to take apart.
			out := counted(g, dtg.ConstScalar(g, int32(1)), values{g.ConstF32(1)}, func(b *dtg.Graph, v []dtg.Value) []dtg.Value {
				return values{b.If(v[0], one, one)[0]}
			})
			if out[1].Valid() || g.If(dtg.Value{}, one, one)[0].Valid() {
				t.Error("a value of a graph that has an error")
			}
		})
	}
}

func TestABodyThatWasEnded(t *testing.T) {
	leaves(t)
	g := graph(t)
	var kept *dtg.Graph
	g.If(dtg.ConstScalar(g, true), func(b *dtg.Graph) []dtg.Value { kept = b; return values{b.ConstF32(1)} },
		func(b *dtg.Graph) []dtg.Value { return values{b.ConstF32(2)} })
	want(t, g.Err())
	if kept.ConstF32(3).Valid() {
		t.Error("a value of an ended body")
	}
	refused(t, kept.Err(), dtg.FailedPrecondition, "ended")
	want(t, g.Err())
}

// A panic in a body goes through, and leaves nothing open.
func TestPanicInABody(t *testing.T) {
	leaves(t)
	g := graph(t)
	one := func(b *dtg.Graph) []dtg.Value { return values{b.ConstF32(1)} }
	func() {
		defer func() { equal(t, []any{recover()}, []any{"stop"}) }()
		g.If(dtg.ConstScalar(g, true), one, func(*dtg.Graph) []dtg.Value { panic("stop") })
	}()
	want(t, g.Err())
}
