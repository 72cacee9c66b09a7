//go:build scale

package main

import (
	"testing"

	"partnerapi/v2/op"
)

// TestPagesBetween is TestPages for the releases between the first and the latest.
func TestPagesBetween(t *testing.T) {
	t.Parallel()
	for release := op.V2_0 + 1; release < op.Latest; release++ {
		crawlRelease(t, release)
	}
}
