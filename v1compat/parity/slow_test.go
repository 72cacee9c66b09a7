//go:build slow

package parity

import "testing"

// TestDemonstration: both versions say the same of all of the demonstration, to each of
// its keys.
func TestDemonstration(t *testing.T) {
	s := demo(t)
	for _, key := range []string{"pk_demo_all", "pk_demo_readonly", "pk_demo_subset", "pk_demo_other"} {
		same(t, config(s.URL, key, s.Clock.Now()))
	}
}
