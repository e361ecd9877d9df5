// cause: which error of the program's own an error of the library came from. The library carries code and message from where a function in Go
// failed to whoever asked for the element; the value itself stays here meanwhile. Any goroutine.

package dtg

import (
	"strings"
	"sync"
	"sync/atomic"
)

// givenError is an error that a function of the program gave, as the library got it.
type givenError struct {
	code    Code
	message string
	err     error
}

// kept is how many errors are remembered. A pipeline ends with its first one; more stand here where many pipelines fail at once.
const kept = 64

// causes are the last errors that functions of the program gave. An error is told more than once, so none is taken out.
var causes struct {
	sync.Mutex
	any  atomic.Bool
	ring [kept]givenError
	next int
}

// remember keeps err until kept others have come.
func remember(code Code, message string, err error) {
	if message == "" { // nothing to find it by
		return
	}
	causes.Lock()
	defer causes.Unlock()
	causes.ring[causes.next%kept] = givenError{code, message, err}
	causes.next++
	causes.any.Store(true)
}

// causeOf is the error of the program that one of the library with that code and message tells of; nil where there is none. Whoever
// hands an error on writes where it was met in front of it, so that the end is the program's. Of equal ones it is the last.
func causeOf(code Code, message string) error {
	if !causes.any.Load() {
		return nil
	}
	causes.Lock()
	defer causes.Unlock()
	for i := causes.next - 1; i >= max(causes.next-kept, 0); i-- {
		if one := &causes.ring[i%kept]; one.code == code && strings.HasSuffix(message, one.message) {
			return one.err
		}
	}
	return nil
}
