// Data sets, weights and event files.

package dtg_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

// firsts is the elements of an epoch of int64 vectors or scalars, in a row.
func firsts(t *testing.T, d *dtg.Dataset) (out []int64) {
	t.Helper()
	for element, err := range d.Elements() {
		want(t, err)
		out = append(out, element[0].Int64s()...)
	}
	return out
}

// One example, {"y": 7, "x": [0.5, 2]}, as TensorFlow frames it.
const oneExample = "2100000000000000017becf60a1f0a0a0a017912051a030a01070a110a0178120c120a0a080000003f00000040ad7fc379"

func TestSources(t *testing.T) {
	leaves(t)
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		want(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	head := "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
	array := "\x93NUMPY\x01\x00" + string([]byte{byte(len(head)), 0}) + head + "\x05" + strings.Repeat("\x00", 7) + "\x06" + strings.Repeat("\x00", 7) +
		"\x07" + strings.Repeat("\x00", 7)
	numbers := write("a.npy", array)
	equal(t, firsts(t, closing(t, dtg.DatasetNPY(numbers))), []int64{5, 6, 7})
	refused(t, dtg.DatasetNPY(numbers, filepath.Join(folder, "none.npy")).Err(), dtg.NotFound)
	refused(t, dtg.DatasetNPZ(numbers, "a").Err(), dtg.DataLoss)

	lines := write("a.jsonl", "{\"a\": 4, \"b\": \"x\"}\n{\"a\": {}}\n{\"a\": 5, \"b\": \"w\"}\n")
	refused(t, dtg.DatasetJSONLines(lines).Err(), dtg.DataLoss)
	rows := closing(t, dtg.DatasetJSONLines(lines, dtg.JSONLinesOptions{Columns: []string{"b", "a"}, SkipBadRows: true}))
	equal(t, firsts(t, rows), []int64{1, 0})
	count, why, err := rows.BadRows()
	want(t, err)
	if count != 1 || !strings.Contains(why, "line 2") {
		t.Errorf("%d: %s", count, why)
	}
	schema, err := rows.Schema()
	want(t, err)
	again := closing(t, dtg.DatasetJSONLines(write("b.jsonl", "{\"a\": 1, \"b\": \"x\"}"), dtg.JSONLinesOptions{Schema: schema}))
	equal(t, firsts(t, again), []int64{1})

	bytes, err := hex.DecodeString(oneExample)
	want(t, err)
	file := write("a.tfrecord", string(bytes)+string(bytes))
	seven := 7.5
	features := []dtg.Feature{{Name: "y", DType: dtg.Int64}, {Name: "x", DType: dtg.Float32, Variable: true},
		{Name: "z", DType: dtg.Float32, Shape: []int64{2}, Default: &seven}}
	examples := closing(t, dtg.DatasetTFRecord([]string{file}, features...))
	element, err := examples.Next()
	want(t, err)
	equal(t, element[0].Int64s(), []int64{7})
	equal(t, element[1].Float32s(), []float32{0.5, 2})
	equal(t, element[2].Float32s(), []float32{7.5, 7.5})
	for _, tensor := range element {
		tensor.Close()
	}
	torn := closing(t, dtg.DatasetTFRecord([]string{write("b.tfrecord", string(bytes[:40]))}, features...))
	_, err = torn.Next()
	refused(t, err, dtg.DataLoss)
	refused(t, dtg.DatasetTFRecord([]string{file}).Err(), dtg.InvalidArgument)
}

func TestCombinations(t *testing.T) {
	leaves(t)
	numbers := func(begin, end int64) *dtg.Dataset { return closing(t, dtg.DatasetRange(begin, end, 1)) }
	other := numbers(10, 13)
	zipped := numbers(0, 5).Zip(other)
	if zipped.ComponentCount() != 2 || zipped.Cardinality() != 3 {
		t.Errorf("%d components, %d elements", zipped.ComponentCount(), zipped.Cardinality())
	}
	_, err := other.Next()
	refused(t, err, dtg.FailedPrecondition)
	equal(t, firsts(t, numbers(0, 2).Concatenate(numbers(5, 7), numbers(9, 10))), []int64{0, 1, 5, 6, 9})
	equal(t, firsts(t, numbers(0, 5).Interleave(2, numbers(10, 11))), []int64{0, 1, 10, 2, 3, 4})
	twice := numbers(0, 3)
	refused(t, twice.Zip(twice).Err(), dtg.InvalidArgument)
	equal(t, firsts(t, numbers(0, 5).Window(2, 2, 2, true)), []int64{0, 2, 2, 4})
	equal(t, firsts(t, numbers(0, 3).Window(2, 1, 1, false).PaddedBatch(3, false, -1)), []int64{0, 1, 1, 2, 2, -1})
	buckets := numbers(0, 3).Window(2, 1, 1, false).BucketBatch(0, []int64{2}, []int64{5, 2}, false, 0)
	equal(t, firsts(t, buckets), []int64{0, 1, 1, 2, 2})
	cached := numbers(0, 5).Shuffle(0, 3).Cache()
	equal(t, firsts(t, cached), firsts(t, cached))
}

func TestTransforms(t *testing.T) {
	leaves(t)
	numbers := func() *dtg.Dataset { return closing(t, dtg.DatasetRange(0, 10, 1)) }
	equal(t, firsts(t, numbers().Skip(2).Take(3)), []int64{2, 3, 4})
	equal(t, firsts(t, numbers().Shard(3, 1)), []int64{1, 4, 7})
	equal(t, firsts(t, numbers().AutoShard(5, 4)), []int64{4, 9})
	equal(t, firsts(t, numbers().Take(2).Repeat(2).Prefetch(2)), []int64{0, 1, 0, 1})
	batches := numbers().Batch(4, false)
	if batches.Cardinality() != 3 || batches.ComponentCount() != 1 {
		t.Errorf("%d batches of %d components", batches.Cardinality(), batches.ComponentCount())
	}
	dtype, shape, err := batches.Component(0)
	want(t, err)
	if dtype != dtg.Int64 || len(shape) != 1 || shape[0] != -1 {
		t.Errorf("%v %v", dtype, shape)
	}
	_, _, err = batches.Component(1)
	refused(t, err, dtg.OutOfRange)
	equal(t, firsts(t, batches.Rebatch(2)), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	shuffled := numbers().Shuffle(0, 7)
	first := firsts(t, shuffled)
	want(t, shuffled.Restart())
	second := firsts(t, shuffled)
	equal(t, firsts(t, numbers().Shuffle(0, 7)), first)
	if fmt.Sprint(first) == fmt.Sprint(second) {
		t.Error("two epochs in one order")
	}
	scaled := numbers().Scale(0, 2).Take(2)
	for element, err := range scaled.Elements() {
		want(t, err)
		if element[0].DType() != dtg.Float32 {
			t.Error(element[0].DType())
		}
		break
	}
	if dtype, _, err := numbers().Cast(0, dtg.Int32).Component(0); err != nil || dtype != dtg.Int32 {
		t.Error(dtype, err)
	}
}

func TestDatasetErrorsStick(t *testing.T) {
	leaves(t)
	d := closing(t, dtg.DatasetRange(0, 10, 1)).Batch(-1, false)
	err := d.Err()
	refused(t, err, dtg.InvalidArgument)
	d.Shuffle(0, 1)
	if _, again := d.Next(); again != err || d.Err() != err || d.Restart() != err {
		t.Errorf("%v", again)
	}
	seen := 0
	for _, again := range d.Elements() {
		seen++
		if again != err {
			t.Error(again)
		}
	}
	if seen != 1 {
		t.Errorf("the error came %d times", seen)
	}
	nowhere := closing(t, dtg.DatasetCSV("nowhere.csv"))
	refused(t, nowhere.Batch(2, false).Err(), dtg.NotFound, "nowhere.csv")
	refused(t, dtg.DatasetRange(0, 1, 0).Err(), dtg.InvalidArgument)
	refused(t, dtg.DatasetTensors(nil).Err(), dtg.InvalidArgument)
	refused(t, dtg.DatasetIDX("nowhere.gz").Err(), dtg.NotFound)
}

func TestTensorSlices(t *testing.T) {
	leaves(t)
	d := closing(t, dtg.DatasetTensors(vector(t, 1, 2, 3), vector(t, 4, 5, 6)))
	element := get(d.Next())(t)
	if a, b := get(dtg.Scalar[float32](element[0]))(t), get(dtg.Scalar[float32](element[1]))(t); a != 1 || b != 4 {
		t.Error(a, b)
	}
	want(t, dtg.Close(element[0], element[1]))
	for range 2 {
		rest := get(d.Next())(t)
		want(t, dtg.Close(rest[0], rest[1]))
	}
	if _, err := d.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	leaves(t)
	digits := closing(t, dtg.DatasetCSV("../../tests/data/digits.csv.gz", dtg.CSVOptions{Label: "c64"}))
	if n := digits.Cardinality(); n != 1797 {
		t.Errorf("%d digits", n)
	}
	path := filepath.Join(t.TempDir(), "table.csv")
	want(t, os.WriteFile(path, []byte("a;b\n1;2\n3;\n"), 0o600))
	all := dtg.CSVOptions{Columns: []string{"b", "a"}, Header: dtg.HeaderPresent, Missing: dtg.MissingDropped, Delimiter: ';'}
	table := closing(t, dtg.DatasetCSV(path, all))
	if n := len(firsts(t, table)); n != 1 {
		t.Errorf("%d rows", n)
	}
	all.Missing = dtg.MissingRefused
	refused(t, dtg.DatasetCSV(path, all).Err(), dtg.DataLoss)
	idx := filepath.Join(t.TempDir(), "labels")
	want(t, os.WriteFile(idx, []byte{0, 0, 8, 1, 0, 0, 0, 2, 7, 9}, 0o600))
	labels := closing(t, dtg.DatasetIDX(idx).Batch(2, true))
	for element, err := range labels.Elements() {
		want(t, err)
		equal(t, get(dtg.Copy[uint8](element[0]))(t), []uint8{7, 9})
	}
}

func TestElementsBeginAnew(t *testing.T) {
	leaves(t)
	d := closing(t, dtg.DatasetRange(0, 3, 1))
	for range 3 {
		equal(t, firsts(t, d), []int64{0, 1, 2})
	}
	for range d.Elements() { // given up
		break
	}
	equal(t, firsts(t, d), []int64{0, 1, 2})
	want(t, d.Restart())
	want(t, get(d.Next())(t)[0].Close())
	place := get(d.Position())(t)
	equal(t, firsts(t, d), []int64{0, 1, 2})
	want(t, d.MoveTo(place))
	equal(t, firsts(t, d), []int64{1, 2})
	shuffled := closing(t, dtg.DatasetRange(0, 100, 1).Shuffle(0, 1))
	if first, second := firsts(t, shuffled), firsts(t, shuffled); fmt.Sprint(first) == fmt.Sprint(second) || len(second) != 100 {
		t.Error("two epochs in one order")
	}
	var none *dtg.Dataset
	refused(t, none.Err(), dtg.InvalidArgument)
	_, err := none.Next()
	refused(t, err, dtg.InvalidArgument)
}

// Whoever asks again after the end gets nothing, and is told so once, in Go's words.
func TestAnEndThatIsAskedAgainIsTold(t *testing.T) {
	leaves(t)
	var out bytes.Buffer
	r := get(dtg.NewRuntime(dtg.RuntimeOptions{Log: slog.NewTextHandler(&out, nil), LogLevel: slog.LevelWarn}))(t)
	d := r.DatasetRange(0, 3, 1)
	for range 2 {
		equal(t, firsts(t, d), []int64{0, 1, 2})
	}
	for range 3 {
		if _, err := d.Next(); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	}
	dtg.Close(d, r) // which hands on the last lines
	if told := out.String(); strings.Count(told, "\n") != 1 || !strings.Contains(told, "gives nothing until Dataset.Restart begins the next epoch") {
		t.Errorf("the log: %q", told)
	}
}

func TestSchemas(t *testing.T) {
	leaves(t)
	folder := t.TempDir()
	write := func(name, rows string) string {
		path := filepath.Join(folder, name)
		want(t, os.WriteFile(path, []byte(rows), 0o600))
		return path
	}
	train, test := write("train.csv", "size,kind\n1,cat\n,dog\n3,owl\n"), write("test.csv", "size,kind\n,owl\n")
	refused(t, dtg.DatasetCSV(train).Err(), dtg.DataLoss)
	fitted := closing(t, dtg.DatasetCSV(train, dtg.CSVOptions{Label: "kind", Missing: dtg.MissingMean}))
	schema := get(fitted.Schema())(t)
	same := closing(t, dtg.DatasetCSV(test, dtg.CSVOptions{Schema: schema}))
	for element, err := range same.Elements() {
		want(t, err)
		equal(t, element[0].Float32s(), []float32{2})
		equal(t, element[1].Int64s(), []int64{2})
	}
	unknown := dtg.DatasetCSV(write("more.csv", "size,kind\n1,emu\n"), dtg.CSVOptions{Schema: schema})
	refused(t, unknown.Err(), dtg.InvalidArgument)
	if !strings.Contains(unknown.Err().Error(), "emu") {
		t.Error(unknown.Err())
	}
	_, err := closing(t, dtg.DatasetRange(0, 1, 1)).Schema()
	refused(t, err, dtg.FailedPrecondition)

	g := closing(t, dtg.NewGraph())
	m := closing(t, g.NewModel(1))
	m.Variable("w", 0)
	s := closing(t, get(dtg.Connect(t.Context(), "local", g))(t))
	want(t, s.Run(t.Context(), dtg.Target(m.Init())))
	want(t, m.SetMetadata("schema", schema))
	path := filepath.Join(folder, "w.safetensors")
	want(t, m.Save(s, path))
	h := closing(t, dtg.NewGraph())
	n := closing(t, h.NewModel(1))
	n.Variable("w", 0)
	_, err = n.Metadata("schema")
	refused(t, err, dtg.NotFound)
	want(t, n.Restore(closing(t, get(dtg.Connect(t.Context(), "local", h))(t)), path))
	equal(t, []string{get(n.Metadata("schema"))(t)}, []string{schema})
}

// What builds a data set names the line of the program, the first that failed, once.
func TestDatasetErrorsTellThePlace(t *testing.T) {
	leaves(t)
	told := func(line int, d *dtg.Dataset) {
		t.Helper()
		err := closing(t, d).Err()
		if place := fmt.Sprintf("at data_test.go:%d: ", line); err == nil || !strings.HasPrefix(err.Error(), place) || strings.Count(err.Error(), ".go:") != 1 {
			t.Errorf("%v does not begin with %q", err, place)
		}
	}
	told(lineOf(), dtg.DatasetCSV("/no/such.csv"))
	told(lineOf(), dtg.DatasetCSV("/no/such.csv").Shuffle(0, 1).Batch(2, false))
	told(lineOf(), dtg.DatasetCSV("a\x00b", dtg.CSVOptions{Label: "a\x00b"}))
	told(lineOf(), dtg.DatasetRange(0, 9, 0))
	told(lineOf(), dtg.DatasetRange(0, 9, 1).Batch(0, false))
	told(lineOf(), dtg.DatasetRange(0, 9, 1).Zip(closing(t, dtg.DatasetRange(0, 1, 1)), nil))
	bad, line := dtg.DatasetRange(0, 9, 1).Batch(-1, false), lineOf()
	told(line, bad.Prefetch(1))
	one, two := closing(t, dtg.DatasetRange(0, 9, 1)).Split(dtg.Split{Fraction: 2})
	told(lineOf()-1, one)
	told(lineOf()-2, two)
	ok := closing(t, dtg.DatasetRange(0, 9, 1))
	told(line, ok.Concatenate(bad.Batch(1, false)).Batch(0, false))
}

func TestBatchSizes(t *testing.T) {
	equal(t, get(dtg.BatchSizes(10, 3, 1, 0))(t), []int64{4, 3, 3})
	_, err := dtg.BatchSizes(10, 0, 1, 0)
	refused(t, err, dtg.InvalidArgument)
}

func TestWeights(t *testing.T) {
	leaves(t)
	w := closing(t, get(dtg.NewWeights())(t))
	want(t, w.Set("b", vector(t, 1, 2)))
	want(t, w.Set("a", vector(t, 3)))
	want(t, w.SetMetadata("made by", "a test"))
	path := filepath.Join(t.TempDir(), "w.safetensors")
	want(t, w.Save(path))
	again := closing(t, get(dtg.LoadWeights(path))(t))
	var names []string
	for name, tensor := range again.All() {
		names = append(names, fmt.Sprint(name, tensor.Float32s()))
	}
	equal(t, names, []string{"a[3]", "b[1 2]"})
	var order []string
	for _, name := range w.Names() {
		order = append(order, name)
	}
	equal(t, order, []string{"b", "a"})
	if text, ok := again.Metadata("made by"); text != "a test" || !ok || again.Len() != 2 {
		t.Errorf("%q, %d tensors", text, again.Len())
	}
	if _, ok := again.Metadata("nothing"); ok {
		t.Error("metadata that nobody set")
	}
	_, err := again.Get("c")
	refused(t, err, dtg.NotFound)
	_, err = dtg.LoadWeights(path + "x")
	refused(t, err, dtg.NotFound)
	want(t, os.WriteFile(path, []byte("no weights"), 0o600))
	_, err = dtg.LoadWeights(path)
	refused(t, err, dtg.DataLoss)
	refused(t, w.Set("c", nil), dtg.InvalidArgument)
}

func TestEvents(t *testing.T) {
	leaves(t)
	directory := filepath.Join(t.TempDir(), "run")
	w := get(dtg.OpenEventWriter(directory, dtg.EventWriterOptions{ResumedAtStep: 3}))(t)
	want(t, w.Scalar("loss", 3, 0.5))
	want(t, w.Histogram("weights", 3, vector(t, 1, 2, 3)))
	want(t, w.Text("note", 3, "*words*"))
	want(t, w.Flush())
	refused(t, w.Histogram("weights", 3, nil), dtg.InvalidArgument)
	want(t, w.Close())
	want(t, w.Close())
	refused(t, w.Scalar("loss", 4, 0.25), dtg.InvalidArgument)
	files := get(os.ReadDir(directory))(t)
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	if info := get(files[0].Info())(t); info.Size() < 100 {
		t.Errorf("%d bytes", info.Size())
	}
	_, err := dtg.OpenEventWriter("/dev/null/run")
	var e *dtg.Error
	if !errors.As(err, &e) {
		t.Errorf("a directory below a file: %v", err)
	}
}

func ExampleDataset_Elements() {
	data := dtg.DatasetRange(0, 5, 1).Batch(2, false)
	defer data.Close()
	for batch, err := range data.Elements() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0].Int64s())
	}
	// Output:
	// [0 1]
	// [2 3]
	// [4]
}
