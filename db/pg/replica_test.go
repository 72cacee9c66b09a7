package pg_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// logged is a log, and its text.
func logged() (*slog.Logger, *strings.Builder) {
	var text strings.Builder
	return slog.New(slog.NewTextHandler(&text, nil)), &text
}

// look reads a snapshot by FromReplica, in all ways that there are, and returns how often
// each was read.
func look(t *testing.T, d *pg.DB) (runs int) {
	t.Helper()
	for _, snapshot := range []func(context.Context, func(context.Context) error) error{
		d.Snapshot,
		func(ctx context.Context, fn func(context.Context) error) error {
			return d.ReservedSnapshot(ctx, time.Minute, fn)
		},
	} {
		err := d.FromReplica(t.Context(), func(ctx context.Context) error {
			runs++
			return snapshot(ctx, func(ctx context.Context) error {
				standby, err := pg.One[bool](ctx, d, "ask", pg.SQL("SELECT pg_is_in_recovery()"))
				if err == nil && standby {
					err = errors.New("a standby was read")
				}
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return runs
}

// TestReplicaIsPrimary: a server that takes writes is left alone, which is logged once.
func TestReplicaIsPrimary(t *testing.T) {
	url := dbtest.URL(t, empty)
	log, text := logged()
	clock := domain.NewManualClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	d := openAt(t, url, pg.WithReplica(url, log), pg.WithClock(clock))
	if state, ok := d.Replica(); !ok || state.Used || state.Fault != nil {
		t.Errorf("before it was asked: %+v, %v", state, ok)
	}
	for range 3 {
		if runs := look(t, d); runs != 2 {
			t.Errorf("read %d times", runs)
		}
		clock.Advance(time.Minute)
	}
	const fault = "the server is not a standby"
	if state, _ := d.Replica(); state.Used || state.Fault == nil || state.Fault.Error() != fault || !state.AsOf.IsZero() {
		t.Errorf("%+v", state)
	}
	if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), fault) {
		t.Errorf("logged: %s", text)
	}
	if _, err := d.CheckReplica(t.Context()); err == nil || err.Error() != fault {
		t.Errorf("checked: %v", err)
	}
}

// TestReplicaRests: a standby that is gone is asked again after 10 seconds, and not before.
func TestReplicaRests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	defer func() { _ = l.Close(); <-ended }()

	log, text := logged()
	clock := domain.NewManualClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	d := openAt(t, dbtest.URL(t, empty), pg.WithClock(clock),
		pg.WithReplica("postgres://partnerapi@"+l.Addr().String()+"/partnerapi?sslmode=disable", log))
	look(t, d)
	once := asked.Load()
	clock.Advance(10*time.Second - time.Microsecond)
	look(t, d)
	if asked.Load() != once || once == 0 {
		t.Errorf("asked %d times, then %d", once, asked.Load())
	}
	clock.Advance(time.Microsecond)
	look(t, d)
	if asked.Load() == once {
		t.Error("not asked again")
	}
	if state, _ := d.Replica(); state.Used || state.Fault == nil || strings.Count(text.String(), "\n") != 1 {
		t.Errorf("%+v, logged: %s", state, text)
	}
}

// TestWrongReplica: a URL that cannot be read is an error at once.
func TestWrongReplica(t *testing.T) {
	d, err := pg.Open(dbtest.URL(t, empty), pg.WithReplica("postgres://localhost:port/", slog.New(slog.DiscardHandler)))
	if err == nil || !strings.Contains(err.Error(), "standby") {
		t.Error(d, err)
	}
}
