// Categories: texts become numbers and rows, a model is served with texts, what is unknown has a number of its own, misuse is told.

package dtg_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// A category that training did not know has number 0.
func ExampleModel_Lookup() {
	g := dtg.NewGraph()
	cities := dtg.Must(dtg.StringTensor([]string{"Berlin", "Lyon", "Porto"}))
	model := g.NewModel(1)
	city := g.Placeholder("city", dtg.String, dtg.Shape{-1})
	number := model.Lookup(city, dtg.Lookup{Vocabulary: cities})
	back := model.Lookup(number, dtg.Lookup{Vocabulary: cities, Invert: true})
	session := dtg.Must(dtg.Connect(background, "local", g))
	asked := dtg.Must(dtg.StringTensor([]string{"Porto", "Oslo"}))
	defer dtg.Close(asked, session, model, cities, g)
	var numbers []int64
	var names *dtg.Tensor
	dtg.Check(session.Run(background, dtg.Feed(city, asked), dtg.FetchSlice(number, &numbers), dtg.FetchTensor(back, &names)))
	defer names.Close()
	fmt.Println(numbers, dtg.Must(names.Strings()))
	// Output: [3 0] [Porto [UNK]]
}

func TestCategoriesAreServedAsTexts(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	vocabulary := closing(t, dtg.Must(dtg.StringTensor([]string{"a", "b"})))
	mask := closing(t, dtg.Must(dtg.ScalarString("")))
	words := g.Placeholder("words", dtg.String, dtg.Shape{-1, 3})
	lookup := dtg.Lookup{Vocabulary: vocabulary, MaskToken: mask, NumOOVIndices: 2}
	rows := model.Embedding(model.Lookup(words, lookup), dtg.Embedding{Rows: 5, Width: 2})
	lookup.MaskToken, lookup.OutputMode = nil, dtg.OutputCount
	counts := model.Lookup(words, lookup)
	y := model.Dense(g.Concat(dtg.ConstScalar(g, int32(1)), []dtg.Value{model.Flatten(rows), counts}), dtg.Dense{Units: 1})
	training := model.Minimize(g.Mean(g.Square(y), dtg.Const(g, []int64{0, 1}, 2)), dtg.Optimizer{Rate: 0.1})
	init := model.Init()
	session := closing(t, dtg.Must(dtg.Connect(background, "local", g)))
	x := closing(t, dtg.Must(dtg.StringTensor([]string{"b", "", "x", "a", "a", "\xff\x00"}, 2, 3)))
	dtg.Check(session.Run(background, dtg.Target(init)))
	dtg.Check(session.Run(background, dtg.Feed(words, x), dtg.Target(training.Train)))
	var want, got []float32
	dtg.Check(session.Run(background, dtg.Feed(words, x), dtg.FetchSlice(y, &want)))
	path := filepath.Join(t.TempDir(), "model.dtg")
	dtg.Check(model.Export(session, path, dtg.Export{Inputs: map[string]dtg.Value{"words": words}, Outputs: map[string]dtg.Value{"y": y}}))
	served, alone, err := dtg.LoadModel(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dtg.Close(alone, served, served.Graph())
	in, out := dtg.Must(served.Endpoint("words")), dtg.Must(served.Endpoint("y"))
	dtg.Check(alone.Run(background, dtg.Feed(in, x), dtg.FetchSlice(out, &got)))
	if !slices.Equal(want, got) {
		t.Errorf("served %v, trained %v", got, want)
	}
}

// The bins of Keras' own examples.
func TestHashingHasTheBinsOfKeras(t *testing.T) {
	leaves(t)
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := g.Placeholder("x", dtg.String, dtg.Shape{-1, 1})
	mask := closing(t, dtg.Must(dtg.ScalarString("")))
	plain := model.Hashing(x, dtg.Hashing{NumBins: 3})
	masked := model.Hashing(x, dtg.Hashing{NumBins: 3, MaskValue: mask})
	salted := model.Hashing(x, dtg.Hashing{NumBins: 3, Salt: &[2]uint64{133, 137}})
	session := closing(t, dtg.Must(dtg.Connect(background, "local", g)))
	run := func(y dtg.Value, texts ...string) (out []int64) {
		given := dtg.Must(dtg.StringTensor(texts, int64(len(texts)), 1))
		defer given.Close()
		dtg.Check(session.Run(background, dtg.Feed(x, given), dtg.FetchSlice(y, &out)))
		return out
	}
	equal(t, run(plain, "A", "B", "C", "D", "E"), []int64{1, 0, 1, 1, 2})
	equal(t, run(masked, "A", "B", "", "C", "D"), []int64{1, 1, 0, 2, 2})
	equal(t, run(salted, "A", "B", "C", "D", "E"), []int64{1, 2, 1, 0, 2})
}

func TestCategoriesMisused(t *testing.T) {
	leaves(t)
	twice := closing(t, dtg.Must(dtg.NewTensor([]int64{4, 5, 4})))
	fine := closing(t, dtg.Must(dtg.NewTensor([]int64{4, 5})))
	closed := dtg.Must(dtg.NewTensor([]int64{4}))
	closed.Close()
	for _, each := range []struct {
		layer dtg.Lookup
		says  string
	}{{dtg.Lookup{}, "no vocabulary"}, {dtg.Lookup{Vocabulary: twice}, "the token 4 is in the vocabulary twice"}, {dtg.Lookup{Vocabulary: closed}, "closed"},
		{dtg.Lookup{Vocabulary: fine, NumOOVIndices: 2, NoOOV: true}, "give one of them"}} {
		g := dtg.NewGraph()
		model := g.NewModel(1)
		model.Lookup(g.Placeholder("x", dtg.Int64, nil), each.layer)
		if err := g.Err(); !errors.Is(err, dtg.ErrInvalidArgument) || !strings.Contains(err.Error(), each.says) {
			t.Errorf("%v, which should say %q", err, each.says)
		}
		dtg.Close(model, g)
	}
	g := graph(t)
	model := closing(t, g.NewModel(1))
	x := g.Placeholder("x", dtg.Int64, dtg.Shape{-1})
	y := model.Lookup(x, dtg.Lookup{Vocabulary: fine, NoOOV: true})
	session := closing(t, dtg.Must(dtg.Connect(background, "local", g)))
	var out []int64
	err := session.Run(background, dtg.Feed(x, twice), dtg.FetchSlice(y, &out))
	want(t, err)
	equal(t, out, []int64{0, 1, 0})
	unknown := closing(t, dtg.Must(dtg.NewTensor([]int64{4, -9})))
	if err := session.Run(background, dtg.Feed(x, unknown), dtg.FetchSlice(y, &out)); !errors.Is(err, dtg.ErrInvalidArgument) || !strings.Contains(err.Error(), "[-9]") {
		t.Errorf("what is unknown: %v", err)
	}
}
