// Tensors of strings: any bytes come back, through a run too.

package dtg_test

import (
	"testing"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func TestStrings(t *testing.T) {
	leaves(t)
	words := []string{"one", "", "a\x00b", "\xff"}
	tensor := closing(t, get(dtg.StringTensor(words, 2, 2))(t))
	if tensor.DType() != dtg.String || tensor.Len() != 4 {
		t.Fatalf("%v of %d", tensor.DType(), tensor.Len())
	}
	equal(t, get(tensor.Strings())(t), words)
	scalar := closing(t, get(dtg.ScalarString("x"))(t))
	equal(t, get(scalar.Strings())(t), []string{"x"})
	_, err := dtg.StringTensor(words, 3)
	refused(t, err, dtg.InvalidArgument, "shape")
	numbers := closing(t, get(dtg.NewTensor([]float32{1}))(t))
	_, err = numbers.Strings()
	refused(t, err, dtg.InvalidArgument, "float32")
}
