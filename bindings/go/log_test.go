// The log sink, from the side of the library: inside the package, because the library has little to say.

package dtg

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/cgo"
	"strings"
	"testing"
)

// deaf panics where it should listen.
type deaf struct{ slog.Handler }

func (deaf) Enabled(context.Context, slog.Level) bool  { return true }
func (deaf) Handle(context.Context, slog.Record) error { panic("a sink that fails") }

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	sink := cgo.NewHandle(slog.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	defer sink.Delete()
	for level := range int32(4) {
		logLine(sink, level, "net", "line "+slogLevel(level).String())
	}
	text := out.String()
	if strings.Contains(text, "line DEBUG") || !strings.Contains(text, `level=WARN msg="line WARN" component=net`) || strings.Count(text, "\n") != 3 {
		t.Error(text)
	}
	failing := cgo.NewHandle(slog.Handler(deaf{}))
	defer failing.Delete()
	logLine(failing, 3, "net", "words")
	for level, wanted := range map[slog.Level]int32{slog.LevelDebug - 4: 0, slog.LevelDebug: 0, slog.LevelInfo: 1, slog.LevelWarn: 2, slog.LevelError: 3, 12: 4} {
		if got := logLevel(level); got != wanted {
			t.Errorf("%v is %d, not %d", level, got, wanted)
		}
	}
}

// The sink of a runtime is given back when the runtime is gone.
func TestLogSinkIsGivenBack(t *testing.T) {
	open := LiveHandles()
	r, err := NewRuntime(RuntimeOptions{Log: slog.NewTextHandler(&bytes.Buffer{}, nil), LogLevel: slog.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil || LiveHandles() != open {
		t.Error(err, LiveHandles())
	}
	if _, err := NewRuntime(RuntimeOptions{Log: slog.NewTextHandler(&bytes.Buffer{}, nil), ComputeThreads: -1}); err == nil {
		t.Error("a runtime of -1 threads")
	}
}
