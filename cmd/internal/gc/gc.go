// Package gc sets how often a process collects garbage.
package gc

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostPercent is how much the heap of a service grows between two collections,
	// in percent of what is in use: its live heap is some 10 MB, so that collecting
	// half as often as usual costs little memory.
	mostPercent = 300
	// growth is how many bytes it grows by at the most where more is in use, such as
	// bodies of requests.
	growth = 16 << 20
	// leastPercent bounds what collecting costs where very much is in use.
	leastPercent = 12
)

// Relax makes the process collect garbage less often than usual while little is in
// use, and more often while much is, unless GOGC says how often.
func Relax() {
	if os.Getenv("GOGC") == "" {
		adjust()
		afterEach(adjust)
	}
}

// afterEach calls fn after each collection.
func afterEach(fn func()) {
	// The object is garbage at once, so that the next collection finds it.
	runtime.AddCleanup(new([64]byte), func(int) {
		afterEach(fn)
		fn()
	}, 0)
}

// adjust goes by what the last collection found in use.
func adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(percentOf(sample[0].Value.Uint64()))
}

// percentOf is how much the heap may grow, in percent of the bytes in use.
func percentOf(live uint64) int {
	return int(min(max(growth*100/max(live, 1), leastPercent), mostPercent))
}
