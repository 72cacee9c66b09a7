package db_test

import (
	"sync"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var (
	noon  = worldtest.Noon
	today = worldtest.Today
)

type row = fixture.Row

// courseNumber is the course of the catalogue with this number.
func courseNumber(n byte) domain.CourseID {
	return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}
}

// world is a database of a test's own, with what the tests of one subject add to it.
type world struct{ *worldtest.World }

// atOnce runs do n times side by side.
func (w *world) atOnce(n int, do func(i int) error) {
	w.T.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				w.T.Error(err)
			}
		})
	}
	all.Wait()
}

func newWorld(t testing.TB, opts ...db.Option) *world { return &world{worldtest.New(t, opts...)} }
