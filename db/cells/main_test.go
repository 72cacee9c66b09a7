package cells_test

import (
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is a database of a test's own.
type world struct{ *worldtest.World }

func newWorld(t testing.TB) *world { return &world{worldtest.New(t)} }
