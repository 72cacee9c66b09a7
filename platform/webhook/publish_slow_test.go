//go:build slow

package webhook_test

import "testing"

// TestPublishPropertyAtLength is TestPublishProperty with many writers, for long.
func TestPublishPropertyAtLength(t *testing.T) {
	race{writers: 8, changes: 60, publishers: 3}.run(t)
}
