package pg

import (
	"context"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

var empty = dbtest.Schema{Name: "pg", Key: "empty", Apply: func(context.Context, string) error { return nil }}

// TestServerClock: whatever the machine's clock says, and whichever way it is
// put, Now returns the server's time, which is asked for once a minute.
func TestServerClock(t *testing.T) {
	d, err := Open(dbtest.URL(t, empty))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	machine := domain.NewManualClock(time.Now().Add(-2 * time.Hour))
	clock := d.clock.(*serverClock)
	clock.machine = machine

	for _, step := range []struct {
		name string
		put  time.Duration // the machine's clock
		asks bool
	}{
		{"the first connection", 0, true},
		{"at once", 0, false},
		{"within the minute", 59 * time.Second, false},
		{"a minute later", time.Second, true},
		{"put forward", 5 * time.Hour, true},
		{"put back", -10 * time.Hour, true},
	} {
		machine.Advance(step.put)
		before := clock.due.Load()
		server, err := One[time.Time](t.Context(), d, "ask for the time", SQL("SELECT clock_timestamp()"))
		if err != nil {
			t.Fatal(err)
		}
		if asked := clock.due.Load() != before; asked != step.asks {
			t.Errorf("%s: asked for the time: %v", step.name, asked)
		}
		if off := d.Now().Sub(server).Abs(); step.asks && off > time.Minute {
			t.Errorf("%s: Now is %v away from the server's time", step.name, off)
		}
	}
}
