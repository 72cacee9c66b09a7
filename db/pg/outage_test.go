package pg_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// TestOutages: an error of the server and not of the statement is Unavailable,
// with the time after which to try again (decisions 2.6).
func TestOutages(t *testing.T) {
	d := open(t)
	exec(t, d, "CREATE TABLE rows (n integer)")
	exec(t, d, "INSERT INTO rows VALUES (1)")
	besides := func(ctx context.Context, statements ...string) error { // besides one who holds the rows
		return d.Tx(ctx, func(locked context.Context) error {
			if _, err := pg.Exec(locked, d, "lock", pg.SQL("SELECT * FROM rows FOR UPDATE")); err != nil {
				return err
			}
			return inTx(ctx, d, statements...)
		})
	}
	for name, fails := range map[string]func(ctx context.Context) error{
		"statement timeout": func(ctx context.Context) error {
			return inTx(ctx, d, "SET LOCAL statement_timeout = '1ms'", "SELECT pg_sleep(60)")
		},
		"lock timeout": func(ctx context.Context) error {
			return besides(ctx, "SET LOCAL lock_timeout = '1ms'", "SELECT * FROM rows FOR UPDATE")
		},
		"lock not available": func(ctx context.Context) error {
			return besides(ctx, "SELECT 1", "SELECT * FROM rows FOR UPDATE NOWAIT")
		},
		"idle in a transaction": func(ctx context.Context) error {
			return inTx(ctx, d, "SELECT 1", "DO $$ BEGIN RAISE EXCEPTION 'idle' USING ERRCODE = '25P03'; END $$")
		},
		"read only": func(ctx context.Context) error {
			return inTx(ctx, d, "SET TRANSACTION READ ONLY", "INSERT INTO rows VALUES (2)")
		},
		"killed": func(ctx context.Context) error {
			return inTx(ctx, d, "SELECT 1", "SELECT pg_terminate_backend(pg_backend_pid())")
		},
		"deadline": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
			defer cancel()
			_, err := pg.One[int](ctx, d, "count", pg.SQL("SELECT 1"))
			return err
		},
	} {
		wantOutage(t, name, fails(t.Context()))
	}
	if n, err := pg.One[int](t.Context(), d, "count", pg.SQL("SELECT count(*) FROM rows")); err != nil || n != 1 {
		t.Errorf("afterwards there are %d rows, %v", n, err)
	}
}

func inTx(ctx context.Context, d *pg.DB, statements ...string) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		for _, text := range statements {
			if _, err := pg.Exec(ctx, d, "try", pg.SQL(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

func wantOutage(t *testing.T, name string, err error) {
	t.Helper()
	var outage *domain.Error
	if !errors.As(err, &outage) || outage.Code != domain.Unavailable || outage.RetryAfter <= 0 || outage.Cause == nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestRefusedConnection: a connection that is refused is an outage, whatever the
// SQLSTATE of the refusal is.
func TestRefusedConnection(t *testing.T) {
	admin := dbtest.URL(t, empty)
	for name, refuse := range map[string]string{
		"renamed":     "ALTER DATABASE $ RENAME TO $_renamed",
		"not allowed": "ALTER DATABASE $ WITH ALLOW_CONNECTIONS false",
		"no room":     "ALTER DATABASE $ WITH CONNECTION LIMIT 0",
	} {
		t.Run(name, func(t *testing.T) {
			address := dbtest.URL(t, empty)
			parsed, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			database := strings.TrimPrefix(parsed.Path, "/")
			a := openAt(t, admin)
			exec(t, a, strings.ReplaceAll(refuse, "$", database))
			if name == "renamed" {
				t.Cleanup(func() { _, _ = a.Pool().Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+database+"_renamed") })
			}
			if name == "no room" { // which holds for others than superusers
				exec(t, a, "CREATE ROLE "+database+"_guest LOGIN PASSWORD 'guest'")
				t.Cleanup(func() { _, _ = a.Pool().Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+database+"_guest") })
				parsed.User = url.UserPassword(database+"_guest", "guest")
			}
			d := openAt(t, parsed.String())
			_, err = pg.One[int](t.Context(), d, "count", pg.SQL("SELECT 1"))
			wantOutage(t, "a query", err)
			wantOutage(t, "a transaction", d.Tx(t.Context(), func(context.Context) error { return nil }))
			wantOutage(t, "a lock", d.WithAdvisoryLock(t.Context(), "x", func(context.Context) error { return nil }))
			wantOutage(t, "readiness", d.Ping(t.Context()))
		})
	}
}

// TestNoOutage: what is wrong with a statement is no outage, nor is a caller who
// went away; a clash is recognized by its constraint.
func TestNoOutage(t *testing.T) {
	clash := domain.ErrConflict("thing", "taken")
	d := open(t, pg.WithClashes(map[string]*domain.Error{"things_name": clash}))
	exec(t, d, "CREATE TABLE things (name text CONSTRAINT things_name UNIQUE, n integer UNIQUE)")
	exec(t, d, "INSERT INTO things VALUES ('a', 1)")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for text, ctx := range map[string]context.Context{
		"SELECT 1/0": t.Context(), "SELECT nothing": t.Context(), "INSERT INTO things VALUES ('b', 1)": t.Context(), "SELECT 1": gone,
	} {
		_, err := pg.Exec(ctx, d, "do something", pg.SQL(text))
		var known *domain.Error
		if err == nil || errors.As(err, &known) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := pg.Exec(t.Context(), d, "insert", pg.SQL("INSERT INTO things VALUES ('a', 2)")); !errors.Is(err, clash) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// TestReadiness: readiness and advisory locks have connections of their own, and
// answer while requests and jobs hold all others. Who waited in vain for one of
// those learns of an outage.
func TestReadiness(t *testing.T) {
	d := open(t, pg.WithConns(2))
	inside, leave := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	for n := range 2 { // a partner holds one of two at most
		ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: domain.PartnerID{15: byte(n)}})
		go func() {
			ended <- d.Tx(ctx, func(ctx context.Context) error {
				_, err := pg.One[int](ctx, d, "count", pg.SQL("SELECT 1"))
				inside <- struct{}{}
				<-leave
				return err
			})
		}()
		<-inside
	}

	if err := d.Ping(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	locked, err := d.TryAdvisoryLock(t.Context(), "name", func(context.Context) error { return nil })
	if err != nil || !locked {
		t.Errorf("no lock: %t, %v", locked, err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = pg.One[int](hurried, d, "count", pg.SQL("SELECT 1"))
	wantOutage(t, "a third request", err)

	close(leave)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := pg.One[int](t.Context(), d, "count", pg.SQL("SELECT 1")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
