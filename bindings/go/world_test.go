// What the tests share. A test that takes the world must leave no object of the library behind.

package dtg_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

var background = context.Background()

// leaves fails the test if objects stay open at its end. An object that a thread of the library still looks at counts until it has
// looked away, so there is some patience.
func leaves(t *testing.T) {
	t.Helper()
	before := dtg.LiveHandles()
	t.Cleanup(func() {
		for end := time.Now().Add(10 * time.Second); dtg.LiveHandles() != before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d objects were open before, %d are now", before, dtg.LiveHandles())
			}
		}
	})
}

// closing closes an object at the end of the test, after a check that nothing stays open was asked for.
func closing[T interface{ Close() error }](t *testing.T, object T) T {
	t.Helper()
	t.Cleanup(func() {
		if err := object.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return object
}

// want ends the test unless err is nil.
func want(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get is value, or the end of the test.
func get[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		want(t, err)
		return value
	}
}

// refused checks that err is one of the library's with that code and words in its message.
func refused(t *testing.T, err error, code dtg.Code, words ...string) {
	t.Helper()
	var e *dtg.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a *dtg.Error: %v", err)
	}
	if e.Code != code || !errors.Is(err, code) {
		t.Fatalf("code %v, not %v: %v", e.Code, code, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Fatalf("%q is not in the message: %v", word, err)
		}
	}
	tellsWhere(t, e)
}

// tellsWhere holds an error of the library that others or the clock have caused to what Error promises of it. Those of a context that had
// ended before the call are of this package.
func tellsWhere(t *testing.T, e *dtg.Error) {
	t.Helper()
	ours := strings.Contains(e.Message, "the context was")
	if late := e.Code == dtg.DeadlineExceeded || e.Code == dtg.Aborted || e.Code == dtg.Unavailable; !late || ours {
		return
	}
	if e.Phase == "" || e.Task+e.Peer == "" {
		t.Errorf("phase %q, task %q, peer %q: %v", e.Phase, e.Task, e.Peer, e)
	}
}

func graph(t *testing.T) *dtg.Graph {
	t.Helper()
	return closing(t, dtg.NewGraph())
}

func connect(t *testing.T, g *dtg.Graph, options ...dtg.SessionOptions) *dtg.Session {
	t.Helper()
	return closing(t, get(dtg.Connect(background, "local", g, options...))(t))
}

func vector(t *testing.T, elements ...float32) *dtg.Tensor {
	t.Helper()
	return closing(t, get(dtg.NewTensor(elements))(t))
}

func equal[T comparable](t *testing.T, got, wanted []T) {
	t.Helper()
	if len(got) != len(wanted) {
		t.Fatalf("got %v, want %v", got, wanted)
	}
	for i := range got {
		if got[i] != wanted[i] {
			t.Fatalf("got %v, want %v", got, wanted)
		}
	}
}

// rss is the resident memory of this process, in bytes, without the garbage that Go still holds.
func rss(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text := get(os.ReadFile("/proc/self/statm"))(t)
	var pages int64
	for _, c := range strings.Fields(string(text))[1] {
		pages = pages*10 + int64(c-'0')
	}
	return pages * int64(os.Getpagesize())
}

// until waits for what the library does by itself and soon.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
		runtime.GC()
	}
}
