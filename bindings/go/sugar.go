// For small programs, in which the first error is the end. Any goroutine.

package dtg

import (
	"errors"
	"io"
)

// Must is value, or a panic with err.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check panics with err unless it is nil.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Close closes all of them and joins what failed. nil has nothing to close, as what a constructor that failed has given.
func Close(objects ...io.Closer) (err error) {
	for _, object := range objects {
		if object != nil {
			err = errors.Join(err, object.Close())
		}
	}
	return err
}
