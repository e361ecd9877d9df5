// The generated wrappers, all of them: called with nothing but zeros they add a node or fail, and never panic.

package dtg_test

import (
	"errors"
	"io"
	"reflect"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestEveryMethodOfGraphWithZeros(t *testing.T) {
	leaves(t)
	kind := reflect.TypeFor[*dtg.Graph]()
	added, refusals := 0, 0
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		g := dtg.NewGraph()
		method := reflect.ValueOf(g).Method(i)
		var arguments []reflect.Value
		for k := range method.Type().NumIn() {
			in := method.Type().In(k)
			switch {
			case in.Kind() == reflect.Func:
				arguments = append(arguments, reflect.MakeFunc(in, func([]reflect.Value) (zeros []reflect.Value) {
					for o := range in.NumOut() {
						zeros = append(zeros, reflect.Zero(in.Out(o)))
					}
					return zeros
				}))
			case method.Type().IsVariadic() && k == method.Type().NumIn()-1:
			default:
				arguments = append(arguments, reflect.Zero(in))
			}
		}
		outs := method.Call(arguments)
		var e *dtg.Error
		switch err := g.Err(); {
		case err == nil:
			added += g.NodeCount()
		case errors.As(err, &e) && e.Code != dtg.Internal:
			refusals++
		default:
			t.Errorf("%s: %v", name, err)
		}
		for _, out := range outs {
			if object, ok := out.Interface().(io.Closer); ok {
				object.Close()
			}
		}
		g.Close()
	}
	if added < 3 || refusals < 200 {
		t.Errorf("%d nodes, %d refusals", added, refusals)
	}
}

func TestEmptyTexts(t *testing.T) {
	leaves(t)
	g := graph(t)
	attrs := []dtg.Attr{dtg.TypeAttr("dtype", dtg.Float32), dtg.ShapeAttr("shape", dtg.Shape{}), dtg.StringAttr("container", "")}
	g.AddOp(dtg.OpSpec{Type: "VarHandleOp", Attrs: attrs})
	want(t, g.Err())
	g.MatMul(dtg.Value{}, dtg.Value{})
	refused(t, g.Err(), dtg.InvalidArgument, "MatMul")
}

// A handle can be fetched from nodes, not fed with numbers.
func TestFeedOfWhatCannotBeFed(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	w := model.Variable("w", 1)
	s := connect(t, g)
	refused(t, s.Run(background, dtg.FeedScalar(w.Handle, float32(1)), dtg.Target(w.Assign)), dtg.InvalidArgument)
}
