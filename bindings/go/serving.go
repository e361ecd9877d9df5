// Models that others built: exported, loaded, restored by other names. One goroutine at a time uses a model.

package dtg

// #include "shim.h"
import "C"

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"unsafe"
)

// Export is what of a model is saved for those who do not know how it was built, by names of one's own.
type Export struct {
	Inputs  map[string]Value // what is fed, such as placeholders; any value will do, the graph is cut off there
	Outputs map[string]Value // what is fetched, or a target such as Training.Train, for a model that is to be trained on
	Freeze  bool             // variables become constants, for serving only
}

// Export writes one file with all that it takes to compute the outputs from the inputs: the part of the graph that leads there, the values
// that its variables have in s, and the metadata. LoadModel reads it. Errors: InvalidArgument (no outputs), FailedPrecondition (an output needs
// a placeholder that is no input, which is named; a frozen variable is not only read; one without value), those of a run and of the disk.
func (m *Model) Export(s *Session, path string, what Export) error {
	var p pins
	defer p.Unpin()
	c := &C.dtg_export{struct_size: C.sizeof_dtg_export, freeze: flag(what.Freeze)}
	c.input_names, c.inputs, c.num_inputs = p.endpoints(what.Inputs)
	c.output_names, c.outputs, c.num_outputs = p.endpoints(what.Outputs)
	if p.err != nil {
		return p.err
	}
	if err := m.Err(); err != nil {
		return err
	}
	return m.withSession(s, func(model *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_model_export(model, session, c, data, length)
	})
}

// endpoints are names and values, in the order of the names.
func (p *pins) endpoints(of map[string]Value) (**C.char, *C.dtg_value, C.size_t) {
	names := slices.Sorted(maps.Keys(of))
	list := make([]Value, len(names))
	for i, name := range names {
		list[i] = of[name]
	}
	texts, _ := p.cstrings(names)
	values, count := p.values(list)
	return texts, values, count
}

// LoadModel is a model that Export wrote, over a graph of its own, and a local session in which its variables have their values. Close
// all three: the model, the session, and the graph, which is model.Graph(); each keeps what it needs of the others, so the order does not
// matter, and the graph may be closed at once where nothing is to be added. Errors: NotFound, DataLoss (cut, damaged, or no exported model), Unimplemented (of a later release), ResourceExhausted.
//
//	model, session, err := dtg.LoadModel("model.dtg")
//	in, out := dtg.Must(model.Endpoint("x")), dtg.Must(model.Endpoint("y"))
//	err = session.Run(ctx, dtg.Feed(in, x), dtg.FetchSlice(out, &y))
func LoadModel(path string) (*Model, *Session, error) { return (*Runtime)(nil).LoadModel(path) }

// LoadModel is the same over the ops and with the memory limit of r.
func (r *Runtime) LoadModel(path string) (*Model, *Session, error) {
	if err := loaded(); err != nil {
		return nil, nil, err
	}
	home, err := r.c()
	if err != nil {
		return nil, nil, err
	}
	data, length := chars(path)
	var session *C.dtg_session
	var model *C.dtg_model
	err = failure(C.dtg_model_load(home, data, length, &session, &model))
	runtime.KeepAlive(r)
	if err != nil {
		return nil, nil, err
	}
	s := &Session{}
	s.open(sessionKind, unsafe.Pointer(session))
	m := &Model{g: &Graph{graphState: &graphState{}}}
	m.open(modelKind, unsafe.Pointer(model))
	var graph *C.dtg_graph
	if err := failure(C.dtg_model_graph(model, &graph)); err != nil {
		Close(m, s)
		return nil, nil, err
	}
	m.g.graphState.open(graphKind, unsafe.Pointer(graph))
	s.graph = m.g.graphState
	return m, s, nil
}

// Endpoint is the input or output of that name of a model that was loaded. It adds nothing, so its error is its own and the model stays as it
// was: NotFound, with the names that there are.
func (m *Model) Endpoint(name string) (out Value, err error) {
	err = m.read(func(p *C.dtg_model) *C.dtg_error {
		data, length := chars(name)
		return C.dtg_model_endpoint(p, data, length, out.out())
	})
	return out, err
}

// Endpoint is one input or output of a loaded model.
type Endpoint struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"` // "": a target
	Shape []int64 `json:"shape"` // -1: open; nil: not even its rank is known
}

