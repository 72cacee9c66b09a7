//go:build slow

package webhook_test

import "testing"

// TestPublishPropertyAtLength is TestPublishProperty with many writers, for long.
func TestPublishPropertyAtLength(t *testing.T) {
	race{writers: 12, changes: 150, publishers: 4}.run(t)
}
