// No word of C reaches a Go program: every method of every type is called with nothing (zero values, nil, empty strings), on open objects
// and on closed ones, and what it says is looked at.

package dtg_test

import (
	"context"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

var wordOfC = regexp.MustCompile(`\bNULL\b|\bdtg_\w+|\bDTG_\w+|\w_ns\b|struct_size|value is invalid \(0\)`)

// subjects is how to come by an open object of each type that a program holds, with what else has to be closed.
func subjects(t *testing.T) map[string]func() []io.Closer {
	model := func() (*dtg.Graph, *dtg.Model) { g := dtg.NewGraph(); return g, g.NewModel(1) }
	return map[string]func() []io.Closer{
		"Graph": func() []io.Closer { return []io.Closer{dtg.NewGraph()} },
		"Model": func() []io.Closer { g, m := model(); return []io.Closer{m, g} },
		"Session": func() []io.Closer {
			g, m := model()
			return []io.Closer{get(dtg.Connect(background, "local", g))(t), m, g}
		},
		"Callable": func() []io.Closer {
			g, m := model()
			s := get(dtg.Connect(background, "local", g))(t)
			return []io.Closer{get(s.Prepare(dtg.Signature{Targets: []dtg.Value{m.Init()}}))(t), s, m, g}
		},
		"Tensor":      func() []io.Closer { return []io.Closer{get(dtg.NewTensor([]float32{1}))(t)} },
		"Runtime":     func() []io.Closer { return []io.Closer{get(dtg.NewRuntime())(t)} },
		"Dataset":     func() []io.Closer { return []io.Closer{dtg.DatasetRange(0, 3, 1)} },
		"Weights":     func() []io.Closer { return []io.Closer{get(dtg.NewWeights())(t)} },
		"EventWriter": func() []io.Closer { return []io.Closer{get(dtg.OpenEventWriter(t.TempDir()))(t)} },
		"Cluster":     func() []io.Closer { return []io.Closer{get(dtg.ParseCluster("worker=unix:/run/nobody/w"))(t)} },
	}
}

// nothing is the argument that says least. False where a method takes a function, which the program brings.
func nothing(of reflect.Type, ctx context.Context) (reflect.Value, bool) {
	if of == reflect.TypeFor[context.Context]() {
		return reflect.ValueOf(ctx), true
	}
	return reflect.Zero(of), of.Kind() != reflect.Func
}

// said is the errors among what a method gave, and those of the object itself. What can be closed is.
func said(object io.Closer, results []reflect.Value) (texts []string) {
	for _, r := range results {
		given := r.Interface()
		if err, ok := given.(error); ok && err != nil {
			texts = append(texts, err.Error())
		}
		if made, ok := given.(io.Closer); ok && made != object {
			made.Close()
		}
		for i := 0; r.Kind() == reflect.Slice && i < r.Len(); i++ {
			if made, ok := r.Index(i).Interface().(io.Closer); ok {
				made.Close()
			}
		}
	}
	if sticky, ok := object.(interface{ Err() error }); ok && sticky.Err() != nil {
		texts = append(texts, sticky.Err().Error())
	}
	return texts
}

// argumentsFor is a method's arguments, but for those of a variable number.
func argumentsFor(method reflect.Method, object io.Closer, ctx context.Context) (arguments []reflect.Value, ok bool) {
	arguments, count := []reflect.Value{reflect.ValueOf(object)}, method.Type.NumIn()
	if method.Type.IsVariadic() {
		count--
	}
	for k := 1; k < count; k++ {
		value, ok := nothing(method.Type.In(k), ctx)
		if !ok {
			return nil, false
		}
		arguments = append(arguments, value)
	}
	return arguments, true
}

func wordOfCIn(text string) string {
	for part, outside := range strings.Split(text, `"`) {
		if word := wordOfC.FindString(outside); part%2 == 0 && word != "" {
			return word
		}
	}
	return ""
}

func TestNoWordOfCIsSaid(t *testing.T) {
	leaves(t)
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	messages := 0
	for name, make := range subjects(t) {
		for _, closed := range []bool{false, true} {
			one := make()
			kind := reflect.TypeOf(one[0])
			want(t, dtg.Close(one...))
			for i := range kind.NumMethod() {
				method := kind.Method(i)
				all := make()
				arguments, ok := argumentsFor(method, all[0], ctx)
				// What waits for others, and what another library has to free.
				if !ok || method.Name == "Close" || method.Name == "Join" || strings.HasPrefix(method.Name, "DLPack") {
					want(t, dtg.Close(all...))
					continue
				}
				if closed {
					want(t, dtg.Close(all...))
				}
				for _, text := range said(all[0], method.Func.Call(arguments)) {
					messages++
					if word := wordOfCIn(text); word != "" {
						t.Errorf("%s.%s says %q: %s", name, method.Name, word, text)
					}
				}
				want(t, dtg.Close(all...))
			}
		}
	}
	if messages < 100 {
		t.Errorf("only %d messages were looked at", messages)
	}
}