// Endpoints are the inputs and outputs of a model that was loaded.
func (m *Model) Endpoints() (inputs, outputs []Endpoint, err error) {
	var out *C.dtg_string
	if err = m.read(func(p *C.dtg_model) *C.dtg_error { return C.dtg_model_endpoints(p, &out) }); err != nil {
		return nil, nil, err
	}
	var all struct{ Inputs, Outputs []Endpoint }
	err = json.Unmarshal([]byte(text(out)), &all)
	return all.Inputs, all.Outputs, err
}

// SetClasses says what the classes are called that an output tells apart, in the order of their numbers, where no schema of the training data
// does. output is its name in the exported file; "": all that have so many classes. Names for an output that a fit or an export then does not
// have are told by a warning. Errors: InvalidArgument (no names, or one twice; an output that is known and does not tell so many apart).
func (m *Model) SetClasses(output string, names ...string) error {
	var p pins
	defer p.Unpin()
	list, count := p.cstrings(names)
	if p.err != nil {
		return p.err
	}
	return m.read(func(model *C.dtg_model) *C.dtg_error {
		data, length := chars(output)
		return C.dtg_model_set_classes(model, data, length, list, count)
	})
}

// Classes are those names, so that what a model predicts can be said in words: name i is that of class i. output is one of a model that was
// loaded; "" asks for what is said for all, of any model. A fit on a file whose label is of names keeps them by itself. Errors: NotFound (no
// such output; nobody has named its classes, or it does not tell so many apart).
//
//	names, err := model.Classes("digit")
//	fmt.Println(names[found[0]])
func (m *Model) Classes(output string) ([]string, error) {
	var out *C.dtg_tensor
	err := m.read(func(model *C.dtg_model) *C.dtg_error {
		data, length := chars(output)
		return C.dtg_model_classes(model, data, length, &out)
	})
	if err != nil {
		return nil, err
	}
	names := wrapTensor(out)
	defer names.Close()
	return names.Strings()
}

// ImportModel is a model of the variables that g has already: after Import, or built by hand. Those of floating-point numbers are trainable,
// but for what is named like an optimizer's slots.
func (g *Graph) ImportModel(seed uint64) *Model {
	m := g.model()
	graph, ok := g.c()
	if !ok {
		return m
	}
	var out *C.dtg_model
	err := failure(C.dtg_model_import(graph, C.uint64_t(seed), &out))
	runtime.KeepAlive(g)
	if !g.fail(err) {
		m.open(modelKind, unsafe.Pointer(out))
	}
	return m
}

// RestoreOptions are what of a file goes where.
type RestoreOptions struct {
	// What variables of the model are called in the file. Two names that end with "/" stand for all that begin so:
	// {"encoder/": "bert/encoder/"}; "" beside such a one is the root, all names: {"": "bert/"} or {"bert/": ""}. A whole name
	// counts before the longest beginning.
	Names   map[string]string
	Partial bool // what fits is taken; otherwise a variable that finds nothing of its type and shape is an error, and nothing is assigned
}

// RestoreReport is what became of RestoreFrom.
type RestoreReport struct {
	Path      string   `json:"path"`
	Variables int      `json:"variables"` // how many have their values now
	Missing   []string `json:"missing"`   // variables that the file does not have
	Extra     []string `json:"extra"`     // what in the file no variable asked for
	Reshaped  []string `json:"reshaped"`  // variables that are of another type or shape there
}

// RestoreFrom is Restore with names that differ, or for a part of the variables; the others keep what they have. Errors: those of Restore,
// but FailedPrecondition names all variables that do not fit; NotFound also where no variable is called as a rule says.
func (m *Model) RestoreFrom(s *Session, path string, options RestoreOptions) (report RestoreReport, err error) {
	var p pins
	defer p.Unpin()
	c := &C.dtg_restore{struct_size: C.sizeof_dtg_restore, partial: flag(options.Partial)}
	c.names, c.names_len = p.text(namesJSON(options.Names))
	var out *C.dtg_string
	err = m.withSession(s, func(model *C.dtg_model, session *C.dtg_session) *C.dtg_error {
		data, length := chars(path)
		return C.dtg_model_restore_from(model, session, data, length, c, &out)
	})
	if err == nil {
		err = json.Unmarshal([]byte(text(out)), &report)
	}
	return report, err
}

func namesJSON(names map[string]string) string {
	if len(names) == 0 {
		return ""
	}
	return string(Must(json.Marshal(names)))
}
