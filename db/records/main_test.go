package records_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var (
	noon  = worldtest.Noon
	today = worldtest.Today
)

const day = 24 * time.Hour

type row = fixture.Row

// world is a database of a test's own, with what the tests of one subject add to it.
type world struct{ *worldtest.World }

func newWorld(t testing.TB, opts ...db.Option) *world { return &world{worldtest.New(t, opts...)} }
