package gc

import (
	"runtime"
	"testing"
)

// TestPercentOf: a small heap may grow to four times, a large one by 16 MiB or an
// eighth.
func TestPercentOf(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 300, 5 << 20: 300, 16 << 20: 100, 64 << 20: 25, 128 << 20: 12, 1 << 30: 12,
	} {
		if got := percentOf(live); got != want {
			t.Errorf("%d bytes in use: %d percent, not %d", live, got, want)
		}
	}
}

// TestAfterEach: each collection is followed by a call.
func TestAfterEach(t *testing.T) {
	called := make(chan struct{})
	afterEach(func() { called <- struct{}{} })
	for range 3 {
		runtime.GC()
		<-called
	}
}
