package db_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// lastQuery keeps the last statement on users.
type lastQuery struct {
	sql  string
	args []any
}

func (l *lastQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "FROM users AS u") {
		l.sql, l.args = q.SQL, q.Args
	}
	return ctx
}

func (l *lastQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

var indexOnly = regexp.MustCompile("Index Only Scan (Backward )?using users_by_created ")

// TestSearchReadsTheIndex: a search for a name that few or no users have looks at
// an index alone, in every order of the list, as its rows lie scattered among those
// of other clients.
func TestSearchReadsTheIndex(t *testing.T) {
	last := &lastQuery{}
	w := newWorld(t, db.WithTracer(last))
	client, other := w.AddClient(), w.AddClient()
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT CASE WHEN n % 10 = 9 THEN $1::uuid ELSE $3::uuid END, gen_random_uuid(), 'u' || n || '@example.com', 'User', n::text, 'user ' || n, 'active', 'standard', 'en', 'api',
			300 + n % 500, $2::timestamptz - n * interval '1 second', $2 FROM generate_series(1, 20000) AS n`, client, noon, other)
	w.Vacuum("users")
	tenant, err := w.Tenant(w.As(t.Context()), client)
	w.Must(err)

	for _, sort := range domain.UserSort("").Values() {
		f := domain.UserFilter{Query: "R 19999", Status: domain.Active, Sort: domain.Sort(sort)}
		found, err := tenant.Users(t.Context(), f, domain.Window{Limit: 10})
		if err != nil || len(found.Rows) != 1 || found.Rows[0].Email != "u19999@example.com" {
			t.Fatalf("by %s: %+v, %v", sort, found.Rows, err)
		}

		args := last.args
		for len(args) > 0 { // how the query is to be planned comes first
			if _, mode := args[0].(pgx.QueryExecMode); !mode {
				break
			}
			args = args[1:]
		}
		conn, err := w.Pool().Acquire(t.Context())
		w.Must(err)
		rows, err := conn.Query(t.Context(), "EXPLAIN "+last.sql, args...)
		w.Must(err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		conn.Release()
		w.Must(err)
		if text := strings.Join(plan, "\n"); !indexOnly.MatchString(text) {
			t.Errorf("by %s:\n%s", sort, text)
		}
	}
}

// updateUser changes a user as a caller does.
func (w *world) updateUser(ctx context.Context, id domain.UserID, change func(*domain.User)) error {
	return w.Change(w.As(ctx), func(ctx context.Context, c *db.Change) error {
		if err := c.ShareAudiencesOf(ctx, id); err != nil {
			return err
		}
		u, err := c.LockUser(ctx, id)
		if err != nil {
			return err
		}
		after := u.User
		change(&after)
		return u.Update(ctx, c, after)
	})
}

// addMember adds a user to a collection as a caller does.
func (w *world) addMember(ctx context.Context, client domain.ClientID, to domain.CollectionID, user domain.UserID) error {
	return w.ChangeOf(ctx, client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
			return err
		}
		if _, err := t.LockCollection(ctx, c, to); err != nil {
			return err
		}
		_, err := t.AddMembers(ctx, c, to, []domain.UserID{user})
		return err
	})
}

// removeMember removes a user from a collection as a caller does.
func (w *world) removeMember(ctx context.Context, client domain.ClientID, from domain.CollectionID, user domain.UserID) error {
	return w.ChangeOf(ctx, client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
			return err
		}
		return t.RemoveMember(ctx, c, from, user)
	})
}

// TestUserNeverUpdatedBefore: where the clock was put back, updated_at stays, and
// the change is made.
func TestUserNeverUpdatedBefore(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	rename := func(name string) {
		t.Helper()
		w.Must(w.updateUser(t.Context(), user, func(u *domain.User) { u.FirstName, u.Role = name, domain.RoleAdmin }))
	}
	rename("Ada")
	w.Clock.Advance(-day)
	rename("Bob")
	var name string
	w.Get("SELECT first_name FROM users WHERE id = $1", []any{user}, &name)
	if at := w.UpdatedAt("users", user); !at.Equal(noon) || name != "Bob" {
		t.Errorf("%s was updated at %v", name, at)
	}
}
