// The log sink: the only place where the library calls Go. Called on one thread of the library, line after line.

package dtg

// #include <stdint.h>
import "C"

import (
	"context"
	"log/slog"
	"runtime/cgo"
	"time"
)

// dtgGoLog hands one line of the library's log to the slog.Handler behind user.
//
//export dtgGoLog
func dtgGoLog(user C.uintptr_t, level C.int32_t, component, message *C.char) {
	logLine(cgo.Handle(user), int32(level), C.GoString(component), inGo(C.GoString(message)))
}

// dtgGoLogFree ends the use of user.
//
//export dtgGoLogFree
func dtgGoLogFree(user C.uintptr_t) { cgo.Handle(user).Delete() }

// logLine never panics: there is no Go frame above it that could take the panic.
func logLine(user cgo.Handle, level int32, component, message string) {
	defer func() { _ = recover() }()
	handler := user.Value().(slog.Handler)
	at := slogLevel(level)
	ctx := context.Background()
	if !handler.Enabled(ctx, at) {
		return
	}
	record := slog.NewRecord(time.Now(), at, message, 0)
	record.AddAttrs(slog.String("component", component))
	_ = handler.Handle(ctx, record)
}

func slogLevel(level int32) slog.Level {
	return [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[min(max(level, 0), 3)]
}

// logLevel is the library's level for a level of slog, which has others in between.
func logLevel(level slog.Level) int32 {
	switch {
	case level <= slog.LevelDebug:
		return 0
	case level <= slog.LevelInfo:
		return 1
	case level <= slog.LevelWarn:
		return 2
	case level <= slog.LevelError:
		return 3
	}
	return 4
}
