//go:build slow

package v2_test

import "testing"

// TestPagingWhileRowsChange walks every list of every table while rows change.
func TestPagingWhileRowsChange(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		t.Run(name, func(t *testing.T) { walkWhileRowsChange(t, table) })
	}
}

// TestPagingInParallel walks lists of every table at once while others write.
func TestPagingInParallel(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		t.Run(name, func(t *testing.T) { walkInParallel(t, table) })
	}
}
