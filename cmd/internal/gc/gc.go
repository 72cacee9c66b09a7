// Package gc sets how often a process collects garbage.
package gc

import (
	"os"
	"runtime/debug"
)

// percent is how much the heap of a service grows between two collections, in
// percent of what is in use: its live heap is some 10 MB, so that collecting half
// as often as usual costs little memory.
const percent = 300

// Relax makes the process collect garbage less often than usual, unless GOGC says
// how often.
func Relax() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
