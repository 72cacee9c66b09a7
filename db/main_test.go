package db_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// schema is that of the service's tables.
var schema = dbtest.Schema{Name: "db", Key: db.SchemaKey(), Apply: func(ctx context.Context, url string) error {
	d, err := db.Open(url)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	_, err = d.Migrate(ctx)
	return err
}}

// noon is when tests take place: the middle of a day, so that a few hours more
// or less stay in it.
var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// world is a database of a test's own with a partner in it, whose rows are
// written in plain SQL.
type world struct {
	*db.DB
	t       testing.TB
	clock   *domain.ManualClock
	partner domain.PartnerID
}

func newWorld(t testing.TB, opts ...db.Option) *world {
	t.Helper()
	clock := domain.NewManualClock(noon)
	d, err := db.Open(dbtest.URL(t, schema), append([]db.Option{db.WithClock(clock), db.WithStrictLocks()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{DB: d, t: t, clock: clock, partner: db.NewID[domain.PartnerKind]()}
	w.add("partners", row{"id": w.partner})
	return w
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.SQL().ExecContext(context.Background(), query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

type row = fixture.Row

// add adds rows to a table.
func (w *world) add(table string, rows ...row) {
	w.t.Helper()
	fixture.Insert(w.t, w.SQL(), table, rows...)
}

// get reads one row.
func (w *world) get(query string, args []any, into ...any) {
	w.t.Helper()
	if err := w.SQL().QueryRowContext(context.Background(), query, args...).Scan(into...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// must stops the test on an error.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// client adds a client whose summary was never made.
func (w *world) client() domain.ClientID {
	w.t.Helper()
	id := db.NewID[domain.ClientKind]()
	w.add("clients", row{"id": id, "partner_id": w.partner, "name": id.String(), "name_key": id.String()})
	return id
}

// user adds an active user, two years old, with a score and a role.
func (w *world) user(client domain.ClientID, role domain.Role, score int) domain.UserID {
	w.t.Helper()
	id := db.NewID[domain.UserKind]()
	w.add("users", row{"client_id": client, "id": id, "email": id.String() + "@example.com", "role": role, "score": score})
	return id
}

// mail adds a simulated mail that was sent the given number of days ago, and what became of
// it: columns of times, each of them as of the same day.
func (w *world) mail(client domain.ClientID, user domain.UserID, age int, automated bool, columns ...string) {
	w.t.Helper()
	at := noon.AddDate(0, 0, -age)
	id := db.NewID[domain.ResultKind]()
	w.add("phishing_templates", row{"id": domain.TemplateID{15: 1}})
	result := row{
		"client_id": client, "id": id, "user_id": user, "template_id": domain.TemplateID{15: 1},
		"status": domain.ResultSent, "automated": automated, "sent_at": at, "created_at": at,
	}
	for _, column := range columns {
		result[column] = at
	}
	w.add("phishing_results", result)
}

// assign adds a round of the course with this number, due in the given number of days. It
// was completed the given number of days ago, unless that is below 0.
func (w *world) assign(client domain.ClientID, user domain.UserID, course byte, dueIn, completed int) {
	w.t.Helper()
	var at *time.Time
	if completed >= 0 {
		day := noon.AddDate(0, 0, -completed)
		at = &day
	}
	w.exec(`INSERT INTO assignments (client_id, user_id, course_id, position, direct, assigned_at, due_on, completed_at)
		VALUES ($1, $2, ('019b7740-0000-7000-8000-00000000000' || $3::text)::uuid, $3::integer, true, $4, $5, $6)`,
		client, user, int(course), noon.AddDate(-1, 0, 0), today.AddDays(dueIn), at)
}

var today = domain.DateOf(noon)

// as is a context of a key of the partner that reaches all of its clients.
func (w *world) as(ctx context.Context) context.Context {
	return domain.WithCaller(ctx, &domain.Caller{Partner: w.partner, AllClients: true})
}

// change runs fn in a change, with a client of the partner's.
func (w *world) change(ctx context.Context, id domain.ClientID, fn func(context.Context, *db.Change, *db.Tenant) error) error {
	ctx = w.as(ctx)
	return w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, id)
		if err != nil {
			return err
		}
		return fn(ctx, c, t)
	})
}

// Rescore computes the scores of users again.
func (w *world) Rescore(ctx context.Context, client domain.ClientID, users []domain.UserID) error {
	return w.Change(ctx, func(_ context.Context, c *db.Change) error {
		for _, id := range users {
			c.Rescore(domain.UserKey{Client: client, User: id})
		}
		return nil
	})
}

// UserRisk reads the risk of one of the partner's users.
func (w *world) UserRisk(ctx context.Context, id domain.UserID) (domain.UserRisk, error) {
	ctx = w.as(ctx)
	u, err := w.User(ctx, id)
	if err != nil {
		return domain.UserRisk{}, err
	}
	return u.Risk(ctx)
}

// updatedAt reads when a user or a client was updated.
func (w *world) updatedAt(table string, id any) (at time.Time) {
	w.t.Helper()
	w.get("SELECT updated_at FROM "+table+" WHERE id = $1", []any{id}, &at)
	return at
}

// vacuum vacuums a table until an index says of all its rows that everybody sees
// them: another statement may hold that up for a moment.
func (w *world) vacuum(table string) {
	w.t.Helper()
	for range 100 {
		w.exec("VACUUM ANALYZE " + table)
		var done bool
		w.get("SELECT relallvisible = relpages FROM pg_class WHERE oid = $1::regclass", []any{table}, &done)
		if done {
			return
		}
	}
	w.t.Fatalf("%s has rows that not everybody sees", table)
}
