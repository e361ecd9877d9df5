// Sequences of the program, asked for element by element from C.

package dtg

import (
	"errors"
	"iter"
)

// pulled is a sequence that is asked for its elements one by one, by calls from C, which come on any thread: so it runs in a goroutine of
// its own. (A coroutine of iter.Pull belongs to the thread that it was made on, where that was inside of a call from C.) One call at a time.
type pulled struct {
	asks    chan bool // for another element, or to stop
	answers chan element
	over    chan struct{} // closed when the sequence has returned
}

type element struct {
	tensors []*Tensor
	err     error
	thrown  *elsewhere
}

// elsewhere is a panic of another goroutine, and where it was.
type elsewhere struct {
	value any
	where string
}

var errEnded = errors.New("the sequence of the data set has ended its goroutine")

func pull(elements iter.Seq2[[]*Tensor, error]) *pulled {
	p := &pulled{make(chan bool), make(chan element, 1), make(chan struct{})}
	go p.run(elements)
	return p
}

// run leaves the answer to the last question behind, if there is one: an error or a panic; and none where the elements are at their end.
func (p *pulled) run(elements iter.Seq2[[]*Tensor, error]) {
	returned := false
	defer close(p.over)
	defer func() {
		if value := recover(); value != nil {
			_, where := caller(here(2))
			p.answers <- element{thrown: &elsewhere{value, where}}
		} else if !returned {
			p.answers <- element{err: errEnded}
		}
	}()
	if <-p.asks {
		elements(func(tensors []*Tensor, err error) bool {
			p.answers <- element{tensors: tensors, err: err}
			return <-p.asks
		})
	}
	returned = true
}

// next is the next element; false where there is none any more. It panics as the sequence does.
func (p *pulled) next() ([]*Tensor, error, bool) {
	select {
	case p.asks <- true:
	case <-p.over:
	}
	select {
	case got := <-p.answers:
		return got.unwrap()
	case <-p.over:
	}
	select { // what came last, and the end
	case got := <-p.answers:
		return got.unwrap()
	default:
		return nil, nil, false
	}
}

func (e element) unwrap() ([]*Tensor, error, bool) {
	if e.thrown != nil {
		panic(e.thrown)
	}
	return e.tensors, e.err, true
}

// stop lets the sequence return, and waits for that. What it panics with then nobody asked for.
func (p *pulled) stop() {
	select {
	case p.asks <- false:
	case <-p.over:
	}
	<-p.over
}
