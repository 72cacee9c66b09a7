//go:build slow

package db_test

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestPolicyCountsUnderWriters: a count that is stored while others write never
// outlives what they wrote.
func TestPolicyCountsUnderWriters(t *testing.T) {
	o := newOffice(t)
	o.rounds(4, func(r *rand.Rand) error {
		_, err := o.read(t.Context())
		return errors.Join(o.step(t.Context(), r), err)
	})
}
