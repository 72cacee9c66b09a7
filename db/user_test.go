package db_test

import (
	"context"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// TestSearchReadsTheIndex: a search for a name that few or no users have looks at
// an index alone, in every order of the list, as its rows lie scattered among those
// of other clients.
func TestSearchReadsTheIndex(t *testing.T) {
	w := newWorld(t)
	client, other := w.AddClient(), w.AddClient()
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT CASE WHEN n % 10 = 9 THEN $1::uuid ELSE $3::uuid END, gen_random_uuid(), 'u' || n || '@example.com', 'User', n::text, 'user ' || n, 'active', 'standard', 'en', 'api',
			300 + n % 500, $2::timestamptz - n * interval '1 second', $2 FROM generate_series(1, 20000) AS n`, client, noon, other)
	w.Vacuum("users")
	tenant, err := w.Tenant(w.As(t.Context()), client)
	w.Must(err)

	for _, sort := range domain.UserSort("").Values() {
		f := domain.UserFilter{Query: "R 19999", Status: domain.Active, Sort: domain.Sort(sort)}
		w.Must(w.Tx(t.Context(), func(ctx context.Context) error {
			before := rowsRead(ctx, w)
			found, err := tenant.Users(ctx, f, domain.Window{Limit: 10})
			if err != nil || len(found.Rows) != 1 || found.Rows[0].Email != "u19999@example.com" {
				t.Fatalf("by %s: %+v, %v", sort, found.Rows, err)
			}
			if read := rowsRead(ctx, w) - before; read != 1 {
				t.Errorf("by %s: %d rows of users are read", sort, read)
			}
			return nil
		}))
	}
}

// rowsRead is how many rows of users the transaction of ctx has read from the table.
func rowsRead(ctx context.Context, w *world) (n int) {
	w.T.Helper()
	w.Must(w.Transaction(ctx).QueryRow(ctx, `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
		WHERE relname = 'users'`).Scan(&n))
	return n
}

// updateUser changes a user as a caller does.
func (w *world) updateUser(ctx context.Context, id domain.UserID, change func(*domain.User)) error {
	return w.Change(w.As(ctx), func(ctx context.Context, c *db.Change) error {
		if err := c.LockAudiencesSharedOf(ctx, id); err != nil {
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
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil {
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

// TestNeverUpdatedBefore: where the clock was put back, updated_at of a user and of a client
// stays, and the change is made.
func TestNeverUpdatedBefore(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	rename := func(name string) {
		t.Helper()
		w.Must(w.updateUser(t.Context(), user, func(u *domain.User) { u.FirstName, u.Role = name, domain.RoleAdmin }))
		w.Must(w.Change(w.caller(), func(ctx context.Context, c *db.Change) error {
			tenant, err := c.LockTenant(ctx, client)
			w.Must(err)
			tenant.Name = name
			return tenant.Update(ctx, c)
		}))
	}
	rename("Ada")
	w.Clock.Advance(-day)
	rename("Bob")
	var first, name string
	w.Scan("SELECT u.first_name, c.name FROM users AS u JOIN clients AS c ON c.id = u.client_id", nil, &first, &name)
	if first != "Bob" || name != "Bob" || !w.UpdatedAt("users", user).Equal(noon) || !w.UpdatedAt("clients", client).Equal(noon) {
		t.Errorf("%s of %s was updated at %v, and the client at %v", first, name, w.UpdatedAt("users", user), w.UpdatedAt("clients", client))
	}
}
