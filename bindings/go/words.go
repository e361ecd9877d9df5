// The library's messages in Go's words. Any goroutine.

package dtg

import (
	"strings"
	"sync"
)

var words = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer(wordsOfC...) })

// inGo is a message of the library without the words of C. What stands between quotes is the program's own and stays.
func inGo(message string) string {
	parts := strings.Split(message, `"`)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = words().Replace(parts[i])
	}
	return strings.Join(parts, `"`)
}
