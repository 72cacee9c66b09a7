package pg

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

var empty = dbtest.Schema{Name: "pg", Key: "empty", Apply: func(context.Context, string) error { return nil }}

// clockWorld is a database whose server and machine have clocks that a test sets.
type clockWorld struct {
	*DB
	server, machine *domain.ManualClock
	clock           *serverClock
	asked           int
	fails           error // the error of the next questions
	log             bytes.Buffer
}

func newClockWorld(t *testing.T) *clockWorld {
	t.Helper()
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	w := &clockWorld{server: domain.NewManualClock(now), machine: domain.NewManualClock(now.Add(-2 * time.Hour))}
	d, err := Open(dbtest.URL(t, empty), WithStepLog(slog.New(slog.NewTextHandler(&w.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w.DB, w.clock = d, d.clock.(*serverClock)
	ask := func(context.Context, *pgx.Conn) (time.Time, error) {
		w.asked++
		return w.server.Now(), w.fails
	}
	w.clock.machine, w.clock.ask = w.machine, ask
	zero := zeroOf(w.machine.Now(), w.machine.Elapsed())
	w.clock.zero.Store(zero)
	w.clock.machineZero.Store(zero)
	return w
}

// run lets time pass by both clocks.
func (w *clockWorld) run(d time.Duration) {
	w.server.Advance(d)
	w.machine.Advance(d)
}

// use uses a connection, and returns whether the server was asked for its time.
func (w *clockWorld) use(t *testing.T) bool {
	t.Helper()
	asked := w.asked
	if err := w.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.asked > asked
}

// TestServerClock: Now is the server's time, whichever way the machine's clock is set. The server is asked every 5
// seconds, and when the machine's clock was set.
func TestServerClock(t *testing.T) {
	w := newClockWorld(t)
	for _, step := range []struct {
		name            string
		run             time.Duration
		machine, server time.Duration // how the clocks are set after that
		asks            bool
		off             time.Duration // how far Now is off before a connection is used
	}{
		{"the first connection", 0, 0, 0, true, w.server.Now().Sub(w.Now())},
		{"immediately", 0, 0, 0, false, 0},
		{"within 5 seconds", 4 * time.Second, 0, 0, false, 0},
		{"5 seconds later", time.Second, 0, 0, true, 0},
		{"the machine's clock set forward", time.Second, 5 * time.Hour, 0, true, 0},
		{"the machine's clock set back", time.Second, -10 * time.Hour, 0, true, 0},
		{"after that", time.Second, 0, 0, false, 0},
		{"the server's clock set forward", 5 * time.Second, 0, time.Hour, true, time.Hour},
		{"the server's clock set back", 5 * time.Second, 0, -time.Hour, true, -time.Hour},
		{"after a suspension", time.Second, 8 * time.Hour, 8 * time.Hour, true, 8 * time.Hour},
	} {
		w.run(step.run)
		w.machine.Step(step.machine)
		w.server.Step(step.server)
		if off := w.server.Now().Sub(w.Now()); off != step.off {
			t.Errorf("%s: Now is off by %v, want %v", step.name, off, step.off)
		}
		if asked := w.use(t); asked != step.asks {
			t.Errorf("%s: asked for the time: %v", step.name, asked)
		}
		if now := w.Now(); !now.Equal(w.server.Now()) {
			t.Errorf("%s: Now is %v, and the server's clock shows %v", step.name, now, w.server.Now())
		}
	}
}

// TestServerClockSteps: a correction of more than a second is counted and logged, one of more than a minute forward is a
// leap, and a process's first measurement is neither.
func TestServerClockSteps(t *testing.T) {
	w := newClockWorld(t)
	w.use(t)
	for _, step := range []struct {
		by                  time.Duration
		counted             int64
		sinceLeap, sum      time.Duration
		atOnceAfterRedirect bool // the step is seen as the pool connects to another server
	}{
		{by: 0, sinceLeap: domain.NoLeap},
		{by: time.Second, sinceLeap: domain.NoLeap},
		{by: -time.Second, sinceLeap: domain.NoLeap},
		{by: 40 * time.Second, counted: 1, sum: 40 * time.Second, sinceLeap: domain.NoLeap},
		{by: -time.Hour, counted: 2, sum: time.Hour + 40*time.Second, sinceLeap: domain.NoLeap},
		{by: time.Hour, counted: 3, sum: 2*time.Hour + 40*time.Second},
		{by: 0, counted: 3, sum: 2*time.Hour + 40*time.Second, sinceLeap: 5 * time.Second},
		{by: 61 * time.Second, counted: 4, sum: 2*time.Hour + 101*time.Second, atOnceAfterRedirect: true},
	} {
		if w.server.Step(step.by); step.atOnceAfterRedirect {
			w.Pool().Reset()
		} else {
			w.run(5 * time.Second)
		}
		w.use(t)
		got := w.Stats()
		if got.ClockSteps != step.counted || got.ClockStepped != step.sum || w.SinceLeap() != step.sinceLeap {
			t.Errorf("after %v: %d steps, of %v; the last leap %v ago; want %+v",
				step.by, got.ClockSteps, got.ClockStepped, w.SinceLeap(), step)
		}
		if lines := strings.Count(w.log.String(), "was set"); int64(lines) != step.counted {
			t.Errorf("after %v: %d lines in the log:\n%s", step.by, lines, w.log.String())
		}
	}
}

// TestServerClockFails: if the server does not tell its time, the next connection asks again, and time runs on meanwhile.
func TestServerClockFails(t *testing.T) {
	w := newClockWorld(t)
	w.use(t)
	w.run(5 * time.Second)
	w.fails = errors.New("no time")
	if first, second := w.use(t), w.use(t); !first || !second {
		t.Error("after a failure the next connection did not ask")
	}
	if now := w.Now(); !now.Equal(w.server.Now()) {
		t.Errorf("Now is %v after a failure, and the server's clock shows %v", now, w.server.Now())
	}
}

// TestServerClockTakesTheLatest: the response of a server that was asked before another one responded changes nothing, and
// neither does one within the uncertainty.
func TestServerClockTakesTheLatest(t *testing.T) {
	machine := domain.NewManualClock(time.Unix(1e9, 0))
	c := newServerClock(machine, nil /* no log */)
	for _, m := range []struct {
		zero, queried, uncertainty, want time.Duration
	}{
		{time.Hour, 10 * time.Second, time.Second, time.Hour},
		{0, 9 * time.Second, time.Second, time.Hour},
		{time.Hour + time.Second, 20 * time.Second, time.Second, time.Hour},
		{time.Hour + 2*time.Second, 30 * time.Second, time.Second, time.Hour + 2*time.Second},
	} {
		c.correct(t.Context(), int64(m.zero), m.queried, m.uncertainty)
		if got := time.Duration(c.zero.Load()); got != m.want {
			t.Errorf("after %+v: %v", m, got)
		}
	}
	if n, _ := c.steps.Total(); n != 0 {
		t.Errorf("%d steps, though the measurements may be wrong by as much", n)
	}
}
