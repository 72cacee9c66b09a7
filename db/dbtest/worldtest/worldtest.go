// Package worldtest has what the tests of the database's packages begin with: a database
// of a test's own, and rows for it that are written in plain SQL.
package worldtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/migrate"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Schema is that of the service's tables. All packages share its template.
var Schema = dbtest.Schema{Name: "db", Key: migrate.SchemaKey(), Apply: func(ctx context.Context, url string) error {
	return Migrate(ctx, url)
}}

// Migrate makes the service's tables, and then runs more on the database.
func Migrate(ctx context.Context, url string, more ...func(context.Context, *db.DB) error) (err error) {
	d, err := db.Open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err := migrate.Up(ctx, d); err != nil {
		return err
	}
	for _, fn := range more {
		if err := fn(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Today is the day on which tests take place.
var Today = domain.DateOf(Noon)

// Noon is when tests take place: the middle of a day, so that a few hours more
// or less stay in it.
var Noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// World is a database of a test's own with a partner in it, whose rows are
// written in plain SQL.
type World struct {
	*db.DB
	Rows
	T       testing.TB
	Clock   *domain.ManualClock
	Partner domain.PartnerID
	turns   outbox.MailTurns
}

// New opens a database of the test's own, with a partner in it.
func New(t testing.TB, opts ...db.Option) *World {
	t.Helper()
	clock := domain.NewManualClock(Noon)
	d, err := db.Open(dbtest.URL(t, Schema), append([]db.Option{db.WithClock(clock), db.WithStrictLocks()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	w := Of(t, d, clock)
	w.Add("partners", fixture.Row{"id": w.Partner})
	return w
}

// Of returns a world on a database that is open, without its partner's row.
func Of(t testing.TB, d *db.DB, clock *domain.ManualClock) *World {
	return &World{DB: d, Rows: RowsOf(t, d), T: t, Clock: clock, Partner: db.NewID[domain.PartnerKind]()}
}

// ExecIn runs a statement in the transaction of ctx, for tests of what transactions do to
// each other.
func (w *World) ExecIn(ctx context.Context, query string, args ...any) error {
	return pg.Run(ctx, w.DB, "run a statement", pg.SQL(query, args...))
}

// Add adds rows to a table.
func (w *World) Add(table string, rows ...fixture.Row) {
	w.T.Helper()
	fixture.Insert(w.T, w.SQL(), table, rows...)
}

// AddClient adds a client whose summary was never made.
func (w *World) AddClient() domain.ClientID {
	w.T.Helper()
	id := db.NewID[domain.ClientKind]()
	w.Add("clients", fixture.Row{"id": id, "partner_id": w.Partner, "name": id.String(), "name_key": id.String()})
	return id
}

// AddUser adds an active user, two years old, with a score and a role.
func (w *World) AddUser(client domain.ClientID, role domain.Role, score int) domain.UserID {
	w.T.Helper()
	id := db.NewID[domain.UserKind]()
	w.Add("users", fixture.Row{"client_id": client, "id": id, "email": id.String() + "@example.com", "role": role, "score": score})
	return id
}

// AddSimulation adds a simulated email that was sent the given number of days ago, with its outcome: columns of times, each of them as of the same day.
func (w *World) AddSimulation(client domain.ClientID, user domain.UserID, age int, automated bool, columns ...string) {
	w.T.Helper()
	at := Noon.AddDate(0, 0, -age)
	id := db.NewID[domain.ResultKind]()
	w.Add("phishing_templates", fixture.Row{"id": domain.TemplateID{15: 1}})
	result := fixture.Row{
		"client_id": client, "id": id, "user_id": user, "template_id": domain.TemplateID{15: 1},
		"status": domain.ResultSent, "automated": automated, "sent_at": at, "created_at": at,
	}
	for _, column := range columns {
		result[column] = at
	}
	w.Add("phishing_results", result)
}

// AddRound adds a round of the course with this number, due in the given number of days. It
// was completed the given number of days ago, unless that is below 0.
func (w *World) AddRound(client domain.ClientID, user domain.UserID, course byte, dueIn, completed int) {
	w.T.Helper()
	var at *time.Time
	if completed >= 0 {
		day := Noon.AddDate(0, 0, -completed)
		at = &day
	}
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, direct, assigned_at, due_on, completed_at)
		VALUES ($1, $2, ('019b7740-0000-7000-8000-00000000000' || $3::text)::uuid, $3::integer, true, $4, $5, $6)`,
		client, user, int(course), Noon.AddDate(-1, 0, 0), Today.AddDays(dueIn), at)
}

// As is a context of a key of the partner that reaches all of its clients.
func (w *World) As(ctx context.Context) context.Context {
	return domain.WithCaller(ctx, &domain.Caller{Partner: w.Partner, AllClients: true})
}

// ChangeOf runs fn in a change, with a client of the partner's.
func (w *World) ChangeOf(ctx context.Context, id domain.ClientID, fn func(context.Context, *db.Change, *db.Tenant) error) error {
	ctx = w.As(ctx)
	return w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, id)
		if err != nil {
			return err
		}
		return fn(ctx, c, t)
	})
}

// Rescore computes the scores of users again.
func (w *World) Rescore(ctx context.Context, client domain.ClientID, users []domain.UserID) error {
	return w.Change(ctx, func(_ context.Context, c *db.Change) error {
		for _, id := range users {
			c.Rescore(domain.UserKey{Client: client, User: id})
		}
		return nil
	})
}

// UserRisk reads the risk of one of the partner's users.
func (w *World) UserRisk(ctx context.Context, id domain.UserID) (domain.UserRisk, error) {
	ctx = w.As(ctx)
	u, err := w.User(ctx, id)
	if err != nil {
		return domain.UserRisk{}, err
	}
	return u.Risk(ctx)
}

// UpdatedAt reads when a user or a client was updated.
func (w *World) UpdatedAt(table string, id any) (at time.Time) {
	w.T.Helper()
	w.Scan("SELECT updated_at FROM "+table+" WHERE id = $1", []any{id}, &at)
	return at
}

// Vacuum vacuums a table until an index says of all its rows that everyone sees
// them: another statement may hold that up for a moment.
func (w *World) Vacuum(table string) {
	w.T.Helper()
	for range 100 {
		w.Exec("VACUUM ANALYZE " + table)
		var done bool
		w.Scan("SELECT relallvisible = relpages FROM pg_class WHERE oid = $1::regclass", []any{table}, &done)
		if done {
			return
		}
	}
	w.T.Fatalf("%s has rows that not everyone sees", table)
}
