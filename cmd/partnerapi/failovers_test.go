//go:build scale

package main

import "testing"

// failovers is how often the servers change places in TestFailovers.
const failovers = 8

// TestFailovers is TestFailover again and again: the primary that was killed takes over
// from the one after it.
func TestFailovers(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	f.write()
	for range failovers {
		f.turn()
	}
	f.stop()
	f.check()
}
