package domain_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain gives the property tests one seed, so that they say the same each
// time; -rapid.seed gives another.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == seed.DefValue {
		if err := flag.Set("rapid.seed", "20261121"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
