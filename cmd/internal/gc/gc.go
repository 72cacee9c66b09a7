// Package gc sets how often a process collects garbage.
package gc

import (
	"os"
	"runtime/debug"
)

const (
	// percent is how much the heap may grow between two collections. The live heap of a
	// service is some 10 MB: collecting half as often as usual costs little memory.
	percent = 200
	// softLimit is the memory at which it collects more often. Work on large clients, such
	// as reports, has up to 150 MB in use.
	softLimit = 160 << 20
)

// Relax makes the process collect garbage less often while it uses little memory, unless GOGC or GOMEMLIMIT is set.
func Relax() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
}
