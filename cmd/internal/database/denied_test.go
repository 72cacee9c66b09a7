package database

import (
	"errors"
	"testing"
)

// TestExplainDenied verifies that errors other than those of a missing right are returned unchanged.
func TestExplainDenied(t *testing.T) {
	t.Parallel()
	if other := errors.New("other"); ExplainDenied(nil, other) != other || ExplainDenied(nil, nil) != nil {
		t.Error("another error is changed")
	}
}
