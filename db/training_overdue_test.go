package db_test

import (
	"context"
	"sync"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// overdue counts the events of overdue assignments of a user, all there are where the
// user is zero.
func (w *world) overdue(user domain.UserID) (n int) {
	w.T.Helper()
	w.Get("SELECT count(*) FROM events WHERE type = $1 AND (user_id = $2 OR $3)",
		[]any{domain.CourseOverdue, user, user.IsZero()}, &n)
	return n
}

// note notes what is overdue, as the background work does.
func (w *world) note() {
	w.T.Helper()
	for more := true; more; {
		var err error
		_, more, err = w.NoteOverdue(w.T.Context())
		w.Must(err)
	}
}

// TestNoteOverdue: an assignment has one event, on the day after the one on which it
// was due, unless it was completed before; one that is given overdue has one too.
func TestNoteOverdue(t *testing.T) {
	w := newWorld(t)
	client, archived := w.AddClient(), w.AddClient()
	late, today, done, inactive := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750),
		w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive)
	w.AddRound(client, late, 1, -1, -1)
	w.AddRound(client, late, 2, 0, -1)
	w.AddRound(client, today, 1, 0, -1)
	w.AddRound(client, done, 1, -1, 0)
	w.AddRound(client, inactive, 1, -1, -1)
	w.AddRound(archived, w.AddUser(archived, domain.RoleStandard, 750), 1, -1, -1)
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived, noon)
	for _, want := range [][4]int{{1, 0, 0, 1}, {2, 1, 0, 1}, {2, 1, 0, 1}} {
		w.note()
		w.note()
		for i, user := range []domain.UserID{late, today, done, inactive} {
			if n := w.overdue(user); n != want[i] {
				t.Errorf("%s: the user %d has %d events, not %d", w.Now(), i, n, want[i])
			}
		}
		w.Clock.Advance(day)
	}
	if n := w.overdue(domain.UserID{}); n != 4 {
		t.Errorf("%d events", n)
	}

	given := w.AddUser(client, domain.RoleStandard, 750)
	w.Must(w.ChangeOf(t.Context(), client, func(ctx context.Context, c *db.Change, tenant *db.Tenant) error {
		if _, err := tenant.LockUsers(ctx, c, []domain.UserID{given}); err != nil {
			return err
		}
		course, err := w.Course(ctx, domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 1})
		if err != nil {
			return err
		}
		_, err = tenant.Assign(ctx, c, domain.CourseFor{Course: course, Users: []domain.UserID{given}, DueOn: domain.DateOf(noon)})
		return err
	}))
	w.note()
	if n := w.overdue(given); n != 1 {
		t.Errorf("an assignment that is given overdue has %d events", n)
	}
}

// TestNoteOverdueAtOnce: of several processes at once, and beside one that completes an
// assignment, each has one event.
func TestNoteOverdueAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	w.AddRound(client, w.AddUser(client, domain.RoleStandard, 750), 1, -1, -1)
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), n || '@example.com', 'A', 'B', 'a b', 'active', 'standard', 'en', 'api', 750, $2, $2 FROM generate_series(1, 2500) AS n`, client, noon)
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, direct, assigned_at, due_on)
		SELECT u.client_id, u.id, a.course_id, 1, true, a.assigned_at, a.due_on FROM users AS u, assignments AS a WHERE u.email LIKE '%@example.com' AND u.id <> a.user_id`)
	locked := w.AddUser(client, domain.RoleStandard, 750)
	w.AddRound(client, locked, 1, -1, -1)
	w.Must(w.Tx(t.Context(), func(ctx context.Context) error {
		if err := db.ExecIn(ctx, w.DB, "UPDATE assignments SET completed_at = now() WHERE user_id = ?", locked); err != nil {
			return err
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for range 4 {
					if _, _, err := w.NoteOverdue(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return nil
	}))
	w.note()
	if n := w.overdue(domain.UserID{}); n != 2501 {
		t.Errorf("%d events, not one for each of 2501 assignments", n)
	}
	if n := w.overdue(locked); n != 0 {
		t.Errorf("a completed one has %d events", n)
	}
}
